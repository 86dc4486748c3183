//! Which programs have a plan of their own among the shared ones, and what it is.
//!
//! The class is the paper's and a little more: one `for` over a path down the message, conditions that
//! compare a path from the variable with a constant, joined by `and`, and a constructor whose
//! expressions are paths from the variable. Whatever is not recognised here is evaluated as it stands
//! (`xquery`); the answer is the same, so this may be as narrow as it likes.
//!
//! Source: paper 002, section 2.1.

use super::shared::{ConditionSpec, PlanSpec};
use super::template::{self, Deliver, Form, Leaf, PartSpec, TargetSpec, TemplateSpec};
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::Notation;
use crate::language::query::ast::{Axis as StepAxis, NameTest, Step};
use crate::language::xquery;
use crate::language::xquery::{
    Axis, Clause, Expr, ExprId, Function, Name, NodeTest, Part, Program, Start,
};
use crate::xml::serializer::{Namespaces, write_attribute_value, write_text};
use std::borrow::Cow;

/// The plan of a program whose text is XQuery; none if it is not of the class.
pub(crate) fn plan_of(program: &Program, deliver: Deliver) -> Option<PlanSpec> {
    if program.has_computed_names() {
        return None;
    }
    let reader = Reader { program, deliver };
    match program.expr(program.body()) {
        Expr::Element(element) => {
            let mut frame = Frame::default();
            reader.frame(element, &Namespaces::default(), &mut frame)?;
            let (flwor, scope) = frame.flwor?;
            let frame = template::Frame { before: frame.before.into(), after: frame.after.into() };
            reader.flwor(flwor, Some(frame), &scope)
        }
        Expr::Flwor { .. } => reader.flwor(program.body(), None, &Namespaces::default()),
        _ => None,
    }
}

/// The plan of a program whose text is a bare XPath that selects elements, each of which is a result.
/// XPath 1.0 orders strings as numbers and reads numbers otherwise: only equal strings are meant.
pub(crate) fn plan_of_path(program: &Program, deliver: Deliver) -> Option<PlanSpec> {
    let reader = Reader { program, deliver };
    let (binding, conditions) = reader.binding(program.body())?;
    let is_same_in_both =
        |ask: &Ask| matches!(ask, Ask::Exists | Ask::Text(Comparison::Eq | Comparison::Ne, _));
    if !conditions.iter().all(|condition| is_same_in_both(&condition.ask)) {
        return None;
    }
    let target = TargetSpec { path: vec![], leaf: Leaf::Element };
    let outer = Namespaces::default();
    let parts = vec![PartSpec::Hole { target, form: Form::Copy, outer }];
    let template = TemplateSpec { frame: None, parts, is_constructor: false, deliver };
    Some(PlanSpec { binding, conditions, template })
}

struct Reader<'p> {
    program: &'p Program,
    deliver: Deliver,
}

#[derive(Default)]
struct Frame {
    before: Vec<u8>,
    after: Vec<u8>,
    /// The one enclosed expression, and the namespaces in scope around it.
    flwor: Option<(ExprId, Namespaces)>,
}

