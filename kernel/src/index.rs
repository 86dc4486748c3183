//! Indexes, snapshots and the ids behind query numbers.

use crate::enter::{enter, enter_long, enter_whole};
use crate::matcher::{Matcher, Source};
use pathcast_core::language::query::{Compiler, Namespaces, Step, compile_canonical};
use pathcast_core::registry::index::{NotRegistered, Unknown};
use pathcast_core::registry::snapshot::format::{
    FORMAT, FormatError, KIND_QUERIES, SnapshotFile, Tag,
};
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord, queries_of};
use pathcast_core::registry::{index as core, snapshot};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

pyo3::create_exception!(
    pathcast_kernel,
    SnapshotError,
    pyo3::exceptions::PyValueError,
    "A snapshot file was refused: (kind, reason or version found, version expected)."
);

/// Queries registered under one lock, between two looks for signals.
const CHUNK: usize = 1 << 14;

/// Why a query was not registered.
#[derive(Clone, Copy)]
enum Rejected {
    Duplicate,
    Declined,
}

impl Rejected {
    fn as_str(self) -> &'static str {
        match self {
            Rejected::Duplicate => "duplicate",
            Rejected::Declined => "declined",
        }
    }
}

/// A changing index.
#[pyclass(frozen)]
pub struct Index(Arc<core::Index>);

