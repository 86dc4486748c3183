//! Node-sets: location paths, filters, unions (XPath 1.0, 2 and 3.3).
//!
//! A step goes from a set to a set where positions do not count; where they do, from each of its
//! nodes. Where only the truth of a node-set is asked for, its last step ends at the first node.

use super::budget::{Budget, OverBudget, Within};
use super::document::{Document, Node};
use super::evaluator::Evaluator;
use super::path_machine::{Context, PathMachine, PathState, put_in_order};
use crate::language::functions::Function;
use crate::language::xpath::Axis;
use crate::language::xpath::ast::{Expr, ExprId, List, NodeTest, Start, Step};

/// Asked of each node of a set; true ends the search.
type Ask<'f, 'a> = super::path_machine::Ask<'f, Evaluator<'a>, OverBudget>;

impl<'a> PathMachine<'a, OverBudget> for Evaluator<'a> {
    fn document(&self) -> Document<'a> {
        self.document
    }

    fn texts(&self) -> &'a str {
        &self.arena.text
    }

    fn expressions(&self, list: List) -> &'a [ExprId] {
        self.arena.list(list)
    }

    fn path_state(&mut self) -> &mut PathState {
        &mut self.state.paths
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn predicate_holds(&mut self, predicate: ExprId, context: Context) -> Within<bool> {
        self.boolean(predicate, context)
    }
}

impl<'a> Evaluator<'a> {
    /// The nodes of a node-set, in document order, computed.
    pub(crate) fn computed_nodes(&mut self, id: ExprId, context: Context) -> Within<Vec<Node>> {
        match self.arena.exprs[id as usize] {
            Expr::Path { start, steps } => {
                let steps = self.arena.steps(steps);
                let set = self.start(start, context)?;
                self.steps(set, steps)
            }
            Expr::Union(list) => {
                let mut all = self.take_list();
                for &operand in self.arena.list(list) {
                    let nodes = self.nodes(operand, context)?;
                    all.extend_from_slice(&nodes);
                    self.give_list(nodes);
                }
                put_in_order(&mut all);
                Ok(all)
            }
            Expr::Call(Function::Id, list) => self.call_id(list, context),
            // The parser lets nothing else stand where a node-set must be.
            _ => Ok(self.take_list()),
        }
    }

    fn start(&mut self, start: Start, context: Context) -> Within<Vec<Node>> {
        match start {
            Start::Context => {
                let mut set = self.take_list();
                set.push(context.node);
                Ok(set)
            }
            Start::Root => {
                let mut set = self.take_list();
                set.push(Node::ROOT);
                Ok(set)
            }
            Start::Filter { set, predicates } => {
                let mut nodes = self.nodes(set, context)?;
                for &predicate in self.arena.list(predicates) {
                    self.filter(&mut nodes, predicate)?;
                }
                Ok(nodes)
            }
        }
    }

    /// Whether a node-set has a node.
    pub(crate) fn is_any(&mut self, id: ExprId, context: Context) -> Within<bool> {
        self.search(id, context, &mut |_, _| Ok(true))
    }

    /// Asks the nodes of a node-set, in no particular order, until one says yes.
    pub(crate) fn search(
        &mut self,
        id: ExprId,
        context: Context,
        ask: Ask<'_, 'a>,
    ) -> Within<bool> {
        if !self.is_kept(id) {
            match self.arena.exprs[id as usize] {
                Expr::Path { start, steps } => {
                    return self.search_path(start, self.arena.steps(steps), context, ask);
                }
                Expr::Union(list) => {
                    for &operand in self.arena.list(list) {
                        if self.search(operand, context, ask)? {
                            return Ok(true);
                        }
                    }
                    return Ok(false);
                }
                _ => {}
            }
        }
        let nodes = self.nodes(id, context)?;
        self.search_list(nodes, ask)
    }

    /// One step from one node, without a list.
    fn search_from_one(&mut self, node: Node, step: &'a Step, ask: Ask<'_, 'a>) -> Within<bool> {
        let is_itself =
            step.axis == Axis::Itself && step.test == NodeTest::Node && step.predicates.is_empty();
        if is_itself {
            self.budget.charge(1)?;
            return ask(self, node);
        }
        self.search_step(&[node], step, ask)
    }

    fn search_path(
        &mut self,
        start: Start,
        steps: &'a [Step],
        context: Context,
        ask: Ask<'_, 'a>,
    ) -> Within<bool> {
        if let (Some(node), [step]) = (single_start(start, context), steps)
            && !step.is_positional
        {
            return self.search_from_one(node, step, ask);
        }
        let set = self.start(start, context)?;
        let Some((last, before)) = steps.split_last() else {
            return self.search_list(set, ask);
        };
        let set = self.steps(set, before)?;
        if last.is_positional {
            let mut nodes = self.take_list();
            self.step(&set, last, &mut nodes)?;
            self.give_list(set);
            return self.search_list(nodes, ask);
        }
        let is_found = self.search_step(&set, last, ask)?;
        self.give_list(set);
        Ok(is_found)
    }

    /// The first node of a node-set in document order.
    pub(crate) fn first(&mut self, id: ExprId, context: Context) -> Within<Option<Node>> {
        if !self.is_kept(id)
            && let Expr::Path { start, steps } = self.arena.exprs[id as usize]
            && let Some((last, before)) = self.arena.steps(steps).split_last()
            && !last.is_positional
        {
            if let (Some(node), []) = (single_start(start, context), before) {
                return self.first_of_step(&[node], last);
            }
            let set = self.start(start, context)?;
            let set = self.steps(set, before)?;
            let first = self.first_of_step(&set, last)?;
            self.give_list(set);
            return Ok(first);
        }
        let nodes = self.nodes(id, context)?;
        let first = nodes.first().copied();
        self.give_list(nodes);
        Ok(first)
    }

    fn first_of_step(&mut self, set: &[Node], step: &'a Step) -> Within<Option<Node>> {
        // From one node, the axis has the order of the document; from several, it may not.
        let is_enough = !step.axis.is_reverse() && set.len() == 1;
        let mut first: Option<Node> = None;
        self.search_step(set, step, &mut |_, node| {
            first = Some(first.map_or(node, |first| first.min(node)));
            Ok(is_enough)
        })?;
        Ok(first)
    }
}

/// The node that a path begins at, if it begins at one.
fn single_start(start: Start, context: Context) -> Option<Node> {
    match start {
        Start::Context => Some(context.node),
        Start::Root => Some(Node::ROOT),
        Start::Filter { .. } => None,
    }
}
