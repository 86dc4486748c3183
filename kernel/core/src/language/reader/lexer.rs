//! Query text to tokens.
//!
//! The lexer applies the disambiguation rules of XPath 1.0 (section 3.7): after an operand `*` is the multiplication
//! sign and a name an operator; a name before `(` is a function or node type, before `::` an axis. Beyond XPath 1.0 it
//! knows `<>`, `*:name` and `Q{uri}name`.
//!
//! A fault becomes a token too, which the parser refuses when it gets there: so the first fault from the left is the
//! one that is reported.

use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::query::scan::{Scanner, Written, written_name};
use crate::language::refusal::Reason;
use crate::language::tree::Operator;

pub(super) const MINUS: Operator = Operator::Calculate(Arithmetic::Subtract);

/// A token; texts are as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'q> {
    OpenRound,
    CloseRound,
    OpenSquare,
    CloseSquare,
    Dot,
    DotDot,
    At,
    Comma,
    /// `::` where no axis is before it.
    Colons,
    Slash,
    Slashes,
    Operator(Operator),
    Name(Written<'q>),
    /// `*`, or `*:name`.
    Star(Option<&'q str>),
    /// A name and `::`.
    Axis(&'q str),
    /// The name of a node type, before `(`.
    NodeType(&'q str),
    /// The name of a function, before `(`.
    Function(&'q str),
    Variable(&'q str),
    Literal(&'q str),
    Number(&'q str),
    /// No token, and the words of the text that say why.
    Fault(Reason, &'q str),
    End,
}

impl Token<'_> {
    /// Whether an operator must follow (3.7: the token before is none of these).
    fn ends_operand(&self) -> bool {
        !matches!(
            self,
            Token::OpenRound
                | Token::OpenSquare
                | Token::At
                | Token::Comma
                | Token::Colons
                | Token::Slash
                | Token::Slashes
                | Token::Operator(_)
                | Token::Axis(_)
        )
    }
}

/// A place in a query, between two tokens.
#[derive(Clone)]
pub(super) struct Lexer<'q> {
    text: &'q str,
    scanner: Scanner<'q>,
    is_after_operand: bool,
}

impl<'q> Lexer<'q> {
    pub(super) fn new(text: &'q str) -> Self {
        Lexer { text, scanner: Scanner::new(text), is_after_operand: false }
    }

    /// The next token, and where it begins. After the end and after a fault there is none to ask for.
    pub(super) fn next(&mut self) -> (Token<'q>, usize) {
        self.scanner.blanks();
        let start = self.scanner.mark();
        if self.scanner.is_at_end() {
            return (Token::End, start);
        }
        let token = if self.is_after_operand { self.after_operand() } else { self.operand(start) };
        let token = token.or_else(|| self.anywhere()).unwrap_or_else(|| self.no_token(start));
        self.is_after_operand = token.ends_operand();
        // The local name is missing after the colon, not before the prefix.
        let is_behind = matches!(token, Token::Fault(Reason::NoLocalName, _));
        (token, if is_behind { self.scanner.mark() } else { start })
    }

    /// An operator that is a word, or `*`.
    fn after_operand(&mut self) -> Option<Token<'q>> {
        if self.scanner.take(b'*') {
            return Some(Token::Operator(Operator::Calculate(Arithmetic::Multiply)));
        }
        Some(match self.scanner.ncname()? {
            "and" => Token::Operator(Operator::And),
            "or" => Token::Operator(Operator::Or),
            "mod" => Token::Operator(Operator::Calculate(Arithmetic::Modulo)),
            "div" => Token::Operator(Operator::Calculate(Arithmetic::Divide)),
            word => Token::Fault(Reason::NoOperator, word),
        })
    }

    /// A token that begins with a name or with `*`, where an operand may begin.
    fn operand(&mut self, start: usize) -> Option<Token<'q>> {
        if self.scanner.take(b'*') {
            if !self.takes_colon() {
                return Some(Token::Star(None));
            }
            let local = self.scanner.ncname();
            return Some(
                local.map_or_else(|| self.no_local_name(start), |local| Token::Star(Some(local))),
            );
        }
        let (written, length) = written_name(&self.text[start..])?;
        self.scanner.skip(length);
        Some(match written {
            Written::Plain("Q") if self.scanner.peek() == b'{' => {
                Token::Fault(Reason::OpenBraces, "")
            }
            Written::Plain(_) if self.takes_colon() => self.no_local_name(start),
            Written::Plain(name) => self.name(name),
            Written::Prefixed(..) if self.is_before_parenthesis() => {
                Token::Function(&self.text[start..self.scanner.mark()])
            }
            written => Token::Name(written),
        })
    }

    /// A name without a colon.
    fn name(&mut self, name: &'q str) -> Token<'q> {
        let end = self.scanner.mark();
        self.scanner.blanks();
        if self.scanner.peek() == b':' && self.scanner.peek_at(1) == b':' {
            self.scanner.skip(2);
            return Token::Axis(name);
        }
        let is_call = self.scanner.peek() == b'(';
        self.scanner.reset(end);
        match name {
            _ if !is_call => Token::Name(Written::Plain(name)),
            "comment" | "node" | "processing-instruction" | "text" => Token::NodeType(name),
            _ => Token::Function(name),
        }
    }

    /// Moves over a colon that is not the first of two.
    fn takes_colon(&mut self) -> bool {
        self.scanner.peek_at(1) != b':' && self.scanner.take(b':')
    }

    fn is_before_parenthesis(&mut self) -> bool {
        let mark = self.scanner.mark();
        self.scanner.blanks();
        let is_before = self.scanner.peek() == b'(';
        self.scanner.reset(mark);
        is_before
    }

    /// A token that is the same before an operand and after one.
    fn anywhere(&mut self) -> Option<Token<'q>> {
        let start = self.scanner.mark();
        let (token, length) = match (self.scanner.peek(), self.scanner.peek_at(1)) {
            (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => {
                self.scanner.digits();
                if self.scanner.take(b'.') {
                    self.scanner.digits();
                }
                return Some(Token::Number(&self.text[start..self.scanner.mark()]));
            }
            (b'\'' | b'"', _) => return self.scanner.literal().map(Token::Literal),
            (b'$', _) => return self.variable(start),
            (b'.', b'.') => (Token::DotDot, 2),
            (b'.', _) => (Token::Dot, 1),
            (b':', b':') => (Token::Colons, 2),
            (b'(', _) => (Token::OpenRound, 1),
            (b')', _) => (Token::CloseRound, 1),
            (b'[', _) => (Token::OpenSquare, 1),
            (b']', _) => (Token::CloseSquare, 1),
            (b'@', _) => (Token::At, 1),
            (b',', _) => (Token::Comma, 1),
            (b'/', b'/') => (Token::Slashes, 2),
            (b'/', _) => (Token::Slash, 1),
            (b'!', b'=') | (b'<', b'>') => (Token::Operator(Operator::Compare(Comparison::Ne)), 2),
            (b'<', b'=') => (Token::Operator(Operator::Compare(Comparison::Le)), 2),
            (b'<', _) => (Token::Operator(Operator::Compare(Comparison::Lt)), 1),
            (b'>', b'=') => (Token::Operator(Operator::Compare(Comparison::Ge)), 2),
            (b'>', _) => (Token::Operator(Operator::Compare(Comparison::Gt)), 1),
            (b'=', _) => (Token::Operator(Operator::Compare(Comparison::Eq)), 1),
            (b'|', _) => (Token::Operator(Operator::Union), 1),
            (b'+', _) => (Token::Operator(Operator::Calculate(Arithmetic::Add)), 1),
            (b'-', _) => (Token::Operator(MINUS), 1),
            _ => return None,
        };
        self.scanner.skip(length);
        Some(token)
    }

    /// `$name`, `$prefix:name`
    fn variable(&mut self, start: usize) -> Option<Token<'q>> {
        self.scanner.skip(1);
        if self.scanner.ncname().is_none() {
            self.scanner.reset(start);
            return None;
        }
        let end = self.scanner.mark();
        if !self.scanner.take(b':') || self.scanner.ncname().is_none() {
            self.scanner.reset(end);
        }
        Some(Token::Variable(&self.text[start + 1..self.scanner.mark()]))
    }

    fn no_local_name(&self, start: usize) -> Token<'q> {
        Token::Fault(Reason::NoLocalName, &self.text[start..self.scanner.mark()])
    }

    /// The fault of a place where no token begins.
    fn no_token(&self, start: usize) -> Token<'q> {
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        let character = &self.text[start..start + length];
        match character {
            "'" | "\"" => Token::Fault(Reason::OpenString, character),
            "$" => Token::Fault(Reason::NoVariableName, ""),
            _ => Token::Fault(Reason::NoToken, character),
        }
    }
}
