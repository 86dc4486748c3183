//! The parts of a message that conditions are decided on while the rest has not arrived, as trees.

use crate::xml::names::NameId;
use crate::xml::parser::push::StartTag;
use crate::xml::tree::{MessageTree, NONE, Span};
use rustc_hash::FxHashMap;

/// A chain of open elements, and below its last one everything that has been added.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(crate) tree: MessageTree,
    /// The open elements, by depth.
    pub(crate) open: Vec<u32>,
    is_in_text: bool,
}

impl Part {
    pub(crate) fn clear(&mut self) {
        self.tree.clear();
        self.open.clear();
        self.is_in_text = false;
    }

    /// An element begins.
    pub(crate) fn start(&mut self, tag: &StartTag<'_>) {
        let tree = &mut self.tree;
        let element = tree.len() as u32;
        let texts = tree.text_value.len() as u32;
        tree.name.push(tag.name);
        tree.parent.push(self.open.last().copied().unwrap_or(NONE));
        tree.depth.push(self.open.len() as u32);
        tree.element_end.push(element + 1);
        tree.text_start.push(texts);
        tree.text_end.push(texts);
        if element == 0 {
            tree.attribute_start.push(0);
        }
        for attribute in tag.attributes() {
            tree.attribute_name.push(attribute.name);
            tree.attribute_value.push(add_text(&mut tree.scratch, attribute.value));
        }
        tree.attribute_start.push(tree.attribute_name.len() as u32);
        self.open.push(element);
        self.is_in_text = false;
    }

    /// The last open element ends, and is kept.
    pub(crate) fn end(&mut self) {
        if let Some(element) = self.open.pop() {
            self.end_here(element);
        }
        self.is_in_text = false;
    }

    /// The last open element ends, and is forgotten with all it has.
    pub(crate) fn forget(&mut self) {
        let tree = &mut self.tree;
        let Some(element) = self.open.pop() else { return };
        let at = element as usize;
        let texts = tree.text_start[at] as usize;
        let attributes = tree.attribute_start[at] as usize;
        let values = tree.attribute_value[attributes..].iter().chain(&tree.text_value[texts..]);
        let scratch = values.map(|span| span.start as usize).min();
        tree.scratch.truncate(scratch.unwrap_or(tree.scratch.len()));
        for column in [
            &mut tree.name,
            &mut tree.parent,
            &mut tree.depth,
            &mut tree.element_end,
            &mut tree.text_start,
            &mut tree.text_end,
        ] {
            column.truncate(at);
        }
        tree.attribute_start.truncate(at + 1);
        tree.attribute_name.truncate(attributes);
        tree.attribute_value.truncate(attributes);
        tree.text_parent.truncate(texts);
        tree.text_value.truncate(texts);
    }

    /// A part of a text node.
    pub(crate) fn text(&mut self, value: &str) {
        if value.is_empty() {
            return;
        }
        let tree = &mut self.tree;
        let added = add_text(&mut tree.scratch, value);
        match tree.text_value.last_mut().filter(|_| self.is_in_text) {
            Some(last) => last.len_and_place += value.len() as u32,
            None => {
                tree.text_parent.push(self.open.last().copied().unwrap_or(NONE));
                tree.text_value.push(added);
            }
        }
        self.is_in_text = true;
    }

    /// A comment or an instruction: what follows is another text node.
    pub(crate) fn markup(&mut self) {
        self.is_in_text = false;
    }

    /// Lets the open elements end here, as far as anybody looks at them now.
    pub(crate) fn end_open(&mut self) {
        for at in 0..self.open.len() {
            self.end_here(self.open[at]);
        }
    }

    fn end_here(&mut self, element: u32) {
        self.tree.element_end[element as usize] = self.tree.len() as u32;
        self.tree.text_end[element as usize] = self.tree.text_value.len() as u32;
    }

    /// Makes it the open elements of another part, which has nothing else.
    pub(crate) fn copy_open(&mut self, other: &Part) {
        self.clear();
        let (to, from) = (&mut self.tree, &other.tree);
        to.name.extend_from_slice(&from.name);
        to.parent.extend_from_slice(&from.parent);
        to.depth.extend_from_slice(&from.depth);
        to.element_end.extend_from_slice(&from.element_end);
        to.text_start.extend_from_slice(&from.text_start);
        to.text_end.extend_from_slice(&from.text_end);
        to.attribute_start.extend_from_slice(&from.attribute_start);
        to.attribute_name.extend_from_slice(&from.attribute_name);
        to.attribute_value.extend_from_slice(&from.attribute_value);
        to.scratch.push_str(&from.scratch);
        self.open.extend_from_slice(&other.open);
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let tree = &self.tree;
        tree.scratch.capacity()
            + tree.name.capacity() * 28
            + (tree.attribute_name.capacity() + tree.text_value.capacity()) * 12
    }
}

fn add_text(scratch: &mut String, value: &str) -> Span {
    let span = Span::in_scratch(scratch.len() as u32, value.len() as u32);
    scratch.push_str(value);
    span
}

/// Counts children, so that an element knows its places when those before it are gone.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    any: u32,
    by_name: FxHashMap<NameId, u32>,
}

impl Siblings {
    /// None so far.
    pub(crate) fn begin(&mut self) {
        self.any = 0;
        self.by_name.clear();
    }

    /// One more: its place among all, and among those of its name.
    pub(crate) fn add(&mut self, name: NameId) -> (u32, u32) {
        let of_name = self.by_name.entry(name).or_default();
        *of_name += 1;
        self.any += 1;
        (self.any, *of_name)
    }
}
