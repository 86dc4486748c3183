//! How a plan lies in memory: one run of words, records of fixed size, section after section.
//!
//! A message makes candidates of thousands of plans that nothing has touched for a while, so what
//! a plan costs is mostly the cache lines it covers: with one condition it covers two.
//!
//! | words | what |
//! |---|---|
//! | 7 | header: flags, then where checks, operations, positions, nested paths and text begin, then the number of the main path's first check (it has the last ones) |
//! | 6 each | tests |
//! | 5 each | checks |
//! | 4 each | operations |
//! | 3 each | positions |
//! | 6 each | nested paths |
//! | rest | text |

use super::plan::{
    Arrays, Check, Named, NestedPath, Operation, Plan, Reach, Slice, Test, TextRange,
};
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::Notation;
use crate::language::query::ast::Axis;

const HEADER: usize = 7;
const TEST: usize = 6;
const CHECK: usize = 5;
const OPERATION: usize = 4;
const POSITION: usize = 3;
const NESTED: usize = 6;

const IS_DIRECT: u32 = 1;
const HAS_ORDINALS: u32 = 2;

const AXES: [Axis; 3] = [Axis::Child, Axis::Descendant, Axis::DescendantOrSelf];

impl Plan {
    /// Every condition is local and at a place that follows from the end.
    #[inline]
    pub(crate) fn is_direct(&self) -> bool {
        self.words[0] & IS_DIRECT != 0
    }

    /// Some position is looked up in the ordinals of the message.
    #[inline]
    pub(crate) fn has_ordinals(&self) -> bool {
        self.words[0] & HAS_ORDINALS != 0
    }

    /// The checks of the main path, from its end towards the root.
    #[inline]
    pub(crate) fn main(&self) -> Slice {
        let checks = (self.words[2] - self.words[1]) / CHECK as u32;
        Slice { start: self.words[6], end: checks }
    }

    #[inline]
    pub(crate) fn test_count(&self) -> u32 {
        (self.words[1] - HEADER as u32) / TEST as u32
    }

    #[inline]
    pub(crate) fn test(&self, number: u32) -> (Named, Test) {
        let [kind, high, low, start, middle, end] = self.record(HEADER as u32, number);
        let named = if kind & 1 == 0 { Named::Element } else { Named::Attribute };
        let first = TextRange { start, end: middle };
        let second = TextRange { start: middle, end };
        let test = match kind >> 1 {
            0 => Test::Name { hash: join(high, low), uri: first, local: second },
            1 => Test::AnyIn { uri: first },
            _ => Test::AnyNamespace { local: second },
        };
        (named, test)
    }

    #[inline]
    pub(crate) fn check(&self, number: u32) -> Check {
        let [kind, argument, test, start, end] = self.record(self.words[1], number);
        let reach = match kind >> 1 {
            0 => Reach::Up(argument),
            1 => Reach::ToDepth(argument),
            2 => Reach::ToDepthOrSelf(argument),
            3 => Reach::Everywhere,
            4 => Reach::Parent,
            5 => Reach::Ancestors,
            _ => Reach::AncestorsOrSelf,
        };
        Check { reach, test, operations: Slice { start, end }, by_siblings: kind & 1 == 1 }
    }

    #[inline]
    pub(crate) fn operation(&self, number: u32) -> Operation {
        let [kind, argument, first, second] = self.record(self.words[2], number);
        let slice = Slice { start: first, end: second };
        let range = TextRange { start: first, end: second };
        let comparison = Comparison::ALL[(kind >> 16) as usize];
        let constant = f64::from_bits(join(first, second));
        let ask = match kind >> 8 & 0xff {
            0 => Ask::Exists,
            1 => Ask::Text(comparison, range),
            2 => Ask::StartsWith(range),
            3 => Ask::Contains(range),
            4 => Ask::Number(comparison, constant),
            5 => Ask::Cast(comparison, constant),
            6 => Ask::OneOf(range),
            7 => Ask::CastOneOf(range),
            8 => Ask::Moment(Notation::Date, comparison, constant),
            9 => Ask::Moment(Notation::DateTime, comparison, constant),
            _ => Ask::Moment(Notation::Time, comparison, constant),
        };
        match kind & 0xff {
            0 => Operation::OrdinalOfName(slice),
            1 => Operation::OrdinalOfAny(slice),
            2 => Operation::Position(slice),
            3 => Operation::Attribute(argument, ask),
            4 => Operation::Text(ask),
            5 => Operation::Value(ask),
            6 => Operation::Nested(argument),
            _ => Operation::Never,
        }
    }

    #[inline]
    pub(crate) fn position(&self, number: u32) -> (Comparison, f64) {
        let [operator, high, low] = self.record(self.words[3], number);
        (Comparison::ALL[operator as usize], f64::from_bits(join(high, low)))
    }

    pub(crate) fn nested(&self, number: u32) -> NestedPath {
        let [checks_start, axis_and_length, key_start, key_end, high, low] =
            self.record(self.words[4], number);
        NestedPath {
            checks: Slice { start: checks_start, end: checks_start + (axis_and_length >> 2) },
            axis: AXES[(axis_and_length & 3) as usize],
            key: TextRange { start: key_start, end: key_end },
            key_hash: join(high, low),
        }
    }

    /// The bytes (valid UTF-8) of a text.
    #[inline]
    pub(crate) fn text(&self, range: TextRange) -> &[u8] {
        let text: &[u8] = bytemuck::cast_slice(&self.words[self.words[5] as usize..]);
        &text[range.start as usize..range.end as usize]
    }

