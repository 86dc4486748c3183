//! What must be there for an expression to give an item.
//!
//! [`Necessary::each`] is the heart: the formula of "some item of the expression is such that `then(item)`". From it
//! follow whether an expression gives an item at all, general comparisons (which ask for some item of either side),
//! quantifiers and nested `for` clauses. An item is a node of the message that a variable of the formula stands for, a
//! value made from one, a constant, or unknown; what is asked of an unknown item is not known either.
//!
//! - A predicate that is not carried over whole only weakens the path; positions after it are left out.
//! - `if (c) then a else b` gives an item if `c` holds and `a` does, or if `c` does not and `b` does.
//! - What is sorted, counted or bound by `let` is not asked of: a `let` is put in where it is used.
//!
//! Cost: linear in the program, times the ways that nested sequences open, of which [`STEPS_MAX`] are looked at.

use super::formula::{Formula, ROOT, Variable};
use super::steps::may_be_number;
use crate::language::types::Type;
use crate::language::values::VALUE_BYTES_MAX;
use crate::language::xpath::TextRange;
use crate::language::xquery::{Clause, Expr, ExprId, Function, List, Program, Start};

/// Parts of a program that are looked at, those seen several times counted each time.
const STEPS_MAX: i32 = 4000;

/// How deep the walk goes; what is nested deeper is not known.
const NESTING_MAX: u32 = 80;

/// An item as a gate sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// The node that a variable of the formula stands for, or its value.
    Node {
        /// The variable.
        variable: Variable,
        /// It is the value.
        is_value: bool,
    },
    /// The value of a node as one of a type that is no string.
    Cast {
        /// The variable.
        variable: Variable,
        /// The type.
        to: Type,
    },
    /// A string that is the same for every message.
    String(TextRange),
    /// A number that is the same for every message.
    Number(f64),
    /// A date, time or duration that is the same for every message: its type, and its text.
    Moment(Type, TextRange),
    /// Any other.
    Unknown,
}

impl Item {
    /// A node.
    pub(super) fn node(variable: Variable) -> Item {
        Item::Node { variable, is_value: false }
    }
}

/// What a variable of a program stands for.
#[derive(Clone, Copy)]
enum Bound {
    /// An item.
    Item(Item),
    /// An expression that a `let` bound, which sees the variables bound before it.
    Expr {
        /// The expression.
        expr: ExprId,
        /// The context item that it sees.
        context: Item,
    },
}

/// A variable of a program that is in scope.
pub(super) struct Binding<'s> {
    slot: u32,
    value: Bound,
    outer: Scope<'s>,
}

/// The variables of a program that are in scope: the one that was bound last.
pub(super) type Scope<'s> = Option<&'s Binding<'s>>;

/// The question that is asked of an item.
pub(super) type Then<'t, 'p> = &'t dyn Fn(&mut Necessary<'p>, Item) -> Formula;

/// The walk over a program.
pub(super) struct Necessary<'p> {
    /// The program.
    pub(super) program: &'p Program,
    steps_left: i32,
    value_bytes_left: usize,
    depth: u32,
    variables: Variable,
}

impl<'p> Necessary<'p> {
    /// A walk at its beginning.
    pub(super) fn new(program: &'p Program) -> Self {
        Necessary {
            program,
            steps_left: STEPS_MAX,
            value_bytes_left: 2 * VALUE_BYTES_MAX,
            depth: 0,
            variables: ROOT,
        }
    }

    /// Whether values of so many bytes may be a part of the formula: a list may be used many times.
    pub(super) fn has_room(&mut self, value_bytes: usize) -> bool {
        let left = self.value_bytes_left.checked_sub(value_bytes);
        self.value_bytes_left = left.unwrap_or(self.value_bytes_left);
        left.is_some()
    }

    /// A new variable of the formula.
    pub(super) fn fresh(&mut self) -> Variable {
        self.variables += 1;
        self.variables
    }

