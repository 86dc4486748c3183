//! Names: prolog, prefixes, variables (XQuery 1.0, 4).

use super::super::syntax::Start;
use super::facts::items;
use super::scan::Parsed;
use super::{Expr, ExprId, Facts, Language, Parser, reads};
use crate::language::xpath::{List, TextRange};
use std::borrow::Cow;

pub(super) const XML: &str = "http://www.w3.org/XML/1998/namespace";
pub(super) const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
pub(super) const FUNCTIONS: &str = "http://www.w3.org/2005/xpath-functions";
/// The prefixes that need no declaration, besides `xml` (XQuery 1.0, 4.12).
const PREDECLARED: [(&str, &str); 4] = [
    ("fn", FUNCTIONS),
    ("local", "http://www.w3.org/2005/xquery-local-functions"),
    ("xs", "http://www.w3.org/2001/XMLSchema"),
    ("xsi", "http://www.w3.org/2001/XMLSchema-instance"),
];

/// What a prefix is bound to in a part of the text; none if it is bound to nothing there.
pub(super) struct Binding<'t> {
    pub(crate) prefix: &'t str,
    pub(crate) uri: Option<TextRange>,
}

/// A variable in scope.
pub(super) struct Variable<'t> {
    uri: TextRange,
    local: &'t str,
    slot: u32,
    facts: Facts,
}

impl<'t> Parser<'t> {
    /// Version and declarations.
    pub(super) fn prolog(&mut self) -> Parsed<()> {
        self.version()?;
        let mut declared: Vec<&str> = Vec::new();
        loop {
            let mark = self.scanner.at;
            if !self.scanner.take_word("declare") {
                return Ok(());
            }
            // A path may begin with this name, as anything may.
            if self.scanner.byte() == b'/' || matches!(self.scanner.peek(), b'(' | b'{' | b':') {
                self.scanner.at = mark;
                return Ok(());
            }
            self.declaration(&mut declared)?;
        }
    }

    fn version(&mut self) -> Parsed<()> {
        let mark = self.scanner.at;
        if !self.scanner.take_word("xquery") || !self.scanner.take_word("version") {
            self.scanner.at = mark;
            return Ok(());
        }
        if self.literal()?.as_deref() != Some("1.0") {
            return Err(self.scanner.declined("this version is not supported"));
        }
        if self.scanner.take_word("encoding") {
            let Some(encoding) = self.literal()? else {
                return Err(self.scanner.declined("expected an encoding in quotes"));
            };
            if !is_encoding(&encoding) {
                return Err(self.scanner.declined("this cannot be the name of an encoding"));
            }
        }
        self.scanner.expect(b';', "expected ;")
    }

    fn declaration(&mut self, declared: &mut Vec<&'t str>) -> Parsed<()> {
        let prefix = match self.scanner.ncname() {
            Some("namespace") => {
                let Some(prefix) = self.scanner.ncname() else {
                    return Err(self.scanner.declined("expected a prefix"));
                };
                self.scanner.expect(b'=', "expected =")?;
                prefix
            }
            Some("default") => {
                self.scanner.expect_word("element", "this declaration is not supported")?;
                self.scanner.expect_word("namespace", "expected namespace")?;
                ""
            }
            _ => return Err(self.scanner.declined("this declaration is not supported")),
        };
        let Some(uri) = self.literal()? else {
            return Err(self.scanner.declined("expected a namespace URI in quotes"));
        };
        let uri = collapsed(&uri);
        if matches!(prefix, "xml" | "xmlns") {
            return Err(self.scanner.declined("xml and xmlns are reserved"));
        }
        if declared.contains(&prefix) {
            return Err(self.scanner.declined("declared twice"));
        }
        declared.push(prefix);
        let is_bound = !uri.is_empty() || prefix.is_empty();
        let uri = self.keep_uri(&uri)?;
        self.bindings.push(Binding { prefix, uri: is_bound.then_some(uri) });
        self.scanner.expect(b';', "expected ;")
    }

