//! What a push parser hands on.

use super::super::attributes::written_name;
use super::super::dtd::AttributeList;
use super::super::scan::{Memory, Prefixed};
use crate::xml::names::{NameId, NameTable};
use crate::xml::tree::{MessageTree, Span};

/// Who gets the events of a message, in document order. Each method does nothing unless it is written.
///
/// The sources of the events between the beginning of the root element and its end, joined, are the
/// bytes of the message (as UTF-8). Only where the message refers to an entity that it declares are
/// there events of what is nowhere in the message: see `is_in_entity` of tags and markup.
pub trait Handler {
    /// A start tag or an empty-element tag.
    fn start(&mut self, _tag: &StartTag<'_>) {}

    /// The end of an element; its source is empty if it had an empty-element tag.
    fn end(&mut self, _tag: &EndTag<'_>) {}

    /// A part of a text node; the next event that is no text ends the node.
    fn text(&mut self, _text: &Text<'_>) {}

    /// A comment, a processing instruction, the XML declaration or the document type declaration.
    fn markup(&mut self, _markup: &Markup<'_>) {}

    /// What has arrived has been read as far as it goes. So whoever wants the sources of many events needs
    /// not take each: those since the last call are here, all at once.
    fn paused(&mut self, _held: &Held<'_>) {}
}

/// The text in which the sources of the latest events lie.
#[derive(Clone, Copy, Debug)]
pub struct Held<'e> {
    pub(super) text: &'e str,
    pub(super) base: u64,
}

impl<'e> Held<'e> {
    /// What lies between two offsets of events.
    #[inline]
    pub(crate) fn between(&self, start: u64, end: u64) -> &'e str {
        &self.text[start.wrapping_sub(self.base) as usize..end.wrapping_sub(self.base) as usize]
    }
}

/// A start tag or an empty-element tag.
pub struct StartTag<'e> {
    /// Expanded name.
    pub name: NameId,
    /// Offset of its `<`.
    pub start: u64,
    /// Offset of the byte after it.
    pub end: u64,
    /// Elements around it; the root has 0.
    pub depth: u32,
    /// It is an empty-element tag: the element's end follows at once.
    pub is_empty: bool,
    /// It comes from an entity. `start` and `end` are the place of the outermost reference then.
    pub is_in_entity: bool,
    /// As [`MessageTree::is_verbatim`], of all up to here.
    pub is_verbatim: bool,
    /// The tag as written.
    pub source: &'e str,
    pub(super) written: &'e str,
    pub(super) text: &'e str,
    pub(super) document: &'e str,
    pub(super) tag_at: usize,
    pub(super) tree: &'e MessageTree,
    pub(super) list: Option<&'e AttributeList>,
    pub(super) names: &'e NameTable,
    pub(super) memory: &'e Memory,
}

/// An attribute that is given or has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'e> {
    /// Expanded name.
    pub name: NameId,
    /// Prefix as written, "" for none.
    pub prefix: &'e str,
    /// Normalised value.
    pub value: &'e str,
}

impl<'e> StartTag<'e> {
    /// What name ids stand for.
    #[inline]
    pub fn names(&self) -> &'e NameTable {
        self.names
    }

    /// The name as written.
    pub fn written(&self) -> &'e str {
        self.written
    }

    /// The prefix as written, "" for none.
    pub fn prefix(&self) -> &'e str {
        prefix_of(self.written)
    }

    /// The attributes in the order they stand in, then those that the document type declaration adds.
    /// Namespace declarations are not among them.
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = Attribute<'e>> + use<'e> {
        let (tree, document) = (self.tree, self.document);
        let (text, tag_at, list) = (self.text, self.tag_at, self.list);
        let mut prefixed = self.memory.prefixed.iter().peekable();
        let pairs = tree.attribute_name.iter().zip(&tree.attribute_value).enumerate();
        pairs.map(move |(index, (&name, &value))| {
            let found = prefixed.next_if(|it| it.attribute as usize == index);
            let prefix = found.map_or("", |&Prefixed { name, .. }| {
                prefix_of(written_name(text, tag_at, list, name).0)
            });
            Attribute { name, prefix, value: text_of(document, tree, value) }
        })
    }

    /// The namespace declarations of this tag: prefix ("" for the default namespace) and namespace ("" if
    /// it takes the default away).
    pub fn declarations(&self) -> impl Iterator<Item = (&'e str, &'e str)> + use<'e> {
        let (tree, document) = (self.tree, self.document);
        let pairs = tree.declaration_prefix.iter().zip(&tree.declaration_uri);
        pairs.map(move |(&prefix, &uri)| {
            (text_of(document, tree, prefix), text_of(document, tree, uri))
        })
    }

    /// The namespace that a prefix ("" for the default) has in this element; `None` if it has none.
    pub fn namespace(&self, prefix: &str) -> Option<&'e str> {
        self.memory.namespaces.resolve(prefix, 0).ok().filter(|uri| !uri.is_empty())
    }
}

/// The end of an element.
#[derive(Clone, Copy, Debug)]
pub struct EndTag<'e> {
    /// Expanded name of the element.
    pub name: NameId,
    /// Offset of its `<`, or of the byte after an empty-element tag.
    pub start: u64,
    /// Offset of the byte after it.
    pub end: u64,
    /// As that of the start tag.
    pub depth: u32,
    /// See [`StartTag::is_in_entity`].
    pub is_in_entity: bool,
    /// The end tag as written; empty after an empty-element tag.
    pub source: &'e str,
}

/// A part of a text node.
#[derive(Clone, Copy, Debug)]
pub struct Text<'e> {
    /// References expanded, line ends normalised, CDATA sections opened; may be empty.
    pub value: &'e str,
    /// What of the message it stands for; a CDATA section may be cut anywhere inside.
    pub source: &'e str,
    /// Offset of the source.
    pub start: u64,
    /// Offset of the byte after it.
    pub end: u64,
}

/// What some markup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupKind {
    /// `<?xml version="1.0"?>`
    Declaration,
    /// `<!DOCTYPE ...>` with its internal subset.
    DocumentType,
    /// `<!-- -->`
    Comment,
    /// `<? ?>`
    Instruction,
}

/// Markup that is no tag.
#[derive(Clone, Copy, Debug)]
pub struct Markup<'e> {
    /// What it is.
    pub kind: MarkupKind,
    /// As written, from its `<` to its `>`.
    pub source: &'e str,
    /// Offset of its `<`.
    pub start: u64,
    /// Offset of the byte after it.
    pub end: u64,
    /// Elements around it.
    pub depth: u32,
    /// See [`StartTag::is_in_entity`].
    pub is_in_entity: bool,
}

impl std::fmt::Debug for StartTag<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StartTag").field(&self.source).field(&self.start).finish()
    }
}

fn prefix_of(written: &str) -> &str {
    written.split_once(':').map_or("", |(prefix, _)| prefix)
}

fn text_of<'e>(document: &'e str, tree: &'e MessageTree, span: Span) -> &'e str {
    let text = if span.len_and_place & Span::IN_SCRATCH == 0 { document } else { &tree.scratch };
    &text[span.start as usize..span.start as usize + span.len()]
}
