//! Queries that a message leaves undecided.

use crate::engine::ids::QueryNumber;

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

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.by_query.len() + self.by_message.len()
    }
}
