//! Nodes: paths, unions, filters of nodes (XQuery 1.0, 3.2 and 3.3.1).
//!
//! Axes and node tests are those of [`crate::engine::evaluate`]: a step goes from a set to a set where
//! positions do not count; where they do, from each of its nodes.

use super::run::{Evaluator, Focus, Run};
use super::value::{Item, Slot};
use crate::engine::evaluate::axes::Walk;
use crate::engine::evaluate::document::{Main, Node, Sort};
use crate::engine::evaluate::node_test::Test;
use crate::engine::evaluate::set_walk::SetWalk;
use crate::language::xpath::{Axis, List, NodeTest, Step};
use crate::language::xquery::syntax::{Expr, ExprId, Start};

/// Asked of each node of a step; true ends it.
type Ask<'f, 'r, 'w> = &'f mut dyn FnMut(&mut Evaluator<'r, 'w>, Node) -> Run<bool>;

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

    fn steps(&mut self, mut set: Vec<Node>, steps: &'r [Step]) -> Run<Vec<Node>> {
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

    fn test(&self, step: &Step) -> Test<'r> {
        let known = self.state.known.get(step.test_number as usize).copied().flatten();
        Test::new(&self.program.text, step, known)
    }

    /// One step from all nodes of a set.
    fn step(&mut self, set: &[Node], step: &'r Step, out: &mut Vec<Node>) -> Run<()> {
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
    fn search_step(&mut self, set: &[Node], step: &'r Step, ask: Ask<'_, 'r, 'w>) -> Run<bool> {
        if let (&[node], Axis::Child, NodeTest::Name { .. }) = (set, step.axis, step.test) {
            return self.search_children(node, step, ask);
        }
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

    /// As [`Evaluator::search_step`] for the children of one node that have a name: what most steps
    /// are, and the same steps are taken.
    fn search_children(&mut self, node: Node, step: &'r Step, ask: Ask<'_, 'r, 'w>) -> Run<bool> {
        let document = self.document;
        let known = self.state.known.get(step.test_number as usize).copied().flatten();
        let tree = document.tree;
        let (mut at, end) = match document.sort(node) {
            Sort::Main(Main::Document) => (0, tree.len() as u32),
            Sort::Main(Main::Element(element)) => (element + 1, tree.element_end[element as usize]),
            _ => return Ok(false),
        };
        while at < end {
            self.budget.charge(1)?;
            let element = at as usize;
            if Some(tree.name[element]) == known {
                let child = Node::at(document.element_position(at));
                if (step.predicates.is_empty() || self.all_hold(step.predicates, child)?)
                    && ask(self, child)?
                {
                    return Ok(true);
                }
            }
            at = tree.element_end[element];
        }
        Ok(false)
    }

    fn all_hold(&mut self, predicates: List, node: Node) -> Run<bool> {
        for &predicate in self.program.list(predicates) {
            self.budget.charge(1)?;
            let focus = Focus { item: Item::Node(node), position: 1, size: 1 };
            if !self.holds(predicate, focus)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A step whose predicates count positions, from one node; adds to `out`.
    fn positional_step(&mut self, node: Node, step: &'r Step, out: &mut Vec<Node>) -> Run<()> {
        let document = self.document;
        let test = self.test(step);
        let mut walk = Walk::new(&document, step.axis, &test, node);
        let mut nodes = self.take_list();
        let mut predicates = self.program.list(step.predicates);
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
            self.filter_nodes(&mut nodes, predicate)?;
        }
        out.extend_from_slice(&nodes);
        self.give_list(nodes);
        Ok(())
    }

    /// Keeps the nodes for which a predicate holds; the list is in axis order.
    fn filter_nodes(&mut self, nodes: &mut Vec<Node>, predicate: ExprId) -> Run<()> {
        let size = nodes.len() as u32;
        let mut kept = 0;
        for index in 0..nodes.len() {
            self.budget.charge(1)?;
            let node = nodes[index];
            let focus = Focus { item: Item::Node(node), position: index as u32 + 1, size };
            if self.holds(predicate, focus)? {
                nodes[kept] = node;
                kept += 1;
            }
        }
        nodes.truncate(kept);
        Ok(())
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

    /// The first node of a path in document order.
    pub(crate) fn first_node(
        &mut self,
        id: ExprId,
        start: Start,
        steps: List,
    ) -> Run<Option<Node>> {
        let is_forward = self.program.steps(steps).last().is_none_or(|last| {
            !matches!(
                last.axis,
                Axis::Ancestor | Axis::AncestorOrSelf | Axis::Preceding | Axis::PrecedingSibling
            )
        });
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

/// Document order, every node once.
fn put_in_order(nodes: &mut Vec<Node>) {
    if !nodes.is_sorted_by(|a, b| a < b) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}
