//! Names: prolog, prefixes, variables (XQuery 1.0, 4).

use super::super::syntax::Start;
use super::facts::items;
use super::{Expr, ExprId, Facts, Parser, reads};
use crate::language::grammar::names::name_length;
use crate::language::grammar::scan::Lexis;
use crate::language::query::collapsed;
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::language::xpath::{List, TextRange};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const XML: &str = "http://www.w3.org/XML/1998/namespace";
pub(super) const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
pub(super) const FUNCTIONS: &str = "http://www.w3.org/2005/xpath-functions";
pub(super) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The prefixes that need no declaration, besides `xml` (XQuery 1.0, 4.12).
const PREDECLARED: [(&str, &str); 4] = [
    ("fn", FUNCTIONS),
    ("local", "http://www.w3.org/2005/xquery-local-functions"),
    ("xs", SCHEMA),
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
    pub(super) facts: Facts,
}

impl<'t> Parser<'t> {
    /// Version and declarations.
    pub(super) fn prolog(&mut self) -> Parsed<()> {
        self.version()?;
        let mut declared: Vec<&str> = Vec::new();
        loop {
            let (offset, mark) = (self.scanner.place(), self.scanner.at);
            if !self.scanner.take_word("declare") {
                if self.is_explaining() {
                    self.no_import()?;
                }
                return self.check_declared();
            }
            // A path may begin with this name, as anything may.
            if self.scanner.byte() == b'/' || matches!(self.scanner.peek(), b'(' | b'{' | b':') {
                self.scanner.at = mark;
                return self.check_declared();
            }
            if self.scanner.is_word("function") || self.scanner.is_word("variable") {
                self.declare_value(offset)?;
                continue;
            }
            if !self.declared.is_empty() {
                return Err(Refusal::new(offset, Reason::LateDeclaration, Vec::new()));
            }
            self.declaration(offset, &mut declared)?;
        }
    }

    fn version(&mut self) -> Parsed<()> {
        let mark = self.scanner.place();
        let is_here = self.scanner.is_word("xquery") && {
            self.scanner.ncname();
            self.scanner.is_word("version")
        };
        self.scanner.at = mark;
        if !is_here {
            return Ok(());
        }
        self.scanner.take_word("xquery");
        self.scanner.take_word("version");
        let offset = self.scanner.place();
        let Some(version) = self.literal()? else {
            return Err(self.scanner.unexpected(Reason::ExpectedVersion, &[]));
        };
        if version != "1.0" {
            return Err(Refusal::new(offset, Reason::Version, vec![(&*version).into()]));
        }
        self.scanner.settle();
        if self.scanner.take_word("encoding") {
            let offset = self.scanner.place();
            let Some(encoding) = self.literal()? else {
                return Err(self.scanner.unexpected(Reason::ExpectedEncoding, &[]));
            };
            if !is_encoding(&encoding) {
                return Err(Refusal::new(offset, Reason::NoEncoding, Vec::new()));
            }
            self.scanner.settle();
        }
        self.scanner.expect(b';', "after the version")
    }

    /// Refuses a declaration that begins with another word.
    #[cold]
    fn no_import(&mut self) -> Parsed<()> {
        let Some((offset, word)) = self.scanner.name_token() else { return Ok(()) };
        let following: &[&str] = match word {
            "import" => &["schema", "module"],
            "module" => &["namespace"],
            _ => return Ok(()),
        };
        let at = self.scanner.after_blanks(offset + word.len())?;
        if following.iter().any(|each| self.scanner.text_at(at).starts_with(each)) {
            return Err(Refusal::new(offset, Reason::PrologDeclaration, vec![word.into()]));
        }
        Ok(())
    }

    /// What follows `declare`, which stands at `offset`.
    fn declaration(&mut self, offset: usize, declared: &mut Vec<&'t str>) -> Parsed<()> {
        let (prefix, place, twice);
        if self.scanner.take_word("namespace") {
            place = self.scanner.place();
            match self.scanner.ncname() {
                Some(found) if !self.is_longer_name(found) => prefix = found,
                _ => {
                    self.scanner.at = place;
                    return Err(self.scanner.unexpected(Reason::ExpectedPrefix, &[]));
                }
            }
            self.scanner.settle();
            self.scanner.expect(b'=', "after the prefix")?;
            twice = Reason::PrefixTwice;
        } else if self.scanner.take_word("default") {
            if !self.scanner.take_word("element") {
                let words = format!("default {}", self.scanner.token_value()?);
                return Err(Refusal::new(offset, Reason::Declaration, vec![words.into()]));
            }
            (prefix, place, twice) = ("", self.scanner.place(), Reason::DefaultTwice);
            self.scanner.expect_word("namespace", "")?;
        } else if let Some((_, kind)) = self.scanner.name_token() {
            return Err(Refusal::new(offset, Reason::Declaration, vec![kind.into()]));
        } else {
            return Err(self.scanner.unexpected(Reason::ExpectedDeclaration, &[]));
        }
        let Some(uri) = self.literal()? else {
            return Err(self.scanner.unexpected(Reason::ExpectedUri, &[]));
        };
        let uri = collapsed(&uri);
        if matches!(prefix, "xml" | "xmlns") {
            return Err(Refusal::new(place, Reason::XmlReserved, Vec::new()));
        }
        let is_bound = !uri.is_empty() || prefix.is_empty();
        let uri = self.keep_uri(&uri, place)?;
        if declared.contains(&prefix) {
            return Err(Refusal::new(place, twice, vec![prefix.into()]));
        }
        declared.push(prefix);
        self.bindings.push(Binding { prefix, uri: is_bound.then_some(uri) });
        self.scanner.settle();
        self.scanner.expect(b';', "after the declaration")
    }

