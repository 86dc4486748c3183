//! Reading tokens of a query: blanks, names, numbers, string literals.
//!
//! A [`Scanner`] moves over the text by bytes; it decodes characters only in names beyond ASCII.

use crate::language::numbers::number;
use crate::xml::parser::{is_ncname_char, is_ncname_start};

const NAME_START: u8 = 1;
const NAME_CHAR: u8 = 2;
const BLANK: u8 = 4;

/// What each byte can be; bytes beyond ASCII are decoded before they count.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let letter = (byte as u8).is_ascii_alphabetic() || byte as u8 == b'_';
        let other = (byte as u8).is_ascii_digit() || byte as u8 == b'-' || byte as u8 == b'.';
        if letter {
            table[byte] = NAME_START | NAME_CHAR;
        } else if other {
            table[byte] = NAME_CHAR;
        }
        byte += 1;
    }
    table[b' ' as usize] = BLANK;
    table[b'\t' as usize] = BLANK;
    table[b'\r' as usize] = BLANK;
    table[b'\n' as usize] = BLANK;
    table
}

/// Length of a name without a colon (production 4 of Namespaces in XML 1.0); 0 if none is here.
#[inline]
pub(crate) fn ncname_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let Some(&first) = bytes.first() else { return 0 };
    if CLASSES[usize::from(first)] & NAME_START == 0 && first < 128 {
        return 0;
    }
    let is_plain = |byte: u8| CLASSES[usize::from(byte)] & NAME_CHAR != 0;
    let mut length = 0;
    while length < bytes.len() && is_plain(bytes[length]) {
        length += 1;
    }
    if length < bytes.len() && bytes[length] >= 128 { length_beyond_ascii(text) } else { length }
}

#[cold]
fn length_beyond_ascii(text: &str) -> usize {
    if !text.starts_with(is_ncname_start) {
        return 0;
    }
    text.find(|c| !is_ncname_char(c)).unwrap_or(text.len())
}

/// A name as written, from one that may have a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written<'t> {
    Plain(&'t str),
    Prefixed(&'t str, &'t str),
    /// `prefix:*`
    AnyIn(&'t str),
    /// `Q{uri}local`; no local name is `Q{uri}*`.
    Braced(&'t str, Option<&'t str>),
}

/// The name that a text begins with, and its length. Without a local name after it, a prefix or `Q` is a plain name.
pub(crate) fn written_name(text: &str) -> Option<(Written<'_>, usize)> {
    let length = ncname_length(text);
    let (first, rest) = text.split_at(length);
    // The local name that begins so many bytes after the first.
    let local = |distance: usize| {
        let rest = &rest[distance..];
        match ncname_length(rest) {
            0 => rest.starts_with('*').then_some((None, length + distance + 1)),
            local => Some((Some(&rest[..local]), length + distance + local)),
        }
    };
    let longer = match rest.as_bytes() {
        [b'{', ..] if first == "Q" => {
            let end = rest[1..].find(['{', '}']).map(|end| end + 1);
            let end = end.filter(|&end| rest.as_bytes()[end] == b'}');
            end.and_then(|end| {
                local(end + 1)
                    .map(|(local, length)| (Written::Braced(&rest[1..end], local), length))
            })
        }
        [b':', ..] if length > 0 => local(1).map(|(local, length)| match local {
            Some(local) => (Written::Prefixed(first, local), length),
            None => (Written::AnyIn(first), length),
        }),
        _ => None,
    };
    longer.or_else(|| (length > 0).then_some((Written::Plain(first), length)))
}

/// A place in a query.
pub(super) struct Scanner<'q> {
    text: &'q str,
    at: usize,
}

impl<'q> Scanner<'q> {
    pub(super) fn new(text: &'q str) -> Self {
        Scanner { text, at: 0 }
    }

    /// The byte here; 0 at the end (no token begins with it).
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// The byte some places on; 0 beyond the end.
    #[inline]
    pub(super) fn peek_at(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Moves on over bytes that have been looked at.
    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// This place, to come back to.
    pub(super) fn mark(&self) -> usize {
        self.at
    }

    /// Goes back to a place.
    pub(super) fn reset(&mut self, mark: usize) {
        self.at = mark;
    }

    /// Whether all of the text has been read.
    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    #[inline]
    pub(super) fn blanks(&mut self) {
        while CLASSES[self.peek() as usize] & BLANK != 0 {
            self.at += 1;
        }
    }

    /// Moves over a byte if it is here.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == byte;
        self.at += usize::from(is_here);
        is_here
    }

