//! Where the conditions of a query are looked at: at steps whose elements follow from one element.
//!
//! In the run of `/` steps at the beginning of a path a step is bound at a fixed depth, in the run at
//! its end so many parents above the end. Only a step between two `//` can be bound in several ways.
//! A query with conditions there is cut after the first such step: `/a//b[@x]/c//d` ends, as far as
//! the automaton is concerned, at `/a//b`, and what follows becomes a nested path there, which asks
//! the same: `/a//b[@x][c//d]`. So every condition of every query has one place, seen from the end.

use crate::language::query::ast::{Axis, Condition, Stage, Step};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::query::{canonical_text, compile_canonical};

    fn text_of(query: &str) -> String {
        let mut text = String::new();
        canonical_text(&anchored(compile_canonical(query).unwrap()), &mut text);
        text
    }

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
            assert_eq!(text_of(query), expected, "{query}");
        }
    }
}
