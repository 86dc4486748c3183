//! The message tree: one message as columns (struct of arrays).
//!
//! Elements are numbered in document order from 0 (the root element). Every column of elements
//! has one entry per element. Text nodes are those of XPath 1.0: maximal runs of character data,
//! CDATA sections merged in, split by tags, comments and processing instructions. They are numbered
//! in document order too, so the text nodes inside an element are the half-open range
//! `text_start[e]..text_end[e]`, and the elements inside it are `e + 1..element_end[e]`.
//!
//! Values are spans: most point into the message itself; a value that had to be changed (entity
//! reference, line end, attribute normalisation) lies in `scratch`.

use crate::xml::names::NameId;
use std::ops::Range;

/// No element: the parent of the root.
pub const NONE: u32 = u32::MAX;

/// A value: a run of bytes of the message or of the scratch buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub(crate) start: u32,
    /// Length in bytes, with [`Span::IN_SCRATCH`] set when the bytes lie in the scratch buffer.
    pub(crate) len_and_place: u32,
}

impl Span {
    /// Flag bit in `len_and_place`.
    pub(crate) const IN_SCRATCH: u32 = 1 << 31;

    /// A run of the message.
    #[inline]
    pub fn in_message(start: u32, len: u32) -> Self {
        Span { start, len_and_place: len }
    }

    /// A run of the scratch buffer.
    #[inline]
    pub fn in_scratch(start: u32, len: u32) -> Self {
        Span { start, len_and_place: len | Self::IN_SCRATCH }
    }

    /// Length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a span is a place, not a collection")]
    #[inline]
    pub fn len(self) -> usize {
        (self.len_and_place & !Self::IN_SCRATCH) as usize
    }
}

/// What a comment or processing instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupKind {
    /// `<!-- content -->`
    Comment,
    /// `<?target content?>`
    Instruction,
}

/// The columns of one message; reused from message to message.
#[derive(Debug, Default)]
pub struct MessageTree {
    /// Expanded name of each element.
    pub name: Vec<NameId>,
    /// Parent element, [`NONE`] for the root.
    pub parent: Vec<u32>,
    /// Depth of each element; the root has 0.
    pub depth: Vec<u32>,
    /// One past the last element of the subtree.
    pub element_end: Vec<u32>,
    /// First attribute of each element; one entry more than there are elements, so that the
    /// attributes of `e` are `attribute_start[e]..attribute_start[e + 1]`. Namespace declarations
    /// are not attributes (XPath 1.0, 5.3).
    pub attribute_start: Vec<u32>,
    /// First text node inside each element.
    pub text_start: Vec<u32>,
    /// One past the last text node inside each element.
    pub text_end: Vec<u32>,
    /// Expanded name of each attribute.
    pub attribute_name: Vec<NameId>,
    /// Normalised value of each attribute.
    pub attribute_value: Vec<Span>,
    /// Element that each text node is a child of.
    pub text_parent: Vec<u32>,
    /// Content of each text node, line ends normalised, references expanded.
    pub text_value: Vec<Span>,
    /// Whether the columns from here on are kept; they are empty otherwise. Paths over elements,
    /// attributes and text do without; some expressions need them.
    pub is_full: bool,
    /// Kind of each comment or processing instruction, in document order; those of the prolog and
    /// those after the root element are among them, those of a document type declaration are not.
    pub markup_kind: Vec<MarkupKind>,
    /// Element that each of them is a child of, [`NONE`] outside the root element.
    pub markup_parent: Vec<u32>,
    /// Number of text nodes before each of them.
    pub markup_texts_before: Vec<u32>,
    /// Target of each processing instruction; empty for comments.
    pub markup_target: Vec<Span>,
    /// Content of each of them.
    pub markup_content: Vec<Span>,
    /// Number of comments and instructions before each element.
    pub markup_start: Vec<u32>,
    /// The same for the end of each element, so that those inside it are
    /// `markup_start[e]..markup_end[e]`.
    pub markup_end: Vec<u32>,
    /// Prefix of each element as written, empty if it has none.
    pub prefix: Vec<Span>,
    /// Prefix of each attribute as written, empty if it has none.
    pub attribute_prefix: Vec<Span>,
    /// First namespace declaration of each element, with one entry more, as `attribute_start`.
    pub declaration_start: Vec<u32>,
    /// Prefix that each declaration binds; empty for the default namespace.
    pub declaration_prefix: Vec<Span>,
    /// Namespace it binds the prefix to; empty for `xmlns=""`.
    pub declaration_uri: Vec<Span>,
    /// Attributes that the document type declaration says are of type ID, ascending.
    pub id_attribute: Vec<u32>,
    /// Whether [`MessageTree::source_start`] and [`MessageTree::source_end`] are kept, and with them
    /// the namespace declarations (without `declaration_start` if the tree is not full).
    pub has_source_spans: bool,
    /// Byte of the message at which the start tag of each element begins (its `<`).
    pub source_start: Vec<u32>,
    /// One past the last byte of the end tag of each element, or of its empty-element tag. Equal to
    /// `source_start` for an element that an entity holds: it is nowhere in the message.
    pub source_end: Vec<u32>,
    /// The bytes of every element mean, on their own and without the document type declaration, what
    /// they mean here, but for the namespaces in scope around them. Not so once the message has
    /// referred to a declared entity, or been given something by an attribute-list declaration.
    /// Said only if source spans are kept.
    pub is_verbatim: bool,
    /// Element that each namespace declaration belongs to.
    pub declaration_element: Vec<u32>,
    /// UTF-8 text of a message that came in another encoding; empty when the message was UTF-8.
    pub decoded: String,
    /// Values that differ from the text they came from.
    pub scratch: String,
}

