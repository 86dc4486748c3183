//! The nested paths of an automaton's queries, each distinct one once, in an automaton of their own.
//!
//! A nested path is a query that is asked at an element instead of the document node: run from there, the
//! automaton says which nested paths hold at the element, all of them at once. Nested paths inside
//! nested paths are asked the same way, of elements further down.
//!
//! Source: paper 003, section 6: nested paths share the structures of the main ones.

use crate::engine::conditions::Plan;
use crate::engine::conditions::compile::path_key;
use crate::engine::ids::QueryNumber;
use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::GrowingNfa;
use crate::language::query::anchoring::anchored;
use crate::language::query::ast::{Axis, Condition, NameTest, Step};
use crate::language::query::{canonical_text, compile_canonical};
use rustc_hash::FxHashMap;

/// Nested paths, numbered in order of arrival.
#[derive(Debug)]
pub struct NestedPaths {
    nfa: GrowingNfa,
    /// None for a path whose positions need the lists of siblings, or that begins at its anchor.
    numbers: FxHashMap<Box<str>, Option<QueryNumber>>,
    /// Key, which begins with the last step, and canonical text of each path.
    texts: Vec<(Box<str>, Box<str>)>,
    /// Per number: its place in `texts`.
    text_of: Vec<u32>,
    /// Per number: at how many elements of a message it holds, guessed from what it says.
    guesses: Vec<f32>,
}

impl Default for NestedPaths {
    fn default() -> Self {
        NestedPaths {
            nfa: GrowingNfa::of_nested_paths(),
            numbers: FxHashMap::default(),
            texts: Vec::new(),
            text_of: Vec::new(),
            guesses: Vec::new(),
        }
    }
}

impl NestedPaths {
    /// Adds the nested paths of a query, of which the automaton takes the first `kept` steps.
    pub(crate) fn add_query(&mut self, steps: &[Step<'_>], kept: usize) {
        if kept == steps.len() {
            nested_of(steps).for_each(|nested| {
                self.intern(nested);
            });
        } else {
            let anchored = anchored(steps.to_vec());
            nested_of(&anchored).for_each(|nested| {
                self.intern(nested);
            });
        }
    }

    /// The same nested paths, numbered by what they end with, so that those which hold together are
    /// neighbours. Cost: as to add them.
    pub(crate) fn sorted(self) -> NestedPaths {
        let mut texts = self.texts;
        texts.sort_unstable();
        let mut sorted = NestedPaths::default();
        for (_, text) in texts {
            let steps = compile_canonical(&text);
            sorted.intern(&steps.expect("written in canonical text"));
        }
        sorted
    }

    /// The automaton; its query numbers are those of the nested paths.
    pub(crate) fn nfa(&self) -> &GrowingNfa {
        &self.nfa
    }

    /// Number of nested paths.
    pub(crate) fn len(&self) -> usize {
        self.nfa.query_count()
    }

    /// The number of a nested path by its key; none if it is not kept here.
    pub(crate) fn find(&self, key: &str) -> Option<QueryNumber> {
        self.numbers.get(key).copied().flatten()
    }

    /// The canonical text of a nested path.
    pub(crate) fn text(&self, number: QueryNumber) -> &str {
        &self.texts[self.text_of[number as usize] as usize].1
    }

    /// Per number, at how many elements of a message it holds, guessed.
    pub(crate) fn guesses(&self) -> &[f32] {
        &self.guesses
    }

    fn intern(&mut self, steps: &[Step<'_>]) -> Option<QueryNumber> {
        let key = path_key(steps);
        if let Some(&known) = self.numbers.get(&*key) {
            return known;
        }
        let anchored = anchored(steps.to_vec());
        // `.//.` ends at the anchor too: what it asks for there would have to be known before it is.
        let is_own = steps.first().is_some_and(|step| step.axis == Axis::DescendantOrSelf);
        let mut is_kept = !is_own || nested_of(&anchored).next().is_none();
        for inner in nested_of(&anchored) {
            is_kept &= self.intern(inner).is_some();
        }
        is_kept = is_kept && Plan::compile(&anchored).is_conjunction();
        let number = is_kept.then(|| self.nfa.insert(&[steps], None));
        if number.is_some() {
            self.guesses.push(guess(steps));
            self.text_of.push(self.texts.len() as u32);
        }
        let mut text = String::new();
        canonical_text(steps, &mut text);
        self.texts.push((key.as_str().into(), text.into()));
        self.numbers.insert(key.into(), number);
        number
    }
}

fn nested_of<'s, 'q>(steps: &'s [Step<'q>]) -> impl Iterator<Item = &'s [Step<'q>]> {
    let conditions = steps.iter().flat_map(|step| &step.stages).flat_map(|stage| &stage.conditions);
    conditions.filter_map(|condition| match condition {
        Condition::Nested(nested) => Some(&**nested),
        _ => None,
    })
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
