//! One message's conditions: which plans hold, and which queries that decides.

use super::atoms::Atoms;
use super::block_index::{
    Answer, Answers, BlockIndex, Check, Follows, NestedAnswer, PlaceEntry, Probe, kinds_in,
};
use super::facts::{Facts, Look};
use super::level::{Decision, Level, Statistics};
use super::nested_paths::NestedPaths;
use super::program::{Need, Packed, Place};
use super::truth::{Bitmap, Truth};
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
    fn word(&mut self, at: u32, bits: u64);
    /// Neighbouring queries hold.
    fn queries(&mut self, first: QueryNumber, count: u32);
    /// Whether a plan is known to hold.
    fn is_known(&self, plan: PlanId) -> bool;
    /// A plan holds.
    fn plan(&mut self, plan: PlanId);
}

/// A place to be looked at when its nested paths are at hand.
#[derive(Debug, Clone, Copy)]
struct Event {
    block: BlockId,
    place: u32,
    end: u32,
    next: u32,
}

/// What outlives neither the message nor the anchor at hand, kept for its memory.
#[derive(Debug, Default)]
struct Scratch {
    /// Counts messages and anchors.
    stamp: u32,
    /// Per place of a block: the element it was looked at last.
    last: Vec<(u32, u32)>,
    /// Per list of thresholds: how many have been satisfied.
    done: Vec<(u32, u32)>,
    /// Ancestors of the element at hand, itself included, by depth.
    chain: Vec<u32>,
    /// Look-ups under way.
    probes: Vec<Pending<Probe>>,
    /// Plans to be checked.
    checks: Vec<Pending<Check>>,
    /// Which nested paths of a place hold.
    held: Vec<u32>,
}

/// Something to be done for an end.
#[derive(Clone, Copy, Debug)]
struct Pending<T> {
    block: BlockId,
    end: u32,
    what: T,
}

/// Look-ups that wait for memory together.
const BATCH: usize = 128;

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
    bitmap: Bitmap,
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
    events: Vec<Event>,
    /// First event of each element.
    first_event: Vec<u32>,
    eventful: Vec<u32>,
}

/// An element at which nested paths are asked for.
#[derive(Debug, Clone)]
struct Anchor {
    element: u32,
    /// Its part of [`Contents::fresh`].
    fresh: Range<u32>,
    /// Its part of [`Contents::nested_ends`].
    ends: Range<u32>,
}

/// Marks the elements at some places.
fn want(wanted: &mut [u64], scratch: &Scratch, places: &[Place], base: usize) {
    for &place in places {
        let anchor = scratch.locate(place, base);
        wanted[anchor as usize / 64] |= 1 << (anchor % 64);
    }
}

/// The first marked element from `from` on.
fn next_wanted(wanted: &[u64], from: u32) -> Option<u32> {
    let mut word = from as usize / 64;
    let mut rest = wanted.get(word)? & (u64::MAX << (from % 64));
    while rest == 0 {
        word += 1;
        rest = *wanted.get(word)?;
    }
    Some(word as u32 * 64 + rest.trailing_zeros())
}

/// A set of DFA states that is emptied by counting on.
#[derive(Debug, Default)]
struct SeenStates {
    now: u32,
    seen: Vec<u32>,
}

impl SeenStates {
    fn begin(&mut self) {
        if self.now == u32::MAX {
            self.seen.fill(0);
            self.now = 0;
        }
        self.now += 1;
    }

    /// Adds a state; false if it was there.
    #[inline]
    fn insert(&mut self, state: DfaState) -> bool {
        if self.seen.len() <= state as usize {
            self.seen.resize(state as usize + 1, 0);
        }
        std::mem::replace(&mut self.seen[state as usize], self.now) != self.now
    }
}

/// What DFA states accept without conditions, each as one run of words.
#[derive(Debug, Default)]
struct StateWords {
    words: Vec<Option<Box<[(u32, u64)]>>>,
    collector: Collector,
    memory: usize,
}

impl StateWords {
    /// Gathers the words of a state if they are not there.
    #[inline]
    fn ensure(&mut self, dfa: &LazyDfa, state: DfaState, numbers: usize) {
        if !self.words.get(state as usize).is_some_and(Option::is_some) {
            self.gather(dfa, state, numbers);
        }
    }

    /// The words of a state; [`StateWords::ensure`] has seen it.
    #[inline]
    fn of(&self, state: DfaState) -> &[(u32, u64)] {
        self.words[state as usize].as_deref().expect("gathered")
    }

