//! Regular expressions (XQuery and XPath Functions and Operators 3.1, 5.6), on an engine whose time is linear.
//!
//! A pattern is parsed and measured when it is read: its size is told by the automaton that it comes to. What searches
//! texts is compiled with the first of them.

use super::pattern_literals::{Required, required};
use super::pattern_text::{Flags, PatternFault, Piece, Translator, pieces};
use super::values::each;
use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};
use std::sync::OnceLock;

/// Bytes of a pattern.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024;
/// Bytes of the compiled patterns of a subscription, all together.
pub(crate) const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Bytes that the automaton of a pattern may grow to.
const AUTOMATON_BYTES_MAX: usize = 1 << 17;
/// A character costs one step more for each so many characters and classes of the pattern.
const WEIGHT_PER_STEP: usize = 64;

/// Characters and classes of a pattern that an index looks for.
const SMALL_WEIGHT_MAX: usize = WEIGHT_PER_STEP - 1;
/// Bytes that it may have compiled.
const SMALL_BYTES_MAX: usize = 1 << 16;

/// A pattern, and what its matches are replaced by.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// In the notation of the engine, with its flags.
    translated: String,
    /// Compiled with the first text.
    regex: OnceLock<Regex>,
    measured: Measured,
    weight: usize,
    required: Option<Required>,
    replacement: Vec<Piece>,
    written: String,
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
        let required = required(
            &translator.out,
            flags.is_multi_line && !flags.is_literal,
            flags.is_case_blind,
        );
        let translated = with_flags(&translator.out, flags);
        let measured = Measured::of(&translated, bytes_max)?;
        if replacement.is_some() && measured.matches_empty {
            return Err(PatternFault::MatchesEmpty);
        }
        let mut pattern = Pattern {
            translated,
            regex: OnceLock::new(),
            measured,
            weight: translator.weight,
            required,
            replacement: Vec::new(),
            written: written(text, letters),
        };
        pattern.replacement = match replacement {
            Some(written) if flags.is_literal => vec![Piece::Text(written.to_owned())],
            Some(written) => pieces(written, translator.groups)?,
            None => Vec::new(),
        };
        Ok(pattern)
    }

    fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            let config = Config::new()
                .utf8_empty(false)
                .nfa_size_limit(None)
                .hybrid_cache_capacity(AUTOMATON_BYTES_MAX);
            let mut builder = Regex::builder();
            let builder = builder.configure(config).syntax(engine_syntax());
            builder.build(&self.translated).expect("its automaton was made when it was read")
        })
    }

    /// Whether a part of a text matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex().is_match(text)
    }

    /// The pattern with its flags, as [`written`] writes it.
    pub(crate) fn text(&self) -> &str {
        &self.written
    }

    /// Whether it is so small that an index of values may look for it in every value.
    pub(crate) fn is_small(&self) -> bool {
        self.weight <= SMALL_WEIGHT_MAX && self.compiled_bytes() <= SMALL_BYTES_MAX
    }

    /// Texts of which each match has one, if that is told.
    pub(crate) fn required(&self) -> Option<&Required> {
        self.required.as_ref()
    }

    /// Bytes that it takes in memory, compiled, about.
    pub(crate) fn compiled_bytes(&self) -> usize {
        self.measured.compiled_bytes
    }

    /// Whether the empty text matches.
    pub(crate) fn matches_empty(&self) -> bool {
        self.measured.matches_empty
    }

    /// Bytes that going through a text costs.
    pub(crate) fn cost(&self, text_bytes: usize) -> usize {
        text_bytes.saturating_mul(1 + self.weight / WEIGHT_PER_STEP)
    }

    /// A text with each match replaced, if that has no more bytes than it may.
    pub(crate) fn replaced(&self, text: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut end = 0;
        for found in self.regex().captures_iter(text) {
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
        for found in self.regex().find_iter(text) {
            parts.push((start, found.start()));
            start = found.end();
        }
        parts.push((start, text.len()));
        parts
    }
}

/// A pattern with its flags as one text: no pattern begins with the parenthesis of flags.
pub(crate) fn written(text: &str, letters: &str) -> String {
    if letters.is_empty() { text.to_owned() } else { format!("(?{letters}){text}") }
}

/// The pattern and the flags of such a text.
fn parts(written: &str) -> (&str, &str) {
    match written.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
        Some((letters, text)) if !letters.starts_with(':') => (text, letters),
        _ => (written, ""),
    }
}

impl Pattern {
    /// The pattern of a text that [`written`] made; none if there is none.
    pub(crate) fn of_written(text: &[u8]) -> Option<Pattern> {
        let (text, letters) = parts(std::str::from_utf8(text).ok()?);
        Pattern::read(text, letters, None, COMPILED_BYTES_MAX).ok()
    }
}

/// Bytes that a group may have compiled, and those that its lazily built automaton may grow to.
const GROUP_COMPILED_BYTES_MAX: usize = 4 << 20;
const GROUP_AUTOMATON_BYTES_MAX: usize = 8 << 20;

