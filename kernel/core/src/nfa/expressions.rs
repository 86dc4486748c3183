//! The expressions of an index that grows: each distinct text once.
//!
//! An expression is parsed when it comes, so that a text that is none is refused at once; what is
//! kept is the text. It is compiled again when a message first asks for it: most expressions of a
//! large index are never reached by the messages of one process, and a parsed one takes many times
//! the bytes of its text.

use super::{ExpressionId, expression_of};
use crate::xpath::{Expression, ParseError};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::OnceLock;

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    needs_full_tree: bool,
    compiled: OnceLock<Expression>,
}

/// Expressions by text, numbered in order of arrival.
#[derive(Debug, Default)]
pub struct ExpressionTable {
    entries: Vec<Entry>,
    index: HashTable<ExpressionId>,
    needs_full_tree: bool,
}

impl ExpressionTable {
    /// Number of expressions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of an expression in canonical text, new or known.
    ///
    /// # Errors
    /// The text is not an expression.
    pub fn intern(&mut self, text: &str) -> Result<ExpressionId, ParseError> {
        match self.find(text) {
            Some(known) => Ok(known),
            None => {
                let needs_full_tree = Expression::parse(text)?.needs_full_tree();
                Ok(self.push(text, needs_full_tree))
            }
        }
    }

    /// The number of an expression that a snapshot holds, new or known.
    pub fn import(&mut self, text: &str, needs_full_tree: bool) -> ExpressionId {
        self.find(text).unwrap_or_else(|| self.push(text, needs_full_tree))
    }

    /// Canonical text of an expression, and whether it needs a full tree.
    pub fn entry(&self, id: ExpressionId) -> (&str, bool) {
        let entry = &self.entries[id as usize];
        (&entry.text, entry.needs_full_tree)
    }

    /// An expression, compiled when first asked for.
    pub fn compiled(&self, id: ExpressionId) -> &Expression {
        let entry = &self.entries[id as usize];
        entry.compiled.get_or_init(|| expression_of(&entry.text))
    }

    /// Whether an expression needs more of a message than elements, attributes and text.
    pub fn needs_full_tree(&self) -> bool {
        self.needs_full_tree
    }

    /// Bytes held, compiled expressions not counted.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.entries.iter().map(|entry| entry.text.len()).sum::<usize>()
            + self.index.capacity() * 5
    }

    fn find(&self, text: &str) -> Option<ExpressionId> {
        self.index.find(hash(text), |&id| *self.entries[id as usize].text == *text).copied()
    }

    fn push(&mut self, text: &str, needs_full_tree: bool) -> ExpressionId {
        let id = self.entries.len() as ExpressionId;
        self.entries.push(Entry { text: text.into(), needs_full_tree, compiled: OnceLock::new() });
        self.needs_full_tree |= needs_full_tree;
        let entries = &self.entries;
        self.index.insert_unique(hash(text), id, |&id| hash(&entries[id as usize].text));
        id
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}