    /// Whether a name that has just been read is only the beginning of a token.
    fn is_longer_name(&self, name: &str) -> bool {
        self.scanner.has_local_name()
            || name == "Q" && self.scanner.byte() == b'{' && {
                let start = self.scanner.at - 1;
                name_length(self.scanner.text_at(start)) > 1
            }
    }

    /// The namespace that a prefix is bound to, which stands at `offset`.
    pub(super) fn prefixed(&mut self, prefix: &str, offset: usize) -> Parsed<TextRange> {
        if prefix == "xml" {
            return Ok(self.keep(XML));
        }
        if let Some(binding) = self.bindings.iter().rev().find(|known| known.prefix == prefix) {
            return binding.uri.ok_or_else(|| self.not_bound(prefix, offset));
        }
        let mut given = self.namespaces.iter().rev();
        let uri = match given.find(|(known, _)| known == prefix) {
            Some((_, uri)) => uri.as_str(),
            None => match self.predeclared().iter().find(|(known, _)| *known == prefix) {
                Some(&(_, uri)) => uri,
                None => return Err(self.not_bound(prefix, offset)),
            },
        };
        self.keep_uri(uri, offset)
    }

    #[cold]
    fn not_bound(&self, prefix: &str, offset: usize) -> Box<Refusal> {
        let given = self.namespaces.iter().map(|(known, _)| known.as_str());
        let predeclared = self.predeclared().iter().map(|&(known, _)| known);
        let mut known: BTreeSet<&str> = given.chain(predeclared).collect();
        for binding in &self.bindings {
            if binding.uri.is_some() {
                known.insert(binding.prefix);
            } else {
                known.remove(binding.prefix);
            }
        }
        known.insert("xml");
        known.remove("");
        let details = std::iter::once(prefix).chain(known).map(Detail::from).collect();
        Refusal::new(offset, Reason::PrefixNotBound, details)
    }

