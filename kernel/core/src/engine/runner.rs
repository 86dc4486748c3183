//! One automaton run over one message, with what is compiled for it at run time: the lazy DFA, the
//! predicate index, the run-time stack of the plain NFA.

use crate::engine::collect::Collector;
use crate::engine::conditions::{self, PostProcessor};
use crate::engine::counters::Stats;
use crate::engine::dfa::{BlockId, DfaState, INITIAL, LazyDfa};
use crate::engine::evaluate;
use crate::engine::evaluate::budget::Budget;
use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::nfa::{Nfa, path_of};
use crate::engine::plain::RunTimeStack;
use crate::engine::predicates::run::{Blocks, Contents, Ends, Found, Setting};
use crate::engine::reach::{Reach, is_reached};
use crate::engine::verdicts::UsedUp;
use crate::engine::work::{QueryWork, WorkSums};
use crate::language::query::anchoring::anchored;
use crate::language::query::{NormalPath, Step};
use crate::xml::names::NameTable;
use crate::xml::tree::{Message, NONE};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a message lends to the automata that it is run through.
pub(crate) struct Run<'m: 'w, 'w> {
    pub(crate) message: Message<'m>,
    pub(crate) names: &'m NameTable,
    pub(crate) post: &'w mut PostProcessor,
    /// Exact evaluation of the message, prepared when the first expression asks; until then, what it
    /// works with.
    pub(crate) session: Option<evaluate::Session<'w>>,
    pub(crate) scratch: Option<&'w mut evaluate::Scratch>,
    pub(crate) collector: &'w mut Collector,
    /// Queries whose expression has used up its steps.
    pub(crate) over_budget: &'w mut Collector,
    /// Queries that are undecided because the message has used up its steps; some may be satisfied all the same.
    pub(crate) undecided: &'w mut Collector,
    /// Steps of the message over all queries.
    pub(crate) budget: Budget,
    pub(crate) stats: &'w mut Stats,
    pub(crate) cache_bytes_max: usize,
    pub(crate) steps_max: u64,
    /// What the numbers of the automaton at hand are moved up by.
    pub(crate) offset: QueryNumber,
}

/// Elements that a DFA state must serve on average, or the cache is not worth its making.
const ELEMENTS_PER_STATE_MIN: u64 = 10;
/// Messages that go through the plain NFA before a cache that thrashed is tried again.
const PLAIN_MESSAGES: u32 = 256;
/// Pairs of state and element that the plain NFA gathers before it has the plans of the states checked:
/// enough that a plan sees its elements together and climbs to their common ancestors once.
const CANDIDATES_MAX: usize = 1 << 21;
/// Paths that are kept of plans that are checked one by one.
const PATHS_MAX: usize = 1 << 14;
/// Bytes that the conditions of the plain NFA's plans may occupy, if the cache may not.
const PLAIN_BYTES: usize = 64 << 20;

/// One automaton's caches and marks.
#[derive(Debug, Default)]
pub(crate) struct Runner {
    dfa: LazyDfa,
    contents: Contents,
    plain: Plain,
    /// Version of the automaton that the caches belong to.
    version: u64,
    /// How far an automaton that grows had grown then.
    growth: u64,
    /// Blocks whose plans it has changed.
    stale: Vec<BlockId>,
    offset: QueryNumber,
    elements_since_reset: u64,
    plain_messages_left: u32,
    marks: Marks,
    reached: Vec<DfaState>,
    /// Distinct DFA states of the message, in order of first sight.
    distinct: Vec<DfaState>,
    grouping: Grouping,
    /// Blocks of plans and where their paths end, as parts of the grouped elements.
    runs: Vec<(BlockId, Range<usize>)>,
    conditions: Conditions,
}

/// Decides plans once it is known where their main paths end; lists that keep their memory.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    ranges: Vec<Range<QueryNumber>>,
    undecided: Vec<BlockId>,
    /// Plans that hold.
    held: Vec<PlanId>,
    /// Plans that are no conjunctions and whose conjuncts hold, ascending.
    needing: Vec<PlanId>,
    /// Plans to be checked one by one, and the runs where.
    candidates: Vec<(PlanId, u32)>,
    ends: Vec<u32>,
    /// The paths of plans that have been checked one by one.
    paths: FxHashMap<PlanId, NormalPath<'static>>,
}

