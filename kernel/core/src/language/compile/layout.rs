//! From a syntax tree to the arena that is evaluated.
//!
//! The tree is resolved: functions, argument counts and types are right, and it nests no deeper than a query may.

use crate::language::comparison::Comparison;
use crate::language::functions::{Function, find_in_xpath};
use crate::language::tree::{self, NodeType, Operator, Predicate};
use crate::language::xpath::analyse;
use crate::language::xpath::ast::{
    Arena, Expr, ExprId, Kind, List, NodeTest, Start, Step, TextRange,
};
use crate::language::xpath::simplify::simplify_steps;
use crate::xml::names::hash_name;

/// The arena of a resolved expression, and its root; see [`analyse::choose_memos`]. Cost: linear in the tree.
pub(super) fn build(resolved: &tree::Expr, has_many_contexts: bool) -> (Arena, ExprId) {
    let mut builder = Builder { arena: Arena::default() };
    let root = builder.expression(resolved);
    analyse::choose_memos(&mut builder.arena, root, has_many_contexts);
    (builder.arena, root)
}

struct Builder {
    arena: Arena,
}

impl Builder {
    fn push(&mut self, expr: Expr) -> ExprId {
        analyse::push(&mut self.arena, expr)
    }

    fn list(&mut self, ids: &[ExprId]) -> List {
        let start = self.arena.lists.len() as u32;
        self.arena.lists.extend_from_slice(ids);
        List { start, end: self.arena.lists.len() as u32 }
    }

    fn keep(&mut self, text: &str) -> TextRange {
        let start = self.arena.text.len() as u32;
        self.arena.text.push_str(text);
        TextRange { start, end: self.arena.text.len() as u32 }
    }

    fn expression(&mut self, expr: &tree::Expr) -> ExprId {
        let expr = match expr {
            tree::Expr::Path { is_absolute, steps, .. } => {
                let start = if *is_absolute { Start::Root } else { Start::Context };
                return self.path(start, steps);
            }
            tree::Expr::PathFrom { start, steps, .. } => {
                let start = self.filtered(start, Vec::new());
                return self.path(start, steps);
            }
            tree::Expr::Filter { primary, predicates, .. } => {
                let start = self.filtered(primary, predicates.iter().collect());
                return self.path(start, &[]);
            }
            // Resolved, the one variable is the document node.
            tree::Expr::Variable { .. } => return self.path(Start::Root, &[]),
            tree::Expr::Call { name, arguments, .. } => {
                let Some(signature) = find_in_xpath(name) else {
                    unreachable!("no other function is left in a resolved tree")
                };
                let arguments: Vec<ExprId> =
                    arguments.iter().map(|argument| self.expression(argument)).collect();
                Expr::Call(signature.function, self.list(&arguments))
            }
            tree::Expr::Literal { value, .. } => Expr::Literal(self.keep(value)),
            tree::Expr::Number { value, .. } => Expr::Number(*value),
            tree::Expr::Unary { minuses, operand, .. } => {
                let operand = self.expression(operand);
                let once = self.negated(operand);
                return if minuses % 2 == 1 { once } else { self.negated(once) };
            }
            tree::Expr::Binary { operators, operands, .. } => {
                return self.run(operators, operands);
            }
        };
        self.push(expr)
    }

    fn negated(&mut self, operand: ExprId) -> ExprId {
        let negated = match self.arena.exprs[operand as usize] {
            Expr::Number(number) => Expr::Number(-number),
            _ => Expr::Negate(operand),
        };
        self.push(negated)
    }

