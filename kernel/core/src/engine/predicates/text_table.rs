//! Which of very many texts stand where in another: by their first bytes, in tables.
//!
//! An automaton of a hundred thousand words waits for memory at nearly every byte. Here a byte costs a look into a small
//! filter of the first four bytes of all texts, which stays in the cache nearest to the processor. Where that says yes, a
//! filter for each of three lengths of beginnings is asked, then a table, and the texts that begin so are compared; look-ups
//! are gathered, so that they wait for memory together. Short texts, and those of which many begin alike, stand in an
//! automaton, so that nobody can register texts that cost more.
//!
//! Source: the filters are those of Wu and Manber, "A fast algorithm for multi-pattern searching", 1994; differs: several
//! lengths, and no shifts.

use aho_corasick::AhoCorasick;

/// Lengths of beginnings, the longest first; a text stands under the longest that it has.
const LENGTHS: [usize; 3] = [8, 6, 4];
/// Texts that may begin alike.
const ALIKE_MAX: usize = 8;
/// Bits of a filter for each text.
const BITS_A_TEXT: usize = 16;
/// Bits of the filter of first bytes, at most: 32 KB.
const FIRST_BITS_MAX: usize = 1 << 18;
/// Places of a text that are looked at together.
const BLOCK: usize = 256;

/// Bytes that a text takes in a table at most: of filters, and of candidates where one of three places is taken at least.
pub(super) const TABLE_BYTES_A_TEXT: usize = BITS_A_TEXT / 4 + 3 * size_of::<Candidate>();

/// Texts, searched for together.
#[derive(Debug)]
pub(super) struct TextTable {
    /// Of the first four bytes of the texts that have beginnings.
    first: Filter,
    seed: u64,
    beginnings: Vec<Beginnings>,
    /// The other texts, and their numbers.
    automaton: Option<(AhoCorasick, Vec<u32>)>,
    /// How many texts there are.
    pub(super) len: usize,
}

/// Hashes that may be there: a bit each, by their highest bits.
#[derive(Debug)]
struct Filter {
    bits: Box<[u64]>,
    shift: u32,
}

/// A text under its beginning, with the bytes behind that: most are compared without a look at the text itself.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    beginning: u64,
    next: u64,
    /// 0 where there is none.
    length: u32,
    number: u32,
}

/// Texts that stand under beginnings of one length.
#[derive(Debug)]
struct Beginnings {
    /// Bytes of a beginning.
    length: usize,
    /// Bits of the beginning in eight bytes of text.
    mask: u64,
    filter: Filter,
    /// Candidates from the place that the hash of their beginning says on.
    table: Box<[Candidate]>,
    shift: u32,
    multiplier: u64,
}

impl Filter {
    fn new(bits: usize) -> Filter {
        let bits = bits.next_power_of_two().max(64);
        Filter { bits: vec![0; bits / 64].into(), shift: 64 - bits.trailing_zeros() }
    }

    fn add(&mut self, hash: u64) {
        let bit = hash >> self.shift;
        self.bits[bit as usize / 64] |= 1 << (bit % 64);
    }

    #[inline]
    fn has(&self, hash: u64) -> bool {
        let bit = hash >> self.shift;
        self.bits[bit as usize / 64] >> (bit % 64) & 1 == 1
    }
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
    fn new(
        length: usize,
        seed: u64,
        texts: &[(u64, u32, &[u8])],
        others: &mut Vec<u32>,
    ) -> Beginnings {
        let size = (texts.len() * 3 / 2 + 1).next_power_of_two().max(2);
        let none = Candidate { beginning: 0, next: 0, length: 0, number: 0 };
        let mut made = Beginnings {
            length,
            mask: u64::MAX >> (8 * (8 - length)),
            filter: Filter::new(BITS_A_TEXT * texts.len()),
            table: vec![none; size].into(),
            shift: 64 - size.trailing_zeros(),
            multiplier: seed | 1,
        };
        for alike in texts.chunk_by(|a, b| a.0 == b.0) {
            if alike.len() > ALIKE_MAX {
                others.extend(alike.iter().map(|&(_, number, _)| number));
                continue;
            }
            let hash = made.hash(alike[0].0);
            made.filter.add(hash);
            let mut at = made.home(hash);
            for &(beginning, number, text) in alike {
                while made.table[at].length != 0 {
                    at = (at + 1) & (size - 1);
                }
                let (next, length) = (word_of(&text[length..]), text.len() as u32);
                made.table[at] = Candidate { beginning, next, length, number };
            }
        }
        made
    }