    /// Moves over a name that is exactly this word.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let rest = &self.text[self.at..];
        // Most often something else begins here, of which no more is looked at than that.
        let is_here = rest.starts_with(word) && ncname_length(rest) == word.len();
        self.at += if is_here { word.len() } else { 0 };
        is_here
    }

    /// Moves over `name()`, blanks allowed before and between the parentheses.
    pub(super) fn call(&mut self, name: &str) -> bool {
        let start = self.at;
        if self.word(name) && self.parentheses() {
            return true;
        }
        self.at = start;
        false
    }

    /// Moves over `()`, blanks allowed before and in between.
    pub(super) fn parentheses(&mut self) -> bool {
        self.blanks();
        if !self.take(b'(') {
            return false;
        }
        self.blanks();
        self.take(b')')
    }

    /// A name without a colon.
    #[inline]
    pub(super) fn ncname(&mut self) -> Option<&'q str> {
        let start = self.at;
        self.at += ncname_length(&self.text[start..]);
        (self.at > start).then(|| &self.text[start..self.at])
    }

    /// `*` or an ASCII name directly before a slash or the end, and the number of slashes taken.
    #[inline(always)]
    pub(super) fn bare_step(&mut self) -> Option<(&'q str, usize)> {
        let rest = &self.text.as_bytes()[self.at..];
        let first = *rest.first()?;
        let mut length = 1;
        if CLASSES[first as usize] & NAME_START != 0 {
            while length < rest.len() && CLASSES[rest[length] as usize] & NAME_CHAR != 0 {
                length += 1;
            }
        } else if first != b'*' {
            return None;
        }
        let slashes = match (rest.get(length), rest.get(length + 1)) {
            (None, _) => 0,
            (Some(b'/'), Some(b'/')) => 2,
            // A predicate after a slash would belong to this step.
            (Some(b'/'), Some(b'[' | b' ' | b'\t' | b'\r' | b'\n')) => return None,
            (Some(b'/'), _) => 1,
            _ => return None,
        };
        let step = &self.text[self.at..self.at + length];
        self.at += length + slashes;
        Some((step, slashes))
    }

    /// What stands between `Q{` and `}`; the place is at `Q{`.
    pub(super) fn braced_uri(&mut self) -> Option<&'q str> {
        let rest = &self.text[self.at + 2..];
        let length = rest.find(['{', '}'])?;
        if rest.as_bytes()[length] == b'{' {
            return None;
        }
        self.at += length + 3;
        Some(&rest[..length])
    }

    /// A string literal.
    pub(super) fn literal(&mut self) -> Option<&'q str> {
        let quote = self.peek();
        if quote != b'\'' && quote != b'"' {
            return None;
        }
        let rest = &self.text[self.at + 1..];
        let length = memchr::memchr(quote, rest.as_bytes())?;
        self.at += length + 2;
        Some(&rest[..length])
    }

    /// Whether a number begins here, its sign included.
    pub(super) fn is_number(&self) -> bool {
        match self.peek() {
            b'0'..=b'9' | b'-' => true,
            b'.' => self.peek_at(1).is_ascii_digit(),
            _ => false,
        }
    }

    /// A finite number with one minus or none.
    pub(super) fn number(&mut self) -> Option<f64> {
        let is_negative = self.take(b'-');
        if is_negative {
            self.blanks();
        }
        let start = self.at;
        self.digits();
        if self.at > start {
            if self.take(b'.') {
                self.digits();
            }
        } else if self.take(b'.') {
            let point = self.at;
            self.digits();
            if self.at == point {
                return None;
            }
        } else {
            return None;
        }
        let value: f64 = self.text[start..self.at].parse().ok()?;
        let signed = if is_negative { -value } else { value };
        // Adding zero makes a negative zero positive.
        value.is_finite().then_some(signed + 0.0)
    }

    /// Moves over digits.
    pub(super) fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }
}

/// The number that a string is (XPath 1.0, 4.4), if it is a finite one.
pub(super) fn number_of(text: &str) -> Option<f64> {
    // Adding zero makes a negative zero positive.
    let value = number(text.as_bytes()) + 0.0;
    value.is_finite().then_some(value)
}
