//! The message factory: lists of BoundNodes and a template become bytes.
//!
//! Subscriptions with the same template and the same BoundNodes get the same bytes, which are written
//! once a message.
//!
//! Source: paper 002, section 2.1.

use super::found::{Found, ListId};
use super::run::SharedRun;
use super::template::{Form, Frame, Leaf, Part, Target, Template, TemplateId};
use super::values::attribute;
use crate::engine::paths::PathId;
use crate::engine::programs::Results;
use crate::xml::names::{NameTable, hash_name};
use crate::xml::serializer;
use crate::xml::serializer::{
    Limit, Namespaces, TooLong, Writer, write_attribute_value, write_text,
};
use crate::xml::tree::{Message, NodeRef};
use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHasher};
use std::hash::Hasher;
use std::ops::Range;

/// What came of a template and a list: its results, by number; none if they are too long.
pub(crate) type Written = Result<Range<u32>, TooLong>;

/// A table with room for more is dropped, and not cleared.
const FORGOTTEN_MAX: usize = 1 << 10;

/// Memory of the factory; reused from message to message.
#[derive(Debug, Default)]
pub(crate) struct Factory {
    scratch: serializer::Scratch,
    /// By list: the first list with the same BoundNodes.
    first_like: Vec<ListId>,
    lists: HashMap<u64, ListId, FxBuildHasher>,
    written: HashMap<(TemplateId, ListId), Written, FxBuildHasher>,
    /// Path and BoundNode -> where the elements have been copied to.
    copied: HashMap<(PathId, u32), Range<usize>, FxBuildHasher>,
}

/// A message, as the factory needs it.
pub(crate) struct Source<'m> {
    pub(crate) message: Message<'m>,
    pub(crate) names: &'m NameTable,
    pub(crate) shared: &'m SharedRun,
}

impl Factory {
    /// Makes ready for what a message has given.
    pub(crate) fn begin(&mut self, found: &Found) {
        self.written.clear();
        self.copied.clear();
        self.lists.clear();
        self.first_like.clear();
        for list in 0..found.list_count() as ListId {
            let mut hasher = FxHasher::default();
            for &node in found.list(list) {
                hasher.write_u32(node);
            }
            // Lists with equal hashes and unlike nodes are merely not shared.
            let first = *self.lists.entry(hasher.finish()).or_insert(list);
            let is_like = found.list(first) == found.list(list);
            self.first_like.push(if is_like { first } else { list });
        }
    }

    /// The first list with the same BoundNodes.
    pub(crate) fn first_like(&self, list: ListId) -> ListId {
        self.first_like[list as usize]
    }

    /// Forgets what has been written, for output that will lie elsewhere.
    pub(crate) fn forget(&mut self) {
        // To clear a table costs what it once held; one after a long result would cost it every time.
        if self.copied.capacity() > FORGOTTEN_MAX {
            self.copied = HashMap::default();
        }
        self.copied.clear();
        self.written.clear();
    }

    /// Writes the results of a template for a list, unless they have been written.
    pub(crate) fn write<'t>(
        &mut self,
        source: &Source<'_>,
        (template_id, template): (TemplateId, impl FnOnce() -> &'t Template),
        list: ListId,
        bytes_max: usize,
        out: &mut Results,
    ) -> Written {
        let key = (template_id, self.first_like[list as usize]);
        if let Some(written) = self.written.get(&key) {
            return written.clone();
        }
        let (bytes, ends) = (out.bytes.len(), out.ends.len());
        let limit = Limit::after(&out.bytes, bytes_max);
        let mut press = Press {
            writer: Writer::new(source.message, source.names, &mut self.scratch),
            copied: &mut self.copied,
            source,
            limit,
        };
        let bound = source.shared.found().list(list);
        let written = press.results(template(), bound, out);
        let written = match written {
            Ok(()) => Ok(ends as u32..out.ends.len() as u32),
            Err(TooLong) => {
                out.bytes.truncate(bytes);
                out.ends.truncate(ends);
                self.copied.retain(|_, range| range.end <= bytes);
                Err(TooLong)
            }
        };
        self.written.insert(key, written.clone());
        written
    }
}

/// Whether a template gives an item for some BoundNode of a list.
pub(crate) fn is_delivered(source: &Source<'_>, template: &Template, bound: &[u32]) -> bool {
    template.is_constructor
        || bound.iter().any(|&bound| {
            template.targets().any(|target| {
                let mut is_some = false;
                each_node(source, target, bound, |_| is_some = true);
                is_some
            })
        })
}

/// The nodes that a template without a frame and a constructor gives for a list.
pub(crate) fn returned(source: &Source<'_>, template: &Template, bound: &[u32]) -> Vec<NodeRef> {
    let mut nodes = Vec::with_capacity(bound.len());
    for &bound in bound {
        for target in template.targets() {
            each_node(source, target, bound, |node| nodes.push(node));
        }
    }
    nodes
}

struct Press<'f, 'm> {
    writer: Writer<'f>,
    copied: &'f mut HashMap<(PathId, u32), Range<usize>, FxBuildHasher>,
    source: &'f Source<'m>,
    limit: Limit,
}