/// The plain NFA: its run-time stack, and what is compiled of the plans of its states.
#[derive(Debug, Default)]
struct Plain {
    stack: RunTimeStack,
    /// States with plans, and where they were active.
    active: Vec<(StateId, u32)>,
    blocks: StateBlocks,
    contents: Contents,
    runs: Vec<(BlockId, Range<usize>)>,
    elements: Vec<u32>,
}

/// States of the plain NFA as blocks of plans, numbered as they come.
#[derive(Debug, Default)]
struct StateBlocks {
    numbers: FxHashMap<StateId, BlockId>,
    plans: Vec<PlanId>,
    /// Where the plans of each block end.
    ends: Vec<usize>,
}

impl StateBlocks {
    fn of<N: Nfa>(&mut self, nfa: &N, state: StateId) -> BlockId {
        *self.numbers.entry(state).or_insert_with(|| {
            nfa.plans(state, &mut self.plans);
            self.ends.push(self.plans.len());
            self.ends.len() as BlockId - 1
        })
    }
}

impl Blocks for StateBlocks {
    fn plans(&self, block: BlockId) -> &[PlanId] {
        let start = if block == 0 { 0 } else { self.ends[block as usize - 1] };
        &self.plans[start..self.ends[block as usize]]
    }
}

impl Plain {
    /// Decides the plans of the states that were active; empties the list.
    fn decide<N: Nfa>(
        &mut self,
        nfa: &N,
        conditions: &mut Conditions,
        run: &mut Run<'_, '_>,
        marks: &mut Marks,
    ) {
        self.active.sort_unstable();
        self.runs.clear();
        let mut at = 0;
        for state in self.active.chunk_by(|a, b| a.0 == b.0) {
            let block = self.blocks.of(nfa, state[0].0);
            self.runs.push((block, at..at + state.len()));
            at += state.len();
        }
        self.elements.clear();
        self.elements.extend(self.active.drain(..).map(|(_, element)| element));
        let found = Ends { runs: &self.runs, elements: &self.elements };
        conditions.decide(nfa, &self.blocks, &mut self.contents, found, run, marks);
    }

    /// Forgets what was compiled.
    fn forget(&mut self) {
        (self.blocks, self.contents) = (StateBlocks::default(), Contents::default());
    }
}

impl Conditions {
    /// Decides the plans of blocks together, by their conditions; the few that are no conjunctions one by one.
    pub(crate) fn decide<N: Nfa>(
        &mut self,
        nfa: &N,
        blocks: &impl Blocks,
        contents: &mut Contents,
        found: Ends<'_>,
        run: &mut Run<'_, '_>,
        marks: &mut Marks,
    ) {
        let mut setting = Setting {
            message: run.message,
            names: run.names,
            post: &mut *run.post,
            collector: &mut *run.collector,
            plans: &mut marks.plans,
            now: marks.now,
            held: &mut self.held,
            offset: run.offset,
            reach: nfa.reach(),
        };
        self.undecided.clear();
        let (budget, undecided) = (&mut run.budget, &mut self.undecided);
        let outcome = contents.run(nfa, blocks, found, &mut setting, budget, undecided);
        // Of these nothing is known but that they are worth a look.
        self.needing.clear();
        self.needing.extend(self.held.extract_if(.., |plan| contents.is_needing(*plan)));
        self.needing.iter().for_each(|&plan| marks.plans[plan as usize] = 0);
        self.needing.sort_unstable();
        self.candidates.clear();
        for (at, &(block, _)) in found.runs.iter().enumerate() {
            let plans = match outcome {
                Found::Conjunctions => contents.complex(block),
                Found::Nothing => blocks.plans(block),
            };
            let is_wanted = |plan: &&PlanId| {
                outcome == Found::Nothing
                    || !contents.is_needing(**plan)
                    || self.needing.binary_search(plan).is_ok()
            };
            self.candidates.extend(plans.iter().filter(is_wanted).map(|&plan| (plan, at as u32)));
        }
        self.candidates.sort_unstable();
        let ranges = &mut self.ranges;
        for plan in self.candidates.chunk_by(|a, b| a.0 == b.0) {
            self.ends.clear();
            for &(_, at) in plan {
                let elements = found.runs[at as usize].1.clone();
                self.ends.extend_from_slice(&found.elements[elements]);
            }
            if plan.len() > 1 {
                self.ends.sort_unstable();
                self.ends.dedup();
            }
            if self.paths.len() >= PATHS_MAX {
                self.paths.clear();
            }
            check_plan(nfa, plan[0].0, &self.ends, run, marks, ranges, &mut self.paths);
        }
        for plan in self.held.drain(..) {
            accept_plan(nfa, plan, run, marks, ranges);
        }
        for &block in &self.undecided {
            for &plan in blocks.plans(block) {
                leave_undecided(nfa, plan, run, ranges);
            }
        }
        self.drain_ranges(run);
    }

