//! The predicate index of one block: which of its plans hold, found from the values.
//!
//! Each plan is looked up by its *access condition*, one of its conjuncts; the rest of it is checked
//! only where that holds. A plan whose access condition is all of it is *exact*: it needs no check, and
//! its queries are kept as bits.
//!
//! A message looks into hundreds of these indexes and finds little in each, so what it costs is the
//! cache lines it touches: a look-up and its answer lie in one line, and all nested paths of a place
//! lie in a row.
//!
//! Source: paper 003, section 5: predicates sorted by selectivity, evaluated after the structure.

use super::atoms::{Ask, AtomId, Atoms, KINDS, Kind, Order, SubjectId, kind_of};
use super::program::{Need, Packed, Place};
use crate::nfa::{PlanId, QueryNumber};
use std::ops::Range;

/// What follows from an access condition: queries that hold, or a plan to be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// A word of query numbers; or [`Answer::IS_PLAN`] and the number of conjuncts to be checked.
    at: u32,
    /// The queries of the word that hold; or where the program begins.
    bits: u64,
}

/// An answer, taken apart.
#[derive(Clone, Copy, Debug)]
pub enum Follows {
    /// A word of query numbers and its bits.
    Word(u32, u64),
    /// A plan to be checked.
    Check(Check),
}

/// A plan that is to be checked: where its program lies, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Check {
    /// First word.
    pub start: u32,
    /// Number of conjuncts.
    pub count: u32,
}

impl Answer {
    const IS_PLAN: u32 = 1 << 31;

    /// Bits of a word.
    pub fn word(at: u32, bits: u64) -> Answer {
        Answer { at, bits }
    }

    fn check(check: Check) -> Answer {
        Answer { at: check.count | Answer::IS_PLAN, bits: u64::from(check.start) }
    }

    /// Whether it needs no check.
    #[inline]
    pub fn is_exact(self) -> bool {
        self.at & Answer::IS_PLAN == 0
    }

    /// What follows.
    #[inline]
    pub fn follows(self) -> Follows {
        if self.is_exact() {
            return Follows::Word(self.at, self.bits);
        }
        Follows::Check(Check { start: self.bits as u32, count: self.at & !Answer::IS_PLAN })
    }
}

/// An answer under its key; 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// [`FREE`], or a key, with [`IS_RUN`] if the answer says where its answers lie.
    key: u32,
    at: u32,
    bits: u64,
}

const FREE: u32 = u32::MAX;
const IS_RUN: u32 = 1 << 31;

/// A nested path and what follows from it; 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct NestedAnswer {
    /// Number of the nested path.
    pub nested: QueryNumber,
    at: u32,
    bits: u64,
}

impl NestedAnswer {
    /// The word and the bits of an answer that is exact.
    #[inline]
    pub fn word(self) -> (u32, u64) {
        (self.at, self.bits)
    }

    /// What follows.
    #[inline]
    pub fn answer(self) -> Answer {
        Answer { at: self.at, bits: self.bits }
    }
}

/// A look-up under way: where it begins, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    at: u32,
    key: u32,
}

/// The access conditions at one place.
#[derive(Debug)]
pub struct PlaceEntry {
    /// Where they are looked at.
    pub place: Place,
    /// Number of the entry among all of its automaton.
    pub number: u32,
    /// Kinds of values that lead to slots, a bit each.
    pub kinds: u8,
    /// No plan found by values has to be checked.
    pub is_exact: bool,
    /// No plan found by nested paths has to be checked.
    pub is_nested_exact: bool,
    /// Its part of [`BlockIndex::nested`].
    pub nested: Range<u32>,
    /// Its part of [`BlockIndex::thresholds`].
    pub thresholds: Range<u32>,
    /// Its part of [`BlockIndex::tried`].
    pub tried: Range<u32>,
}

/// Thresholds of one subject at one place, on one side.
#[derive(Debug)]
pub struct Thresholds {
    /// Number of this list among all of its automaton.
    pub number: u32,
    /// What is compared.
    pub subject: SubjectId,
    /// Whether what is greater satisfies more of them.
    pub is_above: bool,
    /// No plan of the list has to be checked.
    pub is_exact: bool,
    /// (threshold, whether it is enough to be equal), those satisfied first first.
    limits: Box<[(f64, bool)]>,
    /// What follows from each.
    pub answers: Box<[Answer]>,
}

