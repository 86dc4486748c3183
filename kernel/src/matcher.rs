//! Batches of messages over Arrow arrays.

use crate::door::{limit, limits_of, refusal_params};
use crate::enter::enter_long;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int64Array, LargeBinaryArray, ListArray,
    UInt32Array, make_array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use arrow_schema::{DataType, Field};
use pathcast_core::engine::counters::Stats;
use pathcast_core::engine::options::Options;
use pathcast_core::engine::routing::RoutingTable;
use pathcast_core::engine::verdicts::UsedUp;
use pathcast_core::registry::batch::{Answer, MessageBudget, Messages, Pool};
use pathcast_core::registry::catalogue::IdTable;
use pathcast_core::registry::index::Index;
use pathcast_core::registry::snapshot::Snapshot;
use pathcast_core::registry::target::{Target, View};
use pathcast_core::xml::parser::Refusal;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use std::ptr::NonNull;
use std::sync::Arc;

/// What a matcher matches against.
pub enum Source {
    /// A snapshot.
    Snapshot(Arc<Snapshot>),
    /// A changing index.
    Index(Arc<Index>),
    /// A routing table.
    Routes(Arc<RoutingTable>),
}

impl Target for Source {
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T {
        match self {
            Source::Snapshot(snapshot) => snapshot.with(f),
            Source::Index(index) => index.with(f),
            Source::Routes(table) => table.with(f),
        }
    }
}

/// Matches batches; keeps its caches between them.
#[pyclass(frozen)]
pub struct Matcher {
    source: Source,
    pool: Arc<Pool>,
}

/// Row, code and parameters of a refusal.
pub type PyRefusal<'py> = (usize, &'static str, Bound<'py, PyDict>);

/// The numbers of each message, refusals, and (row, number, whether for the message's steps) of what is
/// undecided.
type PyFew<'py> = (Vec<Vec<u32>>, Vec<PyRefusal<'py>>, Vec<(usize, u32, bool)>);

/// (matches, refusals, rows and numbers of what is undecided and whether for the message's steps, counters, ids)
/// of a batch.
type PyAnswer<'py> = (
    Bound<'py, PyAny>,
    Vec<PyRefusal<'py>>,
    [Bound<'py, PyAny>; 3],
    Bound<'py, PyDict>,
    crate::index::IdTable,
);

#[pymethods]
impl Matcher {
    /// Matches a binary or large_binary array.
    ///
    /// Returns a list<uint32> array, (row, code, params) of each refusal, an int64 array of rows, a
    /// uint32 array of query numbers and a boolean array for the pairs that are undecided (true: the
    /// message has used up its steps, false: the query has), counters by name, and the ids behind the numbers.
    #[pyo3(signature = (messages, encoding = None))]
    fn match_arrow<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        encoding: Option<String>,
    ) -> PyResult<PyAnswer<'py>> {
        let array = make_array(ArrayData::from_pyarrow_bound(messages)?);
        let batch = Column::new(&array, encoding)?;
        let (answer, ids) = self.run(py, &batch)?;
        let stats = counters_of(py, &answer.stats)?;
        let refusals = refusals_of(py, &answer.refusals)?;
        let undecided = &answer.undecided;
        let rows = Int64Array::from_iter_values(undecided.iter().map(|pair| pair.0 as i64));
        let numbers = UInt32Array::from_iter_values(undecided.iter().map(|pair| pair.1));
        let bounds = undecided.iter().map(|pair| Some(pair.2 == UsedUp::Message));
        let bounds: BooleanArray = bounds.collect();
        let undecided =
            [to_pyarrow(py, &rows)?, to_pyarrow(py, &numbers)?, to_pyarrow(py, &bounds)?];
        let matches = to_pyarrow(py, &list_array(answer, &array, &self.pool)?)?;
        Ok((matches, refusals, undecided, stats, crate::index::IdTable(ids)))
    }

    /// Matches bytes objects, of which there are so few that arrays would take longer than the messages.
    fn match_few<'py>(
        &self,
        py: Python<'py>,
        messages: Vec<PyBackedBytes>,
    ) -> PyResult<PyFew<'py>> {
        let (answer, _) = self.run(py, &Bodies(messages, None))?;
        let starts = std::iter::once(0).chain(answer.ends.iter().copied());
        let rows =
            starts.zip(&answer.ends).map(|(start, &end)| answer.numbers[start..end].to_vec());
        let rows = rows.collect();
        let undecided = answer.undecided.iter();
        let undecided = undecided.map(|&(row, number, by)| (row, number, by == UsedUp::Message));
        let few = (rows, refusals_of(py, &answer.refusals)?, undecided.collect());
        self.pool.give_buffer(answer.numbers);
        Ok(few)
    }
}

impl Matcher {
    /// Matches a batch.
    fn run(&self, py: Python<'_>, batch: &impl Messages) -> PyResult<(Answer, IdTable)> {
        enter_long(py, || match &self.source {
            Source::Snapshot(snapshot) => {
                let ids = IdTable::of_snapshot(Arc::clone(snapshot));
                Ok((self.pool.run(&self.source, batch)?, ids))
            }
            Source::Index(index) => {
                index.settle();
                let _numbers = index.pin_numbers();
                let answer = self.pool.run(&self.source, batch)?;
                Ok((answer, index.state().ids()))
            }
            // Targets have no ids.
            Source::Routes(_) => Ok((self.pool.run(&self.source, batch)?, IdTable::default())),
        })
    }

