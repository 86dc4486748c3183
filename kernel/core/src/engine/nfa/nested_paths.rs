//! The nested paths of an automaton's queries, each distinct one once, in an automaton of their own.
//!
//! A nested path is a query that is asked at an element instead of the document node: run from there, the
//! automaton says which nested paths hold at the element, all of them at once. Nested paths inside
//! nested paths are asked the same way, of elements further down.
//!
//! Source: paper 003, section 6: nested paths share the structures of the main ones.

use crate::engine::ids::QueryNumber;
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::nfa::{Nfa, path_of};
use crate::language::query::anchoring::{anchored_len, is_conjunction};
use crate::language::query::ast::{Axis, Condition, NameTest, Step};
use crate::language::query::text_of;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Nested paths by number.
#[derive(Debug)]
pub struct NestedPaths {
    nfa: GrowingNfa,
    /// By canonical text; none for a path whose positions need the lists of siblings, or that begins at its anchor.
    numbers: FxHashMap<Box<str>, Option<QueryNumber>>,
    /// Per number: its canonical text.
    texts: Vec<Box<str>>,
    /// Per number: at how many elements of a message it holds, guessed from what it says.
    guesses: Vec<f32>,
}

impl Default for NestedPaths {
    fn default() -> Self {
        NestedPaths {
            nfa: GrowingNfa::of_nested_paths(),
            numbers: FxHashMap::default(),
            texts: Vec::new(),
            guesses: Vec::new(),
        }
    }
}

impl NestedPaths {
    /// The nested paths of plans in canonical text, numbered by what they end with, so that those which hold
    /// together are neighbours. Cost: a microsecond or two a plan that has any.
    pub(crate) fn of<'t>(plans: impl Iterator<Item = &'t str>) -> NestedPaths {
        let mut texts = FxHashMap::default();
        for text in plans.filter(|text| may_have_nested_paths(text)) {
            gather(&path_of(text), &mut texts);
        }
        let mut texts: Vec<(String, String)> =
            texts.into_iter().map(|(text, from_end)| (from_end, text)).collect();
        texts.sort_unstable();
        let mut nested = NestedPaths::default();
        for (_, text) in texts {
            nested.intern(&path_of(&text));
        }
        nested
    }

    /// Adds the nested paths of a query. Their numbers are the next ones.
    pub(crate) fn add_query(&mut self, steps: &[Step<'_>]) {
        for nested in nested_of(steps) {
            self.intern(nested);
        }
    }

    /// The automaton; its query numbers are those of the nested paths.
    pub(crate) fn nfa(&self) -> &GrowingNfa {
        &self.nfa
    }

    /// Number of nested paths.
    pub(crate) fn len(&self) -> usize {
        self.nfa.query_count()
    }

    /// The number of a nested path; none if it is not kept here.
    pub(crate) fn find(&self, steps: &[Step<'_>]) -> Option<QueryNumber> {
        self.numbers.get(&*text_of(steps)).copied().flatten()
    }

    /// The canonical text of a nested path.
    pub(crate) fn text(&self, number: QueryNumber) -> &str {
        &self.texts[number as usize]
    }

    /// Per number, at how many elements of a message it holds, guessed.
    pub(crate) fn guesses(&self) -> &[f32] {
        &self.guesses
    }

    fn intern(&mut self, steps: &[Step<'_>]) -> Option<QueryNumber> {
        let text: Box<str> = text_of(steps).into();
        if let Some(&known) = self.numbers.get(&text) {
            return known;
        }
        // `.//.` ends at the anchor too: what it asks for there would have to be known before it is.
        let is_own = steps.first().is_some_and(|step| step.axis == Axis::DescendantOrSelf);
        let mut is_kept = !is_own || nested_of(steps).next().is_none();
        for inner in nested_of(steps) {
            is_kept &= self.intern(inner).is_some();
        }
        is_kept = is_kept && is_conjunction(steps);
        let number = is_kept.then(|| self.nfa.insert(&[steps], None));
        if number.is_some() {
            self.guesses.push(guess(steps));
            self.texts.push(text.clone());
        }
        self.numbers.insert(text, number);
        number
    }
}

/// The nested paths that are asked for where a path is anchored.
fn nested_of<'s, 'q>(steps: &'s [Step<'q>]) -> impl Iterator<Item = &'s [Step<'q>]> {
    let (kept, rest) = steps.split_at(anchored_len(steps));
    let conditions = kept.iter().flat_map(Step::conditions);
    let nested = conditions.filter_map(|condition| match condition {
        Condition::Nested(nested) => Some(&**nested),
        _ => None,
    });
    nested.chain((!rest.is_empty()).then_some(rest))
}

/// Adds the nested paths of a path, and those inside them: their texts, and the same from the last step to
/// the first.
fn gather(steps: &[Step<'_>], texts: &mut FxHashMap<String, String>) {
    for nested in nested_of(steps) {
        if let Entry::Vacant(entry) = texts.entry(text_of(nested)) {
            entry.insert(
                nested.iter().rev().map(|step| text_of(std::slice::from_ref(step))).collect(),
            );
            gather(nested, texts);
        }
    }
}

/// Whether a plan can have nested paths, or conditions between two `//`, which become nested paths.
fn may_have_nested_paths(text: &str) -> bool {
    let bytes = text.as_bytes();
    let opens_nested = |at: usize| !matches!(bytes.get(at + 1), Some(b'@'));
    memchr::memchr_iter(b'[', bytes).any(opens_nested)
        || memchr::memmem::find_iter(bytes, b"//").nth(1).is_some()
}

/// The more a path asks for, the less often it holds.
fn guess(steps: &[Step<'_>]) -> f32 {
    let conditions =
        |step: &Step<'_>| step.stages.iter().map(|s| s.conditions.len()).sum::<usize>();
    steps.iter().fold(2.0, |guess, step| {
        let named = if step.test == NameTest::Any { 0.9 } else { 0.4 };
        guess * named * 0.2_f32.powi(conditions(step) as i32)
    })
}
