//! Batches of messages over Arrow arrays.

use crate::dissemination::{changing, verdicts_of};
use crate::door::{limit, limits_of, refusal_params};
use crate::enter::enter_long;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Int64Array, LargeBinaryArray,
    ListArray, UInt32Array, make_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use arrow_schema::{DataType, Field};
use pathcast_core::engine::counters::Stats;
use pathcast_core::engine::interrupt::Interrupted;
use pathcast_core::engine::options::Options as EngineOptions;
use pathcast_core::engine::routing::RoutingTable;
use pathcast_core::engine::verdicts::UsedUp;
use pathcast_core::engine::work::QueryWork;
use pathcast_core::registry::batch::{self as core, Arrival, Buffers, Messages};
use pathcast_core::registry::catalogue::EntryTable;
use pathcast_core::registry::delivery::batch::Pool;
use pathcast_core::registry::delivery::dissemination::Dissemination;
use pathcast_core::registry::delivery::serving::Options;
use pathcast_core::registry::delivery::worker::Target;
use pathcast_core::registry::snapshot::Snapshot;
use pathcast_core::xml::parser::Refusal;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::SystemTime;

/// What a matcher matches against.
pub enum Source {
    /// A snapshot.
    Snapshot(Arc<Snapshot>),
    /// Queries and subscriptions that come and go.
    Registry(Arc<Dissemination>),
    /// A routing table.
    Routes(Arc<RoutingTable>),
}

/// Matches batches; keeps its caches between them.
#[pyclass(frozen)]
pub struct Matcher {
    source: Source,
    pool: Pool,
    options: Options,
}

/// Row, code and parameters of a refusal.
pub type PyRefusal<'py> = (usize, &'static str, Bound<'py, PyDict>);

#[pymethods]
impl Matcher {
    /// Matches a binary, large_binary or binary_view array, or a list of bytes objects and None, where they lie.
    #[pyo3(name = "match", signature = (messages, encoding = None))]
    fn match_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        encoding: Option<String>,
    ) -> PyResult<Answer> {
        let matching = Matching { pool: &self.pool, options: &self.options };
        let arrivals = Arrivals::new(encoding, Vec::new(), Vec::new());
        matching.batch(py, messages, arrivals, |run| match &self.source {
            Source::Snapshot(snapshot) => {
                let entries = EntryTable::of_snapshot(Arc::clone(snapshot));
                Ok((run((&**snapshot).into())?, entries))
            }
            Source::Registry(registry) => changing(registry, run),
            // Targets have no entries.
            Source::Routes(table) => Ok((run((&**table).into())?, EntryTable::default())),
        })
    }
}

impl Matcher {
    /// A matcher; `limits` has the attributes of `pathcast.limits.Limits`.
    pub fn new(
        source: Source,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Self> {
        let options = Options::from(options_of(limits, cache_bytes_max)?);
        let pool = Pool::new(options.clone(), threads);
        Ok(Matcher { source, pool, options })
    }
}

/// What batches are matched with.
pub struct Matching<'m> {
    /// The workers.
    pub pool: &'m Pool,
    /// What messages may cost.
    pub options: &'m Options,
}

impl Matching<'_> {
    /// Matches a binary, large_binary or binary_view array, or a list of bytes objects and None, where they lie;
    /// `target` says against what, and gives the entries as well.
    pub fn batch(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        arrivals: Arrivals,
        target: impl FnOnce(
            &dyn Fn(Target<'_>) -> Result<core::Answer, Interrupted>,
        ) -> Result<(core::Answer, EntryTable), Interrupted>
        + Send,
    ) -> PyResult<Answer> {
        let (nulls, (found, entries)) = with_messages(messages, arrivals, |batch| {
            enter_long(py, || target(&|of| self.pool.match_batch(of, batch)))
        })?;
        let verdicts = verdicts_of(py, &found.verdicts, self.options)?;
        let core::Answer { numbers, ends, refusals, undecided, work, stats, .. } = found;
        let numbers = Arc::new(Loan { numbers, buffers: Arc::clone(self.pool.buffers()) });
        Ok(Answer { numbers, ends, nulls, refusals, undecided, verdicts, work, stats, entries })
    }
}

