//! Which of many texts a value contains, found in one pass over the value.

use super::atoms::AtomId;
use super::keys::{KeyId, Keys, NO_KEY};
use super::text_table::{TABLE_BYTES_A_TEXT, TextTable};
use hashbrown::HashTable;
use memchr::memmem;
use std::ops::Range;

/// Texts up to which searching for each is quicker than a table.
const FEW: usize = 8;

/// Searches that cost as much as to put one text into a table, about.
const SEARCHES_A_TEXT: usize = 8;

/// Steps that a search costs, in looks at an element.
const STEPS_A_SEARCH: u64 = 16;

/// Places of texts in one message that are kept: 24 MiB.
const PLACES_MAX: usize = 1 << 21;

/// Bytes that a key takes here, and those that each distinct text takes besides.
pub(super) const BYTES_A_KEY: usize = size_of::<AtomId>();
pub(super) const BYTES_A_TEXT: usize =
    size_of::<Text>() + size_of::<u32>() + 2 + TABLE_BYTES_A_TEXT;

/// The texts of one subject that are folded alike.
#[derive(Debug, Default)]
pub(crate) struct Contained {
    texts: Vec<Text>,
    index: HashTable<u32>,
    search: u32,
    /// The first of them, searched for together.
    table: Option<TextTable>,
    /// The atoms that those had when the table was made, by text.
    atoms: Vec<AtomId>,
    /// Searches for texts that it does not know, since it was made.
    searches: usize,
    /// Memory for the texts that a search has found.
    found: Vec<u32>,
}

/// A distinct text.
#[derive(Debug)]
struct Text {
    /// A key whose constant it is.
    key: KeyId,
    /// The last of those that came after the table was made.
    later: KeyId,
    /// Where its atoms begin in the list; they end where those of the next text begin.
    start: u32,
    /// The search that has found it last.
    found: u32,
}

/// Where the texts stand in all of the text of a message.
#[derive(Debug, Default)]
pub(crate) struct Occurrences {
    /// Where one begins, and its number; ascending.
    places: Vec<(u32, u32)>,
    /// The same by number, made when it is asked for.
    by_text: Vec<(u32, u32)>,
}

impl Contained {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Adds the text of a key; whether it is new.
    pub(crate) fn add(&mut self, id: KeyId, keys: &mut Keys<'_>) -> bool {
        let texts = &mut self.texts;
        let (hash, text) = (keys.hash(id), keys.text(id));
        let known = self.index.find(hash, |&at| keys.text(texts[at as usize].key) == text);
        if let Some(&at) = known {
            let last = std::mem::replace(&mut texts[at as usize].later, id);
            keys.link(id, last);
            return false;
        }
        texts.push(Text { key: id, later: id, start: self.atoms.len() as u32, found: 0 });
        let at = texts.len() as u32 - 1;
        self.index.insert_unique(hash, at, |&at| keys.hash(texts[at as usize].key));
        true
    }

    /// Makes a table of all texts once searching for those that it does not know has cost as much.
    fn build_if_worth_it(&mut self, keys: &Keys<'_>) {
        let waiting = self.texts.len() - self.table.as_ref().map_or(0, |table| table.len);
        if waiting > FEW {
            self.searches += waiting;
            if self.searches > SEARCHES_A_TEXT * self.texts.len() {
                self.searches = 0;
                // It fails for more bytes than can be numbered; each text is searched for then.
                let texts = self.texts.iter().map(|text| keys.text(text.key));
                self.table = TextTable::new(texts, keys.seed);
                self.gather_atoms(keys);
            }
        }
    }

    /// Puts the atoms of each text side by side: a chain of keys waits for memory at each of them.
    fn gather_atoms(&mut self, keys: &Keys<'_>) {
        let old = std::mem::take(&mut self.atoms);
        let mut ends: Vec<u32> = self.texts.iter().skip(1).map(|text| text.start).collect();
        ends.push(old.len() as u32);
        for (text, end) in self.texts.iter_mut().zip(ends) {
            let known = text.start as usize..end as usize;
            text.start = self.atoms.len() as u32;
            self.atoms.extend_from_slice(&old[known]);
            keys.push_atoms(std::mem::replace(&mut text.later, NO_KEY), &mut self.atoms);
        }
    }

    /// Begins a search, in which each text is found once.
    fn begin(&mut self) {
        if self.search == u32::MAX {
            self.texts.iter_mut().for_each(|text| text.found = 0);
            self.search = 0;
        }
        self.search += 1;
    }

