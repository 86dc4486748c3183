//! What the queries of a snapshot ask for, as Python sees it.

use crate::enter::enter;
use crate::matcher::to_pyarrow;
use arrow_array::{Float64Array, LargeStringArray, UInt8Array, UInt32Array};
use pathcast_core::language::query::{Constant, NameTest};
use pathcast_core::registry::population::{End, Place, Population};
use pathcast_core::registry::snapshot::Snapshot;
use pyo3::prelude::*;

/// Namespace URI and local name; None where any will do.
type PyTest = (Option<String>, Option<String>);

/// Steps (axis, URI, local name), number of the end, and the test of an attribute.
type PyPlace = (Vec<(u8, Option<String>, Option<String>)>, u8, PyTest);

/// Places, constants (numbers, strings, numbers that values are cast for), columns of the paths, columns of the predicates.
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
    let found = enter(py, || Population::of(snapshot))?;
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

fn test_of(test: &NameTest<'_>) -> PyTest {
    match test {
        NameTest::Any => (None, None),
        NameTest::Name { uri, local } => (Some(uri.to_string()), Some(local.to_string())),
        NameTest::AnyIn { uri } => (Some(uri.to_string()), None),
        NameTest::AnyNamespace { local } => (None, Some(local.to_string())),
    }
}
