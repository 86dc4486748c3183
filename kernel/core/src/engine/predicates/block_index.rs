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

use super::atoms::{AtomId, KINDS, Kind, SubjectId};
use super::program::Place;
use crate::engine::ids::{PlanId, QueryNumber};
use crate::language::numbers::Notation;
use std::ops::Range;

/// What follows from an access condition: queries that hold, or a plan to be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Answer {
    /// A word of query numbers; or [`Answer::IS_PLAN`], the hint of the first conjunct to be
    /// checked and the number of them.
    pub(super) at: u32,
    /// The queries of the word that hold; or where the program begins, and a query.
    pub(super) bits: u64,
}

/// An answer, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Follows {
    /// A word of query numbers and its bits.
    Word(u32, u64),
    /// A plan to be checked, and a query that holds if all that it decides are known to hold.
    Check(Check, QueryNumber),
}

/// A plan that is to be checked: where its program lies, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Check {
    /// First word.
    pub(crate) start: u32,
    /// Number of conjuncts.
    pub(crate) count: u32,
    /// [`Packed::hint`](super::program::Packed::hint) of the first of them.
    pub(crate) hint: u32,
}

impl Answer {
    const IS_PLAN: u32 = 1 << 31;
    /// Where the hint begins; the number of conjuncts is below.
    const HINT: u32 = 16;

    /// Bits of a word.
    pub(crate) fn word(at: u32, bits: u64) -> Answer {
        Answer { at, bits }
    }

    pub(super) fn check(check: Check, query: QueryNumber) -> Answer {
        let bits = u64::from(query) << 32 | u64::from(check.start);
        Answer { at: check.count | check.hint << Answer::HINT | Answer::IS_PLAN, bits }
    }

    /// Whether it needs no check.
    #[inline]
    pub(crate) fn is_exact(self) -> bool {
        self.at & Answer::IS_PLAN == 0
    }

    /// What follows.
    #[inline]
    pub(crate) fn follows(self) -> Follows {
        if self.is_exact() {
            return Follows::Word(self.at, self.bits);
        }
        let rest = self.at & !Answer::IS_PLAN;
        let (hint, count) = (rest >> Answer::HINT, rest & ((1 << Answer::HINT) - 1));
        let check = Check { start: self.bits as u32, count, hint };
        Follows::Check(check, (self.bits >> 32) as QueryNumber)
    }
}

/// An answer under its key; 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// [`FREE`], or a key, with [`IS_RUN`] if the answer says where its answers lie.
    pub(super) key: u32,
    pub(super) at: u32,
    pub(super) bits: u64,
}

pub(super) const FREE: u32 = u32::MAX;
pub(super) const IS_RUN: u32 = 1 << 31;

/// The nested paths of a place whose numbers share a word; 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NestedWord {
    /// Which word.
    pub(crate) word: u32,
    /// Where their answers begin; they end where those of the next word begin.
    pub(crate) start: u32,
    /// Which bits of it.
    pub(crate) mask: u64,
}

/// A nested path and what follows from it; 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NestedAnswer {
    /// Number of the nested path.
    pub(crate) nested: QueryNumber,
    pub(super) at: u32,
    pub(super) bits: u64,
}

impl NestedAnswer {
    /// The word and the bits of an answer that is exact.
    #[inline]
    pub(crate) fn word(self) -> (u32, u64) {
        (self.at, self.bits)
    }

    /// What follows.
    #[inline]
    pub(crate) fn answer(self) -> Answer {
        Answer { at: self.at, bits: self.bits }
    }
}

/// A look-up under way: where it begins, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    at: u32,
    key: u32,
}

/// The access conditions at one place.
#[derive(Debug)]
pub(crate) struct PlaceEntry {
    /// Where they are looked at.
    pub(crate) place: Place,
    /// Number of the entry among all of its automaton.
    pub(crate) number: u32,
    /// Kinds of values that lead to slots, a bit each.
    pub(crate) kinds: u8,
    /// No plan found by values has to be checked.
    pub(crate) is_exact: bool,
    /// No plan found by nested paths has to be checked.
    pub(crate) is_nested_exact: bool,
    /// Its part of [`BlockIndex::nested_words`].
    pub(crate) nested: Range<u32>,
    /// Its part of [`BlockIndex::thresholds`].
    pub(crate) thresholds: Range<u32>,
    /// Its part of [`BlockIndex::tried`].
    pub(crate) tried: Range<u32>,
}

