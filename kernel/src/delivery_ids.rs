//! The ids of deliveries, column by column.

use crate::enter::enter;
use crate::matcher::to_pyarrow;
use arrow_array::{Array, FixedSizeBinaryArray, UInt32Array, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_pyarrow::FromPyArrow;
use pathcast_core::registry::delivery_ids as core;
use pathcast_core::registry::delivery_ids::{Deliveries, ID_BYTES};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The ids of many deliveries as a `fixed_size_binary` array; the places and result numbers are `uint32`, the versions
/// of distinct subscriptions a `fixed_size_binary` array.
///
/// `pathcast.registry.identity` says what they are made of.
#[pyfunction]
pub fn delivery_ids<'py>(
    py: Python<'py>,
    versions: &Bound<'py, PyAny>,
    version_places: &Bound<'py, PyAny>,
    messages: Vec<String>,
    message_places: &Bound<'py, PyAny>,
    results: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let versions = make_array(ArrayData::from_pyarrow_bound(versions)?);
    let versions = versions.as_any().downcast_ref::<FixedSizeBinaryArray>();
    let versions = versions.filter(|versions| versions.value_length() == ID_BYTES as i32);
    let Some(versions) = versions else {
        return Err(PyValueError::new_err("the versions are not of 16 bytes"));
    };
    let version_places = uint32_column(version_places)?;
    let message_places = uint32_column(message_places)?;
    let results = uint32_column(results)?;
    let deliveries = Deliveries {
        versions: versions.value_data(),
        version_places: version_places.values(),
        messages: &messages,
        message_places: message_places.values(),
        results: results.values(),
    };
    let made = enter(py, || core::delivery_ids(&deliveries))?;
    let made = made.ok_or_else(|| PyValueError::new_err("the columns do not fit together"))?;
    let ids = FixedSizeBinaryArray::try_new(ID_BYTES as i32, Buffer::from_vec(made), None)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    to_pyarrow(py, &ids as &dyn Array)
}

/// A `uint32` array without nulls.
pub fn uint32_column(column: &Bound<'_, PyAny>) -> PyResult<UInt32Array> {
    let array = make_array(ArrayData::from_pyarrow_bound(column)?);
    match array.as_any().downcast_ref::<UInt32Array>() {
        Some(numbers) if numbers.null_count() == 0 => Ok(numbers.clone()),
        _ => Err(PyValueError::new_err("a column is not uint32 without nulls")),
    }
}
