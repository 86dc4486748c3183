//! What an automaton that grows has gained, worked into what was compiled of it.
//!
//! The blocks that hold a changed state accept more or lose a step, and DFA states, which are made of blocks in a
//! moment, are made again. Blocks that no state will hold again and states that nothing leads to stay until
//! everything is made anew.

use super::{Active, Block, BlockId, ClassId, LazyDfa, TRANSITION_BYTES, UNKNOWN, normalise};
use crate::engine::ids::StateId;
use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::{GrowingNfa, Growth};
use crate::engine::symbols::{EPSILON, STAR, Symbol};
use rustc_hash::FxHashMap;

/// Blocks, and states, up to which a change is worked in.
const GROWING_MAX: usize = 1 << 11;

impl LazyDfa {
    /// Works in what the automaton has gained since everything here was compiled from it, and returns that. Adds to
    /// `stale` the blocks whose plans, or the queries of those, are no longer the same. None if the caller is to begin
    /// anew: not all is remembered, or that is cheaper.
    ///
    /// Cost: a bit test a block and change; for a new child, or the first query or plan that ends in a block, a look
    /// at the transitions or states there are, at most [`GROWING_MAX`] states; what is made again when the next
    /// message asks for it.
    pub(crate) fn follow<'n>(
        &mut self,
        nfa: &'n GrowingNfa,
        since: u64,
        stale: &mut Vec<BlockId>,
    ) -> Option<&'n [Growth]> {
        if self.blocks.is_empty() {
            return Some(&[]);
        }
        let growth = nfa.growth_since(since).filter(|_| !self.is_outgrown())?;
        self.grow(nfa, growth, stale);
        Some(growth)
    }

    /// Whether there is so much that it is cheaper to begin anew than to work a change in: every change looks through
    /// all blocks and states, and leaves blocks that no state will hold again and states that nothing leads to.
    fn is_outgrown(&self) -> bool {
        self.blocks.len().max(self.states.len()) > GROWING_MAX
    }

    fn grow(&mut self, nfa: &GrowingNfa, growth: &[Growth], stale: &mut Vec<BlockId>) {
        self.collector.reserve(self.offset as usize + nfa.query_count());
        for &change in growth {
            let state = match change {
                Growth::Child(state, _) | Growth::Accept(state, _) | Growth::Plan(state, _) => {
                    state
                }
                Growth::Query(plan) => nfa.plan_entry(plan).0,
            };
            let holders = self.holders(state);
            match change {
                _ if holders.is_empty() => {}
                Growth::Child(_, EPSILON) => {
                    for &block in &holders {
                        self.blocks[block as usize].below = UNKNOWN;
                    }
                    self.forget_states(&holders);
                }
                Growth::Child(_, symbol) => self.forget_steps(&holders, symbol),
                Growth::Accept(_, query) => {
                    let number = query + self.offset;
                    for block in holders {
                        self.collector.add_words(&self.blocks[block as usize].words);
                        self.collector.add_range(&(number..number + 1), 0);
                        let words = self.collector.drain_to_words();
                        self.change_block(block, |block| block.words = words);
                    }
                }
                Growth::Plan(_, plan) => {
                    for &block in &holders {
                        let mut plans = self.blocks[block as usize].plans.to_vec();
                        plans.push(plan);
                        normalise(&mut plans);
                        self.change_block(block, |block| block.plans = plans.into());
                    }
                    stale.extend(holders);
                }
                Growth::Query(_) => stale.extend(holders),
            }
        }
    }

    /// The blocks that hold a state, of an automaton that keeps all states in its blocks.
    fn holders(&mut self, state: StateId) -> Vec<BlockId> {
        let bit = |state: StateId| 1u64 << (state.wrapping_mul(0x9e37_79b9) >> 26);
        for block in &self.blocks[self.signatures.len()..] {
            self.signatures.push(block.inner.iter().fold(0, |bits, &state| bits | bit(state)));
        }
        let wanted = bit(state);
        let may_hold = self.signatures.iter().enumerate().filter(|(_, bits)| **bits & wanted != 0);
        let blocks = may_hold.map(|(block, _)| block as BlockId);
        blocks.filter(|&b| self.blocks[b as usize].inner.binary_search(&state).is_ok()).collect()
    }

    /// Forgets the steps of blocks, which ascend, over a symbol.
    fn forget_steps(&mut self, blocks: &[BlockId], symbol: Symbol) {
        for class in 0..self.classes.len() {
            let names = self.classes[class];
            let is_over = symbol == STAR
                || [names.exact, names.in_namespace, names.any_namespace].contains(&symbol);
            if !is_over {
                continue;
            }
            for &block in blocks {
                let was_known = self.block_steps.remove(&(block, class as ClassId)).is_some();
                self.memory -= if was_known { TRANSITION_BYTES } else { 0 };
            }
            self.forget_transitions(class, |from, _| {
                has_any(&from.reached, blocks) || has_any(&from.looping, blocks)
            });
        }
    }

    /// Forgets the states that blocks, which ascend, were reached in, since others loop below them now: they keep
    /// their numbers, and nothing leads to them.
    fn forget_states(&mut self, blocks: &[BlockId]) {
        let is_forgotten = |state: &Active| has_any(&state.reached, blocks);
        if self.states.first().is_some_and(is_forgotten) {
            return self.drop_states();
        }
        let states = &self.states;
        self.state_index.retain(|state| !is_forgotten(&states[*state as usize]));
        for class in 0..self.classes.len() {
            self.forget_transitions(class, |from, to| is_forgotten(from) || is_forgotten(to));
        }
    }

    fn forget_transitions(&mut self, class: usize, is_old: impl Fn(&Active, &Active) -> bool) {
        let (states, transitions) = (&self.states, &mut self.transitions[class]);
        let known = transitions.len();
        transitions.retain(|&from, &mut to| !is_old(&states[from as usize], &states[to as usize]));
        let forgotten = known - transitions.len();
        self.transition_count -= forgotten;
        self.states_memory -= forgotten * TRANSITION_BYTES;
    }

    /// Changes what a block accepts or its plans.
    fn change_block(&mut self, id: BlockId, change: impl FnOnce(&mut Block)) {
        let key = self.blocks[id as usize].key();
        if let Ok(entry) = self.block_index.find_entry(key, |&b| b == id) {
            entry.remove();
        }
        let block = &mut self.blocks[id as usize];
        let (accepts, is_planned) = (!block.words.is_empty(), !block.plans.is_empty());
        self.memory -= block.memory();
        change(block);
        self.memory += block.memory();
        let (now_accepts, now_is_planned) = (!block.words.is_empty(), !block.plans.is_empty());
        let (key, blocks) = (block.key(), &self.blocks);
        self.block_index.insert_unique(key, id, |&b| blocks[b as usize].key());
        if (accepts, is_planned) == (now_accepts, now_is_planned) {
            return;
        }
        for active in &mut self.states {
            if !active.reached.contains(&id) && !active.looping.contains(&id) {
                continue;
            }
            if accepts != now_accepts {
                active.accepting = with_block(&active.accepting, id);
            }
            if is_planned != now_is_planned {
                active.planned = with_block(&active.planned, id);
            }
        }
    }

    /// Forgets the DFA states, but not the blocks.
    fn drop_states(&mut self) {
        self.states.clear();
        self.state_index.clear();
        self.transitions.iter_mut().for_each(FxHashMap::clear);
        (self.transition_count, self.states_memory) = (0, 0);
    }
}

/// Whether a few blocks are among some that ascend.
fn has_any(few: &[BlockId], blocks: &[BlockId]) -> bool {
    few.iter().any(|block| blocks.binary_search(block).is_ok())
}

/// A list of blocks, which ascend, and one more.
fn with_block(blocks: &[BlockId], more: BlockId) -> Box<[BlockId]> {
    let mut blocks = blocks.to_vec();
    blocks.push(more);
    normalise(&mut blocks);
    blocks.into()
}
