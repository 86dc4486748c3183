//! Comparing atomic values: for operators, `order by`, `min`, `max` and distinctness (XQuery 1.0,
//! 3.5; for pairs that XQuery refuses, XPath 1.0, 3.4).
//!
//! Two values compare by the first of these that applies: as dates or times if both are of one such type, a text being
//! cast to it, and not at all if only one is; as booleans if one is a boolean, where a
//! string or number meets it as a number in an order (`<`); as numbers if one is a number; as
//! strings, by code point, which is the order of UTF-8.

use super::run::{Evaluator, Run};
use super::value::{Item, Slot, Text};
use crate::engine::evaluate::path_machine::PathMachine;
use crate::language::comparison::Comparison;
use crate::language::moments::{Instant, Moment};
use crate::language::numbers::{trim_blanks, untyped_number};
use crate::language::strings;
use crate::language::types::Type;
use crate::language::xquery::syntax::{Expr, ExprId, Number, ValueSet};
use hashbrown::HashSet;
use std::borrow::Cow;
use std::hash::RandomState;

/// Pairs up to which texts are compared pair by pair.
const PAIRS_MAX: usize = 16;

impl Evaluator<'_, '_> {
    /// `left eq right` and the others, of the first items; nothing if there are none.
    pub(crate) fn compare_values(
        &mut self,
        operator: Comparison,
        left: ExprId,
        right: ExprId,
    ) -> Run<Option<bool>> {
        let mark = self.mark();
        let left = self.first_atom(left)?;
        let right = self.first_atom(right)?;
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        let holds = self.pair(operator, left, right)?;
        self.release(mark);
        Ok(Some(holds))
    }

    /// `left = right` and the others: whether some pair compares as asked.
    pub(crate) fn compare_all(
        &mut self,
        operator: Comparison,
        left: ExprId,
        right: ExprId,
    ) -> Run<bool> {
        let mark = self.mark();
        let program = self.program;
        let sides = [(right, left), (left, right)].into_iter();
        let listed = sides.filter(|_| operator == Comparison::Eq).find_map(|(list, other)| {
            let set = program.set(list)?;
            Some((other, list, set))
        });
        let holds = match (listed, self.constant(left), self.constant(right)) {
            (Some((other, list, set)), ..) => self.compare_with_set(other, list, set)?,
            (_, _, Some(value)) => self.compare_with(operator, left, value)?,
            (_, Some(value), None) => self.compare_with(operator.flipped(), right, value)?,
            (_, None, None) => self.compare_sequences(operator, left, right)?,
        };
        self.release(mark);
        Ok(holds)
    }

    /// An expression that is one value without looking at the message.
    fn constant(&self, id: ExprId) -> Option<Item> {
        match self.program.expr(id) {
            Expr::String(range) => Some(Item::String(Text::of_program(range))),
            Expr::Number(number) => Some(Item::Number(number)),
            Expr::Cast { to, operand } => self.cast_literal(to, operand),
            _ => None,
        }
    }

    /// The value of a variable that is one item.
    fn bound_value(&mut self, id: ExprId) -> Run<Option<Item>> {
        let Expr::Variable(slot) = self.program.expr(id) else {
            return Ok(None);
        };
        match self.state.slots[slot as usize] {
            Slot::Item(item) => Ok(Some(self.atomised(item)?)),
            Slot::Run { .. } => Ok(None),
        }
    }

    /// Whether some item of an expression compares with a value as asked.
    fn compare_with(&mut self, operator: Comparison, id: ExprId, value: Item) -> Run<bool> {
        self.some_atom(id, |evaluator, atom| evaluator.pair(operator, atom, value))
    }

    /// Whether some item of an expression is equal to one of a list of literals. Cost: a look-up an item.
    fn compare_with_set(&mut self, id: ExprId, list: ExprId, set: &ValueSet) -> Run<bool> {
        self.some_atom(id, |evaluator, atom| evaluator.is_one_of(atom, list, set))
    }

    /// Whether the atomic value of some item of an expression passes; those after it are not looked at.
    fn some_atom(
        &mut self,
        id: ExprId,
        mut passes: impl FnMut(&mut Self, Item) -> Run<bool>,
    ) -> Run<bool> {
        if let Expr::Path { start, steps } = self.program.expr(id) {
            return self.search(id, start, steps, &mut |evaluator, node| {
                let mark = evaluator.mark();
                let atom = evaluator.atomised(Item::Node(node))?;
                let found = passes(evaluator, atom)?;
                evaluator.release(mark);
                Ok(found)
            });
        }
        let mark = self.state.stack.len();
        self.eval(id)?;
        let mut found = false;
        for index in mark..self.state.stack.len() {
            self.budget.charge(1)?;
            let atom = self.atomised(self.state.stack[index])?;
            found = passes(self, atom)?;
            if found {
                break;
            }
        }
        self.state.stack.truncate(mark);
        Ok(found)
    }

