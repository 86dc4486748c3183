//! The expressions of an index that grows: each distinct text once.
//!
//! What is kept is the text. It is compiled when a message asks for it: most expressions of a large
//! index are never reached by the messages of one process, and a compiled one takes about ten times
//! the bytes of its text. So many are kept as there is room for; the others are compiled each time,
//! which costs less than to evaluate them.

use super::expression_of;
use crate::engine::ids::ExpressionId;
use crate::language::xpath::Expression;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of text whose expressions are kept compiled.
const KEPT_TEXT_MAX: usize = 4 << 20;

/// Room for the compiled expressions of one automaton.
#[derive(Debug, Default)]
pub(crate) struct Room {
    used: AtomicUsize,
}

/// An expression that is compiled when it is asked for.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    kept: OnceLock<Box<Expression>>,
}

impl Slot {
    /// Calls `f` with the expression of a canonical text, and keeps it while there is room.
    pub(crate) fn with<T>(&self, text: &str, room: &Room, f: impl FnOnce(&Expression) -> T) -> T {
        if let Some(kept) = self.kept.get() {
            return f(kept);
        }
        // Threads that come at the same time count one expression twice; it is a bound on memory,
        // which that does not break.
        if room.used.load(Ordering::Relaxed) + text.len() > KEPT_TEXT_MAX {
            return f(&expression_of(text));
        }
        room.used.fetch_add(text.len(), Ordering::Relaxed);
        f(self.kept.get_or_init(|| Box::new(expression_of(text))))
    }
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    needs_full_tree: bool,
    compiled: Slot,
}

/// Expressions by text, numbered in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct ExpressionTable {
    entries: Vec<Entry>,
    index: HashTable<ExpressionId>,
    needs_full_tree: bool,
    room: Room,
}

impl ExpressionTable {
    /// The same expressions, none of them compiled.
    pub(crate) fn copy(&self) -> ExpressionTable {
        let copy = |entry: &Entry| Entry {
            text: Arc::clone(&entry.text),
            needs_full_tree: entry.needs_full_tree,
            compiled: Slot::default(),
        };
        ExpressionTable {
            entries: self.entries.iter().map(copy).collect(),
            index: self.index.clone(),
            needs_full_tree: self.needs_full_tree,
            room: Room::default(),
        }
    }

    /// Number of expressions.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of an expression in canonical text, new or known.
    pub(crate) fn intern(&mut self, text: &str, needs_full_tree: bool) -> ExpressionId {
        self.find(text).unwrap_or_else(|| self.push(text, needs_full_tree))
    }

    /// Canonical text of an expression, and whether it needs a full tree.
    pub(crate) fn entry(&self, id: ExpressionId) -> (&str, bool) {
        let entry = &self.entries[id as usize];
        (&entry.text, entry.needs_full_tree)
    }

    /// Calls `f` with an expression.
    pub(crate) fn with<T>(&self, id: ExpressionId, f: impl FnOnce(&Expression) -> T) -> T {
        let entry = &self.entries[id as usize];
        entry.compiled.with(&entry.text, &self.room, f)
    }

    /// Whether an expression needs more of a message than elements, attributes and text.
    pub(crate) fn needs_full_tree(&self) -> bool {
        self.needs_full_tree
    }

    /// Bytes held, compiled expressions not counted.
    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.entries.iter().map(|entry| entry.text.len()).sum::<usize>()
            + self.index.capacity() * 5
    }

    fn find(&self, text: &str) -> Option<ExpressionId> {
        self.index.find(hash(text), |&id| *self.entries[id as usize].text == *text).copied()
    }

    fn push(&mut self, text: &str, needs_full_tree: bool) -> ExpressionId {
        let id = self.entries.len() as ExpressionId;
        self.entries.push(Entry { text: text.into(), needs_full_tree, compiled: Slot::default() });
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
