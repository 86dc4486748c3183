//! Files of records: surveys of ranges, places, and cutters, block by block.

use crate::door::{limits_of, refusal_params};
use crate::enter::{enter, enter_whole};
use crate::matcher::to_pyarrow;
use arrow_array::{BinaryArray, Int64Array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use pathcast_core::files::records as core;
use pathcast_core::files::records::{
    Cut, Cutter, Effect, Fault, NameTest, Outcome, Place, Rows, State, Survey,
};
use pathcast_core::xml::parser::{Param, read_head as core_read_head};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// State, elements open, whether the root element has ended, offsets of start tags.
type PyPlace = (u8, u64, bool, Vec<u64>);

/// From one state: the state after, elements closed, beside each other, left open, offsets of their
/// tags; nothing where the file breaks off.
type PyOutcome = Option<(u8, u64, u8, u64, Vec<u64>)>;

/// The prolog of a file: what is carried, where the root element begins, whether there is a document
/// type declaration; nothing when more of the file is needed, or code and parameters of a refusal.
#[pyfunction]
pub fn read_head<'py>(
    py: Python<'py>,
    start: &[u8],
    is_whole: bool,
    limits: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let limits = limits_of(limits)?;
    match enter(py, || core_read_head(start, is_whole, &limits))? {
        Ok(None) => Ok(None),
        Ok(Some(head)) => {
            let carried = pyo3::types::PyBytes::new(py, &head.carried);
            Ok(Some((carried, head.root, head.has_doctype).into_bound_py_any(py)?))
        }
        Err(refusal) => {
            let params = refusal_params(py, &refusal)?;
            Ok(Some((refusal.code.as_str(), params).into_bound_py_any(py)?))
        }
    }
}

/// The length of the start tag that a text begins with; nothing when it does not hold all of it.
#[pyfunction]
pub fn tag_end(text: &[u8]) -> Option<usize> {
    core::tag_end(text)
}

/// The place after a range that begins at a place; nothing where the file breaks off in it.
#[pyfunction]
pub fn place_after(
    place: PyPlace,
    outcomes: Vec<PyOutcome>,
    ancestors: usize,
) -> PyResult<Option<PyPlace>> {
    let place = to_place(place)?;
    let Some(Some(outcome)) = outcomes.into_iter().nth(place.state as usize) else {
        return Ok(None);
    };
    let (state, closed, beside, open, tags) = outcome;
    let effect = Effect { closed, beside, open, tags, fault: None };
    let outcome = Outcome { state: to_state(state)?, effect };
    Ok(place.after(&outcome, ancestors).map(|place| from_place(&place)))
}

fn from_place(place: &Place) -> PyPlace {
    (place.state as u8, place.depth, place.is_closed, place.tags.clone())
}

fn to_state(number: u8) -> PyResult<State> {
    State::of(number).ok_or_else(|| PyValueError::new_err(format!("{number} is no state")))
}

fn to_place((state, depth, is_closed, tags): PyPlace) -> PyResult<Place> {
    Ok(Place { state: to_state(state)?, depth, is_closed, tags })
}

/// Reads a range from every state that it may begin in.
#[pyclass]
pub struct RecordSurvey(Survey);

#[pymethods]
impl RecordSurvey {
    #[new]
    fn new(ancestors: usize, start: u64) -> Self {
        RecordSurvey(Survey::new(ancestors, start))
    }

    /// Reads the next block.
    fn feed(&mut self, py: Python<'_>, block: &[u8]) {
        enter_whole(py, || self.0.feed(block));
    }

    /// What came of it, by number of the state.
    fn outcomes(&self) -> Vec<PyOutcome> {
        let row = |outcome: Outcome| {
            let Outcome { state, effect } = outcome;
            let Effect { closed, beside, open, tags, fault } = effect;
            fault.is_none().then_some((state as u8, closed, beside, open, tags))
        };
        self.0.outcomes().into_iter().map(row).collect()
    }
}

/// Cuts the records of a range.
///
/// On the heap: a searcher in it asks for an alignment that memory of Python's objects does not have.
#[pyclass]
pub struct RecordCutter(Box<Cutter>);