impl MessageTree {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// The text nodes in an element.
    pub(crate) fn texts(&self, element: u32) -> Range<u32> {
        self.text_start[element as usize]..self.text_end[element as usize]
    }

    /// The attributes of an element.
    pub(crate) fn attributes(&self, element: u32) -> Range<usize> {
        let start = self.attribute_start[element as usize] as usize;
        start..self.attribute_start[element as usize + 1] as usize
    }

    /// Calls `f` with the text nodes that are children of an element. Walks from child element to child
    /// element, so that text deeper down is stepped over.
    pub(crate) fn each_text(&self, element: u32, mut f: impl FnMut(u32)) {
        let Range { start: mut from, end } = self.texts(element);
        let mut child = element + 1;
        while from < end && child < self.element_end[element as usize] {
            (from..self.text_start[child as usize]).for_each(&mut f);
            from = self.text_end[child as usize];
            child = self.element_end[child as usize];
        }
        (from..end).for_each(f);
    }

    /// Empties all columns, keeping their memory.
    pub(crate) fn clear(&mut self) {
        self.name.clear();
        self.parent.clear();
        self.depth.clear();
        self.element_end.clear();
        self.attribute_start.clear();
        self.text_start.clear();
        self.text_end.clear();
        self.attribute_name.clear();
        self.attribute_value.clear();
        self.text_parent.clear();
        self.text_value.clear();
        if self.is_full || self.has_source_spans {
            self.clear_full();
        }
        self.decoded.clear();
        self.scratch.clear();
    }

    #[cold]
    fn clear_full(&mut self) {
        self.markup_kind.clear();
        self.markup_parent.clear();
        self.markup_texts_before.clear();
        self.markup_target.clear();
        self.markup_content.clear();
        self.markup_start.clear();
        self.markup_end.clear();
        self.prefix.clear();
        self.attribute_prefix.clear();
        self.declaration_start.clear();
        self.declaration_prefix.clear();
        self.declaration_uri.clear();
        self.declaration_element.clear();
        self.id_attribute.clear();
        self.source_start.clear();
        self.source_end.clear();
    }
}

/// A parsed message: the columns and the bytes their spans point into.
#[derive(Clone, Copy, Debug)]
pub struct Message<'m> {
    /// The columns.
    pub tree: &'m MessageTree,
    /// The message as UTF-8 (the caller's bytes, or `tree.decoded`).
    pub source: &'m [u8],
}

impl<'m> Message<'m> {
    /// The bytes (valid UTF-8) of a value.
    pub fn bytes(&self, span: Span) -> &'m [u8] {
        let start = span.start as usize;
        let end = start + span.len();
        if span.len_and_place & Span::IN_SCRATCH == 0 {
            &self.source[start..end]
        } else {
            &self.tree.scratch.as_bytes()[start..end]
        }
    }
}

/// A node of a message, by its number in the columns of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// The document node.
    Document,
    /// An element.
    Element(u32),
    /// An attribute.
    Attribute(u32),
    /// The namespace node of an element for one of the declarations in force; none for `xml`.
    Namespace(u32, Option<u32>),
    /// A text node.
    Text(u32),
    /// A comment, by its number among comments and instructions.
    Comment(u32),
    /// A processing instruction, by its number among comments and instructions.
    Instruction(u32),
}
