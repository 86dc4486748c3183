//! Queries and subscriptions that a message leaves undecided.

use crate::engine::ids::QueryNumber;
use crate::xml::parser::Refusal;
use std::sync::Arc;

/// Whose steps were used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedUp {
    /// Those of the query on the message.
    Query,
    /// Those of the message over all queries.
    Message,
}

/// Queries that a message leaves undecided; both lists ascend.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    /// Those whose evaluation has used up its own steps.
    pub(crate) by_query: Vec<QueryNumber>,
    /// Those that were left when the message had used up its steps over all queries.
    pub(crate) by_message: Vec<QueryNumber>,
}

impl Undecided {
    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.by_query.clear();
        self.by_message.clear();
    }

    /// Each, and why.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (QueryNumber, Verdict)> {
        let by_query = self.by_query.iter().map(|&number| (number, Verdict::OverBudget));
        by_query.chain(self.by_message.iter().map(|&number| (number, Verdict::MessageOverBudget)))
    }
}

/// Why a subscription could not be served with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its evaluation takes more steps than it was given.
    OverBudget,
    /// It is undecided: the message has used up its steps over all gates, or over all evaluations.
    MessageOverBudget,
    /// Its results are longer than this.
    TooLong {
        /// Bytes that they may have.
        bytes_max: usize,
    },
    /// The results of the subscriptions whose ids come before have taken what all may have together.
    MessageFull,
    /// Its constructor makes no element: the code of the W3C.
    Construction(&'static str),
    /// Its text is not what the snapshot that has it says of it.
    Damaged,
    /// Its steps could not be done.
    Unrestructured(Arc<StepFault>),
}

/// Why steps were not done to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFault {
    /// It is refused after some of them.
    Refused(Refusal),
    /// It would have more bytes than a message may have.
    TooLong {
        /// Bytes that it would have at least.
        given: usize,
    },
    /// It would be longer than it may be by the bytes that came.
    Grown,
    /// An edit cannot be made in its bytes: why.
    Unreadable(String),
}