impl Reader<'_> {
    /// Reads a constructor of the frame; only one FLWR may be enclosed in it, at any depth.
    fn frame(&self, element: u32, scope: &Namespaces, frame: &mut Frame) -> Option<()> {
        let program = self.program;
        let element = program.element(element);
        let mut scope = scope.clone();
        let mut tag = Vec::new();
        self.open_tag(element, &mut scope, &mut tag)?;
        for attribute in program.attributes(element.attributes) {
            if program.is_id(attribute) {
                // What it writes is not what its parts give.
                return None;
            }
            self.attribute_name(attribute.name, &mut scope, &mut tag)?;
            for part in program.parts(attribute.parts) {
                let Part::Text(text) = part else { return None };
                write_attribute_value(&mut tag, program.text(*text).as_bytes());
            }
            tag.push(b'"');
        }
        tag.push(b'>');
        frame.side().extend_from_slice(&tag);
        for &part in program.parts(element.content) {
            match part {
                Part::Text(text) => write_text(frame.side(), program.text(text).as_bytes()),
                Part::Element(inner) => self.frame(inner, &scope, frame)?,
                Part::Enclosed(expr) => match program.expr(expr) {
                    Expr::Flwor { .. } if frame.flwor.is_none() => {
                        frame.flwor = Some((expr, scope.clone()));
                    }
                    _ => return None,
                },
            }
        }
        self.close_tag(element, frame.side());
        Some(())
    }

    fn flwor(
        &self,
        flwor: ExprId,
        frame: Option<template::Frame>,
        scope: &Namespaces,
    ) -> Option<PlanSpec> {
        let program = self.program;
        let Expr::Flwor { clauses, condition, order, body } = program.expr(flwor) else {
            return None;
        };
        let [Clause::For { variable, position: None, source }] = *program.clauses(clauses) else {
            return None;
        };
        if !program.keys(order).is_empty() {
            return None;
        }
        let (binding, mut conditions) = self.binding(source)?;
        if let Some(condition) = condition {
            self.condition(condition, Start::Expr(variable), &mut conditions)?;
        }
        let mut parts = Parts { parts: vec![], is_open: false };
        let is_constructor = self.returned(body, variable, scope, frame.is_some(), &mut parts)?;
        if self.deliver == Deliver::Nodes && (is_constructor || frame.is_some()) {
            return None;
        }
        let template =
            TemplateSpec { frame, parts: parts.parts, is_constructor, deliver: self.deliver };
        Some(PlanSpec { binding, conditions, template })
    }

    /// A path from the document node whose last step only has predicates.
    fn binding(&self, source: ExprId) -> Option<(Vec<Step<'static>>, Vec<ConditionSpec>)> {
        let Expr::Path { start: Start::Root, steps } = self.program.expr(source) else {
            return None;
        };
        let steps = self.program.steps(steps);
        let mut conditions = Vec::new();
        let path = self.path(steps, |predicates| {
            for &predicate in self.program.list(predicates) {
                self.condition(predicate, Start::Context, &mut conditions)?;
            }
            Some(())
        })?;
        let (path, Leaf::Element) = path else { return None };
        (!path.is_empty()).then_some((path, conditions))
    }

    /// Steps down the message, and what of the nodes that they lead to; `predicates` is asked about
    /// those of the last step, there may be none on others.
    fn path(
        &self,
        steps: &[xquery::Step],
        mut predicates: impl FnMut(xquery::List) -> Option<()>,
    ) -> Option<(Vec<Step<'static>>, Leaf)> {
        let mut path: Vec<Step<'static>> = Vec::with_capacity(steps.len());
        let mut leaf = Leaf::Element;
        let mut is_deep = false;
        for (at, step) in steps.iter().enumerate() {
            let is_last = at + 1 == steps.len();
            if !self.program.list(step.predicates).is_empty() {
                if !is_last || step.is_positional || step.nth.is_some() {
                    return None;
                }
                predicates(step.predicates)?;
            }
            let axis = match (step.axis, step.test) {
                (Axis::DescendantOrSelf, NodeTest::Node | NodeTest::Container) if !is_last => {
                    is_deep = true;
                    continue;
                }
                (Axis::Child, NodeTest::Text) if is_last && !is_deep => {
                    leaf = Leaf::Text;
                    continue;
                }
                (Axis::Attribute, NodeTest::Name { uri, local, .. }) if is_last && !is_deep => {
                    let (uri, local) = (self.program.text(uri), self.program.text(local));
                    leaf = Leaf::Attribute { uri: uri.into(), local: local.into() };
                    continue;
                }
                (Axis::Child, _) if is_deep => StepAxis::Descendant,
                (Axis::Child, _) => StepAxis::Child,
                (Axis::Descendant, _) if !is_deep => StepAxis::Descendant,
                _ => return None,
            };
            is_deep = false;
            path.push(Step { axis, test: self.name_test(step.test)?, stages: vec![] });
        }
        Some((path, leaf))
    }

    fn name_test(&self, test: NodeTest) -> Option<NameTest<'static>> {
        let text = |range| Cow::Owned(self.program.text(range).to_owned());
        Some(match test {
            NodeTest::Any | NodeTest::Element => NameTest::Any,
            NodeTest::Name { uri, local, .. } => {
                NameTest::Name { uri: text(uri), local: text(local) }
            }
            NodeTest::AnyIn { uri } => NameTest::AnyIn { uri: text(uri) },
            NodeTest::AnyNamespace { local } => NameTest::AnyNamespace { local: text(local) },
            _ => return None,
        })
    }

    /// A conjunction of comparisons of a path with a constant, or of its existence. `from` is where
    /// paths begin: the context, or (by its slot) the variable.
    fn condition(
        &self,
        condition: ExprId,
        from: Start,
        conditions: &mut Vec<ConditionSpec>,
    ) -> Option<()> {
        match self.program.expr(condition) {
            Expr::And(list) => {
                for &operand in self.program.list(list) {
                    self.condition(operand, from, conditions)?;
                }
            }
            Expr::Comparison { operator, is_value: false, left, right } => {
                let (path, ask) = match self.ask(operator, right) {
                    Some(ask) => (left, ask),
                    None => (right, self.ask(operator.flipped(), left)?),
                };
                let TargetSpec { path, leaf } = self.relative(path, from)?;
                conditions.push(ConditionSpec { path, leaf, ask });
            }
            Expr::Path { .. } | Expr::Variable(_) | Expr::ContextItem => {
                let TargetSpec { path, leaf } = self.relative(condition, from)?;
                conditions.push(ConditionSpec { path, leaf, ask: Ask::Exists });
            }
            _ => return None,
        }
        Some(())
    }

    /// A comparison with a constant; none if the expression is no constant.
    fn ask(&self, operator: Comparison, constant: ExprId) -> Option<Ask> {
        let finite = |value: f64| value.is_finite().then_some(Ask::Cast(operator, value));
        if let Some(set) = self.program.set(constant) {
            return match (&set.strings, &set.numbers) {
                _ if operator != Comparison::Eq => None,
                (Some(strings), None) => Some(match strings.only() {
                    Some(only) => Ask::Text(operator, only.as_bytes().into()),
                    None => Ask::OneOf(strings.text().as_bytes().into()),
                }),
                (None, Some(numbers)) => Some(match numbers.only() {
                    Some(_) => Ask::Cast(operator, numbers.numbers().sum()),
                    None => Ask::NumberOf(Notation::Double, numbers.text().as_bytes().into()),
                }),
                _ => None,
            };
        }
        match self.program.expr(constant) {
            Expr::String(text) => {
                Some(Ask::Text(operator, self.program.text(text).as_bytes().into()))
            }
            Expr::Number(number) => finite(number.value()),
            Expr::Negation(inner) => match self.program.expr(inner) {
                Expr::Number(number) => finite(-number.value()),
                _ => None,
            },
            _ => None,
        }
    }

    /// A path from the variable or the context, without predicates.
    fn relative(&self, expr: ExprId, from: Start) -> Option<TargetSpec> {
        let steps = match (self.program.expr(expr), from) {
            (Expr::ContextItem, Start::Context) => &[],
            (Expr::Path { start: Start::Context, steps }, Start::Context) => {
                self.program.steps(steps)
            }
            (Expr::Variable(slot), Start::Expr(variable)) if slot == variable => &[],
            (Expr::Path { start: Start::Expr(start), steps }, Start::Expr(variable))
                if self.program.expr(start) == Expr::Variable(variable) =>
            {
                self.program.steps(steps)
            }
            _ => return None,
        };
        let (path, leaf) = self.path(steps, |_| None)?;
        Some(TargetSpec { path, leaf })
    }

    /// The return clause. Gives whether a BoundNode always gives an item.
    fn returned(
        &self,
        body: ExprId,
        variable: u32,
        scope: &Namespaces,
        has_frame: bool,
        parts: &mut Parts,
    ) -> Option<bool> {
        match self.program.expr(body) {
            Expr::Element(element) => {
                self.constructor(element, variable, scope, parts)?;
                Some(true)
            }
            Expr::Sequence(list) if has_frame && !self.program.list(list).is_empty() => {
                let mut is_constructor = false;
                for &item in self.program.list(list) {
                    is_constructor |= self.returned(item, variable, scope, has_frame, parts)?;
                }
                Some(is_constructor)
            }
            Expr::Path { .. } | Expr::Variable(_) => {
                let target = self.relative(body, Start::Expr(variable))?;
                if matches!(target.leaf, Leaf::Attribute { .. }) {
                    return None;
                }
                parts.hole(target, Form::Copy, scope);
                Some(false)
            }
            _ => None,
        }
    }

    fn constructor(
        &self,
        element: u32,
        variable: u32,
        scope: &Namespaces,
        parts: &mut Parts,
    ) -> Option<()> {
        let program = self.program;
        let element = program.element(element);
        let mut scope = scope.clone();
        self.open_tag(element, &mut scope, parts.bytes())?;
        let mut names: Vec<Box<str>> = Vec::new();
        for attribute in program.attributes(element.attributes) {
            if program.is_id(attribute) {
                // What it writes is not what its parts give.
                return None;
            }
            self.attribute_name(attribute.name, &mut scope, parts.bytes())?;
            names.push(program.text(attribute.name.local).into());
            for &part in program.parts(attribute.parts) {
                self.attribute_part(part, variable, &scope, parts)?;
            }
            parts.bytes().push(b'"');
        }
        // Attribute nodes at the head of the content are attributes of the element.
        let mut content = program.parts(element.content).iter();
        let mut ahead = content.clone();
        while let Some(&Part::Enclosed(expr)) = ahead.next() {
            let Some(target) = self.relative(expr, Start::Expr(variable)) else { break };
            let Leaf::Attribute { uri, local } = &target.leaf else { break };
            let is_one = target.path.is_empty() && uri.is_empty();
            if !is_one || names.contains(local) {
                return None;
            }
            names.push(local.clone());
            parts.hole(target, Form::Copy, &scope);
            content = ahead.clone();
        }
        parts.bytes().push(b'>');
        for &part in content {
            match part {
                Part::Text(text) => write_text(parts.bytes(), program.text(text).as_bytes()),
                Part::Element(inner) => self.constructor(inner, variable, &scope, parts)?,
                Part::Enclosed(expr) => self.enclosed(expr, variable, &scope, parts)?,
            }
        }
        self.close_tag(element, parts.bytes());
        Some(())
    }

    fn enclosed(
        &self,
        expr: ExprId,
        variable: u32,
        scope: &Namespaces,
        parts: &mut Parts,
    ) -> Option<()> {
        match self.program.expr(expr) {
            Expr::String(text) => {
                write_text(parts.bytes(), self.program.text(text).as_bytes());
            }
            Expr::Element(element) => self.constructor(element, variable, scope, parts)?,
            Expr::Sequence(list) => {
                for &item in self.program.list(list) {
                    // Between atomic values a space would have to stand.
                    match self.program.expr(item) {
                        Expr::Path { .. } | Expr::Variable(_) | Expr::Element(_) => {
                            self.enclosed(item, variable, scope, parts)?;
                        }
                        _ => return None,
                    }
                }
            }
            Expr::Call(function @ (Function::String | Function::Data), arguments) => {
                let &[argument] = self.program.list(arguments) else { return None };
                let target = self.relative(argument, Start::Expr(variable))?;
                let is_first = function == Function::String;
                let form = if is_first { Form::FirstValue } else { Form::Values };
                parts.hole(target, form, scope);
            }
            _ => {
                let target = self.relative(expr, Start::Expr(variable))?;
                if matches!(target.leaf, Leaf::Attribute { .. }) {
                    return None;
                }
                parts.hole(target, Form::Copy, scope);
            }
        }
        Some(())
    }

    fn attribute_part(
        &self,
        part: Part,
        variable: u32,
        scope: &Namespaces,
        parts: &mut Parts,
    ) -> Option<()> {
        let text = |range| self.program.text(range).as_bytes();
        match part {
            Part::Text(range) => write_attribute_value(parts.bytes(), text(range)),
            Part::Element(_) => return None,
            Part::Enclosed(expr) => match self.program.expr(expr) {
                Expr::String(range) => write_attribute_value(parts.bytes(), text(range)),
                Expr::Call(function @ (Function::String | Function::Data), arguments) => {
                    let &[argument] = self.program.list(arguments) else { return None };
                    let target = self.relative(argument, Start::Expr(variable))?;
                    let is_first = function == Function::String;
                    let form =
                        if is_first { Form::FirstAttributeValue } else { Form::AttributeValues };
                    parts.hole(target, form, scope);
                }
                _ => {
                    let target = self.relative(expr, Start::Expr(variable))?;
                    parts.hole(target, Form::AttributeValues, scope);
                }
            },
        }
        Some(())
    }

    /// Writes `<name` and the declarations that it needs.
    fn open_tag(
        &self,
        element: &xquery::Element,
        scope: &mut Namespaces,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let program = self.program;
        let outer = scope.clone();
        out.push(b'<');
        self.write_name(element.name, out);
        for declaration in program.declarations(element.namespaces) {
            scope.declare(program.text(declaration.prefix), program.text(declaration.uri));
        }
        let prefix = program.text(element.name.prefix);
        scope.declare(prefix, program.text(element.name.uri));
        let declared = program.declarations(element.namespaces).iter();
        let mut prefixes: Vec<&str> =
            declared.map(|declaration| program.text(declaration.prefix)).collect();
        prefixes.push(prefix);
        prefixes.sort_unstable();
        prefixes.dedup();
        for prefix in prefixes {
            let uri = scope.uri(prefix).unwrap_or("");
            if outer.uri(prefix).unwrap_or("") != uri {
                if uri.is_empty() && !prefix.is_empty() {
                    return None;
                }
                write_declaration(prefix, uri, out);
            }
        }
        Some(())
    }

    /// Writes ` name="`, and before it the declaration that it needs.
    fn attribute_name(&self, name: Name, scope: &mut Namespaces, out: &mut Vec<u8>) -> Option<()> {
        let (prefix, uri) = (self.program.text(name.prefix), self.program.text(name.uri));
        if !prefix.is_empty() && prefix != "xml" && scope.uri(prefix) != Some(uri) {
            // The tag has bound the prefix otherwise, or not at all.
            if scope.uri(prefix).is_some() {
                return None;
            }
            scope.declare(prefix, uri);
            write_declaration(prefix, uri, out);
        }
        out.push(b' ');
        self.write_name(name, out);
        out.extend_from_slice(b"=\"");
        Some(())
    }

    fn close_tag(&self, element: &xquery::Element, out: &mut Vec<u8>) {
        out.extend_from_slice(b"</");
        self.write_name(element.name, out);
        out.push(b'>');
    }

    fn write_name(&self, name: Name, out: &mut Vec<u8>) {
        let (prefix, local) = (self.program.text(name.prefix), self.program.text(name.local));
        out.extend_from_slice(prefix.as_bytes());
        if !prefix.is_empty() {
            out.push(b':');
        }
        out.extend_from_slice(local.as_bytes());
    }
}

