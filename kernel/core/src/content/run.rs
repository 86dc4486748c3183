//! One message's conditions: which plans hold, and which queries that decides.

use super::atoms::Atoms;
use super::facts::{Facts, Look};
use super::level::{Level, Statistics};
use super::nested_paths::NestedPaths;
use super::nested_states::{Anchor, SeenStates, StateWords, next_wanted, want};
pub use super::prober::End;
use super::prober::{Prober, Scratch};
use super::sink::{MainSink, NestedSink};
use super::truth::Truth;
use crate::collect::Collector;
use crate::conditions::PostProcessor;
use crate::dfa::{BlockId, DfaState, INITIAL, LazyDfa};
use crate::names::NameTable;
use crate::nfa::{Nfa, PlanId, QueryNumber};
use crate::tree::{Message, MessageTree};

/// Elements of subtrees, in elements of the message, that nested paths may be run over.
const VISITS_AN_ELEMENT: usize = 64;
/// The same for small messages.
const VISITS_MIN: usize = 1 << 16;
/// One message in so many has its nested paths counted.
const NESTED_SAMPLE: u32 = 16;
/// But all of the first.
const NESTED_FIRST: u32 = 16;

/// What a worker knows about the conditions of one automaton: a cache, like its DFA.
#[derive(Debug, Default)]
pub struct Contents {
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
    seen: SeenStates,
    anchors: Vec<Anchor>,
    /// Distinct states below each anchor.
    fresh: Vec<DfaState>,
    /// Where nested paths with conditions end, by anchor.
    nested_ends: Vec<End>,
    nested_words: StateWords,
    wanted: Vec<u64>,
}

/// The message, and what is kept about it elsewhere.
#[derive(Debug)]
pub struct Setting<'m, 'w> {
    /// The message.
    pub message: Message<'m>,
    /// Its names.
    pub names: &'m NameTable,
    /// Ordinals and numbers of string-values.
    pub post: &'w mut PostProcessor,
    /// Takes the queries of exact plans.
    pub collector: &'w mut Collector,
    /// Stamps of the plans that hold.
    pub plans: &'w mut [u32],
    /// The stamp of now.
    pub now: u32,
    /// Takes the other plans that hold.
    pub held: &'w mut Vec<PlanId>,
    /// Added to query numbers.
    pub offset: QueryNumber,
}

impl Contents {
    /// Bytes held by what is compiled.
    pub fn memory(&self) -> usize {
        self.atoms.memory()
            + self.main.memory()
            + self.nested.memory()
            + self.nested_dfa.memory()
            + self.nested_words.memory
    }

    /// Finds the plans that hold, given the blocks that the message has reached and where. Plans that
    /// are no conjunctions are left to the caller, in `complex`, with the elements where they end.
    ///
    /// False if the message is so deep that its nested paths would cost too much this way; nothing
    /// has been found then.
    pub fn run<N: Nfa>(
        &mut self,
        nfa: &N,
        dfa: &LazyDfa,
        ends: &[End],
        setting: &mut Setting<'_, '_>,
        complex: &mut Vec<(PlanId, u32)>,
    ) -> bool {
        self.messages = self.messages.saturating_add(1);
        let tree = setting.message.tree;
        let nested = nfa.nested_paths();
        self.main.adapt(self.messages);
        self.nested.adapt(self.messages);
        self.compile(nfa, dfa, ends, nested, setting.offset);
        self.atoms.learn_names(setting.names);
        self.facts.begin();
        self.scratch.begin(&self.main);
        self.truth.begin(tree.len(), 0, 0);
        if let Some(nested) = nested
            && self.want_anchors(tree, ends)
            && !self.run_nested(nested, setting)
        {
            return false;
        }
        self.look_up(ends, setting, complex);
        true
    }

