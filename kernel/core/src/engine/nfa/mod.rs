//! The shared NFA of YFilter: a trie over location steps.
//!
//! State 0 is the initial state. A `/`-step leads from a state to a child state over its symbol; a
//! `//`-step first takes the epsilon-transition to the state's `//`-child, which has a self-loop on
//! every name, and goes on from there. Source: paper 003, sections 3.2.2 and 3.2.3.
//!
//! Two forms hold it: [`growing::GrowingNfa`] takes queries in and out while messages flow,
//! [`frozen::FrozenNfa`] reads the arrays of a snapshot. Both answer the questions of [`Nfa`], and
//! everything that runs an automaton is written against those.
//!
//! Differs from the paper: a `//`-child state may accept (`//.`, from `//@name`), which means the
//! element itself or any descendant; accepting states give ranges of query numbers, and queries
//! with predicates form plans that are checked after the structure has matched (Selection Postponed).
//! A query may end at several places: it holds where one of its alternatives does. Where an
//! expression has the last word on a query, all its alternatives are plans that name it.

pub(crate) mod expressions;
pub(crate) mod frozen;
pub(crate) mod growing;
pub(crate) mod nested_paths;

use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::reach::Reach;
use crate::engine::symbols::{Class, SymbolTable};
use crate::language::query::{NormalPath, read_canonical};
use crate::language::xpath::Expression;
use std::ops::Range;

/// What running the automaton asks of it.
pub trait Nfa {
    /// The alphabet.
    fn symbols(&self) -> &SymbolTable;

    /// Whether no transition leads on from a state. An automaton that does not keep this may say
    /// no; the state is then stepped in vain.
    fn is_leaf(&self, _state: StateId) -> bool {
        false
    }

    /// Adds the states reached from `state` by an element of the class, self-loop not counted.
    fn step(&self, state: StateId, class: &Class, targets: &mut Vec<StateId>);

    /// The `//`-child state.
    fn epsilon(&self, state: StateId) -> Option<StateId>;

    /// Adds the query numbers accepted here without further conditions.
    fn accepted(&self, state: StateId, ranges: &mut Vec<Range<QueryNumber>>);

    /// Adds the plans whose main path ends here.
    fn plans(&self, state: StateId, plans: &mut Vec<PlanId>);

    /// Canonical text of a plan.
    fn plan_text(&self, plan: PlanId) -> &str;

    /// The nested paths of all plans; none if no plan has any.
    fn nested_paths(&self) -> Option<&NestedPaths> {
        None
    }

    /// Adds the numbers of the queries that share a plan.
    fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>);

    /// Number of queries; query numbers are below it.
    fn query_count(&self) -> usize;

    /// Number of plans; plan ids are below it.
    fn plan_count(&self) -> usize;

    /// The expression that must be true as well for the queries of a plan that holds.
    fn expression(&self, plan: PlanId) -> Option<ExpressionId>;

    /// Calls `f` with an expression, which need not be kept.
    fn with_expression<T>(&self, id: ExpressionId, f: impl FnOnce(&Expression) -> T) -> T;

    /// Number of expressions; expression ids are below it.
    fn expression_count(&self) -> usize;

    /// Whether some expression needs more of a message than elements, attributes and text.
    fn needs_full_tree(&self) -> bool;

    /// What can be reached from where, if the query numbers are targets that share what leads to them.
    fn reach(&self) -> Option<&Reach> {
        None
    }
}

/// The path of a canonical text.
///
/// Panics if the text is not one: it was when the query was registered.
pub(crate) fn path_of(text: &str) -> NormalPath<'_> {
    read_canonical(text).expect("plans are kept in canonical text")
}

/// The expression of a canonical text.
///
/// Panics if the text is not one: it was when the query was registered.
pub(crate) fn expression_of(text: &str) -> Expression {
    Expression::parse(text).expect("expressions are kept in canonical text")
}
