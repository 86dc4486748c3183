//! Long string-values as numbers, in time that does not depend on their length.
//!
//! Elements inside one another share their text. Where a million of them hold digits only, reading
//! each string-value from its beginning would take the square of the message. Here each text node is
//! read once and cut into runs of blanks, digits, signs, points and letters; a string-value that is a
//! number then consists of a few stretches of runs of one kind, which are stepped over whole. Of the
//! digits, those that can influence the nearest f64 are looked at: fewer than 1,200.

use crate::language::numbers::{Notation, is_blank};
use crate::xml::tree::Message;
use std::io::Write;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Blanks,
    Digits,
    Minus,
    Point,
    Plus,
    /// `e` or `E`
    Exponent,
    /// Letters of `INF`.
    Letters,
    /// Something that no number contains.
    Foreign,
}

/// A run of bytes of one text node.
#[derive(Clone, Copy, Debug)]
struct Run {
    kind: Kind,
    text: u32,
    start: u32,
    end: u32,
    /// First and last digit that is not 0; [`NOWHERE`] if there is none.
    first_nonzero: u32,
    last_nonzero: u32,
}

const NOWHERE: u32 = u32::MAX;

impl Run {
    fn new(kind: Kind, text: u32, start: u32, end: u32) -> Run {
        Run { kind, text, start, end, first_nonzero: NOWHERE, last_nonzero: NOWHERE }
    }
}

/// More runs than a number can have in one text node: blanks, sign, digits, point, digits, `e`, sign, digits, blanks.
const RUNS_MAX: usize = 9;

/// Runs whose memory is kept for the next message.
const RUNS_KEPT: usize = 1 << 16;

/// Power of ten of the first digit from which on a number is infinite; negative, from which on it is 0.
const MAGNITUDE_MAX: i64 = 400;

/// Digits that are handed to the conversion; 767 and whether more follow decide the nearest f64.
const DIGITS_MAX: usize = 1_200;

/// The runs of a message, found when first needed.
#[derive(Debug, Default)]
pub(super) struct LongNumbers {
    is_known: bool,
    runs: Vec<Run>,
    /// First run of each text node, and one past the last run.
    first_run: Vec<u32>,
    /// Per run: the next one of another kind.
    same_end: Vec<u32>,
    /// Per run: the next one, itself included, that is not of zeros only.
    nonzero: Vec<u32>,
    /// Per run: the bytes of all runs before it.
    bytes_before: Vec<u64>,
    digits: Vec<u8>,
}

impl LongNumbers {
    /// Forgets the message before, and the memory that an unusual one took.
    pub(crate) fn clear(&mut self) {
        if self.runs.capacity() > RUNS_KEPT {
            *self = LongNumbers::default();
        }
        self.is_known = false;
    }

    /// The concatenation of some text nodes as a number. Cost: constant, after the text of the message has been read
    /// once.
    pub(crate) fn of_texts(
        &mut self,
        message: Message<'_>,
        texts: Range<u32>,
        notation: Notation,
    ) -> f64 {
        if !self.is_known {
            self.is_known = true;
            self.find_runs(message);
            self.link_runs();
        }
        let end = self.first_run[texts.end as usize];
        let mut at = self.first_run[texts.start as usize];
        let is_double = notation == Notation::Double;
        self.stretch(Kind::Blanks, &mut at, end);
        let is_negative = self.sign(is_double, &mut at, end);
        let whole = self.stretch(Kind::Digits, &mut at, end);
        let has_point = self.single(Kind::Point, &mut at, end);
        let decimals = if has_point { self.stretch(Kind::Digits, &mut at, end) } else { at..at };
        let has_digits = !whole.is_empty() || !decimals.is_empty();
        let (mut exponent, mut is_infinite) = (0, false);
        if is_double && has_digits && self.single(Kind::Exponent, &mut at, end) {
            let is_negative = self.sign(true, &mut at, end);
            let digits = self.stretch(Kind::Digits, &mut at, end);
            if digits.is_empty() {
                return f64::NAN;
            }
            let size = self.exponent(message, digits);
            exponent = if is_negative { -size } else { size };
        } else if is_double && !has_digits && !has_point {
            let letters = self.stretch(Kind::Letters, &mut at, end);
            is_infinite = self.is_inf(message, letters);
        }
        self.stretch(Kind::Blanks, &mut at, end);
        if at != end || !(has_digits || is_infinite) {
            return f64::NAN;
        }
        let magnitude = match is_infinite {
            true => f64::INFINITY,
            false => self.magnitude(message, whole, decimals, exponent),
        };
        if is_negative { -magnitude } else { magnitude }
    }

