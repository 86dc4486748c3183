//! Bringing a path into canonical order: ends into conditions, conditions sorted, wildcards.
//!
//! Each function keeps the answer to "does the path select something".

use super::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use super::canonical::{condition_text, position_text};
use super::scan::number_of;

/// The operator when the two sides change places.
pub(super) fn flipped(operator: Operator) -> Operator {
    match operator {
        Operator::Lt => Operator::Gt,
        Operator::Le => Operator::Ge,
        Operator::Gt => Operator::Lt,
        Operator::Ge => Operator::Le,
        same => same,
    }
}

/// `op constant`; an ordering against a numeric string is one against the number (XPath 1.0, 3.4).
pub(super) fn comparison<'q>(
    operator: Operator,
    constant: Constant<'q>,
) -> (Operator, Constant<'q>) {
    let is_order = !matches!(operator, Operator::Eq | Operator::Ne);
    if let Constant::String(text) = &constant
        && is_order
        && let Some(number) = number_of(text)
    {
        return (operator, Constant::Number(number));
    }
    (operator, constant)
}

/// Adds predicates to those of a step: positions begin a stage, conditions alone join the last one.
pub(super) fn add_predicate<'q>(
    stages: &mut Vec<Stage<'q>>,
    positions: Vec<(Operator, f64)>,
    mut conditions: Vec<Condition<'q>>,
) {
    match stages.last_mut() {
        Some(last) if positions.is_empty() => last.conditions.append(&mut conditions),
        _ if positions.is_empty() && conditions.is_empty() => {}
        _ => stages.push(Stage { positions, conditions }),
    }
}

/// A step `//.` with the condition that a path ends in.
pub(super) fn or_self<'q>(stages: Vec<Stage<'q>>) -> Step<'q> {
    Step { axis: Axis::DescendantOrSelf, test: NameTest::Any, stages }
}

/// Sorts what the stages hold and moves wildcards; the path has one step or more.
pub(super) fn arrange(steps: &mut Vec<Step<'_>>, is_main: bool) {
    let mut has_bare = false;
    for step in steps.iter_mut() {
        has_bare |= is_bare(step);
        for stage in &mut step.stages {
            sort_by_text(&mut stage.positions, position_text);
            sort_by_text(&mut stage.conditions, condition_text);
        }
    }
    end_or_self(steps, is_main);
    if has_bare {
        move_wildcards(steps);
    }
}

fn sort_by_text<T>(items: &mut Vec<T>, text_of: impl Fn(&T, &mut String)) {
    if items.len() < 2 {
        return;
    }
    let mut keyed: Vec<(String, T)> = items
        .drain(..)
        .map(|item| {
            let mut text = String::new();
            text_of(&item, &mut text);
            (text, item)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.dedup_by(|a, b| a.0 == b.0);
    items.extend(keyed.into_iter().map(|(_, item)| item));
}

fn is_bare(step: &Step<'_>) -> bool {
    step.test == NameTest::Any && step.stages.is_empty()
}

/// `//.` at the end becomes an ordinary step where that says the same.
fn end_or_self(steps: &mut Vec<Step<'_>>, is_main: bool) {
    let Some(last) = steps.len().checked_sub(1) else { return };
    if steps[last].axis != Axis::DescendantOrSelf {
        return;
    }
    if last > 0 && is_bare(&steps[last - 1]) {
        // One step down or more, then there or below: the same as anywhere below.
        steps.remove(last - 1);
        steps[last - 1].axis = Axis::Descendant;
    } else if last == 0 && is_main {
        // The document node has neither attributes nor text.
        steps[last].axis = Axis::Descendant;
    }
}

/// In a run of bare wildcards only its length matters and whether a `//` is in it or after it.
fn move_wildcards(steps: &mut [Step<'_>]) {
    let mut start = 0;
    for index in 0..steps.len() {
        if is_bare(&steps[index]) {
            continue;
        }
        let (run, rest) = steps[start..].split_at_mut(index - start);
        if run.iter().any(|step| step.axis == Axis::Descendant) {
            rest[0].axis = Axis::Descendant;
        }
        if rest[0].axis == Axis::Descendant {
            run.iter_mut().for_each(|step| step.axis = Axis::Child);
        }
        start = index + 1;
    }
    steps[start..].iter_mut().for_each(|step| step.axis = Axis::Child);
}
