//! A message that was let in against the plans of many subscriptions: gate, shared plans, message factory.

use super::ordered::{Ordered, Service};
use super::plans::{Plans, Way, WayKind};
use super::steps::MessageSteps;
use crate::engine::counters::Stats;
use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::did;
use crate::engine::options;
use crate::engine::plans::factory::{Factory, Source, is_delivered, returned};
use crate::engine::plans::run::{ENTRIES_MAX, Overflow, SharedRun};
use crate::engine::plans::shared::SubscriptionNumber;
use crate::engine::plans::template::Deliver;
use crate::engine::programs;
use crate::engine::programs::{Bounds, Results, RunError, Session};
use crate::engine::verdicts::{Undecided, Verdict};
use crate::engine::work::{BYTES_A_STEP, QueryWork, WorkSums};
use crate::registry::catalogue::Catalogue;
use crate::registry::matcher::Engine;
use crate::registry::snapshot::parts::FrozenWay;
use crate::registry::target::View;
use crate::xml::parser::{Limits, Parsed};
use crate::xml::places::{PLACE_BYTES, Place, Places};
use crate::xml::tree::NodeRef;
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
}

/// Nothing is too long where nothing is written.
impl From<options::Options> for Options {
    fn from(options: options::Options) -> Self {
        let options::Options { limits, cache_bytes_max, steps_max, message_steps_max } = options;
        Options {
            limits,
            cache_bytes_max,
            steps_max,
            message_steps_max,
            result_bytes_max: usize::MAX,
            result_ratio_max: usize::MAX,
            message_result_bytes_max: usize::MAX,
            entries_max: ENTRIES_MAX,
        }
    }
}

/// What the delivery of a result takes besides its bytes: a row of the answer, on its way and in the end.
pub(crate) const DELIVERY_BYTES: usize = 64;

/// One part of the steps of a message in so many is what subscriptions may take without being put in
/// order: what they have taken then is taken in vain.
const UNORDERED_PART: u64 = 8;

/// Results of so many bytes are never too long for a message that is small.
pub(super) const RESULT_BYTES_FREE: usize = 4096;

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

/// No fragment: the fact that there is something is what is delivered, or the place of a node, which stands in
/// [`Output::places`].
pub const NO_FRAGMENT: u32 = u32::MAX;

/// A delivery of a node: its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// To which subscription.
    pub subscription: SubscriptionNumber,
    /// Which of its results; 0-based.
    pub result: u32,
    /// Where the node is.
    pub place: Place,
}

/// What messages have given, one after the other. The caller empties deliveries and verdicts between
/// messages, and the fragments when he has no more use for them.
#[derive(Debug, Default)]
pub struct Output {
    /// Deliveries, ascending by subscription and result.
    pub deliveries: Vec<Delivery>,
    /// The places of those that are nodes, in any order.
    pub places: Vec<NodePlace>,
    /// The fragments; distinct ones of each message.
    pub fragments: Results,
    /// Subscriptions without a delivery that might have had one, ascending.
    pub verdicts: Vec<(SubscriptionNumber, Verdict)>,
}

impl Output {
    /// Appends the deliveries of nodes to a subscription.
    pub(super) fn deliver_nodes(
        &mut self,
        subscription: SubscriptionNumber,
        places: &Places<'_>,
        nodes: &[NodeRef],
    ) {
        for (result, &node) in nodes.iter().enumerate() {
            let (result, place) = (result as u32, places.place(node));
            self.deliveries.push(Delivery { subscription, result, fragment: NO_FRAGMENT });
            self.places.push(NodePlace { subscription, result, place });
        }
    }
}

/// Plans, and whose they are.
#[derive(Clone, Copy)]
pub(super) struct Audience<'s> {
    pub(crate) plans: &'s Plans,
    pub(crate) catalogue: &'s Catalogue,
    /// By number in the plans: the number in the catalogue, where that is another one.
    pub(crate) numbers: Option<&'s [SubscriptionNumber]>,
}

impl Audience<'_> {
    /// The number in the catalogue.
    pub(super) fn number(&self, number: SubscriptionNumber) -> SubscriptionNumber {
        self.numbers.map_or(number, |numbers| numbers[number as usize])
    }
}

