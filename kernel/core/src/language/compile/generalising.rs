//! What several patterns have in common: one pattern that is there whenever one of them is.
//!
//! Sixty values of one attribute (`[@x = 1 or @x = 2 ...]`) are too many alternatives to index each; that there is an
//! `@x` follows from every one of them, and is worth knowing.
//!
//! A generalisation only ever drops: conditions that not all have, comparisons that differ, ends of nested paths beyond
//! the steps that all begin with. It never touches what stands before a position, which counts exactly that.

use super::spine::{NodeKind, OpenStage, PatternNode, Shared, Spine};
use crate::language::query::arrange::{arrange, sort_stage};
use crate::language::query::{Condition, NameTest, Stage, Step};

/// A spine that is there if one of several is; all of them, one or more, extend `base`.
pub(super) fn generalised<'t>(spines: &[Spine<'t>], base: &Spine<'t>) -> Spine<'t> {
    let columns: Vec<Vec<&PatternNode<'t>>> =
        spines.iter().map(|spine| spine.nodes().collect()).collect();
    let before: Vec<&PatternNode<'t>> = base.nodes().collect();
    let keys = |nodes: &[&PatternNode<'t>]| nodes.iter().map(|node| node.key).collect::<Vec<_>>();
    let wanted = keys(&before);
    if columns.iter().any(|nodes| keys(nodes) != wanted) {
        return base.clone();
    }
    let mut nodes = (0..before.len()).rev().map(|at| {
        let column: Vec<&PatternNode<'t>> = columns.iter().map(|nodes| nodes[at]).collect();
        common_node(&column, before[at])
    });
    let top = nodes.next().map_or_else(Spine::document, Spine::of);
    nodes.fold(top, Spine::pushed)
}

fn common_node<'t>(nodes: &[&PatternNode<'t>], base: &PatternNode<'t>) -> PatternNode<'t> {
    let first = nodes[0];
    if nodes.iter().all(|node| *node == first) {
        return first.clone();
    }
    let is_main = base.kind == NodeKind::Document;
    let stages: Vec<&[OpenStage<'t>]> = nodes.iter().map(|node| &node.stages[..]).collect();
    let has_same_axis = nodes.iter().all(|node| node.axis == first.axis);
    let has_same_test = nodes.iter().all(|node| node.test == first.test);
    let compares = first.compares.iter();
    PatternNode {
        axis: if has_same_axis { first.axis } else { base.axis },
        test: if has_same_test { first.test.clone() } else { base.test.clone() },
        stages: common_open_stages(&stages, is_main).unwrap_or_else(|| base.stages.clone()),
        compares: compares
            .filter(|each| nodes.iter().all(|node| node.compares.contains(each)))
            .cloned()
            .collect(),
        ..base.clone()
    }
}

/// The predicates that all have; none if they differ in what positions count.
fn common_open_stages<'t>(
    columns: &[&[OpenStage<'t>]],
    is_main: bool,
) -> Option<Vec<OpenStage<'t>>> {
    let (positions, mut stages, lasts) =
        split(columns, |stage| &stage.positions, |stage| &stage.conditions)?;
    let Some(positions) = positions else { return Some(Vec::new()) };
    let kept = common_conditions(&lasts, is_main, |shared| shared.get(), Shared::new);
    stages.push(OpenStage { positions, conditions: kept });
    Some(stages)
}

/// [`common_open_stages`] of steps in normal form.
fn common_stages<'t>(columns: &[&[Stage<'t>]]) -> Option<Vec<Stage<'t>>> {
    let (positions, mut stages, lasts) =
        split(columns, |stage| &stage.positions, |stage| &stage.conditions)?;
    let Some(positions) = positions else { return Some(Vec::new()) };
    let kept = common_conditions(&lasts, false, |condition| condition, |condition| condition);
    stages.push(Stage { positions, conditions: kept });
    Some(stages)
}

type Positions = Vec<(crate::language::comparison::Comparison, f64)>;

