//! Nodes of any kind: raw if their bytes can be copied, anew otherwise.

use super::anew::{Anew, write_markup, write_name};
use super::defaults::find_undeclaring;
use super::escape::{write_attribute_value, write_declaration, write_text};
use super::scopes::{Scopes, declared};
use super::{Limit, Namespaces, TooLong};
use crate::xml::names::NameTable;
use crate::xml::tree::{Message, NONE, NodeRef};

const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";

/// What writers work with; keeps its memory from message to message.
#[derive(Debug, Default)]
pub struct Scratch {
    scopes: Scopes,
    declarations: Vec<u8>,
    /// Elements in the one at hand that take the default namespace back and did not have to before.
    undeclaring: Vec<u32>,
    open: Vec<u32>,
}

/// Writes nodes of one message.
#[derive(Debug)]
pub struct Writer<'w> {
    message: Message<'w>,
    names: &'w NameTable,
    scratch: &'w mut Scratch,
}

/// As [`Writer::node`], without a limit and for a few nodes: what a [`Writer`] keeps is found anew
/// for each.
pub fn write_node(
    out: &mut Vec<u8>,
    message: Message<'_>,
    names: &NameTable,
    node: NodeRef,
    outer: &Namespaces,
) {
    let mut scratch = Scratch::default();
    let written = Writer::new(message, names, &mut scratch).node(out, node, outer, Limit::NONE);
    debug_assert_eq!(written, Ok(()));
}

impl<'w> Writer<'w> {
    /// A writer for a message that was parsed with [`crate::xml::parser::Door::keep_source_spans`] or
    /// [`crate::xml::parser::Door::keep_full_tree`]. Cost: none before the first node.
    pub fn new(message: Message<'w>, names: &'w NameTable, scratch: &'w mut Scratch) -> Self {
        scratch.scopes.begin();
        Writer { message, names, scratch }
    }

    /// Writes a node where the namespaces `outer` are in scope: an element, a comment or an
    /// instruction as such, a text node escaped, of an attribute or a namespace node the value,
    /// escaped as text, of the document node all that is in it.
    ///
    /// After an error `out` ends anywhere: the caller cuts it to where it was.
    ///
    /// Panics if the message was parsed with neither source spans nor a full tree. Comments and
    /// instructions have numbers only in a full tree.
    ///
    /// Cost: linear in what is written, with a copy of memory for elements that are copied raw, and
    /// in the namespace declarations between the last place and this one.
    pub fn node(
        &mut self,
        out: &mut Vec<u8>,
        node: NodeRef,
        outer: &Namespaces,
        limit: Limit,
    ) -> Result<(), TooLong> {
        let tree = self.message.tree;
        let value = match node {
            NodeRef::Element(element) => return self.element(out, element, outer, limit),
            NodeRef::Document => return self.document(out, outer, limit),
            NodeRef::Comment(markup) | NodeRef::Instruction(markup) => {
                write_markup(out, self.message, markup);
                return limit.check(out);
            }
            NodeRef::Text(text) => tree.text_value[text as usize],
            NodeRef::Attribute(attribute) => tree.attribute_value[attribute as usize],
            NodeRef::Namespace(_, Some(declaration)) => tree.declaration_uri[declaration as usize],
            NodeRef::Namespace(_, None) => {
                write_text(out, XML_URI.as_bytes());
                return limit.check(out);
            }
        };
        limit.check_room(out, value.len())?;
        write_text(out, self.message.bytes(value));
        limit.check(out)
    }

