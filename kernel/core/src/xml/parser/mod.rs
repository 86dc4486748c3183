//! The door: bytes to a message tree, or a typed refusal.
//!
//! It is what XML 1.0 (fifth edition) and Namespaces in XML 1.0 (third edition) ask of a
//! non-validating processor, with a bound on everything a message can cost. It fetches nothing:
//! external entities and the external subset are left out, as the recommendation allows.
//!
//! ```
//! use pathcast_core::xml::parser::{Door, Limits};
//!
//! let mut door = Door::new(Limits::default());
//! let parsed = door.parse(b"<a b='1'>x</a>", None)?;
//! assert_eq!(parsed.names.local(parsed.message.tree.name[0]), "a");
//!
//! let refusal = door.parse(b"<a>\n</b>", None).unwrap_err();
//! assert_eq!(refusal.code.as_str(), "xml.tag.mismatch");
//! assert_eq!((refusal.line, refusal.column, refusal.offset), (2, 1, 4));
//! # Ok::<(), pathcast_core::xml::parser::Refusal>(())
//! ```
//!
//! What it does not do: validate, resolve relative references, keep comments, instructions and
//! prefixes unless it is asked to ([`Door::keep_full_tree`]).

#![forbid(unsafe_code)]

mod attlist;
mod attributes;
mod chars;
mod declaration;
mod doctype;
mod dtd;
mod element_declarations;
mod encoding;
mod entity_declarations;
mod full_tree;
mod head;
mod limits;
mod namespaces;
mod observer;
mod prolog;
pub mod push;
mod qnames;
mod references;
mod refusal;
mod scan;
mod text;
mod value;

pub(crate) use chars::{NAME, SPACE, is, is_ncname_char, is_ncname_start, name_end};
pub use head::{Head, read_head};
pub use limits::{DtdPolicy, Limits};
pub use refusal::{Code, Param, Refusal};

use crate::xml::names::NameTable;
use crate::xml::tree::{Message, MessageTree};
use dtd::Dtd;
use encoding::{Charset, Detected};
use refusal::{Fault, Step};
use scan::Memory;
use std::collections::BTreeMap;

/// Reads messages one after the other, keeping its memory and what it knows of names.
pub struct Door {
    limits: Limits,
    names: NameTable,
    tree: MessageTree,
    memory: Memory,
    keeps_full_tree: bool,
    keeps_source_spans: bool,
    /// What the last message has declared, where that gives attributes and spans are kept.
    dtd: Option<Dtd>,
    /// Bytes of the byte order mark of the last message.
    mark: usize,
}

/// What the door gives for a message it lets in.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'m> {
    /// The tree and the text it points into.
    pub message: Message<'m>,
    /// The names that the tree's ids stand for.
    pub names: &'m NameTable,
    /// The message as it was published.
    pub original: &'m [u8],
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Door {
    /// A door with these limits.
    pub fn new(limits: Limits) -> Self {
        Door {
            limits,
            names: NameTable::default(),
            tree: MessageTree::default(),
            memory: Memory::new(),
            keeps_full_tree: false,
            keeps_source_spans: false,
            dtd: None,
            mark: 0,
        }
    }

    /// Keeps, from the next message on, what only some expressions ask for: comments,
    /// instructions, prefixes, namespace declarations and declared ids
    /// ([`crate::xml::tree::MessageTree::is_full`]).
    pub fn keep_full_tree(&mut self, keeps: bool) {
        self.keeps_full_tree = keeps;
    }

    /// Keeps, from the next message on, where each element lies in the message, and its namespace
    /// declarations: what [`crate::xml::serializer`] needs to copy elements. A message with a document type
    /// declaration then gets a full tree, because its elements may have to be written anew.
    pub fn keep_source_spans(&mut self, keeps: bool) {
        self.keeps_source_spans = keeps;
    }

    /// The tree of the last message, and its names.
    pub fn into_parts(self) -> (MessageTree, NameTable) {
        (self.tree, self.names)
    }

    /// The names met so far. Ids stay good while [`NameTable::generation`] does.
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    /// Reads one message. `encoding` is what the caller knows of its encoding; it goes before
    /// byte order mark and declaration.
    pub fn parse<'m>(
        &'m mut self,
        bytes: &'m [u8],
        encoding: Option<&str>,
    ) -> Result<Parsed<'m>, Refusal> {
        self.begin();
        let mut decoded = std::mem::take(&mut self.tree.decoded);
        let outcome = self.parse_into(bytes, encoding, &mut decoded);
        self.tree.decoded = decoded;
        match outcome {
            Ok(mark) => {
                self.mark = mark;
                Ok(self.last(bytes))
            }
            Err(refusal) => {
                self.tree.clear();
                Err(*refusal)
            }
        }
    }

    /// The message that was read last, of which these are the bytes.
    pub(crate) fn last<'m>(&'m self, bytes: &'m [u8]) -> Parsed<'m> {
        let source = if self.tree.decoded.is_empty() {
            &bytes[self.mark..]
        } else {
            self.tree.decoded.as_bytes()
        };
        let message = Message { tree: &self.tree, source };
        Parsed { message, names: &self.names, original: bytes }
    }

    /// Name and value of the attributes that the last message gives by default to elements of a name, as it is written.
    /// Said only if source spans are kept.
    pub(crate) fn default_attributes(&self, element: &str) -> BTreeMap<&str, &str> {
        let list = self.dtd.as_ref().and_then(|dtd| dtd.attribute_list(element));
        let definitions = list.into_iter().flat_map(|list| &list.definitions);
        definitions.filter_map(|each| Some((&*each.name, each.default.as_deref()?))).collect()
    }

    /// Empties what belongs to the message before, and what has grown too large.
    fn begin(&mut self) {
        if has_idle_memory(&self.tree) {
            self.tree = MessageTree::default();
        }
        self.tree.clear();
        self.dtd = None;
        self.tree.is_full = self.keeps_full_tree;
        self.tree.has_source_spans = self.keeps_source_spans;
        self.tree.is_verbatim = self.keeps_source_spans;
        if self.keeps_full_tree {
            self.tree.declaration_start.push(0);
        }
        self.memory.begin(&mut self.names);
    }

    /// Gives the length of the byte order mark.
    fn parse_into(
        &mut self,
        bytes: &[u8],
        encoding: Option<&str>,
        decoded: &mut String,
    ) -> Result<usize, Box<Refusal>> {
        let early = Detected { charset: Charset::Latin1, mark: 0, is_given: false };
        let refuse = |fault: Box<Fault>| Err(Box::new(refusal_at(*fault, bytes, early, "")));
        if let Err(fault) = self.check_size(bytes.len()) {
            return refuse(fault);
        }
        let detected = match encoding::detect(bytes, encoding) {
            Ok(detected) => detected,
            Err(fault) => return refuse(fault),
        };
        let body = &bytes[detected.mark..];
        let survey = chars::survey(body);
        let decoding = match detected.charset {
            Charset::Utf8 | Charset::Ascii => Ok(()),
            charset => encoding::decode(body, charset, decoded),
        };
        if let Err(fault) = decoding.and_then(|()| self.check_size(decoded.len())) {
            return Err(Box::new(refusal_at(*fault, bytes, detected, decoded)));
        }
        let is_decoded = !matches!(detected.charset, Charset::Utf8 | Charset::Ascii);
        let (text, survey) = if is_decoded {
            (decoded.as_str(), chars::survey(decoded.as_bytes()))
        } else {
            match utf8(body, detected.charset, survey) {
                Ok(text) => (text, survey),
                Err(at) => {
                    let good = std::str::from_utf8(&body[..at]).unwrap_or("");
                    let fault = encoding::invalid(detected.charset, at);
                    return Err(Box::new(refusal_at(*fault, bytes, detected, good)));
                }
            }
        };
        match self.read(text, survey, detected, bytes.len()) {
            Ok(()) => Ok(detected.mark),
            Err(fault) => Err(Box::new(refusal_at(*fault, bytes, detected, text))),
        }
    }

    fn check_size(&self, len: usize) -> Step<()> {
        let maximum = self.limits.text_bytes_max();
        if len as u64 <= maximum {
            return Ok(());
        }
        Err(Fault::limit(Code::LimitMessageBytes, 0, "message_bytes_max", len as u64, maximum))
    }
}

