//! Standing queries and subscriptions by id, and whole messages against them.
//!
//! Reading order: [`automaton`] (queries by number, which change), [`catalogue`] (what they were registered as),
//! [`snapshot`] (both together, of queries that do not change, with their version), [`target`] (either, or a routing
//! table, at one moment),
//! [`matcher`] (a message), [`workers`] and [`batch`] (many, on several threads), [`population`] (what all queries ask
//! for, as columns), [`delivery`] (the registry of queries and subscriptions: which is done in which way, and their
//! messages), [`delivery_ids`] (which delivery is which).
//! [`merging`]: what all that merges has in common.

pub(crate) mod automaton;
pub mod batch;
pub mod catalogue;
pub mod delivery;
pub mod delivery_ids;
pub mod matcher;
pub mod merging;
pub mod population;
pub mod snapshot;
pub mod target;
pub(crate) mod workers;
