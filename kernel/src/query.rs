//! The query compiler, as Python sees it: text in, normal form as data out.

use crate::reader::{Places, bindings, refused};
use pathcast_core::language::compile::compile_query as compiled;
use pathcast_core::language::query::{
    Axis, Condition, Constant, NameTest, Namespaces, Operator, Stage, Step, canonical_text,
    compile, compile_canonical,
};
use pathcast_core::language::reader::read_query;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
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

/// The steps of a path in canonical text, which may cast as no XPath 1.0 does; None if it is none.
#[pyfunction]
pub fn canonical_steps<'py>(py: Python<'py>, text: &str) -> PyResult<Option<Bound<'py, PyList>>> {
    compile_canonical(text).ok().map(|steps| steps_of(py, &steps)).transpose()
}

/// A query as (alternatives, conjunctions, expression, cost, reasons); a refusal is an exception, as of `read_query`.
///
/// A path is a list of steps, a reason (clause, offset in characters). `pathcast.query.normal_data` reads the steps.
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
    let alternatives = list(py, &query.alternatives, |path| steps_of(py, &path.steps))?;
    let conjunctions =
        list(py, &query.conjunctions(), |paths| list(py, paths, |path| steps_of(py, &path.steps)))?;
    let reasons = list(py, &query.reasons, |why| {
        (&why.text, places.characters(why.offset)).into_pyobject(py)
    })?;
    (alternatives, conjunctions, &query.expression, query.cost.name(), reasons).into_pyobject(py)
}

pub(crate) fn list<'py, T, U>(
    py: Python<'py>,
    items: &[T],
    made: impl Fn(&T) -> PyResult<Bound<'py, U>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        list.append(made(item)?.into_any())?;
    }
    Ok(list)
}

pub(crate) fn steps_of<'py>(py: Python<'py>, steps: &[Step<'_>]) -> PyResult<Bound<'py, PyList>> {
    list(py, steps, |step| {
        let axis = match step.axis {
            Axis::Child => 0,
            Axis::Descendant => 1,
            Axis::DescendantOrSelf => 2,
        };
        let stages = list(py, &step.stages, |stage| stage_of(py, stage))?;
        (axis, test_of(&step.test), stages).into_pyobject(py)
    })
}

fn stage_of<'py>(py: Python<'py>, stage: &Stage<'_>) -> PyResult<Bound<'py, PyTuple>> {
    let positions: Vec<(u8, f64)> =
        stage.positions.iter().map(|&(comparison, number)| (comparison as u8, number)).collect();
    let conditions = list(py, &stage.conditions, |condition| condition_of(py, condition))?;
    (positions, conditions).into_pyobject(py)
}

/// (0, name test, comparison or None), (1, comparison or None), (2, comparison) or (3, steps).
fn condition_of<'py>(py: Python<'py>, condition: &Condition<'_>) -> PyResult<Bound<'py, PyTuple>> {
    let borrowed =
        |(operator, constant): &'_ (Operator, Constant<'_>)| compare_of(py, *operator, constant);
    match condition {
        Condition::Attribute { test, compare } => {
            let compare = compare.as_ref().map(borrowed).transpose()?;
            (0, test_of(test), compare).into_pyobject(py)
        }
        Condition::Text(compare) => {
            (1, compare.as_ref().map(borrowed).transpose()?).into_pyobject(py)
        }
        Condition::Value(operator, constant) => {
            (2, compare_of(py, *operator, constant)?).into_pyobject(py)
        }
        Condition::Nested(steps) => (3, steps_of(py, steps)?).into_pyobject(py),
    }
}

/// (operator, constant): a float, a str, or (float,) for the cast of a value.
fn compare_of<'py>(
    py: Python<'py>,
    operator: Operator,
    constant: &Constant<'_>,
) -> PyResult<Bound<'py, PyTuple>> {
    match constant {
        Constant::Number(number) => (operator.code(), number).into_pyobject(py),
        Constant::Double(number) => (operator.code(), (number,)).into_pyobject(py),
        Constant::String(text) => (operator.code(), &**text).into_pyobject(py),
    }
}

/// None for `*`, (URI, name), (URI, None) for any name there, (None, name) in any namespace.
fn test_of<'t>(test: &'t NameTest<'_>) -> Option<(Option<&'t str>, Option<&'t str>)> {
    match test {
        NameTest::Any => None,
        NameTest::Name { uri, local } => Some((Some(uri), Some(local))),
        NameTest::AnyIn { uri } => Some((Some(uri), None)),
        NameTest::AnyNamespace { local } => Some((None, Some(local))),
    }
}
