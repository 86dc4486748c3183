//! Content: tags, character data, CDATA sections, comments, instructions, references
//! (productions 39 to 43 and what they use), straight into the columns of the message tree, or, for the
//! push parser, to an observer.
//!
//! One scanner reads the document and the replacement texts of entities, so a message gives the
//! same tree whichever way its text is written. Nesting of elements and of entities is kept on
//! explicit stacks; nothing recurses.

use super::chars::{NAME, SPACE, is, name_end, name_fault, skip_space};
use super::dtd::{AttributeList, Dtd, Entity};
use super::limits::Limits;
use super::namespaces::Namespaces;
use super::observer::{Observer, ScannedEnd, ScannedMarkup};
use super::qnames::{QNames, is_same_name};
use super::references::{Expansion, Reference, reference};
use super::refusal::{Code, Fault, Step};
use super::text::Pending;
use crate::xml::names::{NameId, NameTable};
use crate::xml::tree::MessageTree;

/// An element whose end tag has not been met.
pub(super) struct Open {
    /// Its number in the tree; without a tree, its name's.
    pub(crate) element: u32,
    /// Name as written, in the text that holds the start tag.
    pub(crate) name_start: u32,
    pub(crate) name_len: u32,
    /// Scope outside the element.
    pub(crate) context: u32,
    pub(crate) namespace_mark: u32,
}

/// Names kept from message to message, and bytes of their texts.
const NAMES_KEPT_MAX: usize = 65_536;
const NAME_BYTES_KEPT_MAX: usize = 8 << 20;

/// What outlives a message: stacks that keep their memory, and what is known of names.
pub(super) struct Memory {
    pub(crate) qnames: QNames,
    pub(crate) namespaces: Namespaces,
    pub(crate) open: Vec<Open>,
    /// Per name, the last clock at which it was seen: at or after `message_clock`, it has been
    /// counted in this message; equal to `clock`, it is an attribute of the element at hand.
    pub(crate) seen: Vec<u64>,
    /// Goes up with every message and every element, never back.
    pub(crate) clock: u64,
    /// Attributes of the element at hand whose prefix is not resolved yet.
    pub(crate) prefixed: Vec<Prefixed>,
    /// Per definition of the message's declarations, the clock of the last element with the
    /// attribute.
    pub(crate) specified: Vec<u64>,
}

/// An attribute with a prefix: its index and where its name is written.
#[derive(Clone, Copy)]
pub(super) struct Prefixed {
    pub(crate) attribute: u32,
    pub(crate) name: Written,
}

/// A name as written.
#[derive(Clone, Copy)]
pub(super) enum Written {
    /// In the text being read.
    Here { start: u32, end: u32 },
    /// In the declaration of this number for the element at hand.
    Declared { definition: u32 },
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory {
            qnames: QNames::new(),
            namespaces: Namespaces::new(),
            open: Vec::new(),
            seen: Vec::new(),
            clock: 0,
            prefixed: Vec::new(),
            specified: Vec::new(),
        }
    }

    /// Copies the names of the open elements behind one another to where they are read from now on.
    pub(crate) fn move_names(&mut self, from: &str, to: &mut String) {
        for open in &mut self.open {
            let start = open.name_start as usize;
            open.name_start = to.len() as u32;
            to.push_str(&from[start..start + open.name_len as usize]);
        }
    }

    /// Begins a message: empties what belongs to the one before, and what has grown too large.
    pub(crate) fn begin(&mut self, names: &mut NameTable) {
        if names.len() > NAMES_KEPT_MAX || names.text_bytes() > NAME_BYTES_KEPT_MAX {
            names.clear();
            self.qnames.clear();
        }
        if self.qnames.is_full() || self.namespaces.is_full() {
            self.qnames.clear();
            self.namespaces.clear();
        }
        self.open.clear();
        self.prefixed.clear();
        self.namespaces.begin();
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.qnames.held_bytes()
            + self.namespaces.held_bytes()
            + self.open.capacity() * size_of::<Open>()
            + self.seen.capacity() * 8
    }

    /// Forgets, between two tags, what is only there to be quick; `context` is the scope at hand.
    pub(crate) fn forget(&mut self, context: &mut u32) {
        self.qnames.clear();
        let outside = self.open.iter_mut().map(|open| &mut open.context);
        self.namespaces.forget(outside.chain(std::iter::once(context)));
    }
}

