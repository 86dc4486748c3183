//! Numbers as XPath 1.0 writes them (3.7, 4.4) and as XQuery casts them, read from bytes as they lie.

use super::moment_text::TEXT_BYTES_MAX;
use super::moments::Moment;
use super::types::Type;

/// XML white space.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// How a text is read as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Notation {
    /// As `number()` of XPath 1.0 (4.4) reads it: [`number`].
    XPath,
    /// As XQuery casts `xs:untypedAtomic` to `xs:double`: [`untyped_number`]. It reads all numbers of XPath, and more.
    Double,
    /// As XQuery casts it to `xs:date`, for the ordinal ([`Moment::ordinal`]).
    Date,
    /// To `xs:dateTime`.
    DateTime,
    /// To `xs:time`.
    Time,
    /// To `xs:dayTimeDuration`.
    DayTimeDuration,
    /// To `xs:yearMonthDuration`.
    YearMonthDuration,
}

impl Notation {
    /// All of them, each at its number.
    pub(crate) const ALL: [Notation; 7] = {
        use Notation::*;
        [XPath, Double, Date, DateTime, Time, DayTimeDuration, YearMonthDuration]
    };

    /// The number; NaN if the text is none.
    #[inline]
    pub(crate) fn read(self, text: &[u8]) -> f64 {
        match self {
            Notation::XPath => number(text),
            Notation::Double => untyped_number(text),
            Notation::Date => ordinal(Type::Date, text),
            Notation::DateTime => ordinal(Type::DateTime, text),
            Notation::Time => ordinal(Type::Time, text),
            Notation::DayTimeDuration => ordinal(Type::DayTimeDuration, text),
            Notation::YearMonthDuration => ordinal(Type::YearMonthDuration, text),
        }
    }

    /// That of a type of dates, times or durations.
    pub(crate) fn of_moments(kind: Type) -> Notation {
        match kind {
            Type::Date => Notation::Date,
            Type::Time => Notation::Time,
            Type::DayTimeDuration => Notation::DayTimeDuration,
            Type::YearMonthDuration => Notation::YearMonthDuration,
            _ => Notation::DateTime,
        }
    }

    /// Bytes of a text that has a number, at most.
    pub(crate) fn bytes_max(self) -> usize {
        match self {
            Notation::XPath | Notation::Double => usize::MAX,
            _ => TEXT_BYTES_MAX,
        }
    }

    /// Whether a byte can be a part of a number.
    pub(crate) fn has(self, byte: u8) -> bool {
        let is_shared = byte.is_ascii_digit() || is_blank(byte) || b"-.".contains(&byte);
        let others: &[u8] = match self {
            Notation::XPath => b"",
            Notation::Double => b"+eEINF",
            Notation::Date | Notation::DateTime | Notation::Time => b"+:TZ",
            Notation::DayTimeDuration | Notation::YearMonthDuration => b"PYMDTHS",
        };
        is_shared || others.contains(&byte)
    }
}

fn ordinal(kind: Type, text: &[u8]) -> f64 {
    Moment::read(kind, text).map_or(f64::NAN, Moment::ordinal)
}

