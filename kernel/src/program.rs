//! Syntax trees and refusals of XQuery, as Python sees them.

use crate::reader::{Places, detail_of};
use pathcast_core::language::choice::{self, Language};
use pathcast_core::language::functions;
use pathcast_core::language::refusal::{Reason, Refusal};
use pathcast_core::language::xpath::{List, TextRange};
use pathcast_core::language::xquery::{
    Clause, ComputedName, Delivered, Expr, ExprId, ItemTest, Name, NodeTest, Number, Occurrence,
    Origins, Part, Program, Start, Step,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::borrow::Cow;

/// Whether a text is XQuery, and not XPath 1.0.
#[pyfunction]
pub fn is_xquery(text: &str) -> bool {
    Language::of(text) == Language::XQuery
}

/// A text with blanks for its comments, a character each.
#[pyfunction]
pub fn without_comments(text: &str) -> Cow<'_, str> {
    choice::without_comments(text)
}

/// The reasons for which a text is refused.
#[pyfunction]
pub fn refusal_reasons() -> Vec<&'static str> {
    Reason::ALL.iter().map(|reason| reason.name()).collect()
}

/// The functions that an XQuery may call: name, fewest and most arguments, none for any number.
#[pyfunction]
pub fn xquery_functions() -> Vec<(&'static str, usize, Option<usize>)> {
    let most = |most| (most < usize::MAX).then_some(most);
    functions::called().map(|(name, fewest, max)| (name, fewest, most(max))).collect()
}

/// The functions of the standard library that are refused by their names.
#[pyfunction]
pub fn refused_functions() -> Vec<&'static str> {
    functions::refused().to_vec()
}

/// A tree of tuples, or a refusal.
type Answer<'py> = (Option<Bound<'py, PyTuple>>, Option<Bound<'py, PyTuple>>);

/// The syntax tree of an XQuery: tuples of the kind of a node, its fields, and the character at which it begins. Or its
/// refusal: reason, code, first character, one past the last character of the token that was found, and details.
#[pyfunction]
#[pyo3(signature = (text, namespaces, deliver=None))]
pub fn xquery_program<'py>(
    py: Python<'py>,
    text: &str,
    namespaces: Vec<(String, String)>,
    deliver: Option<&str>,
) -> PyResult<Answer<'py>> {
    let delivered = match deliver {
        None => None,
        Some("fragment") => Some(Delivered::Results),
        Some("message" | "ids") => Some(Delivered::Condition),
        Some("nodes") => Some(Delivered::Nodes),
        Some(other) => return Err(PyValueError::new_err(other.to_owned())),
    };
    let places = Places::new(text);
    match Program::parse_with_origins(text, &namespaces, delivered) {
        Ok((program, origins)) => {
            let writer = Writer { py, program: &program, origins: &origins, places };
            Ok((Some(writer.expr(program.body())?), None))
        }
        Err(refusal) => Ok((None, Some(refusal_of(py, &refusal, &places)?))),
    }
}

fn refusal_of<'py>(
    py: Python<'py>,
    refusal: &Refusal,
    places: &Places,
) -> PyResult<Bound<'py, PyTuple>> {
    let details = refusal.details.iter().map(|detail| detail_of(py, detail));
    (
        refusal.reason.name(),
        refusal.reason.code(),
        places.characters(refusal.offset),
        places.characters(refusal.end),
        PyTuple::new(py, details.collect::<PyResult<Vec<_>>>()?)?,
    )
        .into_pyobject(py)
}

struct Writer<'a, 'py> {
    py: Python<'py>,
    program: &'a Program,
    origins: &'a Origins,
    places: Places,
}

type Field<'py> = Bound<'py, PyAny>;

