//! An expression as the compiler looks at it: a node of the tree with its lists as slices, so that a part of a run of
//! operators, a filter without its last predicate or an argument that is left out is one, too, without a tree of its
//! own.

use crate::language::functions::find_in_xpath;
use crate::language::reader::kind_of_run;
use crate::language::tree::{Expr, NodeTest, NodeType, Offset, Operator, Predicate, Step};
use crate::language::xpath::Axis;
use crate::language::xpath::ast::Kind;

/// A node of a resolved tree, or what would be one.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'t> {
    Path { is_absolute: bool, steps: &'t [Step], offset: Offset },
    PathFrom { start: &'t Expr, steps: &'t [Step], offset: Offset },
    Filter { primary: &'t Expr, predicates: &'t [Predicate], offset: Offset },
    Call { name: &'t str, arguments: &'t [Expr], offset: Offset },
    Literal { value: &'t str, offset: Offset },
    Number { value: f64, offset: Offset },
    Unary { minuses: u32, operand: &'t Expr, offset: Offset },
    Binary { operators: &'t [Operator], operands: &'t [Expr], offset: Offset },
}

impl<'t> From<&'t Expr> for View<'t> {
    fn from(expr: &'t Expr) -> Self {
        match *expr {
            Expr::Path { is_absolute, ref steps, offset } => {
                View::Path { is_absolute, steps, offset }
            }
            Expr::PathFrom { ref start, ref steps, offset } => {
                View::PathFrom { start, steps, offset }
            }
            Expr::Filter { ref primary, ref predicates, offset } => {
                View::Filter { primary, predicates, offset }
            }
            Expr::Call { name, ref arguments, offset } => View::Call { name, arguments, offset },
            // Resolved, the one variable is the document node.
            Expr::Variable { offset, .. } => View::Path { is_absolute: true, steps: &[], offset },
            Expr::Literal { ref value, offset } => View::Literal { value, offset },
            Expr::Number { value, offset } => View::Number { value, offset },
            Expr::Unary { minuses, ref operand, offset } => {
                View::Unary { minuses, operand, offset }
            }
            Expr::Binary { ref operators, ref operands, offset, .. } => {
                View::Binary { operators, operands, offset }
            }
        }
    }
}

impl<'t> View<'t> {
    /// The path `.`, which a function without an argument stands for.
    pub(super) fn here(offset: Offset) -> View<'t> {
        View::Path { is_absolute: false, steps: &[], offset }
    }

    /// The call `position()`.
    pub(super) fn position(offset: Offset) -> View<'t> {
        View::Call { name: "position", arguments: &[], offset }
    }

    /// The first argument of a call, or the context node.
    pub(super) fn argument(arguments: &'t [Expr], offset: Offset) -> View<'t> {
        arguments.first().map_or_else(|| View::here(offset), View::from)
    }

    /// Where it begins.
    pub(super) fn offset(self) -> Offset {
        match self {
            View::Path { offset, .. }
            | View::PathFrom { offset, .. }
            | View::Filter { offset, .. }
            | View::Call { offset, .. }
            | View::Literal { offset, .. }
            | View::Number { offset, .. }
            | View::Unary { offset, .. }
            | View::Binary { offset, .. } => offset,
        }
    }

    /// Its type (XPath 1.0, 1); without variables, every expression has one.
    pub(super) fn kind(self) -> Kind {
        match self {
            View::Path { .. } | View::PathFrom { .. } | View::Filter { .. } => Kind::Nodes,
            View::Call { name, .. } => find_in_xpath(name).map_or(Kind::Nodes, |it| it.kind),
            View::Literal { .. } => Kind::String,
            View::Number { .. } | View::Unary { .. } => Kind::Number,
            View::Binary { operators, .. } => kind_of_run(operators),
        }
    }

    /// Whether it is the context node and nothing else.
    pub(super) fn is_here(self) -> bool {
        let is_self = |step: &Step| is_bare_node(step, Axis::Itself);
        matches!(self, View::Path { is_absolute: false, steps, .. } if steps.iter().all(is_self))
    }

    /// Whether a node-set has at most one node whatever the message is.
    pub(super) fn is_single(self) -> bool {
        let View::Path { is_absolute, mut steps, .. } = self else { return false };
        if let [before @ .., Step { axis: Axis::Attribute, test, .. }] = steps {
            let NodeTest::Name(test) = test else { return false };
            if test.prefix.is_some() || test.local == "*" {
                return false;
            }
            steps = before;
        }
        if is_absolute && let [Step { axis: Axis::Child, test, .. }, after @ ..] = steps {
            // There is one root element.
            if matches!(test, NodeTest::Type(..)) {
                return false;
            }
            steps = after;
        }
        steps.iter().all(|step| matches!(step.axis, Axis::Itself | Axis::Parent))
    }
}

/// Whether a step is an axis and `node()`, without predicates.
pub(super) fn is_bare_node(step: &Step, axis: Axis) -> bool {
    step.axis == axis
        && matches!(step.test, NodeTest::Type(NodeType::Node, _))
        && step.predicates.is_empty()
}
