//! Operators (XQuery 1.0, 3.3 to 3.6), read by climbing their precedence.

use super::super::syntax::{Expr, ExprId};
use super::facts::items;
use super::names::SCHEMA;
use super::{Facts, Parser};
use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::moments::Moment;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::types::Type;
use crate::language::xpath::List;

/// A binary operator.
#[derive(Clone, Copy)]
enum Binary {
    Or,
    And,
    Compare(Comparison, bool),
    Calculate(Arithmetic),
    Union,
}

const COMPARISON: u8 = 3;

impl Binary {
    fn level(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Compare(..) => COMPARISON,
            Binary::Calculate(Arithmetic::Add | Arithmetic::Subtract) => 4,
            Binary::Calculate(_) => 5,
            Binary::Union => 6,
        }
    }
}

/// Operators.
impl Parser<'_> {
    /// An expression of operators that bind at least as tightly as `level`.
    pub(super) fn expression(&mut self, level: u8) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        let left = self.unary()?;
        let mut left = self.casts(left, offset)?;
        let mut is_comparison = false;
        while let Some((operator, len)) = self.operator() {
            let own = operator.level();
            if own < level {
                break;
            }
            if own == COMPARISON && is_comparison {
                let at = self.scanner.place();
                return Err(Refusal::new(at, Reason::ComparisonChain, Vec::new()));
            }
            is_comparison = own == COMPARISON;
            let at = self.scanner.place();
            self.count(at)?;
            self.scanner.skip(len);
            let right = self.expression(own + 1)?;
            left = self.combine(operator, left, right, offset)?;
        }
        if self.is_explaining() {
            self.refuse_operator()?;
        }
        Ok(left)
    }

    /// Refuses an operator of XQuery that is not evaluated, by its name.
    #[cold]
    fn refuse_operator(&mut self) -> Parsed<()> {
        let (offset, _, end) = self.scanner.next_token()?;
        let written = self.scanner.slice(offset, end);
        let following = match written {
            "to" | "is" | "<<" | ">>" | "intersect" | "except" | "!" | "||" | "=>" => "",
            "instance" => "of",
            "treat" => "as",
            _ => return Ok(()),
        };
        let after = self.scanner.after_blanks(end)?;
        if following.is_empty() || self.scanner.text_at(after).starts_with(following) {
            return Err(Refusal::new(offset, Reason::Operator, vec![written.into()]));
        }
        Ok(())
    }

    /// The operator after blanks and its length, if there is one.
    fn operator(&mut self) -> Option<(Binary, usize)> {
        use Comparison::*;
        let byte = self.scanner.peek();
        let next = self.scanner.byte_after(1);
        Some(match byte {
            b'=' if next != b'>' => (Binary::Compare(Eq, false), 1),
            b'!' if next == b'=' => (Binary::Compare(Ne, false), 2),
            b'<' if next == b'=' => (Binary::Compare(Le, false), 2),
            b'>' if next == b'=' => (Binary::Compare(Ge, false), 2),
            b'<' if next != b'<' => (Binary::Compare(Lt, false), 1),
            b'>' if next != b'>' => (Binary::Compare(Gt, false), 1),
            b'+' => (Binary::Calculate(Arithmetic::Add), 1),
            b'-' => (Binary::Calculate(Arithmetic::Subtract), 1),
            b'*' => (Binary::Calculate(Arithmetic::Multiply), 1),
            b'|' if next != b'|' => (Binary::Union, 1),
            b'a' | b'd' | b'e' | b'g' | b'i' | b'l' | b'm' | b'n' | b'o' | b'u' => {
                return self.operator_word();
            }
            _ => return None,
        })
    }

    fn operator_word(&mut self) -> Option<(Binary, usize)> {
        use Comparison::*;
        let mark = self.scanner.at;
        let word = self.scanner.ncname().filter(|_| !self.scanner.has_local_name());
        self.scanner.at = mark;
        let word = word?;
        let operator = match word {
            "or" => Binary::Or,
            "and" => Binary::And,
            "div" => Binary::Calculate(Arithmetic::Divide),
            "idiv" => Binary::Calculate(Arithmetic::DivideWhole),
            "mod" => Binary::Calculate(Arithmetic::Modulo),
            "union" => Binary::Union,
            "eq" => Binary::Compare(Eq, true),
            "ne" => Binary::Compare(Ne, true),
            "lt" => Binary::Compare(Lt, true),
            "le" => Binary::Compare(Le, true),
            "gt" => Binary::Compare(Gt, true),
            "ge" => Binary::Compare(Ge, true),
            _ => return None,
        };
        Some((operator, word.len()))
    }

    fn combine(
        &mut self,
        operator: Binary,
        left: ExprId,
        right: ExprId,
        offset: usize,
    ) -> Parsed<ExprId> {
        if matches!(operator, Binary::Union) {
            self.need_nodes(left)?;
            self.need_nodes(right)?;
        } else {
            self.need_value(left)?;
            self.need_value(right)?;
        }
        let atoms = Facts::of(items::ATOMS);
        let (expr, facts) = match operator {
            Binary::Or => self.joined(left, right, atoms, Expr::Or, |expr| match expr {
                Expr::Or(list) => Some(list),
                _ => None,
            }),
            Binary::And => self.joined(left, right, atoms, Expr::And, |expr| match expr {
                Expr::And(list) => Some(list),
                _ => None,
            }),
            Binary::Union => {
                let may_be_attribute =
                    self.facts(left).may_be_attribute | self.facts(right).may_be_attribute;
                let nodes = Facts { is_costly: true, may_be_attribute, ..Facts::of(items::NODES) };
                self.joined(left, right, nodes, Expr::Union, |expr| match expr {
                    Expr::Union(list) => Some(list),
                    _ => None,
                })
            }
            Binary::Compare(operator, is_value) => {
                let facts = atoms.around(self.facts(left)).around(self.facts(right));
                (Expr::Comparison { operator, is_value, left, right }, facts)
            }
            Binary::Calculate(operator) => {
                if let Some(constant) = self.moment_of(operator, left, right, offset)? {
                    return Ok(constant);
                }
                let number = Facts { may_be_number: true, ..atoms };
                let facts = number.around(self.facts(left)).around(self.facts(right));
                (Expr::Arithmetic { operator, left, right }, facts)
            }
        };
        let id = self.push(expr, facts, offset);
        if matches!(operator, Binary::Union) {
            self.keep_value(id);
        }
        Ok(id)
    }

    /// The sum or difference of constants, which is a constant that the gate knows.
    fn moment_of(
        &mut self,
        operator: Arithmetic,
        left: ExprId,
        right: ExprId,
        offset: usize,
    ) -> Parsed<Option<ExprId>> {
        let constant = |id| match self.program.expr(id) {
            Expr::Cast { to, operand } if to.is_moment() => match self.program.expr(operand) {
                Expr::String(text) => Moment::read(to, self.program.text(text).as_bytes()),
                _ => None,
            },
            _ => None,
        };
        let found = match (operator, constant(left), constant(right)) {
            (Arithmetic::Add, Some(left), Some(right)) => left.plus(right),
            (Arithmetic::Subtract, Some(left), Some(right)) => left.minus(right),
            _ => None,
        };
        let Some(found) = found else { return Ok(None) };
        let mut text = Vec::new();
        found.write(&mut text);
        let text = self.keep(&String::from_utf8_lossy(&text));
        let text = self.push(Expr::String(text), Facts::of(items::ATOMS), offset);
        self.push_cast(found.kind(), text, offset).map(Some)
    }

    /// An associative operator on the operands of operands with the same operator: a long chain then
    /// needs no deep recursion.
    fn joined(
        &mut self,
        left: ExprId,
        right: ExprId,
        own: Facts,
        make: impl Fn(List) -> Expr,
        same: impl Fn(Expr) -> Option<List>,
    ) -> (Expr, Facts) {
        let lists = [left, right].map(|id| (id, same(self.program.expr(id))));
        let mut facts = own;
        for (id, list) in lists {
            let inner = self.facts(id);
            let depth = inner.depth - u16::from(list.is_some());
            facts = facts.around(Facts { depth, ..inner });
        }
        // What has been joined last can grow where it is.
        if let [(_, Some(list)), (_, None)] = lists
            && list.end as usize == self.program.lists.len()
        {
            self.program.lists.push(right);
            return (make(List { start: list.start, end: list.end + 1 }), facts);
        }
        let start = self.program.lists.len() as u32;
        for (id, list) in lists {
            match list {
                Some(list) => {
                    let run = list.start as usize..list.end as usize;
                    self.program.lists.extend_from_within(run);
                }
                None => self.program.lists.push(id),
            }
        }
        (make(List { start, end: self.program.lists.len() as u32 }), facts)
    }

    /// `castable as` and `cast as` after an expression.
    fn casts(&mut self, mut operand: ExprId, offset: usize) -> Parsed<ExprId> {
        for word in ["cast", "castable"] {
            if self.scanner.peek() != b'c' {
                break;
            }
            let mark = self.scanner.at;
            let comes = self.scanner.ncname() == Some(word) && self.scanner.is_word("as");
            self.scanner.at = mark;
            if !(comes && self.scanner.take_word(word) && self.scanner.take_word("as")) {
                continue;
            }
            self.count(offset)?;
            let to = self.single_type()?;
            let is_optional = self.scanner.take(b'?');
            operand = if word == "cast" {
                self.push_cast(to, operand, offset)?
            } else {
                self.need_value(operand)?;
                let facts = Facts::of(items::ATOMS).around(self.facts(operand));
                self.push(Expr::Castable { to, is_optional, operand }, facts, offset)
            };
        }
        Ok(operand)
    }

    /// The name of a type.
    fn single_type(&mut self) -> Parsed<Type> {
        let offset = self.scanner.place();
        let Some(written) = self.written_name() else {
            return Err(self.scanner.unexpected(Reason::ExpectedName, &[]));
        };
        let end = self.scanner.at;
        self.scanner.settle();
        match self.expanded(written, offset)? {
            (Some(uri), name) if self.program.text(uri) == SCHEMA => {
                self.schema_type(name, offset, end)
            }
            _ => {
                let shown = self.scanner.slice(offset, end);
                Err(Refusal::new(offset, Reason::NoType, vec![shown.into()]))
            }
        }
    }

    /// Signs before a path. A plus makes a number of its operand, as two minuses do.
    fn unary(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        let (mut minuses, mut signs) = (0, 0);
        while matches!(self.scanner.peek(), b'-' | b'+') {
            self.count(self.scanner.at)?;
            minuses += u32::from(self.scanner.byte() == b'-');
            signs += 1;
            self.scanner.skip(1);
        }
        let mut expr = self.path()?;
        if signs > 0 {
            self.need_value(expr)?;
            for _ in 0..2 - minuses % 2 {
                let facts = Facts {
                    items: items::ATOMS,
                    may_be_number: true,
                    depth: 1,
                    ..Facts::default()
                };
                let facts = facts.around(self.facts(expr));
                expr = self.push(Expr::Negation(expr), facts, offset);
            }
        }
        Ok(expr)
    }
}