impl<'py> Writer<'_, 'py> {
    fn node(
        &self,
        kind: &str,
        fields: impl IntoIterator<Item = Field<'py>>,
        byte: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut items = vec![self.string(kind)];
        items.extend(fields);
        items.push(self.places.characters(byte).into_pyobject(self.py)?.into_any());
        PyTuple::new(self.py, items)
    }

    fn string(&self, text: &str) -> Field<'py> {
        PyString::new(self.py, text).into_any()
    }

    fn text(&self, range: TextRange) -> Field<'py> {
        self.string(self.program.text(range))
    }

    fn flag(&self, value: bool) -> Field<'py> {
        value
            .into_pyobject(self.py)
            .map(|found| found.to_owned().into_any())
            .unwrap_or_else(|never| match never {})
    }

    fn none(&self) -> Field<'py> {
        self.py.None().into_bound(self.py)
    }

    fn id(&self, id: ExprId) -> PyResult<Field<'py>> {
        Ok(self.expr(id)?.into_any())
    }

    fn tuple(
        &self,
        items: impl Iterator<Item = PyResult<Bound<'py, PyTuple>>>,
    ) -> PyResult<Field<'py>> {
        Ok(PyTuple::new(self.py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    fn list(&self, list: List) -> PyResult<Field<'py>> {
        self.tuple(self.program.list(list).iter().map(|&id| self.expr(id)))
    }

    fn expr(&self, id: ExprId) -> PyResult<Bound<'py, PyTuple>> {
        let offset = self.origins.expr(id);
        let (kind, fields) = match self.program.expr(id) {
            Expr::Sequence(list) => ("Sequence", vec![self.list(list)?]),
            Expr::Flwor { clauses, condition, order, body } => {
                let condition = condition.map_or_else(|| Ok(self.none()), |id| self.id(id))?;
                let fields =
                    vec![self.clauses(clauses)?, condition, self.keys(order)?, self.id(body)?];
                ("Flwor", fields)
            }
            Expr::Quantified { is_every, bindings, condition } => {
                let fields =
                    vec![self.flag(is_every), self.clauses(bindings)?, self.id(condition)?];
                ("Quantified", fields)
            }
            Expr::If { condition, then, otherwise } => {
                ("If", vec![self.id(condition)?, self.id(then)?, self.id(otherwise)?])
            }
            Expr::Or(list) => ("Or", vec![self.list(list)?]),
            Expr::And(list) => ("And", vec![self.list(list)?]),
            Expr::Comparison { operator, is_value, left, right } => {
                let operator = self.string(operator.symbol());
                let fields = vec![operator, self.flag(is_value), self.id(left)?, self.id(right)?];
                ("Comparison", fields)
            }
            Expr::Arithmetic { operator, left, right } => {
                let operator = self.string(operator.symbol());
                ("Arithmetic", vec![operator, self.id(left)?, self.id(right)?])
            }
            Expr::Negation(operand) => ("Negation", vec![self.id(operand)?]),
            Expr::Cast { to, operand } => ("Cast", vec![self.string(to.name()), self.id(operand)?]),
            Expr::Castable { to, is_optional, operand } => {
                let fields = vec![self.string(to.name()), self.flag(is_optional)];
                ("Castable", [fields, vec![self.id(operand)?]].concat())
            }
            Expr::InstanceOf { item, occurrence, operand } => {
                let item = match item {
                    _ if occurrence == Occurrence::Nothing => self.string("empty-sequence()"),
                    ItemTest::Item => self.string("item()"),
                    ItemTest::Document => self.string("document-node()"),
                    ItemTest::Node(step) => self.step(self.program.node_step(step))?.into_any(),
                    ItemTest::AnyAtomic => self.string("xs:anyAtomicType"),
                    ItemTest::Untyped => self.string("xs:untypedAtomic"),
                    ItemTest::Atomic(to) => self.string(&format!("xs:{}", to.name())),
                };
                let fields = vec![self.id(operand)?, item, self.string(occurrence.symbol())];
                ("InstanceOf", fields)
            }
            Expr::Range { first, last } => ("Range", vec![self.id(first)?, self.id(last)?]),
            Expr::SimpleMap { source, body } => {
                ("SimpleMap", vec![self.id(source)?, self.id(body)?])
            }
            Expr::Union(list) => ("Union", vec![self.list(list)?]),
            Expr::Intersection { is_except, left, right } => {
                ("Intersection", vec![self.flag(is_except), self.id(left)?, self.id(right)?])
            }
            Expr::Path { start, steps } => {
                let start = match start {
                    Start::Root => self.string("root"),
                    Start::Context => self.string("context"),
                    Start::Expr(id) => self.id(id)?,
                };
                let steps = self.program.steps(steps).iter().map(|step| self.step(step));
                ("Path", vec![start, self.tuple(steps)?])
            }
            Expr::Filter { primary, predicates, .. } => {
                ("Filter", vec![self.id(primary)?, self.list(predicates)?])
            }
            Expr::Variable(slot) => ("Variable", vec![self.string(self.origins.variable(slot))]),
            Expr::String(range) => ("Literal", vec![self.text(range), self.string("string")]),
            Expr::Number(number) => ("Literal", self.number(number)?),
            Expr::Call(function, list) => {
                ("Call", vec![self.string(function.name()), self.list(list)?])
            }
            Expr::ContextItem => ("ContextItem", vec![]),
            Expr::Element(number) => return self.element(number),
        };
        self.node(kind, fields, offset)
    }

    fn number(&self, number: Number) -> PyResult<Vec<Field<'py>>> {
        let (value, kind) = match number {
            Number::Integer(value) => (value.into_pyobject(self.py)?.into_any(), "integer"),
            Number::Decimal(value) => (value.into_pyobject(self.py)?.into_any(), "decimal"),
            Number::Double(value) => (value.into_pyobject(self.py)?.into_any(), "double"),
        };
        Ok(vec![value, self.string(kind)])
    }

    fn clauses(&self, list: List) -> PyResult<Field<'py>> {
        self.tuple(self.program.clauses(list).iter().map(|clause| match *clause {
            Clause::For { variable, position, source } => {
                let position =
                    position.map_or(self.none(), |slot| self.string(self.origins.variable(slot)));
                let name = self.string(self.origins.variable(variable));
                let fields = [name, position, self.id(source)?];
                self.node("For", fields, self.origins.clause(variable))
            }
            Clause::Let { variable, value } => {
                let name = self.string(self.origins.variable(variable));
                self.node("Let", [name, self.id(value)?], self.origins.clause(variable))
            }
        }))
    }

    fn keys(&self, list: List) -> PyResult<Field<'py>> {
        self.tuple(list.range().zip(self.program.keys(list)).map(|(at, key)| {
            let flags = [key.is_descending, !key.is_empty_least, key.is_case_blind];
            let [descending, greatest, blind] = flags.map(|flag| self.flag(flag));
            let fields = [self.id(key.key)?, descending, greatest, blind];
            self.node("OrderKey", fields, self.origins.key(at))
        }))
    }

    fn step(&self, step: &Step) -> PyResult<Bound<'py, PyTuple>> {
        let kind = |name: &str, target: Field<'py>| {
            self.tuple_of([self.string("KindTest"), self.string(name), target])
        };
        let name = |uri: Field<'py>, local: Field<'py>| {
            self.tuple_of([self.string("NameTest"), uri, local])
        };
        let test = match step.test {
            NodeTest::Any => name(self.none(), self.none()),
            NodeTest::Name { uri, local, .. } => name(self.text(uri), self.text(local)),
            NodeTest::AnyIn { uri } => name(self.text(uri), self.none()),
            NodeTest::AnyNamespace { local } => name(self.none(), self.text(local)),
            NodeTest::Node | NodeTest::Container => kind("node", self.none()),
            NodeTest::Text => kind("text", self.none()),
            NodeTest::Element => kind("element", self.none()),
            NodeTest::Attribute => kind("attribute", self.none()),
            NodeTest::Comment => kind("comment", self.none()),
            NodeTest::Instruction(target) => {
                let target = target.map_or(self.none(), |target| self.text(target));
                kind("processing-instruction", target)
            }
        }?;
        let fields = [self.string(step.axis.name()), test, self.list(step.predicates)?];
        self.node("Step", fields, self.origins.step(step.test_number))
    }

    fn tuple_of<const N: usize>(&self, items: [Field<'py>; N]) -> PyResult<Field<'py>> {
        Ok(PyTuple::new(self.py, items)?.into_any())
    }

    fn name(&self, name: Name) -> PyResult<Field<'py>> {
        self.tuple_of([self.text(name.prefix), self.text(name.uri), self.text(name.local)])
    }

    /// A name of an element or attribute; a computed one is an expression and the namespaces that are known there.
    fn constructed(&self, name: Name, computed: Option<ComputedName>) -> PyResult<Field<'py>> {
        match computed {
            None => self.name(name),
            Some(ComputedName { expr, scope }) => {
                self.tuple_of([self.id(expr)?, self.declarations(scope)?])
            }
        }
    }

    fn declarations(&self, list: List) -> PyResult<Field<'py>> {
        self.tuple(self.program.declarations(list).iter().map(|declared| {
            PyTuple::new(self.py, [self.text(declared.prefix), self.text(declared.uri)])
        }))
    }

    fn element(&self, number: u32) -> PyResult<Bound<'py, PyTuple>> {
        let element = self.program.element(number);
        let attributes = self.program.attributes(element.attributes);
        let attributes = element.attributes.range().zip(attributes).map(|(at, attribute)| {
            let name = self.constructed(attribute.name, attribute.computed)?;
            let fields = [name, self.parts(attribute.parts)?];
            self.node("Attribute", fields, self.origins.attribute(at))
        });
        let fields = [
            self.constructed(element.name, element.computed)?,
            self.tuple(attributes)?,
            self.declarations(element.namespaces)?,
            self.parts(element.content)?,
        ];
        self.node("Element", fields, self.origins.element(number))
    }

    fn parts(&self, list: List) -> PyResult<Field<'py>> {
        self.tuple(list.range().zip(self.program.parts(list)).map(|(at, part)| match *part {
            Part::Text(range) => self.node("Text", [self.text(range)], self.origins.part(at)),
            Part::Element(number) => self.element(number),
            Part::Enclosed(id) => self.node("Enclosed", [self.id(id)?], self.origins.part(at)),
        }))
    }
}
