//! A place in a text: blanks, comments, names, literals (XPath 1.0, 3.7; XQuery 1.0, A.2).
//!
//! Parsers read characters. A refusal of XQuery speaks of tokens, and the first one from the left is the one that
//! counts; so where refusals are explained, the token that comes next is looked at whenever one has been read.

use super::names::{name_length, ncname_length, qname_length};
use super::references::{is_xml_character, referred};
use crate::language::comparison::Comparison;
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::xml::parser::is_ncname_start;
use std::borrow::Cow;

/// By which rule a text is cut into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lexis {
    /// That of XPath 1.0, which has no comments, no pragmas and no references.
    XPath,
    XQuery,
}

/// Kinds of tokens of XQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Name,
    Variable,
    String,
    Number,
    Symbol,
    End,
}

/// Symbols of more than one character.
const SYMBOLS: [&str; 11] = [":=", "::", "//", "..", "<<", ">>", "<=", ">=", "!=", "||", "=>"];

/// A place in a text.
pub(crate) struct Scanner<'t> {
    text: &'t str,
    lexis: Lexis,
    /// Next byte.
    pub(crate) at: usize,
    /// A comment does not end; it has been taken for the rest of the text.
    is_broken: bool,
    /// Tokens are looked at as soon as they come next.
    is_explaining: bool,
    /// The first token that is none.
    fault: Option<Box<Refusal>>,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str, lexis: Lexis, is_explaining: bool) -> Self {
        Scanner { text, lexis, at: 0, is_broken: false, is_explaining, fault: None }
    }

    /// Whether the text is cut into words by a rule.
    pub(crate) fn is_of(&self, lexis: Lexis) -> bool {
        self.lexis == lexis
    }

    /// The refusal that comes first: that of a token, or one that was noticed later.
    pub(crate) fn first_fault(&mut self, later: Box<Refusal>) -> Box<Refusal> {
        self.fault.take().unwrap_or(later)
    }

    /// A token has been read: looks at the one that comes next, where refusals are explained.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        if self.is_explaining {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        if self.fault.is_none() {
            self.fault = self.next_token().err();
        }
    }

    /// The token after blanks: where it begins, its kind, where it ends.
    pub(crate) fn next_token(&self) -> Parsed<(usize, Token, usize)> {
        let start = self.after_blanks(self.at)?;
        let (token, end) = self.token(start)?;
        Ok((start, token, end))
    }

    /// The first place at or after another that is neither white space nor comment.
    pub(crate) fn after_blanks(&self, mut at: usize) -> Parsed<usize> {
        loop {
            let rest = &self.text[at..];
            let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
            at += blanks;
            if !self.text[at..].starts_with("(:") {
                return Ok(at);
            }
            let Some(end) = comment_end(self.text, at) else {
                return Err(Refusal::new(at, Reason::OpenComment, Vec::new()));
            };
            at = end;
        }
    }

    /// The token that begins right here, and where it ends.
    fn token(&self, start: usize) -> Parsed<(Token, usize)> {
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start)) };
        let refused = |at: usize, reason| Err(Refusal::new(at, reason, Vec::new()));
        match first {
            '$' => {
                let name = rest[1..].trim_start_matches(is_blank);
                let skipped = rest.len() - name.len();
                match qname_length(name) {
                    0 => refused(start, Reason::NoVariableName),
                    length => Ok((Token::Variable, start + skipped + length)),
                }
            }
            '"' | '\'' => {
                let Some(end) = self.string_end(start) else {
                    return refused(start, Reason::OpenString);
                };
                self.string_value(start, end)?;
                Ok((Token::String, end))
            }
            '.' | '0'..='9' if first != '.' || rest[1..].starts_with(is_digit) => {
                let end = start + number_length(rest);
                if self.text[end..].starts_with(is_ncname_start) {
                    return refused(end, Reason::NumberIntoName);
                }
                Ok((Token::Number, end))
            }
            _ if is_ncname_start(first) => Ok((Token::Name, start + name_length(rest))),
            _ if rest.starts_with("(#") || SYMBOLS.iter().any(|each| rest.starts_with(each)) => {
                Ok((Token::Symbol, start + 2))
            }
            _ if "()[]{}.,@/<>=+-*|!;?:".contains(first) => Ok((Token::Symbol, start + 1)),
            _ => refused(start, Reason::NoToken),
        }
    }

    /// One past the quote that ends the string that begins here. A doubled quote stands for one, unless no other is
    /// left to end the string.
    pub(crate) fn string_end(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let quote = bytes[start];
        let (mut at, mut last) = (start + 1, None);
        while let Some(length) = bytes[at..].iter().position(|&byte| byte == quote) {
            let end = at + length + 1;
            if bytes.get(end) != Some(&quote) {
                return Some(end);
            }
            last = Some(end);
            at = end + 1;
        }
        last
    }

    /// What the string between two places stands for.
    pub(crate) fn string_value(&self, start: usize, end: usize) -> Parsed<Cow<'t, str>> {
        let raw = &self.text[start + 1..end - 1];
        let quote = &self.text[start..start + 1];
        let doubled = [quote, quote].concat();
        let raw = match raw.contains(quote) {
            true => Cow::Owned(raw.replace(&doubled, quote)),
            false => Cow::Borrowed(raw),
        };
        if !raw.contains(['&', '\r']) {
            return Ok(raw);
        }
        let mut plain = String::with_capacity(raw.len());
        self.add_plain(&raw, start + 1, &mut plain)?;
        Ok(Cow::Owned(plain))
    }

    /// Adds characters with references replaced and line ends as XML has them.
    ///
    /// They stand at `start`; after a doubled quote or a line end of two characters, the place of a refusal is a little
    /// off.
    pub(crate) fn add_plain(&self, raw: &str, start: usize, out: &mut String) -> Parsed<()> {
        let mut rest = raw;
        let begin = out.len();
        // Characters that references have taken, beyond those that they stand for.
        let mut more = 0;
        while let Some(at) = rest.find(['&', '\r']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix('\r') {
                out.push('\n');
                rest = after.strip_prefix('\n').unwrap_or(after);
                continue;
            }
            match referred(rest) {
                Some((length, Some(character))) => {
                    out.push(character);
                    more += length - 1;
                    rest = &rest[length..];
                }
                wrong => {
                    let characters = out[begin..].chars().count() + more;
                    let place = self.text[start..].char_indices().nth(characters);
                    let offset = place.map_or(self.text.len(), |(at, _)| start + at);
                    return Err(match wrong {
                        Some((length, _)) => {
                            let details = vec![Detail::from(&rest[..length])];
                            Refusal::new(offset, Reason::NoReferredCharacter, details)
                        }
                        None => Refusal::new(offset, Reason::NoReference, Vec::new()),
                    });
                }
            }
        }
        out.push_str(rest);
        Ok(())
    }

    /// The refusal of what comes next after blanks, where something else is expected.
    #[cold]
    pub(crate) fn unexpected(&self, reason: Reason, details: &[&str]) -> Box<Refusal> {
        match self.next_token() {
            Ok((start, _, end)) => expected(start, end, reason, details),
            Err(fault) => fault,
        }
    }

    /// The refusal of the character at a place, where something else is expected.
    #[cold]
    pub(crate) fn wrong(&self, at: usize, reason: Reason, details: &[&str]) -> Box<Refusal> {
        let length = self.text[at..].chars().next().map_or(0, char::len_utf8);
        expected(at, at + length, reason, details)
    }

    /// The value of the token that comes next: of a string what it stands for, of a variable its name.
    #[cold]
    pub(crate) fn token_value(&self) -> Parsed<Cow<'t, str>> {
        let (start, token, end) = self.next_token()?;
        match token {
            Token::String => self.string_value(start, end),
            Token::Variable => {
                Ok(Cow::Borrowed(self.text[start + 1..end].trim_start_matches(is_blank)))
            }
            _ => Ok(Cow::Borrowed(&self.text[start..end])),
        }
    }

    /// The token that comes next, if it is a name, as it is written.
    #[cold]
    pub(crate) fn name_token(&self) -> Option<(usize, &'t str)> {
        match self.next_token() {
            Ok((start, Token::Name, end)) => Some((start, &self.text[start..end])),
            _ => None,
        }
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
        // Blanks are not beyond a blank, and the parenthesis may begin a comment.
        if byte > b' ' && byte != b'(' { byte } else { self.pass_blanks() }
    }

    /// Passes over blanks and comments; gives the place there.
    #[inline(always)]
    pub(crate) fn place(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Apart from [`Scanner::peek`] for its loop: inlined twice into one function, rustc 1.95 with
    /// all optimisations lost the step over the byte that `take` had found.
    #[inline(never)]
    fn pass_blanks(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'(' if self.byte_after(1) == b':' && self.is_of(Lexis::XQuery) => self.comment(),
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
        match comment_end(self.text, self.at) {
            Some(end) => self.at = end,
            None => {
                self.settle();
                self.at = self.text.len();
                self.is_broken = true;
            }
        }
    }

    /// Whether all has been read.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek();
        self.at >= self.text.len() && !self.is_broken
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(crate) fn text_at(&self, at: usize) -> &'t str {
        &self.text[at..]
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        &self.text[start..end]
    }

    /// Whether the symbol of one character is next after blanks, and not the beginning of a longer one.
    #[inline]
    pub(crate) fn is_symbol(&mut self, symbol: u8) -> bool {
        self.peek() == symbol
            && !(symbol == b'(' && self.byte_after(1) == b'#' && self.is_of(Lexis::XQuery))
            && !(symbol == b'=' && self.byte_after(1) == b'>')
    }

    /// Moves over a symbol if it is next after blanks.
    #[inline]
    pub(crate) fn take(&mut self, symbol: u8) -> bool {
        let is_here = self.is_symbol(symbol);
        if is_here {
            self.skip(1);
        }
        is_here
    }

    /// Moves over a token of so many bytes.
    #[inline]
    pub(crate) fn skip(&mut self, length: usize) {
        self.at += length;
        self.settle();
    }

    /// Moves over a symbol, which belongs to something.
    #[inline]
    pub(crate) fn expect(&mut self, symbol: u8, of: &'static str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.no_symbol(symbol, of)) }
    }

    #[cold]
    fn no_symbol(&self, symbol: u8, of: &'static str) -> Box<Refusal> {
        let symbol = char::from(symbol).to_string();
        self.unexpected(Reason::ExpectedSymbol, &[&symbol, of])
    }

    /// Moves over a string if it is right here; what comes next need not be a token.
    #[inline]
    pub(crate) fn take_here(&mut self, text: &str) -> bool {
        let is_here =
            self.text.as_bytes()[self.at.min(self.text.len())..].starts_with(text.as_bytes());
        self.at += if is_here { text.len() } else { 0 };
        is_here
    }

    /// Whether a word is the name that is next after blanks.
    pub(crate) fn is_word(&mut self, word: &str) -> bool {
        let mark = self.at;
        let is_here = self.pass_word(word);
        self.at = mark;
        is_here
    }

    /// Moves over a word if it is the name that is next after blanks.
    #[inline]
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let mark = self.at;
        let is_here = self.pass_word(word);
        if is_here {
            self.settle();
        } else {
            self.at = mark;
        }
        is_here
    }

    #[inline]
    fn pass_word(&mut self, word: &str) -> bool {
        // Most often something else begins here, of which no more is looked at than that.
        if self.peek() != word.as_bytes()[0] || !self.rest().starts_with(word) {
            return false;
        }
        let length = ncname_length(self.rest());
        self.at += length;
        length == word.len() && !self.has_local_name()
    }

    /// Moves over a word, which belongs to something.
    pub(crate) fn expect_word(&mut self, word: &'static str, of: &'static str) -> Parsed<()> {
        if self.take_word(word) {
            Ok(())
        } else {
            Err(self.unexpected(Reason::ExpectedWord, &[word, of]))
        }
    }

    /// What stands between the quotes that are next after blanks, where a string has neither references nor doubled
    /// quotes.
    #[inline]
    pub(crate) fn literal(&mut self) -> Option<&'t str> {
        let quote = self.peek();
        if !matches!(quote, b'\'' | b'"') {
            return None;
        }
        let rest = &self.text[self.at + 1..];
        let length = memchr::memchr(quote, rest.as_bytes())?;
        self.at += length + 2;
        Some(&rest[..length])
    }

    /// The number that is next after blanks, where a number has no exponent.
    #[inline]
    pub(crate) fn decimal(&mut self) -> Option<f64> {
        self.peek();
        let rest = self.rest();
        let length = decimal_length(rest);
        let value = rest[..length].parse().ok()?;
        self.at += length;
        Some(value)
    }

    /// The comparison of XPath whose symbol is next after blanks, and the length of the symbol.
    #[inline]
    pub(crate) fn comparison(&mut self) -> Option<(Comparison, usize)> {
        Some(match (self.peek(), self.byte_after(1)) {
            (b'=', _) => (Comparison::Eq, 1),
            (b'!', b'=') | (b'<', b'>') => (Comparison::Ne, 2),
            (b'<', b'=') => (Comparison::Le, 2),
            (b'<', _) => (Comparison::Lt, 1),
            (b'>', b'=') => (Comparison::Ge, 2),
            (b'>', _) => (Comparison::Gt, 1),
            _ => return None,
        })
    }

    /// Whether the name that ends here is a prefix.
    #[inline]
    pub(crate) fn has_local_name(&self) -> bool {
        self.byte() == b':'
            && self.text[self.at + 1..].starts_with(|c| c == '*' || is_ncname_start(c))
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
        let start = self.at;
        self.at += ncname_length(self.rest());
        (self.at > start).then(|| &self.text[start..self.at])
    }
}

