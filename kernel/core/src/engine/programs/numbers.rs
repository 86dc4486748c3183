//! Numbers: what a text is as one, arithmetic, how they are printed (XQuery 1.0, 3.4; Functions and
//! Operators, 6 and 17.1).
//!
//! Where XQuery raises an error the result is the one that XPath 1.0 has for doubles: division by
//! zero is an infinity or NaN, `mod` and `idiv` by zero are NaN, an integer that has no room in 64
//! bits is a double.

use crate::language::arithmetic::Arithmetic;
use crate::language::number_text::round;
use crate::language::numbers::untyped_number;
use crate::language::types::Type;
use crate::language::xquery::syntax::Number;
use std::io::Write;

impl Number {
    /// An integer with room for what 64 bits do not hold.
    fn whole(value: i128) -> Number {
        i64::try_from(value).map_or(Number::Double(value as f64), Number::Integer)
    }

    pub(super) fn is_nan(self) -> bool {
        matches!(self, Number::Double(value) if value.is_nan())
    }

    pub(super) fn is_true(self) -> bool {
        let value = self.value();
        value != 0.0 && !value.is_nan()
    }

    pub(super) fn calculate(operator: Arithmetic, left: Number, right: Number) -> Number {
        if operator == Arithmetic::DivideWhole {
            return Number::divide_whole(left, right);
        }
        if let (Number::Integer(left), Number::Integer(right)) = (left, right)
            && operator != Arithmetic::Divide
        {
            let (left, right) = (i128::from(left), i128::from(right));
            return match operator {
                Arithmetic::Add => Number::whole(left + right),
                Arithmetic::Subtract => Number::whole(left - right),
                Arithmetic::Multiply => Number::whole(left * right),
                _ if right == 0 => Number::Double(f64::NAN),
                _ => Number::whole(left % right),
            };
        }
        let result = operator.of(left.value(), right.value());
        match (left, right) {
            (Number::Double(_), _) | (_, Number::Double(_)) => Number::Double(result),
            _ => Number::decimal(result),
        }
    }

    fn divide_whole(left: Number, right: Number) -> Number {
        if let (Number::Integer(left), Number::Integer(right)) = (left, right) {
            let quotient = i128::from(left).checked_div(i128::from(right));
            return quotient.map_or(Number::Double(f64::NAN), Number::whole);
        }
        let quotient = (left.value() / right.value()).trunc();
        if right.value() == 0.0 || !quotient.is_finite() {
            return Number::Double(f64::NAN);
        }
        // Beyond the range of i128 the cast gives its bounds, which are no 64-bit integers either.
        if quotient.abs() < 1e38 {
            Number::whole(quotient as i128)
        } else {
            Number::Double(quotient)
        }
    }

    /// The number as one of another kind: an integer is cut off, and a decimal or an integer is finite.
    pub(super) fn cast(self, to: Type) -> Option<Number> {
        let value = self.value();
        match (to, self) {
            (Type::Double, _) => Some(Number::Double(value)),
            (Type::Integer, Number::Integer(_)) => Some(self),
            _ if !value.is_finite() => None,
            (Type::Decimal, _) => Some(Number::decimal(value)),
            // Beyond the range of i128 the cast gives its bounds, which are no 64-bit integers either.
            (Type::Integer, _) if value.abs() < 1e38 => Some(Number::whole(value as i128)),
            (Type::Integer, _) => Some(Number::Double(value)),
            _ => None,
        }
    }

    pub(super) fn negated(self) -> Number {
        match self {
            Number::Integer(value) => Number::whole(-i128::from(value)),
            Number::Decimal(value) => Number::decimal(-value),
            Number::Double(value) => Number::Double(-value),
        }
    }

    pub(super) fn absolute(self) -> Number {
        match self {
            Number::Integer(value) => Number::whole(i128::from(value).abs()),
            Number::Decimal(value) => Number::decimal(value.abs()),
            Number::Double(value) => Number::Double(value.abs()),
        }
    }

    pub(super) fn floor(self) -> Number {
        self.rounded(f64::floor)
    }

    pub(super) fn ceiling(self) -> Number {
        self.rounded(f64::ceil)
    }

    pub(super) fn round(self) -> Number {
        self.rounded(round)
    }

    /// The nearest number with so many digits after the point, of two the greater one.
    pub(super) fn to_greater(self, digits: f64) -> Number {
        let is_tie = |value: f64| {
            // Halves of powers of ten are halves of powers of two that go into the number an odd number of times.
            let halves = value * 2_f64.powi(digits as i32 + 1);
            halves.is_finite() && halves % 2.0 != 0.0 && halves.fract() == 0.0
        };
        match self {
            Number::Integer(value) if (-18.0..0.0).contains(&digits) => {
                let power = 10_i128.pow(-digits as u32);
                Number::whole((i128::from(value) * 2 + power).div_euclid(power * 2) * power)
            }
            Number::Double(value) | Number::Decimal(value) if digits < 0.0 => {
                let power: f64 =
                    format!("1e{}", -digits.max(-330.0)).parse().unwrap_or(f64::INFINITY);
                let rounded = if power.is_infinite() || !value.is_finite() {
                    if value.is_finite() { value * 0.0 } else { value }
                } else {
                    round(value / power) * power
                };
                self.rounded(|_| rounded)
            }
            // Just above it is nearer to the greater one.
            Number::Double(value) if digits <= 330.0 && is_tie(value) => {
                Number::Double(value.next_up()).to_even(digits)
            }
            Number::Decimal(value) if digits <= 330.0 && is_tie(value) => {
                Number::Decimal(value.next_up()).to_even(digits)
            }
            _ => self.to_even(digits),
        }
    }

