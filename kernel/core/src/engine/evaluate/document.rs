//! A message as XPath's tree: every node in document order.
//!
//! Document node, elements, text nodes, comments and instructions have a position, counted through
//! the document from 0. A namespace or attribute node has the position of its element and a number
//! behind it, so that the order of the numbers is document order for all nodes (XPath 1.0, 5).

use crate::xml::names::NameTable;
use crate::xml::tree::{Message, MessageTree, NONE, Span};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

/// A node: position, then number among the namespace and attribute nodes of the element (0: the
/// node at the position itself). Ordered as the document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node(u64);

/// Second half of an attribute: this and its number in the message.
const ATTRIBUTE: u32 = 1 << 31;
/// Second half of the namespace node of the prefix `xml`; declarations follow.
const XML_NAMESPACE: u32 = 1;
const DECLARATION: u32 = 2;

impl Node {
    /// The document node.
    pub(crate) const ROOT: Node = Node(0);

    /// The node of a [`Node::number`].
    pub(crate) fn of_number(number: u64) -> Node {
        Node(number)
    }

    /// A number by which nodes sort in document order.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn at(position: u32) -> Node {
        Node(u64::from(position) << 32)
    }

    pub(crate) fn attribute(position: u32, attribute: u32) -> Node {
        Node(u64::from(position) << 32 | u64::from(ATTRIBUTE | attribute))
    }

    pub(crate) fn declaration(position: u32, declaration: u32) -> Node {
        Node(u64::from(position) << 32 | u64::from(DECLARATION + declaration))
    }

    pub(crate) fn xml_namespace(position: u32) -> Node {
        Node(u64::from(position) << 32 | u64::from(XML_NAMESPACE))
    }

    pub(crate) fn position(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Neither attribute nor namespace node.
    pub(crate) fn is_main(self) -> bool {
        self.0 as u32 == 0
    }
}

/// What is at a position; elements, texts and markup by their number in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Main {
    Document,
    Element(u32),
    Text(u32),
    Markup(u32),
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Main(Main),
    Attribute(u32),
    /// A namespace node and the declaration it comes from.
    Namespace(u32),
    XmlNamespace,
}

/// Positions of one message; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    /// What is at each position: kind in the upper two bits, number in the others.
    entries: Vec<u32>,
    elements: Vec<u32>,
    texts: Vec<u32>,
    /// Bytes of all text nodes before each one, and of all.
    text_bytes: Vec<u64>,
    /// Found when first asked for.
    siblings: OnceLock<Siblings>,
}

/// The sibling before each position, [`NONE`] where there is none.
#[derive(Debug, Default)]
struct Siblings {
    /// Comments and instructions among them; empty if there are none.
    with_markup: Vec<u32>,
    without_markup: Vec<u32>,
}

impl Siblings {
    /// Cost: one pass over the nodes.
    fn find(document: &Document<'_>) -> Siblings {
        let len = document.len() as usize;
        let before = |counts: fn(Main) -> bool| {
            let mut before = vec![NONE; len];
            let mut last_child = vec![NONE; len];
            for position in 1..len as u32 {
                let parent = document.parent(position).unwrap_or(0) as usize;
                before[position as usize] = last_child[parent];
                if counts(document.main(position)) {
                    last_child[parent] = position;
                }
            }
            before
        };
        let has_markup = !document.tree.markup_kind.is_empty();
        Siblings {
            with_markup: if has_markup { before(|_| true) } else { Vec::new() },
            without_markup: before(|main| !matches!(main, Main::Markup(_))),
        }
    }
}

/// Positions for which memory is kept although messages are much smaller.
const IDLE_MAX: usize = 1 << 13;
const KIND_SHIFT: u32 = 30;
const TEXT: u32 = 1 << KIND_SHIFT;
const MARKUP: u32 = 2 << KIND_SHIFT;
const DOCUMENT: u32 = 3 << KIND_SHIFT;
const NUMBER: u32 = TEXT - 1;

impl Positions {
    /// Numbers the nodes of a message. Cost: one pass over its nodes.
    pub(crate) fn number(&mut self, tree: &MessageTree) {
        let markups = tree.markup_texts_before.len() as u32;
        let nodes = 1 + tree.len() + tree.text_value.len() + markups as usize;
        debug_assert!(nodes < NUMBER as usize, "numbers fit beside the kind");
        if self.entries.capacity() / 8 > nodes.max(IDLE_MAX) {
            *self = Positions::default();
        }
        self.entries.clear();
        self.elements.clear();
        self.texts.clear();
        self.siblings.take();
        self.text_bytes.clear();
        let mut bytes = 0;
        self.text_bytes.extend(tree.text_value.iter().map(|span| {
            let before = bytes;
            bytes += span.len() as u64;
            before
        }));
        self.text_bytes.push(bytes);
        self.entries.push(DOCUMENT);
        let (mut text, mut markup) = (0, 0);
        for element in 0..tree.len() {
            let before = if markups == 0 { 0 } else { tree.markup_start[element] };
            self.add_leaves(tree, &mut text, tree.text_start[element], &mut markup, before);
            self.elements.push(self.entries.len() as u32);
            self.entries.push(element as u32);
        }
        let texts = tree.text_value.len() as u32;
        self.add_leaves(tree, &mut text, texts, &mut markup, markups);
    }

