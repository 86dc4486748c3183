//! One message's conditions: which plans hold, and which queries that decides.

use super::atoms::Atoms;
use super::bottom_up::{BottomUp, Given, visits};
use super::facts::{Facts, Look};
use super::level::{Level, Statistics};
use super::nested_states::{Anchor, StateWords, next_wanted, want};
pub(crate) use super::prober::End;
use super::prober::{Prober, Scratch};
use super::sink::{MainSink, NestedSink};
use super::truth::Truth;
use crate::engine::collect::Collector;
use crate::engine::conditions::PostProcessor;
use crate::engine::dfa::{BlockId, DfaState, INITIAL, LazyDfa};
use crate::engine::evaluate::budget::Budget;
use crate::engine::ids::{PlanId, QueryNumber};
use crate::engine::interrupt::did;
use crate::engine::marks::Marks;
use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::Growth;
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::reach::Reach;
use crate::xml::names::NameTable;
use crate::xml::tree::{Message, MessageTree};
use std::ops::Range;

/// Elements of subtrees, in elements of the message, that nested paths may be run over from their anchors.
/// Where it would be more, they are found from the leaves upwards ([`BottomUp`]).
const VISITS_AN_ELEMENT: u64 = 16;
/// The same for small messages.
const VISITS_MIN: u64 = 1 << 16;
/// Plans at elements below an anchor that may be decided for each visit.
const PLANS_A_VISIT: u64 = 16;
/// One message in so many has its nested paths counted.
const NESTED_SAMPLE: u32 = 16;
/// But all of the first.
const NESTED_FIRST: u32 = 16;

/// What a worker knows about the conditions of one automaton: a cache, like its DFA.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    atoms: Atoms,
    facts: Facts,
    main: Level,
    scratch: Scratch,
    nested: Level,
    nested_scratch: Scratch,
    nested_dfa: LazyDfa,
    nested_count: usize,
    nested_hits: Vec<u32>,
    nested_messages: u32,
    messages: u32,
    truth: Truth,
    /// The nested paths of the anchor at hand.
    row: Collector,
    states: Vec<DfaState>,
    /// States seen below the anchor at hand.
    seen: Marks,
    anchors: Vec<Anchor>,
    /// Distinct states below each anchor.
    fresh: Vec<DfaState>,
    /// Where nested paths with conditions end, by anchor.
    nested_ends: Vec<End>,
    nested_words: StateWords,
    wanted: Vec<u64>,
    bottom_up: BottomUp,
    /// The main level with access conditions that no message before has had a part in, for messages that may
    /// use up their steps.
    steady: Level,
    steady_scratch: Scratch,
    was_steady: bool,
}

/// Where the paths of blocks of plans end: runs of elements in document order, of one block each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'e> {
    /// Blocks, and their parts of the elements.
    pub(crate) runs: &'e [(BlockId, Range<usize>)],
    /// The elements.
    pub(crate) elements: &'e [u32],
}

impl<'e> Ends<'e> {
    /// Every run: its block and its elements.
    pub(crate) fn iter(self) -> impl Iterator<Item = (BlockId, &'e [u32])> {
        self.runs.iter().map(move |(block, range)| (*block, &self.elements[range.clone()]))
    }
}

/// The plans of each block.
pub(crate) trait Blocks {
    /// The plans of a block, ascending.
    fn plans(&self, block: BlockId) -> &[PlanId];

    /// Whether nothing is left to be reached by the plans of a block, of an automaton with targets.
    fn has_reached(&self, _block: BlockId, _found: &Collector) -> bool {
        false
    }
}

impl Blocks for LazyDfa {
    fn plans(&self, block: BlockId) -> &[PlanId] {
        &self.block(block).plans
    }

    fn has_reached(&self, block: BlockId, found: &Collector) -> bool {
        self.has_reached(block, found)
    }
}

/// What has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All but the plans that are no conjunctions, and the blocks that are undecided.
    Conjunctions,
    /// Nothing: the message is too deep for so many nested paths.
    Nothing,
}