    fn find_runs(&mut self, message: Message<'_>) {
        self.runs.clear();
        self.first_run.clear();
        for (text, &span) in message.tree.text_value.iter().enumerate() {
            let first = self.runs.len();
            self.first_run.push(first as u32);
            for (at, &byte) in message.bytes(span).iter().enumerate() {
                if !self.read(first, text as u32, at as u32, byte) {
                    self.runs.truncate(first);
                    self.runs.push(Run::new(Kind::Foreign, text as u32, 0, span.len() as u32));
                    break;
                }
            }
        }
        self.first_run.push(self.runs.len() as u32);
    }

    /// Reads one byte; false if no number contains this text.
    fn read(&mut self, first: usize, text: u32, at: u32, byte: u8) -> bool {
        let kind = match byte {
            b'0'..=b'9' => Kind::Digits,
            b'-' => Kind::Minus,
            b'.' => Kind::Point,
            b'+' => Kind::Plus,
            b'e' | b'E' => Kind::Exponent,
            b'I' | b'N' | b'F' => Kind::Letters,
            byte if is_blank(byte) => Kind::Blanks,
            _ => return false,
        };
        let can_grow = matches!(kind, Kind::Blanks | Kind::Digits | Kind::Letters);
        let grows = can_grow && self.runs[first..].last().is_some_and(|run| run.kind == kind);
        if !grows {
            if self.runs.len() - first == RUNS_MAX {
                return false;
            }
            self.runs.push(Run::new(kind, text, at, at));
        }
        if let Some(run) = self.runs.last_mut() {
            run.end = at + 1;
            if matches!(byte, b'1'..=b'9') {
                run.first_nonzero = run.first_nonzero.min(at);
                run.last_nonzero = at;
            }
        }
        true
    }

    fn link_runs(&mut self) {
        let count = self.runs.len();
        self.same_end.clear();
        self.same_end.resize(count, 0);
        self.nonzero.clear();
        self.nonzero.resize(count + 1, count as u32);
        for at in (0..count).rev() {
            let run = self.runs[at];
            let next = at as u32 + 1;
            let continues = self.runs.get(at + 1).is_some_and(|after| after.kind == run.kind);
            self.same_end[at] = if continues { self.same_end[at + 1] } else { next };
            let is_zeros = run.kind == Kind::Digits && run.first_nonzero == NOWHERE;
            self.nonzero[at] = if is_zeros { self.nonzero[at + 1] } else { at as u32 };
        }
        self.bytes_before.clear();
        let mut bytes = 0;
        for run in &self.runs {
            self.bytes_before.push(bytes);
            bytes += u64::from(run.end - run.start);
        }
        self.bytes_before.push(bytes);
    }

    /// Steps over all runs of a kind; which they were.
    fn stretch(&self, kind: Kind, at: &mut u32, end: u32) -> Range<u32> {
        let start = *at;
        if start < end && self.runs[start as usize].kind == kind {
            *at = self.same_end[start as usize].min(end);
        }
        start..*at
    }

    /// Steps over one run of one byte.
    fn single(&self, kind: Kind, at: &mut u32, end: u32) -> bool {
        let is_there = *at < end && self.runs[*at as usize].kind == kind;
        *at += u32::from(is_there);
        is_there
    }

    /// Steps over a sign, if one is here; whether it is a minus. `is_double`: it may be a plus.
    fn sign(&self, is_double: bool, at: &mut u32, end: u32) -> bool {
        let is_negative = self.single(Kind::Minus, at, end);
        if !is_negative && is_double {
            self.single(Kind::Plus, at, end);
        }
        is_negative
    }

    /// Whether some letters are `INF`.
    fn is_inf(&self, message: Message<'_>, letters: Range<u32>) -> bool {
        let bytes = letters.flat_map(|at| {
            let run = self.runs[at as usize];
            let bytes = message.bytes(message.tree.text_value[run.text as usize]);
            bytes[run.start as usize..run.end as usize].iter().copied()
        });
        bytes.take(4).eq(*b"INF")
    }