    /// Operators of one level, applied from left to right.
    fn run(&mut self, operators: &[Operator], operands: &[tree::Expr]) -> ExprId {
        let joined: Option<fn(List) -> Expr> = match operators[0] {
            Operator::Or => Some(Expr::Or),
            Operator::And => Some(Expr::And),
            Operator::Union => Some(Expr::Union),
            _ => None,
        };
        if let Some(joined) = joined {
            let mut ids = Vec::with_capacity(operands.len());
            for operand in operands {
                let id = self.expression(operand);
                match (operators[0], self.arena.exprs[id as usize]) {
                    (Operator::Or, Expr::Or(list))
                    | (Operator::And, Expr::And(list))
                    | (Operator::Union, Expr::Union(list)) => {
                        ids.extend_from_slice(self.arena.list(list));
                    }
                    _ => ids.push(id),
                }
            }
            let list = self.list(&ids);
            return self.push(joined(list));
        }
        let mut left = self.expression(&operands[0]);
        for (&operator, operand) in operators.iter().zip(&operands[1..]) {
            let right = self.expression(operand);
            left = self.push(match operator {
                Operator::Calculate(arithmetic) => Expr::Calculate(arithmetic, left, right),
                Operator::Compare(comparison) => Expr::Compare(comparison, left, right),
                Operator::Or | Operator::And | Operator::Union => {
                    unreachable!("operators of one level stand in a run")
                }
                Operator::Cast(_)
                | Operator::CastToMoment(..)
                | Operator::Texts(..)
                | Operator::NumberOf => {
                    unreachable!("gates are not evaluated")
                }
            });
        }
        left
    }

    /// An expression with predicates, those of filters within it before them.
    fn filtered<'e>(&mut self, expr: &'e tree::Expr, mut predicates: Vec<&'e Predicate>) -> Start {
        if let tree::Expr::Filter { primary, predicates: inner, .. } = expr {
            predicates.splice(0..0, inner);
            return self.filtered(primary, predicates);
        }
        let set = self.expression(expr);
        let predicates = self.predicates(predicates);
        Start::Filter { set, predicates: self.list(&predicates) }
    }

    fn path(&mut self, start: Start, steps: &[tree::Step]) -> ExprId {
        let mut made = Vec::with_capacity(steps.len());
        for step in steps {
            made.push(self.step(step));
        }
        simplify_steps(&mut made, matches!(start, Start::Context));
        let first = self.arena.steps.len() as u32;
        self.arena.steps.extend_from_slice(&made);
        let steps = List { start: first, end: self.arena.steps.len() as u32 };
        self.push(Expr::Path { start, steps })
    }

    fn step(&mut self, step: &tree::Step) -> Step {
        let test = self.node_test(&step.test);
        let test_number = self.arena.tests;
        self.arena.tests += 1;
        let predicates = self.predicates(&step.predicates);
        let is_positional = predicates.iter().any(|&id| analyse::is_positional(&self.arena, id));
        let nth = predicates.first().and_then(|&id| analyse::nth(&self.arena, id));
        let predicates = self.list(&predicates);
        Step { axis: step.axis, test, test_number, predicates, is_positional, nth }
    }

    fn node_test(&mut self, test: &tree::NodeTest) -> NodeTest {
        let test = match test {
            tree::NodeTest::Type(NodeType::Comment, _) => return NodeTest::Comment,
            tree::NodeTest::Type(NodeType::Node, _) => return NodeTest::Node,
            tree::NodeTest::Type(NodeType::Text, _) => return NodeTest::Text,
            tree::NodeTest::Type(NodeType::Instruction(target), _) => {
                let target = target.as_ref().map(|target| self.keep(target));
                return NodeTest::Instruction(target);
            }
            tree::NodeTest::Name(test) => test,
        };
        match (&test.prefix, &test.uri) {
            (Some(_), _) => NodeTest::AnyNamespace { local: self.keep(&test.local) },
            (None, None) => NodeTest::Any,
            (None, Some(uri)) if test.local == "*" => NodeTest::AnyIn { uri: self.keep(uri) },
            (None, Some(uri)) => NodeTest::Name {
                uri: self.keep(uri),
                local: self.keep(&test.local),
                hash: hash_name(uri, &test.local),
            },
        }
    }

    /// Predicates, each as something to ask for its truth.
    fn predicates<'p>(
        &mut self,
        predicates: impl IntoIterator<Item = &'p Predicate>,
    ) -> Vec<ExprId> {
        let predicates = predicates.into_iter();
        predicates
            .map(|predicate| {
                let inner = self.expression(&predicate.expr);
                self.as_condition(inner)
            })
            .collect()
    }

    /// A number as predicate is compared with the position (XPath 1.0, 2.4).
    fn as_condition(&mut self, inner: ExprId) -> ExprId {
        if self.arena.kind(inner) != Kind::Number {
            return inner;
        }
        let position = self.push(Expr::Call(Function::Position, List::default()));
        self.push(Expr::Compare(Comparison::Eq, position, inner))
    }
}
