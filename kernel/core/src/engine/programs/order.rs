//! `order by` (XQuery 1.0, 3.8.3).

use super::compare::{are_moments, kind_of, promoted};
use super::run::{Evaluator, Keeps, Run};
use super::value::{Item, Slot};
use crate::language::xpath::List;
use crate::language::xquery::syntax::{Clause, ExprId, Number, OrderKey};
use std::cmp::Ordering;

/// Tuples of a FLWOR expression in order: the slots of the variables of each.
pub(super) struct Tuples {
    slots: Vec<Slot>,
    /// Slots of one tuple.
    width: usize,
    order: Vec<u32>,
}

impl Tuples {
    /// The slots of each tuple.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Slot]> {
        self.order.iter().map(|&tuple| {
            let start = tuple as usize * self.width;
            &self.slots[start..start + self.width]
        })
    }
}

impl<'r> Evaluator<'r, '_> {
    /// The tuples for which the condition holds, in order. What is on the stack for variables stays
    /// there.
    pub(crate) fn ordered(
        &mut self,
        clauses: &'r [Clause],
        condition: Option<ExprId>,
        order: List,
    ) -> Run<Tuples> {
        let program = self.program;
        let keys = program.keys(order);
        let mut slots: Vec<Slot> = Vec::new();
        let mut values: Vec<Option<Item>> = Vec::new();
        let mut count: u32 = 0;
        self.tuples(clauses, condition, Keeps::Variables, &mut |evaluator| {
            evaluator.budget.charge(1 + keys.len() as u64)?;
            for clause in clauses {
                match *clause {
                    Clause::Let { variable, .. } => slots.push(evaluator.slot(variable)),
                    Clause::For { variable, position, .. } => {
                        slots.push(evaluator.slot(variable));
                        slots.extend(position.map(|position| evaluator.slot(position)));
                    }
                }
            }
            for key in keys {
                values.push(evaluator.first_atom(key.key)?);
            }
            count += 1;
            Ok(false)
        })?;
        for (at, key) in keys.iter().enumerate() {
            self.make_alike(&mut values, at, keys.len())?;
            self.prepare_texts(&mut values, at, keys.len(), key.is_case_blind)?;
        }
        let mut order: Vec<u32> = (0..count).collect();
        let row = |tuple: u32| {
            let start = tuple as usize * keys.len();
            &values[start..start + keys.len()]
        };
        // Stable: tuples with equal keys stay in their order.
        order.sort_by(|&left, &right| {
            let pairs = keys.iter().zip(row(left).iter().zip(row(right)));
            let mut found = pairs.map(|(key, (left, right))| self.key_ordering(key, *left, *right));
            found.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
        });
        Ok(Tuples { width: slots.len().checked_div(count as usize).unwrap_or(0), slots, order })
    }

    fn slot(&self, variable: u32) -> Slot {
        self.state.slots[variable as usize]
    }

    /// Binds the variables of a tuple again.
    pub(crate) fn restore(&mut self, clauses: &[Clause], tuple: &[Slot]) {
        let mut slots = tuple.iter();
        let mut next = |state: &mut Vec<Slot>, variable: u32| {
            if let Some(&slot) = slots.next() {
                state[variable as usize] = slot;
            }
        };
        for clause in clauses {
            match *clause {
                Clause::Let { variable, .. } => next(&mut self.state.slots, variable),
                Clause::For { variable, position, .. } => {
                    next(&mut self.state.slots, variable);
                    if let Some(position) = position {
                        next(&mut self.state.slots, position);
                    }
                }
            }
        }
    }

    /// Makes the values of one key texts, booleans or numbers, all of them.
    fn make_alike(&mut self, values: &mut [Option<Item>], at: usize, width: usize) -> Run<()> {
        let mut are_texts = true;
        let mut are_booleans = true;
        for value in values.iter().skip(at).step_by(width).flatten() {
            are_texts &= matches!(value, Item::String(_) | Item::Untyped(_));
            are_booleans &= matches!(value, Item::Boolean(_));
        }
        let present = values.iter().skip(at).step_by(width).flatten();
        if are_texts || are_booleans || are_moments(present) {
            return Ok(());
        }
        let mut kind = 0;
        for value in values.iter_mut().skip(at).step_by(width).flatten() {
            let number = self.number_of(*value)?;
            *value = Item::Number(number);
            kind = kind.max(kind_of(number));
        }
        for value in values.iter_mut().skip(at).step_by(width).flatten() {
            if let Item::Number(number) = value {
                *number = promoted(*number, kind);
            }
        }
        Ok(())
    }

    /// Charges for the texts of one key what sorting compares of them, each as often as a merge sort takes it up; by
    /// the case-blind collation, whose order is that of the texts in capital letters, makes them so.
    fn prepare_texts(
        &mut self,
        values: &mut [Option<Item>],
        at: usize,
        width: usize,
        is_case_blind: bool,
    ) -> Run<()> {
        let count = values.len() / width;
        let rounds = (usize::BITS - count.saturating_sub(1).leading_zeros()) as usize;
        for value in values.iter_mut().skip(at).step_by(width).flatten() {
            let (Item::String(text) | Item::Untyped(text)) = *value else { continue };
            self.budget.charge_text(text.len().saturating_mul(rounds))?;
            if is_case_blind {
                let folded = self.bytes(text).to_ascii_uppercase();
                *value = Item::String(self.keep(&folded)?);
            }
        }
        Ok(())
    }

    fn key_ordering(&self, key: &OrderKey, left: Option<Item>, right: Option<Item>) -> Ordering {
        let ranks = |item: Option<Item>| {
            let distance = match item {
                None => 2,
                Some(Item::Number(number)) if number.is_nan() => 1,
                _ => 0,
            };
            if key.is_empty_least { -distance } else { distance }
        };
        let (left_rank, right_rank) = (ranks(left), ranks(right));
        let ordering = left_rank.cmp(&right_rank).then_with(|| match (left, right) {
            (Some(left), Some(right)) if left_rank == 0 => self.value_ordering(left, right),
            _ => Ordering::Equal,
        });
        if key.is_descending { ordering.reverse() } else { ordering }
    }

    fn value_ordering(&self, left: Item, right: Item) -> Ordering {
        match (left, right) {
            (Item::Boolean(left), Item::Boolean(right)) => left.cmp(&right),
            (Item::Number(Number::Integer(left)), Item::Number(Number::Integer(right))) => {
                left.cmp(&right)
            }
            (Item::Number(left), Item::Number(right)) => {
                left.value().partial_cmp(&right.value()).unwrap_or(Ordering::Equal)
            }
            (Item::Moment(left), Item::Moment(right)) => left.instant().cmp(&right.instant()),
            (
                Item::String(left) | Item::Untyped(left),
                Item::String(right) | Item::Untyped(right),
            ) => self.bytes(left).cmp(self.bytes(right)),
            _ => Ordering::Equal,
        }
    }
}
