//! The reader of queries, as Python sees it: a syntax tree as a list of nodes, or a refusal as data.

use pathcast_core::language::query::Namespaces;
use pathcast_core::language::reader::{read, read_query as read_resolved};
use pathcast_core::language::refusal::{Detail, Refusal};
use pathcast_core::language::tree::{Expr, NodeTest, NodeType, Offset, Predicate, Step};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

pyo3::create_exception!(
    pathcast_kernel,
    QueryRefusal,
    pyo3::exceptions::PyValueError,
    "A text is no query: (code, reason, offset in characters, parameters)."
);

/// The syntax tree of a query: names resolved with these namespaces, or as written where there are none.
///
/// A node is a tuple of its kind and fields, in the order of `pathcast.query.syntax`; nodes within it stand earlier in
/// the list and are known by their place. The root is the last. A text with a lone surrogate is a `UnicodeEncodeError`.
#[pyfunction]
pub fn read_query<'py>(
    text: &Bound<'py, PyString>,
    namespaces: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = text.py();
    let text = text.to_cow()?;
    let expr = match namespaces {
        None => read(&text),
        Some(namespaces) => read_resolved(&text, &bindings(namespaces)?),
    };
    let places = Places::new(&text);
    match expr {
        Ok(expr) => {
            let mut nodes = Nodes { py, places, list: PyList::empty(py) };
            nodes.expression(&expr)?;
            Ok(nodes.list)
        }
        Err(refusal) => Err(refused(py, &refusal, &places)),
    }
}

/// Bindings of Python: texts may have lone surrogates, which no query can name.
pub(crate) fn bindings(namespaces: &Bound<'_, PyDict>) -> PyResult<Namespaces> {
    let mut texts: Vec<(String, String)> = Vec::with_capacity(namespaces.len());
    let mut unwritable = Vec::new();
    for (prefix, uri) in namespaces {
        let (prefix, uri) = (prefix.cast_into::<PyString>()?, uri.cast_into::<PyString>()?);
        let Ok(prefix) = prefix.to_cow() else { continue };
        match uri.to_cow() {
            Ok(uri) => texts.push((prefix.into_owned(), uri.into_owned())),
            Err(_) => unwritable.push(prefix.into_owned()),
        }
    }
    let mut namespaces = Namespaces::new(texts);
    unwritable.into_iter().for_each(|prefix| namespaces.bind_unwritable(prefix));
    Ok(namespaces)
}

pub(crate) fn refused(py: Python<'_>, refusal: &Refusal, places: &Places) -> PyErr {
    match refusal_of(py, refusal, places) {
        Ok(arguments) => QueryRefusal::new_err(arguments.unbind()),
        Err(error) => error,
    }
}

/// (code, reason, offset in characters, parameters)
pub(crate) fn refusal_of<'py>(
    py: Python<'py>,
    refusal: &Refusal,
    places: &Places,
) -> PyResult<Bound<'py, PyTuple>> {
    let params = PyDict::new(py);
    for (name, detail) in refusal.params() {
        params.set_item(name, detail_of(py, detail)?)?;
    }
    let offset = places.characters(refusal.offset);
    (refusal.reason.code(), refusal.reason.name(), offset, params).into_pyobject(py)
}

pub(crate) fn detail_of<'py>(py: Python<'py>, detail: &Detail) -> PyResult<Bound<'py, PyAny>> {
    match detail {
        Detail::Text(text) => text.into_bound_py_any(py),
        Detail::Number(number) => number.into_bound_py_any(py),
    }
}

/// Places of a text in characters, by bytes.
pub(crate) struct Places {
    /// Empty for ASCII.
    characters: Vec<usize>,
}

