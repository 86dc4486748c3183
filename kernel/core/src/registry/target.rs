//! The automata that a message is matched against.

use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::routing::RoutingTable;
use crate::registry::index::{Index, IndexState};
use crate::registry::snapshot::Snapshot;

/// What a message is matched against.
pub trait Target {
    /// Calls `f` with the automata of now, which stay as they are until it returns.
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T;
}

/// The automata of one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    pub(crate) base: Option<&'v Snapshot>,
    pub(crate) delta: Option<&'v GrowingNfa>,
    pub(crate) removed: Option<&'v [u64]>,
    pub(crate) routes: Option<&'v RoutingTable>,
    /// Which base, and which delta that grows.
    pub(crate) generation: u64,
}

impl<'v> View<'v> {
    const EMPTY: View<'static> =
        View { base: None, delta: None, removed: None, routes: None, generation: 1 };

    /// A changing index.
    pub(crate) fn of_index(state: &'v IndexState) -> Self {
        View {
            base: state.base().map(|base| &**base),
            delta: (!state.delta().is_empty()).then(|| state.delta()),
            removed: state.removed(),
            routes: None,
            generation: state.generation,
        }
    }

    /// Whether some expression needs more of a message than elements, attributes and text.
    pub(crate) fn needs_full_tree(&self) -> bool {
        self.base.is_some_and(Snapshot::needs_full_tree)
            || self.delta.is_some_and(Nfa::needs_full_tree)
    }

    pub(crate) fn number_count(&self) -> usize {
        self.base.map_or(0, Snapshot::len)
            + self.delta.map_or(0, |delta| delta.len())
            + self.routes.map_or(0, Nfa::query_count)
    }
}

impl Target for Snapshot {
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View { base: Some(self), ..View::EMPTY })
    }
}

impl Target for Index {
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View::of_index(&self.state()))
    }
}

/// The numbers are those of its targets.
impl Target for RoutingTable {
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View { routes: Some(self), ..View::EMPTY })
    }
}