    #[inline(always)]
    fn add_leaves(
        &mut self,
        tree: &MessageTree,
        text: &mut u32,
        text_end: u32,
        markup: &mut u32,
        markup_end: u32,
    ) {
        while *markup < markup_end {
            self.add_texts(text, tree.markup_texts_before[*markup as usize]);
            self.entries.push(MARKUP | *markup);
            *markup += 1;
        }
        self.add_texts(text, text_end);
    }

    #[inline(always)]
    fn add_texts(&mut self, text: &mut u32, end: u32) {
        while *text < end {
            self.texts.push(self.entries.len() as u32);
            self.entries.push(TEXT | *text);
            *text += 1;
        }
    }
}

/// A message with its positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Document<'a> {
    pub(crate) message: Message<'a>,
    pub(crate) tree: &'a MessageTree,
    pub(crate) names: &'a NameTable,
    positions: &'a Positions,
}

impl<'a> Document<'a> {
    /// The message whose positions these are.
    pub(crate) fn new(
        message: Message<'a>,
        names: &'a NameTable,
        positions: &'a Positions,
    ) -> Self {
        Document { message, tree: message.tree, names, positions }
    }

    /// Number of positions.
    pub(crate) fn len(&self) -> u32 {
        self.positions.entries.len() as u32
    }

    pub(crate) fn main(&self, position: u32) -> Main {
        let entry = self.positions.entries[position as usize];
        let number = entry & NUMBER;
        match entry & !NUMBER {
            0 => Main::Element(number),
            TEXT => Main::Text(number),
            MARKUP => Main::Markup(number),
            _ => Main::Document,
        }
    }

    pub(crate) fn sort(&self, node: Node) -> Sort {
        let second = node.0 as u32;
        match second {
            0 => Sort::Main(self.main(node.position())),
            XML_NAMESPACE => Sort::XmlNamespace,
            _ if second & ATTRIBUTE != 0 => Sort::Attribute(second & !ATTRIBUTE),
            _ => Sort::Namespace(second - DECLARATION),
        }
    }

    pub(crate) fn element_position(&self, element: u32) -> u32 {
        self.positions.elements[element as usize]
    }

    pub(crate) fn text_position(&self, text: u32) -> u32 {
        self.positions.texts[text as usize]
    }

    /// The element at or after a position, by number.
    pub(crate) fn element_from(&self, position: u32) -> u32 {
        self.positions.elements.partition_point(|&at| at < position) as u32
    }

    /// The text node at or after a position, by number.
    pub(crate) fn text_from(&self, position: u32) -> u32 {
        self.positions.texts.partition_point(|&at| at < position) as u32
    }

    /// Position of an element, or of the document node for [`NONE`].
    pub(crate) fn container_position(&self, element: u32) -> u32 {
        if element == NONE { 0 } else { self.element_position(element) }
    }

    /// One past the last position inside the node at a position.
    pub(crate) fn end(&self, position: u32) -> u32 {
        match self.main(position) {
            Main::Document => self.len(),
            Main::Element(element) => {
                let element = element as usize;
                let markups = self.tree.markup_end.get(element).copied().unwrap_or(0);
                1 + self.tree.element_end[element] + self.tree.text_end[element] + markups
            }
            Main::Text(_) | Main::Markup(_) => position + 1,
        }
    }

    /// Position of the parent of what is at a position; none for the document node.
    pub(crate) fn parent(&self, position: u32) -> Option<u32> {
        match self.main(position) {
            Main::Document => None,
            _ => Some(self.container_position(self.parent_element(position))),
        }
    }

    /// Element that what is at a position is a child of, [`NONE`] for none.
    pub(crate) fn parent_element(&self, position: u32) -> u32 {
        match self.main(position) {
            Main::Document => NONE,
            Main::Element(element) => self.tree.parent[element as usize],
            Main::Text(text) => self.tree.text_parent[text as usize],
            Main::Markup(markup) => self.tree.markup_parent[markup as usize],
        }
    }

    /// The sibling before a position; comments and instructions count if they are asked for. Cost:
    /// constant, after one pass over the message.
    pub(crate) fn sibling_before(&self, position: u32, with_markup: bool) -> Option<u32> {
        let siblings = self.positions.siblings.get_or_init(|| Siblings::find(self));
        let has_markup = with_markup && !siblings.with_markup.is_empty();
        let before = if has_markup { &siblings.with_markup } else { &siblings.without_markup };
        Some(before[position as usize]).filter(|&before| before != NONE)
    }

    /// Position of the parent of any node.
    pub(crate) fn parent_of(&self, node: Node) -> Option<u32> {
        if node.is_main() { self.parent(node.position()) } else { Some(node.position()) }
    }

