//! Direct element constructors (XQuery 1.0, 3.7.1).

use super::super::syntax::{Attribute, Declaration, Element, Expr, ExprId, Name, Part};
use super::facts::items;
use super::names::{Binding, XML};
use super::{Facts, Parser};
use crate::language::grammar::names::qname_length;
use crate::language::numbers::is_blank;
use crate::language::query::collapsed;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::xpath::{List, TextRange};
use std::borrow::Cow;
use std::fmt;

/// A name as written in a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Written<'t> {
    prefix: &'t str,
    local: &'t str,
}

impl<'t> Written<'t> {
    /// The name that a text is.
    pub(super) fn of(text: &'t str) -> Option<Written<'t>> {
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let is_name = !text.is_empty() && qname_length(text) == text.len();
        is_name.then_some(Written { prefix, local })
    }

    /// Whether an attribute of this name declares a namespace.
    pub(super) fn is_declaration(self) -> bool {
        self.prefix == "xmlns" || (self.prefix.is_empty() && self.local == "xmlns")
    }
}

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.prefix.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}", self.prefix, self.local)
    }
}

/// The text between two tags or braces, at the end of the program's text.
struct Run {
    start: u32,
    /// Where its first piece stands.
    offset: Option<usize>,
    /// It is kept even if it is white space: something of it was written as a reference or a CDATA
    /// section, or it is not white space at all.
    is_kept: bool,
}

/// Parts of a value or of content, and where they begin.
pub(super) type Parts = Vec<(Part, u32)>;

