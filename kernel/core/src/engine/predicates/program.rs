//! A plan as a conjunction: what must hold, and at which element seen from the end.
//!
//! Most plans are one: their conditions are atoms and nested paths, at places that follow from the
//! end of the path ([`anchored`](crate::language::query::anchoring::anchored)). The rest, whose positions count what
//! other predicates have left or whose attributes are named by a pattern, stay plans.

use super::atoms::{
    Atom, AtomId, Atoms, KINDS, Kind, ORDINAL_OF_ANY, ORDINAL_OF_NAME, SubjectId, TEXT, VALUE,
    is_found, kind_of,
};
use crate::engine::ask::Ask;
use crate::engine::conditions::Plan;
use crate::engine::conditions::plan::{Operation, Reach, Slice, Test, TextRange};
use crate::engine::ids::QueryNumber;
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::language::comparison::Comparison;

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
    const IS_DEPTH: u64 = 1 << 5;
    const TRIED: u64 = KINDS.len() as u64;
    const NESTED: u64 = Packed::TRIED + 1;

    /// Packs a conjunct whose place is not far.
    pub(crate) fn new(conjunct: Conjunct) -> Packed {
        let place = match conjunct.place {
            Place::Up(parents) => u64::from(parents),
            Place::Depth(depth) => u64::from(depth) | Packed::IS_DEPTH,
        };
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
        let steps = self.0 as u32 & 0x1f;
        if self.0 & Packed::IS_DEPTH == 0 { Place::Up(steps) } else { Place::Depth(steps) }
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
    /// It is no conjunction of this kind.
    Complex,
}

/// Adds the conjuncts of a plan, sorted.
pub(crate) fn conjuncts_of(
    plan: &Plan,
    nested: Option<&NestedPaths>,
    atoms: &mut Atoms,
    out: &mut Vec<Conjunct>,
) -> Outcome {
    if !plan.is_conjunction() {
        return Outcome::Complex;
    }
    let mut above = 0;
    for number in plan.main().numbers() {
        let check = plan.check(number);
        let place = match check.reach {
            Reach::Up(parents) => {
                above += parents;
                Place::Up(above)
            }
            Reach::ToDepth(depth) | Reach::ToDepthOrSelf(depth) => Place::Depth(depth),
            _ => return Outcome::Complex,
        };
        for number in check.operations.numbers() {
            let mut reader = Reader { plan, atoms: &mut *atoms, place, out: &mut *out };
            let outcome = match plan.operation(number) {
                Operation::OrdinalOfAny(slice) => reader.positions(ORDINAL_OF_ANY, slice),
                Operation::OrdinalOfName(slice) => reader.positions(ORDINAL_OF_NAME, slice),
                Operation::Attribute(test, ask) => reader.attribute(test, ask),
                Operation::Text(ask) => reader.atom(TEXT, ask),
                Operation::Value(ask) => reader.atom(VALUE, ask),
                Operation::Nested(number) => {
                    let key = plan.text(plan.nested(number).key);
                    let key = str::from_utf8(key).expect("keys are cut from a string");
                    match nested.and_then(|nested| nested.find(key)) {
                        Some(number) => reader.push(Need::Nested(number)),
                        None => Outcome::Complex,
                    }
                }
                Operation::Never => Outcome::Never,
                Operation::Position(_) => Outcome::Complex,
            };
            if outcome != Outcome::Conjunction {
                return outcome;
            }
        }
    }
    Outcome::Conjunction
}

struct Reader<'p, 'a> {
    plan: &'p Plan,
    atoms: &'a mut Atoms,
    place: Place,
    out: &'a mut Vec<Conjunct>,
}

impl Reader<'_, '_> {
    fn push(&mut self, need: Need) -> Outcome {
        let conjunct = Conjunct { place: self.place, need };
        if !self.out.contains(&conjunct) {
            self.out.push(conjunct);
        }
        Outcome::Conjunction
    }

    fn positions(&mut self, subject: SubjectId, slice: Slice) -> Outcome {
        for number in slice.numbers() {
            let (operator, constant) = self.plan.position(number);
            let outcome = self.atom(subject, Ask::Number(operator, constant));
            if outcome != Outcome::Conjunction {
                return outcome;
            }
        }
        Outcome::Conjunction
    }

    fn attribute(&mut self, test: u32, ask: Ask<TextRange>) -> Outcome {
        let plan = self.plan;
        let Test::Name { uri, local, .. } = plan.test(test).1 else {
            return Outcome::Complex;
        };
        let text = |range| str::from_utf8(plan.text(range)).expect("cut from a string");
        let (uri, local) = (text(uri), text(local));
        let subject = self.atoms.attribute(uri, local);
        self.atom(subject, ask)
    }

    fn atom(&mut self, subject: SubjectId, ask: Ask<TextRange>) -> Outcome {
        let plan = self.plan;
        let ask = match ask {
            // Nothing but `!=` is true of what is no number.
            Ask::Number(comparison, constant)
                if constant.is_nan() && comparison != Comparison::Ne =>
            {
                return Outcome::Never;
            }
            // Adding 0 makes 0 of -0: limits that are equal must be the same.
            Ask::Number(comparison, constant) => Ask::Number(comparison, constant + 0.0),
            Ask::Cast(comparison, constant) => Ask::Cast(comparison, constant + 0.0),
            other => other,
        };
        let ask = ask.map(|range| Box::from(plan.text(range)));
        let is_found = is_found(&ask);
        let atom = self.atoms.intern(Atom { subject, ask });
        self.push(if is_found { Need::Found(kind_of(subject), atom) } else { Need::Tried(atom) })
    }
}
