//! The Pathcast engine without Python.
//!
//! Reading order: [`xml`] (messages: bytes to trees, trees to bytes), [`language`] (texts of queries: normal forms and
//! syntax trees), [`engine`] (queries run over messages), [`index`] and [`snapshot`] (queries that change, queries that
//! do not), [`target`] (either, at one moment), [`matcher`] and [`batch`] (the whole way of a message, of many;
//! `workers` inside), [`population`] (what all queries ask for, as columns), [`customize`] (subscriptions of all kinds),
//! [`delivery_ids`] (which delivery is which). Files that hold many messages: [`records`]; messages of any length, cut
//! as they arrive: [`chunker`].

#[cfg(target_endian = "big")]
compile_error!("snapshots are little-endian arrays that are used where they lie");

pub mod batch;
pub mod chunker;
pub mod customize;
pub mod delivery_ids;
pub mod engine;
pub mod index;
pub mod language;
pub mod matcher;
pub mod population;
pub mod records;
pub mod snapshot;
pub mod target;
mod workers;
pub mod xml;
