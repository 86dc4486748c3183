//! What came of a batch of messages for the subscriptions.

use crate::matcher::{PyRefusal, Undelivered, counters_of, refusals_of, to_pyarrow};
use crate::snapshot::EntryTable as PyEntries;
use arrow_array::{Array, LargeBinaryArray, UInt8Array, UInt32Array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use pathcast_core::engine::counters::Stats;
use pathcast_core::engine::work::QueryWork;
use pathcast_core::registry::catalogue::EntryTable;
use pathcast_core::registry::delivery::batch::Answer;
use pathcast_core::registry::delivery::serving::NO_FRAGMENT;
use pathcast_core::xml::parser::Refusal;
use pathcast_core::xml::places::{NodeKind, Place};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// Message, id of the subscription, number of the result and fragment of a delivery.
type PyDelivery<'py> = (u32, Bound<'py, PyString>, u32, Option<Bound<'py, PyBytes>>);

/// Subscriber and version of the subscription of a delivery; kind, number, start and end of its node.
type PyRecipient<'py> = (Bound<'py, PyString>, Bound<'py, PyBytes>, Option<PyPlace>);
type PyPlace = (&'static str, u32, Option<u32>, Option<u32>);

/// The deliveries of a batch. Nothing of it becomes a Python object or an array before it is asked for.
#[pyclass(frozen)]
pub struct DeliveryAnswer {
    messages: ScalarBuffer<u32>,
    subscriptions: ScalarBuffer<u32>,
    results: ScalarBuffer<u32>,
    fragments: ScalarBuffer<u32>,
    bytes: Buffer,
    ends: Vec<i64>,
    places: Vec<(u32, Place)>,
    refusals: Vec<(usize, Refusal)>,
    verdicts: Vec<Undelivered>,
    work: Vec<QueryWork>,
    stats: Stats,
    entries: EntryTable,
}

#[pymethods]
impl DeliveryAnswer {
    /// Number of deliveries.
    fn __len__(&self) -> usize {
        self.messages.len()
    }

    /// Where the deliveries of a message begin and end.
    fn places(&self, message: usize) -> (usize, usize) {
        let before = |end: usize| self.messages.partition_point(|&at| (at as usize) < end);
        (before(message), before(message + 1))
    }

    /// Message, id of the subscription, number of the result and fragment of each delivery from a place on to another.
    fn deliveries<'py>(&self, py: Python<'py>, start: usize, end: usize) -> Vec<PyDelivery<'py>> {
        let end = end.min(self.messages.len());
        let start = start.min(end);
        let mut deliveries = Vec::with_capacity(end - start);
        let mut at = start;
        self.entries.for_each(self.subscriptions[start..end].iter().copied(), |id| {
            let fragment = self.fragment(py, self.fragments[at]);
            deliveries.push((self.messages[at], PyString::new(py, id), self.results[at], fragment));
            at += 1;
        });
        deliveries
    }

    /// Whom the delivery at a place goes to, and which node it is.
    fn recipient<'py>(&self, py: Python<'py>, place: usize) -> PyResult<PyRecipient<'py>> {
        let mut found = None;
        self.entries.for_each_version(
            self.subscriptions.get(place).copied().into_iter(),
            |entry, version| {
                found = Some((PyString::new(py, entry.subscriber), PyBytes::new(py, version)));
            },
        );
        let none = || PyIndexError::new_err(format!("there is no delivery {place}"));
        let (subscriber, version) = found.ok_or_else(none)?;
        let node = self.places.binary_search_by_key(&(place as u32), |&(delivery, _)| delivery);
        let node = node.ok().map(|at| {
            let Place { kind, number, span } = &self.places[at].1;
            let span = span.as_ref();
            (kind.name(), *number, span.map(|span| span.start), span.map(|span| span.end))
        });
        Ok((subscriber, version, node))
    }

    /// The numbers of the subscriptions that got something, ascending, and of each delivery the place of its subscription
    /// among them, as uint32 arrays.
    fn subscribed<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let numbers_end = self.subscriptions.iter().max().map_or(0, |&number| number as usize + 1);
        let (distinct, places): (Vec<u32>, Vec<u32>);
        if self.subscriptions.len() < numbers_end / 64 {
            let mut sorted = self.subscriptions.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let place = |number| sorted.partition_point(|at| at < number) as u32;
            places = self.subscriptions.iter().map(place).collect();
            distinct = sorted;
        } else {
            let mut occurs = vec![false; numbers_end];
            self.subscriptions.iter().for_each(|&number| occurs[number as usize] = true);
            distinct = (0..numbers_end as u32).filter(|&number| occurs[number as usize]).collect();
            let mut place_of = vec![0; numbers_end];
            for (place, &number) in distinct.iter().enumerate() {
                place_of[number as usize] = place as u32;
            }
            places = self.subscriptions.iter().map(|&number| place_of[number as usize]).collect();
        }
        let column = |numbers: Vec<u32>| to_pyarrow(py, &UInt32Array::new(numbers.into(), None));
        Ok([column(distinct)?, column(places)?])
    }

    /// Messages, subscriptions, results and fragments of all deliveries, as uint32 arrays; null for no fragment.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyAny>; 4]> {
        let column = |numbers: &ScalarBuffer<u32>, nulls| {
            to_pyarrow(py, &UInt32Array::new(numbers.clone(), nulls))
        };
        let has_fragment = self.fragments.iter().map(|&fragment| fragment != NO_FRAGMENT);
        let nulls = NullBuffer::from_iter(has_fragment);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        Ok([
            column(&self.messages, None)?,
            column(&self.subscriptions, None)?,
            column(&self.results, None)?,
            column(&self.fragments, nulls)?,
        ])
    }

    /// The fragments as a large_binary array.
    fn fragments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ends = std::iter::once(0).chain(self.ends.iter().copied());
        let offsets = OffsetBuffer::new(ends.collect::<ScalarBuffer<i64>>());
        let fragments = LargeBinaryArray::new(offsets, self.bytes.clone(), None);
        to_pyarrow(py, &fragments as &dyn Array)
    }

    /// Of each delivery of a node, ascending: which delivery it is, the kind (by its place in `kinds`), the number of the
    /// node within its kind, and start and end, null where it lies nowhere; the kind as a uint8 array, the others uint32.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyAny>; 5]> {
        let places = || self.places.iter().map(|(_, place)| place);
        let row = UInt32Array::from_iter_values(self.places.iter().map(|&(row, _)| row));
        let kind = UInt8Array::from_iter_values(places().map(|place| place.kind as u8));
        let number = UInt32Array::from_iter_values(places().map(|place| place.number));
        let span = || places().map(|place| place.span.as_ref());
        let start = UInt32Array::from_iter(span().map(|span| span.map(|span| span.start)));
        let end = UInt32Array::from_iter(span().map(|span| span.map(|span| span.end)));
        let columns: [&dyn Array; 5] = [&row, &kind, &number, &start, &end];
        let [row, kind, number, start, end] = columns.map(|column| to_pyarrow(py, column));
        Ok([row?, kind?, number?, start?, end?])
    }

    /// The kinds of nodes, by number.
    #[staticmethod]
    fn kinds() -> [&'static str; NodeKind::ALL.len()] {
        NodeKind::ALL.map(NodeKind::name)
    }

    /// Row, code and parameters of each refusal.
    fn refusals<'py>(&self, py: Python<'py>) -> PyResult<Vec<PyRefusal<'py>>> {
        refusals_of(py, &self.refusals)
    }

    /// Row, number of the subscription, code and parameters of each pair that has no delivery and might have had one.
    fn verdicts<'py>(
        &self,
        py: Python<'py>,
    ) -> Vec<(usize, u32, &'static str, Bound<'py, PyDict>)> {
        let verdicts = self.verdicts.iter();
        verdicts
            .map(|(row, number, code, params)| (*row, *number, *code, params.bind(py).clone()))
            .collect()
    }

    /// Numbers and steps of the subscriptions that took the most, the dearest first.
    fn work(&self) -> Vec<QueryWork> {
        self.work.clone()
    }

    /// Counters by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters_of(py, &self.stats)
    }

    /// The subscriptions behind the numbers.
    fn entries(&self) -> PyEntries {
        PyEntries(self.entries.clone())
    }
}

impl DeliveryAnswer {
    /// Of an answer whose verdicts are made.
    pub fn of(answer: Answer, verdicts: Vec<Undelivered>, entries: EntryTable) -> DeliveryAnswer {
        DeliveryAnswer {
            messages: answer.messages.into(),
            subscriptions: answer.subscriptions.into(),
            results: answer.results.into(),
            fragments: answer.fragments.into(),
            bytes: Buffer::from_vec(answer.bytes),
            ends: answer.ends,
            places: answer.places,
            refusals: answer.refusals,
            verdicts,
            work: answer.work,
            stats: answer.stats,
            entries,
        }
    }

    fn fragment<'py>(&self, py: Python<'py>, number: u32) -> Option<Bound<'py, PyBytes>> {
        if number == NO_FRAGMENT {
            return None;
        }
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        Some(PyBytes::new(py, &self.bytes[start..self.ends[number] as usize]))
    }
}
