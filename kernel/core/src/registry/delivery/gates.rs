//! The gates of subscriptions: queries by number, and whose gate each is.

use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::Interrupted;
use crate::engine::plans::shared::SubscriptionNumber;
use crate::language::compile::Evaluated;
use crate::language::query::ast::Step;
use crate::registry::automaton::{Automaton, Merge, Merged, Renumbered};
use crate::registry::snapshot::automaton::FrozenAutomaton;
use crate::registry::snapshot::build::FrozenArrays;
use crate::registry::snapshot::format::{FileBuilder, FilePart};
use std::cmp::Ordering;
use std::sync::Arc;

/// Gates that come and go.
#[derive(Debug, Default)]
pub(super) struct Gates {
    automaton: Automaton,
    owners: Owners,
}

/// The subscriptions of gates.
#[derive(Debug, Default)]
struct Owners {
    /// Gates below are those of the subscriptions of the same numbers.
    own: QueryNumber,
    /// By gate, from there on.
    others: Vec<SubscriptionNumber>,
    /// The first gates of those, in the order of their subscriptions; the later ones are in it.
    sorted: Vec<QueryNumber>,
}

impl Owners {
    fn of(subscriptions: Vec<SubscriptionNumber>) -> Owners {
        let mut sorted: Vec<QueryNumber> = (0..subscriptions.len() as QueryNumber).collect();
        sorted.sort_unstable_by_key(|&gate| subscriptions[gate as usize]);
        Owners { own: 0, others: subscriptions, sorted }
    }

    /// Adds a gate, of a subscription that is younger than all others.
    fn push(&mut self, subscription: SubscriptionNumber) {
        if self.others.is_empty() && subscription == self.own {
            self.own += 1;
        } else {
            self.others.push(subscription);
        }
    }

    #[inline]
    fn of_gate(&self, gate: QueryNumber) -> SubscriptionNumber {
        gate.checked_sub(self.own).map_or(gate, |at| self.others[at as usize])
    }

    fn gate_of(&self, subscription: SubscriptionNumber) -> Option<QueryNumber> {
        if subscription < self.own {
            return Some(subscription);
        }
        let later = &self.others[self.sorted.len()..];
        let at = match later.binary_search(&subscription) {
            Ok(at) => self.sorted.len() + at,
            Err(_) => {
                let owner = |at: &QueryNumber| self.others[*at as usize];
                let at = self.sorted.binary_search_by_key(&subscription, owner).ok()?;
                self.sorted[at] as usize
            }
        };
        Some(self.own + at as QueryNumber)
    }
}

impl Gates {
    /// The gates of a base, each of the subscription of its number.
    pub(super) fn on(base: Arc<FrozenAutomaton>) -> Gates {
        let owners = Owners { own: base.len() as QueryNumber, ..Owners::default() };
        Gates { automaton: Automaton::on(base), owners }
    }

    /// Whether each is that of the subscription of its number.
    pub(super) fn are_own(&self) -> bool {
        self.owners.others.is_empty()
    }

    /// The gates by number.
    pub(super) fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// Whose a gate is.
    #[inline]
    pub(super) fn subscription_of(&self, gate: QueryNumber) -> SubscriptionNumber {
        self.owners.of_gate(gate)
    }

    /// Adds the gate of a subscription that is younger than all others; see [`Automaton::insert`].
    pub(super) fn add(
        &mut self,
        subscription: SubscriptionNumber,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
    ) {
        self.automaton.insert(alternatives, expression);
        self.owners.push(subscription);
    }

    /// Removes the gate of a subscription. Cost: a binary search.
    pub(super) fn remove(&mut self, subscription: SubscriptionNumber) {
        if let Some(gate) = self.owners.gate_of(subscription) {
            self.automaton.remove(gate);
        }
    }

    /// Bytes held, the base not counted.
    pub(super) fn memory(&self) -> usize {
        let owners = self.owners.others.capacity() + self.owners.sorted.capacity();
        self.automaton.memory() + 4 * owners
    }

