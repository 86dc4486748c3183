//! One message against all subscriptions: door, gate, shared plans, message factory.

use super::dissemination::{Deliver, Dissemination, State, Way};
use super::ordered::{Ordered, Service};
use super::steps::MessageSteps;
use crate::engine::counters::Stats;
use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::did;
use crate::engine::plans::factory::{Factory, Source, is_delivered};
use crate::engine::plans::run::{Overflow, SharedRun};
use crate::engine::plans::shared::SubscriptionNumber;
use crate::engine::programs;
use crate::engine::programs::{Bounds, Results, RunError, Session};
use crate::engine::verdicts::Undecided;
use crate::registry::batch::MessageBudget;
use crate::registry::matcher::Engine;
use crate::registry::target::View;
use crate::xml::parser::{Door, Limits, Parsed, Refusal};
use crate::xml::serializer::Put;
use std::collections::HashSet;
use std::time::Instant;

/// How a worker runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// What a message may cost.
    pub limits: Limits,
    /// Bytes that compiled label paths may take.
    pub cache_bytes_max: usize,
    /// Steps that one evaluation of one subscription may take.
    pub steps_max: u64,
    /// Steps that one message may take over the gates of all subscriptions, and again over all that are
    /// evaluated by themselves.
    pub message_steps_max: u64,
    /// Bytes that the results of one subscription may have for one message.
    pub result_bytes_max: usize,
    /// The same, as a multiple of the bytes of the message.
    pub result_ratio_max: usize,
    /// Bytes that the results of all subscriptions may have for one message, equal ones counted once, and
    /// [`DELIVERY_BYTES`] for each that is delivered.
    pub message_result_bytes_max: usize,
    /// Node numbers that the columns of the shared plans may hold together for one message.
    pub entries_max: usize,
    /// Puts down where elements lie in the message, and not their text: see [`Put::Span`].
    pub puts_spans: bool,
}

/// What the delivery of a result takes besides its bytes: a row of the answer, on its way and in the end.
pub(crate) const DELIVERY_BYTES: usize = 64;

/// One part of the steps of a message in so many is what subscriptions may take without being put in
/// order: what they have taken then is taken in vain.
const UNORDERED_PART: u64 = 8;

/// Results of so many bytes are never too long for a message that is small.
const RESULT_BYTES_FREE: usize = 4096;

/// A subscription is given one thing: a row of the answer. What is given is a fragment, by number; the
/// message itself is one where somebody wants it. Who wants to know only gets [`NO_FRAGMENT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// To which subscription.
    pub subscription: SubscriptionNumber,
    /// Which of its results; 0-based.
    pub result: u32,
    /// Which fragment.
    pub fragment: u32,
}

/// No fragment: the fact that there is something is what is delivered.
pub const NO_FRAGMENT: u32 = u32::MAX;

/// Why a subscription could not be served with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its evaluation takes more steps than it was given.
    OverBudget,
    /// It is undecided: the message has used up its steps over all gates, or over all evaluations.
    MessageOverBudget,
    /// Its results are longer than this.
    TooLong {
        /// Bytes that they may have.
        bytes_max: usize,
    },
    /// The results of the subscriptions whose ids come before have taken what all may have together.
    MessageFull,
    /// Its constructor makes no element: `XQTY0024`, `XQDY0025`.
    Construction(&'static str),
}

/// What messages have given, one after the other. The caller empties deliveries and verdicts between
/// messages, and the fragments when he has no more use for them.
#[derive(Debug, Default)]
pub struct Output {
    /// Deliveries, ascending by subscription and result.
    pub deliveries: Vec<Delivery>,
    /// The fragments; distinct ones of each message.
    pub fragments: Results,
    /// Subscriptions without a delivery that might have had one, ascending.
    pub verdicts: Vec<(SubscriptionNumber, Verdict)>,
    /// Which fragment is the last message itself, if somebody wants it.
    pub(crate) whole: Option<u32>,
}

