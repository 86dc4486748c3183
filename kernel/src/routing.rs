//! Routing tables.

use crate::matcher::{Matcher, Source};
use pathcast_core::routing::{self as core, Entry, NotCanonical, words_for};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Entries that lead to targets, several to each.
#[pyclass(frozen)]
pub struct RoutingTable(pub Arc<core::RoutingTable>);

#[pymethods]
impl RoutingTable {
    /// The table of some entries: the numbers of the paths of each, and a bit for each target in 64-bit words,
    /// little endian, one entry after the other. Without `prunes` everything is looked at to the end.
    ///
    /// Raises KeyError with the number of the first path that is not in canonical text.
    #[new]
    fn new(
        py: Python<'_>,
        targets: u32,
        paths: Vec<String>,
        entries: Vec<Vec<u32>>,
        masks: &[u8],
        prunes: bool,
    ) -> PyResult<Self> {
        let words = words_for(targets);
        let is_known = |&path: &u32| (path as usize) < paths.len();
        let is_sound = |paths: &Vec<u32>| !paths.is_empty() && paths.iter().all(is_known);
        if masks.len() != entries.len() * words * 8 || !entries.iter().all(is_sound) {
            return Err(PyValueError::new_err("an entry names what is not there"));
        }
        let masks: Vec<u64> = masks
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let table = py.detach(|| {
            let rows = entries.iter().zip(masks.chunks_exact(words));
            let rows = rows.map(|(paths, targets)| Entry { paths, targets });
            core::RoutingTable::new(targets, &paths, rows)
        });
        let table = table.map_err(|NotCanonical(at)| PyKeyError::new_err(at))?;
        Ok(RoutingTable(Arc::new(if prunes { table } else { table.without_pruning() })))
    }

    /// A matcher whose numbers are targets.
    fn matcher(
        &self,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Matcher> {
        Matcher::new(Source::Routes(Arc::clone(&self.0)), limits, threads, cache_bytes_max)
    }

    /// Bytes held.
    fn memory(&self) -> usize {
        self.0.memory()
    }
}
