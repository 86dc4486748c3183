//! Small documents as plain trees, and the message trees made of them.

use pathcast_core::xml::names::NameTable;
use pathcast_core::xml::tree::{Message, MessageTree, NONE, Span};

/// What an element contains.
#[derive(Clone, Debug)]
pub enum Content {
    Element(usize),
    /// A text node; two in a row stand for text that a comment divides.
    Text(String),
}

/// An element: expanded names, values, content.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub uri: &'static str,
    pub local: &'static str,
    #[allow(dead_code, reason = "the benchmark climbs, the tests do not")]
    pub parent: Option<usize>,
    pub attributes: Vec<(&'static str, &'static str, String)>,
    pub content: Vec<Content>,
}

/// A document: its elements in the order in which they were added, the root first.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pub nodes: Vec<Node>,
}

impl Document {
    /// Adds an element as the last content of `parent`; its number.
    pub fn element(
        &mut self,
        parent: Option<usize>,
        uri: &'static str,
        local: &'static str,
    ) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node { uri, local, parent, ..Node::default() });
        if let Some(parent) = parent {
            self.nodes[parent].content.push(Content::Element(number));
        }
        number
    }

    pub fn attribute(&mut self, of: usize, local: &'static str, value: &str) {
        self.nodes[of].attributes.push(("", local, value.to_owned()));
    }

    pub fn text(&mut self, of: usize, text: &str) {
        self.nodes[of].content.push(Content::Text(text.to_owned()));
    }

    /// Element children in order.
    #[allow(dead_code, reason = "the benchmark builds documents and does not read them")]
    pub fn children(&self, of: usize) -> Vec<usize> {
        let element = |content: &Content| match content {
            Content::Element(child) => Some(*child),
            Content::Text(_) => None,
        };
        self.nodes[of].content.iter().filter_map(element).collect()
    }

    /// The message tree, with the node that each of its elements was.
    pub fn build(&self, names: &mut NameTable) -> Built {
        let mut built = Built::default();
        // (node, next content)
        let mut open: Vec<(usize, usize, u32)> = Vec::new();
        built.open(&self.nodes[0], 0, NONE, 0, names);
        open.push((0, 0, 0));
        while let Some((node, next, element)) = open.last_mut() {
            let (at, parent) = (*next, *element);
            *next += 1;
            match self.nodes[*node].content.get(at) {
                Some(Content::Element(child)) => {
                    let number = built.tree.len() as u32;
                    let depth = open.len() as u32;
                    built.open(&self.nodes[*child], *child, parent, depth, names);
                    open.push((*child, 0, number));
                }
                Some(Content::Text(text)) => {
                    let span = built.value(text);
                    built.tree.text_value.push(span);
                    built.tree.text_parent.push(parent);
                }
                None => {
                    built.tree.element_end[parent as usize] = built.tree.len() as u32;
                    built.tree.text_end[parent as usize] = built.tree.text_value.len() as u32;
                    open.pop();
                }
            }
        }
        built.tree.attribute_start.push(built.tree.attribute_value.len() as u32);
        built
    }
}

/// A message tree with the bytes it points into.
#[derive(Debug, Default)]
pub struct Built {
    pub tree: MessageTree,
    pub source: Vec<u8>,
    /// The node of each element.
    pub nodes: Vec<usize>,
    values: usize,
}

impl Built {
    pub fn message(&self) -> Message<'_> {
        Message { tree: &self.tree, source: &self.source }
    }

    fn open(&mut self, node: &Node, number: usize, parent: u32, depth: u32, names: &mut NameTable) {
        self.nodes.push(number);
        self.tree.name.push(names.intern(node.uri, node.local));
        self.tree.parent.push(parent);
        self.tree.depth.push(depth);
        self.tree.element_end.push(0);
        self.tree.attribute_start.push(self.tree.attribute_value.len() as u32);
        self.tree.text_start.push(self.tree.text_value.len() as u32);
        self.tree.text_end.push(0);
        for (uri, local, value) in &node.attributes {
            let span = self.value(value);
            self.tree.attribute_name.push(names.intern(uri, local));
            self.tree.attribute_value.push(span);
        }
    }

    /// Places every third value in the scratch buffer, so that both places are exercised.
    fn value(&mut self, text: &str) -> Span {
        self.values += 1;
        if self.values.is_multiple_of(3) {
            let start = self.tree.scratch.len() as u32;
            self.tree.scratch.push_str(text);
            Span::in_scratch(start, text.len() as u32)
        } else {
            let start = self.source.len() as u32;
            self.source.extend_from_slice(text.as_bytes());
            Span::in_message(start, text.len() as u32)
        }
    }
}
