//! XPath 1.0 as a grammar: its words, its refusals, and the tree that is built.
//!
//! A query nests the call stack only where it nests predicates, parentheses or calls; that is bounded by `DEPTH_MAX`.
//! Beyond XPath 1.0 the grammar takes a predicate directly after a slash (`/a/[b=1]`, as papers write; it belongs to the
//! step before) and after `.`.
//!
//! The parser knows functions and their argument counts, not namespaces or variables.

use super::EXPRESSION_BYTES_MAX;
use super::tokens::token_end;
use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::functions::find_in_xpath;
use crate::language::grammar::names::{Written, ncname_length, qname_length, written_name};
use crate::language::grammar::scan::{Lexis, is_blank};
use crate::language::grammar::{Binary, Bracket, Grammar, OperatorPlace, Scanner};
use crate::language::query::{DEPTH_MAX, NODES_MAX, PREDICATES_MAX, TEXT_BYTES_MAX, collapsed};
use crate::language::refusal::{Detail, Parsed, Reason, Refusal};
use crate::language::tree::{
    Expr, NameTest, NodeTest, NodeType, Offset, Operator, Predicate, Step,
};
use crate::language::xpath::Axis;

/// The syntax tree of a query as it was written.
///
/// It has at most [`TEXT_BYTES_MAX`] bytes and [`NODES_MAX`] syntax nodes: steps (`//` stands for one), predicates,
/// literals, numbers, variables, calls, binary operators and minuses.
pub fn read(text: &str) -> Parsed<Expr> {
    read_within(text, &Limits::QUERY)
}

/// The syntax tree of a text within limits.
pub(super) fn read_within(text: &str, limits: &'static Limits) -> Parsed<Expr> {
    if text.len() > limits.text_bytes {
        let details = vec![text.len().into(), limits.text_bytes.into()];
        return Err(Refusal::new(0, Reason::TooLong, details));
    }
    let scanner = Scanner::new(text, Lexis::XPath, false);
    let mut parser =
        Parser { scanner, limits, brackets: Vec::new(), nodes: 0, lone_slash: usize::MAX };
    let expr = parser.expression(LOOSEST)?;
    if !parser.scanner.is_at_end() {
        return Err(parser.unexpected_after("operator-or-end"));
    }
    Ok(expr)
}

/// How large a text may be.
pub(super) struct Limits {
    text_bytes: usize,
    /// Syntax nodes.
    nodes: usize,
    /// Of one step.
    predicates: usize,
}

impl Limits {
    const QUERY: Limits =
        Limits { text_bytes: TEXT_BYTES_MAX, nodes: NODES_MAX, predicates: PREDICATES_MAX };
    /// A number without a literal is written as two, and filters within one another as one.
    pub(super) const CANONICAL: Limits = Limits {
        text_bytes: EXPRESSION_BYTES_MAX,
        nodes: 2 * NODES_MAX,
        predicates: 2 * NODES_MAX,
    };
}

/// The levels of `or` and of `|`.
const LOOSEST: u8 = 1;
const UNION: u8 = 7;

/// A place in a query, and what has been met before it.
struct Parser<'q> {
    scanner: Scanner<'q>,
    limits: &'static Limits,
    /// Those that are open.
    brackets: Vec<&'static str>,
    nodes: usize,
    /// What comes after the last slash that stands alone: no operand of an operator that is a word.
    lone_slash: usize,
}

/// A path while it is read.
struct Path {
    start: Start,
    steps: Vec<Step>,
}

/// Where a path begins.
enum Start {
    Root,
    Context,
    Nodes(Box<Expr>),
}

impl<'q> Parser<'q> {
    /// The refusal of what is here, where an operator may be.
    #[cold]
    fn unexpected_after(&self, expected: &str) -> Box<Refusal> {
        self.unexpected(expected, true)
    }

