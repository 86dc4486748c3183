//! One message's conditions: which plans hold, and which queries that decides.

use super::atoms::Atoms;
use super::block_index::{BlockIndex, Group, Payload, kinds_in};
use super::facts::{Facts, Look};
use super::level::{Level, Statistics};
use super::nested_paths::NestedPaths;
use super::program::{Need, Place};
use super::truth::Truth;
use crate::collect::Collector;
use crate::conditions::PostProcessor;
use crate::dfa::{BlockId, DfaState, INITIAL, LazyDfa};
use crate::names::NameTable;
use crate::nfa::{Nfa, PlanId, QueryNumber};
use crate::tree::{Message, MessageTree};
use std::ops::Range;

/// Elements of subtrees, in elements of the message, that nested paths may be run over.
const VISITS_AN_ELEMENT: usize = 64;
/// The same for small messages.
const VISITS_MIN: usize = 1 << 16;
/// One message in so many has its nested paths counted.
const NESTED_SAMPLE: u32 = 16;
const NO_EVENT: u32 = u32::MAX;

/// A block of plans and an element at which their main paths end.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// The block.
    pub block: BlockId,
    /// The element.
    pub element: u32,
}

/// What takes the answers.
trait Sink {
    /// Exact plans hold.
    fn words(&mut self, at: &[u32], bits: &[u64]);
    /// Whether a plan is known to hold.
    fn is_known(&self, plan: PlanId) -> bool;
    /// A plan holds.
    fn plan(&mut self, plan: PlanId);
}

/// A nested group to be looked at when the nested paths of its place are at hand.
#[derive(Debug, Clone, Copy)]
struct Event {
    block: BlockId,
    group: u32,
    end: u32,
    next: u32,
}

/// What outlives neither the message nor the anchor at hand, kept for its memory.
#[derive(Debug, Default)]
struct Scratch {
    /// Counts messages and anchors.
    stamp: u32,
    /// Per group: the place it was looked at last.
    last: Vec<(u32, u32)>,
    /// Per list of thresholds: how many have been satisfied.
    done: Vec<(u32, u32)>,
    /// Ancestors of the element at hand, itself included, by depth.
    chain: Vec<u32>,
}

impl Scratch {
    fn begin(&mut self, level: &Level) {
        if self.stamp == u32::MAX {
            *self = Scratch::default();
        }
        self.stamp += 1;
        self.chain.clear();
        self.resize(level);
    }

    fn follow(&mut self, tree: &MessageTree, element: u32) {
        let depth = tree.depth[element as usize] as usize;
        if self.chain.last() == Some(&element) && self.chain.len() == depth + 1 {
            return;
        }
        self.chain.resize(depth + 1, 0);
        let mut at = element;
        for slot in self.chain.iter_mut().rev() {
            *slot = at;
            at = tree.parent[at as usize];
        }
    }

