//! Which of very many texts stand where in another: by their first bytes, in tables.
//!
//! An automaton of a hundred thousand words waits for memory at nearly every byte. Here a byte costs a look into a small
//! filter for each of three lengths of beginnings, and only where it says yes a table is asked, and the texts that begin
//! so are compared. Short texts, and those of which many begin alike, stand in an automaton, so that nobody can register
//! texts that cost more.
//!
//! Source: the filters are those of Wu and Manber, "A fast algorithm for multi-pattern searching", 1994; differs: several
//! lengths, and no shifts.

use aho_corasick::AhoCorasick;
use hashbrown::HashTable;

/// Lengths of beginnings, the longest first; a text stands under the longest that it has.
const LENGTHS: [usize; 3] = [8, 6, 4];
/// Texts that may begin alike.
const ALIKE_MAX: usize = 8;
/// Bits of a filter for each text.
const BITS_A_TEXT: usize = 16;

/// Texts, searched for together.
#[derive(Debug)]
pub(super) struct TextTable {
    beginnings: Vec<Beginnings>,
    /// The other texts, and their numbers.
    automaton: Option<(AhoCorasick, Vec<u32>)>,
    /// How many texts there are.
    pub(super) len: usize,
}

/// A text under its beginning, with the bytes behind that: most are compared without a look at the text itself.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    number: u32,
    length: u32,
    next: u64,
}

/// Texts that stand under beginnings of one length.
#[derive(Debug)]
struct Beginnings {
    /// Bytes of a beginning.
    length: usize,
    /// Bits of the beginning in eight bytes of text.
    mask: u64,
    filter: Vec<u64>,
    shift: u32,
    /// By beginning: where its texts stand in the list.
    table: HashTable<(u64, u32, u32)>,
    texts: Vec<Candidate>,
    multiplier: u64,
}

impl Candidate {
    /// Whether the text stands at the beginning of another, which begins as it does.
    #[inline]
    fn is_at<'t>(&self, rest: &[u8], length: usize, text_of: impl Fn(u32) -> &'t [u8]) -> bool {
        let behind = self.length as usize - length;
        if rest.len() < self.length as usize {
            return false;
        }
        let differing = word_of(&rest[length..]) ^ self.next;
        match behind {
            0..8 => differing & ((1 << (8 * behind)) - 1) == 0,
            8 => differing == 0,
            _ => differing == 0 && rest.starts_with(text_of(self.number)),
        }
    }
}

/// The first eight bytes of a text, zeros behind it.
#[inline]
fn word_of(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(&bytes) => u64::from_le_bytes(bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..text.len()].copy_from_slice(text);
            u64::from_le_bytes(bytes)
        }
    }
}

