//! A plan as a conjunction: what must hold, and at which element seen from the end.
//!
//! Most plans are one: their conditions are atoms and nested paths, at places that follow from the
//! end of the path ([`anchored`](crate::language::query::anchoring::anchored)). The rest, whose positions count what
//! other predicates have left or whose attributes are named by a pattern, come to what they need at least: where that
//! holds the path is looked at as it is written.

use super::atoms::{
    ANY_ATTRIBUTE, AtomId, Atoms, KINDS, Kind, ORDINAL_OF_ANY, ORDINAL_OF_NAME, SubjectId, TEXT,
    VALUE, is_found, kind_of,
};
use crate::engine::ask::Ask;
use crate::engine::conditions::ask_of;
use crate::engine::ids::QueryNumber;
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::language::comparison::Comparison;
use crate::language::query::anchoring::{
    anchored_len, counts_siblings, is_conjunction, is_pattern,
};
use crate::language::query::ast::{Axis, Condition, NameTest, Step};

/// An element, seen from the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// So many parents above the end.
    Up(u32),
    /// The ancestor at this depth (or the end itself), counted from where the path begins.
    Depth(u32),
}

impl Place {
    /// Places this far away, or further, are.
    pub(crate) const FAR: u32 = 32;

    /// Whether it is so far away that it is not worth an index.
    pub(crate) fn is_far(self) -> bool {
        let (Place::Up(steps) | Place::Depth(steps)) = self;
        steps >= Place::FAR
    }

    /// Its number, below 64, in the order of places; of one that is not far.
    #[inline]
    pub(crate) fn code(self) -> u32 {
        match self {
            Place::Up(parents) => parents,
            Place::Depth(depth) => depth | Place::FAR,
        }
    }

    /// The place of a number.
    #[inline]
    pub(crate) fn of_code(code: u32) -> Place {
        let steps = code % Place::FAR;
        if code & Place::FAR == 0 { Place::Up(steps) } else { Place::Depth(steps) }
    }
}

/// What must hold at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Need {
    /// An atom that is found by values of this kind.
    Found(Kind, AtomId),
    /// An atom that has to be tried.
    Tried(AtomId),
    /// A nested path.
    Nested(QueryNumber),
}

/// One conjunct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Conjunct {
    /// Where.
    pub(crate) place: Place,
    /// What.
    pub(crate) need: Need,
}

/// A conjunct in 8 bytes, as it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed(u64);

impl Packed {
    const TRIED: u64 = KINDS.len() as u64;
    const NESTED: u64 = Packed::TRIED + 1;

    /// Packs a conjunct whose place is not far.
    pub(crate) fn new(conjunct: Conjunct) -> Packed {
        let place = u64::from(conjunct.place.code());
        let (tag, id) = match conjunct.need {
            Need::Found(kind, atom) => (kind as u64, atom),
            Need::Tried(atom) => (Packed::TRIED, atom),
            Need::Nested(number) => (Packed::NESTED, number),
        };
        Packed(u64::from(id) << 32 | tag << 8 | place)
    }

    /// Where.
    #[inline]
    pub(crate) fn place(self) -> Place {
        Place::of_code(self.0 as u32 & 0xff)
    }

    /// What.
    #[inline]
    pub(crate) fn need(self) -> Need {
        let id = (self.0 >> 32) as u32;
        match self.0 >> 8 & 0xff {
            Packed::TRIED => Need::Tried(id),
            Packed::NESTED => Need::Nested(id),
            kind => Need::Found(KINDS[kind as usize], id),
        }
    }

    /// A number from 1 to 4095 that is the same for equal conjuncts about attributes, for
    /// [`Signature`](super::signature::Signature); 0 for other conjuncts.
    #[inline]
    pub(crate) fn hint(self) -> u32 {
        if self.0 >> 8 & 0xff == Kind::Attribute as u64 {
            ((self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as u32).max(1)
        } else {
            0
        }
    }

    /// As a word of a list.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// From a word of a list.
    #[inline]
    pub(crate) fn of_word(word: u64) -> Packed {
        Packed(word)
    }
}

/// What a plan comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The conjuncts that were added are all of it.
    Conjunction,
    /// It cannot hold.
    Never,
    /// It is no conjunction of this kind; it needs the conjuncts that were added, and more.
    Complex,
}

