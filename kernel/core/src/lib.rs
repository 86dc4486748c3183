//! The Pathcast engine without Python.
//!
//! Reading order: [`xml`] (messages: bytes to trees, trees to bytes), [`language`] (texts of queries: normal forms and
//! syntax trees), [`engine`] (queries run over messages), [`registry`] (queries and
//! subscriptions by id, and whole messages against them). Files that hold many messages: [`records`]; messages of any length, cut
//! as they arrive: [`chunker`].

#[cfg(target_endian = "big")]
compile_error!("snapshots are little-endian arrays that are used where they lie");

pub mod chunker;
pub mod engine;
pub mod language;
pub mod records;
pub mod registry;
pub mod xml;
