//! The NFA of a snapshot: a trie in level order, read straight from mapped arrays.
//!
//! States are numbered level by level, children of one state next to each other and sorted by
//! symbol, so a state needs only its own symbol and the number of its first child: the children of
//! `s` are `first_child` of `s` up to that of `s + 1`. Epsilon and wildcard have the two smallest
//! symbols, so they come first. What a state accepts stands beside its first child, because a run
//! that comes to a state needs both: the first sight of a label path costs what memory it touches.

use super::{PlanId, QueryNumber, StateId};
use crate::symbols::{Class, EPSILON, FIRST_NAME, STAR, Symbol};
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// No plans.
pub const NO_PLANS: u32 = u32::MAX;

/// A state; the last record of the array belongs to none and ends the children of the last one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct StateRecord {
    /// First child.
    pub first_child: StateId,
    /// First of the queries accepted here without conditions.
    pub first_query: QueryNumber,
    /// Number of queries accepted here without conditions.
    pub query_count: u32,
    /// Entry in the table of plan spans, or [`NO_PLANS`].
    pub plans: u32,
}

/// The plans whose main path ends at one state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct PlanSpan {
    /// First plan.
    pub first_plan: PlanId,
    /// Number of plans.
    pub plan_count: u32,
}

/// The queries that share a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct PlanRecord {
    /// First query.
    pub first_query: QueryNumber,
    /// Number of queries.
    pub query_count: u32,
}

/// Views of the arrays of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct FrozenNfa<'s> {
    /// Per state, the symbol that leads to it.
    pub symbol: &'s [Symbol],
    /// Per state, the rest; one entry more than states.
    pub states: &'s [StateRecord],
    /// Plans of the states that have any.
    pub spans: &'s [PlanSpan],
    /// Plans.
    pub plans: &'s [PlanRecord],
}

impl FrozenNfa<'_> {
    fn children(&self, state: StateId) -> Range<usize> {
        let state = state as usize;
        self.states[state].first_child as usize..self.states[state + 1].first_child as usize
    }

    /// See [`super::Nfa::is_leaf`].
    #[inline]
    pub fn is_leaf(&self, state: StateId) -> bool {
        self.children(state).is_empty()
    }

    /// See [`super::Nfa::step`]. Cost: a scan or binary search in the symbols of the children.
    #[inline]
    pub fn step(&self, state: StateId, class: &Class, targets: &mut Vec<StateId>) {
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
    pub fn epsilon(&self, state: StateId) -> Option<StateId> {
        let children = self.children(state);
        let has_epsilon = !children.is_empty() && self.symbol[children.start] == EPSILON;
        has_epsilon.then_some(children.start as StateId)
    }

    /// What a state accepts without conditions.
    #[inline]
    pub fn accepted(&self, state: StateId) -> Range<QueryNumber> {
        let state = &self.states[state as usize];
        state.first_query..state.first_query + state.query_count
    }

    /// The plans of a state.
    #[inline]
    pub fn plans_at(&self, state: StateId) -> Range<PlanId> {
        match self.states[state as usize].plans {
            NO_PLANS => 0..0,
            at => {
                let span = &self.spans[at as usize];
                span.first_plan..span.first_plan + span.plan_count
            }
        }
    }

    /// What is wrong with the arrays, if anything: every index must be in bounds and children must
    /// follow their parents, so that no run of the automaton can leave the arrays or go in circles.
    pub fn fault(&self, symbols: usize, queries: usize) -> Option<&'static str> {
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
                && (state.plans == NO_PLANS || (state.plans as usize) < self.spans.len())
        });
        let spans_ok =
            self.spans.iter().all(|s| within(s.first_plan, s.plan_count, self.plans.len()));
        let plans_ok = self.plans.iter().all(|p| within(p.first_query, p.query_count, queries));
        (!states_ok || !spans_ok || !plans_ok).then_some("a record names what is not there")
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