/// One message being read.
pub(super) struct Scanner<'a, O> {
    pub(crate) limits: &'a Limits,
    pub(crate) tree: &'a mut MessageTree,
    pub(crate) names: &'a mut NameTable,
    pub(crate) memory: &'a mut Memory,
    pub(crate) dtd: &'a Dtd,
    /// The document entity.
    pub(crate) document: &'a str,
    /// The document has carriage returns.
    pub(crate) has_return: bool,
    pub(crate) pending: Pending,
    /// What is declared for the element at hand.
    pub(crate) list: Option<&'a AttributeList>,
    /// Scope of the element at hand.
    pub(crate) context: u32,
    /// Where the outermost entity being read is referred to; `None` in the document itself.
    pub(crate) entity_place: Option<usize>,
    pub(crate) message_clock: u64,
    pub(crate) names_seen: u32,
    pub(crate) expansion: Expansion,
    /// The tree is full or has source spans: elements have more columns than those they always have.
    pub(crate) keeps_more: bool,
    pub(crate) elements_max: u64,
    pub(crate) observer: O,
}

/// Why a run over one text ended.
enum Stop {
    /// The root element is closed; the next byte.
    Closed(usize),
    /// The text is at its end.
    End,
    /// A reference to an entity other than the predefined ones: name, and the next byte.
    Entity { start: usize, end: usize, next: usize },
}

/// A text that waits for the end of an entity it refers to.
struct Frame<'a> {
    text: &'a str,
    resume: usize,
    open: usize,
    entity: usize,
}

impl<'a, O: Observer> Scanner<'a, O> {
    /// Reads the root element, from its `<` on, or on from where an observer has had it end; gives
    /// the byte after it.
    pub(crate) fn root(&mut self, start: usize) -> Step<usize> {
        let document = self.document;
        let mut at = start;
        if self.observer.resumes_cdata() {
            at = self.cdata(document, at)?;
        }
        match self.content(document, at, 0)? {
            Some(next) => Ok(next),
            None => Err(Fault::end("the root element", document.len())),
        }
    }

    /// Reads a part of the document to its end, or to that of the root element, after which it gives
    /// the next byte; `floor` elements must stay open.
    pub(crate) fn content(
        &mut self,
        part: &'a str,
        start: usize,
        floor: usize,
    ) -> Step<Option<usize>> {
        let dtd = self.dtd;
        let (mut text, mut at) = (part, start);
        let mut frames: Vec<Frame<'a>> = Vec::new();
        loop {
            let floor = frames.last().map_or(floor, |frame| frame.open);
            match self.run(text, at, floor)? {
                Stop::Closed(next) => return Ok(Some(next)),
                Stop::End => match frames.pop() {
                    None => return Ok(None),
                    Some(frame) => {
                        if self.memory.open.len() != frame.open {
                            return Err(self.unbalanced(dtd.name(frame.entity)));
                        }
                        self.expansion.close(frame.entity);
                        (text, at) = (frame.text, frame.resume);
                        if frames.is_empty() {
                            self.entity_place = None;
                        }
                    }
                },
                Stop::Entity { start, end, next } => {
                    self.tree.is_verbatim = false;
                    let place = self.entity_place.unwrap_or(start - 1);
                    let name = &text[start..end];
                    match dtd.entity(name, place)? {
                        None | Some((_, Entity::External)) => at = next,
                        Some((_, Entity::Unparsed)) => {
                            return Err(Fault::new(Code::EntityUnparsed, place).text("name", name));
                        }
                        Some((entity, Entity::Internal(inner))) => {
                            self.expansion.open(entity, name, inner.len(), self.limits, place)?;
                            let open = self.memory.open.len();
                            frames.push(Frame { text, resume: next, open, entity });
                            self.entity_place = Some(place);
                            (text, at) = (inner, 0);
                        }
                    }
                }
            }
        }
    }

    fn unbalanced(&self, name: &str) -> Box<Fault> {
        Fault::new(Code::EntityUnbalanced, self.entity_place.unwrap_or(0)).text("name", name)
    }

    /// Place in the document of a byte of the text being read.
    #[inline(always)]
    pub(crate) fn place(&self, at: usize) -> usize {
        self.entity_place.unwrap_or(at)
    }

    #[cold]
    pub(crate) fn fault(&self, code: Code, at: usize) -> Box<Fault> {
        Fault::new(code, self.place(at))
    }

    /// The text ends inside a construct.
    #[cold]
    pub(crate) fn end(&self, construct: &str) -> Box<Fault> {
        match self.entity_place {
            None => Fault::end(construct, self.document.len()),
            Some(place) => Fault::new(Code::EntityUnbalanced, place).text("name", construct),
        }
    }

