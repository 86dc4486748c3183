//! Paths, steps, node tests (XQuery 1.0, 3.2).

use super::super::syntax::{Axis, Expr, ExprId, ItemTest, NodeTest, Start};
use super::facts::{items, reads};
use super::{Facts, Parser};
use crate::language::grammar::names::{Written, written_name};
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::language::xpath::simplify::simplify_steps;
use crate::language::xpath::{List, Step, TextRange};
use crate::xml::names::hash_name;
use crate::xml::parser::is_ncname_start;

/// A path while it is read, and what its predicates read.
pub(super) struct Path {
    start: Start,
    steps: Vec<Step>,
    facts: Facts,
}

/// Paths.
impl<'t> Parser<'t> {
    /// A path from the root or from the context node, without steps.
    pub(super) fn path_from(start: Start) -> Path {
        Path { start, steps: Vec::new(), facts: Facts::default() }
    }

    /// A path from the nodes of an expression.
    pub(super) fn path_from_nodes(&mut self, nodes: ExprId) -> Parsed<Path> {
        Ok(match self.program.expr(nodes) {
            // `(a/b)/c` is one path.
            Expr::Path { start, steps } => {
                let run = steps.start as usize..steps.end as usize;
                let steps = self.program.steps[run].to_vec();
                Path { start, steps, facts: self.facts(nodes) }
            }
            Expr::ContextItem => Self::path_from(self.context_start()?),
            _ => {
                self.need_nodes(nodes)?;
                let facts = Facts::default().around(self.facts(nodes));
                Path { facts, ..Self::path_from(Start::Expr(nodes)) }
            }
        })
    }

    /// Where a relative path begins.
    pub(super) fn context_start(&mut self) -> Parsed<Start> {
        if self.predicates == 0 {
            return Ok(Start::Root);
        }
        self.keep_rule(self.context & !items::NODES == 0)?;
        Ok(Start::Context)
    }

    /// The expression of a path.
    pub(super) fn push_path(&mut self, path: Path, offset: usize) -> ExprId {
        let Path { start, mut steps, facts: inner } = path;
        if !self.is_explaining() {
            simplify_steps(&mut steps, start == Start::Context);
        }
        let own = if start == Start::Context { reads::CONTEXT } else { 0 };
        let facts = Facts {
            reads: inner.reads | own,
            depth: inner.depth.max(1),
            may_be_attribute: may_be_attribute(start, &steps),
            is_of_message: inner.is_of_message || start == Start::Root,
            is_costly: true,
            ..Facts::of(items::NODES)
        };
        let first = self.program.steps.len() as u32;
        self.program.steps.extend_from_slice(&steps);
        let steps = List { start: first, end: self.program.steps.len() as u32 };
        let id = self.push(Expr::Path { start, steps }, facts, offset);
        self.keep_value(id);
        id
    }

    /// Adds a step without predicates.
    pub(super) fn push_step(&mut self, path: &mut Path, axis: Axis, test: NodeTest, offset: usize) {
        let step = self.bare_step(axis, test, offset);
        path.steps.push(step);
    }