    fn drain_ranges(&mut self, run: &mut Run<'_, '_>) {
        for range in self.ranges.drain(..) {
            run.collector.add_range(&range, run.offset);
        }
    }
}

/// Marks of one message, undone by counting on.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    now: u32,
    dfa_states: Vec<u32>,
    blocks: Vec<u32>,
    plans: Vec<u32>,
    expressions: Vec<u32>,
    /// States of the plain NFA.
    states: Vec<u32>,
    /// What came of the expressions that are marked.
    outcomes: Vec<Result<bool, UsedUp>>,
    /// Steps by plan, of all messages since they were taken. Plans with one expression have the same queries.
    work: WorkSums,
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
    pub(crate) fn follow(&mut self, version: u64, offset: QueryNumber) {
        if self.version != version || self.offset != offset {
            self.version = version;
            self.offset = offset;
            self.marks.work = WorkSums::default();
            self.drop_caches();
        }
    }

    /// The same for an automaton that grows; works in what it has gained since the last message.
    pub(crate) fn follow_growing(&mut self, nfa: &GrowingNfa, version: u64, offset: QueryNumber) {
        self.follow(version, offset);
        let before = std::mem::replace(&mut self.growth, nfa.growth());
        if before == self.growth {
            return;
        }
        self.plain.forget();
        self.stale.clear();
        match self.dfa.follow(nfa, before, &mut self.stale) {
            Some(growth) => self.contents.grow(&self.stale, growth),
            None => self.drop_caches(),
        }
    }

    fn drop_caches(&mut self) {
        self.dfa.reset(self.offset);
        self.contents = Contents::default();
        self.conditions.paths.clear();
        self.plain = Plain::default();
        self.elements_since_reset = 0;
        self.plain_messages_left = 0;
        // The marks stay: they are of earlier messages and so mean nothing.
    }

    /// Runs a message and puts what it satisfies into the collector. True if the plain NFA did it.
    pub(crate) fn run<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) -> bool {
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

    /// Appends the steps of single queries since they were last taken, each plan's under the lowest number of its queries
    /// that have not left. What was counted for an earlier version of the automaton is nobody's any more.
    pub(crate) fn take_work<N: Nfa>(
        &mut self,
        nfa: &N,
        version: u64,
        removed: Option<&[u64]>,
        work: &mut Vec<QueryWork>,
    ) {
        let plans = self.marks.work.take();
        if self.version != version {
            return;
        }
        let has_left = |number: QueryNumber| {
            let word = removed.and_then(|removed| removed.get(number as usize / 64));
            word.is_some_and(|word| word >> (number % 64) & 1 == 1)
        };
        let mut ranges = Vec::new();
        for (plan, steps) in plans {
            nfa.plan_numbers(plan, &mut ranges);
            let numbers = |range: Range<QueryNumber>| range.map(|number| number + self.offset);
            let first = |range| numbers(range).find(|&number| !has_left(number));
            work.extend(ranges.drain(..).filter_map(first).min().map(|query| (query, steps)));
        }
    }

    /// False when the cache went past its bound and was dropped.
    fn run_dfa<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) -> bool {
        let tree = run.message.tree;
        let known = self.dfa.len() as u64;
        self.elements_since_reset += tree.len() as u64;
        let misses = match nfa.reach() {
            None => self.dfa.run(nfa, run.names, tree, &mut self.reached, run.cache_bytes_max),
            Some(reach) => self.run_until_reached(nfa, reach, run),
        };
        let Some(misses) = misses else {
            run.stats.cache_misses += self.dfa.len() as u64 - known;
            self.forget(run.stats);
            return false;
        };
        run.stats.cache_misses += misses;
        run.stats.cache_hits += tree.len() as u64 - misses;
        if nfa.reach().is_none() {
            self.collect(run.collector);
        }
        if nfa.plan_count() > 0 {
            self.postprocess(nfa, run);
            if self.dfa.memory() + self.contents.memory() > run.cache_bytes_max {
                self.forget(run.stats);
            }
        }
        true
    }

    /// The same as [`LazyDfa::run`] and [`Runner::collect`] for an automaton with targets: what lies below an
    /// element is not looked at if all that could be reached there has been.
    fn run_until_reached<N: Nfa>(
        &mut self,
        nfa: &N,
        reach: &Reach,
        run: &mut Run<'_, '_>,
    ) -> Option<u64> {
        let tree = run.message.tree;
        let (dfa, marks, reached) = (&mut self.dfa, &mut self.marks, &mut self.reached);
        dfa.prepare(nfa, run.names);
        let dead = dfa.dead_state();
        let transitions = dfa.transition_count();
        reached.clear();
        reached.reserve(tree.len());
        self.distinct.clear();
        while let Some(&name) = tree.name.get(reached.len()) {
            let element = reached.len();
            let from = match tree.parent[element] {
                NONE => INITIAL,
                parent => reached[parent as usize],
            };
            let state = dfa.step_by_name(nfa, from, name);
            if dfa.memory() > run.cache_bytes_max {
                return None;
            }
            reached.push(state);
            marks.dfa_states.resize(dfa.len().max(marks.dfa_states.len()), 0);
            if mark(&mut marks.dfa_states, state, marks.now) {
                self.distinct.push(state);
                for (_, block) in dfa.accepting(state) {
                    run.collector.add_words(&block.words);
                }
            }
            let end = tree.element_end[element] as usize;
            if end > element + 1 && dfa.has_reached_below(state, run.collector) {
                if mark(&mut marks.dfa_states, dead, marks.now) {
                    self.distinct.push(dead);
                }
                reached.resize(end, dead);
            }
        }
        reach.conclude(run.collector);
        Some((dfa.transition_count() - transitions) as u64)
    }

    /// Drops the caches, and does without them for a while if they have not been worth their making.
    fn forget(&mut self, stats: &mut Stats) {
        stats.cache_resets += 1;
        if self.elements_since_reset < ELEMENTS_PER_STATE_MIN * self.dfa.len() as u64 {
            self.plain_messages_left = PLAIN_MESSAGES;
        }
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
        self.runs.clear();
        let is_wanted =
            |block: &BlockId| nfa.reach().is_none() || !self.dfa.has_reached(*block, run.collector);
        if !self.distinct.iter().any(|&state| self.dfa.planned(state).iter().any(is_wanted)) {
            return;
        }
        self.grouping.group(&self.distinct, &self.reached, self.dfa.len());
        for (group, &state) in self.distinct.iter().enumerate() {
            let elements = self.grouping.range(group);
            let blocks = self.dfa.planned(state).iter().filter(|block| is_wanted(block));
            self.runs.extend(blocks.map(|&block| (block, elements.clone())));
        }
        let found = Ends { runs: &self.runs, elements: &self.grouping.elements };
        self.conditions.decide(nfa, &self.dfa, &mut self.contents, found, run, &mut self.marks);
    }

    fn run_nfa<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) {
        let (conditions, marks, plain) = (&mut self.conditions, &mut self.marks, &mut self.plain);
        let mut stack = std::mem::take(&mut plain.stack);
        let (mut ranges, mut plans) = (Vec::new(), Vec::new());
        plain.active.clear();
        let most = run.budget.given();
        let is_done = stack.run(nfa, run.names, run.message.tree, most, |element, state| {
            if marks.states.len() <= state as usize {
                marks.states.resize(state as usize + 1, 0);
            }
            // Twice the stamp and one more: the state has plans.
            let mark = &mut marks.states[state as usize];
            if *mark / 2 != marks.now {
                nfa.accepted(state, &mut ranges);
                for range in ranges.drain(..) {
                    run.collector.add_range(&range, run.offset);
                }
                nfa.plans(state, &mut plans);
                *mark = 2 * marks.now + u32::from(!plans.is_empty());
                plans.clear();
            }
            if *mark % 2 == 1 {
                plain.active.push((state, element));
                if plain.active.len() >= CANDIDATES_MAX {
                    plain.decide(nfa, conditions, run, marks);
                }
            }
        });
        plain.stack = stack;
        if !plain.active.is_empty() {
            plain.decide(nfa, conditions, run, marks);
        }
        if plain.contents.memory() > run.cache_bytes_max.max(PLAIN_BYTES) {
            plain.forget();
        }
        if !is_done {
            // The label paths that were left may satisfy any query.
            run.undecided.add_range(&(0..nfa.query_count() as QueryNumber), run.offset);
        }
    }
}

