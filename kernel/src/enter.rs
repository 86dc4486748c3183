//! The way into the engine: without the GIL, and with an eye on signals.

use pathcast_core::engine::interrupt::{ASK_EVERY, Interrupted, unwatched, watched};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Calls the engine for what can wait for a lock or takes long: other threads of Python go on, and the first
/// exception that a signal handler raises (Ctrl-C) ends the work and is this call's. Handlers run where the work
/// stands, so one that changes what the work reads would wait for itself.
///
/// # Errors
/// The exception of a signal handler.
pub fn enter<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (answer, raised) = py.detach(|| {
        let raised: Rc<RefCell<Option<PyErr>>> = Rc::default();
        let kept = Rc::clone(&raised);
        let ask = move || {
            let error = Python::attach(|py| py.check_signals().err());
            let is_raised = error.is_some();
            kept.replace(error);
            is_raised
        };
        let answer = watched(ASK_EVERY, ask, work);
        (answer, raised.take())
    });
    raised.map_or(Ok(answer), Err)
}

/// As [`enter`], of work that can be interrupted as a whole.
///
/// # Errors
/// The exception of a signal handler.
pub fn enter_long<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Interrupted> + Send,
) -> PyResult<T> {
    let answer = enter(py, work)?;
    Ok(answer.unwrap_or_else(|Interrupted| unreachable!("work is interrupted for a signal only")))
}

/// Calls the engine for what changes something and is not interrupted, since that would be left half changed.
/// It is done in pieces that are short, with a look for signals between them.
pub fn enter_whole<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| unwatched(work))
}
