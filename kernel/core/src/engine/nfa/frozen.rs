//! The NFA of a snapshot: a trie in level order, read straight from mapped arrays.
//!
//! States are numbered level by level, children of one state next to each other and sorted by
//! symbol, so a state needs only its own symbol and the number of its first child: the children of
//! `s` are `first_child` of `s` up to that of `s + 1`. Epsilon and wildcard have the two smallest
//! symbols, so they come first. What a state accepts stands beside its first child, because a run
//! that comes to a state needs both: the first sight of a label path costs what memory it touches.

use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::symbols::{Class, EPSILON, FIRST_NAME, STAR, Symbol};
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// No further ends.
pub(crate) const NO_ENDS: u32 = u32::MAX;
/// No expression.
pub(crate) const NO_EXPRESSION: ExpressionId = ExpressionId::MAX;

/// A state; the last record of the array belongs to none and ends the children of the last one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct StateRecord {
    /// First child.
    pub(crate) first_child: StateId,
    /// First of the queries whose first alternative is accepted here without conditions.
    pub(crate) first_query: QueryNumber,
    /// Number of them.
    pub(crate) query_count: u32,
    /// Entry in the table of what else ends here, or [`NO_ENDS`].
    pub(crate) ends: u32,
}

/// What ends at one state besides the queries of its record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct EndRecord {
    /// First plan whose main path ends here.
    pub(crate) first_plan: PlanId,
    /// Number of plans.
    pub(crate) plan_count: u32,
    /// First entry in the table of further alternatives without conditions.
    pub(crate) first_range: u32,
    /// Number of entries.
    pub(crate) range_count: u32,
}

/// Queries of which a further alternative ends at one place: at a state, or in a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct RangeRecord {
    /// First query.
    pub(crate) first_query: QueryNumber,
    /// Number of queries.
    pub(crate) query_count: u32,
    /// Which of their alternatives it is; from 1 on.
    pub(crate) alternative: u32,
}

/// The queries that share a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct PlanRecord {
    /// First of the queries whose first alternative is this plan.
    pub(crate) first_query: QueryNumber,
    /// Number of them.
    pub(crate) query_count: u32,
    /// The expression that has the last word, or [`NO_EXPRESSION`].
    pub(crate) expression: ExpressionId,
    /// First entry in the table of further alternatives that are this plan.
    pub(crate) first_range: u32,
    /// Number of entries.
    pub(crate) range_count: u32,
}

/// Views of the arrays of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrozenNfa<'s> {
    /// Per state, the symbol that leads to it.
    pub(crate) symbol: &'s [Symbol],
    /// Per state, the rest; one entry more than states.
    pub(crate) states: &'s [StateRecord],
    /// What else ends at the states where something does.
    pub(crate) ends: &'s [EndRecord],
    /// Further alternatives, by where they end.
    pub(crate) ranges: &'s [RangeRecord],
    /// Plans.
    pub(crate) plans: &'s [PlanRecord],
}

