//! The PyO3 layer.

use pyo3::prelude::*;

/// Native kernel of Pathcast.
#[pymodule]
mod pathcast_kernel {}