    /// The refusal of the token that is here, after an operand or not, by the name of what is expected.
    #[cold]
    fn unexpected(&self, expected: &str, is_after_operand: bool) -> Box<Refusal> {
        let rest = self.scanner.rest();
        let start = self.scanner.at + rest.len() - rest.trim_start_matches(is_blank).len();
        let is_after_operand = is_after_operand && start != self.lone_slash;
        match token_end(self.scanner.text_at(0), start, is_after_operand) {
            Ok(end) => {
                let found = self.scanner.slice(start, end).trim_end_matches(is_blank);
                let bracket = self.brackets.last().copied().unwrap_or_default();
                let details = [expected, found, bracket].map(Detail::from).to_vec();
                Refusal::new(start, Reason::Unexpected, details)
            }
            Err(fault) => {
                let words = [fault.words].into_iter().filter(|words| !words.is_empty());
                Refusal::new(fault.offset, fault.reason, words.map(Detail::from).collect())
            }
        }
    }

    /// An operator that is a word.
    fn operator_word(&self) -> Option<(Binary, usize)> {
        let rest = self.scanner.rest();
        let word = &rest[..ncname_length(rest)];
        let operator = match word {
            "and" => Binary::And,
            "or" => Binary::Or,
            "mod" => Binary::Calculate(Arithmetic::Modulo),
            "div" => Binary::Calculate(Arithmetic::Divide),
            _ => return None,
        };
        Some((operator, word.len()))
    }

    /// Whether a name without a colon, which is here, is the beginning of a step.
    fn is_step_name(&mut self, name: &str) -> bool {
        let start = self.scanner.at;
        match (self.scanner.byte_after(name.len()), self.scanner.byte_after(name.len() + 1)) {
            (b'{', _) if name == "Q" => return false,
            (b':', next) if next != b':' => return false,
            _ => {}
        }
        self.scanner.at += name.len();
        let is_step = self.scanner.peek() != b'(' || is_node_type(name);
        self.scanner.at = start;
        is_step
    }

    /// The name of a function that is here, before the parenthesis.
    fn function_name(&mut self) -> Option<&'q str> {
        let start = self.scanner.place();
        let (written, length) = written_name(self.scanner.rest())?;
        let is_name = matches!(written, Written::Plain(_) | Written::Prefixed(..));
        self.scanner.at += length;
        if is_name && self.scanner.peek() == b'(' {
            return Some(self.scanner.slice(start, start + length));
        }
        self.scanner.at = start;
        None
    }

    fn function_call(&mut self, offset: usize) -> Parsed<Expr> {
        let Some(name) = self.function_name() else {
            return Err(self.unexpected("expression", false));
        };
        let arguments = self.arguments(None)?;
        let name = check_function(name, arguments.len(), offset)?;
        Ok(Expr::Call { name, arguments, offset: offset as Offset })
    }

    /// The test of a type of node, whose name stands at a place and is followed by a parenthesis.
    fn type_test(&mut self, name: &str, offset: usize) -> Parsed<NodeTest> {
        let mut node_type = match name {
            "comment" => NodeType::Comment,
            "text" => NodeType::Text,
            "processing-instruction" => NodeType::Instruction(None),
            _ => NodeType::Node,
        };
        self.scanner.skip(1);
        let mut is_after_operand = false;
        if let (NodeType::Instruction(target), b'\'' | b'"') = (&mut node_type, self.scanner.peek())
            && let Some(written) = self.scanner.literal()
        {
            *target = Some(written.to_owned());
            is_after_operand = true;
        }
        if !self.scanner.take(b')') {
            let expected = match node_type {
                NodeType::Comment => "comment-end",
                NodeType::Node => "node-end",
                NodeType::Instruction(_) => "processing-instruction-end",
                NodeType::Text => "text-end",
            };
            return Err(self.unexpected(expected, is_after_operand));
        }
        Ok(NodeTest::Type(node_type, offset as Offset))
    }

    /// The node test that is here: a name, `*`, `*:name` or the type of a node. Without an axis, a step is here.
    fn test(&mut self, axis: Option<Axis>) -> Option<Parsed<NodeTest>> {
        let offset = self.scanner.place();
        let byte = self.scanner.byte();
        if axis.is_some() && (matches!(byte, b'.' | b'@') || !self.is_step()) {
            return None;
        }
        let (prefix, local, uri) = if byte == b'*' {
            self.scanner.at += 1;
            if self.scanner.byte() == b':' && self.scanner.byte_after(1) != b':' {
                self.scanner.at += 1;
                (Some("*"), self.scanner.ncname_here()?, None)
            } else {
                (None, "*", None)
            }
        } else {
            let (written, length) = written_name(self.scanner.rest())?;
            self.scanner.at += length;
            match written {
                Written::Plain(name) => match self.scanner.peek() {
                    b'(' => return Some(self.type_test(name, offset)),
                    // An axis.
                    b':' if self.scanner.byte_after(1) == b':' => return None,
                    _ => (None, name, None),
                },
                Written::Prefixed(prefix, name) => (Some(prefix), name, None),
                Written::AnyIn(prefix) => (Some(prefix), "*", None),
                Written::Braced(uri, name) => (None, name.unwrap_or("*"), Some(uri)),
            }
        };
        let (prefix, local) = (prefix.map(str::to_owned), local.to_owned());
        let uri = uri.map(|uri| collapsed(uri).into_owned());
        Some(Ok(NodeTest::Name(NameTest { prefix, local, uri, offset: offset as Offset })))
    }
}

