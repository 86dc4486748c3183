//! From patterns of the whole message to paths in normal form.
//!
//! A pattern of the document node is a set of paths that must all be there. One of them is a path in normal form as it
//! is. Several are put together at the root element, of which there is one: `/a/b` and `/a/c` are `/a[b]/c`. Where a
//! path begins with `//`, the root is its first element or is above it, so that `//a` and `//b` become `/*[.//b]//a`,
//! `/a//b` and `/b//a`. All of this keeps the answer.

use super::containment::{Pattern, needed};
use super::generalising::generalised;
use super::spine::{Spine, common_test};
use crate::language::comparison::Comparison;
use crate::language::query::arrange::arrange;
use crate::language::query::{
    Axis, Condition, NameTest, NormalPath, Stage, Step, canonical_text, value_bytes,
};
use crate::language::values::VALUE_BYTES_MAX;
use std::collections::BTreeMap;

/// Bytes that the values of the sets of all alternatives of a query take: a set may be in many of them.
const VALUE_BYTES_OF_ALL: usize = 4 * VALUE_BYTES_MAX;

/// Bytes within which most canonical texts are.
const USUAL_BYTES: usize = 64;

/// A path in normal form and its canonical text.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative<'t> {
    /// The main path.
    pub steps: NormalPath<'t>,
    /// Its canonical text.
    pub text: String,
}

impl<'t> Alternative<'t> {
    /// With its text written.
    pub(super) fn of(steps: NormalPath<'t>) -> Self {
        let mut text = String::with_capacity(USUAL_BYTES);
        canonical_text(&steps, &mut text);
        Alternative { steps, text }
    }

    /// The path of any message: `/*`.
    pub(super) fn any_message() -> Self {
        Alternative::of(vec![bare_root()])
    }

    /// Whether it is `/*`.
    pub(super) fn is_any_message(&self) -> bool {
        self.text == "/*"
    }

    /// Whether it is the path of no message: `/*[position()=2]`.
    pub(super) fn is_no_message(&self) -> bool {
        is_no_message(&self.steps)
    }
}

/// The paths of which one is found if one of the patterns is there: one or more, sorted by canonical text, without
/// duplicates; and whether they say all that the patterns say. At most `maximum`.
pub(super) fn alternatives_of<'t>(
    spines: &[Spine<'t>],
    maximum: usize,
) -> (Vec<Alternative<'t>>, bool) {
    let mut paths = Vec::with_capacity(spines.len());
    let mut is_all = true;
    for spine in spines {
        let conditions = document_conditions(spine);
        match joined_paths(&conditions, maximum) {
            Some(joined) => paths.extend(joined),
            None => {
                paths.push(strongest(&conditions));
                is_all = false;
            }
        }
    }
    let mut found = distinct_within(paths, maximum);
    if found.is_none() {
        let strongest = spines.iter().map(|spine| strongest(&document_conditions(spine)));
        found = distinct_within(strongest.collect(), maximum);
        is_all = false;
    }
    let found = found.unwrap_or_else(|| {
        let common = generalised(spines, &Spine::document());
        distinct([strongest(&document_conditions(&common))])
    });
    (found, is_all)
}

/// The paths of which one is found if some paths are all found; at most `maximum`.
pub(super) fn alternatives_of_paths<'t>(
    paths: &[&[Step<'t>]],
    maximum: usize,
) -> Vec<Alternative<'t>> {
    let joined = joined_paths(paths, maximum);
    let found = joined.and_then(|joined| distinct_within(joined, maximum));
    found.unwrap_or_else(|| distinct([strongest(paths)]))
}

/// The paths that must all be found if a pattern is there; none if it cannot be there.
///
/// Nothing is put together at the root element, so a pattern has one conjunction, however many paths it asks for.
pub(super) fn conjunction_of<'t>(spine: &Spine<'t>) -> Option<Vec<NormalPath<'t>>> {
    let paths = document_conditions(spine);
    if paths.iter().any(|steps| is_no_message(steps)) {
        return None;
    }
    if paths.is_empty() {
        return Some(vec![vec![bare_root()]]);
    }
    Some(paths.into_iter().map(<[_]>::to_vec).collect())
}

/// A root element: test, and conditions.
type Root<'t> = (NameTest<'t>, Vec<Condition<'t>>);

/// The paths of which one is found if some paths from the document are all found: none if the root would need two
/// names, nothing if there are too many.
fn joined_paths<'t>(nested: &[&[Step<'t>]], maximum: usize) -> Option<Vec<NormalPath<'t>>> {
    match nested {
        [] => return Some(vec![vec![bare_root()]]),
        [only] => return Some(vec![only.to_vec()]),
        _ => {}
    }
    let mut roots: Vec<Root<'t>> = vec![(NameTest::Any, Vec::new())];
    for steps in nested {
        let options = root_options(steps);
        let mut extended = Vec::with_capacity(roots.len() * options.len());
        for (test, conditions) in &roots {
            for (other, added) in &options {
                if let Some(both) = common_test(test, other) {
                    extended.push((both, [&conditions[..], added].concat()));
                }
            }
        }
        if extended.len() > maximum {
            return None;
        }
        roots = extended;
    }
    Some(roots.into_iter().map(root_path).collect())
}

