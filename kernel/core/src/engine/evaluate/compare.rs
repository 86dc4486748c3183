//! Comparisons (XPath 1.0, 3.4).

use super::budget::Within;
use super::document::Node;
use super::evaluator::{Evaluator, Text};
use super::path_machine::{Context, PathMachine};
use crate::language::comparison::Comparison;
use crate::language::xpath::ast::{ExprId, Kind, Memo};
use hashbrown::HashSet;
use std::hash::RandomState;

/// Pairs up to which two node-sets are compared node by node.
const PAIRS_MAX: usize = 16;

impl<'a> Evaluator<'a> {
    /// `left op right`.
    pub(crate) fn comparison(
        &mut self,
        comparison: Comparison,
        left: ExprId,
        right: ExprId,
        context: Context,
    ) -> Within<bool> {
        let is_equality = matches!(comparison, Comparison::Eq | Comparison::Ne);
        match (self.arena.kind(left), self.arena.kind(right)) {
            (Kind::Nodes, Kind::Nodes) => self.compare_sets(comparison, left, right, context),
            (Kind::Nodes, other) => self.compare_set(comparison, left, (right, other), context),
            (other, Kind::Nodes) => {
                self.compare_set(comparison.flipped(), right, (left, other), context)
            }
            (Kind::Boolean, _) | (_, Kind::Boolean) if is_equality => {
                let left = self.boolean(left, context)?;
                let right = self.boolean(right, context)?;
                Ok((left == right) == (comparison == Comparison::Eq))
            }
            (Kind::String, Kind::String) if is_equality => {
                let left = self.string(left, context)?;
                let right = self.string(right, context)?;
                self.budget.charge_text(left.len().min(right.len()))?;
                Ok((left == right) == (comparison == Comparison::Eq))
            }
            _ => {
                let left = self.number(left, context)?;
                let right = self.number(right, context)?;
                Ok(comparison.holds(left, right))
            }
        }
    }

    /// A node-set against a value of another type.
    fn compare_set(
        &mut self,
        comparison: Comparison,
        set: ExprId,
        (value, kind): (ExprId, Kind),
        context: Context,
    ) -> Within<bool> {
        let is_equality = matches!(comparison, Comparison::Eq | Comparison::Ne);
        if kind == Kind::String
            && comparison == Comparison::Eq
            && let Some(slot) = self.slot_of_constant(set)
        {
            let text = self.string(value, context)?;
            self.keep_values(slot, set, context)?;
            return self.is_among(slot, &text);
        }
        if kind == Kind::Boolean {
            let left = f64::from(u8::from(self.boolean(set, context)?));
            let right = f64::from(u8::from(self.boolean(value, context)?));
            return Ok(comparison.holds(left, right));
        }
        if kind == Kind::String && is_equality {
            let text = self.string(value, context)?;
            let wants_same = comparison == Comparison::Eq;
            return self.search(set, context, &mut |evaluator, node| {
                Ok(evaluator.has_value(node, &text)? == wants_same)
            });
        }
        let value = self.number(value, context)?;
        self.search(set, context, &mut |evaluator, node| {
            Ok(comparison.holds(evaluator.number_of_node(node)?, value))
        })
    }

    /// Whether the string-value of a node is a string.
    fn has_value(&mut self, node: Node, text: &[u8]) -> Within<bool> {
        if self.document.string_len(node) != text.len() {
            return Ok(false);
        }
        Ok(*self.string_value(node)? == *text)
    }

