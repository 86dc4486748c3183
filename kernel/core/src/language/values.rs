//! Sets of values that one value is compared with: `@code = ("A", "B")`.
//!
//! A set is held as one text: its values in order, each once and each with a NUL after it, which no string of a
//! query and no value of a message has. So equal sets are equal texts, a set is borrowed and copied like a string, and
//! a value is looked up by halving.

use std::borrow::Cow;

/// What ends a value.
const END: char = '\0';

/// Values of one list, that of each set counted: those of a query are no syntax nodes of it.
pub const VALUES_MAX: usize = 100_000;

/// Bytes of the values of one query, as written and in canonical form; they count beside those of its text.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// A set of strings, or of numbers as they are written canonically.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Values<'q>(Cow<'q, str>);

impl<'q> Values<'q> {
    /// The set of some strings; none if one of them has a NUL, or if there is none.
    ///
    /// ```
    /// use pathcast_core::language::values::Values;
    ///
    /// let values = Values::of(["b", "a", "b"]).unwrap();
    /// assert_eq!(values.iter().collect::<Vec<_>>(), ["a", "b"]);
    /// assert!(values.has(b"a") && !values.has(b"ab"));
    /// assert!(Values::of(["a\0"]).is_none());
    /// ```
    pub fn of<'v>(values: impl IntoIterator<Item = &'v str>) -> Option<Values<'static>> {
        let mut values: Vec<&str> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() || values.iter().any(|value| value.contains(END)) {
            return None;
        }
        let bytes = values.iter().map(|value| value.len() + 1).sum();
        let mut text = String::with_capacity(bytes);
        for value in values {
            text.push_str(value);
            text.push(END);
        }
        Some(Values(Cow::Owned(text)))
    }

    /// The set of some numbers; none if one of them is not finite, or if there is none.
    pub fn of_numbers(numbers: impl IntoIterator<Item = f64>) -> Option<Values<'static>> {
        let texts: Option<Vec<String>> = numbers
            .into_iter()
            .map(|number| number.is_finite().then(|| number_value(number)))
            .collect();
        Values::of(texts?.iter().map(String::as_str))
    }

    /// The set that [`Values::text`] is of.
    pub(crate) fn of_text(text: &'q str) -> Values<'q> {
        Values(Cow::Borrowed(text))
    }

    /// The text that it is held as.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// With a text of its own.
    pub fn into_owned(self) -> Values<'static> {
        Values(Cow::Owned(self.0.into_owned()))
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(END)
    }

    /// The values of a set of numbers, in the order of their texts.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.iter().map(|text| text.parse().unwrap_or(f64::NAN))
    }

    /// The least and the greatest of a set of numbers.
    pub(crate) fn range(&self) -> (f64, f64) {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        self.numbers().fold(ends, |(least, most), number| (least.min(number), most.max(number)))
    }

    /// The value if there is one alone.
    pub(crate) fn only(&self) -> Option<&str> {
        let (first, rest) = self.0.split_once(END)?;
        rest.is_empty().then_some(first)
    }

    /// Whether a value is one of them. Cost: as many comparisons as halving takes.
    pub fn has(&self, value: &[u8]) -> bool {
        has(self.0.as_bytes(), value)
    }

    /// Whether a number is one of them.
    pub fn has_number(&self, number: f64) -> bool {
        has_number(self.0.as_bytes(), number)
    }

    /// Whether all values of another set are among them. Cost: linear.
    pub(crate) fn has_all(&self, other: &Values<'_>) -> bool {
        let mut known = self.iter();
        other.0 == self.0
            || (other.0.len() <= self.0.len()
                && other.iter().all(|value| known.by_ref().any(|each| each == value)))
    }
}

/// Whether a value is one of a set that is held as a text.
pub(crate) fn has(mut set: &[u8], value: &[u8]) -> bool {
    while !set.is_empty() {
        let start = memchr::memrchr(0, &set[..set.len() / 2]).map_or(0, |end| end + 1);
        let length = memchr::memchr(0, &set[start..]).unwrap_or(set.len() - start);
        match value.cmp(&set[start..start + length]) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => set = &set[..start],
            std::cmp::Ordering::Greater => set = &set[(start + length + 1).min(set.len())..],
        }
    }
    false
}

/// The values of a set that is held as a text.
pub(crate) fn each(set: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(0, set).scan(0, |start, end| {
        let value = &set[*start..end];
        *start = end + 1;
        Some(value)
    })
}

/// Whether a number is one of a set that is held as a text.
pub(crate) fn has_number(set: &[u8], number: f64) -> bool {
    number.is_finite() && has(set, number_value(number).as_bytes())
}

/// A finite number as a value: the shortest decimal that reads back, without an exponent; 0 for -0.
fn number_value(number: f64) -> String {
    (number + 0.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_values_and_no_others() {
        let words = ["", "a", "ab", "abc", "b", "ba", "é", "\u{10000}", " ", "1", "01", "1.0"];
        for chosen in 1..1u32 << words.len() {
            let is_in = |at: usize| chosen >> at & 1 == 1;
            let values = (0..words.len()).filter(|&at| is_in(at)).map(|at| words[at]);
            let set = Values::of(values).expect("there is one");
            for (at, word) in words.iter().enumerate() {
                assert_eq!(set.has(word.as_bytes()), is_in(at), "{word:?} of {set:?}");
            }
            assert!(!set.has(b"abcd") && !set.has(b"\0") && !set.has(b"a\0ab"));
            assert_eq!(set.only().is_some(), chosen.count_ones() == 1);
            let smaller = Values::of(set.iter().skip(1));
            assert!(
                set.has_all(&set) && smaller.is_none_or(|it| set.has_all(&it) && !it.has_all(&set))
            );
        }
    }

    #[test]
    fn numbers_are_values_whatever_their_notation() {
        let set = Values::of_numbers([1.0, 10.0, -0.0, 1e21, 0.5]).expect("finite");
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            ["0", "0.5", "1", "10", "1000000000000000000000"]
        );
        for number in [0.0, -0.0, 1.0, 10.0, 1e21, 0.5] {
            assert!(set.has_number(number), "{number}");
        }
        for number in [2.0, f64::NAN, f64::INFINITY, -1.0] {
            assert!(!set.has_number(number), "{number}");
        }
        assert!(Values::of_numbers([f64::INFINITY]).is_none());
        assert!(set.numbers().all(|number| set.has_number(number)));
    }
}