    /// Writes an attribute into the start tag of a constructed element, a blank before it. `scope`
    /// is what is in scope inside that element; if the prefix of the attribute is not, it is
    /// declared, there and in the tag, or another one in its place.
    pub fn attribute(
        &mut self,
        out: &mut Vec<u8>,
        attribute: u32,
        scope: &mut Namespaces,
        limit: Limit,
    ) -> Result<(), TooLong> {
        let tree = self.message.tree;
        let name = tree.attribute_name[attribute as usize];
        let value = tree.attribute_value[attribute as usize];
        limit.check_room(out, value.len())?;
        let (uri, local) = (self.names.uri(name), self.names.local(name));
        let mut prefix = String::new();
        if uri == XML_URI {
            prefix.push_str("xml");
        } else if !uri.is_empty() {
            prefix = self.prefix_for(attribute, uri, scope);
            if scope.uri(&prefix).is_none() {
                write_declaration(out, prefix.as_bytes(), uri.as_bytes());
                scope.declare(&prefix, uri);
            }
        }
        out.push(b' ');
        write_name(out, prefix.as_bytes(), local);
        out.extend_from_slice(b"=\"");
        write_attribute_value(out, self.message.bytes(value));
        out.push(b'"');
        limit.check(out)
    }

    /// A prefix that has this namespace in a scope, or has none in it yet: the attribute's own if
    /// possible.
    fn prefix_for(&mut self, attribute: u32, uri: &str, scope: &Namespaces) -> String {
        let own = self.own_prefix(attribute, uri);
        let is_good = |prefix: &str| scope.uri(prefix).is_none_or(|bound| bound == uri);
        if is_good(&own) {
            return own;
        }
        if let Some(known) = scope.prefix(uri) {
            return known.to_owned();
        }
        let mut number = 1;
        loop {
            let prefix = format!("{own}_{number}");
            if is_good(&prefix) {
                return prefix;
            }
            number += 1;
        }
    }

    /// The prefix an attribute has, or, in a tree that is not full, may have had.
    fn own_prefix(&mut self, attribute: u32, uri: &str) -> String {
        let tree = self.message.tree;
        let mut prefix: &[u8] = b"";
        if tree.is_full {
            prefix = self.message.bytes(tree.attribute_prefix[attribute as usize]);
        } else if !tree.declaration_element.is_empty() {
            let element = tree.attribute_start.partition_point(|&start| start <= attribute) - 1;
            self.scratch.scopes.go(self.message, element as u32, true);
            for declaration in self.scratch.scopes.inherited() {
                let (known, bound) = declared(self.message, declaration);
                if bound == uri.as_bytes() && !known.is_empty() {
                    prefix = known;
                }
            }
        }
        String::from_utf8_lossy(if prefix.is_empty() { b"ns" } else { prefix }).into_owned()
    }

    fn element(
        &mut self,
        out: &mut Vec<u8>,
        element: u32,
        outer: &Namespaces,
        limit: Limit,
    ) -> Result<(), TooLong> {
        let tree = self.message.tree;
        if !tree.is_verbatim {
            let mut needed = std::mem::take(&mut self.scratch.declarations);
            needed.clear();
            self.scratch.scopes.go(self.message, element, true);
            self.write_needed(&mut needed, element, outer);
            let Scratch { undeclaring, open, .. } = &mut *self.scratch;
            let mut anew = Anew::new(self.message, self.names, element, limit);
            anew.undeclaring = undeclaring;
            let written = limit
                .check_room(out, needed.len())
                .and_then(|()| anew.element(out, element, &needed, open));
            self.scratch.declarations = needed;
            return written;
        }
        let (start, end) = (tree.source_start[element as usize], tree.source_end[element as usize]);
        let raw = &self.message.source[start as usize..end as usize];
        limit.check_room(out, raw.len())?;
        if tree.declaration_element.is_empty() && !outer.has_default() {
            out.extend_from_slice(raw);
            return Ok(());
        }
        let name_end = name_end(raw);
        out.reserve(raw.len());
        out.extend_from_slice(&raw[..name_end]);
        self.scratch.scopes.go(self.message, element, false);
        self.write_needed(out, element, outer);
        limit.check(out)?;
        let (mut from, end) = (start as usize + name_end, end as usize);
        for &inner in &self.scratch.undeclaring {
            let start = tree.source_start[inner as usize] as usize;
            let after_name = start + self::name_end(&self.message.source[start..end]);
            out.extend_from_slice(&self.message.source[from..after_name]);
            write_declaration(out, b"", b"");
            limit.check(out)?;
            from = after_name;
        }
        limit.check_room(out, end - from)?;
        out.extend_from_slice(&self.message.source[from..end]);
        Ok(())
    }