impl PlaceEntry {
    /// Whether values lead to anything.
    #[inline]
    pub(crate) fn has_values(&self) -> bool {
        self.kinds != 0 || !self.thresholds.is_empty() || !self.tried.is_empty()
    }
}

/// Thresholds of one subject at one place, on one side.
#[derive(Debug)]
pub(crate) struct Thresholds {
    /// Number of this list among all of its automaton.
    pub(crate) number: u32,
    /// What is compared.
    pub(crate) subject: SubjectId,
    /// How it is read.
    pub(crate) notation: Notation,
    /// Whether what is greater satisfies more of them.
    pub(crate) is_above: bool,
    /// No plan of the list has to be checked.
    pub(crate) is_exact: bool,
    /// (threshold, whether it is enough to be equal), those satisfied first first.
    pub(super) limits: Box<[(f64, bool)]>,
    /// What follows from each.
    pub(crate) answers: Box<[Answer]>,
}

/// The answers of one look-up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answers<'i> {
    /// Nothing follows.
    None,
    /// One answer.
    One(Answer),
    /// Several.
    Run(&'i [Answer]),
}

/// The plans of a block.
#[derive(Debug, Default)]
pub(crate) struct BlockIndex {
    /// Where access conditions are looked at.
    pub(crate) places: Box<[PlaceEntry]>,
    pub(super) slots: Box<[Slot]>,
    pub(super) shift: u32,
    /// Answers of keys that have several.
    pub(super) runs: Box<[Answer]>,
    /// By place; one more than there are, to end the answers of the last one.
    pub(super) nested_words: Box<[NestedWord]>,
    /// By place, then by nested path.
    pub(super) nested: Box<[NestedAnswer]>,
    /// By place.
    pub(crate) thresholds: Box<[Thresholds]>,
    /// Atoms that are tried one by one, by place.
    pub(crate) tried: Box<[(AtomId, Answer)]>,
    /// Plans that hold wherever their path ends and are no plain queries.
    pub(crate) unconditional: Box<[PlanId]>,
    /// Plans that are no conjunctions.
    pub(crate) complex: Box<[PlanId]>,
    /// Places at which nested paths are asked for.
    pub(crate) nested_places: Box<[Place]>,
}

impl BlockIndex {
    /// Begins to look up what an atom at a place leads to.
    #[inline]
    pub(crate) fn probe(&self, place: usize, atom: AtomId) -> Probe {
        let key = atom * self.places.len() as u32 + place as u32;
        Probe { at: self.home(key) as u32, key }
    }

    /// Touches the memory that a look-up needs. Many of these in a row wait for memory together; a
    /// look-up that branches on what it reads waits alone. The result means nothing.
    #[inline]
    pub(crate) fn touch(&self, probe: Probe) -> u32 {
        self.slots.get(probe.at as usize).map_or(0, |slot| slot.key)
    }

    /// Ends a look-up: its answers, none if there are none.
    #[inline]
    pub(crate) fn answers(&self, probe: Probe) -> Answers<'_> {
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
    pub(super) fn home(&self, key: u32) -> usize {
        // There are two slots at least, so the shift is below 32.
        (key.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }

    /// Calls `f` with the answers of every word of nested paths of a place of which some may hold, and with
    /// that word. `word` tells what holds. Cost: the words; most of them have nothing in common with what holds.
    #[inline]
    pub(crate) fn nested_answers(
        &self,
        entry: &PlaceEntry,
        mut word: impl FnMut(u32) -> u64,
        mut f: impl FnMut(u64, &[NestedAnswer]),
    ) {
        for at in entry.nested.start as usize..entry.nested.end as usize {
            let here = &self.nested_words[at];
            let holds = word(here.word);
            if holds & here.mask != 0 {
                let end = self.nested_words[at + 1].start;
                f(holds, &self.nested[here.start as usize..end as usize]);
            }
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        size_of::<BlockIndex>()
            + size_of_val(&*self.nested_words)
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
    pub(crate) fn satisfied(&self, low: f64, high: f64) -> usize {
        if self.is_above {
            self.limits.partition_point(|&(at, equal)| at < high || (equal && at == high))
        } else {
            self.limits.partition_point(|&(at, equal)| at > low || (equal && at == low))
        }
    }
}

/// The kinds of a set.
#[inline]
pub(crate) fn kinds_in(set: u8) -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(move |&kind| set >> kind as u8 & 1 == 1)
}
