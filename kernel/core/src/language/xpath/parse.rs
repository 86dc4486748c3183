//! Expression text to arena (XPath 1.0, 3.7, with names resolved as in `Q{uri}local`).
//!
//! It reads canonical expression text, and the abbreviations and precedences of XPath as well. It
//! does not know prefixes or variables. What it builds is checked: functions, arities, node-sets
//! where node-sets must be.

use super::analyse;
use super::ast::{Arena, Axis, Expr, ExprId, Kind, List, NodeTest, Start, Step, TextRange};
use super::functions::{self, Function};
use super::simplify::simplify_steps;
use super::tokens::{Binary, Parsed, Tokens};
use crate::language::comparison::Comparison;
use crate::xml::names::hash_name;
use crate::xml::parser::is_ncname_start;

/// Parentheses within one another; a chain of operators is written with one pair for each.
const PARENTHESES_MAX: u32 = 512;
/// Predicates and function calls within one another.
const BRACKETS_MAX: u32 = 128;

/// Parses a text into an arena; gives the root.
pub(super) fn parse(text: &str) -> Parsed<(Arena, ExprId)> {
    let tokens = Tokens::new(text);
    // Canonical text writes axes out: a sub-expression takes at least a dozen bytes.
    let guess = text.len() / 12 + 4;
    let arena = Arena {
        exprs: Vec::with_capacity(guess),
        facts: Vec::with_capacity(guess),
        lists: Vec::with_capacity(guess),
        steps: Vec::with_capacity(guess / 2 + 1),
        text: String::with_capacity(text.len() / 2),
        ..Arena::default()
    };
    let mut parser = Parser { tokens, arena, parentheses: 0, brackets: 0 };
    if text.len() > u32::MAX as usize / 2 {
        return Err(parser.tokens.error("the text is too long"));
    }
    let root = parser.expression(1)?;
    parser.tokens.peek();
    if !parser.tokens.is_at_end() {
        return Err(parser.tokens.error("expected an operator or the end"));
    }
    analyse::choose_memos(&mut parser.arena, root);
    Ok((parser.arena, root))
}

struct Parser<'t> {
    tokens: Tokens<'t>,
    arena: Arena,
    parentheses: u32,
    brackets: u32,
}

/// Operators.
impl Parser<'_> {
    /// An expression of operators that bind at least as tightly as `level`.
    fn expression(&mut self, level: u8) -> Parsed<ExprId> {
        let mut left = self.unary()?;
        while let Some((operator, len)) = self.tokens.operator() {
            if operator.level() < level {
                break;
            }
            self.tokens.at += len;
            let right = self.expression(operator.level() + 1)?;
            left = self.combine(operator, left, right);
        }
        Ok(left)
    }

    fn combine(&mut self, operator: Binary, left: ExprId, right: ExprId) -> ExprId {
        let expr = match operator {
            Binary::Or => Expr::Or(self.joined(left, right, |expr| match expr {
                Expr::Or(list) => Some(list),
                _ => None,
            })),
            Binary::And => Expr::And(self.joined(left, right, |expr| match expr {
                Expr::And(list) => Some(list),
                _ => None,
            })),
            Binary::Compare(comparison) => Expr::Compare(comparison, left, right),
            Binary::Calculate(arithmetic) => Expr::Calculate(arithmetic, left, right),
        };
        analyse::push(&mut self.arena, expr)
    }

    /// The operands of an associative operator, those of operands with the same operator among
    /// them: a long chain then needs no deep recursion.
    fn joined(&mut self, left: ExprId, right: ExprId, same: impl Fn(Expr) -> Option<List>) -> List {
        let mut operands = Vec::new();
        for id in [left, right] {
            match same(self.arena.exprs[id as usize]) {
                Some(list) => operands.extend_from_slice(self.arena.list(list)),
                None => operands.push(id),
            }
        }
        self.list(&operands)
    }

    fn unary(&mut self) -> Parsed<ExprId> {
        let mut minuses = 0;
        while self.tokens.take("-") {
            minuses += 1;
        }
        let operand = self.union()?;
        if minuses == 0 {
            return Ok(operand);
        }
        let negated = match self.arena.exprs[operand as usize] {
            Expr::Number(number) => Expr::Number(-number),
            _ => Expr::Negate(operand),
        };
        let once = analyse::push(&mut self.arena, negated);
        if minuses % 2 == 1 {
            return Ok(once);
        }
        let twice = match self.arena.exprs[once as usize] {
            Expr::Number(number) => Expr::Number(-number),
            _ => Expr::Negate(once),
        };
        Ok(analyse::push(&mut self.arena, twice))
    }

    fn union(&mut self) -> Parsed<ExprId> {
        let mut left = self.path()?;
        while self.tokens.take("|") {
            let right = self.path()?;
            for id in [left, right] {
                self.need_nodes(id)?;
            }
            let operands = self.joined(left, right, |expr| match expr {
                Expr::Union(list) => Some(list),
                _ => None,
            });
            left = analyse::push(&mut self.arena, Expr::Union(operands));
        }
        Ok(left)
    }

    fn need_nodes(&self, id: ExprId) -> Parsed<()> {
        match self.arena.kind(id) {
            Kind::Nodes => Ok(()),
            _ => Err(self.tokens.error("this must be a node-set")),
        }
    }

    fn list(&mut self, ids: &[ExprId]) -> List {
        let start = self.arena.lists.len() as u32;
        self.arena.lists.extend_from_slice(ids);
        List { start, end: self.arena.lists.len() as u32 }
    }

    fn keep(&mut self, text: &str) -> TextRange {
        let start = self.arena.text.len() as u32;
        self.arena.text.push_str(text);
        TextRange { start, end: self.arena.text.len() as u32 }
    }
}

