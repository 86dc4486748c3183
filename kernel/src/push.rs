//! The push parser: blocks of a message in, what it consists of or its refusal out.

use crate::door::{limits_of, refusal_params};
use crate::enter::enter_whole;
use pathcast_core::xml::parser::Refusal;
use pathcast_core::xml::parser::push::{Bounds, Counts, PushParser as Parser};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Nothing, or the code and the parameters of a refusal.
pub type Answer<'py> = Option<(&'static str, Bound<'py, PyDict>)>;

/// Reads a message that arrives in blocks. Its answers are nothing, or the code and the parameters of a
/// refusal.
#[pyclass]
pub struct PushParser {
    parser: Parser,
    counts: Counts,
}

#[pymethods]
impl PushParser {
    #[new]
    #[pyo3(signature = (limits, message_bytes_max, elements_max, held_bytes_max, encoding=None))]
    fn new(
        limits: &Bound<'_, PyAny>,
        message_bytes_max: u64,
        elements_max: u64,
        held_bytes_max: u32,
        encoding: Option<&str>,
    ) -> PyResult<Self> {
        let bounds = Bounds { message_bytes_max, elements_max, held_bytes_max };
        let mut parser = Parser::new(limits_of(limits)?, bounds);
        parser.begin(encoding);
        Ok(PushParser { parser, counts: Counts::default() })
    }

    fn feed<'py>(&mut self, py: Python<'py>, block: &[u8]) -> PyResult<Answer<'py>> {
        let outcome = enter_whole(py, || self.parser.feed(block, &mut self.counts));
        answer(py, outcome)
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Answer<'py>> {
        let outcome = enter_whole(py, || self.parser.finish(&mut self.counts));
        answer(py, outcome)
    }

    /// What has been read so far, by the names of `pathcast.kernel.StreamSummary`.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = PyDict::new(py);
        let counts = &self.counts;
        summary.set_item("bytes", self.parser.bytes())?;
        summary.set_item("elements", counts.elements)?;
        summary.set_item("depth", counts.depth)?;
        summary.set_item("attributes", counts.attributes)?;
        summary.set_item("texts", counts.texts)?;
        summary.set_item("text_bytes", counts.text_bytes)?;
        summary.set_item("comments", counts.comments)?;
        summary.set_item("instructions", counts.instructions)?;
        Ok(summary)
    }

    /// Bytes of memory held for the message, about.
    fn memory(&self) -> usize {
        self.parser.held_bytes()
    }
}

/// The outcome of a call as Python has it.
pub fn answer(py: Python<'_>, outcome: Result<(), Refusal>) -> PyResult<Answer<'_>> {
    let Err(refusal) = outcome else { return Ok(None) };
    Ok(Some((refusal.code.as_str(), refusal_params(py, &refusal)?)))
}
