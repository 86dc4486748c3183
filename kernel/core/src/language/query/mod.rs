//! Query text to canonical form.
//!
//! [`ast`] is the normal form, [`Compiler`] a fast way to it for queries in their usual notation, [`canonical_text`]
//! the way back. [`super::compile`] takes every query.

pub(crate) mod anchoring;
pub(crate) mod arrange;
pub mod ast;
mod canonical;
mod compile;
mod namespaces;
mod predicates;

pub use ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
pub use canonical::{canonical_text, condition_text};
pub(crate) use canonical::{push_string, text_of};
pub(crate) use compile::read_canonical;
pub use compile::{
    Compiler, DEPTH_MAX, Declined, NODES_MAX, NormalPath, PREDICATES_MAX, TEXT_BYTES_MAX, compile,
    compile_canonical,
};
pub(crate) use compile::{is_within_bytes, value_bytes};
pub use namespaces::Namespaces;
pub(crate) use namespaces::{UriBinding, collapsed, is_collapsed};