impl FrozenNfa<'_> {
    fn children(&self, state: StateId) -> Range<usize> {
        let state = state as usize;
        self.states[state].first_child as usize..self.states[state + 1].first_child as usize
    }

    /// See [`super::Nfa::is_leaf`].
    #[inline]
    pub(crate) fn is_leaf(&self, state: StateId) -> bool {
        self.children(state).is_empty()
    }

    /// See [`super::Nfa::step`]. Cost: a scan or binary search in the symbols of the children.
    #[inline]
    pub(crate) fn step(&self, state: StateId, class: &Class, targets: &mut Vec<StateId>) {
        let Range { mut start, end } = self.children(state);
        if start < end && self.symbol[start] == EPSILON {
            start += 1;
        }
        if start < end && self.symbol[start] == STAR {
            targets.push(start as StateId);
            start += 1;
        }
        if start == end {
            return;
        }
        let names = &self.symbol[start..end];
        for wanted in [class.exact, class.in_namespace, class.any_namespace] {
            if wanted >= FIRST_NAME
                && let Some(at) = position(names, wanted)
            {
                targets.push((start + at) as StateId);
            }
        }
    }

    /// See [`super::Nfa::epsilon`].
    #[inline]
    pub(crate) fn epsilon(&self, state: StateId) -> Option<StateId> {
        let children = self.children(state);
        let has_epsilon = !children.is_empty() && self.symbol[children.start] == EPSILON;
        has_epsilon.then_some(children.start as StateId)
    }

    /// See [`super::Nfa::accepted`].
    #[inline]
    pub(crate) fn accepted(&self, state: StateId, ranges: &mut Vec<Range<QueryNumber>>) {
        let record = &self.states[state as usize];
        if record.query_count > 0 {
            ranges.push(record.first_query..record.first_query + record.query_count);
        }
        add_further(self.ranges_at(state), ranges);
    }

    /// See [`super::Nfa::plan_numbers`].
    #[inline]
    pub(crate) fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>) {
        let record = &self.plans[plan as usize];
        if record.query_count > 0 {
            ranges.push(record.first_query..record.first_query + record.query_count);
        }
        add_further(self.ranges_of(plan), ranges);
    }

    /// The further alternatives that are a plan.
    #[inline]
    pub(crate) fn ranges_of(&self, plan: PlanId) -> &[RangeRecord] {
        let record = &self.plans[plan as usize];
        &self.ranges[record.first_range as usize..][..record.range_count as usize]
    }

    /// The further alternatives that a state accepts without conditions.
    #[inline]
    pub(crate) fn ranges_at(&self, state: StateId) -> &[RangeRecord] {
        match self.states[state as usize].ends {
            NO_ENDS => &[],
            at => {
                let ends = &self.ends[at as usize];
                &self.ranges[ends.first_range as usize..][..ends.range_count as usize]
            }
        }
    }

    /// The plans of a state.
    #[inline]
    pub(crate) fn plans_at(&self, state: StateId) -> Range<PlanId> {
        match self.states[state as usize].ends {
            NO_ENDS => 0..0,
            at => {
                let ends = &self.ends[at as usize];
                ends.first_plan..ends.first_plan + ends.plan_count
            }
        }
    }

    /// What is wrong with the arrays, if anything: every index must be in bounds and children must
    /// follow their parents, so that no run of the automaton can leave the arrays or go in circles.
    pub(crate) fn fault(
        &self,
        symbols: usize,
        queries: usize,
        expressions: usize,
    ) -> Option<&'static str> {
        let count = self.symbol.len();
        if count == 0 || self.states.len() != count + 1 {
            return Some("the state arrays differ in length");
        }
        let children_ok = self.states[0].first_child == 1
            && self.states[count].first_child as usize == count
            && self.states.windows(2).enumerate().all(|(state, pair)| {
                pair[0].first_child <= pair[1].first_child && pair[0].first_child as usize > state
            });
        if !children_ok {
            return Some("the states are not in level order");
        }
        if self.symbol.iter().any(|&s| s as usize >= symbols) {
            return Some("a state has an unknown symbol");
        }
        let within =
            |first: u32, count: u32, all: usize| u64::from(first) + u64::from(count) <= all as u64;
        let states_ok = self.states.iter().all(|state| {
            within(state.first_query, state.query_count, queries)
                && (state.ends == NO_ENDS || (state.ends as usize) < self.ends.len())
        });
        let ends_ok = self.ends.iter().all(|e| {
            within(e.first_plan, e.plan_count, self.plans.len())
                && within(e.first_range, e.range_count, self.ranges.len())
        });
        let ranges_ok = self.ranges.iter().all(|r| within(r.first_query, r.query_count, queries));
        let plans_ok = self.plans.iter().all(|plan| {
            within(plan.first_query, plan.query_count, queries)
                && within(plan.first_range, plan.range_count, self.ranges.len())
                && (plan.expression == NO_EXPRESSION || (plan.expression as usize) < expressions)
        });
        let all_ok = states_ok && ends_ok && ranges_ok && plans_ok;
        (!all_ok).then_some("a record names what is not there")
    }
}

#[inline]
fn add_further(records: &[RangeRecord], ranges: &mut Vec<Range<QueryNumber>>) {
    for range in records {
        ranges.push(range.first_query..range.first_query + range.query_count);
    }
}

/// Where `wanted` stands in the ascending `names`.
#[inline]
fn position(names: &[Symbol], wanted: Symbol) -> Option<usize> {
    if names.len() <= 8 {
        names.iter().position(|&s| s == wanted)
    } else {
        names.binary_search(&wanted).ok()
    }
}