/// Positions of the last stages (none where there are no stages), the stages before, conditions of the last ones;
/// nothing if they differ in what positions count.
#[expect(clippy::type_complexity, reason = "three lists that are used at once")]
fn split<'s, S: Clone + PartialEq, C>(
    columns: &[&'s [S]],
    positions_of: impl Fn(&'s S) -> &'s Positions,
    conditions_of: impl Fn(&'s S) -> &'s Vec<C>,
) -> Option<(Option<Positions>, Vec<S>, Vec<&'s [C]>)> {
    if columns.iter().all(|stages| stages.is_empty()) {
        return Some((None, Vec::new(), Vec::new()));
    }
    let halves = columns.iter().map(|stages| match stages.split_last() {
        Some((last, earlier)) => (earlier, positions_of(last).clone(), &conditions_of(last)[..]),
        None => (&stages[..0], Vec::new(), &[][..]),
    });
    let halves: Vec<_> = halves.collect();
    let (earlier, positions, _) = halves[0].clone();
    if halves.iter().any(|half| half.0 != earlier || half.1 != positions) {
        return None;
    }
    Some((Some(positions), earlier.to_vec(), halves.into_iter().map(|half| half.2).collect()))
}

fn common_conditions<'t, C: Clone + PartialEq>(
    sets: &[&[C]],
    is_main: bool,
    condition_of: impl Fn(&C) -> &Condition<'t>,
    made: impl Fn(Condition<'t>) -> C,
) -> Vec<C> {
    let Some((first, others)) = sets.split_first() else { return Vec::new() };
    let all_have = |test: &dyn Fn(&Condition<'t>) -> bool| {
        others.iter().all(|other| other.iter().any(|each| test(condition_of(each))))
    };
    let mut kept = Vec::new();
    for condition in *first {
        if others.iter().all(|other| other.contains(condition)) {
            kept.push(condition.clone());
            continue;
        }
        match condition_of(condition) {
            Condition::Attribute { test, .. } if all_have(&|each| is_attribute(each, test)) => {
                kept.push(made(Condition::Attribute { test: test.clone(), compare: None }));
            }
            Condition::Text(_) if all_have(&|each| matches!(each, Condition::Text(_))) => {
                kept.push(made(Condition::Text(None)));
            }
            Condition::Nested(steps) => {
                let others = others.iter().map(|other| other.iter().map(&condition_of));
                let mut common = common_nested(steps, others);
                if !common.is_empty() {
                    arrange(&mut common, is_main);
                    kept.push(made(Condition::Nested(common)));
                }
            }
            _ => {}
        }
    }
    kept
}

fn is_attribute(condition: &Condition<'_>, wanted: &NameTest<'_>) -> bool {
    matches!(condition, Condition::Attribute { test, .. } if test == wanted)
}

/// The common beginning of a nested path and one nested path of each other set.
fn common_nested<'s, 't: 's>(
    steps: &'s [Step<'t>],
    others: impl Iterator<Item = impl Iterator<Item = &'s Condition<'t>>>,
) -> Vec<Step<'t>> {
    let mut paths = vec![steps];
    for other in others {
        let candidates = other.filter_map(|each| match each {
            Condition::Nested(nested) => Some(&nested[..]),
            _ => None,
        });
        let mut longest: Option<(&[Step<'t>], usize)> = None;
        for candidate in candidates {
            let length = common_length(steps, candidate);
            if longest.is_none_or(|(_, known)| length > known) {
                longest = Some((candidate, length));
            }
        }
        let Some((longest, _)) = longest else { return Vec::new() };
        paths.push(longest);
    }
    common_prefix(&paths)
}

fn common_length(left: &[Step<'_>], right: &[Step<'_>]) -> usize {
    let pairs = left.iter().zip(right);
    pairs.take_while(|(ours, theirs)| ours.axis == theirs.axis && ours.test == theirs.test).count()
}

/// The steps that all paths begin with, with the conditions that all have there.
fn common_prefix<'t>(paths: &[&[Step<'t>]]) -> Vec<Step<'t>> {
    let Some(first) = paths.first() else { return Vec::new() };
    let length = paths.iter().map(|path| common_length(first, path)).min().unwrap_or(0);
    let steps = (0..length).map(|at| {
        let column: Vec<&[Stage<'t>]> = paths.iter().map(|path| &path[at].stages[..]).collect();
        let mut stages = common_stages(&column).unwrap_or_default();
        stages.iter_mut().for_each(sort_stage);
        stages.retain(|stage| !stage.positions.is_empty() || !stage.conditions.is_empty());
        Step { axis: first[at].axis, test: first[at].test.clone(), stages }
    });
    steps.collect()
}
