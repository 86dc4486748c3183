//! Values of the nodes of one message, as operands ask for them.
//!
//! Works on the bytes as they lie in the message; only a value that is spread over several text nodes is
//! put together.

use super::probe::{PredicateId, Probe};
use crate::names::{NameId, NameTable, hash_name};
use crate::tree::{Message, MessageTree};
use crate::xquery::untyped_number;

/// Memory for the values of a message; reused from message to message.
#[derive(Debug, Default)]
pub(super) struct Values {
    value: Vec<u8>,
}

impl Values {
    /// The number of an attribute's name; none if no message had such a name.
    pub fn name(&self, names: &NameTable, uri: &str, local: &str) -> Option<NameId> {
        names.find(hash_name(uri, local), uri.as_bytes(), local.as_bytes())
    }

    /// Gives the predicates that the string value of an element satisfies.
    pub fn element(
        &mut self,
        message: Message<'_>,
        element: u32,
        probe: &Probe,
        found: &mut impl FnMut(PredicateId),
    ) {
        probe.exists().into_iter().for_each(&mut *found);
        if !probe.reads_values() {
            return;
        }
        let tree = message.tree;
        let texts = tree.text_start[element as usize]..tree.text_end[element as usize];
        let spans = &tree.text_value[texts.start as usize..texts.end as usize];
        if let [span] = spans {
            ask(probe, message.bytes(*span), found);
            return;
        }
        let len: usize = spans.iter().map(|span| span.len()).sum();
        if probe.is_beyond(len) {
            return;
        }
        self.value.clear();
        spans.iter().for_each(|&span| self.value.extend_from_slice(message.bytes(span)));
        ask(probe, &self.value, found);
    }

    /// Gives the predicates that some text node of an element satisfies.
    pub fn texts(
        &mut self,
        message: Message<'_>,
        element: u32,
        probe: &Probe,
        found: &mut impl FnMut(PredicateId),
    ) {
        each_text(message.tree, element, |text| {
            probe.exists().into_iter().for_each(&mut *found);
            if probe.reads_values() {
                ask(probe, message.bytes(message.tree.text_value[text as usize]), found);
            }
        });
    }

    /// Gives the predicates that an attribute of an element satisfies.
    pub fn attribute(
        &mut self,
        message: Message<'_>,
        element: u32,
        name: NameId,
        probe: &Probe,
        found: &mut impl FnMut(PredicateId),
    ) {
        if let Some(attribute) = attribute(message.tree, element, name) {
            probe.exists().into_iter().for_each(&mut *found);
            if probe.reads_values() {
                let span = message.tree.attribute_value[attribute as usize];
                ask(probe, message.bytes(span), found);
            }
        }
    }
}

fn ask(probe: &Probe, value: &[u8], found: &mut impl FnMut(PredicateId)) {
    // The door has checked that messages are UTF-8, and values are made of whole pieces of them.
    let value = std::str::from_utf8(value).expect("values are UTF-8");
    probe.satisfied(value, || untyped_number(value.as_bytes()), found);
}

/// The attribute of an element with this name.
pub(super) fn attribute(tree: &MessageTree, element: u32, name: NameId) -> Option<u32> {
    let attributes =
        tree.attribute_start[element as usize]..tree.attribute_start[element as usize + 1];
    attributes.into_iter().find(|&attribute| tree.attribute_name[attribute as usize] == name)
}

/// Calls `f` with the text nodes that are children of an element. Walks from child element to child
/// element, so that text deeper down is stepped over.
pub(super) fn each_text(tree: &MessageTree, element: u32, mut f: impl FnMut(u32)) {
    let mut from = tree.text_start[element as usize];
    let end = tree.text_end[element as usize];
    let mut child = element + 1;
    while from < end && child < tree.element_end[element as usize] {
        (from..tree.text_start[child as usize]).for_each(&mut f);
        from = tree.text_end[child as usize];
        child = tree.element_end[child as usize];
    }
    (from..end).for_each(f);
}