    /// Reads content until something happens that concerns more than this text.
    fn run(&mut self, text: &str, mut at: usize, floor: usize) -> Step<Stop> {
        let bytes = text.as_bytes();
        loop {
            if !O::BUILDS_TREE && self.entity_place.is_none() {
                self.observer.token(text, at, self.expansion.bytes)?;
            }
            match bytes.get(at) {
                Some(b'<') => {
                    at = match bytes.get(at + 1) {
                        Some(b'/') => {
                            let next = self.end_tag(text, at, floor)?;
                            if self.memory.open.is_empty() {
                                return Ok(Stop::Closed(next));
                            }
                            next
                        }
                        Some(b'!') => self.markup(text, at)?,
                        Some(b'?') => {
                            self.flush_text(at)?;
                            self.instruction(text, at)?
                        }
                        _ => {
                            let next = self.start_tag(text, at)?;
                            if self.memory.open.is_empty() {
                                return Ok(Stop::Closed(next));
                            }
                            next
                        }
                    }
                }
                Some(b'&') => {
                    let (found, next) = reference(text, at).map_err(|fault| self.moved(fault))?;
                    match found {
                        Reference::Character(c) => self.add_character(c),
                        Reference::Entity { start, end } => {
                            return Ok(Stop::Entity { start, end, next });
                        }
                    }
                    at = next;
                }
                Some(_) => at = self.characters(text, at)?,
                None => return Ok(Stop::End),
            }
        }
    }

    /// A fault found in the text being read, told in terms of the document.
    #[cold]
    pub(crate) fn moved(&self, mut fault: Box<Fault>) -> Box<Fault> {
        match (self.entity_place, fault.code) {
            (None, _) => {}
            (Some(_), Code::End) => return self.end("reference"),
            (Some(place), _) => fault.at = place,
        }
        fault
    }

    /// An end tag, from its `<` on (production 42).
    #[inline(always)]
    fn end_tag(&mut self, text: &str, at: usize, floor: usize) -> Step<usize> {
        self.flush_text(at)?;
        let bytes = text.as_bytes();
        let start = at + 2;
        let Some(open) = self.memory.open.last() else {
            return Err(self.fault(Code::Tag, at));
        };
        if self.memory.open.len() <= floor {
            return Err(self.end("end tag"));
        }
        let (name_start, len) = (open.name_start as usize, open.name_len as usize);
        let name = &bytes[name_start..name_start + len];
        let mut next = start + len;
        let is_same = bytes.get(start..next).is_some_and(|found| is_same_name(found, name));
        if !(is_same && bytes.get(next).is_some_and(|&byte| !is(byte, NAME))) {
            return Err(self.wrong_end_tag(text, at));
        }
        if bytes[next] != b'>' {
            next = skip_space(bytes, next);
            match bytes.get(next) {
                Some(b'>') => {}
                Some(_) => return Err(self.fault(Code::Tag, next).text("expected", "\">\"")),
                None => return Err(self.end("an end tag")),
            }
        }
        self.close_element(text, at, next + 1);
        Ok(next + 1)
    }

    #[cold]
    fn wrong_end_tag(&self, text: &str, at: usize) -> Box<Fault> {
        let bytes = text.as_bytes();
        let end = name_end(bytes, at + 2);
        if end == bytes.len() {
            return self.end("an end tag");
        }
        let found = &text[at + 2..end];
        if let Some(fault) = name_fault(found) {
            return self.fault(Code::Name, at + 2 + fault).text("name", found);
        }
        let expected = self.memory.open.last().map_or("", |open| {
            &text[open.name_start as usize..(open.name_start + open.name_len) as usize]
        });
        self.fault(Code::TagMismatch, at).text("expected", expected).text("found", found)
    }

    /// Ends the innermost element, whose end tag these bytes are; none for an empty-element tag.
    #[inline(always)]
    pub(crate) fn close_element(&mut self, text: &str, start: usize, end: usize) {
        if let Some(open) = self.memory.open.pop() {
            if O::BUILDS_TREE {
                let element = open.element as usize;
                self.tree.element_end[element] = self.tree.name.len() as u32;
                self.tree.text_end[element] = self.tree.text_value.len() as u32;
                if self.keeps_more {
                    self.keep_end(element, end);
                }
            } else {
                self.observer.end(ScannedEnd {
                    text,
                    name: open.element,
                    name_len: open.name_len,
                    start,
                    end,
                    depth: self.memory.open.len(),
                    entity_place: self.entity_place,
                });
            }
            self.memory.namespaces.leave(open.namespace_mark);
            self.context = open.context;
        }
    }

