//! One message against an index: door, path matching, post-processing, collection.
//!
//! A [`Worker`] owns everything that changes while it runs (trees, caches, bitmaps), so an index or a
//! snapshot is shared by any number of workers without a lock on the way.

use crate::collect::Collector;
use crate::conditions::PostProcessor;
use crate::content::run::{Contents, End, Setting};
use crate::dfa::{DfaState, LazyDfa};
use crate::door::{Door, Limits, Parsed, Refusal};
use crate::index::IndexState;
use crate::names::NameTable;
use crate::nfa::{ExpressionId, Nfa, PlanId, QueryNumber};
use crate::plain::RunTimeStack;
use crate::snapshot::Snapshot;
use crate::tree::Message;
use crate::xpath::{self, OverBudget};
use std::ops::Range;
use std::time::Instant;

/// How a worker runs the automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What a message may cost.
    pub limits: Limits,
    /// Bytes that the lazy DFA of one automaton may hold; 0 runs the plain NFA always.
    pub cache_bytes_max: usize,
    /// Steps that the evaluation of one expression on one message may take.
    pub steps_max: u64,
}

/// Counters of a batch; see `pathcast.model.BatchStats`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "described once, in the Python class of the same fields")]
pub struct Stats {
    pub messages: u64,
    pub bytes: u64,
    pub refused: u64,
    pub matches: u64,
    pub nodes: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cache_resets: u64,
    pub nfa_messages: u64,
    pub evaluations: u64,
    pub verdicts: u64,
    pub parsing_ns: u64,
    pub matching_ns: u64,
    pub collecting_ns: u64,
}

impl Stats {
    /// Adds the counters of another worker.
    pub fn add(&mut self, other: &Stats) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.matches += other.matches;
        self.nodes += other.nodes;
        self.cache_hits += other.cache_hits;
        self.cache_misses += other.cache_misses;
        self.cache_resets += other.cache_resets;
        self.nfa_messages += other.nfa_messages;
        self.evaluations += other.evaluations;
        self.verdicts += other.verdicts;
        self.parsing_ns += other.parsing_ns;
        self.matching_ns += other.matching_ns;
        self.collecting_ns += other.collecting_ns;
    }
}

/// What a message is matched against.
pub trait Target {
    /// Calls `f` with the automata of now, which stay as they are until it returns.
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T;
}

/// The automata of one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    base: Option<&'v Snapshot>,
    delta: Option<&'v crate::nfa::growing::GrowingNfa>,
    removed: Option<&'v [u64]>,
    /// What the caches of base and delta were compiled from.
    generation: u64,
    revision: u64,
}

impl<'v> View<'v> {
    /// A snapshot alone.
    pub fn of_snapshot(snapshot: &'v Snapshot) -> Self {
        View { base: Some(snapshot), delta: None, removed: None, generation: 1, revision: 1 }
    }

    /// A changing index.
    pub fn of_index(state: &'v IndexState) -> Self {
        View {
            base: state.base().map(|base| &**base),
            delta: (!state.delta().is_empty()).then(|| state.delta()),
            removed: state.removed(),
            generation: state.generation,
            revision: state.revision,
        }
    }

    fn needs_full_tree(&self) -> bool {
        self.base.is_some_and(Snapshot::needs_full_tree)
            || self.delta.is_some_and(Nfa::needs_full_tree)
    }

    fn number_count(&self) -> usize {
        self.base.map_or(0, Snapshot::len) + self.delta.map_or(0, |delta| delta.len())
    }
}

/// Everything one thread needs to match messages.
#[derive(Debug)]
pub struct Worker {
    door: Door,
    engine: Engine,
    /// Counters since they were last taken.
    pub stats: Stats,
    /// The queries on which the last message used up its steps, ascending. They are not among the
    /// satisfied ones.
    pub over_budget: Vec<QueryNumber>,
}

/// A worker without its door.
#[derive(Debug)]
struct Engine {
    cache_bytes_max: usize,
    steps_max: u64,
    base: Runner,
    delta: Runner,
    post: PostProcessor,
    evaluation: xpath::Scratch,
    collector: Collector,
    /// Queries whose expression went past its budget.
    over_budget: Collector,
}

