//! The gates of subscriptions: queries by number, and whose gate each is.

use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::Interrupted;
use crate::engine::plans::shared::SubscriptionNumber;
use crate::language::compile::Evaluated;
use crate::language::query::ast::Step;
use crate::registry::automaton::{Automaton, Merge, Merged};
use crate::registry::snapshot::automaton::FrozenAutomaton;
use crate::registry::snapshot::format::{FileBuilder, KIND_AUTOMATON};
use std::sync::Arc;

/// Gates that come and go.
#[derive(Debug, Default)]
pub(super) struct Gates {
    automaton: Automaton,
    base: Owners,
    /// The subscriptions of the gates that came since, ascending.
    later: Vec<SubscriptionNumber>,
}

/// Whose the gates of a base are.
#[derive(Debug, Default)]
struct Owners {
    /// By gate.
    subscriptions: Vec<SubscriptionNumber>,
    /// The gates in the order of their subscriptions.
    gates: Vec<QueryNumber>,
}

impl Owners {
    fn of(subscriptions: Vec<SubscriptionNumber>) -> Owners {
        let mut gates: Vec<QueryNumber> = (0..subscriptions.len() as QueryNumber).collect();
        gates.sort_unstable_by_key(|&gate| subscriptions[gate as usize]);
        Owners { subscriptions, gates }
    }

    fn gate_of(&self, subscription: SubscriptionNumber) -> Option<QueryNumber> {
        let owner = |gate: &QueryNumber| self.subscriptions[*gate as usize];
        let at = self.gates.binary_search_by_key(&subscription, owner);
        at.ok().map(|at| self.gates[at])
    }
}

impl Gates {
    /// The gates by number.
    pub(super) fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// Whose a gate is.
    #[inline]
    pub(super) fn subscription_of(&self, gate: QueryNumber) -> SubscriptionNumber {
        let base = &self.base.subscriptions;
        match base.get(gate as usize) {
            Some(&subscription) => subscription,
            None => self.later[gate as usize - base.len()],
        }
    }

    /// Adds the gate of a subscription that is younger than all others; see [`Automaton::insert`].
    pub(super) fn add(
        &mut self,
        subscription: SubscriptionNumber,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
    ) {
        self.automaton.insert(alternatives, expression);
        self.later.push(subscription);
    }

    /// Removes the gate of a subscription. Cost: a binary search.
    pub(super) fn remove(&mut self, subscription: SubscriptionNumber) {
        let later = || {
            let at = self.later.binary_search(&subscription).ok()?;
            Some((self.base.subscriptions.len() + at) as QueryNumber)
        };
        if let Some(gate) = later().or_else(|| self.base.gate_of(subscription)) {
            self.automaton.remove(gate);
        }
    }

    /// Bytes held, the base not counted.
    pub(super) fn memory(&self) -> usize {
        let owners = 2 * self.base.subscriptions.capacity() + self.later.capacity();
        self.automaton.memory() + 4 * owners
    }

    /// What a merge needs to know.
    pub(super) fn merge(&self) -> GateMerge {
        let count = self.automaton.number_count() as QueryNumber;
        let subscriptions = (0..count).map(|gate| self.subscription_of(gate)).collect();
        GateMerge { merge: Merge::of(&self.automaton), subscriptions }
    }
}

/// Gates of one moment, to be merged.
pub(super) struct GateMerge {
    merge: Merge,
    subscriptions: Vec<SubscriptionNumber>,
}

impl GateMerge {
    /// Makes the new base; see [`Merge::run`].
    ///
    /// # Errors
    /// It was interrupted.
    pub(super) fn run(self) -> Result<MergedGates, Interrupted> {
        let owner = |gate: QueryNumber| self.subscriptions[gate as usize];
        let (merged, base) = self.merge.run(
            |a, b| owner(a).cmp(&owner(b)),
            |arrays, old| {
                let mut file = FileBuilder::default();
                arrays.add_to(&mut file);
                let frozen = FrozenAutomaton::of(file.build(KIND_AUTOMATON), old.len());
                let frozen = frozen.expect("what was frozen is sound");
                (Arc::new(frozen), Owners::of(old.iter().map(|&gate| owner(gate)).collect()))
            },
        )?;
        Ok(MergedGates { merged, base })
    }
}

/// New gates that are to take the place of old ones.
pub(super) struct MergedGates {
    merged: Merged,
    base: Owners,
}

impl MergedGates {
    /// See [`Merged::catch_up`].
    pub(super) fn catch_up(&mut self, old: &Gates, most: usize) -> bool {
        self.merged.catch_up(&old.automaton, most)
    }

    /// See [`Merged::finish`].
    pub(super) fn finish(self, old: &Gates) -> Gates {
        let count = old.automaton.number_count() as QueryNumber;
        let later =
            (self.merged.copied() as QueryNumber..count).map(|gate| old.subscription_of(gate));
        let later = later.collect();
        Gates { automaton: self.merged.finish(&old.automaton), base: self.base, later }
    }
}
