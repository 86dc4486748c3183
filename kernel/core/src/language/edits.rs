//! Steps that are done to a message before a query sees it: edits of the elements that a path selects.
//!
//! Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2.

use crate::language::choice::without_comments;
use crate::language::compile::compile_query;
use crate::language::query::Namespaces;
use crate::language::reader::{Kind, kind_of, read_query};
use crate::language::tree::{Expr, NodeTest, Step};
use crate::language::xpath::Axis;
use std::collections::HashMap;
use std::fmt;

/// What is done to the elements; the document element stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edit {
    /// They are taken out, with all that is in them.
    Drop,
    /// They get another local name.
    Rename,
    /// Their tags are taken out; those that declare a namespace stay.
    Unwrap,
}

impl Edit {
    /// The edit of a name.
    pub fn named(name: &str) -> Option<Edit> {
        [Edit::Drop, Edit::Rename, Edit::Unwrap].into_iter().find(|edit| edit.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Edit::Drop => "drop",
            Edit::Rename => "rename",
            Edit::Unwrap => "unwrap",
        }
    }
}

/// A step; in order by its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EditStep {
    /// What is done.
    pub edit: Edit,
    /// The XPath of the elements, in the message as the steps before have left it.
    pub path: String,
    /// The new local name of a renaming; empty for the others.
    pub name: String,
    /// Bindings for the path: prefix and URI, sorted.
    pub namespaces: Vec<(String, String)>,
}

impl fmt::Display for EditStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.name.is_empty() { "" } else { " " };
        write!(out, "{} {}{space}{}", self.edit.name(), self.path, self.name)
    }
}

impl EditStep {
    /// Whether its path is a query that selects nodes.
    pub(crate) fn selects_nodes(&self) -> bool {
        self.tree()
            .is_some_and(|tree| kind_of(&tree) == Kind::Nodes && compile_query(&tree).is_ok())
    }

    fn tree(&self) -> Option<Expr> {
        let bound: HashMap<String, String> = self.namespaces.iter().cloned().collect();
        read_query(&without_comments(&self.path), &Namespaces::new(bound)).ok()
    }

    /// URI and local name of the elements from the root on, down to those that are selected; none where the path is not
    /// one of child steps to names.
    pub(crate) fn child_names(&self) -> Option<Vec<(String, String)>> {
        let Expr::Path { is_absolute: true, steps, .. } = self.tree()? else { return None };
        let name = |step: &Step| match &step.test {
            NodeTest::Name(test) if step.axis == Axis::Child && test.local != "*" => {
                Some((test.uri.clone()?, test.local.clone()))
            }
            _ => None,
        };
        steps.iter().map(name).collect::<Option<Vec<_>>>().filter(|names| !names.is_empty())
    }
}
