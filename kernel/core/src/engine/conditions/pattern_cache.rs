//! Patterns that conditions ask for, compiled when a value first needs them and kept within a bound.

use crate::language::patterns::Pattern;
use crate::language::values::each;
use rustc_hash::FxHashMap;

/// Bytes of compiled patterns that a thread keeps: when there are more all are forgotten, which costs time and never an
/// answer.
const BYTES_MAX: usize = 64 << 20;
/// Bytes that the lazily built automaton of a pattern takes, about, and its entry.
const AUTOMATON_BYTES: usize = 16 << 10;
/// Bytes of text that cost a step.
const BYTES_A_STEP: usize = 64;
/// Steps that compiling a pattern costs, about.
const STEPS_A_PATTERN: u64 = 400;

/// The patterns of a thread.
#[derive(Debug, Default)]
pub(crate) struct PatternCache {
    /// By their texts; none for a text that is no pattern.
    known: FxHashMap<Box<[u8]>, Option<Pattern>>,
    bytes: usize,
    /// Steps that were taken since somebody asked.
    steps: u64,
}

impl PatternCache {
    /// Whether one of some patterns, held as a set, matches a part of a text. Cost: linear in the text, for each of them.
    pub(crate) fn is_match(&mut self, patterns: &[u8], text: &[u8]) -> bool {
        each(patterns).any(|pattern| self.is_one_match(pattern, text))
    }

    fn is_one_match(&mut self, pattern: &[u8], text: &[u8]) -> bool {
        if !self.known.contains_key(pattern) {
            let compiled = Pattern::of_written(pattern);
            let bytes = compiled.as_ref().map_or(0, Pattern::compiled_bytes);
            self.bytes += bytes + pattern.len() + AUTOMATON_BYTES;
            self.steps += STEPS_A_PATTERN;
            if self.bytes > BYTES_MAX {
                self.known.clear();
                self.bytes = bytes + pattern.len() + AUTOMATON_BYTES;
            }
            self.known.insert(pattern.into(), compiled);
        }
        let Some(Some(compiled)) = self.known.get(pattern) else { return false };
        self.steps += 1 + (compiled.cost(text.len()) / BYTES_A_STEP) as u64;
        compiled.is_match(text)
    }

    /// Steps that matching has taken since the last time.
    pub(crate) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whether_it_is_known_or_was_forgotten() {
        let mut cache = PatternCache::default();
        for _ in 0..3 {
            assert!(cache.is_match(b"x\0(?i)^a.c$\0", b"AbC"));
            assert!(!cache.is_match(b"x\0(?i)^a.c$\0(\0", b"AbCd"));
            assert_eq!(cache.known.len(), 3);
            assert!(cache.take_steps() > 0 && cache.take_steps() == 0);
            cache.bytes = BYTES_MAX;
            assert!(cache.is_match(b"d\0", b"AbCd"));
            assert_eq!(cache.known.len(), 1, "over the bound");
            cache.known.clear();
        }
    }
}
