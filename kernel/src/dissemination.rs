//! Subscriptions and what they are delivered, over Arrow arrays.

use crate::deliveries::DeliveryAnswer;
use crate::door::{limit, limits_of, refusal_params};
use crate::edits::{PyStep, steps_of};
use crate::enter::{enter, enter_long, enter_whole};
use crate::matcher::{
    Answer as Matched, Arrivals, Column, Matcher, Matching, Source, Undelivered, counters_of,
    with_messages,
};
use crate::queries::{self, PyNotAdded, Scopes};
use crate::snapshot::{self, Snapshot};
use arrow_array::make_array;
use arrow_data::ArrayData;
use arrow_pyarrow::FromPyArrow;
use pathcast_core::engine::interrupt::Interrupted;
use pathcast_core::engine::plans::run::ENTRIES_MAX;
use pathcast_core::engine::verdicts::{StepFault, Verdict};
use pathcast_core::language::choice::Language;
use pathcast_core::registry::catalogue::EntryTable;
use pathcast_core::registry::delivery::batch::Pool;
use pathcast_core::registry::delivery::dissemination as core;
use pathcast_core::registry::delivery::dissemination::{
    Deliver, Entry, Explained, NotFrozen, NotTaken, Steps,
};
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::delivery::serving::Options;
use pathcast_core::registry::delivery::worker::Target;
use pathcast_core::registry::snapshot::NamespaceMap;
use pathcast_core::registry::snapshot::format::FormatError;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::collections::HashMap;
use std::sync::Arc;

/// Subscriptions taken under one lock, between two looks for signals.
const CHUNK: usize = 1 << 13;
/// Why a snapshot whose texts are others than it says is damaged.
const DAMAGED: &str = "the text of a subscription is not of the kind that the snapshot says";

/// Subscriptions that come and go, and the workers that serve messages to them.
#[pyclass(frozen)]
pub struct Dissemination {
    subscriptions: Arc<core::Dissemination>,
    pool: Pool,
    options: Options,
}

/// Id, subscriber, text, what is delivered, namespaces, steps, language.
type PySubscription<'py> = (
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Option<Bound<'py, PyAny>>,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyString>>,
);

/// Subscriber, text, what is delivered, namespaces, language, texts of steps.
type PyEntry = (String, String, &'static str, NamespaceMap, Option<&'static str>, Vec<String>);

/// A subscription copied out of Python.
struct Row {
    id: String,
    subscriber: String,
    text: String,
    language: Option<Language>,
    deliver: Deliver,
    /// Place of its namespaces.
    scope: usize,
    steps: Option<Steps>,
}