impl Marks {
    /// Makes all marks those of an earlier message.
    pub(crate) fn begin(&mut self, plans: usize, expressions: usize) {
        if self.now == u32::MAX / 2 {
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
    paths: &mut FxHashMap<PlanId, NormalPath<'static>>,
) {
    let is_known = marks.plans[plan as usize] == marks.now;
    let is_reached = |reach: &Reach| is_reached(reach.of_plan(plan), run.collector);
    if is_known || nfa.reach().is_some_and(is_reached) {
        return;
    }
    if run.budget.left() == 0 {
        return leave_undecided(nfa, plan, run, ranges);
    }
    let path = paths.entry(plan).or_insert_with(|| {
        anchored(path_of(nfa.plan_text(plan))).into_iter().map(Step::into_owned).collect()
    });
    let holds = conditions::holds(path, run.message, run.names, ends, run.post);
    let steps = run.post.take_steps();
    run.budget.take(steps);
    marks.work.add(plan, steps);
    if holds {
        marks.plans[plan as usize] = marks.now;
        accept_plan(nfa, plan, run, marks, ranges);
    }
}

/// Adds the queries of a plan that holds to `ranges`, if its expression holds too.
fn accept_plan<N: Nfa>(
    nfa: &N,
    plan: PlanId,
    run: &mut Run<'_, '_>,
    marks: &mut Marks,
    ranges: &mut Vec<Range<QueryNumber>>,
) {
    let outcome = nfa.expression(plan).map_or(Ok(true), |id| evaluate(nfa, id, plan, run, marks));
    match outcome {
        Ok(true) => nfa.plan_numbers(plan, ranges),
        Ok(false) => {}
        Err(UsedUp::Message) => leave_undecided(nfa, plan, run, ranges),
        Err(UsedUp::Query) => add_numbers(nfa, plan, run.over_budget, run.offset, ranges),
    }
}

/// The queries of a plan may be satisfied or not: the message has used up its steps.
fn leave_undecided<N: Nfa>(
    nfa: &N,
    plan: PlanId,
    run: &mut Run<'_, '_>,
    ranges: &mut Vec<Range<QueryNumber>>,
) {
    add_numbers(nfa, plan, run.undecided, run.offset, ranges);
}

/// Adds the queries of a plan to a collector; `ranges` is left as it was.
fn add_numbers<N: Nfa>(
    nfa: &N,
    plan: PlanId,
    to: &mut Collector,
    offset: QueryNumber,
    ranges: &mut Vec<Range<QueryNumber>>,
) {
    let known = ranges.len();
    nfa.plan_numbers(plan, ranges);
    for range in ranges.drain(known..) {
        to.add_range(&range, offset);
    }
}

/// Whether an expression is true of the message, as a plan asks; evaluated once, however many plans ask.
fn evaluate<N: Nfa>(
    nfa: &N,
    id: ExpressionId,
    plan: PlanId,
    run: &mut Run<'_, '_>,
    marks: &mut Marks,
) -> Result<bool, UsedUp> {
    if mark(&mut marks.expressions, id, marks.now) {
        run.stats.evaluations += 1;
        let (message, names) = (run.message, run.names);
        let session = run.session.get_or_insert_with(|| {
            let scratch = run.scratch.take().expect("a message has one session");
            evaluate::Session::new(message, names, scratch)
        });
        let steps_max = run.steps_max.min(run.budget.left());
        let used_up = if steps_max < run.steps_max { UsedUp::Message } else { UsedUp::Query };
        let outcome = nfa.with_expression(id, |expression| session.holds(expression, steps_max));
        marks.outcomes[id as usize] = outcome.map_err(|_| used_up);
        run.budget.take(session.steps_taken());
        marks.work.add(plan, session.steps_taken());
    }
    marks.outcomes[id as usize]
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

    /// The elements of a group, as a part of all.
    fn range(&self, group: usize) -> Range<usize> {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        start as usize..self.ends[group] as usize
    }
}
