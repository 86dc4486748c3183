//! The query compiler, as Python sees it.

use pathcast_core::language::query::{Namespaces, canonical_text, compile};
use pyo3::prelude::*;
use pyo3::types::PyString;
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