impl Output {
    /// Bytes that the deliveries of a message take, equal results once, the message itself left out; its
    /// fragments are those from this one on.
    pub(super) fn result_bytes(&self, first: usize) -> usize {
        let fragments = first as u32..self.fragments.ends.len() as u32;
        let fragments = fragments.filter(|fragment| self.whole != Some(*fragment));
        let distinct: HashSet<&[u8]> =
            fragments.map(|fragment| self.fragments.get(fragment)).collect();
        let rows = self.deliveries.len() * DELIVERY_BYTES;
        rows + distinct.into_iter().map(<[u8]>::len).sum::<usize>()
    }
}

/// What shared plans gave without writing anything: groupSequence-listSequence, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Pairs of message and subscription.
    pub subscriptions: u64,
    /// Groups of all group sequences.
    pub groups: u64,
    /// Lists of all groups.
    pub lists: u64,
    /// Nodes of all lists.
    pub nodes: u64,
}

/// Everything one thread needs.
#[derive(Debug)]
pub struct Worker {
    options: Options,
    door: Door,
    serving: Serving,
    /// That of the state that the caches belong to.
    generation: u64,
    budget: Option<MessageBudget>,
    /// Counters since they were last taken.
    pub stats: Stats,
}

/// A worker without its door.
#[derive(Debug)]
struct Serving {
    gate: Engine,
    shared: SharedRun,
    factory: Factory,
    programs: programs::Scratch,
    gate_numbers: Vec<QueryNumber>,
    undecided: Undecided,
    /// Subscriptions whose gate holds, ascending.
    candidates: Vec<SubscriptionNumber>,
    ordered: Ordered,
}

/// The results of a message are longer together than they may be, or the subscriptions take too many
/// steps: not all of them can be served, so that their order matters.
struct NotAll;

impl Worker {
    /// A worker with empty caches.
    pub fn new(options: Options) -> Self {
        let mut door = Door::new(options.limits.clone());
        door.keep_source_spans(true);
        Worker {
            door,
            serving: Serving::new(&options),
            generation: 0,
            budget: None,
            stats: Stats::default(),
            options,
        }
    }

    /// The messages that follow may take no more than this, nor more than the options say.
    pub(crate) fn set_budget(&mut self, budget: Option<MessageBudget>) {
        self.budget = budget;
    }

    /// Appends what a message gives to whom.
    ///
    /// Errors: the door's refusal; nothing is appended then.
    pub fn serve(
        &mut self,
        target: &Dissemination,
        bytes: &[u8],
        encoding: Option<&str>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        self.with_message(target, bytes, encoding, |serving, state, parsed, allowance, stats| {
            let mut whole = Whole { bytes: parsed.original, fragment: None };
            serving.serve(state, parsed, allowance, &mut whole, out, stats);
            out.whole = whole.fragment;
        })
    }

    /// Runs the shared plans to groupSequence-listSequence and counts it. With `visits`, every node
    /// id of every list is read, as a consumer would.
    ///
    /// Errors: the door's refusal.
    pub fn count_groups(
        &mut self,
        target: &Dissemination,
        bytes: &[u8],
        visits: bool,
        counts: &mut GroupCounts,
    ) -> Result<(), Refusal> {
        self.with_message(target, bytes, None, |serving, state, parsed, allowance, stats| {
            if serving.run_shared(state, parsed, allowance, stats).is_err() {
                return;
            }
            counts.subscriptions += serving.shared.found().len() as u64;
            if visits {
                serving.visit(state, counts);
            }
        })
    }

