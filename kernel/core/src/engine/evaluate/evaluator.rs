//! Values of sub-expressions in a context (XPath 1.0, 3).
//!
//! Every sub-expression is asked for what the one around it needs: its truth, a number, a string or
//! its nodes. Node-sets are in `paths`, comparisons in `compare`, functions in `call`.

use super::budget::{Budget, Within};
use super::document::{Document, Node};
use super::ids::Ids;
use super::memo::{Place, Store};
use super::path_machine::{Context, PathState};
use crate::language::number_text::number_text;
use crate::language::numbers::number;
use crate::language::xpath::ast::{Arena, Expr, ExprId, Kind, Memo};
use std::borrow::Cow;

/// A string; most lie in the message or the expression.
pub(super) type Text<'a> = Cow<'a, [u8]>;

/// What an evaluation works with; keeps its memory.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(crate) store: Store,
    pub(crate) ids: Ids,
    pub(crate) paths: PathState,
}

/// One evaluation.
pub(super) struct Evaluator<'a> {
    pub(crate) document: Document<'a>,
    pub(crate) arena: &'a Arena,
    pub(crate) state: &'a mut State,
    pub(crate) budget: Budget,
}

impl<'a> Evaluator<'a> {
    /// Where the value of a sub-expression is kept, if it is.
    fn place(&self, id: ExprId, context: Context) -> Option<Place> {
        match self.arena.facts[id as usize].memo {
            Memo::No => None,
            Memo::Once(slot) => Some(Place { slot, node: Node::ROOT }),
            Memo::PerNode(slot) => Some(Place { slot, node: context.node }),
        }
    }

    /// Whether the nodes of a sub-expression are kept.
    pub(crate) fn is_kept(&self, id: ExprId) -> bool {
        self.arena.facts[id as usize].memo != Memo::No
    }

    /// `boolean(expression)`.
    pub(crate) fn boolean(&mut self, id: ExprId, context: Context) -> Within<bool> {
        let Some(place) = self.place(id, context) else {
            return self.computed_boolean(id, context);
        };
        if let Some(value) = self.state.store.boolean(place) {
            return Ok(value);
        }
        let value = self.computed_boolean(id, context)?;
        self.state.store.keep_boolean(place, value);
        Ok(value)
    }

