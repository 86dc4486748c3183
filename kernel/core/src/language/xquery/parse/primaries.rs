//! Primaries, predicates, calls (XQuery 1.0, 3.1 and 3.2.2).

use super::super::functions::{self, Function};
use super::super::syntax::{Expr, ExprId, Number};
use super::facts::{self as kinds, items, reads};
use super::names::{FUNCTIONS, collapsed};
use super::paths::Written;
use super::scan::Parsed;
use super::{Facts, Parser};
use crate::language::xpath::List;
use crate::xml::parser::is_ncname_start;

/// Predicates of one step or filter.
const PREDICATES_MAX: usize = 64;
/// Digits of an integer, as many as XQuery 1.0 asks for at least.
const INTEGER_DIGITS_MAX: usize = 18;

/// What the predicates of one step or filter say together.
pub(super) struct PredicateFacts {
    pub(crate) facts: Facts,
    pub(crate) is_positional: bool,
    pub(crate) nth: Option<u32>,
}

/// Primaries, predicates, calls.
impl Parser<'_> {
    /// Expressions in square brackets, of items of some kinds.
    pub(super) fn predicates(&mut self, context: u8) -> Parsed<(List, PredicateFacts)> {
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

    pub(super) fn filter(&mut self, primary: ExprId) -> Parsed<ExprId> {
        let inner = self.facts(primary);
        let (predicates, found) = self.predicates(inner.items)?;
        let facts = Facts::of(items::NONE).giving(inner).around(found.facts);
        let is_positional = found.is_positional;
        let id = self.push(Expr::Filter { primary, predicates, is_positional }, facts);
        self.keep_value(id);
        Ok(id)
    }

    pub(super) fn primary(&mut self) -> Parsed<ExprId> {
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
                if self.program.text(uri) != FUNCTIONS {
                    return Err(self.scanner.declined("there is no function of this name"));
                }
                name
            }
            Written::Braced(uri, Some(name)) if collapsed(uri) == FUNCTIONS => name,
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
        // Outside predicates, the language is that of the message.
        let is_of_message =
            function == Function::Id || (function == Function::Lang && self.predicates == 0);
        let (items, may_be_number) = kinds::result_of(function);
        let mut facts = Facts { reads: own, may_be_number, is_of_message, ..Facts::of(items) };
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
