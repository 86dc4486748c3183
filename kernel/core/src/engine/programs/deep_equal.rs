//! `deep-equal()` (XQuery and XPath Functions and Operators 3.1, 14.2.1).
//!
//! Comments and instructions within nodes do not count, nor does the order of attributes. Cost: linear in the nodes,
//! times the attributes of an element.

use super::run::{Evaluator, Run};
use super::value::Item;
use crate::engine::evaluate::document::{Main, Node, Sort};
use crate::language::comparison::Comparison;
use crate::language::xquery::syntax::ExprId;

impl Evaluator<'_, '_> {
    /// Whether two sequences have equal items; texts compare without regard to case if there is a third argument.
    pub(crate) fn are_deep_equal(&mut self, arguments: &[ExprId]) -> Run<bool> {
        let mark = self.mark();
        let is_case_blind = arguments.len() > 2;
        self.eval(arguments[0])?;
        let middle = self.state.stack.len();
        self.eval(arguments[1])?;
        let count = middle - mark.stack;
        let mut are_equal = self.state.stack.len() - middle == count;
        for at in 0..count {
            if !are_equal {
                break;
            }
            self.budget.charge(1)?;
            let pair = (self.state.stack[mark.stack + at], self.state.stack[middle + at]);
            are_equal = match pair {
                (Item::Node(left), Item::Node(right)) => {
                    self.are_equal_nodes(left, right, is_case_blind)?
                }
                (Item::Node(_), _) | (_, Item::Node(_)) => false,
                (left, right) => self.are_equal_atoms(left, right, is_case_blind)?,
            };
        }
        self.release(mark);
        Ok(are_equal)
    }

    fn are_equal_atoms(&mut self, left: Item, right: Item, is_case_blind: bool) -> Run<bool> {
        match (left, right) {
            (
                Item::String(left) | Item::Untyped(left),
                Item::String(right) | Item::Untyped(right),
            ) => {
                self.budget.charge_text(left.len().min(right.len()))?;
                let (left, right) = (self.bytes(left), self.bytes(right));
                Ok(is_same_text(left, right, is_case_blind))
            }
            (Item::Number(left), Item::Number(right)) if left.is_nan() && right.is_nan() => {
                Ok(true)
            }
            (Item::Number(_), Item::Number(_))
            | (Item::Boolean(_), Item::Boolean(_))
            | (Item::Moment(_), Item::Moment(_)) => self.pair(Comparison::Eq, left, right),
            _ => Ok(false),
        }
    }

    fn are_equal_nodes(&mut self, left: Node, right: Node, is_case_blind: bool) -> Run<bool> {
        let (document, tree) = (self.document, self.document.tree);
        if left == right {
            return Ok(true);
        }
        match (document.sort(left), document.sort(right)) {
            (Sort::Main(Main::Element(_)), Sort::Main(Main::Element(_))) => {
                self.are_equal_trees(left.position(), right.position(), is_case_blind)
            }
            (Sort::Main(Main::Text(_)), Sort::Main(Main::Text(_))) => {
                self.have_equal_values(left, right, is_case_blind)
            }
            (Sort::Main(Main::Markup(one)), Sort::Main(Main::Markup(other))) => {
                let (one, other) = (one as usize, other as usize);
                let target = |at: usize| document.bytes(tree.markup_target[at]);
                let is_same = tree.markup_kind[one] == tree.markup_kind[other]
                    && target(one) == target(other);
                Ok(is_same && self.have_equal_values(left, right, is_case_blind)?)
            }
            (Sort::Attribute(one), Sort::Attribute(other)) => {
                let name = |attribute: u32| tree.attribute_name[attribute as usize];
                let is_same = name(one) == name(other);
                Ok(is_same && self.have_equal_values(left, right, is_case_blind)?)
            }
            _ => Ok(false),
        }
    }

    /// Whether two elements are equal. Their nodes are looked at in document order, side by side: trees are equal if
    /// each node has an equal one at the same depth.
    fn are_equal_trees(&mut self, left: u32, right: u32, is_case_blind: bool) -> Run<bool> {
        let document = self.document;
        let (mut one, mut other) = (left, right);
        let (one_end, other_end) = (document.end(one), document.end(other));
        let next = |mut at: u32, end: u32| {
            at += 1;
            while at < end && matches!(document.main(at), Main::Markup(_)) {
                at += 1;
            }
            at
        };
        loop {
            self.budget.charge(1)?;
            let depths = [(one, left), (other, right)]
                .map(|(at, start)| self.depth_of(at) - self.depth_of(start));
            let is_same = depths[0] == depths[1]
                && match (document.main(one), document.main(other)) {
                    (Main::Text(_), Main::Text(_)) => {
                        self.have_equal_values(Node::at(one), Node::at(other), is_case_blind)?
                    }
                    (Main::Element(left), Main::Element(right)) => {
                        self.have_equal_tags(left, right, is_case_blind)?
                    }
                    _ => false,
                };
            if !is_same {
                return Ok(false);
            }
            (one, other) = (next(one, one_end), next(other, other_end));
            if one >= one_end || other >= other_end {
                return Ok(one >= one_end && other >= other_end);
            }
        }
    }

    fn depth_of(&self, position: u32) -> u32 {
        let depth = &self.document.tree.depth;
        match self.document.main(position) {
            Main::Element(element) => depth[element as usize],
            _ => depth[self.document.parent_element(position) as usize] + 1,
        }
    }

    /// Whether two elements have the same name and the same attributes.
    fn have_equal_tags(&mut self, left: u32, right: u32, is_case_blind: bool) -> Run<bool> {
        let (document, tree) = (self.document, self.document.tree);
        let (one, other) = (document.attributes(left), document.attributes(right));
        if tree.name[left as usize] != tree.name[right as usize] || one.len() != other.len() {
            return Ok(false);
        }
        self.budget.charge((one.len() * other.len()) as u64)?;
        let name = |attribute: u32| tree.attribute_name[attribute as usize];
        let value = |attribute: u32| document.bytes(tree.attribute_value[attribute as usize]);
        for attribute in one {
            self.budget.charge_text(value(attribute).len())?;
            let found = other.clone().find(|&each| name(each) == name(attribute));
            let is_same =
                found.is_some_and(|it| is_same_text(value(attribute), value(it), is_case_blind));
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn have_equal_values(&mut self, left: Node, right: Node, is_case_blind: bool) -> Run<bool> {
        let document = self.document;
        self.budget.charge_text(document.string_len(left))?;
        let (left, right) = (document.string_value(left), document.string_value(right));
        Ok(is_same_text(&left, &right, is_case_blind))
    }
}

fn is_same_text(left: &[u8], right: &[u8], is_case_blind: bool) -> bool {
    if is_case_blind { left.eq_ignore_ascii_case(right) } else { left == right }
}
