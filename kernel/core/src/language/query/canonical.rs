//! Normal form to canonical text.
//!
//! Equal normal forms have equal canonical texts, and a canonical text is read as its normal form.

use super::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use crate::language::comparison::Comparison;
use crate::language::moments::Moment;
use crate::language::values::Values;
use std::fmt::Write;

/// Appends the canonical text of a main path.
pub fn canonical_text(steps: &[Step<'_>], out: &mut String) {
    for step in steps {
        push_step(step, out);
    }
}

/// The canonical text of a main path.
pub(crate) fn text_of(steps: &[Step<'_>]) -> String {
    let mut text = String::new();
    canonical_text(steps, &mut text);
    text
}

/// Appends a condition as it stands between the brackets; conditions are sorted by it.
pub fn condition_text(condition: &Condition<'_>, out: &mut String) {
    let compare = condition.compare();
    let call = compare.and_then(|(operator, constant)| call_name(operator, constant));
    let fold = compare.and_then(|(operator, constant)| fold_within(operator, constant));
    for name in [call, fold].into_iter().flatten() {
        out.push_str(name);
        out.push('(');
    }
    match condition {
        Condition::Attribute { test, .. } => {
            out.push('@');
            push_name_test(test, out);
        }
        Condition::Text(_) => out.push_str("text()"),
        Condition::Value(..) => out.push('.'),
        Condition::Nested(steps) => nested_text(steps, out),
    }
    if fold.is_some() {
        out.push(')');
    }
    match compare {
        Some((Operator::Compare(comparison), constant)) => {
            if call.is_some() {
                out.push(')');
            }
            out.push_str(comparison.symbol());
            push_constant(constant, out);
        }
        Some((Operator::StartsWith | Operator::Contains | Operator::Matches, constant)) => {
            out.push(',');
            push_constant(constant, out);
            out.push(')');
        }
        None => {}
    }
}

/// How the text of a condition begins, in two pieces.
pub(super) fn opening<'c>(condition: &'c Condition<'_>) -> (&'c str, &'c str) {
    let compare = condition.compare();
    if let Some(name) = compare.and_then(|(operator, constant)| call_name(operator, constant)) {
        return (name, "(");
    }
    match condition {
        Condition::Attribute { test: NameTest::Name { uri, local }, .. } if uri.is_empty() => {
            ("@", local)
        }
        Condition::Attribute { .. } => ("@", ""),
        Condition::Text(_) => ("text()", ""),
        Condition::Value(..) => (".", ""),
        Condition::Nested(steps) => nested_opening(steps),
    }
}

/// The same of a nested path.
pub(super) fn nested_opening<'c>(steps: &'c [Step<'_>]) -> (&'c str, &'c str) {
    match steps.first() {
        Some(Step { axis: Axis::Child, test: NameTest::Name { uri, local }, .. })
            if uri.is_empty() =>
        {
            (local, "")
        }
        Some(Step { axis: Axis::Child, .. }) | None => ("", ""),
        Some(_) => ("./", "/"),
    }
}

/// Appends a position as it stands between the brackets; positions are sorted by it.
pub(super) fn position_text(&(comparison, number): &(Comparison, f64), out: &mut String) {
    out.push_str("position()");
    out.push_str(comparison.symbol());
    push_number(number, out);
}

/// Appends a nested path as it stands between the brackets.
pub(super) fn nested_text(steps: &[Step<'_>], out: &mut String) {
    let Some((first, others)) = steps.split_first() else { return };
    if first.axis == Axis::Child {
        push_from_test(first, out);
    } else {
        out.push('.');
        push_step(first, out);
    }
    for step in others {
        push_step(step, out);
    }
}

fn push_step(step: &Step<'_>, out: &mut String) {
    out.push_str(if step.axis == Axis::Child { "/" } else { "//" });
    push_from_test(step, out);
}

fn push_from_test(step: &Step<'_>, out: &mut String) {
    if step.axis == Axis::DescendantOrSelf {
        out.push('.');
    } else {
        push_name_test(&step.test, out);
    }
    for stage in &step.stages {
        push_stage(stage, out);
    }
}

fn push_stage(stage: &Stage<'_>, out: &mut String) {
    for (index, position) in stage.positions.iter().enumerate() {
        out.push_str(if index == 0 { "[" } else { " and " });
        position_text(position, out);
    }
    if !stage.positions.is_empty() {
        out.push(']');
    }
    for condition in &stage.conditions {
        out.push('[');
        condition_text(condition, out);
        out.push(']');
    }
}

fn push_name_test(test: &NameTest<'_>, out: &mut String) {
    match test {
        NameTest::Any => out.push('*'),
        NameTest::Name { uri, local } => {
            if !uri.is_empty() {
                push_uri(uri, out);
            }
            out.push_str(local);
        }
        NameTest::AnyIn { uri } => {
            push_uri(uri, out);
            out.push('*');
        }
        NameTest::AnyNamespace { local } => {
            out.push_str("*:");
            out.push_str(local);
        }
    }
}

fn push_uri(uri: &str, out: &mut String) {
    out.push_str("Q{");
    out.push_str(uri);
    out.push('}');
}

/// The name of the cast to `xs:double` in canonical text. XPath 1.0 has no function of that name.
pub(super) const CAST: &str = "double";

/// The function that a comparison is written as a call of, or with a call of.
pub(super) fn call_name(operator: Operator, constant: &Constant<'_>) -> Option<&'static str> {
    match (operator, constant) {
        (Operator::StartsWith, _) => Some("starts-with"),
        (Operator::Contains, _) => Some("contains"),
        (Operator::Matches, _) => Some(MATCHES),
        (Operator::Compare(_), Constant::Moment(kind, _)) => Some(kind.name()),
        (Operator::Compare(_), Constant::Texts(fold, _)) => fold.name(),
        (Operator::Compare(_), constant) => constant.is_cast().then_some(CAST),
    }
}

/// The name of the test of a pattern in canonical text.
pub(super) const MATCHES: &str = "matches";

/// The function that folds what a function tests.
fn fold_within(operator: Operator, constant: &Constant<'_>) -> Option<&'static str> {
    match (operator, constant) {
        (Operator::StartsWith | Operator::Contains, Constant::Texts(fold, _)) => fold.name(),
        _ => None,
    }
}

fn push_constant(constant: &Constant<'_>, out: &mut String) {
    match constant {
        Constant::Number(number) | Constant::Double(number) => push_number(*number, out),
        Constant::Moment(kind, bound) => {
            let mut text = Vec::new();
            Moment::of_bound(*kind, *bound).write(&mut text);
            push_string(&String::from_utf8_lossy(&text), out);
        }
        Constant::String(text) => push_string(text, out),
        Constant::Strings(values) => push_values(values, push_string, out),
        Constant::Texts(_, values) => match values.only() {
            Some(only) => push_string(only, out),
            None => push_values(values, push_string, out),
        },
        Constant::Numbers(values) | Constant::Doubles(values) => {
            push_values(values, |number, out| out.push_str(number), out);
        }
    }
}

fn push_values(values: &Values<'_>, push: impl Fn(&str, &mut String), out: &mut String) {
    for (at, value) in values.iter().enumerate() {
        out.push(if at == 0 { '(' } else { ',' });
        push(value, out);
    }
    out.push(')');
}

/// A string in quotes; one with both kinds of quotes, which has no literal, as the `concat` of the
/// pieces between which the kind of its quotes changes.
pub(crate) fn push_string(text: &str, out: &mut String) {
    let (quote, first) = first_piece(text);
    if first.len() == text.len() {
        return push_literal(quote, text, out);
    }
    out.push_str("concat(");
    push_literal(quote, first, out);
    let mut rest = &text[first.len()..];
    while !rest.is_empty() {
        let (quote, piece) = first_piece(rest);
        out.push(',');
        push_literal(quote, piece, out);
        rest = &rest[piece.len()..];
    }
    out.push(')');
}

fn push_literal(quote: char, text: &str, out: &mut String) {
    out.push(quote);
    out.push_str(text);
    out.push(quote);
}

/// The text up to a quote of another kind than the first in it, and the quote to put it in.
fn first_piece(text: &str) -> (char, &str) {
    let Some(at) = memchr::memchr2(b'\'', b'"', text.as_bytes()) else { return ('\'', text) };
    let quote = if text.as_bytes()[at] == b'\'' { b'"' } else { b'\'' };
    let end =
        memchr::memchr(quote, &text.as_bytes()[at..]).map_or(text.len(), |length| at + length);
    (char::from(quote), &text[..end])
}

/// Whether a string can stand in quotes: XPath 1.0 has no escapes.
pub(super) fn has_literal(text: &str) -> bool {
    first_piece(text).1.len() == text.len()
}

fn push_number(number: f64, out: &mut String) {
    // Display writes the shortest decimal that reads back, without an exponent.
    let written = write!(out, "{number}");
    debug_assert!(written.is_ok(), "writing to a String does not fail");
}
