//! A place in the text of a program: blanks, comments, names, literals (XQuery 1.0, A.2).

use super::super::Declined;
use crate::xml::parser::{is_ncname_char, is_ncname_start};

/// Result of reading.
pub(super) type Parsed<T> = Result<T, Declined>;

/// A place in a text.
pub(super) struct Scanner<'t> {
    text: &'t str,
    /// Next byte.
    pub(crate) at: usize,
    /// A comment does not end; it has been taken for the rest of the text.
    is_broken: bool,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Scanner { text, at: 0, is_broken: false }
    }

    pub(crate) fn declined(&self, reason: &'static str) -> Declined {
        Declined { offset: self.at, reason }
    }

    /// The byte here, 0 at the end; nothing is passed over.
    #[inline(always)]
    pub(crate) fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The byte so many further on, 0 beyond the end.
    #[inline(always)]
    pub(crate) fn byte_after(&self, distance: usize) -> u8 {
        self.text.as_bytes().get(self.at + distance).copied().unwrap_or(0)
    }

    /// Passes over blanks and comments; gives the byte there.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> u8 {
        let byte = self.byte();
        // Blanks and the parenthesis that may begin a comment are not beyond it.
        if byte > b'(' { byte } else { self.pass_blanks() }
    }

    /// Apart from [`Scanner::peek`] for its loop: inlined twice into one function, rustc 1.95 with
    /// all optimisations lost the step over the byte that `take` had found.
    #[inline(never)]
    fn pass_blanks(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'(' if self.byte_after(1) == b':' => self.comment(),
                byte => return byte,
            }
        }
    }

    /// Passes over white space alone, as inside a tag.
    pub(crate) fn blanks(&mut self) -> bool {
        let start = self.at;
        while matches!(self.byte(), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
        self.at > start
    }

    #[cold]
    fn comment(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0;
        while self.at < bytes.len() {
            match (self.byte(), self.byte_after(1)) {
                (b'(', b':') => depth += 1,
                (b':', b')') => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
        self.is_broken = true;
    }

    /// Whether all has been read.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek();
        self.at >= self.text.len() && !self.is_broken
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        &self.text[start..end]
    }

    /// Moves over a symbol if it is next after blanks.
    #[inline]
    pub(crate) fn take(&mut self, symbol: u8) -> bool {
        let is_here = self.peek() == symbol;
        self.at += usize::from(is_here);
        is_here
    }

    #[inline]
    pub(crate) fn expect(&mut self, symbol: u8, reason: &'static str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.declined(reason)) }
    }

    /// Moves over a string if it is right here.
    pub(crate) fn take_here(&mut self, text: &str) -> bool {
        let is_here =
            self.text.as_bytes()[self.at.min(self.text.len())..].starts_with(text.as_bytes());
        self.at += if is_here { text.len() } else { 0 };
        is_here
    }

    /// Moves over a word if it is next after blanks.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let mark = self.at;
        if self.ncname() == Some(word) {
            return true;
        }
        self.at = mark;
        false
    }

    pub(crate) fn expect_word(&mut self, word: &str, reason: &'static str) -> Parsed<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.declined(reason)) }
    }

    /// A name without a colon after blanks, if one is there.
    #[inline]
    pub(crate) fn ncname(&mut self) -> Option<&'t str> {
        self.peek();
        self.ncname_here()
    }

    /// A name without a colon, if one is right here.
    #[inline]
    pub(crate) fn ncname_here(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let first = self.byte();
        if !(first.is_ascii_alphabetic() || first == b'_' || first >= 0x80) {
            return None;
        }
        let mut at = start;
        while at < bytes.len() && CLASSES[usize::from(bytes[at])] {
            at += 1;
        }
        if at < bytes.len() && bytes[at] >= 0x80 {
            at = start + self.long_name();
        }
        if at == start {
            return None;
        }
        self.at = at;
        Some(&self.text[start..at])
    }

    /// Length of a name with characters beyond ASCII.
    #[cold]
    fn long_name(&self) -> usize {
        let rest = self.rest();
        if !rest.starts_with(is_ncname_start) {
            return 0;
        }
        rest.find(|c| !is_ncname_char(c)).unwrap_or(rest.len())
    }
}

/// ASCII characters of names.
static CLASSES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'-' | b'.');
        byte += 1;
    }
    table
};