/// The answers of one look-up.
#[derive(Clone, Copy, Debug)]
pub enum Answers<'i> {
    /// Nothing follows.
    None,
    /// One answer.
    One(Answer),
    /// Several.
    Run(&'i [Answer]),
}

/// The plans of a block.
#[derive(Debug, Default)]
pub struct BlockIndex {
    /// Where access conditions are looked at.
    pub places: Box<[PlaceEntry]>,
    slots: Box<[Slot]>,
    shift: u32,
    /// Answers of keys that have several.
    runs: Box<[Answer]>,
    /// By place, then by nested path.
    pub nested: Box<[NestedAnswer]>,
    /// By place.
    pub thresholds: Box<[Thresholds]>,
    /// Atoms that are tried one by one, by place.
    pub tried: Box<[(AtomId, Answer)]>,
    /// Plans that hold wherever their path ends and are no plain queries.
    pub unconditional: Box<[PlanId]>,
    /// Plans that are no conjunctions.
    pub complex: Box<[PlanId]>,
    /// Places at which nested paths are asked for.
    pub nested_places: Box<[Place]>,
}

impl BlockIndex {
    /// Begins to look up what an atom at a place leads to.
    #[inline]
    pub fn probe(&self, place: usize, atom: AtomId) -> Probe {
        let key = atom * self.places.len() as u32 + place as u32;
        Probe { at: self.home(key) as u32, key }
    }

    /// Touches the memory that a look-up needs. Many of these in a row wait for memory together; a
    /// look-up that branches on what it reads waits alone. The result means nothing.
    #[inline]
    pub fn touch(&self, probe: Probe) -> u32 {
        self.slots.get(probe.at as usize).map_or(0, |slot| slot.key)
    }