/// Patterns that are searched for together.
#[derive(Debug)]
pub(crate) struct PatternGroup {
    regex: Regex,
    /// Which member of the group each pattern is of.
    members: Vec<usize>,
    found: PatternSet,
}

impl PatternGroup {
    /// The group of some sets of patterns, each written as [`written`] does; none if one is no pattern, or if together
    /// they take more than so many bytes.
    pub(crate) fn new<'p>(
        sets: impl Iterator<Item = &'p [u8]>,
        bytes_max: usize,
    ) -> Option<PatternGroup> {
        let compiled_max =
            bytes_max.checked_sub(GROUP_AUTOMATON_BYTES_MAX)?.min(GROUP_COMPILED_BYTES_MAX);
        let (mut patterns, mut members) = (Vec::new(), Vec::new());
        for (member, set) in sets.enumerate() {
            for pattern in each(set) {
                patterns.push(translated(std::str::from_utf8(pattern).ok()?)?);
                members.push(member);
            }
        }
        let config = Config::new()
            .match_kind(MatchKind::All)
            .utf8_empty(false)
            .nfa_size_limit(Some(compiled_max))
            .hybrid_cache_capacity(GROUP_AUTOMATON_BYTES_MAX);
        let regex = Regex::builder()
            .syntax(engine_syntax())
            .configure(config)
            .build_many(&patterns)
            .ok()?;
        let found = PatternSet::new(patterns.len());
        let made = PatternGroup { regex, members, found };
        (made.bytes() <= bytes_max).then_some(made)
    }

    /// Bytes that it takes in memory, at most.
    pub(crate) fn bytes(&self) -> usize {
        self.regex.memory_usage() + GROUP_AUTOMATON_BYTES_MAX
    }

    /// Calls `found` with each member that matches a part of a text, in order.
    ///
    /// Cost: linear in the text; in the patterns as well where its automaton needs more memory than it may have.
    pub(crate) fn each_match(&mut self, text: &[u8], mut found: impl FnMut(usize)) {
        self.found.clear();
        self.regex.which_overlapping_matches(&Input::new(text), &mut self.found);
        let mut last = None;
        for pattern in self.found.iter() {
            let member = self.members[pattern.as_usize()];
            if last.replace(member) != Some(member) {
                found(member);
            }
        }
    }
}

/// A pattern, as [`written`] writes it, in the notation of the engine with its flags.
fn translated(written: &str) -> Option<String> {
    let (text, letters) = parts(written);
    let flags = Flags::read(letters).ok()?;
    let mut translator = Translator::of(text, flags);
    translator.translate().ok()?;
    Some(with_flags(&translator.out, flags))
}

/// A pattern in the notation of the engine, with its flags.
fn with_flags(translated: &str, flags: Flags) -> String {
    let blind = if flags.is_case_blind { "i" } else { "" };
    let lines = if flags.is_multi_line && !flags.is_literal { "m" } else { "" };
    format!("(?{blind}{lines}:{translated})")
}

fn engine_syntax() -> syntax::Config {
    syntax::Config::new().utf8(false)
}

/// What is known of a pattern that is parsed and not compiled.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Of an automaton that reads forwards, and of one that reads backwards, which has up to twice as many.
    compiled_bytes: usize,
    matches_empty: bool,
}

impl Measured {
    /// Parses a pattern in the notation of the engine. Cost: at most in proportion to the bytes that it may have.
    fn of(translated: &str, bytes_max: usize) -> Result<Measured, PatternFault> {
        let parsed = syntax::parse_with(translated, &engine_syntax());
        let parsed = parsed.map_err(|_| PatternFault::Syntax)?;
        let limit = thompson::Config::new().utf8(false).nfa_size_limit(Some(bytes_max));
        // Nothing but its size is wrong with a pattern that can be parsed.
        let automaton = thompson::Compiler::new().configure(limit).build_from_hir(&parsed);
        let compiled_bytes = 3 * automaton.map_err(|_| PatternFault::TooLarge)?.memory_usage();
        if compiled_bytes > bytes_max {
            return Err(PatternFault::TooLarge);
        }
        // All that a pattern can say of places, `^` and `$`, is true of the empty text.
        let matches_empty = parsed.properties().minimum_len() == Some(0);
        Ok(Measured { compiled_bytes, matches_empty })
    }
}

/// Whether a pattern, as [`written`] writes it, matches a part of a text. Cost: that of compiling it besides.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    Pattern::of_written(pattern).is_some_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_text_matches_where_the_engine_says_so() {
        let texts = [
            "",
            "a*",
            "^$",
            "$^",
            "^a?$",
            "(a|b*)c*",
            "(^|x)y{0}",
            "a|",
            ".",
            "a",
            "(a|b)c*",
            "[^a]?x",
        ];
        let mut found = 0;
        for text in texts {
            for letters in ["", "m", "i", "q", "s"] {
                let pattern = Pattern::read(text, letters, None, COMPILED_BYTES_MAX).expect(text);
                assert_eq!(pattern.matches_empty(), pattern.is_match(b""), "{text} {letters}");
                found += usize::from(pattern.matches_empty());
            }
        }
        assert!(found > texts.len());
    }
}