/// Powers of ten that an f64 holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// `number()` of a string: blanks, an optional minus, `Digits ('.' Digits?)? | '.' Digits`,
/// blanks; anything else is NaN. No exponent, no plus sign.
///
/// Short numbers take an exact path: a whole number below 2^53 divided by an exact power of ten is
/// rounded once, so it is the nearest f64.
pub(crate) fn number(value: &[u8]) -> f64 {
    let value = trim_blanks(value);
    let (negative, digits) = match value.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, value),
    };
    let mut mantissa: u64 = 0;
    let mut point: Option<usize> = None;
    let short = digits.len() <= 19;
    for (at, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if short => mantissa = mantissa * 10 + u64::from(byte - b'0'),
            b'0'..=b'9' => {}
            b'.' if point.is_none() => point = Some(at),
            _ => return f64::NAN,
        }
    }
    let digit_count = digits.len() - usize::from(point.is_some());
    if digit_count == 0 {
        return f64::NAN;
    }
    if short && mantissa < 1 << 53 {
        let decimals = point.map_or(0, |at| digits.len() - at - 1);
        let magnitude = mantissa as f64 / EXACT_POWERS[decimals];
        return if negative { -magnitude } else { magnitude };
    }
    // Only digits and one point are left, which Rust reads as XPath does: nearest, ties to even.
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// A text without the white space around it.
pub(crate) fn trim_blanks(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|&byte| !is_blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|&byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

/// A text as a double, as XQuery casts `xs:untypedAtomic`: a number of XPath 1.0, or one with a plus
/// sign or an exponent, `INF` or `NaN`. What is no number is NaN.
pub(crate) fn untyped_number(text: &[u8]) -> f64 {
    let found = number(text);
    if found.is_nan() { special_number(text) } else { found }
}

/// Numbers that XPath 1.0 does not know.
fn special_number(text: &[u8]) -> f64 {
    let text = trim_blanks(text);
    let (is_negative, magnitude) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    // Rust reads `inf`, `nan` and a second sign too.
    let is_number = magnitude.first().is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    let value = match magnitude {
        b"INF" => f64::INFINITY,
        _ if !is_number => f64::NAN,
        _ => std::str::from_utf8(magnitude)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(f64::NAN),
    };
    if is_negative { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_reads_what_xpath_reads() {
        let cases: [(&str, f64); 14] = [
            ("0", 0.0),
            ("42", 42.0),
            (" \t\n\r42 \n", 42.0),
            ("-7", -7.0),
            ("5.", 5.0),
            (".5", 0.5),
            ("-.5", -0.5),
            ("0.1", 0.1),
            ("2.71", 2.71),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("0000000000000000000000000012", 12.0),
            ("123456789012345678901234567890", 1.234_567_890_123_456_8e29),
            ("0.1000000000000000055511151231257827", 0.1),
            ("1797693134862315700000000000.5", 1.797_693_134_862_315_7e27),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text.as_bytes()), expected, "{text:?}");
        }
        assert!(number(b"-0").is_sign_negative());
        assert_eq!(number("9".repeat(400).as_bytes()), f64::INFINITY);
    }

    #[test]
    fn number_refuses_what_xpath_refuses() {
        for text in [
            "",
            " ",
            "-",
            ".",
            "-.",
            "+5",
            "1e3",
            "1E3",
            "0x10",
            "- 5",
            "1 2",
            "1.2.3",
            "5-",
            "NaN",
            "Infinity",
            "inf",
            "1,5",
            "\u{a0}5",
            "--5",
            "٣",
            "12345678901234567890x",
        ] {
            assert!(number(text.as_bytes()).is_nan(), "{text:?}");
        }
    }

    #[test]
    fn a_double_has_all_numbers_of_xpath_and_the_bytes_of_both_are_known() {
        let cases = [
            ("5", Some(5.0), Some(5.0)),
            ("-.5", Some(-0.5), Some(-0.5)),
            (" 12. ", Some(12.0), Some(12.0)),
            ("1e3", None, Some(1000.0)),
            ("+5", None, Some(5.0)),
            ("INF", None, Some(f64::INFINITY)),
            ("-INF", None, Some(f64::NEG_INFINITY)),
            (".5E-1", None, Some(0.05)),
            ("x", None, None),
            ("NaN", None, None),
            ("", None, None),
            ("0x3", None, None),
        ];
        for (text, by_xpath, by_cast) in cases {
            for (notation, value) in [(Notation::XPath, by_xpath), (Notation::Double, by_cast)] {
                let read = notation.read(text.as_bytes());
                assert_eq!((!read.is_nan()).then_some(read), value, "{text}");
                assert!(read.is_nan() || text.bytes().all(|byte| notation.has(byte)), "{text}");
            }
        }
    }

    #[test]
    fn texts_that_cast_to_no_number_are_nan() {
        for bad in [
            "", " ", "-", "+", ".", "e5", "1e", "1e+", "inf", "+-1", "- 1", "0x1", "1_0",
            "infinity", "nan", "--1", "1 2", "NaN", "1,5", "+NaN", ".e1",
        ] {
            assert!(untyped_number(bad.as_bytes()).is_nan(), "{bad}");
        }
        let cases = [
            ("1e3", 1e3),
            ("+5", 5.0),
            (" +1.5e3 ", 1500.0),
            ("-INF", f64::NEG_INFINITY),
            ("INF", f64::INFINITY),
            (".5E-1", 0.05),
            ("1.e2", 100.0),
        ];
        for (text, expected) in cases {
            assert_eq!(untyped_number(text.as_bytes()), expected, "{text}");
        }
    }
}
