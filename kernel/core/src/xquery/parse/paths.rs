//! Paths, steps, primaries and calls (XQuery 1.0, 3.1 and 3.2).

use super::super::functions::{self, Function};
use super::super::syntax::{Axis, Expr, ExprId, NodeTest, Number, Start};
use super::facts::{self, items, reads};
use super::scan::Parsed;
use super::{Facts, Parser};
use crate::door::is_ncname_start;
use crate::names::hash_name;
use crate::xpath::simplify::simplify_steps;
use crate::xpath::{List, Step, TextRange};

/// Predicates of one step or filter.
const PREDICATES_MAX: usize = 64;
/// Digits of an integer, as many as XQuery 1.0 asks for at least.
const INTEGER_DIGITS_MAX: usize = 18;

/// A name as written, from one that may have a prefix.
#[derive(Clone, Copy)]
enum Written<'t> {
    Plain(&'t str),
    Prefixed(&'t str, &'t str),
    AnyIn(&'t str),
    /// `Q{uri}local`; no local name is `Q{uri}*`.
    Braced(&'t str, Option<&'t str>),
}

/// Steps of a path while it is read, and what their predicates read.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    facts: Facts,
}

/// Paths.
impl<'t> Parser<'t> {
    /// A path, or a primary expression with or without predicates and steps.
    pub(super) fn path(&mut self) -> Parsed<ExprId> {
        let byte = self.scanner.peek();
        if byte == b'/' {
            return self.absolute_path();
        }
        if self.is_axis_step() && !(byte == b'.' && self.scanner.byte_after(1) != b'.') {
            let start = self.context_start()?;
            return self.steps(start, Steps::default(), true);
        }
        let mut primary = self.primary()?;
        if self.scanner.peek() == b'[' {
            primary = self.filter(primary)?;
        }
        if self.scanner.peek() != b'/' {
            return Ok(primary);
        }
        let (start, steps) = match self.program.expr(primary) {
            // `(a/b)/c` is one path.
            Expr::Path { start, steps } => {
                let run = steps.start as usize..steps.end as usize;
                let steps = self.program.steps[run].to_vec();
                (start, Steps { steps, facts: self.facts(primary) })
            }
            Expr::ContextItem => (self.context_start()?, Steps::default()),
            _ => {
                self.need_nodes(primary)?;
                let facts = Facts::default().around(self.facts(primary));
                (Start::Expr(primary), Steps { steps: Vec::new(), facts })
            }
        };
        self.steps(start, steps, false)
    }

    /// Where a relative path begins.
    fn context_start(&mut self) -> Parsed<Start> {
        if self.predicates == 0 {
            return Ok(Start::Root);
        }
        if self.context & !items::NODES != 0 {
            return Err(self.scanner.declined("a path begins at nodes"));
        }
        Ok(Start::Context)
    }

    /// `/`, `/a`, `//a`
    fn absolute_path(&mut self) -> Parsed<ExprId> {
        if self.scanner.byte_after(1) == b'/' {
            return self.steps(Start::Root, Steps::default(), false);
        }
        self.scanner.at += 1;
        if self.is_axis_step() {
            return self.steps(Start::Root, Steps::default(), true);
        }
        if self.begins_primary() {
            return Err(self.scanner.declined("an expression as a path step"));
        }
        Ok(self.message())
    }