#[pymethods]
impl RecordCutter {
    /// `path` has a test (namespace, local name; None for any) a level, `head` what is carried and
    /// whether there is a document type declaration.
    #[new]
    #[pyo3(signature = (path, limits, context_bytes_max, head, place, tags, start, until))]
    #[allow(clippy::too_many_arguments)] // They are the columns of one value.
    fn new(
        path: Vec<(Option<String>, Option<String>)>,
        limits: &Bound<'_, PyAny>,
        context_bytes_max: usize,
        head: (Vec<u8>, bool),
        place: PyPlace,
        tags: Vec<Vec<u8>>,
        start: u64,
        until: u64,
    ) -> PyResult<Self> {
        let path: Vec<NameTest> =
            path.into_iter().map(|(uri, local)| NameTest { uri, local }).collect();
        if path.is_empty() || tags.iter().any(|tag| !tag.starts_with(b"<")) {
            return Err(PyValueError::new_err("no path, or a tag that is none"));
        }
        let cut = Cut {
            path,
            limits: limits_of(limits)?,
            context_bytes_max,
            head: head.0,
            has_doctype: head.1,
        };
        let cutter = Cutter::new(&cut, &to_place(place)?, &tags, start, until);
        Ok(RecordCutter(Box::new(cutter)))
    }

    /// Reads a block from this byte on; gives the byte it has come to, which is the last only when
    /// no rows are to be taken before.
    fn feed(&mut self, py: Python<'_>, block: &[u8], at: usize) -> usize {
        let rest = &block[at.min(block.len())..];
        at + enter_whole(py, || self.0.feed(rest))
    }

    /// The file ends here.
    fn finish(&mut self, py: Python<'_>) {
        enter_whole(py, || self.0.finish());
    }

    /// Whether nothing more is wanted of the file.
    #[getter]
    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Whether rows are to be taken before it reads on.
    #[getter]
    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// The offset up to which the file has been read.
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset()
    }

    /// The place at the end of the range; nothing where it has not been read to its end, or the file breaks
    /// off in it.
    #[getter]
    fn after(&self) -> Option<PyPlace> {
        self.0.after().map(from_place)
    }

    /// The rows so far: offsets, sizes and messages as Arrow arrays, and row, code and parameters of
    /// each that has no message.
    #[allow(clippy::type_complexity)] // The columns of a batch, once.
    fn take<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<([Bound<'py, PyAny>; 3], Vec<(usize, &'static str, Bound<'py, PyDict>)>)> {
        let Rows { offsets, sizes, values, ends, faults } = self.0.take();
        let numbers =
            |column: Vec<u64>| Int64Array::from_iter_values(column.into_iter().map(|n| n as i64));
        let mut is_there = vec![true; ends.len()];
        faults.iter().for_each(|(row, _)| is_there[*row] = false);
        let bounds: ScalarBuffer<i32> =
            std::iter::once(0).chain(ends.iter().map(|&end| end as i32)).collect();
        let messages = BinaryArray::new(
            OffsetBuffer::new(bounds),
            Buffer::from_vec(values),
            Some(NullBuffer::from(is_there)),
        );
        let columns = [
            to_pyarrow(py, &numbers(offsets))?,
            to_pyarrow(py, &numbers(sizes))?,
            to_pyarrow(py, &messages)?,
        ];
        let faults = faults
            .into_iter()
            .map(|(row, fault)| Ok((row, fault.code, fault_params(py, &fault)?)))
            .collect::<PyResult<_>>()?;
        Ok((columns, faults))
    }
}

fn fault_params<'py>(py: Python<'py>, fault: &Fault) -> PyResult<Bound<'py, PyDict>> {
    let params = PyDict::new(py);
    params.set_item("offset", fault.at)?;
    for (name, value) in &fault.params {
        match value {
            Param::Text(text) => params.set_item(name, text)?,
            Param::Int(number) => params.set_item(name, number)?,
        }
    }
    Ok(params)
}