    /// The namespace that a prefix is bound to.
    pub(super) fn prefixed(&mut self, prefix: &str) -> Parsed<TextRange> {
        if prefix == "xml" {
            return Ok(self.keep(XML));
        }
        if let Some(binding) = self.bindings.iter().rev().find(|known| known.prefix == prefix) {
            return binding.uri.ok_or_else(|| self.scanner.declined("this prefix is not bound"));
        }
        let mut given = self.namespaces.iter().rev();
        let uri = match given.find(|(known, _)| known == prefix) {
            Some((_, uri)) => uri.as_str(),
            None => match self.predeclared().iter().find(|(known, _)| *known == prefix) {
                Some(&(_, uri)) => uri,
                None => return Err(self.scanner.declined("this prefix is not bound")),
            },
        };
        self.keep_uri(uri)
    }

    fn predeclared(&self) -> &'static [(&'static str, &'static str)] {
        if self.language == Language::XQuery { &PREDECLARED } else { &[] }
    }

    /// A namespace URI that a prefix other than `xml`, or the default, may be bound to.
    fn keep_uri(&mut self, uri: &str) -> Parsed<TextRange> {
        self.check_uri(uri)?;
        Ok(self.keep(uri))
    }

    pub(super) fn check_uri(&self, uri: &str) -> Parsed<()> {
        let reason = if matches!(uri, XML | XMLNS) {
            "this namespace is reserved"
        } else if uri.contains(['{', '}']) {
            "a namespace URI with braces"
        } else if matches!(collapsed(uri), Cow::Owned(_)) {
            "a namespace URI with white space to be collapsed"
        } else {
            return Ok(());
        };
        Err(self.scanner.declined(reason))
    }

    /// The namespace of `Q{uri}`.
    pub(super) fn braced(&mut self, uri: &str) -> Parsed<TextRange> {
        let uri = collapsed(uri);
        if uri == XMLNS {
            return Err(self.scanner.declined("this namespace is reserved"));
        }
        Ok(self.keep(&uri))
    }

    /// The namespace of element names without a prefix.
    pub(super) fn default_uri(&mut self) -> Parsed<TextRange> {
        if self.bindings.is_empty() && self.namespaces.is_empty() {
            return Ok(TextRange::default());
        }
        if let Some(binding) = self.bindings.iter().rev().find(|known| known.prefix.is_empty()) {
            return Ok(binding.uri.unwrap_or_default());
        }
        match self.namespaces.iter().rev().find(|(known, _)| known.is_empty()) {
            Some((_, uri)) => self.keep_uri(uri),
            None => Ok(TextRange::default()),
        }
    }

    /// The name after a dollar sign, the prefix looked up.
    fn variable_name(&mut self) -> Parsed<(TextRange, &'t str)> {
        self.scanner.at += 1;
        self.scanner.blanks();
        let Some(first) = self.scanner.ncname_here() else {
            return Err(self.scanner.declined("expected a name after $"));
        };
        if self.scanner.byte() == b':' {
            let mark = self.scanner.at;
            self.scanner.at += 1;
            if let Some(local) = self.scanner.ncname_here() {
                return Ok((self.prefixed(first)?, local));
            }
            self.scanner.at = mark;
        }
        Ok((TextRange::default(), first))
    }

    /// The name of a variable that is about to be bound.
    pub(super) fn bound_name(&mut self) -> Parsed<(TextRange, &'t str)> {
        if self.scanner.peek() != b'$' {
            return Err(self.scanner.declined("expected a variable"));
        }
        self.count()?;
        self.variable_name()
    }

    /// Brings a variable into scope; gives its slot.
    pub(super) fn bind(&mut self, uri: TextRange, local: &'t str, value: Facts) -> u32 {
        let slot = self.program.slots;
        self.program.slots += 1;
        let facts = Facts { reads: reads::VARIABLES, depth: 1, is_costly: false, ..value };
        self.variables.push(Variable { uri, local, slot, facts });
        slot
    }

    /// `$name`
    pub(super) fn variable(&mut self) -> Parsed<ExprId> {
        self.count()?;
        let (uri, local) = self.variable_name()?;
        let program = &self.program;
        let is_meant = |known: &&Variable<'_>| {
            known.local == local && program.text(known.uri) == program.text(uri)
        };
        if let Some(found) = self.variables.iter().rev().find(is_meant) {
            let (slot, facts) = (found.slot, found.facts);
            return Ok(self.push(Expr::Variable(slot), facts));
        }
        if local == "msg" && uri == TextRange::default() {
            return Ok(self.message());
        }
        Err(self.scanner.declined("this variable is not declared"))
    }

    /// The document node.
    pub(super) fn message(&mut self) -> ExprId {
        let path = Expr::Path { start: Start::Root, steps: List::default() };
        self.push(path, Facts::of(items::NODES).of_message())
    }

    /// A string literal after blanks, if one is there.
    pub(super) fn literal(&mut self) -> Parsed<Option<Cow<'t, str>>> {
        let quote = self.scanner.peek();
        if quote != b'"' && quote != b'\'' {
            return Ok(None);
        }
        let opened = self.scanner.at;
        self.scanner.at += 1;
        let mut start = self.scanner.at;
        let mut whole: Cow<'t, str> = Cow::Borrowed("");
        loop {
            let Some(len) = self.scanner.rest().bytes().position(|byte| byte == quote) else {
                self.scanner.at = opened;
                return Err(self.scanner.declined("the string that begins here does not end"));
            };
            let end = self.scanner.at + len;
            self.scanner.at = end + 1;
            let is_doubled = self.scanner.byte() == quote;
            let piece = self.scanner.slice(start, end + usize::from(is_doubled));
            if whole.is_empty() {
                whole = Cow::Borrowed(piece);
            } else {
                whole.to_mut().push_str(piece);
            }
            if !is_doubled {
                break;
            }
            self.scanner.at += 1;
            start = self.scanner.at;
        }
        match whole.contains(['&', '\r']) {
            true if self.language == Language::XPath => {
                Err(self.scanner.declined("XPath has no references"))
            }
            true => {
                let mut plain = String::with_capacity(whole.len());
                self.add_plain(&whole, &mut plain)?;
                Ok(Some(Cow::Owned(plain)))
            }
            false => Ok(Some(whole)),
        }
    }

    /// Adds characters with references replaced and line ends as XML has them.
    pub(super) fn add_plain(&self, raw: &str, out: &mut String) -> Parsed<()> {
        let mut rest = raw;
        while let Some(at) = rest.find(['&', '\r']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix('\r') {
                out.push('\n');
                rest = after.strip_prefix('\n').unwrap_or(after);
                continue;
            }
            let reference = rest.find(';').map(|end| &rest[1..end]);
            let Some((reference, character)) =
                reference.and_then(|name| Some((name, referred(name)?)))
            else {
                return Err(self.scanner.declined("this & begins no reference"));
            };
            out.push(character);
            rest = &rest[reference.len() + 2..];
        }
        out.push_str(rest);
        Ok(())
    }
}

