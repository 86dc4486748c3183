//! Elements written from the columns of a full tree, and what else has no bytes of its own to copy.

use super::escape::{write_attribute_value, write_declaration, write_text};
use super::{Limit, TooLong, scopes};
use crate::xml::names::NameTable;
use crate::xml::tree::{MarkupKind, Message};

/// Writes one element with what is in it.
pub(super) struct Anew<'m> {
    message: Message<'m>,
    names: &'m NameTable,
    /// Next text node and next comment or instruction.
    text: usize,
    markup: usize,
    /// The `>` of the last start tag has not been written.
    is_tag_open: bool,
    limit: Limit,
    /// Elements that take the default namespace back and did not have to in the message.
    pub(crate) undeclaring: &'m [u32],
}

impl<'m> Anew<'m> {
    pub(crate) fn new(
        message: Message<'m>,
        names: &'m NameTable,
        element: u32,
        limit: Limit,
    ) -> Self {
        let tree = message.tree;
        assert!(tree.is_full, "an element is written anew from a full tree");
        let text = tree.text_start[element as usize] as usize;
        let markup = tree.markup_start[element as usize] as usize;
        Anew { message, names, text, markup, is_tag_open: false, limit, undeclaring: &[] }
    }

    /// Writes the element whose start tag begins with the declarations given, which must be all that
    /// it needs, its own among them. `open` is a stack to work with.
    pub(crate) fn element(
        &mut self,
        out: &mut Vec<u8>,
        element: u32,
        declarations: &[u8],
        open: &mut Vec<u32>,
    ) -> Result<(), TooLong> {
        let tree = self.message.tree;
        open.clear();
        for next in element..tree.element_end[element as usize] {
            self.close(out, open, next)?;
            self.content(out, tree.text_start[next as usize], tree.markup_start[next as usize])?;
            self.end_tag_open(out);
            out.push(b'<');
            self.name(out, next);
            if next == element {
                out.extend_from_slice(declarations);
            } else {
                self.declarations(out, next);
            }
            self.attributes(out, next);
            self.is_tag_open = true;
            open.push(next);
            self.limit.check(out)?;
        }
        self.close(out, open, u32::MAX)
    }

    /// Ends the open elements that are over before an element.
    fn close(&mut self, out: &mut Vec<u8>, open: &mut Vec<u32>, next: u32) -> Result<(), TooLong> {
        let tree = self.message.tree;
        while let Some(&last) = open.last() {
            if tree.element_end[last as usize] > next {
                return Ok(());
            }
            self.content(out, tree.text_end[last as usize], tree.markup_end[last as usize])?;
            if self.is_tag_open {
                self.is_tag_open = false;
                out.extend_from_slice(b"/>");
            } else {
                out.extend_from_slice(b"</");
                self.name(out, last);
                out.push(b'>');
            }
            open.pop();
            self.limit.check(out)?;
        }
        Ok(())
    }

    /// Texts, comments and instructions up to these numbers, in document order.
    fn content(&mut self, out: &mut Vec<u8>, texts: u32, markups: u32) -> Result<(), TooLong> {
        let tree = self.message.tree;
        let (texts, markups) = (texts as usize, markups as usize);
        while self.text < texts || self.markup < markups {
            self.end_tag_open(out);
            let has_markup = self.markup < markups
                && (self.text >= texts
                    || tree.markup_texts_before[self.markup] as usize <= self.text);
            if has_markup {
                write_markup(out, self.message, self.markup as u32);
                self.markup += 1;
            } else {
                write_text(out, self.message.bytes(tree.text_value[self.text]));
                self.text += 1;
            }
            self.limit.check(out)?;
        }
        Ok(())
    }

    fn end_tag_open(&mut self, out: &mut Vec<u8>) {
        if self.is_tag_open {
            self.is_tag_open = false;
            out.push(b'>');
        }
    }

    fn name(&self, out: &mut Vec<u8>, element: u32) {
        let tree = self.message.tree;
        let prefix = self.message.bytes(tree.prefix[element as usize]);
        write_name(out, prefix, self.names.local(tree.name[element as usize]));
    }

    fn declarations(&self, out: &mut Vec<u8>, element: u32) {
        if self.undeclaring.binary_search(&element).is_ok() {
            write_declaration(out, b"", b"");
        }
        let starts = &self.message.tree.declaration_start;
        for declaration in starts[element as usize]..starts[element as usize + 1] {
            let (prefix, uri) = scopes::declared(self.message, declaration);
            write_declaration(out, prefix, uri);
        }
    }

    fn attributes(&self, out: &mut Vec<u8>, element: u32) {
        let tree = self.message.tree;
        let starts = &tree.attribute_start;
        for attribute in starts[element as usize]..starts[element as usize + 1] {
            let attribute = attribute as usize;
            let prefix = self.message.bytes(tree.attribute_prefix[attribute]);
            out.push(b' ');
            write_name(out, prefix, self.names.local(tree.attribute_name[attribute]));
            out.extend_from_slice(b"=\"");
            write_attribute_value(out, self.message.bytes(tree.attribute_value[attribute]));
            out.push(b'"');
        }
    }
}

/// A name as written.
pub(super) fn write_name(out: &mut Vec<u8>, prefix: &[u8], local: &str) {
    if !prefix.is_empty() {
        out.extend_from_slice(prefix);
        out.push(b':');
    }
    out.extend_from_slice(local.as_bytes());
}

/// A comment or processing instruction. A carriage return in it, which only an entity can have put
/// there, becomes a line end to who reads it: nothing in a comment can stand for one.
pub(super) fn write_markup(out: &mut Vec<u8>, message: Message<'_>, markup: u32) {
    let tree = message.tree;
    let content = message.bytes(tree.markup_content[markup as usize]);
    match tree.markup_kind[markup as usize] {
        MarkupKind::Comment => {
            out.extend_from_slice(b"<!--");
            out.extend_from_slice(content);
            out.extend_from_slice(b"-->");
        }
        MarkupKind::Instruction => {
            out.extend_from_slice(b"<?");
            out.extend_from_slice(message.bytes(tree.markup_target[markup as usize]));
            if !content.is_empty() {
                out.push(b' ');
                out.extend_from_slice(content);
            }
            out.extend_from_slice(b"?>");
        }
    }
}
