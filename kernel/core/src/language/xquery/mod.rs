//! Subscriptions in XQuery as syntax trees.
//!
//! The language is the subset of XQuery 1.0 that `docs/subscriptions.md` describes. [`crate::engine::programs`] runs programs.
//!
//! It does not explain to a subscriber what is wrong with a text: [`Program::parse`] says no more than where.

#![forbid(unsafe_code)]

pub(crate) mod comments;
pub(crate) mod functions;
mod parse;
pub(crate) mod syntax;

pub use super::xpath::{List, Step, TextRange};
pub use comments::without_comments;
pub use functions::Function;
pub use syntax::{
    Arithmetic, Attribute, Axis, Clause, Declaration, Element, Expr, ExprId, Name, NodeTest,
    Number, OrderKey, Part, Program, Start,
};

use std::fmt;

/// The text is not a program, or one that the kernel does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// Byte at which it was noticed.
    pub offset: usize,
    /// What is wrong there.
    pub(crate) reason: &'static str,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for Declined {}

impl Program {
    /// Reads a text; unprefixed names of elements are in the namespace that `namespaces` binds "" to.
    ///
    /// Cost: linear in the text; a few microseconds for what subscribers write.
    pub fn parse(text: &str, namespaces: &[(String, String)]) -> Result<Program, Declined> {
        parse::parse(text, namespaces, parse::Language::XQuery)
    }

    /// Reads a bare path, which means what it does in XPath 1.0: no prefix is predeclared. Declines it
    /// where a literal has a reference or a line end, which XPath takes as they stand.
    pub(crate) fn parse_path(
        text: &str,
        namespaces: &[(String, String)],
    ) -> Result<Program, Declined> {
        parse::parse(text, namespaces, parse::Language::XPath)
    }
}