impl Press<'_, '_> {
    fn results(
        &mut self,
        template: &Template,
        list: &[u32],
        out: &mut Results,
    ) -> Result<(), TooLong> {
        if let Some(Frame { before, after }) = &template.frame {
            out.bytes.extend_from_slice(before);
            for &bound in list {
                self.group(template, bound, &mut out.bytes)?;
            }
            out.bytes.extend_from_slice(after);
            self.limit.check(&out.bytes)?;
            out.ends.push(out.bytes.len());
        } else if template.is_constructor {
            for &bound in list {
                self.group(template, bound, &mut out.bytes)?;
                out.ends.push(out.bytes.len());
            }
        } else {
            for &bound in list {
                for target in template.targets() {
                    let mut outcome = Ok(());
                    each_node(self.source, target, bound, |node| {
                        if outcome.is_ok() {
                            let outer = Namespaces::default();
                            outcome = self.writer.node(&mut out.bytes, node, &outer, self.limit);
                            out.ends.push(out.bytes.len());
                        }
                    });
                    outcome?;
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, template: &Template, bound: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        for part in &template.parts {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Hole { target, form: Form::Copy, outer }
                    if target.leaf == Leaf::Element && outer.is_empty() =>
                {
                    self.elements(target, bound, out)?;
                }
                Part::Hole { target, form, outer } => {
                    self.hole(target, *form, outer, bound, out)?;
                }
            }
        }
        self.limit.check(out)
    }

    /// A hole of copied elements, which subscriptions with other templates have too: written once, and
    /// copied from there.
    fn elements(&mut self, target: &Target, bound: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let key = (target.path.unwrap_or(PathId::MAX), bound);
        if let Some(range) = self.copied.get(&key) {
            self.limit.check_room(out, range.len())?;
            out.extend_from_within(range.clone());
            return Ok(());
        }
        let start = out.len();
        self.hole(target, Form::Copy, &Namespaces::default(), bound, out)?;
        self.copied.insert(key, start..out.len());
        Ok(())
    }

    fn hole(
        &mut self,
        target: &Target,
        form: Form,
        outer: &Namespaces,
        bound: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLong> {
        let (message, limit) = (self.source.message, self.limit);
        let mut outcome = Ok(());
        let mut is_first = true;
        each_node(self.source, target, bound, |node| {
            if outcome.is_err() {
                return;
            }
            match (form, node) {
                (Form::Copy, NodeRef::Attribute(attribute)) => {
                    let mut scope = outer.clone();
                    outcome = self.writer.attribute(out, attribute, &mut scope, limit);
                }
                (Form::Copy, node) => outcome = self.writer.node(out, node, outer, limit),
                (Form::FirstValue | Form::FirstAttributeValue, _) if !is_first => {}
                (Form::Values | Form::FirstValue, node) => {
                    if !is_first {
                        out.push(b' ');
                    }
                    each_piece(message, node, |piece| write_text(out, piece));
                }
                (Form::AttributeValues | Form::FirstAttributeValue, node) => {
                    if !is_first {
                        out.push(b' ');
                    }
                    each_piece(message, node, |piece| write_attribute_value(out, piece));
                }
            }
            is_first = false;
        });
        outcome?;
        limit.check(out)
    }
}

/// Gives the nodes of a hole, in document order.
fn each_node(source: &Source<'_>, target: &Target, bound: u32, mut f: impl FnMut(NodeRef)) {
    let own = [bound];
    let elements = match target.path {
        None => &own[..],
        Some(path) => source.shared.group(path, bound),
    };
    let tree = source.message.tree;
    match &target.leaf {
        Leaf::Element => elements.iter().for_each(|&element| f(NodeRef::Element(element))),
        Leaf::Text => {
            // Text of an element may lie behind that of an element below it.
            if elements.windows(2).all(|pair| pair[1] >= tree.element_end[pair[0] as usize]) {
                for &element in elements {
                    tree.each_text(element, |text| f(NodeRef::Text(text)));
                }
            } else {
                let mut texts = Vec::new();
                for &element in elements {
                    tree.each_text(element, |text| texts.push(text));
                }
                texts.sort_unstable();
                texts.into_iter().for_each(|text| f(NodeRef::Text(text)));
            }
        }
        Leaf::Attribute { uri, local } => {
            let hash = hash_name(uri, local);
            let Some(name) = source.names.find(hash, uri.as_bytes(), local.as_bytes()) else {
                return;
            };
            for &element in elements {
                if let Some(attribute) = attribute(tree, element, name) {
                    f(NodeRef::Attribute(attribute));
                }
            }
        }
    }
}

/// Gives the pieces of a node's string value.
fn each_piece(message: Message<'_>, node: NodeRef, mut f: impl FnMut(&[u8])) {
    let tree = message.tree;
    match node {
        NodeRef::Element(element) => {
            tree.texts(element).for_each(|text| f(message.bytes(tree.text_value[text as usize])));
        }
        NodeRef::Text(text) => f(message.bytes(tree.text_value[text as usize])),
        NodeRef::Attribute(attribute) => {
            f(message.bytes(tree.attribute_value[attribute as usize]));
        }
        _ => unreachable!("holes have elements, text and attributes"),
    }
}