/// Row of a subscription that was not taken, and the code of why; none if its text is refused.
type PyNotTaken = (usize, Option<&'static str>);

#[pymethods]
impl Dissemination {
    /// Nobody has subscribed; `limits` is a `pathcast.limits.Limits`, which snapshots say.
    #[new]
    fn new(limits: &Bound<'_, PyAny>, threads: usize, cache_bytes_max: usize) -> PyResult<Self> {
        let options = options_of(limits, cache_bytes_max)?;
        let subscriptions = core::Dissemination::new(&agreed_of(limits)?);
        Ok(Dissemination::over(subscriptions, threads, options))
    }

    /// The subscriptions of a snapshot, of whatever kinds, which go on from there; nothing is compiled. Messages may cost
    /// what `limits` say, and so do snapshots.
    #[staticmethod]
    fn of_snapshot(
        py: Python<'_>,
        snapshot: &Snapshot,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Self> {
        let options = options_of(limits, cache_bytes_max)?;
        let (agreed, snapshot) = (agreed_of(limits)?, Arc::clone(&snapshot.0));
        let opened = || core::Dissemination::from_snapshot(snapshot).with_limits(&agreed);
        Ok(Dissemination::over(enter(py, opened)?, threads, options))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        enter(py, || self.subscriptions.state().len())
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        enter(py, || self.subscriptions.state().number(id).is_some())
    }

    /// Takes rows of `pathcast.model.Subscription`, of which those that have steps have them by their place in the list,
    /// and gives back those that were not taken.
    #[pyo3(signature = (subscriptions, namespaces, steps = None))]
    fn subscribe(
        &self,
        py: Python<'_>,
        subscriptions: &Bound<'_, PyList>,
        namespaces: NamespaceMap,
        steps: Option<HashMap<usize, Vec<PyStep>>>,
    ) -> PyResult<Vec<PyNotTaken>> {
        let steps = steps.unwrap_or_default();
        let mut refused = Vec::new();
        let mut scopes = Scopes::new(namespaces);
        let mut start = 0;
        while start < subscriptions.len() {
            let end = subscriptions.len().min(start + CHUNK);
            let mut rows = Vec::with_capacity(end - start);
            for at in start..end {
                let row: PySubscription<'_> = subscriptions.get_item(at)?.extract()?;
                let (id, subscriber, text, deliver, own, texts, language) = row;
                let steps = match steps.get(&at) {
                    None => None,
                    Some(steps) => {
                        let texts: Vec<String> = texts.extract()?;
                        let texts = texts.into_iter().map(String::into_boxed_str).collect();
                        Some(Steps { steps: steps_of(steps)?, texts })
                    }
                };
                let scope = scopes.place(own.as_ref())?;
                let deliver = deliver_of(deliver.to_str()?)?;
                let language = language.as_ref().map(|name| name.to_str()).transpose()?;
                let owned = |text: &Bound<'_, PyString>| text.to_str().map(str::to_owned);
                rows.push(Row {
                    id: owned(&id)?,
                    subscriber: owned(&subscriber)?,
                    text: owned(&text)?,
                    language: language_of(language)?,
                    deliver,
                    scope,
                    steps,
                });
            }
            let scopes = scopes.all();
            refused.extend(enter_whole(py, || self.take(start, &rows, scopes)));
            py.check_signals()?;
            start = end;
        }
        Ok(refused)
    }

    /// Registers filter queries (id, text, namespaces or None, language, which is not looked at) and gives back the rows
    /// that were not taken, each with a refusal as `read_query` raises it. Its code is "query.duplicate" where the id is
    /// taken.
    fn register<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyList>,
        namespaces: NamespaceMap,
    ) -> PyResult<Vec<PyNotAdded<'py>>> {
        queries::register(py, &self.subscriptions, queries, namespaces)
    }

    /// Registers gates (`pathcast_core::registry::delivery::dissemination::State::add_gate`), each with its text as its
    /// id, and gives back the rows that were not taken, as `register` does.
    fn register_gates<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
    ) -> PyResult<Vec<PyNotAdded<'py>>> {
        queries::register_gates(py, &self.subscriptions, &texts)
    }

    /// Merges the subscriptions into an immutable snapshot.
    ///
    /// Raises SnapshotError if the snapshot that they are of is damaged.
    fn freeze(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let frozen = enter_long(py, || match self.subscriptions.freeze() {
            Err(NotFrozen::Interrupted) => Err(Interrupted),
            Err(NotFrozen::Damaged) => Ok(Err(FormatError::Damaged(DAMAGED))),
            Ok(snapshot) => Ok(Ok(snapshot)),
        });
        frozen?.map(Snapshot).map_err(snapshot::to_python)
    }

    /// A matcher with limits of its own, which sees every change.
    fn matcher(
        &self,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Matcher> {
        let source = Source::Registry(Arc::clone(&self.subscriptions));
        Matcher::new(source, limits, threads, cache_bytes_max)
    }

    /// Takes subscriptions out, all or none.
    ///
    /// Raises KeyError with the position of the first unknown id.
    fn unsubscribe(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<()> {
        let left = enter_whole(py, || {
            self.subscriptions.change(|state| state.unsubscribe(ids.iter().map(String::as_str)))
        });
        left.map_err(PyKeyError::new_err)
    }

    /// (subscriber, text, deliver, namespaces, language, texts of steps) of an id.
    fn subscription(&self, py: Python<'_>, id: &str) -> PyResult<Option<PyEntry>> {
        enter(py, || {
            let state = self.subscriptions.state();
            let texts = state.steps(id).map_or_else(Vec::new, |steps| steps.texts.to_vec());
            let texts = texts.into_iter().map(String::from).collect();
            state.find(id, |entry: Entry<'_>, namespaces: &NamespaceMap| {
                let Entry { text, language, subscriber, deliver, .. } = entry;
                let (text, deliver) = (text.to_owned(), name_of(deliver));
                let language = language.map(Language::name);
                (subscriber.to_owned(), text, deliver, namespaces.clone(), language, texts)
            })
        })
    }

    /// The digests of the subscriptions of some ids, added up modulo 2^256, little endian; an id that is unknown is passed
    /// over.
    fn sum_of<'py>(&self, py: Python<'py>, ids: Vec<String>) -> PyResult<Bound<'py, PyBytes>> {
        let names = ids.iter().map(String::as_str);
        let sum = enter(py, || self.subscriptions.state().sum_of(names))?;
        Ok(PyBytes::new(py, &sum.bytes()))
    }

    /// Bytes held, shared plans and programs not counted.
    fn memory(&self, py: Python<'_>) -> PyResult<usize> {
        enter(py, || self.subscriptions.state().memory())
    }

    /// How a subscription is done: "way", what it shares with how many, and with how many its first steps ("steps").
    fn explain<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let explained = enter(py, || self.subscriptions.state().explain(id))?;
        let Some((explained, steps)) = explained else { return Ok(None) };
        let told = PyDict::new(py);
        told.set_item("steps", steps)?;
        match explained {
            Explained::Shared(sharing, counts) => {
                told.set_item("way", "shared")?;
                told.set_item("binding", sharing.binding)?;
                told.set_item("predicates", sharing.predicates)?;
                told.set_item("selection", sharing.selection)?;
                told.set_item("template", sharing.template)?;
                for (name, count) in [
                    ("bindings", counts.bindings),
                    ("predicate_paths", counts.predicate_paths),
                    ("return_paths", counts.return_paths),
                    ("distinct_predicates", counts.predicates),
                    ("selections", counts.selections),
                    ("templates", counts.templates),
                ] {
                    told.set_item(name, count)?;
                }
            }
            Explained::Gated => told.set_item("way", "gated")?,
            Explained::Selecting => told.set_item("way", "selecting")?,
            Explained::Filtering => told.set_item("way", "filtering")?,
        }
        Ok(Some(told))
    }

    /// Serves a binary, large_binary or binary_view array, or a list of bytes objects and None. So many steps were done
    /// to each message before; none to any if that is empty. `times` are microseconds since the beginning of 1970, one for
    /// each message or one for all; now if that is empty.
    #[pyo3(signature = (messages, encoding = None, done = Vec::new(), times = Vec::new()))]
    fn process(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        encoding: Option<String>,
        done: Vec<usize>,
        times: Vec<i64>,
    ) -> PyResult<DeliveryAnswer> {
        let arrivals = Arrivals::new(encoding, done, times);
        let (_, (answer, entries)) = with_messages(messages, arrivals, |batch| {
            enter_long(py, || {
                changing(&self.subscriptions, |_| self.pool.run(&self.subscriptions, batch))
            })
        })?;
        let verdicts = verdicts_of(py, &answer.verdicts, &self.options)?;
        Ok(DeliveryAnswer::of(answer, verdicts, entries))
    }

    /// Which queries each message of a binary, large_binary or binary_view array, or of a list of bytes objects and None,
    /// satisfies, and which subscriptions are delivered something of it; nothing is written.
    #[pyo3(name = "match", signature = (messages, encoding = None, times = Vec::new()))]
    fn match_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        encoding: Option<String>,
        times: Vec<i64>,
    ) -> PyResult<Matched> {
        let matching = Matching { pool: &self.pool, options: &self.options };
        let arrivals = Arrivals::new(encoding, Vec::new(), times);
        matching.batch(py, messages, arrivals, |run| changing(&self.subscriptions, run))
    }

    /// Runs the shared plans over messages to groupSequence-listSequence, writes nothing, and counts:
    /// counters of the batch and subscriptions, groups, lists, nodes. With `visits`, every node id is
    /// read. For measurements.
    fn count_groups<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        visits: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let array = make_array(ArrayData::from_pyarrow_bound(messages)?);
        let batch = Column::new(&array, Arrivals::new(None, Vec::new(), Vec::new()))?;
        let (counts, stats) =
            enter(py, || self.pool.count_groups(&self.subscriptions, &batch, visits))?;
        let counters = counters_of(py, &stats)?;
        for (name, count) in [
            ("subscriptions", counts.subscriptions),
            ("groups", counts.groups),
            ("lists", counts.lists),
            ("list_nodes", counts.nodes),
        ] {
            counters.set_item(name, count)?;
        }
        Ok(counters)
    }
}

