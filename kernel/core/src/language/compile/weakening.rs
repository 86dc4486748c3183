//! The necessary conditions of an expression: tree patterns of which one is there if it is true.
//!
//! `holds(expr, spine)` gives spines ([`super::spine`]) that extend a given one. For every construct the claim is:
//!
//! > if a message holds the given spine with some node as its focus, and the expression is true with that node as
//! > context node, then the message holds one of the spines given, with the same node as its focus.
//!
//! If nothing was noted as lost (`losses`), the converse holds too, and the patterns say all of it. Why each construct
//! keeps the claim:
//!
//! - `and`: the operands one after the other, each on what the one before gave. `or`, and a union: the spines of all
//!   operands. `not` goes inwards (De Morgan) to comparisons that have an opposite: those of numbers that are never
//!   NaN, and those of one string. Any other `not` says nothing.
//! - A node-set is true if a walk over its steps has an end ([`super::walking`]).
//! - A comparison of a node-set with a constant is true if a node compares so (XPath 1.0, 3.4): the end of a walk gets
//!   the comparison. With a boolean, it asks whether there is a node. With anything that is not constant, there must at
//!   least be a node; two node-sets need a node each.
//! - A function that takes a string reads the first node of a node-set. If there is at most one (`.`, `..`, one
//!   attribute), that is the node; if not, "some node passes" follows from "the first node passes", whenever no node at
//!   all would not pass. What is not empty needs a node.
//! - The string functions pass on what they must be given: a result of `normalize-space` that has a word comes from a
//!   string that contains it, one of `substring` likewise, and so on.
//! - `count(p) > n` needs a node, and if `p` is one step from the node to its children, a node in position n+1. A
//!   number that is compared, other than by `!=`, is not NaN: so no operand of the arithmetic is, and no node-set in it
//!   is empty.
//! - A cast of XQuery is a comparison of some node, with an opposite as that of numbers: what is no number is unequal.
//! - A name compared with a constant is a node test.
//! - Positions: see [`super::walking`]. `last()`, `lang()`, `id()` say nothing, or little.
//! - A query has as many alternatives as it writes disjuncts, and some more (`alternatives_max`). Where a conjunction
//!   would have more, the operand with more of them stands for both. Other alternatives that are too many become the
//!   one pattern that all of them have in common ([`super::generalising`]).
//!
//! Cost: in proportion to the syntax nodes, times the alternatives at each place.

use super::constants::{Value, compare, constant_of};
use super::expression::expression_text;
use super::losses::Reason;
use super::moving::Weakener;
use super::spine::{Compare, NodeKind, Spine};
use super::string_conditions::{StringTest, Wanted, distinct};
use super::view::View;
use crate::language::comparison::Comparison;
use crate::language::folding::Fold;
use crate::language::folding::TextTest;
use crate::language::moments::Moment;
use crate::language::query::{Constant, Operator as NormalOperator};
use crate::language::tree::{Expr, Offset, Operator};
use crate::language::values::Values;
use crate::language::xpath::ast::Kind;
use std::borrow::Cow;

