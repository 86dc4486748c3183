//! What takes the answers of look-ups: the queries of a message, or the nested paths of an anchor.

use crate::engine::collect::Collector;
use crate::engine::ids::{PlanId, QueryNumber};
use crate::engine::nfa::Nfa;
use crate::engine::reach::{Reach, is_reached};

/// What takes the answers.
pub(super) trait Sink {
    /// Exact plans hold.
    fn word(&mut self, at: u32, bits: u64);
    /// Whether all queries of some bits of a word are known to hold.
    fn has_word(&self, at: u32, bits: u64) -> bool;
    /// Whether a query is known to hold.
    fn has_query(&self, number: QueryNumber) -> bool;
    /// Neighbouring queries hold.
    fn queries(&mut self, first: QueryNumber, count: u32);
    /// Whether a plan is known to hold.
    fn is_known(&self, plan: PlanId) -> bool;
    /// A plan holds.
    fn plan(&mut self, plan: PlanId);
}

pub(super) struct MainSink<'a> {
    pub(super) collector: &'a mut Collector,
    pub(super) plans: &'a mut [u32],
    pub(super) now: u32,
    pub(super) held: &'a mut Vec<PlanId>,
    pub(super) reach: Option<&'a Reach>,
}

impl Sink for MainSink<'_> {
    #[inline]
    fn word(&mut self, at: u32, bits: u64) {
        self.collector.add_word(at, bits);
    }

    #[inline]
    fn has_word(&self, at: u32, bits: u64) -> bool {
        self.collector.has_word(at, bits)
    }

    #[inline]
    fn has_query(&self, number: QueryNumber) -> bool {
        self.collector.contains(number)
            || self.reach.is_some_and(|reach| reach.is_pointless(number, self.collector))
    }

    #[inline]
    fn queries(&mut self, first: QueryNumber, count: u32) {
        self.collector.add_range(&(first..first + count), 0);
    }

    #[inline]
    fn is_known(&self, plan: PlanId) -> bool {
        let is_reached = |reach: &Reach| is_reached(reach.of_plan(plan), self.collector);
        self.plans[plan as usize] == self.now || self.reach.is_some_and(is_reached)
    }

    fn plan(&mut self, plan: PlanId) {
        self.plans[plan as usize] = self.now;
        self.held.push(plan);
    }
}

pub(super) struct NestedSink<'a, N> {
    pub(super) nfa: &'a N,
    pub(super) row: &'a mut Collector,
}

impl<N: Nfa> Sink for NestedSink<'_, N> {
    #[inline]
    fn word(&mut self, at: u32, bits: u64) {
        self.row.add_word(at, bits);
    }

    #[inline]
    fn has_word(&self, at: u32, bits: u64) -> bool {
        self.row.has_word(at, bits)
    }

    #[inline]
    fn has_query(&self, number: QueryNumber) -> bool {
        self.row.contains(number)
    }

    #[inline]
    fn queries(&mut self, first: QueryNumber, count: u32) {
        self.row.add_range(&(first..first + count), 0);
    }

    #[inline]
    fn is_known(&self, _plan: PlanId) -> bool {
        false
    }

    fn plan(&mut self, plan: PlanId) {
        let mut ranges = Vec::new();
        self.nfa.plan_numbers(plan, &mut ranges);
        for range in ranges {
            self.row.add_range(&range, 0);
        }
    }
}
