//! Looking up what ends where, many look-ups at a time.

use super::atoms::AtomId;
use super::block_index::{
    Answer, Answers, BlockIndex, Check, Follows, NestedAnswer, PlaceEntry, Probe, kinds_in,
};
use super::facts::Look;
use super::level::{Decision, Level, NO_QUERY};
use super::program::{Need, Packed, Place};
use super::signature::Signature;
use super::sink::Sink;
use super::truth::Truth;
use crate::engine::dfa::BlockId;
use crate::xml::tree::{MessageTree, NONE};

/// Of more queries than these that share a plan it is not asked whether each is known.
const QUERIES_ASKED_MAX: u32 = 64;

/// A block of plans and an element at which their main paths end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// The block.
    pub(crate) block: BlockId,
    /// The element.
    pub(crate) element: u32,
}

/// What outlives neither the message nor the anchor at hand, kept for its memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Counts messages and anchors.
    stamp: u32,
    /// Per place of a block, for values and for nested paths: the element it was looked at last.
    last: Vec<(u32, u32)>,
    /// Per list of thresholds: how many have been satisfied.
    done: Vec<(u32, u32)>,
    /// Per place of a block: the atoms that are tried and that nothing has satisfied.
    left: Vec<(u32, Vec<u32>)>,
    /// Ancestors of the end that is looked up, and of the one that is checked, themselves included.
    chain: Chain,
    checked: Chain,
    /// Look-ups under way.
    probes: Vec<Pending<Probe>>,
    /// Plans to be checked.
    checks: Vec<Pending<Check>>,
    signature: Signature,
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
    pub(super) fn begin(&mut self, level: &Level) {
        if self.stamp == u32::MAX {
            *self = Scratch::default();
        }
        self.stamp += 1;
        self.signature.forget();
        self.resize(level);
    }

    /// The same for a new message.
    pub(super) fn begin_message(&mut self, level: &Level) {
        self.chain.elements.clear();
        self.checked.elements.clear();
        self.begin(level);
    }

    pub(super) fn follow(&mut self, tree: &MessageTree, element: u32) {
        self.chain.follow(tree, element);
    }

    /// The element at a place; depths count from `base`.
    #[inline]
    pub(super) fn locate(&self, place: Place, base: usize) -> u32 {
        self.chain.locate(place, base)
    }
}

/// An element and its ancestors, by depth.
#[derive(Debug, Default)]
struct Chain {
    elements: Vec<u32>,
}

impl Chain {
    /// Makes it the chain of an element. Cost: the ancestors that it does not share with the element before,
    /// so that elements in document order cost no more than they are.
    #[inline]
    fn follow(&mut self, tree: &MessageTree, element: u32) {
        let depth = tree.depth[element as usize] as usize;
        let known = self.elements.len();
        if known == depth + 1 && self.elements[depth] == element {
            return;
        }
        self.elements.resize(depth + 1, NONE);
        let mut at = element;
        for level in (0..=depth).rev() {
            if level < known && self.elements[level] == at {
                break;
            }
            self.elements[level] = at;
            at = tree.parent[at as usize];
        }
    }

    #[inline]
    fn locate(&self, place: Place, base: usize) -> u32 {
        let last = self.elements.len() - 1;
        match place {
            Place::Up(parents) => self.elements[last - parents as usize],
            Place::Depth(depth) => self.elements[(base + depth as usize).min(last)],
        }
    }
}

impl Scratch {
    /// Makes room for places that have been compiled meanwhile.
    fn resize(&mut self, level: &Level) {
        let counts = level.counts();
        self.last.resize(2 * counts.places as usize, (0, 0));
        self.done.resize(counts.thresholds as usize, (0, 0));
        self.left.resize_with(counts.places as usize, Default::default);
    }

    /// Whether a place was looked at last for the same element (`part` 0, values) or row of nested paths
    /// (`part` 1); notes that it is now.
    #[inline]
    fn is_seen(&mut self, entry: &PlaceEntry, part: usize, what: u32) -> bool {
        let now = (self.stamp, what);
        std::mem::replace(&mut self.last[2 * entry.number as usize + part], now) == now
    }
}

/// Whether an answer says what is known already.
#[inline]
fn is_known(answer: Answer, sink: &impl Sink) -> bool {
    match answer.follows() {
        Follows::Word(at, bits) => sink.has_word(at, bits),
        Follows::Check(_, query) => query != NO_QUERY && sink.has_query(query),
    }
}

/// Checks of one end from which on its signature is worth its making.
const SIGNATURE_MIN: usize = 12;

