//! The memory of post-processing: owned by the caller, one per thread, kept from message to message.

use super::long_numbers::LongNumbers;
use super::message_index::MessageIndex;
use super::text_search::TextSearch;
use crate::engine::ask::Ask;
use crate::language::numbers::{Notation, NumberScan};
use crate::language::values;
use crate::xml::tree::Message;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Scratch memory for conditions and what is known about the message at hand.
/// [`PostProcessor::begin_message`] must be called before the first plan of each message.
///
/// Memory: about 30 bytes an element of the largest message seen, up to 16 MiB of the anchors of nested
/// paths and, while a path is looked at, 4 bytes an element and level of nesting; for long texts that
/// are compared as numbers up to 40 bytes a run of digits; for texts that are compared as strings another
/// copy of them, and up to 32 MiB of places of strings that they contain.
#[derive(Debug, Default)]
pub struct PostProcessor {
    pub(crate) index: MessageIndex,
    pub(crate) numbers: StringValueNumbers,
    pub(super) marks: Marks,
    /// Where the nested paths hold that have been asked for, by their texts.
    pub(super) anchors: FxHashMap<Box<str>, Arc<[u64]>>,
    pub(super) anchor_bytes: usize,
    /// Elements that plans have looked at, as often as they did.
    pub(super) steps: u64,
    /// String-values of several text nodes.
    pub(crate) texts: TextSearch,
}

impl PostProcessor {
    /// Forgets the message before. Cost: what was computed for it.
    pub fn begin_message(&mut self) {
        self.index.begin_message();
        self.forget_anchors();
        self.numbers.long.clear();
        self.texts.clear();
        self.steps = 0;
    }

    /// Forgets where nested paths hold.
    pub(super) fn forget_anchors(&mut self) {
        (self.anchors, self.anchor_bytes) = (FxHashMap::default(), 0);
    }

    /// Whether the string-value of an element satisfies an ask.
    pub(crate) fn value_holds<T: AsRef<[u8]>>(
        &mut self,
        message: Message<'_>,
        element: u32,
        ask: &Ask<T>,
    ) -> bool {
        let tree = message.tree;
        let texts = tree.text_start[element as usize]..tree.text_end[element as usize];
        if let Some((notation, comparison, constant)) = ask.numeric() {
            return comparison.holds(self.numbers.of_texts(message, texts, notation), constant);
        }
        let spans = &tree.text_value[texts.start as usize..texts.end as usize];
        match (ask.borrowed(), spans) {
            (Ask::CastOneOf(set), _) => {
                values::has_number(set, self.numbers.of_texts(message, texts, Notation::Double))
            }
            (ask, [span]) => ask.holds(message.bytes(*span)),
            (Ask::Contains(string), _) => self.texts.contains(message, texts, string),
            (ask, _) => ask.holds(self.texts.value(message, texts)),
        }
    }

    /// Elements that plans have looked at since somebody asked, as often as they did.
    pub(crate) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }
}

/// A set of elements that is emptied by counting up.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    now: u32,
    marked: Vec<u32>,
}

impl Marks {
    /// Empties the set, for elements below `elements`.
    pub(crate) fn begin(&mut self, elements: usize) {
        if self.marked.len() < elements {
            self.marked.resize(elements, 0);
        }
        if self.now == u32::MAX {
            self.marked.fill(0);
            self.now = 0;
        }
        self.now += 1;
    }

    /// Adds an element; false if it was there.
    #[inline]
    pub(crate) fn add(&mut self, element: u32) -> bool {
        let mark = &mut self.marked[element as usize];
        let is_new = *mark != self.now;
        *mark = self.now;
        is_new
    }

    /// Whether the element is there.
    pub(crate) fn contains(&self, element: u32) -> bool {
        self.marked[element as usize] == self.now
    }
}

/// String-values as numbers.
#[derive(Debug, Default)]
pub(crate) struct StringValueNumbers {
    long: LongNumbers,
    pieces: Vec<u8>,
}

/// Bytes that are read again for every query that asks.
const READ_MAX: usize = 256;

impl StringValueNumbers {
    /// The concatenation of some text nodes as a number.
    pub(crate) fn of_texts(
        &mut self,
        message: Message<'_>,
        texts: Range<u32>,
        notation: Notation,
    ) -> f64 {
        let spans = &message.tree.text_value[texts.start as usize..texts.end as usize];
        if let [span] = spans
            && span.len() <= READ_MAX
        {
            return notation.read(message.bytes(*span));
        }
        self.pieces.clear();
        let mut scan = NumberScan::Start;
        for &span in spans {
            let piece = message.bytes(span);
            let within = &piece[..piece.len().min(READ_MAX - self.pieces.len())];
            let may_go_on = match notation {
                Notation::XPath => scan.read(within).map(|after| scan = after).is_some(),
                _ => within.iter().all(|&byte| notation.has(byte)),
            };
            if !may_go_on {
                return f64::NAN;
            }
            if within.len() < piece.len() && notation.bytes_max() < usize::MAX {
                return f64::NAN;
            }
            if within.len() < piece.len() {
                return self.long.of_texts(message, texts, notation);
            }
            self.pieces.extend_from_slice(within);
        }
        notation.read(&self.pieces)
    }
}
