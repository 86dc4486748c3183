//! The memory of post-processing: owned by the caller, one per thread, kept from message to message.

use super::message_index::MessageIndex;
use super::nested_sets::NestedSets;
use super::value::{NumberScan, number};
use crate::names::NameId;
use crate::tree::Message;
use rustc_hash::FxHashMap;

/// Scratch memory for [`Plan::holds`](super::Plan::holds) and what is known about the message at
/// hand. [`PostProcessor::begin_message`] must be called before the first plan of each message.
///
/// Memory: about 30 bytes an element of the largest message seen, 16 MiB of nested path filters
/// and, while a query runs, 4 bytes an element and level of nesting.
#[derive(Debug, Default)]
pub struct PostProcessor {
    pub(super) index: MessageIndex,
    pub(super) sets: NestedSets,
    pub(super) numbers: StringValueNumbers,
    pub(super) marks: Marks,
    /// Lists of elements, the innermost last.
    pub(super) work: Vec<u32>,
    /// Name id of each name test of the plan at hand.
    pub(super) resolved: Vec<NameId>,
}

/// Entries of a list that are kept for the next message.
const WORK_KEPT: usize = 1 << 20;

impl PostProcessor {
    /// Forgets the message before. Cost: what was computed for it.
    pub fn begin_message(&mut self) {
        self.index.begin_message();
        self.sets.clear();
        self.numbers.clear();
        self.work.clear();
        self.work.shrink_to(WORK_KEPT);
    }
}

/// A set of elements that is emptied by counting up.
#[derive(Debug, Default)]
pub(super) struct Marks {
    now: u32,
    marked: Vec<u32>,
}

impl Marks {
    /// Empties the set, for elements below `elements`.
    pub fn begin(&mut self, elements: usize) {
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
    pub fn add(&mut self, element: u32) -> bool {
        let mark = &mut self.marked[element as usize];
        let is_new = *mark != self.now;
        *mark = self.now;
        is_new
    }

    /// Whether the element is there.
    pub fn contains(&self, element: u32) -> bool {
        self.marked[element as usize] == self.now
    }
}

/// `number()` of string-values that are spread over text nodes or long, each computed once per
/// message: elements around one text share it, queries share all.
#[derive(Debug, Default)]
pub(super) struct StringValueNumbers {
    known: FxHashMap<(u32, u32), f64>,
    pieces: Vec<u8>,
}

/// Length up to which reading a number again is cheaper than looking it up.
const SHORT_BYTES: usize = 32;

/// Numbers that are kept at most.
const NUMBERS_MAX: usize = 1 << 18;

impl StringValueNumbers {
    fn clear(&mut self) {
        if !self.known.is_empty() {
            self.known.clear();
            self.known.shrink_to(4096);
        }
    }

    /// `number()` of the concatenated text nodes `start..end`.
    pub fn of_texts(&mut self, message: Message<'_>, start: u32, end: u32) -> f64 {
        let spans = &message.tree.text_value[start as usize..end as usize];
        if let [span] = spans
            && span.len() <= SHORT_BYTES
        {
            return number(message.bytes(*span));
        }
        if let Some(&known) = self.known.get(&(start, end)) {
            return known;
        }
        let scan = spans.iter().try_fold(NumberScan::Start, |scan, &span| {
            scan.read(message.bytes(span))
        });
        let value = if scan.is_none() {
            f64::NAN
        } else {
            self.pieces.clear();
            spans
                .iter()
                .for_each(|&span| self.pieces.extend_from_slice(message.bytes(span)));
            number(&self.pieces)
        };
        if self.known.len() == NUMBERS_MAX {
            self.known.clear();
        }
        self.known.insert((start, end), value);
        value
    }
}