#[pymethods]
impl Index {
    /// An empty index whose snapshots say what a message may cost, in JSON.
    #[new]
    fn new(limits: &str) -> Self {
        Index(Arc::new(core::Index::new(limits)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        enter(py, || self.0.state().len())
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        enter(py, || self.0.state().find(id, |_, _| ()).is_some())
    }

    /// Registers (id, text, namespaces or None) and gives back the rows that were not taken, each
    /// with "duplicate" or "declined" (the fast compiler leaves the query to `pathcast.query`).
    fn register(
        &self,
        py: Python<'_>,
        queries: &Bound<'_, PyList>,
        namespaces: NamespaceMap,
    ) -> PyResult<Vec<(usize, &'static str)>> {
        let mut rejected = Vec::new();
        let mut declined = HashSet::new();
        let mut start = 0;
        // Maps that queries share are shared objects as a rule; look at each object once.
        let mut numbers: HashMap<usize, u32> = HashMap::new();
        while start < queries.len() {
            let end = queries.len().min(start + CHUNK);
            let mut chunk = Chunk::default();
            for row in start..end {
                let query = queries.get_item(row)?;
                let (id, text, own): (
                    Bound<'_, PyString>,
                    Bound<'_, PyString>,
                    Option<Bound<'_, PyAny>>,
                ) = query.extract()?;
                let number = match own {
                    None => match numbers.get(&0) {
                        Some(&number) => number,
                        None => {
                            let number = self.namespace_number(py, namespaces.clone());
                            numbers.insert(0, number);
                            number
                        }
                    },
                    Some(own) => match numbers.get(&(own.as_ptr() as usize)) {
                        Some(&number) => number,
                        None => {
                            let mut map = namespaces.clone();
                            map.extend(own.extract::<NamespaceMap>()?);
                            let number = self.namespace_number(py, map);
                            numbers.insert(own.as_ptr() as usize, number);
                            number
                        }
                    },
                };
                chunk.push(id.to_str()?, text.to_str()?, number);
            }
            let refused =
                enter_whole(py, || self.0.change(|state| chunk.register(state, &mut declined)));
            rejected.extend(refused.into_iter().map(|(row, why)| (start + row, why.as_str())));
            py.check_signals()?;
            start = end;
        }
        Ok(rejected)
    }

    /// Registers a query that is compiled: it holds where one of the alternatives (canonical text)
    /// holds and the expression (canonical text, or None) is true. False if the id is taken; None
    /// if there is no alternative or a text is not canonical.
    fn register_compiled(
        &self,
        py: Python<'_>,
        id: &str,
        text: &str,
        namespaces: NamespaceMap,
        alternatives: Vec<String>,
        expression: Option<&str>,
    ) -> Option<bool> {
        enter_whole(py, || {
            let paths: Vec<Vec<Step<'_>>> = alternatives
                .iter()
                .map(String::as_str)
                .map(compile_canonical)
                .collect::<Result<_, _>>()
                .ok()?;
            let paths: Vec<&[Step<'_>]> = paths.iter().map(Vec::as_slice).collect();
            if paths.is_empty() {
                return None;
            }
            let registered = self.0.change(|state| {
                let namespaces = state.namespace_number(&namespaces);
                state.register(QueryRecord { id, text, namespaces }, &paths, expression)
            });
            match registered {
                Ok(()) => Some(true),
                Err(NotRegistered::Duplicate) => Some(false),
                Err(NotRegistered::Expression) => None,
            }
        })
    }

    /// Removes queries, all or none.
    ///
    /// Raises KeyError with the position of the first unknown id.
    fn remove(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<()> {
        let removed =
            enter_whole(py, || self.0.change(|state| state.remove(ids.iter().map(String::as_str))));
        removed.map_err(|Unknown(at)| PyKeyError::new_err(at))
    }

    /// (text, namespaces) of an id.
    fn query(&self, py: Python<'_>, id: &str) -> PyResult<Option<(String, NamespaceMap)>> {
        let copied = |query: QueryRecord<'_>, namespaces: &NamespaceMap| {
            (query.text.to_owned(), namespaces.clone())
        };
        enter(py, || self.0.state().find(id, copied))
    }

    /// Merges everything into an immutable snapshot.
    fn freeze(&self, py: Python<'_>) -> PyResult<Snapshot> {
        enter_long(py, || self.0.freeze()).map(Snapshot)
    }

    /// A matcher that sees every change.
    fn matcher(
        &self,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Matcher> {
        let source = Source::Index(Arc::clone(&self.0));
        Matcher::new(source, limits, threads, cache_bytes_max)
    }

    /// Bytes that the queries registered since the last freeze occupy.
    fn memory(&self, py: Python<'_>) -> PyResult<usize> {
        enter(py, || self.0.state().memory())
    }
}

impl Index {
    fn namespace_number(&self, py: Python<'_>, namespaces: NamespaceMap) -> u32 {
        enter_whole(py, || self.0.change(|state| state.namespace_number(&namespaces)))
    }
}

/// Queries copied out of Python.
#[derive(Default)]
struct Chunk {
    text: String,
    /// End of the id, end of the text, number of the namespaces.
    rows: Vec<(usize, usize, u32)>,
}

impl Chunk {
    fn push(&mut self, id: &str, text: &str, namespaces: u32) {
        self.text.push_str(id);
        let middle = self.text.len();
        self.text.push_str(text);
        self.rows.push((middle, self.text.len(), namespaces));
    }

    /// A query whose id was declined before is declined too: the earlier one has the first claim.
    fn register(
        &self,
        state: &mut core::IndexState,
        declined: &mut HashSet<String>,
    ) -> Vec<(usize, Rejected)> {
        let mut rejected = Vec::new();
        let numbers: HashSet<u32> = self.rows.iter().map(|&(_, _, number)| number).collect();
        let bindings: HashMap<u32, Namespaces> = numbers
            .into_iter()
            .map(|number| (number, Namespaces::new(state.namespaces(number).clone())))
            .collect();
        let mut compiler = Compiler::default();
        let mut start = 0;
        for (row, &(middle, end, number)) in self.rows.iter().enumerate() {
            let (id, text) = (&self.text[start..middle], &self.text[middle..end]);
            start = end;
            let record = QueryRecord { id, text, namespaces: number };
            match compiler.compile(text, &bindings[&number]) {
                Err(_) => {
                    declined.insert(id.to_owned());
                    rejected.push((row, Rejected::Declined));
                }
                Ok(_) if !declined.is_empty() && declined.contains(id) => {
                    rejected.push((row, Rejected::Declined));
                }
                Ok(steps) => {
                    // Without an expression, a taken id is all that can be wrong.
                    if state.register(record, &[steps], None).is_err() {
                        rejected.push((row, Rejected::Duplicate));
                    }
                }
            }
        }
        rejected
    }
}

/// An immutable snapshot.
#[pyclass(frozen)]
pub struct Snapshot(Arc<snapshot::Snapshot>);

#[pymethods]
impl Snapshot {
    /// Opens a file that holds an automaton; None if it holds queries only.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Option<Self>> {
        let opened = enter(py, || {
            let file = SnapshotFile::open(&path)?;
            if file.kind() == KIND_QUERIES {
                return Ok(None);
            }
            snapshot::Snapshot::from_file(file).map(Some)
        });
        let opened = opened?.map_err(to_python)?;
        Ok(opened.map(|snapshot| Snapshot(Arc::new(snapshot))))
    }

    /// Writes the file beside its place and renames it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        enter(py, || self.0.file().save(&path))?.map_err(to_python)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The ids by number.
    #[getter]
    fn ids(&self) -> IdTable {
        IdTable(core::IdTable::of_snapshot(Arc::clone(&self.0)))
    }

    /// JSON object: what a message may cost, as agreed where it was frozen.
    #[getter]
    fn limits(&self) -> &str {
        self.0.limits()
    }

    /// JSON object: version, queries, states, plans, expressions.
    #[getter]
    fn metadata(&self) -> PyResult<String> {
        Ok(String::from_utf8(self.0.file().bytes(Tag::Metadata).to_vec())?)
    }

    /// Bytes of the file.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.file().as_slice().len()
    }

    /// (number, text, namespaces) of an id.
    fn query(&self, id: &str) -> Option<(u32, String, NamespaceMap)> {
        let number = self.0.number_of(id)?;
        let query = self.0.query(number);
        let namespaces = self.0.namespaces()[query.namespaces as usize].clone();
        Some((number, query.text.to_owned(), namespaces))
    }

    /// What the queries ask for: places, constants as numbers and as strings, columns of the paths and of
    /// the predicates.
    fn population<'py>(&self, py: Python<'py>) -> PyResult<crate::population::PyPopulation<'py>> {
        crate::population::columns_of(py, &self.0)
    }

