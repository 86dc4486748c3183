//! The shared NFA run through a lazily built DFA.
//!
//! A DFA state is what is active after one label path. Reading it off the NFA state by state would
//! make the first sight of a label path cost what all its NFA states cost, though nearly all of
//! that has been seen before: a run that began at some `//` goes on the same way whatever stands above.
//! So the active states are kept in *blocks*: a block is a set of NFA states that became active
//! together, and a DFA state is a set of blocks. The step of a block over a name is computed once,
//! whatever DFA states it stands in, and what a block accepts is kept once, as words of query numbers.
//! A DFA state that has not been seen costs a look-up per block of its parent, about a dozen.
//!
//! Blocks may overlap where one state is reached by two routes; when a DFA state would gather more than
//! [`BLOCKS_MAX`] blocks they are merged into one, which is the plain subset construction.
//!
//! What an automaton that grows has gained is worked into what was compiled ([`LazyDfa::follow`]).
//!
//! Everything here is a cache: the caller drops it when [`LazyDfa::memory`] passes its bound.
//!
//! Source: paper 003, section 3.2.4 for what is active; Green et al. 2003 for lazy construction.

use crate::engine::collect::{Collector, Words};
use crate::engine::ids::{PlanId, QueryNumber, StateId};
use crate::engine::nfa::Nfa;
use crate::engine::reach::{add, is_reached};
use crate::engine::symbols::Class;
use crate::xml::names::{NameId, NameTable};
use crate::xml::tree::{MessageTree, NONE};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::ops::Range;

mod growing;

/// Number of a DFA state in one [`LazyDfa`].
pub(crate) type DfaState = u32;
/// Number of a block in one [`LazyDfa`].
pub(crate) type BlockId = u32;
type ClassId = u32;

/// Blocks of one kind that a DFA state may hold before they are merged. More of them make a miss
/// a little cheaper and every message dearer, which has to visit each; 1 to 32 were measured.
const BLOCKS_MAX: usize = 4;
/// The block without states.
const EMPTY: BlockId = 0;
const UNKNOWN: u32 = u32::MAX;
/// The DFA state of the document node.
pub(crate) const INITIAL: DfaState = 0;

/// NFA states that became active together.
///
/// More than half of all states are leaves: they accept, and nothing leads on from them. What they
/// accept is in the words, so the states that are kept are those with something below.
#[derive(Debug)]
pub(crate) struct Block {
    inner: Box<[StateId]>,
    /// Queries accepted without conditions.
    pub(crate) words: Words,
    /// Plans whose main path ends at one of the states.
    pub(crate) plans: Box<[PlanId]>,
    /// The `//`-child states of the inner states; [`UNKNOWN`] until asked for.
    below: BlockId,
    /// Where the automaton has targets: what its states lead to.
    leads: Option<Box<Leads>>,
}

impl Block {
    fn memory(&self) -> usize {
        let leads = self.leads.as_ref().map_or(0, |leads| leads.memory());
        (self.inner.len() + self.plans.len()) * 4 + self.words.memory() + leads + BLOCK_BYTES
    }

    /// Hash of its content.
    fn key(&self) -> u64 {
        hash_ids(&[&self.inner, self.words.at(), &self.plans])
    }
}

/// What a block leads to.
#[derive(Debug)]
struct Leads {
    /// Its states themselves.
    here: Box<[u64]>,
    /// The states that they lead to.
    under: Box<[u64]>,
    /// Plans that look into the elements that its states are reached by.
    inside: Box<[u64]>,
}

impl Leads {
    fn of<N: Nfa>(nfa: &N, states: &[StateId]) -> Option<Box<Leads>> {
        let reach = nfa.reach()?;
        let mut leads = Leads::none(reach.words());
        for &state in states {
            add(&mut leads.here, reach.of_state(state));
            add(&mut leads.under, reach.under(state));
            add(&mut leads.inside, reach.inside(state));
        }
        Some(Box::new(leads))
    }

    fn none(words: usize) -> Leads {
        let none = || vec![0; words].into();
        Leads { here: none(), under: none(), inside: none() }
    }

