//! What must be there if a number is as asked, or a node-set compares with a constant.
//!
//! A part of [`super::weakening`], which argues for every rule.

use super::constants::{Value, constant_of};
use super::losses::Reason;
use super::moving::Weakener;
use super::spine::{NodeKind, Spine};
use super::string_conditions::Wanted;
use super::view::View;
use crate::language::comparison::Comparison;
use crate::language::query::arrange::comparison;
use crate::language::query::{Constant, Operator};
use crate::language::tree::{Expr, NodeTest, Offset, Step};
use crate::language::xpath::Axis;
use crate::language::xpath::ast::Kind;

impl<'t> Weakener<'t> {
    /// Some node of a node-set compares so with a number or string.
    pub(super) fn nodes_compared(
        &mut self,
        operator: Comparison,
        expr: View<'t>,
        constant: Value<'t>,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        if let Value::String(text) = constant {
            let goal = comparison(operator, Constant::String(text));
            return self.exists(expr, spine, Some(&goal));
        }
        let number = constant.number();
        if number.is_finite() {
            let goal = (Operator::Compare(operator), Constant::Number(number + 0.0));
            return self.exists(expr, spine, Some(&goal));
        }
        if number.is_nan() {
            let is_unequal = operator == Comparison::Ne;
            return if is_unequal { self.exists(expr, spine, None) } else { Vec::new() };
        }
        self.lose_construct("compares with an infinite number", expr.offset());
        self.exists(expr, spine, None)
    }

    /// A number compares so with a constant.
    pub(super) fn number_compared(
        &mut self,
        operator: Comparison,
        expr: View<'t>,
        number: f64,
        spine: &Spine<'t>,
        counts: bool,
    ) -> Vec<Spine<'t>> {
        if number.is_nan() {
            return if operator == Comparison::Ne { vec![spine.clone()] } else { Vec::new() };
        }
        if let View::Call { name, arguments, offset } = expr {
            let holds_for_none = operator.holds(0.0, number);
            match name {
                "position" => return self.position(operator, number, spine, offset, counts),
                "count" => return self.count(operator, arguments, number, spine, offset),
                "number" => return self.converted(operator, arguments, number, spine, offset),
                "string-length" if !holds_for_none => {
                    if !is_any_from_one(operator, number) {
                        self.lose(Reason::of_number(expr), offset);
                    }
                    let argument = View::argument(arguments, offset);
                    return self.string(argument, Wanted::SOMETHING, spine);
                }
                "sum" if !holds_for_none => {
                    self.lose(Reason::of_number(expr), offset);
                    return self.exists(View::argument(arguments, offset), spine, None);
                }
                _ => {}
            }
        }
        self.lose(Reason::of_number(expr), expr.offset());
        if operator == Comparison::Ne {
            return vec![spine.clone()];
        }
        self.number_is_there(expr, spine)
    }

    /// `position()` compares so with a number.
    fn position(
        &mut self,
        operator: Comparison,
        number: f64,
        spine: &Spine<'t>,
        offset: Offset,
        counts: bool,
    ) -> Vec<Spine<'t>> {
        let mut spine = spine.clone();
        if !counts || spine.node().kind != NodeKind::Element || !number.is_finite() {
            let text = "counts positions among what only the evaluator knows";
            self.lose_construct(text, offset);
        } else if let Some(last) = spine.node_mut().stages.last_mut() {
            last.positions.push((operator, number + 0.0));
        }
        vec![spine]
    }

    /// `count()` compares so with a number.
    fn count(
        &mut self,
        operator: Comparison,
        arguments: &'t [Expr],
        number: f64,
        spine: &Spine<'t>,
        offset: Offset,
    ) -> Vec<Spine<'t>> {
        use Comparison::{Eq, Ge, Gt, Ne};
        let nodes = View::argument(arguments, offset);
        if operator.holds(0.0, number) {
            // It holds for no node at all; by these for more, too.
            if !matches!(operator, Ge | Gt) && number.is_finite() {
                let text = "asks by count() for how many there may be at most";
                self.lose_construct(text, offset);
            }
            return vec![spine.clone()];
        }
        let fewest = if matches!(operator, Gt | Ge | Eq) { fewest(operator, number) } else { 1.0 };
        if fewest.is_infinite() {
            return Vec::new();
        }
        if !matches!(operator, Gt | Ge | Ne) {
            self.lose_construct("asks by count() for an exact number", offset);
        }
        if fewest <= 1.0 {
            return self.exists(nodes, spine, None);
        }
        let Some(step) = child_by_name(nodes) else {
            self.lose_construct("asks by count() for more than one", offset);
            return self.exists(nodes, spine, None);
        };
        let ends = self.nth_child(step, fewest, spine, nodes.offset());
        self.ends_or_base(ends, spine, nodes.offset())
    }

    /// `number(x)` compares so with a number.
    fn converted(
        &mut self,
        operator: Comparison,
        arguments: &'t [Expr],
        number: f64,
        spine: &Spine<'t>,
        offset: Offset,
    ) -> Vec<Spine<'t>> {
        let argument = View::argument(arguments, offset);
        let is_unequal = operator == Comparison::Ne;
        match argument.kind() {
            Kind::Number => {
                return self.number_compared(operator, argument, number, spine, false);
            }
            Kind::Nodes => {}
            _ => {
                self.lose(Reason::Call("number"), offset);
                if is_unequal {
                    return vec![spine.clone()];
                }
                return self.number_is_there(argument, spine);
            }
        }
        if is_unequal && !argument.is_here() {
            // The number of no node is NaN, which is unequal, too.
            self.lose_construct("asks for a number that need not be there", offset);
            return vec![spine.clone()];
        }
        if !argument.is_single() {
            self.lose_construct("reads the first node of several as a number", offset);
        }
        self.nodes_compared(operator, argument, Value::Number(number), spine)
    }

    /// What must be there if an expression, as a number, is not NaN.
    pub(super) fn number_is_there(&mut self, expr: View<'t>, spine: &Spine<'t>) -> Vec<Spine<'t>> {
        if constant_of(expr).is_some() {
            return vec![spine.clone()];
        }
        let kind = expr.kind();
        match kind {
            Kind::Nodes => return self.exists(expr, spine, None),
            Kind::String => return self.string(expr, Wanted::SOMETHING, spine),
            _ => {}
        }
        let mut spines = vec![spine.clone()];
        let mut add = |this: &mut Self, operand: View<'t>| {
            let mut found = Vec::with_capacity(spines.len());
            for one in &spines {
                found.extend(this.number_is_there(operand, one));
            }
            spines = found;
        };
        match expr {
            View::Unary { operand, offset, .. } => {
                self.lose(Reason::of_number(expr), offset);
                add(self, operand.into());
            }
            View::Binary { operands, offset, .. } if kind == Kind::Number => {
                self.lose(Reason::of_number(expr), offset);
                for operand in operands {
                    add(self, operand.into());
                }
            }
            View::Call { name: "number" | "floor" | "ceiling" | "round", arguments, offset } => {
                self.lose(Reason::of_number(expr), offset);
                add(self, View::argument(arguments, offset));
            }
            View::Call { name: "sum", offset, .. } => {
                self.lose(Reason::of_number(expr), offset);
            }
            _ => {}
        }
        self.joined(spines, spine, expr.offset())
    }
}

/// The step of a path that is one step to children of the context node, by name.
fn child_by_name(expr: View<'_>) -> Option<&Step> {
    let View::Path { is_absolute: false, steps: [step], .. } = expr else { return None };
    (step.axis == Axis::Child && matches!(step.test, NodeTest::Name(_))).then_some(step)
}

/// The least whole number from 1 on that compares so; infinite if there is none.
fn fewest(operator: Comparison, number: f64) -> f64 {
    let is_whole = number.is_finite() && number.fract() == 0.0 && number >= 1.0;
    let least = match operator {
        Comparison::Gt if number.is_finite() => number.floor() + 1.0,
        Comparison::Ge if number.is_finite() => number.ceil(),
        Comparison::Eq if is_whole => number,
        _ => f64::INFINITY,
    };
    least.max(1.0)
}

/// Whether all whole numbers from 1 on compare so, given that 0 does not.
fn is_any_from_one(operator: Comparison, number: f64) -> bool {
    match operator {
        Comparison::Ne => true,
        Comparison::Gt => number < 1.0,
        Comparison::Ge => number <= 1.0,
        _ => false,
    }
}
