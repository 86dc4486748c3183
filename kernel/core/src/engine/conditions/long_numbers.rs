//! Long texts as numbers, in time that does not depend on their length.
//!
//! Elements inside one another share their text. Where a million of them hold digits only, reading each
//! string-value from its beginning would take the square of the message. Here the text of the message is read
//! once: of each byte it is known where the run of blanks or digits that it stands in ends, and which byte
//! from it on is not 0. A number is a few such runs, which are stepped over whole. Of the digits, those that
//! can influence the nearest f64 are looked at: fewer than 1,200.

use crate::language::numbers::{Notation, is_blank};
use std::io::Write;
use std::ops::Range;

/// Bytes whose memory is kept for the next message.
const KEPT: usize = 1 << 18;

/// Power of ten of the first digit from which on a number is infinite; negative, from which on it is 0.
const MAGNITUDE_MAX: i64 = 400;

/// Digits that are handed to the conversion; 767 and whether more follow decide the nearest f64.
const DIGITS_MAX: usize = 1_200;

/// Digits of an exponent from which on it is beyond all that count.
const EXPONENT_DIGITS_MAX: usize = 18;

/// The runs of the text of a message, found when first needed.
#[derive(Debug, Default)]
pub(super) struct LongNumbers {
    /// Per byte: where the run of bytes of its kind ends.
    run_ends: Vec<u32>,
    /// Per byte: the next one, itself included, that is no `0`.
    nonzero: Vec<u32>,
}

/// A place in a part of the text, which ends where the part does.
struct Cursor<'t> {
    text: &'t [u8],
    run_ends: &'t [u32],
    at: usize,
}

impl Cursor<'_> {
    /// Steps over a run; where it was.
    fn run(&mut self, is_of_it: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        if self.text.get(start).is_some_and(|&byte| is_of_it(byte)) {
            self.at = (self.run_ends[start] as usize).min(self.text.len());
        }
        start..self.at
    }

    /// Steps over one of some bytes.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let is_there = self.text.get(self.at).is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(is_there);
        is_there
    }

    /// Steps over a sign; whether it is a minus. `is_double`: it may be a plus.
    fn sign(&mut self, is_double: bool) -> bool {
        let is_negative = self.take(b"-");
        if is_double && !is_negative {
            self.take(b"+");
        }
        is_negative
    }
}

impl LongNumbers {
    /// Forgets the message before.
    pub(crate) fn clear(&mut self) {
        for list in [&mut self.run_ends, &mut self.nonzero] {
            list.clear();
            list.shrink_to(KEPT);
        }
    }

    /// A part of the text of the message as a number of XPath or a double of XQuery. Cost: constant, after the
    /// text has been read once.
    pub(crate) fn read(&mut self, text: &[u8], part: Range<usize>, notation: Notation) -> f64 {
        if self.run_ends.is_empty() {
            self.find_runs(text);
        }
        let is_double = notation == Notation::Double;
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let text = &text[..part.end];
        let mut cursor = Cursor { text, run_ends: &self.run_ends, at: part.start };
        cursor.run(is_blank);
        let is_negative = cursor.sign(is_double);
        let whole = cursor.run(is_digit);
        let has_point = cursor.take(b".");
        let decimals = if has_point { cursor.run(is_digit) } else { cursor.at..cursor.at };
        let has_digits = !whole.is_empty() || !decimals.is_empty();
        let (mut exponent, mut is_infinite) = (0, false);
        if is_double && has_digits && cursor.take(b"eE") {
            let is_negative = cursor.sign(true);
            let digits = cursor.run(is_digit);
            if digits.is_empty() {
                return f64::NAN;
            }
            let size = self.exponent(text, digits);
            exponent = if is_negative { -size } else { size };
        } else if is_double && !has_digits && !has_point {
            is_infinite = text[cursor.at..].starts_with(b"INF");
            cursor.at += if is_infinite { b"INF".len() } else { 0 };
        }
        cursor.run(is_blank);
        if cursor.at != text.len() || !(has_digits || is_infinite) {
            return f64::NAN;
        }
        let magnitude = match is_infinite {
            true => f64::INFINITY,
            false => self.magnitude(text, whole, decimals, exponent),
        };
        if is_negative { -magnitude } else { magnitude }
    }

    fn find_runs(&mut self, text: &[u8]) {
        let kind = |byte: u8| (is_blank(byte), byte.is_ascii_digit());
        self.run_ends.resize(text.len(), text.len() as u32);
        self.nonzero.resize(text.len() + 1, text.len() as u32);
        for (at, &byte) in text.iter().enumerate().rev() {
            let continues = text.get(at + 1).is_some_and(|&after| kind(after) == kind(byte));
            self.run_ends[at] = if continues { self.run_ends[at + 1] } else { at as u32 + 1 };
            self.nonzero[at] = if byte == b'0' { self.nonzero[at + 1] } else { at as u32 };
        }
    }