impl Worker {
    /// A worker with empty caches.
    pub fn new(options: Options) -> Self {
        Worker {
            door: Door::new(options.limits),
            engine: Engine {
                cache_bytes_max: options.cache_bytes_max,
                steps_max: options.steps_max,
                base: Runner::default(),
                delta: Runner::default(),
                post: PostProcessor::default(),
                evaluation: xpath::Scratch::default(),
                collector: Collector::default(),
                over_budget: Collector::default(),
            },
            stats: Stats::default(),
            over_budget: Vec::new(),
        }
    }

    /// Appends the numbers of the queries that the message satisfies, ascending.
    ///
    /// Errors: the door's refusal; nothing is appended then.
    pub fn match_message(
        &mut self,
        target: &impl Target,
        bytes: &[u8],
        encoding: Option<&str>,
        numbers: &mut Vec<QueryNumber>,
    ) -> Result<(), Refusal> {
        self.stats.messages += 1;
        self.stats.bytes += bytes.len() as u64;
        self.over_budget.clear();
        loop {
            let started = Instant::now();
            let parsed = self.door.parse(bytes, encoding);
            self.stats.parsing_ns += started.elapsed().as_nanos() as u64;
            let parsed = parsed.inspect_err(|_| self.stats.refused += 1)?;
            let (engine, over_budget) = (&mut self.engine, &mut self.over_budget);
            let (stats, is_full) = (&mut self.stats, parsed.message.tree.is_full);
            let needs_full_tree = target.with(|view| {
                let needs_full_tree = view.needs_full_tree();
                if is_full || !needs_full_tree {
                    engine.run(view, parsed, numbers, over_budget, stats);
                }
                needs_full_tree
            });
            // When the first query comes that sees more than elements, attributes and text, the
            // message at hand is read again; those that follow are read rightly at once.
            self.door.keep_full_tree(needs_full_tree);
            if is_full || !needs_full_tree {
                return Ok(());
            }
        }
    }
}

impl Engine {
    fn run(
        &mut self,
        view: View<'_>,
        Parsed { message, names }: Parsed<'_>,
        numbers: &mut Vec<QueryNumber>,
        over_budget: &mut Vec<QueryNumber>,
        stats: &mut Stats,
    ) {
        let started = Instant::now();
        let tree = message.tree;
        stats.nodes += (tree.len() + tree.attribute_name.len()) as u64;
        self.collector.reserve(view.number_count());
        self.over_budget.reserve(view.number_count());
        self.post.begin_message();
        let mut run = Run {
            message,
            names,
            post: &mut self.post,
            session: None,
            scratch: Some(&mut self.evaluation),
            collector: &mut self.collector,
            over_budget: &mut self.over_budget,
            stats,
            cache_bytes_max: self.cache_bytes_max,
            steps_max: self.steps_max,
            offset: 0,
        };
        let mut used_nfa = false;
        if let Some(base) = view.base {
            self.base.follow(view.generation, 0);
            used_nfa |= self.base.run(&base.nfa(), &mut run);
        }
        if let Some(delta) = view.delta {
            let offset = view.base.map_or(0, Snapshot::len) as QueryNumber;
            self.delta.follow(view.revision, offset);
            used_nfa |= self.delta.run(delta, &mut run);
        }
        let matched_at = Instant::now();
        let before = numbers.len();
        self.collector.drain_into(numbers, view.removed);
        self.over_budget.drain_into(over_budget, view.removed);
        stats.verdicts += over_budget.len() as u64;
        stats.nfa_messages += u64::from(used_nfa);
        stats.matches += (numbers.len() - before) as u64;
        stats.matching_ns += (matched_at - started).as_nanos() as u64;
        stats.collecting_ns += matched_at.elapsed().as_nanos() as u64;
    }
}

/// What a message lends to the automata that it is run through.
struct Run<'m: 'w, 'w> {
    message: Message<'m>,
    names: &'m NameTable,
    post: &'w mut PostProcessor,
    /// Exact evaluation of the message, prepared when the first expression asks; until then, what it
    /// works with.
    session: Option<xpath::Session<'w>>,
    scratch: Option<&'w mut xpath::Scratch>,
    collector: &'w mut Collector,
    over_budget: &'w mut Collector,
    stats: &'w mut Stats,
    cache_bytes_max: usize,
    steps_max: u64,
    /// What the numbers of the automaton at hand are moved up by.
    offset: QueryNumber,
}