impl<'q> Grammar<'q> for Parser<'q> {
    type Tree = Expr;
    type Path = Path;
    type Test = NodeTest;

    const TAKES_PREDICATES_AFTER_SLASH: bool = true;

    // Words.

    fn scanner(&mut self) -> &mut Scanner<'q> {
        &mut self.scanner
    }

    fn operator(&mut self) -> Option<(Binary, usize)> {
        let operator = match self.scanner.peek() {
            b']' | b')' => return None,
            b'=' | b'!' | b'<' | b'>' => {
                let (comparison, length) = self.scanner.comparison()?;
                return Some((Binary::Compare(comparison, false), length));
            }
            b'|' => Binary::Union,
            b'+' => Binary::Calculate(Arithmetic::Add),
            b'-' => Binary::Calculate(Arithmetic::Subtract),
            _ if self.scanner.at == self.lone_slash => return None,
            b'*' => Binary::Calculate(Arithmetic::Multiply),
            b'a' | b'd' | b'm' | b'o' => return self.operator_word(),
            _ => return None,
        };
        Some((operator, 1))
    }

    fn is_step(&mut self) -> bool {
        match self.scanner.peek() {
            b'@' => true,
            b'.' => !self.scanner.byte_after(1).is_ascii_digit(),
            b'*' => {
                self.scanner.byte_after(1) != b':'
                    || self.scanner.byte_after(2) == b':'
                    || ncname_length(&self.scanner.rest()[2..]) > 0
            }
            _ => match written_name(self.scanner.rest()) {
                Some((Written::Plain(name), _)) => self.is_step_name(name),
                Some((Written::Prefixed(..), length)) => {
                    let start = self.scanner.at;
                    self.scanner.at += length;
                    let is_step = self.scanner.peek() != b'(';
                    self.scanner.at = start;
                    is_step
                }
                found => found.is_some(),
            },
        }
    }

    fn node_test(&mut self, axis: Option<Axis>) -> Parsed<(Axis, NodeTest)> {
        let offset = self.scanner.place();
        let Some(test) = self.test(axis) else {
            self.scanner.at = offset;
            return Err(self.unexpected("node-test", false));
        };
        Ok((axis.unwrap_or(Axis::Child), test?))
    }

    fn axis(&mut self) -> Parsed<Option<Axis>> {
        let start = self.scanner.at;
        let Some((Written::Plain(name), length)) = written_name(self.scanner.rest()) else {
            return Ok(None);
        };
        self.scanner.at += length;
        if self.scanner.peek() != b':' || self.scanner.byte_after(1) != b':' {
            self.scanner.at = start;
            return Ok(None);
        }
        self.scanner.skip(2);
        match Axis::of_name(name) {
            None => Err(Refusal::new(start, Reason::NoAxis, vec![name.into()])),
            axis => Ok(axis),
        }
    }

    // Bounds and refusals.

    fn predicates_max(&self) -> usize {
        self.limits.predicates
    }

    fn count(&mut self, offset: usize) -> Parsed<()> {
        self.nodes += 1;
        let maximum = self.limits.nodes;
        if self.nodes > maximum {
            return Err(Refusal::new(offset, Reason::TooLarge, vec![maximum.into()]));
        }
        Ok(())
    }

    fn open(&mut self, bracket: &'static str, offset: usize) -> Parsed<()> {
        if self.brackets.len() == DEPTH_MAX {
            return Err(Refusal::new(offset, Reason::TooDeep, vec![DEPTH_MAX.into()]));
        }
        self.brackets.push(bracket);
        Ok(())
    }

    fn leave(&mut self) {
        self.brackets.pop();
    }

    fn no_bracket(&self, bracket: Bracket) -> Box<Refusal> {
        self.unexpected_after(match bracket {
            Bracket::PredicateEnd | Bracket::ParenthesisEnd => "operator-or-closing",
            Bracket::Arguments | Bracket::ArgumentsEnd => "operator-or-comma",
        })
    }

    fn no_step(&mut self) -> Box<Refusal> {
        let start = self.scanner.place();
        let is_call = self.function_name().is_some();
        self.scanner.at = start;
        self.unexpected(if is_call { "step-not-function" } else { "step" }, false)
    }

    fn needs_step(&mut self) -> bool {
        matches!(self.scanner.peek(), b'[' | b'/')
    }

    // Expressions.

    fn level(operator: Binary) -> u8 {
        match operator {
            Binary::Or => LOOSEST,
            Binary::And => 2,
            Binary::Compare(Comparison::Eq | Comparison::Ne, _) => 3,
            Binary::Compare(..) => 4,
            Binary::Calculate(Arithmetic::Add | Arithmetic::Subtract) => 5,
            Binary::Calculate(_) => 6,
            _ => UNION,
        }
    }

    fn sequence(&mut self) -> Parsed<Expr> {
        self.expression(LOOSEST)
    }

    fn single(&mut self) -> Parsed<Expr> {
        self.expression(LOOSEST)
    }

    fn in_parentheses(&mut self, _offset: usize) -> Parsed<Expr> {
        self.expression(LOOSEST)
    }

    /// Minuses and a union (productions 27 and 18): a minus binds looser than `|`, whose operands have none.
    fn operand(&mut self, level: u8) -> Parsed<Expr> {
        if self.scanner.peek() != b'-' || level > UNION {
            return self.path();
        }
        let offset = self.scanner.at as Offset;
        let mut minuses = 0;
        while self.scanner.peek() == b'-' {
            self.count(self.scanner.at)?;
            self.scanner.skip(1);
            minuses += 1;
        }
        let operand = Box::new(self.expression(UNION)?);
        Ok(Expr::Unary { minuses, operand, offset })
    }

    /// A primary expression (production 15).
    fn primary(&mut self) -> Parsed<Expr> {
        let byte = self.scanner.peek();
        let start = self.scanner.at;
        if byte == b'(' {
            return self.parenthesised();
        }
        self.count(start)?;
        let offset = start as Offset;
        Ok(match (byte, self.scanner.byte_after(1)) {
            (b'$', _) => {
                let length = qname_length(&self.scanner.rest()[1..]);
                if length == 0 {
                    return Err(self.unexpected("expression", false));
                }
                self.scanner.skip(1 + length);
                let name = self.scanner.slice(start + 1, self.scanner.at).to_owned();
                Expr::Variable { name, offset }
            }
            (b'\'' | b'"', _) => match self.scanner.literal() {
                Some(value) => Expr::Literal { value: value.to_owned(), offset },
                None => return Err(self.unexpected("expression", false)),
            },
            (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => {
                let value = self.scanner.decimal().unwrap_or(f64::NAN);
                Expr::Number { value, offset }
            }
            _ => return self.function_call(start),
        })
    }

    /// Operators of one level are one run.
    fn combine(
        &mut self,
        operator: Binary,
        mut left: Expr,
        right: Expr,
        place: OperatorPlace,
    ) -> Parsed<Expr> {
        let operator = match operator {
            Binary::Or => Operator::Or,
            Binary::And => Operator::And,
            Binary::Compare(comparison, _) => Operator::Compare(comparison),
            Binary::Calculate(arithmetic) => Operator::Calculate(arithmetic),
            Binary::Union => Operator::Union,
            Binary::Concatenate | Binary::Range | Binary::Intersect(_) => {
                unreachable!("XPath 1.0 has no such operator")
            }
        };
        if place.is_chained
            && let Expr::Binary { operators, operands, .. } = &mut left
        {
            operators.push(operator);
            operands.push(right);
            return Ok(left);
        }
        let (offset, operator_offset) = (left.offset(), place.at as Offset);
        let operands = vec![left, right];
        Ok(Expr::Binary { operators: vec![operator], operands, offset, operator_offset })
    }

    fn filter(&mut self, primary: Expr, offset: usize) -> Parsed<Expr> {
        let mut predicates = Vec::new();
        self.predicates(0, |_, expr, offset| {
            predicates.push(Predicate { expr, offset: offset as Offset });
            Ok(())
        })?;
        Ok(Expr::Filter { primary: Box::new(primary), predicates, offset: offset as Offset })
    }

    // Paths.

    fn root(&mut self, offset: usize) -> Expr {
        self.lone_slash = self.scanner.place();
        Expr::Path { is_absolute: true, steps: Vec::new(), offset: offset as Offset }
    }

    fn root_path(&mut self) -> Path {
        Path { start: Start::Root, steps: Vec::new() }
    }

    fn context_path(&mut self) -> Parsed<Path> {
        Ok(Path { start: Start::Context, steps: Vec::new() })
    }

    fn nodes_path(&mut self, nodes: Expr) -> Parsed<Path> {
        Ok(Path { start: Start::Nodes(Box::new(nodes)), steps: Vec::new() })
    }

    fn any_node(offset: usize) -> NodeTest {
        NodeTest::Type(NodeType::Node, offset as Offset)
    }

    fn add_step(&mut self, path: &mut Path, axis: Axis, test: NodeTest, offset: usize) {
        let predicates = Vec::new();
        path.steps.push(Step { axis, test, predicates, offset: offset as Offset });
    }

    fn add_predicates(&mut self, path: &mut Path) -> Parsed<()> {
        let Some(last) = path.steps.last_mut() else { return Ok(()) };
        self.predicates(last.predicates.len(), |_, expr, offset| {
            last.predicates.push(Predicate { expr, offset: offset as Offset });
            Ok(())
        })
    }

    fn end_path(&mut self, path: Path, offset: usize) -> Parsed<Expr> {
        let (steps, offset) = (path.steps, offset as Offset);
        Ok(match path.start {
            Start::Root => Expr::Path { is_absolute: true, steps, offset },
            Start::Context => Expr::Path { is_absolute: false, steps, offset },
            Start::Nodes(start) => Expr::PathFrom { start, steps, offset },
        })
    }
}

/// Names before a parenthesis that are no functions.
fn is_node_type(name: &str) -> bool {
    matches!(name, "comment" | "node" | "processing-instruction" | "text")
}

/// The name of a function; refuses one that there is not, and a call with too few or too many arguments.
fn check_function(name: &str, given: usize, offset: usize) -> Parsed<&'static str> {
    let (name, counts) = match name {
        "doc" => ("doc", 1..=1),
        "document" => ("document", 1..=1),
        _ => match find_in_xpath(name) {
            Some(it) => (it.name, it.arguments_min..=it.function.arguments_max_in_xpath()),
            None => return Err(Refusal::new(offset, Reason::NoFunction, vec![name.into()])),
        },
    };
    if counts.contains(&given) {
        return Ok(name);
    }
    Err(Refusal::new(offset, Reason::ArgumentCount, vec![name.into(), given.into()]))
}