impl Dissemination {
    /// Takes rows under one lock.
    fn take(&self, start: usize, rows: &[Row], scopes: &[Scope]) -> Vec<PyNotTaken> {
        self.subscriptions.change(|state| {
            let mut refused = Vec::new();
            // Building everything anew between two locks numbers the maps anew.
            let mut number_of: HashMap<usize, u32> = HashMap::new();
            for (row, one) in rows.iter().enumerate() {
                let Row { id, subscriber, text, language, deliver, scope, steps } = one;
                let (language, deliver, at) = (*language, *deliver, *scope);
                let scope = &scopes[at];
                let number = || state.namespace_number(&scope.map);
                let namespaces = *number_of.entry(at).or_insert_with(number);
                let entry = Entry { id, text, language, namespaces, subscriber, deliver };
                if let Err(why) = state.subscribe_stepped(entry, scope, steps.as_ref()) {
                    let code = match why {
                        NotTaken::Duplicate => Some("query.duplicate"),
                        NotTaken::TooManySeries => Some("subscription.step_series"),
                        NotTaken::Refused | NotTaken::NoQuery(_) | NotTaken::NoGate => None,
                    };
                    refused.push((start + row, code));
                }
            }
            refused
        })
    }

    fn over(subscriptions: core::Dissemination, threads: usize, options: Options) -> Self {
        let pool = Pool::new(options.clone(), threads);
        Dissemination { subscriptions: Arc::new(subscriptions), pool, options }
    }
}

