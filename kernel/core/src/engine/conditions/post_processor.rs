//! The memory of post-processing: owned by the caller, one per thread, kept from message to message.

use super::message_index::MessageIndex;
use super::pattern_cache::PatternCache;
use super::text_search::TextSearch;
use crate::engine::ask::Ask;
use crate::engine::marks::Marks;
use crate::language::folding::TextTest;
use crate::language::values;
use crate::xml::tree::Message;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Scratch memory for conditions and what is known about the message at hand.
/// [`PostProcessor::begin_message`] must be called before the first plan of each message.
///
/// Memory: about 34 bytes an element of the largest message seen, up to 16 MiB of the anchors of nested
/// paths and, while a path is looked at, 4 bytes an element and level of nesting; for long texts that
/// are compared as numbers 8 bytes a byte of the message's text; for texts that are compared as strings another
/// copy of them for each folding that is asked for, and up to 32 MiB of places of strings that they contain; 64 MiB of
/// compiled patterns.
#[derive(Debug, Default)]
pub struct PostProcessor {
    pub(crate) index: MessageIndex,
    pub(super) marks: Marks,
    /// Memory for the siblings that the predicates of one step are put to.
    pub(super) siblings: Vec<u32>,
    /// Where the nested paths hold that have been asked for, by their texts.
    pub(super) anchors: FxHashMap<Box<str>, Arc<[u64]>>,
    pub(super) anchor_bytes: usize,
    /// Elements that plans have looked at, as often as they did.
    pub(super) steps: u64,
    /// String-values of several text nodes.
    pub(crate) texts: TextSearch,
    /// Patterns that were asked for.
    pub(crate) patterns: PatternCache,
}

impl PostProcessor {
    /// Forgets the message before. Cost: what was computed for it.
    pub fn begin_message(&mut self) {
        self.index.begin_message();
        self.forget_anchors();
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
        let texts = message.tree.texts(element);
        if let Some((notation, comparison, constant)) = ask.numeric() {
            return comparison.holds(self.texts.number(message, texts, notation), constant);
        }
        let spans = &message.tree.text_value[texts.start as usize..texts.end as usize];
        match (ask.borrowed(), spans) {
            (Ask::NumberOf(notation, set), _) => {
                values::has_number(set, self.texts.number(message, texts, notation))
            }
            (ask, [span]) => self.ask_holds(&ask, message.bytes(*span)),
            (Ask::Contains(string), _) => self.texts.contains(message, texts, string),
            (Ask::Texts(TextTest::Matches, _, patterns), _) => {
                self.patterns.is_match(patterns, self.texts.value(message, texts))
            }
            (ask, _) => ask.holds(self.texts.value(message, texts)),
        }
    }

    /// Whether a value satisfies an ask. Cost: at most the length of the value, times the texts of a set.
    #[inline]
    pub(crate) fn ask_holds<T: AsRef<[u8]>>(&mut self, ask: &Ask<T>, value: &[u8]) -> bool {
        match ask {
            Ask::Texts(TextTest::Matches, _, patterns) => {
                self.patterns.is_match(patterns.as_ref(), value)
            }
            ask => ask.holds(value),
        }
    }

    /// Whether some text node that is a child of an element satisfies an ask.
    pub(crate) fn text_holds<T: AsRef<[u8]>>(
        &mut self,
        message: Message<'_>,
        element: u32,
        ask: &Ask<T>,
    ) -> bool {
        let mut holds = false;
        message.tree.each_text(element, |text| {
            let value = message.bytes(message.tree.text_value[text as usize]);
            holds = holds || self.ask_holds(ask, value);
        });
        holds
    }

    /// Elements that plans have looked at since somebody asked, as often as they did.
    pub(crate) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }
}