/// What the engine may spend; `limits` has the attributes of `pathcast.limits.Limits`.
pub fn options_of(limits: &Bound<'_, PyAny>, cache_bytes_max: usize) -> PyResult<EngineOptions> {
    let steps_max = limit(limits, "evaluation_steps_max")?.into();
    let message_steps_max = limit(limits, "message_steps_max")?.into();
    let limits = limits_of(limits)?;
    Ok(EngineOptions { limits, cache_bytes_max, steps_max, message_steps_max })
}

/// Calls `run` with the messages of a binary, large_binary or binary_view array, or of a list of bytes objects and None,
/// where they lie, and gives as well which are missing, if any.
pub fn with_messages<T>(
    messages: &Bound<'_, PyAny>,
    arrivals: Arrivals,
    run: impl FnOnce(&dyn Messages) -> PyResult<T>,
) -> PyResult<(Option<NullBuffer>, T)> {
    if messages.is_instance_of::<PyList>() {
        let bodies: Vec<Option<PyBackedBytes>> = messages.extract()?;
        let nulls = bodies.iter().any(Option::is_none);
        let nulls = nulls.then(|| bodies.iter().map(Option::is_some).collect());
        return Ok((nulls, run(&Bodies { bodies, arrivals })?));
    }
    let array = make_array(ArrayData::from_pyarrow_bound(messages)?);
    Ok((array.nulls().cloned(), run(&Column::new(&array, arrivals)?)?))
}

/// The messages of an Arrow array, where they lie.
enum Values<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
}

/// How the messages of a batch came.
pub struct Arrivals {
    encoding: Option<String>,
    /// How many steps were done to each before; none to any if it is empty.
    done: Vec<usize>,
    /// The time of each, or one of all.
    times: Vec<i64>,
}

impl Arrivals {
    /// Messages of an encoding, if that is known; the steps that were done to each, and the time of each, if there are
    /// any: one that has none has come just now.
    pub fn new(encoding: Option<String>, done: Vec<usize>, mut times: Vec<i64>) -> Self {
        if times.is_empty() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            times.push(now.map_or(0, |now| now.as_micros() as i64));
        }
        Arrivals { encoding, done, times }
    }

    fn of(&self, at: usize) -> Arrival<'_> {
        Arrival {
            encoding: self.encoding.as_deref(),
            done: self.done.get(at).copied().unwrap_or(0),
            time: self.times.get(at).or(self.times.first()).copied().unwrap_or(0),
        }
    }
}

/// The messages of an Arrow array, and how they came.
pub struct Column<'a> {
    values: Values<'a>,
    arrivals: Arrivals,
}

impl<'a> Column<'a> {
    /// The messages of a binary, large_binary or binary_view array.
    pub fn new(array: &'a ArrayRef, arrivals: Arrivals) -> PyResult<Self> {
        let any = array.as_any();
        let values = if let Some(small) = any.downcast_ref() {
            Values::Small(small)
        } else if let Some(large) = any.downcast_ref() {
            Values::Large(large)
        } else if let Some(view) = any.downcast_ref() {
            Values::View(view)
        } else {
            let found = array.data_type();
            return Err(PyTypeError::new_err(format!(
                "messages must be a binary, large_binary or binary_view array, not {found}"
            )));
        };
        Ok(Column { values, arrivals })
    }
}