    /// The formula of a part of the program, if it is not too deep and not too much has been looked at.
    pub(super) fn within_limits(&mut self, find: impl FnOnce(&mut Self) -> Formula) -> Formula {
        self.steps_left -= 1;
        if self.steps_left < 0 || self.depth > NESTING_MAX {
            return Formula::Unknown;
        }
        self.depth += 1;
        let found = find(self);
        self.depth -= 1;
        found
    }

    /// What must hold if an expression gives an item.
    pub(super) fn gives(&mut self, id: ExprId, scope: Scope<'_>, context: Item) -> Formula {
        self.each(id, scope, context, &|_, _| Formula::True)
    }

    /// Whether a variable is bound to one node.
    pub(super) fn is_one_item(&self, slot: u32, scope: Scope<'_>) -> bool {
        let binding = binding_of(slot, scope);
        binding.is_some_and(|it| matches!(it.value, Bound::Item(Item::Node { .. })))
    }

    /// What must hold if an expression gives an item, of which something is asked that cannot be said.
    pub(super) fn gives_unknown(&mut self, id: ExprId, scope: Scope<'_>, context: Item) -> Formula {
        self.each(id, scope, context, &|_, _| Formula::Unknown)
    }

    /// What must hold if `then` holds for some item of an expression.
    pub(super) fn each(
        &mut self,
        id: ExprId,
        scope: Scope<'_>,
        context: Item,
        then: Then<'_, 'p>,
    ) -> Formula {
        self.within_limits(|walk| walk.each_within(id, scope, context, then))
    }

    fn each_within(
        &mut self,
        id: ExprId,
        scope: Scope<'_>,
        context: Item,
        then: Then<'_, 'p>,
    ) -> Formula {
        let program = self.program;
        match program.expr(id) {
            Expr::Path { start, steps } => self.path(start, steps, scope, context, then),
            Expr::Variable(slot) => {
                let Some(binding) = binding_of(slot, scope) else { return Formula::Unknown };
                match binding.value {
                    Bound::Item(item) => then(self, item),
                    Bound::Expr { expr, context } => self.each(expr, binding.outer, context, then),
                }
            }
            Expr::ContextItem => then(self, context),
            Expr::String(text) => then(self, Item::String(text)),
            Expr::Number(number) => then(self, Item::Number(number.value())),
            Expr::Negation(operand) => {
                if let Expr::Number(number) = program.expr(operand) {
                    return then(self, Item::Number(-number.value()));
                }
                let given = self.gives_unknown(operand, scope, context);
                Formula::all_of([given, then(self, Item::Unknown)])
            }
            Expr::Sequence(list) | Expr::Union(list) => {
                let items = program.list(list).iter();
                let ways = items.map(|&item| self.each(item, scope, context, then));
                Formula::any_of(ways.collect::<Vec<_>>())
            }
            Expr::Flwor { clauses, condition, body, .. } => {
                let flwor = Flwor { clauses: program.clauses(clauses), condition, body };
                self.clauses(flwor, scope, context, then)
            }
            Expr::If { condition, then: first, otherwise } => {
                let holds = self.truth(condition, scope, context);
                let fails = holds.negated();
                let first = self.each(first, scope, context, then);
                let otherwise = self.each(otherwise, scope, context, then);
                let ways = [[holds, first], [fails, otherwise]];
                Formula::any_of(ways.map(Formula::all_of))
            }
            Expr::Filter { primary, predicates, .. } => {
                self.filtered(primary, predicates, scope, context, then)
            }
            Expr::Call(function, arguments) => {
                self.result(function, program.list(arguments), scope, context, then)
            }
            Expr::SimpleMap { source, body } => {
                self.each(source, scope, context, &|walk, item| walk.each(body, scope, item, then))
            }
            // Some node of the left is on the right, or is not: more than can be said.
            Expr::Intersection { is_except, left, right } => {
                let other = match is_except {
                    true => Formula::Unknown,
                    false => self.gives_unknown(right, scope, context),
                };
                Formula::all_of([self.each(left, scope, context, then), other])
            }
            Expr::Range { first: left, last: right }
            | Expr::Arithmetic { left, right, .. }
            | Expr::Comparison { is_value: true, left, right, .. } => {
                let sides = [left, right].map(|side| self.gives_unknown(side, scope, context));
                let [left, right] = sides;
                Formula::all_of([left, right, then(self, Item::Unknown)])
            }
            Expr::Cast { to, operand } => {
                if let (true, Expr::String(text)) = (to.is_moment(), program.expr(operand)) {
                    return then(self, Item::Moment(to, text));
                }
                // The first node is cast, if it can be. A cast to a double reads more texts than one to another number.
                let is_all = (to.is_moment() || matches!(to, Type::Double | Type::String))
                    && self.is_one(operand, scope, context);
                let cast = self.each(operand, scope, context, &|walk, item| {
                    let item = match item {
                        Item::Node { variable, .. } if to == Type::String => {
                            Item::Node { variable, is_value: true }
                        }
                        Item::Node { variable, .. } => Item::Cast { variable, to },
                        _ => Item::Unknown,
                    };
                    then(walk, item)
                });
                if is_all { cast } else { Formula::all_of([cast, Formula::Unknown]) }
            }
            // One item, whatever the message is.
            Expr::Quantified { .. }
            | Expr::Or(_)
            | Expr::And(_)
            | Expr::Castable { .. }
            | Expr::InstanceOf { .. }
            | Expr::Comparison { .. }
            | Expr::Element(_) => then(self, Item::Unknown),
        }
    }

