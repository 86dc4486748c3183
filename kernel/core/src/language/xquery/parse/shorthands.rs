//! Functions that other expressions say as well: `codepoint-equal`, `contains-token`, `sum` with a value for no items.

use super::super::syntax::{Expr, ExprId};
use super::facts::items;
use super::{Facts, Parser};
use crate::language::comparison::Comparison;
use crate::language::functions::Function;
use crate::language::refusal::Parsed;
use crate::language::types::Type;

impl Parser<'_> {
    /// What a call says, written out; none of a function that is called.
    pub(super) fn shorthand(
        &mut self,
        function: Function,
        arguments: &[ExprId],
        offset: usize,
    ) -> Parsed<Option<ExprId>> {
        let found = match (function, arguments) {
            (Function::CodepointEqual, &[left, right]) => {
                let left = self.push_cast(Type::String, left, offset)?;
                let right = self.push_cast(Type::String, right, offset)?;
                self.push_equal(true, left, right, offset)
            }
            (Function::ContainsToken, &[texts, token, ..]) => {
                let words = self.mapped_to(texts, offset, |parser, item| {
                    let text = parser.push_call(Function::NormalizeSpace, &[item], offset)?;
                    let pattern = parser.pattern(" ", "", Some(""), offset)?;
                    let words = parser.push_call(Function::Tokenize, &[text], offset)?;
                    parser.program.patterns.push((words, pattern));
                    Ok(words)
                })?;
                let token = self.push_call(Function::NormalizeSpace, &[token], offset)?;
                self.push_equal(false, words, token, offset)
            }
            (Function::Sum, &[numbers, zero]) => {
                self.need_value(numbers)?;
                self.need_value(zero)?;
                let inner = self.facts(numbers);
                let (variable, bound) = self.bind_hidden("sum", inner, offset);
                let used = [(); 2].map(|()| self.push(Expr::Variable(variable), bound, offset));
                let condition = self.push_call(Function::Exists, &used[..1], offset)?;
                let then = self.push_call(Function::Sum, &used[1..], offset)?;
                self.push_let_if(variable, numbers, [condition, then, zero], offset)
            }
            _ => return Ok(None),
        };
        Ok(Some(found))
    }

    fn push_equal(&mut self, is_value: bool, left: ExprId, right: ExprId, offset: usize) -> ExprId {
        let facts = Facts::of(items::ATOMS).around(self.facts(left)).around(self.facts(right));
        let operator = Comparison::Eq;
        self.push(Expr::Comparison { operator, is_value, left, right }, facts, offset)
    }

    /// `source ! body`, for items whose values are read.
    pub(super) fn mapped_to(
        &mut self,
        source: ExprId,
        offset: usize,
        body: impl FnOnce(&mut Self, ExprId) -> Parsed<ExprId>,
    ) -> Parsed<ExprId> {
        self.need_value(source)?;
        let inner = self.facts(source);
        let item = self.push(Expr::ContextItem, Facts::of(inner.items), offset);
        let body = body(self, item)?;
        let facts = Facts { is_costly: true, ..Facts::of(items::NONE).around(inner) };
        let facts = facts.giving(self.facts(body).as_predicate());
        Ok(self.push(Expr::SimpleMap { source, body }, facts, offset))
    }
}