/// Does a batch, whose numbers mean the same for its whole length.
///
/// # Errors
/// It was interrupted.
pub fn changing<T>(
    subscriptions: &Arc<core::Dissemination>,
    batch: impl FnOnce(Target<'_>) -> Result<T, Interrupted>,
) -> Result<(T, EntryTable), Interrupted> {
    subscriptions.settle();
    let _numbers = subscriptions.pin_numbers();
    Ok((batch((&**subscriptions).into())?, subscriptions.state().entries()))
}

/// Verdicts as Python has them.
pub fn verdicts_of(
    py: Python<'_>,
    verdicts: &[(usize, u32, Verdict)],
    options: &Options,
) -> PyResult<Vec<Undelivered>> {
    let verdicts = verdicts.iter();
    verdicts
        .map(|(row, number, verdict)| {
            let (code, params) = verdict_of(py, verdict, options)?;
            Ok((*row, *number, code, params.unbind()))
        })
        .collect()
}

/// Code and parameters of a verdict.
pub fn verdict_of<'py>(
    py: Python<'py>,
    verdict: &Verdict,
    options: &Options,
) -> PyResult<(&'static str, Bound<'py, PyDict>)> {
    let params = PyDict::new(py);
    let limit = |code: &'static str, limit: &str, maximum: u64| {
        params.set_item("limit", limit)?;
        params.set_item("maximum", maximum)?;
        Ok::<&'static str, PyErr>(code)
    };
    let ratio_max = options.result_ratio_max as u64;
    let code = match verdict {
        Verdict::OverBudget => {
            limit("limit.evaluation_steps", "evaluation_steps_max", options.steps_max)?
        }
        Verdict::MessageOverBudget => {
            limit("limit.message_steps", "message_steps_max", options.message_steps_max)?
        }
        Verdict::TooLong { bytes_max } if *bytes_max == options.result_bytes_max => {
            limit("limit.result_bytes", "result_bytes_max", *bytes_max as u64)?
        }
        Verdict::TooLong { .. } => limit("limit.result_ratio", "result_ratio_max", ratio_max)?,
        Verdict::MessageFull => {
            let maximum = options.message_result_bytes_max as u64;
            limit("limit.message_result_bytes", "message_result_bytes_max", maximum)?
        }
        Verdict::Construction(code) => {
            params.set_item("name", "an element")?;
            code
        }
        Verdict::Damaged => {
            params.set_item("path", "the opened snapshot")?;
            params.set_item("reason", DAMAGED)?;
            "snapshot.damaged"
        }
        Verdict::Unrestructured(fault) => match &**fault {
            StepFault::Refused(refusal) => {
                return Ok((refusal.code.as_str(), refusal_params(py, refusal)?));
            }
            StepFault::TooLong { given } => {
                params.set_item("given", *given)?;
                let maximum = options.limits.message_bytes_max.into();
                limit("limit.message_bytes", "message_bytes_max", maximum)?
            }
            StepFault::Grown => limit("limit.steps_ratio", "result_ratio_max", ratio_max)?,
            StepFault::Unreadable(reason) => {
                params.set_item("path", "the message")?;
                params.set_item("reason", reason)?;
                "message.unreadable"
            }
        },
    };
    Ok((code, params))
}

