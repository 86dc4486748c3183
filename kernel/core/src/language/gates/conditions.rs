//! What must be there for an expression to be true.
//!
//! Why each part is implied by what XQuery gives:
//!
//! - A comparison of a node with a string by `=` or `!=` is the same in XPath. By `<` it is of strings in XQuery and of
//!   numbers in XPath: nothing is said of it but that both sides have an item.
//! - A comparison of a node with a number casts the value of the node to `xs:double`, which reads more texts than
//!   XPath's `number()`. The tree has an operator for it.
//! - A node that is cast to a type of dates compares as the node does with a date of that type; one that is cast to a
//!   type of numbers has the value of the cast to `xs:double`, where that has all digits.

use super::formula::{Formula, Variable};
use super::necessary::{Item, Necessary, Scope, is_empty_if_empty, unbound};
use super::steps::{binary, compared, context_node, literal, number};
use super::texts::{constant_text, test_of};
use crate::language::comparison::Comparison;
use crate::language::folding::{Fold, TextTest};
use crate::language::moments::Moment;
use crate::language::tree::Operator;
use crate::language::values::Values;
use crate::language::xquery::{
    Axis, Clause, Expr, ExprId, Function, NodeTest, Number, Start, Step, ValueSet,
};

impl Necessary<'_> {
    /// What must hold if the effective boolean value of an expression is true.
    pub(super) fn truth(&mut self, id: ExprId, scope: Scope<'_>, context: Item) -> Formula {
        self.within_limits(|walk| walk.truth_within(id, scope, context))
    }

    fn truth_within(&mut self, id: ExprId, scope: Scope<'_>, context: Item) -> Formula {
        let program = self.program;
        match program.expr(id) {
            Expr::And(list) => {
                let parts = program.list(list).iter();
                let parts = parts.map(|&part| self.truth(part, scope, context));
                Formula::all_of(parts.collect::<Vec<_>>())
            }
            Expr::Or(list) => {
                let parts = program.list(list).iter();
                let parts = parts.map(|&part| self.truth(part, scope, context));
                Formula::any_of(parts.collect::<Vec<_>>())
            }
            Expr::Comparison { operator, is_value, left, right } => {
                self.comparison(operator, is_value, [left, right], scope, context)
            }
            // `every` denies that some item does not.
            Expr::Quantified { is_every: true, .. } => Formula::Unknown,
            Expr::Quantified { bindings, condition, .. } => {
                self.some(program.clauses(bindings), condition, scope, context)
            }
            Expr::Call(function, arguments) => {
                self.truth_of_call(id, function, program.list(arguments), scope, context)
            }
            Expr::String(text) => of_constant(!program.text(text).is_empty()),
            Expr::Number(number) => of_constant(!matches!(number.value(), 0.0)),
            Expr::If { condition, then, otherwise } => {
                let holds = self.truth(condition, scope, context);
                let fails = holds.negated();
                let then = self.truth(then, scope, context);
                let otherwise = self.truth(otherwise, scope, context);
                Formula::any_of([[holds, then], [fails, otherwise]].map(Formula::all_of))
            }
            Expr::Castable { is_optional: false, operand, .. } => {
                self.gives_unknown(operand, scope, context)
            }
            Expr::InstanceOf { occurrence, operand, .. } if !occurrence.allows(0) => {
                self.gives_unknown(operand, scope, context)
            }
            _ => self.truth_of_items(id, scope, context),
        }
    }

    /// A sequence as a condition: a node makes it true.
    fn truth_of_items(&mut self, id: ExprId, scope: Scope<'_>, context: Item) -> Formula {
        self.each(id, scope, context, &|_, item| match item {
            Item::Node { is_value: false, .. } => Formula::True,
            _ => Formula::Unknown,
        })
    }

    /// A call as a condition.
    fn truth_of_call(
        &mut self,
        id: ExprId,
        function: Function,
        arguments: &[ExprId],
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        match (function, arguments) {
            (Function::Matches, &[whole, ..]) => {
                let Some(pattern) = self.program.pattern(id) else { return Formula::Unknown };
                self.matched(whole, pattern, scope, context)
            }
            (Function::True, _) => Formula::True,
            (Function::False, _) => Formula::FALSE,
            (Function::Not, &[argument]) => self.truth(argument, scope, context).negated(),
            (Function::Empty, &[argument]) => self.gives(argument, scope, context).negated(),
            // A number that is not 0 is true.
            (Function::Exists | Function::Count, &[argument]) => {
                self.gives(argument, scope, context)
            }
            (Function::Boolean, &[argument]) => self.truth(argument, scope, context),
            (Function::Contains | Function::StartsWith | Function::EndsWith, &[whole, part]) => {
                match constant_text(self.program, part, scope) {
                    Some(part) => self.tested(whole, test_of(function, &[part]), scope, context),
                    None => Formula::Unknown,
                }
            }
            _ if function.gives_argument(0) => self.truth_of_items(id, scope, context),
            (_, &[argument, ..]) if is_false_if_empty(function) => {
                self.gives_unknown(argument, scope, context)
            }
            _ => Formula::Unknown,
        }
    }

    /// Whether an expression is one date, time or duration at most.
    fn is_moment(&self, id: ExprId, scope: Scope<'_>, context: Item) -> bool {
        let Expr::Cast { to, operand } = self.program.expr(id) else { return false };
        let is_literal = matches!(self.program.expr(operand), Expr::String(_));
        to.is_moment() && (is_literal || self.is_one(operand, scope, context))
    }

    /// Whether an expression gives one node at most, whatever the message is.
    pub(super) fn is_one(&self, id: ExprId, scope: Scope<'_>, context: Item) -> bool {
        let program = self.program;
        match program.expr(id) {
            Expr::ContextItem => matches!(context, Item::Node { .. }),
            Expr::Variable(slot) => self.is_one_item(slot, scope),
            Expr::Path { start, steps } => {
                let is_one = match start {
                    Start::Root => true,
                    Start::Context => matches!(context, Item::Node { .. }),
                    Start::Expr(id) => self.is_one(id, scope, context),
                };
                let is_attribute = |step: &Step| {
                    step.axis == Axis::Attribute && matches!(step.test, NodeTest::Name { .. })
                };
                is_one
                    && match program.steps(steps) {
                        [] => true,
                        [step] => is_attribute(step),
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    /// `some` is a nested path.
    fn some(
        &mut self,
        bindings: &[Clause],
        condition: ExprId,
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        match bindings.split_first() {
            Some((&Clause::For { variable, position: None, source }, []))
                if let Some(found) = self.keywords(variable, source, condition, scope, context) =>
            {
                found
            }
            Some((&binding @ Clause::For { source, .. }, rest)) => {
                self.each(source, scope, context, &|walk, item| {
                    walk.bound(binding, scope, item, &|walk, inner| {
                        walk.some(rest, condition, inner, context)
                    })
                })
            }
            _ => self.truth(condition, scope, context),
        }
    }

    /// Some item of the left side compares so with some item of the right.
    fn comparison(
        &mut self,
        operator: Comparison,
        is_value: bool,
        [left, right]: [ExprId; 2],
        scope: Scope<'_>,
        context: Item,
    ) -> Formula {
        if let Some(found) = self.counted(operator, left, right, scope, context) {
            return found;
        }
        if operator == Comparison::Eq
            && let Some(found) = self.text_compared(is_value, [left, right], scope, context)
        {
            return found;
        }
        if let Some(found) = self.listed(operator, is_value, [left, right], scope, context) {
            return found;
        }
        let found = self.each(left, scope, context, &|walk, left| {
            walk.each(right, scope, context, &|walk, right| match (left, right) {
                (Item::Node { .. }, _) => walk.against(left, operator, right),
                (_, Item::Node { .. }) => walk.against(right, operator.flipped(), left),
                (Item::Cast { .. }, _) => walk.cast_against(left, operator, right),
                (_, Item::Cast { .. }) => walk.cast_against(right, operator.flipped(), left),
                _ => Formula::Unknown,
            })
        });
        // A value comparison reads one item of each side, a general one all of them.
        let is_first =
            is_value && [left, right].iter().any(|&side| !self.is_moment(side, scope, context));
        if is_first { Formula::all_of([found, Formula::Unknown]) } else { found }
    }

    /// `count(path) > n` and the like: at least one, if no less will do.
    fn counted(
        &mut self,
        operator: Comparison,
        left: ExprId,
        right: ExprId,
        scope: Scope<'_>,
        context: Item,
    ) -> Option<Formula> {
        use Comparison::*;
        let program = self.program;
        let sides = (program.expr(left), program.expr(right));
        let (arguments, number, operator) = match sides {
            (Expr::Call(Function::Count, arguments), Expr::Number(Number::Integer(number))) => {
                (arguments, number, operator)
            }
            (Expr::Number(Number::Integer(number)), Expr::Call(Function::Count, arguments)) => {
                (arguments, number, operator.flipped())
            }
            _ => return None,
        };
        let &[path] = program.list(arguments) else { return None };
        let given = self.gives(path, scope, context);
        Some(match (operator, number) {
            (Gt, 0) | (Ge, 1) | (Ne, 0) => given,
            (Eq, 0) | (Lt, 1) | (Le, 0) => given.negated(),
            (Eq | Gt | Ge, 1..) => Formula::all_of([given, Formula::Unknown]),
            _ => Formula::Unknown,
        })
    }

    /// Some node is equal to one of a list of literals.
    fn listed(
        &mut self,
        operator: Comparison,
        is_value: bool,
        [left, right]: [ExprId; 2],
        scope: Scope<'_>,
        context: Item,
    ) -> Option<Formula> {
        if operator != Comparison::Eq || is_value {
            return None;
        }
        let program = self.program;
        [(left, right), (right, left)].into_iter().find_map(|(side, list)| {
            let set = program.set(unbound(program, list, scope))?;
            Some(self.each(side, scope, context, &|walk, item| match item {
                Item::Node { variable, .. } if walk.has_room(set.bytes()) => among(variable, set),
                _ => Formula::Unknown,
            }))
        })
    }

    /// The value of a node as one of a type compares so with an item.
    fn cast_against(&mut self, cast: Item, operator: Comparison, item: Item) -> Formula {
        let Item::Cast { variable, to } = cast else { return Formula::Unknown };
        let item = match item {
            Item::Moment(kind, text) if kind == to => Item::Moment(kind, text),
            // A text beside a date is read as one.
            Item::String(text) if to.is_moment() => Item::Moment(to, text),
            Item::Number(value) if to.is_number() && value.abs() < EXACT_MAX => Item::Number(value),
            _ => return Formula::Unknown,
        };
        self.against(Item::node(variable), operator, item)
    }

    /// A node compares so with an item.
    fn against(&mut self, node: Item, operator: Comparison, item: Item) -> Formula {
        let Item::Node { variable, .. } = node else { return Formula::Unknown };
        match item {
            Item::String(text) if matches!(operator, Comparison::Eq | Comparison::Ne) => {
                let text = literal(self.program.text(text));
                let condition = compared(context_node(), operator, text);
                Formula::Atom { variable, condition, is_exact: true }
            }
            Item::Moment(kind, text) => {
                let text = self.program.text(text);
                if Moment::read(kind, text.as_bytes()).and_then(Moment::bound).is_none() {
                    return Formula::Unknown;
                }
                let compared = |operator| {
                    let operands = vec![context_node(), literal(text)];
                    let condition = binary(Operator::CastToMoment(kind, operator), operands);
                    Formula::Atom { variable, condition, is_exact: true }
                };
                match operator {
                    // What is no date is not unequal to one.
                    Comparison::Ne => {
                        Formula::any_of([Comparison::Lt, Comparison::Gt].map(compared))
                    }
                    operator => compared(operator),
                }
            }
            Item::Number(value) if value.is_finite() => {
                let operands = vec![context_node(), number(value)];
                let condition = binary(Operator::Cast(operator), operands);
                Formula::Atom { variable, condition, is_exact: true }
            }
            _ => Formula::Unknown,
        }
    }
}

/// Whole numbers up to here are told apart by doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A node is one of a set.
fn among(variable: Variable, set: &ValueSet) -> Formula {
    let atom = |operator, values: &Option<Values<'static>>| {
        let set = literal(values.as_ref()?.text());
        let condition = binary(operator, vec![context_node(), set]);
        Some(Formula::Atom { variable, condition, is_exact: true })
    };
    let strings = atom(Operator::Texts(TextTest::Is, Fold::None), &set.strings);
    let numbers = atom(Operator::NumberOf, &set.numbers);
    Formula::any_of([strings, numbers].into_iter().flatten())
}

fn of_constant(is_true: bool) -> Formula {
    if is_true { Formula::True } else { Formula::FALSE }
}

/// Whether the value of a function is false if its first argument has no item.
fn is_false_if_empty(function: Function) -> bool {
    use Function::*;
    let is_false = matches!(
        function,
        CodepointsToString
            | Count
            | EncodeForUri
            | String
            | StringLength
            | NormalizeSpace
            | NormalizeUnicode
            | UpperCase
            | LowerCase
            | Number
            | Sum
            | Name
            | LocalName
            | NamespaceUri
            | Substring
            | Translate
    );
    is_false || is_empty_if_empty(function)
}
