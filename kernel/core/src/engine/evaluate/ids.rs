//! The ids of a message (XPath 1.0, 5.2.1): which element each belongs to.

use super::document::{Document, XML_URI};
use crate::xml::names::hash_name;
use crate::xml::tree::Span;

/// Ids in the order of their bytes; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    is_known: bool,
    entries: Vec<(Span, u32)>,
}

impl Ids {
    /// Forgets the message before.
    pub(crate) fn begin(&mut self) {
        self.is_known = false;
    }

    /// The element with an id; if two have the same, the first. Cost: when first asked about a
    /// message, one pass over its attributes.
    pub(crate) fn element(&mut self, document: &Document<'_>, id: &[u8]) -> Option<u32> {
        if !self.is_known {
            self.is_known = true;
            self.find_all(document);
        }
        let at = self.entries.partition_point(|&(span, _)| document.bytes(span) < id);
        let &(span, element) = self.entries.get(at)?;
        (document.bytes(span) == id).then_some(element)
    }

    /// An attribute is an id if it is `xml:id`, or the document type declaration says so.
    fn find_all(&mut self, document: &Document<'_>) {
        let tree = document.tree;
        self.entries.clear();
        let hash = hash_name(XML_URI, "id");
        let xml_id = document.names.find(hash, XML_URI.as_bytes(), b"id");
        if xml_id.is_none() && tree.id_attribute.is_empty() {
            return;
        }
        let mut declared = tree.id_attribute.iter().copied().peekable();
        for element in 0..tree.len() as u32 {
            for attribute in document.attributes(element) {
                let is_declared = declared.next_if_eq(&attribute).is_some();
                let is_xml_id = Some(tree.attribute_name[attribute as usize]) == xml_id;
                if is_declared || is_xml_id {
                    self.entries.push((tree.attribute_value[attribute as usize], element));
                }
            }
        }
        // Stable: of equal ids, the first element stays the first.
        self.entries.sort_by_key(|&(span, _)| document.bytes(span));
    }
}
