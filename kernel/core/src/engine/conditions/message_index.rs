//! What is known about one message beyond its tree, computed at most once and only when asked for:
//! which names occur, the elements of each name, the place of each element among its siblings.
//!
//! Nothing is cleared between messages: entries carry a stamp, and a new message has a new one.

use crate::xml::names::{NameId, NameTable};
use crate::xml::tree::{MessageTree, NONE};

/// First element of a name, if the stamp is that of the message.
#[derive(Clone, Copy, Debug, Default)]
struct NameEntry {
    stamp: u32,
    first: u32,
}

/// The index of one message; reused from message to message.
#[derive(Debug, Default)]
pub(crate) struct MessageIndex {
    stamp: u32,
    has_names: bool,
    has_ordinals: bool,
    by_name: Vec<NameEntry>,
    present: Vec<NameId>,
    next_of_name: Vec<u32>,
    ordinal_of_any: Vec<u32>,
    ordinal_of_name: Vec<u32>,
    /// (stamp of the name, count) per parent, while ordinals are computed.
    counts: Vec<(NameId, u32)>,
    /// The ordinals of the first elements, of any and of their names, where the tree is not the whole message.
    known: Vec<(u32, u32)>,
}

impl MessageIndex {
    /// Forgets the message before. Cost: constant.
    pub(crate) fn begin_message(&mut self) {
        self.has_names = false;
        self.has_ordinals = false;
        self.known.clear();
    }

    /// Says the ordinals of the first elements, of any and of their names, whose siblings are not in the tree.
    pub(crate) fn know_ordinals(&mut self, known: &[(u32, u32)]) {
        self.known.extend_from_slice(known);
    }

    /// Finds out which names occur and chains the elements of each. Cost: elements, once per
    /// message.
    pub(crate) fn find_names(&mut self, tree: &MessageTree, names: &NameTable) {
        if self.has_names {
            return;
        }
        self.has_names = true;
        if self.stamp == u32::MAX {
            self.by_name.clear();
            self.stamp = 0;
        }
        self.stamp += 1;
        let stamp = self.stamp;
        if self.by_name.len() < names.len() {
            self.by_name.resize(names.len(), NameEntry::default());
        }
        self.present.clear();
        self.next_of_name.clear();
        self.next_of_name.resize(tree.len(), NONE);
        for (element, &name) in tree.name.iter().enumerate().rev() {
            let entry = &mut self.by_name[name as usize];
            if entry.stamp == stamp {
                self.next_of_name[element] = entry.first;
            } else {
                entry.stamp = stamp;
                self.present.push(name);
            }
            entry.first = element as u32;
        }
    }

    /// Whether some element has the name. Needs `find_names`.
    pub(crate) fn has_element(&self, name: NameId) -> bool {
        self.by_name.get(name as usize).is_some_and(|entry| entry.stamp == self.stamp)
    }

    /// The elements of a name in document order. Needs `find_names`.
    pub(crate) fn elements(&self, name: NameId) -> impl Iterator<Item = u32> + '_ {
        let first = self.has_element(name).then(|| self.by_name[name as usize].first);
        std::iter::successors(first, |&element| {
            let next = self.next_of_name[element as usize];
            (next != NONE).then_some(next)
        })
    }

    /// Counts every element among its siblings. Needs `find_names`. Cost: elements, once per
    /// message.
    pub(crate) fn count_siblings(&mut self, tree: &MessageTree) {
        if self.has_ordinals {
            return;
        }
        self.has_ordinals = true;
        let length = tree.len();
        for ordinals in [&mut self.ordinal_of_any, &mut self.ordinal_of_name] {
            ordinals.clear();
            ordinals.resize(length, 1);
        }
        self.counts.clear();
        self.counts.resize(length, (NameId::MAX, 0));
        for parent in 0..length {
            let end = tree.element_end[parent];
            let mut child = parent as u32 + 1;
            let mut ordinal = 1;
            while child < end {
                self.ordinal_of_any[child as usize] = ordinal;
                ordinal += 1;
                child = tree.element_end[child as usize];
            }
        }
        for &name in &self.present {
            let mut element = self.by_name[name as usize].first;
            while element != NONE {
                let parent = tree.parent[element as usize];
                if parent != NONE {
                    let (counted, count) = &mut self.counts[parent as usize];
                    *count = if *counted == name { *count + 1 } else { 1 };
                    *counted = name;
                    self.ordinal_of_name[element as usize] = *count;
                }
                element = self.next_of_name[element as usize];
            }
        }
        for (element, &(any, of_name)) in self.known.iter().enumerate() {
            self.ordinal_of_any[element] = any;
            self.ordinal_of_name[element] = of_name;
        }
    }

    /// Position (from 1) of an element among all children of its parent. Needs `count_siblings`.
    pub(crate) fn ordinal_of_any(&self, element: u32) -> u32 {
        self.ordinal_of_any[element as usize]
    }

    /// Position (from 1) among the children of its parent that have the same name. Needs
    /// `count_siblings`.
    pub(crate) fn ordinal_of_name(&self, element: u32) -> u32 {
        self.ordinal_of_name[element as usize]
    }
}
