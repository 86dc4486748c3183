//! Regular expressions, compiled (XQuery and XPath Functions and Operators 3.1, 5.6), on an engine whose time is linear.

use super::pattern_text::{Flags, PatternFault, Piece, Required, Translator, pieces};
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;

/// Bytes of a pattern.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024;
/// Bytes of the compiled patterns of a subscription, all together.
pub(crate) const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Bytes that the automaton of a pattern may grow to.
const AUTOMATON_BYTES_MAX: usize = 1 << 17;
/// A character costs one step more for each so many characters and classes of the pattern.
const WEIGHT_PER_STEP: usize = 64;

/// A pattern, compiled, and what its matches are replaced by.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    weight: usize,
    required: Option<Required>,
    replacement: Vec<Piece>,
}

impl Pattern {
    /// A pattern with its flags, and with the replacement of `replace`, which for `tokenize` is empty; compiled, it has
    /// at most `bytes_max` bytes.
    ///
    /// # Errors
    /// It is no pattern, it is too large, or matches are replaced and one is empty.
    pub(crate) fn read(
        text: &str,
        letters: &str,
        replacement: Option<&str>,
        bytes_max: usize,
    ) -> Result<Pattern, PatternFault> {
        let flags = Flags::read(letters)?;
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternFault::TooLarge);
        }
        let mut translator = Translator::of(text, flags);
        translator.translate()?;
        let regex = Regex::builder()
            .syntax(
                syntax::Config::new()
                    .utf8(false)
                    .multi_line(flags.is_multi_line && !flags.is_literal)
                    .case_insensitive(flags.is_case_blind),
            )
            .configure(
                Config::new()
                    .utf8_empty(false)
                    .nfa_size_limit(Some(bytes_max))
                    .hybrid_cache_capacity(AUTOMATON_BYTES_MAX),
            )
            .build(&translator.out)
            .map_err(|error: BuildError| match error.size_limit() {
                Some(_) => PatternFault::TooLarge,
                None => PatternFault::Syntax,
            })?;
        if regex.memory_usage() > bytes_max {
            return Err(PatternFault::TooLarge);
        }
        if replacement.is_some() && regex.is_match("") {
            return Err(PatternFault::MatchesEmpty);
        }
        let groups = translator.groups;
        let replacement = match replacement {
            Some(written) if flags.is_literal => vec![Piece::Text(written.to_owned())],
            Some(written) => pieces(written, groups)?,
            None => Vec::new(),
        };
        let (weight, required) = (translator.weight, translator.required());
        Ok(Pattern { regex, weight, required, replacement })
    }

    /// Whether a part of a text matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// A text that each match has, if that is easily told.
    pub(crate) fn required(&self) -> Option<&Required> {
        self.required.as_ref()
    }

    /// Bytes that it takes in memory, compiled.
    pub(crate) fn compiled_bytes(&self) -> usize {
        self.regex.memory_usage()
    }

    /// Bytes that going through a text costs.
    pub(crate) fn cost(&self, text_bytes: usize) -> usize {
        text_bytes.saturating_mul(1 + self.weight / WEIGHT_PER_STEP)
    }

    /// A text with each match replaced, if that has no more bytes than it may.
    pub(crate) fn replaced(&self, text: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut end = 0;
        for found in self.regex.captures_iter(text) {
            let Some(whole) = found.get_group(0) else { continue };
            out.extend_from_slice(&text[end..whole.start]);
            end = whole.end;
            for piece in &self.replacement {
                match piece {
                    Piece::Text(piece) => out.extend_from_slice(piece.as_bytes()),
                    Piece::Group(group) => {
                        out.extend_from_slice(
                            found.get_group(*group).map_or(b"", |it| &text[it.range()]),
                        );
                    }
                }
            }
            if out.len() > bytes_max {
                return None;
            }
        }
        out.extend_from_slice(&text[end..]);
        Some(out)
    }

    /// The parts of a text between the matches, by their places.
    pub(crate) fn split(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let mut start = 0;
        for found in self.regex.find_iter(text) {
            parts.push((start, found.start()));
            start = found.end();
        }
        parts.push((start, text.len()));
        parts
    }
}
