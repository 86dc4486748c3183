//! Names as they are written, looked up without being taken apart.
//!
//! A name in a tag is some bytes; what it means depends on the namespace declarations in scope.
//! Each distinct set of declarations has a number (its context), so a pair (context, bytes) means
//! the same [`NameId`] in every message, and a name that was met before costs one look-up: its
//! first and last eight bytes and its length are the key, and for names of up to sixteen bytes
//! they are the whole name.
//!
//! The hash is seeded per door, so that nobody can send names made to collide.

use crate::xml::names::NameId;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Context in which attribute names without a prefix are kept: they are in no namespace, whatever
/// is declared.
pub(super) const ATTRIBUTES: u32 = u32::MAX;
/// Instead of a name: the attribute has a prefix, so its meaning depends on the context.
pub(super) const PREFIXED: NameId = u32::MAX - 1;
/// Instead of a name: the attribute declares a namespace.
pub(super) const DECLARATION: NameId = u32::MAX - 2;

const VACANT: NameId = u32::MAX;
const SLOTS_MIN: usize = 1024;
const FILLED_MAX: usize = 65_536;
const TEXT_MAX: usize = 4 << 20;

/// First and last bytes and hash of a name.
#[derive(Clone, Copy)]
pub(super) struct Key {
    first: u64,
    last: u64,
    hash: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    first: u64,
    last: u64,
    context: u32,
    len: u32,
    id: NameId,
    /// Start of the bytes in `text`; only names longer than sixteen bytes are kept there.
    start: u32,
}

const EMPTY: Slot = Slot { first: 0, last: 0, context: 0, len: 0, id: VACANT, start: 0 };

/// (context, bytes of a name) -> name.
pub(super) struct QNames {
    slots: Vec<Slot>,
    filled: usize,
    text: Vec<u8>,
    seed: [u64; 2],
}

impl QNames {
    pub(crate) fn new() -> Self {
        let state = RandomState::new();
        let seed = [1, 2].map(|n: u64| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(n);
            hasher.finish() | 1
        });
        QNames { slots: vec![EMPTY; SLOTS_MIN], filled: 0, text: Vec::new(), seed }
    }

    /// Whether so much is kept that it should be forgotten before the next message.
    pub(crate) fn is_full(&self) -> bool {
        self.filled > FILLED_MAX || self.text.len() > TEXT_MAX
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.text.capacity()
    }

    pub(crate) fn clear(&mut self) {
        // Anew, so that one message full of names does not keep its memory for ever.
        self.slots = vec![EMPTY; SLOTS_MIN];
        self.text = Vec::new();
        self.filled = 0;
    }

    #[inline(always)]
    pub(crate) fn key(&self, context: u32, name: &[u8]) -> Key {
        let (first, last) = ends(name);
        let salt = (u64::from(context) << 32) ^ name.len() as u64;
        let mut hash = fold(first ^ self.seed[0], last ^ salt ^ self.seed[1]);
        if name.len() > 16 {
            hash = self.hash_middle(hash, name);
        }
        Key { first, last, hash }
    }

    fn hash_middle(&self, mut hash: u64, name: &[u8]) -> u64 {
        for chunk in name[8..name.len() - 8].chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = fold(hash ^ u64::from_le_bytes(word), self.seed[1]);
        }
        hash
    }

    #[inline(always)]
    pub(crate) fn find(&self, key: Key, context: u32, name: &[u8]) -> Option<NameId> {
        let mask = self.slots.len() - 1;
        let mut at = key.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.first == key.first
                && slot.last == key.last
                && slot.context == context
                && slot.len as usize == name.len()
                && slot.id != VACANT
                && (name.len() <= 16 || self.is_same(slot, name))
            {
                return Some(slot.id);
            }
            if slot.id == VACANT {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    fn is_same(&self, slot: &Slot, name: &[u8]) -> bool {
        let start = slot.start as usize;
        &self.text[start..start + name.len()] == name
    }

    /// Adds a name that [`QNames::find`] did not find.
    pub(crate) fn add(&mut self, key: Key, context: u32, name: &[u8], id: NameId) {
        if self.filled * 2 >= self.slots.len() {
            self.grow();
        }
        let start = self.text.len() as u32;
        if name.len() > 16 {
            self.text.extend_from_slice(name);
        }
        let slot =
            Slot { first: key.first, last: key.last, context, len: name.len() as u32, id, start };
        self.place(key.hash, slot);
        self.filled += 1;
    }

    fn place(&mut self, hash: u64, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].id != VACANT {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let twice = vec![EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, twice);
        for slot in old.into_iter().filter(|slot| slot.id != VACANT) {
            let salt = (u64::from(slot.context) << 32) ^ u64::from(slot.len);
            let mut hash = fold(slot.first ^ self.seed[0], slot.last ^ salt ^ self.seed[1]);
            if slot.len > 16 {
                let start = slot.start as usize;
                hash = self.hash_middle(hash, &self.text[start..start + slot.len as usize]);
            }
            self.place(hash, slot);
        }
    }
}

/// Halves of the 128-bit product, folded: every bit of both factors reaches every bit.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// First and last bytes of a name, overlapping when it is short; with its length they are the
/// whole of a name of up to sixteen bytes.
#[inline(always)]
fn ends(name: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else if let (Some(&first), Some(&last)) = (name.first(), name.last()) {
        (u64::from(first) | u64::from(name[name.len() / 2]) << 8, u64::from(last))
    } else {
        (0, 0)
    }
}

/// Whether two names of one length are the same; short ones without a call.
#[inline(always)]
pub(super) fn is_same_name(a: &[u8], b: &[u8]) -> bool {
    ends(a) == ends(b) && (a.len() <= 16 || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_are_told_apart() {
        let mut names = QNames::new();
        let texts: Vec<String> =
            (0..3000u32).map(|n| format!("{}{n}", "x".repeat(n as usize % 40))).collect();
        for (id, text) in texts.iter().enumerate() {
            for context in [0, 7, ATTRIBUTES] {
                let key = names.key(context, text.as_bytes());
                assert_eq!(names.find(key, context, text.as_bytes()), None);
                names.add(key, context, text.as_bytes(), id as NameId + (context & 7) * 10_000);
            }
        }
        for (id, text) in texts.iter().enumerate() {
            for context in [0, 7, ATTRIBUTES] {
                let key = names.key(context, text.as_bytes());
                let expected = Some(id as NameId + (context & 7) * 10_000);
                assert_eq!(names.find(key, context, text.as_bytes()), expected);
            }
        }
    }
}