    fn compile<N: Nfa>(
        &mut self,
        nfa: &N,
        dfa: &LazyDfa,
        ends: &[End],
        nested: Option<&NestedPaths>,
        offset: QueryNumber,
    ) {
        let mut last = BlockId::MAX;
        for end in ends {
            if end.block != last {
                last = end.block;
                let statistics = Statistics {
                    messages: self.messages,
                    nested_messages: self.nested_messages,
                    nested_hits: &self.nested_hits,
                    nested_guesses: nested.map_or(&[][..], NestedPaths::guesses),
                };
                let plans = &dfa.block(end.block).plans;
                let atoms = &mut self.atoms;
                self.main.ensure(nfa, end.block, plans, nested, atoms, offset, statistics);
            }
        }
    }

    /// Marks the elements at which nested paths are asked for; false if there is none.
    fn want_anchors(&mut self, tree: &MessageTree, ends: &[End]) -> bool {
        self.wanted.clear();
        self.wanted.resize(tree.len().div_ceil(64), 0);
        let mut is_any = false;
        for end in ends {
            let places = &self.main.of_block(end.block).nested_places;
            if !places.is_empty() {
                is_any = true;
                self.scratch.follow(tree, end.element);
                want(&mut self.wanted, &self.scratch, places, 0);
            }
        }
        is_any
    }

    /// Finds what holds at every anchor. False if that would cost too much.
    fn run_nested(&mut self, nested: &NestedPaths, setting: &mut Setting<'_, '_>) -> bool {
        let tree = setting.message.tree;
        if self.nested_count != nested.len() {
            self.nested_count = nested.len();
            self.nested_dfa.reset(0);
            self.nested = Level::default();
            self.nested_words = StateWords::default();
            self.nested_hits.clear();
            self.nested_messages = 0;
        }
        self.nested_dfa.prepare(nested.nfa(), setting.names);
        self.row.reserve(nested.len());
        self.nested_scratch.begin(&self.nested);
        self.anchors.clear();
        self.fresh.clear();
        self.nested_ends.clear();
        let mut visits = VISITS_AN_ELEMENT * tree.len() + VISITS_MIN;
        let mut anchor = 0;
        while let Some(next) = next_wanted(&self.wanted, anchor) {
            let visited = (tree.element_end[next as usize] - next) as usize;
            if visited > visits {
                return false;
            }
            visits -= visited;
            self.descend(nested, next, setting);
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
    /// down.
    fn descend(&mut self, nested: &NestedPaths, anchor: u32, setting: &mut Setting<'_, '_>) {
        let tree = setting.message.tree;
        let nfa = nested.nfa();
        let base = tree.depth[anchor as usize] as usize + 1;
        self.states.clear();
        self.seen.begin();
        let (fresh, ends) = (self.fresh.len() as u32, self.nested_ends.len() as u32);
        for element in anchor..tree.element_end[anchor as usize] {
            let state = if element == anchor {
                INITIAL
            } else {
                let from = self.states[(tree.parent[element as usize] - anchor) as usize];
                self.nested_dfa.step_by_name(nfa, from, tree.name[element as usize])
            };
            self.states.push(state);
            if self.seen.insert(state) {
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
                let mut prober = Prober { level, truth, scratch, base, checks: 0 };
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

    fn look_up(
        &mut self,
        ends: &[End],
        setting: &mut Setting<'_, '_>,
        complex: &mut Vec<(PlanId, u32)>,
    ) {
        let mut sink = MainSink {
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
        let (level, truth, scratch) = (&self.main, &self.truth, &mut self.scratch);
        let mut prober = Prober { level, truth, scratch, base: 0, checks: 0 };
        for &end in ends {
            let index = level.of_block(end.block);
            complex.extend(index.complex.iter().map(|&plan| (plan, end.element)));
            prober.look_up_end(end, &mut look, &mut sink);
        }
        prober.finish(&mut look, &mut sink);
        let checks = prober.checks;
        self.main.count_checks(checks);
    }
}
