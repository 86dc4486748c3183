//! What the queries of a snapshot ask for, as Python sees it.

use crate::enter::enter;
use crate::matcher::to_pyarrow;
use crate::paths::NormalPath;
use arrow_array::{Float64Array, LargeStringArray, UInt8Array, UInt32Array};
use pathcast_core::language::paths::Path;
use pathcast_core::language::query::{Axis, Constant, NameTest};
use pathcast_core::registry::population::{End, Place, Population};
use pathcast_core::registry::snapshot::Snapshot;
use pyo3::prelude::*;

/// Namespace URI and local name; None where any will do.
pub type PyTest = (Option<String>, Option<String>);

/// Steps (axis, URI, local name), number of the end, and the test of an attribute.
pub type PyPlace = (Vec<(u8, Option<String>, Option<String>)>, u8, PyTest);

/// Places, constants (numbers, strings, numbers that values are cast for), columns of the paths, columns of the
/// predicates.
pub type PyPopulation<'py> = (
    Vec<PyPlace>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Vec<Bound<'py, PyAny>>,
    Vec<Bound<'py, PyAny>>,
);

/// The columns of a snapshot.
pub fn columns_of<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<PyPopulation<'py>> {
    columns(py, &enter(py, || Population::of(snapshot))?)
}

/// The columns of queries of which each asks for one of several paths.
#[pyfunction]
pub fn population_of<'py>(
    py: Python<'py>,
    queries: Vec<Vec<PyRef<'py, NormalPath>>>,
) -> PyResult<PyPopulation<'py>> {
    let queries: Vec<Vec<&Path>> =
        queries.iter().map(|paths| paths.iter().map(|path| &path.0).collect()).collect();
    columns(py, &Population::of_paths(&queries))
}

fn columns<'py>(py: Python<'py>, found: &Population) -> PyResult<PyPopulation<'py>> {
    let constants = || found.constants.iter();
    let numbers: Float64Array = constants()
        .map(|constant| match constant {
            Constant::Number(number) => Some(*number),
            _ => None,
        })
        .collect();
    let doubles: Float64Array = constants()
        .map(|constant| match constant {
            Constant::Double(number) => Some(*number),
            _ => None,
        })
        .collect();
    let strings: LargeStringArray = constants()
        .map(|constant| match constant {
            Constant::String(text) => Some(&**text),
            _ => None,
        })
        .collect();
    let whole = |column: Vec<u32>| to_pyarrow(py, &UInt32Array::from(column));
    let paths = vec![
        whole(found.paths.iter().map(|row| row.0).collect())?,
        whole(found.paths.iter().map(|row| row.1).collect())?,
        whole(found.paths.iter().map(|row| row.2).collect())?,
    ];
    let rows = &found.predicates;
    let operators: Vec<u8> = rows.iter().map(|row| row.3.code()).collect();
    let predicates = vec![
        whole(rows.iter().map(|row| row.0).collect())?,
        whole(rows.iter().map(|row| row.1).collect())?,
        whole(rows.iter().map(|row| row.2).collect())?,
        to_pyarrow(py, &UInt8Array::from(operators))?,
        whole(rows.iter().map(|row| row.4).collect())?,
    ];
    let places = found.places.iter().map(place_of).collect();
    let [numbers, strings, doubles] =
        [to_pyarrow(py, &numbers)?, to_pyarrow(py, &strings)?, to_pyarrow(py, &doubles)?];
    Ok((places, numbers, strings, doubles, paths, predicates))
}

fn place_of(place: &Place) -> PyPlace {
    let steps = place.steps.iter().map(|(axis, test)| {
        let (uri, local) = test_of(test);
        (*axis as u8, uri, local)
    });
    let (end, attribute) = match &place.end {
        End::Element => (0, (None, None)),
        End::Attribute(test) => (1, test_of(test)),
        End::Text => (2, (None, None)),
        End::Value => (3, (None, None)),
    };
    (steps.collect(), end, attribute)
}

pub(crate) fn test_of(test: &NameTest<'_>) -> PyTest {
    match test {
        NameTest::Any => (None, None),
        NameTest::Name { uri, local } => (Some(uri.to_string()), Some(local.to_string())),
        NameTest::AnyIn { uri } => (Some(uri.to_string()), None),
        NameTest::AnyNamespace { local } => (None, Some(local.to_string())),
    }
}

/// The place that Python tells of; nothing if its numbers are of none.
pub(crate) fn place_from((steps, end, attribute): PyPlace) -> Option<Place> {
    let axes = [Axis::Child, Axis::Descendant, Axis::DescendantOrSelf];
    let step = |(axis, uri, local)| Some((*axes.get(usize::from(axis))?, test_from((uri, local))));
    let steps = steps.into_iter().map(|(axis, uri, local): (u8, _, _)| step((axis, uri, local)));
    let end = match end {
        0 => End::Element,
        1 => End::Attribute(test_from(attribute)),
        2 => End::Text,
        3 => End::Value,
        _ => return None,
    };
    Some(Place { steps: steps.collect::<Option<_>>()?, end })
}

fn test_from(test: PyTest) -> NameTest<'static> {
    match test {
        (None, None) => NameTest::Any,
        (Some(uri), Some(local)) => NameTest::Name { uri: uri.into(), local: local.into() },
        (Some(uri), None) => NameTest::AnyIn { uri: uri.into() },
        (None, Some(local)) => NameTest::AnyNamespace { local: local.into() },
    }
}
