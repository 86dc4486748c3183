//! The Pathcast engine without Python.
//!
//! Reading order: [`tree`] (what a message becomes), [`door`] (bytes to tree or refusal),
//! [`query`] (query text to canonical form).

pub mod conditions;
pub mod door;
pub mod names;
pub mod query;
pub mod tree;
