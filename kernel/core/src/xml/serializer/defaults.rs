//! What becomes of the default namespace of the new surroundings inside a copied element (XQuery 1.0,
//! 3.7.1.3, copy-namespaces preserve and inherit).
//!
//! An element with a prefix inherits it if it has no default namespace of its own and does not take
//! it back itself (`xmlns=""`). An element in no namespace cannot inherit it: where such a one stands
//! in one that does, it must take the default namespace back, which it did not have to in the
//! message.

use crate::xml::names::NameTable;
use crate::xml::tree::MessageTree;

/// Finds the elements in one that inherits, which take back what they would inherit from it.
///
/// Cost: linear in the elements in it.
pub(super) fn find_undeclaring(
    tree: &MessageTree,
    names: &NameTable,
    element: u32,
    found: &mut Vec<u32>,
) {
    let owners = &tree.declaration_element;
    let mut declaration = owners.partition_point(|&owner| owner <= element);
    let end = tree.element_end[element as usize];
    let mut next = element + 1;
    while next < end {
        while owners.get(declaration).is_some_and(|&owner| owner < next) {
            declaration += 1;
        }
        let mut own = declaration;
        let mut is_declared = false;
        while owners.get(own) == Some(&next) {
            is_declared |= tree.declaration_prefix[own].len() == 0;
            own += 1;
        }
        let is_prefixed = !names.uri(tree.name[next as usize]).is_empty();
        if is_prefixed && !is_declared {
            next += 1;
            continue;
        }
        if !is_declared {
            found.push(next);
        }
        // What is in it has its default namespace, or its lack of one.
        next = tree.element_end[next as usize];
    }
}
