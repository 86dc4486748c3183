//! Bringing a path into canonical order: ends into conditions, conditions sorted, branches,
//! wildcards.
//!
//! Each function keeps the answer to "does the path select something".

use super::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use super::canonical::{
    call_name, condition_text, has_literal, nested_opening, nested_text, opening, position_text,
};
use crate::language::comparison::Comparison;
use crate::language::numbers::number;
use std::cmp::Ordering;

/// `op constant`; an ordering against a numeric string is one against the number (XPath 1.0, 3.4).
pub(crate) fn comparison<'q>(
    comparison: Comparison,
    constant: Constant<'q>,
) -> (Operator, Constant<'q>) {
    let is_order = !matches!(comparison, Comparison::Eq | Comparison::Ne);
    let operator = Operator::Compare(comparison);
    if let Constant::String(text) = &constant
        && is_order
    {
        // Adding zero makes a negative zero positive.
        let number = number(text.as_bytes()) + 0.0;
        if number.is_finite() {
            return (operator, Constant::Number(number));
        }
    }
    (operator, constant)
}

/// Adds predicates to those of a step: positions begin a stage, conditions alone join the last one.
pub(crate) fn add_predicate<'q>(
    stages: &mut Vec<Stage<'q>>,
    positions: Vec<(Comparison, f64)>,
    mut conditions: Vec<Condition<'q>>,
) {
    match stages.last_mut() {
        Some(last) if positions.is_empty() => last.conditions.append(&mut conditions),
        _ if positions.is_empty() && conditions.is_empty() => {}
        _ => {
            if stages.is_empty() {
                stages.reserve_exact(1);
            }
            stages.push(Stage { positions, conditions });
        }
    }
}

/// A step `//.` with the condition that a path ends in.
pub(super) fn or_self<'q>(stages: Vec<Stage<'q>>) -> Step<'q> {
    Step { axis: Axis::DescendantOrSelf, test: NameTest::Any, stages }
}

/// Sorts what the stages hold and puts branches and wildcards in order; the path has one step or
/// more, and its nested paths are arranged already.
pub(crate) fn arrange(steps: &mut Vec<Step<'_>>, is_main: bool) {
    let mut is_plain = true;
    for step in steps.iter_mut() {
        is_plain &= step.axis != Axis::DescendantOrSelf && !is_bare(step);
        for stage in &mut step.stages {
            sort_stage(stage);
        }
        is_plain &= !has_branch(step);
    }
    if is_plain {
        return;
    }
    order_tail(steps);
    if is_main && steps[0].axis == Axis::DescendantOrSelf {
        // The document node has neither attributes nor text.
        steps[0].axis = Axis::Descendant;
    }
}

pub(crate) fn sort_stage(stage: &mut Stage<'_>) {
    sort_by_text(&mut stage.positions, position_text, |_, _| None);
    sort_by_text(&mut stage.conditions, condition_text, order_at_a_glance);
}

/// Goes from the end of the path to its start, so that every choice among branches is one among
/// paths in normal form. In a run of bare wildcards, only the step after it keeps a `//`.
fn order_tail(steps: &mut Vec<Step<'_>>) {
    let mut anchor = None;
    let mut tail = TailDepth { deepest: 0, from: steps.len() };
    for index in (0..steps.len()).rev() {
        if has_branch(&steps[index]) && continue_by_branch(steps, index, &mut tail) {
            anchor = (index + 1..steps.len()).find(|&after| !is_bare(&steps[after]));
        }
        if !is_bare(&steps[index]) {
            anchor = Some(index);
            continue;
        }
        let Some(after) = anchor else {
            steps[index].axis = Axis::Child;
            continue;
        };
        if steps[after].axis == Axis::DescendantOrSelf {
            // One step down or more, then there or below: the same as anywhere below.
            steps[after].axis = Axis::Descendant;
            steps.remove(index);
            tail.from -= 1;
            anchor = Some(after - 1);
            continue;
        }
        if steps[index].axis == Axis::Descendant {
            steps[after].axis = Axis::Descendant;
            steps[index].axis = Axis::Child;
        }
    }
}

/// How deep brackets nest from a step on to the end of the path.
struct TailDepth {
    deepest: usize,
    from: usize,
}