/// What a message may cost, as snapshots say it.
fn agreed_of(limits: &Bound<'_, PyAny>) -> PyResult<String> {
    limits.call_method0("to_json")?.extract()
}

/// What a message may cost by `limits`, which has the attributes of `pathcast.limits.Limits`.
pub fn options_of(limits: &Bound<'_, PyAny>, cache_bytes_max: usize) -> PyResult<Options> {
    Ok(Options {
        limits: limits_of(limits)?,
        cache_bytes_max,
        steps_max: limit(limits, "evaluation_steps_max")?.into(),
        message_steps_max: limit(limits, "message_steps_max")?.into(),
        result_bytes_max: limit(limits, "result_bytes_max")? as usize,
        result_ratio_max: limit(limits, "result_ratio_max")? as usize,
        message_result_bytes_max: limit(limits, "message_result_bytes_max")? as usize,
        entries_max: ENTRIES_MAX,
    })
}

fn name_of(deliver: Deliver) -> &'static str {
    match deliver {
        Deliver::Fragment => "fragment",
        Deliver::Message => "message",
        Deliver::Ids => "ids",
        Deliver::Nodes => "nodes",
    }
}

pub fn deliver_of(name: &str) -> PyResult<Deliver> {
    Ok(match name {
        "fragment" => Deliver::Fragment,
        "message" => Deliver::Message,
        "ids" => Deliver::Ids,
        "nodes" => Deliver::Nodes,
        _ => return Err(PyValueError::new_err(format!("nothing is delivered as {name}"))),
    })
}

/// The language of a name; none of no name.
pub fn language_of(name: Option<&str>) -> PyResult<Option<Language>> {
    let Some(name) = name else { return Ok(None) };
    let found = Language::named(name);
    found.map(Some).ok_or_else(|| PyValueError::new_err(format!("no language is called {name}")))
}