impl Messages for Column<'_> {
    fn len(&self) -> usize {
        match self.values {
            Values::Small(array) => array.len(),
            Values::Large(array) => array.len(),
            Values::View(array) => array.len(),
        }
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        match self.values {
            Values::Small(array) => array.is_valid(at).then(|| array.value(at)),
            Values::Large(array) => array.is_valid(at).then(|| array.value(at)),
            Values::View(array) => array.is_valid(at).then(|| array.value(at)),
        }
    }

    fn bytes(&self) -> usize {
        let (first, last) = match self.values {
            Values::Small(a) => (a.value_offsets()[0] as i64, a.value_offsets()[a.len()] as i64),
            Values::Large(a) => (a.value_offsets()[0], a.value_offsets()[a.len()]),
            Values::View(a) => (0, a.iter().flatten().map(|message| message.len() as i64).sum()),
        };
        (last - first) as usize
    }

    fn arrival(&self, at: usize) -> Arrival<'_> {
        self.arrivals.of(at)
    }
}

/// Messages that are bytes objects, where they lie; none in a gap.
struct Bodies {
    bodies: Vec<Option<PyBackedBytes>>,
    arrivals: Arrivals,
}

impl Messages for Bodies {
    fn len(&self) -> usize {
        self.bodies.len()
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        self.bodies[at].as_deref()
    }

    fn bytes(&self) -> usize {
        self.bodies.iter().flatten().map(|body| body.len()).sum()
    }

    fn arrival(&self, at: usize) -> Arrival<'_> {
        self.arrivals.of(at)
    }
}

/// Refusals as Python has them.
pub fn refusals_of<'py>(
    py: Python<'py>,
    refusals: &[(usize, Refusal)],
) -> PyResult<Vec<PyRefusal<'py>>> {
    let refusals = refusals.iter();
    refusals
        .map(|(row, refusal)| Ok((*row, refusal.code.as_str(), refusal_params(py, refusal)?)))
        .collect()
}

/// What came of a batch. Nothing of it becomes a Python object before it is asked for.
#[pyclass(frozen)]
pub struct Answer {
    numbers: Arc<Loan>,
    ends: Vec<usize>,
    nulls: Option<NullBuffer>,
    refusals: Vec<(usize, Refusal)>,
    undecided: Vec<(usize, u32, UsedUp)>,
    verdicts: Vec<Undelivered>,
    work: Vec<QueryWork>,
    stats: Stats,
    entries: EntryTable,
}