impl<'t> Weakener<'t> {
    /// The spines of which one is there if an expression is true for the focus; one that is no boolean counts by
    /// `boolean()`. `counts`: `position()` can be said of the focus.
    pub(super) fn holds(
        &mut self,
        expr: View<'t>,
        spine: &Spine<'t>,
        counts: bool,
    ) -> Vec<Spine<'t>> {
        if let Some(value) = constant_of(expr) {
            return if value.boolean() { vec![spine.clone()] } else { Vec::new() };
        }
        match expr {
            View::Binary { operators: [Operator::And, ..], operands, .. } => {
                self.all_of(operands, spine, |this, operand, spine| {
                    this.holds(operand, spine, counts)
                })
            }
            View::Binary { operators: [Operator::Or, ..], operands, offset } => {
                let mut found = Vec::with_capacity(operands.len());
                for part in disjuncts(operands) {
                    found.extend(match part {
                        Disjunct::OneOf(nodes, goal) => self.exists(nodes, spine, Some(&goal)),
                        Disjunct::Other(operand) => self.holds(operand.into(), spine, counts),
                    });
                }
                self.joined(found, spine, offset)
            }
            View::Call { name, arguments, offset } => {
                self.call(name, arguments, offset, spine, counts)
            }
            View::Binary { operators: &[Operator::Cast(operator)], operands, .. } => {
                self.cast(operator, operands, spine)
            }
            View::Binary {
                operators: &[Operator::CastToMoment(to, operator)], operands, ..
            } => {
                let text = constant_of(&operands[1]).map(|constant| constant.string());
                let moment = text.and_then(|text| Moment::read(to, text.as_bytes()));
                let goal = moment
                    .and_then(Moment::bound)
                    .map(|bound| (NormalOperator::Compare(operator), Constant::Moment(to, bound)));
                let nodes = View::from(&operands[0]);
                if goal.is_none() {
                    self.lose_construct(
                        "compares with an instant that no double has",
                        nodes.offset(),
                    );
                }
                self.exists(nodes, spine, goal.as_ref())
            }
            View::Binary {
                operators: &[operator @ (Operator::Texts(..) | Operator::NumberOf)],
                operands,
                ..
            } => {
                let goal = goal_of_set(operator, operands);
                self.exists(View::from(&operands[0]), spine, Some(&goal))
            }
            _ => match compared_sides(expr) {
                Some((operator, left, right)) => {
                    self.comparison(operator, left, right, spine, counts)
                }
                None if expr.kind() == Kind::Nodes => self.exists(expr, spine, None),
                None => self.number_is_there(expr, spine),
            },
        }
    }

    /// Operands that must all be as asked, each on what those before gave; `read` gives the spines of one of them.
    fn all_of(
        &mut self,
        operands: &'t [Expr],
        spine: &Spine<'t>,
        mut read: impl FnMut(&mut Self, View<'t>, &Spine<'t>) -> Vec<Spine<'t>>,
    ) -> Vec<Spine<'t>> {
        let mut spines = vec![spine.clone()];
        for operand in operands {
            let operand = View::from(operand);
            let mut found = Vec::with_capacity(spines.len());
            for before in &spines {
                found.extend(read(self, operand, before));
            }
            let mut found = distinct(found);
            if found.len() > self.alternatives_max {
                // Either side is necessary by itself; the one with more alternatives says more.
                let reason = Reason::Alternatives(self.alternatives_max);
                self.lose(reason, operand.offset());
                let alone = read(self, operand, spine);
                found = if alone.len() > spines.len() { alone } else { spines };
            }
            spines = self.joined(found, spine, operand.offset());
        }
        spines
    }

    /// A call as a condition.
    fn call(
        &mut self,
        name: &'t str,
        arguments: &'t [Expr],
        offset: Offset,
        spine: &Spine<'t>,
        counts: bool,
    ) -> Vec<Spine<'t>> {
        match name {
            "not" => return self.fails(View::from(&arguments[0]), spine, counts),
            "boolean" => return self.holds(View::from(&arguments[0]), spine, counts),
            "starts-with" | "contains" => return self.part(name, arguments, offset, spine),
            "position" | "last" => return vec![spine.clone()],
            "lang" => {
                self.lose(Reason::Call("lang"), offset);
                return vec![spine.clone()];
            }
            _ => {}
        }
        let expr = View::Call { name, arguments, offset };
        match expr.kind() {
            Kind::Nodes => self.exists(expr, spine, None),
            Kind::String => self.string(expr, Wanted::SOMETHING, spine),
            _ => {
                // True is a number that is neither 0 nor NaN.
                let zero = View::Number { value: 0.0, offset };
                let mut found = Vec::new();
                for one in self.comparison(Comparison::Ne, expr, zero, spine, counts) {
                    found.extend(self.number_is_there(expr, &one));
                }
                found
            }
        }
    }

    /// `starts-with` and `contains`.
    fn part(
        &mut self,
        name: &'t str,
        arguments: &'t [Expr],
        offset: Offset,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        let Some(part) = constant_of(&arguments[1]) else {
            self.lose(Reason::ComputedPart(name), offset);
            return vec![spine.clone()];
        };
        let text = part.string();
        if text.is_empty() {
            // Every string starts with the empty one and contains it.
            return vec![spine.clone()];
        }
        let test = if name == "starts-with" { StringTest::Begins } else { StringTest::Has };
        self.string(View::from(&arguments[0]), Wanted { test, text }, spine)
    }

    /// The spines of which one is there if an expression is false for the focus.
    fn fails(&mut self, expr: View<'t>, spine: &Spine<'t>, counts: bool) -> Vec<Spine<'t>> {
        if let Some(value) = constant_of(expr) {
            return if value.boolean() { Vec::new() } else { vec![spine.clone()] };
        }
        match expr {
            View::Binary { operators: [Operator::And, ..], operands, offset } => {
                let mut found = Vec::with_capacity(operands.len());
                for operand in operands {
                    found.extend(self.fails(operand.into(), spine, counts));
                }
                return self.joined(found, spine, offset);
            }
            View::Binary { operators: [Operator::Or, ..], operands, .. } => {
                return self.all_of(operands, spine, |this, operand, spine| {
                    this.fails(operand, spine, counts)
                });
            }
            View::Call { name: "not", arguments: [argument], .. } => {
                return self.holds(argument.into(), spine, counts);
            }
            View::Call { name: "boolean", arguments: [argument], .. } => {
                return self.fails(argument.into(), spine, counts);
            }
            View::Binary { operators: &[Operator::Cast(operator)], operands, .. }
                if is_equality(operator) && View::from(&operands[0]).is_here() =>
            {
                return self.cast(operator.opposite(), operands, spine);
            }
            View::Binary {
                operators:
                    &[operator @ (Operator::Texts(TextTest::Is, Fold::None) | Operator::NumberOf)],
                operands,
                ..
            } if View::from(&operands[0]).is_here() => {
                if let Some(found) = self.is_none_of(operator, operands, spine) {
                    return found;
                }
            }
            _ => {}
        }
        if let Some((operator, left, right)) = compared_sides(expr)
            && has_opposite(operator, left, right)
        {
            return self.comparison(operator.opposite(), left, right, spine, counts);
        }
        self.lose_construct("asks by not() for what must be absent", expr.offset());
        vec![spine.clone()]
    }

    // Comparisons.

    /// Some node, cast to a number, compares so with a number.
    fn cast(
        &mut self,
        operator: Comparison,
        operands: &'t [Expr],
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        let nodes = View::from(&operands[0]);
        let number = constant_of(&operands[1]).map(|constant| constant.number());
        let goal = number.filter(|number| number.is_finite()).map(|number| {
            // Adding 0 makes 0 of -0.
            (NormalOperator::Compare(operator), Constant::Double(number + 0.0))
        });
        if goal.is_none() {
            self.lose_construct("casts and compares with what is no finite number", nodes.offset());
        }
        self.exists(nodes, spine, goal.as_ref())
    }

    /// The context node is none of a few values.
    fn is_none_of(
        &mut self,
        operator: Operator,
        operands: &'t [Expr],
        spine: &Spine<'t>,
    ) -> Option<Vec<Spine<'t>>> {
        let values = values_of_set(operands);
        if values.iter().count() > DENIED_MAX {
            return None;
        }
        let mut spines = vec![spine.clone()];
        for value in values.iter() {
            let constant = match operator {
                Operator::NumberOf => Constant::Double(value.parse().ok()?),
                _ => Constant::String(Cow::Owned(value.to_owned())),
            };
            let goal = (NormalOperator::Compare(Comparison::Ne), constant);
            let nodes = View::from(&operands[0]);
            spines =
                spines.iter().flat_map(|spine| self.exists(nodes, spine, Some(&goal))).collect();
        }
        Some(spines)
    }

    /// A comparison, by the types of its sides (3.4).
    pub(super) fn comparison(
        &mut self,
        operator: Comparison,
        left: View<'t>,
        right: View<'t>,
        spine: &Spine<'t>,
        counts: bool,
    ) -> Vec<Spine<'t>> {
        let (operator, left, constant) = if let Some(constant) = constant_of(right) {
            (operator, left, constant)
        } else if let Some(constant) = constant_of(left) {
            (operator.flipped(), right, constant)
        } else {
            return self.two_sides(operator, left, right, spine);
        };
        let kind = left.kind();
        if kind == Kind::Boolean || matches!(constant, Value::Boolean(_)) {
            return self.truth_compared(operator, left, &constant, spine, counts);
        }
        match (kind, constant) {
            (Kind::Nodes, constant) => self.nodes_compared(operator, left, constant, spine),
            (Kind::Number, constant) => {
                self.number_compared(operator, left, constant.number(), spine, counts)
            }
            (_, Value::String(text)) if is_equality(operator) => {
                self.string_compared(operator == Comparison::Eq, left, Value::String(text), spine)
            }
            _ => {
                self.lose_construct("reads a string as a number", left.offset());
                if operator == Comparison::Ne {
                    return vec![spine.clone()];
                }
                self.string(left, Wanted::SOMETHING, spine)
            }
        }
    }

    /// A comparison of which neither side is constant.
    fn two_sides(
        &mut self,
        operator: Comparison,
        left: View<'t>,
        right: View<'t>,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        self.lose(what_is_compared(left, right), left.offset());
        let kinds = [left.kind(), right.kind()];
        if kinds.contains(&Kind::Boolean) {
            return vec![spine.clone()];
        }
        let is_numeric = !is_equality(operator) || kinds.contains(&Kind::Number);
        let mut spines = vec![spine.clone()];
        for (side, kind) in [left, right].into_iter().zip(kinds) {
            let is_asked = is_numeric && operator != Comparison::Ne;
            if kind != Kind::Nodes && !is_asked {
                continue;
            }
            let mut found = Vec::with_capacity(spines.len());
            for one in &spines {
                found.extend(if kind == Kind::Nodes {
                    self.exists(side, one, None)
                } else {
                    self.number_is_there(side, one)
                });
            }
            spines = found;
        }
        self.joined(spines, spine, left.offset())
    }

    /// A comparison that asks whether an expression is true.
    fn truth_compared(
        &mut self,
        operator: Comparison,
        expr: View<'t>,
        constant: &Value<'t>,
        spine: &Spine<'t>,
        counts: bool,
    ) -> Vec<Spine<'t>> {
        // A node-set beside a boolean is one.
        let is_truth = matches!(expr.kind(), Kind::Boolean | Kind::Nodes) || is_equality(operator);
        if !is_truth {
            let number = View::Number { value: constant.number(), offset: expr.offset() };
            return self.comparison(operator, expr, number, spine, counts);
        }
        let holds_if = |truth| compare(operator, &Value::Boolean(truth), constant);
        match (holds_if(false), holds_if(true)) {
            (true, true) => vec![spine.clone()],
            (false, true) => self.holds(expr, spine, counts),
            (true, false) => self.fails(expr, spine, counts),
            (false, false) => Vec::new(),
        }
    }

    /// A string is another, or is not.
    fn string_compared(
        &mut self,
        is_equal: bool,
        expr: View<'t>,
        constant: Value<'t>,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        let constant = constant.string();
        if is_equal && !constant.is_empty() {
            return self.string(expr, Wanted { test: StringTest::Is, text: constant }, spine);
        }
        if !is_equal && constant.is_empty() {
            return self.string(expr, Wanted::SOMETHING, spine);
        }
        if let View::Call { name: "string", arguments, offset } = expr
            && spine.node().kind == NodeKind::Element
        {
            let path = View::argument(arguments, offset);
            if path.is_here() {
                let comparison = if is_equal { Comparison::Eq } else { Comparison::Ne };
                let goal = (NormalOperator::Compare(comparison), Constant::String(constant));
                return self.exists(path, spine, Some(&goal));
            }
        }
        self.lose_construct("asks for a string that may be empty", expr.offset());
        vec![spine.clone()]
    }
}

