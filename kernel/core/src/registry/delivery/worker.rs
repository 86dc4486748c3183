//! One message against all subscriptions: those without steps on the message as it came, then series after series.

use super::dissemination::{Dissemination, State};
use super::plans::WayKind;
use super::series::{Series, SeriesNumber};
use super::serving::{Allowance, Audience, Before, Options, Output, Serving, Whole};
use super::walk::{Came, MessageBudget, Text, Tools, Walk};
use crate::engine::counters::Stats;
use crate::engine::interrupt::did;
use crate::engine::plans::shared::SubscriptionNumber;
use crate::engine::routing::RoutingTable;
use crate::engine::verdicts::Verdict;
use crate::engine::work::{QueryWork, WorkSums};
use crate::registry::batch::Arrival;
use crate::registry::snapshot::Snapshot;
use crate::registry::snapshot::parts::FrozenWay;
use crate::registry::target::View;
use crate::xml::parser::{Door, Parsed, Refusal};
use rustc_hash::FxHashSet;
use std::collections::HashMap;
use std::sync::RwLockReadGuard;
use std::time::Instant;

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

/// What messages are matched against.
#[derive(Clone, Copy, Debug)]
pub enum Target<'t> {
    /// Queries that do not change.
    Fixed(View<'t>),
    /// Subscriptions that come and go.
    Changing(&'t Dissemination),
}

impl<'t> From<&'t Dissemination> for Target<'t> {
    fn from(subscriptions: &'t Dissemination) -> Self {
        Target::Changing(subscriptions)
    }
}

impl<'t> From<&'t Snapshot> for Target<'t> {
    fn from(snapshot: &'t Snapshot) -> Self {
        Target::Fixed(snapshot.into())
    }
}

impl<'t> From<&'t RoutingTable> for Target<'t> {
    fn from(table: &'t RoutingTable) -> Self {
        Target::Fixed(table.into())
    }
}

/// Everything one thread needs.
#[derive(Debug)]
pub struct Worker {
    options: Options,
    door: Door,
    serving: Serving,
    /// Caches of the elements of steps, once there are any.
    finder: Option<Serving>,
    /// Caches of series that were asked for.
    series: HashMap<SeriesNumber, Serving>,
    /// That of the state that the caches belong to.
    generation: u64,
    /// Counters since they were last taken.
    pub stats: Stats,
    /// Steps of single subscriptions since they were last taken, those of gates aside.
    work: WorkSums,
    /// Series that were served since then: the gates of no others have steps.
    served: FxHashSet<SeriesNumber>,
    /// Of a message that is matched only.
    matched: Output,
    /// Where elements lie in messages is needed to match them.
    matches_by_spans: bool,
}

impl Worker {
    /// A worker with empty caches.
    pub fn new(options: Options) -> Self {
        Worker {
            door: Door::new(options.limits.clone()),
            serving: Serving::new(&options),
            finder: None,
            series: HashMap::new(),
            generation: 0,
            stats: Stats::default(),
            work: WorkSums::default(),
            served: FxHashSet::default(),
            matched: Output::default(),
            matches_by_spans: false,
            options,
        }
    }

    /// Appends what a message gives to whom. Subscriptions that begin with other steps than were done to it before are
    /// served wrongly.
    ///
    /// Errors: the door's refusal; nothing is appended then.
    pub fn serve(
        &mut self,
        target: &Dissemination,
        bytes: &[u8],
        arrival: Arrival<'_>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        let came = Came { bytes, arrival };
        self.serve_message(target.into(), came, true, &mut Vec::new(), out)
    }

