//! String-values of elements with several text nodes, the numbers that they are and the strings that they contain.
//!
//! Elements inside one another share their text. The text of the message is put together once, so that every
//! string-value is a part of it; and a string that is searched for in long values is searched for once in
//! all of it: a value contains it if it begins early enough in the value's part.

use super::long_numbers::LongNumbers;
use crate::language::folding::Fold;
use crate::language::numbers::Notation;
use crate::xml::tree::Message;
use memchr::memmem;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Bytes of values that are searched through whenever somebody asks.
const SHORT: usize = 512;
/// Bytes of numbers that are read again whenever somebody asks.
const READ_MAX: usize = 256;
/// Places of all strings together that are kept: 32 MiB.
const PLACES_MAX: usize = 1 << 23;
/// Bytes whose memory is kept for the next message.
const KEPT: usize = 1 << 20;

/// The text of one message; reused from message to message.
#[derive(Debug, Default)]
pub(crate) struct TextSearch {
    is_read: bool,
    text: Vec<u8>,
    /// Where each text node begins in it, and where the last one ends.
    starts: Vec<u32>,
    /// The same of the text, folded, by folding but for the one that leaves it as it is; made when it is asked for.
    folded: [(Vec<u8>, Vec<u32>); Fold::ALL.len() - 1],
    /// Where the strings stand that have been searched for: part of `places`; none if too often.
    known: FxHashMap<Box<[u8]>, Option<Range<u32>>>,
    places: Vec<u32>,
    numbers: LongNumbers,
}

impl TextSearch {
    /// Forgets the message before.
    pub(crate) fn clear(&mut self) {
        if self.is_read {
            self.is_read = false;
            self.known.clear();
            self.text.clear();
            self.text.shrink_to(KEPT);
            self.starts.clear();
            self.starts.shrink_to(KEPT);
            for (text, starts) in &mut self.folded {
                text.clear();
                text.shrink_to(KEPT);
                starts.clear();
                starts.shrink_to(KEPT);
            }
            self.places.clear();
            self.places.shrink_to(KEPT);
            self.numbers.clear();
        }
    }

    /// The concatenation of the text nodes of a range. Cost: constant, after the text has been read once.
    pub(crate) fn value(&mut self, message: Message<'_>, texts: Range<u32>) -> &[u8] {
        self.read(message);
        &self.text[self.bytes_of(texts)]
    }

    /// All of the text, folded, and where each text node begins in it and the last one ends. Cost: constant, after the text
    /// has been folded so once.
    pub(crate) fn folded(&mut self, message: Message<'_>, fold: Fold) -> (&[u8], &[u32]) {
        self.read(message);
        let Some(at) = (fold as usize).checked_sub(1) else { return (&self.text, &self.starts) };
        let (text, starts) = &mut self.folded[at];
        if starts.is_empty() {
            starts.push(0);
            for &span in &message.tree.text_value {
                fold.push(message.bytes(span), text);
                starts.push(text.len() as u32);
            }
        }
        (text, starts)
    }

    /// The concatenation of the text nodes of a range as a number. Cost: constant, after the text has been read
    /// once.
    pub(crate) fn number(
        &mut self,
        message: Message<'_>,
        texts: Range<u32>,
        notation: Notation,
    ) -> f64 {
        match &message.tree.text_value[texts.start as usize..texts.end as usize] {
            [] => return notation.read(b""),
            [span] if span.len() <= READ_MAX => return notation.read(message.bytes(*span)),
            _ => self.read(message),
        }
        let bytes = self.bytes_of(texts);
        let value = &self.text[bytes.clone()];
        if value.len() <= READ_MAX {
            return notation.read(value);
        }
        let may_be_one = value[..READ_MAX].iter().all(|&byte| notation.has(byte));
        if !may_be_one || notation.bytes_max() < usize::MAX {
            return f64::NAN;
        }
        self.numbers.read(&self.text, bytes, notation)
    }

