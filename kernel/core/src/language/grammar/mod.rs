//! The grammar that both languages have: operators, paths, steps, predicates, arguments (XPath 1.0, 2 and 3; XQuery
//! 1.0, 3.1 to 3.7).
//!
//! The parser of a language is a [`Grammar`]: it says what its words are, which operators bind how tightly, what it
//! refuses and what it builds ([`super::reader`]: XPath 1.0 and a tree; [`super::xquery`]: XQuery and a program). All
//! else is here, and so is the one [`Scanner`].
//!
//! Recursive descent over the text itself: no list of tokens. Operators are read by climbing their precedence, so that
//! the call stack grows with what [`Grammar::open`] bounds.

pub(crate) mod names;
pub(crate) mod references;
pub(crate) mod scan;

use super::arithmetic::Arithmetic;
use super::comparison::Comparison;
use super::refusal::{Parsed, Reason, Refusal};
use super::xpath::Axis;
pub(crate) use scan::Scanner;

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    /// A comparison; of values (`eq`) and not `=`.
    Compare(Comparison, bool),
    Concatenate,
    Range,
    Calculate(Arithmetic),
    Union,
    /// `except`, and not `intersect`.
    Intersect(bool),
}

/// Where an operator stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperatorPlace {
    /// Where its left operand begins.
    pub(crate) start: usize,
    /// Its own place.
    pub(crate) at: usize,
    /// The left operand ends with an operator of the same level, and not with a parenthesis.
    pub(crate) is_chained: bool,
}

/// A bracket that must be somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bracket {
    PredicateEnd,
    ParenthesisEnd,
    Arguments,
    ArgumentsEnd,
}

