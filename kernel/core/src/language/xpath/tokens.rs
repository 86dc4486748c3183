//! Tokens of an expression (XPath 1.0, 3.7): blanks, names, literals, numbers, operators.

use super::ast::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::numbers::number;
use crate::xml::parser::{is_ncname_char, is_ncname_start};
use std::fmt;

/// Why a text is not an expression that the evaluator takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte at which it was noticed.
    pub(crate) offset: usize,
    /// What is wrong there.
    pub(crate) reason: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for ParseError {}

/// A binary operator.
#[derive(Clone, Copy)]
pub(super) enum Binary {
    Or,
    And,
    Compare(Comparison),
    Calculate(Arithmetic),
}

impl Binary {
    pub(crate) fn level(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Compare(Comparison::Eq | Comparison::Ne) => 3,
            Binary::Compare(_) => 4,
            Binary::Calculate(Arithmetic::Add | Arithmetic::Subtract) => 5,
            Binary::Calculate(_) => 6,
        }
    }
}

/// Result of reading.
pub(super) type Parsed<T> = Result<T, ParseError>;

/// A place in the text of an expression.
pub(super) struct Tokens<'t> {
    text: &'t str,
    /// Next byte.
    pub(crate) at: usize,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Tokens { text, at: 0 }
    }

    /// Whether all has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub(crate) fn error(&self, reason: &'static str) -> ParseError {
        ParseError { offset: self.at, reason }
    }

    /// The next byte that is no blank; 0 at the end.
    pub(crate) fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Moves over a token if it is the next.
    pub(crate) fn take(&mut self, token: &str) -> bool {
        self.peek();
        let is_here = self.rest().starts_with(token);
        self.at += if is_here { token.len() } else { 0 };
        is_here
    }

    pub(crate) fn expect(&mut self, token: &str, reason: &'static str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { Err(self.error(reason)) }
    }

    /// A name without a colon, if one is here.
    pub(crate) fn ncname(&mut self) -> Option<&'t str> {
        self.peek();
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let mut len = bytes.iter().position(|&byte| !is_plain(byte)).unwrap_or(bytes.len());
        if bytes.get(len).is_some_and(|byte| !byte.is_ascii()) {
            len = rest.find(|c| !is_ncname_char(c)).unwrap_or(rest.len());
        }
        if len == 0 || !rest.starts_with(is_ncname_start) {
            return None;
        }
        self.at += len;
        Some(&rest[..len])
    }

    /// The token after a name that has just been read, without moving.
    pub(crate) fn follows(&mut self, token: &str) -> bool {
        let mark = self.at;
        let is_here = self.take(token);
        self.at = mark;
        is_here
    }

    pub(crate) fn literal(&mut self) -> Parsed<Option<&'t str>> {
        let quote = self.peek();
        if quote != b'\'' && quote != b'"' {
            return Ok(None);
        }
        let rest = &self.text[self.at + 1..];
        let Some(len) = rest.bytes().position(|byte| byte == quote) else {
            return Err(self.error("the literal does not end"));
        };
        self.at += len + 2;
        Ok(Some(&rest[..len]))
    }

    pub(crate) fn number(&mut self) -> Option<f64> {
        let first = self.peek();
        let rest = self.rest().as_bytes();
        let is_digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
        if !(first.is_ascii_digit() || first == b'.' && is_digit(1)) {
            return None;
        }
        let mut len = 0;
        while is_digit(len) {
            len += 1;
        }
        if rest.get(len) == Some(&b'.') {
            len += 1;
            while is_digit(len) {
                len += 1;
            }
        }
        self.at += len;
        Some(number(&rest[..len]))
    }

    pub(crate) fn operator(&mut self) -> Option<(Binary, usize)> {
        self.peek();
        let mark = self.at;
        let word = self.ncname();
        self.at = mark;
        let by_word = match word {
            Some("or") => Some((Binary::Or, 2)),
            Some("and") => Some((Binary::And, 3)),
            Some("div") => Some((Binary::Calculate(Arithmetic::Divide), 3)),
            Some("mod") => Some((Binary::Calculate(Arithmetic::Modulo), 3)),
            _ => None,
        };
        by_word.or_else(|| {
            Some(match self.rest().as_bytes() {
                [b'!', b'=', ..] => (Binary::Compare(Comparison::Ne), 2),
                [b'<', b'=', ..] => (Binary::Compare(Comparison::Le), 2),
                [b'>', b'=', ..] => (Binary::Compare(Comparison::Ge), 2),
                [b'=', ..] => (Binary::Compare(Comparison::Eq), 1),
                [b'<', ..] => (Binary::Compare(Comparison::Lt), 1),
                [b'>', ..] => (Binary::Compare(Comparison::Gt), 1),
                [b'+', ..] => (Binary::Calculate(Arithmetic::Add), 1),
                [b'-', ..] => (Binary::Calculate(Arithmetic::Subtract), 1),
                [b'*', ..] => (Binary::Calculate(Arithmetic::Multiply), 1),
                _ => return None,
            })
        })
    }
}
