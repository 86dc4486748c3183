//! Node-sets: location paths, filters, unions (XPath 1.0, 2 and 3.3).
//!
//! A step goes from a set to a set where positions do not count; where they do, from each of its
//! nodes. Where only the truth of a node-set is asked for, its last step ends at the first node.

use super::budget::{Budget, OverBudget, Within};
use super::document::{Document, Node};
use super::evaluator::Evaluator;
use super::path_machine::{Context, PathMachine, PathState, put_in_order};
use crate::language::functions::Function;
use crate::language::xpath::ast::{Expr, ExprId, List, Start};

/// Asked of each node of a set; true ends the search.
type Ask<'f, 'a> = super::path_machine::Ask<'f, Evaluator<'a>, OverBudget>;

impl<'a> PathMachine<'a, OverBudget> for Evaluator<'a> {
    type Start = (Start, Context);

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

    fn start_node(&self, (start, context): Self::Start) -> Option<Node> {
        match start {
            Start::Context => Some(context.node),
            Start::Root => Some(Node::ROOT),
            Start::Filter { .. } => None,
        }
    }

    fn start_nodes(&mut self, (start, context): Self::Start) -> Within<Vec<Node>> {
        let Start::Filter { set, predicates } = start else { return Ok(self.take_list()) };
        let mut nodes = self.nodes(set, context)?;
        for &predicate in self.arena.list(predicates) {
            self.filter(&mut nodes, predicate)?;
        }
        Ok(nodes)
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
                self.path_nodes((start, context), self.arena.steps(steps))
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
                    return self.search_path((start, context), self.arena.steps(steps), ask);
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

    /// The first node of a node-set in document order.
    pub(crate) fn first(&mut self, id: ExprId, context: Context) -> Within<Option<Node>> {
        if !self.is_kept(id)
            && let Expr::Path { start, steps } = self.arena.exprs[id as usize]
        {
            return self.first_of_path((start, context), self.arena.steps(steps));
        }
        let nodes = self.nodes(id, context)?;
        let first = nodes.first().copied();
        self.give_list(nodes);
        Ok(first)
    }
}