    /// What begins with `<!` in content: a comment or a CDATA section.
    fn markup(&mut self, text: &str, at: usize) -> Step<usize> {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"<!--") {
            self.flush_text(at)?;
            return self.comment(text, at);
        }
        if rest.starts_with(b"<![CDATA[") {
            return self.cdata(text, at + 9);
        }
        let is_cut = |whole: &[u8]| whole.starts_with(rest);
        if is_cut(b"<!--") || is_cut(b"<![CDATA[") {
            return Err(self.end("markup"));
        }
        let code = if rest.starts_with(b"<!DOCTYPE") { Code::DoctypePlace } else { Code::Markup };
        Err(self.fault(code, at))
    }

    /// A CDATA section from its content on; gives the byte after it (productions 18 to 21).
    fn cdata(&mut self, text: &str, start: usize) -> Step<usize> {
        let (len, next) = match memchr::memmem::find(&text.as_bytes()[start..], b"]]>") {
            Some(len) => (len, start + len + 3),
            None if self.entity_place.is_none() && self.observer.takes_part_of_cdata() => {
                (text.len() - start, text.len())
            }
            None => return Err(self.end("a CDATA section")),
        };
        if len > 0 {
            self.add_run(text, start, start + len);
        }
        Ok(next)
    }

    /// Removes the traces of a tag of the document that begins at `start` and is not whole.
    pub(crate) fn abandon_tag(&mut self, start: usize) {
        let is_cut = |open: &mut Open| open.name_start as usize > start;
        if let Some(open) = self.memory.open.pop_if(is_cut) {
            self.memory.namespaces.abandon(open.namespace_mark);
            self.context = open.context;
        }
        self.memory.prefixed.clear();
    }

    /// Tells the observer of a comment or an instruction.
    #[inline(always)]
    pub(crate) fn show_markup(&mut self, text: &str, start: usize, end: usize) -> Step<()> {
        let (depth, entity_place) = (self.memory.open.len(), self.entity_place);
        self.observer.markup(&ScannedMarkup { text, start, end, depth, entity_place })
    }

    /// Counts a name of this message; `mark` is the clock to remember it with.
    #[inline(always)]
    pub(crate) fn see(&mut self, name: NameId, mark: u64, at: usize) -> Step<u64> {
        let index = name as usize;
        if index >= self.memory.seen.len() {
            self.memory.seen.resize(index + 64, 0);
        }
        let before = self.memory.seen[index];
        if before < self.message_clock {
            if self.names_seen >= self.limits.names_max {
                let maximum = self.limits.names_max.into();
                let at = self.place(at);
                return Err(Fault::limit(Code::LimitNames, at, "names_max", maximum + 1, maximum));
            }
            self.names_seen += 1;
            self.memory.seen[index] = mark;
        } else if mark > before {
            self.memory.seen[index] = mark;
        }
        Ok(before)
    }
}

/// A comment, from its `<` on; gives the byte after it (production 15).
pub(super) fn skip_comment(text: &str, at: usize) -> Step<usize> {
    let bytes = text.as_bytes();
    let Some(len) = memchr::memmem::find(&bytes[at + 4..], b"--") else {
        return Err(Fault::end("a comment", text.len()));
    };
    let end = at + 4 + len;
    match bytes.get(end + 2) {
        Some(b'>') => Ok(end + 3),
        Some(_) => Err(Fault::new(Code::Comment, end)),
        None => Err(Fault::end("a comment", text.len())),
    }
}

/// A processing instruction, from its `<` on; gives the byte after it (productions 16 and 17).
pub(super) fn skip_instruction(text: &str, at: usize) -> Step<usize> {
    let bytes = text.as_bytes();
    let start = at + 2;
    let end = name_end(bytes, start);
    if end == bytes.len() {
        return Err(Fault::end("a processing instruction", text.len()));
    }
    let target = &text[start..end];
    if let Some(fault) = name_fault(target) {
        return Err(Fault::new(Code::Name, start + fault).text("name", target));
    }
    if target.eq_ignore_ascii_case("xml") {
        return Err(Fault::new(Code::InstructionTarget, at).text("name", target));
    }
    if let Some(colon) = target.find(':') {
        return Err(Fault::new(Code::NsColon, start + colon).text("name", target));
    }
    if bytes[end..].starts_with(b"?>") {
        return Ok(end + 2);
    }
    if !is(bytes[end], SPACE) {
        if &bytes[end..] == b"?" {
            return Err(Fault::end("a processing instruction", text.len()));
        }
        return Err(Fault::new(Code::Instruction, end));
    }
    match memchr::memmem::find(&bytes[end..], b"?>") {
        Some(len) => Ok(end + len + 2),
        None => Err(Fault::end("a processing instruction", text.len())),
    }
}
