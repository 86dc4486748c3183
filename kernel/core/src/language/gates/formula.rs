//! What must be there for a subscription to be delivered, as a formula over nodes of the message.
//!
//! A formula speaks of variables: numbers, each a node of the message, [`ROOT`] its document node. [`super::necessary`]
//! builds it, and [`implied`] reads it as XPath: the strongest condition of one node that the formula implies and that
//! XPath can say without variables. What correlates two variables is dropped there, which only weakens.
//!
//! Every formula is a necessary condition of what it was made from. Where it is sufficient too, that is known
//! (`is_exact`), and only such a formula may be negated.

use crate::language::tree::{Expr, Operator, Predicate, Step};

/// A variable: the number of a node.
pub(super) type Variable = u32;

/// The variable of the document node.
pub(super) const ROOT: Variable = 0;

/// A condition over nodes of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    /// It holds always.
    True,
    /// Nothing is known.
    Unknown,
    /// An XPath condition of one node.
    Atom {
        /// The context node.
        variable: Variable,
        /// The condition.
        condition: Expr,
        /// Whether it says all of it.
        is_exact: bool,
    },
    /// A conjunction.
    All(Vec<Formula>),
    /// A disjunction; of nothing, it is false.
    Any(Vec<Formula>),
    /// There is a node at the end of a path, of which something holds.
    Exists {
        /// The node.
        variable: Variable,
        /// Where the path begins.
        base: Variable,
        /// Its steps, one or more.
        steps: Vec<Step>,
        /// Whether the path leads to the nodes that are meant and no others.
        is_exact: bool,
        /// What holds of the node, and of the others.
        inner: Box<Formula>,
    },
}

impl Formula {
    /// The formula that never holds.
    pub(super) const FALSE: Formula = Formula::Any(Vec::new());

    /// Whether it never holds.
    fn is_false(&self) -> bool {
        matches!(self, Formula::Any(parts) if parts.is_empty())
    }

    /// A conjunction, without what is true anyway.
    pub(super) fn all_of(parts: impl IntoIterator<Item = Formula>) -> Formula {
        let mut kept: Vec<Formula> =
            parts.into_iter().filter(|part| *part != Formula::True).collect();
        match kept.len() {
            0 => Formula::True,
            _ if kept.iter().any(Formula::is_false) => Formula::FALSE,
            1 => kept.remove(0),
            _ => Formula::All(kept),
        }
    }

    /// A disjunction, without what is false anyway.
    pub(super) fn any_of(parts: impl IntoIterator<Item = Formula>) -> Formula {
        let mut kept: Vec<Formula> = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_false()) {
            let rest = match kept.last_mut() {
                Some(before) => before.joined_with(part),
                None => Some(part),
            };
            kept.extend(rest);
        }
        match kept.len() {
            _ if kept.contains(&Formula::True) => Formula::True,
            1 => kept.remove(0),
            _ => Formula::Any(kept),
        }
    }

    /// Takes in a disjunct that asks another condition of a node of the same path, so that a list of values that are
    /// written with `or` is one; gives back any other.
    fn joined_with(&mut self, other: Formula) -> Option<Formula> {
        let (
            Formula::Exists { variable, base, steps, is_exact, inner },
            Formula::Exists {
                variable: own,
                base: from,
                steps: way,
                is_exact: exact,
                inner: asked,
            },
        ) = (self, &other)
        else {
            return Some(other);
        };
        let is_same = base == from && is_exact == exact && steps == way;
        match &**asked {
            Formula::Atom { variable: of, condition, is_exact }
                if of == own && is_same && inner.is_atom_of(*variable) =>
            {
                let condition = condition.clone();
                let atom = Formula::Atom { variable: *variable, condition, is_exact: *is_exact };
                match &mut **inner {
                    Formula::Any(parts) => parts.push(atom),
                    inner => *inner = Formula::Any(vec![inner.clone(), atom]),
                }
                None
            }
            _ => Some(other),
        }
    }

    /// Whether it is a condition of one variable, or a disjunction of some.
    fn is_atom_of(&self, wanted: Variable) -> bool {
        match self {
            Formula::Atom { variable, .. } => *variable == wanted,
            Formula::Any(parts) => parts.iter().all(|part| part.is_atom_of(wanted)),
            _ => false,
        }
    }

    /// That a node is at the end of a path; false if nothing can hold of it.
    pub(super) fn exists(
        variable: Variable,
        base: Variable,
        steps: Vec<Step>,
        is_exact: bool,
        inner: Formula,
    ) -> Formula {
        if inner.is_false() {
            return Formula::FALSE;
        }
        Formula::Exists { variable, base, steps, is_exact, inner: Box::new(inner) }
    }

    /// The opposite, if it can be said of one node; else nothing is known.
    pub(super) fn negated(&self) -> Formula {
        if self.is_false() {
            return Formula::True;
        }
        if *self == Formula::True {
            return Formula::FALSE;
        }
        let mut variables = vec![ROOT];
        self.add_free(&mut variables);
        variables.sort_unstable();
        variables.dedup();
        let said = variables.into_iter().rev().find_map(|variable| {
            let condition = call("not", vec![exact(self, variable)?]);
            Some(Formula::Atom { variable, condition, is_exact: true })
        });
        said.unwrap_or(Formula::Unknown)
    }

    /// Adds the variables that it speaks of without binding them.
    fn add_free(&self, variables: &mut Vec<Variable>) {
        match self {
            Formula::True | Formula::Unknown => {}
            Formula::Atom { variable, .. } => variables.push(*variable),
            Formula::All(parts) | Formula::Any(parts) => {
                parts.iter().for_each(|part| part.add_free(variables));
            }
            Formula::Exists { variable, base, inner, .. } => {
                let before = variables.len();
                inner.add_free(variables);
                let mut at = before;
                while at < variables.len() {
                    if variables[at] == *variable {
                        variables.swap_remove(at);
                    } else {
                        at += 1;
                    }
                }
                variables.push(*base);
            }
        }
    }

    /// Whether it speaks of the document node alone.
    fn is_of_root(&self) -> bool {
        let mut variables = Vec::new();
        self.add_free(&mut variables);
        variables.iter().all(|&variable| variable == ROOT)
    }
}