    /// The items that a function gives.
    fn result(
        &mut self,
        function: Function,
        arguments: &[ExprId],
        scope: Scope<'_>,
        context: Item,
        then: Then<'_, 'p>,
    ) -> Formula {
        match *arguments {
            [argument] if matches!(function, Function::Data | Function::DistinctValues) => self
                .each(argument, scope, context, &|walk, item| {
                    let item = match item {
                        Item::Node { variable, .. } => Item::Node { variable, is_value: true },
                        item => item,
                    };
                    then(walk, item)
                }),
            [_, ..] if function.gives_argument(0) => {
                let given = arguments.iter().enumerate();
                let given = given.filter(|&(at, _)| function.gives_argument(at));
                let ways = given.map(|(_, &given)| self.each(given, scope, context, then));
                // Some of them, perhaps.
                let ways = Formula::any_of(ways.collect::<Vec<_>>());
                Formula::all_of([ways, Formula::Unknown])
            }
            [argument, ..] if is_empty_if_empty(function) => {
                let given = self.gives_unknown(argument, scope, context);
                Formula::all_of([given, then(self, Item::Unknown)])
            }
            _ => then(self, Item::Unknown),
        }
    }

    /// The nodes of a path.
    fn path(
        &mut self,
        start: Start,
        steps: List,
        scope: Scope<'_>,
        context: Item,
        then: Then<'_, 'p>,
    ) -> Formula {
        let lead = |walk: &mut Self, base: Item| match base {
            Item::Node { .. } if steps.is_empty() => then(walk, base),
            Item::Node { variable, .. } => walk.stepped(variable, steps, scope, then),
            _ => Formula::all_of([Formula::Unknown, then(walk, Item::Unknown)]),
        };
        match start {
            Start::Root => lead(self, Item::node(ROOT)),
            Start::Context => lead(self, context),
            Start::Expr(id) => self.each(id, scope, context, &lead),
        }
    }

    /// The items of `primary[...]`: the predicates hold of items of `primary`.
    fn filtered(
        &mut self,
        primary: ExprId,
        predicates: List,
        scope: Scope<'_>,
        context: Item,
        then: Then<'_, 'p>,
    ) -> Formula {
        self.each(primary, scope, context, &|walk, item| {
            let mut conditions = Vec::new();
            let program = walk.program;
            for &predicate in program.list(predicates) {
                // A number that is a position is not 0, so that it is true besides.
                conditions.push(walk.truth(predicate, scope, item));
                if may_be_number(program, predicate) {
                    conditions.push(Formula::Unknown);
                }
            }
            conditions.push(then(walk, item));
            Formula::all_of(conditions)
        })
    }