    /// The steps of a path; the first comes without a slash before it, or with one.
    fn steps(&mut self, start: Start, mut steps: Steps, mut is_here: bool) -> Parsed<ExprId> {
        loop {
            if !is_here {
                if self.scanner.peek() != b'/' {
                    break;
                }
                self.scanner.at += 1;
                if self.scanner.byte() == b'/' {
                    self.scanner.at += 1;
                    self.count()?;
                    let any = self.bare_step(Axis::DescendantOrSelf, NodeTest::Node);
                    steps.steps.push(any);
                }
            }
            is_here = false;
            self.step(&mut steps)?;
        }
        simplify_steps(&mut steps.steps, start == Start::Context);
        let own = if start == Start::Context { reads::CONTEXT } else { 0 };
        let facts = Facts {
            reads: steps.facts.reads | own,
            depth: steps.facts.depth.max(1),
            may_be_attribute: may_be_attribute(start, &steps.steps),
            is_costly: true,
            ..Facts::of(items::NODES)
        };
        let first = self.program.steps.len() as u32;
        self.program.steps.extend_from_slice(&steps.steps);
        let steps = List { start: first, end: self.program.steps.len() as u32 };
        let id = self.push(Expr::Path { start, steps }, facts);
        self.keep_value(id);
        Ok(id)
    }

    /// Has nodes that do not depend on anything around them found once, if they could be asked for
    /// more often.
    pub(super) fn keep_value(&mut self, id: ExprId) {
        let facts = self.facts(id);
        if self.loops > 0 && facts.reads == 0 && facts.items == items::NODES && facts.is_costly {
            self.program.kept.resize(id as usize + 1, u32::MAX);
            self.program.kept[id as usize] = self.program.kept_slots;
            self.program.kept_slots += 1;
        }
    }

    fn bare_step(&mut self, axis: Axis, test: NodeTest) -> Step {
        let test_number = self.program.tests;
        self.program.tests += 1;
        let predicates = List::default();
        Step { axis, test, test_number, predicates, is_positional: false, nth: None }
    }

    /// Whether a step along an axis is here.
    fn is_axis_step(&mut self) -> bool {
        match self.scanner.peek() {
            b'@' | b'*' => true,
            b'.' => !self.scanner.byte_after(1).is_ascii_digit(),
            _ => {
                let mark = self.scanner.at;
                let name = self.written_name();
                let next = self.scanner.peek();
                self.scanner.at = mark;
                match (name, next) {
                    (Ok(Some(Written::Plain(name))), b'(') => is_node_kind(name),
                    (Ok(Some(_)), b'(' | b'{') => false,
                    (Ok(Some(_)), _) => true,
                    _ => false,
                }
            }
        }
    }

    /// Whether what is here would begin a primary expression, which is no step.
    fn begins_primary(&mut self) -> bool {
        match self.scanner.peek() {
            b'<' => {
                let after = self.scanner.rest()[1..].chars().next();
                after.is_some_and(|c| is_ncname_start(c) || matches!(c, '!' | '?'))
            }
            b'(' | b'"' | b'\'' | b'$' | b'0'..=b'9' => true,
            b'.' => self.scanner.byte_after(1).is_ascii_digit(),
            _ => self.scanner.rest().starts_with(is_ncname_start),
        }
    }

    fn step(&mut self, steps: &mut Steps) -> Parsed<()> {
        if !self.is_axis_step() {
            return Err(self.scanner.declined("expected a location step"));
        }
        self.count()?;
        let (axis, test) = match self.scanner.peek() {
            b'.' => {
                let is_parent = self.scanner.byte_after(1) == b'.';
                self.scanner.at += 1 + usize::from(is_parent);
                (if is_parent { Axis::Parent } else { Axis::Itself }, NodeTest::Node)
            }
            b'@' => {
                self.scanner.at += 1;
                self.node_test(Some(Axis::Attribute))?
            }
            _ => {
                let axis = self.axis()?;
                self.node_test(axis)?
            }
        };
        let mut step = self.bare_step(axis, test);
        if self.scanner.peek() == b'[' {
            let (list, facts) = self.predicates(items::NODES)?;
            step.predicates = list;
            step.is_positional = facts.is_positional;
            step.nth = facts.nth;
            steps.facts = steps.facts.around(facts.facts);
        }
        steps.steps.push(step);
        Ok(())
    }