    /// Some digits without zeros before them.
    fn without_zeros(&self, digits: Range<usize>) -> Range<usize> {
        (self.nonzero[digits.start] as usize).min(digits.end)..digits.end
    }

    /// The number of some digits; one that is beyond all exponents where there are many.
    fn exponent(&self, text: &[u8], digits: Range<usize>) -> i64 {
        let digits = &text[self.without_zeros(digits)];
        if digits.len() > EXPONENT_DIGITS_MAX {
            return i64::MAX / 4;
        }
        digits.iter().fold(0, |number, &digit| number * 10 + i64::from(digit - b'0'))
    }

    /// The number with these digits before and after the point, times a power of ten.
    fn magnitude(
        &self,
        text: &[u8],
        whole: Range<usize>,
        decimals: Range<usize>,
        exponent: i64,
    ) -> f64 {
        // It is read as 0.digits, from the first that is not 0 on, times a power of ten.
        let mut digits = b"0.".to_vec();
        let whole = self.without_zeros(whole);
        let mut scale = whole.len() as i64;
        self.append(text, whole, &mut digits);
        if scale == 0 {
            let significant = self.without_zeros(decimals.clone());
            scale = -((significant.start - decimals.start) as i64);
            self.append(text, significant, &mut digits);
        } else {
            self.append(text, decimals, &mut digits);
        }
        if digits.len() == 2 {
            return 0.0;
        }
        scale += exponent;
        match scale {
            _ if scale > MAGNITUDE_MAX => return f64::INFINITY,
            _ if scale < -MAGNITUDE_MAX => return 0.0,
            _ => {}
        }
        // Writing to a vector does not fail.
        let _ = write!(digits, "e{scale}");
        std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    }

    /// Appends digits; where there are too many, a last 1 stands for those that are not 0.
    fn append(&self, text: &[u8], from: Range<usize>, digits: &mut Vec<u8>) {
        let room = DIGITS_MAX.saturating_sub(digits.len());
        let until = from.end.min(from.start + room);
        digits.extend_from_slice(&text[from.start..until]);
        if !self.without_zeros(until..from.end).is_empty() {
            digits.push(b'1');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads every range of the pieces both ways.
    fn check(pieces: &[&str]) {
        let text = pieces.concat();
        let mut places: Vec<usize> = vec![0];
        places.extend(pieces.iter().scan(0, |at, piece| {
            *at += piece.len();
            Some(*at)
        }));
        let mut numbers = LongNumbers::default();
        for (at, &start) in places.iter().enumerate() {
            for &end in &places[at..] {
                for notation in [Notation::XPath, Notation::Double] {
                    let expected = notation.read(&text.as_bytes()[start..end]);
                    let given = numbers.read(text.as_bytes(), start..end, notation);
                    let is_same = given.to_bits() == expected.to_bits()
                        || (given.is_nan() && expected.is_nan());
                    assert!(is_same, "{given} is not {expected}: {:?}", &text[start..end]);
                }
            }
        }
    }

    #[test]
    fn agrees_with_reading_the_concatenation() {
        let alphabet = [
            "0", "00", "5", "10", "007", "12", ".", "-", " ", "\n\t", "1.5", "-3", " 4", "6 ", "x",
            "1 2", "+", "e", "E", "1e2", "E-3", "+4", "INF", "IN", "F", "NaN",
        ];
        let mut state = 1_u64;
        let mut next = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        for _ in 0..40_000 {
            let kinds = 1 + next(alphabet.len());
            let pieces: Vec<&str> = (0..next(9)).map(|_| alphabet[next(kinds)]).collect();
            check(&pieces);
        }
    }

    #[test]
    fn rounds_by_digits_far_behind() {
        let zeros = "0".repeat(3_000);
        // Half way between two neighbours: what follows decides.
        check(&["9007199254740993", ".", &zeros, "1", "0"]);
        check(&["9007199254740993", ".", &zeros, &zeros]);
        check(&["9007199254740993.0", &zeros[..700], "1"]);
        check(&[&zeros, "9007199254740993", &zeros[..390], ".5"]);
        check(&["0.", &zeros[..300], "49406564584124654417656879286822137", &zeros, "1"]);
    }

    #[test]
    fn knows_what_is_too_large_and_too_small() {
        let zeros = "0".repeat(3_000);
        let nines = "9".repeat(1_000);
        check(&[&zeros, "-", &zeros, "7", &zeros[..300], ".25"]);
        check(&["1", &zeros, ".", "5"]);
        check(&["1", &zeros, "e-", &zeros, "3000", " "]);
        check(&["0.", &zeros, "25E", "+300", "1"]);
        check(&["-1e", &nines]);
        check(&["1e-", &nines, &zeros]);
        check(&[&zeros, "e", &nines]);
        check(&["-", "I", "N", "F", " "]);
        check(&["-", &nines, &nines, " "]);
        check(&["-.", &zeros, "1"]);
        check(&[".", &zeros[..320], "7", &nines, &nines]);
        check(&[&nines[..308], ".", &nines, &nines]);
    }
}