    /// A matcher; `limits` has the attributes of `pathcast.limits.Limits`.
    pub fn new(
        source: Source,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Self> {
        let options = options_of(limits, cache_bytes_max)?;
        Ok(Matcher { source, pool: Arc::new(Pool::new(options, threads)) })
    }
}

/// Options; `limits` has the attributes of `pathcast.limits.Limits`.
pub fn options_of(limits: &Bound<'_, PyAny>, cache_bytes_max: usize) -> PyResult<Options> {
    let steps_max = limit(limits, "evaluation_steps_max")?.into();
    let message_steps_max = limit(limits, "message_steps_max")?.into();
    let limits = limits_of(limits)?;
    Ok(Options { limits, cache_bytes_max, steps_max, message_steps_max })
}

/// The messages of an Arrow array, where they lie.
enum Values<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
}

/// The messages of an Arrow array, and their encoding where the caller knows it.
pub struct Column<'a> {
    values: Values<'a>,
    encoding: Option<String>,
    budgets: Option<Budgets>,
}

/// For each message of a batch, steps and bytes of results that it may take.
pub type Budgets = Vec<(u64, usize)>;

/// The budget of a message.
fn budget(budgets: &Option<Budgets>, at: usize) -> Option<MessageBudget> {
    let &(steps, result_bytes) = budgets.as_ref()?.get(at)?;
    Some(MessageBudget { steps, result_bytes })
}

impl<'a> Column<'a> {
    /// The messages of a binary or large_binary array.
    pub fn new(array: &'a ArrayRef, encoding: Option<String>) -> PyResult<Self> {
        let any = array.as_any();
        let values = if let Some(small) = any.downcast_ref() {
            Values::Small(small)
        } else if let Some(large) = any.downcast_ref() {
            Values::Large(large)
        } else {
            let found = array.data_type();
            return Err(PyTypeError::new_err(format!(
                "messages must be a binary or large_binary array, not {found}"
            )));
        };
        Ok(Column { values, encoding, budgets: None })
    }

    /// The same messages with a budget each.
    pub fn with_budgets(self, budgets: Option<Budgets>) -> Self {
        Column { budgets, ..self }
    }
}

impl Messages for Column<'_> {
    fn len(&self) -> usize {
        match self.values {
            Values::Small(array) => array.len(),
            Values::Large(array) => array.len(),
        }
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        match self.values {
            Values::Small(array) => array.is_valid(at).then(|| array.value(at)),
            Values::Large(array) => array.is_valid(at).then(|| array.value(at)),
        }
    }

    fn bytes(&self) -> usize {
        let (first, last) = match self.values {
            Values::Small(a) => (a.value_offsets()[0] as i64, a.value_offsets()[a.len()] as i64),
            Values::Large(a) => (a.value_offsets()[0], a.value_offsets()[a.len()]),
        };
        (last - first) as usize
    }

    fn encoding(&self) -> Option<&str> {
        self.encoding.as_deref()
    }

    fn budget(&self, at: usize) -> Option<MessageBudget> {
        budget(&self.budgets, at)
    }
}

/// Messages that are bytes objects, where they lie, and their budgets.
pub struct Bodies(pub Vec<PyBackedBytes>, pub Option<Budgets>);

impl Messages for Bodies {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        Some(&self.0[at])
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|body| body.len()).sum()
    }

    fn budget(&self, at: usize) -> Option<MessageBudget> {
        budget(&self.1, at)
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

fn list_array(answer: Answer, messages: &ArrayRef, pool: &Arc<Pool>) -> PyResult<ListArray> {
    let total = answer.numbers.len();
    if i32::try_from(total).is_err() {
        return Err(PyOverflowError::new_err(format!(
            "{total} matches do not fit one list array (2147483647); match fewer messages in a batch"
        )));
    }
    let ends = answer.ends.iter().map(|&end| end as i32);
    let offsets: ScalarBuffer<i32> = std::iter::once(0).chain(ends).collect();
    let field = Arc::new(Field::new("item", DataType::UInt32, true));
    let numbers = Recycled::buffer(answer.numbers, Arc::clone(pool));
    let numbers = Arc::new(UInt32Array::new(ScalarBuffer::new(numbers, 0, total), None));
    let nulls = messages.nulls().cloned();
    Ok(ListArray::new(field, OffsetBuffer::new(offsets), numbers, nulls))
}

/// Numbers on loan to Arrow; they go back to the pool when the last array over them is dropped.
struct Recycled {
    numbers: Vec<u32>,
    pool: Arc<Pool>,
}

impl Recycled {
    fn buffer(numbers: Vec<u32>, pool: Arc<Pool>) -> Buffer {
        let bytes = numbers.len() * size_of::<u32>();
        let start = NonNull::from(numbers.as_slice()).cast::<u8>();
        let owner = Arc::new(Recycled { numbers, pool });
        // SAFETY: the bytes are those of `numbers`, whose heap memory stays where it is while
        // `owner` lives: nobody can reach the vector to change it before it is dropped.
        unsafe { Buffer::from_custom_allocation(start, bytes, owner) }
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        self.pool.give_buffer(std::mem::take(&mut self.numbers));
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
