//! Result collection: each query once, whatever the number of its path matches.
//!
//! Queries that are accepted together have neighbouring numbers (they are numbered by reversed
//! path), so what a set of states accepts is a few 64-bit words. A message ORs the words of what it
//! reached into one bitmap; a summary with one bit per word makes enumerating cost what is set,
//! not what is registered.

use crate::engine::ids::QueryNumber;
use std::ops::Range;

/// A set of query numbers as sparse 64-bit words, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Words {
    at: Box<[u32]>,
    bits: Box<[u64]>,
    /// The same for the summary: which words of each group of 64 are there.
    groups: Box<[(u32, u64)]>,
}

impl Words {
    /// Whether no number is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Which words have a bit.
    pub(crate) fn at(&self) -> &[u32] {
        &self.at
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.at.len() * 12 + self.groups.len() * 16
    }
}

/// Bits `low..high` of a word.
fn mask_between(low: u32, high: u32) -> u64 {
    let below_high = if high == 64 { u64::MAX } else { (1 << high) - 1 };
    below_high & !((1u64 << low) - 1)
}

/// The bitmap of one message; empty between messages.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    bits: Vec<u64>,
    summary: Vec<u64>,
}

impl Collector {
    /// Makes room for query numbers below `queries`.
    pub(crate) fn reserve(&mut self, queries: usize) {
        let words = queries.div_ceil(64);
        if words > self.bits.len() {
            self.bits.resize(words, 0);
            self.summary.resize(words.div_ceil(64), 0);
        }
    }

    /// Adds a set.
    #[inline]
    pub(crate) fn add_words(&mut self, words: &Words) {
        for (&at, &bits) in words.at.iter().zip(&words.bits) {
            self.bits[at as usize] |= bits;
        }
        for &(group, present) in &words.groups {
            self.summary[group as usize] |= present;
        }
    }

