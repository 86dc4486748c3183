//! The plan of a query: what is left to check once the automaton knows where its path ends.
//!
//! A plan owns its text and holds no reference, so it can be kept, shared between threads and
//! dropped freely. These are its parts as the evaluation sees them; how they lie in memory is in
//! `words`.

use super::store_check::{Needs, needs_of};
use super::words::lay_out;
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::query::ast::{Axis, NameTest};
use crate::xml::names::hash_name;

/// A place in the text of a plan, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Number of a name test of a plan.
pub(crate) type TestNumber = u32;

/// `*`: no test to make.
pub(crate) const ANY: TestNumber = u32::MAX;

/// A half-open range of numbers of a plan's checks, operations or positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Slice {
    /// The numbers.
    pub(crate) fn numbers(self) -> std::ops::Range<u32> {
        self.start..self.end
    }

    /// How many.
    pub(crate) fn len(self) -> u32 {
        self.end - self.start
    }
}

/// Whose name a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Element,
    Attribute,
}

/// A name test with its text in the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// One expanded name, with its [`hash_name`].
    Name { hash: u64, uri: TextRange, local: TextRange },
    /// Every name of a namespace.
    AnyIn { uri: TextRange },
    /// A local name in whatever namespace.
    AnyNamespace { local: TextRange },
}

/// How the check of one step is reached from the check before it. Checks go from the end of a path
/// towards its beginning, since that is where the automaton, or a list by name, leads in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Main path: so many parents up; the name there is known to be right.
    Up(u32),
    /// Main path: the proper ancestor at this depth; the name there is known to be right.
    ToDepth(u32),
    /// Main path: the ancestor at this depth, or the element itself.
    ToDepthOrSelf(u32),
    /// Nested path: every element of the message that passes the test.
    Everywhere,
    /// The parent, if it passes the test.
    Parent,
    /// Every ancestor that passes the test.
    Ancestors,
    /// The element itself and every ancestor, as far as they pass the test.
    AncestorsOrSelf,
}

/// One step whose conditions, or whose name, have to be checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) reach: Reach,
    /// The name test of the step.
    pub(crate) test: TestNumber,
    /// What must hold, in this order.
    pub(crate) operations: Slice,
    /// Whether positions need the list of the siblings: they follow other predicates, or count
    /// what a pattern of names lets through.
    pub(crate) by_siblings: bool,
}

/// One condition, in the order of evaluation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// Position among the siblings of the same name.
    OrdinalOfName(Slice),
    /// Position among all siblings.
    OrdinalOfAny(Slice),
    /// Position in the list that the operations before have left.
    Position(Slice),
    /// An attribute that passes the test and the comparison.
    Attribute(TestNumber, Ask<TextRange>),
    /// A text node child.
    Text(Ask<TextRange>),
    /// The string-value.
    Value(Ask<TextRange>),
    /// A nested path.
    Nested(u32),
    /// Nothing passes.
    Never,
}

impl Operation {
    /// Whether one element can be checked by itself, at a price that does not depend on the size
    /// of what lies below it.
    fn is_local(self) -> bool {
        !matches!(self, Operation::Position(_) | Operation::Nested(_))
    }
}

/// A nested path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NestedPath {
    /// From its last step to its first.
    pub(crate) checks: Slice,
    /// How its first step leads on from the anchor.
    pub(crate) axis: Axis,
    /// A text that is the same for two nested paths exactly if they are the same.
    pub(crate) key: TextRange,
    pub(crate) key_hash: u64,
}

/// A query's conditions, ready to be checked. Made by [`Plan::compile`].
///
/// Size: 24 bytes and, for a query with one attribute condition, about 100 more in one block
/// ([`Plan::bytes`]). Most candidates are refused by the 24 bytes alone: keep plans themselves side
/// by side, not pointers to them.
#[derive(Debug)]
pub struct Plan {
    pub(super) needs: Needs,
    pub(crate) words: Box<[u32]>,
}

impl Plan {
    /// Bytes that the plan occupies, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Plan>() + size_of_val(&*self.words)
    }

    /// Whether the structure decides alone: [`Plan::holds`] is true wherever there is an end.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.main().len() == 0
    }
}

/// The arrays of a plan while it is compiled.
#[derive(Default)]
pub(crate) struct Arrays {
    pub(crate) checks: Vec<Check>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) tests: Vec<(Named, Test)>,
    pub(crate) positions: Vec<(Comparison, f64)>,
    pub(crate) nested: Vec<NestedPath>,
    pub(crate) text: String,
}

impl Arrays {
    /// Adds literal text.
    pub(crate) fn add_text(&mut self, text: &str) -> TextRange {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        TextRange { start, end: self.text.len() as u32 }
    }

    /// Adds a name test, or finds the equal one.
    pub(crate) fn add_test(&mut self, named: Named, test: &NameTest<'_>) -> TestNumber {
        let (uri, local) = match test {
            NameTest::Any => return ANY,
            NameTest::Name { uri, local } => (Some(uri), Some(local)),
            NameTest::AnyIn { uri } => (Some(uri), None),
            NameTest::AnyNamespace { local } => (None, Some(local)),
        };
        let uri = uri.map(|text| &**text);
        let local = local.map(|text| &**text);
        // Finding duplicates saves work per message; looking at a few keeps compilation linear.
        let nearby = self.tests.len().saturating_sub(32);
        let known = self.tests[nearby..]
            .iter()
            .position(|&(other, test)| other == named && self.texts_of(test) == (uri, local));
        if let Some(offset) = known {
            return (nearby + offset) as TestNumber;
        }
        let uri_range = uri.map(|text| self.add_text(text));
        let local_range = local.map(|text| self.add_text(text));
        let test = match (uri_range, local_range) {
            (Some(uri_range), Some(local_range)) => Test::Name {
                hash: hash_name(uri.unwrap_or_default(), local.unwrap_or_default()),
                uri: uri_range,
                local: local_range,
            },
            (Some(uri), None) => Test::AnyIn { uri },
            (None, Some(local)) => Test::AnyNamespace { local },
            (None, None) => return ANY,
        };
        self.tests.push((named, test));
        (self.tests.len() - 1) as TestNumber
    }

    fn texts_of(&self, test: Test) -> (Option<&str>, Option<&str>) {
        let text = |range: TextRange| Some(&self.text[range.start as usize..range.end as usize]);
        match test {
            Test::Name { uri, local, .. } => (text(uri), text(local)),
            Test::AnyIn { uri } => (text(uri), None),
            Test::AnyNamespace { local } => (None, text(local)),
        }
    }

    /// The finished plan; the checks of the main path are the last ones, `main`.
    pub(crate) fn into_plan(self, main: Slice) -> Plan {
        let is_local = |number: u32| self.operations[number as usize].is_local();
        let is_direct = self.checks[main.start as usize..].iter().all(|check| {
            let is_forced =
                matches!(check.reach, Reach::Up(_) | Reach::ToDepth(_) | Reach::ToDepthOrSelf(_));
            is_forced && !check.by_siblings && check.operations.numbers().all(is_local)
        });
        Plan { needs: needs_of(&self, main), words: lay_out(&self, main, is_direct) }
    }
}
