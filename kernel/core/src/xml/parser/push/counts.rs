//! What a message consists of, counted.

use super::events::{EndTag, Handler, Markup, MarkupKind, StartTag, Text};

/// Counts of one message, entities expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements.
    pub elements: u64,
    /// Elements from the root to the deepest one, both counted.
    pub depth: u32,
    /// Attributes, those with a default among them; namespace declarations are none.
    pub attributes: u64,
    /// Text nodes.
    pub texts: u64,
    /// Bytes of all text nodes, in UTF-8.
    pub text_bytes: u64,
    /// Comments.
    pub comments: u64,
    /// Processing instructions.
    pub instructions: u64,
    /// A part of the text node at hand has been counted.
    is_in_text: bool,
}

impl Handler for Counts {
    fn start(&mut self, tag: &StartTag<'_>) {
        self.elements += 1;
        self.depth = self.depth.max(tag.depth + 1);
        self.attributes += tag.attributes().len() as u64;
        self.is_in_text = false;
    }

    fn end(&mut self, _tag: &EndTag<'_>) {
        self.is_in_text = false;
    }

    fn text(&mut self, text: &Text<'_>) {
        if !text.value.is_empty() {
            self.texts += u64::from(!self.is_in_text);
            self.text_bytes += text.value.len() as u64;
            self.is_in_text = true;
        }
    }

    fn markup(&mut self, markup: &Markup<'_>) {
        self.comments += u64::from(markup.kind == MarkupKind::Comment);
        self.instructions += u64::from(markup.kind == MarkupKind::Instruction);
        self.is_in_text = false;
    }
}