    /// Touches the memory of many states, so that all wait for it together.
    #[inline]
    fn touch(&self, states: &[DfaState]) {
        let first = |&state: &DfaState| self.of(state).first().map_or(0, |word| word.0);
        std::hint::black_box(states.iter().map(first).fold(0, u32::wrapping_add));
    }

    #[cold]
    fn gather(&mut self, dfa: &LazyDfa, state: DfaState, numbers: usize) {
        self.collector.reserve(numbers);
        dfa.accepting(state).for_each(|(_, block)| self.collector.add_words(&block.words));
        let (mut at, mut bits) = (Vec::new(), Vec::new());
        self.collector.drain_into_words(&mut at, &mut bits);
        let answers: Box<[(u32, u64)]> = at.into_iter().zip(bits).collect();
        self.memory += size_of_val(&*answers) + size_of::<Option<Box<[(u32, u64)]>>>();
        if self.words.len() <= state as usize {
            self.words.resize_with(state as usize + 1, || None);
        }
        self.words[state as usize] = Some(answers);
    }
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
        self.truth.begin(tree.len());
        if let Some(nested) = nested
            && self.want_anchors(tree, ends)
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
    fn want_anchors(&mut self, tree: &MessageTree, ends: &[End]) -> bool {
        self.wanted.clear();
        self.wanted.resize(tree.len().div_ceil(64), 0);
        let mut is_any = false;
        for end in ends {
            let places = &self.main.index(end.block).nested_places;
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
        self.nested_scratch.chain.clear();
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
        self.find_rows(nested, setting);
        true
    }

    /// Runs the automaton of the nested paths over what lies below an anchor. Anchors come in document
    /// order, because nested paths have nested paths that are asked for further down.
    fn descend(&mut self, nested: &NestedPaths, anchor: u32, setting: &mut Setting<'_, '_>) {
        let tree = setting.message.tree;
        let nfa = nested.nfa();
        let first = anchor + 1;
        let base = tree.depth[anchor as usize] as usize + 1;
        self.states.clear();
        self.seen.begin();
        let (fresh, ends) = (self.fresh.len() as u32, self.nested_ends.len() as u32);
        for element in first..tree.element_end[anchor as usize] {
            let parent = tree.parent[element as usize];
            let from =
                if parent == anchor { INITIAL } else { self.states[(parent - first) as usize] };
            let state = self.nested_dfa.step_by_name(nfa, from, tree.name[element as usize]);
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
                };
                let plans = &self.nested_dfa.block(block).plans;
                let atoms = &mut self.atoms;
                self.nested.ensure(nfa, block, plans, Some(nested), atoms, 0, statistics);
                self.nested_ends.push(End { block, element });
                let places = &self.nested.index(block).nested_places;
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
        let is_sampled = self.messages % NESTED_SAMPLE == 1;
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
                    prober.make_enough(&mut look, &mut sink);
                    prober.scratch.follow(tree, end.element);
                    let index = level.index(end.block);
                    prober.unconditional(index, &mut sink);
                    for (number, entry) in index.places.iter().enumerate() {
                        let place = prober.look_up(end, index, number, &mut look, &mut sink);
                        prober.look_up_nested_by_search(end, index, entry, place, &mut sink);
                    }
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
        let mut prober = Prober {
            level: &self.main,
            truth: &self.truth,
            scratch: &mut self.scratch,
            base: 0,
            checks: 0,
        };
        for &end in ends {
            prober.make_enough(&mut look, &mut sink);
            prober.scratch.follow(tree, end.element);
            let index = self.main.index(end.block);
            complex.extend(index.complex.iter().map(|&plan| (plan, end.element)));
            prober.unconditional(index, &mut sink);
            for (number, entry) in index.places.iter().enumerate() {
                let place = prober.look_up(end, index, number, &mut look, &mut sink);
                if entry.nested.is_empty() || self.truth.is_empty_at(place) {
                    continue;
                }
                let first = &mut self.first_event[place as usize];
                if *first == NO_EVENT {
                    self.eventful.push(place);
                }
                let next = std::mem::replace(first, self.events.len() as u32);
                let (block, element) = (end.block, end.element);
                self.events.push(Event { block, place: number as u32, end: element, next });
            }
        }
        prober.finish(&mut look, &mut sink);
        let checks = prober.checks;
        self.main.count_checks(checks);
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
        let mut prober = Prober {
            level: &self.main,
            truth: &self.truth,
            scratch: &mut self.scratch,
            base: 0,
            checks: 0,
        };
        for &anchor in &self.eventful {
            let loaded = self.bitmap.load(&self.truth, anchor, self.nested_count);
            prober.scratch.restamp();
            let mut at = std::mem::replace(&mut self.first_event[anchor as usize], NO_EVENT);
            while at != NO_EVENT {
                let event = self.events[at as usize];
                at = event.next;
                prober.make_enough(&mut look, &mut sink);
                let index = self.main.index(event.block);
                let entry = &index.places[event.place as usize];
                if entry.is_nested_exact && prober.scratch.is_seen(entry, anchor) {
                    continue;
                }
                let end = End { block: event.block, element: event.end };
                prober.look_up_nested(end, index, entry, loaded, &mut sink);
            }
            self.bitmap.unload(&self.truth, anchor);
        }
        prober.finish(&mut look, &mut sink);
        let checks = prober.checks;
        self.main.count_checks(checks);
    }
}

impl Scratch {
    /// Makes room for places that have been compiled meanwhile.
    fn resize(&mut self, level: &Level) {
        let counts = level.counts();
        self.last.resize(counts.places as usize, (0, 0));
        self.done.resize(counts.thresholds as usize, (0, 0));
    }