    fn with_message(
        &mut self,
        target: &Dissemination,
        bytes: &[u8],
        encoding: Option<&str>,
        mut f: impl FnMut(&mut Serving, &State, Parsed<'_>, &Allowance, &mut Stats),
    ) -> Result<(), Refusal> {
        self.stats.messages += 1;
        self.stats.bytes += bytes.len() as u64;
        loop {
            let started = Instant::now();
            let parsed = self.door.parse(bytes, encoding);
            self.stats.parsing_ns += started.elapsed().as_nanos() as u64;
            let parsed = parsed.inspect_err(|_| self.stats.refused += 1)?;
            let is_full = parsed.message.tree.is_full;
            let state = target.state();
            if self.generation != state.generation {
                // What was compiled goes by numbers that mean something else now.
                (self.serving, self.generation) = (Serving::new(&self.options), state.generation);
            }
            let needs_full_tree =
                state.needs_full_tree() || View::of(state.gates.automaton()).needs_full_tree();
            let is_ready = is_full || !needs_full_tree;
            if is_ready {
                let (mut steps, mut room) =
                    (self.options.message_steps_max, self.options.message_result_bytes_max);
                if let Some(budget) = self.budget {
                    (steps, room) = (steps.min(budget.steps), room.min(budget.result_bytes));
                }
                self.serving.gate.set_message_steps_max(steps);
                let allowance = Allowance {
                    steps_max: self.options.steps_max,
                    bytes_max: parsed
                        .original
                        .len()
                        .saturating_mul(self.options.result_ratio_max)
                        .max(RESULT_BYTES_FREE)
                        .min(self.options.result_bytes_max),
                    message_bytes_max: room,
                    message_steps_max: steps,
                    cache_bytes_max: self.options.cache_bytes_max / 2,
                };
                let tree = parsed.message.tree;
                self.stats.nodes += (tree.len() + tree.attribute_name.len()) as u64;
                if self.options.puts_spans {
                    self.serving.put(Put::Span { before: before(parsed.message.source, bytes) });
                }
                f(&mut self.serving, &state, parsed, &allowance, &mut self.stats);
            }
            drop(state);
            self.door.keep_full_tree(needs_full_tree);
            if is_ready {
                return Ok(());
            }
        }
    }
}

/// What one subscription may cost for a message, and all of them.
pub(super) struct Allowance {
    pub(crate) steps_max: u64,
    pub(crate) bytes_max: usize,
    pub(crate) message_bytes_max: usize,
    message_steps_max: u64,
    cache_bytes_max: usize,
}

impl Allowance {
    /// What one run of a program may cost.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { steps_max: self.steps_max, bytes_max: self.bytes_max }
    }

    /// What a run that was stopped is called.
    pub(crate) fn verdict(&self, error: RunError) -> Verdict {
        match error {
            RunError::OverBudget => Verdict::OverBudget,
            RunError::TooLong => Verdict::TooLong { bytes_max: self.bytes_max },
            RunError::Construction(code) => Verdict::Construction(code),
        }
    }
}

/// The message as it was published, which is a fragment from when somebody wants it.
pub(super) struct Whole<'m> {
    pub(crate) bytes: &'m [u8],
    pub(crate) fragment: Option<u32>,
}

impl Whole<'_> {
    /// Bytes that it takes among the fragments. They are not counted: a message is as long as it is.
    fn len(&self) -> usize {
        if self.fragment.is_some() { self.bytes.len() } else { 0 }
    }

    /// The delivery of the message or of the fact.
    pub(crate) fn delivery(
        &mut self,
        subscription: SubscriptionNumber,
        deliver: Deliver,
        fragments: &mut Results,
    ) -> Delivery {
        let fragment = match deliver {
            Deliver::Message => *self.fragment.get_or_insert_with(|| {
                fragments.bytes.extend_from_slice(self.bytes);
                fragments.ends.push(fragments.bytes.len());
                (fragments.ends.len() - 1) as u32
            }),
            Deliver::Fragment | Deliver::Ids => NO_FRAGMENT,
        };
        Delivery { subscription, result: 0, fragment }
    }
}

