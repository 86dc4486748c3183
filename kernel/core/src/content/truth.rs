//! Which nested paths hold at which elements of the message at hand.
//!
//! One row an anchor, as sparse words; the row of the anchor at hand can be loaded into a bitmap, where a
//! word is found at once.

use crate::collect::Collector;
use crate::nfa::QueryNumber;

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    stamp: u32,
    start: u32,
    end: u32,
}

/// The rows of one message.
#[derive(Debug, Default)]
pub struct Truth {
    stamp: u32,
    rows: Vec<Row>,
    at: Vec<u32>,
    bits: Vec<u64>,
}

impl Truth {
    /// Forgets the message before.
    pub fn begin(&mut self, elements: usize) {
        if self.stamp == u32::MAX {
            self.rows.clear();
            self.stamp = 0;
        }
        self.stamp += 1;
        self.at.clear();
        self.bits.clear();
        if self.rows.len() < elements {
            self.rows.resize(elements, Row::default());
        }
    }

    /// Takes what holds at an anchor.
    pub fn add_row(&mut self, anchor: u32, row: &mut Collector) {
        let start = self.at.len() as u32;
        row.drain_into_words(&mut self.at, &mut self.bits);
        let end = self.at.len() as u32;
        self.rows[anchor as usize] = Row { stamp: self.stamp, start, end };
    }

    fn row(&self, anchor: u32) -> (&[u32], &[u64]) {
        let row = self.rows[anchor as usize];
        if row.stamp != self.stamp {
            return (&[], &[]);
        }
        let range = row.start as usize..row.end as usize;
        (&self.at[range.clone()], &self.bits[range])
    }

    /// Whether no nested path is known to hold at an anchor.
    #[inline]
    pub fn is_empty_at(&self, anchor: u32) -> bool {
        let row = self.rows[anchor as usize];
        row.stamp != self.stamp || row.start == row.end
    }

    /// A word of a row. Cost: a binary search.
    #[inline]
    pub fn word(&self, anchor: u32, word: u32) -> u64 {
        let (at, bits) = self.row(anchor);
        at.binary_search(&word).map_or(0, |found| bits[found])
    }

    /// Whether a nested path holds at an anchor. Cost: a binary search.
    #[inline]
    pub fn contains(&self, anchor: u32, number: QueryNumber) -> bool {
        self.word(anchor, number / 64) >> (number % 64) & 1 == 1
    }

    /// Counts what holds at an anchor.
    pub fn count_row(&self, anchor: u32, nested_paths: usize, hits: &mut Vec<u32>) {
        hits.resize(nested_paths, 0);
        let (at, bits) = self.row(anchor);
        for (&word, &bits) in at.iter().zip(bits) {
            let mut rest = bits;
            while rest != 0 {
                hits[(word * 64 + rest.trailing_zeros()) as usize] += 1;
                rest &= rest - 1;
            }
        }
    }
}

/// One row as a bitmap; zeros while none is loaded.
#[derive(Debug, Default)]
pub struct Bitmap(Vec<u64>);

impl Bitmap {
    /// The bitmap of a row.
    pub fn load(&mut self, truth: &Truth, anchor: u32, nested_paths: usize) -> &[u64] {
        let words = nested_paths.div_ceil(64);
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        let (at, bits) = truth.row(anchor);
        for (&at, &bits) in at.iter().zip(bits) {
            self.0[at as usize] = bits;
        }
        &self.0
    }

    /// Empties it of a row.
    pub fn unload(&mut self, truth: &Truth, anchor: u32) {
        truth.row(anchor).0.iter().for_each(|&at| self.0[at as usize] = 0);
    }
}