    /// Adds the predicates that come next to the last step.
    pub(super) fn step_predicates(&mut self, path: &mut Path) -> Parsed<()> {
        let (list, found) = self.predicates_of(items::NODES)?;
        if let Some(step) = path.steps.last_mut() {
            step.predicates = list;
            step.is_positional = found.is_positional;
            step.nth = found.nth;
        }
        path.facts = path.facts.around(found.facts);
        Ok(())
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

    fn bare_step(&mut self, axis: Axis, test: NodeTest, offset: usize) -> Step {
        let test_number = self.program.tests;
        self.program.tests += 1;
        self.origins(|origins| origins.steps.push(offset as u32));
        let predicates = List::default();
        Step { axis, test, test_number, predicates, is_positional: false, nth: None }
    }

    /// Whether a step along an axis is here.
    pub(super) fn is_axis_step(&mut self) -> bool {
        match self.scanner.peek() {
            b'@' | b'*' => true,
            b'.' => !self.scanner.byte_after(1).is_ascii_digit(),
            _ => {
                let mark = self.scanner.at;
                let name = self.written_name();
                let next = self.scanner.peek();
                self.scanner.at = mark;
                match (name, next) {
                    (Some(Written::Plain(name)), b'(') => is_node_kind(name),
                    (Some(_), b'(' | b'{') => false,
                    (found, _) => found.is_some(),
                }
            }
        }
    }

    /// Whether what is here would begin a primary expression, which is no step.
    pub(super) fn begins_primary(&mut self) -> bool {
        match self.scanner.peek() {
            // The token alone, whatever follows it (the constraint leading-lone-slash).
            b'<' => !matches!(self.scanner.byte_after(1), b'<' | b'='),
            b'(' => self.scanner.byte_after(1) != b'#',
            b'"' | b'\'' | b'$' | b'0'..=b'9' => true,
            b'.' => self.scanner.byte_after(1).is_ascii_digit(),
            _ => self.scanner.rest().starts_with(is_ncname_start),
        }
    }

    #[cold]
    pub(super) fn no_step(&mut self) -> Box<Refusal> {
        let offset = self.scanner.place();
        let is_less_than =
            self.scanner.byte() == b'<' && !matches!(self.scanner.byte_after(1), b'<' | b'=');
        let after = |c| matches!(c, '!' | '?') || is_ncname_start(c);
        if is_less_than && !self.scanner.text_at(offset + 1).starts_with(after) {
            return self.scanner.unexpected(Reason::ExpectedStepAfterSlash, &[]);
        }
        if self.begins_primary() {
            return Refusal::new(offset, Reason::ExpressionAsStep, Vec::new());
        }
        self.scanner.unexpected(Reason::ExpectedStep, &[])
    }

    /// `child::` and the others, if one is here.
    pub(super) fn axis(&mut self) -> Parsed<Option<Axis>> {
        let start = self.scanner.place();
        let is_name = self.written_name().is_some();
        let end = self.scanner.at;
        if !is_name || self.scanner.peek() != b':' || self.scanner.byte_after(1) != b':' {
            self.scanner.at = start;
            return Ok(None);
        }
        let name = self.scanner.slice(start, end);
        match Axis::of_name(name) {
            None => Err(Refusal::new(start, Reason::NoAxis, vec![name.into()])),
            Some(Axis::Namespace) => Err(Refusal::new(start, Reason::NamespaceAxis, Vec::new())),
            axis => {
                self.scanner.skip(2);
                Ok(axis)
            }
        }
    }

    pub(super) fn node_test(&mut self, axis: Option<Axis>) -> Parsed<(Axis, NodeTest)> {
        let is_attribute = axis == Some(Axis::Attribute);
        let offset = self.scanner.place();
        if self.scanner.byte() == b'*' {
            return Ok((axis.unwrap_or(Axis::Child), self.star()?));
        }
        let Some(written) = self.written_name() else {
            return Err(self.scanner.unexpected(Reason::ExpectedTest, &[]));
        };
        if self.scanner.peek() != b'(' {
            let test = self.name_test(written, is_attribute, offset)?;
            return Ok((axis.unwrap_or(Axis::Child), test));
        }
        self.kind_test(written, axis, offset)
    }

    /// `*`, or `*:name` without blanks.
    fn star(&mut self) -> Parsed<NodeTest> {
        self.scanner.at += 1;
        if self.scanner.byte() != b':' || self.scanner.byte_after(1) == b':' {
            self.scanner.settle();
            return Ok(NodeTest::Any);
        }
        self.scanner.at += 1;
        let at = self.scanner.at;
        let Some(local) = self.scanner.ncname_here() else {
            return Err(Refusal::new(at, Reason::NameAfterStar, Vec::new()));
        };
        self.scanner.settle();
        Ok(NodeTest::AnyNamespace { local: self.keep(local) })
    }

    /// `text()` and the others; the name has been read, what is next is the parenthesis.
    fn kind_test(
        &mut self,
        written: Written<'t>,
        axis: Option<Axis>,
        offset: usize,
    ) -> Parsed<(Axis, NodeTest)> {
        let name = match written {
            Written::Plain(name) => name,
            _ => "",
        };
        let test = match name {
            "node" => NodeTest::Node,
            "text" => NodeTest::Text,
            "comment" => NodeTest::Comment,
            "processing-instruction" => NodeTest::Instruction(None),
            "element" => NodeTest::Element,
            "attribute" => NodeTest::Attribute,
            _ if is_node_kind(name) => {
                return Err(Refusal::new(offset, Reason::KindTest, vec![name.into()]));
            }
            _ => {
                self.scanner.at = offset;
                return Err(self.scanner.unexpected(Reason::ExpectedKindTest, &[]));
            }
        };
        let by_test = if test == NodeTest::Attribute { Axis::Attribute } else { Axis::Child };
        let axis = axis.unwrap_or(by_test);
        self.scanner.settle();
        self.kind_parenthesis(b'(', name)?;
        let mut found = test;
        if self.scanner.peek() != b')' {
            found = self.kind_argument(test, name, axis)?;
            if self.is_explaining() && self.scanner.peek() == b',' {
                let at = self.scanner.at;
                return Err(Refusal::new(at, Reason::SchemaTypeOfTest, vec![name.into()]));
            }
        }
        self.kind_parenthesis(b')', name)?;
        Ok((axis, found))
    }

    /// What `instance of` asks of an item: `element(a)`, `item()`, `xs:date`; none for `empty-sequence()`.
    pub(super) fn item_test(&mut self) -> Parsed<Option<ItemTest>> {
        let offset = self.scanner.place();
        let written = self.written_name();
        let is_call = self.scanner.peek() == b'(';
        let (written, name) = match written {
            Some(written @ Written::Plain(name)) if is_call => (written, name),
            _ => {
                self.scanner.at = offset;
                return self.atomic_test().map(Some);
            }
        };
        let found = match name {
            "item" => Some(ItemTest::Item),
            "document-node" => Some(ItemTest::Document),
            "empty-sequence" => None,
            "function" | "map" | "array" => {
                return Err(Refusal::new(offset, Reason::FunctionWord, vec![name.into()]));
            }
            _ => {
                let is_attribute = name == "attribute";
                let axis = if is_attribute { Axis::Attribute } else { Axis::Itself };
                let (axis, test) = self.kind_test(written, Some(axis), offset)?;
                let step = self.bare_step(axis, test, offset);
                self.program.steps.push(step);
                return Ok(Some(ItemTest::Node(self.program.steps.len() as u32 - 1)));
            }
        };
        self.scanner.settle();
        self.kind_parenthesis(b'(', name)?;
        if found == Some(ItemTest::Document) && self.scanner.peek() != b')' {
            return Err(Refusal::new(offset, Reason::KindTest, vec![name.into()]));
        }
        self.kind_parenthesis(b')', name)?;
        Ok(found)
    }

    fn kind_parenthesis(&mut self, symbol: u8, kind: &str) -> Parsed<()> {
        if self.scanner.take(symbol) {
            return Ok(());
        }
        let symbol = char::from(symbol).to_string();
        Err(self.scanner.unexpected(Reason::ExpectedKindParenthesis, &[&symbol, kind]))
    }

    fn kind_argument(&mut self, test: NodeTest, kind: &str, axis: Axis) -> Parsed<NodeTest> {
        let offset = self.scanner.place();
        match test {
            NodeTest::Instruction(_) => {
                let target = match self.literal()? {
                    Some(target) => self.keep(&target),
                    // As the tokens of a name go, with its prefix, which no target has.
                    None if self.written_name().is_some() => {
                        let target = self.scanner.slice(offset, self.scanner.at);
                        self.keep(target)
                    }
                    None => return Err(self.scanner.unexpected(Reason::ExpectedTarget, &[])),
                };
                self.scanner.settle();
                Ok(NodeTest::Instruction(Some(target)))
            }
            NodeTest::Element | NodeTest::Attribute => {
                if self.scanner.take(b'*') {
                    return Ok(test);
                }
                let is_attribute = axis == Axis::Attribute;
                match self.written_name() {
                    None | Some(Written::AnyIn(_) | Written::Braced(_, None)) => {
                        self.scanner.at = offset;
                        Err(self.scanner.unexpected(Reason::ExpectedName, &[]))
                    }
                    Some(_) if (test == NodeTest::Attribute) != is_attribute => {
                        let details = [kind, axis.name()].map(Detail::from).to_vec();
                        Err(Refusal::new(offset, Reason::KindTestOnAxis, details))
                    }
                    Some(written) => self.name_test(written, is_attribute, offset),
                }
            }
            _ => Err(self.scanner.unexpected(Reason::ExpectedKindParenthesis, &[")", kind])),
        }
    }

    /// `name`, `prefix:name`, `prefix:*`, `Q{uri}name`, `Q{uri}*` after blanks, if one is there. The token that follows
    /// has not been looked at yet.
    pub(super) fn written_name(&mut self) -> Option<Written<'t>> {
        let start = self.scanner.place();
        let (written, length) = written_name(self.scanner.text_at(start))?;
        self.scanner.at += length;
        Some(written)
    }

    /// The test of a name that has just been read.
    fn name_test(
        &mut self,
        written: Written<'_>,
        is_attribute: bool,
        offset: usize,
    ) -> Parsed<NodeTest> {
        self.scanner.settle();
        let (uri, local) = match written {
            Written::Plain(local) if is_attribute => (TextRange::default(), local),
            Written::Plain(local) => (self.default_uri(offset)?, local),
            Written::Prefixed(prefix, local) => (self.prefixed(prefix, offset)?, local),
            Written::AnyIn(prefix) => {
                return Ok(NodeTest::AnyIn { uri: self.prefixed(prefix, offset)? });
            }
            Written::Braced(uri, None) => {
                return Ok(NodeTest::AnyIn { uri: self.braced(uri, offset)? });
            }
            Written::Braced(uri, Some(local)) => (self.braced(uri, offset)?, local),
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
