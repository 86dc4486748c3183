//! What a query asks of a value: of an attribute, a text node, a string-value or a position.
//!
//! XPath 1.0 and XQuery ask the same but for two things: XPath orders strings as numbers, and XQuery casts more
//! strings to numbers. Each way of comparing is a variant of [`Ask`], whatever language or index asks.

use crate::language::comparison::Comparison;
use crate::language::folding::Fold;
use crate::language::folding::TextTest;
use crate::language::numbers::Notation;
use crate::language::values;
use memchr::memmem;

/// A condition on a value; `T` is how its string is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ask<T = Box<[u8]>> {
    /// That there is one.
    Exists,
    /// A comparison with a string, by code point.
    Text(Comparison, T),
    /// That it begins with a string.
    StartsWith(T),
    /// That a string is a part of it.
    Contains(T),
    /// A comparison of `number()` of it (XPath 1.0, 4.4) with a number.
    Number(Comparison, f64),
    /// That it is one of a set of strings ([`Values::text`](crate::language::values::Values)).
    OneOf(T),
    /// That it is one of a set of numbers.
    NumberOf(Notation, T),
    /// A comparison of it as `xs:double` (XQuery 1.0, 3.5.2) with a number; what is no number is NaN.
    Cast(Comparison, f64),
    /// A comparison of it as a date or time with a bound ([`crate::language::moments::Moment::bound`]).
    Moment(Notation, Comparison, f64),
    /// That it, folded, passes a test with one of a set of texts.
    Texts(TextTest, Fold, T),
}

impl<T> Ask<T> {
    /// The same with another form of its string.
    #[inline]
    pub(crate) fn map<U>(self, form: impl FnOnce(T) -> U) -> Ask<U> {
        match self {
            Ask::Exists => Ask::Exists,
            Ask::Text(comparison, text) => Ask::Text(comparison, form(text)),
            Ask::StartsWith(text) => Ask::StartsWith(form(text)),
            Ask::Contains(text) => Ask::Contains(form(text)),
            Ask::OneOf(set) => Ask::OneOf(form(set)),
            Ask::NumberOf(notation, set) => Ask::NumberOf(notation, form(set)),
            Ask::Number(comparison, constant) => Ask::Number(comparison, constant),
            Ask::Cast(comparison, constant) => Ask::Cast(comparison, constant),
            Ask::Moment(notation, comparison, bound) => Ask::Moment(notation, comparison, bound),
            Ask::Texts(test, fold, texts) => Ask::Texts(test, fold, form(texts)),
        }
    }

    /// The same, its string not held.
    #[inline]
    pub(crate) fn borrowed(&self) -> Ask<&[u8]>
    where
        T: AsRef<[u8]>,
    {
        match self {
            Ask::Exists => Ask::Exists,
            Ask::Text(comparison, text) => Ask::Text(*comparison, text.as_ref()),
            Ask::StartsWith(text) => Ask::StartsWith(text.as_ref()),
            Ask::Contains(text) => Ask::Contains(text.as_ref()),
            Ask::OneOf(set) => Ask::OneOf(set.as_ref()),
            Ask::NumberOf(notation, set) => Ask::NumberOf(*notation, set.as_ref()),
            Ask::Number(comparison, constant) => Ask::Number(*comparison, *constant),
            Ask::Cast(comparison, constant) => Ask::Cast(*comparison, *constant),
            Ask::Moment(notation, comparison, bound) => Ask::Moment(*notation, *comparison, *bound),
            Ask::Texts(test, fold, texts) => Ask::Texts(*test, *fold, texts.as_ref()),
        }
    }

    /// How the value is read, how it is compared and with what, if it is compared with a number.
    #[inline]
    pub(crate) fn numeric(&self) -> Option<(Notation, Comparison, f64)> {
        match *self {
            Ask::Number(comparison, constant) => Some((Notation::XPath, comparison, constant)),
            Ask::Cast(comparison, constant) => Some((Notation::Double, comparison, constant)),
            Ask::Moment(notation, comparison, bound) => Some((notation, comparison, bound)),
            _ => None,
        }
    }

    /// Whether a number satisfies it; only for comparisons with numbers.
    pub(crate) fn holds_number(&self, value: f64) -> bool {
        let holds =
            |(_, comparison, constant): (_, Comparison, f64)| comparison.holds(value, constant);
        self.numeric().is_some_and(holds)
    }
}