    fn add(&mut self, other: &Leads) {
        add(&mut self.here, &other.here);
        add(&mut self.under, &other.under);
        add(&mut self.inside, &other.inside);
    }

    fn memory(&self) -> usize {
        size_of::<Leads>() + 24 * self.here.len()
    }
}

/// What is active after a label path.
#[derive(Debug)]
struct Active {
    /// Blocks of states that the last element led to.
    reached: Box<[BlockId]>,
    /// Blocks of `//`-child states, which stay active below.
    looping: Box<[BlockId]>,
    /// Those of both that accept something without conditions.
    accepting: Box<[BlockId]>,
    /// Those of both that have plans.
    planned: Box<[BlockId]>,
    /// Where the automaton has targets: what can be reached below, and by what is inside the element.
    below: Option<Box<[u64]>>,
    inside: Option<Box<[u64]>>,
}

/// A cache of what the NFA does; see the module's text.
#[derive(Debug, Default)]
pub(crate) struct LazyDfa {
    classes: Vec<Class>,
    class_index: FxHashMap<Class, ClassId>,
    class_of_name: Vec<ClassId>,
    names_generation: u64,
    /// Size of the alphabet that the classes are of.
    symbols: usize,
    blocks: Vec<Block>,
    /// Per block, hashes of its inner states as bits; of the first blocks, as far as they were needed.
    signatures: Vec<u64>,
    block_index: HashTable<BlockId>,
    block_steps: FxHashMap<(BlockId, ClassId), BlockId>,
    /// Blocks that stand for several.
    merged: FxHashMap<Box<[BlockId]>, BlockId>,
    states: Vec<Active>,
    state_index: HashTable<DfaState>,
    /// By class.
    transitions: Vec<FxHashMap<DfaState, DfaState>>,
    transition_count: usize,
    /// Bytes of blocks and their steps.
    memory: usize,
    /// Bytes of DFA states and their transitions.
    states_memory: usize,
    /// Added to every query number in [`Block::words`].
    offset: QueryNumber,
    buffer: String,
    collector: Collector,
    ranges: Vec<Range<QueryNumber>>,
}

impl LazyDfa {
    /// Forgets everything; words count query numbers from `offset` from now on. The memory of the
    /// entries goes, the bitmap in which words are made stays.
    pub(crate) fn reset(&mut self, offset: QueryNumber) {
        let collector = std::mem::take(&mut self.collector);
        *self = LazyDfa { offset, collector, ..LazyDfa::default() };
    }

