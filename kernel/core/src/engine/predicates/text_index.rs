//! The atoms of one subject whose values are folded alike, found by the folded value.

use super::atoms::AtomId;
use super::contained::{BYTES_A_KEY, BYTES_A_TEXT, Contained};
use super::keys::{KEY_BYTES, KeyId, Keys};
use crate::language::folding::TextTest;
use hashbrown::HashTable;

/// Texts that values are equal to, begin with and contain.
#[derive(Debug, Default)]
pub(super) struct TextIndex {
    strings: HashTable<KeyId>,
    string_len_max: usize,
    prefixes: HashTable<KeyId>,
    /// Lengths of the prefixes, ascending.
    prefix_lens: Vec<usize>,
    pub(super) contained: Contained,
}

impl TextIndex {
    /// Adds the text of a key. Returns bytes that they take.
    pub(super) fn add(&mut self, test: TextTest, id: KeyId, keys: &mut Keys<'_>) -> usize {
        let length = keys.text(id).len();
        match test {
            TextTest::Is => {
                self.string_len_max = self.string_len_max.max(length);
                keys.add_to(&mut self.strings, id);
                KEY_BYTES
            }
            TextTest::Begins => {
                if let Err(at) = self.prefix_lens.binary_search(&length) {
                    self.prefix_lens.insert(at, length);
                }
                keys.add_to(&mut self.prefixes, id);
                KEY_BYTES
            }
            TextTest::Has | TextTest::Matches => {
                let is_new = self.contained.add(id, keys);
                KEY_BYTES + BYTES_A_KEY + if is_new { BYTES_A_TEXT } else { 0 }
            }
        }
    }

    /// Whether the whole value matters, however long it is.
    #[inline]
    pub(super) fn reads_all(&self) -> bool {
        !self.contained.is_empty()
    }

    /// Whether there is nothing in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.strings.is_empty() && self.prefixes.is_empty() && self.contained.is_empty()
    }

    /// Bytes of a folded value that are compared with texts, at most, but for those that it may contain.
    #[inline]
    pub(super) fn compared_bytes(&self) -> usize {
        self.string_len_max.max(self.prefix_lens.last().copied().unwrap_or(0))
    }

    /// Adds the atoms that ask for the value or for its beginning. A value longer than [`TextIndex::compared_bytes`] may
    /// be cut behind them. Cost: at most the length of the longest text.
    #[inline]
    pub(super) fn find_equal(&self, value: &[u8], keys: &Keys<'_>, out: &mut Vec<AtomId>) {
        if !self.strings.is_empty() && value.len() <= self.string_len_max {
            keys.find_in(&self.strings, value, out);
        }
        for &length in self.prefix_lens.iter().take_while(|&&length| length <= value.len()) {
            keys.find_in(&self.prefixes, &value[..length], out);
        }
    }
}
