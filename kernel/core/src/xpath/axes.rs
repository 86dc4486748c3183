//! The axes (XPath 1.0, 2.2): from one node in axis order, from a set with every node once.

use super::ast::Axis;
use super::budget::{Budget, Within};
use super::document::{Document, Main, Node};
use super::node_test::{Range, Test};

/// An axis from one context node: the nodes still to be visited, in axis order.
#[derive(Debug)]
pub(super) struct Walk {
    /// The context node itself, on axes that begin with it.
    first: Option<Node>,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Nothing,
    /// These elements, one after the other.
    Elements {
        at: u32,
        end: u32,
    },
    /// Elements that follow one another without being inside one another.
    SiblingElements {
        at: u32,
        end: u32,
    },
    Texts {
        at: u32,
        end: u32,
    },
    Positions {
        at: u32,
        end: u32,
    },
    SiblingPositions {
        at: u32,
        end: u32,
    },
    /// What is before a position, without the ancestors.
    Before {
        at: u32,
        ancestor: Option<u32>,
    },
    SiblingsBefore {
        at: u32,
        parent: u32,
    },
    /// A node and those it is inside of.
    Up(Option<u32>),
    Attributes {
        position: u32,
        at: u32,
        end: u32,
    },
    List(std::vec::IntoIter<Node>),
}

impl Walk {
    const NOTHING: Walk = Walk { first: None, rest: Rest::Nothing };

    /// Begins at a context node.
    pub fn new(document: &Document<'_>, axis: Axis, test: &Test<'_>, node: Node) -> Walk {
        let position = node.position();
        let first = match axis {
            Axis::Itself | Axis::AncestorOrSelf | Axis::DescendantOrSelf => Some(node),
            _ => None,
        };
        let rest = match axis {
            Axis::Itself => Rest::Nothing,
            Axis::Parent => {
                let parent = document.parent_of(node).map(Node::at);
                return Walk { first: parent, rest: Rest::Nothing };
            }
            Axis::Ancestor | Axis::AncestorOrSelf => Rest::Up(document.parent_of(node)),
            Axis::Following => following(document, test, after(document, node)),
            Axis::Preceding => Rest::Before { at: position, ancestor: document.parent(position) },
            _ if !node.is_main() => Rest::Nothing,
            Axis::Child => children(document, test, position),
            Axis::Descendant | Axis::DescendantOrSelf => descendants(document, test, position),
            Axis::FollowingSibling => siblings_after(document, test, position),
            Axis::PrecedingSibling => match document.parent(position) {
                Some(parent) => Rest::SiblingsBefore { at: position, parent },
                None => Rest::Nothing,
            },
            Axis::Attribute => match document.element(position) {
                Some(element) => {
                    let std::ops::Range { start, end } = document.attributes(element);
                    Rest::Attributes { position, at: start, end }
                }
                None => Rest::Nothing,
            },
            Axis::Namespace => match document.element(position) {
                Some(element) => namespaces(document, position, element),
                None => Rest::Nothing,
            },
        };
        Walk { first, rest }
    }

