//! Building the predicate index of a block.

use super::atoms::{AtomId, Atoms, SubjectId, kind_of};
use super::block_index::{
    Answer, BlockIndex, Check, FREE, IS_RUN, NestedAnswer, NestedWord, PlaceEntry, Slot, Thresholds,
};
use super::program::{Need, Packed, Place};
use crate::engine::ids::{PlanId, QueryNumber};
use crate::language::comparison::Comparison;
use crate::language::numbers::Notation;
use std::ops::Range;

/// What is compared with limits, and how it is read as a number.
type Compared = (SubjectId, Notation);

/// How an access condition is looked up that no value finds in a hash table.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Access {
    Above(Compared, f64, bool),
    Below(Compared, f64, bool),
    Tried(AtomId),
    Nested(QueryNumber),
}

/// One of these on its way into an index.
#[derive(Debug)]
struct Entry {
    place: Place,
    access: Access,
    answer: Answer,
}

/// What an automaton has numbered.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Entries of places.
    pub(crate) places: u32,
    /// Lists of thresholds.
    pub(crate) thresholds: u32,
}

/// A plan that is a conjunction.
#[derive(Debug)]
pub(crate) struct Conjunction<I> {
    /// What it is looked up by.
    pub(crate) access: Packed,
    /// What is to be checked then.
    pub(crate) others: I,
    /// Where its program lies.
    pub(crate) start: u32,
    /// A query that holds if all that it decides hold, or [`NO_QUERY`](super::level::NO_QUERY).
    pub(crate) query: QueryNumber,
}

/// Gathers the plans of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockIndexBuilder {
    /// Places of all access conditions, a bit each.
    places: u64,
    /// What is found by values.
    found: Vec<(Place, AtomId, Answer)>,
    entries: Vec<Entry>,
    unconditional: Vec<PlanId>,
    complex: Vec<PlanId>,
    /// Places at which nested paths are asked for, a bit each.
    nested_places: u64,
}

impl BlockIndexBuilder {
    /// Adds a plan that is no conjunction.
    pub(crate) fn add_complex(&mut self, plan: PlanId) {
        self.complex.push(plan);
    }

    /// Adds a plan that always holds.
    pub(crate) fn add_unconditional(&mut self, plan: PlanId) {
        self.unconditional.push(plan);
    }

    /// Adds a conjunction. `numbers` are the queries that it decides without a check, moved by `offset`;
    /// empty if there is something to check.
    pub(crate) fn add(
        &mut self,
        conjunction: Conjunction<impl ExactSizeIterator<Item = Packed>>,
        numbers: &[Range<QueryNumber>],
        offset: QueryNumber,
        atoms: &Atoms,
    ) {
        let Conjunction { access, others, start, query } = conjunction;
        let (place, need) = (access.place(), access.need());
        let count = others.len() as u32;
        let mut hint = None;
        for conjunct in others.chain([access]) {
            hint.get_or_insert(conjunct.hint());
            if matches!(conjunct.need(), Need::Nested(_)) {
                self.nested_places |= 1 << conjunct.place().code();
            }
        }
        self.places |= 1 << place.code();
        let mut push = |answer| match need {
            Need::Found(_, atom) => self.found.push((place, atom, answer)),
            Need::Tried(atom) => {
                self.entries.push(Entry { place, access: access_of(atom, atoms), answer })
            }
            Need::Nested(number) => {
                self.entries.push(Entry { place, access: Access::Nested(number), answer });
            }
        };
        if numbers.is_empty() {
            return push(Answer::check(Check { start, count, hint: hint.unwrap_or(0) }, query));
        }
        for number in numbers.iter().cloned().flatten() {
            let number = number + offset;
            push(Answer::word(number / 64, 1 << (number % 64)));
        }
    }

    /// The index. `counts` is what the automaton has numbered so far.
    pub(crate) fn build(mut self, atoms: &Atoms, counts: &mut Counts) -> BlockIndex {
        self.entries.sort_unstable_by(|a, b| {
            a.place
                .cmp(&b.place)
                .then_with(|| compare_access(a.access, b.access))
                .then_with(|| a.answer.cmp(&b.answer))
        });
        self.entries.dedup_by(|next, entry| {
            let is_same = next.place == entry.place && next.access == entry.access;
            is_same && merge(&mut entry.answer, next.answer)
        });
        let mut parts = Parts::default();
        let mut rest = &self.entries[..];
        let mut entries: Vec<PlaceEntry> = places_in(self.places)
            .map(|place| {
                let count = rest.iter().take_while(|entry| entry.place == place).count();
                let (here, after) = rest.split_at(count);
                rest = after;
                parts.add_place(place, here, counts)
            })
            .collect();
        let found = self.found.iter().map(|&(place, atom, answer)| {
            let number = (self.places & ((1 << place.code()) - 1)).count_ones();
            let entry = &mut entries[number as usize];
            entry.kinds |= 1 << kind_of(atoms.get(atom).subject) as u8;
            entry.is_exact &= answer.is_exact();
            (atom * self.places.count_ones() + number, answer)
        });
        let (slots, shift, runs) = slots(found.collect());
        BlockIndex {
            places: entries.into(),
            slots,
            shift,
            runs,
            nested_words: parts.nested_words().into(),
            nested: parts.nested.into(),
            thresholds: parts.thresholds.into(),
            tried: parts.tried.into(),
            unconditional: self.unconditional.into(),
            complex: self.complex.into(),
            nested_places: places_in(self.nested_places).collect(),
        }
    }
}