/// What one thread keeps for some plans.
#[derive(Debug)]
pub(super) struct Serving {
    gate: Engine,
    pub(super) shared: SharedRun,
    factory: Factory,
    programs: programs::Scratch,
    undecided: Undecided,
    /// Subscriptions whose gate holds, ascending.
    candidates: Vec<SubscriptionNumber>,
    /// Those that have steps, and whose gate may hold; ascending.
    pub(super) stepped: Vec<SubscriptionNumber>,
    /// Steps of single subscriptions that were evaluated, of the message.
    pub(super) work: Vec<QueryWork>,
    ordered: Ordered,
}

/// The results of a message are longer together than they may be, or the subscriptions take too many
/// steps: not all of them can be served, so that their order matters.
struct NotAll;

/// What one subscription may cost for a message, and all of them.
pub(super) struct Allowance {
    pub(crate) steps_max: u64,
    pub(crate) bytes_max: usize,
    pub(crate) message_bytes_max: usize,
    pub(super) message_steps_max: u64,
    cache_bytes_max: usize,
    /// Whether results are written; else all that is told of any is that there is one.
    pub(super) writes: bool,
}

impl Allowance {
    /// That of a message of so many bytes, for which so many steps and bytes of results are left.
    pub(super) fn new(options: &Options, bytes: usize, steps: u64, result_bytes: usize) -> Self {
        let bytes_max = bytes.saturating_mul(options.result_ratio_max).max(RESULT_BYTES_FREE);
        Allowance {
            steps_max: options.steps_max,
            bytes_max: bytes_max.min(options.result_bytes_max),
            message_bytes_max: result_bytes,
            message_steps_max: steps,
            cache_bytes_max: options.cache_bytes_max,
            writes: true,
        }
    }

    /// The same, for who wants to know only whom the message satisfies: nothing is written, and nothing is too long.
    pub(super) fn of_match(self) -> Self {
        Allowance { writes: false, message_bytes_max: usize::MAX, ..self }
    }

    /// What is delivered to who asks for this.
    pub(super) fn deliver(&self, deliver: Deliver) -> Deliver {
        if self.writes { deliver } else { Deliver::Ids }
    }

    /// Nodes whose places are the results of one subscription, if these are not too long.
    pub(crate) fn check_nodes(&self, nodes: Vec<NodeRef>) -> Result<Vec<NodeRef>, RunError> {
        let is_within = nodes.len() * PLACE_BYTES <= self.bytes_max;
        if is_within { Ok(nodes) } else { Err(RunError::TooLong) }
    }

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
    /// Whether the bytes are those that came.
    came: bool,
}

impl<'m> Whole<'m> {
    /// Nobody wants it yet.
    pub(super) fn new(bytes: &'m [u8]) -> Self {
        Whole { bytes, fragment: None, came: true }
    }

    /// The same, of a message that steps were done to: its nodes lie nowhere in the bytes that came.
    pub(super) fn restructured(bytes: &'m [u8]) -> Self {
        Whole { came: false, ..Whole::new(bytes) }
    }

    /// The places of the nodes of the message.
    pub(super) fn places<'p>(&self, parsed: Parsed<'p>) -> Places<'p> {
        Places::of(parsed.message, self.came.then_some(self.bytes))
    }

    /// Bytes that it takes among the fragments. They are not counted: a message is as long as it is.
    pub(super) fn len(&self) -> usize {
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
            Deliver::Fragment | Deliver::Ids | Deliver::Nodes => NO_FRAGMENT,
        };
        Delivery { subscription, result: 0, fragment }
    }
}

impl Serving {
    /// Empty caches: where there are shared plans, half of the room for the automaton of the gates, half for theirs.
    pub(super) fn new(options: &Options) -> Self {
        Serving {
            gate: Engine::new(options.steps_max),
            shared: SharedRun::new(options.entries_max),
            factory: Factory::default(),
            programs: programs::Scratch::default(),
            undecided: Undecided::default(),
            candidates: Vec::new(),
            stepped: Vec::new(),
            work: Vec::new(),
            ordered: Ordered::default(),
        }
    }

