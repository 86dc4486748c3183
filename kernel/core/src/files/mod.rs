//! Files with many messages, and messages too long to be held.
//!
//! Reading order: [`records`] (one file cut into messages, by ranges of bytes), [`chunks`] (one message cut as it
//! arrives).

pub mod chunks;
pub mod records;
