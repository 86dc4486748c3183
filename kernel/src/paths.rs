//! Paths in normal form as Python objects: frozen, equal by their text.

use crate::edits::{PyStep, steps_of};
use crate::enter::enter;
use crate::population::{PyPlace, PyTest, place_from, test_of};
use crate::reader::{Places, refused};
use pathcast_core::engine::interrupt::did;
use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::compile as implication;
use pathcast_core::language::compile::Facts;
use pathcast_core::language::paths as core;
use pathcast_core::language::paths::Path;
use pathcast_core::language::paths::before_steps::Effect;
use pathcast_core::language::paths::covering::{Alternatives, Token, is_beginning, is_name};
use pathcast_core::language::query::{Constant, Operator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::BTreeSet;

/// Work of a comparison of two paths, as [`did`] counts it.
const COMPARISON_WORK: u64 = 64;

/// Comparisons in one call, some microseconds each.
const COMPARISONS_MAX: usize = 300_000;

/// Queries that one query is compared with; leaves something of the bound to the others.
const CANDIDATES_MAX: usize = 3_000;

/// A path in normal form.
#[pyclass(frozen, eq, hash, str = "{0}", module = "pathcast_kernel")]
#[derive(PartialEq, Eq, Hash)]
pub struct NormalPath(pub Path);

/// A number, a string, or (number,) for the cast of a value.
#[derive(FromPyObject)]
pub enum PyConstant {
    Number(f64),
    String(String),
    Double((f64,)),
}

/// Number of an operator, and what is compared with.
type PyCompare = (u8, PyConstant);

fn compare_from((code, constant): PyCompare) -> PyResult<(Operator, Constant<'static>)> {
    let constant = match constant {
        PyConstant::Number(number) => Constant::Number(number),
        PyConstant::String(text) => Constant::String(text.into()),
        PyConstant::Double((number,)) => Constant::Double(number),
    };
    Ok((Operator::of_code(code).ok_or_else(unknown_number)?, constant))
}

fn unknown_number() -> PyErr {
    PyValueError::new_err("no number of an axis, end or operator")
}

#[pymethods]
impl NormalPath {
    /// Raises ValueError if the text is no canonical text.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let path = Path::read(text);
        path.map(NormalPath).map_err(|_| PyValueError::new_err("it is not in canonical text"))
    }

    /// The path to a place, (operator, constant) compared there; `/*` and no place for any message.
    #[staticmethod]
    fn at(place: PyPlace, compare: Option<PyCompare>) -> PyResult<Self> {
        let place = place_from(place).ok_or_else(unknown_number)?;
        Ok(NormalPath(place.path(compare.map(compare_from).transpose()?)))
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// Number of the axis, namespace URI and local name of each step.
    fn steps(&self) -> Vec<(u8, Option<String>, Option<String>)> {
        let step = |(axis, (uri, local)): (u8, PyTest)| (axis, uri, local);
        self.0.steps().iter().map(|each| step((each.axis as u8, test_of(&each.test)))).collect()
    }

    /// Whether no step has predicates.
    #[getter]
    fn is_bare(&self) -> bool {
        self.0.steps().iter().all(|step| step.stages.is_empty())
    }

    #[getter]
    fn can_match(&self) -> bool {
        self.0.can_match()
    }

    #[getter]
    fn weight(&self) -> u32 {
        self.0.weight()
    }

    fn covers(&self, special: &NormalPath) -> bool {
        self.0.covers(&special.0)
    }

    fn structure(&self) -> NormalPath {
        NormalPath(self.0.structure())
    }

    fn existing(&self) -> NormalPath {
        NormalPath(self.0.existing())
    }

    fn begun(&self, length: usize) -> NormalPath {
        NormalPath(self.0.begun(length))
    }

    fn cut(&self, length: usize) -> NormalPath {
        NormalPath(self.0.cut(length))
    }

    fn any_parent(&self) -> NormalPath {
        NormalPath(self.0.any_parent())
    }

    fn without_parents(&self) -> NormalPath {
        NormalPath(self.0.without_parents())
    }

    fn last_name(&self) -> NormalPath {
        NormalPath(self.0.last_name())
    }

    fn in_powers(&self) -> NormalPath {
        NormalPath(self.0.in_powers())
    }

    fn __repr__(&self) -> String {
        format!("NormalPath({:?})", self.0.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.text().to_owned(),))
    }
}

/// Paths that must all be in a message.
#[pyclass(frozen, eq, hash, ord, str = "{0}", module = "pathcast_kernel")]
#[derive(PartialEq, Eq, Hash, PartialOrd)]
pub struct Conjunction(pub core::Conjunction);

#[pymethods]
impl Conjunction {
    /// Of any message, if there is no path.
    #[new]
    fn new(paths: Vec<PyRef<'_, NormalPath>>) -> Self {
        Conjunction(core::Conjunction::of(paths.iter().map(|path| path.0.clone())))
    }

    /// None if more than paths has to be said; a text that is refused raises `QueryRefusal`.
    #[staticmethod]
    fn read(text: &Bound<'_, PyString>) -> PyResult<Option<Self>> {
        let (py, text) = (text.py(), text.to_cow()?);
        let found = core::Conjunction::read(&text);
        let found = found.map_err(|refusal| refused(py, &refusal, &Places::new(&text)))?;
        Ok(found.map(Conjunction))
    }

    /// Sorted, without those that another one covers.
    #[staticmethod]
    fn uncovered(py: Python<'_>, of: Vec<PyRef<'_, Conjunction>>) -> PyResult<Vec<Conjunction>> {
        let of: Vec<core::Conjunction> = of.iter().map(|each| each.0.clone()).collect();
        let found = enter(py, || core::Conjunction::uncovered(of))?;
        Ok(found.into_iter().map(Conjunction).collect())
    }