impl Serving {
    /// Empty caches: half of the room for the automaton of the gates, half for those of the shared plans.
    fn new(options: &Options) -> Self {
        let half = options.cache_bytes_max / 2;
        Serving {
            gate: Engine::new(half, options.steps_max, options.message_steps_max),
            shared: SharedRun::new(options.entries_max),
            factory: Factory::default(),
            programs: programs::Scratch::default(),
            gate_numbers: Vec::new(),
            undecided: Undecided::default(),
            candidates: Vec::new(),
            ordered: Ordered::default(),
        }
    }

    fn put(&mut self, put: Put) {
        self.factory.put(put);
        self.programs.put(put);
    }

    fn run_shared(
        &mut self,
        state: &State,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        stats: &mut Stats,
    ) -> Result<(), Overflow> {
        let started = Instant::now();
        let bound = state.ways.len();
        let outcome = self.shared.run(
            &state.plans,
            bound,
            parsed.message,
            parsed.names,
            allowance.cache_bytes_max,
        );
        stats.matching_ns += started.elapsed().as_nanos() as u64;
        outcome
    }

    fn serve(
        &mut self,
        state: &State,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        whole: &mut Whole<'_>,
        out: &mut Output,
        stats: &mut Stats,
    ) {
        let (deliveries, verdicts) = (out.deliveries.len(), out.verdicts.len());
        let outcome = self.run_shared(state, parsed, allowance, stats);
        if let Err(Overflow) = outcome {
            let affected = self.shared.affected(&state.plans).into_iter();
            out.verdicts.extend(affected.map(|number| (number, Verdict::OverBudget)));
        }
        self.candidates.clear();
        if state.has_gated() {
            self.find_candidates(state, parsed, out, stats);
        }
        let started = Instant::now();
        let before = Before::of(out);
        let served = match outcome {
            Ok(()) => self.serve_shared(state, parsed, allowance, whole, out, before),
            Err(Overflow) => Ok(()),
        };
        let shared_deliveries = out.deliveries.len();
        let served =
            served.and_then(|()| self.serve_gated(state, parsed, allowance, whole, out, before));
        stats.steps += match served {
            Ok(steps) => {
                if shared_deliveries > deliveries && out.deliveries.len() > shared_deliveries {
                    out.deliveries[deliveries..]
                        .sort_unstable_by_key(|d| (d.subscription, d.result));
                }
                steps
            }
            Err(NotAll) => {
                before.restore(out);
                whole.fragment = None;
                self.serve_in_order(state, parsed, allowance, whole, out, outcome.is_ok())
            }
        };
        out.verdicts[verdicts..].sort_unstable_by_key(|&(subscription, _)| subscription);
        stats.customising_ns += started.elapsed().as_nanos() as u64;
        let mut last = None;
        for delivery in &out.deliveries[deliveries..] {
            stats.matches +=
                u64::from(last.replace(delivery.subscription) != Some(delivery.subscription));
            stats.result_bytes += fragment_len(&out.fragments, delivery.fragment) as u64;
        }
        stats.deliveries += (out.deliveries.len() - deliveries) as u64;
        stats.verdicts += (out.verdicts.len() - verdicts) as u64;
    }

