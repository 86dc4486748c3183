//! Which nested paths hold at which elements of the message at hand.
//!
//! One row an anchor: as a list of words, and, where all rows together are small enough, as a bitmap, in
//! which a nested path is found at once.

use crate::engine::collect::Collector;
use crate::engine::ids::QueryNumber;
use std::ops::Range;

/// Words that the bitmaps of a message may have; beyond that words are searched for.
const BITMAP_WORDS_MAX: usize = 1 << 22;

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    stamp: u32,
    number: u32,
    start: u32,
    end: u32,
}

/// The rows of one message.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    stamp: u32,
    /// Per element.
    rows: Vec<Row>,
    at: Vec<u32>,
    bits: Vec<u64>,
    /// Words of a row of the bitmap; 0 if there is none.
    width: usize,
    /// Zeros but for the rows of the message at hand.
    bitmap: Vec<u64>,
    /// Rows of the message at hand, as parts of `at`.
    parts: Vec<Range<u32>>,
}

impl Truth {
    /// Forgets the message before. `anchors` rows will be added, of `nested_paths` bits.
    pub(crate) fn begin(&mut self, elements: usize, anchors: usize, nested_paths: usize) {
        if self.stamp == u32::MAX {
            self.rows.clear();
            self.stamp = 0;
        }
        self.stamp += 1;
        if self.width > 0 {
            for (number, part) in self.parts.iter().enumerate() {
                let row = &mut self.bitmap[number * self.width..];
                for &word in &self.at[part.start as usize..part.end as usize] {
                    row[word as usize] = 0;
                }
            }
        }
        self.parts.clear();
        self.at.clear();
        self.bits.clear();
        let width = nested_paths.div_ceil(64);
        let is_small = width.saturating_mul(anchors) <= BITMAP_WORDS_MAX;
        self.width = if is_small { width } else { 0 };
        if self.bitmap.len() < self.width * anchors {
            self.bitmap.resize(self.width * anchors, 0);
        }
        if self.rows.len() < elements {
            self.rows.resize(elements, Row::default());
        }
    }

    /// Takes what holds at an anchor.
    pub(crate) fn add_row(&mut self, anchor: u32, row: &mut Collector) {
        let start = self.at.len() as u32;
        row.drain_into_words(&mut self.at, &mut self.bits);
        let end = self.at.len() as u32;
        let number = self.parts.len() as u32;
        if self.width > 0 {
            let row = &mut self.bitmap[number as usize * self.width..];
            for at in start as usize..end as usize {
                row[self.at[at] as usize] = self.bits[at];
            }
        }
        self.parts.push(start..end);
        self.rows[anchor as usize] = Row { stamp: self.stamp, number, start, end };
    }

    /// Takes what holds at an anchor as words, ascending; kept once if it is what the anchor before had.
    /// Returns how many words are new.
    pub(crate) fn add_words(&mut self, anchor: u32, words: &[(u32, u64)]) -> u64 {
        if words.is_empty() {
            return 0;
        }
        let last = self.parts.last().cloned().unwrap_or_default();
        let known = self.at[last.start as usize..last.end as usize].iter();
        let known =
            known.copied().zip(self.bits[last.start as usize..last.end as usize].iter().copied());
        let is_known = last.len() == words.len() && known.eq(words.iter().copied());
        if !is_known {
            let start = self.at.len() as u32;
            self.at.extend(words.iter().map(|&(at, _)| at));
            self.bits.extend(words.iter().map(|&(_, bits)| bits));
            if self.width > 0 {
                let row = &mut self.bitmap[self.parts.len() * self.width..];
                words.iter().for_each(|&(at, bits)| row[at as usize] = bits);
            }
            self.parts.push(start..self.at.len() as u32);
        }
        let number = self.parts.len() as u32 - 1;
        let Range { start, end } = self.parts[number as usize];
        self.rows[anchor as usize] = Row { stamp: self.stamp, number, start, end };
        if is_known { 0 } else { words.len() as u64 }
    }

    /// A number that two anchors share only if the same nested paths hold at them; for anchors at which some do.
    #[inline]
    pub(crate) fn row_number(&self, anchor: u32) -> u32 {
        self.rows[anchor as usize].number
    }

    /// Whether no nested path is known to hold at an anchor.
    #[inline]
    pub(crate) fn is_empty_at(&self, anchor: u32) -> bool {
        let row = self.rows[anchor as usize];
        row.stamp != self.stamp || row.start == row.end
    }

    /// The row of an anchor as a bitmap, where there are bitmaps.
    #[inline]
    pub(crate) fn bitmap_of(&self, anchor: u32) -> Option<&[u64]> {
        let row = self.rows[anchor as usize];
        let start = row.number as usize * self.width;
        (self.width > 0 && row.stamp == self.stamp).then(|| &self.bitmap[start..start + self.width])
    }

    /// A word of a row.
    #[inline]
    pub(crate) fn word(&self, anchor: u32, word: u32) -> u64 {
        let row = self.rows[anchor as usize];
        if row.stamp != self.stamp {
            return 0;
        }
        if self.width > 0 {
            return self.bitmap[row.number as usize * self.width + word as usize];
        }
        let range = row.start as usize..row.end as usize;
        self.at[range].binary_search(&word).map_or(0, |at| self.bits[row.start as usize + at])
    }

    /// Whether a nested path holds at an anchor.
    #[inline]
    pub(crate) fn contains(&self, anchor: u32, number: QueryNumber) -> bool {
        self.word(anchor, number / 64) >> (number % 64) & 1 == 1
    }

    /// Counts what holds at an anchor.
    pub(crate) fn count_row(&self, anchor: u32, nested_paths: usize, hits: &mut Vec<u32>) {
        hits.resize(nested_paths, 0);
        let row = self.rows[anchor as usize];
        for at in row.start as usize..row.end as usize {
            let mut rest = self.bits[at];
            while rest != 0 {
                hits[(self.at[at] * 64 + rest.trailing_zeros()) as usize] += 1;
                rest &= rest - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(numbers: &[u32]) -> Collector {
        let mut row = Collector::default();
        row.reserve(1000);
        numbers.iter().for_each(|&number| row.add_range(&(number..number + 1), 0));
        row
    }

    #[test]
    fn rows_answer_as_bitmaps_and_as_lists_and_outlive_no_message() {
        // The second message has so many anchors that there is no bitmap.
        for anchors in [2, BITMAP_WORDS_MAX] {
            let mut truth = Truth::default();
            truth.begin(10, 2, 1000);
            truth.add_row(3, &mut row_of(&[5, 999]));
            truth.begin(10, anchors, 1000);
            truth.add_row(7, &mut row_of(&[0, 64, 999]));
            truth.add_row(2, &mut row_of(&[]));
            assert_eq!(truth.bitmap_of(7).is_some(), anchors == 2);
            for number in [0, 1, 5, 63, 64, 998, 999] {
                assert_eq!(truth.contains(7, number), [0, 64, 999].contains(&number), "{number}");
                assert!(!truth.contains(3, number), "a row of the message before");
                assert!(!truth.contains(2, number));
            }
            assert!(truth.is_empty_at(2) && truth.is_empty_at(3) && !truth.is_empty_at(7));
        }
    }
}