    /// The nearest number with so many digits after the point, of two the even one.
    pub(super) fn to_even(self, digits: f64) -> Number {
        // A double has no more than some 300 digits on either side.
        let digits = digits.clamp(-330.0, 330.0) as i32;
        let power: f64 = format!("1e{}", -digits).parse().unwrap_or(f64::INFINITY);
        match self {
            Number::Integer(_) if digits >= 0 => self,
            Number::Integer(_) if digits < -18 => Number::Integer(0),
            Number::Integer(value) => {
                let power = 10_i128.pow(-digits as u32);
                let (whole, rest) =
                    (i128::from(value).div_euclid(power), i128::from(value).rem_euclid(power));
                let is_up = rest * 2 > power || (rest * 2 == power && whole % 2 != 0);
                Number::whole((whole + i128::from(is_up)) * power)
            }
            _ => self.rounded(|value| match digits {
                _ if !value.is_finite() => value,
                0.. => format!("{value:.0$}", digits as usize).parse().unwrap_or(value),
                _ if power.is_infinite() => value * 0.0,
                _ => (value / power).round_ties_even() * power,
            }),
        }
    }

    fn rounded(self, by: impl Fn(f64) -> f64) -> Number {
        match self {
            Number::Integer(_) => self,
            Number::Decimal(value) => Number::decimal(by(value)),
            Number::Double(value) => Number::Double(by(value)),
        }
    }

    /// Prints it as XQuery does: integers and decimals plain; doubles plain from 1e-6 up to 1e6,
    /// and otherwise as `1.5E6`.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = match self {
            Number::Integer(value) => write!(out, "{value}"),
            Number::Decimal(value) => write!(out, "{value}"),
            Number::Double(value) if value.is_nan() => write!(out, "NaN"),
            Number::Double(value) if value.is_infinite() => {
                write!(out, "{}", if value > 0.0 { "INF" } else { "-INF" })
            }
            Number::Double(value) if value == 0.0 || (1e-6..1e6).contains(&value.abs()) => {
                write!(out, "{value}")
            }
            Number::Double(value) => {
                let start = out.len();
                let written = write!(out, "{value:E}");
                let digits = &out[start..];
                if !digits.contains(&b'.')
                    && let Some(at) = digits.iter().position(|&byte| byte == b'E')
                {
                    out.splice(start + at..start + at, *b".0");
                }
                written
            }
        };
    }
}

/// A text as a number.
pub(super) fn text_number(text: &[u8]) -> Number {
    Number::Double(untyped_number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: Number) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn numbers_are_printed_as_xquery_prints_them() {
        let cases = [
            (Number::Integer(-3), "-3"),
            (Number::Decimal(1_500_000.0), "1500000"),
            (Number::Decimal(0.000_000_1), "0.0000001"),
            (Number::Double(1_500_000.0), "1.5E6"),
            (Number::Double(1_000_000.0), "1.0E6"),
            (Number::Double(999_999.5), "999999.5"),
            (Number::Double(-0.000_001), "-0.000001"),
            (Number::Double(0.000_000_12), "1.2E-7"),
            (Number::Double(0.0), "0"),
            (Number::Double(-0.0), "-0"),
            (Number::Double(12.0), "12"),
            (Number::Double(f64::MAX), "1.7976931348623157E308"),
            (Number::Double(f64::INFINITY), "INF"),
            (Number::Double(f64::NEG_INFINITY), "-INF"),
            (Number::Double(f64::NAN), "NaN"),
        ];
        for (number, expected) in cases {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn kinds_are_promoted_and_integers_have_64_bits() {
        use Arithmetic::*;
        use Number::*;
        let cases = [
            (Add, Integer(1), Integer(2), "3"),
            (Divide, Integer(1), Integer(4), "0.25"),
            (Divide, Integer(1), Integer(0), "INF"),
            (DivideWhole, Integer(-7), Integer(2), "-3"),
            (DivideWhole, Double(7.9), Integer(2), "3"),
            (DivideWhole, Integer(1), Integer(0), "NaN"),
            (DivideWhole, Integer(i64::MIN), Integer(-1), "9.223372036854776E18"),
            (Modulo, Integer(-7), Integer(2), "-1"),
            (Modulo, Integer(i64::MIN), Integer(-1), "0"),
            (Modulo, Integer(1), Integer(0), "NaN"),
            (Multiply, Integer(i64::MAX), Integer(2), "1.8446744073709552E19"),
            (Multiply, Decimal(0.5), Integer(4_000_000), "2000000"),
            (Multiply, Double(0.5), Integer(4_000_000), "2.0E6"),
            (Subtract, Decimal(0.5), Decimal(0.5), "0"),
        ];
        for (operator, left, right, expected) in cases {
            assert_eq!(text(Number::calculate(operator, left, right)), expected);
        }
        assert_eq!(text(Integer(i64::MIN).negated()), "9.223372036854776E18");
        assert_eq!(text(Decimal(0.0).negated()), "0");
        assert_eq!(text(Double(0.0).negated()), "-0");
    }
}