    /// The number of some digits; one that is beyond all exponents where there are many.
    fn exponent(&mut self, message: Message<'_>, digits: Range<u32>) -> i64 {
        const DIGITS_MAX: u64 = 18;
        let first = self.nonzero[digits.start as usize];
        if first >= digits.end {
            return 0;
        }
        let leading = self.runs[first as usize].first_nonzero;
        if self.distance(first, leading, digits.end) > DIGITS_MAX {
            return i64::MAX / 4;
        }
        self.digits.clear();
        self.append(message, first, leading, digits.end);
        self.digits.iter().fold(0, |number, &digit| number * 10 + i64::from(digit - b'0'))
    }

    /// The number with these digits before and after the point, times a power of ten.
    fn magnitude(
        &mut self,
        message: Message<'_>,
        whole: Range<u32>,
        decimals: Range<u32>,
        exponent: i64,
    ) -> f64 {
        // It is read as 0.digits, from the first that is not 0 on, times a power of ten.
        self.digits.clear();
        self.digits.extend_from_slice(b"0.");
        let mut scale = 0;
        let first = self.nonzero[whole.start as usize];
        if first < whole.end {
            let leading = self.runs[first as usize].first_nonzero;
            scale = self.distance(first, leading, whole.end) as i64;
            self.append(message, first, leading, whole.end);
        }
        let is_fraction = scale == 0;
        let first =
            if is_fraction { self.nonzero[decimals.start as usize] } else { decimals.start };
        if first < decimals.end {
            let run = self.runs[first as usize];
            let leading = if is_fraction { run.first_nonzero } else { run.start };
            if is_fraction {
                let start = self.runs[decimals.start as usize].start;
                let zeros =
                    self.distance(decimals.start, start, first) + u64::from(leading - run.start);
                scale = -(zeros as i64);
            }
            self.append(message, first, leading, decimals.end);
        }
        if self.digits.len() == 2 {
            return 0.0;
        }
        scale += exponent;
        match scale {
            _ if scale > MAGNITUDE_MAX => return f64::INFINITY,
            _ if scale < -MAGNITUDE_MAX => return 0.0,
            _ => {}
        }
        // Writing to a vector does not fail.
        let _ = write!(self.digits, "e{scale}");
        std::str::from_utf8(&self.digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(f64::NAN)
    }

    /// Bytes from a place in a run to the beginning of a later run.
    fn distance(&self, run: u32, from: u32, end: u32) -> u64 {
        if run >= end {
            return 0;
        }
        let skipped = u64::from(from - self.runs[run as usize].start);
        self.bytes_before[end as usize] - self.bytes_before[run as usize] - skipped
    }

    /// Appends digits; where there are too many, a last 1 stands for those that are not 0.
    fn append(&mut self, message: Message<'_>, first: u32, from: u32, end: u32) {
        let mut from = from;
        for at in first..end {
            let run = self.runs[at as usize];
            let bytes = message.bytes(message.tree.text_value[run.text as usize]);
            let room = DIGITS_MAX.saturating_sub(self.digits.len());
            let until = run.end.min(from.saturating_add(room as u32));
            self.digits.extend_from_slice(&bytes[from as usize..until as usize]);
            if until < run.end || self.digits.len() >= DIGITS_MAX {
                let here = run.last_nonzero != NOWHERE && run.last_nonzero >= until;
                if here || self.nonzero[at as usize + 1] < end {
                    self.digits.push(b'1');
                }
                return;
            }
            from = self.runs.get(at as usize + 1).map_or(0, |next| next.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::tree::{MessageTree, Span};

    /// Reads every range of the pieces both ways.
    fn check(pieces: &[&str]) {
        let mut tree = MessageTree::default();
        let mut source = Vec::new();
        for piece in pieces {
            tree.text_value.push(Span::in_message(source.len() as u32, piece.len() as u32));
            source.extend_from_slice(piece.as_bytes());
        }
        let message = Message { tree: &tree, source: &source };
        let mut numbers = LongNumbers::default();
        for start in 0..pieces.len() {
            for end in start..=pieces.len() {
                for notation in [Notation::XPath, Notation::Double] {
                    let expected = notation.read(pieces[start..end].concat().as_bytes());
                    let given = numbers.of_texts(message, start as u32..end as u32, notation);
                    let is_same = given.to_bits() == expected.to_bits()
                        || (given.is_nan() && expected.is_nan());
                    assert!(is_same, "{given} is not {expected}: {:?}", &pieces[start..end]);
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
