//! The axes from a set of nodes, every node once (XPath 1.0, 2.2).

use super::axes::{Walk, after};
use super::budget::{Budget, Within};
use super::document::{Document, Node};
use super::node_test::Test;
use crate::engine::marks::Marks;
use crate::language::xpath::ast::Axis;

/// An axis from a set: every node once, in no particular order.
#[derive(Debug)]
pub(crate) struct SetWalk<'s> {
    contexts: std::slice::Iter<'s, Node>,
    axis: Axis,
    walk: Walk,
    /// One past what the descendants visited so far cover.
    covered: u32,
    /// For axes on which context nodes lead to the same nodes.
    pub(crate) marks: Option<Marks>,
}

impl<'s> SetWalk<'s> {
    /// Whether a walk from so many context nodes needs marks.
    pub(crate) fn needs_marks(axis: Axis, contexts: usize) -> bool {
        let can_meet = matches!(
            axis,
            Axis::Ancestor
                | Axis::AncestorOrSelf
                | Axis::FollowingSibling
                | Axis::Parent
                | Axis::PrecedingSibling
        );
        can_meet && contexts > 1
    }

    /// Begins with a set in document order.
    pub(crate) fn new(
        document: &Document<'_>,
        axis: Axis,
        test: &Test<'_>,
        contexts: &'s [Node],
        marks: Option<Marks>,
    ) -> Self {
        // What follows some node of a set follows the one that ends first; what precedes some
        // node precedes the last.
        let extreme = match axis {
            Axis::Following => contexts.iter().min_by_key(|&&node| after(document, node)),
            Axis::Preceding => contexts.last(),
            _ => None,
        };
        let (walk, contexts) = match extreme {
            Some(&node) => (Walk::new(document, axis, test, node), [].iter()),
            None => (Walk::NOTHING, contexts.iter()),
        };
        SetWalk { contexts, axis, walk, covered: 0, marks }
    }

    /// The next node that passes. Cost: one step for each node visited.
    pub(crate) fn next_passing(
        &mut self,
        document: &Document<'_>,
        test: &Test<'_>,
        budget: &mut Budget,
    ) -> Within<Option<Node>> {
        loop {
            let found = match &mut self.marks {
                None => self.walk.next_passing(document, test, budget)?,
                Some(marks) => next_unmarked(&mut self.walk, marks, document, test, budget)?,
            };
            if found.is_some() {
                return Ok(found);
            }
            let Some(&node) = self.contexts.next() else {
                return Ok(None);
            };
            if self.is_covered(document, node) {
                continue;
            }
            if self.axis == Axis::Namespace
                && let Some(element) = document.element(node.position())
            {
                budget.charge(document.declarations_met(element))?;
            }
            self.walk = Walk::new(document, self.axis, test, node);
        }
    }

    /// Whether a context node leads to nothing new, because it is inside one before it.
    fn is_covered(&mut self, document: &Document<'_>, node: Node) -> bool {
        let is_downward = matches!(self.axis, Axis::Descendant | Axis::DescendantOrSelf);
        if !is_downward || !node.is_main() {
            return false;
        }
        if node.position() < self.covered {
            return true;
        }
        self.covered = document.end(node.position());
        false
    }
}

/// The next node that passes and has not been visited; where one has been visited, so have all
/// nodes after it on its axis.
fn next_unmarked(
    walk: &mut Walk,
    marks: &mut Marks,
    document: &Document<'_>,
    test: &Test<'_>,
    budget: &mut Budget,
) -> Within<Option<Node>> {
    while let Some(node) = walk.next(document) {
        budget.charge(1)?;
        if node.is_main() && !marks.add(node.position()) {
            *walk = Walk::NOTHING;
            return Ok(None);
        }
        if test.takes(document, node) {
            return Ok(Some(node));
        }
    }
    Ok(None)
}
