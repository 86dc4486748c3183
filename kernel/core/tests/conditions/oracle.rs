//! Location paths straight from XPath 1.0: node sets, step by step, nothing shared or remembered.

use crate::document::{Content, Document, Node};
use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::folding::Fold;
use pathcast_core::language::query::ast::{
    Axis, Condition, Constant, NameTest, Operator, Stage, Step,
};
use pathcast_core::language::types::Type;
use std::collections::BTreeSet;

/// The elements that a path selects from the document node.
pub fn select_from_document(document: &Document, steps: &[Step<'_>]) -> BTreeSet<usize> {
    select(document, None, steps)
}

/// The same path without its predicates.
pub fn bare(steps: &[Step<'_>]) -> Vec<Step<'static>> {
    let bare_test = |test: &NameTest<'_>| match test {
        NameTest::Any => NameTest::Any,
        NameTest::Name { uri, local } => {
            NameTest::Name { uri: uri.to_string().into(), local: local.to_string().into() }
        }
        NameTest::AnyIn { uri } => NameTest::AnyIn { uri: uri.to_string().into() },
        NameTest::AnyNamespace { local } => {
            NameTest::AnyNamespace { local: local.to_string().into() }
        }
    };
    let bare_step =
        |step: &Step<'_>| Step { axis: step.axis, test: bare_test(&step.test), stages: vec![] };
    steps.iter().map(bare_step).collect()
}

/// None is the document node.
fn select(document: &Document, from: Option<usize>, steps: &[Step<'_>]) -> BTreeSet<usize> {
    let mut context: BTreeSet<Option<usize>> = BTreeSet::from([from]);
    for step in steps {
        let mut selected = BTreeSet::new();
        for &node in &context {
            match step.axis {
                Axis::Child => selected.extend(step_list(document, step, children(document, node))),
                // descendant-or-self::node()/child::test
                Axis::Descendant => {
                    for below in descendants_or_self(document, node) {
                        selected.extend(step_list(document, step, children(document, below)));
                    }
                }
                // descendant-or-self::node()/self::*
                Axis::DescendantOrSelf => {
                    for below in descendants_or_self(document, node).into_iter().flatten() {
                        selected.extend(step_list(document, step, vec![below]));
                    }
                }
            }
        }
        context = selected.into_iter().map(Some).collect();
    }
    context.into_iter().flatten().collect()
}

fn children(document: &Document, of: Option<usize>) -> Vec<usize> {
    of.map_or(vec![0], |node| document.children(node))
}

fn descendants_or_self(document: &Document, of: Option<usize>) -> Vec<Option<usize>> {
    let mut all = vec![of];
    let mut at = 0;
    while at < all.len() {
        all.extend(children(document, all[at]).into_iter().map(Some));
        at += 1;
    }
    all
}

fn step_list(document: &Document, step: &Step<'_>, mut list: Vec<usize>) -> Vec<usize> {
    list.retain(|&node| {
        let node = &document.nodes[node];
        name_passes(&step.test, node.uri, node.local)
    });
    for stage in &step.stages {
        list = stage_list(document, stage, list);
    }
    list
}

fn stage_list(document: &Document, stage: &Stage<'_>, list: Vec<usize>) -> Vec<usize> {
    let mut kept = Vec::new();
    for (index, &node) in list.iter().enumerate() {
        let position = (index + 1) as f64;
        let at_position =
            stage.positions.iter().all(|&(operator, at)| numbers(operator, position, at));
        if at_position && stage.conditions.iter().all(|one| holds(document, node, one)) {
            kept.push(node);
        }
    }
    kept
}

fn holds(document: &Document, number: usize, condition: &Condition<'_>) -> bool {
    let node = &document.nodes[number];
    match condition {
        Condition::Attribute { test, compare } => {
            node.attributes.iter().any(|(uri, local, value)| {
                name_passes(test, uri, local) && compare_value(value, compare.as_ref())
            })
        }
        Condition::Text(compare) => node.content.iter().any(|content| match content {
            Content::Text(text) => compare_value(text, compare.as_ref()),
            Content::Element(_) => false,
        }),
        Condition::Value(operator, constant) => {
            compare_value(&string_value(document, node), Some(&(*operator, constant.clone())))
        }
        Condition::Nested(steps) => !select(document, Some(number), steps).is_empty(),
    }
}

fn string_value(document: &Document, node: &Node) -> String {
    let part = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Element(child) => string_value(document, &document.nodes[*child]),
    };
    node.content.iter().map(part).collect()
}

fn name_passes(test: &NameTest<'_>, node_uri: &str, node_local: &str) -> bool {
    match test {
        NameTest::Any => true,
        NameTest::Name { uri, local } => uri == node_uri && local == node_local,
        NameTest::AnyIn { uri } => uri == node_uri,
        NameTest::AnyNamespace { local } => local == node_local,
    }
}

fn compare_value(value: &str, compare: Option<&(Operator, Constant<'_>)>) -> bool {
    match compare {
        None => true,
        Some((Operator::Compare(Comparison::Eq), Constant::String(literal))) => value == literal,
        Some((Operator::Compare(Comparison::Ne), Constant::String(literal))) => value != literal,
        Some((Operator::StartsWith, Constant::String(literal))) => value.starts_with(&**literal),
        Some((Operator::Contains, Constant::String(literal))) => value.contains(&**literal),
        Some((Operator::Compare(comparison), Constant::String(literal))) => {
            numbers(*comparison, number(value), number(literal))
        }
        Some((Operator::Compare(comparison), Constant::Number(constant))) => {
            numbers(*comparison, number(value), *constant)
        }
        Some((Operator::Compare(comparison), Constant::Double(constant))) => {
            numbers(*comparison, double(value), *constant)
        }
        Some((Operator::Compare(comparison), Constant::Moment(Type::Date, bound))) => {
            numbers(*comparison, date(value), *bound)
        }
        Some((_, Constant::Moment(..))) => unreachable!("conditions are about dates"),
        Some((_, Constant::Strings(values))) => values.iter().any(|literal| value == literal),
        Some((_, Constant::Numbers(values))) => {
            values.numbers().any(|constant| constant == number(value))
        }
        Some((_, Constant::Doubles(values))) => {
            values.numbers().any(|number| number == double(value))
        }
        Some((operator, Constant::Texts(fold, values))) => {
            let value = folded(*fold, value);
            values.iter().any(|text| match operator {
                Operator::Compare(_) => value == text,
                Operator::StartsWith => value.starts_with(text),
                Operator::Contains => value.contains(text),
                Operator::Matches => {
                    PATTERNS.iter().any(|(pattern, matches)| *pattern == text && matches(&value))
                }
            })
        }
        Some((_, Constant::Number(_) | Constant::Double(_)))
        | Some((Operator::Matches, Constant::String(_))) => {
            unreachable!("functions compare strings, and patterns are texts")
        }
    }
}

fn numbers(comparison: Comparison, left: f64, right: f64) -> bool {
    match comparison {
        Comparison::Eq => left == right,
        Comparison::Ne => left != right,
        Comparison::Lt => left < right,
        Comparison::Le => left <= right,
        Comparison::Gt => left > right,
        Comparison::Ge => left >= right,
    }
}

fn folded(fold: Fold, value: &str) -> String {
    match fold {
        Fold::None => value.to_owned(),
        Fold::Lower => value.to_lowercase(),
        Fold::Upper => value.to_uppercase(),
        Fold::Ascii => value.to_ascii_lowercase(),
    }
}

/// A pattern, and what it matches in these tests.
type Matches = (&'static str, fn(&str) -> bool);

/// Some patterns: those by which nothing is looked up, and those that a text is known of.
pub const PATTERNS: [Matches; 6] = [
    ("^x", |value| value.starts_with('x')),
    ("(?i)X1?$", |value| {
        value.to_lowercase().trim_end_matches('1').ends_with('x') && !value.ends_with("11")
    }),
    ("1|y", |value| value.contains(['1', 'y'])),
    ("[0-9]{2}", |value| value.as_bytes().windows(2).any(|two| two.iter().all(u8::is_ascii_digit))),
    ("^.$", |value| value.chars().count() == 1 && !["\n", "\r"].contains(&value)),
    ("(1|x)2?1", |value| ["11", "x1", "121", "x21"].iter().any(|it| value.contains(it))),
];

/// Some dates and their ordinals; no other text of these tests is one.
pub const DATES: [(&str, f64); 5] = [
    ("1970-01-01", 0.0),
    ("1970-01-02Z", 86_400e6),
    ("1970-01-01-14:00", 50_400e6),
    ("-0001-12-31", -62_167_305_600e6),
    ("9999-12-31+14:00", 253_402_164_000e6),
];

fn date(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    DATES.iter().find(|(known, _)| *known == text).map_or(f64::NAN, |&(_, ordinal)| ordinal)
}

fn number(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.chars().filter(|&c| c == '.').count() <= 1
        && digits.chars().any(|c| c.is_ascii_digit());
    if is_number { text.parse().expect("a decimal number") } else { f64::NAN }
}

/// The lexical form of `xs:double` (XML Schema, part 2, 3.2.5), and what it stands for; NaN for other texts.
fn double(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let (sign, rest) = match text.chars().next() {
        Some('-') => (-1.0, &text[1..]),
        Some('+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest == "INF" {
        return sign * f64::INFINITY;
    }
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let exponent_digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_exponent =
        !exponent_digits.is_empty() && exponent_digits.chars().all(|c| c.is_ascii_digit());
    let has_inner_blank = mantissa.contains([' ', '\t', '\r', '\n']);
    if has_inner_blank || mantissa.starts_with('-') || number(mantissa).is_nan() || !is_exponent {
        return f64::NAN;
    }
    sign * format!("{mantissa}e{exponent}").parse::<f64>().expect("a number with an exponent")
}
