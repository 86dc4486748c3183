//! The axes from one node, in axis order (XPath 1.0, 2.2).

use super::budget::{Budget, Within};
use super::document::{Document, Main, Node};
use super::node_test::{Range, Test};
use crate::language::xpath::ast::Axis;

/// An axis from one context node: the nodes still to be visited, in axis order.
#[derive(Debug)]
pub(crate) struct Walk {
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
    /// Children that are elements or texts.
    ElementsAndTexts {
        element: u32,
        element_end: u32,
        text: u32,
        text_end: u32,
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
    /// Elements before an element or a place between elements, without the ancestors.
    ElementsBefore {
        at: u32,
        ancestor: u32,
    },
    TextsBefore {
        at: u32,
    },
    SiblingsBefore {
        at: Option<u32>,
        with_markup: bool,
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
    pub(crate) const NOTHING: Walk = Walk { first: None, rest: Rest::Nothing };

    /// Begins at a context node.
    pub(crate) fn new(document: &Document<'_>, axis: Axis, test: &Test<'_>, node: Node) -> Walk {
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
            Axis::Preceding => preceding(document, test, position),
            _ if !node.is_main() => Rest::Nothing,
            Axis::Child => children(document, test, position),
            Axis::Descendant | Axis::DescendantOrSelf => descendants(document, test, position),
            Axis::FollowingSibling => siblings_after(document, test, position),
            Axis::PrecedingSibling => {
                let with_markup = test.sees_markup;
                let at = document.sibling_before(position, with_markup);
                Rest::SiblingsBefore { at, with_markup }
            }
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
    pub(crate) fn next(&mut self, document: &Document<'_>) -> Option<Node> {
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
            Rest::ElementsAndTexts { element, element_end, text, text_end } => {
                let tree = document.tree;
                let has_element = *element < *element_end;
                let texts =
                    if has_element { tree.text_start[*element as usize] } else { *text_end };
                if let Some(text) = take_one(text, texts) {
                    return Some(Node::at(document.text_position(text)));
                }
                let found = has_element.then_some(*element)?;
                *text = tree.text_end[found as usize];
                *element = tree.element_end[found as usize];
                Some(Node::at(document.element_position(found)))
            }
            Rest::Positions { at, end } => Some(Node::at(take_one(at, *end)?)),
            Rest::SiblingPositions { at, end } => {
                let position = (*at < *end).then_some(*at)?;
                *at = document.end(position);
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
            backward => backward.next_backward(document),
        }
    }

    /// The next node that passes. Cost: one step for each node visited.
    pub(crate) fn next_passing(
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
            budget.charge(1)?;
            if test.takes(document, node) {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }
}

impl Rest {
    /// The next node of an axis that leads backward among elements, texts and positions.
    fn next_backward(&mut self, document: &Document<'_>) -> Option<Node> {
        match self {
            Rest::Before { at, ancestor } => {
                *at = at.checked_sub(1)?;
                while Some(*at) == *ancestor {
                    *ancestor = document.parent(*at);
                    *at = at.checked_sub(1)?;
                }
                Some(Node::at(*at))
            }
            Rest::ElementsBefore { at, ancestor } => {
                *at = at.checked_sub(1)?;
                while *at == *ancestor {
                    *ancestor = document.tree.parent[*at as usize];
                    *at = at.checked_sub(1)?;
                }
                Some(Node::at(document.element_position(*at)))
            }
            Rest::TextsBefore { at } => {
                *at = at.checked_sub(1)?;
                Some(Node::at(document.text_position(*at)))
            }
            Rest::SiblingsBefore { at, with_markup } => {
                let position = (*at)?;
                *at = document.sibling_before(position, *with_markup);
                Some(Node::at(position))
            }
            _ => None,
        }
    }
}

#[inline(always)]
fn take_one(at: &mut u32, end: u32) -> Option<u32> {
    let one = (*at < end).then_some(*at)?;
    *at += 1;
    Some(one)
}

/// First position that the following axis of a node has.
pub(crate) fn after(document: &Document<'_>, node: Node) -> u32 {
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

fn preceding(document: &Document<'_>, test: &Test<'_>, position: u32) -> Rest {
    match test.range() {
        Range::Elements => Rest::ElementsBefore {
            at: document.element_from(position),
            ancestor: document.parent_element(position),
        },
        Range::Texts => Rest::TextsBefore { at: document.text_from(position) },
        Range::All => Rest::Before { at: position, ancestor: document.parent(position) },
    }
}

fn children(document: &Document<'_>, test: &Test<'_>, position: u32) -> Rest {
    let tree = document.tree;
    let (element, element_end, text, text_end) = match document.main(position) {
        Main::Document => (0, tree.len() as u32, 0, 0),
        Main::Element(element) => {
            let at = element as usize;
            (element + 1, tree.element_end[at], tree.text_start[at], tree.text_end[at])
        }
        Main::Text(_) | Main::Markup(_) => return Rest::Nothing,
    };
    match test.range() {
        Range::Elements => Rest::SiblingElements { at: element, end: element_end },
        Range::Texts => Rest::ElementsAndTexts { element, element_end, text, text_end },
        Range::All => Rest::SiblingPositions { at: position + 1, end: document.end(position) },
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
    let tree = document.tree;
    let (element_end, text_end) = match document.main(parent) {
        Main::Element(parent) => {
            (tree.element_end[parent as usize], tree.text_end[parent as usize])
        }
        _ => (tree.len() as u32, 0),
    };
    let end = document.end(position);
    let element = match document.main(position) {
        Main::Element(element) => tree.element_end[element as usize],
        _ => document.element_from(end),
    };
    match test.range() {
        Range::Elements => Rest::SiblingElements { at: element, end: element_end },
        Range::Texts => {
            let text = document.text_from(end).min(text_end);
            Rest::ElementsAndTexts { element, element_end, text, text_end }
        }
        Range::All => Rest::SiblingPositions { at: end, end: document.end(parent) },
    }
}

fn namespaces(document: &Document<'_>, position: u32, element: u32) -> Rest {
    let declared = document.declarations(element);
    let mut nodes = Vec::with_capacity(declared.len() + 1);
    nodes.push(Node::xml_namespace(position));
    nodes.extend(declared.iter().map(|&it| Node::declaration(position, it)));
    Rest::List(nodes.into_iter())
}