/// Looks up what ends where. Look-ups by value and checks of plans are gathered and made many at a
/// time, because each waits for memory; [`Prober::finish`] makes the last ones.
pub(super) struct Prober<'a> {
    pub(super) level: &'a Level,
    pub(super) truth: &'a Truth,
    pub(super) scratch: &'a mut Scratch,
    pub(super) base: usize,
    /// Plans checked.
    pub(super) checks: u32,
    /// Everything looked at, in steps.
    pub(super) work: u64,
}

impl<'a> Prober<'a> {
    pub(super) fn new(
        level: &'a Level,
        truth: &'a Truth,
        scratch: &'a mut Scratch,
        base: usize,
    ) -> Self {
        Prober { level, truth, scratch, base, checks: 0, work: 0 }
    }

    /// Everything that one end leads to.
    pub(super) fn look_up_end(&mut self, end: End, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        self.make_enough(look, sink);
        self.scratch.follow(look.message.tree, end.element);
        let index = self.level.of_block(end.block);
        self.work += (1 + index.places.len() + index.unconditional.len()) as u64;
        for &plan in &index.unconditional {
            if !sink.is_known(plan) {
                sink.plan(plan);
            }
        }
        for (number, entry) in index.places.iter().enumerate() {
            let place = self.scratch.locate(entry.place, self.base);
            if !entry.has_values() || (entry.is_exact && self.scratch.is_seen(entry, 0, place)) {
                // Exact answers depend on the place alone, not on the end that has led to it.
            } else {
                self.look_up(end, index, number, place, look, sink);
            }
            if entry.nested.is_empty()
                || self.truth.is_empty_at(place)
                || (entry.is_nested_exact
                    && self.scratch.is_seen(entry, 1, self.truth.row_number(place)))
            {
                continue;
            }
            self.look_up_nested(end, index, entry, place, sink);
        }
    }

