//! The Pathcast engine without Python.
//!
//! Reading order: [`xml`] (messages: bytes to trees, trees to bytes), [`language`] (texts of queries: normal forms and
//! syntax trees), [`engine`] (queries run over messages), [`registry`] (queries and subscriptions by id, and whole
//! messages against them), [`files`] (files of many messages, and messages too long to be held). A room uses only
//! what is named before it.

#![warn(unreachable_pub)]
#![allow(clippy::len_without_is_empty, reason = "what nothing outside asks for is not there")]

#[cfg(target_endian = "big")]
compile_error!("snapshots are little-endian arrays that are used where they lie");

pub mod engine;
pub mod files;
pub mod language;
pub mod registry;
pub mod xml;
