//! The normal form of a standing query: what the engine evaluates.
//!
//! A query is a main path of location steps. Comparisons on the end of a path are conditions of
//! its last step (`/a/b/@c = 3` is `/a/b[@c=3]`), so a nested path asks for existence only.
//! Of the nested paths of a step's last stage and the steps after it, which ask the same, a rule
//! chooses the one that leads on (`docs/query-language.md`); a path never ends in a nested path.

use crate::language::comparison::Comparison;
use crate::language::folding::Fold;
use crate::language::folding::TextTest;
use crate::language::types::Type;
use crate::language::values::Values;
use std::borrow::Cow;

/// How a step leads on from the step before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// `/`: the element is a child.
    Child,
    /// `//`: the element is a descendant. Positions still count among the children of one parent,
    /// as XPath reads `//a[2]`.
    Descendant,
    /// `//.`: the element itself or a descendant; comes from `//@name` and `//text()`, only as the
    /// last step, always with the node test `*`.
    DescendantOrSelf,
}

/// What an element or attribute must be called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameTest<'q> {
    /// `*`
    Any,
    /// `name` or `Q{uri}name`; no namespace is the empty URI.
    Name {
        /// Namespace URI.
        uri: Cow<'q, str>,
        /// Local name.
        local: Cow<'q, str>,
    },
    /// `prefix:*`, canonically `Q{uri}*`
    AnyIn {
        /// Namespace URI.
        uri: Cow<'q, str>,
    },
    /// `*:name`
    AnyNamespace {
        /// Local name.
        local: Cow<'q, str>,
    },
}

/// How a value is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// By order or equality.
    Compare(Comparison),
    /// `starts-with(node, string)`; only of an attribute with a name, or of `.`.
    StartsWith,
    /// `contains(node, string)`; where `starts-with` may stand.
    Contains,
    /// `matches(node, pattern)`; only with [`Constant::Texts`].
    Matches,
}

impl Operator {
    /// Its number in columns of predicates.
    pub fn code(self) -> u8 {
        match self {
            Operator::Compare(comparison) => comparison as u8,
            Operator::StartsWith => 6,
            Operator::Contains => 7,
            Operator::Matches => 8,
        }
    }

    /// The operator of a number.
    pub fn of_code(code: u8) -> Option<Operator> {
        match code {
            6 => Some(Operator::StartsWith),
            7 => Some(Operator::Contains),
            8 => Some(Operator::Matches),
            _ => Comparison::ALL.get(usize::from(code)).copied().map(Operator::Compare),
        }
    }

    /// The operator of a test of texts.
    pub(crate) fn of_test(test: TextTest) -> Operator {
        match test {
            TextTest::Is => Operator::Compare(Comparison::Eq),
            TextTest::Begins => Operator::StartsWith,
            TextTest::Has => Operator::Contains,
            TextTest::Matches => Operator::Matches,
        }
    }

    /// The test of texts that it is, if it is one.
    pub(crate) fn test(self) -> Option<TextTest> {
        match self {
            Operator::Compare(Comparison::Eq) => Some(TextTest::Is),
            Operator::StartsWith => Some(TextTest::Begins),
            Operator::Contains => Some(TextTest::Has),
            Operator::Matches => Some(TextTest::Matches),
            Operator::Compare(_) => None,
        }
    }
}

