//! Where the nested paths of a message hold: the filters of NP-Filter, one per distinct nested
//! path, shared by all queries that have it.
//!
//! Source: paper 003, 6.2.2, filter construction; the filter holds the anchors themselves.

use hashbrown::HashTable;

/// The anchors of one nested path.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnchorSet {
    /// It holds nowhere.
    Empty,
    /// One bit per element, from this word on.
    Bits { first_word: u32 },
    /// Sorted elements, from this entry on.
    Sorted { first: u32, length: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    key_start: u32,
    key_end: u32,
    anchors: AnchorSet,
}

/// The sets known for the message at hand, within a bound: when it is reached all are forgotten,
/// which costs time and never an answer.
#[derive(Debug, Default)]
pub(super) struct NestedSets {
    index: HashTable<Entry>,
    keys: Vec<u8>,
    words: Vec<u64>,
    elements: Vec<u32>,
}

/// Bytes that the sets of one message may occupy before they are forgotten; one set of a message of
/// a million elements takes 125 KB.
const BYTES_MAX: usize = 16 << 20;

/// Slots of the index that are kept for the next message at least.
const SLOTS_KEPT: usize = 4096;

impl NestedSets {
    /// Forgets all sets. Cost: what was used since the last time.
    pub(crate) fn clear(&mut self) {
        if self.index.is_empty() {
            return;
        }
        // Clearing touches every slot: give back what a large message has left.
        let is_oversized = self.index.capacity() > SLOTS_KEPT.max(16 * self.index.len());
        self.index.clear();
        if is_oversized {
            self.index.shrink_to(SLOTS_KEPT, |entry| entry.hash);
        }
        self.keys.clear();
        self.words.clear();
        self.elements.clear();
    }

    /// The set of a nested path, if known.
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<AnchorSet> {
        let is_same = |entry: &Entry| {
            entry.hash == hash
                && &self.keys[entry.key_start as usize..entry.key_end as usize] == key
        };
        self.index.find(hash, is_same).map(|entry| entry.anchors)
    }

    /// Keeps the set of a nested path. `anchors` are distinct, in any order, and get sorted. Sets
    /// given out before may have become meaningless.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        anchors: &mut [u32],
        elements: usize,
    ) -> AnchorSet {
        let occupied = self.keys.len() + 8 * self.words.len() + 4 * self.elements.len();
        if occupied + self.index.len() * size_of::<Entry>() > BYTES_MAX {
            self.clear();
        }
        let words = elements.div_ceil(64);
        let set = if anchors.is_empty() {
            AnchorSet::Empty
        } else if words <= 8 || anchors.len() > 2 * words {
            let first_word = self.words.len() as u32;
            self.words.resize(self.words.len() + words, 0);
            let bits = &mut self.words[first_word as usize..];
            for &anchor in anchors.iter() {
                bits[anchor as usize / 64] |= 1 << (anchor % 64);
            }
            AnchorSet::Bits { first_word }
        } else {
            anchors.sort_unstable();
            let first = self.elements.len() as u32;
            self.elements.extend_from_slice(anchors);
            AnchorSet::Sorted { first, length: anchors.len() as u32 }
        };
        let key_start = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        let entry = Entry { hash, key_start, key_end: self.keys.len() as u32, anchors: set };
        self.index.insert_unique(hash, entry, |entry| entry.hash);
        set
    }

    /// Whether the nested path holds at an element.
    pub(crate) fn contains(&self, set: AnchorSet, element: u32) -> bool {
        match set {
            AnchorSet::Empty => false,
            AnchorSet::Bits { first_word } => {
                self.words[first_word as usize + element as usize / 64] >> (element % 64) & 1 == 1
            }
            AnchorSet::Sorted { first, length } => {
                let (first, length) = (first as usize, length as usize);
                self.elements[first..first + length].binary_search(&element).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_answer_for_their_anchors_in_every_form() {
        let mut sets = NestedSets::default();
        for (elements, anchors) in [
            (70, vec![]),
            (70, vec![69, 0, 64]),
            (100_000, vec![99_999, 5]),
            (100_000, (0..100_000).step_by(2).collect::<Vec<u32>>()),
        ] {
            let key = format!("{elements} {}", anchors.len());
            let set = sets.insert(7, key.as_bytes(), &mut anchors.clone(), elements);
            for element in (0..elements as u32).step_by(5).chain([5, 64, 69]) {
                assert_eq!(sets.contains(set, element), anchors.contains(&element), "{element}");
            }
        }
        assert!(matches!(sets.find(7, b"70 0"), Some(AnchorSet::Empty)));
        assert!(sets.find(7, b"70 9").is_none(), "equal hashes are not equal paths");
        sets.clear();
        assert!(sets.find(7, b"70 0").is_none(), "a set outlived its message");
    }

    #[test]
    fn memory_stays_within_its_bound() {
        let mut sets = NestedSets::default();
        let mut anchors: Vec<u32> = (0..1_000_000).collect();
        for number in 0..400_u64 {
            let set = sets.insert(number, &number.to_le_bytes(), &mut anchors, 1_000_000);
            assert!(sets.contains(set, 999_999));
            assert!(8 * sets.words.len() <= BYTES_MAX + 125_000, "{}", sets.words.len());
        }
    }
}
