//! Tokens to syntax tree, for the whole grammar of XPath 1.0.
//!
//! Recursive descent, except that operators are folded on a stack, so that a query nests the call stack only where it
//! nests predicates, parentheses or calls; that is bounded by `DEPTH_MAX`. Beyond XPath 1.0 the grammar takes a
//! predicate directly after a slash (`/a/[b=1]`, as papers write; it belongs to the step before) and after `.`.
//!
//! The parser knows functions and their argument counts, not namespaces or variables.

use super::EXPRESSION_BYTES_MAX;
use super::lexer::{Lexer, MINUS, Token};
use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::functions::find_in_xpath;
use crate::language::query::scan::Written;
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
    let mut lexer = Lexer::new(text);
    let (token, offset) = lexer.next();
    Parser { text, limits, lexer, token, offset, brackets: Vec::new(), nodes: 0 }.query()
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

/// White space between tokens.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// The descent.
///
/// `token` is the token to look at next. A fault matches nothing that is expected, so it surfaces where the parser says
/// what it found.
struct Parser<'q> {
    text: &'q str,
    limits: &'static Limits,
    lexer: Lexer<'q>,
    token: Token<'q>,
    offset: usize,
    /// Those that are open.
    brackets: Vec<&'static str>,
    nodes: usize,
}

