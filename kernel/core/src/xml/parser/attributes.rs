//! Start tags and attributes (productions 40, 41, 44), declared types and defaults (3.3).

use super::chars::{NAME, VALUE_STOP, is, is_ncname_start, name_end, name_fault, skip_space};
use super::dtd::{AttributeList, Definition};
use super::observer::{Observer, ScannedTag};
use super::qnames::{ATTRIBUTES, DECLARATION, PREFIXED};
use super::refusal::{Code, Fault, Step};
use super::scan::{Open, Prefixed, Scanner, Written};
use super::value::{ValueReader, check_value_size, collapse};
use crate::xml::names::NameId;
use crate::xml::tree::{NONE, Span};

impl<O: Observer> Scanner<'_, O> {
    /// A start tag or empty-element tag, from its `<` on; gives the byte after it.
    #[inline(always)]
    pub(crate) fn start_tag(&mut self, text: &str, at: usize) -> Step<usize> {
        self.flush_text(at)?;
        let bytes = text.as_bytes();
        let start = at + 1;
        let end = name_end(bytes, start);
        if end == start {
            return Err(self.no_name(bytes, start));
        }
        self.begin_tag(text, start, end)?;
        let (next, count, is_empty) = self.attributes(text, end)?;
        self.finish_tag(text, (at, end, next), count, is_empty)?;
        Ok(next)
    }

    /// Begins an element whose name is at these bytes.
    #[inline(always)]
    pub(crate) fn begin_tag(&mut self, text: &str, start: usize, end: usize) -> Step<()> {
        self.begin_element(start, end)?;
        if self.dtd.definitions() > 0 {
            self.list = self.dtd.attribute_list(&text[start..end]);
        }
        Ok(())
    }

    /// Ends a tag all of whose attributes have been read: its `<`, the end of its name, the byte after
    /// it.
    #[inline(always)]
    pub(crate) fn finish_tag(
        &mut self,
        text: &str,
        (at, name_end, next): (usize, usize, usize),
        count: u32,
        is_empty: bool,
    ) -> Step<()> {
        if let Some(list) = self.list {
            self.add_defaults(list, count, at)?;
        }
        self.resolve_names(text, at + 1, name_end)?;
        if !O::BUILDS_TREE {
            self.show_tag(text, (at, name_end, next), is_empty)?;
        }
        if !self.memory.prefixed.is_empty() {
            self.memory.prefixed.clear();
        }
        if is_empty {
            self.close_element(text, next, next);
        }
        Ok(())
    }

    /// Tells the observer of the tag at hand: its `<`, the end of its name, and the byte after it.
    #[inline(always)]
    fn show_tag(
        &mut self,
        text: &str,
        (start, name_end, end): (usize, usize, usize),
        is_empty: bool,
    ) -> Step<()> {
        let name = self.memory.open.last().map_or(NONE, |open| open.element);
        self.observer.start(ScannedTag {
            text,
            document: self.document,
            tree: self.tree,
            names: self.names,
            memory: self.memory,
            list: self.list,
            name,
            start,
            name_end,
            end,
            is_empty,
            entity_place: self.entity_place,
        })
    }

    #[cold]
    fn no_name(&self, bytes: &[u8], at: usize) -> Box<Fault> {
        match bytes.get(at) {
            None => self.end("a tag"),
            Some(_) => self.fault(Code::Name, at).text("name", ""),
        }
    }

    /// Adds the element to the tree; its name is set when its declarations have been read.
    #[inline(always)]
    fn begin_element(&mut self, name_start: usize, name_end: usize) -> Step<()> {
        let depth = self.memory.open.len();
        let element =
            if O::BUILDS_TREE { self.tree.name.len() as u64 } else { self.observer.elements() };
        if depth >= self.limits.depth_max as usize || element >= self.elements_max {
            return Err(self.too_many(depth, element, name_start - 1));
        }
        self.memory.clock += 1;
        if O::BUILDS_TREE {
            self.add_element(depth, name_start - 1);
        } else {
            self.forget_tag();
        }
        self.memory.open.push(Open {
            element: element as u32,
            name_start: name_start as u32,
            name_len: (name_end - name_start) as u32,
            context: self.context,
            namespace_mark: self.memory.namespaces.mark(),
        });
        Ok(())
    }

    /// The columns that every element has.
    #[inline(always)]
    fn add_element(&mut self, depth: usize, start: usize) {
        let parent = self.memory.open.last().map_or(NONE, |open| open.element);
        let texts = self.tree.text_value.len() as u32;
        let attributes = self.tree.attribute_name.len() as u32;
        self.tree.name.push(0);
        self.tree.parent.push(parent);
        self.tree.depth.push(depth as u32);
        self.tree.element_end.push(0);
        self.tree.attribute_start.push(attributes);
        self.tree.text_start.push(texts);
        self.tree.text_end.push(texts);
        if self.tree.has_source_spans {
            self.keep_start(start);
        }
    }

    /// Without a tree, the attributes and declarations of the tag before make room.
    #[inline(always)]
    fn forget_tag(&mut self) {
        self.tree.attribute_name.clear();
        self.tree.attribute_value.clear();
        self.tree.declaration_prefix.clear();
        self.tree.declaration_uri.clear();
    }

    #[cold]
    fn too_many(&self, depth: usize, element: u64, at: usize) -> Box<Fault> {
        let at = self.place(at);
        let maximum = self.limits.depth_max.into();
        if depth as u64 >= maximum {
            return Fault::limit(Code::LimitDepth, at, "depth_max", depth as u64 + 1, maximum);
        }
        Fault::limit(Code::LimitElements, at, "elements_max", element + 1, self.elements_max)
    }

    /// The attributes of a tag and its end; gives the byte after the tag, the number of attributes
    /// and whether the element is empty.
    #[inline(always)]
    fn attributes(&mut self, text: &str, start: usize) -> Step<(usize, u32, bool)> {
        let bytes = text.as_bytes();
        let mut at = start;
        let mut count = 0;
        loop {
            let before = at;
            at = skip_space(bytes, at);
            match bytes.get(at) {
                Some(b'>') => return Ok((at + 1, count, false)),
                Some(b'/') => match bytes.get(at + 1) {
                    Some(b'>') => return Ok((at + 2, count, true)),
                    Some(_) => return Err(self.wrong_tag(at + 1, "\">\"")),
                    None => return Err(self.end("a tag")),
                },
                Some(&byte) if at > before && is(byte, NAME) => {}
                Some(_) if at > before => {
                    return Err(self.wrong_tag(at, "an attribute, \">\" or \"/>\""));
                }
                Some(_) => return Err(self.wrong_tag(at, "white space, \">\" or \"/>\"")),
                None => return Err(self.end("a tag")),
            }
            count += 1;
            self.check_attribute_count(count, at)?;
            at = self.attribute(text, at)?;
        }
    }

    #[cold]
    fn wrong_tag(&self, at: usize, expected: &str) -> Box<Fault> {
        self.fault(Code::Tag, at).text("expected", expected)
    }

    #[inline(always)]
    pub(crate) fn check_attribute_count(&self, count: u32, at: usize) -> Step<()> {
        if count > self.limits.attributes_max {
            return Err(self.too_many_attributes(count, at));
        }
        Ok(())
    }

    #[cold]
    fn too_many_attributes(&self, count: u32, at: usize) -> Box<Fault> {
        let (given, maximum) = (count.into(), self.limits.attributes_max.into());
        let code = Code::LimitAttributes;
        Fault::limit(code, self.place(at), "attributes_max", given, maximum)
    }

    /// One attribute, from its name on; gives the byte after its value (production 41).
    #[inline(always)]
    fn attribute(&mut self, text: &str, start: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let end = name_end(bytes, start);
        let mut at = end;
        if bytes.get(at) != Some(&b'=') {
            at = skip_space(bytes, at);
            if bytes.get(at) != Some(&b'=') {
                return Err(self.wrong_attribute(text, start, at, "\"=\""));
            }
        }
        at += 1;
        if bytes.get(at) != Some(&b'"') {
            at = skip_space(bytes, at);
        }
        let quote = match bytes.get(at) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.wrong_attribute(text, start, at, "a quoted value")),
        };
        let (value, next) = self.attribute_value(text, at + 1, quote)?;
        self.named_value(text, (start, end, at), value)?;
        Ok(next)
    }

    /// Adds an attribute whose name is at the first two of these bytes, and the quote of its value at the
    /// third.
    #[inline(always)]
    pub(crate) fn named_value(
        &mut self,
        text: &str,
        (start, end, quote): (usize, usize, usize),
        mut value: Span,
    ) -> Step<()> {
        if let Some(list) = self.list {
            value = self.declared_value(list, &text[start..end], value);
        }
        if value.len() > self.limits.attribute_value_bytes_max as usize {
            check_value_size(value.len(), self.limits, self.place(quote))?;
        }
        let id = self.attribute_name(&text[start..end], start)?;
        let name = Written::Here { start: start as u32, end: end as u32 };
        self.add_attribute(&text[start..end], start, id, value, name)
    }

    #[cold]
    fn wrong_attribute(&self, text: &str, start: usize, at: usize, expected: &str) -> Box<Fault> {
        if at >= text.len() {
            return self.end("a tag");
        }
        let name = &text[start..name_end(text.as_bytes(), start)];
        if let Some(fault) = name_fault(name) {
            return self.fault(Code::Name, start + fault).text("name", name);
        }
        self.fault(Code::Attribute, at).text("expected", expected)
    }

    /// The name of an attribute without prefix, or which kind of other one it is.
    #[inline(always)]
    fn attribute_name(&mut self, name: &str, at: usize) -> Step<NameId> {
        let key = self.memory.qnames.key(ATTRIBUTES, name.as_bytes());
        match self.memory.qnames.find(key, ATTRIBUTES, name.as_bytes()) {
            Some(id) => Ok(id),
            None => self.new_attribute_name(name, at),
        }
    }

    #[cold]
    fn new_attribute_name(&mut self, name: &str, at: usize) -> Step<NameId> {
        let (prefix, local) = split_qname(name, at).map_err(|fault| self.moved(fault))?;
        let id = match (prefix, local) {
            ("", "xmlns") | ("xmlns", _) => DECLARATION,
            ("", _) => self.names.intern("", local),
            _ => PREFIXED,
        };
        let key = self.memory.qnames.key(ATTRIBUTES, name.as_bytes());
        self.memory.qnames.add(key, ATTRIBUTES, name.as_bytes(), id);
        Ok(id)
    }

    /// Adds an attribute, or declares a namespace.
    #[inline(always)]
    fn add_attribute(
        &mut self,
        name: &str,
        at: usize,
        id: NameId,
        value: Span,
        written: Written,
    ) -> Step<()> {
        if id == DECLARATION {
            return self.declare(name, at, value, written);
        }
        if id == PREFIXED {
            let attribute = self.tree.attribute_name.len() as u32;
            self.memory.prefixed.push(Prefixed { attribute, name: written });
        } else {
            let clock = self.memory.clock;
            if self.see(id, clock, at)? == clock {
                return Err(self.duplicate(Code::AttributeDuplicate, name, at));
            }
        }
        self.tree.attribute_name.push(id);
        self.tree.attribute_value.push(value);
        Ok(())
    }

    #[cold]
    fn duplicate(&self, code: Code, name: &str, at: usize) -> Box<Fault> {
        self.fault(code, at).text("name", name)
    }

    fn declare(&mut self, name: &str, at: usize, value: Span, written: Written) -> Step<()> {
        let prefix = name.strip_prefix("xmlns:").unwrap_or("");
        let place = self.place(at);
        let uri = resolve_span(self.document, &self.tree.scratch, value);
        if !self.memory.namespaces.declare(prefix, uri, self.memory.clock, place)? {
            return Err(self.duplicate(Code::AttributeDuplicate, name, at));
        }
        if self.keeps_more {
            self.keep_declaration(name, written, value)?;
        }
        Ok(())
    }

    /// Resolves the names of a tag, whose declarations are all known now.
    #[inline(always)]
    fn resolve_names(&mut self, text: &str, start: usize, end: usize) -> Step<()> {
        self.context = self.memory.namespaces.enter(self.context);
        let id = self.expanded_name(&text[start..end], start, true)?;
        let message_clock = self.message_clock;
        self.see(id, message_clock, start)?;
        if O::BUILDS_TREE {
            if let Some(name) = self.tree.name.last_mut() {
                *name = id;
            }
        } else if let Some(open) = self.memory.open.last_mut() {
            open.element = id;
        }
        if self.tree.is_full {
            self.keep_element(text, start, end)?;
        }
        if !self.memory.prefixed.is_empty() {
            self.resolve_prefixed(text, start)?;
        }
        Ok(())
    }

    fn resolve_prefixed(&mut self, text: &str, tag: usize) -> Step<()> {
        let clock = self.memory.clock;
        let list = self.list;
        let written = |name: Written| written_name(text, tag, list, name);
        for index in 0..self.memory.prefixed.len() {
            let Prefixed { attribute, name } = self.memory.prefixed[index];
            let (name, at) = written(name);
            let id = self.expanded_name(name, at, false)?;
            if self.see(id, clock, at)? == clock {
                let mut before = self.memory.prefixed[..index].iter();
                let is_repeated = before.any(|other| written(other.name).0 == name);
                let code =
                    if is_repeated { Code::AttributeDuplicate } else { Code::NsAttributeDuplicate };
                return Err(self.duplicate(code, name, at));
            }
            self.tree.attribute_name[attribute as usize] = id;
        }
        Ok(())
    }

    /// The expanded name of a written one in the scope at hand.
    #[inline(always)]
    fn expanded_name(&mut self, name: &str, at: usize, is_element: bool) -> Step<NameId> {
        let key = self.memory.qnames.key(self.context, name.as_bytes());
        match self.memory.qnames.find(key, self.context, name.as_bytes()) {
            Some(id) => Ok(id),
            None => self.new_name(name, at, is_element),
        }
    }

    #[cold]
    fn new_name(&mut self, name: &str, at: usize, is_element: bool) -> Step<NameId> {
        let (prefix, local) = split_qname(name, at).map_err(|fault| self.moved(fault))?;
        let place = self.place(at);
        if is_element && prefix == "xmlns" {
            return Err(Fault::new(Code::NsPrefixReserved, place).text("prefix", prefix));
        }
        let uri = self.memory.namespaces.resolve_in(self.names, prefix, place)?;
        let id = self.names.intern_in(uri, local);
        let key = self.memory.qnames.key(self.context, name.as_bytes());
        self.memory.qnames.add(key, self.context, name.as_bytes(), id);
        Ok(id)
    }

    /// A quoted value from its first character on; gives its normalised form and the byte after
    /// the closing quote.
    #[inline(always)]
    pub(crate) fn attribute_value(
        &mut self,
        text: &str,
        start: usize,
        quote: u8,
    ) -> Step<(Span, usize)> {
        let bytes = text.as_bytes();
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if is(byte, VALUE_STOP) {
                if byte == quote && self.entity_place.is_none() {
                    let span = Span::in_message(start as u32, (at - start) as u32);
                    return Ok((span, at + 1));
                }
                if byte == quote || (byte != b'"' && byte != b'\'') {
                    break;
                }
            }
            at += 1;
        }
        self.changed_value(text, start, quote)
    }

    /// A value that is not in the document as it must be in the tree.
    fn changed_value(&mut self, text: &str, start: usize, quote: u8) -> Step<(Span, usize)> {
        let from = self.tree.scratch.len();
        let mut reader = ValueReader {
            dtd: self.dtd,
            limits: self.limits,
            expansion: &mut self.expansion,
            out: &mut self.tree.scratch,
            place: self.entity_place,
            has_entities: false,
        };
        let next = reader.read(text, start, quote)?;
        self.tree.is_verbatim &= !reader.has_entities;
        let end = self.tree.scratch.len();
        if end > Span::IN_SCRATCH as usize {
            return Err(self.scratch_full());
        }
        Ok((Span::in_scratch(from as u32, (end - from) as u32), next))
    }

    /// The value of an attribute that may be declared, normalised further if its type asks for it;
    /// notes that the attribute is there.
    fn declared_value(&mut self, list: &AttributeList, name: &str, value: Span) -> Span {
        let Some(definition) = list.find(name) else {
            return value;
        };
        self.memory.specified[definition.number as usize] = self.memory.clock;
        if definition.is_id {
            self.keep_id(name);
        }
        if definition.is_cdata {
            return value;
        }
        let written = resolve_span(self.document, &self.tree.scratch, value);
        let collapsed = collapse(written);
        if collapsed.len() == written.len() {
            return value;
        }
        self.tree.is_verbatim = false;
        let from = self.tree.scratch.len();
        self.tree.scratch.push_str(&collapsed);
        Span::in_scratch(from as u32, collapsed.len() as u32)
    }

    /// Adds the attributes that are declared with a default and not there (3.3.2).
    fn add_defaults(&mut self, list: &AttributeList, mut count: u32, at: usize) -> Step<()> {
        let clock = self.memory.clock;
        for (index, definition) in list.definitions.iter().enumerate() {
            let Definition { name, default: Some(value), span, number, .. } = definition else {
                continue;
            };
            if self.memory.specified[*number as usize] == clock {
                continue;
            }
            count += 1;
            self.check_attribute_count(count, at)?;
            self.tree.is_verbatim = false;
            let place = self.place(at);
            self.expansion.charge((name.len() + value.len()) as u64, self.limits, place)?;
            let id = self.attribute_name(name, at)?;
            if definition.is_id {
                self.keep_id(name);
            }
            let written = Written::Declared { definition: index as u32 };
            self.add_attribute(name, at, id, *span, written)?;
        }
        Ok(())
    }
}

