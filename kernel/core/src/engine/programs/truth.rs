//! Truth: effective boolean values (XQuery 1.0, 2.4.3), and whether there is an item at all.
//!
//! The value of no item is false, of a node true, of one atomic value its own. Several atomic values
//! have none in XQuery (FORG0006); they are true here, as one of several nodes is. So neither the
//! order of the items matters nor, from the first node or the second item on, what else there is.

use super::run::{Evaluator, Keeps, Run};
use super::value::Item;
use crate::language::functions::Function;
use crate::language::xpath::List;
use crate::language::xquery::syntax::{Expr, ExprId, Part};

/// The atomic values that have been met so far, none of which has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    One(bool),
}

impl Evaluator<'_, '_> {
    /// The effective boolean value of the frame of a program: [`super::Session::holds`].
    pub(crate) fn frame_holds(&mut self, body: ExprId) -> Run<bool> {
        let program = self.program;
        let parts = match program.expr(body) {
            Expr::Sequence(list) => program.list(list),
            _ => &[body],
        };
        let mut seen = Seen::Nothing;
        for &part in parts {
            let is_decided = match program.expr(part) {
                Expr::Element(number) => self.is_asked_for(number)?,
                _ => program.is_content(part) && self.meets(part, &mut seen)?,
            };
            if is_decided {
                return Ok(true);
            }
        }
        Ok(seen == Seen::One(true))
    }

    /// Whether a content expression of the frame of a program gives an item:
    /// [`super::Session::is_delivered`].
    pub(crate) fn frame_gives_item(&mut self, body: ExprId) -> Run<bool> {
        self.is_content_there(body)
    }