/// Adds the conjuncts of a path in normal form.
pub(crate) fn conjuncts_of(
    steps: &[Step<'_>],
    nested: Option<&NestedPaths>,
    atoms: &mut Atoms,
    out: &mut Vec<Conjunct>,
) -> Outcome {
    let (kept, rest) = steps.split_at(anchored_len(steps));
    // In the last run of `/` steps elements are so many parents above the end; before it, conditions are at the
    // beginning of the path.
    let tail = kept.iter().rposition(|step| step.axis != Axis::Child).unwrap_or(0);
    let last = kept.len().saturating_sub(1);
    let is_complex = !is_conjunction(steps);
    let mut reader = Reader { nested, atoms, place: Place::Up(0), out, is_complex };
    for (at, step) in kept.iter().enumerate().rev() {
        reader.place =
            if at < tail { Place::Depth(at as u32) } else { Place::Up((last - at) as u32) };
        let counts_siblings = counts_siblings(step);
        for (number, stage) in step.stages.iter().enumerate() {
            // The first positions count all siblings, or those that a pattern lets through.
            let is_plain = !counts_siblings || (number == 0 && !is_pattern(&step.test));
            let positions = if is_plain { &*stage.positions } else { &[] };
            if !reader.positions(step, positions) || !reader.conditions(&stage.conditions) {
                return Outcome::Never;
            }
        }
    }
    reader.place = Place::Up(0);
    if !rest.is_empty() {
        reader.nested(rest);
    }
    if reader.is_complex { Outcome::Complex } else { Outcome::Conjunction }
}

struct Reader<'a> {
    nested: Option<&'a NestedPaths>,
    atoms: &'a mut Atoms,
    place: Place,
    out: &'a mut Vec<Conjunct>,
    is_complex: bool,
}

impl Reader<'_> {
    /// False if they cannot hold.
    fn positions(&mut self, step: &Step<'_>, positions: &[(Comparison, f64)]) -> bool {
        positions.iter().all(|&(comparison, at)| match (step.axis, &step.test) {
            // `//.` is a step to the element itself, which is the first of one.
            (Axis::DescendantOrSelf, _) => comparison.holds(1.0, at),
            (_, NameTest::Any) => self.atom(ORDINAL_OF_ANY, Ask::Number(comparison, at)),
            _ => self.atom(ORDINAL_OF_NAME, Ask::Number(comparison, at)),
        })
    }

    /// False if they cannot hold.
    fn conditions(&mut self, conditions: &[Condition<'_>]) -> bool {
        conditions.iter().all(|condition| {
            let subject = match condition {
                Condition::Attribute { test: NameTest::Name { uri, local }, .. } => {
                    self.atoms.attribute(uri, local)
                }
                Condition::Attribute { test: NameTest::Any, .. } => ANY_ATTRIBUTE,
                Condition::Attribute { .. } => return true,
                Condition::Text(_) => TEXT,
                Condition::Value(..) => VALUE,
                Condition::Nested(steps) => {
                    self.nested(steps);
                    return true;
                }
            };
            self.atom(subject, ask_of(condition.compare()))
        })
    }

    fn nested(&mut self, steps: &[Step<'_>]) {
        match self.nested.and_then(|nested| nested.find(steps)) {
            Some(number) => self.push(Need::Nested(number)),
            None => self.is_complex = true,
        }
    }

    fn push(&mut self, need: Need) {
        let conjunct = Conjunct { place: self.place, need };
        if !self.out.contains(&conjunct) {
            self.out.push(conjunct);
        }
    }

    /// False if it cannot hold.
    fn atom(&mut self, subject: SubjectId, ask: Ask<&str>) -> bool {
        let ask = match ask {
            // Nothing but `!=` is true of what is no number.
            Ask::Number(comparison, constant)
                if constant.is_nan() && comparison != Comparison::Ne =>
            {
                return false;
            }
            // Adding 0 makes 0 of -0: limits that are equal must be the same.
            Ask::Number(comparison, constant) => Ask::Number(comparison, constant + 0.0),
            Ask::Cast(comparison, constant) => Ask::Cast(comparison, constant + 0.0),
            other => other,
        };
        let atom = self.atoms.intern(subject, ask.map(str::as_bytes));
        let is_found = is_found(&self.atoms.get(atom).ask);
        self.push(if is_found { Need::Found(kind_of(subject), atom) } else { Need::Tried(atom) });
        true
    }
}