    /// The items of a FLWOR, from one of its clauses on.
    fn clauses(
        &mut self,
        flwor: Flwor<'p>,
        scope: Scope<'_>,
        context: Item,
        then: Then<'_, 'p>,
    ) -> Formula {
        self.steps_left -= 1;
        if self.steps_left < 0 || self.depth > NESTING_MAX {
            return Formula::Unknown;
        }
        let Some((&clause, rest)) = flwor.clauses.split_first() else {
            let condition = match flwor.condition {
                Some(condition) => self.truth(condition, scope, context),
                None => Formula::True,
            };
            return Formula::all_of([condition, self.each(flwor.body, scope, context, then)]);
        };
        let flwor = Flwor { clauses: rest, ..flwor };
        match clause {
            Clause::Let { variable, value } => {
                let value = Bound::Expr { expr: value, context };
                let inner = Binding { slot: variable, value, outer: scope };
                self.clauses(flwor, Some(&inner), context, then)
            }
            Clause::For { source, .. } => self.each(source, scope, context, &|walk, item| {
                walk.depth += 1;
                let found = walk.bound(clause, scope, item, &|walk, inner| {
                    walk.clauses(flwor, inner, context, then)
                });
                walk.depth -= 1;
                found
            }),
        }
    }

    /// A formula in the scope of a `for` clause that has bound an item.
    pub(super) fn bound(
        &mut self,
        clause: Clause,
        scope: Scope<'_>,
        item: Item,
        inside: &dyn Fn(&mut Self, Scope<'_>) -> Formula,
    ) -> Formula {
        let Clause::For { variable, position, .. } = clause else { return Formula::Unknown };
        let bound = Binding { slot: variable, value: Bound::Item(item), outer: scope };
        match position {
            None => inside(self, Some(&bound)),
            Some(slot) => {
                let value = Bound::Item(Item::Unknown);
                inside(self, Some(&Binding { slot, value, outer: Some(&bound) }))
            }
        }
    }
}

/// The text that a variable is bound to, if it is one that is the same for every message.
pub(super) fn bound_text(slot: u32, scope: Scope<'_>) -> Option<TextRange> {
    match binding_of(slot, scope)?.value {
        Bound::Item(Item::String(text)) => Some(text),
        _ => None,
    }
}

/// The binding of a variable that is in scope.
fn binding_of<'s>(slot: u32, mut scope: Scope<'s>) -> Option<&'s Binding<'s>> {
    while let Some(binding) = scope
        && binding.slot != slot
    {
        scope = binding.outer;
    }
    scope
}

/// What a `let` has bound a variable to, other expressions as they are.
pub(super) fn unbound(program: &Program, mut id: ExprId, scope: Scope<'_>) -> ExprId {
    let mut known = scope;
    while let (Expr::Variable(slot), Some(binding)) = (program.expr(id), known) {
        if binding.slot == slot {
            let Bound::Expr { expr, .. } = binding.value else { break };
            id = expr;
        }
        known = binding.outer;
    }
    id
}

/// What remains of a FLWOR.
#[derive(Clone, Copy)]
struct Flwor<'p> {
    clauses: &'p [Clause],
    condition: Option<ExprId>,
    body: ExprId,
}

/// Whether a function gives no item for no item.
pub(super) fn is_empty_if_empty(function: Function) -> bool {
    use Function::*;
    let is_empty = matches!(
        function,
        Abs | Avg
            | Ceiling
            | Data
            | DateTime
            | DistinctValues
            | Floor
            | Id
            | IndexOf
            | Max
            | Min
            | Round
            | RoundHalfToEven
            | StringToCodepoints
    );
    is_empty || function.component().is_some()
}
