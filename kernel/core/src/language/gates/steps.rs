//! Steps of a program as steps of XPath.
//!
//! A step keeps its axis and its test. A predicate keeps what can be said of it, which may be less than it asks; where
//! it is less, the nodes that pass are counted differently, so that a position among them means something else:
//! predicates that ask for one are left out from there on.

use super::formula::{Formula, Variable, call, exact, implied};
use super::necessary::{Item, Necessary, Scope};
use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::functions::Kind;
use crate::language::tree::{self, Expr as Condition, NameTest, NodeType, Operator, Predicate};
use crate::language::xquery::{Axis, Expr, ExprId, Function, List, NodeTest, Program, Step};

/// Whether the value of a predicate may be a number, and so a position.
pub(super) fn may_be_number(program: &Program, id: ExprId) -> bool {
    match program.expr(id) {
        Expr::Comparison { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Quantified { .. }
        | Expr::InstanceOf { .. }
        | Expr::Path { .. }
        | Expr::Union(_)
        | Expr::Intersection { .. }
        | Expr::String(_) => false,
        Expr::Call(function, _) => function.signature().kind == Kind::Number,
        Expr::Filter { primary, .. } => may_be_number(program, primary),
        _ => true,
    }
}

impl Necessary<'_> {
    /// That a path from a node leads to another, of which something holds.
    pub(super) fn stepped(
        &mut self,
        base: Variable,
        steps: List,
        scope: Scope<'_>,
        then: &dyn Fn(&mut Self, Item) -> Formula,
    ) -> Formula {
        let mut said = Vec::with_capacity(steps.len());
        let mut is_exact = true;
        let program = self.program;
        for step in program.steps(steps) {
            let (step, is_whole) = self.step(step, scope);
            is_exact &= is_whole;
            said.push(step);
        }
        let node = self.fresh();
        let inner = then(self, Item::node(node));
        Formula::exists(node, base, said, is_exact, inner)
    }

    /// A step as one of XPath; and whether it leads to the same nodes, not to more.
    fn step(&mut self, step: &Step, scope: Scope<'_>) -> (tree::Step, bool) {
        let program = self.program;
        let (test, mut is_whole) = node_test(program, step);
        let mut predicates = Vec::new();
        for &predicate in program.list(step.predicates) {
            let condition = match position(program, predicate) {
                Some(position) => is_whole.then_some(position),
                None => {
                    let (condition, is_all) = self.condition(predicate, scope);
                    is_whole &= is_all;
                    condition
                }
            };
            predicates.extend(condition.map(|expr| Predicate { expr, offset: 0 }));
        }
        (tree::Step { axis: step.axis, test, predicates, offset: 0 }, is_whole)
    }

    /// What a predicate asks of a node; and whether that is all.
    fn condition(&mut self, predicate: ExprId, scope: Scope<'_>) -> (Option<Condition>, bool) {
        let node = self.fresh();
        let formula = self.truth(predicate, scope, Item::node(node));
        let whole = match may_be_number(self.program, predicate) {
            true => None,
            false => exact(&formula, node),
        };
        match whole {
            Some(whole) => (Some(whole), true),
            None => (implied(&formula, node, false), false),
        }
    }
}

/// A predicate that asks for a position and nothing else.
fn position(program: &Program, id: ExprId) -> Option<Condition> {
    let last = || call("last", Vec::new());
    match program.expr(id) {
        Expr::Number(value) => Some(number(value.value())),
        Expr::Call(Function::Last, _) => Some(last()),
        Expr::Comparison { operator, left, right, .. } => {
            let Expr::Call(Function::Position, _) = program.expr(left) else { return None };
            let right = match program.expr(right) {
                Expr::Number(value) => number(value.value()),
                Expr::Call(Function::Last, _) if operator == Comparison::Eq => last(),
                _ => return None,
            };
            Some(compared(call("position", Vec::new()), operator, right))
        }
        _ => None,
    }
}

/// A node test; and whether it says the same as that of the step.
fn node_test(program: &Program, step: &Step) -> (tree::NodeTest, bool) {
    let is_attribute = step.axis == Axis::Attribute;
    let text = |range| Some(program.text(range).to_owned());
    let name = |prefix: Option<&str>, local: &str, uri| {
        let prefix = prefix.map(str::to_owned);
        tree::NodeTest::Name(NameTest { prefix, local: local.to_owned(), uri, offset: 0 })
    };
    let of_type = |node_type| tree::NodeTest::Type(node_type, 0);
    let test = match step.test {
        NodeTest::Any => name(None, "*", None),
        NodeTest::Name { uri, local, .. } => name(None, program.text(local), text(uri)),
        NodeTest::AnyIn { uri } => name(None, "*", text(uri)),
        NodeTest::AnyNamespace { local } => name(Some("*"), program.text(local), None),
        NodeTest::Node | NodeTest::Container => of_type(NodeType::Node),
        NodeTest::Text => of_type(NodeType::Text),
        NodeTest::Comment => of_type(NodeType::Comment),
        NodeTest::Instruction(target) => of_type(NodeType::Instruction(target.and_then(text))),
        // No element is an attribute, and no text is.
        NodeTest::Element if is_attribute => of_type(NodeType::Text),
        NodeTest::Element => name(None, "*", None),
        NodeTest::Attribute if is_attribute => name(None, "*", None),
        NodeTest::Attribute => return (of_type(NodeType::Node), false),
    };
    (test, true)
}

/// A comparison.
pub(super) fn compared(left: Condition, operator: Comparison, right: Condition) -> Condition {
    binary(Operator::Compare(operator), vec![left, right])
}

/// Operands with the same operator between them.
pub(super) fn binary(operator: Operator, operands: Vec<Condition>) -> Condition {
    let operators = vec![operator; operands.len() - 1];
    Condition::Binary { operators, operands, offset: 0, operator_offset: 0 }
}

/// A number, which XPath writes with the sign before it and without infinity.
pub(super) fn number(value: f64) -> Condition {
    let number = |value| Condition::Number { value, offset: 0 };
    let size = match value.abs() {
        size if size.is_infinite() => {
            binary(Operator::Calculate(Arithmetic::Divide), vec![number(1.0), number(0.0)])
        }
        size => number(size),
    };
    if value < 0.0 {
        return Condition::Unary { minuses: 1, operand: Box::new(size), offset: 0 };
    }
    size
}

/// A string.
pub(super) fn literal(value: &str) -> Condition {
    Condition::Literal { value: value.to_owned(), offset: 0 }
}

/// The context node.
pub(super) fn context_node() -> Condition {
    let test = tree::NodeTest::Type(NodeType::Node, 0);
    let step = tree::Step { axis: Axis::Itself, test, predicates: Vec::new(), offset: 0 };
    Condition::Path { is_absolute: false, steps: vec![step], offset: 0 }
}
