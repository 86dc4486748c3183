//! What is asked of a syntax tree: its type, how deep it nests, how many ways it has to hold.

use crate::language::functions::find_in_xpath;
use crate::language::query::DEPTH_MAX;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::tree::{Expr, Operator, Predicate, Step};
use crate::language::xpath::Kind;

/// The type of an expression; known before evaluation, for there are no variables.
pub fn kind_of(expr: &Expr) -> Kind {
    match expr {
        Expr::Call { name, .. } => find_in_xpath(name).map_or(Kind::Nodes, |found| found.kind),
        Expr::Literal { .. } => Kind::String,
        Expr::Number { .. } | Expr::Unary { .. } => Kind::Number,
        Expr::Binary { operators, .. } => kind_of_run(operators),
        _ => Kind::Nodes,
    }
}

/// The type of a run of operators, which are of one level.
pub(crate) fn kind_of_run(operators: &[Operator]) -> Kind {
    match operators[0] {
        Operator::Union => Kind::Nodes,
        Operator::Calculate(_) => Kind::Number,
        _ => Kind::Boolean,
    }
}

/// How deep operators, calls and predicates stand within one another. Linear in the tree; it does not recurse.
///
/// A number too large for a double counts as the division that stands for it once names are resolved.
pub fn nesting(expr: &Expr) -> usize {
    let depths = Parts::of(expr).map(|(part, depth)| match part {
        Expr::Number { value, .. } if value.is_infinite() => depth + 1,
        _ => depth,
    });
    depths.max().unwrap_or(0)
}

/// Refuses a tree that nests deeper than a query may: operators of many levels within one another would exhaust the
/// stack of what walks it.
pub fn check_nesting(expr: &Expr) -> Parsed<()> {
    if nesting(expr) > 2 * DEPTH_MAX {
        return Err(Refusal::new(0, Reason::TooDeep, vec![DEPTH_MAX.into()]));
    }
    Ok(())
}

/// How many expressions there are within one another, itself counted. Linear in the tree; it does not recurse.
pub fn size(expr: &Expr) -> usize {
    Parts::of(expr).count()
}

/// How many disjuncts an expression writes: operands of `or` and of unions. Linear in the tree; it does not recurse.
pub fn disjuncts(expr: &Expr) -> usize {
    let more = Parts::of(expr).map(|(part, _)| match part {
        Expr::Binary { operators, operands, .. }
            if matches!(operators[0], Operator::Or | Operator::Union) =>
        {
            operands.len() - 1
        }
        _ => 0,
    });
    1 + more.sum::<usize>()
}

/// An expression and all within it, each with how deep it stands.
struct Parts<'e> {
    waiting: Vec<(&'e Expr, usize)>,
}

impl<'e> Parts<'e> {
    fn of(expr: &'e Expr) -> Self {
        Parts { waiting: vec![(expr, 0)] }
    }

    fn predicates(&mut self, predicates: &'e [Predicate], depth: usize) {
        self.waiting.extend(predicates.iter().map(|predicate| (&predicate.expr, depth)));
    }

    fn steps(&mut self, steps: &'e [Step], depth: usize) {
        for step in steps {
            self.predicates(&step.predicates, depth);
        }
    }
}

impl<'e> Iterator for Parts<'e> {
    type Item = (&'e Expr, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (expr, depth) = self.waiting.pop()?;
        let inner = depth + 1;
        match expr {
            Expr::Path { steps, .. } => self.steps(steps, inner),
            Expr::PathFrom { start, steps, .. } => {
                self.waiting.push((start, inner));
                self.steps(steps, inner);
            }
            Expr::Filter { primary, predicates, .. } => {
                self.waiting.push((primary, inner));
                self.predicates(predicates, inner);
            }
            Expr::Unary { operand, .. } => self.waiting.push((operand, inner)),
            Expr::Call { arguments: parts, .. } | Expr::Binary { operands: parts, .. } => {
                self.waiting.extend(parts.iter().map(|part| (part, inner)));
            }
            Expr::Variable { .. } | Expr::Literal { .. } | Expr::Number { .. } => {}
        }
        Some((expr, depth))
    }
}