    /// `child::` and the others, if one is here.
    fn axis(&mut self) -> Parsed<Option<Axis>> {
        let mark = self.scanner.at;
        if let Some(name) = self.scanner.ncname()
            && self.scanner.peek() == b':'
            && self.scanner.byte_after(1) == b':'
        {
            self.scanner.at += 2;
            return match Axis::of_name(name) {
                None | Some(Axis::Namespace) => Err(self.scanner.declined("no such axis")),
                axis => Ok(axis),
            };
        }
        self.scanner.at = mark;
        Ok(None)
    }

    fn node_test(&mut self, axis: Option<Axis>) -> Parsed<(Axis, NodeTest)> {
        let is_attribute = axis == Some(Axis::Attribute);
        if self.scanner.take(b'*') {
            let axis = axis.unwrap_or(Axis::Child);
            if self.scanner.byte() != b':' || self.scanner.byte_after(1) == b':' {
                return Ok((axis, NodeTest::Any));
            }
            self.scanner.at += 1;
            let Some(local) = self.scanner.ncname_here() else {
                return Err(self.scanner.declined("expected a local name"));
            };
            let is_prefix = self.scanner.byte() == b':' && self.scanner.byte_after(1) != b':';
            if is_prefix {
                return Err(self.scanner.declined("expected a local name"));
            }
            return Ok((axis, NodeTest::AnyNamespace { local: self.keep(local) }));
        }
        let Some(written) = self.written_name()? else {
            return Err(self.scanner.declined("expected a name, * or a node test"));
        };
        if self.scanner.peek() != b'(' {
            let test = self.name_test(written, is_attribute)?;
            return Ok((axis.unwrap_or(Axis::Child), test));
        }
        match written {
            Written::Plain(name) => self.kind_test(name, axis),
            _ => Err(self.scanner.declined("expected a node test")),
        }
    }

    /// `text()` and the others; what is next is the parenthesis.
    fn kind_test(&mut self, name: &str, axis: Option<Axis>) -> Parsed<(Axis, NodeTest)> {
        let test = match name {
            "node" => NodeTest::Node,
            "text" => NodeTest::Text,
            "comment" => NodeTest::Comment,
            "processing-instruction" => NodeTest::Instruction(None),
            "element" => NodeTest::Element,
            "attribute" => NodeTest::Attribute,
            _ => return Err(self.scanner.declined("expected a node test")),
        };
        let by_test = if test == NodeTest::Attribute { Axis::Attribute } else { Axis::Child };
        let axis = axis.unwrap_or(by_test);
        self.scanner.at += 1;
        let test = if self.scanner.peek() == b')' { test } else { self.kind_argument(test, axis)? };
        self.scanner.expect(b')', "expected )")?;
        Ok((axis, test))
    }

    fn kind_argument(&mut self, test: NodeTest, axis: Axis) -> Parsed<NodeTest> {
        match test {
            NodeTest::Instruction(_) => {
                let target = match self.literal()? {
                    Some(target) => self.keep(&target),
                    None => {
                        // As the tokens of a name go, with its prefix, which no target has.
                        let start = {
                            self.scanner.peek();
                            self.scanner.at
                        };
                        if self.written_name()?.is_none() {
                            return Err(self.scanner.declined("expected a target"));
                        }
                        let target = self.scanner.slice(start, self.scanner.at);
                        self.keep(target)
                    }
                };
                Ok(NodeTest::Instruction(Some(target)))
            }
            NodeTest::Element | NodeTest::Attribute => {
                if self.scanner.take(b'*') {
                    return Ok(test);
                }
                let is_attribute = axis == Axis::Attribute;
                match self.written_name()? {
                    None | Some(Written::AnyIn(_) | Written::Braced(_, None)) => {
                        Err(self.scanner.declined("expected a name or *"))
                    }
                    Some(_) if (test == NodeTest::Attribute) != is_attribute => {
                        Err(self.scanner.declined("a name of another kind of node"))
                    }
                    Some(written) => self.name_test(written, is_attribute),
                }
            }
            _ => Err(self.scanner.declined("expected )")),
        }
    }