    /// The element at a place; depths count from `base`.
    #[inline]
    fn locate(&self, place: Place, base: usize) -> u32 {
        let last = self.chain.len() - 1;
        match place {
            Place::Up(parents) => self.chain[last - parents as usize],
            Place::Depth(depth) => self.chain[(base + depth as usize).min(last)],
        }
    }
}

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
    wanted: Vec<u64>,
    events: Vec<Event>,
    /// First event of each element.
    first_event: Vec<u32>,
    eventful: Vec<u32>,
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
        self.atoms.memory() + self.main.memory() + self.nested.memory() + self.nested_dfa.memory()
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
        self.compile(nfa, dfa, ends, nested, setting.offset);
        self.atoms.learn_names(setting.names);
        self.facts.begin();
        self.scratch.begin(&self.main);
        self.truth.begin(tree.len());
        if let Some(nested) = nested
            && self.want_anchors(tree, ends, nested)
            && !self.run_nested(nested, setting)
        {
            return false;
        }
        self.look_up(tree, ends, setting, complex);
        self.look_up_nested(setting);
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
                };
                let plans = &dfa.block(end.block).plans;
                let atoms = &mut self.atoms;
                self.main.ensure(nfa, end.block, plans, nested, atoms, offset, statistics);
            }
        }
    }

    /// Marks the elements at which nested paths are asked for; false if there is none.
    fn want_anchors(&mut self, tree: &MessageTree, ends: &[End], nested: &NestedPaths) -> bool {
        self.wanted.clear();
        self.wanted.resize(tree.len().div_ceil(64), 0);
        let mut is_any = false;
        for end in ends {
            let places = &self.main.index(end.block).nested_places;
            if places.is_empty() {
                continue;
            }
            is_any = true;
            self.scratch.follow(tree, end.element);
            for &place in places {
                let anchor = self.scratch.locate(place, 0);
                self.wanted[anchor as usize / 64] |= 1 << (anchor % 64);
            }
        }
        if is_any && nested.is_deep() {
            self.wanted.fill(u64::MAX);
        }
        is_any
    }

    /// Runs the nested paths from every anchor, the last one first, so that what lies below an anchor
    /// is known when its turn comes. False if that would cost too much.
    fn run_nested(&mut self, nested: &NestedPaths, setting: &mut Setting<'_, '_>) -> bool {
        let tree = setting.message.tree;
        if self.nested_count != nested.len() {
            self.nested_count = nested.len();
            self.nested_dfa.reset(0);
            self.nested = Level::default();
            self.nested_hits.clear();
            self.nested_messages = 0;
        }
        let is_wanted =
            |wanted: &[u64], anchor: usize| wanted[anchor / 64] >> (anchor % 64) & 1 == 1;
        let anchors = (0..tree.len()).filter(|&anchor| is_wanted(&self.wanted, anchor));
        let visits: usize = anchors.map(|a| tree.element_end[a] as usize - a - 1).sum();
        if visits > (VISITS_AN_ELEMENT * tree.len()).max(VISITS_MIN) {
            return false;
        }
        self.nested_dfa.prepare(nested.nfa(), setting.names);
        self.row.reserve(nested.len());
        let is_sampled = self.messages % NESTED_SAMPLE == 1;
        for anchor in (0..tree.len() as u32).rev() {
            if is_wanted(&self.wanted, anchor as usize) {
                self.run_anchor(nested, anchor, setting);
                self.truth.add_row(anchor, &mut self.row);
                if is_sampled {
                    self.truth.count_row(anchor, nested.len(), &mut self.nested_hits);
                }
            }
        }
        self.nested_messages += u32::from(is_sampled);
        true
    }

    fn run_anchor(&mut self, nested: &NestedPaths, anchor: u32, setting: &mut Setting<'_, '_>) {
        let tree = setting.message.tree;
        let nfa = nested.nfa();
        let first = anchor + 1;
        let base = tree.depth[anchor as usize] as usize + 1;
        self.states.clear();
        self.nested_scratch.begin(&self.nested);
        for element in first..tree.element_end[anchor as usize] {
            let parent = tree.parent[element as usize];
            let from =
                if parent == anchor { INITIAL } else { self.states[(parent - first) as usize] };
            let state = self.nested_dfa.step_by_name(nfa, from, tree.name[element as usize]);
            self.states.push(state);
            for (_, block) in self.nested_dfa.accepting(state) {
                self.row.add_words(&block.words);
            }
            let known = self.atoms.len();
            let planned = self.nested_dfa.planned(state).len();
            for at in 0..planned {
                let block = self.nested_dfa.planned(state)[at];
                let statistics = Statistics {
                    messages: self.messages,
                    nested_messages: self.nested_messages,
                    nested_hits: &self.nested_hits,
                };
                let plans = &self.nested_dfa.block(block).plans;
                let atoms = &mut self.atoms;
                self.nested.ensure(nfa, block, plans, Some(nested), atoms, 0, statistics);
                if self.atoms.len() != known {
                    self.atoms.learn_names(setting.names);
                    self.facts.begin();
                }
                self.nested_scratch.resize(&self.nested);
                self.nested_scratch.follow(tree, element);
                let mut look = Look {
                    message: setting.message,
                    names: setting.names,
                    post: &mut *setting.post,
                    atoms: &mut self.atoms,
                    facts: &mut self.facts,
                };
                let mut sink = NestedSink { nfa, row: &mut self.row };
                let index = self.nested.index(block);
                let mut prober = Prober {
                    index,
                    level: &self.nested,
                    truth: &self.truth,
                    scratch: &mut self.nested_scratch,
                    base,
                    checks: 0,
                };
                prober.unconditional(&mut sink);
                for (number, group) in index.groups.iter().enumerate() {
                    prober.look_up(group, &mut look, &mut sink);
                    let place = prober.scratch.locate(group.place, base);
                    prober.nested_by_search(number, place, &mut look, &mut sink);
                }
                let checks = prober.checks;
                self.nested.count_checks(block, checks);
            }
        }
    }

    fn look_up(
        &mut self,
        tree: &MessageTree,
        ends: &[End],
        setting: &mut Setting<'_, '_>,
        complex: &mut Vec<(PlanId, u32)>,
    ) {
        self.events.clear();
        self.eventful.clear();
        if self.first_event.len() < tree.len() {
            self.first_event.resize(tree.len(), NO_EVENT);
        }
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
        for end in ends {
            self.scratch.follow(tree, end.element);
            let index = self.main.index(end.block);
            let mut prober = Prober {
                index,
                level: &self.main,
                truth: &self.truth,
                scratch: &mut self.scratch,
                base: 0,
                checks: 0,
            };
            complex.extend(index.complex.iter().map(|&plan| (plan, end.element)));
            prober.unconditional(&mut sink);
            for (number, group) in index.groups.iter().enumerate() {
                prober.look_up(group, &mut look, &mut sink);
                if group.nested.words.is_empty() {
                    continue;
                }
                let place = prober.scratch.locate(group.place, 0);
                if self.truth.is_empty_at(place) {
                    continue;
                }
                let first = &mut self.first_event[place as usize];
                if *first == NO_EVENT {
                    self.eventful.push(place);
                }
                let next = std::mem::replace(first, self.events.len() as u32);
                let (block, element) = (end.block, end.element);
                self.events.push(Event { block, group: number as u32, end: element, next });
            }
            let checks = prober.checks;
            self.main.count_checks(end.block, checks);
        }
    }

    /// Anchor by anchor, so that its nested paths are a bitmap while they are asked for.
    fn look_up_nested(&mut self, setting: &mut Setting<'_, '_>) {
        let tree = setting.message.tree;
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
        for &anchor in &self.eventful {
            self.truth.load(anchor, self.nested_count);
            self.scratch.restamp();
            let mut at = std::mem::replace(&mut self.first_event[anchor as usize], NO_EVENT);
            while at != NO_EVENT {
                let event = self.events[at as usize];
                at = event.next;
                let index = self.main.index(event.block);
                let group = &index.groups[event.group as usize];
                if group.is_exact() {
                    // The place decides alone, whatever end has led to it.
                    let last = &mut self.scratch.last[group.number as usize];
                    if std::mem::replace(last, (self.scratch.stamp, anchor)).0 == self.scratch.stamp
                    {
                        continue;
                    }
                } else {
                    self.scratch.follow(tree, event.end);
                }
                let mut prober = Prober {
                    index,
                    level: &self.main,
                    truth: &self.truth,
                    scratch: &mut self.scratch,
                    base: 0,
                    checks: 0,
                };
                prober.nested_by_bitmap(group, &mut look, &mut sink);
                let checks = prober.checks;
                self.main.count_checks(event.block, checks);
            }
            self.truth.unload(anchor);
        }
    }
}

