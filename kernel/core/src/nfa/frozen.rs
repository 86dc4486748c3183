//! The NFA of a snapshot: a trie in level order, read straight from mapped arrays.
//!
//! States are numbered level by level, children of one state next to each other and sorted by
//! symbol, so a state needs only its own symbol and the number of its first child: the children of
//! `s` are `first_child[s]..first_child[s + 1]`. Epsilon and wildcard have the two smallest symbols, so
//! they come first. Eight bytes a state, four more to say where its accepted queries are listed.

use super::{PlanId, QueryNumber, StateId};
use crate::symbols::{Class, EPSILON, FIRST_NAME, STAR, Symbol};
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// No accepting record.
pub const NO_ACCEPT: u32 = u32::MAX;

/// What an accepting state accepts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct AcceptRecord {
    /// First query without conditions.
    pub first_query: QueryNumber,
    /// Number of queries without conditions.
    pub query_count: u32,
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
    /// Per state, its first child; one entry more than states.
    pub first_child: &'s [StateId],
    /// Per state, its record in `accepts` or [`NO_ACCEPT`].
    pub accept: &'s [u32],
    /// Accepting states.
    pub accepts: &'s [AcceptRecord],
    /// Plans.
    pub plans: &'s [PlanRecord],
}

impl FrozenNfa<'_> {
    fn children(&self, state: StateId) -> Range<usize> {
        let state = state as usize;
        self.first_child[state] as usize..self.first_child[state + 1] as usize
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

    /// The record of an accepting state.
    #[inline]
    pub fn accept_record(&self, state: StateId) -> Option<&AcceptRecord> {
        let at = self.accept[state as usize];
        (at != NO_ACCEPT).then(|| &self.accepts[at as usize])
    }

    /// What is wrong with the arrays, if anything: every index must be in bounds and children must
    /// follow their parents, so that no run of the automaton can leave the arrays or go in circles.
    pub fn fault(&self, symbols: usize, queries: usize) -> Option<&'static str> {
        let states = self.symbol.len();
        if states == 0 || self.first_child.len() != states + 1 || self.accept.len() != states {
            return Some("the state arrays differ in length");
        }
        let children_ok = self.first_child[0] == 1
            && self.first_child[states] as usize == states
            && self
                .first_child
                .windows(2)
                .enumerate()
                .all(|(s, w)| w[0] <= w[1] && w[0] as usize > s);
        if !children_ok {
            return Some("the states are not in level order");
        }
        if self.symbol.iter().any(|&s| s as usize >= symbols) {
            return Some("a state has an unknown symbol");
        }
        if self
            .accept
            .iter()
            .any(|&a| a != NO_ACCEPT && a as usize >= self.accepts.len())
        {
            return Some("an accepting state has no record");
        }
        let within =
            |first: u32, count: u32, all: usize| u64::from(first) + u64::from(count) <= all as u64;
        let accepts_ok = self.accepts.iter().all(|a| {
            within(a.first_query, a.query_count, queries)
                && within(a.first_plan, a.plan_count, self.plans.len())
        });
        let plans_ok = self
            .plans
            .iter()
            .all(|p| within(p.first_query, p.query_count, queries));
        (!accepts_ok || !plans_ok).then_some("a record names queries that are not there")
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