    /// What a merge needs to know.
    pub(super) fn merge(&self) -> GateMerge {
        let count = self.automaton.number_count() as QueryNumber;
        let owners = (0..count).map(|gate| self.subscription_of(gate)).collect();
        GateMerge { merge: Merge::of(&self.automaton), owners }
    }
}

/// Gates of one moment, to be merged.
pub(super) struct GateMerge {
    merge: Merge,
    owners: Vec<SubscriptionNumber>,
}

impl GateMerge {
    /// The arrays of the new base; see [`Merge::freeze`]. `order` goes by subscriptions.
    ///
    /// # Errors
    /// It was interrupted.
    pub(super) fn freeze(
        self,
        order: impl Fn(SubscriptionNumber, SubscriptionNumber) -> Ordering,
    ) -> Result<(FrozenArrays, RenumberedGates), Interrupted> {
        let owner = |gate: QueryNumber| self.owners[gate as usize];
        let (arrays, renumbered) = self.merge.freeze(|a, b| order(owner(a), owner(b)))?;
        let owners = renumbered.old.iter().map(|&gate| owner(gate)).collect();
        Ok((arrays, RenumberedGates { renumbered, owners }))
    }
}

/// What new gates are made from.
pub(super) struct RenumberedGates {
    renumbered: Renumbered,
    /// The subscriptions of the gates of the new base.
    pub(super) owners: Vec<SubscriptionNumber>,
}

impl RenumberedGates {
    /// New gates on a base.
    pub(super) fn on(self, base: Arc<FrozenAutomaton>) -> MergedGates {
        MergedGates { merged: self.renumbered.on(base), owners: self.owners }
    }

    /// New gates on arrays, of which nothing else is kept.
    pub(super) fn on_arrays(self, arrays: &FrozenArrays) -> MergedGates {
        let mut file = FileBuilder::default();
        arrays.add_to(&mut file);
        let file = FilePart::first(file.build());
        let frozen = FrozenAutomaton::of(file, self.owners.len());
        self.on(Arc::new(frozen.expect("what was frozen is sound")))
    }
}

/// New gates that are to take the place of old ones.
pub(super) struct MergedGates {
    merged: Merged,
    /// The subscriptions of the gates of the new base.
    owners: Vec<SubscriptionNumber>,
}

impl MergedGates {
    /// See [`Merged::catch_up`].
    pub(super) fn catch_up(&mut self, old: &Gates, most: usize) -> bool {
        self.merged.catch_up(&old.automaton, most)
    }

    /// The new gates of the same subscriptions.
    pub(super) fn finish(self, old: &Gates) -> Gates {
        let owners = since_copied(Owners::of(self.owners), &self.merged, old, |number| number);
        Gates { automaton: self.merged.finish(&old.automaton, |_| ()), owners }
    }

    /// The new gates under new numbers of subscriptions: those of the base are the numbers of their gates, the others are
    /// given. Calls `left` with those whose gates have been removed meanwhile.
    pub(super) fn renewed(
        self,
        old: &Gates,
        number: impl Fn(SubscriptionNumber) -> SubscriptionNumber,
        mut left: impl FnMut(SubscriptionNumber),
    ) -> Gates {
        let owners = Owners { own: self.owners.len() as QueryNumber, ..Owners::default() };
        let owners = since_copied(owners, &self.merged, old, number);
        let automaton = self.merged.finish(&old.automaton, |gate| left(owners.of_gate(gate)));
        Gates { automaton, owners }
    }
}

/// Adds the gates that came since the old ones were copied.
fn since_copied(
    mut owners: Owners,
    merged: &Merged,
    old: &Gates,
    number: impl Fn(SubscriptionNumber) -> SubscriptionNumber,
) -> Owners {
    for gate in merged.copied() as QueryNumber..old.automaton.number_count() as QueryNumber {
        owners.push(number(old.subscription_of(gate)));
    }
    owners
}