    /// Whether a place that decides alone, whatever end has led to it, was looked at last for the same
    /// element; notes that it is now.
    #[inline]
    fn is_seen(&mut self, entry: &PlaceEntry, element: u32) -> bool {
        let now = (self.stamp, element);
        std::mem::replace(&mut self.last[entry.number as usize], now) == now
    }

    /// Forgets what has been looked at.
    fn restamp(&mut self) {
        if self.stamp == u32::MAX {
            self.last.fill((0, 0));
            self.done.fill((0, 0));
            self.stamp = 0;
        }
        self.stamp += 1;
    }
}

/// Looks up what ends where. Look-ups by value and checks of plans are gathered and made many at a
/// time, because each waits for memory; [`Prober::finish`] makes the last ones.
struct Prober<'a> {
    level: &'a Level,
    truth: &'a Truth,
    scratch: &'a mut Scratch,
    base: usize,
    checks: u32,
}

impl Prober<'_> {
    fn unconditional(&mut self, index: &BlockIndex, sink: &mut impl Sink) {
        for &plan in &index.unconditional {
            if !sink.is_known(plan) {
                sink.plan(plan);
            }
        }
    }

    /// Everything but nested paths; the element at the place.
    #[inline]
    fn look_up(
        &mut self,
        end: End,
        index: &BlockIndex,
        place: usize,
        look: &mut Look<'_, '_>,
        sink: &mut impl Sink,
    ) -> u32 {
        let entry = &index.places[place];
        let element = self.scratch.locate(entry.place, self.base);
        if entry.is_exact && self.scratch.is_seen(entry, element) {
            return element;
        }
        for kind in kinds_in(entry.kinds) {
            let satisfied = look.satisfied(element, kind);
            let probes = look.atoms_at(satisfied).iter().map(|&atom| Pending {
                block: end.block,
                end: end.element,
                what: index.probe(place, atom),
            });
            self.scratch.probes.extend(probes);
        }
        if !entry.thresholds.is_empty() || !entry.tried.is_empty() {
            self.compare(end, index, entry, element, look, sink);
        }
        element
    }

    fn compare(
        &mut self,
        end: End,
        index: &BlockIndex,
        entry: &PlaceEntry,
        element: u32,
        look: &mut Look<'_, '_>,
        sink: &mut impl Sink,
    ) {
        let range = entry.thresholds.start as usize..entry.thresholds.end as usize;
        for list in &index.thresholds[range] {
            let Some((low, high)) = look.numbers(list.subject, element) else {
                continue;
            };
            let satisfied = list.satisfied(low, high);
            let mut from = 0;
            if list.is_exact {
                // What an element before has satisfied need not be said again.
                let stamp = self.scratch.stamp;
                let done = &mut self.scratch.done[list.number as usize];
                if done.0 != stamp {
                    *done = (stamp, 0);
                }
                from = done.1 as usize;
                done.1 = done.1.max(satisfied as u32);
            }
            for &answer in list.answers.get(from..satisfied).unwrap_or_default() {
                self.take(end, answer, sink);
            }
        }
        for &(atom, answer) in &index.tried[entry.tried.start as usize..entry.tried.end as usize] {
            if look.holds(atom, element) {
                self.take(end, answer, sink);
            }
        }
    }

    /// The nested paths of a place at the anchor whose nested paths are loaded.
    fn look_up_nested(
        &mut self,
        end: End,
        index: &BlockIndex,
        entry: &PlaceEntry,
        loaded: &[u64],
        sink: &mut impl Sink,
    ) {
        let answers = &index.nested[entry.nested.start as usize..entry.nested.end as usize];
        let holds =
            |nested: &NestedAnswer| loaded[nested.nested as usize / 64] >> (nested.nested % 64) & 1;
        // About half of them hold, at random: a branch would be mispredicted half of the time.
        if entry.is_nested_exact {
            for nested in answers {
                let (at, bits) = nested.word();
                sink.word(at, bits & holds(nested).wrapping_neg());
            }
            return;
        }
        let held = &mut self.scratch.held;
        held.clear();
        held.resize(answers.len(), 0);
        let mut count = 0;
        for (number, nested) in answers.iter().enumerate() {
            held[count] = number as u32;
            count += holds(nested) as usize;
        }
        for at in 0..count {
            let number = self.scratch.held[at];
            self.take(end, answers[number as usize].answer(), sink);
        }
    }

    /// The same at any anchor.
    fn look_up_nested_by_search(
        &mut self,
        end: End,
        index: &BlockIndex,
        entry: &PlaceEntry,
        anchor: u32,
        sink: &mut impl Sink,
    ) {
        if entry.nested.is_empty() || self.truth.is_empty_at(anchor) {
            return;
        }
        for nested in &index.nested[entry.nested.start as usize..entry.nested.end as usize] {
            if self.truth.contains(anchor, nested.nested) {
                self.take(end, nested.answer(), sink);
            }
        }
    }

    #[inline]
    fn take(&mut self, end: End, answer: Answer, sink: &mut impl Sink) {
        match answer.follows() {
            Follows::Word(at, bits) => sink.word(at, bits),
            Follows::Check(what) => {
                let (block, end) = (end.block, end.element);
                self.scratch.checks.push(Pending { block, end, what });
            }
        }
    }

    fn make_probes(&mut self, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        let mut probes = std::mem::take(&mut self.scratch.probes);
        let level = self.level;
        let touched = |sum: u32, probe: &Pending<Probe>| {
            sum.wrapping_add(level.index(probe.block).touch(probe.what))
        };
        std::hint::black_box(probes.iter().fold(0, touched));
        for probe in &probes {
            let end = End { block: probe.block, element: probe.end };
            match level.index(probe.block).answers(probe.what) {
                Answers::None => {}
                Answers::One(answer) => self.take(end, answer, sink),
                Answers::Run(answers) => {
                    answers.iter().for_each(|&answer| self.take(end, answer, sink));
                }
            }
        }
        probes.clear();
        self.scratch.probes = probes;
    }

    fn make_checks(&mut self, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        let mut checks = std::mem::take(&mut self.scratch.checks);
        self.checks = self.checks.saturating_add(checks.len() as u32);
        let level = self.level;
        let touched = |sum: u64, check: &Pending<Check>| sum ^ level.touch(check.what);
        std::hint::black_box(checks.iter().fold(0, touched));
        for Pending { end, what, .. } in &checks {
            self.scratch.follow(look.message.tree, *end);
            let holds = level.conjuncts(*what).iter().all(|&word| {
                let conjunct = Packed::of_word(word);
                let element = self.scratch.locate(conjunct.place(), self.base);
                match conjunct.need() {
                    Need::Found(kind, atom) => {
                        let satisfied = look.satisfied(element, kind);
                        look.atoms_at(satisfied).contains(&atom)
                    }
                    Need::Tried(atom) => look.holds(atom, element),
                    Need::Nested(number) => self.truth.contains(element, number),
                }
            });
            if holds {
                match level.decision_of(*what) {
                    Decision::Queries(first, count) => sink.queries(first, count),
                    Decision::Plan(plan) if !sink.is_known(plan) => sink.plan(plan),
                    Decision::Plan(_) => {}
                }
            }
        }
        checks.clear();
        self.scratch.checks = checks;
    }

    /// Makes what has been gathered if it is worth it.
    #[inline]
    fn make_enough(&mut self, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        if self.scratch.probes.len() >= BATCH {
            self.make_probes(look, sink);
        }
        if self.scratch.checks.len() >= BATCH {
            self.make_checks(look, sink);
        }
    }

    /// Makes what has been gathered.
    fn finish(&mut self, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        self.make_probes(look, sink);
        self.make_checks(look, sink);
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
    fn word(&mut self, at: u32, bits: u64) {
        self.collector.add_word(at, bits);
    }

    #[inline]
    fn queries(&mut self, first: QueryNumber, count: u32) {
        self.collector.add_range(&(first..first + count), 0);
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
    fn word(&mut self, at: u32, bits: u64) {
        self.row.add_word(at, bits);
    }

    #[inline]
    fn queries(&mut self, first: QueryNumber, count: u32) {
        self.row.add_range(&(first..first + count), 0);
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
