//! Casts of atomic values (XQuery and XPath Functions and Operators 3.1, 19).
//!
//! Where XQuery raises an error (FORG0001, FOCA0002, XPTY0004) there is no value, and for a double NaN, as `number()`
//! gives. Of several items the first is cast; several cannot be cast.

use super::run::{Evaluator, Run};
use super::value::{Item, Text};
use crate::engine::evaluate::document::Node;
use crate::engine::evaluate::path_machine::PathMachine;
use crate::language::types::Type;
use crate::language::xquery::casts::{Typed, text_as};
use crate::language::xquery::syntax::{Expr, ExprId, ItemTest, Number, Occurrence};

impl Evaluator<'_, '_> {
    /// The value of an expression as one of a type.
    pub(crate) fn cast(&mut self, to: Type, operand: ExprId) -> Run<Option<Item>> {
        let Some(atom) = self.first_atom(operand)? else {
            return Ok(None);
        };
        let nan = (to == Type::Double).then_some(Item::Number(Number::Double(f64::NAN)));
        Ok(self.cast_atom(to, atom)?.or(nan))
    }

    /// Whether the value of an expression can be cast to a type.
    pub(crate) fn is_castable(
        &mut self,
        to: Type,
        is_optional: bool,
        operand: ExprId,
    ) -> Run<bool> {
        let mark = self.mark();
        self.eval(operand)?;
        let is_castable = match self.state.stack[mark.stack..] {
            [] => is_optional,
            [item] => {
                let atom = self.atomised(item)?;
                self.cast_atom(to, atom)?.is_some()
            }
            _ => false,
        };
        self.release(mark);
        Ok(is_castable)
    }

    /// Whether the items of an expression are of a kind, and as many as asked.
    pub(crate) fn is_instance(
        &mut self,
        wanted: ItemTest,
        occurrence: Occurrence,
        operand: ExprId,
    ) -> Run<bool> {
        let mark = self.mark();
        self.eval(operand)?;
        let mut is_instance = occurrence.allows(self.state.stack.len() - mark.stack);
        for index in mark.stack..self.state.stack.len() {
            if !is_instance {
                break;
            }
            self.budget.charge(1)?;
            let item = self.state.stack[index];
            is_instance = match (wanted, item) {
                (ItemTest::Item, _) => true,
                (ItemTest::Document, Item::Node(node)) => node == Node::ROOT,
                (ItemTest::Node(step), Item::Node(node)) => {
                    let test = self.test(self.program.node_step(step));
                    test.takes(&self.document, node)
                }
                (_, Item::Node(_) | Item::Built { .. }) => false,
                (ItemTest::AnyAtomic, _) => true,
                (ItemTest::Untyped, item) => matches!(item, Item::Untyped(_)),
                (ItemTest::Atomic(to), item) => is_of_type(item, to),
                (ItemTest::Document | ItemTest::Node(_), _) => false,
            };
        }
        self.release(mark);
        Ok(is_instance)
    }

    /// A literal that is cast.
    pub(super) fn cast_literal(&self, to: Type, operand: ExprId) -> Option<Item> {
        let Expr::String(range) = self.program.expr(operand) else { return None };
        let text = Text::of_program(range);
        text_as(to, self.bytes(text)).map(|typed| item_of(typed, text))
    }

    fn cast_atom(&mut self, to: Type, atom: Item) -> Run<Option<Item>> {
        let cast = match (to, atom) {
            (_, Item::String(text) | Item::Untyped(text)) => {
                self.budget.charge_text(text.len())?;
                text_as(to, self.bytes(text)).map(|typed| item_of(typed, text))
            }
            (Type::String, atom) => Some(Item::String(self.text_of(atom)?)),
            (_, Item::Moment(moment)) => moment.cast(to).map(Item::Moment),
            (Type::Boolean, Item::Boolean(_)) => Some(atom),
            (Type::Boolean, Item::Number(number)) => Some(Item::Boolean(number.is_true())),
            (_, Item::Boolean(value)) => {
                Number::Integer(i64::from(value)).cast(to).map(Item::Number)
            }
            (_, Item::Number(number)) => number.cast(to).map(Item::Number),
            // Nodes have been atomised, and nothing reads the value of an element that is built.
            (_, Item::Node(_) | Item::Built { .. }) => None,
        };
        Ok(cast)
    }
}

/// Whether an atomic value is of a type; an integer is a decimal too.
fn is_of_type(item: Item, to: Type) -> bool {
    match item {
        Item::String(_) => to == Type::String,
        Item::Boolean(_) => to == Type::Boolean,
        Item::Number(Number::Integer(_)) => matches!(to, Type::Integer | Type::Decimal),
        Item::Number(Number::Decimal(_)) => to == Type::Decimal,
        Item::Number(Number::Double(_)) => to == Type::Double,
        Item::Moment(moment) => moment.kind() == to,
        Item::Untyped(_) | Item::Node(_) | Item::Built { .. } => false,
    }
}

fn item_of(typed: Typed, text: Text) -> Item {
    match typed {
        Typed::Text => Item::String(text),
        Typed::Boolean(value) => Item::Boolean(value),
        Typed::Number(number) => Item::Number(number),
        Typed::Moment(moment) => Item::Moment(moment),
    }
}
