//! Messages: from bytes to trees, and back to text.
//!
//! Reading order: [`names`] (interned names), [`tree`] (a message in columns), [`parser`] (bytes to a tree or a
//! refusal: a message as a whole, in blocks), [`serializer`] (nodes as text), [`places`] (where nodes lie).

pub mod names;
pub mod parser;
pub mod places;
pub mod serializer;
pub mod tree;