/// Paths.
impl<'t> Parser<'t> {
    fn path(&mut self) -> Parsed<ExprId> {
        let mut steps = Vec::new();
        let start = match self.tokens.peek() {
            b'/' => {
                if self.tokens.take("//") {
                    steps.push(self.any_descendant());
                    self.step(&mut steps)?;
                } else {
                    self.tokens.at += 1;
                    if self.is_step_here() {
                        self.step(&mut steps)?;
                    }
                }
                Start::Root
            }
            _ if self.is_primary_here() => {
                let set = self.primary()?;
                let predicates = self.predicates()?;
                let leads_on = self.tokens.peek() == b'/';
                if predicates.is_empty() && !leads_on {
                    return Ok(set);
                }
                self.need_nodes(set)?;
                Start::Filter { set, predicates: self.list(&predicates) }
            }
            _ => {
                self.step(&mut steps)?;
                Start::Context
            }
        };
        while self.tokens.peek() == b'/' {
            if self.tokens.take("//") {
                steps.push(self.any_descendant());
            } else {
                self.tokens.at += 1;
            }
            self.step(&mut steps)?;
        }
        simplify_steps(&mut steps, matches!(start, Start::Context));
        let first = self.arena.steps.len() as u32;
        self.arena.steps.extend_from_slice(&steps);
        let steps = List { start: first, end: self.arena.steps.len() as u32 };
        Ok(analyse::push(&mut self.arena, Expr::Path { start, steps }))
    }

    fn any_descendant(&mut self) -> Step {
        self.bare_step(Axis::DescendantOrSelf, NodeTest::Node)
    }

    fn bare_step(&mut self, axis: Axis, test: NodeTest) -> Step {
        let test_number = self.arena.tests;
        self.arena.tests += 1;
        let predicates = List::default();
        Step { axis, test, test_number, predicates, is_positional: false, nth: None }
    }

    fn is_step_here(&mut self) -> bool {
        matches!(self.tokens.peek(), b'@' | b'.' | b'*')
            || self.tokens.rest().starts_with(is_ncname_start)
    }

    /// Whether a literal, a number, a parenthesis or a function call is here.
    fn is_primary_here(&mut self) -> bool {
        let first = self.tokens.peek();
        let second = self.tokens.rest().as_bytes().get(1).copied().unwrap_or(0);
        if matches!(first, b'(' | b'\'' | b'"' | b'0'..=b'9' | b'$')
            || first == b'.' && second.is_ascii_digit()
        {
            return true;
        }
        let mark = self.tokens.at;
        let name = self.tokens.ncname();
        let is_call = self.tokens.follows("(");
        self.tokens.at = mark;
        let is_type = |name| matches!(name, "comment" | "node" | "processing-instruction" | "text");
        name.is_some_and(|name| is_call && !is_type(name))
    }

    fn primary(&mut self) -> Parsed<ExprId> {
        if let Some(text) = self.tokens.literal()? {
            let range = self.keep(text);
            return Ok(analyse::push(&mut self.arena, Expr::Literal(range)));
        }
        if let Some(value) = self.tokens.number() {
            return Ok(analyse::push(&mut self.arena, Expr::Number(value)));
        }
        if self.tokens.take("(") {
            self.parentheses += 1;
            if self.parentheses > PARENTHESES_MAX {
                return Err(self.tokens.error("too many parentheses within one another"));
            }
            let inner = self.expression(1)?;
            self.parentheses -= 1;
            self.tokens.expect(")", "expected \")\"")?;
            return Ok(inner);
        }
        match self.tokens.ncname() {
            Some(name) => self.call(name),
            None => Err(self.tokens.error("variables are not bound here")),
        }
    }

