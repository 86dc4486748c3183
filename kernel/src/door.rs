//! The door: one message's tree as Python lists, for `explain`, tests and the curious.

use pathcast_core::door::{Code, Door, DtdPolicy, Limits, Param, Parsed, Refusal};
use pathcast_core::tree::{NONE, Span};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A limit by name; `limits` as for [`limits_of`].
pub fn limit(limits: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    named(limits, name)?.extract()
}

fn named<'py>(limits: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if limits.is_instance_of::<PyDict>() { limits.get_item(name) } else { limits.getattr(name) }
}

/// `limits` has the attributes of `pathcast.limits.Limits`, as an object or as a mapping.
pub fn limits_of(limits: &Bound<'_, PyAny>) -> PyResult<Limits> {
    let number = |name: &str| limit(limits, name);
    let dtd: String = named(limits, "dtd")?.extract()?;
    Ok(Limits {
        message_bytes_max: number("message_bytes_max")?,
        depth_max: number("depth_max")?,
        elements_max: number("elements_max")?,
        attributes_max: number("attributes_max")?,
        attribute_value_bytes_max: number("attribute_value_bytes_max")?,
        entity_expansion_ratio_max: number("entity_expansion_ratio_max")?,
        entity_expansion_bytes_max: number("entity_expansion_bytes_max")?,
        names_max: number("names_max")?,
        dtd: if dtd == "refuse" { DtdPolicy::Refuse } else { DtdPolicy::Internal },
    })
}

/// Parameters of a refusal, its place among them.
pub fn refusal_params<'py>(py: Python<'py>, refusal: &Refusal) -> PyResult<Bound<'py, PyDict>> {
    let params = PyDict::new(py);
    params.set_item("line", refusal.line)?;
    params.set_item("column", refusal.column)?;
    params.set_item("offset", refusal.offset)?;
    for (name, value) in &refusal.params {
        match value {
            Param::Text(text) => params.set_item(name, text)?,
            Param::Int(number) => params.set_item(name, number)?,
        }
    }
    Ok(params)
}

/// Every code that a refusal can have.
#[pyfunction]
pub fn door_error_codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}

/// The columns of one message as a dictionary, or the code and the parameters of its refusal.
#[pyfunction]
#[pyo3(signature = (message, limits, encoding=None))]
pub fn parse<'py>(
    py: Python<'py>,
    message: &[u8],
    limits: &Bound<'py, PyAny>,
    encoding: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut door = Door::new(limits_of(limits)?);
    match py.detach(|| door.parse(message, encoding)) {
        Ok(parsed) => Ok(columns(py, &parsed)?.into_any()),
        Err(refusal) => {
            let params = refusal_params(py, &refusal)?;
            Ok((refusal.code.as_str(), params).into_bound_py_any(py)?)
        }
    }
}

fn columns<'py>(py: Python<'py>, parsed: &Parsed<'_>) -> PyResult<Bound<'py, PyDict>> {
    let (tree, names) = (parsed.message.tree, parsed.names);
    let known: Vec<Bound<'py, PyTuple>> = (0..names.len() as u32)
        .map(|id| PyTuple::new(py, [names.uri(id), names.local(id)]))
        .collect::<PyResult<_>>()?;
    let named = |ids: &[u32]| -> Vec<Bound<'py, PyTuple>> {
        ids.iter().map(|&id| known[id as usize].clone()).collect()
    };
    let values = |spans: &[Span]| -> Vec<std::borrow::Cow<'_, str>> {
        spans.iter().map(|&span| String::from_utf8_lossy(parsed.message.bytes(span))).collect()
    };
    let parents: Vec<i64> = tree
        .parent
        .iter()
        .map(|&parent| if parent == NONE { -1 } else { i64::from(parent) })
        .collect();
    let columns = PyDict::new(py);
    columns.set_item("name", named(&tree.name))?;
    columns.set_item("parent", parents)?;
    columns.set_item("depth", &tree.depth)?;
    columns.set_item("element_end", &tree.element_end)?;
    columns.set_item("attribute_start", &tree.attribute_start)?;
    columns.set_item("text_start", &tree.text_start)?;
    columns.set_item("text_end", &tree.text_end)?;
    columns.set_item("attribute_name", named(&tree.attribute_name))?;
    columns.set_item("attribute_value", values(&tree.attribute_value))?;
    columns.set_item("text_parent", &tree.text_parent)?;
    columns.set_item("text_value", values(&tree.text_value))?;
    Ok(columns)
}