    /// The bits by word.
    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.bits
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.drain_words(|_, _| {});
    }

    /// Moves everything here that is in another collector of the same room.
    pub(crate) fn take_all(&mut self, other: &mut Collector) {
        other.drain_words(|at, bits| self.add_word(at as u32, bits));
    }

    /// Adds a word.
    #[inline]
    pub(crate) fn add_word(&mut self, at: u32, bits: u64) {
        self.bits[at as usize] |= bits;
        self.summary[at as usize >> 6] |= 1 << (at & 63);
    }

    /// Whether all of some bits of a word are there.
    #[inline]
    pub(crate) fn has_word(&self, at: u32, bits: u64) -> bool {
        self.bits[at as usize] & bits == bits
    }

    /// Whether all of a set is there.
    pub(crate) fn has_words(&self, words: &Words) -> bool {
        words.at.iter().zip(&words.bits).all(|(&at, &bits)| self.has_word(at, bits))
    }

    /// Whether a number is there.
    #[inline]
    pub(crate) fn contains(&self, number: QueryNumber) -> bool {
        self.bits[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// Adds a range, moved up by `offset`.
    pub(crate) fn add_range(&mut self, range: &Range<QueryNumber>, offset: QueryNumber) {
        let (mut number, end) = (range.start + offset, range.end + offset);
        while number < end {
            let word = number >> 6;
            let until = end.min((word + 1) << 6);
            self.bits[word as usize] |= mask_between(number & 63, until - (word << 6));
            self.summary[(word >> 6) as usize] |= 1 << (word & 63);
            number = until;
        }
    }

    /// Takes out the numbers that are in another collector of the same room.
    pub(crate) fn remove_all(&mut self, others: &Collector) {
        for (group, summary) in self.summary.iter().enumerate() {
            let mut words = *summary;
            while words != 0 {
                let at = group * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                self.bits[at] &= !others.bits[at];
            }
        }
    }

    /// Appends the numbers in ascending order, without those in `removed`, and empties the bitmap.
    pub(crate) fn drain_into(&mut self, numbers: &mut Vec<u32>, removed: Option<&[u64]>) {
        self.drain_words(|at, mut bits| {
            if let Some(removed) = removed {
                bits &= !removed.get(at).copied().unwrap_or(0);
            }
            push_bits(numbers, (at * 64) as u32, bits);
        });
    }

    /// Appends the set as words, ascending; empties the bitmap.
    pub(crate) fn drain_into_words(&mut self, at: &mut Vec<u32>, bits: &mut Vec<u64>) {
        self.drain_words(|word, set| {
            at.push(word as u32);
            bits.push(set);
        });
    }

    /// The set as words; empties the bitmap.
    pub(crate) fn drain_to_words(&mut self) -> Words {
        let (mut at, mut bits) = (Vec::new(), Vec::new());
        let mut groups: Vec<(u32, u64)> = Vec::new();
        self.drain_words(|word, set| {
            at.push(word as u32);
            bits.push(set);
            let (group, bit) = ((word / 64) as u32, 1 << (word % 64));
            match groups.last_mut() {
                Some((last, present)) if *last == group => *present |= bit,
                _ => groups.push((group, bit)),
            }
        });
        Words { at: at.into(), bits: bits.into(), groups: groups.into() }
    }

    #[inline]
    fn drain_words(&mut self, mut f: impl FnMut(usize, u64)) {
        for (group, summary) in self.summary.iter_mut().enumerate() {
            let mut words = std::mem::take(summary);
            while words != 0 {
                let at = group * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                f(at, std::mem::take(&mut self.bits[at]));
            }
        }
    }
}

/// Per byte, the places of its set bits; what follows them is never read.
const PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Up to so many bits of a word are taken one by one.
const FEW: u32 = 6;

/// Appends the numbers of the set bits, counted from `base`.
///
/// Eight numbers are written for every byte that is not zero and only those that count are kept, which the
/// compiler turns into a few vector instructions: 2 to 3 times as fast as bit by bit where words
/// are as full as the numbering makes them.
#[inline]
fn push_bits(numbers: &mut Vec<u32>, base: u32, bits: u64) {
    if bits.count_ones() <= FEW {
        let mut rest = bits;
        while rest != 0 {
            numbers.push(base + rest.trailing_zeros());
            rest &= rest - 1;
        }
        return;
    }
    numbers.reserve(64 + 8);
    let room = numbers.spare_capacity_mut();
    let mut count = 0;
    let (mut rest, mut base) = (bits, base);
    while rest != 0 {
        let places = &PLACES[(rest & 0xff) as usize];
        let slots = &mut room[count..count + 8];
        for (slot, &place) in slots.iter_mut().zip(places) {
            slot.write(base + u32::from(place));
        }
        count += (rest & 0xff).count_ones() as usize;
        rest >>= 8;
        base += 8;
    }
    // SAFETY: the first `count` slots of the room were written above: every round wrote eight from
    // `count` on before it moved `count` by at most eight, and the room holds at least 72.
    unsafe { numbers.set_len(numbers.len() + count) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_once_and_in_order() {
        let mut collector = Collector::default();
        collector.reserve(10_000);
        for range in [5000..5130, 3..4, 60..70, 64..66] {
            collector.add_range(&range, 1);
        }
        let words = collector.drain_to_words();
        collector.add_words(&words);
        collector.add_range(&(4..6), 0);
        let mut numbers = Vec::new();
        let mut removed = vec![0u64; 2];
        removed[1] |= 1; // 64
        collector.drain_into(&mut numbers, Some(&removed));
        let expected: Vec<u32> =
            [4, 5].into_iter().chain(61..64).chain(65..71).chain(5001..5131).collect();
        assert_eq!(numbers, expected);
        numbers.clear();
        collector.drain_into(&mut numbers, None);
        assert!(numbers.is_empty(), "draining must leave nothing for the next message");
    }
}