/// Elements that a DFA state must serve on average, or the cache is not worth its making.
const ELEMENTS_PER_STATE_MIN: u64 = 10;
/// Messages that go through the plain NFA before a cache that thrashed is tried again.
const PLAIN_MESSAGES: u32 = 256;
/// Pairs of plan and element that the plain NFA gathers before it has them checked: enough that a
/// plan sees its elements together and climbs to their common ancestors once.
const CANDIDATES_MAX: usize = 1 << 16;

/// One automaton's caches and marks.
#[derive(Debug, Default)]
struct Runner {
    dfa: LazyDfa,
    contents: Contents,
    stack: RunTimeStack,
    /// Version of the automaton that the caches belong to.
    version: u64,
    offset: QueryNumber,
    elements_since_reset: u64,
    plain_messages_left: u32,
    marks: Marks,
    reached: Vec<DfaState>,
    /// Distinct DFA states of the message, in order of first sight.
    distinct: Vec<DfaState>,
    grouping: Grouping,
    ranges: Vec<Range<QueryNumber>>,
    plans: Vec<PlanId>,
    /// Blocks of plans and where their paths end.
    block_ends: Vec<End>,
    /// Plans that hold.
    held: Vec<PlanId>,
    /// Plans to be checked one by one, and where.
    candidates: Vec<(PlanId, u32)>,
    ends: Vec<u32>,
}

/// Marks of one message, undone by counting on.
#[derive(Debug, Default)]
struct Marks {
    now: u32,
    dfa_states: Vec<u32>,
    blocks: Vec<u32>,
    plans: Vec<u32>,
    expressions: Vec<u32>,
    /// What came of the expressions that are marked.
    outcomes: Vec<Result<bool, OverBudget>>,
}

/// The elements of a message by DFA state.
#[derive(Debug, Default)]
struct Grouping {
    /// Per DFA state: its place in `ends`, where marked.
    group_of: Vec<u32>,
    ends: Vec<u32>,
    elements: Vec<u32>,
}

impl Runner {
    /// Drops what belongs to an earlier version of the automaton.
    fn follow(&mut self, version: u64, offset: QueryNumber) {
        if self.version != version || self.offset != offset {
            self.version = version;
            self.offset = offset;
            self.dfa.reset(offset);
            self.contents = Contents::default();
            self.stack = RunTimeStack::default();
            self.elements_since_reset = 0;
            self.plain_messages_left = 0;
            // The marks stay: they are of earlier messages and so mean nothing.
        }
    }