    /// A matcher over this snapshot.
    fn matcher(
        &self,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Matcher> {
        let source = Source::Snapshot(Arc::clone(&self.0));
        Matcher::new(source, limits, threads, cache_bytes_max)
    }
}

/// Id, text, namespaces.
type PyQuery = (String, String, NamespaceMap);

/// The limits of any snapshot file, and its queries in the order of the file.
#[pyfunction]
pub fn read_queries(py: Python<'_>, path: PathBuf) -> PyResult<(String, Vec<PyQuery>)> {
    let read = enter(py, || {
        let file = SnapshotFile::open(&path)?;
        let (queries, namespaces) = queries_of(&file)?;
        let limits = String::from_utf8_lossy(file.bytes(Tag::Limits)).into_owned();
        let owned = queries.iter().map(|query| {
            let namespaces = namespaces[query.namespaces as usize].clone();
            (query.id.to_owned(), query.text.to_owned(), namespaces)
        });
        Ok((limits, owned.collect()))
    });
    read?.map_err(to_python)
}

fn to_python(error: FormatError) -> PyErr {
    match error {
        FormatError::Io(error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        FormatError::Foreign(reason) => SnapshotError::new_err(("foreign", reason, FORMAT)),
        FormatError::Version(found) => SnapshotError::new_err(("version", found, FORMAT)),
        FormatError::Damaged(reason) => SnapshotError::new_err(("damaged", reason, FORMAT)),
    }
}

/// The ids behind query numbers.
#[pyclass(frozen)]
pub struct IdTable(pub core::IdTable);

#[pymethods]
impl IdTable {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The ids of these numbers.
    fn take<'py>(&self, py: Python<'py>, numbers: Vec<u32>) -> PyResult<Bound<'py, PyList>> {
        let count = self.0.len();
        if let Some(number) = numbers.iter().find(|&&n| n as usize >= count) {
            return Err(PyIndexError::new_err(format!("no query has the number {number}")));
        }
        let ids = PyList::empty(py);
        let mut appended = Ok(());
        self.0.for_each(numbers.into_iter(), |id| {
            if appended.is_ok() {
                appended = ids.append(id);
            }
        });
        appended.map(|()| ids)
    }

    /// All ids as a large_string array.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut builder = arrow_array::builder::LargeStringBuilder::new();
        self.0.for_each(0..self.0.len() as u32, |id| builder.append_value(id));
        crate::matcher::to_pyarrow(py, &builder.finish())
    }
}
