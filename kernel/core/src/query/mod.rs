//! Query text to canonical form.

pub mod ast;
