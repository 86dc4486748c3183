//! XQuery as a [`Grammar`]: where its productions are.

use super::super::syntax::{Axis, ExprId, NodeTest, Start};
use super::paths::Path;
use super::{PREDICATES_MAX, Parser, operators};
use crate::language::grammar::{Binary, Bracket, Grammar, OperatorPlace, Scanner};
use crate::language::refusal::{Parsed, Reason, Refusal};

impl<'t> Grammar<'t> for Parser<'t> {
    type Tree = ExprId;
    type Path = Path;
    type Test = NodeTest;

    const TAKES_PREDICATES_AFTER_SLASH: bool = false;

    fn scanner(&mut self) -> &mut Scanner<'t> {
        &mut self.scanner
    }

    fn operator(&mut self) -> Option<(Binary, usize)> {
        self.operator()
    }

    fn is_step(&mut self) -> bool {
        self.is_axis_step()
    }

    fn node_test(&mut self, axis: Option<Axis>) -> Parsed<(Axis, NodeTest)> {
        self.node_test(axis)
    }

    fn axis(&mut self) -> Parsed<Option<Axis>> {
        self.axis()
    }

    fn predicates_max(&self) -> usize {
        PREDICATES_MAX
    }

    fn count(&mut self, offset: usize) -> Parsed<()> {
        self.count(offset)
    }

    fn open(&mut self, _bracket: &'static str, offset: usize) -> Parsed<()> {
        self.enter(offset)
    }

    fn leave(&mut self) {
        self.leave();
    }

    fn no_bracket(&self, bracket: Bracket) -> Box<Refusal> {
        let details = match bracket {
            Bracket::PredicateEnd => ["]", "or an operator"],
            Bracket::ParenthesisEnd => [")", "or an operator"],
            Bracket::Arguments => ["(", "of the call"],
            Bracket::ArgumentsEnd => [")", "or a comma"],
        };
        self.scanner.unexpected(Reason::ExpectedSymbol, &details)
    }

    fn no_step(&mut self) -> Box<Refusal> {
        self.no_step()
    }

    fn needs_step(&mut self) -> bool {
        self.begins_primary()
    }

    fn level(operator: Binary) -> u8 {
        operators::level(operator)
    }

    fn may_chain(&mut self, level: u8) -> Parsed<bool> {
        self.may_chain(level)
    }

    fn end_operators(&mut self) -> Parsed<()> {
        if self.is_explaining() { self.refuse_operator() } else { Ok(()) }
    }

    fn sequence(&mut self) -> Parsed<ExprId> {
        self.sequence()
    }

    fn single(&mut self) -> Parsed<ExprId> {
        self.single()
    }

    fn in_parentheses(&mut self, offset: usize) -> Parsed<ExprId> {
        self.in_parentheses(offset)
    }

    fn operand(&mut self, _level: u8) -> Parsed<ExprId> {
        self.operand()
    }

    fn primary(&mut self) -> Parsed<ExprId> {
        self.primary()
    }

    fn combine(
        &mut self,
        operator: Binary,
        left: ExprId,
        right: ExprId,
        place: OperatorPlace,
    ) -> Parsed<ExprId> {
        self.combine(operator, left, right, place.start)
    }

    fn filter(&mut self, primary: ExprId, offset: usize) -> Parsed<ExprId> {
        self.filter(primary, offset)
    }

    /// A lone `.` is the context item, which may be no node; a word before a name and a brace builds one.
    fn begins_path(&mut self) -> bool {
        let is_item = self.scanner.peek() == b'.' && self.scanner.byte_after(1) != b'.';
        !is_item && self.computed_word().is_none() && self.is_axis_step()
    }

    fn root(&mut self, offset: usize) -> ExprId {
        self.message(offset)
    }

    fn root_path(&mut self) -> Path {
        Self::path_from(Start::Root)
    }

    fn context_path(&mut self) -> Parsed<Path> {
        Ok(Self::path_from(self.context_start()?))
    }

    fn nodes_path(&mut self, nodes: ExprId) -> Parsed<Path> {
        self.path_from_nodes(nodes)
    }

    fn any_node(_offset: usize) -> NodeTest {
        NodeTest::Node
    }

    fn add_step(&mut self, path: &mut Path, axis: Axis, test: NodeTest, offset: usize) {
        self.push_step(path, axis, test, offset);
    }

    fn add_predicates(&mut self, path: &mut Path) -> Parsed<()> {
        self.step_predicates(path)
    }

    fn end_path(&mut self, path: Path, offset: usize) -> Parsed<ExprId> {
        Ok(self.push_path(path, offset))
    }
}
