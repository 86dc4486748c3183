//! The nodes of one message, and the values of expressions at them: what explanations are made of.

use crate::door::{limits_of, refusal_params};
use crate::enter::enter;
use pathcast_core::engine::evaluate::{Scratch, Session, Value};
use pathcast_core::language::xpath::Expression;
use pathcast_core::xml::names::NameTable;
use pathcast_core::xml::parser::Door;
use pathcast_core::xml::tree::{Message, MessageTree};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::borrow::Cow;
use std::collections::HashMap;

/// A message that is kept; nodes are numbers that sort in document order, the document node is 0.
#[pyclass]
pub struct MessageNodes {
    tree: MessageTree,
    names: NameTable,
    source: Vec<u8>,
    scratch: Scratch,
    expressions: HashMap<String, Expression>,
    steps_left: u64,
}

#[pymethods]
impl MessageNodes {
    /// Parses a message; or the code and the parameters of its refusal.
    #[staticmethod]
    #[pyo3(signature = (message, limits, encoding, steps_max))]
    fn of<'py>(
        py: Python<'py>,
        message: &[u8],
        limits: &Bound<'py, PyAny>,
        encoding: Option<&str>,
        steps_max: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut door = Door::new(limits_of(limits)?);
        door.keep_full_tree(true);
        let parsed = enter(py, || {
            let parsed = door.parse(message, encoding)?;
            let mut scratch = Scratch::default();
            Session::new(parsed.message, parsed.names, &mut scratch);
            Ok((parsed.message.source.to_vec(), scratch))
        })?;
        match parsed {
            Ok((source, scratch)) => {
                let (tree, names) = door.into_parts();
                let expressions = HashMap::new();
                let steps_left = steps_max;
                MessageNodes { tree, names, source, scratch, expressions, steps_left }
                    .into_bound_py_any(py)
            }
            Err(refusal) => {
                let params = refusal_params(py, &refusal)?;
                (refusal.code.as_str(), params).into_bound_py_any(py)
            }
        }
    }

    /// The values of an expression in canonical text, one for each context (a node, its position, the size that
    /// positions count in); a node-set is a tuple. None if the steps of all calls are used up. ValueError for what
    /// is no expression.
    fn values<'py>(
        &mut self,
        py: Python<'py>,
        expression: &str,
        contexts: Vec<(u64, u32, u32)>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let MessageNodes { tree, names, source, scratch, expressions, steps_left } = self;
        if !expressions.contains_key(expression) {
            let read = Expression::parse_for_contexts(expression)
                .map_err(|refusal| PyValueError::new_err(format!("{refusal:?}")))?;
            expressions.insert(expression.to_owned(), read);
        }
        let read = &expressions[expression];
        let mut session = Session::again(Message { tree, source }, names, scratch);
        let found = enter(py, || session.values_at(&contexts, read, *steps_left))?;
        *steps_left = steps_left.saturating_sub(session.steps_taken());
        let Ok(found) = found else { return Ok(None) };
        let python = |value| match value {
            Value::Boolean(value) => value.into_bound_py_any(py),
            Value::Number(value) => value.into_bound_py_any(py),
            Value::String(value) => value.into_bound_py_any(py),
            Value::Nodes(nodes) => Ok(PyTuple::new(py, nodes)?.into_any()),
        };
        found.into_iter().map(python).collect::<PyResult<_>>().map(Some)
    }

    /// The kind of a node, namespace and local name, its place among the siblings of its kind and name, from 1, and
    /// its parent.
    fn node(&mut self, node: u64) -> (&'static str, String, String, u32, Option<u64>) {
        let message = Message { tree: &self.tree, source: &self.source };
        let facts = Session::again(message, &self.names, &mut self.scratch).node_of(node);
        let text = |bytes: Cow<'_, [u8]>| String::from_utf8_lossy(&bytes).into_owned();
        (facts.kind, text(facts.uri), text(facts.local), facts.place, facts.parent)
    }
}