/// The URI that a literal means: white space in it counts as in a list of words.
pub(super) fn collapsed(uri: &str) -> Cow<'_, str> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let words: Vec<&str> = uri.split(is_blank).filter(|word| !word.is_empty()).collect();
    let len: usize = words.iter().map(|word| word.len() + 1).sum();
    // Joined by single blanks it would be as long as it is.
    let is_collapsed =
        len == uri.len() + usize::from(!words.is_empty()) && !uri.contains(['\t', '\r', '\n']);
    if is_collapsed { Cow::Borrowed(uri) } else { Cow::Owned(words.join(" ")) }
}

fn is_encoding(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_part)
}

/// What a reference stands for.
fn referred(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#');
    let number = match (name, digits) {
        ("lt", _) => return Some('<'),
        ("gt", _) => return Some('>'),
        ("amp", _) => return Some('&'),
        ("quot", _) => return Some('"'),
        ("apos", _) => return Some('\''),
        (_, Some(digits)) => match digits.strip_prefix('x') {
            Some(hex) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => number_of(hex, 16)?,
            None if digits.bytes().all(|byte| byte.is_ascii_digit()) => number_of(digits, 10)?,
            _ => return None,
        },
        _ => return None,
    };
    char::from_u32(number).filter(|&c| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
    })
}

fn number_of(digits: &str, radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() { Some(0) } else { u32::from_str_radix(significant, radix).ok() }
}