/// Row, number of the subscription, code and parameters of a verdict.
pub type Undelivered = (usize, u32, &'static str, Py<PyDict>);

#[pymethods]
impl Answer {
    fn __len__(&self) -> usize {
        self.ends.len()
    }

    /// How many queries a message satisfies.
    fn count(&self, row: usize) -> PyResult<usize> {
        Ok(self.row(row)?.len())
    }

    /// The numbers of the queries that a message satisfies, ascending.
    fn numbers(&self, row: usize) -> PyResult<Vec<u32>> {
        Ok(self.row(row)?.to_vec())
    }

    /// The numbers of all messages as a list<uint32> array, null where a message is missing.
    fn matches<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let total = self.numbers.numbers.len();
        if i32::try_from(total).is_err() {
            return Err(PyOverflowError::new_err(format!(
                "{total} matches do not fit one list array (2147483647); match fewer messages in a batch"
            )));
        }
        let ends = self.ends.iter().map(|&end| end as i32);
        let offsets: ScalarBuffer<i32> = std::iter::once(0).chain(ends).collect();
        let field = Arc::new(Field::new("item", DataType::UInt32, true));
        let numbers = ScalarBuffer::new(Loan::buffer(&self.numbers), 0, total);
        let numbers = Arc::new(UInt32Array::new(numbers, None));
        let nulls = self.nulls.clone();
        to_pyarrow(py, &ListArray::new(field, OffsetBuffer::new(offsets), numbers, nulls))
    }

    /// Row, code and parameters of each refusal.
    fn refusals<'py>(&self, py: Python<'py>) -> PyResult<Vec<PyRefusal<'py>>> {
        refusals_of(py, &self.refusals)
    }

    /// How many pairs of message and query are undecided.
    #[getter]
    fn undecided_count(&self) -> usize {
        self.undecided.len()
    }

    /// The undecided pairs as an int64 array of rows, a uint32 array of query numbers and a boolean array (true: the
    /// message has used up its steps, false: the query has).
    fn undecided<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let pairs = &self.undecided;
        let rows = Int64Array::from_iter_values(pairs.iter().map(|pair| pair.0 as i64));
        let numbers = UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.1));
        let bounds = pairs.iter().map(|pair| Some(pair.2 == UsedUp::Message));
        let bounds: BooleanArray = bounds.collect();
        Ok([to_pyarrow(py, &rows)?, to_pyarrow(py, &numbers)?, to_pyarrow(py, &bounds)?])
    }

    /// Row, number of the subscription, code and parameters of what is undecided for another reason: its steps cannot
    /// be done, or what it makes is no XML.
    fn verdicts<'py>(
        &self,
        py: Python<'py>,
    ) -> Vec<(usize, u32, &'static str, Bound<'py, PyDict>)> {
        let verdicts = self.verdicts.iter();
        verdicts
            .map(|(row, number, code, params)| (*row, *number, *code, params.bind(py).clone()))
            .collect()
    }

    /// Numbers and steps of the queries that took the most, the dearest first.
    fn work(&self) -> Vec<QueryWork> {
        self.work.clone()
    }

    /// Counters by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters_of(py, &self.stats)
    }

    /// The subscriptions behind the numbers.
    fn entries(&self) -> crate::snapshot::EntryTable {
        crate::snapshot::EntryTable(self.entries.clone())
    }
}

impl Answer {
    fn row(&self, row: usize) -> PyResult<&[u32]> {
        let &end = self
            .ends
            .get(row)
            .ok_or_else(|| PyIndexError::new_err(format!("no message {row} in this answer")))?;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Ok(&self.numbers.numbers[start..end])
    }
}

/// Numbers on loan; they go back to the buffers when nobody reads them any more.
struct Loan {
    numbers: Vec<u32>,
    buffers: Arc<Buffers>,
}

impl Loan {
    /// The numbers as an Arrow buffer, where they lie.
    fn buffer(loan: &Arc<Loan>) -> Buffer {
        let bytes = loan.numbers.len() * size_of::<u32>();
        let start = NonNull::from(loan.numbers.as_slice()).cast::<u8>();
        // SAFETY: the bytes are those of `numbers`, whose heap memory stays where it is while the
        // loan lives: nobody can reach the vector to change it before it is dropped.
        unsafe { Buffer::from_custom_allocation(start, bytes, Arc::clone(loan) as Arc<_>) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(&mut self.numbers));
    }
}

/// An array as a pyarrow array, without a copy.
pub fn to_pyarrow<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    array.to_data().to_pyarrow(py)
}

/// Counters by name.
pub fn counters_of<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let counters = PyDict::new(py);
    for (name, value) in [
        ("messages", stats.messages),
        ("bytes", stats.bytes),
        ("refused", stats.refused),
        ("matches", stats.matches),
        ("nodes", stats.nodes),
        ("cache_hits", stats.cache_hits),
        ("cache_misses", stats.cache_misses),
        ("cache_resets", stats.cache_resets),
        ("nfa_messages", stats.nfa_messages),
        ("evaluations", stats.evaluations),
        ("steps", stats.steps),
        ("work", stats.work),
        ("verdicts", stats.verdicts),
        ("deliveries", stats.deliveries),
        ("result_bytes", stats.result_bytes),
        ("parsing_ns", stats.parsing_ns),
        ("matching_ns", stats.matching_ns),
        ("collecting_ns", stats.collecting_ns),
        ("customising_ns", stats.customising_ns),
    ] {
        counters.set_item(name, value)?;
    }
    Ok(counters)
}
