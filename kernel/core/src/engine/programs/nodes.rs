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
            Expr::Path { start, steps } => {
                let set = self.start(start)?;
                self.steps(set, self.program.steps(steps))
            }
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

    /// The node that a path begins at, if it begins at one and that is known without looking.
    fn single_start(&self, start: Start) -> Option<Node> {
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

    fn start(&mut self, start: Start) -> Run<Vec<Node>> {
        if let Some(node) = self.single_start(start) {
            let mut set = self.take_list();
            set.push(node);
            return Ok(set);
        }
        match start {
            Start::Expr(id) => self.nodes(id),
            Start::Root | Start::Context => Ok(self.take_list()),
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
        let steps = self.program.steps(steps);
        if self.kept_slot(id).is_none()
            && let Some((last, before)) = steps.split_last()
            && !last.is_positional
        {
            if let (Some(node), []) = (self.single_start(start), before) {
                return self.search_step(&[node], last, ask);
            }
            let set = self.start(start)?;
            let set = self.steps(set, before)?;
            let is_found = self.search_step(&set, last, ask)?;
            self.give_list(set);
            return Ok(is_found);
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
        let is_forward =
            self.program.steps(steps).last().is_none_or(|last| !last.axis.is_reverse());
        // From one node, the axis has the order of the document; from several, it may not.
        let is_ordered = is_forward && steps.len() == 1 && self.single_start(start).is_some();
        let mut first: Option<Node> = None;
        self.search(id, start, steps, &mut |_, node| {
            first = Some(first.map_or(node, |first| first.min(node)));
            Ok(is_ordered)
        })?;
        Ok(first)
    }
}