impl Places {
    pub(crate) fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Places { characters: Vec::new() };
        }
        let mut characters = Vec::with_capacity(text.len() + 1);
        for (number, character) in text.chars().enumerate() {
            characters.extend(std::iter::repeat_n(number, character.len_utf8()));
        }
        characters.push(characters.last().map_or(0, |last| last + 1));
        Places { characters }
    }

    pub(crate) fn characters(&self, bytes: usize) -> usize {
        self.characters.get(bytes).copied().unwrap_or(bytes)
    }
}

/// The nodes of a tree, in the order in which they are complete.
struct Nodes<'py> {
    py: Python<'py>,
    places: Places,
    list: Bound<'py, PyList>,
}

impl<'py> Nodes<'py> {
    fn at(&self, offset: Offset) -> usize {
        self.places.characters(offset as usize)
    }

    fn append(&self, node: impl IntoPyObject<'py>) -> PyResult<usize> {
        self.list.append(node)?;
        Ok(self.list.len() - 1)
    }

    /// Appends an expression and what is in it; gives its place.
    fn expression(&mut self, expr: &Expr) -> PyResult<usize> {
        let offset = self.at(expr.offset());
        match expr {
            Expr::Path { is_absolute, steps, .. } => {
                let steps = self.steps(steps)?;
                self.append(("path", *is_absolute, steps, offset))
            }
            Expr::PathFrom { start, steps, .. } => {
                let start = self.expression(start)?;
                let steps = self.steps(steps)?;
                self.append(("path-from", start, steps, offset))
            }
            Expr::Filter { primary, predicates, .. } => {
                let primary = self.expression(primary)?;
                let predicates = self.predicates(predicates)?;
                self.append(("filter", primary, predicates, offset))
            }
            Expr::Call { name, arguments, .. } => {
                let arguments = self.expressions(arguments)?;
                self.append(("call", name, arguments, offset))
            }
            Expr::Variable { name, .. } => self.append(("variable", name, offset)),
            Expr::Literal { value, .. } => self.append(("literal", value, offset)),
            Expr::Number { value, .. } => self.append(("number", *value, offset)),
            Expr::Unary { minuses, operand, .. } => {
                let operand = self.expression(operand)?;
                self.append(("unary", *minuses, operand, offset))
            }
            Expr::Binary { operators, operands, operator_offset, .. } => {
                let operands = self.expressions(operands)?;
                let operators = PyTuple::new(self.py, operators.iter().map(|each| each.text()))?;
                let operator_offset = self.at(*operator_offset);
                self.append(("binary", operators, operands, offset, operator_offset))
            }
        }
    }

    fn expressions(&mut self, exprs: &[Expr]) -> PyResult<Bound<'py, PyTuple>> {
        let places =
            exprs.iter().map(|each| self.expression(each)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(self.py, places)
    }

    fn steps(&mut self, steps: &[Step]) -> PyResult<Bound<'py, PyTuple>> {
        let mut tuples = Vec::with_capacity(steps.len());
        for step in steps {
            let test = match &step.test {
                NodeTest::Name(test) => {
                    (&test.prefix, &test.local, &test.uri, self.at(test.offset))
                        .into_bound_py_any(self.py)
                }
                NodeTest::Type(node_type, offset) => {
                    let (name, target) = match node_type {
                        NodeType::Comment => ("comment", None),
                        NodeType::Node => ("node", None),
                        NodeType::Instruction(target) => {
                            ("processing-instruction", target.as_ref())
                        }
                        NodeType::Text => ("text", None),
                    };
                    (name, target, self.at(*offset)).into_bound_py_any(self.py)
                }
            }?;
            let predicates = self.predicates(&step.predicates)?;
            tuples.push((step.axis.name(), test, predicates, self.at(step.offset)));
        }
        PyTuple::new(self.py, tuples)
    }

    fn predicates(&mut self, predicates: &[Predicate]) -> PyResult<Bound<'py, PyTuple>> {
        let mut places = Vec::with_capacity(predicates.len());
        for predicate in predicates {
            places.push((self.expression(&predicate.expr)?, self.at(predicate.offset)));
        }
        PyTuple::new(self.py, places)
    }
}
