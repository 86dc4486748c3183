//! Standing queries run over messages.
//!
//! Reading order: [`ids`] (numbers of states, plans and queries), [`symbols`] (the alphabet), [`ask`] (what is asked of a value), [`interrupt`] (which ends
//! long work), [`marks`] (sets that are emptied by counting), [`conditions`] (whether one plan holds), [`nfa`] (the shared automaton), [`dfa`] and [`plain`] (two ways
//! of running it), [`collect`] (sets of query numbers), [`reach`] (which targets can still be reached),
//! [`predicates`] (the conditions of many plans together), [`evaluate`] (XPath 1.0, exactly), [`counters`],
//! [`verdicts`] (queries that a message leaves undecided), [`work`] (what single queries take), [`options`] (what a message may cost), [`runner`] (one
//! automaton over one message), [`routing`] (tables of what leads where, several paths to a target). For deliveries:
//! [`paths`] (a set of paths run over a message), [`plans`] (what subscriptions share), [`programs`] (XQuery beyond
//! them). Beside them [`path_finder`] (paths in a part of a message).

pub(crate) mod ask;
pub(crate) mod collect;
pub mod conditions;
pub mod counters;
pub(crate) mod dfa;
pub mod evaluate;
pub(crate) mod ids;
pub mod interrupt;
pub(crate) mod marks;
pub mod nfa;
pub mod options;
pub mod path_finder;
pub(crate) mod paths;
pub(crate) mod plain;
pub mod plans;
pub(crate) mod predicates;
pub mod programs;
pub(crate) mod reach;
pub mod routing;
pub(crate) mod runner;
pub(crate) mod symbols;
pub mod verdicts;
pub mod work;
