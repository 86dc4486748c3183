//! Expressions that have one value whatever the message is (XPath 1.0, 3.4, 3.5 and 4).

use super::view::View;
use crate::language::comparison::Comparison;
use crate::language::number_text::{number_text, round};
use crate::language::numbers;
use crate::language::strings;
use crate::language::tree::{Expr, Operator};
use memchr::memmem;
use std::borrow::Cow;

/// A value that is no node-set.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'t> {
    Boolean(bool),
    Number(f64),
    String(Cow<'t, str>),
}

impl<'t> Value<'t> {
    /// `number(value)`
    pub(super) fn number(&self) -> f64 {
        match self {
            Value::Boolean(value) => f64::from(u8::from(*value)),
            Value::Number(value) => *value,
            Value::String(text) => numbers::number(text.as_bytes()),
        }
    }

    /// `boolean(value)`
    pub(super) fn boolean(&self) -> bool {
        match self {
            Value::Boolean(value) => *value,
            Value::Number(value) => *value != 0.0 && !value.is_nan(),
            Value::String(text) => !text.is_empty(),
        }
    }

    /// `string(value)`
    pub(super) fn string(self) -> Cow<'t, str> {
        match self {
            Value::Boolean(value) => Cow::Borrowed(if value { "true" } else { "false" }),
            Value::Number(value) => Cow::Owned(number_text(value)),
            Value::String(text) => text,
        }
    }
}

/// Whether two values compare as asked (3.4): `=` and `!=` by the richer type, orders by number.
pub(super) fn compare(operator: Comparison, left: &Value<'_>, right: &Value<'_>) -> bool {
    let by_truth = |holds: bool| if operator == Comparison::Eq { holds } else { !holds };
    if matches!(operator, Comparison::Eq | Comparison::Ne) {
        match (left, right) {
            (Value::Boolean(_), _) | (_, Value::Boolean(_)) => {
                return by_truth(left.boolean() == right.boolean());
            }
            (Value::String(left), Value::String(right)) => return by_truth(left == right),
            _ => {}
        }
    }
    operator.holds(left.number(), right.number())
}

/// The value of an expression without paths and without a context. Cost: linear in the expression.
pub(super) fn constant_of<'t>(expr: impl Into<View<'t>>) -> Option<Value<'t>> {
    match expr.into() {
        View::Literal { value, .. } => Some(Value::String(Cow::Borrowed(value))),
        View::Number { value, .. } => Some(Value::Number(value)),
        View::Unary { minuses, operand, .. } => {
            let number = constant_of(operand)?.number();
            Some(Value::Number(if minuses % 2 == 1 { -number } else { number }))
        }
        View::Call { name, arguments, .. } => call(name, arguments),
        View::Binary { operators, operands, .. } => run(operators, operands),
        View::Path { .. } | View::PathFrom { .. } | View::Filter { .. } => None,
    }
}

/// A run of operators of one level, from left to right.
fn run<'t>(operators: &[Operator], operands: &'t [Expr]) -> Option<Value<'t>> {
    let mut values = Vec::with_capacity(operands.len());
    for operand in operands {
        values.push(constant_of(operand)?);
    }
    let mut values = values.into_iter();
    let first = values.next()?;
    operators.iter().zip(values).try_fold(first, |left, (&operator, right)| {
        Some(match operator {
            Operator::Compare(comparison) => Value::Boolean(compare(comparison, &left, &right)),
            Operator::Or => Value::Boolean(left.boolean() || right.boolean()),
            Operator::And => Value::Boolean(left.boolean() && right.boolean()),
            Operator::Calculate(arithmetic) => {
                Value::Number(arithmetic.of(left.number(), right.number()))
            }
            Operator::Union
            | Operator::Cast(_)
            | Operator::CastToMoment(..)
            | Operator::Texts(..)
            | Operator::NumberOf => {
                return None;
            }
        })
    })
}

/// A core function of values; one that needs a context or a node-set has no constant value.
fn call<'t>(name: &str, arguments: &'t [Expr]) -> Option<Value<'t>> {
    match name {
        "true" => return Some(Value::Boolean(true)),
        "false" => return Some(Value::Boolean(false)),
        "position" | "last" | "count" | "id" | "local-name" | "namespace-uri" | "name" | "lang"
        | "sum" => return None,
        _ => {}
    }
    if arguments.is_empty() {
        return None;
    }
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(constant_of(argument)?);
    }
    let mut values = values.into_iter();
    let first = values.next()?;
    let number = |value: f64| Some(Value::Number(value));
    match name {
        "boolean" => return Some(Value::Boolean(first.boolean())),
        "not" => return Some(Value::Boolean(!first.boolean())),
        "number" => return number(first.number()),
        "floor" => return number(first.number().floor()),
        "ceiling" => return number(first.number().ceil()),
        "round" => return number(round(first.number())),
        "substring" => {
            let start = values.next()?.number();
            let length = values.next().map(|value| value.number());
            return text_of(strings::substring(bytes_of(first.string()), start, length));
        }
        _ => {}
    }
    let text = first.string();
    let mut rest = values.map(Value::string);
    Some(match name {
        "string" => Value::String(text),
        "concat" => {
            let mut joined = text.into_owned();
            rest.for_each(|part| joined.push_str(&part));
            Value::String(Cow::Owned(joined))
        }
        "contains" => {
            Value::Boolean(memmem::find(text.as_bytes(), rest.next()?.as_bytes()).is_some())
        }
        "starts-with" => Value::Boolean(text.starts_with(&*rest.next()?)),
        "string-length" => Value::Number(strings::char_count(text.as_bytes()) as f64),
        "normalize-space" => return text_of(strings::normalized(bytes_of(text))),
        "substring-before" => {
            return text_of(strings::before(bytes_of(text), rest.next()?.as_bytes(), false));
        }
        "substring-after" => {
            return text_of(strings::after(bytes_of(text), rest.next()?.as_bytes(), false));
        }
        "translate" => {
            let (from, to) = (rest.next()?, rest.next()?);
            let translated = strings::translated(text.as_bytes(), from.as_bytes(), to.as_bytes());
            return text_of(Cow::Owned(translated));
        }
        _ => return None,
    })
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// A string that was made of whole characters of others.
fn text_of(bytes: Cow<'_, [u8]>) -> Option<Value<'_>> {
    Some(Value::String(match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).ok()?),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).ok()?),
    }))
}