    #[inline]
    fn hash(&self, word: u64) -> u64 {
        mixed(word & self.mask, self.multiplier)
    }

    /// Where the candidates of a hash begin.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        // The lowest bits: the filter was asked for the highest ones.
        (hash.rotate_left(32) >> self.shift) as usize
    }

    /// Calls `found` with the texts that may stand where a word of text is.
    #[inline]
    fn each(&self, word: u64, mut at: usize, mut found: impl FnMut(&Candidate)) {
        let beginning = word & self.mask;
        loop {
            let candidate = &self.table[at];
            if candidate.length == 0 {
                return;
            }
            if candidate.beginning == beginning {
                found(candidate);
            }
            at = (at + 1) & (self.table.len() - 1);
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
        let mut first = Filter::new((BITS_A_TEXT * len).min(FIRST_BITS_MAX));
        for (length, mut alike) in LENGTHS.into_iter().zip(by_length) {
            if !alike.is_empty() {
                alike.iter().for_each(|&(beginning, ..)| first.add(first_hash(beginning, seed)));
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
        Some(TextTable { first, seed, beginnings, automaton, len })
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
            let mut starts = [0; BLOCK];
            let mut gathered = [(0, 0); BLOCK];
            for start in (0..searched.len()).step_by(BLOCK) {
                let starts = self.starts(searched, start, &mut starts);
                for beginnings in &self.beginnings {
                    let mut count = 0;
                    for &at in starts {
                        let hash = beginnings.hash(word_of(&searched[at as usize..]));
                        if beginnings.filter.has(hash) {
                            gathered[count] = (at, beginnings.home(hash));
                            count += 1;
                        }
                    }
                    let gathered = &gathered[..count];
                    let touched =
                        |sum, &(_, home): &(u32, usize)| sum ^ beginnings.table[home].length;
                    std::hint::black_box(gathered.iter().fold(0, touched));
                    for &(at, home) in gathered {
                        let rest = &searched[at as usize..];
                        beginnings.each(word_of(rest), home, |text| {
                            if left > 0 && text.is_at(rest, beginnings.length, &text_of) {
                                left -= 1;
                                found(text.number, at as usize);
                            }
                        });
                    }
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

    /// The places of a block, from one on, at which the first bytes of some text may stand.
    #[inline]
    fn starts<'s>(&self, searched: &[u8], from: usize, starts: &'s mut [u32; BLOCK]) -> &'s [u32] {
        let mut count = 0;
        for at in from..searched.len().min(from + BLOCK) {
            starts[count] = at as u32;
            // A branch would be mispredicted.
            count += usize::from(self.first.has(first_hash(word_of(&searched[at..]), self.seed)));
        }
        &starts[..count]
    }
}

/// A hash of the first four bytes of a word of text.
#[inline]
fn first_hash(word: u64, seed: u64) -> u64 {
    u64::from(word as u32).wrapping_mul(seed | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_no_more_than_its_bound_says() {
        for count in (1..70).chain([2_730, 2_731, 2_732, 4_096]) {
            let texts: Vec<String> = (0..count).map(|number| format!("{number:08}")).collect();
            let all = texts.iter().map(|text| text.as_bytes());
            let table = TextTable::new(all, 1).expect("they are few");
            let [of_eight] = &table.beginnings[..] else { panic!("all have eight bytes") };
            let candidates = size_of_val(&*of_eight.table);
            let filter = size_of_val(&*of_eight.filter.bits);
            assert!(candidates + filter <= count * TABLE_BYTES_A_TEXT + 8, "{count} texts");
        }
    }

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
