//! What a worker may spend on a message.

use crate::xml::parser::Limits;

/// How a worker runs the automaton.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a message may cost.
    pub limits: Limits,
    /// Bytes that the lazy DFA of one automaton may hold; 0 runs the plain NFA always.
    pub cache_bytes_max: usize,
    /// Steps that the evaluation of one expression on one message may take.
    pub steps_max: u64,
    /// Steps that one message may take over all queries.
    pub message_steps_max: u64,
}
