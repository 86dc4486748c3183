//! Navigation paths, each with a number, in one automaton; and a run of it.
//!
//! The shared NFA and its lazy DFA do the matching; here an accepting state means "this path", not a
//! query. A path that nobody uses any more stays in the automaton (lazy deletion) until the plans are
//! built again, and is found again if somebody asks for it.

use crate::engine::dfa::{DfaState, INITIAL, LazyDfa};
use crate::engine::ids::StateId;
use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::symbols::{EPSILON, Symbol};
use crate::language::query::ast::{Axis, NameTest, Step};
use crate::xml::names::{NameId, NameTable};

/// Number of a navigation path in one [`PathSet`].
pub(crate) type PathId = u32;

/// Distinct navigation paths (location steps without predicates).
#[derive(Debug)]
pub(crate) struct PathSet {
    nfa: GrowingNfa,
    uses: Vec<u32>,
    unused: usize,
    buffer: String,
}

impl Default for PathSet {
    fn default() -> Self {
        PathSet {
            nfa: GrowingNfa::of_nested_paths(),
            uses: Vec::new(),
            unused: 0,
            buffer: String::new(),
        }
    }
}

impl PathSet {
    /// The number of a path, new or known. Cost: one look-up a step.
    pub(crate) fn intern(&mut self, steps: &[Step<'_>]) -> PathId {
        self.intern_labels(steps.iter().flat_map(|step| {
            let epsilon = (step.axis != Axis::Child).then_some(None);
            let name = (step.axis != Axis::DescendantOrSelf).then_some(Some(&step.test));
            epsilon.into_iter().chain(name)
        }))
    }

    /// The same, by the labels of transitions; none is epsilon.
    pub(crate) fn intern_labels<'l, 'q: 'l>(
        &mut self,
        labels: impl IntoIterator<Item = Option<&'l NameTest<'q>>>,
    ) -> PathId {
        self.nfa.begin_growth();
        let mut state = 0;
        for label in labels {
            let symbol = match label {
                None => EPSILON,
                Some(test) => self.nfa.symbols_mut().intern_test(test, &mut self.buffer),
            };
            state = self.nfa.child(state, symbol);
        }
        self.path_to(state)
    }

    fn path_to(&mut self, state: StateId) -> PathId {
        let path = self.nfa.intern_plan(state, "", None);
        if path as usize == self.uses.len() {
            self.uses.push(0);
            self.unused += 1;
        }
        path
    }

    /// The same, by symbols: the two that have no name, or names in canonical notation.
    pub(crate) fn intern_symbols<'n>(
        &mut self,
        symbols: impl IntoIterator<Item = Result<Symbol, &'n str>>,
    ) -> PathId {
        self.nfa.begin_growth();
        let mut state = 0;
        for symbol in symbols {
            let symbol = symbol.unwrap_or_else(|name| self.nfa.symbols_mut().intern(name));
            state = self.nfa.child(state, symbol);
        }
        self.path_to(state)
    }

    /// The symbols that lead to the end of a path.
    pub(crate) fn symbols_to(&self, path: PathId) -> Vec<Symbol> {
        let mut symbols = Vec::new();
        let mut at = self.nfa.plan_entry(path).0;
        while at != 0 {
            let (parent, symbol) = self.nfa.origin(at);
            symbols.push(symbol);
            at = parent;
        }
        symbols.reverse();
        symbols
    }

    /// Canonical notation of a symbol that has a name.
    pub(crate) fn notation(&self, symbol: Symbol) -> &str {
        Nfa::symbols(&self.nfa).notation(symbol)
    }

    /// The path has one user more.
    pub(crate) fn enter(&mut self, path: PathId) {
        self.unused -= usize::from(self.uses[path as usize] == 0);
        self.uses[path as usize] += 1;
    }

    /// The path has one user less.
    pub(crate) fn leave(&mut self, path: PathId) {
        self.uses[path as usize] -= 1;
        self.unused += usize::from(self.uses[path as usize] == 0);
    }

    /// Number of paths, those that nobody uses counted.
    pub(crate) fn len(&self) -> usize {
        self.uses.len()
    }

    /// Number of paths that nobody uses.
    pub(crate) fn unused(&self) -> usize {
        self.unused
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.nfa.memory() + self.uses.capacity() * 4
    }
}

/// What one worker has compiled of a [`PathSet`].
#[derive(Debug, Default)]
pub(crate) struct PathRun {
    dfa: LazyDfa,
    /// How far the automaton had grown when the cache was compiled.
    growth: u64,
    /// Per DFA state: the paths that end there, ascending; none where it was not asked for.
    accepted: Vec<Option<Box<[PathId]>>>,
    memory: usize,
}

impl PathRun {
    /// Makes ready for a message. True if a state may not be what it was: paths have come, which are worked into what
    /// was compiled, or the cache has grown too large and was dropped.
    pub(crate) fn begin(&mut self, paths: &PathSet, names: &NameTable, bytes_max: usize) -> bool {
        let before = std::mem::replace(&mut self.growth, paths.nfa.growth());
        let has_grown = before != self.growth;
        let is_too_large = self.memory() > bytes_max;
        let follows = |dfa: &mut LazyDfa| {
            !has_grown || dfa.follow(&paths.nfa, before, &mut Vec::new()).is_some()
        };
        if is_too_large || !follows(&mut self.dfa) {
            self.dfa.reset(0);
        }
        let is_changed = has_grown || is_too_large;
        if is_changed {
            self.accepted.clear();
            self.memory = 0;
        }
        self.dfa.prepare(&paths.nfa, names);
        is_changed
    }

    /// The state after an element of this name.
    #[inline]
    pub(crate) fn step(&mut self, paths: &PathSet, from: DfaState, name: NameId) -> DfaState {
        self.dfa.step_by_name(&paths.nfa, from, name)
    }

    /// A state in which nothing is active.
    pub(crate) fn nothing(&mut self) -> DfaState {
        self.dfa.dead_state()
    }

    /// A state and, beside what is active in it, the states in which some paths end.
    pub(crate) fn entered(
        &mut self,
        paths: &PathSet,
        state: DfaState,
        ends: impl IntoIterator<Item = PathId>,
    ) -> DfaState {
        let (looping, reached): (Vec<StateId>, Vec<StateId>) = ends
            .into_iter()
            .map(|path| paths.nfa.plan_entry(path).0)
            .partition(|&end| end != 0 && paths.nfa.origin(end).1 == EPSILON);
        self.dfa.with_states(&paths.nfa, state, &reached, &looping)
    }

    /// Whether no path ends at or below a state.
    #[inline]
    pub(crate) fn is_dead(&self, state: DfaState) -> bool {
        self.dfa.is_dead(state)
    }

    /// The paths that end at a state, ascending.
    #[inline]
    pub(crate) fn accepted(&mut self, state: DfaState) -> &[PathId] {
        if self.accepted.len() <= state as usize {
            self.accepted.resize(self.dfa.len().max(state as usize + 1), None);
        }
        let entry = &mut self.accepted[state as usize];
        entry.get_or_insert_with(|| {
            let blocks = self.dfa.planned(state).iter();
            let mut paths: Vec<PathId> =
                blocks.flat_map(|&block| self.dfa.block(block).plans.iter().copied()).collect();
            paths.sort_unstable();
            paths.dedup();
            self.memory += paths.len() * 4;
            paths.into()
        })
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.dfa.memory() + self.memory + self.accepted.len() * 16
    }
}

/// The state before any element.
pub(crate) const START: DfaState = INITIAL;
