//! Parts of running the automaton of the nested paths: anchors, the states below them, what those accept.

use super::prober::Scratch;
use super::program::Place;
use crate::engine::collect::Collector;
use crate::engine::dfa::{DfaState, LazyDfa};
use std::ops::Range;

/// An element at which nested paths are asked for.
#[derive(Debug, Clone)]
pub(super) struct Anchor {
    pub(super) element: u32,
    /// Its part of [`Contents::fresh`].
    pub(super) fresh: Range<u32>,
    /// Its part of [`Contents::nested_ends`].
    pub(super) ends: Range<u32>,
}

/// Marks the elements at some places.
pub(super) fn want(wanted: &mut [u64], scratch: &Scratch, places: &[Place], base: usize) {
    for &place in places {
        let anchor = scratch.locate(place, base);
        wanted[anchor as usize / 64] |= 1 << (anchor % 64);
    }
}

/// The first marked element from `from` on.
pub(super) fn next_wanted(wanted: &[u64], from: u32) -> Option<u32> {
    let mut word = from as usize / 64;
    let mut rest = wanted.get(word)? & (u64::MAX << (from % 64));
    while rest == 0 {
        word += 1;
        rest = *wanted.get(word)?;
    }
    Some(word as u32 * 64 + rest.trailing_zeros())
}

/// Words and their numbers.
type SparseWords = Box<[(u32, u64)]>;

/// What DFA states accept without conditions, each as one run of words.
#[derive(Debug, Default)]
pub(super) struct StateWords {
    words: Vec<Option<SparseWords>>,
    collector: Collector,
    pub(super) memory: usize,
}

impl StateWords {
    /// Gathers the words of a state if they are not there.
    #[inline]
    pub(super) fn ensure(&mut self, dfa: &LazyDfa, state: DfaState, numbers: usize) {
        if !self.words.get(state as usize).is_some_and(Option::is_some) {
            self.gather(dfa, state, numbers);
        }
    }

    /// The words of a state; [`StateWords::ensure`] has seen it.
    #[inline]
    pub(super) fn of(&self, state: DfaState) -> &[(u32, u64)] {
        self.words[state as usize].as_deref().expect("gathered")
    }

    /// Touches the memory of many states, so that all wait for it together.
    #[inline]
    pub(super) fn touch(&self, states: &[DfaState]) {
        let first = |&state: &DfaState| self.of(state).first().map_or(0, |word| word.0);
        std::hint::black_box(states.iter().map(first).fold(0, u32::wrapping_add));
    }

    #[cold]
    pub(super) fn gather(&mut self, dfa: &LazyDfa, state: DfaState, numbers: usize) {
        self.collector.reserve(numbers);
        dfa.accepting(state).for_each(|(_, block)| self.collector.add_words(&block.words));
        let (mut at, mut bits) = (Vec::new(), Vec::new());
        self.collector.drain_into_words(&mut at, &mut bits);
        let answers: SparseWords = at.into_iter().zip(bits).collect();
        self.memory += size_of_val(&*answers) + size_of::<Option<SparseWords>>();
        if self.words.len() <= state as usize {
            self.words.resize_with(state as usize + 1, || None);
        }
        self.words[state as usize] = Some(answers);
    }
}
