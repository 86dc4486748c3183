//! Start tags and attributes (productions 40, 41, 44), attribute-value normalisation (3.3.3).

use super::chars::{NAME, VALUE_STOP, is, is_ncname_start, name_end, name_fault, skip_space};
use super::dtd::{Dtd, Entity};
use super::qnames::{ATTRIBUTES, DECLARATION, PREFIXED};
use super::references::{Reference, reference};
use super::refusal::{Code, Fault, Step};
use super::scan::{Open, Prefixed, Scanner};
use crate::names::NameId;
use crate::tree::{NONE, Span};

impl Scanner<'_> {
    /// A start tag or empty-element tag, from its `<` on; gives the byte after it.
    #[inline(always)]
    pub fn start_tag(&mut self, text: &str, at: usize) -> Step<usize> {
        self.flush_text()?;
        let bytes = text.as_bytes();
        let name_start = at + 1;
        let name_stop = name_end(bytes, name_start);
        if name_stop == name_start {
            return Err(self.no_name(bytes, name_start));
        }
        self.begin_element(name_start, name_stop)?;
        let (next, is_empty) = self.attributes(text, name_stop)?;
        let tag = Tag {
            start: name_start,
            end: name_stop,
        };
        self.resolve_names(text, tag)?;
        if is_empty {
            self.close_element();
        }
        Ok(next)
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
    fn begin_element(&mut self, name_start: usize, name_stop: usize) -> Step<()> {
        let depth = self.memory.open.len();
        let element = self.tree.name.len();
        if depth >= self.limits.depth_max as usize || element >= self.limits.elements_max as usize {
            return Err(self.too_many(depth, element, name_start - 1));
        }
        self.memory.clock += 1;
        let parent = self.memory.open.last().map_or(NONE, |open| open.element);
        let texts = self.tree.text_value.len() as u32;
        self.tree.name.push(0);
        self.tree.parent.push(parent);
        self.tree.depth.push(depth as u32);
        self.tree.element_end.push(0);
        self.tree
            .attribute_start
            .push(self.tree.attribute_name.len() as u32);
        self.tree.text_start.push(texts);
        self.tree.text_end.push(texts);
        self.memory.open.push(Open {
            element: element as u32,
            name_start: name_start as u32,
            name_len: (name_stop - name_start) as u32,
            context: self.context,
            namespace_mark: self.memory.namespaces.mark(),
        });
        Ok(())
    }

    #[cold]
    fn too_many(&self, depth: usize, element: usize, at: usize) -> Box<Fault> {
        let at = self.place(at);
        let maximum = self.limits.depth_max.into();
        if depth as u64 >= maximum {
            return Fault::limit(Code::LimitDepth, at, "depth_max", depth as u64 + 1, maximum);
        }
        let (given, maximum) = (element as u64 + 1, self.limits.elements_max.into());
        Fault::limit(Code::LimitElements, at, "elements_max", given, maximum)
    }

    /// The attributes of a tag and its end; gives the byte after the tag and whether the element
    /// is empty.
    #[inline(always)]
    fn attributes(&mut self, text: &str, start: usize) -> Step<(usize, bool)> {
        let bytes = text.as_bytes();
        let mut at = start;
        let mut count = 0;
        loop {
            let after_space = skip_space(bytes, at);
            match bytes.get(after_space) {
                Some(b'>') => return Ok((after_space + 1, false)),
                Some(b'/') => match bytes.get(after_space + 1) {
                    Some(b'>') => return Ok((after_space + 2, true)),
                    Some(_) => {
                        let fault = self.fault(Code::Tag, after_space + 1);
                        return Err(fault.text("expected", "\">\""));
                    }
                    None => return Err(self.end("a tag")),
                },
                Some(&byte) if after_space > at && is(byte, NAME) => {}
                Some(_) => return Err(self.wrong_tag(text, at, after_space)),
                None => return Err(self.end("a tag")),
            }
            count += 1;
            if count > self.limits.attributes_max {
                return Err(self.too_many_attributes(count, after_space));
            }
            at = self.attribute(text, after_space)?;
        }
    }

    #[cold]
    fn wrong_tag(&self, text: &str, at: usize, after_space: usize) -> Box<Fault> {
        let expected = if after_space > at {
            "an attribute, \">\" or \"/>\""
        } else {
            "white space or \">\""
        };
        let _ = text;
        self.fault(Code::Tag, after_space)
            .text("expected", expected)
    }

    #[cold]
    pub(super) fn too_many_attributes(&self, count: u32, at: usize) -> Box<Fault> {
        let (given, maximum) = (count.into(), self.limits.attributes_max.into());
        Fault::limit(
            Code::LimitAttributes,
            self.place(at),
            "attributes_max",
            given,
            maximum,
        )
    }

    /// One attribute, from its name on; gives the byte after its value (production 41).
    #[inline(always)]
    fn attribute(&mut self, text: &str, start: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let stop = name_end(bytes, start);
        let mut at = stop;
        if bytes.get(at) != Some(&b'=') {
            at = skip_space(bytes, at);
            match bytes.get(at) {
                Some(b'=') => {}
                Some(_) => return Err(self.wrong_attribute(text, start, at, "\"=\"")),
                None => return Err(self.end("a tag")),
            }
        }
        at += 1;
        if bytes.get(at) != Some(&b'"') {
            at = skip_space(bytes, at);
        }
        let quote = match bytes.get(at) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            Some(_) => return Err(self.wrong_attribute(text, start, at, "a quoted value")),
            None => return Err(self.end("a tag")),
        };
        let (value, next) = self.attribute_value(text, at + 1, quote)?;
        let name = &bytes[start..stop];
        let key = self.memory.qnames.key(ATTRIBUTES, name);
        let id = match self.memory.qnames.find(key, ATTRIBUTES, name) {
            Some(id) => id,
            None => self.new_attribute_name(text, start, stop)?,
        };
        self.add_attribute(text, Tag { start, end: stop }, id, value)?;
        Ok(next)
    }

    #[cold]
    fn wrong_attribute(&self, text: &str, start: usize, at: usize, expected: &str) -> Box<Fault> {
        let name = &text[start..name_end(text.as_bytes(), start)];
        if let Some(fault) = name_fault(name) {
            return self.fault(Code::Name, start + fault).text("name", name);
        }
        self.fault(Code::Attribute, at).text("expected", expected)
    }

    /// What kind of attribute a name that was not met before is.
    #[cold]
    fn new_attribute_name(&mut self, text: &str, start: usize, stop: usize) -> Step<NameId> {
        let name = &text[start..stop];
        let (prefix, local) = split_qname(name, start).map_err(|fault| self.moved(fault))?;
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
    pub(super) fn add_attribute(
        &mut self,
        text: &str,
        name: Tag,
        id: NameId,
        value: Span,
    ) -> Step<()> {
        match id {
            DECLARATION => return self.declare(text, name, value),
            PREFIXED => {
                let attribute = self.tree.attribute_name.len() as u32;
                let (start, end) = (name.start as u32, name.end as u32);
                self.memory.prefixed.push(Prefixed {
                    attribute,
                    start,
                    end,
                });
            }
            _ => {
                let clock = self.memory.clock;
                if self.see(id, clock, name.start)? == clock {
                    return Err(self.duplicate(Code::AttributeDuplicate, text, name));
                }
            }
        }
        self.tree.attribute_name.push(id);
        self.tree.attribute_value.push(value);
        Ok(())
    }

    #[cold]
    fn duplicate(&self, code: Code, text: &str, name: Tag) -> Box<Fault> {
        self.fault(code, name.start)
            .text("name", &text[name.start..name.end])
    }

    fn declare(&mut self, text: &str, name: Tag, value: Span) -> Step<()> {
        let written = &text[name.start..name.end];
        let prefix = written.strip_prefix("xmlns:").unwrap_or("");
        let at = self.place(name.start);
        let start = value.start as usize;
        let uri = if value.len_and_place & Span::IN_SCRATCH == 0 {
            &self.document[start..start + value.len()]
        } else {
            &self.tree.scratch[start..start + value.len()]
        };
        if !self
            .memory
            .namespaces
            .declare(prefix, uri, self.memory.clock, at)?
        {
            return Err(self.duplicate(Code::AttributeDuplicate, text, name));
        }
        Ok(())
    }

    /// Resolves the names of a tag, whose declarations are all known now.
    #[inline(always)]
    fn resolve_names(&mut self, text: &str, tag: Tag) -> Step<()> {
        let parent = self.context;
        self.context = self.memory.namespaces.enter(parent);
        let id = self.expanded_name(text, tag, true)?;
        let message_clock = self.message_clock;
        self.see(id, message_clock, tag.start)?;
        if let Some(name) = self.tree.name.last_mut() {
            *name = id;
        }
        if !self.memory.prefixed.is_empty() {
            self.resolve_prefixed(text)?;
        }
        Ok(())
    }

    fn resolve_prefixed(&mut self, text: &str) -> Step<()> {
        let clock = self.memory.clock;
        for index in 0..self.memory.prefixed.len() {
            let Prefixed {
                attribute,
                start,
                end,
            } = self.memory.prefixed[index];
            let name = Tag {
                start: start as usize,
                end: end as usize,
            };
            let id = self.expanded_name(text, name, false)?;
            if self.see(id, clock, name.start)? == clock {
                let written = &text[name.start..name.end];
                let is_repeated = self.memory.prefixed[..index]
                    .iter()
                    .any(|other| &text[other.start as usize..other.end as usize] == written);
                let code = if is_repeated {
                    Code::AttributeDuplicate
                } else {
                    Code::NsAttributeDuplicate
                };
                return Err(self.duplicate(code, text, name));
            }
            self.tree.attribute_name[attribute as usize] = id;
        }
        self.memory.prefixed.clear();
        Ok(())
    }

    /// The expanded name of a written one in the scope at hand.
    #[inline(always)]
    fn expanded_name(&mut self, text: &str, name: Tag, is_element: bool) -> Step<NameId> {
        let written = &text.as_bytes()[name.start..name.end];
        let key = self.memory.qnames.key(self.context, written);
        match self.memory.qnames.find(key, self.context, written) {
            Some(id) => Ok(id),
            None => self.new_name(text, name, is_element),
        }
    }

    #[cold]
    fn new_name(&mut self, text: &str, name: Tag, is_element: bool) -> Step<NameId> {
        let written = &text[name.start..name.end];
        let (prefix, local) =
            split_qname(written, name.start).map_err(|fault| self.moved(fault))?;
        let at = self.place(name.start);
        if is_element && prefix == "xmlns" {
            return Err(Fault::new(Code::NsPrefixReserved, at).text("prefix", prefix));
        }
        let uri = self.memory.namespaces.resolve(prefix, at)?;
        let id = self.names.intern(uri, local);
        let key = self.memory.qnames.key(self.context, written.as_bytes());
        self.memory
            .qnames
            .add(key, self.context, written.as_bytes(), id);
        Ok(id)
    }

    /// A quoted value from its first character on; gives its normalised form and the byte after
    /// the closing quote.
    #[inline(always)]
    fn attribute_value(&mut self, text: &str, start: usize, quote: u8) -> Step<(Span, usize)> {
        let bytes = text.as_bytes();
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if is(byte, VALUE_STOP) {
                if byte == quote {
                    let is_document = self.entity_place.is_none();
                    if is_document && at - start <= self.limits.attribute_value_bytes_max as usize {
                        let span = Span::in_message(start as u32, (at - start) as u32);
                        return Ok((span, at + 1));
                    }
                    break;
                }
                if byte != b'"' && byte != b'\'' {
                    break;
                }
            }
            at += 1;
        }
        let from = self.tree.scratch.len();
        let next = self.normalise(text, start, quote)?;
        let len = self.tree.scratch.len() - from;
        if len > self.limits.attribute_value_bytes_max as usize {
            return Err(self.long_value(len, start));
        }
        if from + len > Span::IN_SCRATCH as usize {
            return Err(self.scratch_full());
        }
        Ok((Span::in_scratch(from as u32, len as u32), next))
    }

    #[cold]
    fn long_value(&self, len: usize, at: usize) -> Box<Fault> {
        let (given, maximum) = (len as u64, self.limits.attribute_value_bytes_max.into());
        let code = Code::LimitAttributeValueBytes;
        Fault::limit(
            code,
            self.place(at),
            "attribute_value_bytes_max",
            given,
            maximum,
        )
    }

    /// Appends a value to the scratch buffer as 3.3.3 says; gives the byte after the quote.
    fn normalise(&mut self, text: &str, start: usize, quote: u8) -> Step<usize> {
        let dtd: &Dtd = self.dtd;
        let outer_place = self.entity_place;
        let mut frames: Vec<(&str, usize, usize)> = Vec::new();
        let (mut inner, mut at) = (text, start);
        loop {
            let bytes = inner.as_bytes();
            let stop = bytes[at..]
                .iter()
                .position(|&b| is(b, VALUE_STOP))
                .map_or(bytes.len(), |n| at + n);
            self.tree.scratch.push_str(&inner[at..stop]);
            at = stop;
            match bytes.get(at) {
                None => match frames.pop() {
                    None => return Err(self.end("an attribute value")),
                    Some((outer, resume, entity)) => {
                        self.expansion.close(entity);
                        (inner, at) = (outer, resume);
                        if frames.is_empty() {
                            self.entity_place = outer_place;
                        }
                    }
                },
                Some(&byte) if byte == quote && frames.is_empty() => return Ok(at + 1),
                Some(b'<') => return Err(self.fault(Code::AttributeLess, at)),
                Some(b'&') => {
                    let (found, next) = reference(inner, at).map_err(|fault| self.moved(fault))?;
                    match found {
                        Reference::Character(c) => {
                            self.tree.scratch.push(c);
                            at = next;
                        }
                        Reference::Entity { start, end } => {
                            let place = self.place(at);
                            let name = &inner[start..end];
                            let code = match dtd.entity(name, place)? {
                                None => {
                                    at = next;
                                    continue;
                                }
                                Some((entity, Entity::Internal(value))) => {
                                    let len = value.len();
                                    self.expansion.open(entity, name, len, self.limits, place)?;
                                    frames.push((inner, next, entity));
                                    self.entity_place = Some(place);
                                    (inner, at) = (value, 0);
                                    continue;
                                }
                                Some((_, Entity::External)) => Code::EntityExternal,
                                Some((_, Entity::Unparsed)) => Code::EntityUnparsed,
                            };
                            return Err(Fault::new(code, place).text("name", name));
                        }
                    }
                }
                Some(&byte) => {
                    let is_space = byte != b'"' && byte != b'\'';
                    self.tree
                        .scratch
                        .push(if is_space { ' ' } else { char::from(byte) });
                    at += 1;
                    // In the document a line end of two characters is one; entities have had
                    // theirs normalised when they were declared.
                    if byte == b'\r' && self.entity_place.is_none() && bytes.get(at) == Some(&b'\n')
                    {
                        at += 1;
                    }
                }
            }
        }
    }
}

/// Where a written name lies in the text at hand.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    pub start: usize,
    pub end: usize,
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
