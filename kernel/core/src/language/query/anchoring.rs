//! Where the conditions of a query are looked at: at steps whose elements follow from one element.
//!
//! In the run of `/` steps at the beginning of a path a step is bound at a fixed depth, in the run at
//! its end so many parents above the end. Only a step between two `//` can be bound in several ways.
//! A query with conditions there is cut after the first such step: `/a//b[@x]/c//d` ends, as far as
//! the automaton is concerned, at `/a//b`, and what follows becomes a nested path there, which asks
//! the same: `/a//b[@x][c//d]`. So every condition of every query has one place, seen from the end.

use crate::language::query::ast::{Axis, Condition, NameTest, Stage, Step};

/// The same query, cut after the first conditions that would not have a place.
pub(crate) fn anchored(mut steps: Vec<Step<'_>>) -> Vec<Step<'_>> {
    let kept = anchored_len(&steps);
    if kept == steps.len() {
        return steps;
    }
    let rest = steps.split_off(kept);
    let stages = &mut steps[kept - 1].stages;
    if stages.is_empty() {
        stages.push(Stage::default());
    }
    stages[0..]
        .last_mut()
        .expect("one was there or was added")
        .conditions
        .push(Condition::Nested(rest));
    steps
}

/// How many steps of a path the automaton takes.
pub(crate) fn anchored_len(steps: &[Step<'_>]) -> usize {
    let leading = steps.iter().take_while(|step| step.axis == Axis::Child).count();
    let tail = steps.iter().rposition(|step| step.axis != Axis::Child).unwrap_or(0);
    let cut = (leading..tail).find(|&at| !steps[at].stages.is_empty());
    cut.map_or(steps.len(), |at| at + 1)
}

/// Whether a path is a conjunction of conditions at places, if its nested paths are ones of their own: positions
/// count the siblings of one name or all, and attributes have a name or any.
pub(crate) fn is_conjunction(steps: &[Step<'_>]) -> bool {
    let is_plain = |condition: &Condition<'_>| match condition {
        Condition::Attribute { test, .. } => !is_pattern(test),
        _ => true,
    };
    let kept = &steps[..anchored_len(steps)];
    kept.iter().all(|step| !counts_siblings(step) && step.conditions().all(is_plain))
}

/// Whether positions of a step need the list of the siblings: they follow other predicates, or count what a
/// pattern of names lets through.
pub(crate) fn counts_siblings(step: &Step<'_>) -> bool {
    let later = step.stages.iter().skip(1).any(|stage| !stage.positions.is_empty());
    let first = step.stages.first().is_some_and(|stage| !stage.positions.is_empty());
    step.axis != Axis::DescendantOrSelf && (later || (first && is_pattern(&step.test)))
}

/// Whether a test lets elements of several names through, but not all.
pub(crate) fn is_pattern(test: &NameTest<'_>) -> bool {
    matches!(test, NameTest::AnyIn { .. } | NameTest::AnyNamespace { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::query::{compile_canonical, text_of};

    #[test]
    fn conditions_between_two_descendant_steps_are_cut_off() {
        for (query, expected) in [
            ("/a[@x]/b//c[@y]/d", "/a[@x]/b//c[@y]/d"),
            ("/a[@x]//b/c[@y]//d", "/a[@x]//b/c[@y][.//d]"),
            ("//a//b[@x]/c//d[@y]", "//a//b[@x][c//d[@y]]"),
            ("//a[@x]//b[@y]//c", "//a[@x][.//b[@y]//c]"),
            ("//a[position()=2][@x]", "//a[position()=2][@x]"),
            ("//a[position()=2]//.[@x]", "//a[position()=2][.//.[@x]]"),
            ("/a[position()=2]//.[@x]", "/a[position()=2]//.[@x]"),
        ] {
            let steps = anchored(compile_canonical(query).unwrap());
            assert_eq!(text_of(&steps), expected, "{query}");
        }
    }
}
