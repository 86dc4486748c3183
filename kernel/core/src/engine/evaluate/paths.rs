//! Node-sets: location paths, filters, unions (XPath 1.0, 2 and 3.3).
//!
//! A step goes from a set to a set where positions do not count; where they do, from each of its
//! nodes. Where only the truth of a node-set is asked for, its last step ends at the first node.

use super::axes::Walk;
use super::budget::Within;
use super::document::Node;
use super::evaluator::{Context, Evaluator};
use super::node_test::Test;
use super::set_walk::SetWalk;
use crate::language::xpath::ast::{Axis, Expr, ExprId, List, NodeTest, Start, Step};
use crate::language::xpath::functions::Function;

/// Nodes of a list whose memory is kept.
const LIST_KEPT_MAX: usize = 1 << 14;

/// Asked of each node of a set; true ends the search.
pub(super) type Ask<'f, 'a> = &'f mut dyn FnMut(&mut Evaluator<'a>, Node) -> Within<bool>;

impl<'a> Evaluator<'a> {
    /// An empty list with memory.
    pub(crate) fn take_list(&mut self) -> Vec<Node> {
        self.state.node_lists.pop().unwrap_or_default()
    }

    /// Takes the memory of a list back.
    pub(crate) fn give_list(&mut self, mut list: Vec<Node>) {
        if list.capacity() <= LIST_KEPT_MAX {
            list.clear();
            self.state.node_lists.push(list);
        }
    }

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

    fn steps(&mut self, mut set: Vec<Node>, steps: &'a [Step]) -> Within<Vec<Node>> {
        for step in steps {
            if set.is_empty() {
                break;
            }
            let mut next = self.take_list();
            self.step(&set, step, &mut next)?;
            self.give_list(set);
            set = next;
        }
        Ok(set)
    }

    fn test(&self, step: &Step) -> Test<'a> {
        let known = self.state.known.get(step.test_number as usize).copied().flatten();
        Test::new(&self.arena.text, step, known)
    }

    /// One step from all nodes of a set.
    fn step(&mut self, set: &[Node], step: &'a Step, out: &mut Vec<Node>) -> Within<()> {
        if step.is_positional {
            for &node in set {
                self.positional_step(node, step, out)?;
            }
            put_in_order(out);
            return Ok(());
        }
        self.search_step(set, step, &mut |_, node| {
            out.push(node);
            Ok(false)
        })?;
        // No node comes twice here, but nested context nodes and reverse axes mix up the order.
        if !out.is_sorted() {
            out.sort_unstable();
        }
        Ok(())
    }

    /// Asks each node of a step that does not count positions, once; true if one has said yes.
    fn search_step(&mut self, set: &[Node], step: &'a Step, ask: Ask<'_, 'a>) -> Within<bool> {
        let document = self.document;
        let test = self.test(step);
        let marks = SetWalk::needs_marks(step.axis, set.len()).then(|| {
            let mut marks = self.state.marks.pop().unwrap_or_default();
            marks.begin(document.len());
            marks
        });
        let mut walk = SetWalk::new(&document, step.axis, &test, set, marks);
        let mut is_found = false;
        while let Some(node) = walk.next_passing(&document, &test, &mut self.budget)? {
            if self.all_hold(step.predicates, node)? && ask(self, node)? {
                is_found = true;
                break;
            }
        }
        self.state.marks.extend(walk.marks);
        Ok(is_found)
    }

    fn all_hold(&mut self, predicates: List, node: Node) -> Within<bool> {
        for &predicate in self.arena.list(predicates) {
            self.budget.charge(1)?;
            if !self.boolean(predicate, Context::of(node))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A step whose predicates count positions, from one node; adds to `out`.
    fn positional_step(&mut self, node: Node, step: &'a Step, out: &mut Vec<Node>) -> Within<()> {
        let document = self.document;
        let test = self.test(step);
        if step.axis == Axis::Namespace
            && let Some(element) = document.element(node.position())
        {
            self.budget.charge(document.declarations_met(element))?;
        }
        let mut walk = Walk::new(&document, step.axis, &test, node);
        let mut nodes = self.take_list();
        let mut predicates = self.arena.list(step.predicates);
        if let Some(nth) = step.nth {
            predicates = &predicates[1..];
            self.budget.charge(1)?;
            for count in 1..=nth {
                match walk.next_passing(&document, &test, &mut self.budget)? {
                    Some(found) if count == nth => nodes.push(found),
                    Some(_) => {}
                    None => break,
                }
            }
        } else {
            while let Some(found) = walk.next_passing(&document, &test, &mut self.budget)? {
                nodes.push(found);
            }
        }
        for &predicate in predicates {
            self.filter(&mut nodes, predicate)?;
        }
        out.extend_from_slice(&nodes);
        self.give_list(nodes);
        Ok(())
    }

    /// Keeps the nodes for which a predicate holds; the list is in axis order.
    fn filter(&mut self, nodes: &mut Vec<Node>, predicate: ExprId) -> Within<()> {
        let size = nodes.len() as u32;
        let mut kept = 0;
        for index in 0..nodes.len() {
            self.budget.charge(1)?;
            let node = nodes[index];
            let context = Context { node, position: index as u32 + 1, size };
            if self.boolean(predicate, context)? {
                nodes[kept] = node;
                kept += 1;
            }
        }
        nodes.truncate(kept);
        Ok(())
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

    fn search_list(&mut self, nodes: Vec<Node>, ask: Ask<'_, 'a>) -> Within<bool> {
        let mut is_found = false;
        for &node in &nodes {
            is_found = ask(self, node)?;
            if is_found {
                break;
            }
        }
        self.give_list(nodes);
        Ok(is_found)
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
}

impl<'a> Evaluator<'a> {
    fn first_of_step(&mut self, set: &[Node], step: &'a Step) -> Within<Option<Node>> {
        let is_forward = !matches!(
            step.axis,
            Axis::Ancestor | Axis::AncestorOrSelf | Axis::Preceding | Axis::PrecedingSibling
        );
        // From one node, the axis has the order of the document; from several, it may not.
        let is_enough = is_forward && set.len() == 1;
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

/// Document order, every node once.
fn put_in_order(nodes: &mut Vec<Node>) {
    if !nodes.is_sorted_by(|a, b| a < b) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}