/// A name of the tag at hand as it is written, and the byte that stands for its place.
pub(super) fn written_name<'t>(
    text: &'t str,
    tag: usize,
    list: Option<&'t AttributeList>,
    name: Written,
) -> (&'t str, usize) {
    match name {
        Written::Here { start, end } => (&text[start as usize..end as usize], start as usize),
        Written::Declared { definition } => {
            let definitions = list.map_or(&[][..], |list| &list.definitions);
            (definitions.get(definition as usize).map_or("", |it| &it.name), tag)
        }
    }
}

/// The text of a value of the message being read.
fn resolve_span<'t>(document: &'t str, scratch: &'t str, span: Span) -> &'t str {
    let start = span.start as usize;
    let text = if span.len_and_place & Span::IN_SCRATCH == 0 { document } else { scratch };
    &text[start..start + span.len()]
}

/// Prefix ("" for none) and local part (Namespaces in XML, productions 7 to 11).
pub(super) fn split_qname(name: &str, at: usize) -> Step<(&str, &str)> {
    if let Some(fault) = name_fault(name) {
        return Err(Fault::new(Code::Name, at + fault).text("name", name));
    }
    let Some((prefix, local)) = name.split_once(':') else {
        return Ok(("", name));
    };
    if prefix.is_empty() || local.contains(':') || !local.starts_with(is_ncname_start) {
        return Err(Fault::new(Code::NsName, at).text("name", name));
    }
    Ok((prefix, local))
}
