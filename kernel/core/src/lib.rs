//! The Pathcast engine without Python.
//!
//! Reading order: [`xml`] (messages: bytes to trees, trees to bytes),
//! [`language`] (texts of queries: normal forms and syntax trees), [`symbols`] and [`nfa`] (the shared automaton), [`dfa`] and [`plain`]
//! (two ways of running it), [`content`] (the conditions of many plans together), [`conditions`] (those
//! of one plan), [`xpath`] (all of XPath 1.0, evaluated), [`ids`] (numbers of states, plans and queries),
//! [`collect`] (query numbers), [`counters`], [`verdicts`] (queries that a message leaves undecided), [`options`]
//! (what a message may cost), `runner` (one automaton over one message), [`index`] and
//! [`snapshot`] (queries that change, queries that do not), [`target`] (either, at one moment), [`matcher`] and
//! [`batch`] (the whole way of a message, of many; `workers` inside), [`interrupt`] (which ends long work),
//! [`routing`] (tables of what leads where, several paths to a target; `reach` inside), [`population`] (what all queries ask for, as columns). Customised delivery:
//! [`customize`] (the plans that subscriptions share, and subscriptions of all kinds), [`xquery`] (programs
//! beyond them), [`delivery_ids`] (which delivery is which). Files that hold
//! many messages: [`records`]. Beside it
//! all, [`chunker`] (messages of any length, cut as they arrive) and [`path_finder`] (paths in a part of a message).

#[cfg(target_endian = "big")]
compile_error!("snapshots are little-endian arrays that are used where they lie");

pub mod batch;
pub mod chunker;
pub mod collect;
pub mod conditions;
pub mod content;
pub mod counters;
pub mod customize;
pub mod delivery_ids;
pub mod dfa;
pub mod ids;
pub mod index;
pub mod interrupt;
pub mod language;
pub mod matcher;
pub mod nfa;
pub mod options;
pub mod path_finder;
pub mod plain;
pub mod population;
mod reach;
pub mod records;
pub mod routing;
mod runner;
pub mod snapshot;
pub mod symbols;
pub mod target;
pub mod verdicts;
mod workers;
pub mod xml;
pub mod xpath;
pub mod xquery;