/// The message, and what is kept about it elsewhere.
#[derive(Debug)]
pub(crate) struct Setting<'m, 'w> {
    /// The message.
    pub(crate) message: Message<'m>,
    /// Its names.
    pub(crate) names: &'m NameTable,
    /// Ordinals and numbers of string-values.
    pub(crate) post: &'w mut PostProcessor,
    /// Takes the queries of exact plans.
    pub(crate) collector: &'w mut Collector,
    /// Stamps of the plans that hold.
    pub(crate) plans: &'w mut [u32],
    /// The stamp of now.
    pub(crate) now: u32,
    /// Takes the other plans that hold.
    pub(crate) held: &'w mut Vec<PlanId>,
    /// Added to query numbers.
    pub(crate) offset: QueryNumber,
    /// Where the query numbers are targets: what can be reached from where.
    pub(crate) reach: Option<&'w Reach>,
}

impl Contents {
    /// Bytes held by what is compiled.
    pub(crate) fn memory(&self) -> usize {
        self.atoms.memory()
            + self.main.memory()
            + self.nested.memory()
            + self.nested_dfa.memory()
            + self.nested_words.memory
            + self.bottom_up.memory()
            + self.steady.memory()
    }

    /// Forgets what was compiled of these blocks, and of plans that have more queries than before.
    pub(crate) fn grow(&mut self, blocks: &[BlockId], growth: &[Growth]) {
        for level in [&mut self.main, &mut self.steady] {
            let plans = growth.iter().filter_map(|change| match change {
                Growth::Query(plan) => Some(*plan),
                _ => None,
            });
            level.forget(blocks, plans);
        }
    }

    /// Finds the plans that hold, given the blocks that the message has reached and where. Plans that
    /// are no conjunctions are left to the caller ([`Contents::complex`]).
    ///
    /// Adds to `undecided` the blocks of which some plan may hold that is not known to, because the message
    /// has used up its steps. What is charged depends on the queries and the message alone.
    pub(crate) fn run<N: Nfa>(
        &mut self,
        nfa: &N,
        blocks: &impl Blocks,
        ends: Ends<'_>,
        setting: &mut Setting<'_, '_>,
        budget: &mut Budget,
        undecided: &mut Vec<BlockId>,
    ) -> Found {
        self.messages = self.messages.saturating_add(1);
        // No look-up costs more than all plans at all their ends; where that is too much, access conditions
        // must not depend on the messages before.
        let plans = |(block, elements): (BlockId, &[u32])| {
            (blocks.plans(block).len() as u64).saturating_mul(elements.len() as u64)
        };
        let most = ends.iter().map(plans).fold(0, u64::saturating_add);
        let is_steady = most > budget.left();
        self.turn_steady(is_steady);
        let found = self.find(nfa, blocks, ends, setting, budget, undecided, is_steady);
        self.turn_steady(is_steady);
        self.was_steady = is_steady;
        found
    }

    /// The plans of a block that are no conjunctions; of the message that has just been run.
    pub(crate) fn complex(&self, block: BlockId) -> &[PlanId] {
        self.level().complex(block)
    }

    /// Whether a plan is no conjunction, and was found where the conjuncts that it needs hold; of the same message.
    pub(crate) fn is_needing(&self, plan: PlanId) -> bool {
        self.level().is_needing(plan)
    }

    fn level(&self) -> &Level {
        if self.was_steady { &self.steady } else { &self.main }
    }