impl Beginnings {
    /// Those of some texts, with their beginnings, sorted; adds the texts of which too many begin alike to others.
    fn new<'t>(
        length: usize,
        seed: u64,
        texts: &[(u64, u32, &'t [u8])],
        others: &mut Vec<u32>,
    ) -> Beginnings {
        let bits = (BITS_A_TEXT * texts.len()).next_power_of_two().max(64);
        let mut made = Beginnings {
            length,
            mask: u64::MAX >> (8 * (8 - length)),
            filter: vec![0; bits / 64],
            shift: 64 - bits.trailing_zeros(),
            table: HashTable::with_capacity(texts.len()),
            texts: Vec::with_capacity(texts.len()),
            multiplier: seed | 1,
        };
        for alike in texts.chunk_by(|a, b| a.0 == b.0) {
            if alike.len() > ALIKE_MAX {
                others.extend(alike.iter().map(|&(_, number, _)| number));
                continue;
            }
            let (beginning, start) = (alike[0].0, made.texts.len() as u32);
            made.texts.extend(alike.iter().map(|&(_, number, text)| Candidate {
                number,
                length: text.len() as u32,
                next: word_of(&text[length..]),
            }));
            let hash = made.hash(beginning);
            let bit = hash >> made.shift;
            made.filter[bit as usize / 64] |= 1 << (bit % 64);
            let multiplier = made.multiplier;
            let entry = (beginning, start, made.texts.len() as u32);
            made.table.insert_unique(hash, entry, |entry| mixed(entry.0, multiplier));
        }
        made
    }

    #[inline]
    fn hash(&self, beginning: u64) -> u64 {
        mixed(beginning, self.multiplier)
    }

    /// Calls `found` with the texts that may stand where a word of text is.
    #[inline]
    fn each(&self, word: u64, found: impl FnMut(&Candidate)) {
        let beginning = word & self.mask;
        let hash = self.hash(beginning);
        let bit = hash >> self.shift;
        if self.filter[bit as usize / 64] >> (bit % 64) & 1 == 0 {
            return;
        }
        let entry = self.table.find(hash, |entry| entry.0 == beginning);
        if let Some(&(_, start, end)) = entry {
            self.texts[start as usize..end as usize].iter().for_each(found);
        }
    }
}

/// A hash of a beginning that nobody who does not know the multiplier can make collide.
#[inline]
fn mixed(beginning: u64, multiplier: u64) -> u64 {
    let product = u128::from(beginning ^ multiplier.rotate_left(32)) * u128::from(multiplier);
    (product as u64) ^ (product >> 64) as u64
}

impl TextTable {
    /// The table of some texts, numbered in order; none where they have more bytes than an automaton can number.
    pub(super) fn new<'t>(
        texts: impl ExactSizeIterator<Item = &'t [u8]> + Clone,
        seed: u64,
    ) -> Option<TextTable> {
        let mut by_length: [Vec<(u64, u32, &[u8])>; LENGTHS.len()] = Default::default();
        let mut others = Vec::new();
        for (number, text) in texts.clone().enumerate() {
            match LENGTHS.iter().position(|&length| length <= text.len()) {
                Some(at) => {
                    by_length[at].push((word_of(&text[..LENGTHS[at]]), number as u32, text));
                }
                None => others.push(number as u32),
            }
        }
        let len = texts.len();
        let mut beginnings = Vec::new();
        for (length, mut alike) in LENGTHS.into_iter().zip(by_length) {
            if !alike.is_empty() {
                alike.sort_unstable();
                beginnings.push(Beginnings::new(length, seed, &alike, &mut others));
            }
        }
        others.sort_unstable();
        let automaton = if others.is_empty() {
            None
        } else {
            let mut wanted = others.iter().peekable();
            let chosen = texts
                .enumerate()
                .filter(|(number, _)| wanted.next_if(|&&next| next as usize == *number).is_some());
            Some((AhoCorasick::new(chosen.map(|(_, text)| text)).ok()?, others))
        };
        Some(TextTable { beginnings, automaton, len })
    }

    /// Calls `found` with the number of each text and where it stands, until that says no; `text_of` gives the text of a
    /// number. Returns false if there are more places than `most`.
    ///
    /// Cost: linear in the text, and the places.
    #[inline]
    pub(super) fn search<'t>(
        &self,
        searched: &[u8],
        most: usize,
        text_of: impl Fn(u32) -> &'t [u8],
        mut found: impl FnMut(u32, usize),
    ) -> bool {
        let mut left = most;
        if !self.beginnings.is_empty() {
            for at in 0..searched.len() {
                let rest = &searched[at..];
                let word = word_of(rest);
                for beginnings in &self.beginnings {
                    beginnings.each(word, |text| {
                        if left > 0 && text.is_at(rest, beginnings.length, &text_of) {
                            left -= 1;
                            found(text.number, at);
                        }
                    });
                }
                if left == 0 {
                    return false;
                }
            }
        }
        let Some((automaton, numbers)) = &self.automaton else { return true };
        for one in automaton.find_overlapping_iter(searched) {
            if left == 0 {
                return false;
            }
            left -= 1;
            found(numbers[one.pattern().as_usize()], one.start());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_where_they_stand_whatever_their_lengths_and_beginnings() {
        let mut texts: Vec<String> = ["a", "ab", "abc", "bcd", "abcde", "abcdef", "abcdefg", "é"]
            .map(str::to_owned)
            .to_vec();
        texts.extend((0..40).map(|number| format!("abcdefgh{number}")));
        texts.extend((0..3000).map(|number| format!("word{}", number * 7919 % 10_007)));
        let all = texts.iter().map(|text| text.as_bytes());
        let table = TextTable::new(all, 0x1234_5678_9abc_def1).expect("they are few");
        assert!(table.automaton.as_ref().is_some_and(|(_, numbers)| numbers.len() > 40));
        let searched = "abcdefgh12 word7919éword00 abcdef word1";
        let mut found = Vec::new();
        let text_of = |number: u32| texts[number as usize].as_bytes();
        assert!(table.search(searched.as_bytes(), 10_000, text_of, |it, at| found.push((it, at))));
        found.sort_unstable();
        let mut expected = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            for at in 0..=searched.len() {
                if searched.as_bytes()[at..].starts_with(text.as_bytes()) {
                    expected.push((number as u32, at));
                }
            }
        }
        assert_eq!(found, expected);
        assert!(!table.search(searched.as_bytes(), 5, text_of, |_, _| {}));
    }
}