impl<T: AsRef<[u8]>> Ask<T> {
    /// Whether a value satisfies it. Cost: at most the length of the value, times the texts of a set; that of compiling
    /// a pattern.
    #[inline]
    pub(crate) fn holds(&self, value: &[u8]) -> bool {
        match self {
            Ask::Exists => true,
            Ask::Text(comparison, text) => comparison.holds_text(value, text.as_ref()),
            Ask::StartsWith(text) => value.starts_with(text.as_ref()),
            Ask::Contains(text) => memmem::find(value, text.as_ref()).is_some(),
            Ask::OneOf(set) => values::has(set.as_ref(), value),
            Ask::NumberOf(notation, set) => values::has_number(set.as_ref(), notation.read(value)),
            Ask::Number(comparison, constant) => {
                comparison.holds(Notation::XPath.read(value), *constant)
            }
            Ask::Cast(comparison, constant) => {
                comparison.holds(Notation::Double.read(value), *constant)
            }
            Ask::Moment(notation, comparison, bound) => {
                comparison.holds(notation.read(value), *bound)
            }
            Ask::Texts(test, fold, texts) => test.holds(*fold, texts.as_ref(), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::*;

    #[test]
    fn each_way_of_comparing_has_values_that_satisfy_it_and_others() {
        let cases: [(Ask<&str>, &[&str], &[&str]); 24] = [
            (Ask::Exists, &["", "x"], &[]),
            (Ask::Text(Eq, "10"), &["10"], &["", "10.0", "1"]),
            (Ask::Text(Ne, "10"), &["", "10.0", "1"], &["10"]),
            (Ask::Text(Lt, "10"), &["", "1", "0x"], &["10", "100", "9", "\u{e9}"]),
            (Ask::Text(Le, "10"), &["", "1", "10"], &["100", "9"]),
            (Ask::Text(Gt, "\u{ffff}"), &["\u{10000}", "\u{ffff}x"], &["\u{ffff}", "a", ""]),
            (Ask::Text(Ge, "10"), &["10", "9"], &["", "1"]),
            (Ask::StartsWith("ab"), &["ab", "abc"], &["", "a", "xab"]),
            (Ask::Contains("ab"), &["ab", "xabc"], &["", "a b"]),
            (Ask::Contains(""), &["", "a"], &[]),
            (Ask::OneOf("\u{0}10\u{0}a\u{0}"), &["", "10", "a"], &["1", "0", "10.0", "b"]),
            (
                Ask::NumberOf(Notation::Double, "10\u{0}2.5\u{0}"),
                &["10", "+1e1", " 2.50 "],
                &["2", "x", "", "NaN"],
            ),
            (
                Ask::NumberOf(Notation::XPath, "10\u{0}2.5\u{0}"),
                &["10", " 2.50 "],
                &["2", "+10", "1e1", ""],
            ),
            (Ask::Number(Eq, 10.0), &["10", " 10.0 "], &["+10", "1e1", "x", ""]),
            (Ask::Number(Ne, 10.0), &["9", "1e1", "x", "INF"], &["10"]),
            (
                Ask::Moment(Notation::Date, Ge, 86_400e6),
                &["1970-01-02", " 1970-01-02Z", "1970-01-02-14:00"],
                &["1970-01-01", "1970-01-02+00:01", "1970-01-02T00:00:00", "2", ""],
            ),
            (
                Ask::Texts(TextTest::Is, Fold::Lower, "a\u{0}\u{df}\u{0}"),
                &["A", "a", "\u{df}", "\u{1e9e}"],
                &["", "SS", "aa"],
            ),
            (Ask::Texts(TextTest::Is, Fold::Upper, "SS\u{0}"), &["ss", "\u{df}"], &["\u{1e9e}"]),
            (
                Ask::Texts(TextTest::Begins, Fold::Ascii, "k\u{e9}\u{0}"),
                &["K\u{e9}x"],
                &["k\u{c9}"],
            ),
            (
                Ask::Texts(TextTest::Has, Fold::None, "ab\u{0}cd\u{0}"),
                &["xcd", "cdab"],
                &["", "Ab", "bc"],
            ),
            (
                Ask::Texts(TextTest::Matches, Fold::None, "(?i)^a+$\u{0}b{2}\u{0}"),
                &["AAa", "xbb"],
                &["b", "BB", "ab"],
            ),
            (Ask::Cast(Eq, 10.0), &["10", " 10.0 ", "+10", "1e1"], &["x", "", "11"]),
            (Ask::Cast(Ne, 10.0), &["9", "x", "INF"], &["10", "1e1"]),
            (Ask::Cast(Gt, 10.0), &["11", "1E3", "INF"], &["10", "x", "-INF", ""]),
        ];
        for (ask, satisfying, others) in cases {
            let owned: Ask = ask.map(|text| Box::from(text.as_bytes()));
            for (values, expected) in [(satisfying, true), (others, false)] {
                for value in values {
                    assert_eq!(ask.holds(value.as_bytes()), expected, "{ask:?} of {value:?}");
                    assert_eq!(owned.holds(value.as_bytes()), expected, "{owned:?} of {value:?}");
                }
            }
        }
    }

    #[test]
    fn a_number_satisfies_comparisons_with_numbers_alone() {
        for ask in [Ask::<&str>::Number(Ge, 2.0), Ask::Cast(Ge, 2.0)] {
            assert!(ask.holds_number(2.0));
            assert!(!ask.holds_number(1.0));
            assert!(!ask.holds_number(f64::NAN));
        }
        for ask in [Ask::Exists, Ask::Text(Eq, "2"), Ask::StartsWith("2"), Ask::Contains("2")] {
            assert!(!ask.holds_number(2.0));
        }
    }
}
