//! One automaton run over one message, with what is compiled for it at run time: the lazy DFA, the
//! predicate index, the run-time stack of the plain NFA.

use crate::collect::Collector;
use crate::conditions::PostProcessor;
use crate::content::run::{Contents, End, Setting};
use crate::dfa::{DfaState, LazyDfa};
use crate::matcher::Stats;
use crate::names::NameTable;
use crate::nfa::{ExpressionId, Nfa, PlanId, QueryNumber};
use crate::plain::RunTimeStack;
use crate::tree::Message;
use crate::xpath::{self, OverBudget};
use std::ops::Range;

/// What a message lends to the automata that it is run through.
pub(crate) struct Run<'m: 'w, 'w> {
    pub message: Message<'m>,
    pub names: &'m NameTable,
    pub post: &'w mut PostProcessor,
    /// Exact evaluation of the message, prepared when the first expression asks; until then, what it
    /// works with.
    pub session: Option<xpath::Session<'w>>,
    pub scratch: Option<&'w mut xpath::Scratch>,
    pub collector: &'w mut Collector,
    pub over_budget: &'w mut Collector,
    pub stats: &'w mut Stats,
    pub cache_bytes_max: usize,
    pub steps_max: u64,
    /// What the numbers of the automaton at hand are moved up by.
    pub offset: QueryNumber,
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
pub(crate) struct Runner {
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
    pub fn follow(&mut self, version: u64, offset: QueryNumber) {
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
    pub fn run<N: Nfa>(&mut self, nfa: &N, run: &mut Run<'_, '_>) -> bool {
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
            self.forget(run.stats);
            return false;
        };
        run.stats.cache_misses += misses;
        run.stats.cache_hits += tree.len() as u64 - misses;
        self.collect(run.collector);
        if nfa.plan_count() > 0 {
            self.postprocess(nfa, run);
            if self.dfa.memory() + self.contents.memory() > run.cache_bytes_max {
                self.forget(run.stats);
            }
        }
        true
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
