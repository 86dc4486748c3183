//! Constants by which atoms are found.
//!
//! A key is one constant of one atom: that of an equality, one of a set, a text that values must have. Keys that are the
//! same constant are a chain.

use super::atoms::{Atom, AtomId};
use crate::engine::ask::Ask;
use crate::language::folding::TextTest;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of a key.
pub(crate) type KeyId = u32;

/// No other key.
pub(super) const NO_KEY: KeyId = u32::MAX;

/// Bytes that a key of a set takes, its place in a table included.
pub(super) const KEY_BYTES: usize = size_of::<Key>() + 8;

/// A constant by which an atom is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    atom: AtomId,
    /// Where the constant begins in the text of the atom.
    start: u32,
    /// The next key that is the same constant, of another atom.
    next: KeyId,
}

/// The keys of an automaton, with the atoms that they are of.
pub(super) struct Keys<'a> {
    pub(super) keys: &'a mut Vec<Key>,
    pub(super) atoms: &'a [Atom],
    pub(super) seed: u64,
}

impl Keys<'_> {
    /// A new key: a constant that begins somewhere in the text of an atom.
    pub(super) fn push(&mut self, atom: AtomId, start: usize) -> KeyId {
        self.keys.push(Key { atom, start: start as u32, next: NO_KEY });
        self.keys.len() as KeyId - 1
    }

    /// Makes a key follow another one in its chain.
    pub(super) fn link(&mut self, id: KeyId, next: KeyId) {
        self.keys[id as usize].next = next;
    }

    /// The constant of a key that is a text.
    pub(super) fn text(&self, id: KeyId) -> &[u8] {
        let Key { atom, start, .. } = self.keys[id as usize];
        let atom = &self.atoms[atom as usize];
        let set = match (&atom.ask, &atom.needed) {
            (Ask::Text(_, text) | Ask::StartsWith(text) | Ask::Contains(text), _) => return text,
            (Ask::Texts(TextTest::Matches, ..), Some(needed)) => &needed.texts,
            (Ask::OneOf(set) | Ask::Texts(_, _, set), _) => set,
            _ => unreachable!("only these are found by a text"),
        };
        let rest = &set[start as usize..];
        &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
    }

    pub(super) fn hash(&self, id: KeyId) -> u64 {
        xxh3_64_with_seed(self.text(id), self.seed)
    }

    /// Adds a key whose constant is a text to a table of the last keys of chains.
    pub(super) fn add_to(&mut self, table: &mut HashTable<KeyId>, id: KeyId) {
        let (hash, text) = (self.hash(id), self.text(id));
        match table.find_mut(hash, |&known| self.text(known) == text) {
            Some(known) => {
                let last = std::mem::replace(known, id);
                self.link(id, last);
            }
            None => drop(table.insert_unique(hash, id, |&id| self.hash(id))),
        }
    }

    /// Adds the atoms that a table finds by a text.
    #[inline]
    pub(super) fn find_in(&self, table: &HashTable<KeyId>, text: &[u8], out: &mut Vec<AtomId>) {
        let hash = xxh3_64_with_seed(text, self.seed);
        if let Some(&id) = table.find(hash, |&id| self.text(id) == text) {
            self.push_atoms(id, out);
        }
    }

    /// Adds a key whose constant is a number.
    pub(super) fn add_number(
        &mut self,
        numbers: &mut FxHashMap<u64, KeyId>,
        number: f64,
        atom: AtomId,
    ) {
        let id = self.push(atom, 0);
        let next = numbers.insert(number_key(number), id).unwrap_or(NO_KEY);
        self.link(id, next);
    }

    /// Adds the atoms of a key and of all that are the same constant.
    #[inline]
    pub(super) fn push_atoms(&self, mut id: KeyId, out: &mut Vec<AtomId>) {
        while id != NO_KEY {
            let Key { atom, next, .. } = self.keys[id as usize];
            out.push(atom);
            id = next;
        }
    }
}

/// The bits of a number; 0 and -0 are equal and have different ones.
pub(super) fn number_key(value: f64) -> u64 {
    if value == 0.0 { 0.0f64.to_bits() } else { value.to_bits() }
}