    /// Whether a content expression of a constructor of the frame gives an item.
    fn is_asked_for(&mut self, number: u32) -> Run<bool> {
        let program = self.program;
        for &part in program.parts(program.element(number).content) {
            let is_asked_for = match part {
                Part::Text(_) => false,
                Part::Element(nested) => self.is_asked_for(nested)?,
                Part::Enclosed(id) => self.is_content_there(id)?,
            };
            if is_asked_for {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_content_there(&mut self, id: ExprId) -> Run<bool> {
        match self.program.expr(id) {
            Expr::Element(number) => self.is_asked_for(number),
            Expr::Sequence(list) => {
                for &item in self.program.list(list) {
                    if self.is_content_there(item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(self.program.is_content(id) && self.exists(id)?),
        }
    }

    /// Takes the items of an expression in, until they have decided that the value is true.
    fn meets(&mut self, id: ExprId, seen: &mut Seen) -> Run<bool> {
        match self.program.expr(id) {
            Expr::Path { .. } | Expr::Union(_) | Expr::Intersection { .. } => self.exists(id),
            Expr::Quantified { .. }
            | Expr::Or(_)
            | Expr::And(_)
            | Expr::Comparison { is_value: false, .. } => {
                let truth = self.truth(id)?;
                Ok(seen.take(truth))
            }
            // A constructor may fail, and then the whole does.
            _ if self.program.may_fail => self.meets_in_full(id, seen),
            Expr::Element(_) => Ok(true),
            Expr::Sequence(list) => {
                for &item in self.program.list(list) {
                    if self.meets(item, seen)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expr::Flwor { clauses, condition, body, .. } => {
                let clauses = self.program.clauses(clauses);
                self.tuples(clauses, condition, Keeps::Nothing, &mut |evaluator| {
                    evaluator.meets(body, seen)
                })
            }
            Expr::SimpleMap { source, body } => {
                self.mapped(source, Keeps::Nothing, &mut |evaluator| evaluator.meets(body, seen))
            }
            Expr::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition)? { then } else { otherwise };
                self.meets(chosen, seen)
            }
            _ => self.meets_in_full(id, seen),
        }
    }

    fn meets_in_full(&mut self, id: ExprId, seen: &mut Seen) -> Run<bool> {
        let mark = self.mark();
        self.eval(id)?;
        let mut is_decided = false;
        for item in &self.state.stack[mark.stack..] {
            is_decided |= match item {
                Item::Node(_) | Item::Built { .. } => true,
                atom => seen.take(is_true(atom)),
            };
        }
        self.release(mark);
        Ok(is_decided)
    }

    /// The effective boolean value of an expression (2.4.3); of several atomic values true.
    pub(crate) fn truth(&mut self, id: ExprId) -> Run<bool> {
        match self.program.expr(id) {
            Expr::Or(list) => {
                for &operand in self.program.list(list) {
                    if self.truth(operand)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expr::And(list) => {
                for &operand in self.program.list(list) {
                    if !self.truth(operand)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expr::Comparison { operator, is_value: false, left, right } => {
                self.compare_all(operator, left, right)
            }
            Expr::Quantified { is_every, bindings, condition } => {
                let clauses = self.program.clauses(bindings);
                let found = self.tuples(clauses, None, Keeps::Nothing, &mut |evaluator| {
                    Ok(evaluator.truth(condition)? != is_every)
                })?;
                Ok(found != is_every)
            }
            Expr::Path { .. } | Expr::Union(_) | Expr::Intersection { .. } => self.exists(id),
            Expr::Call(function, list) => self.truth_of_call(id, function, list),
            _ => {
                let mut seen = Seen::Nothing;
                Ok(self.meets(id, &mut seen)? || seen == Seen::One(true))
            }
        }
    }

    fn truth_of_call(&mut self, id: ExprId, function: Function, list: List) -> Run<bool> {
        match (function, self.program.list(list)) {
            (
                Function::Not | Function::Empty | Function::Boolean | Function::Exists,
                &[operand],
            ) => {
                self.budget.charge(1)?;
                match function {
                    Function::Not => Ok(!self.truth(operand)?),
                    Function::Boolean => self.truth(operand),
                    Function::Empty => Ok(!self.exists(operand)?),
                    _ => self.exists(operand),
                }
            }
            _ => {
                let mark = self.mark();
                self.call(id, function, list)?;
                let truth = effective_boolean(&self.state.stack[mark.stack..]);
                self.release(mark);
                Ok(truth)
            }
        }
    }

    /// Whether an expression gives an item.
    pub(crate) fn exists(&mut self, id: ExprId) -> Run<bool> {
        match self.program.expr(id) {
            Expr::Path { start, steps } => self.is_any(id, start, steps),
            Expr::Union(list) => {
                for &operand in self.program.list(list) {
                    if self.exists(operand)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            // A constructor may fail, and then the whole does.
            _ if self.program.may_fail => self.exists_in_full(id),
            Expr::Sequence(list) => {
                for &item in self.program.list(list) {
                    if self.exists(item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expr::Flwor { clauses, condition, body, .. } => {
                let clauses = self.program.clauses(clauses);
                self.tuples(clauses, condition, Keeps::Nothing, &mut |evaluator| {
                    evaluator.exists(body)
                })
            }
            Expr::SimpleMap { source, body } => {
                self.mapped(source, Keeps::Nothing, &mut |evaluator| evaluator.exists(body))
            }
            Expr::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition)? { then } else { otherwise };
                self.exists(chosen)
            }
            Expr::Element(_)
            | Expr::Castable { .. }
            | Expr::InstanceOf { .. }
            | Expr::String(_)
            | Expr::Number(_)
            | Expr::Quantified { .. }
            | Expr::Or(_)
            | Expr::And(_)
            | Expr::ContextItem => Ok(true),
            _ => self.exists_in_full(id),
        }
    }

    fn exists_in_full(&mut self, id: ExprId) -> Run<bool> {
        let mark = self.mark();
        self.eval(id)?;
        let exists = self.state.stack.len() > mark.stack;
        self.release(mark);
        Ok(exists)
    }
}

impl Seen {
    /// Takes one more atomic value in; whether that decides.
    fn take(&mut self, truth: bool) -> bool {
        let is_second = *self != Seen::Nothing;
        *self = Seen::One(truth);
        is_second
    }
}

/// The effective boolean value of items.
pub(super) fn effective_boolean(items: &[Item]) -> bool {
    match items {
        [] => false,
        [item] => is_true(item),
        _ => true,
    }
}

fn is_true(item: &Item) -> bool {
    match item {
        Item::Boolean(value) => *value,
        Item::Number(number) => number.is_true(),
        Item::String(text) | Item::Untyped(text) => !text.is_empty(),
        Item::Moment(_) | Item::Node(_) | Item::Built { .. } => true,
    }
}
