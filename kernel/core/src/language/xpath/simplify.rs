//! Steps that say the same with less work.
//!
//! `//a` is `descendant-or-self::node()/child::a`; where no position counts, that is
//! `descendant::a`, and where one does, only nodes that have children need to be looked at.

use super::ast::{Axis, NodeTest, Step};

/// Rewrites the steps of a path, which may begin at the context node.
pub(crate) fn simplify_steps(steps: &mut Vec<Step>, begins_at_context: bool) {
    drop_self_steps(steps, begins_at_context);
    join_descendant_steps(steps);
    pass_over_leaves(steps);
}

fn join_descendant_steps(steps: &mut Vec<Step>) {
    let mut at = 0;
    while at + 1 < steps.len() {
        let next = steps[at + 1];
        if !is_bare(&steps[at], Axis::DescendantOrSelf) {
            at += 1;
            continue;
        }
        match (merged_axis(next.axis), next.is_positional) {
            (Some(axis), false) => {
                steps[at + 1].axis = axis;
                steps.remove(at);
                // The step may now join the one before it.
                at = at.saturating_sub(1);
            }
            _ => at += 1,
        }
    }
}

/// `node()` before an axis that only the document node and elements have selects these alone. Texts
/// and comments are then not visited, so that it makes no difference whether the tree has comments.
fn pass_over_leaves(steps: &mut [Step]) {
    for at in 1..steps.len() {
        let before = steps[at - 1];
        if before.test == NodeTest::Node
            && !before.is_positional
            && leads_from_containers_only(steps[at].axis)
        {
            steps[at - 1].test = NodeTest::Container;
        }
    }
}

/// `self::node()` says nothing but in a path that has nothing else.
fn drop_self_steps(steps: &mut Vec<Step>, begins_at_context: bool) {
    let is_alone = steps.len() == 1 && begins_at_context;
    if is_alone {
        return;
    }
    let first = steps.first().copied();
    steps.retain(|step| !is_bare(step, Axis::Itself));
    if steps.is_empty() && begins_at_context {
        steps.extend(first);
    }
}

fn is_bare(step: &Step, axis: Axis) -> bool {
    step.axis == axis && step.test == NodeTest::Node && step.predicates.is_empty()
}

/// The axis that `descendant-or-self::node()` followed by this axis is.
fn merged_axis(axis: Axis) -> Option<Axis> {
    match axis {
        Axis::Child | Axis::Descendant => Some(Axis::Descendant),
        Axis::DescendantOrSelf | Axis::Itself => Some(Axis::DescendantOrSelf),
        _ => None,
    }
}

/// Whether only the document node and elements have nodes on this axis.
fn leads_from_containers_only(axis: Axis) -> bool {
    matches!(axis, Axis::Attribute | Axis::Child | Axis::Descendant | Axis::Namespace)
}
