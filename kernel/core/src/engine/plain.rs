//! The shared NFA run as it is, with the run-time stack of paper 003, section 3.2.4.
//!
//! Slower than [`crate::engine::dfa`] on a stream whose label paths repeat, but it needs no memory beyond
//! the stack: the fallback for messages that would outgrow the cache, and `engine="nfa"`.
//!
//! Differs from the paper: `//`-child states are kept on a stack of their own. Such a state, once
//! active, stays active for everything below, so all of that stack is active at any time and
//! nothing has to be copied from level to level.

use crate::engine::ids::StateId;
use crate::engine::interrupt::did;
use crate::engine::nfa::Nfa;
use crate::engine::symbols::Class;
use crate::xml::names::NameTable;
use crate::xml::tree::MessageTree;

/// The run-time stack of one automaton; reused from message to message, also if that has grown.
#[derive(Debug, Default)]
pub(crate) struct RunTimeStack {
    /// States reached at each open element, level after level.
    reached: Vec<StateId>,
    /// Where each level begins in `reached`, and in `looping`.
    levels: Vec<(usize, usize)>,
    /// Active `//`-child states.
    looping: Vec<StateId>,
    /// Bitmap of `looping`.
    is_looping: Vec<u64>,
    class_of_name: Vec<Class>,
    names_generation: u64,
    /// Size of the alphabet that the classes are of.
    symbols: usize,
    buffer: String,
}

impl RunTimeStack {
    /// Runs a message and reports every active state at every element, in document order. False if there would
    /// be more than `most` of them together, or it is interrupted; the rest of the message has not been run then.
    pub(crate) fn run<N: Nfa>(
        &mut self,
        nfa: &N,
        names: &NameTable,
        tree: &MessageTree,
        most: u64,
        mut on_active: impl FnMut(u32, StateId),
    ) -> bool {
        let mut left = most;
        let symbols = nfa.symbols().len();
        if self.names_generation != names.generation() || self.symbols != symbols {
            self.class_of_name.clear();
            (self.names_generation, self.symbols) = (names.generation(), symbols);
        }
        for name in self.class_of_name.len() as u32..names.len() as u32 {
            let class = nfa.symbols().class(names.uri(name), names.local(name), &mut self.buffer);
            self.class_of_name.push(class);
        }
        self.pop_to(0);
        self.push_level(0);
        self.reached.push(0);
        self.loop_below(nfa, 0);
        for (element, (&name, &depth)) in tree.name.iter().zip(&tree.depth).enumerate() {
            let parent_level = depth as usize;
            self.pop_to(parent_level + 1);
            let class = self.class_of_name[name as usize];
            let (parent_start, _) = self.levels[parent_level];
            let start = self.reached.len();
            self.push_level(start);
            for at in parent_start..start {
                nfa.step(self.reached[at], &class, &mut self.reached);
            }
            for &state in &self.looping {
                nfa.step(state, &class, &mut self.reached);
            }
            self.loop_below(nfa, start);
            let count = self.reached.len() - parent_start + self.looping.len();
            match left.checked_sub(count as u64) {
                Some(rest) if !did(count as u64) => left = rest,
                _ => return false,
            }
            let active = self.reached[start..].iter().chain(&self.looping);
            active.for_each(|&state| on_active(element as u32, state));
        }
        true
    }

    fn push_level(&mut self, start: usize) {
        self.levels.push((start, self.looping.len()));
    }

    /// Leaves `levels` levels on the stack.
    fn pop_to(&mut self, levels: usize) {
        if levels < self.levels.len() {
            let (reached, looping) = self.levels[levels];
            for state in self.looping.drain(looping..) {
                self.is_looping[state as usize / 64] &= !(1 << (state % 64));
            }
            self.reached.truncate(reached);
            self.levels.truncate(levels);
        }
    }

    /// Takes the epsilon-transitions of the states of the topmost level.
    fn loop_below<N: Nfa>(&mut self, nfa: &N, start: usize) {
        for &state in &self.reached[start..] {
            let Some(below) = nfa.epsilon(state) else {
                continue;
            };
            let (word, bit) = (below as usize / 64, 1 << (below % 64));
            if word >= self.is_looping.len() {
                self.is_looping.resize(word + 1, 0);
            }
            if self.is_looping[word] & bit == 0 {
                self.is_looping[word] |= bit;
                self.looping.push(below);
            }
        }
    }
}