    /// Of the linear paths that its paths ask for.
    fn linear(&self, py: Python<'_>) -> PyResult<Conjunction> {
        enter(py, || self.0.linear()).map(Conjunction)
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    #[getter]
    fn paths(&self) -> Vec<NormalPath> {
        self.0.paths().iter().cloned().map(NormalPath).collect()
    }

    fn covers(&self, special: &Conjunction) -> bool {
        self.0.covers(&special.0)
    }

    /// The tokens that what it covers must offer.
    fn wanted(&self) -> BTreeSet<Token> {
        self.0.paths().iter().flat_map(Path::wanted).collect()
    }

    /// The tokens that it offers to what may cover it.
    fn offered(&self) -> BTreeSet<Token> {
        self.0.paths().iter().flat_map(Path::offered).collect()
    }

    /// The token to file it under, which every entry that it covers offers (none if it asks for nothing); the tokens
    /// that it wants and those that it offers, but for beginnings of strings, of which there are too many.
    fn filing(&self) -> (Option<Token>, BTreeSet<Token>, BTreeSet<Token>) {
        let (wanted, offered) = (self.wanted(), self.offered());
        let drawer = wanted.iter().copied().min_by_key(|&token| (is_name(token), token));
        let filed =
            |tokens: BTreeSet<Token>| tokens.into_iter().filter(|&token| !is_beginning(token));
        (drawer, filed(wanted).collect(), filed(offered).collect())
    }

    /// Lower for what asks for less: a weight, and the constants, the wider ones lower.
    fn rank(&self) -> (u32, Vec<(f64, String)>) {
        let paths = self.0.paths();
        (paths.iter().map(Path::weight).sum(), paths.iter().flat_map(Path::widths).collect())
    }

    fn __len__(&self) -> usize {
        self.0.paths().len()
    }

    fn __repr__(&self) -> String {
        format!("Conjunction({:?})", self.0.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Vec<NormalPath>,)) {
        (slf.get_type().into_any(), (slf.get().paths(),))
    }
}

/// What [`coverings`] gives.
type PyCoverings = (Vec<(usize, usize)>, usize, usize);

/// Pairs (number of a query, number of one that covers it), comparisons made, and pairs left out at most.
///
/// A query is the paths of which one must be there, and whether they say all of it.
#[pyfunction]
#[pyo3(signature = (queries, comparisons_max=COMPARISONS_MAX, candidates_max=CANDIDATES_MAX))]
pub fn coverings(
    py: Python<'_>,
    queries: Vec<(Vec<PyRef<'_, NormalPath>>, bool)>,
    comparisons_max: usize,
    candidates_max: usize,
) -> PyResult<PyCoverings> {
    let queries = queries.iter().filter(|(paths, _)| !paths.is_empty());
    let queries: Vec<Alternatives> = queries
        .map(|(paths, is_exact)| Alternatives {
            paths: paths.iter().map(|path| path.0.clone()).collect(),
            is_exact: *is_exact,
        })
        .collect();
    let stops = || did(COMPARISON_WORK);
    let found =
        enter(py, || core::covering::coverings(&queries, comparisons_max, candidates_max, stops))?;
    Ok((found.covered_by, found.comparisons, found.left_out))
}

/// The linear paths that all hold before steps if all of some paths do after them.
#[pyfunction]
pub fn paths_before(
    py: Python<'_>,
    conjunction: &Conjunction,
    steps: Vec<PyStep>,
) -> PyResult<Conjunction> {
    let steps = steps_of(&steps)?;
    enter(py, || Effect::of(&steps).before(conjunction.0.paths())).map(Conjunction)
}

/// Whether a string compares as asked.
#[pyfunction]
pub fn holds(value: &str, compare: PyCompare) -> PyResult<bool> {
    Ok(implication::holds(value, &compare_from(compare)?))
}

/// Whether one value can pass all comparisons; false only if none can.
#[pyfunction]
pub fn can_hold(known: Vec<PyCompare>) -> PyResult<bool> {
    Ok(facts_of(known)?.is_some())
}

/// Whether every value that passes some comparisons passes another one; false does not say that it does not.
#[pyfunction]
pub fn implies(known: Vec<PyCompare>, wanted: PyCompare) -> PyResult<bool> {
    let wanted = compare_from(wanted)?;
    Ok(facts_of(known)?.is_none_or(|facts| facts.imply(&wanted)))
}

/// Whether a whole number from `least` on passes all comparisons.
#[pyfunction]
pub fn can_be_count(known: Vec<(u8, f64)>, least: u32) -> PyResult<bool> {
    let known: PyResult<Vec<_>> =
        known.into_iter().map(|(code, number)| Ok((comparison_of(code)?, number))).collect();
    Ok(implication::can_be_count(&known?, f64::from(least)))
}

/// Whether every whole number from `least` on compares as asked.
#[pyfunction]
pub fn is_any_count(compare: (u8, f64), least: u32) -> PyResult<bool> {
    Ok(implication::is_any_count(comparison_of(compare.0)?, compare.1, f64::from(least)))
}

fn facts_of(known: Vec<PyCompare>) -> PyResult<Option<Facts<'static>>> {
    let known: PyResult<Vec<_>> = known.into_iter().map(compare_from).collect();
    Ok(Facts::of(known?))
}

fn comparison_of(code: u8) -> PyResult<Comparison> {
    match Operator::of_code(code) {
        Some(Operator::Compare(comparison)) => Ok(comparison),
        _ => Err(unknown_number()),
    }
}