/// The operator of a set.
const EQUAL: NormalOperator = NormalOperator::Compare(Comparison::Eq);

/// Values of a set that may be denied one by one.
const DENIED_MAX: usize = 16;

/// The set of a gate's condition.
fn values_of_set(operands: &[Expr]) -> Values<'_> {
    match &operands[1] {
        Expr::Literal { value, .. } => Values::of_text(value),
        _ => unreachable!("gates hold a set as a literal"),
    }
}

/// What the condition asks of a node.
fn goal_of_set(operator: Operator, operands: &[Expr]) -> Compare<'_> {
    let values = values_of_set(operands);
    match operator {
        Operator::Texts(test, fold) => {
            (NormalOperator::of_test(test), Constant::of_texts(test, fold, values))
        }
        _ => (EQUAL, Constant::one_of_doubles(values)),
    }
}

/// An operand of `or`, or several that ask whether the same nodes have one of several values.
enum Disjunct<'t> {
    OneOf(View<'t>, Compare<'t>),
    Other(&'t Expr),
}

/// How nodes are read that compare with the values of a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    String,
    Number,
    Double,
    /// The values are sets, as texts.
    Texts(TextTest, Fold),
}

/// Operands of `or` that compare the same nodes, read alike.
struct Group<'t> {
    /// The nodes as text.
    key: String,
    nodes: View<'t>,
    reading: Reading,
    values: Vec<Value<'t>>,
}