    /// Whether the concatenation contains a string. Cost: for long values a look-up, after all of the text has been
    /// searched for the string once.
    pub(crate) fn contains(
        &mut self,
        message: Message<'_>,
        texts: Range<u32>,
        string: &[u8],
    ) -> bool {
        self.read(message);
        let bytes = self.bytes_of(texts);
        if bytes.len() > SHORT
            && let Some(places) = self.places_of(string)
        {
            return self.stands_in(&places, string, bytes);
        }
        memmem::find(&self.text[bytes], string).is_some()
    }

    fn stands_in(&self, places: &Range<u32>, string: &[u8], bytes: Range<usize>) -> bool {
        let places = &self.places[places.start as usize..places.end as usize];
        let first = places.partition_point(|&place| (place as usize) < bytes.start);
        places.get(first).is_some_and(|&at| at as usize + string.len() <= bytes.end)
    }

    fn bytes_of(&self, texts: Range<u32>) -> Range<usize> {
        self.starts[texts.start as usize] as usize..self.starts[texts.end as usize] as usize
    }

    fn read(&mut self, message: Message<'_>) {
        if self.is_read {
            return;
        }
        self.is_read = true;
        self.starts.push(0);
        for &span in &message.tree.text_value {
            self.text.extend_from_slice(message.bytes(span));
            self.starts.push(self.text.len() as u32);
        }
    }

    fn places_of(&mut self, string: &[u8]) -> Option<Range<u32>> {
        if let Some(known) = self.known.get(string) {
            return known.clone();
        }
        let start = self.places.len();
        let room = PLACES_MAX.saturating_sub(start);
        let mut from = 0;
        let finder = memmem::Finder::new(string);
        while let Some(at) = finder.find(&self.text[from..]) {
            if self.places.len() - start == room {
                self.places.truncate(start);
                self.known.insert(string.into(), None);
                return None;
            }
            self.places.push((from + at) as u32);
            // An empty string stands everywhere; one place a byte is enough.
            from += at + 1;
            if from > self.text.len() {
                break;
            }
        }
        let places = start as u32..self.places.len() as u32;
        self.known.insert(string.into(), Some(places.clone()));
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::tree::{MessageTree, Span};

    #[test]
    fn every_part_of_the_text_contains_what_a_search_finds_in_it() {
        let source = format!("{}needle{}aaaa{}", "x".repeat(700), "ab".repeat(400), "y".repeat(9));
        let pieces: Vec<&[u8]> = source.as_bytes().chunks(7).collect();
        let spans =
            (0..pieces.len()).map(|at| Span::in_message(7 * at as u32, pieces[at].len() as u32));
        let tree = MessageTree { text_value: spans.collect(), ..MessageTree::default() };
        let message = Message { tree: &tree, source: source.as_bytes() };
        let mut search = TextSearch::default();
        let count = pieces.len() as u32;
        for string in ["needle", "aa", "xn", "baa", "zz", "", "y"] {
            for start in (0..count).step_by(3) {
                for end in (start..=count).step_by(5) {
                    let value = pieces[start as usize..end as usize].concat();
                    assert_eq!(search.value(message, start..end), value);
                    let expected = memmem::find(&value, string.as_bytes()).is_some();
                    let found = search.contains(message, start..end, string.as_bytes());
                    assert_eq!(found, expected, "{string:?} in {start}..{end}");
                    let (folded, starts) = search.folded(message, Fold::Upper);
                    let part = starts[start as usize] as usize..starts[end as usize] as usize;
                    assert_eq!(folded[part], value.to_ascii_uppercase());
                }
            }
        }
        search.clear();
        let none = MessageTree::default();
        let message = Message { tree: &none, source: b"" };
        let left = search.folded(message, Fold::Upper);
        assert_eq!(left, (&b""[..], &[0][..]), "text outlived its message");
        assert_eq!(search.value(message, 0..0), b"");
    }
}