impl<'q> Parser<'q> {
    fn advance(&mut self) -> Token<'q> {
        let taken = self.token;
        (self.token, self.offset) = self.lexer.next();
        taken
    }

    fn take(&mut self, token: Token<'_>) -> bool {
        let is_next = self.token == token;
        if is_next {
            self.advance();
        }
        is_next
    }

    /// The refusal of the token that is here, by the name of what is expected.
    fn unexpected(&self, expected: &str) -> Box<Refusal> {
        let (reason, details) = match self.token {
            Token::Fault(reason, "") => (reason, Vec::new()),
            Token::Fault(reason, words) => (reason, vec![words.into()]),
            token => {
                let is_end = token == Token::End;
                let end = if is_end { self.offset } else { self.lexer.clone().next().1 };
                let found = self.text[self.offset..end].trim_end_matches(BLANKS);
                let bracket = self.brackets.last().copied().unwrap_or_default();
                (Reason::Unexpected, [expected, found, bracket].map(Detail::from).to_vec())
            }
        };
        Refusal::new(self.offset, reason, details)
    }

    /// Counts the syntax node that begins here.
    fn count(&mut self) -> Parsed<()> {
        self.nodes += 1;
        let maximum = self.limits.nodes;
        if self.nodes > maximum {
            return Err(Refusal::new(self.offset, Reason::TooLarge, vec![maximum.into()]));
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

    fn close(&mut self, closing: Token<'_>, expected: &str) -> Parsed<()> {
        if !self.take(closing) {
            return Err(self.unexpected(expected));
        }
        self.brackets.pop();
        Ok(())
    }

    // Expressions.

    fn query(mut self) -> Parsed<Expr> {
        let expr = self.expression()?;
        if self.token != Token::End {
            return Err(self.unexpected("operator-or-end"));
        }
        Ok(expr)
    }

    /// Operands and the operators between them, folded by precedence.
    fn expression(&mut self) -> Parsed<Expr> {
        let mut expr = self.unary()?;
        // Each binds looser than the ones after it.
        let mut open: Vec<Chain> = Vec::new();
        while let Token::Operator(operator) = self.token {
            self.count()?;
            let operator_offset = self.offset as Offset;
            self.advance();
            let level = level_of(operator);
            while let Some(chain) = open.pop_if(|chain| chain.level < level) {
                expr = chain.end(expr);
            }
            match open.last_mut() {
                Some(chain) if chain.level == level => {
                    chain.operators.push(operator);
                    chain.operands.push(expr);
                }
                _ => open.push(Chain {
                    level,
                    operators: vec![operator],
                    operands: vec![expr],
                    operator_offset,
                }),
            }
            expr = self.unary()?;
        }
        while let Some(chain) = open.pop() {
            expr = chain.end(expr);
        }
        Ok(expr)
    }

    /// Minuses and a union (productions 27 and 18).
    fn unary(&mut self) -> Parsed<Expr> {
        let offset = self.offset as Offset;
        let mut minuses = 0;
        while self.token == Token::Operator(MINUS) {
            self.count()?;
            self.advance();
            minuses += 1;
        }
        let mut expr = self.operand()?;
        if self.token == Token::Operator(Operator::Union) {
            let offset = expr.offset();
            let operator_offset = self.offset as Offset;
            let (mut operators, mut operands) = (Vec::new(), vec![expr]);
            while self.token == Token::Operator(Operator::Union) {
                self.count()?;
                self.advance();
                operators.push(Operator::Union);
                operands.push(self.operand()?);
            }
            expr = Expr::Binary { operators, operands, offset, operator_offset };
        }
        Ok(if minuses == 0 {
            expr
        } else {
            Expr::Unary { minuses, operand: Box::new(expr), offset }
        })
    }

    /// A path expression (production 19).
    fn operand(&mut self) -> Parsed<Expr> {
        let offset = self.offset as Offset;
        if matches!(self.token, Token::Slash | Token::Slashes) {
            return self.absolute_path();
        }
        if self.is_step() {
            let steps = self.relative_path(Vec::new())?;
            return Ok(Expr::Path { is_absolute: false, steps, offset });
        }
        let start = self.filter_expression()?;
        if !matches!(self.token, Token::Slash | Token::Slashes) {
            return Ok(start);
        }
        let mut steps = Vec::new();
        self.separator(&mut steps)?;
        let steps = self.relative_path(steps)?;
        Ok(Expr::PathFrom { start: Box::new(start), steps, offset })
    }

    fn filter_expression(&mut self) -> Parsed<Expr> {
        let offset = self.offset as Offset;
        let primary = self.primary()?;
        if self.token != Token::OpenSquare {
            return Ok(primary);
        }
        let mut predicates = Vec::new();
        self.predicates(&mut predicates)?;
        Ok(Expr::Filter { primary: Box::new(primary), predicates, offset })
    }

    /// A primary expression (production 15).
    fn primary(&mut self) -> Parsed<Expr> {
        if self.token == Token::OpenRound {
            self.open("(", self.offset)?;
            self.advance();
            let expr = self.expression()?;
            self.close(Token::CloseRound, "operator-or-closing")?;
            return Ok(expr);
        }
        self.count()?;
        let offset = self.offset as Offset;
        let expr = match self.token {
            Token::Variable(name) => Expr::Variable { name: name.to_owned(), offset },
            Token::Literal(value) => Expr::Literal { value: value.to_owned(), offset },
            Token::Number(written) => {
                Expr::Number { value: written.parse().unwrap_or(f64::NAN), offset }
            }
            Token::Function(name) => return self.function_call(name),
            _ => return Err(self.unexpected("expression")),
        };
        self.advance();
        Ok(expr)
    }

    fn function_call(&mut self, name: &'q str) -> Parsed<Expr> {
        let offset = self.offset;
        self.advance();
        let bracket = self.offset;
        self.advance();
        let mut arguments = Vec::new();
        if !self.take(Token::CloseRound) {
            // A call without arguments nests nothing: `[position()=1]` may stand where `[1]` may.
            self.open("(", bracket)?;
            arguments.push(self.expression()?);
            while self.take(Token::Comma) {
                arguments.push(self.expression()?);
            }
            self.close(Token::CloseRound, "operator-or-comma")?;
        }
        let name = check_function(name, arguments.len(), offset)?;
        Ok(Expr::Call { name, arguments, offset: offset as Offset })
    }

    // Location paths.

    fn is_step(&self) -> bool {
        matches!(
            self.token,
            Token::Dot
                | Token::DotDot
                | Token::At
                | Token::Axis(_)
                | Token::NodeType(_)
                | Token::Name(_)
                | Token::Star(_)
        )
    }

    fn absolute_path(&mut self) -> Parsed<Expr> {
        let offset = self.offset as Offset;
        let mut steps = Vec::new();
        let is_root = self.token == Token::Slash;
        self.separator(&mut steps)?;
        if is_root && !self.is_step() {
            if matches!(self.token, Token::OpenSquare | Token::Slash | Token::Slashes) {
                return Err(self.unexpected_step());
            }
            return Ok(Expr::Path { is_absolute: true, steps, offset });
        }
        let steps = self.relative_path(steps)?;
        Ok(Expr::Path { is_absolute: true, steps, offset })
    }

    /// `/`, or `//` and with it the step that it stands for.
    fn separator(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        if self.token == Token::Slashes {
            self.count()?;
            let offset = self.offset as Offset;
            steps.push(Step {
                axis: Axis::DescendantOrSelf,
                test: NodeTest::Type(NodeType::Node, offset),
                predicates: Vec::new(),
                offset,
            });
        }
        self.advance();
        Ok(())
    }

    fn relative_path(&mut self, mut steps: Vec<Step>) -> Parsed<Vec<Step>> {
        steps.push(self.step()?);
        while matches!(self.token, Token::Slash | Token::Slashes) {
            let is_after_slash = self.token == Token::Slash;
            self.separator(&mut steps)?;
            match steps.last_mut() {
                Some(last) if is_after_slash && self.token == Token::OpenSquare => {
                    self.predicates(&mut last.predicates)?;
                }
                _ => steps.push(self.step()?),
            }
        }
        Ok(steps)
    }

    fn step(&mut self) -> Parsed<Step> {
        if !self.is_step() {
            return Err(self.unexpected_step());
        }
        self.count()?;
        let offset = self.offset as Offset;
        let here = NodeTest::Type(NodeType::Node, offset);
        let (axis, test) = match self.token {
            Token::Dot | Token::DotDot => {
                let is_self = self.advance() == Token::Dot;
                (if is_self { Axis::Itself } else { Axis::Parent }, here)
            }
            Token::At => {
                self.advance();
                (Axis::Attribute, self.node_test()?)
            }
            Token::Axis(name) => {
                let Some(axis) = Axis::of_name(name) else {
                    return Err(Refusal::new(self.offset, Reason::NoAxis, vec![name.into()]));
                };
                self.advance();
                (axis, self.node_test()?)
            }
            _ => (Axis::Child, self.node_test()?),
        };
        let mut predicates = Vec::new();
        self.predicates(&mut predicates)?;
        Ok(Step { axis, test, predicates, offset })
    }

    fn unexpected_step(&self) -> Box<Refusal> {
        let is_call = matches!(self.token, Token::Function(_));
        self.unexpected(if is_call { "step-not-function" } else { "step" })
    }

    fn node_test(&mut self) -> Parsed<NodeTest> {
        let offset = self.offset as Offset;
        let (prefix, local, uri) = match self.token {
            Token::Name(Written::Plain(local)) => (None, local, None),
            Token::Name(Written::Prefixed(prefix, local)) => (Some(prefix), local, None),
            Token::Name(Written::AnyIn(prefix)) => (Some(prefix), "*", None),
            Token::Name(Written::Braced(uri, local)) => (None, local.unwrap_or("*"), Some(uri)),
            Token::Star(local) => (local.map(|_| "*"), local.unwrap_or("*"), None),
            Token::NodeType(name) => return self.type_test(name, offset),
            _ => return Err(self.unexpected("node-test")),
        };
        self.advance();
        let (prefix, local) = (prefix.map(str::to_owned), local.to_owned());
        let uri = uri.map(|uri| collapsed(uri).into_owned());
        Ok(NodeTest::Name(NameTest { prefix, local, uri, offset }))
    }

    fn type_test(&mut self, name: &str, offset: Offset) -> Parsed<NodeTest> {
        let mut node_type = match name {
            "comment" => NodeType::Comment,
            "text" => NodeType::Text,
            "processing-instruction" => NodeType::Instruction(None),
            _ => NodeType::Node,
        };
        self.advance();
        // The parenthesis, without which it is no node type.
        self.advance();
        if let (NodeType::Instruction(target), Token::Literal(written)) =
            (&mut node_type, self.token)
        {
            *target = Some(written.to_owned());
            self.advance();
        }
        if !self.take(Token::CloseRound) {
            return Err(self.unexpected(match node_type {
                NodeType::Comment => "comment-end",
                NodeType::Node => "node-end",
                NodeType::Instruction(_) => "processing-instruction-end",
                NodeType::Text => "text-end",
            }));
        }
        Ok(NodeTest::Type(node_type, offset))
    }

    fn predicates(&mut self, predicates: &mut Vec<Predicate>) -> Parsed<()> {
        while self.token == Token::OpenSquare {
            let offset = self.offset;
            self.count()?;
            let maximum = self.limits.predicates;
            if predicates.len() == maximum {
                return Err(Refusal::new(offset, Reason::TooManyPredicates, vec![maximum.into()]));
            }
            self.open("[", offset)?;
            self.advance();
            let expr = self.expression()?;
            predicates.push(Predicate { expr, offset: offset as Offset });
            self.close(Token::CloseSquare, "operator-or-closing")?;
        }
        Ok(())
    }
}

/// Operators of one level, and all operands but the last.
struct Chain {
    level: u8,
    operators: Vec<Operator>,
    operands: Vec<Expr>,
    operator_offset: Offset,
}

impl Chain {
    /// The expression, with its last operand.
    fn end(mut self, last: Expr) -> Expr {
        self.operands.push(last);
        let Chain { operators, operands, operator_offset, .. } = self;
        let offset = operands[0].offset();
        Expr::Binary { operators, operands, offset, operator_offset }
    }
}

/// Levels of operators between operands, the tightest first. Unary minus binds tighter, `|` tighter still.
fn level_of(operator: Operator) -> u8 {
    match operator {
        // A union is an operand here.
        Operator::Union => 0,
        Operator::Calculate(Arithmetic::Add | Arithmetic::Subtract) => 1,
        Operator::Calculate(_) => 0,
        Operator::Compare(Comparison::Eq | Comparison::Ne) => 3,
        Operator::Compare(_)
        | Operator::Cast(_)
        | Operator::CastToMoment(..)
        | Operator::Texts(..)
        | Operator::NumberOf => 2,
        Operator::And => 4,
        Operator::Or => 5,
    }
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