/// Right-hand side of a comparison; decides how values are compared (XPath 1.0, 3.4).
#[derive(Clone, Debug, PartialEq)]
pub enum Constant<'q> {
    /// A number; finite. The value is read as `number()` of XPath 1.0 reads it.
    Number(f64),
    /// A number; finite. The value is cast to `xs:double`, as XQuery does it; what is no number is NaN.
    Double(f64),
    /// A date or time, by its type and its bound, microseconds. The value is cast to the type, as XQuery does it; what is
    /// no value of it compares as NaN. Never with `!=`.
    Moment(Type, f64),
    /// A string literal.
    String(Cow<'q, str>),
    /// Two strings or more, of which the value is one; only with `=`.
    Strings(Values<'q>),
    /// Two finite numbers or more, one of which the value is, read as that of [`Constant::Number`]; only with `=`.
    Numbers(Values<'q>),
    /// The same of a value that is read as that of [`Constant::Double`].
    Doubles(Values<'q>),
    /// One text or more, of which the value, folded, is one, begins with one or contains one; with `=` and folding alone,
    /// or with a function. Or patterns, written as [`crate::language::patterns::written`] does, of which one matches.
    Texts(Fold, Values<'q>),
}

/// A condition on the element of one step.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition<'q> {
    /// `[@name]`, `[@name op constant]`: some attribute that passes the test.
    Attribute {
        /// Which attribute.
        test: NameTest<'q>,
        /// The comparison; none asks for existence.
        compare: Option<(Operator, Constant<'q>)>,
    },
    /// `[text()]`, `[text() op constant]`: some text node child.
    Text(Option<(Operator, Constant<'q>)>),
    /// `[. op constant]`: the string-value of the element.
    Value(Operator, Constant<'q>),
    /// `[a//b]`: a nested path, relative to the element; true if it selects something.
    Nested(Vec<Step<'q>>),
}

/// A run of predicates of one step. The positions of a stage count in the list that the stages
/// before it have left; its conditions then filter further.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage<'q> {
    /// `position() op number`, all of which must hold; empty in a first stage without positions.
    pub positions: Vec<(Comparison, f64)>,
    /// Conditions that must hold, sorted by canonical text, without duplicates.
    pub conditions: Vec<Condition<'q>>,
}

/// A location step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<'q> {
    /// How it leads on from the step before.
    pub axis: Axis,
    /// The node test.
    pub test: NameTest<'q>,
    /// The predicates; empty for a bare step.
    pub stages: Vec<Stage<'q>>,
}

impl NameTest<'_> {
    /// With texts of its own.
    pub fn into_owned(self) -> NameTest<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            NameTest::Any => NameTest::Any,
            NameTest::Name { uri, local } => {
                NameTest::Name { uri: owned(uri), local: owned(local) }
            }
            NameTest::AnyIn { uri } => NameTest::AnyIn { uri: owned(uri) },
            NameTest::AnyNamespace { local } => NameTest::AnyNamespace { local: owned(local) },
        }
    }
}

impl<'q> Constant<'q> {
    /// One of some strings.
    pub(crate) fn one_of(values: Values<'q>) -> Constant<'q> {
        match values.only() {
            Some(only) => Constant::String(Cow::Owned(only.to_owned())),
            None => Constant::Strings(values),
        }
    }

    /// One of some numbers.
    pub(crate) fn one_of_numbers(values: Values<'q>) -> Constant<'q> {
        match values.only() {
            Some(_) => Constant::Number(values.numbers().sum()),
            None => Constant::Numbers(values),
        }
    }

    /// One of some numbers that the value is cast to.
    pub(crate) fn one_of_doubles(values: Values<'q>) -> Constant<'q> {
        match values.only() {
            Some(_) => Constant::Double(values.numbers().sum()),
            None => Constant::Doubles(values),
        }
    }

    /// What a value that is tested so compares with.
    pub(crate) fn of_texts(test: TextTest, fold: Fold, values: Values<'q>) -> Constant<'q> {
        match (test, fold, values.only()) {
            (TextTest::Is, Fold::None, _) => Constant::one_of(values),
            (TextTest::Begins | TextTest::Has, Fold::None, Some(only)) => {
                Constant::String(Cow::Owned(only.to_owned()))
            }
            _ => Constant::Texts(fold, values),
        }
    }

    /// The set that it is, if it is one.
    pub(crate) fn values(&self) -> Option<&Values<'q>> {
        match self {
            Constant::Strings(values)
            | Constant::Numbers(values)
            | Constant::Doubles(values)
            | Constant::Texts(_, values) => Some(values),
            _ => None,
        }
    }

    /// Whether the value is cast to a number.
    pub(crate) fn is_cast(&self) -> bool {
        matches!(self, Constant::Double(_) | Constant::Doubles(_))
    }

    /// With a text of its own.
    pub fn into_owned(self) -> Constant<'static> {
        match self {
            Constant::Number(number) => Constant::Number(number),
            Constant::Double(number) => Constant::Double(number),
            Constant::Moment(kind, bound) => Constant::Moment(kind, bound),
            Constant::String(text) => Constant::String(Cow::Owned(text.into_owned())),
            Constant::Strings(values) => Constant::Strings(values.into_owned()),
            Constant::Numbers(values) => Constant::Numbers(values.into_owned()),
            Constant::Doubles(values) => Constant::Doubles(values.into_owned()),
            Constant::Texts(fold, values) => Constant::Texts(fold, values.into_owned()),
        }
    }
}

impl Condition<'_> {
    /// With texts of its own.
    pub fn into_owned(self) -> Condition<'static> {
        let owned =
            |(operator, constant): (Operator, Constant<'_>)| (operator, constant.into_owned());
        match self {
            Condition::Attribute { test, compare } => {
                Condition::Attribute { test: test.into_owned(), compare: compare.map(owned) }
            }
            Condition::Text(compare) => Condition::Text(compare.map(owned)),
            Condition::Value(operator, constant) => {
                Condition::Value(operator, constant.into_owned())
            }
            Condition::Nested(steps) => {
                Condition::Nested(steps.into_iter().map(Step::into_owned).collect())
            }
        }
    }
}

impl<'q> Condition<'q> {
    /// What it compares with, if it compares.
    pub(crate) fn compare(&self) -> Option<(Operator, &Constant<'q>)> {
        match self {
            Condition::Attribute { compare, .. } | Condition::Text(compare) => {
                compare.as_ref().map(|(operator, constant)| (*operator, constant))
            }
            Condition::Value(operator, constant) => Some((*operator, constant)),
            Condition::Nested(_) => None,
        }
    }
}

impl Step<'_> {
    /// With texts of its own.
    pub fn into_owned(self) -> Step<'static> {
        let stages = self.stages.into_iter().map(|Stage { positions, conditions }| Stage {
            positions,
            conditions: conditions.into_iter().map(Condition::into_owned).collect(),
        });
        Step { axis: self.axis, test: self.test.into_owned(), stages: stages.collect() }
    }
}

impl<'q> Step<'q> {
    /// The conditions of all its stages.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Condition<'q>> {
        self.stages.iter().flat_map(|stage| &stage.conditions)
    }
}