    /// Two node-sets: some node of one against some node of the other.
    fn compare_sets(
        &mut self,
        comparison: Comparison,
        left: ExprId,
        right: ExprId,
        context: Context,
    ) -> Within<bool> {
        if comparison == Comparison::Eq {
            for (constant, other) in [(left, right), (right, left)] {
                if let Some(slot) = self.slot_of_constant(constant) {
                    self.keep_values(slot, constant, context)?;
                    return self.search(other, context, &mut |evaluator, node| {
                        let text = evaluator.string_value(node)?;
                        evaluator.is_among(slot, &text)
                    });
                }
            }
        }
        let lefts = self.nodes(left, context)?;
        if lefts.is_empty() {
            self.give_list(lefts);
            return Ok(false);
        }
        let rights = self.nodes(right, context)?;
        let answer = match comparison {
            _ if rights.is_empty() => false,
            Comparison::Eq => self.has_equal(&lefts, &rights)?,
            Comparison::Ne => self.has_unequal(&lefts, &rights)?,
            // If any pair will do, so does that of the extremes.
            Comparison::Lt | Comparison::Le => {
                let least = self.extreme(&lefts, f64::min)?;
                let greatest = self.extreme(&rights, f64::max)?;
                comparison.holds(least, greatest)
            }
            Comparison::Gt | Comparison::Ge => {
                let greatest = self.extreme(&lefts, f64::max)?;
                let least = self.extreme(&rights, f64::min)?;
                comparison.holds(greatest, least)
            }
        };
        self.give_list(lefts);
        self.give_list(rights);
        Ok(answer)
    }

    /// The slot of a node-set that is the same in every context: its values are kept as a set, so
    /// that a join takes as many steps as it has nodes, not as it has pairs.
    fn slot_of_constant(&self, id: ExprId) -> Option<u32> {
        match self.arena.facts[id as usize].memo {
            Memo::Once(slot) => Some(slot),
            Memo::No | Memo::PerNode(_) => None,
        }
    }

    fn keep_values(&mut self, slot: u32, id: ExprId, context: Context) -> Within<()> {
        if self.state.store.values(slot).is_some() {
            return Ok(());
        }
        let nodes = self.nodes(id, context)?;
        let mut values = HashSet::default();
        for &node in &nodes {
            self.budget.charge(1)?;
            values.insert(self.string_value(node)?.into_owned());
        }
        self.give_list(nodes);
        self.state.store.keep_values(slot, values);
        Ok(())
    }

    fn is_among(&mut self, slot: u32, text: &[u8]) -> Within<bool> {
        self.budget.charge(1)?;
        self.budget.charge_text(text.len())?;
        Ok(self.state.store.values(slot).is_some_and(|values| values.contains(text)))
    }

    fn has_equal(&mut self, lefts: &[Node], rights: &[Node]) -> Within<bool> {
        if lefts.len() * rights.len() <= PAIRS_MAX {
            for &left in lefts {
                let text = self.string_value(left)?;
                for &right in rights {
                    self.budget.charge(1)?;
                    if self.has_value(right, &text)? {
                        return Ok(true);
                    }
                }
            }
            return Ok(false);
        }
        let (few, many) =
            if lefts.len() <= rights.len() { (lefts, rights) } else { (rights, lefts) };
        // Values come from messages: the hash is seeded, so that they cannot be made to collide.
        let mut values: HashSet<Text<'a>, RandomState> = HashSet::default();
        for &node in few {
            self.budget.charge(1)?;
            values.insert(self.string_value(node)?);
        }
        for &node in many {
            self.budget.charge(1)?;
            if values.contains(&self.string_value(node)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Only sets that have one and the same value throughout have no unequal pair.
    fn has_unequal(&mut self, lefts: &[Node], rights: &[Node]) -> Within<bool> {
        let (Some(&first), others) = (lefts.first(), lefts.iter().skip(1).chain(rights)) else {
            return Ok(false);
        };
        let text = self.string_value(first)?;
        for &node in others {
            self.budget.charge(1)?;
            if !self.has_value(node, &text)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Least or greatest number of a set; NaN if no node is a number.
    fn extreme(&mut self, nodes: &[Node], choose: fn(f64, f64) -> f64) -> Within<f64> {
        let mut extreme = f64::NAN;
        for &node in nodes {
            self.budget.charge(1)?;
            // Of NaN and a number, min and max give the number.
            extreme = choose(extreme, self.number_of_node(node)?);
        }
        Ok(extreme)
    }
}