/// The XPath condition of a node that a formula implies.
///
/// Args: `context` is the variable that the context node of the condition stands for; `is_inner`, whether the formula
/// is part of one of which the condition of the document node is asked too, so that what it says of that alone need not
/// be said again.
///
/// Returns the condition; none if there is none but the true one.
///
/// Cost: linear in the formula, times the variables that are nested in it.
pub(super) fn implied(formula: &Formula, context: Variable, is_inner: bool) -> Option<Expr> {
    if is_inner && formula.is_of_root() {
        return None;
    }
    match formula {
        Formula::True | Formula::Unknown => None,
        Formula::Atom { variable, condition, .. } => of_node(*variable, condition, context),
        Formula::All(parts) => {
            let said = parts.iter().filter_map(|part| implied(part, context, is_inner));
            joined(distinct(said), Operator::And)
        }
        Formula::Any(parts) => {
            let said: Option<Vec<Expr>> =
                parts.iter().map(|part| implied(part, context, false)).collect();
            let said = distinct(said?.into_iter());
            Some(joined(said, Operator::Or).unwrap_or_else(|| call("false", Vec::new())))
        }
        Formula::Exists { variable, base, steps, inner, .. } => {
            let here = (*base == context || *base == ROOT).then(|| {
                let condition = implied(inner, *variable, true);
                path_to(*base, steps, condition)
            });
            let rest = implied(inner, context, is_inner);
            joined(distinct([here, rest].into_iter().flatten()), Operator::And)
        }
    }
}

/// The XPath condition of a node that says just what a formula does; none if there is none.
pub(super) fn exact(formula: &Formula, context: Variable) -> Option<Expr> {
    match formula {
        Formula::True => Some(call("true", Vec::new())),
        Formula::Unknown => None,
        Formula::Atom { variable, condition, is_exact } => {
            if *is_exact {
                of_node(*variable, condition, context)
            } else {
                None
            }
        }
        Formula::All(parts) | Formula::Any(parts) => {
            let said: Option<Vec<Expr>> = parts.iter().map(|part| exact(part, context)).collect();
            let is_all = matches!(formula, Formula::All(_));
            let operator = if is_all { Operator::And } else { Operator::Or };
            Some(joined(said?, operator).unwrap_or_else(|| call("false", Vec::new())))
        }
        Formula::Exists { variable, base, steps, is_exact, inner } => {
            let condition = exact(inner, *variable)?;
            if !is_exact || (*base != context && *base != ROOT) {
                return None;
            }
            let is_true = matches!(&condition, Expr::Call { name: "true", .. });
            Some(path_to(*base, steps, (!is_true).then_some(condition)))
        }
    }
}

/// A condition of a node, where the context node is another or the same.
fn of_node(variable: Variable, condition: &Expr, context: Variable) -> Option<Expr> {
    if variable == context {
        return Some(condition.clone());
    }
    (variable == ROOT).then(|| Expr::Filter {
        primary: Box::new(Expr::Path { is_absolute: true, steps: Vec::new(), offset: 0 }),
        predicates: vec![Predicate { expr: condition.clone(), offset: 0 }],
        offset: 0,
    })
}

/// A path from the document node or the context node, with one more predicate at its end.
fn path_to(base: Variable, steps: &[Step], condition: Option<Expr>) -> Expr {
    let mut steps = steps.to_vec();
    if let (Some(last), Some(expr)) = (steps.last_mut(), condition) {
        last.predicates.push(Predicate { expr, offset: 0 });
    }
    Expr::Path { is_absolute: base == ROOT, steps, offset: 0 }
}

fn distinct(said: impl Iterator<Item = Expr>) -> Vec<Expr> {
    let mut kept = Vec::new();
    for expr in said {
        if !kept.contains(&expr) {
            kept.push(expr);
        }
    }
    kept
}

fn joined(mut operands: Vec<Expr>, operator: Operator) -> Option<Expr> {
    if operands.len() < 2 {
        return operands.pop();
    }
    let operators = vec![operator; operands.len() - 1];
    Some(Expr::Binary { operators, operands, offset: 0, operator_offset: 0 })
}

/// A call.
pub(super) fn call(name: &'static str, arguments: Vec<Expr>) -> Expr {
    Expr::Call { name, arguments, offset: 0 }
}