    /// Appends the numbers of the queries that a message satisfies and of the subscriptions that are delivered something,
    /// ascending, without writing what; and calls `undecided` with those of which it cannot be told, ascending. As
    /// [`Worker::serve`] otherwise.
    ///
    /// Errors: the door's refusal; nothing is appended then.
    pub fn match_message(
        &mut self,
        target: Target<'_>,
        bytes: &[u8],
        arrival: Arrival<'_>,
        numbers: &mut Vec<SubscriptionNumber>,
        mut undecided: impl FnMut(SubscriptionNumber, Verdict),
    ) -> Result<(), Refusal> {
        let (mut out, came) = (std::mem::take(&mut self.matched), Came { bytes, arrival });
        let served = self.serve_message(target, came, false, numbers, &mut out);
        numbers.extend(out.deliveries.drain(..).map(|delivery| delivery.subscription));
        out.verdicts.drain(..).for_each(|(number, verdict)| undecided(number, verdict));
        self.matched = out;
        served
    }

    /// Serves a message, or appends the numbers where whether queries hold is all that is asked.
    fn serve_message(
        &mut self,
        target: Target<'_>,
        came: Came<'_>,
        writes: bool,
        numbers: &mut Vec<SubscriptionNumber>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        let (before, steps) = (Before::of(out), self.stats.steps);
        let mut whole = Whole::new(came.bytes);
        self.serving.stepped.clear();
        self.serving.at(came.arrival.time);
        let (state, allowance) = self.with_message(
            target,
            came,
            writes,
            |serving, (view, state), parsed, allowance, stats| match state {
                Some(state) if writes || !state.plans.are_filters() => {
                    serving.serve(state.audience(), parsed, allowance, &mut whole, out, stats);
                }
                state => {
                    let queries = (view, state.map(|state| &state.plans));
                    serving.match_queries(queries, parsed, allowance, numbers, out, stats);
                }
            },
        )?;
        self.work.take_in(&mut self.serving.work, |number| number);
        if let Some(state) = state
            && !self.serving.stepped.is_empty()
        {
            let taken = self.stats.steps - steps;
            let budget = MessageBudget::new(
                allowance.message_steps_max.saturating_sub(taken),
                allowance.message_bytes_max.saturating_sub(before.result_bytes(out, &whole)),
            );
            self.serve_series(&state, came, writes, budget, out);
            out.deliveries[before.deliveries..]
                .sort_unstable_by_key(|d| (d.subscription, d.result));
            out.verdicts[before.verdicts..].sort_unstable_by_key(|&(subscription, _)| subscription);
        }
        before.count(out, writes, &mut self.stats, &mut self.work);
        Ok(())
    }

    /// Serves the subscriptions that have steps and whose gate holds.
    fn serve_series(
        &mut self,
        state: &State,
        came: Came<'_>,
        writes: bool,
        budget: MessageBudget,
        out: &mut Output,
    ) {
        let set = &state.series;
        if self.series.len() > 2 * set.len() {
            self.series.retain(|&number, _| set.get(number).is_some());
        }
        let Worker { options, door, serving, finder, series: caches, stats, work, served, .. } =
            self;
        let stepped = in_order(state, &serving.stepped, came.arrival.done);
        let series = stepped.iter().map(|each| each.series).collect();
        let finder = finder.get_or_insert_with(|| Serving::new(options));
        let mut walk =
            Walk::new(Tools { door, finder, options }, (set, series), came, budget, true);
        for (at, Stepped { number, series, subscriptions }) in stepped.into_iter().enumerate() {
            let text = match after(&mut walk, at) {
                Ok(text) => text,
                Err(verdict) => {
                    stats.verdicts += subscriptions.len() as u64;
                    let undecided = subscriptions.into_iter();
                    out.verdicts.extend(undecided.map(|number| (number, verdict.clone())));
                    continue;
                }
            };
            let bytes = walk.bytes(&text);
            if did(bytes.len() as u64 + 1) {
                break;
            }
            let MessageBudget { steps, result_bytes, .. } = walk.budget;
            let allowance = allowance_of(options, bytes.len(), (steps, result_bytes), writes);
            let (before, taken) = (Before::of(out), stats.steps);
            let mut whole = Whole::restructured(bytes);
            let audience = Audience {
                plans: &series.plans,
                catalogue: state.catalogue(),
                numbers: Some(&series.subscriptions),
            };
            let cache = caches.entry(number).or_insert_with(|| Serving::new(options));
            served.insert(number);
            cache.at(came.arrival.time);
            cache.serve(audience, walk.parsed(&text), &allowance, &mut whole, out, stats);
            work.take_in(&mut cache.work, |number| audience.number(number));
            let spent = before.result_bytes(out, &whole) + whole.len();
            walk.budget.steps = steps.saturating_sub(stats.steps - taken);
            walk.budget.result_bytes = result_bytes.saturating_sub(spent);
            for delivery in &mut out.deliveries[before.deliveries..] {
                delivery.subscription = audience.number(delivery.subscription);
            }
            for place in &mut out.places[before.places..] {
                place.subscription = audience.number(place.subscription);
            }
            for (subscription, _) in &mut out.verdicts[before.verdicts..] {
                *subscription = audience.number(*subscription);
            }
        }
        stats.steps += walk.budget.restructuring_steps;
        stats.parsing_ns += walk.parsing_ns;
    }