impl TailDepth {
    /// The depth from an earlier step on; counts each step once.
    fn extended_to(&mut self, start: usize, steps: &[Step<'_>]) -> usize {
        self.deepest = self.deepest.max(depth(&steps[start..self.from]));
        self.from = start;
        self.deepest
    }
}

/// Lets the branch lead on from a step that has to; true if another one does than before.
///
/// A query asks whether something is selected: the nested paths of the last stage and the
/// continuation are asked of the same elements. The one whose brackets nest deepest leads on (the
/// first by text among several), which makes brackets nest as little as they can.
fn continue_by_branch(steps: &mut Vec<Step<'_>>, index: usize, tail: &mut TailDepth) -> bool {
    let Some(last) = steps[index].stages.last() else { return false };
    let Some((at, deepest)) = deepest_branch(&last.conditions) else { return false };
    let mut is_same = false;
    if index + 1 < steps.len() {
        let order = deepest.cmp(&tail.extended_to(index + 1, steps)).then_with(|| {
            let after = &steps[index + 1..];
            let known = glance(nested_opening(after), opening(&last.conditions[at]));
            if let Some(order) = known {
                return order;
            }
            let (mut branch, mut continuation) = (String::new(), String::new());
            condition_text(&last.conditions[at], &mut branch);
            nested_text(after, &mut continuation);
            continuation.cmp(&branch)
        });
        if order.is_lt() {
            return false;
        }
        is_same = order.is_eq();
    }
    let continuation = steps.split_off(index + 1);
    let stages = &mut steps[index].stages;
    let Some(last) = stages.last_mut() else { return false };
    let Condition::Nested(mut branch) = last.conditions.remove(at) else { return false };
    if !continuation.is_empty() && !is_same {
        last.conditions.push(Condition::Nested(continuation));
        sort_by_text(&mut last.conditions, condition_text, order_at_a_glance);
    }
    if last.positions.is_empty() && last.conditions.is_empty() {
        stages.pop();
    }
    *tail = TailDepth { deepest, from: index + 1 };
    steps.append(&mut branch);
    true
}

/// Where the deepest nested path stands among sorted conditions, the first of several; its depth.
fn deepest_branch(conditions: &[Condition<'_>]) -> Option<(usize, usize)> {
    let mut found: Option<(usize, usize)> = None;
    for (at, condition) in conditions.iter().enumerate() {
        if let Condition::Nested(steps) = condition {
            let depth = depth(steps);
            if found.is_none_or(|(_, deepest)| depth > deepest) {
                found = Some((at, depth));
            }
        }
    }
    found
}

/// How deep brackets and calls nest in the canonical text of a path.
pub(crate) fn depth(steps: &[Step<'_>]) -> usize {
    let stages = steps.iter().flat_map(|step| &step.stages);
    let inside = |stage: &Stage<'_>| stage.conditions.iter().map(condition_depth).max();
    stages.map(|stage| 1 + inside(stage).unwrap_or(0)).max().unwrap_or(0)
}

/// How deep brackets and calls nest in a condition, its own bracket not counted.
pub(super) fn condition_depth(condition: &Condition<'_>) -> usize {
    if let Condition::Nested(steps) = condition {
        return depth(steps);
    }
    let Some((operator, constant)) = condition.compare() else { return 0 };
    let is_joined = match constant {
        Constant::String(text) => !has_literal(text),
        Constant::Strings(values) | Constant::Texts(_, values) => {
            values.iter().any(|value| !has_literal(value))
        }
        _ => false,
    };
    let is_texts = matches!(constant, Constant::Texts(..));
    let is_bracketed = constant.values().is_some() || call_name(operator, constant).is_some();
    // A function, and in it another one or a list.
    usize::from(is_bracketed) + usize::from(is_texts) + usize::from(is_joined)
}

/// Whether a nested path could lead on from a step: predicates of earlier stages stand before
/// positions, which count what they leave.
fn has_branch(step: &Step<'_>) -> bool {
    let is_nested = |condition: &Condition<'_>| matches!(condition, Condition::Nested(_));
    step.stages.last().is_some_and(|stage| stage.conditions.iter().any(is_nested))
}

/// Sorts by canonical text and drops duplicates.
fn sort_by_text<T>(
    items: &mut Vec<T>,
    text_of: impl Fn(&T, &mut String),
    known_order: impl Fn(&T, &T) -> Option<Ordering>,
) {
    if items.len() < 2 {
        return;
    }
    let mut texts = (String::new(), String::new());
    let mut order = |a: &T, b: &T| {
        known_order(a, b).unwrap_or_else(|| {
            texts.0.clear();
            texts.1.clear();
            text_of(a, &mut texts.0);
            text_of(b, &mut texts.1);
            texts.0.cmp(&texts.1)
        })
    };
    items.sort_by(&mut order);
    items.dedup_by(|later, earlier| order(later, earlier).is_eq());
}

/// The order of two conditions when the beginnings of their texts tell, which is most often.
fn order_at_a_glance(a: &Condition<'_>, b: &Condition<'_>) -> Option<Ordering> {
    glance(opening(a), opening(b))
}

fn glance(a: (&str, &str), b: (&str, &str)) -> Option<Ordering> {
    let mut pairs = a.0.bytes().chain(a.1.bytes()).zip(b.0.bytes().chain(b.1.bytes()));
    pairs.find(|(a, b)| a != b).map(|(a, b)| a.cmp(&b))
}

fn is_bare(step: &Step<'_>) -> bool {
    step.test == NameTest::Any && step.stages.is_empty()
}