impl<'t> Group<'t> {
    /// That a node has one of the values, of which there are several.
    fn goal(&self) -> Option<Compare<'t>> {
        if self.values.len() < 2 {
            return None;
        }
        let numbers = || Values::of_numbers(self.values.iter().map(Value::number));
        let texts = || self.values.iter().map(|value| value.clone().string()).collect::<Vec<_>>();
        let constant = match self.reading {
            Reading::Texts(test, fold) => {
                let texts = texts();
                let values = texts.iter().flat_map(|set| set.split_terminator('\0'));
                let constant = Constant::of_texts(test, fold, Values::of(values)?);
                return Some((NormalOperator::of_test(test), constant));
            }
            Reading::Number => Constant::one_of_numbers(numbers()?),
            Reading::Double => Constant::one_of_doubles(numbers()?),
            Reading::String => Constant::one_of(Values::of(texts().iter().map(|text| &**text))?),
        };
        Some((EQUAL, constant))
    }
}

/// The operands of `or`, those that compare the same nodes with constants, read alike, as one.
fn disjuncts(operands: &[Expr]) -> Vec<Disjunct<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut found: Vec<(Option<usize>, &Expr)> = Vec::with_capacity(operands.len());
    for operand in operands {
        let Some((nodes, reading, value)) = equal_value(operand) else {
            found.push((None, operand));
            continue;
        };
        let mut key = String::new();
        expression_text(nodes, &mut key);
        let is_same = |group: &&mut Group<'_>| group.reading == reading && group.key == key;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.values.push(value),
            None => {
                found.push((Some(groups.len()), operand));
                let (nodes, values) = (View::from(nodes), vec![value]);
                groups.push(Group { key, nodes, reading, values });
            }
        }
    }
    let disjunct = |(group, operand): (Option<usize>, _)| {
        let group = group.map(|at| &groups[at]);
        match group.and_then(|group| Some((group.nodes, group.goal()?))) {
            Some((nodes, goal)) => Disjunct::OneOf(nodes, goal),
            None => Disjunct::Other(operand),
        }
    };
    found.into_iter().map(disjunct).collect()
}