/// Whether the last message used little of what a larger one before it has left behind.
fn has_idle_memory(tree: &MessageTree) -> bool {
    let is_idle = |kept: usize, used: usize, floor: usize| kept / 8 > used.max(floor);
    is_idle(tree.name.capacity(), tree.name.len(), 1 << 13)
        || is_idle(tree.attribute_name.capacity(), tree.attribute_name.len(), 1 << 13)
        || is_idle(tree.text_value.capacity(), tree.text_value.len(), 1 << 13)
        || tree.is_full && is_idle(tree.prefix.capacity(), tree.prefix.len(), 1 << 13)
        || tree.is_full && is_idle(tree.markup_kind.capacity(), tree.markup_kind.len(), 1 << 13)
        || is_idle(tree.declaration_uri.capacity(), tree.name.len(), 1 << 13)
        || tree.has_source_spans && is_idle(tree.source_start.capacity(), tree.name.len(), 1 << 13)
        || is_idle(tree.scratch.capacity(), tree.scratch.len(), 1 << 17)
        || is_idle(tree.decoded.capacity(), tree.decoded.len(), 1 << 17)
}

/// The message as text, or the place of the first byte that is none.
fn utf8(body: &[u8], charset: Charset, survey: chars::Survey) -> Result<&str, usize> {
    if charset == Charset::Ascii && !survey.is_ascii {
        return Err(body.iter().position(|&byte| byte >= 0x80).unwrap_or(0));
    }
    std::str::from_utf8(body).map_err(|error| error.valid_up_to())
}

/// Counts line and column of a fault.
#[cold]
fn refusal_at(fault: Fault, bytes: &[u8], detected: Detected, text: &str) -> Refusal {
    let body = &bytes[detected.mark.min(bytes.len())..];
    // Before the encoding is known there is no text; the place is in the bytes themselves.
    let early: String;
    let text = if text.is_empty() && fault.at > 0 {
        early = body[..fault.at.min(body.len())].iter().map(|&byte| char::from(byte)).collect();
        return Refusal { offset: fault.at as u64, ..place(fault, &early, early.len()) };
    } else {
        text
    };
    let offset = detected.mark + encoding::original_offset(detected.charset, body, text, fault.at);
    let at = fault.at;
    Refusal { offset: offset as u64, ..place(fault, text, at) }
}

fn place(fault: Fault, text: &str, at: usize) -> Refusal {
    let before = text.get(..at).unwrap_or(text);
    let bytes = before.as_bytes();
    let mut line = 1;
    let mut start = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte == b'\n' || (byte == b'\r' && text.as_bytes().get(index + 1) != Some(&b'\n')) {
            line += 1;
            start = index + 1;
        }
    }
    let column = before[start..].chars().count() as u64 + 1;
    Refusal { code: fault.code, line, column, offset: 0, params: fault.params }
}
