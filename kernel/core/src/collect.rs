//! Result collection: each query once, whatever the number of its path matches.
//!
//! Queries that are accepted together have neighbouring numbers (they are numbered by reversed
//! path), so what a set of states accepts is a few 64-bit words. A message ORs the words of what it
//! reached into one bitmap; a summary with one bit per word makes enumerating cost what is set,
//! not what is registered.

use crate::nfa::QueryNumber;
use std::ops::Range;

/// A set of query numbers as sparse 64-bit words, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    at: Box<[u32]>,
    bits: Box<[u64]>,
}

impl Words {
    /// The words of the ranges, each moved up by `offset`. Sorts `ranges`.
    pub fn of(ranges: &mut [Range<QueryNumber>], offset: QueryNumber) -> Words {
        ranges.sort_unstable_by_key(|r| r.start);
        let (mut at, mut bits) = (Vec::new(), Vec::<u64>::new());
        for range in ranges.iter() {
            let (mut number, end) = (range.start + offset, range.end + offset);
            while number < end {
                let word = number >> 6;
                let until = end.min((word + 1) << 6);
                let mask = mask_between(number & 63, until - (word << 6));
                match at.last() {
                    Some(&last) if last == word => *bits.last_mut().expect("as long as at") |= mask,
                    _ => {
                        at.push(word);
                        bits.push(mask);
                    }
                }
                number = until;
            }
        }
        Words {
            at: at.into(),
            bits: bits.into(),
        }
    }

    /// Whether no number is in the set.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.at.len() * 12
    }
}

/// Bits `low..high` of a word.
fn mask_between(low: u32, high: u32) -> u64 {
    let below_high = if high == 64 {
        u64::MAX
    } else {
        (1 << high) - 1
    };
    below_high & !((1u64 << low) - 1)
}

/// The bitmap of one message; empty between messages.
#[derive(Debug, Default)]
pub struct Collector {
    bits: Vec<u64>,
    summary: Vec<u64>,
}

impl Collector {
    /// Makes room for query numbers below `queries`.
    pub fn reserve(&mut self, queries: usize) {
        let words = queries.div_ceil(64);
        if words > self.bits.len() {
            self.bits.resize(words, 0);
            self.summary.resize(words.div_ceil(64), 0);
        }
    }

    /// Adds a set.
    #[inline]
    pub fn add_words(&mut self, words: &Words) {
        for (&at, &bits) in words.at.iter().zip(&words.bits) {
            self.bits[at as usize] |= bits;
            self.summary[(at >> 6) as usize] |= 1 << (at & 63);
        }
    }

    /// Adds a range, moved up by `offset`.
    pub fn add_range(&mut self, range: &Range<QueryNumber>, offset: QueryNumber) {
        let (mut number, end) = (range.start + offset, range.end + offset);
        while number < end {
            let word = number >> 6;
            let until = end.min((word + 1) << 6);
            self.bits[word as usize] |= mask_between(number & 63, until - (word << 6));
            self.summary[(word >> 6) as usize] |= 1 << (word & 63);
            number = until;
        }
    }

    /// Appends the numbers in ascending order, without those in `removed`, and empties the bitmap.
    pub fn drain_into(&mut self, numbers: &mut Vec<u32>, removed: Option<&[u64]>) {
        for (group, summary) in self.summary.iter_mut().enumerate() {
            let mut words = std::mem::take(summary);
            while words != 0 {
                let at = group * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                let mut bits = std::mem::take(&mut self.bits[at]);
                if let Some(removed) = removed {
                    bits &= !removed.get(at).copied().unwrap_or(0);
                }
                push_bits(numbers, (at * 64) as u32, bits);
            }
        }
    }
}

/// Appends the numbers of the set bits, counted from `base`.
#[inline]
fn push_bits(numbers: &mut Vec<u32>, base: u32, mut bits: u64) {
    let count = bits.count_ones();
    numbers.extend((0..count).map(|_| {
        let number = base + bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        number
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_once_and_in_order() {
        let mut collector = Collector::default();
        collector.reserve(10_000);
        let words = Words::of(&mut [5000..5130, 3..4, 60..70, 64..66], 1);
        collector.add_words(&words);
        collector.add_range(&(4..6), 0);
        let mut numbers = Vec::new();
        let mut removed = vec![0u64; 2];
        removed[1] |= 1; // 64
        collector.drain_into(&mut numbers, Some(&removed));
        let expected: Vec<u32> = [4, 5]
            .into_iter()
            .chain(61..64)
            .chain(65..71)
            .chain(5001..5131)
            .collect();
        assert_eq!(numbers, expected);
        numbers.clear();
        collector.drain_into(&mut numbers, None);
        assert!(
            numbers.is_empty(),
            "draining must leave nothing for the next message"
        );
    }
}
