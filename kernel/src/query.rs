//! The query compiler, as Python sees it: text in, paths and an expression out.

use crate::paths::{Conjunction, NormalPath};
use crate::reader::{Places, bindings, refused};
use pathcast_core::language::compile::{CompiledQuery, Why, compile_query as compiled};
use pathcast_core::language::paths as core;
use pathcast_core::language::paths::Path;
use pathcast_core::language::query::{Namespaces, canonical_text, compile};
use pathcast_core::language::reader::read_query;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::collections::HashMap;

/// The canonical text of a query, or None when the fast compiler does not take its notation.
#[pyfunction]
pub fn canonical_form(
    text: &Bound<'_, PyString>,
    namespaces: HashMap<String, String>,
) -> Option<String> {
    // A lone surrogate cannot be written in UTF-8; the slow way says so.
    let text = text.to_cow().ok()?;
    let namespaces = Namespaces::new(namespaces);
    let steps = compile(&text, &namespaces).ok()?;
    let mut canonical = String::with_capacity(text.len());
    canonical_text(&steps, &mut canonical);
    Some(canonical)
}

/// A query as (alternatives, conjunctions, expression, cost, reasons); a text that is refused raises `QueryRefusal`.
///
/// A reason is (clause, offset in characters).
#[pyfunction]
pub fn compile_query<'py>(
    text: &Bound<'py, PyString>,
    namespaces: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = text.py();
    let text = text.to_cow()?;
    let namespaces = bindings(namespaces)?;
    let places = Places::new(&text);
    let tree = read_query(&text, &namespaces).map_err(|refusal| refused(py, &refusal, &places))?;
    let query = compiled(&tree).map_err(|refusal| refused(py, &refusal, &places))?;
    let reason = |why: &Why| (why.text.clone(), places.characters(why.offset as usize));
    let reasons: Vec<(String, usize)> = query.reasons().iter().map(reason).collect();
    let (alternatives, conjunctions) = paths_of(&query);
    let expression = query.expression.as_ref().map(|expression| &expression.text);
    (alternatives, conjunctions, expression, query.cost().name(), reasons).into_pyobject(py)
}

/// The alternatives and the conjunctions of a query.
pub(crate) fn paths_of(query: &CompiledQuery<'_>) -> (Vec<NormalPath>, Vec<Conjunction>) {
    let conjunctions = query.conjunctions().into_iter();
    let conjunctions =
        conjunctions.map(|paths| core::Conjunction::of(paths.into_iter().map(Path::from)));
    let alternatives = query.alternatives.iter().cloned().map(|path| NormalPath(path.into()));
    (alternatives.collect(), conjunctions.map(Conjunction).collect())
}
