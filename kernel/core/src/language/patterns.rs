//! Regular expressions, compiled (XQuery and XPath Functions and Operators 3.1, 5.6), on an engine whose time is linear.

use super::pattern_literals::{Required, required};
use super::pattern_text::{Flags, PatternFault, Piece, Translator, pieces};
use super::values::each;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};

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

/// A pattern, compiled, and what its matches are replaced by.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
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
        let required = required(
            &translator.out,
            flags.is_multi_line && !flags.is_literal,
            flags.is_case_blind,
        );
        let written = written(text, letters);
        let weight = translator.weight;
        Ok(Pattern { regex, weight, required, replacement, written })
    }

    /// Whether a part of a text matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
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

/// Bytes that the automaton of a group may have compiled, and those that its lazily built part may grow to.
const GROUP_BYTES_MAX: usize = 8 << 20;
const GROUP_AUTOMATON_BYTES_MAX: usize = 16 << 20;

/// Patterns that are searched for together.
#[derive(Debug)]
pub(crate) struct PatternGroup {
    regex: Regex,
    /// Which member of the group each pattern is of.
    members: Vec<usize>,
    found: PatternSet,
}

impl PatternGroup {
    /// The group of some sets of patterns, each written as [`written`] does; none if one is no pattern, or they are too
    /// large together.
    pub(crate) fn new<'p>(sets: impl Iterator<Item = &'p [u8]>) -> Option<PatternGroup> {
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
            .nfa_size_limit(Some(GROUP_BYTES_MAX))
            .hybrid_cache_capacity(GROUP_AUTOMATON_BYTES_MAX);
        let syntax = syntax::Config::new().utf8(false);
        let regex = Regex::builder().syntax(syntax).configure(config).build_many(&patterns).ok()?;
        let found = PatternSet::new(patterns.len());
        Some(PatternGroup { regex, members, found })
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
    let blind = if flags.is_case_blind { "i" } else { "" };
    let lines = if flags.is_multi_line && !flags.is_literal { "m" } else { "" };
    Some(format!("(?{blind}{lines}:{})", translator.out))
}

/// Whether a pattern, as [`written`] writes it, matches a part of a text. Cost: that of compiling it besides.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    Pattern::of_written(pattern).is_some_and(|pattern| pattern.is_match(text))
}