    /// The next node, whether it passes a test or not.
    fn next(&mut self, document: &Document<'_>) -> Option<Node> {
        if let Some(node) = self.first.take() {
            return Some(node);
        }
        match &mut self.rest {
            Rest::Nothing => None,
            Rest::Elements { at, end } => {
                let element = take_one(at, *end)?;
                Some(Node::at(document.element_position(element)))
            }
            Rest::SiblingElements { at, end } => {
                let element = (*at < *end).then_some(*at)?;
                *at = document.tree.element_end[element as usize];
                Some(Node::at(document.element_position(element)))
            }
            Rest::Texts { at, end } => {
                let text = take_one(at, *end)?;
                Some(Node::at(document.text_position(text)))
            }
            Rest::Positions { at, end } => Some(Node::at(take_one(at, *end)?)),
            Rest::SiblingPositions { at, end } => {
                let position = (*at < *end).then_some(*at)?;
                *at = document.end(position);
                Some(Node::at(position))
            }
            Rest::Before { at, ancestor } => {
                *at = at.checked_sub(1)?;
                while Some(*at) == *ancestor {
                    *ancestor = document.parent(*at);
                    *at = at.checked_sub(1)?;
                }
                Some(Node::at(*at))
            }
            Rest::SiblingsBefore { at, parent } => {
                let mut position = *at - 1;
                if position == *parent {
                    return None;
                }
                while let Some(above) = document.parent(position).filter(|above| above != parent) {
                    position = above;
                }
                *at = position;
                Some(Node::at(position))
            }
            Rest::Up(at) => {
                let position = (*at)?;
                *at = document.parent(position);
                Some(Node::at(position))
            }
            Rest::Attributes { position, at, end } => {
                let attribute = take_one(at, *end)?;
                Some(Node::attribute(*position, attribute))
            }
            Rest::List(nodes) => nodes.next(),
        }
    }

