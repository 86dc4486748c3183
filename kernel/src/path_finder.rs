//! Numbered paths in parts of messages.

use crate::enter::enter_whole;
use pathcast_core::engine::path_finder as core;
use pathcast_core::engine::path_finder::Part;
use pathcast_core::language::query::NameTest;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Namespace URI and local name, each nothing where any will do; nothing at all for epsilon.
type PyLabel = Option<(Option<String>, Option<String>)>;

/// Paths with numbers, found from given places of a message on.
#[pyclass]
pub struct PathFinder(core::PathFinder);

#[pymethods]
impl PathFinder {
    #[new]
    fn new() -> Self {
        PathFinder(core::PathFinder::default())
    }

    /// The number of a path, by the labels of its transitions.
    fn number(&mut self, labels: Vec<PyLabel>) -> u32 {
        let tests: Vec<_> = labels.iter().map(|label| label.as_ref().map(test_of)).collect();
        self.0.number(&tests)
    }

    /// Where paths end, as pairs of a path and a place (-1 is the document), given where some end; and how many
    /// places there are at which something was active. ValueError for what is no part of a message.
    fn find(
        &mut self,
        py: Python<'_>,
        names: Vec<(String, String)>,
        name: Vec<u32>,
        depth: Vec<u32>,
        entries: Vec<(u32, i64)>,
    ) -> PyResult<(Vec<(u32, i64)>, u64)> {
        let part = Part { names: &names, name: &name, depth: &depth };
        let found = enter_whole(py, || self.0.find(part, &entries));
        let found = found.map_err(|unsound| PyValueError::new_err(unsound.0))?;
        Ok((found.ends, found.steps))
    }

    /// Bytes held.
    fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Number of paths.
    fn __len__(&self) -> usize {
        self.0.len()
    }
}

fn test_of(label: &(Option<String>, Option<String>)) -> NameTest<'_> {
    match label {
        (None, None) => NameTest::Any,
        (Some(uri), None) => NameTest::AnyIn { uri: uri.into() },
        (None, Some(local)) => NameTest::AnyNamespace { local: local.into() },
        (Some(uri), Some(local)) => NameTest::Name { uri: uri.into(), local: local.into() },
    }
}