#[cold]
fn expected(start: usize, end: usize, reason: Reason, details: &[&str]) -> Box<Refusal> {
    let details = details.iter().map(|&detail| Detail::from(detail)).collect();
    Box::new(Refusal { offset: start, end, reason, details })
}

/// Where the comment ends that begins at a place.
pub(crate) fn comment_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0);
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'(', b':') => depth += 1,
            (b':', b')') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Length of digits, a point and digits; the point and the digits on one side may be missing.
pub(crate) fn decimal_length(rest: &str) -> usize {
    let length = digits_length(rest);
    if rest[length..].starts_with('.') {
        length + 1 + digits_length(&rest[length + 1..])
    } else {
        length
    }
}

fn digits_length(rest: &str) -> usize {
    rest.bytes().take_while(u8::is_ascii_digit).count()
}

/// Length of a number of XQuery, which may have an exponent.
pub(crate) fn number_length(rest: &str) -> usize {
    let mut length = decimal_length(rest);
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits_length(&rest[length + 1 + sign..]);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

/// Offset of the first character that XML does not have.
pub(crate) fn no_character(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // 0xEF begins U+FFFE and U+FFFF, among others that are looked at again.
    let is_odd = |byte: u8| (byte < 0x20 && !matches!(byte, 9 | 10 | 13)) | (byte == 0xEF);
    if !bytes.iter().fold(false, |found, &byte| found | is_odd(byte)) {
        return None;
    }
    text.find(|c| !is_xml_character(c))
}
