//! The streaming chunker: blocks in, chunks out.

use crate::door::{limits_of, refusal_params};
use crate::enter::enter_whole;
use pathcast_core::files::chunks::{CHUNKS_MAX, Chunker as CoreChunker, Chunks, CutTree, Fault};
use pathcast_core::xml::parser::Refusal;
use pathcast_core::xml::parser::push::Bounds;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

type Name = (String, String);

/// Label path, chunks that keep single nodes there, chunks that keep them with their content.
type CutPath = (Vec<Name>, Chunks, Chunks);

/// Root element; parent and child of every edge.
type Schema = (Name, Vec<(Name, Name)>);

/// Cuts one message after another.
#[pyclass(module = "pathcast_kernel")]
pub struct Chunker(CoreChunker);

#[pymethods]
impl Chunker {
    /// `chunks` in all; `bounds` are those of a message: bytes, elements, and bytes that are held of it.
    #[new]
    fn new(
        chunks: usize,
        paths: Vec<CutPath>,
        schema: Option<Schema>,
        limits: &Bound<'_, PyAny>,
        bounds: (u64, u64, u32),
    ) -> PyResult<Self> {
        if chunks > CHUNKS_MAX {
            return Err(PyValueError::new_err(format!("{chunks} chunks")));
        }
        let mut tree = CutTree::new(chunks);
        if let Some((root, edges)) = &schema {
            let pairs: Vec<_> =
                edges.iter().map(|(parent, child)| (borrowed(parent), borrowed(child))).collect();
            tree.set_schema(borrowed(root), &pairs);
        }
        for (path, single, content) in &paths {
            let path: Vec<_> = path.iter().map(borrowed).collect();
            tree.add(&path, *single, *content);
        }
        let (message_bytes_max, elements_max, held_bytes_max) = bounds;
        let bounds = Bounds { message_bytes_max, elements_max, held_bytes_max };
        Ok(Self(CoreChunker::new(tree, limits_of(limits)?, bounds)))
    }

    /// Begins a message, which the next block is the first of.
    #[pyo3(signature = (encoding=None))]
    fn begin(&mut self, encoding: Option<&str>) {
        self.0.begin(encoding);
    }

    /// The next bytes; None, or the code and the parameters of a refusal.
    fn feed<'py>(&mut self, py: Python<'py>, block: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let fed = enter_whole(py, || self.0.feed(block));
        py.check_signals()?;
        fed.err().map(|refusal| refused(py, &refusal)).transpose()
    }

    /// What a chunk has grown by since it was asked for last.
    fn grown<'py>(&mut self, py: Python<'py>, chunk: usize) -> Bound<'py, PyBytes> {
        let grown = self.0.grown(chunk);
        let bytes = PyBytes::new(py, grown);
        grown.clear();
        bytes
    }

    /// Ends the message: elements of each chunk, and its fault ("schema", "entity" or None); or the code
    /// and the parameters of a refusal.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match enter_whole(py, || self.0.finish()) {
            Ok(summary) => {
                let fault = summary.fault.map(|fault| match fault {
                    Fault::Schema => "schema",
                    Fault::Entity => "entity",
                });
                (summary.elements, fault).into_bound_py_any(py)
            }
            Err(refusal) => refused(py, &refusal),
        }
    }
}

fn borrowed(name: &Name) -> (&str, &str) {
    (&name.0, &name.1)
}

fn refused<'py>(py: Python<'py>, refusal: &Refusal) -> PyResult<Bound<'py, PyAny>> {
    (refusal.code.as_str(), refusal_params(py, refusal)?).into_bound_py_any(py)
}
