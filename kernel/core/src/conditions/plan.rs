//! The plan of a query: what is left to check once the automaton knows where its path ends.
//!
//! A plan owns its text and holds no reference, so it can be kept, shared between threads and
//! dropped freely. It is a handful of flat arrays; what refers to another array does so by range.

use super::value::{Compare, TextRange};
use crate::names::hash_name;
use crate::query::ast::{Axis, NameTest, Operator};

/// Number of a name test in [`Plan::tests`].
pub(super) type TestNumber = u32;

/// `*`: no test to make.
pub(super) const ANY: TestNumber = u32::MAX;

/// A half-open range of one of the plan's arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub start: u32,
    pub end: u32,
}

impl Slice {
    /// The part of an array.
    pub fn of<T>(self, array: &[T]) -> &[T] {
        &array[self.start as usize..self.end as usize]
    }

    /// Number of entries.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// Whose name a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Element,
    Attribute,
}

/// A name test with its text in the plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// One expanded name, with its [`hash_name`].
    Name {
        hash: u64,
        uri: TextRange,
        local: TextRange,
    },
    /// Every name of a namespace.
    AnyIn { uri: TextRange },
    /// A local name in whatever namespace.
    AnyNamespace { local: TextRange },
}

/// How the check of one step is reached from the check before it. Checks go from the end of a path
/// towards its beginning, since that is where the automaton, or a list by name, leads in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
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
pub(super) struct Check {
    pub reach: Reach,
    /// The name test of the step.
    pub test: TestNumber,
    /// What must hold, in this order.
    pub operations: Slice,
    /// Whether positions need the list of the siblings: they follow other predicates, or count
    /// what a pattern of names lets through.
    pub by_siblings: bool,
}

/// One condition, in the order of evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Position among the siblings of the same name.
    OrdinalOfName(Slice),
    /// Position among all siblings.
    OrdinalOfAny(Slice),
    /// Position in the list that the operations before have left.
    Position(Slice),
    /// An attribute that passes the test and the comparison.
    Attribute(TestNumber, Compare),
    /// A text node child.
    Text(Compare),
    /// The string-value.
    Value(Compare),
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
pub(super) struct NestedPath {
    /// From its last step to its first.
    pub checks: Slice,
    /// How its first step leads on from the anchor.
    pub axis: Axis,
    /// A text that is the same for two nested paths exactly if they are the same.
    pub key: TextRange,
    pub key_hash: u64,
}

/// A query's conditions, ready to be checked. Made by [`Plan::compile`].
///
/// Size: about 250 bytes for a query with one attribute condition ([`Plan::bytes`]).
#[derive(Debug)]
pub struct Plan {
    pub(super) checks: Box<[Check]>,
    pub(super) operations: Box<[Operation]>,
    pub(super) tests: Box<[(Named, Test)]>,
    pub(super) positions: Box<[(Operator, f64)]>,
    pub(super) nested: Box<[NestedPath]>,
    pub(super) text: Box<str>,
    /// The checks of the main path, from its end towards the root.
    pub(super) main: Slice,
    /// Every condition is local and at a place that follows from the end: one element after the
    /// other can be checked.
    pub(super) is_direct: bool,
    /// Some position is looked up in the ordinals of the message.
    pub(super) has_ordinals: bool,
}

impl Plan {
    /// Bytes that the plan occupies, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Plan>()
            + size_of_val(&*self.checks)
            + size_of_val(&*self.operations)
            + size_of_val(&*self.tests)
            + size_of_val(&*self.positions)
            + size_of_val(&*self.nested)
            + self.text.len()
    }

    /// Whether the structure decides alone: [`Plan::holds`] is true wherever there is an end.
    pub fn is_unconditional(&self) -> bool {
        self.main.len() == 0
    }

    pub(super) fn text_of(&self, range: TextRange) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }
}

/// The arrays of a plan while it is compiled.
#[derive(Default)]
pub(super) struct Arrays {
    pub checks: Vec<Check>,
    pub operations: Vec<Operation>,
    pub tests: Vec<(Named, Test)>,
    pub positions: Vec<(Operator, f64)>,
    pub nested: Vec<NestedPath>,
    pub text: String,
}

impl Arrays {
    /// Adds literal text.
    pub fn add_text(&mut self, text: &str) -> TextRange {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        TextRange {
            start,
            end: self.text.len() as u32,
        }
    }

    /// Adds a name test, or finds the equal one.
    pub fn add_test(&mut self, named: Named, test: &NameTest<'_>) -> TestNumber {
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

    /// The finished plan; `main` are the checks of the main path.
    pub fn into_plan(self, main: Slice) -> Plan {
        let is_direct = main.of(&self.checks).iter().all(|check| {
            let is_forced = matches!(
                check.reach,
                Reach::Up(_) | Reach::ToDepth(_) | Reach::ToDepthOrSelf(_)
            );
            is_forced
                && !check.by_siblings
                && check
                    .operations
                    .of(&self.operations)
                    .iter()
                    .all(|one| one.is_local())
        });
        let has_ordinals = self.operations.iter().any(|one| {
            matches!(
                one,
                Operation::OrdinalOfName(_) | Operation::OrdinalOfAny(_)
            )
        });
        Plan {
            main,
            is_direct,
            has_ordinals,
            checks: self.checks.into(),
            operations: self.operations.into(),
            tests: self.tests.into(),
            positions: self.positions.into(),
            nested: self.nested.into(),
            text: self.text.into(),
        }
    }
}
