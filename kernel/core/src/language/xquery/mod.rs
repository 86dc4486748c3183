//! Subscriptions in XQuery as syntax trees.
//!
//! The language is the subset of XQuery 1.0 that `docs/subscriptions.md` describes. [`crate::engine::programs`] runs
//! programs.
//!
#![forbid(unsafe_code)]

pub(crate) mod casts;
mod origins;
mod parse;
mod results;
pub(crate) mod syntax;

pub use super::functions::Function;
use super::grammar::scan::Lexis;
use super::refusal::Parsed;
pub use super::xpath::{List, Step, TextRange};
pub use origins::Origins;
pub(crate) use parse::{CAPITAL_LETTERS, SMALL_LETTERS};
pub(crate) use results::deciding_parts;
pub use results::undeliverable_part;
pub use syntax::{
    Attribute, Axis, Clause, ComputedName, Declaration, Element, Expr, ExprId, ItemTest, Name,
    NodeTest, Number, Occurrence, OrderKey, Part, Program, Start, ValueSet,
};

/// What a result is, for the static rules that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// What the program gives.
    Results,
    /// The message, or the fact, if the effective boolean value of the program is true.
    Condition,
    /// The places of what the program gives, which must be nodes of the message.
    Nodes,
}

impl Program {
    /// Reads a text; unprefixed names of elements are in the namespace that `namespaces` binds "" to.
    ///
    /// Cost: linear in the text; a few microseconds for what subscribers write.
    pub fn parse(text: &str, namespaces: &[(String, String)]) -> Parsed<Program> {
        parse::parse(text, namespaces, Lexis::XQuery).map_err(|refusal| {
            // Only a text that is refused is read a second time, with an eye on every token.
            parse::parse_with_origins(text, namespaces, None).err().unwrap_or(refusal)
        })
    }

    /// Reads a text for analysis: with the place of everything, and steps as they are written, which makes it nothing
    /// to be run. The rules that depend on what is delivered hold too.
    ///
    /// Cost: as [`Program::parse`], about twice.
    pub fn parse_with_origins(
        text: &str,
        namespaces: &[(String, String)],
        delivered: Option<Delivered>,
    ) -> Parsed<(Program, Origins)> {
        parse::parse_with_origins(text, namespaces, delivered)
    }

    /// Reads a bare path without comments, which means what it does in XPath 1.0: no prefix is predeclared. There is
    /// none where a literal has a reference or a line end, which XPath takes as they stand.
    pub(crate) fn parse_path(text: &str, namespaces: &[(String, String)]) -> Option<Program> {
        parse::parse(text, namespaces, Lexis::XPath).ok()
    }
}
