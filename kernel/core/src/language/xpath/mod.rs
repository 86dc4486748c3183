//! XPath 1.0 as syntax trees.
//!
//! A tree lies in an arena, simplified and analysed: what each part depends on, where an evaluator keeps values,
//! whether a full tree is needed. [`crate::engine::evaluate`] evaluates it.

#![forbid(unsafe_code)]

pub(crate) mod analyse;
pub(crate) mod ast;
pub(crate) mod simplify;

pub use ast::{Axis, ExprId, Kind, List, NodeTest, Step, TextRange};

use ast::Arena;

/// An XPath 1.0 expression, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) arena: Arena,
    pub(crate) root: ExprId,
    needs_full_tree: bool,
}

impl Expression {
    /// An expression that is laid out.
    pub(crate) fn laid_out((arena, root): (Arena, ExprId)) -> Expression {
        let needs_full_tree = analyse::needs_full_tree(&arena);
        Expression { arena, root, needs_full_tree }
    }

    /// Whether the message must have been parsed with [`crate::xml::parser::Door::keep_full_tree`]:
    /// comments and instructions, prefixes, namespace nodes or declared ids can matter.
    pub fn needs_full_tree(&self) -> bool {
        self.needs_full_tree
    }
}