    /// `name`, `prefix:name`, `prefix:*`, `Q{uri}name`, `Q{uri}*` after blanks, if one is there.
    fn written_name(&mut self) -> Parsed<Option<Written<'t>>> {
        let Some(first) = self.scanner.ncname() else {
            return Ok(None);
        };
        match self.scanner.byte() {
            b'{' if first == "Q" => {
                let rest = &self.scanner.rest()[1..];
                // Without its end it is a name before a brace.
                let Some(len) = rest.find(['{', '}']).filter(|&at| rest.as_bytes()[at] == b'}')
                else {
                    return Ok(Some(Written::Plain(first)));
                };
                let mark = self.scanner.at;
                self.scanner.at += len + 2;
                if self.scanner.byte() == b'*' {
                    self.scanner.at += 1;
                    return Ok(Some(Written::Braced(&rest[..len], None)));
                }
                match self.scanner.ncname_here() {
                    Some(local) => Ok(Some(Written::Braced(&rest[..len], Some(local)))),
                    None => {
                        self.scanner.at = mark;
                        Ok(Some(Written::Plain(first)))
                    }
                }
            }
            b':' if self.scanner.byte_after(1) == b'*' => {
                self.scanner.at += 2;
                Ok(Some(Written::AnyIn(first)))
            }
            b':' if self.scanner.byte_after(1) != b':' => {
                let mark = self.scanner.at;
                self.scanner.at += 1;
                match self.scanner.ncname_here() {
                    Some(local) => Ok(Some(Written::Prefixed(first, local))),
                    None => {
                        self.scanner.at = mark;
                        Ok(Some(Written::Plain(first)))
                    }
                }
            }
            _ => Ok(Some(Written::Plain(first))),
        }
    }

    fn name_test(&mut self, written: Written<'_>, is_attribute: bool) -> Parsed<NodeTest> {
        let (uri, local) = match written {
            Written::Plain(local) if is_attribute => (TextRange::default(), local),
            Written::Plain(local) => (self.default_uri()?, local),
            Written::Prefixed(prefix, local) => (self.prefixed(prefix)?, local),
            Written::AnyIn(prefix) => return Ok(NodeTest::AnyIn { uri: self.prefixed(prefix)? }),
            Written::Braced(uri, None) => return Ok(NodeTest::AnyIn { uri: self.keep(uri) }),
            Written::Braced(uri, Some(local)) => (self.keep(uri), local),
        };
        let hash = hash_name(self.program.text(uri), local);
        Ok(NodeTest::Name { uri, local: self.keep(local), hash })
    }
}

/// Whether a path can lead to attributes.
fn may_be_attribute(start: Start, steps: &[Step]) -> bool {
    let Some(last) = steps.last() else {
        return start != Start::Root;
    };
    match last.axis {
        Axis::Attribute => true,
        Axis::Itself | Axis::DescendantOrSelf | Axis::AncestorOrSelf => {
            matches!(last.test, NodeTest::Node | NodeTest::Attribute)
        }
        _ => false,
    }
}

/// Names before a parenthesis that are no functions.
fn is_node_kind(name: &str) -> bool {
    matches!(
        name,
        "node"
            | "text"
            | "comment"
            | "processing-instruction"
            | "element"
            | "attribute"
            | "document-node"
            | "item"
            | "schema-element"
            | "schema-attribute"
    )
}

/// What the predicates of one step or filter say together.
struct PredicateFacts {
    facts: Facts,
    is_positional: bool,
    nth: Option<u32>,
}

