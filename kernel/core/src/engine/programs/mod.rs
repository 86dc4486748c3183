//! Subscriptions in XQuery, run over a message, their results written.
//!
//! A program gives its results as bytes; they are appended to a buffer while the program runs, and no result is
//! ever built as a tree.
//!
//! What it does not do: find the programs that are worth running, share work between programs.
//!
//! Source: XQuery 1.0; XQuery 1.0 and XPath 2.0 Functions and Operators.

#![forbid(unsafe_code)]

mod call;
mod cast;
mod compare;
mod deep_equal;
mod eval;
mod names;
mod nodes;
mod numbers;
mod order;
mod pictures;
mod run;
mod sequences;
mod session;
mod sink;
mod truth;
mod value;
mod write;

pub use session::{Scratch, Session};

use crate::language::xquery::Program;
use crate::xml::names::NameTable;
use crate::xml::tree::Message;
use std::fmt;

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
    pub(crate) fn get(&self, number: u32) -> &[u8] {
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
    /// A constructor that makes no element: the code of the W3C.
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
}