    fn computed_boolean(&mut self, id: ExprId, context: Context) -> Within<bool> {
        match self.arena.exprs[id as usize] {
            Expr::Or(list) => {
                for &operand in self.arena.list(list) {
                    if self.boolean(operand, context)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expr::And(list) => {
                for &operand in self.arena.list(list) {
                    if !self.boolean(operand, context)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expr::Compare(comparison, left, right) => {
                self.comparison(comparison, left, right, context)
            }
            Expr::Union(_) | Expr::Path { .. } => self.is_any(id, context),
            Expr::Call(function, list) => match function.signature().kind {
                Kind::Boolean => self.call_boolean(function, list, context),
                Kind::Number => Ok(is_true_number(self.call_number(function, list, context)?)),
                Kind::String => Ok(!self.call_string(function, list, context)?.is_empty()),
                Kind::Nodes => self.is_any(id, context),
            },
            Expr::Literal(range) => Ok(range.start < range.end),
            Expr::Number(_) | Expr::Calculate(..) | Expr::Negate(_) => {
                Ok(is_true_number(self.computed_number(id, context)?))
            }
        }
    }

    /// `number(expression)`.
    pub(crate) fn number(&mut self, id: ExprId, context: Context) -> Within<f64> {
        let Some(place) = self.place(id, context) else {
            return self.computed_number(id, context);
        };
        if let Some(value) = self.state.store.number(place) {
            return Ok(value);
        }
        let value = self.computed_number(id, context)?;
        self.state.store.keep_number(place, value);
        Ok(value)
    }

    fn computed_number(&mut self, id: ExprId, context: Context) -> Within<f64> {
        match self.arena.exprs[id as usize] {
            Expr::Number(value) => Ok(value),
            Expr::Negate(operand) => Ok(-self.number(operand, context)?),
            Expr::Calculate(operator, left, right) => {
                let left = self.number(left, context)?;
                let right = self.number(right, context)?;
                Ok(operator.of(left, right))
            }
            Expr::Or(_) | Expr::And(_) | Expr::Compare(..) => {
                Ok(f64::from(u8::from(self.computed_boolean(id, context)?)))
            }
            Expr::Literal(range) => Ok(number(self.arena.text(range).as_bytes())),
            Expr::Union(_) | Expr::Path { .. } => self.number_of_first(id, context),
            Expr::Call(function, list) => match function.signature().kind {
                Kind::Boolean => {
                    Ok(f64::from(u8::from(self.call_boolean(function, list, context)?)))
                }
                Kind::Number => self.call_number(function, list, context),
                Kind::String => {
                    let text = self.call_string(function, list, context)?;
                    self.number_of_text(&text)
                }
                Kind::Nodes => self.number_of_first(id, context),
            },
        }
    }

    fn number_of_first(&mut self, id: ExprId, context: Context) -> Within<f64> {
        match self.first(id, context)? {
            Some(node) => self.number_of_node(node),
            None => Ok(f64::NAN),
        }
    }

    /// The number that a string is.
    pub(crate) fn number_of_text(&mut self, text: &[u8]) -> Within<f64> {
        self.budget.charge_text(text.len())?;
        Ok(number(text))
    }

    /// The number that the string-value of a node is.
    pub(crate) fn number_of_node(&mut self, node: Node) -> Within<f64> {
        let text = self.string_value(node)?;
        Ok(number(&text))
    }

    /// The string-value of a node.
    pub(crate) fn string_value(&mut self, node: Node) -> Within<Text<'a>> {
        self.budget.charge_text(self.document.string_len(node))?;
        Ok(self.document.string_value(node))
    }

    /// `string(expression)`.
    pub(crate) fn string(&mut self, id: ExprId, context: Context) -> Within<Text<'a>> {
        let Some(place) = self.place(id, context) else {
            return self.computed_string(id, context);
        };
        if let Some(text) = self.state.store.text(place) {
            self.budget.charge_text(text.len())?;
            return Ok(Cow::Owned(text.to_vec()));
        }
        let text = self.computed_string(id, context)?;
        self.state.store.keep_text(place, &text);
        Ok(text)
    }

    fn computed_string(&mut self, id: ExprId, context: Context) -> Within<Text<'a>> {
        match self.arena.exprs[id as usize] {
            Expr::Literal(range) => Ok(Cow::Borrowed(self.arena.text(range).as_bytes())),
            Expr::Union(_) | Expr::Path { .. } => self.string_of_first(id, context),
            Expr::Or(_) | Expr::And(_) | Expr::Compare(..) => {
                Ok(boolean_text(self.computed_boolean(id, context)?))
            }
            Expr::Number(_) | Expr::Negate(_) | Expr::Calculate(..) => {
                Ok(Cow::Owned(number_text(self.computed_number(id, context)?).into_bytes()))
            }
            Expr::Call(function, list) => match function.signature().kind {
                Kind::Boolean => Ok(boolean_text(self.call_boolean(function, list, context)?)),
                Kind::Number => {
                    let value = self.call_number(function, list, context)?;
                    Ok(Cow::Owned(number_text(value).into_bytes()))
                }
                Kind::String => self.call_string(function, list, context),
                Kind::Nodes => self.string_of_first(id, context),
            },
        }
    }

    fn string_of_first(&mut self, id: ExprId, context: Context) -> Within<Text<'a>> {
        match self.first(id, context)? {
            Some(node) => self.string_value(node),
            None => Ok(Cow::Borrowed(b"")),
        }
    }

    /// The nodes of a sub-expression that is a node-set, in document order.
    pub(crate) fn nodes(&mut self, id: ExprId, context: Context) -> Within<Vec<Node>> {
        let Some(place) = self.place(id, context) else {
            return self.computed_nodes(id, context);
        };
        if let Some(kept) = self.state.store.nodes(place) {
            self.budget.charge(kept.len() as u64)?;
            let mut nodes = self.state.paths.take_list();
            nodes.extend_from_slice(kept);
            return Ok(nodes);
        }
        let nodes = self.computed_nodes(id, context)?;
        self.state.store.keep_nodes(place, &nodes);
        Ok(nodes)
    }
}

fn is_true_number(value: f64) -> bool {
    value != 0.0 && !value.is_nan()
}

fn boolean_text<'a>(value: bool) -> Text<'a> {
    Cow::Borrowed(if value { b"true" } else { b"false" })
}