    /// Ends a look-up: its answers, none if there are none.
    #[inline]
    pub fn answers(&self, probe: Probe) -> Answers<'_> {
        let Probe { at, key } = probe;
        if self.slots.is_empty() {
            return Answers::None;
        }
        let mut at = at as usize;
        loop {
            let slot = &self.slots[at];
            if slot.key == key {
                return Answers::One(Answer { at: slot.at, bits: slot.bits });
            }
            if slot.key == FREE {
                return Answers::None;
            }
            if slot.key == key | IS_RUN {
                return Answers::Run(&self.runs[slot.at as usize..slot.bits as usize]);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn home(&self, key: u32) -> usize {
        // There are two slots at least, so the shift is below 32.
        (key.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of::<BlockIndex>()
            + size_of_val(&*self.places)
            + size_of_val(&*self.slots)
            + size_of_val(&*self.runs)
            + size_of_val(&*self.nested)
            + self
                .thresholds
                .iter()
                .map(|list| size_of_val(list) + 32 * list.answers.len())
                .sum::<usize>()
            + size_of_val(&*self.tried)
            + 4 * (self.unconditional.len() + self.complex.len())
    }
}

impl Thresholds {
    /// How many are satisfied, given the least and the greatest value.
    #[inline]
    pub fn satisfied(&self, low: f64, high: f64) -> usize {
        if self.is_above {
            self.limits.partition_point(|&(at, equal)| at < high || (equal && at == high))
        } else {
            self.limits.partition_point(|&(at, equal)| at > low || (equal && at == low))
        }
    }
}

/// How an access condition is looked up.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Access {
    Found(AtomId),
    Above(SubjectId, f64, bool),
    Below(SubjectId, f64, bool),
    Tried(AtomId),
    Nested(QueryNumber),
}

/// One access condition on its way into an index.
#[derive(Debug)]
struct Entry {
    place: Place,
    access: Access,
    answer: Answer,
}

/// What an automaton has numbered.
#[derive(Debug, Default)]
pub struct Counts {
    /// Entries of places.
    pub places: u32,
    /// Lists of thresholds.
    pub thresholds: u32,
}

/// Gathers the plans of one block.
#[derive(Debug, Default)]
pub struct BlockIndexBuilder {
    entries: Vec<Entry>,
    unconditional: Vec<PlanId>,
    complex: Vec<PlanId>,
    nested_places: Vec<Place>,
}

impl BlockIndexBuilder {
    /// Adds a plan that is no conjunction.
    pub fn add_complex(&mut self, plan: PlanId) {
        self.complex.push(plan);
    }

    /// Adds a plan that always holds.
    pub fn add_unconditional(&mut self, plan: PlanId) {
        self.unconditional.push(plan);
    }

    /// Adds a conjunction. `start` is where what is to be checked lies; `numbers` are the queries that it decides alone, moved by `offset`; empty
    /// if what follows from it has to be looked at.
    pub fn add(
        &mut self,
        access: Packed,
        others: impl ExactSizeIterator<Item = Packed>,
        start: u32,
        numbers: &[Range<QueryNumber>],
        offset: QueryNumber,
        atoms: &Atoms,
    ) {
        let (place, need) = (access.place(), access.need());
        let count = others.len() as u32;
        for conjunct in others.chain([access]) {
            if matches!(conjunct.need(), Need::Nested(_)) {
                self.nested_places.push(conjunct.place());
            }
        }
        let access = access_of(need, atoms);
        let mut push = |answer| self.entries.push(Entry { place, access, answer });
        if numbers.is_empty() {
            return push(Answer::check(Check { start, count }));
        }
        for number in numbers.iter().cloned().flatten() {
            let number = number + offset;
            push(Answer::word(number / 64, 1 << (number % 64)));
        }
    }

    /// The index. `counts` is what the automaton has numbered so far.
    pub fn build(mut self, atoms: &Atoms, counts: &mut Counts) -> BlockIndex {
        self.entries.sort_unstable_by(|a, b| {
            a.place
                .cmp(&b.place)
                .then_with(|| compare_access(a.access, b.access))
                .then_with(|| a.answer.cmp(&b.answer))
        });
        self.entries.dedup_by(|next, entry| {
            let is_same_word = (next.place, next.access, next.answer.at)
                == (entry.place, entry.access, entry.answer.at)
                && next.answer.is_exact();
            if is_same_word {
                entry.answer.bits |= next.answer.bits;
            }
            is_same_word
        });
        let mut places: Vec<Place> = self.entries.iter().map(|entry| entry.place).collect();
        places.dedup();
        let mut parts = Parts { places: places.len() as u32, ..Parts::default() };
        let entries: Vec<PlaceEntry> = self
            .entries
            .chunk_by(|a, b| a.place == b.place)
            .enumerate()
            .map(|(number, entries)| parts.add_place(number as u32, entries, atoms, counts))
            .collect();
        self.nested_places.sort_unstable();
        self.nested_places.dedup();
        let (slots, shift, runs) = parts.slots();
        BlockIndex {
            places: entries.into(),
            slots,
            shift,
            runs,
            nested: parts.nested.into(),
            thresholds: parts.thresholds.into(),
            tried: parts.tried.into(),
            unconditional: self.unconditional.into(),
            complex: self.complex.into(),
            nested_places: self.nested_places.into(),
        }
    }
}

fn access_of(need: Need, atoms: &Atoms) -> Access {
    let id = match need {
        Need::Nested(number) => return Access::Nested(number),
        Need::Found(_, id) => return Access::Found(id),
        Need::Tried(id) => id,
    };
    let atom = atoms.get(id);
    match atom.ask {
        Ask::Ordered(Order::Above, limit) => Access::Above(atom.subject, limit, false),
        Ask::Ordered(Order::AtLeast, limit) => Access::Above(atom.subject, limit, true),
        Ask::Ordered(Order::Below, limit) => Access::Below(atom.subject, limit, false),
        Ask::Ordered(Order::AtMost, limit) => Access::Below(atom.subject, limit, true),
        _ => Access::Tried(id),
    }
}

fn compare_access(a: Access, b: Access) -> std::cmp::Ordering {
    // Satisfied first first: low limits for what lies above, high ones for what lies below; of
    // equal ones those that take the limit itself.
    match (a, b) {
        (Access::Above(a, x, p), Access::Above(b, y, q)) => {
            a.cmp(&b).then_with(|| x.total_cmp(&y)).then_with(|| q.cmp(&p))
        }
        (Access::Below(a, x, p), Access::Below(b, y, q)) => {
            a.cmp(&b).then_with(|| y.total_cmp(&x)).then_with(|| q.cmp(&p))
        }
        // Of different kinds, or of kinds without limits: these compare without exception.
        _ => a.partial_cmp(&b).expect("limits are compared above"),
    }
}

/// The parts of an index while it is built.
#[derive(Default)]
struct Parts {
    places: u32,
    found: Vec<(u32, Answer)>,
    nested: Vec<NestedAnswer>,
    thresholds: Vec<Thresholds>,
    tried: Vec<(AtomId, Answer)>,
}

impl Parts {
    fn add_place(
        &mut self,
        number: u32,
        entries: &[Entry],
        atoms: &Atoms,
        counts: &mut Counts,
    ) -> PlaceEntry {
        let (nested, tried) = (self.nested.len() as u32, self.tried.len() as u32);
        let thresholds = self.thresholds.len() as u32;
        let (mut kinds, mut is_exact, mut is_nested_exact) = (0, true, true);
        for entry in entries {
            let answer = entry.answer;
            let is_checked = !answer.is_exact();
            match entry.access {
                Access::Found(atom) => {
                    kinds |= 1 << kind_of(atoms.get(atom).subject) as u8;
                    is_exact &= !is_checked;
                    self.found.push((atom * self.places + number, answer));
                }
                Access::Tried(atom) => {
                    is_exact &= !is_checked;
                    self.tried.push((atom, answer));
                }
                Access::Nested(nested) => {
                    is_nested_exact &= !is_checked;
                    let Answer { at, bits } = answer;
                    self.nested.push(NestedAnswer { nested, at, bits });
                }
                Access::Above(..) | Access::Below(..) => is_exact &= !is_checked,
            }
        }
        self.add_thresholds(entries, counts);
        counts.places += 1;
        PlaceEntry {
            place: entries[0].place,
            number: counts.places - 1,
            kinds,
            is_exact,
            is_nested_exact,
            nested: nested..self.nested.len() as u32,
            thresholds: thresholds..self.thresholds.len() as u32,
            tried: tried..self.tried.len() as u32,
        }
    }

    fn add_thresholds(&mut self, entries: &[Entry], counts: &mut Counts) {
        let side_of = |entry: &Entry| match entry.access {
            Access::Above(subject, ..) => Some((subject, true)),
            Access::Below(subject, ..) => Some((subject, false)),
            _ => None,
        };
        for same in entries.chunk_by(|a, b| side_of(a) == side_of(b)) {
            let Some((subject, is_above)) = side_of(&same[0]) else { continue };
            for is_exact in [true, false] {
                let list = same.iter().filter(|entry| entry.answer.is_exact() == is_exact);
                let (limits, answers): (Vec<(f64, bool)>, Vec<Answer>) = list
                    .filter_map(|entry| match entry.access {
                        Access::Above(_, limit, equal) | Access::Below(_, limit, equal) => {
                            Some(((limit, equal), entry.answer))
                        }
                        _ => None,
                    })
                    .unzip();
                if !limits.is_empty() {
                    counts.thresholds += 1;
                    self.thresholds.push(Thresholds {
                        number: counts.thresholds - 1,
                        subject,
                        is_above,
                        is_exact,
                        limits: limits.into(),
                        answers: answers.into(),
                    });
                }
            }
        }
    }

    /// The hash table: slots, shift of the hash, runs.
    fn slots(&mut self) -> (Box<[Slot]>, u32, Box<[Answer]>) {
        let mut runs = Vec::new();
        self.found.sort_by_key(|&(key, _)| key);
        let keys: Vec<Slot> = self
            .found
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| match same {
                &[(key, Answer { at, bits })] => Slot { key, at, bits },
                _ => {
                    let start = runs.len();
                    runs.extend(same.iter().map(|&(_, answer)| answer));
                    Slot { key: same[0].0 | IS_RUN, at: start as u32, bits: runs.len() as u64 }
                }
            })
            .collect();
        if keys.is_empty() {
            return (Box::default(), 0, Box::default());
        }
        let size = (keys.len() * 3 / 2 + 1).next_power_of_two().max(2);
        let shift = 32 - size.trailing_zeros();
        let mut slots = vec![Slot { key: FREE, at: 0, bits: 0 }; size];
        for slot in keys {
            let mut at = ((slot.key & !IS_RUN).wrapping_mul(0x9e37_79b9) >> shift) as usize;
            while slots[at].key != FREE {
                at = (at + 1) & (size - 1);
            }
            slots[at] = slot;
        }
        (slots.into(), shift, runs.into())
    }
}

/// The kinds of a set.
#[inline]
pub fn kinds_in(set: u8) -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(move |&kind| set >> kind as u8 & 1 == 1)
}
