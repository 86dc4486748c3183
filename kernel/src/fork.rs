//! Forks of the process: what the kernel does in the background lets everything go before.

use pathcast_core::registry::merging;
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(merging::before_fork);
}

#[pyfunction]
fn after_fork() {
    merging::after_fork();
}

/// Has Python call the kernel around each fork.
///
/// # Errors
/// There is no such call.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let after = wrap_pyfunction!(after_fork, module)?;
    let calls = PyDict::new(module.py());
    calls.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    calls.set_item("after_in_parent", &after)?;
    calls.set_item("after_in_child", after)?;
    module.py().import("os")?.call_method("register_at_fork", (), Some(&calls))?;
    Ok(())
}
