//! Routing tables.

use crate::enter::{enter, enter_whole};
use crate::matcher::{Matcher, Source, options_of};
use crate::push::{Answer, answer};
use pathcast_core::engine::interrupt::did;
use pathcast_core::engine::routing as core;
use pathcast_core::engine::routing::{Entry, NotCanonical, stream, words_for};
use pathcast_core::xml::parser::push::Bounds;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Work of taking an entry, as [`did`] counts it.
const ENTRY_WORK: u64 = 64;

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
        let table = enter(py, || {
            let rows = entries.iter().zip(masks.chunks_exact(words));
            let rows = rows.take_while(|_| !did(ENTRY_WORK));
            let rows = rows.map(|(paths, targets)| Entry { paths, targets });
            core::RoutingTable::new(targets, &paths, rows)
        })?;
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
        let source = Source::Routes(Arc::clone(&self.0));
        Matcher::new(source, limits, threads, cache_bytes_max)
    }

    /// What routes one message after another as it arrives.
    fn stream(
        &self,
        limits: &Bound<'_, PyAny>,
        cache_bytes_max: usize,
        message_bytes_max: u64,
        elements_max: u64,
        held_bytes_max: u32,
    ) -> PyResult<RoutingStream> {
        let options = options_of(limits, cache_bytes_max)?;
        let bounds = Bounds { message_bytes_max, elements_max, held_bytes_max };
        Ok(RoutingStream(stream::RoutingStream::new(Arc::clone(&self.0), options, bounds)))
    }

    /// Bytes held.
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

/// Routes messages that arrive in blocks. Its answers are nothing, or the code and the parameters of a
/// refusal.
#[pyclass]
pub struct RoutingStream(stream::RoutingStream);

#[pymethods]
impl RoutingStream {
    #[pyo3(signature = (encoding=None))]
    fn begin(&mut self, encoding: Option<&str>) {
        self.0.begin(encoding);
    }

    fn feed<'py>(&mut self, py: Python<'py>, block: &[u8]) -> PyResult<Answer<'py>> {
        let outcome = enter_whole(py, || self.0.feed(block));
        answer(py, outcome)
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Answer<'py>> {
        let outcome = enter_whole(py, || self.0.finish());
        answer(py, outcome)
    }

    /// The targets reached so far.
    fn targets(&self) -> Vec<u32> {
        self.0.targets()
    }

    /// Bytes that had arrived when the decision was final.
    fn decided_at(&self) -> Option<u64> {
        self.0.decided_at()
    }

    /// Bytes of memory held for the message, about.
    fn memory(&self) -> usize {
        self.0.held_bytes()
    }
}