    /// What every prefix, and none, is bound to at this place; ascending.
    pub(super) fn namespaces_here(&self) -> Vec<(String, String)> {
        let predeclared = self.predeclared().iter().map(|&(prefix, uri)| (prefix, uri));
        let given = self.namespaces.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str()));
        let mut known: BTreeMap<&str, &str> = predeclared.chain(given).collect();
        for binding in &self.bindings {
            match binding.uri {
                Some(uri) => known.insert(binding.prefix, self.program.text(uri)),
                None => known.remove(binding.prefix),
            };
        }
        known.insert("xml", XML);
        known.into_iter().map(|(prefix, uri)| (prefix.to_owned(), uri.to_owned())).collect()
    }

    fn predeclared(&self) -> &'static [(&'static str, &'static str)] {
        if self.scanner.is_of(Lexis::XQuery) { &PREDECLARED } else { &[] }
    }

    /// A namespace URI that a prefix other than `xml`, or the default, may be bound to.
    fn keep_uri(&mut self, uri: &str, offset: usize) -> Parsed<TextRange> {
        self.check_uri(uri, offset)?;
        Ok(self.keep(uri))
    }

    pub(super) fn check_uri(&self, uri: &str, offset: usize) -> Parsed<()> {
        if matches!(uri, XML | XMLNS) {
            return Err(Refusal::new(offset, Reason::NamespaceReserved, vec![uri.into()]));
        }
        if matches!(collapsed(uri), Cow::Owned(_)) {
            return Err(Refusal::new(offset, Reason::UriWithSpace, Vec::new()));
        }
        if uri.contains(['{', '}']) {
            return Err(Refusal::new(offset, Reason::UriWithBraces, Vec::new()));
        }
        if uri.contains('\u{FFFE}') {
            return Err(Refusal::new(offset, Reason::UriWithSurrogate, Vec::new()));
        }
        Ok(())
    }

    /// The namespace of `Q{uri}`, which stands at `offset`.
    pub(super) fn braced(&mut self, uri: &str, offset: usize) -> Parsed<TextRange> {
        let uri = collapsed(uri);
        if uri == XMLNS {
            return Err(Refusal::new(offset, Reason::NamespaceReserved, vec![(&*uri).into()]));
        }
        Ok(self.keep(&uri))
    }

    /// The namespace of element names without a prefix, one of which stands at `offset`.
    pub(super) fn default_uri(&mut self, offset: usize) -> Parsed<TextRange> {
        if self.bindings.is_empty() && self.namespaces.is_empty() {
            return Ok(TextRange::default());
        }
        if let Some(binding) = self.bindings.iter().rev().find(|known| known.prefix.is_empty()) {
            return Ok(binding.uri.unwrap_or_default());
        }
        match self.namespaces.iter().rev().find(|(known, _)| known.is_empty()) {
            Some((_, uri)) => self.keep_uri(uri, offset),
            None => Ok(TextRange::default()),
        }
    }

    /// The name after a dollar sign, the prefix looked up.
    fn variable_name(&mut self) -> Parsed<(TextRange, &'t str)> {
        let offset = self.scanner.at;
        self.scanner.at += 1;
        self.scanner.blanks();
        let Some(first) = self.scanner.ncname_here() else {
            return Err(Refusal::new(offset, Reason::NoVariableName, Vec::new()));
        };
        let mut name = (TextRange::default(), first);
        if self.scanner.byte() == b':' {
            let mark = self.scanner.at;
            self.scanner.at += 1;
            match self.scanner.ncname_here() {
                Some(local) => name = (self.prefixed(first, offset)?, local),
                None => self.scanner.at = mark,
            }
        }
        self.scanner.settle();
        Ok(name)
    }

    /// A variable's name as messages and trees have it.
    pub(super) fn shown(&self, uri: TextRange, local: &str) -> String {
        let uri = self.program.text(uri);
        // A prefix cannot stand for no namespace.
        if uri.is_empty() { local.to_owned() } else { format!("Q{{{uri}}}{local}") }
    }

    /// The name of a variable that is about to be bound.
    pub(super) fn bound_name(&mut self) -> Parsed<(TextRange, &'t str)> {
        let name = self.declared_name()?;
        if self.is_explaining() {
            for (word, reason) in
                [("as", Reason::VariableType), ("allowing", Reason::AllowingEmpty)]
            {
                if self.scanner.is_word(word) {
                    return Err(Refusal::new(self.scanner.place(), reason, Vec::new()));
                }
            }
        }
        Ok(name)
    }

    /// The name of a variable or a parameter.
    pub(super) fn declared_name(&mut self) -> Parsed<(TextRange, &'t str)> {
        if self.scanner.peek() != b'$' {
            return Err(self.scanner.unexpected(Reason::ExpectedVariable, &[]));
        }
        self.count(self.scanner.at)?;
        self.variable_name()
    }

    /// Brings a variable into scope; gives its slot. Its clause begins at `offset`.
    pub(super) fn bind(
        &mut self,
        uri: TextRange,
        local: &'t str,
        value: Facts,
        offset: usize,
    ) -> u32 {
        let slot = self.program.slots;
        self.program.slots += 1;
        let facts = Facts { reads: reads::VARIABLES, depth: 1, is_costly: false, ..value };
        self.variables.push(Variable { uri, local, slot, facts });
        if self.is_explaining() {
            let name = self.shown(uri, local);
            self.origins(|origins| origins.variables.push((name, offset as u32)));
        }
        slot
    }

    /// `$name`
    pub(super) fn variable(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.at;
        self.count(offset)?;
        let (uri, local) = self.variable_name()?;
        let program = &self.program;
        let is_meant = |known: &&Variable<'_>| {
            known.local == local && program.text(known.uri) == program.text(uri)
        };
        if let Some(found) = self.variables.iter().rev().find(is_meant) {
            let (slot, facts) = (found.slot, found.facts);
            return Ok(self.push(Expr::Variable(slot), facts, offset));
        }
        if let Some(found) = self.declared_variable(uri, local, offset)? {
            return Ok(found);
        }
        if local == "msg" && uri == TextRange::default() {
            return Ok(self.message(offset));
        }
        let bound = self.variables.iter().map(|known| self.shown(known.uri, known.local));
        let bound = bound.chain(self.declared_names());
        let names = std::iter::once(self.shown(uri, local)).chain(bound).map(Detail::from);
        Err(Refusal::new(offset, Reason::NoVariable, names.collect()))
    }

    /// The document node.
    pub(super) fn message(&mut self, offset: usize) -> ExprId {
        let path = Expr::Path { start: Start::Root, steps: List::default() };
        self.push(path, Facts::of(items::NODES).of_message(), offset)
    }

    /// A string literal after blanks, if one is there. The token that follows has not been looked at yet.
    pub(super) fn literal(&mut self) -> Parsed<Option<Cow<'t, str>>> {
        let quote = self.scanner.peek();
        if quote != b'"' && quote != b'\'' {
            return Ok(None);
        }
        let start = self.scanner.at;
        let Some(end) = self.scanner.string_end(start) else {
            return Err(Refusal::new(start, Reason::OpenString, Vec::new()));
        };
        let is_plain = self.scanner.is_of(Lexis::XPath)
            && self.scanner.slice(start, end).contains(['&', '\r']);
        if is_plain {
            // XPath has no references.
            return Err(Refusal::new(start, Reason::NoReference, Vec::new()));
        }
        let value = self.scanner.string_value(start, end)?;
        self.scanner.at = end;
        Ok(Some(value))
    }
}

fn is_encoding(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_part)
}