    /// What the values at a place lead to.
    #[inline]
    fn look_up(
        &mut self,
        end: End,
        index: &BlockIndex,
        place: usize,
        element: u32,
        look: &mut Look<'_, '_>,
        sink: &mut impl Sink,
    ) {
        let entry = &index.places[place];
        for kind in kinds_in(entry.kinds) {
            let satisfied = look.satisfied(element, kind);
            self.work += satisfied.len() as u64 + look.facts.take_read();
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
            let Some((low, high)) = look.numbers(list.subject, list.notation, element) else {
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
            self.work += 1 + satisfied.saturating_sub(from) as u64;
            for &answer in list.answers.get(from..satisfied).unwrap_or_default() {
                self.take(end, answer, sink);
            }
        }
        let tried = &index.tried[entry.tried.start as usize..entry.tried.end as usize];
        if entry.is_exact {
            return self.try_left(end, entry, tried, element, look, sink);
        }
        let mut at = 0;
        while let Some(&(atom, answer)) = tried.get(at) {
            self.work += 1;
            if is_known(answer, sink) {
                at += 1;
            } else if look.holds(atom, element) {
                self.take(end, answer, sink);
                at += 1;
            } else {
                // The same atom lets nothing else in.
                at += 1 + tried[at + 1..].partition_point(|&(other, _)| other == atom);
            }
        }
    }

    /// Tries the atoms that no element before has satisfied: an answer need not be given twice.
    fn try_left(
        &mut self,
        end: End,
        entry: &PlaceEntry,
        tried: &[(AtomId, Answer)],
        element: u32,
        look: &mut Look<'_, '_>,
        sink: &mut impl Sink,
    ) {
        let number = entry.number as usize;
        let (stamp, mut left) = std::mem::take(&mut self.scratch.left[number]);
        if stamp != self.scratch.stamp {
            left.clear();
            left.extend(0..tried.len() as u32);
        }
        self.work += left.len() as u64;
        left.retain(|&at| {
            let (atom, answer) = tried[at as usize];
            let holds = look.holds(atom, element);
            if holds {
                self.take(end, answer, sink);
            }
            !holds
        });
        self.scratch.left[number] = (self.scratch.stamp, left);
    }

    /// The nested paths of a place at an anchor.
    fn look_up_nested(
        &mut self,
        end: End,
        index: &BlockIndex,
        entry: &PlaceEntry,
        anchor: u32,
        sink: &mut impl Sink,
    ) {
        let truth = self.truth;
        let is_exact = entry.is_nested_exact;
        self.work += u64::from(entry.nested.end - entry.nested.start);
        let take = |holds: u64, answers: &[NestedAnswer]| {
            self.take_nested(end, is_exact, holds, answers, sink);
        };
        match truth.bitmap_of(anchor) {
            Some(row) => index.nested_answers(entry, |word| row[word as usize], take),
            None => index.nested_answers(entry, |word| truth.word(anchor, word), take),
        }
    }

    /// Of the answers of one word those that hold.
    #[inline]
    fn take_nested(
        &mut self,
        end: End,
        is_exact: bool,
        holds: u64,
        answers: &[NestedAnswer],
        sink: &mut impl Sink,
    ) {
        self.work += answers.len() as u64;
        for nested in answers {
            let bit = holds >> (nested.nested % 64) & 1;
            if is_exact {
                // Some hold and some do not, at random: a branch would be mispredicted.
                let (at, bits) = nested.word();
                sink.word(at, bits & bit.wrapping_neg());
            } else if bit == 1 {
                self.take(end, nested.answer(), sink);
            }
        }
    }

    #[inline]
    fn take(&mut self, end: End, answer: Answer, sink: &mut impl Sink) {
        match answer.follows() {
            Follows::Word(at, bits) => sink.word(at, bits),
            Follows::Check(what, query) => {
                if query == NO_QUERY || !sink.has_query(query) {
                    let (block, end) = (end.block, end.element);
                    self.scratch.checks.push(Pending { block, end, what });
                }
            }
        }
    }

    fn make_probes(&mut self, sink: &mut impl Sink) {
        let mut probes = std::mem::take(&mut self.scratch.probes);
        let level = self.level;
        let touched = |sum: u32, probe: &Pending<Probe>| {
            sum.wrapping_add(level.of_block(probe.block).touch(probe.what))
        };
        std::hint::black_box(probes.iter().fold(0, touched));
        let mut runs: Vec<(End, &[Answer])> = Vec::new();
        for probe in &probes {
            let end = End { block: probe.block, element: probe.end };
            match level.of_block(probe.block).answers(probe.what) {
                Answers::None => {}
                Answers::One(answer) => self.take(end, answer, sink),
                Answers::Run(answers) => runs.push((end, answers)),
            }
        }
        let first = |sum: u32, run: &(End, &[Answer])| {
            sum ^ run.1.first().map_or(0, |answer| u32::from(answer.is_exact()))
        };
        std::hint::black_box(runs.iter().fold(0, first));
        for (end, answers) in runs {
            self.work += answers.len() as u64;
            answers.iter().for_each(|&answer| self.take(end, answer, sink));
        }
        probes.clear();
        self.scratch.probes = probes;
    }

    /// Leaves out what the signature of its end refuses.
    fn refuse_unseen(&mut self, checks: &mut Vec<Pending<Check>>, look: &mut Look<'_, '_>) {
        let mut kept = 0;
        let mut from = 0;
        while from < checks.len() {
            let end = checks[from].end;
            let same = checks[from..].iter().take_while(|check| check.end == end).count();
            let is_worth_it = same >= SIGNATURE_MIN;
            if is_worth_it {
                let Scratch { signature, checked, .. } = &mut *self.scratch;
                checked.follow(look.message.tree, end);
                signature.follow(&checked.elements, self.base, look);
            }
            for at in from..from + same {
                let check = checks[at];
                checks[kept] = check;
                let may_hold = !is_worth_it || self.scratch.signature.may_hold(check.what.hint);
                kept += usize::from(may_hold);
            }
            from += same;
        }
        checks.truncate(kept);
    }

    fn make_checks(&mut self, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        let mut checks = std::mem::take(&mut self.scratch.checks);
        self.checks = self.checks.saturating_add(checks.len() as u32);
        self.work += checks.len() as u64;
        let level = self.level;
        self.refuse_unseen(&mut checks, look);
        let touched = |sum: u64, check: &Pending<Check>| sum ^ level.touch(check.what);
        std::hint::black_box(checks.iter().fold(0, touched));
        let mut last = NONE;
        for Pending { end, what, .. } in &checks {
            let decision = level.decision_of(*what);
            let is_known = match decision {
                // Each may be known by another alternative of its own.
                Decision::Queries(first, count) => {
                    count <= QUERIES_ASKED_MAX
                        && (first..first + count).all(|it| sink.has_query(it))
                }
                Decision::Plan(plan) => sink.is_known(plan),
            };
            if is_known {
                continue;
            }
            if *end != last {
                last = *end;
                self.scratch.checked.follow(look.message.tree, last);
            }
            let holds = level.conjuncts(*what).iter().all(|&word| {
                let conjunct = Packed::of_word(word);
                let element = self.scratch.checked.locate(conjunct.place(), self.base);
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
                match decision {
                    Decision::Queries(first, count) => sink.queries(first, count),
                    Decision::Plan(plan) => sink.plan(plan),
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
            self.make_probes(sink);
        }
        if self.scratch.checks.len() >= BATCH {
            self.make_checks(look, sink);
        }
    }

    /// Makes what has been gathered.
    pub(super) fn finish(&mut self, look: &mut Look<'_, '_>, sink: &mut impl Sink) {
        self.make_probes(sink);
        self.make_checks(look, sink);
    }
}
