//! Values of the nodes of one message, as operands ask for them.
//!
//! Works on the bytes as they lie in the message; only a value that is spread over several text nodes is
//! put together.

use super::probe::{PredicateId, Probe, TextId, Texts};
use crate::xml::names::{NameId, NameTable, hash_name};
use crate::xml::tree::{Message, MessageTree, Span};

/// Not looked up yet.
const UNKNOWN: TextId = TextId::MAX;
/// Looked up; nobody asks for it.
const UNASKED: TextId = TextId::MAX - 1;

/// Memory for the values of a message; reused from message to message.
#[derive(Debug, Default)]
pub(crate) struct Values {
    value: Vec<u8>,
    /// Per text node and per attribute: the number of its value.
    texts: Vec<TextId>,
    attributes: Vec<TextId>,
}

/// The values of one message.
pub(crate) struct Look<'m, 'v> {
    pub(crate) message: Message<'m>,
    pub(crate) texts: &'v Texts,
    pub(crate) values: &'v mut Values,
}

impl Values {
    /// Makes ready for a message.
    pub(crate) fn begin(&mut self, tree: &MessageTree) {
        self.texts.clear();
        self.texts.resize(tree.text_value.len(), UNKNOWN);
        self.attributes.clear();
        self.attributes.resize(tree.attribute_value.len(), UNKNOWN);
    }
}

/// The number of an attribute's name; none if no message had such a name.
pub(crate) fn attribute_name(names: &NameTable, uri: &str, local: &str) -> Option<NameId> {
    names.find(hash_name(uri, local), uri.as_bytes(), local.as_bytes())
}

impl Look<'_, '_> {
    /// Gives the predicates that the string value of an element satisfies.
    pub(crate) fn element(
        &mut self,
        element: u32,
        probe: &Probe,
        found: &mut impl FnMut(PredicateId),
    ) {
        probe.exists().for_each(&mut *found);
        if !probe.reads_values() {
            return;
        }
        let tree = self.message.tree;
        let texts = tree.texts(element);
        if texts.len() == 1 {
            self.text(texts.start, probe, found);
            return;
        }
        let Values { value, .. } = self.values;
        value.clear();
        for &span in &tree.text_value[texts.start as usize..texts.end as usize] {
            value.extend_from_slice(self.message.bytes(span));
        }
        if let Some(text) = self.texts.find(value) {
            probe.equal_to(text, &mut *found);
        }
        if probe.reads_more_than_texts() {
            probe.satisfied(value, found);
        }
    }

    /// Gives the predicates that some text node of an element satisfies.
    pub(crate) fn texts(
        &mut self,
        element: u32,
        probe: &Probe,
        found: &mut impl FnMut(PredicateId),
    ) {
        self.message.tree.each_text(element, |text| {
            probe.exists().for_each(&mut *found);
            if probe.reads_values() {
                self.text(text, probe, found);
            }
        });
    }

    /// Gives the predicates that an attribute of an element satisfies.
    pub(crate) fn attribute(
        &mut self,
        element: u32,
        name: NameId,
        probe: &Probe,
        found: &mut impl FnMut(PredicateId),
    ) {
        let Some(attribute) = attribute(self.message.tree, element, name) else { return };
        probe.exists().for_each(&mut *found);
        if probe.reads_values() {
            let span = self.message.tree.attribute_value[attribute as usize];
            let known = &mut self.values.attributes[attribute as usize];
            one_value(self.message, self.texts, span, known, probe, found);
        }
    }

    fn text(&mut self, text: u32, probe: &Probe, found: &mut impl FnMut(PredicateId)) {
        let span = self.message.tree.text_value[text as usize];
        let known = &mut self.values.texts[text as usize];
        one_value(self.message, self.texts, span, known, probe, found);
    }
}

/// Gives the predicates that the value of one text node or attribute satisfies; `known` is its number.
fn one_value(
    message: Message<'_>,
    texts: &Texts,
    span: Span,
    known: &mut TextId,
    probe: &Probe,
    found: &mut impl FnMut(PredicateId),
) {
    if *known == UNKNOWN {
        *known = texts.find(message.bytes(span)).unwrap_or(UNASKED);
    }
    if *known != UNASKED {
        probe.equal_to(*known, &mut *found);
    }
    if probe.reads_more_than_texts() {
        probe.satisfied(message.bytes(span), found);
    }
}

/// The attribute of an element with this name.
pub(crate) fn attribute(tree: &MessageTree, element: u32, name: NameId) -> Option<u32> {
    let found = tree.attributes(element).find(|&attribute| tree.attribute_name[attribute] == name);
    found.map(|attribute| attribute as u32)
}