    /// Whether an atomic value is equal to one of a list of literals.
    fn is_one_of(&mut self, atom: Item, list: ExprId, set: &ValueSet) -> Run<bool> {
        let is_string = |text: &[u8]| set.strings.as_ref().is_some_and(|strings| strings.has(text));
        match (atom, &set.numbers) {
            (Item::Untyped(text) | Item::String(text), None) => {
                self.budget.charge_text(text.len())?;
                Ok(is_string(self.bytes(text)))
            }
            (Item::Untyped(text), Some(numbers)) => {
                self.budget.charge_text(text.len())?;
                let bytes = self.bytes(text);
                Ok(is_string(bytes) || numbers.has_number(untyped_number(bytes)))
            }
            _ => {
                let Expr::Sequence(items) = self.program.expr(list) else { return Ok(false) };
                for at in items.range() {
                    self.budget.charge(1)?;
                    let value = match self.program.expr(self.program.lists[at]) {
                        Expr::String(range) => Item::String(Text::of_program(range)),
                        Expr::Number(number) => Item::Number(number),
                        Expr::Negation(operand) => match self.program.expr(operand) {
                            Expr::Number(number) => Item::Number(number.negated()),
                            _ => continue,
                        },
                        _ => continue,
                    };
                    if self.pair(Comparison::Eq, atom, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn compare_sequences(
        &mut self,
        operator: Comparison,
        left: ExprId,
        right: ExprId,
    ) -> Run<bool> {
        if operator == Comparison::Eq {
            for (kept, other) in [(right, left), (left, right)] {
                if let Some(slot) = self.kept_slot(kept)
                    && let Some(holds) = self.compare_with_kept(kept, slot, other)?
                {
                    return Ok(holds);
                }
            }
        }
        if let Some(value) = self.bound_value(right)? {
            return self.compare_with(operator, left, value);
        }
        let lefts = self.state.stack.len();
        self.eval(left)?;
        self.atomise_stack(lefts)?;
        let rights = self.state.stack.len();
        match self.state.stack[lefts..] {
            [] => return Ok(false),
            [value] => {
                self.state.stack.truncate(lefts);
                return self.compare_with(operator.flipped(), right, value);
            }
            _ => {}
        }
        self.eval(right)?;
        self.atomise_stack(rights)?;
        let end = self.state.stack.len();
        let pairs = (rights - lefts).saturating_mul(end - rights);
        let is_text = |item: &Item| matches!(item, Item::String(_) | Item::Untyped(_));
        let is_joined = operator == Comparison::Eq
            && pairs > PAIRS_MAX
            && self.state.stack[lefts..].iter().all(is_text);
        let holds = if is_joined {
            self.have_common(lefts, rights, end)?
        } else {
            self.budget.charge(pairs as u64)?;
            self.some_pair(operator, lefts, rights, end)?
        };
        self.state.stack.truncate(lefts);
        Ok(holds)
    }

    /// Whether some item of an expression is the value of a node that does not change while the
    /// program runs; nothing if it is not for texts to say. A join takes as many steps as it has
    /// nodes, not as it has pairs.
    fn compare_with_kept(&mut self, kept: ExprId, slot: usize, other: ExprId) -> Run<Option<bool>> {
        let mark = self.state.stack.len();
        self.eval(other)?;
        self.atomise_stack(mark)?;
        let is_text = |item: &Item| matches!(item, Item::String(_) | Item::Untyped(_));
        if !self.state.stack[mark..].iter().all(is_text) {
            self.state.stack.truncate(mark);
            return Ok(None);
        }
        self.keep_values(kept, slot)?;
        let mut holds = false;
        for index in mark..self.state.stack.len() {
            if let Item::String(text) | Item::Untyped(text) = self.state.stack[index] {
                self.budget.charge(1)?;
                self.budget.charge_text(text.len())?;
                let values = &self.state.kept_values[slot];
                holds |= values.as_ref().is_some_and(|values| values.contains(self.bytes(text)));
            }
        }
        self.state.stack.truncate(mark);
        Ok(Some(holds))
    }

    fn keep_values(&mut self, kept: ExprId, slot: usize) -> Run<()> {
        if self.state.kept_values[slot].is_some() {
            return Ok(());
        }
        let nodes = self.nodes(kept)?;
        // Values come from messages: the hash is seeded, so that they cannot be made to collide.
        let mut values: HashSet<Box<[u8]>, RandomState> = HashSet::default();
        for &node in &nodes {
            self.budget.charge(1)?;
            self.budget.charge_text(self.document.string_len(node))?;
            values.insert(self.document.string_value(node).into());
        }
        self.give_list(nodes);
        self.state.kept_values[slot] = Some(values);
        Ok(())
    }

    fn some_pair(
        &mut self,
        operator: Comparison,
        lefts: usize,
        rights: usize,
        end: usize,
    ) -> Run<bool> {
        for left in lefts..rights {
            for right in rights..end {
                let (left, right) = (self.state.stack[left], self.state.stack[right]);
                if self.pair(operator, left, right)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether two runs of texts have one in common. Cost: linear.
    fn have_common(&mut self, lefts: usize, rights: usize, end: usize) -> Run<bool> {
        self.budget.charge((end - lefts) as u64)?;
        for index in lefts..end {
            if let Item::String(text) | Item::Untyped(text) = self.state.stack[index] {
                self.budget.charge_text(text.len())?;
            }
        }
        let bytes = |item: &Item| match item {
            Item::String(text) | Item::Untyped(text) => self.bytes(*text),
            _ => b"",
        };
        // Values come from messages: the hash is seeded, so that they cannot be made to collide.
        let stack = &self.state.stack;
        let values: HashSet<&[u8], RandomState> = stack[lefts..rights].iter().map(bytes).collect();
        Ok(stack[rights..end].iter().any(|item| values.contains(bytes(item))))
    }

    /// Whether two atomic values compare as asked.
    pub(crate) fn pair(&mut self, operator: Comparison, left: Item, right: Item) -> Run<bool> {
        let is_order = !matches!(operator, Comparison::Eq | Comparison::Ne);
        let joins_order = |item| matches!(item, Item::Boolean(_) | Item::Untyped(_));
        match (left, right) {
            (Item::Moment(left), Item::Moment(right)) => Ok(holds_moments(operator, left, right)),
            (Item::Moment(moment), other) => self.beside_moment(operator, moment, other),
            (other, Item::Moment(moment)) => self.beside_moment(operator.flipped(), moment, other),
            (Item::Boolean(_), other) | (other, Item::Boolean(_))
                if !is_order || joins_order(other) =>
            {
                for item in [left, right] {
                    if let Item::Untyped(text) = item {
                        self.budget.charge_text(text.len())?;
                    }
                }
                let (left, right) = (self.beside_boolean(left), self.beside_boolean(right));
                Ok(operator.holds(f64::from(u8::from(left)), f64::from(u8::from(right))))
            }
            (
                Item::String(left) | Item::Untyped(left),
                Item::String(right) | Item::Untyped(right),
            ) => {
                self.budget.charge_text(left.len().min(right.len()))?;
                Ok(operator.holds_text(self.bytes(left), self.bytes(right)))
            }
            _ => {
                let (left, right) = (self.number_of(left)?, self.number_of(right)?);
                Ok(match (left, right) {
                    (Number::Integer(left), Number::Integer(right)) => {
                        operator.holds_order(left.cmp(&right))
                    }
                    _ => operator.holds(left.value(), right.value()),
                })
            }
        }
    }

    /// Whether a date or time compares so with a value, of which a text is cast to its type; no other value compares.
    fn beside_moment(&mut self, operator: Comparison, moment: Moment, other: Item) -> Run<bool> {
        let (Item::String(text) | Item::Untyped(text)) = other else {
            return Ok(false);
        };
        self.budget.charge_text(text.len())?;
        let other = Moment::read(moment.kind(), self.bytes(text));
        Ok(other.is_some_and(|other| holds_moments(operator, moment, other)))
    }

    /// A value beside a boolean.
    fn beside_boolean(&self, item: Item) -> bool {
        match item {
            Item::Boolean(value) => value,
            Item::Number(number) => number.is_true(),
            Item::String(text) => !text.is_empty(),
            Item::Untyped(text) => !matches!(trim_blanks(self.bytes(text)), b"false" | b"0"),
            Item::Moment(_) | Item::Node(_) | Item::Built { .. } => true,
        }
    }

    /// `min()` and `max()` of what is on the stack from a place on, which is not empty and atomic.
    ///
    /// Untyped values are numbers. If all others are strings, or booleans, or dates and times of one type, they
    /// compare as such; any other mixture is numbers. NaN is both least and greatest.
    pub(crate) fn extreme(&mut self, mark: usize, is_max: bool, is_case_blind: bool) -> Run<Item> {
        let items = &self.state.stack[mark..];
        let are_strings = items.iter().all(|item| matches!(item, Item::String(_)));
        let are_booleans = items.iter().all(|item| matches!(item, Item::Boolean(_)));
        if !are_strings && !are_booleans && !are_moments(items) {
            self.make_numbers(mark)?;
            let is_nan = |item: &&Item| matches!(item, Item::Number(number) if number.is_nan());
            if let Some(&nan) = self.state.stack[mark..].iter().find(is_nan) {
                return Ok(nan);
            }
        }
        let operator = if is_max { Comparison::Gt } else { Comparison::Lt };
        let mut found = self.state.stack[mark];
        for index in mark + 1..self.state.stack.len() {
            self.budget.charge(1)?;
            let item = self.state.stack[index];
            let is_beyond = match (item, found) {
                (Item::String(one), Item::String(other)) if is_case_blind => {
                    self.budget.charge_text(one.len().min(other.len()))?;
                    let order = strings::order_of(self.bytes(one), self.bytes(other), true);
                    operator.holds_order(order)
                }
                _ => self.pair(operator, item, found)?,
            };
            if is_beyond {
                found = item;
            }
        }
        Ok(found)
    }

    /// Turns atomic values into numbers of the kind that all of them can be promoted to.
    fn make_numbers(&mut self, mark: usize) -> Run<()> {
        let mut kind = 0;
        for index in mark..self.state.stack.len() {
            let number = self.number_of(self.state.stack[index])?;
            self.state.stack[index] = Item::Number(number);
            kind = kind.max(kind_of(number));
        }
        for item in &mut self.state.stack[mark..] {
            if let Item::Number(number) = item {
                *number = promoted(*number, kind);
            }
        }
        Ok(())
    }

    /// Leaves of equal values on the stack the first. Values of types that do not compare are
    /// distinct; NaN is equal to itself.
    pub(crate) fn make_distinct(&mut self, mark: usize, is_case_blind: bool) -> Run<()> {
        #[derive(PartialEq, Eq, Hash)]
        enum Key<'k> {
            Text(Cow<'k, [u8]>),
            Boolean(bool),
            /// Bits of a double that no integer is.
            Double(u64),
            Integer(i64),
            Moment(Type, Instant),
        }
        let count = self.state.stack.len() - mark;
        self.budget.charge(count as u64)?;
        for index in mark..mark + count {
            if let Item::String(text) | Item::Untyped(text) = self.state.stack[index] {
                self.budget.charge_text(text.len())?;
            }
        }
        let mut known: HashSet<Key<'_>, RandomState> = HashSet::default();
        let mut kept = Vec::new();
        for &item in &self.state.stack[mark..] {
            let key = match item {
                Item::String(text) | Item::Untyped(text) => Key::Text(match is_case_blind {
                    true => Cow::Owned(self.bytes(text).to_ascii_lowercase()),
                    false => Cow::Borrowed(self.bytes(text)),
                }),
                Item::Boolean(value) => Key::Boolean(value),
                Item::Number(number) => match whole(number) {
                    Some(value) => Key::Integer(value),
                    None if number.is_nan() => Key::Double(f64::NAN.to_bits()),
                    None => Key::Double(number.value().to_bits()),
                },
                Item::Moment(moment) => {
                    let (kind, instant) = moment.identity();
                    Key::Moment(kind, instant)
                }
                Item::Node(_) | Item::Built { .. } => continue,
            };
            if known.insert(key) {
                kept.push(item);
            }
        }
        drop(known);
        self.state.stack.truncate(mark);
        self.state.stack.extend_from_slice(&kept);
        Ok(())
    }
}

fn holds_moments(operator: Comparison, left: Moment, right: Moment) -> bool {
    if left.kind() == right.kind() {
        return operator.holds_order(left.instant().cmp(&right.instant()));
    }
    // Durations of two types have no order.
    let are_durations = left.kind().is_duration() && right.kind().is_duration();
    are_durations
        && match operator {
            Comparison::Eq => left.identity() == right.identity(),
            Comparison::Ne => left.identity() != right.identity(),
            _ => false,
        }
}

/// Whether all values are of one type, that of dates, times, both, or durations.
pub(super) fn are_moments<'i>(values: impl IntoIterator<Item = &'i Item>) -> bool {
    let mut kinds = values.into_iter().map(|value| match value {
        Item::Moment(moment) => Some(moment.kind()),
        _ => None,
    });
    let first = kinds.next().flatten();
    first.is_some() && kinds.all(|kind| kind == first)
}

/// The integer that a number is equal to.
fn whole(number: Number) -> Option<i64> {
    match number {
        Number::Integer(value) => Some(value),
        // 2^63 as a double; beyond it there are no integers.
        Number::Decimal(value) | Number::Double(value) => {
            let fits = value.fract() == 0.0
                && (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&value);
            fits.then_some(value as i64)
        }
    }
}

pub(super) fn kind_of(number: Number) -> u8 {
    match number {
        Number::Integer(_) => 0,
        Number::Decimal(_) => 1,
        Number::Double(_) => 2,
    }
}

/// A number as one of a kind that is at least as rich.
pub(super) fn promoted(number: Number, kind: u8) -> Number {
    match kind {
        0 => number,
        1 => Number::Decimal(number.value()),
        _ => Number::Double(number.value()),
    }
}
