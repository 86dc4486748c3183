//! Bringing a path into canonical order: ends into conditions, conditions sorted, wildcards.
//!
//! Each function keeps the answer to "does the path select something".

use super::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use super::canonical::{condition_text, position_text};
use super::scan::number_of;
use std::cmp::Ordering;

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

/// Sorts what the stages hold and moves wildcards; the path has one step or more.
pub(super) fn arrange(steps: &mut Vec<Step<'_>>, is_main: bool) {
    let mut has_bare = false;
    for step in steps.iter_mut() {
        has_bare |= is_bare(step);
        for stage in &mut step.stages {
            sort_by_text(&mut stage.positions, position_text, |_, _| None);
            sort_by_text(&mut stage.conditions, condition_text, attribute_order);
        }
    }
    end_or_self(steps, is_main);
    if has_bare {
        move_wildcards(steps);
    }
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

/// The order of two attribute conditions when their names alone tell, which is most often.
fn attribute_order(a: &Condition<'_>, b: &Condition<'_>) -> Option<Ordering> {
    let (a, b) = (plain_attribute(a)?.as_bytes(), plain_attribute(b)?.as_bytes());
    let shared = a.len().min(b.len());
    Some(a[..shared].cmp(&b[..shared])).filter(|order| order.is_ne())
}

fn plain_attribute<'a>(condition: &'a Condition<'_>) -> Option<&'a str> {
    match condition {
        Condition::Attribute { test: NameTest::Name { uri, local }, .. } if uri.is_empty() => {
            Some(local)
        }
        _ => None,
    }
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
