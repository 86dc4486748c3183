//! Filter queries, from Python's rows to the registry.

use crate::enter::enter_whole;
use crate::reader::{Places, refusal_of};
use pathcast_core::language::query::Compiler;
use pathcast_core::registry::delivery::dissemination::{Dissemination, NotTaken, State};
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::collections::HashMap;

/// Queries registered under one lock, between two looks for signals.
const CHUNK: usize = 1 << 14;

/// Queries of the usual notation that one of any other counts for, in that.
const LONG_WAY: usize = 64;

/// Row of a query that was not taken, and why.
type NotTakenRow = (usize, NotTaken);

/// The same, as Python has it.
pub type PyNotAdded<'py> = (usize, Bound<'py, PyTuple>);

/// Registers gates; see `Dissemination.register_gates`.
///
/// # Errors
/// Those of Python.
pub fn register_gates<'py>(
    py: Python<'py>,
    registry: &Dissemination,
    texts: &[String],
) -> PyResult<Vec<PyNotAdded<'py>>> {
    let not_taken = enter_whole(py, || {
        registry.change(|state| {
            let namespaces = state.namespace_number(&NamespaceMap::new());
            let mut not_taken = Vec::new();
            for (row, text) in texts.iter().enumerate() {
                let record = QueryRecord { id: text, text, namespaces };
                not_taken.extend(state.add_gate(record).err().map(|why| (row, why)));
            }
            not_taken
        })
    });
    let told = |(row, why): NotTakenRow| Ok((row, why_of(py, &why, &texts[row])?));
    not_taken.into_iter().map(told).collect()
}

/// Registers filter queries; see `Dissemination.register`.
///
/// # Errors
/// Those of Python.
pub fn register<'py>(
    py: Python<'py>,
    registry: &Dissemination,
    queries: &Bound<'py, PyList>,
    namespaces: NamespaceMap,
) -> PyResult<Vec<PyNotAdded<'py>>> {
    let mut not_added = Vec::new();
    let mut start = 0;
    let mut scopes = Scopes::new(namespaces);
    while start < queries.len() {
        let end = queries.len().min(start + CHUNK);
        let mut chunk = Chunk::default();
        for row in start..end {
            let query = queries.get_item(row)?;
            let (id, text, own, _): (
                Bound<'_, PyString>,
                Bound<'_, PyString>,
                Option<Bound<'_, PyAny>>,
                Bound<'_, PyAny>,
            ) = query.extract()?;
            chunk.push(id.to_str()?, text.to_str()?, scopes.place(own.as_ref())?);
        }
        let (scopes, mut next) = (scopes.all(), 0);
        while next < chunk.rows.len() {
            let rows;
            (next, rows) =
                enter_whole(py, || registry.change(|state| chunk.register(state, scopes, next)));
            for (row, why) in rows {
                not_added.push((start + row, why_of(py, &why, chunk.text_of(row))?));
            }
            py.check_signals()?;
        }
        start = end;
    }
    Ok(not_added)
}

/// The namespaces of rows, by place.
pub struct Scopes {
    scopes: Vec<Scope>,
    /// Address of a map that some row has -> its place.
    places: HashMap<usize, usize>,
}

impl Scopes {
    /// Those of rows that have none of their own.
    pub fn new(namespaces: NamespaceMap) -> Self {
        Scopes { scopes: vec![Scope::new(namespaces)], places: HashMap::new() }
    }

    /// The place of those of a row. Maps that rows share are shared objects as a rule; each object is looked at once.
    ///
    /// # Errors
    /// It is no map of texts.
    pub fn place(&mut self, own: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let Some(own) = own else { return Ok(0) };
        if let Some(&place) = self.places.get(&(own.as_ptr() as usize)) {
            return Ok(place);
        }
        let mut map = self.scopes[0].map.clone();
        map.extend(own.extract::<NamespaceMap>()?);
        self.scopes.push(Scope::new(map));
        self.places.insert(own.as_ptr() as usize, self.scopes.len() - 1);
        Ok(self.scopes.len() - 1)
    }

    /// All, in their order.
    pub fn all(&self) -> &[Scope] {
        &self.scopes
    }
}

/// Queries copied out of Python.
#[derive(Default)]
struct Chunk {
    text: String,
    /// End of the id, end of the text, place of the namespaces.
    rows: Vec<(usize, usize, usize)>,
}

impl Chunk {
    fn push(&mut self, id: &str, text: &str, scope: usize) {
        self.text.push_str(id);
        let middle = self.text.len();
        self.text.push_str(text);
        self.rows.push((middle, self.text.len(), scope));
    }

    fn id_and_text(&self, row: usize) -> (&str, &str) {
        let start = if row == 0 { 0 } else { self.rows[row - 1].1 };
        let (middle, end, _) = self.rows[row];
        (&self.text[start..middle], &self.text[middle..end])
    }

    fn text_of(&self, row: usize) -> &str {
        self.id_and_text(row).1
    }

    /// Registers rows from `first` on for as long as a lock may be held; gives the row to go on with.
    fn register(
        &self,
        state: &mut State,
        scopes: &[Scope],
        first: usize,
    ) -> (usize, Vec<NotTakenRow>) {
        let mut not_added = Vec::new();
        // A merge between two locks numbers the maps anew.
        let mut number_of: Vec<Option<u32>> = vec![None; scopes.len()];
        let mut compiler = Compiler::default();
        let mut work = 0;
        for row in first..self.rows.len() {
            if work >= CHUNK {
                return (row, not_added);
            }
            let ((id, text), scope) = (self.id_and_text(row), self.rows[row].2);
            let number = || state.namespace_number(&scopes[scope].map);
            let namespaces = *number_of[scope].get_or_insert_with(number);
            let record = QueryRecord { id, text, namespaces };
            work += match state.add(record, scopes[scope].resolver(), &mut compiler) {
                Ok(true) => 1,
                Ok(false) => LONG_WAY,
                Err(why) => {
                    not_added.push((row, why));
                    LONG_WAY
                }
            };
        }
        (self.rows.len(), not_added)
    }
}

fn why_of<'py>(py: Python<'py>, why: &NotTaken, text: &str) -> PyResult<Bound<'py, PyTuple>> {
    let (code, reason) = match why {
        NotTaken::NoQuery(refusal) => return refusal_of(py, refusal, &Places::new(text)),
        NotTaken::NoGate => ("query.unsupported", "NoGate"),
        NotTaken::Duplicate => ("query.duplicate", ""),
        NotTaken::Refused | NotTaken::TooManySeries => unreachable!("a filter query"),
    };
    (code, reason, 0, PyDict::new(py)).into_pyobject(py)
}