/// The nodes of `nodes = 'string'` or `nodes = 3`, whichever is left, how they are read, and the constant.
fn equal_value(operand: &Expr) -> Option<(&Expr, Reading, Value<'_>)> {
    let Expr::Binary { operators, operands, .. } = operand else { return None };
    let (&[operator], [left, right]) = (&operators[..], &operands[..]) else { return None };
    [(left, right), (right, left)].into_iter().find_map(|(nodes, constant)| {
        let value = constant_of(constant)?;
        let reading = match (operator, &value) {
            // A set ends its values with a character that no value has.
            (Operator::Compare(Comparison::Eq), Value::String(text)) if !text.contains('\0') => {
                Reading::String
            }
            (Operator::Compare(Comparison::Eq), Value::Number(number)) if number.is_finite() => {
                Reading::Number
            }
            (Operator::Cast(Comparison::Eq), value) if value.number().is_finite() => {
                Reading::Double
            }
            (Operator::Texts(test, fold), Value::String(_)) => Reading::Texts(test, fold),
            _ => return None,
        };
        (View::from(nodes).kind() == Kind::Nodes).then_some((nodes, reading, value))
    })
}

/// Operator and sides of a comparison; of a run of them, the last operator's.
fn compared_sides(expr: View<'_>) -> Option<(Comparison, View<'_>, View<'_>)> {
    let View::Binary { operators, operands, offset } = expr else { return None };
    let ((&Operator::Compare(comparison), operators), (last, operands)) =
        (operators.split_last()?, operands.split_last()?)
    else {
        return None;
    };
    let before = match operands {
        [only] => View::from(only),
        _ => View::Binary { operators, operands, offset },
    };
    Some((comparison, before, View::from(last)))
}

fn is_equality(operator: Comparison) -> bool {
    matches!(operator, Comparison::Eq | Comparison::Ne)
}

/// Whether "does not compare so" is a comparison, too.
fn has_opposite(operator: Comparison, left: View<'_>, right: View<'_>) -> bool {
    let mut sides = [left, right].into_iter();
    if is_equality(operator) {
        return sides.all(|side| side.kind() != Kind::Nodes || side.is_here());
    }
    sides.all(is_never_nan)
}

fn is_never_nan(expr: View<'_>) -> bool {
    if let Some(value) = constant_of(expr) {
        return !value.number().is_nan();
    }
    // Their results are whole numbers.
    matches!(expr, View::Call { name: "position" | "last" | "count" | "string-length", .. })
}

/// What is known of neither side of a comparison.
fn what_is_compared<'t>(left: View<'t>, right: View<'t>) -> Reason<'t> {
    let other = [right, left].into_iter().find(|side| side.kind() != Kind::Nodes);
    other.map_or(Reason::Construct("compares two paths"), Reason::of_number)
}
