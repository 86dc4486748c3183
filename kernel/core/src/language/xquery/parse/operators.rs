//! Operators (XQuery 3.1, 3.3 to 3.7, 3.14 to 3.16), read by climbing their precedence.

use super::super::syntax::{Expr, ExprId, ItemTest, Occurrence};
use super::facts::items;
use super::names::SCHEMA;
use super::{Facts, Parser};
use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::functions::Function;
use crate::language::grammar::{Binary, Grammar};
use crate::language::moments::Moment;
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::types::Type;
use crate::language::xpath::List;

const COMPARISON: u8 = 3;
const RANGE: u8 = 5;

/// How tightly an operator binds.
pub(super) fn level(operator: Binary) -> u8 {
    match operator {
        Binary::Or => 1,
        Binary::And => 2,
        Binary::Compare(..) => COMPARISON,
        Binary::Concatenate => 4,
        Binary::Range => RANGE,
        Binary::Calculate(Arithmetic::Add | Arithmetic::Subtract) => 6,
        Binary::Calculate(_) => 7,
        Binary::Union => 8,
        Binary::Intersect(_) => 9,
    }
}

/// Operators.
impl Parser<'_> {
    /// Whether an operator may follow one of the same level.
    pub(super) fn may_chain(&mut self, level: u8) -> Parsed<bool> {
        if level == COMPARISON {
            let at = self.scanner.place();
            return Err(Refusal::new(at, Reason::ComparisonChain, Vec::new()));
        }
        Ok(level != RANGE)
    }

    /// Refuses an operator of XQuery that is not evaluated, by its name.
    #[cold]
    pub(super) fn refuse_operator(&mut self) -> Parsed<()> {
        let (offset, _, end) = self.scanner.next_token()?;
        let written = self.scanner.slice(offset, end);
        if matches!(written, "is" | "<<" | ">>") {
            return Err(Refusal::new(offset, Reason::Operator, vec![written.into()]));
        }
        Ok(())
    }

    /// The operator after blanks and its length, if there is one.
    pub(super) fn operator(&mut self) -> Option<(Binary, usize)> {
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
            b'|' if next == b'|' => (Binary::Concatenate, 2),
            b'|' => (Binary::Union, 1),
            b'a' | b'd' | b'e' | b'g' | b'i' | b'l' | b'm' | b'n' | b'o' | b't' | b'u' => {
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
            "intersect" => Binary::Intersect(false),
            "except" => Binary::Intersect(true),
            "to" => Binary::Range,
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

    pub(super) fn combine(
        &mut self,
        operator: Binary,
        left: ExprId,
        right: ExprId,
        offset: usize,
    ) -> Parsed<ExprId> {
        let is_of_nodes = matches!(operator, Binary::Union | Binary::Intersect(_));
        if is_of_nodes {
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
            Binary::Intersect(is_except) => {
                let may_be_attribute = self.facts(left).may_be_attribute;
                let nodes = Facts { is_costly: true, may_be_attribute, ..Facts::of(items::NODES) };
                let facts = nodes.around(self.facts(left)).around(self.facts(right));
                (Expr::Intersection { is_except, left, right }, facts)
            }
            Binary::Concatenate => {
                let make = |list| Expr::Call(Function::Concat, list);
                self.joined(left, right, atoms, make, |expr| match expr {
                    Expr::Call(Function::Concat, list) => Some(list),
                    _ => None,
                })
            }
            Binary::Range => {
                let number = Facts { may_be_number: true, ..atoms };
                let facts = number.around(self.facts(left)).around(self.facts(right));
                (Expr::Range { first: left, last: right }, facts)
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
        if is_of_nodes {
            self.keep_value(id);
        }
        Ok(id)
    }

    /// An operand of a binary operator: what is cast, called or looked at, in the order of precedence.
    pub(super) fn operand(&mut self) -> Parsed<ExprId> {
        let offset = self.scanner.place();
        let mut expr = self.unary()?;
        while self.scanner.peek() == b'=' && self.scanner.byte_after(1) == b'>' {
            self.scanner.skip(2);
            if matches!(self.scanner.peek(), b'$' | b'(') {
                let at = self.scanner.at;
                return Err(Refusal::new(at, Reason::Operator, vec!["=>".into()]));
            }
            expr = self.call(Some(expr))?;
        }
        let cast = self.casts(expr, offset)?;
        let treated = self.treated(cast, offset)?;
        self.instance_of(treated, offset)
    }

    /// Moves over two words if they come next, which count as an operator.
    fn takes_words(&mut self, first: &str, second: &str, offset: usize) -> Parsed<bool> {
        if self.scanner.peek() != first.as_bytes()[0] {
            return Ok(false);
        }
        let mark = self.scanner.at;
        let comes = self.scanner.ncname() == Some(first) && self.scanner.is_word(second);
        self.scanner.at = mark;
        let is_taken = comes && self.scanner.take_word(first) && self.scanner.take_word(second);
        if is_taken {
            self.count(offset)?;
        }
        Ok(is_taken)
    }

    /// `treat as` after an expression: that, if it is an instance, and nothing otherwise.
    fn treated(&mut self, value: ExprId, offset: usize) -> Parsed<ExprId> {
        if !self.takes_words("treat", "as", offset)? {
            return Ok(value);
        }
        self.need_value(value)?;
        let (item, occurrence) = self.sequence_type()?;
        Ok(self.treated_as(item, occurrence, value, offset))
    }

    /// An expression, if it is an instance of a type, and nothing otherwise.
    pub(super) fn treated_as(
        &mut self,
        item: ItemTest,
        occurrence: Occurrence,
        value: ExprId,
        offset: usize,
    ) -> ExprId {
        let inner = self.facts(value);
        let (variable, facts) = self.bind_hidden("treated", inner, offset);
        let [operand, then] = [(); 2].map(|()| self.push(Expr::Variable(variable), facts, offset));
        let own = Facts::of(items::ATOMS).around(facts);
        let condition = self.push(Expr::InstanceOf { item, occurrence, operand }, own, offset);
        let otherwise = self.sequence_of(&[], offset);
        self.push_let_if(variable, value, [condition, then, otherwise], offset)
    }

    /// `instance of` after an expression.
    fn instance_of(&mut self, operand: ExprId, offset: usize) -> Parsed<ExprId> {
        if !self.takes_words("instance", "of", offset)? {
            return Ok(operand);
        }
        self.need_value(operand)?;
        let (item, occurrence) = self.sequence_type()?;
        let facts = Facts::of(items::ATOMS).around(self.facts(operand));
        Ok(self.push(Expr::InstanceOf { item, occurrence, operand }, facts, offset))
    }

    /// `element(a)*`, `xs:date?`, `empty-sequence()`.
    pub(super) fn sequence_type(&mut self) -> Parsed<(ItemTest, Occurrence)> {
        let Some(item) = self.item_test()? else {
            return Ok((ItemTest::Item, Occurrence::Nothing));
        };
        let occurrence = match self.scanner.peek() {
            b'?' => Occurrence::Optional,
            b'*' => Occurrence::Any,
            b'+' => Occurrence::Several,
            _ => return Ok((item, Occurrence::One)),
        };
        self.scanner.skip(1);
        Ok((item, occurrence))
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
            if !self.takes_words(word, "as", offset)? {
                continue;
            }
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

    /// The name of a type that there is a cast to.
    fn single_type(&mut self) -> Parsed<Type> {
        self.named_type(|parser, name, offset, end| parser.schema_type(name, offset, end))
    }

    /// The name of a type of atomic values.
    pub(super) fn atomic_test(&mut self) -> Parsed<ItemTest> {
        self.named_type(|parser, name, offset, end| match name {
            "anyAtomicType" => Ok(ItemTest::AnyAtomic),
            "untypedAtomic" => Ok(ItemTest::Untyped),
            _ => parser.schema_type(name, offset, end).map(ItemTest::Atomic),
        })
    }

    /// What a name of XML Schema stands for, which comes next.
    fn named_type<T>(
        &mut self,
        find: impl FnOnce(&Self, &str, usize, usize) -> Parsed<T>,
    ) -> Parsed<T> {
        let offset = self.scanner.place();
        let Some(written) = self.written_name() else {
            return Err(self.scanner.unexpected(Reason::ExpectedName, &[]));
        };
        let end = self.scanner.at;
        match self.expanded(written, offset)? {
            (Some(uri), name) if self.program.text(uri) == SCHEMA => {
                let found = find(self, name, offset, end)?;
                self.scanner.settle();
                Ok(found)
            }
            _ => {
                let shown = self.scanner.slice(offset, end);
                Err(Refusal::new(offset, Reason::NoType, vec![shown.into()]))
            }
        }
    }

    /// The path after `!`, whose context item is each item of an expression.
    fn mapped(&mut self, source: ExprId, offset: usize) -> Parsed<ExprId> {
        let inner = self.facts(source);
        let outer = std::mem::replace(&mut self.context, inner.items);
        self.predicates += 1;
        self.loops += 1;
        let body = self.path()?;
        self.loops -= 1;
        self.predicates -= 1;
        self.context = outer;
        let facts = Facts { is_costly: true, ..Facts::of(items::NONE).around(inner) };
        let facts = facts.giving(self.facts(body).as_predicate());
        Ok(self.push(Expr::SimpleMap { source, body }, facts, offset))
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
        while self.scanner.peek() == b'!' && self.scanner.byte_after(1) != b'=' {
            self.count(self.scanner.at)?;
            self.scanner.skip(1);
            expr = self.mapped(expr, offset)?;
        }
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
