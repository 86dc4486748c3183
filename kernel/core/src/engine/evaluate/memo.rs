//! Values that are kept for the length of one evaluation.

use super::document::Node;
use hashbrown::HashMap;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::hash::RandomState;
use std::ops::Range;

/// Positions up to which truth values are kept in arrays.
const DENSE_MAX: u32 = 1 << 16;
/// Memory that is kept from one evaluation to the next, in entries.
const KEPT_MAX: usize = 1 << 16;

/// A kept value; texts and node-sets lie in the store.
#[derive(Clone, Debug)]
enum Kept {
    Boolean(bool),
    Number(f64),
    Text(Range<usize>),
    Nodes(Range<usize>),
}

/// Which value: slot and context node ([`Node::ROOT`] for what does not depend on it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(crate) slot: u32,
    pub(crate) node: Node,
}

/// The store; keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Store {
    positions: u32,
    /// Per slot and position: 0 unknown, 1 false, 2 true.
    truths: Vec<Vec<u8>>,
    others: HashMap<Place, Kept, FxBuildHasher>,
    text: Vec<u8>,
    nodes: Vec<Node>,
    /// Per slot of a node-set: its string-values. They come from messages, so the hash is seeded.
    values: HashMap<u32, HashSet<Vec<u8>, RandomState>, FxBuildHasher>,
}

impl Store {
    /// Forgets everything; `slots` values may be kept now, for so many positions.
    pub(crate) fn begin(&mut self, slots: u32, positions: u32) {
        let dense: usize = self.truths.iter().map(Vec::capacity).sum();
        if dense > KEPT_MAX * 16
            || self.others.capacity() > KEPT_MAX
            || self.nodes.capacity() > KEPT_MAX
            || self.text.capacity() > KEPT_MAX * 16
        {
            *self = Store::default();
        }
        self.positions = positions;
        for truths in &mut self.truths {
            truths.clear();
        }
        if self.truths.len() < slots as usize {
            self.truths.resize(slots as usize, Vec::new());
        }
        if !self.others.is_empty() {
            self.others.clear();
        }
        self.text.clear();
        self.nodes.clear();
        self.values.clear();
    }

    /// The string-values of the node-set of a slot, if they are kept.
    pub(crate) fn values(&self, slot: u32) -> Option<&HashSet<Vec<u8>, RandomState>> {
        self.values.get(&slot)
    }

    pub(crate) fn keep_values(&mut self, slot: u32, values: HashSet<Vec<u8>, RandomState>) {
        self.values.insert(slot, values);
    }

    fn is_dense(&self, place: Place) -> bool {
        self.positions <= DENSE_MAX && place.node.is_main()
    }

    pub(crate) fn boolean(&self, place: Place) -> Option<bool> {
        if self.is_dense(place) {
            let truths = &self.truths[place.slot as usize];
            return match truths.get(place.node.position() as usize) {
                None | Some(0) => None,
                Some(&truth) => Some(truth == 2),
            };
        }
        match self.others.get(&place) {
            Some(Kept::Boolean(value)) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn keep_boolean(&mut self, place: Place, value: bool) {
        if self.is_dense(place) {
            let truths = &mut self.truths[place.slot as usize];
            truths.resize(self.positions as usize, 0);
            truths[place.node.position() as usize] = 1 + u8::from(value);
        } else {
            self.others.insert(place, Kept::Boolean(value));
        }
    }

    pub(crate) fn number(&self, place: Place) -> Option<f64> {
        match self.others.get(&place) {
            Some(Kept::Number(value)) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn keep_number(&mut self, place: Place, value: f64) {
        self.others.insert(place, Kept::Number(value));
    }

    pub(crate) fn text(&self, place: Place) -> Option<&[u8]> {
        match self.others.get(&place) {
            Some(Kept::Text(range)) => Some(&self.text[range.clone()]),
            _ => None,
        }
    }

    pub(crate) fn keep_text(&mut self, place: Place, value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(value);
        self.others.insert(place, Kept::Text(start..self.text.len()));
    }

    pub(crate) fn nodes(&self, place: Place) -> Option<&[Node]> {
        match self.others.get(&place) {
            Some(Kept::Nodes(range)) => Some(&self.nodes[range.clone()]),
            _ => None,
        }
    }

    pub(crate) fn keep_nodes(&mut self, place: Place, value: &[Node]) {
        let start = self.nodes.len();
        self.nodes.extend_from_slice(value);
        self.others.insert(place, Kept::Nodes(start..self.nodes.len()));
    }
}
