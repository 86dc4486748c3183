//! The Pathcast engine without Python.
//!
//! Reading order: [`names`] and [`tree`] (what a message becomes), [`door`] (bytes to tree or refusal),
//! [`query`] (text to normal form), [`symbols`] and [`nfa`] (the shared automaton), [`dfa`] and [`plain`]
//! (two ways of running it), [`content`] (the conditions of many plans together), [`conditions`] (those
//! of one plan), [`xpath`] (all of XPath 1.0, evaluated), [`collect`] (query numbers), [`index`] and
//! [`snapshot`] (queries that change, queries that do not), [`matcher`] and [`batch`] (the whole way of a
//! message, of many; `runner` and `workers` inside), [`interrupt`] (which ends long work), [`routing`] (tables of what leads where, several
//! paths to a target), [`population`] (what all queries ask for, as columns). Customised delivery:
//! [`customize`] (the plans that subscriptions share, and subscriptions of all kinds), [`xquery`] (programs
//! beyond them), [`output`] (nodes as text), [`delivery_ids`] (which delivery is which). Files that hold
//! many messages: [`records`]. Beside it
//! all, [`chunker`] (messages of any length, cut as they arrive) and [`path_finder`] (paths in a part of a message).

#[cfg(target_endian = "big")]
compile_error!("snapshots are little-endian arrays that are used where they lie");

pub mod batch;
pub mod chunker;
pub mod collect;
pub mod conditions;
pub mod content;
pub mod customize;
pub mod delivery_ids;
pub mod dfa;
pub mod door;
pub mod index;
pub mod interrupt;
pub mod matcher;
pub mod names;
pub mod nfa;
pub mod output;
pub mod path_finder;
pub mod plain;
pub mod population;
pub mod query;
pub mod records;
pub mod routing;
mod runner;
pub mod snapshot;
pub mod symbols;
pub mod tree;
mod workers;
pub mod xpath;
pub mod xquery;