    /// The steps of single subscriptions since they were last taken, in any order; counts them.
    pub(super) fn take_work(&mut self, target: Target<'_>) -> Vec<QueryWork> {
        let Worker { work, serving, series: caches, served, .. } = self;
        match target {
            Target::Fixed(view) => work.extend(serving.take_gate_work(view, None)),
            Target::Changing(subscriptions) => {
                let state = subscriptions.state();
                let view = View::of(state.plans.gates.automaton());
                work.extend(serving.take_gate_work(view, Some(&state.plans)));
                for number in std::mem::take(served) {
                    let (Some(cache), Some(series)) =
                        (caches.get_mut(&number), state.series.get(number))
                    else {
                        continue;
                    };
                    let view = View::of(series.plans.gates.automaton());
                    let taken = cache.take_gate_work(view, Some(&series.plans));
                    let number = |(query, steps)| (series.subscriptions[query as usize], steps);
                    work.extend(taken.map(number));
                }
            }
        }
        let work = self.work.take();
        self.stats.work += work.iter().map(|&(_, steps)| steps).sum::<u64>();
        work
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
        let came = Came { bytes, arrival: Arrival::default() };
        self.with_message(
            target.into(),
            came,
            true,
            |serving, (_, state), parsed, allowance, stats| {
                let Some(state) = state else { return };
                if serving.run_shared(&state.plans, parsed, allowance, stats).is_err() {
                    return;
                }
                counts.subscriptions += serving.shared.found().len() as u64;
                if visits {
                    visit(serving, state, counts);
                }
            },
        )
        .map(drop)
    }