    #[inline]
    fn record<const WORDS: usize>(&self, section: u32, number: u32) -> [u32; WORDS] {
        let start = section as usize + number as usize * WORDS;
        let words = &self.words[start..start + WORDS];
        words.try_into().expect("a run of that length")
    }
}

/// Lays out a plan; `main` are the last checks.
pub(crate) fn lay_out(arrays: &Arrays, main: Slice, is_direct: bool) -> Box<[u32]> {
    let mut words = vec![0; HEADER];
    words[0] = if is_direct { IS_DIRECT } else { 0 };
    arrays.tests.iter().for_each(|test| words.extend(test_words(test)));
    words[1] = words.len() as u32;
    arrays.checks.iter().for_each(|check| words.extend(check_words(check)));
    words[2] = words.len() as u32;
    for operation in &arrays.operations {
        if matches!(operation, Operation::OrdinalOfName(_) | Operation::OrdinalOfAny(_)) {
            words[0] |= HAS_ORDINALS;
        }
        words.extend(operation_words(operation));
    }
    words[3] = words.len() as u32;
    arrays.positions.iter().for_each(|position| words.extend(position_words(position)));
    words[4] = words.len() as u32;
    arrays.nested.iter().for_each(|nested| words.extend(nested_words(nested)));
    words[5] = words.len() as u32;
    words[6] = main.start;
    for chunk in arrays.text.as_bytes().chunks(4) {
        let mut bytes = [0; 4];
        bytes[..chunk.len()].copy_from_slice(chunk);
        words.push(u32::from_ne_bytes(bytes));
    }
    words.into()
}

fn test_words(&(named, test): &(Named, Test)) -> [u32; TEST] {
    let named = u32::from(named == Named::Attribute);
    match test {
        Test::Name { hash, uri, local } => {
            let [high, low] = split(hash);
            [named, high, low, uri.start, uri.end, local.end]
        }
        Test::AnyIn { uri } => [named | 1 << 1, 0, 0, uri.start, uri.end, uri.end],
        Test::AnyNamespace { local } => [named | 2 << 1, 0, 0, local.start, local.start, local.end],
    }
}

fn check_words(check: &Check) -> [u32; CHECK] {
    let (kind, argument) = match check.reach {
        Reach::Up(parents) => (0, parents),
        Reach::ToDepth(depth) => (1, depth),
        Reach::ToDepthOrSelf(depth) => (2, depth),
        Reach::Everywhere => (3, 0),
        Reach::Parent => (4, 0),
        Reach::Ancestors => (5, 0),
        Reach::AncestorsOrSelf => (6, 0),
    };
    let kind = kind << 1 | u32::from(check.by_siblings);
    [kind, argument, check.test, check.operations.start, check.operations.end]
}

fn operation_words(operation: &Operation) -> [u32; OPERATION] {
    let with_ask = |kind: u32, argument: u32, ask: Ask<TextRange>| {
        let with_text =
            |number: u32, text: TextRange| [kind | number << 8, argument, text.start, text.end];
        let with_number = |number: u32, constant: f64| {
            let [high, low] = split(constant.to_bits());
            [kind | number << 8, argument, high, low]
        };
        match ask {
            Ask::Exists => [kind, argument, 0, 0],
            Ask::Text(comparison, text) => with_text(1 | (comparison as u32) << 8, text),
            Ask::StartsWith(text) => with_text(2, text),
            Ask::Contains(text) => with_text(3, text),
            Ask::Number(comparison, constant) => {
                with_number(4 | (comparison as u32) << 8, constant)
            }
            Ask::OneOf(set) => with_text(6, set),
            Ask::CastOneOf(set) => with_text(7, set),
            Ask::Cast(comparison, constant) => with_number(5 | (comparison as u32) << 8, constant),
            Ask::Moment(notation, comparison, bound) => {
                let number = match notation {
                    Notation::Date => 8,
                    Notation::DateTime => 9,
                    _ => 10,
                };
                with_number(number | (comparison as u32) << 8, bound)
            }
        }
    };
    match *operation {
        Operation::OrdinalOfName(positions) => [0, 0, positions.start, positions.end],
        Operation::OrdinalOfAny(positions) => [1, 0, positions.start, positions.end],
        Operation::Position(positions) => [2, 0, positions.start, positions.end],
        Operation::Attribute(test, ask) => with_ask(3, test, ask),
        Operation::Text(ask) => with_ask(4, 0, ask),
        Operation::Value(ask) => with_ask(5, 0, ask),
        Operation::Nested(number) => [6, number, 0, 0],
        Operation::Never => [7, 0, 0, 0],
    }
}

fn position_words(&(operator, position): &(Comparison, f64)) -> [u32; POSITION] {
    let [high, low] = split(position.to_bits());
    [operator as u32, high, low]
}

fn nested_words(nested: &NestedPath) -> [u32; NESTED] {
    let axis = match nested.axis {
        Axis::Child => 0,
        Axis::Descendant => 1,
        Axis::DescendantOrSelf => 2,
    };
    let length = nested.checks.len() << 2;
    let [high, low] = split(nested.key_hash);
    [nested.checks.start, length | axis, nested.key.start, nested.key.end, high, low]
}

fn split(word: u64) -> [u32; 2] {
    [(word >> 32) as u32, word as u32]
}

#[inline]
fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