    fn turn_steady(&mut self, is_steady: bool) {
        if is_steady {
            std::mem::swap(&mut self.main, &mut self.steady);
            std::mem::swap(&mut self.scratch, &mut self.steady_scratch);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of it is lent by different owners")]
    fn find<N: Nfa>(
        &mut self,
        nfa: &N,
        blocks: &impl Blocks,
        ends: Ends<'_>,
        setting: &mut Setting<'_, '_>,
        budget: &mut Budget,
        undecided: &mut Vec<BlockId>,
        is_steady: bool,
    ) -> Found {
        let tree = setting.message.tree;
        let nested = nfa.nested_paths();
        if !is_steady {
            self.main.adapt(self.messages);
        }
        self.nested.adapt(self.messages);
        self.compile(nfa, blocks, ends, nested, setting.offset, is_steady);
        self.atoms.learn_names(setting.names);
        self.facts.begin();
        self.scratch.begin_message(&self.main);
        self.truth.begin(tree.len(), 0, 0);
        let asking;
        let mut ends = ends;
        if nested.is_some()
            && let Some(reach) = setting.reach
        {
            // What asks for no nested path may reach all that is to be reached by those that do.
            let asks = |(block, _): &(BlockId, Range<usize>)| {
                !self.main.of_block(*block).nested_places.is_empty()
            };
            let (mut those, others): (Vec<_>, Vec<_>) = ends.runs.iter().cloned().partition(asks);
            let others = Ends { runs: &others, elements: ends.elements };
            self.look_up(blocks, others, setting, budget, undecided, is_steady);
            reach.conclude(setting.collector);
            those.retain(|(block, _)| !blocks.has_reached(*block, setting.collector));
            asking = those;
            ends = Ends { runs: &asking, elements: ends.elements };
        }
        if let Some(nested) = nested
            && self.want_anchors(tree, ends)
        {
            match self.find_nested(nested, blocks, ends, setting, budget) {
                Ok(()) => {}
                Err(Given::Over) => return Found::Nothing,
                Err(Given::Up) => {
                    let reached = ends.runs.iter().map(|(block, _)| *block);
                    let asks =
                        |block: &BlockId| !self.main.of_block(*block).nested_places.is_empty();
                    undecided.extend(reached.filter(asks));
                    undecided.sort_unstable();
                    undecided.dedup();
                }
            }
        }
        self.look_up(blocks, ends, setting, budget, undecided, is_steady);
        Found::Conjunctions
    }

    /// Finds what holds at every anchor.
    fn find_nested(
        &mut self,
        nested: &NestedPaths,
        blocks: &impl Blocks,
        ends: Ends<'_>,
        setting: &mut Setting<'_, '_>,
        budget: &mut Budget,
    ) -> Result<(), Given> {
        if self.nested_count != nested.len() {
            self.nested_count = nested.len();
            self.nested_dfa.reset(0);
            self.nested = Level::default();
            self.nested_words = StateWords::default();
            self.nested_hits.clear();
            self.nested_messages = 0;
            self.bottom_up.reset();
        }
        let tree = setting.message.tree;
        let visits_max = VISITS_AN_ELEMENT * tree.len() as u64 + VISITS_MIN;
        if visits(&self.wanted, tree) <= visits_max {
            if self.run_nested(nested, setting, visits_max) {
                let steps = self.anchors.len() + self.nested_ends.len();
                return budget.charge(steps as u64).map_err(|_| Given::Up);
            }
            self.want_anchors(tree, ends);
        }
        let mut look = Look {
            message: setting.message,
            names: setting.names,
            post: &mut *setting.post,
            atoms: &mut self.atoms,
            facts: &mut self.facts,
        };
        let (main, bottom_up) = (&self.main, &mut self.bottom_up);
        bottom_up.begin_message(nested, &mut look);
        let mut is_readable = true;
        let mut last = BlockId::MAX;
        for &(block, _) in ends.runs {
            if block != last {
                last = block;
                main.asked_nested(blocks.plans(block), |asked| {
                    is_readable &= bottom_up.ask(asked, nested, &mut look);
                });
            }
        }
        if !is_readable {
            return Err(Given::Over);
        }
        bottom_up.find_rows(nested, &self.wanted, &mut look, &mut self.truth, budget)
    }

    fn compile<N: Nfa>(
        &mut self,
        nfa: &N,
        blocks: &impl Blocks,
        ends: Ends<'_>,
        nested: Option<&NestedPaths>,
        offset: QueryNumber,
        is_steady: bool,
    ) {
        let mut last = BlockId::MAX;
        for &(block, _) in ends.runs {
            if block != last {
                last = block;
                let mut statistics = Statistics {
                    messages: self.messages,
                    nested_messages: self.nested_messages,
                    nested_hits: &self.nested_hits,
                    nested_guesses: nested.map_or(&[][..], NestedPaths::guesses),
                };
                if is_steady {
                    (statistics.messages, statistics.nested_messages) = (0, 0);
                }
                let plans = blocks.plans(block);
                let atoms = &mut self.atoms;
                self.main.ensure(nfa, block, plans, nested, atoms, offset, statistics);
            }
        }
    }

    /// Marks the elements at which nested paths are asked for; false if there is none.
    fn want_anchors(&mut self, tree: &MessageTree, ends: Ends<'_>) -> bool {
        self.wanted.clear();
        self.wanted.resize(tree.len().div_ceil(64), 0);
        let mut is_any = false;
        for (block, elements) in ends.iter() {
            let places = &self.main.of_block(block).nested_places;
            if !places.is_empty() {
                is_any = true;
                for &element in elements {
                    self.scratch.follow(tree, element);
                    want(&mut self.wanted, &self.scratch, places, 0);
                }
            }
        }
        is_any
    }

    /// Runs the automaton of the nested paths from every anchor. False if that would cost too much.
    fn run_nested(
        &mut self,
        nested: &NestedPaths,
        setting: &mut Setting<'_, '_>,
        visits_max: u64,
    ) -> bool {
        let tree = setting.message.tree;
        self.nested_dfa.prepare(nested.nfa(), setting.names);
        self.row.reserve(nested.len());
        self.nested_scratch.begin_message(&self.nested);
        self.anchors.clear();
        self.fresh.clear();
        self.nested_ends.clear();
        let mut left = visits_max;
        let mut plans_left = visits_max.saturating_mul(PLANS_A_VISIT);
        let mut anchor = 0;
        while let Some(next) = next_wanted(&self.wanted, anchor) {
            let visited = u64::from(tree.element_end[next as usize] - next);
            if visited > left {
                return false;
            }
            left -= visited;
            let plans = self.descend(nested, next, setting);
            if plans > plans_left {
                return false;
            }
            plans_left -= plans;
            anchor = next + 1;
        }
        self.atoms.learn_names(setting.names);
        self.facts.begin();
        self.truth.begin(tree.len(), self.anchors.len(), nested.len());
        self.find_rows(nested, setting);
        true
    }

    /// Runs the automaton of the nested paths over an anchor, where `.//.` begins, and what lies below it.
    /// Anchors come in document order, because nested paths have nested paths that are asked for further
    /// down. Returns how many plans end there, as often as they do.
    fn descend(&mut self, nested: &NestedPaths, anchor: u32, setting: &mut Setting<'_, '_>) -> u64 {
        let mut ending = 0;
        let tree = setting.message.tree;
        let nfa = nested.nfa();
        let base = tree.depth[anchor as usize] as usize + 1;
        self.states.clear();
        self.seen.begin(self.nested_dfa.len());
        let (fresh, ends) = (self.fresh.len() as u32, self.nested_ends.len() as u32);
        for element in anchor..tree.element_end[anchor as usize] {
            let state = if element == anchor {
                INITIAL
            } else {
                let from = self.states[(tree.parent[element as usize] - anchor) as usize];
                self.nested_dfa.step_by_name(nfa, from, tree.name[element as usize])
            };
            self.states.push(state);
            if self.seen.add(state) {
                self.nested_words.ensure(&self.nested_dfa, state, nested.len());
                self.fresh.push(state);
            }
            for &block in self.nested_dfa.planned(state) {
                let statistics = Statistics {
                    messages: self.messages,
                    nested_messages: self.nested_messages,
                    nested_hits: &self.nested_hits,
                    nested_guesses: nested.guesses(),
                };
                let plans = &self.nested_dfa.block(block).plans;
                ending += plans.len() as u64;
                let atoms = &mut self.atoms;
                self.nested.ensure(nfa, block, plans, Some(nested), atoms, 0, statistics);
                self.nested_ends.push(End { block, element });
                let places = &self.nested.of_block(block).nested_places;
                if !places.is_empty() {
                    self.nested_scratch.follow(tree, element);
                    want(&mut self.wanted, &self.nested_scratch, places, base);
                }
            }
        }
        self.anchors.push(Anchor {
            element: anchor,
            fresh: fresh..self.fresh.len() as u32,
            ends: ends..self.nested_ends.len() as u32,
        });
        ending
    }

    /// Finds what holds at the anchors, the last one first: what lies below an anchor is known when its
    /// turn comes.
    fn find_rows(&mut self, nested: &NestedPaths, setting: &mut Setting<'_, '_>) {
        let tree = setting.message.tree;
        let nfa = nested.nfa();
        let is_sampled =
            self.messages <= NESTED_FIRST || self.messages.is_multiple_of(NESTED_SAMPLE);
        let mut look = Look {
            message: setting.message,
            names: setting.names,
            post: &mut *setting.post,
            atoms: &mut self.atoms,
            facts: &mut self.facts,
        };
        for anchor in self.anchors.iter().rev() {
            let fresh = &self.fresh[anchor.fresh.start as usize..anchor.fresh.end as usize];
            self.nested_words.touch(fresh);
            for &state in fresh {
                for &(at, bits) in self.nested_words.of(state) {
                    self.row.add_word(at, bits);
                }
            }
            let ends = &self.nested_ends[anchor.ends.start as usize..anchor.ends.end as usize];
            if !ends.is_empty() {
                self.nested_scratch.begin(&self.nested);
                let base = tree.depth[anchor.element as usize] as usize + 1;
                let mut sink = NestedSink { nfa, row: &mut self.row };
                let (level, truth) = (&self.nested, &self.truth);
                let scratch = &mut self.nested_scratch;
                let mut prober = Prober::new(level, truth, scratch, base);
                for &end in ends {
                    prober.look_up_end(end, &mut look, &mut sink);
                }
                prober.finish(&mut look, &mut sink);
                let checks = prober.checks;
                self.nested.count_checks(checks);
            }
            self.truth.add_row(anchor.element, &mut self.row);
            if is_sampled {
                self.truth.count_row(anchor.element, nested.len(), &mut self.nested_hits);
            }
        }
        self.nested_messages += u32::from(is_sampled);
    }

    /// Looks up what ends where, but for the blocks that are undecided already; adds those that are left when
    /// the steps are used up.
    fn look_up(
        &mut self,
        blocks: &impl Blocks,
        ends: Ends<'_>,
        setting: &mut Setting<'_, '_>,
        budget: &mut Budget,
        undecided: &mut Vec<BlockId>,
        is_steady: bool,
    ) {
        let has_targets = setting.reach.is_some();
        let mut sink = MainSink {
            reach: setting.reach,
            collector: &mut *setting.collector,
            plans: &mut *setting.plans,
            now: setting.now,
            held: &mut *setting.held,
        };
        let mut look = Look {
            message: setting.message,
            names: setting.names,
            post: &mut *setting.post,
            atoms: &mut self.atoms,
            facts: &mut self.facts,
        };
        look.facts.take_read();
        let (level, truth, scratch) = (&self.main, &self.truth, &mut self.scratch);
        let mut prober = Prober::new(level, truth, scratch, 0);
        let known = undecided.len();
        let most = if is_steady { budget.left() } else { budget.given() };
        let mut counted = prober.work;
        'runs: for (at, (block, elements)) in ends.iter().enumerate() {
            if undecided[..known].binary_search(&block).is_ok() {
                continue;
            }
            for &element in elements {
                if has_targets && blocks.has_reached(block, sink.collector) {
                    continue 'runs;
                }
                prober.look_up_end(End { block, element }, &mut look, &mut sink);
                let spent = prober.work - counted;
                counted = prober.work;
                if prober.work > most || did(spent) {
                    undecided.extend(ends.runs[at..].iter().map(|(block, _)| *block));
                    break 'runs;
                }
            }
        }
        prober.finish(&mut look, &mut sink);
        let (checks, work) = (prober.checks, prober.work);
        self.main.count_checks(checks);
        if is_steady {
            budget.take(work);
        }
    }
}