    /// Writes the declarations in force where the scopes are that an element does not make itself and
    /// that are not those of `outer`; finds what else must change in it.
    fn write_needed(&mut self, out: &mut Vec<u8>, element: u32, outer: &Namespaces) {
        let Scratch { scopes, undeclaring, .. } = &mut *self.scratch;
        let message = self.message;
        undeclaring.clear();
        for declaration in scopes.inherited() {
            let (prefix, uri) = declared(message, declaration);
            // Without a default namespace around, none is taken back.
            if !uri.is_empty() && (outer.is_empty() || !outer.has(prefix, uri)) {
                out.extend_from_slice(scopes.written(declaration));
            }
        }
        if !outer.has_default() {
            return;
        }
        let tree = message.tree;
        let (mut has_own, mut takes_back) = (scopes.has_own_default(), false);
        if let Some(default) = scopes.default() {
            let is_empty = tree.declaration_uri[default as usize].len() == 0;
            has_own |= !is_empty;
            takes_back = is_empty && tree.declaration_element[default as usize] == element;
        }
        if has_own {
            return;
        }
        let name = tree.name[element as usize];
        if takes_back || self.names.uri(name).is_empty() {
            write_declaration(out, b"", b"");
        } else {
            find_undeclaring(tree, self.names, element, undeclaring);
        }
    }

    fn document(
        &mut self,
        out: &mut Vec<u8>,
        outer: &Namespaces,
        limit: Limit,
    ) -> Result<(), TooLong> {
        let tree = self.message.tree;
        if !tree.is_full {
            // No document type declaration: such a message has a full tree.
            let source = self.message.source;
            let (start, end) = (tree.source_start[0] as usize, tree.source_end[0] as usize);
            copy_misc(out, &source[declaration_end(source)..start]);
            self.element(out, 0, outer, limit)?;
            copy_misc(out, &source[end..]);
            return limit.check(out);
        }
        let inside = tree.markup_start[0]..tree.markup_end[0];
        for markup in 0..inside.start {
            write_markup(out, self.message, markup);
            limit.check(out)?;
        }
        self.element(out, 0, outer, limit)?;
        for markup in inside.end..tree.markup_kind.len() as u32 {
            debug_assert_eq!(tree.markup_parent[markup as usize], NONE);
            write_markup(out, self.message, markup);
            limit.check(out)?;
        }
        Ok(())
    }
}

/// One past the name of the start tag that begins here.
fn name_end(raw: &[u8]) -> usize {
    // Of a start tag that the door has let in, one of these ends the name.
    let is_end = |byte: &u8| matches!(byte, b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r');
    raw.iter().position(is_end).unwrap_or(raw.len())
}

/// One past the XML declaration.
fn declaration_end(source: &[u8]) -> usize {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    if !(source.starts_with(b"<?xml") && source.get(5).is_some_and(is_space)) {
        return 0;
    }
    memchr::memmem::find(source, b"?>").map_or(0, |at| at + 2)
}

/// Comments and instructions without the white space between them, which is no text.
fn copy_misc(out: &mut Vec<u8>, mut misc: &[u8]) {
    while let Some(start) = memchr::memchr(b'<', misc) {
        misc = &misc[start..];
        let end: &[u8] = if misc.starts_with(b"<!--") { b"-->" } else { b"?>" };
        // The shortest of each, `<!---->` and `<?a?>`, do not overlap their ends.
        let from = misc.len().min(if misc.starts_with(b"<!--") { 4 } else { 2 });
        let len = memchr::memmem::find(&misc[from..], end);
        let len = len.map_or(misc.len(), |len| from + len + end.len());
        out.extend_from_slice(&misc[..len]);
        misc = &misc[len..];
    }
}