    /// Runs a message and puts what it satisfies into the collector. True if the plain NFA did it.
    fn run<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) -> bool {
        self.marks.begin(nfa.plan_count(), nfa.expression_count());
        run.offset = self.offset;
        let is_plain = run.cache_bytes_max == 0 || self.plain_messages_left > 0;
        if !is_plain && self.run_dfa(nfa, run) {
            return false;
        }
        self.plain_messages_left = self.plain_messages_left.saturating_sub(1);
        self.run_nfa(nfa, run);
        true
    }

    /// False when the cache went past its bound and was dropped.
    fn run_dfa<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) -> bool {
        let tree = run.message.tree;
        let known = self.dfa.len() as u64;
        self.elements_since_reset += tree.len() as u64;
        let misses = self.dfa.run(nfa, run.names, tree, &mut self.reached, run.cache_bytes_max);
        let Some(misses) = misses else {
            run.stats.cache_misses += self.dfa.len() as u64 - known;
            run.stats.cache_resets += 1;
            if self.elements_since_reset < ELEMENTS_PER_STATE_MIN * self.dfa.len() as u64 {
                self.plain_messages_left = PLAIN_MESSAGES;
            }
            self.forget();
            return false;
        };
        run.stats.cache_misses += misses;
        run.stats.cache_hits += tree.len() as u64 - misses;
        self.collect(run.collector);
        if nfa.plan_count() > 0 {
            self.postprocess(nfa, run);
            if self.dfa.memory() + self.contents.memory() > run.cache_bytes_max {
                run.stats.cache_resets += 1;
                self.forget();
            }
        }
        true
    }

    /// Drops the caches.
    fn forget(&mut self) {
        self.dfa.reset(self.offset);
        self.contents = Contents::default();
        self.elements_since_reset = 0;
    }

    /// Adds what the reached DFA states accept without conditions, each block once.
    fn collect(&mut self, collector: &mut Collector) {
        let marks = &mut self.marks;
        marks.dfa_states.resize(self.dfa.len(), 0);
        marks.blocks.resize(self.dfa.block_count(), 0);
        self.distinct.clear();
        for &state in &self.reached {
            if !mark(&mut marks.dfa_states, state, marks.now) {
                continue;
            }
            self.distinct.push(state);
            for (id, block) in self.dfa.accepting(state) {
                if mark(&mut marks.blocks, id, marks.now) {
                    collector.add_words(&block.words);
                }
            }
        }
    }

    /// Selection Postponed (paper 003, section 5.2): the plans whose main path ends somewhere are
    /// decided together, by their conditions; the few that are no conjunctions one by one.
    fn postprocess<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) {
        self.block_ends.clear();
        if self.distinct.iter().all(|&state| self.dfa.planned(state).is_empty()) {
            return;
        }
        self.grouping.group(&self.distinct, &self.reached, self.dfa.len());
        for (group, &state) in self.distinct.iter().enumerate() {
            for &block in self.dfa.planned(state) {
                let ends = self.grouping.elements(group).iter();
                self.block_ends.extend(ends.map(|&element| End { block, element }));
            }
        }
        let mut setting = Setting {
            message: run.message,
            names: run.names,
            post: &mut *run.post,
            collector: &mut *run.collector,
            plans: &mut self.marks.plans,
            now: self.marks.now,
            held: &mut self.held,
            offset: self.offset,
        };
        let candidates = &mut self.candidates;
        if !self.contents.run(nfa, &self.dfa, &self.block_ends, &mut setting, candidates) {
            for end in &self.block_ends {
                let plans = &self.dfa.block(end.block).plans;
                candidates.extend(plans.iter().map(|&plan| (plan, end.element)));
            }
        }
        let (ranges, marks) = (&mut self.ranges, &mut self.marks);
        check_candidates(nfa, candidates, &mut self.ends, run, marks, ranges);
        for plan in self.held.drain(..) {
            accept_plan(nfa, plan, run, marks, ranges);
        }
        self.drain_ranges(run.collector);
    }

    fn run_nfa<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) {
        let (ranges, plans, marks) = (&mut self.ranges, &mut self.plans, &mut self.marks);
        let (ends, candidates) = (&mut self.ends, &mut self.candidates);
        self.stack.run(nfa, run.names, run.message.tree, |element, state| {
            nfa.accepted(state, ranges);
            nfa.plans(state, plans);
            candidates.extend(plans.drain(..).map(|plan| (plan, element)));
            if candidates.len() >= CANDIDATES_MAX {
                check_candidates(nfa, candidates, ends, run, marks, ranges);
            }
            for range in ranges.drain(..) {
                run.collector.add_range(&range, self.offset);
            }
        });
        check_candidates(nfa, candidates, ends, run, marks, ranges);
        self.drain_ranges(run.collector);
    }

    fn drain_ranges(&mut self, collector: &mut Collector) {
        for range in self.ranges.drain(..) {
            collector.add_range(&range, self.offset);
        }
    }
}

impl Marks {
    /// Makes all marks those of an earlier message.
    fn begin(&mut self, plans: usize, expressions: usize) {
        if self.now == u32::MAX {
            *self = Marks::default();
        }
        self.now += 1;
        if self.plans.len() < plans {
            self.plans.resize(plans, 0);
        }
        if self.expressions.len() < expressions {
            self.expressions.resize(expressions, 0);
            self.outcomes.resize(expressions, Ok(false));
        }
    }
}

