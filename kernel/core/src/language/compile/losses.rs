//! What the patterns of a query do not say, and why.

use super::view::View;
use crate::language::query::Operator;
use crate::language::tree::Offset;
use crate::language::xpath::Axis;
use std::fmt;

/// Something that the patterns do not say, and where in the query it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loss<'t> {
    pub(super) reason: Reason<'t>,
    pub(super) offset: Offset,
}

/// Why something is not said; displayed as a clause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reason<'t> {
    /// A construct that is always told alike.
    Construct(&'static str),
    /// A function whose result no condition asks for.
    Call(&'t str),
    /// An axis that no pattern knows.
    Axis(Axis),
    /// Arithmetic.
    Calculation(&'static str),
    /// A function that compares with a part that is no constant.
    ComputedPart(&'t str),
    /// A function that gives a name, compared with part of one.
    PartOfName(&'t str),
    /// A comparison by part, of several nodes.
    OfSeveral(Operator, &'static str),
    /// More alternatives than a query may have.
    Alternatives(usize),
}

impl<'t> Reason<'t> {
    /// What a number is.
    pub(super) fn of_number(expr: View<'t>) -> Self {
        match expr {
            View::Call { name, .. } => Reason::Call(name),
            View::Unary { .. } => Reason::Calculation("-"),
            View::Binary { operators, .. } => Reason::Calculation(operators[0].text()),
            _ => Reason::Construct("uses a number that only the evaluator knows"),
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::Construct(text) => out.write_str(text),
            Reason::Call(name) => write!(out, "uses {name}(), which only the evaluator knows"),
            Reason::Axis(axis) => {
                write!(out, "uses the axis {}, which only the evaluator knows", axis.name())
            }
            Reason::Calculation(operator) => write!(out, "calculates ({operator})"),
            Reason::ComputedPart(name) => write!(out, "{name}() of something that is computed"),
            Reason::PartOfName(name) => write!(out, "{name}() compared with part of a name"),
            Reason::OfSeveral(operator, nodes) => {
                let name = match operator {
                    Operator::Contains => "contains",
                    Operator::Matches => "matches",
                    _ => "starts-with",
                };
                write!(out, "{name}() of {nodes} is for the evaluator")
            }
            Reason::Alternatives(maximum) => write!(out, "has more than {maximum} alternatives"),
        }
    }
}
