//! Direct element constructors (XQuery 1.0, 3.7.1).

use super::super::syntax::{Attribute, Declaration, Element, Expr, ExprId, Name, Part};
use super::facts::items;
use super::names::{Binding, XML, collapsed};
use super::scan::Parsed;
use super::{Facts, Parser};
use crate::language::xpath::{List, TextRange};
use std::borrow::Cow;

/// A name as written in a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Written<'t> {
    prefix: &'t str,
    local: &'t str,
}

/// The text between two tags or braces, at the end of the program's text.
struct Run {
    start: u32,
    /// It is kept even if it is white space: something of it was written as a reference or a CDATA
    /// section, or it is not white space at all.
    is_kept: bool,
}

/// A start tag while it is read.
#[derive(Default)]
struct Tag<'t> {
    attributes: Vec<(Written<'t>, Vec<Part>)>,
    declarations: Vec<(&'t str, TextRange)>,
    has_expressions: bool,
    facts: Facts,
}

impl<'t> Parser<'t> {
    /// A constructor in an expression; what is here is its `<`.
    pub(super) fn constructor(&mut self) -> Parsed<ExprId> {
        let (element, facts) = self.element()?;
        Ok(self.push(Expr::Element(element), facts))
    }

    fn element(&mut self) -> Parsed<(u32, Facts)> {
        self.scanner.at += 1;
        let Some(written) = self.tag_name() else {
            return Err(self.scanner.declined("expected the name of an element"));
        };
        self.count()?;
        self.enter()?;
        let bindings = self.bindings.len();
        let number = self.program.elements.len() as u32;
        self.program.elements.push(Element::default());
        let outer = self.constructor.replace(number);
        let mut tag = Tag {
            facts: Facts { items: items::BUILT, depth: 1, ..Facts::default() },
            ..Tag::default()
        };
        self.attributes(&mut tag)?;
        let name = self.constructed_name(written, false)?;
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
            content = self.content(&mut facts)?;
            self.end_tag(written)?;
        }
        self.bindings.truncate(bindings);
        self.constructor = outer;
        self.leave();
        self.program.elements[number as usize] =
            Element { name, attributes, namespaces, outer, content };
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

    fn constructed_name(&mut self, written: Written<'_>, is_attribute: bool) -> Parsed<Name> {
        let uri = match written.prefix {
            "xmlns" => return Err(self.scanner.declined("the prefix xmlns is reserved")),
            "" if is_attribute => TextRange::default(),
            "" => self.default_uri()?,
            prefix => self.prefixed(prefix)?,
        };
        let prefix = self.keep(written.prefix);
        Ok(Name { prefix, uri, local: self.keep(written.local) })
    }

    /// Reads attributes and declarations, up to the `>` or `/>`.
    fn attributes(&mut self, tag: &mut Tag<'t>) -> Parsed<()> {
        loop {
            let has_blank = self.scanner.blanks();
            match (self.scanner.byte(), self.scanner.byte_after(1)) {
                (b'>', _) | (b'/', b'>') => return Ok(()),
                _ if has_blank => {}
                _ => return Err(self.scanner.declined("expected a blank, > or />")),
            }
            let Some(written) = self.tag_name() else {
                return Err(self.scanner.declined("expected an attribute, > or />"));
            };
            self.scanner.blanks();
            if !self.scanner.take_here("=") {
                return Err(self.scanner.declined("expected ="));
            }
            self.scanner.blanks();
            let declared = match written {
                Written { prefix: "xmlns", local } => Some(local),
                Written { prefix: "", local: "xmlns" } => Some(""),
                _ => None,
            };
            let parts = self.value(tag, declared.is_some())?;
            match declared {
                Some(prefix) => self.declare(tag, prefix, &parts)?,
                None => {
                    self.count()?;
                    tag.attributes.push((written, parts));
                }
            }
        }
    }

    /// A value in quotes.
    fn value(&mut self, tag: &mut Tag<'t>, is_declaration: bool) -> Parsed<Vec<Part>> {
        let quote = self.scanner.byte();
        if quote != b'"' && quote != b'\'' {
            return Err(self.scanner.declined("expected a value in quotes"));
        }
        self.scanner.at += 1;
        let mut parts = Vec::new();
        let mut start = self.program.text.len() as u32;
        loop {
            let rest = self.scanner.rest();
            let is_stop = |byte: u8| byte == quote || matches!(byte, b'<' | b'{' | b'}');
            let Some(len) = rest.bytes().position(is_stop) else {
                return Err(self.scanner.declined("the value does not end"));
            };
            self.add_value(&rest[..len])?;
            self.scanner.at += len;
            let found = self.scanner.byte();
            if found == b'<' {
                return Err(self.scanner.declined("expected &lt;"));
            }
            if self.scanner.byte_after(1) == found {
                self.program.text.push(char::from(found));
                self.scanner.at += 2;
                continue;
            }
            if found == b'}' {
                return Err(self.scanner.declined("a } stands alone"));
            }
            let end = self.program.text.len() as u32;
            if end > start {
                parts.push(Part::Text(TextRange { start, end }));
            }
            if found == quote {
                self.scanner.at += 1;
                return Ok(parts);
            }
            if is_declaration {
                return Err(self.scanner.declined("a namespace is declared by a literal only"));
            }
            tag.has_expressions = true;
            let id = self.enclosed()?;
            self.need_value(id)?;
            tag.facts = tag.facts.around(self.facts(id));
            parts.push(Part::Enclosed(id));
            start = self.program.text.len() as u32;
        }
    }

    /// Adds a piece of a value; white space is a blank there, unless it is written as a reference.
    fn add_value(&mut self, raw: &str) -> Parsed<()> {
        if !raw.contains(['&', '\t', '\r', '\n']) {
            self.program.text.push_str(raw);
            return Ok(());
        }
        let spaced = raw.replace("\r\n", " ").replace(['\t', '\r', '\n'], " ");
        let mut text = std::mem::take(&mut self.program.text);
        let added = self.add_plain(&spaced, &mut text);
        self.program.text = text;
        added
    }

    fn declare(&mut self, tag: &mut Tag<'t>, prefix: &'t str, parts: &[Part]) -> Parsed<()> {
        if tag.has_expressions {
            return Err(self.scanner.declined("a declaration after an enclosed expression"));
        }
        let mut range = match parts {
            [Part::Text(range)] => *range,
            _ => TextRange::default(),
        };
        if let Cow::Owned(uri) = collapsed(self.program.text(range)) {
            range = self.keep(&uri);
        }
        let uri = self.program.text(range);
        let reason = if tag.declarations.iter().any(|&(known, _)| known == prefix) {
            "declared twice"
        } else if prefix == "xmlns" || (prefix == "xml") != (uri == XML) {
            "xml and xmlns are reserved"
        } else if !prefix.is_empty() && uri.is_empty() {
            "a prefix cannot be taken back"
        } else {
            if prefix != "xml" {
                self.check_uri(uri)?;
            }
            tag.declarations.push((prefix, range));
            self.bindings.push(Binding { prefix, uri: Some(range) });
            return Ok(());
        };
        Err(self.scanner.declined(reason))
    }

    /// Names of attributes mean something once the whole tag has been read.
    fn resolve_attributes(&mut self, tag: &Tag<'t>) -> Parsed<List> {
        let mut found: Vec<Attribute> = Vec::with_capacity(tag.attributes.len());
        for (written, parts) in &tag.attributes {
            let name = self.constructed_name(*written, true)?;
            let program = &self.program;
            let text = |range| program.text(range);
            let is_same = |known: &Attribute| {
                text(known.name.local) == written.local && text(known.name.uri) == text(name.uri)
            };
            if found.iter().any(is_same) {
                return Err(self.scanner.declined("an attribute is there twice"));
            }
            let parts = self.parts(parts);
            found.push(Attribute { name, parts });
        }
        let start = self.program.attributes.len() as u32;
        self.program.attributes.extend_from_slice(&found);
        Ok(List { start, end: self.program.attributes.len() as u32 })
    }

    fn parts(&mut self, parts: &[Part]) -> List {
        let start = self.program.parts.len() as u32;
        self.program.parts.extend_from_slice(parts);
        List { start, end: self.program.parts.len() as u32 }
    }

    fn end_tag(&mut self, written: Written<'_>) -> Parsed<()> {
        self.scanner.at += 2;
        if self.tag_name() != Some(written) {
            return Err(self.scanner.declined("the end tag has another name"));
        }
        self.scanner.blanks();
        if self.scanner.take_here(">") { Ok(()) } else { Err(self.scanner.declined("expected >")) }
    }

    /// `{expr}`; what is here is the brace.
    fn enclosed(&mut self) -> Parsed<ExprId> {
        self.count()?;
        self.scanner.at += 1;
        let id = self.sequence()?;
        self.scanner.expect(b'}', "expected } or an operator")?;
        Ok(id)
    }

    /// What stands between the tags, up to the end tag.
    fn content(&mut self, facts: &mut Facts) -> Parsed<List> {
        let mut parts = Vec::new();
        let mut run = self.new_run();
        loop {
            let rest = self.scanner.rest();
            let is_stop = |byte: u8| matches!(byte, b'<' | b'{' | b'}');
            let Some(len) = rest.bytes().position(is_stop) else {
                return Err(self.scanner.declined("the element does not end"));
            };
            self.add_content(&rest[..len], &mut run)?;
            self.scanner.at += len;
            let found = self.scanner.byte();
            if found != b'<' && self.scanner.byte_after(1) == found {
                self.program.text.push(char::from(found));
                run.is_kept = true;
                self.scanner.at += 2;
                continue;
            }
            if self.scanner.take_here("<![CDATA[") {
                self.cdata(&mut run)?;
                continue;
            }
            self.flush(&run, &mut parts);
            match (found, self.scanner.byte_after(1)) {
                (b'{', _) => {
                    let id = self.enclosed()?;
                    let inner = self.facts(id);
                    self.program.may_fail |= inner.may_be_attribute;
                    *facts = facts.around(inner);
                    parts.push(Part::Enclosed(id));
                }
                (b'<', b'/') => return Ok(self.parts(&parts)),
                (b'<', _) => {
                    let (element, inner) = self.element()?;
                    *facts = facts.around(inner);
                    parts.push(Part::Element(element));
                }
                _ => return Err(self.scanner.declined("a } stands alone")),
            }
            run = self.new_run();
        }
    }

    fn new_run(&self) -> Run {
        Run { start: self.program.text.len() as u32, is_kept: false }
    }

    fn add_content(&mut self, raw: &str, run: &mut Run) -> Parsed<()> {
        if raw.contains(['&', '\r']) {
            run.is_kept |= raw.contains('&');
            let mut text = std::mem::take(&mut self.program.text);
            let added = self.add_plain(raw, &mut text);
            self.program.text = text;
            return added;
        }
        self.program.text.push_str(raw);
        Ok(())
    }

    /// Adds a CDATA section; what is here is what it holds.
    fn cdata(&mut self, run: &mut Run) -> Parsed<()> {
        let rest = self.scanner.rest();
        let Some(len) = rest.find("]]>") else {
            return Err(self.scanner.declined("the section does not end"));
        };
        let raw = &rest[..len];
        if raw.contains('\r') {
            self.program.text.push_str(&raw.replace("\r\n", "\n").replace('\r', "\n"));
        } else {
            self.program.text.push_str(raw);
        }
        run.is_kept = true;
        self.scanner.at += len + 3;
        Ok(())
    }

    /// Makes a part of the text that was read, unless it is boundary space.
    fn flush(&mut self, run: &Run, parts: &mut Vec<Part>) {
        let range = TextRange { start: run.start, end: self.program.text.len() as u32 };
        let text = self.program.text(range);
        let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if run.is_kept || !text.bytes().all(is_blank) {
            if range.start < range.end {
                parts.push(Part::Text(range));
            }
        } else {
            self.program.text.truncate(run.start as usize);
        }
    }
}
