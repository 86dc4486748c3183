//! Texts as values of other types (XQuery and XPath Functions and Operators 3.1, 19.1.1).

use super::syntax::Number;
use crate::language::moments::Moment;
use crate::language::numbers::{trim_blanks, untyped_number};
use crate::language::types::Type;

/// The value of a text as one of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Typed {
    /// The text itself.
    Text,
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(Number),
    /// A date, a time or a duration.
    Moment(Moment),
}

/// A text as a value of a type; none if it is not one (FORG0001).
pub(crate) fn text_as(to: Type, text: &[u8]) -> Option<Typed> {
    let trimmed = trim_blanks(text);
    match to {
        Type::String => Some(Typed::Text),
        Type::Boolean => match trimmed {
            b"true" | b"1" => Some(Typed::Boolean(true)),
            b"false" | b"0" => Some(Typed::Boolean(false)),
            _ => None,
        },
        Type::Double => {
            let value = untyped_number(trimmed);
            let is_number = !value.is_nan() || trimmed == b"NaN";
            is_number.then_some(Typed::Number(Number::Double(value)))
        }
        Type::Decimal | Type::Integer => {
            let (sign, digits) = match trimmed.split_first() {
                Some((sign @ (b'+' | b'-'), digits)) => (*sign, digits),
                _ => (b'+', trimmed),
            };
            let is_known =
                |&byte: &u8| byte.is_ascii_digit() || (byte == b'.' && to == Type::Decimal);
            // What is left to go wrong is a second point, or a point alone.
            let value = untyped_number(digits);
            if value.is_nan() || !digits.iter().all(is_known) {
                return None;
            }
            let value = if sign == b'-' { -value } else { value };
            Some(Typed::Number(match to {
                Type::Decimal => Number::decimal(value),
                // More than 64 bits are a double.
                _ => std::str::from_utf8(trimmed)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .map_or(Number::Double(value), Number::Integer),
            }))
        }
        _ => Moment::read(to, trimmed).map(Typed::Moment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cast_as_schema_says() {
        use Number::{Decimal, Double, Integer};
        for (to, text, expected) in [
            (Type::Integer, " +007 ", Some(Integer(7))),
            (Type::Integer, "-9223372036854775808", Some(Integer(i64::MIN))),
            (Type::Integer, "9223372036854775808", Some(Double(9_223_372_036_854_775_808.0))),
            (Type::Integer, "1.0", None),
            (Type::Integer, "1e3", None),
            (Type::Integer, "", None),
            (Type::Integer, "+-1", None),
            (Type::Decimal, "-.50", Some(Decimal(-0.5))),
            (Type::Decimal, "5.", Some(Decimal(5.0))),
            (Type::Decimal, "-0", Some(Decimal(0.0))),
            (Type::Decimal, ".", None),
            (Type::Decimal, "1.2.3", None),
            (Type::Decimal, "1e3", None),
            (Type::Decimal, "INF", None),
            (Type::Double, "+INF", Some(Double(f64::INFINITY))),
            (Type::Double, "-1.5e2", Some(Double(-150.0))),
            (Type::Double, "nan", None),
        ] {
            let expected = expected.map(Typed::Number);
            assert_eq!(text_as(to, text.as_bytes()), expected, "{to:?} {text}");
        }
        assert!(text_as(Type::Double, b" NaN ").is_some());
        assert_eq!(text_as(Type::Boolean, b" 1 "), Some(Typed::Boolean(true)));
        assert_eq!(text_as(Type::Boolean, b"TRUE"), None);
    }
}