/// A start tag while it is read.
#[derive(Default)]
struct Tag<'t> {
    attributes: Vec<(Written<'t>, usize, Parts)>,
    declarations: Vec<(&'t str, TextRange)>,
    has_expressions: bool,
    facts: Facts,
}

impl<'t> Parser<'t> {
    /// A constructor in an expression; what is here is its `<`.
    pub(super) fn constructor(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.at;
        let (element, facts) = self.element()?;
        self.scanner.settle();
        Ok(self.push(Expr::Element(element), facts, offset))
    }

    fn element(&mut self) -> Parsed<(u32, Facts)> {
        let offset = self.scanner.at;
        if self.scanner.rest().starts_with("<!--") {
            return Err(Refusal::new(offset, Reason::CommentConstructor, Vec::new()));
        }
        if self.scanner.rest().starts_with("<?") {
            return Err(Refusal::new(offset, Reason::InstructionConstructor, Vec::new()));
        }
        self.scanner.at += 1;
        let Some(written) = self.tag_name() else {
            return Err(self.scanner.wrong(offset + 1, Reason::ExpectedElementName, &[]));
        };
        self.count(offset)?;
        self.enter(offset)?;
        let bindings = self.bindings.len();
        let number = self.program.elements.len() as u32;
        self.program.elements.push(Element::default());
        self.origins(|origins| origins.elements.push(offset as u32));
        let outer = self.constructor.replace(number);
        let mut tag = Tag {
            facts: Facts { items: items::BUILT, depth: 1, ..Facts::default() },
            ..Tag::default()
        };
        self.attributes(&mut tag)?;
        let name = self.constructed_name(written, false, offset + 1)?;
        let attributes = self.resolve_attributes(&tag)?;
        let start = self.program.declarations.len() as u32;
        // In the order that says nothing about how they were written.
        tag.declarations.sort_unstable_by_key(|&(prefix, _)| prefix);
        for &(prefix, uri) in &tag.declarations {
            let prefix = self.keep(prefix);
            self.program.declarations.push(Declaration { prefix, uri });
        }
        let namespaces = List { start, end: self.program.declarations.len() as u32 };
        let mut content = List::default();
        let mut facts = tag.facts;
        if !self.scanner.take_here("/>") {
            self.scanner.at += 1;
            content = self.content(&mut facts, offset)?;
            self.end_tag(written)?;
        }
        self.bindings.truncate(bindings);
        self.constructor = outer;
        self.leave();
        self.program.elements[number as usize] =
            Element { name, computed: None, attributes, namespaces, outer, content };
        Ok((number, facts))
    }

    fn tag_name(&mut self) -> Option<Written<'t>> {
        let first = self.scanner.ncname_here()?;
        if self.scanner.byte() == b':' {
            let mark = self.scanner.at;
            self.scanner.at += 1;
            if let Some(local) = self.scanner.ncname_here() {
                return Some(Written { prefix: first, local });
            }
            self.scanner.at = mark;
        }
        Some(Written { prefix: "", local: first })
    }

    pub(super) fn constructed_name(
        &mut self,
        written: Written<'_>,
        is_attribute: bool,
        offset: usize,
    ) -> Parsed<Name> {
        let uri = match written.prefix {
            "xmlns" => return Err(Refusal::new(offset, Reason::XmlnsReserved, Vec::new())),
            "" if is_attribute => TextRange::default(),
            "" => self.default_uri(offset)?,
            prefix => self.prefixed(prefix, offset)?,
        };
        let prefix = self.keep(written.prefix);
        Ok(Name { prefix, uri, local: self.keep(written.local) })
    }

    /// Reads attributes and declarations, up to the `>` or `/>`.
    fn attributes(&mut self, tag: &mut Tag<'t>) -> Parsed<()> {
        loop {
            let has_blank = self.scanner.blanks();
            let offset = self.scanner.at;
            match (self.scanner.byte(), self.scanner.byte_after(1)) {
                (b'>', _) | (b'/', b'>') => return Ok(()),
                _ if has_blank => {}
                _ => return Err(self.scanner.wrong(offset, Reason::ExpectedBlank, &[])),
            }
            let Some(written) = self.tag_name() else {
                return Err(self.scanner.wrong(offset, Reason::ExpectedAttribute, &[]));
            };
            self.scanner.blanks();
            if !self.scanner.take_here("=") {
                return Err(self.no_character("="));
            }
            self.scanner.blanks();
            let declared = match written {
                Written { prefix: "xmlns", local } => Some(local),
                Written { prefix: "", local: "xmlns" } => Some(""),
                _ => None,
            };
            let parts = self.value(tag, declared.is_some())?;
            match declared {
                Some(prefix) => self.declare(tag, prefix, &parts, offset)?,
                None => {
                    self.count(offset)?;
                    tag.attributes.push((written, offset, parts));
                }
            }
        }
    }

    /// The refusal of the character that is here.
    #[cold]
    fn no_character(&self, symbol: &str) -> Box<Refusal> {
        self.scanner.wrong(self.scanner.at, Reason::ExpectedSymbol, &[symbol, ""])
    }

    /// A value in quotes.
    fn value(&mut self, tag: &mut Tag<'t>, is_declaration: bool) -> Parsed<Parts> {
        let opened = self.scanner.at;
        let quote = self.scanner.byte();
        if quote != b'"' && quote != b'\'' {
            return Err(self.scanner.wrong(opened, Reason::ExpectedValue, &[]));
        }
        self.scanner.at += 1;
        let mut parts = Vec::new();
        let mut start = self.program.text.len() as u32;
        let mut begin = self.scanner.at;
        loop {
            let rest = self.scanner.rest();
            let is_stop = |byte: u8| byte == quote || matches!(byte, b'<' | b'{' | b'}');
            let Some(len) = rest.bytes().position(is_stop) else {
                return Err(Refusal::new(opened, Reason::OpenValue, Vec::new()));
            };
            self.add_value(&rest[..len])?;
            self.scanner.at += len;
            let offset = self.scanner.at;
            let found = self.scanner.byte();
            if found == b'<' {
                return Err(self.no_character("&lt;"));
            }
            if self.scanner.byte_after(1) == found {
                self.program.text.push(char::from(found));
                self.scanner.at += 2;
                continue;
            }
            if found == b'}' {
                return Err(Refusal::new(offset, Reason::LoneBrace, Vec::new()));
            }
            let end = self.program.text.len() as u32;
            if end > start {
                parts.push((Part::Text(TextRange { start, end }), begin as u32));
            }
            if found == quote {
                self.scanner.at += 1;
                return Ok(parts);
            }
            if is_declaration {
                return Err(Refusal::new(offset, Reason::ComputedNamespace, Vec::new()));
            }
            tag.has_expressions = true;
            let id = self.enclosed()?;
            self.need_value(id)?;
            tag.facts = tag.facts.around(self.facts(id));
            parts.push((Part::Enclosed(id), offset as u32));
            start = self.program.text.len() as u32;
            begin = self.scanner.at;
        }
    }

    /// Adds a piece of a value; white space is a blank there, unless it is written as a reference.
    fn add_value(&mut self, raw: &str) -> Parsed<()> {
        if !raw.contains(['&', '\t', '\r', '\n']) {
            self.program.text.push_str(raw);
            return Ok(());
        }
        let spaced = raw.replace("\r\n", " ").replace(['\t', '\r', '\n'], " ");
        self.scanner.add_plain(&spaced, self.scanner.at, &mut self.program.text)
    }

    fn declare(
        &mut self,
        tag: &mut Tag<'t>,
        prefix: &'t str,
        parts: &[(Part, u32)],
        offset: usize,
    ) -> Parsed<()> {
        let refused = |reason, details| Err(Refusal::new(offset, reason, details));
        if tag.has_expressions {
            return refused(Reason::LateNamespace, Vec::new());
        }
        let mut range = match parts {
            [(Part::Text(range), _)] => *range,
            _ => TextRange::default(),
        };
        if let Cow::Owned(uri) = collapsed(self.program.text(range)) {
            range = self.keep(&uri);
        }
        let uri = self.program.text(range);
        if tag.declarations.iter().any(|&(known, _)| known == prefix) {
            return refused(Reason::AttributeTwiceDeclared, vec![prefix.into()]);
        }
        if prefix == "xmlns" || (prefix == "xml") != (uri == XML) {
            return refused(Reason::XmlReserved, Vec::new());
        }
        if !prefix.is_empty() && uri.is_empty() {
            return refused(Reason::PrefixTakenBack, vec![prefix.into()]);
        }
        if prefix != "xml" {
            self.check_uri(uri, offset)?;
        }
        tag.declarations.push((prefix, range));
        self.bindings.push(Binding { prefix, uri: Some(range) });
        Ok(())
    }

    /// Names of attributes mean something once the whole tag has been read.
    fn resolve_attributes(&mut self, tag: &Tag<'t>) -> Parsed<List> {
        let mut found: Vec<Attribute> = Vec::with_capacity(tag.attributes.len());
        for (written, offset, parts) in &tag.attributes {
            let name = self.constructed_name(*written, true, *offset)?;
            let program = &self.program;
            let text = |range| program.text(range);
            let is_same = |known: &Attribute| {
                text(known.name.local) == written.local && text(known.name.uri) == text(name.uri)
            };
            if found.iter().any(is_same) {
                let name = written.to_string();
                return Err(Refusal::new(*offset, Reason::AttributeTwice, vec![name.into()]));
            }
            let parts = self.parts(parts);
            found.push(Attribute { name, computed: None, parts });
        }
        let start = self.program.attributes.len() as u32;
        self.program.attributes.extend_from_slice(&found);
        let places = tag.attributes.iter().map(|&(_, offset, _)| offset as u32);
        self.origins(|origins| origins.attributes.extend(places));
        Ok(List { start, end: self.program.attributes.len() as u32 })
    }

    pub(super) fn parts(&mut self, parts: &[(Part, u32)]) -> List {
        let start = self.program.parts.len() as u32;
        self.program.parts.extend(parts.iter().map(|&(part, _)| part));
        self.origins(|origins| origins.parts.extend(parts.iter().map(|&(_, offset)| offset)));
        List { start, end: self.program.parts.len() as u32 }
    }

    fn end_tag(&mut self, written: Written<'_>) -> Parsed<()> {
        let offset = self.scanner.at;
        self.scanner.at += 2;
        if self.tag_name() != Some(written) {
            let name = written.to_string();
            return Err(self.scanner.wrong(offset, Reason::ExpectedEndTag, &[&name]));
        }
        self.scanner.blanks();
        if self.scanner.take_here(">") { Ok(()) } else { Err(self.no_character(">")) }
    }

    /// `{expr}`; what is here is the brace. What follows it need not be a token.
    fn enclosed(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.at;
        self.count(offset)?;
        self.scanner.skip(1);
        if self.is_explaining() && self.scanner.peek() == b'}' {
            return Err(Refusal::new(offset, Reason::EmptyBraces, Vec::new()));
        }
        let id = self.sequence()?;
        if self.scanner.peek() != b'}' {
            return Err(self.scanner.unexpected(Reason::ExpectedSymbol, &["}", "or an operator"]));
        }
        self.scanner.at += 1;
        Ok(id)
    }

    /// What stands between the tags, up to the end tag; the element begins at `opened`.
    fn content(&mut self, facts: &mut Facts, opened: usize) -> Parsed<List> {
        let mut parts = Vec::new();
        let mut run = self.new_run();
        loop {
            let rest = self.scanner.rest();
            let is_stop = |byte: u8| matches!(byte, b'<' | b'{' | b'}');
            let Some(len) = rest.bytes().position(is_stop) else {
                return Err(Refusal::new(opened, Reason::OpenElement, Vec::new()));
            };
            if len > 0 {
                self.add_content(&rest[..len], &mut run)?;
            }
            self.scanner.at += len;
            let offset = self.scanner.at;
            let found = self.scanner.byte();
            if found != b'<' && self.scanner.byte_after(1) == found {
                self.program.text.push(char::from(found));
                run.offset.get_or_insert(offset);
                run.is_kept = true;
                self.scanner.at += 2;
                continue;
            }
            if self.scanner.take_here("<![CDATA[") {
                self.cdata(&mut run, offset)?;
                continue;
            }
            self.flush(&run, &mut parts);
            match (found, self.scanner.byte_after(1)) {
                (b'{', _) => {
                    let id = self.enclosed()?;
                    let inner = self.facts(id);
                    self.program.may_fail |= inner.may_be_attribute;
                    *facts = facts.around(inner);
                    parts.push((Part::Enclosed(id), offset as u32));
                }
                (b'<', b'/') => return Ok(self.parts(&parts)),
                (b'<', _) => {
                    let (element, inner) = self.element()?;
                    *facts = facts.around(inner);
                    parts.push((Part::Element(element), offset as u32));
                }
                _ => return Err(Refusal::new(offset, Reason::LoneBrace, Vec::new())),
            }
            run = self.new_run();
        }
    }

    fn new_run(&self) -> Run {
        Run { start: self.program.text.len() as u32, offset: None, is_kept: false }
    }

    fn add_content(&mut self, raw: &str, run: &mut Run) -> Parsed<()> {
        run.offset.get_or_insert(self.scanner.at);
        if raw.contains(['&', '\r']) {
            run.is_kept |= raw.contains('&');
            return self.scanner.add_plain(raw, self.scanner.at, &mut self.program.text);
        }
        self.program.text.push_str(raw);
        Ok(())
    }

    /// Adds a CDATA section; what is here is what it holds.
    fn cdata(&mut self, run: &mut Run, offset: usize) -> Parsed<()> {
        let rest = self.scanner.rest();
        let Some(len) = rest.find("]]>") else {
            return Err(Refusal::new(offset, Reason::OpenSection, Vec::new()));
        };
        let raw = &rest[..len];
        if raw.contains('\r') {
            self.program.text.push_str(&raw.replace("\r\n", "\n").replace('\r', "\n"));
        } else {
            self.program.text.push_str(raw);
        }
        run.offset.get_or_insert(offset);
        run.is_kept = true;
        self.scanner.at += len + 3;
        Ok(())
    }

    /// Makes a part of the text that was read, unless it is boundary space.
    fn flush(&mut self, run: &Run, parts: &mut Parts) {
        let range = TextRange { start: run.start, end: self.program.text.len() as u32 };
        let text = self.program.text(range);
        if run.is_kept || !text.bytes().all(is_blank) {
            if range.start < range.end {
                let offset = run.offset.unwrap_or_default();
                parts.push((Part::Text(range), offset as u32));
            }
        } else {
            self.program.text.truncate(run.start as usize);
        }
    }
}
