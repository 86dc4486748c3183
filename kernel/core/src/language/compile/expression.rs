//! Canonical expression text: what the evaluators run.
//!
//! Every axis is written out, names are `Q{uri}local` (no namespace: `local`), `Q{uri}*`, `*:local` or `*`, every run
//! of binary operators of one level stands in parentheses, and no prefix, variable or abbreviation is left. The text
//! parses back to itself with no namespaces bound. It is XPath 1.0 but for `Q{...}` and `*:local`, and for the
//! predicates of `self::node()`.

use super::layout::build;
use crate::language::number_text::number_text;
use crate::language::query::push_string;
use crate::language::reader::read_canonical;
use crate::language::refusal::Parsed;
use crate::language::tree::{Expr, NameTest, NodeTest, NodeType, Predicate, Step};
use crate::language::xpath::Expression;

impl Expression {
    /// The expression of a tree whose names are resolved.
    pub fn of(resolved: &Expr) -> Expression {
        Expression::laid_out(build(resolved, false))
    }

    /// The expression of a canonical text.
    ///
    /// # Errors
    /// It is no expression, or over a limit.
    pub fn parse(text: &str) -> Parsed<Expression> {
        read_canonical(text).map(|resolved| Expression::of(&resolved))
    }

    /// As [`Expression::parse`]; each evaluation is in many contexts.
    ///
    /// # Errors
    /// It is no expression, or over a limit.
    pub fn parse_for_contexts(text: &str) -> Parsed<Expression> {
        read_canonical(text).map(|resolved| Expression::laid_out(build(&resolved, true)))
    }
}

/// Appends the canonical text of a resolved expression. Cost: linear in the text.
pub(super) fn expression_text(expr: &Expr, out: &mut String) {
    match expr {
        // Bare, a name or * after it would be its first step.
        Expr::Path { is_absolute: true, steps, .. } if steps.is_empty() => out.push_str("(/)"),
        Expr::Path { is_absolute, steps, .. } => {
            if *is_absolute {
                out.push('/');
            }
            push_steps(steps, out);
        }
        Expr::PathFrom { start, steps, .. } => {
            push_primary(start, out);
            out.push('/');
            push_steps(steps, out);
        }
        Expr::Filter { primary, predicates, .. } => {
            push_primary(primary, out);
            push_predicates(predicates, out);
        }
        Expr::Call { name, arguments, .. } => {
            out.push_str(name);
            out.push('(');
            for (at, argument) in arguments.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                expression_text(argument, out);
            }
            out.push(')');
        }
        // Resolved, the one variable is the document node.
        Expr::Variable { .. } => out.push_str("(/)"),
        Expr::Literal { value, .. } => push_string(value, out),
        Expr::Number { value, .. } => out.push_str(&number_text(*value)),
        Expr::Unary { minuses, operand, .. } => {
            out.extend(std::iter::repeat_n('-', *minuses as usize));
            expression_text(operand, out);
        }
        Expr::Binary { operators, operands, .. } => {
            out.push('(');
            let operators = [None].into_iter().chain(operators.iter().map(Some));
            for (operator, operand) in operators.zip(operands) {
                if let Some(&operator) = operator {
                    out.push(' ');
                    out.push_str(operator.text());
                    out.push(' ');
                }
                expression_text(operand, out);
            }
            out.push(')');
        }
    }
}

/// An expression before a predicate or a slash.
fn push_primary(expr: &Expr, out: &mut String) {
    let is_primary = match expr {
        Expr::Call { .. } | Expr::Filter { .. } | Expr::Binary { .. } | Expr::Variable { .. } => {
            true
        }
        Expr::Path { is_absolute, steps, .. } => *is_absolute && steps.is_empty(),
        _ => false,
    };
    if is_primary {
        return expression_text(expr, out);
    }
    out.push('(');
    expression_text(expr, out);
    out.push(')');
}

fn push_steps(steps: &[Step], out: &mut String) {
    for (at, step) in steps.iter().enumerate() {
        if at > 0 {
            out.push('/');
        }
        out.push_str(step.axis.name());
        out.push_str("::");
        match &step.test {
            NodeTest::Name(test) => push_name_test(test, out),
            NodeTest::Type(test, _) => push_node_type(test, out),
        }
        push_predicates(&step.predicates, out);
    }
}

fn push_name_test(test: &NameTest, out: &mut String) {
    match (&test.prefix, &test.uri) {
        (Some(prefix), _) => {
            out.push_str(prefix);
            out.push(':');
        }
        (None, Some(uri)) if !uri.is_empty() || test.local == "*" => {
            out.push_str("Q{");
            out.push_str(uri);
            out.push('}');
        }
        _ => {}
    }
    out.push_str(&test.local);
}

fn push_node_type(test: &NodeType, out: &mut String) {
    let (name, target) = match test {
        NodeType::Comment => ("comment", None),
        NodeType::Node => ("node", None),
        NodeType::Instruction(target) => ("processing-instruction", target.as_deref()),
        NodeType::Text => ("text", None),
    };
    out.push_str(name);
    out.push('(');
    if let Some(target) = target {
        push_string(target, out);
    }
    out.push(')');
}

fn push_predicates(predicates: &[Predicate], out: &mut String) {
    for predicate in predicates {
        out.push('[');
        expression_text(&predicate.expr, out);
        out.push(']');
    }
}