/// The parser of a language.
pub(crate) trait Grammar<'t> {
    /// An expression that has been read.
    type Tree;
    /// A path while it is read.
    type Path;
    /// A node test.
    type Test;

    /// `/a/[b]` is `/a[b]`, as papers write.
    const TAKES_PREDICATES_AFTER_SLASH: bool;

    // Words.

    /// The place in the text.
    fn scanner(&mut self) -> &mut Scanner<'t>;
    /// The operator after blanks and its length, if there is one.
    fn operator(&mut self) -> Option<(Binary, usize)>;
    /// Whether a step is here.
    fn is_step(&mut self) -> bool;
    /// The node test that is here, of a step along an axis if one is written, and the axis of the step.
    fn node_test(&mut self, axis: Option<Axis>) -> Parsed<(Axis, Self::Test)>;
    /// `child::` and the others, if one is here.
    fn axis(&mut self) -> Parsed<Option<Axis>>;

    // Bounds and refusals.

    /// The most predicates of one step or filter.
    fn predicates_max(&self) -> usize;
    /// Counts a syntax node, which begins at a place.
    fn count(&mut self, offset: usize) -> Parsed<()>;
    /// Enters what nests.
    fn open(&mut self, bracket: &'static str, offset: usize) -> Parsed<()>;
    /// Leaves it.
    fn leave(&mut self);
    /// The refusal of what is here, where a bracket must be.
    fn no_bracket(&self, bracket: Bracket) -> Box<Refusal>;
    /// The refusal of what is here, where a step should be.
    fn no_step(&mut self) -> Box<Refusal>;
    /// Whether only a step may follow the slash before this place, though none is here.
    fn needs_step(&mut self) -> bool;

    // Expressions.

    /// How tightly an operator binds.
    fn level(operator: Binary) -> u8;
    /// Whether an operator may follow one of the same level.
    fn may_chain(&mut self, _level: u8) -> Parsed<bool> {
        Ok(true)
    }
    /// No operator has been found after an expression.
    fn end_operators(&mut self) -> Parsed<()> {
        Ok(())
    }
    /// An expression between square brackets.
    fn sequence(&mut self) -> Parsed<Self::Tree>;
    /// An argument.
    fn single(&mut self) -> Parsed<Self::Tree>;
    /// What stands between parentheses, which begin at a place.
    fn in_parentheses(&mut self, offset: usize) -> Parsed<Self::Tree>;
    /// An operand of operators that bind at least as tightly as `level`.
    fn operand(&mut self, level: u8) -> Parsed<Self::Tree>;
    /// A primary expression.
    fn primary(&mut self) -> Parsed<Self::Tree>;
    /// The expression of an operator and its operands.
    fn combine(
        &mut self,
        operator: Binary,
        left: Self::Tree,
        right: Self::Tree,
        place: OperatorPlace,
    ) -> Parsed<Self::Tree>;
    /// A primary expression with the predicates that come next.
    fn filter(&mut self, primary: Self::Tree, offset: usize) -> Parsed<Self::Tree>;

    // Paths.

    /// Whether a step that is here begins a path, and is no primary expression.
    fn begins_path(&mut self) -> bool {
        self.is_step()
    }
    /// `/` alone, which stands at a place.
    fn root(&mut self, offset: usize) -> Self::Tree;
    /// A path from the document node.
    fn root_path(&mut self) -> Self::Path;
    /// A path from the context node.
    fn context_path(&mut self) -> Parsed<Self::Path>;
    /// A path from the nodes of an expression.
    fn nodes_path(&mut self, nodes: Self::Tree) -> Parsed<Self::Path>;
    /// The test that all nodes pass, written at a place.
    fn any_node(offset: usize) -> Self::Test;
    /// Adds a step, which begins at a place.
    fn add_step(&mut self, path: &mut Self::Path, axis: Axis, test: Self::Test, offset: usize);
    /// Adds the predicates that come next to the last step.
    fn add_predicates(&mut self, path: &mut Self::Path) -> Parsed<()>;
    /// The expression of a path.
    fn end_path(&mut self, path: Self::Path, offset: usize) -> Parsed<Self::Tree>;

    // The productions.

    /// An expression of operators that bind at least as tightly as `level`.
    fn expression(&mut self, level: u8) -> Parsed<Self::Tree> {
        let start = self.scanner().place();
        let mut left = self.operand(level)?;
        let mut before = None;
        while let Some((operator, length)) = self.operator() {
            let own = Self::level(operator);
            let is_chained = before == Some(own);
            if own < level || (is_chained && !self.may_chain(own)?) {
                break;
            }
            before = Some(own);
            let at = self.scanner().place();
            self.count(at)?;
            self.scanner().skip(length);
            let right = self.expression(own + 1)?;
            left = self.combine(operator, left, right, OperatorPlace { start, at, is_chained })?;
        }
        self.end_operators()?;
        Ok(left)
    }

    /// A path, or a primary expression with or without predicates and steps.
    fn path(&mut self) -> Parsed<Self::Tree> {
        let byte = self.scanner().peek();
        let offset = self.scanner().at;
        if byte == b'/' {
            return self.absolute_path();
        }
        if self.begins_path() {
            let path = self.context_path()?;
            return self.steps(path, true, offset);
        }
        let mut primary = self.primary()?;
        if self.scanner().peek() == b'[' {
            primary = self.filter(primary, offset)?;
        }
        if self.scanner().peek() != b'/' {
            return Ok(primary);
        }
        let path = self.nodes_path(primary)?;
        self.steps(path, false, offset)
    }

    /// `/`, `/a`, `//a`
    fn absolute_path(&mut self) -> Parsed<Self::Tree> {
        let offset = self.scanner().at;
        if self.scanner().byte_after(1) == b'/' {
            let path = self.root_path();
            return self.steps(path, false, offset);
        }
        self.scanner().skip(1);
        if self.is_step() {
            let path = self.root_path();
            return self.steps(path, true, offset);
        }
        if self.needs_step() {
            return Err(self.no_step());
        }
        Ok(self.root(offset))
    }

    /// The steps of a path; the first comes without a slash before it, or with one.
    fn steps(
        &mut self,
        mut path: Self::Path,
        mut is_here: bool,
        offset: usize,
    ) -> Parsed<Self::Tree> {
        let mut is_first = true;
        loop {
            if !is_here {
                if self.scanner().peek() != b'/' {
                    break;
                }
                let at = self.scanner().at;
                let is_double = self.scanner().byte_after(1) == b'/';
                if is_double {
                    self.count(at)?;
                    self.add_step(&mut path, Axis::DescendantOrSelf, Self::any_node(at), at);
                }
                self.scanner().skip(1 + usize::from(is_double));
                let is_after_step = !is_first && !is_double;
                if Self::TAKES_PREDICATES_AFTER_SLASH
                    && is_after_step
                    && self.scanner().peek() == b'['
                {
                    self.add_predicates(&mut path)?;
                    continue;
                }
                if !self.is_step() {
                    return Err(self.no_step());
                }
            }
            (is_here, is_first) = (false, false);
            self.step(&mut path)?;
        }
        self.end_path(path, offset)
    }

    /// The step that is here, with its predicates.
    fn step(&mut self, path: &mut Self::Path) -> Parsed<()> {
        let offset = self.scanner().place();
        self.count(offset)?;
        let (axis, test) = match self.scanner().byte() {
            b'.' => {
                let is_parent = self.scanner().byte_after(1) == b'.';
                self.scanner().skip(1 + usize::from(is_parent));
                let axis = if is_parent { Axis::Parent } else { Axis::Itself };
                (axis, Self::any_node(offset))
            }
            b'@' => {
                self.scanner().skip(1);
                self.node_test(Some(Axis::Attribute))?
            }
            _ => {
                let axis = self.axis()?;
                self.node_test(axis)?
            }
        };
        self.add_step(path, axis, test, offset);
        if self.scanner().peek() == b'[' {
            self.add_predicates(path)?;
        }
        Ok(())
    }

    /// Reads the predicates that come next, after as many of the same step or filter: each is added, with the place of
    /// its bracket.
    fn predicates(
        &mut self,
        before: usize,
        mut add: impl FnMut(&mut Self, Self::Tree, usize) -> Parsed<()>,
    ) -> Parsed<()> {
        let mut count = before;
        while self.scanner().peek() == b'[' {
            let offset = self.scanner().at;
            self.count(offset)?;
            if count == self.predicates_max() {
                let details = vec![count.into()];
                return Err(Refusal::new(offset, Reason::TooManyPredicates, details));
            }
            self.open("[", offset)?;
            self.scanner().skip(1);
            let inner = self.sequence()?;
            self.close(b']', Bracket::PredicateEnd)?;
            add(self, inner, offset)?;
            count += 1;
        }
        Ok(())
    }

    /// `(...)`; leaves no expression of its own.
    fn parenthesised(&mut self) -> Parsed<Self::Tree> {
        let offset = self.scanner().at;
        self.open("(", offset)?;
        self.scanner().skip(1);
        let inner = self.in_parentheses(offset)?;
        self.close(b')', Bracket::ParenthesisEnd)?;
        Ok(inner)
    }

    /// The arguments between the parentheses that begin here, after one that has been read.
    fn arguments(&mut self, first: Option<Self::Tree>) -> Parsed<Vec<Self::Tree>> {
        let offset = self.scanner().place();
        if !self.scanner().take(b'(') {
            return Err(self.no_bracket(Bracket::Arguments));
        }
        let mut arguments = Vec::from_iter(first);
        if self.scanner().take(b')') {
            // A call without arguments nests nothing: `[position()=1]` may stand where `[1]` may.
            return Ok(arguments);
        }
        self.open("(", offset)?;
        arguments.push(self.single()?);
        while self.scanner().take(b',') {
            arguments.push(self.single()?);
        }
        self.close(b')', Bracket::ArgumentsEnd)?;
        Ok(arguments)
    }

    /// Moves over the symbol that closes a bracket.
    fn close(&mut self, symbol: u8, bracket: Bracket) -> Parsed<()> {
        if !self.scanner().take(symbol) {
            return Err(self.no_bracket(bracket));
        }
        self.leave();
        Ok(())
    }
}
