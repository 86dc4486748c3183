//! The automata that a message is matched against.

use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::routing::RoutingTable;
use crate::registry::automaton::{Automaton, UNCHANGING};
use crate::registry::snapshot::Snapshot;
use crate::registry::snapshot::automaton::FrozenAutomaton;

/// The automata of one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    pub(crate) base: Option<&'v FrozenAutomaton>,
    pub(crate) delta: Option<&'v GrowingNfa>,
    pub(crate) removed: Option<&'v [u64]>,
    pub(crate) routes: Option<&'v RoutingTable>,
    /// Which base, and which delta that grows.
    pub(crate) generation: u64,
}

impl<'v> View<'v> {
    /// No automaton.
    pub(crate) const EMPTY: View<'static> =
        View { base: None, delta: None, removed: None, routes: None, generation: UNCHANGING };

    /// Queries that come and go.
    pub(crate) fn of(automaton: &'v Automaton) -> Self {
        View {
            base: automaton.base().map(|base| &**base),
            delta: (!automaton.delta().is_empty()).then(|| automaton.delta()),
            removed: automaton.removed(),
            routes: None,
            generation: automaton.generation(),
        }
    }

    /// Whether some expression needs more of a message than elements, attributes and text.
    pub(crate) fn needs_full_tree(&self) -> bool {
        self.base.is_some_and(FrozenAutomaton::needs_full_tree)
            || self.delta.is_some_and(Nfa::needs_full_tree)
    }

    pub(crate) fn number_count(&self) -> usize {
        self.base.map_or(0, FrozenAutomaton::len)
            + self.delta.map_or(0, |delta| delta.len())
            + self.routes.map_or(0, Nfa::query_count)
    }
}

impl<'v> From<&'v Snapshot> for View<'v> {
    fn from(snapshot: &'v Snapshot) -> Self {
        View { base: Some(snapshot.automaton()), ..View::EMPTY }
    }
}

/// The numbers are those of its targets.
impl<'v> From<&'v RoutingTable> for View<'v> {
    fn from(table: &'v RoutingTable) -> Self {
        View { routes: Some(table), ..View::EMPTY }
    }
}