    /// When the messages were that are served from here on.
    pub(super) fn at(&mut self, time: i64) {
        self.programs.at(time);
    }

    /// The steps that the automaton of the gates, or of the queries, took for single ones since they were last taken.
    pub(super) fn take_gate_work(
        &mut self,
        view: View<'_>,
        plans: Option<&Plans>,
    ) -> impl Iterator<Item = QueryWork> {
        let work = self.gate.take_work(view).into_iter();
        let owner = move |gate| plans.map_or(gate, |plans| plans.gates.subscription_of(gate));
        work.map(move |(gate, steps)| (owner(gate), steps))
    }

    /// Runs the shared plans.
    pub(super) fn run_shared(
        &mut self,
        plans: &Plans,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        stats: &mut Stats,
    ) -> Result<(), Overflow> {
        let started = Instant::now();
        let (numbers, half) =
            ((plans.number_count(), plans.base_left()), allowance.cache_bytes_max / 2);
        let outcome = self.shared.run(&plans.shared, numbers, parsed.message, parsed.names, half);
        stats.matching_ns += started.elapsed().as_nanos() as u64;
        outcome
    }

    /// Appends what a message gives to whom, by numbers of the plans.
    pub(super) fn serve(
        &mut self,
        audience: Audience<'_>,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        whole: &mut Whole<'_>,
        out: &mut Output,
        stats: &mut Stats,
    ) {
        let (deliveries, verdicts) = (out.deliveries.len(), out.verdicts.len());
        let plans = audience.plans;
        let outcome = self.run_shared(plans, parsed, allowance, stats);
        if let Err(Overflow) = outcome {
            let affected = self.shared.affected(&plans.shared, plans.base_left()).into_iter();
            out.verdicts.extend(affected.map(|number| (number, Verdict::OverBudget)));
        }
        self.find_candidates(plans, parsed, allowance, out, stats);
        stats.evaluations += self.candidates.len() as u64;
        let started = Instant::now();
        let before = Before::of(out);
        let served = match outcome {
            Ok(()) => self.serve_shared(plans, parsed, allowance, whole, out, before),
            Err(Overflow) => Ok(()),
        };
        let shared_deliveries = out.deliveries.len();
        let served =
            served.and_then(|()| self.serve_gated(plans, parsed, allowance, whole, out, before));
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
                self.work.clear();
                self.serve_in_order(audience, parsed, allowance, whole, out, outcome.is_ok())
            }
        };
        out.verdicts[verdicts..].sort_unstable_by_key(|&(subscription, _)| subscription);
        stats.customising_ns += started.elapsed().as_nanos() as u64;
        stats.verdicts += (out.verdicts.len() - verdicts) as u64;
    }

    fn serve_shared(
        &mut self,
        plans: &Plans,
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
        let places = whole.places(parsed);
        let bytes_max = allowance.bytes_max;
        let templates = &plans.shared.templates;
        for (subscription, list, template) in found.iter() {
            let kind = templates.kind(template);
            // A frame alone is nothing to deliver; where nothing is written, nodes that are not there are missed here.
            if (kind.may_be_empty || !allowance.writes)
                && !is_delivered(&source, templates.get(template), found.list(list))
            {
                continue;
            }
            let deliver = allowance.deliver(kind.deliver);
            if deliver.is_condition() {
                let delivery = whole.delivery(subscription, deliver, &mut out.fragments);
                out.deliveries.push(delivery);
                continue;
            }
            if deliver == Deliver::Nodes {
                let nodes = returned(&source, templates.get(template), found.list(list));
                let is_stopped = did(nodes.len() as u64 + 1);
                match allowance.check_nodes(nodes) {
                    Ok(nodes) => out.deliver_nodes(subscription, &places, &nodes),
                    Err(_) => out.verdicts.push((subscription, Verdict::TooLong { bytes_max })),
                }
                if is_stopped {
                    return Ok(());
                }
                before.check(out, whole, allowance)?;
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

    /// Appends the numbers of the queries that hold, ascending, where whether they hold is all that is asked; and to the
    /// output those of which it cannot be told. They are the subscriptions of gates, or the queries themselves.
    pub(super) fn match_queries(
        &mut self,
        (view, plans): (View<'_>, Option<&Plans>),
        parsed: Parsed<'_>,
        allowance: &Allowance,
        numbers: &mut Vec<QueryNumber>,
        out: &mut Output,
        stats: &mut Stats,
    ) {
        self.undecided.clear();
        self.gate.allow(allowance.cache_bytes_max, allowance.message_steps_max);
        let first = numbers.len();
        self.gate.run(view, parsed, numbers, &mut self.undecided, stats);
        let gates = plans.map(|plans| &plans.gates).filter(|gates| !gates.are_own());
        if let Some(gates) = gates {
            let found = &mut numbers[first..];
            found.iter_mut().for_each(|number| *number = gates.subscription_of(*number));
            found.sort_unstable();
        }
        let before = out.verdicts.len();
        let owner = |gate| gates.map_or(gate, |gates| gates.subscription_of(gate));
        out.verdicts.extend(self.undecided.iter().map(|(gate, verdict)| (owner(gate), verdict)));
        out.verdicts[before..].sort_unstable_by_key(|&(number, _)| number);
        stats.matches += (numbers.len() - first) as u64;
        stats.verdicts += (out.verdicts.len() - before) as u64;
    }

    /// Finds the subscriptions whose gate holds.
    fn find_candidates(
        &mut self,
        plans: &Plans,
        parsed: Parsed<'_>,
        allowance: &Allowance,
        out: &mut Output,
        stats: &mut Stats,
    ) {
        self.candidates.clear();
        self.stepped.clear();
        if !plans.has_gated() {
            return;
        }
        self.undecided.clear();
        let parts = if plans.shared.len() == 0 { 1 } else { 2 };
        self.gate.allow(allowance.cache_bytes_max / parts, allowance.message_steps_max);
        let (view, candidates) = (View::of(plans.gates.automaton()), &mut self.candidates);
        self.gate.run(view, parsed, candidates, &mut self.undecided, stats);
        let owner = |gate: QueryNumber| plans.gates.subscription_of(gate);
        let is_stepped = |number: SubscriptionNumber| {
            matches!(plans.kind(number), WayKind::Active(FrozenWay::Stepped(..)))
        };
        candidates.iter_mut().for_each(|number| *number = owner(*number));
        for (gate, verdict) in self.undecided.iter() {
            let number = owner(gate);
            // Where it could not be told, it may be so.
            if is_stepped(number) {
                candidates.push(number);
            } else {
                out.verdicts.push((number, verdict));
            }
        }
        candidates.sort_unstable();
        if plans.has_stepped() {
            self.stepped.extend(candidates.iter().copied().filter(|&number| is_stepped(number)));
            candidates.retain(|&number| !is_stepped(number));
        }
    }

    /// The elements that some of the plans select; no list where a node is no element.
    pub(super) fn select(
        &mut self,
        plans: &Plans,
        parsed: Parsed<'_>,
        wanted: &[SubscriptionNumber],
        allowance: &Allowance,
    ) -> Vec<Selected> {
        let (mut out, mut stats) = (Output::default(), Stats::default());
        let affected: HashSet<SubscriptionNumber> =
            match self.run_shared(plans, parsed, allowance, &mut stats) {
                Ok(()) => HashSet::new(),
                Err(Overflow) => {
                    self.shared.affected(&plans.shared, plans.base_left()).into_iter().collect()
                }
            };
        self.candidates.clear();
        if wanted.iter().any(|&number| plans.kind(number) != WayKind::Active(FrozenWay::Shared)) {
            self.find_candidates(plans, parsed, allowance, &mut out, &mut stats);
        }
        let Parsed { message, names, .. } = parsed;
        let Serving { shared, candidates, programs, .. } = self;
        let mut session = (!candidates.is_empty()).then(|| Session::new(message, names, programs));
        let mut steps = MessageSteps::new(allowance.message_steps_max);
        let mut gate_steps = stats.steps;
        let mut selected = Vec::with_capacity(wanted.len());
        for &number in wanted {
            let before = steps.taken();
            let elements = match (plans.way(number), &mut session) {
                (Way::Shared, _) if affected.contains(&number) => Err(Verdict::OverBudget),
                (Way::Shared, _) => {
                    Ok(Some(shared.found().of(number).map_or_else(Vec::new, <[u32]>::to_vec)))
                }
                (Way::Selection(expression, _), Some(session))
                    if candidates.binary_search(&number).is_ok() =>
                {
                    let mut elements = Some(Vec::new());
                    let answer = steps.evaluate(session, allowance, |session, bounds| {
                        let nodes = session.nodes(expression, bounds)?;
                        let element = |node: &NodeRef| match *node {
                            NodeRef::Element(element) => Some(element),
                            _ => None,
                        };
                        elements = nodes.iter().map(element).collect();
                        Ok(!nodes.is_empty())
                    });
                    answer.map(|_| elements)
                }
                _ => match out.verdicts.iter().find(|&&(undecided, _)| undecided == number) {
                    Some((_, verdict)) => Err(verdict.clone()),
                    None => Ok(Some(Vec::new())),
                },
            };
            let steps = steps.taken() - before;
            let gate_steps = std::mem::take(&mut gate_steps);
            selected.push(Selected { elements, steps, gate_steps });
        }
        selected
    }

    /// Serves the subscriptions whose gate holds, in any order; says how many steps they took.
    fn serve_gated(
        &mut self,
        plans: &Plans,
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
        let places = whole.places(parsed);
        for &subscription in &self.candidates {
            let (asked, taken) = ((subscription, plans.way(subscription)), steps.taken());
            serve_one(asked, &mut session, allowance, &mut steps, (whole, &places), out)?;
            if steps.taken() > taken {
                self.work.push((subscription, steps.taken() - taken));
            }
            before.check(out, whole, allowance)?;
        }
        Ok(steps.taken())
    }

    /// Serves the subscriptions in the order of their ids, as long as there is room for their results,
    /// and there are steps to find them; says how many they took.
    fn serve_in_order(
        &mut self,
        audience: Audience<'_>,
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
        self.ordered.begin(audience, found, &self.candidates);
        let with = Service {
            plans: audience.plans,
            source,
            places: whole.places(parsed),
            factory: &mut self.factory,
            session,
            allowance,
            steps: &mut steps,
            work: &mut self.work,
        };
        self.ordered.serve(with, whole, out);
        steps.taken()
    }
}

/// What a plan selects of a message.
pub(super) struct Selected {
    /// The elements, in document order.
    pub(super) elements: Result<Option<Vec<u32>>, Verdict>,
    /// Steps of its evaluation.
    pub(super) steps: u64,
    /// Steps of the gates of all plans, said of the first.
    pub(super) gate_steps: u64,
}

/// What an output held before a message.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) deliveries: usize,
    pub(super) places: usize,
    pub(super) verdicts: usize,
    bytes: usize,
    ends: usize,
}

impl Before {
    pub(super) fn of(out: &Output) -> Self {
        Before {
            deliveries: out.deliveries.len(),
            places: out.places.len(),
            verdicts: out.verdicts.len(),
            bytes: out.fragments.bytes.len(),
            ends: out.fragments.ends.len(),
        }
    }

    /// Bytes that the deliveries since then take, equal results once, every place, the message itself left out.
    pub(super) fn result_bytes(self, out: &Output, whole: &Whole<'_>) -> usize {
        let fragments = self.ends as u32..out.fragments.ends.len() as u32;
        let fragments = fragments.filter(|&fragment| whole.fragment != Some(fragment));
        let distinct: HashSet<&[u8]> =
            fragments.map(|fragment| out.fragments.get(fragment)).collect();
        let rows = (out.deliveries.len() - self.deliveries) * DELIVERY_BYTES;
        let places = (out.places.len() - self.places) * PLACE_BYTES;
        rows + places + distinct.into_iter().map(<[u8]>::len).sum::<usize>()
    }

    /// Counts the deliveries since then, which are in order: as work a step for each that is written, and for each
    /// [`BYTES_A_STEP`] of it.
    pub(super) fn count(self, out: &Output, writes: bool, stats: &mut Stats, work: &mut WorkSums) {
        let ends = &out.fragments.ends;
        let deliveries = &out.deliveries[self.deliveries..];
        let (mut last, mut all) = (None, 0);
        for &Delivery { subscription, fragment, .. } in deliveries {
            let bytes = match fragment {
                NO_FRAGMENT => 0,
                0 => ends[0],
                at => ends[at as usize] - ends[at as usize - 1],
            };
            stats.matches += u64::from(last.replace(subscription) != Some(subscription));
            all += bytes;
            if writes {
                work.add(subscription, (1 + bytes / BYTES_A_STEP) as u64);
            }
        }
        stats.result_bytes += all as u64;
        stats.result_bytes += ((out.places.len() - self.places) * PLACE_BYTES) as u64;
        if writes {
            stats.deliveries += deliveries.len() as u64;
        }
    }

    fn restore(self, out: &mut Output) {
        out.deliveries.truncate(self.deliveries);
        out.places.truncate(self.places);
        out.verdicts.truncate(self.verdicts);
        out.fragments.bytes.truncate(self.bytes);
        out.fragments.ends.truncate(self.ends);
    }

    /// Whether the results are surely no longer than they may be: equal ones that were written more
    /// than once are counted more than once here, and deliveries of the message as results.
    #[inline]
    fn check(self, out: &Output, whole: &Whole<'_>, allowance: &Allowance) -> Result<(), NotAll> {
        let bytes = out.fragments.bytes.len() - self.bytes - whole.len();
        let rows = (out.deliveries.len() - self.deliveries) * DELIVERY_BYTES;
        let places = (out.places.len() - self.places) * PLACE_BYTES;
        let is_within = bytes + rows + places <= allowance.message_bytes_max;
        if is_within { Ok(()) } else { Err(NotAll) }
    }
}

/// Serves one subscription whose gate holds.
fn serve_one(
    (subscription, way): (SubscriptionNumber, &Way),
    session: &mut Session<'_>,
    allowance: &Allowance,
    steps: &mut MessageSteps,
    (whole, places): (&mut Whole<'_>, &Places<'_>),
    out: &mut Output,
) -> Result<(), NotAll> {
    let first = out.fragments.ends.len();
    let fragments = &mut out.fragments;
    let mut nodes = Vec::new();
    let mut evaluate = |ask: &mut dyn FnMut(&mut Session<'_>, Bounds) -> Result<bool, RunError>| {
        steps.evaluate(session, allowance, ask)
    };
    let outcome = match way {
        Way::Unsubscribed | Way::Shared | Way::Stepped(..) => Ok(false),
        Way::Filter(_) => Ok(true),
        Way::Damaged => Err(Verdict::Damaged),
        Way::Program(program, Deliver::Fragment) if allowance.writes => {
            evaluate(&mut |session, bounds| session.run(program, bounds, fragments))
        }
        Way::Program(_, Deliver::Nodes) | Way::Selection(_, Deliver::Nodes) if allowance.writes => {
            evaluate(&mut |session, bounds| {
                nodes = allowance.check_nodes(way.nodes(session, bounds)?)?;
                Ok(!nodes.is_empty())
            })
        }
        Way::Program(program, Deliver::Fragment | Deliver::Nodes) => {
            evaluate(&mut |session, bounds| session.is_delivered(program, bounds))
        }
        Way::Program(program, _) => evaluate(&mut |session, bounds| session.holds(program, bounds)),
        Way::Selection(expression, _) if allowance.writes => {
            evaluate(&mut |session, bounds| session.select(expression, bounds, fragments))
        }
        Way::Selection(expression, _) => {
            evaluate(&mut |session, bounds| session.selects(expression, bounds))
        }
    };
    let deliver = allowance.deliver(way.deliver());
    match outcome {
        Ok(true) if deliver.is_condition() => {
            out.deliveries.push(whole.delivery(subscription, deliver, fragments));
        }
        Ok(_) if deliver == Deliver::Nodes => out.deliver_nodes(subscription, places, &nodes),
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
