//! Results that a program may not give.
//!
//! A result of its own is no boolean: whoever writes a condition means to hear of the messages that fulfil it, and not
//! `false` of the others. Where no result is wanted, two values that every message gives are neither true nor false.

use super::deciding_parts;
use crate::language::xquery::{Clause, Expr, ExprId, Function, Program};

/// Whether a program can be a subscription: one that is delivered its results, or one that is told whether it holds.
///
/// Cost: linear in the program.
pub fn can_be_delivered(program: &Program, is_condition: bool) -> bool {
    let parts = deciding_parts(program);
    if !is_condition {
        let mut booleans = Booleans { program, variables: vec![false; program.slots as usize] };
        return !parts.into_iter().any(|part| booleans.may_come_from(part));
    }
    match parts[..] {
        [first, second, ..] => ![first, second].iter().all(|&part| is_one_atom(program, part)),
        _ => true,
    }
}

/// Where booleans can come from.
struct Booleans<'p> {
    program: &'p Program,
    /// By slot: whether the variable can be a boolean.
    variables: Vec<bool>,
}

impl Booleans<'_> {
    /// Whether an item of an expression can be a boolean.
    fn may_come_from(&mut self, id: ExprId) -> bool {
        let program = self.program;
        match program.expr(id) {
            Expr::Comparison { .. } | Expr::And(_) | Expr::Or(_) | Expr::Quantified { .. } => true,
            Expr::Variable(slot) => self.variables[slot as usize],
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
                }
                self.may_come_from(body)
            }
            Expr::Call(function, arguments) => match function {
                Function::Data | Function::DistinctValues | Function::Min | Function::Max => {
                    program.list(arguments).first().is_some_and(|&each| self.may_come_from(each))
                }
                _ => is_boolean(function),
            },
            _ => false,
        }
    }
}

/// Whether an expression gives just one atomic value, whatever the message.
fn is_one_atom(program: &Program, id: ExprId) -> bool {
    use Function::*;
    match program.expr(id) {
        Expr::And(_) | Expr::Or(_) | Expr::Quantified { .. } => true,
        Expr::Comparison { is_value, .. } => !is_value,
        Expr::Call(function, _) => {
            let gives_one = matches!(
                function,
                Concat | Count | Number | String | StringJoin | StringLength | Sum
            );
            gives_one || is_boolean(function)
        }
        _ => false,
    }
}

fn is_boolean(function: Function) -> bool {
    use Function::*;
    matches!(
        function,
        Boolean | Contains | Empty | EndsWith | Exists | False | Lang | Not | StartsWith | True
    )
}