fn write_declaration(prefix: &str, uri: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b" xmlns");
    if !prefix.is_empty() {
        out.push(b':');
        out.extend_from_slice(prefix.as_bytes());
    }
    out.extend_from_slice(b"=\"");
    write_attribute_value(out, uri.as_bytes());
    out.push(b'"');
}

impl Frame {
    /// Where bytes go: before the FLWR, or after it.
    fn side(&mut self) -> &mut Vec<u8> {
        if self.flwor.is_some() { &mut self.after } else { &mut self.before }
    }
}

/// Parts of a return clause as they are gathered.
struct Parts {
    parts: Vec<PartSpec>,
    is_open: bool,
}

impl Parts {
    /// The bytes that stand last.
    fn bytes(&mut self) -> &mut Vec<u8> {
        if !self.is_open {
            self.parts.push(PartSpec::Bytes(Vec::new()));
            self.is_open = true;
        }
        match self.parts.last_mut() {
            Some(PartSpec::Bytes(bytes)) => bytes,
            _ => unreachable!("bytes have just been opened"),
        }
    }

    fn hole(&mut self, target: TargetSpec, form: Form, scope: &Namespaces) {
        self.parts.push(PartSpec::Hole { target, form, outer: scope.clone() });
        self.is_open = false;
    }
}