/// What the root element is like if a path is found.
fn root_options<'t>(steps: &[Step<'t>]) -> Vec<Root<'t>> {
    let mut options = Vec::with_capacity(2);
    let Some((first, rest)) = steps.split_first() else { return options };
    let mut positions = first.stages.iter().flat_map(|stage| &stage.positions);
    // The root is the only element of its list.
    if positions.all(|&(comparison, number)| comparison.holds(1.0, number)) {
        let stages = first.stages.iter();
        let mut conditions: Vec<_> =
            stages.flat_map(|stage| stage.conditions.iter().cloned()).collect();
        if !rest.is_empty() {
            conditions.push(nested(rest));
        }
        options.push((first.test.clone(), conditions));
    }
    if first.axis != Axis::Child {
        options.push((NameTest::Any, vec![nested(steps)]));
    }
    options
}

fn nested<'t>(steps: &[Step<'t>]) -> Condition<'t> {
    let mut steps = steps.to_vec();
    arrange(&mut steps, false);
    Condition::Nested(steps)
}

fn root_path<'t>((test, conditions): Root<'t>) -> NormalPath<'t> {
    let mut root = Step { test, ..bare_root() };
    if !conditions.is_empty() {
        root.stages.push(Stage { positions: Vec::new(), conditions });
    }
    let mut steps = vec![root];
    arrange(&mut steps, true);
    steps
}

fn bare_root<'t>() -> Step<'t> {
    Step { axis: Axis::Child, test: NameTest::Any, stages: Vec::new() }
}

/// The paths from the document node that a pattern asks for, each once.
fn document_conditions<'s, 't>(spine: &'s Spine<'t>) -> Vec<&'s [Step<'t>]> {
    let mut found: Vec<&'s [Step<'t>]> = Vec::new();
    for condition in spine.node().stages.iter().flat_map(|stage| &stage.conditions) {
        if let Condition::Nested(steps) = condition.get()
            && !found.contains(&&steps[..])
        {
            found.push(steps);
        }
    }
    found
}

/// The path that says most, by its length, of paths that must all be found.
fn strongest<'t>(nested: &[&[Step<'t>]]) -> NormalPath<'t> {
    let mut longest: Option<(usize, &[Step<'t>])> = None;
    let mut text = String::new();
    for steps in nested {
        text.clear();
        canonical_text(steps, &mut text);
        let length = text.chars().count();
        if longest.is_none_or(|(known, _)| length > known) {
            longest = Some((length, steps));
        }
    }
    longest.map_or_else(|| vec![bare_root()], |(_, steps)| steps.to_vec())
}

/// [`distinct`] paths; none if they are more than may be, or the values of their sets are.
fn distinct_within<'t>(paths: Vec<NormalPath<'t>>, maximum: usize) -> Option<Vec<Alternative<'t>>> {
    let values: usize = paths.iter().map(|steps| value_bytes(steps)).sum();
    if values > VALUE_BYTES_OF_ALL {
        return None;
    }
    let found = distinct(paths);
    (found.len() <= maximum).then_some(found)
}

/// The paths in order, without those that hold only where another does; that of no message where none is left.
fn distinct<'t>(paths: impl IntoIterator<Item = NormalPath<'t>>) -> Vec<Alternative<'t>> {
    let mut found: Vec<Alternative<'t>> = paths.into_iter().map(Alternative::of).collect();
    if found.iter().any(Alternative::is_any_message) {
        return vec![Alternative::any_message()];
    }
    found.sort_by(|a, b| a.text.cmp(&b.text));
    found.dedup_by(|a, b| a.text == b.text);
    found.retain(|path| !path.is_no_message());
    if found.is_empty() {
        let second = Stage { positions: vec![(Comparison::Eq, 2.0)], conditions: Vec::new() };
        return vec![Alternative::of(vec![Step { stages: vec![second], ..bare_root() }])];
    }
    let mut kept =
        needed(&found, |path| Pattern::new(&path.steps), |narrow, wide| wide.covers(narrow));
    found.retain(|_| kept.next() == Some(true));
    found
}

/// Whether steps are the path of no message.
pub(crate) fn is_no_message(steps: &[Step<'_>]) -> bool {
    let [Step { axis: Axis::Child, test: NameTest::Any, stages }] = steps else { return false };
    let [Stage { positions, conditions }] = &stages[..] else { return false };
    conditions.is_empty() && positions[..] == [(Comparison::Eq, 2.0)]
}

/// Alternatives by text, each once, in order.
pub(super) fn in_order<'t>(
    paths: impl IntoIterator<Item = Alternative<'t>>,
) -> Vec<Alternative<'t>> {
    let by_text: BTreeMap<String, NormalPath<'t>> =
        paths.into_iter().map(|path| (path.text, path.steps)).collect();
    by_text.into_iter().map(|(text, steps)| Alternative { steps, text }).collect()
}