    fn serve_shared(
        &mut self,
        state: &State,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        whole: &mut Whole<'_>,
        out: &mut Output,
        before: Before,
    ) -> Result<(), NotAll> {
        let found = self.shared.found();
        if found.is_empty() {
            return Ok(());
        }
        self.factory.begin(found);
        let Parsed { message, names, .. } = parsed;
        let source = Source { message, names, shared: &self.shared };
        let bytes_max = allowance.bytes_max;
        let templates = &state.plans.templates;
        for (subscription, list, template) in found.iter() {
            let kind = templates.kind(template);
            // A frame alone is nothing to deliver.
            if kind.may_be_empty
                && !is_delivered(&source, templates.get(template), found.list(list))
            {
                continue;
            }
            if kind.deliver != Deliver::Fragment {
                let delivery = whole.delivery(subscription, kind.deliver, &mut out.fragments);
                out.deliveries.push(delivery);
                continue;
            }
            let template = (template, || templates.get(template));
            let bytes = out.fragments.bytes.len();
            let written =
                self.factory.write(&source, template, list, bytes_max, &mut out.fragments);
            if did((out.fragments.bytes.len() - bytes) as u64 + 1) {
                return Ok(());
            }
            match written {
                Ok(range) => {
                    let first = range.start;
                    out.deliveries.extend(range.map(|fragment| Delivery {
                        subscription,
                        result: fragment - first,
                        fragment,
                    }));
                }
                Err(_) => out.verdicts.push((subscription, Verdict::TooLong { bytes_max })),
            }
            before.check(out, whole, allowance)?;
        }
        Ok(())
    }

    /// Finds the subscriptions whose gate holds.
    fn find_candidates(
        &mut self,
        state: &State,
        parsed: Parsed<'_>,
        out: &mut Output,
        stats: &mut Stats,
    ) {
        self.gate_numbers.clear();
        self.undecided.clear();
        let view = View::of(state.gates.automaton());
        self.gate.run(view, parsed, &mut self.gate_numbers, &mut self.undecided, stats);
        let owner = |&gate: &QueryNumber| state.gates.subscription_of(gate);
        let candidates = &mut self.candidates;
        candidates.extend(self.gate_numbers.iter().map(owner));
        for (numbers, verdict) in [
            (&self.undecided.by_query, Verdict::OverBudget),
            (&self.undecided.by_message, Verdict::MessageOverBudget),
        ] {
            out.verdicts.extend(numbers.iter().map(|gate| (owner(gate), verdict)));
        }
        candidates.sort_unstable();
        stats.evaluations += candidates.len() as u64;
    }

    /// Serves the subscriptions whose gate holds, in any order; says how many steps they took.
    fn serve_gated(
        &mut self,
        state: &State,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        whole: &mut Whole<'_>,
        out: &mut Output,
        before: Before,
    ) -> Result<u64, NotAll> {
        if self.candidates.is_empty() {
            return Ok(0);
        }
        let Parsed { message, names, .. } = parsed;
        let mut session = Session::new(message, names, &mut self.programs);
        let mut steps = MessageSteps::new(allowance.message_steps_max / UNORDERED_PART);
        for &subscription in &self.candidates {
            let way = &state.ways[subscription as usize];
            serve_one((subscription, way), &mut session, allowance, &mut steps, whole, out)?;
            before.check(out, whole, allowance)?;
        }
        Ok(steps.taken())
    }

    /// Serves the subscriptions in the order of their ids, as long as there is room for their results,
    /// and there are steps to find them; says how many they took.
    fn serve_in_order(
        &mut self,
        state: &State,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        whole: &mut Whole<'_>,
        out: &mut Output,
        has_shared: bool,
    ) -> u64 {
        let Parsed { message, names, .. } = parsed;
        let source = Source { message, names, shared: &self.shared };
        let mut steps = MessageSteps::new(allowance.message_steps_max);
        let session = Session::new(message, names, &mut self.programs);
        let found = has_shared.then(|| self.shared.found());
        self.ordered.begin(state, found, &self.candidates);
        let with = Service {
            state,
            source,
            factory: &mut self.factory,
            session,
            allowance,
            steps: &mut steps,
        };
        self.ordered.serve(with, whole, out);
        steps.taken()
    }

    /// Reads groupSequence-listSequence of every subscription from end to end.
    fn visit(&self, state: &State, counts: &mut GroupCounts) {
        let found = self.shared.found();
        for (_, list, template) in found.iter() {
            let template = state.plans.templates.get(template);
            for &bound in found.list(list) {
                counts.groups += 1;
                for target in template.targets() {
                    counts.lists += 1;
                    counts.nodes += match target.path {
                        None => 1,
                        Some(path) => self.shared.group(path, bound).len() as u64,
                    };
                }
            }
        }
    }
}