/// The places of a set.
fn places_in(set: u64) -> impl Iterator<Item = Place> {
    (0..u64::BITS).filter(move |code| set >> code & 1 == 1).map(Place::of_code)
}

/// Adds the next answer of one access condition to the one before it, if both are bits of one word.
fn merge(answer: &mut Answer, next: Answer) -> bool {
    let is_same_word = next.at == answer.at && next.is_exact();
    if is_same_word {
        answer.bits |= next.bits;
    }
    is_same_word
}

fn access_of(id: AtomId, atoms: &Atoms) -> Access {
    let atom = atoms.get(id);
    let Some((notation, comparison, limit)) = atom.ask.numeric() else { return Access::Tried(id) };
    let compared = (atom.subject, notation);
    match comparison {
        Comparison::Gt => Access::Above(compared, limit, false),
        Comparison::Ge => Access::Above(compared, limit, true),
        Comparison::Lt => Access::Below(compared, limit, false),
        Comparison::Le => Access::Below(compared, limit, true),
        Comparison::Eq | Comparison::Ne => Access::Tried(id),
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
    /// Words of nested paths, and the places that they belong to.
    words: Vec<(NestedWord, Place)>,
    nested: Vec<NestedAnswer>,
    thresholds: Vec<Thresholds>,
    tried: Vec<(AtomId, Answer)>,
}

impl Parts {
    fn add_place(&mut self, place: Place, entries: &[Entry], counts: &mut Counts) -> PlaceEntry {
        let (nested, tried) = (self.words.len() as u32, self.tried.len() as u32);
        let thresholds = self.thresholds.len() as u32;
        let (mut is_exact, mut is_nested_exact) = (true, true);
        for entry in entries {
            let answer = entry.answer;
            match entry.access {
                Access::Nested(nested) => {
                    is_nested_exact &= answer.is_exact();
                    let Answer { at, bits } = answer;
                    self.add_nested(NestedAnswer { nested, at, bits }, place);
                    continue;
                }
                Access::Tried(atom) => self.tried.push((atom, answer)),
                Access::Above(..) | Access::Below(..) => {}
            }
            is_exact &= answer.is_exact();
        }
        self.add_thresholds(entries, counts);
        counts.places += 1;
        PlaceEntry {
            place,
            number: counts.places - 1,
            kinds: 0,
            is_exact,
            is_nested_exact,
            nested: nested..self.words.len() as u32,
            thresholds: thresholds..self.thresholds.len() as u32,
            tried: tried..self.tried.len() as u32,
        }
    }

    fn add_nested(&mut self, answer: NestedAnswer, place: Place) {
        let (word, bit) = (answer.nested / 64, 1 << (answer.nested % 64));
        let start = self.nested.len() as u32;
        match self.words.last_mut() {
            Some((last, of)) if last.word == word && *of == place => last.mask |= bit,
            _ => self.words.push((NestedWord { word, start, mask: bit }, place)),
        }
        self.nested.push(answer);
    }

    fn nested_words(&mut self) -> Vec<NestedWord> {
        if self.words.is_empty() {
            return vec![];
        }
        let end = NestedWord { word: 0, start: self.nested.len() as u32, mask: 0 };
        self.words.drain(..).map(|(word, _)| word).chain([end]).collect()
    }

    fn add_thresholds(&mut self, entries: &[Entry], counts: &mut Counts) {
        let side_of = |entry: &Entry| match entry.access {
            Access::Above(compared, ..) => Some((compared, true)),
            Access::Below(compared, ..) => Some((compared, false)),
            _ => None,
        };
        for same in entries.chunk_by(|a, b| side_of(a) == side_of(b)) {
            let Some(((subject, notation), is_above)) = side_of(&same[0]) else { continue };
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
                        notation,
                        is_above,
                        is_exact,
                        limits: limits.into(),
                        answers: answers.into(),
                    });
                }
            }
        }
    }
}