    /// The element at a position, if one is there.
    pub(crate) fn element(&self, position: u32) -> Option<u32> {
        match self.main(position) {
            Main::Element(element) => Some(element),
            _ => None,
        }
    }

    /// The attributes of an element, by number.
    pub(crate) fn attributes(&self, element: u32) -> std::ops::Range<u32> {
        let starts = &self.tree.attribute_start;
        starts[element as usize]..starts[element as usize + 1]
    }

    /// The namespace declarations in force at an element, by number, in order (XPath 1.0, 5.4).
    /// Cost: see [`Document::declarations_met`].
    pub(crate) fn declarations(&self, element: u32) -> Vec<u32> {
        let starts = &self.tree.declaration_start;
        let mut prefixes: HashSet<&[u8]> = HashSet::new();
        prefixes.insert(b"xml");
        let mut found: Vec<u32> = Vec::new();
        let mut at = element;
        while at != NONE {
            let own = starts[at as usize]..starts[at as usize + 1];
            found.extend(own.filter(|&it| prefixes.insert(self.declared_prefix(it))));
            at = self.tree.parent[at as usize];
        }
        // `xmlns=""` takes the default namespace away; it is no namespace node itself.
        found.retain(|&it| self.tree.declaration_uri[it as usize].len() > 0);
        found.sort_unstable();
        found
    }

    /// Number of declarations of an element and its ancestors: what finding them costs.
    pub(crate) fn declarations_met(&self, element: u32) -> u64 {
        let starts = &self.tree.declaration_start;
        let mut at = element;
        let mut met = 0;
        while at != NONE {
            met += 1 + u64::from(starts[at as usize + 1] - starts[at as usize]);
            at = self.tree.parent[at as usize];
        }
        met
    }

    pub(crate) fn declared_prefix(&self, declaration: u32) -> &'a [u8] {
        self.bytes(self.tree.declaration_prefix[declaration as usize])
    }

    pub(crate) fn bytes(&self, span: Span) -> &'a [u8] {
        self.message.bytes(span)
    }

    /// Length of a string-value in bytes.
    pub(crate) fn string_len(&self, node: Node) -> usize {
        match self.texts_of(node) {
            Some(texts) => {
                let before = &self.positions.text_bytes;
                (before[texts.end as usize] - before[texts.start as usize]) as usize
            }
            None => self.own_value(node).len(),
        }
    }

    /// The string-value (XPath 1.0, 5). Cost: none if it is one run of text, else a copy.
    pub(crate) fn string_value(&self, node: Node) -> Cow<'a, [u8]> {
        let Some(texts) = self.texts_of(node) else {
            return Cow::Borrowed(self.own_value(node));
        };
        let spans = &self.tree.text_value[texts.start as usize..texts.end as usize];
        match spans {
            [] => Cow::Borrowed(b""),
            [span] => Cow::Borrowed(self.bytes(*span)),
            spans => {
                let mut value = Vec::with_capacity(self.string_len(node));
                for &span in spans {
                    value.extend_from_slice(self.bytes(span));
                }
                Cow::Owned(value)
            }
        }
    }

    /// The string-value as a span, if it is one run of text.
    pub(crate) fn string_span(&self, node: Node) -> Option<Span> {
        let tree = self.tree;
        if let Some(texts) = self.texts_of(node) {
            return match tree.text_value[texts.start as usize..texts.end as usize] {
                [] => Some(Span::default()),
                [span] => Some(span),
                _ => None,
            };
        }
        Some(match self.sort(node) {
            Sort::Main(Main::Text(text)) => tree.text_value[text as usize],
            Sort::Main(Main::Markup(markup)) => tree.markup_content[markup as usize],
            Sort::Attribute(attribute) => tree.attribute_value[attribute as usize],
            _ => return None,
        })
    }

    /// The text nodes that make up a string-value, for the document node and elements.
    fn texts_of(&self, node: Node) -> Option<std::ops::Range<u32>> {
        match self.sort(node) {
            Sort::Main(Main::Document) => Some(0..self.tree.text_value.len() as u32),
            Sort::Main(Main::Element(element)) => {
                let element = element as usize;
                Some(self.tree.text_start[element]..self.tree.text_end[element])
            }
            _ => None,
        }
    }

    /// The string-value of a node that has no others inside it.
    fn own_value(&self, node: Node) -> &'a [u8] {
        match self.sort(node) {
            Sort::Main(Main::Text(text)) => self.bytes(self.tree.text_value[text as usize]),
            Sort::Main(Main::Markup(markup)) => {
                self.bytes(self.tree.markup_content[markup as usize])
            }
            Sort::Main(_) => b"",
            Sort::Attribute(attribute) => self.bytes(self.tree.attribute_value[attribute as usize]),
            Sort::Namespace(declaration) => {
                self.bytes(self.tree.declaration_uri[declaration as usize])
            }
            Sort::XmlNamespace => XML_URI.as_bytes(),
        }
    }
}

/// Namespace of the prefix `xml`.
pub(crate) const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";