/// Bytes of a message before its source; None where the source is a copy, in another encoding.
fn before(source: &[u8], message: &[u8]) -> Option<u32> {
    let (source, message) = (source.as_ptr_range(), message.as_ptr_range());
    let is_inside = message.start <= source.start && source.end <= message.end;
    is_inside.then(|| (source.start as usize - message.start as usize) as u32)
}

/// What an output held before a message.
#[derive(Clone, Copy)]
struct Before {
    deliveries: usize,
    verdicts: usize,
    bytes: usize,
    ends: usize,
}

impl Before {
    fn of(out: &Output) -> Self {
        Before {
            deliveries: out.deliveries.len(),
            verdicts: out.verdicts.len(),
            bytes: out.fragments.bytes.len(),
            ends: out.fragments.ends.len(),
        }
    }

    fn restore(self, out: &mut Output) {
        out.deliveries.truncate(self.deliveries);
        out.verdicts.truncate(self.verdicts);
        out.fragments.bytes.truncate(self.bytes);
        out.fragments.ends.truncate(self.ends);
    }

    /// Whether the results are surely no longer than they may be: equal ones that were written more
    /// than once are counted more than once here, and deliveries of the message as results.
    #[inline]
    fn check(self, out: &Output, whole: &Whole<'_>, allowance: &Allowance) -> Result<(), NotAll> {
        let bytes = out.fragments.bytes.len() - self.bytes - whole.len();
        let rows = out.deliveries.len() - self.deliveries;
        let is_within = bytes + rows * DELIVERY_BYTES <= allowance.message_bytes_max;
        if is_within { Ok(()) } else { Err(NotAll) }
    }
}

/// Bytes of a fragment.
fn fragment_len(fragments: &Results, fragment: u32) -> usize {
    match fragment {
        NO_FRAGMENT => 0,
        0 => fragments.ends[0],
        at => fragments.ends[at as usize] - fragments.ends[at as usize - 1],
    }
}

/// Serves one subscription whose gate holds.
fn serve_one(
    (subscription, way): (SubscriptionNumber, &Way),
    session: &mut Session<'_>,
    allowance: &Allowance,
    steps: &mut MessageSteps,
    whole: &mut Whole<'_>,
    out: &mut Output,
) -> Result<(), NotAll> {
    let first = out.fragments.ends.len();
    let fragments = &mut out.fragments;
    let outcome = match way {
        Way::Unsubscribed | Way::Shared => Ok(false),
        Way::Filter(deliver) => {
            out.deliveries.push(whole.delivery(subscription, *deliver, fragments));
            return Ok(());
        }
        Way::Program(program, Deliver::Fragment) => {
            steps.evaluate(session, allowance, |session, bounds| {
                session.run(program, bounds, fragments)
            })
        }
        Way::Program(program, deliver) => {
            let delivered = steps
                .evaluate(session, allowance, |session, bounds| session.holds(program, bounds));
            if delivered == Ok(true) {
                out.deliveries.push(whole.delivery(subscription, *deliver, fragments));
                return Ok(());
            }
            delivered
        }
        Way::Selection(expression) => steps.evaluate(session, allowance, |session, bounds| {
            session.select(expression, bounds, fragments)
        }),
    };
    match outcome {
        // What is not delivered has left nothing behind.
        Ok(_) => {
            let fragments = first..out.fragments.ends.len();
            out.deliveries.extend(fragments.map(|fragment| Delivery {
                subscription,
                result: (fragment - first) as u32,
                fragment: fragment as u32,
            }));
        }
        Err(Verdict::MessageOverBudget) => return Err(NotAll),
        Err(verdict) => out.verdicts.push((subscription, verdict)),
    }
    Ok(())
}