/// Primaries, predicates, calls.
impl Parser<'_> {
    /// Expressions in square brackets, of items of some kinds.
    fn predicates(&mut self, context: u8) -> Parsed<(List, PredicateFacts)> {
        let outer = std::mem::replace(&mut self.context, context);
        self.predicates += 1;
        self.loops += 1;
        let mut ids = Vec::new();
        let mut found = PredicateFacts { facts: Facts::default(), is_positional: false, nth: None };
        while self.scanner.take(b'[') {
            self.count()?;
            if ids.len() == PREDICATES_MAX {
                return Err(self.scanner.declined("has too many predicates on a step"));
            }
            self.enter()?;
            let id = self.sequence()?;
            self.leave();
            self.scanner.expect(b']', "expected ] or an operator")?;
            self.need_value(id)?;
            let facts = self.facts(id);
            found.is_positional |= facts.is_positional();
            found.facts = found.facts.around(facts.as_predicate());
            if ids.is_empty()
                && let Expr::Number(Number::Integer(nth)) = self.program.expr(id)
            {
                found.nth = u32::try_from(nth).ok().filter(|&nth| nth > 0);
            }
            ids.push(id);
        }
        self.loops -= 1;
        self.predicates -= 1;
        self.context = outer;
        Ok((self.list(&ids), found))
    }

    fn filter(&mut self, primary: ExprId) -> Parsed<ExprId> {
        let inner = self.facts(primary);
        let (predicates, found) = self.predicates(inner.items)?;
        let facts = Facts::of(items::NONE).giving(inner).around(found.facts);
        let is_positional = found.is_positional;
        let id = self.push(Expr::Filter { primary, predicates, is_positional }, facts);
        self.keep_value(id);
        Ok(id)
    }

    fn primary(&mut self) -> Parsed<ExprId> {
        let atoms = Facts::of(items::ATOMS);
        match self.scanner.peek() {
            b'$' => self.variable(),
            b'"' | b'\'' => {
                self.count()?;
                let text = self.literal()?.unwrap_or_default();
                let text = self.keep(&text);
                Ok(self.push(Expr::String(text), atoms))
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.scanner.byte_after(1).is_ascii_digit() => self.number(),
            b'.' => {
                self.count()?;
                self.scanner.at += 1;
                Ok(self.context_item())
            }
            b'(' => self.parenthesised(),
            b'<' => self.constructor(),
            _ => self.call(),
        }
    }

    /// `.`
    fn context_item(&mut self) -> ExprId {
        if self.predicates == 0 {
            return self.message();
        }
        let facts = Facts {
            reads: reads::CONTEXT,
            may_be_number: self.context & items::ATOMS != 0,
            may_be_attribute: self.context & items::NODES != 0,
            ..Facts::of(self.context)
        };
        self.push(Expr::ContextItem, facts)
    }

    fn number(&mut self) -> Parsed<ExprId> {
        self.count()?;
        let start = self.scanner.at;
        let digits = |parser: &mut Self| {
            let start = parser.scanner.at;
            while parser.scanner.byte().is_ascii_digit() {
                parser.scanner.at += 1;
            }
            parser.scanner.at - start
        };
        digits(self);
        let is_decimal = self.scanner.byte() == b'.';
        if is_decimal {
            self.scanner.at += 1;
            digits(self);
        }
        let mark = self.scanner.at;
        let mut is_double = matches!(self.scanner.byte(), b'e' | b'E');
        if is_double {
            self.scanner.at += 1;
            self.scanner.at += usize::from(matches!(self.scanner.byte(), b'+' | b'-'));
            if digits(self) == 0 {
                is_double = false;
                self.scanner.at = mark;
            }
        }
        if self.scanner.rest().starts_with(is_ncname_start) {
            return Err(self.scanner.declined("a number runs into a name"));
        }
        let text = self.scanner.slice(start, self.scanner.at);
        let value = || text.parse().unwrap_or(f64::NAN);
        let number = if is_double {
            Number::Double(value())
        } else if is_decimal {
            Number::decimal(value())
        } else {
            let significant = text.trim_start_matches('0');
            if significant.len() > INTEGER_DIGITS_MAX {
                return Err(self.scanner.declined("an integer of too many digits"));
            }
            Number::Integer(significant.parse().unwrap_or(0))
        };
        Ok(self.push_number(number))
    }

    fn push_number(&mut self, number: Number) -> ExprId {
        let facts = Facts { may_be_number: true, ..Facts::of(items::ATOMS) };
        self.push(Expr::Number(number), facts)
    }

    /// `(...)`; leaves no expression of its own.
    fn parenthesised(&mut self) -> Parsed<ExprId> {
        self.enter()?;
        self.scanner.at += 1;
        let inner = if self.scanner.peek() == b')' {
            self.count()?;
            self.sequence_of(&[])
        } else {
            self.sequence()?
        };
        self.leave();
        self.scanner.expect(b')', "expected ) or an operator")?;
        Ok(inner)
    }

    /// A function call.
    fn call(&mut self) -> Parsed<ExprId> {
        let Some(written) = self.written_name()? else {
            return Err(self.scanner.declined("expected an expression"));
        };
        let name = match written {
            Written::Plain(name) => name,
            Written::Prefixed(prefix, name) => {
                let uri = self.prefixed(prefix)?;
                if self.program.text(uri) != super::names::FUNCTIONS {
                    return Err(self.scanner.declined("there is no function of this name"));
                }
                name
            }
            Written::Braced(super::names::FUNCTIONS, Some(name)) => name,
            _ => return Err(self.scanner.declined("there is no function of this name")),
        };
        if self.scanner.peek() != b'(' {
            return Err(self.scanner.declined("expected an expression"));
        }
        let is_message = matches!(name, "doc" | "document");
        let signature = functions::find(name);
        if !is_message && signature.is_none() {
            return Err(self.scanner.declined("there is no function of this name"));
        }
        self.count()?;
        let mut arguments = self.arguments()?;
        let (function, min, max) = match signature {
            Some(&(_, function, min, max)) => (function, min, max),
            None => {
                let is_literal = matches!(
                    arguments[..], [id] if matches!(self.program.expr(id), Expr::String(_))
                );
                if is_literal {
                    return Ok(self.message());
                }
                return Err(self.scanner.declined("doc() of anything but one string literal"));
            }
        };
        if !(min..=max).contains(&arguments.len()) {
            return Err(self.scanner.declined("wrong number of arguments"));
        }
        if arguments.is_empty() && reads_context_by_default(function) {
            arguments.push(self.context_item());
        }
        self.push_call(function, &arguments)
    }

    fn arguments(&mut self) -> Parsed<Vec<ExprId>> {
        self.scanner.at += 1;
        let mut arguments = Vec::new();
        if self.scanner.take(b')') {
            return Ok(arguments);
        }
        self.enter()?;
        arguments.push(self.single()?);
        while self.scanner.take(b',') {
            arguments.push(self.single()?);
        }
        self.leave();
        self.scanner.expect(b')', "expected ) or a comma")?;
        Ok(arguments)
    }

    fn push_call(&mut self, function: Function, arguments: &[ExprId]) -> Parsed<ExprId> {
        let own = match function {
            Function::Position | Function::Last if self.predicates == 0 => {
                return Ok(self.push_number(Number::Integer(1)));
            }
            Function::Position | Function::Last => reads::PLACE,
            Function::Lang if self.predicates > 0 => reads::CONTEXT,
            _ => 0,
        };
        let (items, may_be_number) = facts::result_of(function);
        let mut facts = Facts { reads: own, may_be_number, ..Facts::of(items) };
        for &argument in arguments {
            facts = facts.around(self.facts(argument));
            match function {
                Function::Count | Function::Exists | Function::Empty => {}
                Function::Name | Function::LocalName | Function::NamespaceUri => {
                    self.need_nodes(argument)?;
                }
                _ => self.need_value(argument)?,
            }
        }
        let list = self.list(arguments);
        Ok(self.push(Expr::Call(function, list), facts))
    }
}

/// Functions that are given the context item where they are given nothing.
fn reads_context_by_default(function: Function) -> bool {
    use Function::*;
    matches!(
        function,
        String | StringLength | NormalizeSpace | Number | Name | LocalName | NamespaceUri
    )
}
