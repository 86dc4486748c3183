//! Results that a program may not give.
//!
//! A result whose place is told is a node of the message. A result of its own is no boolean: whoever writes a condition
//! means to hear of the messages that fulfil it, and not `false` of the others. Where no result is wanted, two values that
//! every message gives are neither true nor false.

use super::{Clause, Delivered, Expr, ExprId, Function, Part, Program};
use crate::language::functions::Kind;
use crate::language::refusal::Reason;
use crate::language::types::Type;

/// The part for which a program can be no subscription that is delivered so, and the rule that it breaks; none if it can
/// be one.
///
/// Cost: linear in the program.
pub fn undeliverable_part(program: &Program, delivered: Delivered) -> Option<(ExprId, Reason)> {
    let first = |parts: Vec<ExprId>, unwanted, reason| {
        let variables = vec![false; program.slots as usize];
        let mut items = Items { program, unwanted, variables, context: false };
        let part = parts.into_iter().find(|&part| items.may_come_from(part))?;
        Some((part, reason))
    };
    match delivered {
        Delivered::Results => {
            first(deciding_parts(program), Unwanted::Booleans, Reason::BooleanResult)
        }
        Delivered::Nodes => first(all_parts(program), Unwanted::NoNodes, Reason::NoNodeResult),
        Delivered::Condition => match deciding_parts(program)[..] {
            [first, second, ..] if is_one_atom(program, first) && is_one_atom(program, second) => {
                Some((second, Reason::SeveralValues))
            }
            _ => None,
        },
    }
}

/// The parts of the body that its effective boolean value is found from: those in which an expression depends on the
/// message.
pub(crate) fn deciding_parts(program: &Program) -> Vec<ExprId> {
    all_parts(program).into_iter().filter(|&part| has_content(program, part)).collect()
}

/// The parts of the body.
fn all_parts(program: &Program) -> Vec<ExprId> {
    let body = program.body();
    match program.expr(body) {
        Expr::Sequence(list) => program.list(list).to_vec(),
        _ => vec![body],
    }
}

/// Whether an expression of the frame depends on the message, or has one that does within constructors and sequences.
fn has_content(program: &Program, id: ExprId) -> bool {
    let mut waiting = vec![Part::Enclosed(id)];
    while let Some(part) = waiting.pop() {
        match part {
            Part::Text(_) => {}
            Part::Element(element) => {
                waiting.extend_from_slice(program.parts(program.element(element).content));
            }
            Part::Enclosed(id) => match program.expr(id) {
                Expr::Element(element) => waiting.push(Part::Element(element)),
                Expr::Sequence(list) => {
                    waiting.extend(program.list(list).iter().map(|&id| Part::Enclosed(id)));
                }
                _ if program.is_content(id) => return true,
                _ => {}
            },
        }
    }
    false
}

/// Items that may not be among the results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwanted {
    Booleans,
    /// All that are no nodes of the message.
    NoNodes,
}

/// Where unwanted items can come from.
struct Items<'p> {
    program: &'p Program,
    unwanted: Unwanted,
    /// By slot: whether the variable can be one.
    variables: Vec<bool>,
    /// Whether the context item can be one.
    context: bool,
}

impl Items<'_> {
    /// Whether an item of an expression can be unwanted.
    fn may_come_from(&mut self, id: ExprId) -> bool {
        let program = self.program;
        match program.expr(id) {
            Expr::Variable(slot) => self.variables[slot as usize],
            Expr::ContextItem => self.context,
            Expr::SimpleMap { source, body } => {
                let inner = self.may_come_from(source);
                let outer = std::mem::replace(&mut self.context, inner);
                let found = self.may_come_from(body);
                self.context = outer;
                found
            }
            Expr::Sequence(list) => program.list(list).iter().any(|&item| self.may_come_from(item)),
            Expr::If { then, otherwise, .. } => {
                self.may_come_from(then) || self.may_come_from(otherwise)
            }
            Expr::Filter { primary, .. } => self.may_come_from(primary),
            Expr::Flwor { clauses, body, .. } => {
                for &clause in program.clauses(clauses) {
                    let (Clause::For { variable, source: value, .. }
                    | Clause::Let { variable, value }) = clause;
                    self.variables[variable as usize] = self.may_come_from(value);
                    if let Clause::For { position: Some(position), .. } = clause {
                        self.variables[position as usize] = self.unwanted == Unwanted::NoNodes;
                    }
                }
                self.may_come_from(body)
            }
            Expr::Call(function, arguments) if function.gives_argument(0) => {
                let given = program.list(arguments).iter().enumerate();
                let given = given.filter(|&(at, _)| function.gives_argument(at));
                given.fold(false, |found, (_, &each)| self.may_come_from(each) || found)
            }
            Expr::Call(
                Function::Data | Function::DistinctValues | Function::Min | Function::Max,
                arguments,
            ) if self.unwanted == Unwanted::Booleans => {
                program.list(arguments).first().is_some_and(|&each| self.may_come_from(each))
            }
            other => match self.unwanted {
                Unwanted::Booleans => gives_booleans(other),
                Unwanted::NoNodes => !gives_nodes(other),
            },
        }
    }
}

/// Whether an expression of its own can give booleans.
fn gives_booleans(expr: Expr) -> bool {
    match expr {
        Expr::Comparison { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Quantified { .. }
        | Expr::Castable { .. }
        | Expr::InstanceOf { .. }
        | Expr::Cast { to: Type::Boolean, .. } => true,
        Expr::Call(function, _) => is_boolean(function),
        _ => false,
    }
}

/// Whether an expression of its own gives nodes of the message only.
fn gives_nodes(expr: Expr) -> bool {
    expr.gives_ordered_nodes() || matches!(expr, Expr::Call(Function::Id, _))
}

/// Whether an expression gives just one atomic value, whatever the message.
fn is_one_atom(program: &Program, id: ExprId) -> bool {
    use Function::*;
    match program.expr(id) {
        Expr::And(_)
        | Expr::Or(_)
        | Expr::Quantified { .. }
        | Expr::Castable { .. }
        | Expr::InstanceOf { .. } => true,
        Expr::Comparison { is_value, .. } => !is_value,
        Expr::Call(function, _) => {
            let gives_one = matches!(
                function,
                CodepointsToString
                    | Concat
                    | Count
                    | CurrentDate
                    | CurrentDateTime
                    | CurrentTime
                    | EncodeForUri
                    | FormatNumber
                    | ImplicitTimezone
                    | NormalizeUnicode
                    | Number
                    | Replace
                    | String
                    | StringJoin
                    | StringLength
                    | Sum
            );
            // Of two texts of which one is missing nobody can tell whether they are equal.
            gives_one || is_boolean(function) && function != CodepointEqual
        }
        _ => false,
    }
}

fn is_boolean(function: Function) -> bool {
    function.signature().kind == Kind::Boolean
}