    /// The next node that passes. Cost: one step for each node visited.
    pub fn next_passing(
        &mut self,
        document: &Document<'_>,
        test: &Test<'_>,
        budget: &mut Budget,
    ) -> Within<Option<Node>> {
        if self.first.is_none() {
            match &mut self.rest {
                Rest::Elements { at, end } => {
                    while let Some(element) = take_one(at, *end) {
                        budget.charge(1)?;
                        if test.takes_element(document, element) {
                            return Ok(Some(Node::at(document.element_position(element))));
                        }
                    }
                    return Ok(None);
                }
                Rest::SiblingElements { at, end } => {
                    while *at < *end {
                        let element = *at;
                        *at = document.tree.element_end[element as usize];
                        budget.charge(1)?;
                        if test.takes_element(document, element) {
                            return Ok(Some(Node::at(document.element_position(element))));
                        }
                    }
                    return Ok(None);
                }
                Rest::Attributes { position, at, end } => {
                    while let Some(attribute) = take_one(at, *end) {
                        budget.charge(1)?;
                        if test.takes_attribute(document, attribute) {
                            return Ok(Some(Node::attribute(*position, attribute)));
                        }
                    }
                    return Ok(None);
                }
                _ => {}
            }
        }
        while let Some(node) = self.next(document) {
            if charge_visit(document, test, node, budget)? && test.takes(document, node) {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }
}

/// Charges for a node; false if it is a comment or an instruction that the test passes over: those
/// cost nothing, so that it makes no difference whether the tree has them.
#[inline(always)]
fn charge_visit(
    document: &Document<'_>,
    test: &Test<'_>,
    node: Node,
    budget: &mut Budget,
) -> Within<bool> {
    let is_hidden = !test.sees_markup
        && node.is_main()
        && matches!(document.main(node.position()), Main::Markup(_));
    if !is_hidden {
        budget.charge(1)?;
    }
    Ok(!is_hidden)
}

#[inline(always)]
fn take_one(at: &mut u32, end: u32) -> Option<u32> {
    let one = (*at < end).then_some(*at)?;
    *at += 1;
    Some(one)
}

/// First position that the following axis of a node has.
fn after(document: &Document<'_>, node: Node) -> u32 {
    // What is inside an element comes after its attributes, and is inside none of them.
    if node.is_main() { document.end(node.position()) } else { node.position() + 1 }
}

fn following(document: &Document<'_>, test: &Test<'_>, from: u32) -> Rest {
    let tree = document.tree;
    match test.range() {
        Range::Elements => {
            Rest::Elements { at: document.element_from(from), end: tree.len() as u32 }
        }
        Range::Texts => {
            Rest::Texts { at: document.text_from(from), end: tree.text_value.len() as u32 }
        }
        Range::All => Rest::Positions { at: from, end: document.len() },
    }
}

fn children(document: &Document<'_>, test: &Test<'_>, position: u32) -> Rest {
    let (at, end) = match document.main(position) {
        Main::Document => (0, document.tree.len() as u32),
        Main::Element(element) => (element + 1, document.tree.element_end[element as usize]),
        Main::Text(_) | Main::Markup(_) => return Rest::Nothing,
    };
    match test.range() {
        Range::Elements => Rest::SiblingElements { at, end },
        _ => Rest::SiblingPositions { at: position + 1, end: document.end(position) },
    }
}

fn descendants(document: &Document<'_>, test: &Test<'_>, position: u32) -> Rest {
    let tree = document.tree;
    let (elements, texts) = match document.main(position) {
        Main::Document => (0..tree.len() as u32, 0..tree.text_value.len() as u32),
        Main::Element(element) => {
            let at = element as usize;
            (element + 1..tree.element_end[at], tree.text_start[at]..tree.text_end[at])
        }
        Main::Text(_) | Main::Markup(_) => return Rest::Nothing,
    };
    match test.range() {
        Range::Elements => Rest::Elements { at: elements.start, end: elements.end },
        Range::Texts => Rest::Texts { at: texts.start, end: texts.end },
        Range::All => Rest::Positions { at: position + 1, end: document.end(position) },
    }
}

fn siblings_after(document: &Document<'_>, test: &Test<'_>, position: u32) -> Rest {
    let Some(parent) = document.parent(position) else {
        return Rest::Nothing;
    };
    let (at, end) = (document.end(position), document.end(parent));
    if test.range() != Range::Elements {
        return Rest::SiblingPositions { at, end };
    }
    let element_end = match document.main(parent) {
        Main::Element(parent) => document.tree.element_end[parent as usize],
        _ => document.tree.len() as u32,
    };
    let first = match document.main(position) {
        Main::Element(element) => document.tree.element_end[element as usize],
        _ => document.element_from(at),
    };
    Rest::SiblingElements { at: first, end: element_end }
}

fn namespaces(document: &Document<'_>, position: u32, element: u32) -> Rest {
    let declared = document.declarations(element);
    let mut nodes = Vec::with_capacity(declared.len() + 1);
    nodes.push(Node::xml_namespace(position));
    nodes.extend(declared.iter().map(|&it| Node::declaration(position, it)));
    Rest::List(nodes.into_iter())
}

/// Positions for which memory is kept although messages are much smaller.
const IDLE_MAX: usize = 1 << 13;

/// Which positions have been visited; keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: Vec<u32>,
    round: u32,
}

impl Marks {
    /// Forgets all marks. Cost: constant, once the memory is there.
    pub fn begin(&mut self, positions: u32) {
        let is_idle = self.marks.len() / 8 > (positions as usize).max(IDLE_MAX);
        if self.round == u32::MAX || is_idle {
            self.marks = Vec::new();
            self.round = 0;
        }
        self.round += 1;
        if self.marks.len() < positions as usize {
            self.marks.resize(positions as usize, 0);
        }
    }

    /// Marks a position; false if it is marked already.
    fn mark(&mut self, position: u32) -> bool {
        let mark = &mut self.marks[position as usize];
        let is_new = *mark != self.round;
        *mark = self.round;
        is_new
    }
}

/// An axis from a set: every node once, in no particular order.
#[derive(Debug)]
pub(super) struct SetWalk<'s> {
    contexts: std::slice::Iter<'s, Node>,
    axis: Axis,
    walk: Walk,
    /// One past what the descendants visited so far cover.
    covered: u32,
    /// For axes on which context nodes lead to the same nodes.
    pub marks: Option<Marks>,
}

impl<'s> SetWalk<'s> {
    /// Whether a walk from so many context nodes needs marks.
    pub fn needs_marks(axis: Axis, contexts: usize) -> bool {
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
    pub fn new(
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
    pub fn next_passing(
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
        let is_seen = charge_visit(document, test, node, budget)?;
        if node.is_main() && !marks.mark(node.position()) {
            *walk = Walk::NOTHING;
            return Ok(None);
        }
        if is_seen && test.takes(document, node) {
            return Ok(Some(node));
        }
    }
    Ok(None)
}
