//! Steps that edit messages, as Python sees them.

use pathcast_core::language::edits::{Edit, EditStep};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// A step: name of the edit, path, new name, bindings of the path.
pub type PyStep = (String, String, String, Vec<(String, String)>);

/// Steps as the kernel has them.
pub fn steps_of(steps: &[PyStep]) -> PyResult<Arc<[EditStep]>> {
    let step = |(edit, path, name, namespaces): &PyStep| {
        let edit = Edit::named(edit)
            .ok_or_else(|| PyValueError::new_err(format!("no edit is called {edit}")))?;
        Ok(EditStep {
            edit,
            path: path.clone(),
            name: name.clone(),
            namespaces: namespaces.clone(),
        })
    };
    steps.iter().map(step).collect()
}