    /// Reads a message and calls `f` with it; gives the state of its subscriptions, if they change, and what it may cost.
    fn with_message<'t>(
        &mut self,
        target: Target<'t>,
        Came { bytes, arrival: Arrival { encoding, .. } }: Came<'_>,
        writes: bool,
        mut f: impl FnMut(&mut Serving, (View<'_>, Option<&State>), Parsed<'_>, &Allowance, &mut Stats),
    ) -> Result<(Option<RwLockReadGuard<'t, State>>, Allowance), Refusal> {
        self.stats.messages += 1;
        self.stats.bytes += bytes.len() as u64;
        let Options { message_steps_max, message_result_bytes_max, .. } = self.options;
        let left = (message_steps_max, message_result_bytes_max);
        let allowance = allowance_of(&self.options, bytes.len(), left, writes);
        loop {
            self.door.keep_source_spans(writes || self.matches_by_spans);
            let started = Instant::now();
            let parsed = self.door.parse(bytes, encoding);
            self.stats.parsing_ns += started.elapsed().as_nanos() as u64;
            let parsed = parsed.inspect_err(|_| self.stats.refused += 1)?;
            let tree = parsed.message.tree;
            let (state, view) = match target {
                Target::Fixed(view) => (None, view),
                Target::Changing(subscriptions) => (Some(subscriptions.state()), View::EMPTY),
            };
            let view = state.as_ref().map_or(view, |state| View::of(state.plans.gates.automaton()));
            if let Some(state) = &state
                && self.generation != state.generation
            {
                // What was compiled goes by numbers that mean something else now.
                (self.serving, self.generation) = (Serving::new(&self.options), state.generation);
                self.finder = None;
                self.series.clear();
            }
            let needs_full_tree =
                state.as_ref().map_or(view.needs_full_tree(), |state| state.needs_full_tree());
            self.matches_by_spans = state.as_ref().is_some_and(|state| !state.plans.are_filters());
            let is_ready = (tree.is_full || !needs_full_tree)
                && (tree.has_source_spans || !self.matches_by_spans);
            if is_ready {
                self.stats.nodes += (tree.len() + tree.attribute_name.len()) as u64;
                f(&mut self.serving, (view, state.as_deref()), parsed, &allowance, &mut self.stats);
            }
            // When the first one comes that needs more of a message, the message at hand is read again; those that
            // follow are read rightly at once.
            self.door.keep_full_tree(needs_full_tree);
            if is_ready {
                return Ok((state, allowance));
            }
        }
    }
}

/// What a message of so many bytes may cost, for which so many steps and bytes of results are left.
fn allowance_of(
    options: &Options,
    bytes: usize,
    (steps, result_bytes): (u64, usize),
    writes: bool,
) -> Allowance {
    let allowance = Allowance::new(options, bytes, steps, result_bytes);
    if writes { allowance } else { allowance.of_match() }
}

/// A series, and those of its subscriptions whose gate holds.
struct Stepped<'s> {
    number: SeriesNumber,
    series: &'s Series,
    subscriptions: Vec<SubscriptionNumber>,
}

/// The text that a series is served with, which the door has read.
fn after(walk: &mut Walk<'_>, at: usize) -> Result<Text, Verdict> {
    let text = walk.after(at)?;
    walk.budget.check()?;
    walk.budget.take_text(walk.bytes(&text).len());
    walk.read(&text)?;
    Ok(text)
}

/// Subscriptions by series, without those of fewer steps than were done to the message; series in their order.
fn in_order<'s>(
    state: &'s State,
    subscriptions: &[SubscriptionNumber],
    done: usize,
) -> Vec<Stepped<'s>> {
    let mut found: Vec<(u32, SeriesNumber, SubscriptionNumber)> = Vec::new();
    for &subscription in subscriptions {
        if let WayKind::Active(FrozenWay::Stepped(number, _)) = state.plans.kind(subscription)
            && let Some(series) = state.series.get(number)
            && series.numbers.len() >= done
        {
            found.push((series.rank, number, subscription));
        }
    }
    found.sort_unstable();
    let groups = found.chunk_by(|one, other| one.0 == other.0);
    let stepped = groups.filter_map(|group| {
        let number = group[0].1;
        let subscriptions = group.iter().map(|each| each.2).collect();
        Some(Stepped { number, series: state.series.get(number)?, subscriptions })
    });
    stepped.collect()
}

/// Reads groupSequence-listSequence of every subscription from end to end.
fn visit(serving: &Serving, state: &State, counts: &mut GroupCounts) {
    let found = serving.shared.found();
    for (_, list, template) in found.iter() {
        let template = state.plans.shared.templates.get(template);
        for &bound in found.list(list) {
            counts.groups += 1;
            for target in template.targets() {
                counts.lists += 1;
                counts.nodes += match target.path {
                    None => 1,
                    Some(path) => serving.shared.group(path, bound).len() as u64,
                };
            }
        }
    }
}