    fn call(&mut self, name: &str) -> Parsed<ExprId> {
        let Some(signature) = functions::find(name) else {
            return Err(self.tokens.error("there is no function of this name"));
        };
        self.tokens.expect("(", "expected \"(\"")?;
        self.open_bracket()?;
        let mut arguments = Vec::new();
        if !self.tokens.follows(")") {
            arguments.push(self.expression(1)?);
            while self.tokens.take(",") {
                arguments.push(self.expression(1)?);
            }
        }
        self.tokens.expect(")", "expected \",\" or \")\"")?;
        self.brackets -= 1;
        if !(signature.arguments_min..=signature.arguments_max).contains(&arguments.len()) {
            return Err(self.tokens.error("wrong number of arguments"));
        }
        if signature.takes_nodes {
            for &argument in &arguments {
                self.need_nodes(argument)?;
            }
        }
        let list = self.list(&arguments);
        Ok(analyse::push(&mut self.arena, Expr::Call(signature.function, list)))
    }

    fn open_bracket(&mut self) -> Parsed<()> {
        self.brackets += 1;
        if self.brackets > BRACKETS_MAX {
            return Err(self.tokens.error("too many predicates and calls within one another"));
        }
        Ok(())
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        if self.tokens.take("..") {
            steps.push(self.bare_step(Axis::Parent, NodeTest::Node));
            return Ok(());
        }
        if self.tokens.take(".") {
            steps.push(self.bare_step(Axis::Itself, NodeTest::Node));
            return Ok(());
        }
        let axis = self.axis()?;
        let test = self.node_test()?;
        let mut step = self.bare_step(axis, test);
        let predicates = self.predicates()?;
        step.predicates = self.list(&predicates);
        step.is_positional = predicates.iter().any(|&id| analyse::is_positional(&self.arena, id));
        step.nth = predicates.first().and_then(|&id| analyse::nth(&self.arena, id));
        steps.push(step);
        Ok(())
    }

    fn axis(&mut self) -> Parsed<Axis> {
        if self.tokens.take("@") {
            return Ok(Axis::Attribute);
        }
        let mark = self.tokens.at;
        if let Some(name) = self.tokens.ncname()
            && self.tokens.take("::")
        {
            return Axis::of_name(name)
                .ok_or_else(|| self.tokens.error("there is no axis of this name"));
        }
        self.tokens.at = mark;
        Ok(Axis::Child)
    }

    fn node_test(&mut self) -> Parsed<NodeTest> {
        if self.tokens.take("*:") {
            let local = self.local_name()?;
            return Ok(NodeTest::AnyNamespace { local: self.keep(local) });
        }
        if self.tokens.take("*") {
            return Ok(NodeTest::Any);
        }
        if self.tokens.take("Q{") {
            let rest = self.tokens.rest();
            let Some(len) = rest.find(['{', '}']).filter(|&at| rest.as_bytes()[at] == b'}') else {
                return Err(self.tokens.error("the namespace name does not end"));
            };
            let uri = &rest[..len];
            self.tokens.at += len + 1;
            if self.tokens.rest().starts_with('*') {
                self.tokens.at += 1;
                return Ok(NodeTest::AnyIn { uri: self.keep(uri) });
            }
            let local = self.local_name()?;
            return Ok(self.name_test(uri, local));
        }
        let Some(name) = self.tokens.ncname() else {
            return Err(self.tokens.error("expected a step"));
        };
        if !self.tokens.follows("(") {
            return Ok(self.name_test("", name));
        }
        self.tokens.take("(");
        let test = match name {
            "comment" => NodeTest::Comment,
            "node" => NodeTest::Node,
            "processing-instruction" => {
                let target = self.tokens.literal()?;
                NodeTest::Instruction(target.map(|target| self.keep(target)))
            }
            "text" => NodeTest::Text,
            _ => return Err(self.tokens.error("there is no node type of this name")),
        };
        self.tokens.expect(")", "expected \")\"")?;
        Ok(test)
    }

    fn local_name(&mut self) -> Parsed<&'t str> {
        if !self.tokens.rest().starts_with(is_ncname_start) {
            return Err(self.tokens.error("expected a local name"));
        }
        Ok(self.tokens.ncname().unwrap_or(""))
    }

    fn name_test(&mut self, uri: &str, local: &str) -> NodeTest {
        let hash = hash_name(uri, local);
        NodeTest::Name { uri: self.keep(uri), local: self.keep(local), hash }
    }

    /// Predicates, each as something to ask for its truth.
    fn predicates(&mut self) -> Parsed<Vec<ExprId>> {
        let mut predicates = Vec::new();
        while self.tokens.take("[") {
            self.open_bracket()?;
            let inner = self.expression(1)?;
            self.tokens.expect("]", "expected \"]\"")?;
            self.brackets -= 1;
            predicates.push(self.as_condition(inner));
        }
        Ok(predicates)
    }

    /// A number as predicate is compared with the position (XPath 1.0, 2.4).
    fn as_condition(&mut self, inner: ExprId) -> ExprId {
        if self.arena.kind(inner) != Kind::Number {
            return inner;
        }
        let none = self.list(&[]);
        let position = analyse::push(&mut self.arena, Expr::Call(Function::Position, none));
        let same = Expr::Compare(Comparison::Eq, position, inner);
        analyse::push(&mut self.arena, same)
    }
}