impl Scratch {
    /// Makes room for groups that have been compiled meanwhile.
    fn resize(&mut self, level: &Level) {
        let counts = level.counts();
        self.last.resize(counts.groups as usize, (0, 0));
        self.done.resize(counts.thresholds as usize, (0, 0));
    }

    /// Forgets where groups have been looked at.
    fn restamp(&mut self) {
        if self.stamp == u32::MAX {
            self.last.fill((0, 0));
            self.done.fill((0, 0));
            self.stamp = 0;
        }
        self.stamp += 1;
    }
}

/// Looks up the groups of one block for one end.
struct Prober<'a> {
    index: &'a BlockIndex,
    level: &'a Level,
    truth: &'a Truth,
    scratch: &'a mut Scratch,
    base: usize,
    checks: u32,
}

impl Prober<'_> {
    fn unconditional(&mut self, sink: &mut impl Sink) {
        for &plan in &self.index.unconditional {
            if !sink.is_known(plan) {
                sink.plan(plan);
            }
        }
    }

    /// Everything but nested paths.
    #[inline]
    fn look_up(&mut self, group: &Group, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        if group.kinds == 0 && group.ranges.is_empty() && group.tried.is_empty() {
            return;
        }
        let place = self.scratch.locate(group.place, self.base);
        if group.is_exact() {
            let stamp = self.scratch.stamp;
            let last = &mut self.scratch.last[group.number as usize];
            if std::mem::replace(last, (stamp, place)) == (stamp, place) {
                return;
            }
        }
        for kind in kinds_in(group.kinds) {
            for at in look.satisfied(place, kind) {
                if let Some(range) = group.find(look.atom_at(at)) {
                    self.emit(group, range, look, sink);
                }
            }
        }
        for list in &group.ranges {
            let Some((low, high)) = look.numbers(list.subject, place) else {
                continue;
            };
            let satisfied = list.satisfied(low, high);
            let mut from = 0;
            if group.is_exact() {
                let stamp = self.scratch.stamp;
                let done = &mut self.scratch.done[list.number as usize];
                if done.0 != stamp {
                    *done = (stamp, 0);
                }
                from = done.1 as usize;
                done.1 = done.1.max(satisfied as u32);
            }
            if from < satisfied {
                self.emit(group, list.payload(from..satisfied), look, sink);
            }
        }
        for (atom, range) in &group.tried {
            if look.holds(*atom, place) {
                self.emit(group, range.clone(), look, sink);
            }
        }
    }

    /// The nested paths of a group at an anchor whose nested paths are loaded.
    fn nested_by_bitmap(&mut self, group: &Group, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        let nested = &group.nested;
        for (word, (&at, &mask)) in nested.words.iter().zip(&nested.masks).enumerate() {
            let hits = self.truth.loaded(at) & mask;
            if hits != 0 {
                nested.each(word, hits, |range| self.emit(group, range, look, sink));
            }
        }
    }

    /// The same at any anchor.
    fn nested_by_search(
        &mut self,
        group: usize,
        anchor: u32,
        look: &mut Look<'_, '_>,
        sink: &mut impl Sink,
    ) {
        let group = &self.index.groups[group];
        let nested = &group.nested;
        if nested.words.is_empty() || self.truth.is_empty_at(anchor) {
            return;
        }
        for (word, (&at, &mask)) in nested.words.iter().zip(&nested.masks).enumerate() {
            let hits = self.truth.word(anchor, at) & mask;
            if hits != 0 {
                nested.each(word, hits, |range| self.emit(group, range, look, sink));
            }
        }
    }

    #[inline]
    fn emit(
        &mut self,
        group: &Group,
        range: Range<u32>,
        look: &mut Look<'_, '_>,
        sink: &mut impl Sink,
    ) {
        let range = range.start as usize..range.end as usize;
        match &group.payload {
            Payload::Words { at, bits } => sink.words(&at[range.clone()], &bits[range]),
            Payload::Plans(plans) => {
                for &plan in &plans[range] {
                    self.checks += 1;
                    if !sink.is_known(plan) && self.check(plan, look) {
                        sink.plan(plan);
                    }
                }
            }
        }
    }

    /// All conjuncts of a plan; that the access condition is looked at again costs less than to
    /// remember which it was.
    fn check(&mut self, plan: PlanId, look: &mut Look<'_, '_>) -> bool {
        self.level.conjuncts(plan).iter().all(|conjunct| {
            let element = self.scratch.locate(conjunct.place, self.base);
            match conjunct.need {
                Need::Atom(atom) => look.holds(atom, element),
                Need::Nested(number) => self.truth.contains(element, number),
            }
        })
    }
}

struct MainSink<'a> {
    collector: &'a mut Collector,
    plans: &'a mut [u32],
    now: u32,
    held: &'a mut Vec<PlanId>,
}

impl Sink for MainSink<'_> {
    #[inline]
    fn words(&mut self, at: &[u32], bits: &[u64]) {
        self.collector.add_bits(at, bits);
    }

    #[inline]
    fn is_known(&self, plan: PlanId) -> bool {
        self.plans[plan as usize] == self.now
    }

    fn plan(&mut self, plan: PlanId) {
        self.plans[plan as usize] = self.now;
        self.held.push(plan);
    }
}

struct NestedSink<'a, N> {
    nfa: &'a N,
    row: &'a mut Collector,
}

impl<N: Nfa> Sink for NestedSink<'_, N> {
    #[inline]
    fn words(&mut self, at: &[u32], bits: &[u64]) {
        self.row.add_bits(at, bits);
    }

    #[inline]
    fn is_known(&self, _plan: PlanId) -> bool {
        false
    }

    fn plan(&mut self, plan: PlanId) {
        let mut ranges = Vec::new();
        self.nfa.plan_numbers(plan, &mut ranges);
        for range in ranges {
            self.row.add_range(&range, 0);
        }
    }
}