    /// Adds the atoms of a text that was not found in this search.
    #[inline]
    fn push(&mut self, at: u32, keys: &Keys<'_>, out: &mut Vec<AtomId>) {
        let at = at as usize;
        let end = self.texts.get(at + 1).map_or(self.atoms.len(), |next| next.start as usize);
        let text = &mut self.texts[at];
        if std::mem::replace(&mut text.found, self.search) != self.search {
            out.extend_from_slice(&self.atoms[text.start as usize..end]);
            keys.push_atoms(text.later, out);
        }
    }

    /// Adds the atoms whose texts the value contains; one that has several of them may be there several times. Cost: one
    /// pass over the value, and a search for each of the few texts that the table does not know yet. Returns it in
    /// steps.
    pub(crate) fn find(&mut self, value: &[u8], keys: &Keys<'_>, out: &mut Vec<AtomId>) -> u64 {
        self.build_if_worth_it(keys);
        self.begin();
        let (mut unknown, mut steps) = (0, 0);
        if let Some(table) = self.table.take() {
            // Texts that are parts of one another can be found more often than the value has bytes.
            let most = 8 * value.len() + 64;
            let mut found = std::mem::take(&mut self.found);
            let text_of = |at: u32| keys.text(self.texts[at as usize].key);
            let is_all = table.search(value, most, text_of, |at, _| found.push(at));
            steps += found.len() as u64;
            self.touch(&found);
            found.drain(..).for_each(|at| self.push(at, keys, out));
            self.found = found;
            if is_all {
                unknown = table.len;
            }
            self.table = Some(table);
        }
        for at in unknown..self.texts.len() {
            if memmem::find(value, keys.text(self.texts[at].key)).is_some() {
                self.push(at as u32, keys, out);
            }
        }
        let searches = (self.texts.len() - unknown) as u64;
        steps + searches * (STEPS_A_SEARCH + value.len() as u64 / 64)
    }

    /// Touches the memory that adding the atoms of some texts needs: so they wait for it together.
    fn touch(&self, found: &[u32]) {
        let starts = |sum, &at: &u32| sum ^ self.texts[at as usize].start;
        std::hint::black_box(found.iter().fold(0, starts));
        let first = |at: u32| self.atoms.get(self.texts[at as usize].start as usize);
        let atoms = |sum, &at: &u32| sum ^ first(at).copied().unwrap_or(0);
        std::hint::black_box(found.iter().fold(0, atoms));
    }

    /// Where the texts stand in the text of a message, and what that took, in steps; no places if there are too many.
    pub(crate) fn find_all(&mut self, text: &[u8], keys: &Keys<'_>) -> (Option<Occurrences>, u64) {
        self.build_if_worth_it(keys);
        let mut places: Vec<(u32, u32)> = Vec::new();
        let mut known = 0;
        if let Some(table) = &self.table {
            known = table.len;
            let text_of = |at: u32| keys.text(self.texts[at as usize].key);
            table
                .search(text, PLACES_MAX + 1, text_of, |at, start| places.push((start as u32, at)));
        }
        for at in known..self.texts.len() {
            let finder = memmem::Finder::new(keys.text(self.texts[at].key));
            let mut from = 0;
            while places.len() <= PLACES_MAX
                && let Some(next) = text.get(from..).and_then(|rest| finder.find(rest))
            {
                places.push(((from + next) as u32, at as u32));
                from += next + 1;
            }
        }
        let searches = (self.texts.len() - known) as u64;
        let steps = (text.len() as u64 / 64) * (1 + searches) + places.len() as u64;
        if places.len() > PLACES_MAX {
            return (None, steps);
        }
        places.sort_unstable();
        (Some(Occurrences { places, by_text: Vec::new() }), steps)
    }