    /// Bytes held, as counted when entries were made.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.states_memory
    }

    /// Number of DFA states.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Runs a message: the DFA state of each element, in document order.
    ///
    /// Returns the number of misses (elements whose DFA state or transition had to be made), or none
    /// when `memory_max` was passed on the way; the caller then drops the cache.
    pub(crate) fn run<N: Nfa>(
        &mut self,
        nfa: &N,
        names: &NameTable,
        tree: &MessageTree,
        reached: &mut Vec<DfaState>,
        memory_max: usize,
    ) -> Option<u64> {
        self.prepare(nfa, names);
        reached.clear();
        reached.reserve(tree.len());
        let mut misses = 0;
        for (&name, &parent) in tree.name.iter().zip(&tree.parent) {
            let from = if parent == NONE { INITIAL } else { reached[parent as usize] };
            let class = self.class_of_name[name as usize];
            let to = match self.transitions[class as usize].get(&from) {
                Some(&to) => to,
                None => {
                    misses += 1;
                    let to = self.make_transition(nfa, from, class);
                    if self.memory() > memory_max {
                        return None;
                    }
                    to
                }
            };
            reached.push(to);
        }
        Some(misses)
    }

    /// Makes ready for a message, for [`LazyDfa::step_by_name`].
    pub(crate) fn prepare<N: Nfa>(&mut self, nfa: &N, names: &NameTable) {
        if self.states.is_empty() {
            self.begin(nfa);
        }
        self.classify_names(nfa, names);
    }

    /// The DFA state reached from `from` by an element of this name, made if it has to be.
    #[inline]
    pub(crate) fn step_by_name<N: Nfa>(
        &mut self,
        nfa: &N,
        from: DfaState,
        name: NameId,
    ) -> DfaState {
        let class = self.class_of_name[name as usize];
        match self.transitions[class as usize].get(&from) {
            Some(&to) => to,
            None => self.make_transition(nfa, from, class),
        }
    }

    /// The blocks of a DFA state that accept queries without conditions.
    pub(crate) fn accepting(&self, state: DfaState) -> impl Iterator<Item = (u32, &Block)> {
        let blocks = &self.states[state as usize].accepting;
        blocks.iter().map(|&b| (b, &self.blocks[b as usize]))
    }

    /// The blocks of a DFA state that have plans.
    pub(crate) fn planned(&self, state: DfaState) -> &[BlockId] {
        &self.states[state as usize].planned
    }

    /// Whether nothing is active in a state: no path ends at it or below.
    #[inline]
    pub(crate) fn is_dead(&self, state: DfaState) -> bool {
        let active = &self.states[state as usize];
        active.reached.is_empty() && active.looping.is_empty()
    }

    /// The state in which nothing is active; made if it is not there.
    pub(crate) fn dead_state(&mut self) -> DfaState {
        self.intern_state(vec![], vec![])
    }

    /// Whether all targets that a block leads to by itself have been found; false where the automaton has none.
    #[inline]
    pub(crate) fn has_reached(&self, block: BlockId, found: &Collector) -> bool {
        let leads = &self.blocks[block as usize].leads;
        leads.as_ref().is_some_and(|leads| is_reached(&leads.here, found))
    }

    /// The same for all that can be reached below a state.
    #[inline]
    pub(crate) fn has_reached_below(&self, state: DfaState, found: &Collector) -> bool {
        let below = &self.states[state as usize].below;
        below.as_ref().is_some_and(|below| is_reached(below, found))
    }

    /// The same for all that may be reached by what is inside an element of a state.
    #[inline]
    pub(crate) fn has_reached_inside(&self, state: DfaState, found: &Collector) -> bool {
        let inside = &self.states[state as usize].inside;
        inside.as_ref().is_some_and(|inside| is_reached(inside, found))
    }

    /// Number of transitions.
    pub(crate) fn transition_count(&self) -> usize {
        self.transition_count
    }

    /// A block.
    pub(crate) fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block as usize]
    }

    /// Number of blocks; block numbers are below it.
    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn begin<N: Nfa>(&mut self, nfa: &N) {
        let empty = self.block_of(nfa, &[]);
        debug_assert_eq!(empty, EMPTY);
        let root = self.block_of(nfa, &[0]);
        let below = self.below(nfa, root);
        let looping = if below == EMPTY { vec![] } else { vec![below] };
        let initial = self.intern_state(vec![root], looping);
        debug_assert_eq!(initial, INITIAL);
    }

    fn classify_names<N: Nfa>(&mut self, nfa: &N, names: &NameTable) {
        let symbols = nfa.symbols().len();
        if self.names_generation != names.generation() || self.symbols != symbols {
            self.class_of_name.clear();
            (self.names_generation, self.symbols) = (names.generation(), symbols);
        }
        for name in self.class_of_name.len()..names.len() {
            let name = name as NameId;
            let class = nfa.symbols().class(names.uri(name), names.local(name), &mut self.buffer);
            let next = self.classes.len() as ClassId;
            let id = *self.class_index.entry(class).or_insert(next);
            if id == next {
                self.classes.push(class);
                self.transitions.push(FxHashMap::default());
            }
            self.class_of_name.push(id);
        }
    }

    fn make_transition<N: Nfa>(&mut self, nfa: &N, from: DfaState, class: ClassId) -> DfaState {
        let active = &self.states[from as usize];
        let sources: Vec<BlockId> = active.reached.iter().chain(&active.looping).copied().collect();
        let looping = active.looping.to_vec();
        let mut reached = Vec::new();
        for block in sources {
            let target = self.block_step(nfa, block, class);
            if target != EMPTY {
                reached.push(target);
            }
        }
        let to = self.state_of(nfa, reached, looping);
        self.transitions[class as usize].insert(from, to);
        self.transition_count += 1;
        self.states_memory += TRANSITION_BYTES;
        to
    }

    /// The DFA state in which, beside those of another one, NFA states are active that were reached and `//`-child
    /// states that loop.
    pub(crate) fn with_states<N: Nfa>(
        &mut self,
        nfa: &N,
        state: DfaState,
        reached: &[StateId],
        looping: &[StateId],
    ) -> DfaState {
        let (here, loops) = (self.block_of(nfa, reached), self.block_of(nfa, looping));
        let with = |blocks: &[BlockId], more| {
            blocks.iter().copied().chain((more != EMPTY).then_some(more)).collect()
        };
        let active = &self.states[state as usize];
        let (reached, looping) = (with(&active.reached, here), with(&active.looping, loops));
        self.state_of(nfa, reached, looping)
    }

    /// The DFA state of blocks that were reached, and of `//`-child states that loop; those of the former are added.
    fn state_of<N: Nfa>(
        &mut self,
        nfa: &N,
        mut reached: Vec<BlockId>,
        mut looping: Vec<BlockId>,
    ) -> DfaState {
        normalise(&mut reached);
        if reached.len() > BLOCKS_MAX {
            reached = vec![self.merge(nfa, &reached)];
        }
        for &block in &reached {
            let below = self.below(nfa, block);
            if below != EMPTY {
                looping.push(below);
            }
        }
        normalise(&mut looping);
        if looping.len() > BLOCKS_MAX {
            looping = vec![self.merge(nfa, &looping)];
        }
        self.intern_state(reached, looping)
    }

    fn block_step<N: Nfa>(&mut self, nfa: &N, block: BlockId, class: ClassId) -> BlockId {
        if let Some(&target) = self.block_steps.get(&(block, class)) {
            return target;
        }
        let mut targets = Vec::new();
        let names = self.classes[class as usize];
        for &state in &self.blocks[block as usize].inner {
            nfa.step(state, &names, &mut targets);
        }
        let target = self.block_of(nfa, &targets);
        self.block_steps.insert((block, class), target);
        self.memory += TRANSITION_BYTES;
        target
    }

    fn below<N: Nfa>(&mut self, nfa: &N, block: BlockId) -> BlockId {
        let known = self.blocks[block as usize].below;
        if known != UNKNOWN {
            return known;
        }
        let inner = &self.blocks[block as usize].inner;
        let children: Vec<StateId> = inner.iter().filter_map(|&s| nfa.epsilon(s)).collect();
        let below = self.block_of(nfa, &children);
        self.blocks[block as usize].below = below;
        below
    }

    /// One block for several.
    fn merge<N: Nfa>(&mut self, nfa: &N, blocks: &[BlockId]) -> BlockId {
        if let Some(&known) = self.merged.get(blocks) {
            return known;
        }
        self.collector.reserve(self.offset as usize + nfa.query_count());
        let (mut inner, mut plans) = (Vec::new(), Vec::new());
        let mut leads = nfa.reach().map(|reach| Box::new(Leads::none(reach.words())));
        for &block in blocks {
            let block = &self.blocks[block as usize];
            self.collector.add_words(&block.words);
            inner.extend_from_slice(&block.inner);
            plans.extend_from_slice(&block.plans);
            if let (Some(leads), Some(more)) = (&mut leads, &block.leads) {
                leads.add(more);
            }
        }
        let merged = self.intern_block(inner, plans, leads);
        self.merged.insert(blocks.into(), merged);
        self.memory += TRANSITION_BYTES + 16 + 4 * blocks.len();
        merged
    }

    /// The block of these states.
    fn block_of<N: Nfa>(&mut self, nfa: &N, states: &[StateId]) -> BlockId {
        self.collector.reserve(self.offset as usize + nfa.query_count());
        let (mut inner, mut plans) = (Vec::new(), Vec::new());
        for &state in states {
            nfa.accepted(state, &mut self.ranges);
            nfa.plans(state, &mut plans);
            if !nfa.is_leaf(state) {
                inner.push(state);
            }
        }
        for range in self.ranges.drain(..) {
            self.collector.add_range(&range, self.offset);
        }
        self.intern_block(inner, plans, Leads::of(nfa, states))
    }

    /// The block with these inner states and plans, and the words in the collector.
    fn intern_block(
        &mut self,
        mut inner: Vec<StateId>,
        mut plans: Vec<PlanId>,
        leads: Option<Box<Leads>>,
    ) -> BlockId {
        normalise(&mut inner);
        normalise(&mut plans);
        let words = self.collector.drain_to_words();
        let key = hash_ids(&[&inner, words.at(), &plans]);
        let known = self.block_index.find(key, |&b| {
            let block = &self.blocks[b as usize];
            *block.inner == *inner && *block.plans == *plans && block.words == words
        });
        if let Some(&known) = known {
            return known;
        }
        let id = self.blocks.len() as BlockId;
        let (inner, plans) = (inner.into(), plans.into());
        let block = Block { inner, words, plans, below: UNKNOWN, leads };
        self.memory += block.memory();
        self.blocks.push(block);
        let blocks = &self.blocks;
        self.block_index.insert_unique(key, id, |&b| blocks[b as usize].key());
        id
    }

    /// What can be reached below a state: what follows its blocks, and once more what loops.
    fn leads_below(&self, reached: &[BlockId], looping: &[BlockId]) -> Option<Box<[u64]>> {
        let words = self.blocks[EMPTY as usize].leads.as_ref()?.here.len();
        let mut below = vec![0; words];
        for (blocks, is_looping) in [(reached, false), (looping, true)] {
            for &block in blocks {
                let leads = self.blocks[block as usize].leads.as_ref()?;
                add(&mut below, &leads.under);
                if is_looping {
                    add(&mut below, &leads.here);
                }
            }
        }
        Some(below.into())
    }

    fn leads_inside<'b>(&self, blocks: impl Iterator<Item = &'b BlockId>) -> Option<Box<[u64]>> {
        let mut inside = vec![0; self.blocks[EMPTY as usize].leads.as_ref()?.here.len()];
        for &block in blocks {
            add(&mut inside, &self.blocks[block as usize].leads.as_ref()?.inside);
        }
        Some(inside.into())
    }

    fn intern_state(&mut self, reached: Vec<BlockId>, looping: Vec<BlockId>) -> DfaState {
        let key = hash_ids(&[&reached, &looping]);
        let known = self.state_index.find(key, |&s| {
            let active = &self.states[s as usize];
            *active.reached == *reached && *active.looping == *looping
        });
        if let Some(&known) = known {
            return known;
        }
        let with = |is: fn(&Block) -> bool| -> Box<[BlockId]> {
            let mut blocks: Vec<BlockId> = reached
                .iter()
                .chain(&looping)
                .copied()
                .filter(|&b| is(&self.blocks[b as usize]))
                .collect();
            normalise(&mut blocks);
            blocks.into()
        };
        let active = Active {
            accepting: with(|b| !b.words.is_empty()),
            planned: with(|b| !b.plans.is_empty()),
            below: self.leads_below(&reached, &looping),
            inside: self.leads_inside(reached.iter().chain(&looping)),
            reached: reached.into(),
            looping: looping.into(),
        };
        self.states_memory += 4 * 2 * (active.reached.len() + active.looping.len()) + STATE_BYTES;
        self.states_memory += active.below.as_ref().map_or(0, |below| 16 * below.len());
        let id = self.states.len() as DfaState;
        self.states.push(active);
        let states = &self.states;
        self.state_index.insert_unique(key, id, |&s| {
            let active = &states[s as usize];
            hash_ids(&[&active.reached, &active.looping])
        });
        id
    }
}

// What the maps hold for one entry, load factor and allocator included; measured, rounded up.
const TRANSITION_BYTES: usize = 24;
const BLOCK_BYTES: usize = 120;
const STATE_BYTES: usize = 120;

fn normalise(ids: &mut Vec<u32>) {
    ids.sort_unstable();
    ids.dedup();
}

fn hash_ids(lists: &[&[u32]]) -> u64 {
    let mut hasher = FxHasher::default();
    for list in lists {
        hasher.write(bytemuck::cast_slice(list));
        hasher.write_usize(list.len());
    }
    hasher.finish()
}
