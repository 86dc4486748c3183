//! Steps done to messages for others than subscriptions.

use crate::dissemination::{options_of, verdict_of};
use crate::edits::{PyStep, steps_of};
use crate::enter::{enter, enter_whole};
use pathcast_core::registry::delivery::links as core;
use pathcast_core::registry::delivery::serving::Options;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, PoisonError};

/// Many series of steps; of those that begin alike the beginning is done once to a message.
#[pyclass(frozen)]
pub struct Restructurings {
    series: Mutex<core::Restructurings>,
    options: Options,
}

/// A message, how many steps were done to it before, and the places of the series that are done to it.
type PyCame = (PyBackedBytes, usize, Vec<usize>);

/// Code and parameters of an error.
type PyFault<'py> = (&'static str, Bound<'py, PyDict>);

/// A message after a series, or why that cannot be said; None where it stays as it came.
#[derive(IntoPyObject)]
enum PyMade<'py> {
    Changed(Bound<'py, PyBytes>),
    Not(PyFault<'py>),
}

#[pymethods]
impl Restructurings {
    /// No series; `limits` has the attributes of `pathcast.limits.Limits`.
    #[new]
    fn new(limits: &Bound<'_, PyAny>, cache_bytes_max: usize) -> PyResult<Self> {
        let options = options_of(limits, cache_bytes_max)?;
        let series = Mutex::new(core::Restructurings::new(options.clone()));
        Ok(Restructurings { series, options })
    }

    /// These are the series from now on.
    ///
    /// Raises KeyError with the place of the first that has a path that selects no nodes; nothing is changed then.
    fn set(&self, py: Python<'_>, series: Vec<Vec<PyStep>>) -> PyResult<()> {
        let series: Vec<_> = series.iter().map(|steps| steps_of(steps)).collect::<PyResult<_>>()?;
        enter_whole(py, || self.lock().set(&series)).map_err(PyKeyError::new_err)
    }

    /// Each message after each of its series.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        messages: Vec<PyCame>,
    ) -> PyResult<Vec<Vec<Option<PyMade<'py>>>>> {
        let made = enter(py, || {
            let mut series = self.lock();
            let made =
                messages.iter().map(|(bytes, done, wanted)| series.apply(bytes, *done, wanted));
            made.collect::<Vec<_>>()
        })?;
        let made = made.into_iter();
        made.map(|made| made.into_iter().map(|made| self.made(py, made)).collect()).collect()
    }
}

impl Restructurings {
    fn lock(&self) -> std::sync::MutexGuard<'_, core::Restructurings> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made<'py>(
        &self,
        py: Python<'py>,
        made: core::Restructured,
    ) -> PyResult<Option<PyMade<'py>>> {
        Ok(match made {
            Ok(text) => text.map(|text| PyMade::Changed(PyBytes::new(py, &text))),
            Err(verdict) => Some(PyMade::Not(verdict_of(py, &verdict, &self.options)?)),
        })
    }
}