/// The hash table of what keys lead to: slots, shift of the hash, runs.
fn slots(mut found: Vec<(u32, Answer)>) -> (Box<[Slot]>, u32, Box<[Answer]>) {
    found.sort_unstable();
    found.dedup_by(|next, last| next.0 == last.0 && merge(&mut last.1, next.1));
    let keys = found.chunk_by(|a, b| a.0 == b.0);
    let count = keys.clone().count();
    if count == 0 {
        return (Box::default(), 0, Box::default());
    }
    let size = (count * 3 / 2 + 1).next_power_of_two().max(2);
    let shift = 32 - size.trailing_zeros();
    let mut slots = vec![Slot { key: FREE, at: 0, bits: 0 }; size];
    let mut runs = Vec::new();
    for same in keys {
        let slot = match *same {
            [(key, Answer { at, bits })] => Slot { key, at, bits },
            _ => {
                let start = runs.len();
                runs.extend(same.iter().map(|&(_, answer)| answer));
                Slot { key: same[0].0 | IS_RUN, at: start as u32, bits: runs.len() as u64 }
            }
        };
        let mut at = (same[0].0.wrapping_mul(0x9e37_79b9) >> shift) as usize;
        while slots[at].key != FREE {
            at = (at + 1) & (size - 1);
        }
        slots[at] = slot;
    }
    (slots.into(), shift, runs.into())
}

#[cfg(test)]
mod tests {
    use super::super::atoms::{VALUE, is_found};
    use super::super::block_index::{Answers, Follows};
    use super::super::level::NO_QUERY;
    use super::super::program::Conjunct;
    use super::*;
    use crate::engine::ask::Ask;

    fn built(asks: &[Ask]) -> (BlockIndex, Atoms) {
        let (mut atoms, mut builder) = (Atoms::default(), BlockIndexBuilder::default());
        for (number, ask) in asks.iter().enumerate() {
            let atom = atoms.intern(VALUE, ask.borrowed());
            let is_found = is_found(ask);
            let need = if is_found { Need::Found(kind_of(VALUE), atom) } else { Need::Tried(atom) };
            let access = Packed::new(Conjunct { place: Place::Up(1), need });
            let number = number as u32;
            let conjunction =
                Conjunction { access, others: [].into_iter(), start: 0, query: NO_QUERY };
            let numbers = number..number + 1;
            builder.add(conjunction, std::slice::from_ref(&numbers), 0, &atoms);
        }
        (builder.build(&atoms, &mut Counts::default()), atoms)
    }

    #[test]
    fn limits_are_satisfied_up_to_the_value_and_no_further() {
        let limits = [3.0, 1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY, 2.0];
        let orders = [Comparison::Gt, Comparison::Ge, Comparison::Lt, Comparison::Le];
        let made: [fn(Comparison, f64) -> Ask; 2] = [Ask::Number, Ask::Cast];
        for (order, made) in orders.into_iter().flat_map(|order| made.map(|made| (order, made))) {
            let asks: Vec<Ask> = limits.iter().map(|&limit| made(order, limit)).collect();
            let (index, _) = built(&asks);
            let list = &index.thresholds[0];
            for value in [f64::NEG_INFINITY, 0.0, 1.0, 1.5, 2.0, 3.0, 4.0, f64::INFINITY] {
                let mut held = 0;
                for answer in &list.answers[..list.satisfied(value, value)] {
                    match answer.follows() {
                        Follows::Word(0, bits) => held |= bits,
                        other => panic!("an exact answer, not {other:?}"),
                    }
                }
                let expected = asks.iter().enumerate().filter(|(_, ask)| ask.holds_number(value));
                assert_eq!(
                    held,
                    expected.fold(0, |bits, (at, _)| bits | 1 << at),
                    "{order:?} {value}"
                );
            }
        }
    }

    #[test]
    fn every_atom_finds_its_own_answer() {
        let asks: Vec<Ask> = (0..500)
            .map(|n| Ask::Text(Comparison::Eq, format!("v{n}").into_bytes().into()))
            .collect();
        let (index, atoms) = built(&asks);
        for (number, ask) in asks.iter().enumerate() {
            let atom = number as AtomId;
            assert_eq!(atoms.get(atom).ask, *ask);
            match index.answers(index.probe(0, atom)) {
                Answers::One(answer) => match answer.follows() {
                    Follows::Word(at, bits) => {
                        assert_eq!((at as usize, bits), (number / 64, 1 << (number % 64)));
                    }
                    other => panic!("an exact answer, not {other:?}"),
                },
                other => panic!("one answer, not {other:?}"),
            }
        }
        assert!(matches!(index.answers(index.probe(0, 500)), Answers::None));
    }
}
