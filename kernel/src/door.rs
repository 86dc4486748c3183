//! The door: one message's whole tree as Python lists, for `explain`, samples and tests.

use crate::enter::enter;
use pathcast_core::xml::parser::{Code, Door, DtdPolicy, Limits, Param, Parsed, Refusal};
use pathcast_core::xml::tree::{MarkupKind, NONE, Span};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet, PyTuple};
use std::borrow::Cow;

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

/// The columns of one message as a dictionary, comments, instructions, prefixes and namespace
/// declarations among them (`details`), or the code and the parameters of its refusal.
#[pyfunction]
#[pyo3(signature = (message, limits, encoding=None))]
pub fn parse<'py>(
    py: Python<'py>,
    message: &[u8],
    limits: &Bound<'py, PyAny>,
    encoding: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut door = Door::new(limits_of(limits)?);
    door.keep_full_tree(true);
    match enter(py, || door.parse(message, encoding))? {
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
    let values = |spans: &[Span]| texts(parsed, spans);
    let columns = PyDict::new(py);
    columns.set_item("name", named(&tree.name))?;
    columns.set_item("parent", parents(&tree.parent))?;
    columns.set_item("depth", &tree.depth)?;
    columns.set_item("element_end", &tree.element_end)?;
    columns.set_item("attribute_start", &tree.attribute_start)?;
    columns.set_item("text_start", &tree.text_start)?;
    columns.set_item("text_end", &tree.text_end)?;
    columns.set_item("attribute_name", named(&tree.attribute_name))?;
    columns.set_item("attribute_value", values(&tree.attribute_value))?;
    columns.set_item("text_parent", &tree.text_parent)?;
    columns.set_item("text_value", values(&tree.text_value))?;
    columns.set_item("details", details(py, parsed)?)?;
    Ok(columns)
}

/// The columns of a full tree, as `pathcast.message.TreeDetails` has them.
fn details<'py>(py: Python<'py>, parsed: &Parsed<'_>) -> PyResult<Bound<'py, PyDict>> {
    let tree = parsed.message.tree;
    let targets: Vec<Option<Cow<'_, str>>> = tree
        .markup_kind
        .iter()
        .zip(texts(parsed, &tree.markup_target))
        .map(|(&kind, target)| (kind == MarkupKind::Instruction).then_some(target))
        .collect();
    let declarations: Vec<(Cow<'_, str>, Cow<'_, str>)> = texts(parsed, &tree.declaration_prefix)
        .into_iter()
        .zip(texts(parsed, &tree.declaration_uri))
        .collect();
    let details = PyDict::new(py);
    details.set_item("markup_target", targets)?;
    details.set_item("markup_content", texts(parsed, &tree.markup_content))?;
    details.set_item("markup_parent", parents(&tree.markup_parent))?;
    details.set_item("markup_texts_before", &tree.markup_texts_before)?;
    details.set_item("markup_start", &tree.markup_start)?;
    details.set_item("markup_end", &tree.markup_end)?;
    details.set_item("prefix", texts(parsed, &tree.prefix))?;
    details.set_item("attribute_prefix", texts(parsed, &tree.attribute_prefix))?;
    details.set_item("declaration_start", &tree.declaration_start)?;
    details.set_item("declaration", declarations)?;
    details.set_item("id_attribute", PySet::new(py, &tree.id_attribute)?)?;
    Ok(details)
}

/// The values that spans stand for.
fn texts<'m>(parsed: &Parsed<'m>, spans: &[Span]) -> Vec<Cow<'m, str>> {
    spans.iter().map(|&span| String::from_utf8_lossy(parsed.message.bytes(span))).collect()
}

/// Elements by number, -1 for none.
fn parents(elements: &[u32]) -> Vec<i64> {
    elements.iter().map(|&element| if element == NONE { -1 } else { i64::from(element) }).collect()
}
