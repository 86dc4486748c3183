//! The memory of post-processing: owned by the caller, one per thread, kept from message to message.

use super::long_numbers::LongNumbers;
use super::message_index::MessageIndex;
use super::nested_sets::NestedSets;
use super::store_check::Presence;
use super::text_search::TextSearch;
use crate::language::numbers::{Notation, NumberScan};
use crate::xml::names::NameId;
use crate::xml::tree::Message;
use std::ops::Range;

/// Scratch memory for [`Plan::holds`](super::Plan::holds) and what is known about the message at
/// hand. [`PostProcessor::begin_message`] must be called before the first plan of each message.
///
/// Memory: about 30 bytes an element of the largest message seen, up to 16 MiB of nested path
/// filters and, while a query runs, 4 bytes an element and level of nesting; for long texts that
/// are compared as numbers up to 40 bytes a run of digits; for texts that are compared as strings another
/// copy of them, and up to 32 MiB of places of strings that they contain.
#[derive(Debug, Default)]
pub struct PostProcessor {
    pub(super) presence: Presence,
    pub(crate) index: MessageIndex,
    pub(super) sets: NestedSets,
    pub(crate) numbers: StringValueNumbers,
    pub(crate) marks: Marks,
    /// Lists of elements, the innermost last.
    pub(crate) work: Vec<u32>,
    /// Name id of each name test of the plan at hand.
    pub(crate) resolved: Vec<NameId>,
    /// Elements that plans have looked at, as often as they did.
    pub(super) steps: u64,
    /// String-values of several text nodes.
    pub(crate) texts: TextSearch,
}

/// Entries of a list that are kept for the next message.
const WORK_KEPT: usize = 1 << 20;

impl PostProcessor {
    /// Forgets the message before. Cost: what was computed for it.
    pub fn begin_message(&mut self) {
        self.presence.begin_message();
        self.index.begin_message();
        self.sets.clear();
        self.numbers.long.clear();
        self.texts.clear();
        self.work.clear();
        self.work.shrink_to(WORK_KEPT);
        self.steps = 0;
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
