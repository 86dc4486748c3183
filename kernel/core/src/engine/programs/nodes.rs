//! Nodes: paths, unions, filters of nodes (XQuery 1.0, 3.2 and 3.3.1).
//!
//! Steps are those of [`crate::engine::evaluate::path_machine`].

use super::RunError;
use super::run::{Evaluator, Focus, Run};
use super::value::{Item, Slot};
use crate::engine::evaluate::budget::Budget;
use crate::engine::evaluate::document::{Document, Node};
use crate::engine::evaluate::path_machine::{self, Context, PathMachine, PathState, put_in_order};
use crate::language::xpath::List;
use crate::language::xquery::syntax::{Expr, ExprId, Start};

/// Asked of each node of a step; true ends it.
type Ask<'f, 'r, 'w> = path_machine::Ask<'f, Evaluator<'r, 'w>, RunError>;

impl<'r> PathMachine<'r, RunError> for Evaluator<'r, '_> {
    type Start = Start;

    fn document(&self) -> Document<'r> {
        self.document
    }

    fn texts(&self) -> &'r str {
        &self.program.text
    }

    fn expressions(&self, list: List) -> &'r [ExprId] {
        self.program.list(list)
    }

    fn path_state(&mut self) -> &mut PathState {
        &mut self.state.paths
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn start_node(&self, start: Start) -> Option<Node> {
        match start {
            Start::Root => Some(Node::ROOT),
            Start::Context => match self.focus {
                None => Some(Node::ROOT),
                Some(Focus { item: Item::Node(node), .. }) => Some(node),
                Some(_) => None,
            },
            Start::Expr(id) => match self.program.expr(id) {
                Expr::Variable(slot) => match self.state.slots[slot as usize] {
                    Slot::Item(Item::Node(node)) => Some(node),
                    _ => None,
                },
                _ => None,
            },
        }
    }

    fn start_nodes(&mut self, start: Start) -> Run<Vec<Node>> {
        match start {
            Start::Expr(id) => self.nodes(id),
            Start::Root | Start::Context => Ok(self.take_list()),
        }
    }

    fn predicate_holds(&mut self, predicate: ExprId, context: Context) -> Run<bool> {
        let Context { node, position, size } = context;
        self.holds(predicate, Focus { item: Item::Node(node), position, size })
    }
}

impl<'r, 'w> Evaluator<'r, 'w> {
    /// The nodes that a path or union gives, in document order; of another expression the nodes
    /// among its items, put in this order.
    pub(crate) fn nodes(&mut self, id: ExprId) -> Run<Vec<Node>> {
        let Some(slot) = self.kept_slot(id) else {
            return self.computed_nodes(id);
        };
        if self.state.kept[slot].is_none() {
            let nodes = self.computed_nodes(id)?;
            self.state.kept[slot] = Some(nodes);
        }
        let mut nodes = self.take_list();
        if let Some(kept) = &self.state.kept[slot] {
            self.budget.charge(kept.len() as u64)?;
            nodes.extend_from_slice(kept);
        }
        Ok(nodes)
    }

    /// Where the nodes of an expression are kept, if they are.
    pub(crate) fn kept_slot(&self, id: ExprId) -> Option<usize> {
        let slot = self.program.kept.get(id as usize).copied()?;
        (slot != u32::MAX).then_some(slot as usize)
    }

    fn computed_nodes(&mut self, id: ExprId) -> Run<Vec<Node>> {
        match self.program.expr(id) {
            Expr::Path { start, steps } => self.path_nodes(start, self.program.steps(steps)),
            Expr::Union(list) => {
                let mut all = self.take_list();
                for &operand in self.program.list(list) {
                    let nodes = self.nodes(operand)?;
                    all.extend_from_slice(&nodes);
                    self.give_list(nodes);
                }
                put_in_order(&mut all);
                Ok(all)
            }
            Expr::Intersection { is_except, left, right } => {
                let mut nodes = self.nodes(left)?;
                let others = self.nodes(right)?;
                self.budget.charge((nodes.len() + others.len()) as u64)?;
                nodes.retain(|node| others.binary_search(node).is_ok() != is_except);
                self.give_list(others);
                Ok(nodes)
            }
            _ => {
                let mut nodes = self.take_list();
                let mark = self.mark();
                self.eval(id)?;
                let items = &self.state.stack[mark.stack..];
                nodes.extend(items.iter().filter_map(|item| match item {
                    Item::Node(node) => Some(*node),
                    _ => None,
                }));
                self.release(mark);
                put_in_order(&mut nodes);
                Ok(nodes)
            }
        }
    }

    /// Whether a path has a node; its last step ends at the first.
    pub(crate) fn is_any(&mut self, id: ExprId, start: Start, steps: List) -> Run<bool> {
        self.search(id, start, steps, &mut |_, _| Ok(true))
    }

    /// Asks the nodes of a path, in no particular order, until one says yes.
    pub(crate) fn search(
        &mut self,
        id: ExprId,
        start: Start,
        steps: List,
        ask: Ask<'_, 'r, 'w>,
    ) -> Run<bool> {
        if self.kept_slot(id).is_none() {
            return self.search_path(start, self.program.steps(steps), ask);
        }
        let nodes = self.nodes(id)?;
        self.search_list(nodes, ask)
    }

    /// The first node of a path in document order.
    pub(crate) fn first_node(
        &mut self,
        id: ExprId,
        start: Start,
        steps: List,
    ) -> Run<Option<Node>> {
        if self.kept_slot(id).is_none() {
            return self.first_of_path(start, self.program.steps(steps));
        }
        let nodes = self.nodes(id)?;
        let first = nodes.first().copied();
        self.give_list(nodes);
        Ok(first)
    }
}