    /// Adds the atoms whose texts stand in a part of the text that was searched. Cost: the places in the part, or a binary
    /// search for each text that stands anywhere, whichever is less. Returns it in steps.
    pub(crate) fn find_within(
        &mut self,
        occurrences: &mut Occurrences,
        part: Range<usize>,
        keys: &Keys<'_>,
        out: &mut Vec<AtomId>,
    ) -> u64 {
        /// Places that are looked at without asking how many texts there are.
        const PLACES_FEW: usize = 4096;
        self.begin();
        let Occurrences { places, by_text } = occurrences;
        let first = places.partition_point(|&(start, _)| (start as usize) < part.start);
        let length = places[first..].partition_point(|&(start, _)| (start as usize) < part.end);
        let is_within = |start: u32, length: usize| start as usize + length <= part.end;
        if length <= PLACES_FEW {
            for &(start, at) in &places[first..first + length] {
                if is_within(start, keys.text(self.texts[at as usize].key).len()) {
                    self.push(at, keys, out);
                }
            }
            return length as u64;
        }
        if by_text.is_empty() {
            by_text.extend(places.iter().map(|&(start, at)| (at, start)));
            by_text.sort_unstable();
        }
        let mut steps = 0;
        for same in by_text.chunk_by(|a, b| a.0 == b.0) {
            steps += 1;
            let next = same.partition_point(|&(_, start)| (start as usize) < part.start);
            if let Some(&(at, start)) = same.get(next)
                && is_within(start, keys.text(self.texts[at as usize].key).len())
            {
                self.push(at, keys, out);
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::super::atoms::{Atom, VALUE};
    use super::*;
    use crate::engine::ask::Ask;
    use crate::language::folding::Fold;
    use crate::language::folding::TextTest;

    /// Atoms with one text each, and one with several of them after every tenth.
    fn ask_of(number: u32) -> Ask {
        let text = match number % 3 {
            0 => "a".repeat(number as usize / 3 + 1),
            1 => format!("w{number}"),
            _ => format!("é{number}é"),
        };
        if number % 10 == 9 {
            let set = format!("{text}\0w{}\0", number - number % 3 + 1);
            return Ask::Texts(TextTest::Has, Fold::None, set.into_bytes().into());
        }
        Ask::Contains(text.into_bytes().into())
    }

    #[test]
    fn every_contained_text_is_found_in_values_and_in_parts_of_one_text() {
        let (mut contained, mut atoms, mut keys) = (Contained::default(), Vec::new(), Vec::new());
        let mut found_by_text = 0;
        for number in 0..300_u32 {
            atoms.push(Atom { subject: VALUE, ask: ask_of(number), needed: None });
            let mut keys = Keys { keys: &mut keys, atoms: &atoms, seed: 7 };
            let set = match &atoms[number as usize].ask {
                Ask::Texts(_, _, set) => &set[..],
                _ => b"\0",
            };
            let mut start = 0;
            for end in memchr::memchr_iter(0, set) {
                let key = keys.push(number, start);
                contained.add(key, &mut keys);
                start = end + 1;
            }
            let expected = |value: &[u8]| -> Vec<AtomId> {
                (0..=number).filter(|&id| atoms[id as usize].ask.holds(value)).collect()
            };
            let distinct = |mut found: Vec<AtomId>| {
                found.sort_unstable();
                found.dedup();
                found
            };
            for value in ["", "aaaa", "x w100 é200é w299", &"a".repeat(5000)] {
                let mut found = Vec::new();
                contained.find(value.as_bytes(), &keys, &mut found);
                assert_eq!(distinct(found), expected(value.as_bytes()), "{value:.20}");
            }
            let text = format!("aaa w1w40 {} é2é é200é w298", "a".repeat(5000));
            let (occurrences, _) = contained.find_all(text.as_bytes(), &keys);
            let mut occurrences = occurrences.expect("there are not too many");
            for part in [0..text.len(), 0..2, 2..9, 8..4000, 4900..text.len(), 5..5] {
                let mut found = Vec::new();
                contained.find_within(&mut occurrences, part.clone(), &keys, &mut found);
                found_by_text += usize::from(!occurrences.by_text.is_empty());
                assert_eq!(distinct(found), expected(&text.as_bytes()[part]), "{number}");
            }
        }
        assert!(found_by_text > 0, "some parts have many places");
    }

    #[test]
    fn a_text_that_is_everywhere_has_no_places() {
        let atoms = vec![Atom { subject: VALUE, ask: Ask::Contains((*b"a").into()), needed: None }];
        let (mut contained, mut keys) = (Contained::default(), Vec::new());
        let mut keys = Keys { keys: &mut keys, atoms: &atoms, seed: 7 };
        let key = keys.push(0, 0);
        contained.add(key, &mut keys);
        assert!(contained.find_all("a".repeat(PLACES_MAX + 1).as_bytes(), &keys).0.is_none());
        assert!(contained.find_all("a".repeat(PLACES_MAX).as_bytes(), &keys).0.is_some());
    }
}