/// Checks a plan at elements where its main path ends, unless it is known to hold; if it does, adds
/// what follows to `ranges`.
fn check_plan<N: Nfa>(
    nfa: &N,
    plan: PlanId,
    ends: &[u32],
    run: &mut Run<'_, '_>,
    marks: &mut Marks,
    ranges: &mut Vec<Range<QueryNumber>>,
) {
    let is_known = marks.plans[plan as usize] == marks.now;
    if is_known || !nfa.plan(plan).holds(run.message, run.names, ends, run.post) {
        return;
    }
    marks.plans[plan as usize] = marks.now;
    accept_plan(nfa, plan, run, marks, ranges);
}

/// Adds the queries of a plan that holds to `ranges`, if its expression holds too.
fn accept_plan<N: Nfa>(
    nfa: &N,
    plan: PlanId,
    run: &mut Run<'_, '_>,
    marks: &mut Marks,
    ranges: &mut Vec<Range<QueryNumber>>,
) {
    let outcome = nfa.expression(plan).map_or(Ok(true), |id| evaluate(nfa, id, run, marks));
    match outcome {
        Ok(true) => nfa.plan_numbers(plan, ranges),
        Ok(false) => {}
        Err(OverBudget { .. }) => {
            let known = ranges.len();
            nfa.plan_numbers(plan, ranges);
            for range in ranges.drain(known..) {
                run.over_budget.add_range(&range, run.offset);
            }
        }
    }
}

/// Whether an expression is true of the message; evaluated once, however many plans ask.
fn evaluate<N: Nfa>(
    nfa: &N,
    id: ExpressionId,
    run: &mut Run<'_, '_>,
    marks: &mut Marks,
) -> Result<bool, OverBudget> {
    if mark(&mut marks.expressions, id, marks.now) {
        run.stats.evaluations += 1;
        let (message, names, steps_max) = (run.message, run.names, run.steps_max);
        let session = run.session.get_or_insert_with(|| {
            let scratch = run.scratch.take().expect("a message has one session");
            xpath::Session::new(message, names, scratch)
        });
        marks.outcomes[id as usize] =
            nfa.with_expression(id, |expression| session.holds(expression, steps_max));
    }
    marks.outcomes[id as usize]
}

/// Checks plan by plan what has been gathered, and empties it. `ends` is scratch space.
fn check_candidates<N: Nfa>(
    nfa: &N,
    candidates: &mut Vec<(PlanId, u32)>,
    ends: &mut Vec<u32>,
    run: &mut Run<'_, '_>,
    marks: &mut Marks,
    ranges: &mut Vec<Range<QueryNumber>>,
) {
    candidates.sort_unstable();
    candidates.dedup();
    for plan in candidates.chunk_by(|a, b| a.0 == b.0) {
        ends.clear();
        ends.extend(plan.iter().map(|&(_, element)| element));
        check_plan(nfa, plan[0].0, ends, run, marks, ranges);
    }
    candidates.clear();
}

/// Sets a mark; false if it was set.
#[inline]
fn mark(marks: &mut [u32], at: u32, now: u32) -> bool {
    std::mem::replace(&mut marks[at as usize], now) != now
}

impl Grouping {
    /// Sorts the elements by DFA state, keeping document order (a counting sort).
    fn group(&mut self, distinct: &[DfaState], reached: &[DfaState], states: usize) {
        self.group_of.resize(states, 0);
        for (group, &state) in distinct.iter().enumerate() {
            self.group_of[state as usize] = group as u32;
        }
        self.ends.clear();
        self.ends.resize(distinct.len() + 1, 0);
        for &state in reached {
            self.ends[self.group_of[state as usize] as usize + 1] += 1;
        }
        for group in 0..distinct.len() {
            self.ends[group + 1] += self.ends[group];
        }
        // Filling moves each start to its group's end, which is the next group's start.
        self.elements.resize(reached.len(), 0);
        for (element, &state) in reached.iter().enumerate() {
            let next = &mut self.ends[self.group_of[state as usize] as usize];
            self.elements[*next as usize] = element as u32;
            *next += 1;
        }
    }

    fn elements(&self, group: usize) -> &[u32] {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.elements[start as usize..self.ends[group] as usize]
    }
}
