//! Subscriptions in XQuery: parsed, run over a message, their results written.
//!
//! The language is the subset of XQuery 1.0 that `docs/subscriptions.md` describes. A program gives
//! its results as bytes; they are appended to a buffer while the program runs, and no result is
//! ever built as a tree.
//!
//! What it does not do: explain to a subscriber what is wrong with a text ([`Program::parse`] says
//! no more than where), find the programs that are worth running, share work between programs.
//!
//! Source: XQuery 1.0; XQuery 1.0 and XPath 2.0 Functions and Operators.

#![forbid(unsafe_code)]

mod call;
mod compare;
mod eval;
mod functions;
mod nodes;
mod numbers;
mod order;
mod parse;
mod run;
mod session;
mod sink;
mod syntax;
mod truth;
mod value;
mod write;

pub use crate::xpath::{List, Step, TextRange};
pub use functions::Function;
pub use numbers::untyped_number;
pub use session::{Scratch, Session};
pub use syntax::{
    Arithmetic, Attribute, Axis, Clause, Declaration, Element, Expr, ExprId, Name, NodeTest,
    Number, Operator, OrderKey, Part, Program, Start,
};

use crate::xml::names::NameTable;
use crate::xml::tree::Message;
use crate::xpath::Expression;
use std::fmt;

/// The text is not a program, or one that the kernel does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// Byte at which it was noticed.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for Declined {}

/// What a run may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Steps; counted, never timed.
    pub steps_max: u64,
    /// Bytes of all results together.
    pub bytes_max: usize,
}

/// Results of runs: bytes one after the other.
#[derive(Debug, Default)]
pub struct Results {
    /// All results.
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
}

impl Results {
    /// A result.
    pub fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Why a run has given no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError {
    /// It takes more steps than it was given.
    OverBudget,
    /// Its results are longer than they may be.
    TooLong,
    /// A constructor that makes no element: `XQTY0024`, `XQDY0025`.
    Construction(&'static str),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::OverBudget => f.write_str("the evaluation takes too many steps"),
            RunError::TooLong => f.write_str("the results are too long"),
            RunError::Construction(code) => write!(f, "{code}: no element can be constructed"),
        }
    }
}

impl std::error::Error for RunError {}

impl Program {
    /// Reads a text; unprefixed names of elements are in the namespace that `namespaces` binds "" to.
    ///
    /// Cost: linear in the text; a few microseconds for what subscribers write.
    pub fn parse(text: &str, namespaces: &[(String, String)]) -> Result<Program, Declined> {
        parse::parse(text, namespaces, parse::Language::XQuery)
    }

    /// Reads a bare path, which means what it does in XPath 1.0: no prefix is predeclared. Declines it
    /// where a literal has a reference or a line end, which XPath takes as they stand.
    pub fn parse_path(text: &str, namespaces: &[(String, String)]) -> Result<Program, Declined> {
        parse::parse(text, namespaces, parse::Language::XPath)
    }

    /// As [`Session::run`], for one program alone.
    pub fn run(
        &self,
        message: Message<'_>,
        names: &NameTable,
        scratch: &mut Scratch,
        bounds: Bounds,
        out: &mut Results,
    ) -> Result<bool, RunError> {
        Session::new(message, names, scratch).run(self, bounds, out)
    }

    /// As [`Session::holds`], for one program alone.
    pub fn holds(
        &self,
        message: Message<'_>,
        names: &NameTable,
        scratch: &mut Scratch,
        bounds: Bounds,
    ) -> Result<bool, RunError> {
        Session::new(message, names, scratch).holds(self, bounds)
    }
}

/// As [`Session::select`], for one expression alone.
pub fn select(
    expression: &Expression,
    message: Message<'_>,
    names: &NameTable,
    scratch: &mut Scratch,
    bounds: Bounds,
    out: &mut Results,
) -> Result<bool, RunError> {
    Session::new(message, names, scratch).select(expression, bounds, out)
}
