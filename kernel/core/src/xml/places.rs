//! Places of nodes: which of its kind a node is, and where it lies in the bytes that came.
//!
//! ```
//! use pathcast_core::xml::parser::{Door, Limits};
//! use pathcast_core::xml::places::{NodeKind, Places};
//! use pathcast_core::xml::tree::NodeRef;
//!
//! let mut door = Door::new(Limits::default());
//! door.keep_source_spans(true);
//! let message = b"<o><item n='1'>a</item></o>";
//! let parsed = door.parse(message, None)?;
//! let places = Places::of(parsed.message, Some(message));
//! let place = places.place(NodeRef::Element(1));
//! assert_eq!((place.kind, place.number), (NodeKind::Element, 1));
//! assert_eq!(place.span, Some(3..23));
//! # Ok::<(), Box<pathcast_core::xml::parser::Refusal>>(())
//! ```
//!
//! What it does not do: say where comments, instructions and namespace nodes lie.

#![forbid(unsafe_code)]

use super::tree::{MarkupKind, Message, NONE, NodeRef, Span};
use std::cell::OnceCell;
use std::ops::Range;

/// Bytes that a place counts for, where the length of results is limited.
pub const PLACE_BYTES: usize = 16;

/// The kinds of nodes of XPath 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The document node.
    Document,
    /// An element.
    Element,
    /// An attribute.
    Attribute,
    /// A text node.
    Text,
    /// A comment.
    Comment,
    /// A processing instruction.
    Instruction,
    /// A namespace node.
    Namespace,
}

impl NodeKind {
    /// All of them, by number.
    pub const ALL: [NodeKind; 7] = {
        use NodeKind::*;
        [Document, Element, Attribute, Text, Comment, Instruction, Namespace]
    };

    /// As XPath calls it.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Document => "document",
            NodeKind::Element => "element",
            NodeKind::Attribute => "attribute",
            NodeKind::Text => "text",
            NodeKind::Comment => "comment",
            NodeKind::Instruction => "processing-instruction",
            NodeKind::Namespace => "namespace",
        }
    }
}

/// The place of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it is.
    pub kind: NodeKind,
    /// How many nodes of its kind come before it in the message; of a namespace node, the number of its element.
    pub number: u32,
    /// Where it lies in the bytes that came: an element from its start tag to its end tag, the value of an attribute,
    /// the text of a text node, if the message has it as it stands; the document node is all that came. None for other
    /// nodes, and where the bytes are not those that came: in another encoding than UTF-8, in an entity, by a
    /// declaration.
    pub span: Option<Range<u32>>,
}

/// The places of the nodes of one message.
#[derive(Debug)]
pub struct Places<'m> {
    message: Message<'m>,
    /// Length of the bytes that came, and how many of them are before the source; none if the source is not in them.
    came: Option<(u32, u32)>,
    /// By number among comments and instructions: how many of the same kind come before.
    ranks: OnceCell<Vec<u32>>,
}

impl<'m> Places<'m> {
    /// The places of the nodes of a message that was parsed with [`crate::xml::parser::Door::keep_source_spans`] from
    /// these bytes; without spans if there are none. Cost: none before the first place.
    pub fn of(message: Message<'m>, came: Option<&[u8]>) -> Places<'m> {
        let came = came.and_then(|came| Some((came.len() as u32, before(message.source, came)?)));
        Places { message, came, ranks: OnceCell::new() }
    }

    /// The place of a node. Cost: constant; a pass over comments and instructions for the first of these.
    pub fn place(&self, node: NodeRef) -> Place {
        let tree = self.message.tree;
        let (kind, number, span) = match node {
            NodeRef::Document => (NodeKind::Document, 0, None),
            NodeRef::Element(element) => (NodeKind::Element, element, self.element(element)),
            NodeRef::Attribute(attribute) => {
                let element = tree.attribute_start.partition_point(|&start| start <= attribute) - 1;
                let value = tree.attribute_value[attribute as usize];
                (NodeKind::Attribute, attribute, self.value(value, element as u32))
            }
            NodeRef::Text(text) => {
                let parent = tree.text_parent[text as usize];
                (NodeKind::Text, text, self.value(tree.text_value[text as usize], parent))
            }
            NodeRef::Comment(markup) => (NodeKind::Comment, self.rank(markup), None),
            NodeRef::Instruction(markup) => (NodeKind::Instruction, self.rank(markup), None),
            NodeRef::Namespace(element, _) => (NodeKind::Namespace, element, None),
        };
        let span = match (kind, self.came) {
            (NodeKind::Document, Some((len, _))) => Some(0..len),
            (_, Some((_, before))) => span.map(|span| span.start + before..span.end + before),
            (_, None) => None,
        };
        Place { kind, number, span }
    }

    /// Where an element lies in the source.
    fn element(&self, element: u32) -> Option<Range<u32>> {
        let tree = self.message.tree;
        let (start, end) = (tree.source_start[element as usize], tree.source_end[element as usize]);
        // One that an entity holds has its own start for an end.
        (end > start).then_some(start..end)
    }

    /// Where a value lies in the source. One that a declaration gives lies outside its element.
    fn value(&self, value: Span, element: u32) -> Option<Range<u32>> {
        if element == NONE || value.len_and_place & Span::IN_SCRATCH != 0 {
            return None;
        }
        let around = self.element(element)?;
        let span = value.start..value.start + value.len() as u32;
        (around.start < span.start && span.end < around.end).then_some(span)
    }

    fn rank(&self, markup: u32) -> u32 {
        let ranks = self.ranks.get_or_init(|| {
            let mut found = [0; 2];
            let kinds = self.message.tree.markup_kind.iter();
            let rank = |&kind: &MarkupKind| {
                let rank = &mut found[usize::from(kind == MarkupKind::Comment)];
                *rank += 1;
                *rank - 1
            };
            kinds.map(rank).collect()
        });
        ranks[markup as usize]
    }
}

/// Bytes that came before the source; none if the source is a copy, in another encoding.
pub(crate) fn before(source: &[u8], came: &[u8]) -> Option<u32> {
    let (source, came) = (source.as_ptr_range(), came.as_ptr_range());
    let is_inside = came.start <= source.start && source.end <= came.end;
    is_inside.then(|| (source.start as usize - came.start as usize) as u32)
}
