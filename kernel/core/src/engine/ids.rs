//! Numbers of what an index or snapshot holds; each counts from 0.

/// Number of a state; 0 is the initial state.
pub(crate) type StateId = u32;
/// Number of a plan: a distinct alternative, with predicates or an expression, at one accepting state.
pub(crate) type PlanId = u32;
/// Number of an expression: what plans may ask for beyond their own conditions.
pub(crate) type ExpressionId = u32;
/// Number of a query in one index or snapshot.
pub(crate) type QueryNumber = u32;
