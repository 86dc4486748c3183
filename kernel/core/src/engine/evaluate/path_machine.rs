//! Location paths, step by step: what evaluators of XPath and of XQuery share (XPath 1.0, 2; XQuery 1.0, 3.2).
//!
//! A step goes from a set to a set where positions do not count; where they do, from each of its nodes.

use super::axes::Walk;
use super::budget::{Budget, OverBudget};
use super::document::{Document, Main, Node, Sort};
use super::node_test::Test;
use super::set_walk::SetWalk;
use crate::engine::marks::Marks;
use crate::language::xpath::{Axis, ExprId, List, NodeTest, Step, TextRange};
use crate::xml::names::NameId;

/// Nodes of a list whose memory is kept.
const LIST_KEPT_MAX: usize = 1 << 14;

/// What a machine works with; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct PathState {
    /// Number of the name of each test in the message's table.
    known: Vec<Option<NameId>>,
    lists: Vec<Vec<Node>>,
    marks: Vec<Marks>,
}

impl PathState {
    /// Looks the names of `tests` node tests up, which lie in `texts`.
    pub(crate) fn begin(
        &mut self,
        document: &Document<'_>,
        tests: u32,
        steps: &[Step],
        texts: &str,
    ) {
        self.known.clear();
        self.known.resize(tests as usize, None);
        for step in steps {
            if let NodeTest::Name { uri, local, hash } = step.test {
                let bytes =
                    |text: TextRange| &texts.as_bytes()[text.start as usize..text.end as usize];
                self.known[step.test_number as usize] =
                    document.names.find(hash, bytes(uri), bytes(local));
            }
        }
    }

    /// An empty list with memory.
    pub(crate) fn take_list(&mut self) -> Vec<Node> {
        self.lists.pop().unwrap_or_default()
    }

    fn known(&self, step: &Step) -> Option<NameId> {
        self.known.get(step.test_number as usize).copied().flatten()
    }
}

/// Where an expression is evaluated (XPath 1.0, 1); position and size count from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) node: Node,
    pub(crate) position: u32,
    pub(crate) size: u32,
}

impl Context {
    /// A context for what does not ask for position and size.
    pub(crate) fn of(node: Node) -> Self {
        Context { node, position: 1, size: 1 }
    }
}

/// Asked of each node of a set; true ends the search.
pub(crate) type Ask<'f, M, E> = &'f mut dyn FnMut(&mut M, Node) -> Result<bool, E>;

/// An evaluator whose expressions have location paths; `'a` is the life of message and expression, `E` says why an
/// evaluation ends early.
pub(crate) trait PathMachine<'a, E: From<OverBudget>>: Sized {
    /// Where a path begins.
    type Start: Copy;

    /// The message.
    fn document(&self) -> Document<'a>;

    /// The text that node tests lie in.
    fn texts(&self) -> &'a str;

    /// The expressions of a list.
    fn expressions(&self, list: List) -> &'a [ExprId];

    fn path_state(&mut self) -> &mut PathState;

    fn budget(&mut self) -> &mut Budget;

    /// The node that a path begins at, if it begins at one and that is known without looking.
    fn start_node(&self, start: Self::Start) -> Option<Node>;

    /// The nodes that any other path begins at, in document order.
    fn start_nodes(&mut self, start: Self::Start) -> Result<Vec<Node>, E>;

    /// Whether a predicate holds.
    fn predicate_holds(&mut self, predicate: ExprId, context: Context) -> Result<bool, E>;

    fn charge(&mut self, steps: u64) -> Result<(), OverBudget> {
        self.budget().charge(steps)
    }

    /// An empty list with memory.
    fn take_list(&mut self) -> Vec<Node> {
        self.path_state().take_list()
    }

    /// Takes the memory of a list back.
    fn give_list(&mut self, mut list: Vec<Node>) {
        if list.capacity() <= LIST_KEPT_MAX {
            list.clear();
            self.path_state().lists.push(list);
        }
    }

    fn test(&mut self, step: &Step) -> Test<'a> {
        let known = self.path_state().known(step);
        Test::new(self.texts(), step, known)
    }

    fn start(&mut self, start: Self::Start) -> Result<Vec<Node>, E> {
        let Some(node) = self.start_node(start) else { return self.start_nodes(start) };
        let mut set = self.take_list();
        set.push(node);
        Ok(set)
    }

    /// The nodes of a path, in document order.
    fn path_nodes(&mut self, start: Self::Start, steps: &'a [Step]) -> Result<Vec<Node>, E> {
        let set = self.start(start)?;
        self.steps(set, steps)
    }

    /// Asks the nodes of a path, in no particular order, until one says yes; its last step ends there.
    fn search_path(
        &mut self,
        start: Self::Start,
        steps: &'a [Step],
        ask: Ask<'_, Self, E>,
    ) -> Result<bool, E> {
        let Some((last, before)) = steps.split_last().filter(|(last, _)| !last.is_positional)
        else {
            let nodes = self.path_nodes(start, steps)?;
            return self.search_list(nodes, ask);
        };
        if let (Some(node), []) = (self.start_node(start), before) {
            return self.search_from_one(node, last, ask);
        }
        let set = self.path_nodes(start, before)?;
        let is_found = self.search_step(&set, last, ask)?;
        self.give_list(set);
        Ok(is_found)
    }

    /// One step from one node, without a list.
    fn search_from_one(
        &mut self,
        node: Node,
        step: &'a Step,
        ask: Ask<'_, Self, E>,
    ) -> Result<bool, E> {
        let is_itself =
            step.axis == Axis::Itself && step.test == NodeTest::Node && step.predicates.is_empty();
        if is_itself {
            self.charge(1)?;
            return ask(self, node);
        }
        self.search_step(&[node], step, ask)
    }

    /// The first node of a path in document order.
    fn first_of_path(&mut self, start: Self::Start, steps: &'a [Step]) -> Result<Option<Node>, E> {
        let Some((last, before)) = steps.split_last().filter(|(last, _)| !last.is_positional)
        else {
            let nodes = self.path_nodes(start, steps)?;
            let first = nodes.first().copied();
            self.give_list(nodes);
            return Ok(first);
        };
        if let (Some(node), []) = (self.start_node(start), before) {
            return self.first_of_step(&[node], last);
        }
        let set = self.path_nodes(start, before)?;
        let first = self.first_of_step(&set, last)?;
        self.give_list(set);
        Ok(first)
    }

    fn first_of_step(&mut self, set: &[Node], step: &'a Step) -> Result<Option<Node>, E> {
        // From one node, the axis has the order of the document; from several, it may not.
        let is_enough = !step.axis.is_reverse() && set.len() == 1;
        let mut first: Option<Node> = None;
        self.search_step(set, step, &mut |_, node| {
            first = Some(first.map_or(node, |first| first.min(node)));
            Ok(is_enough)
        })?;
        Ok(first)
    }

    /// All steps, from a set.
    fn steps(&mut self, mut set: Vec<Node>, steps: &'a [Step]) -> Result<Vec<Node>, E> {
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

    /// One step from all nodes of a set.
    fn step(&mut self, set: &[Node], step: &Step, out: &mut Vec<Node>) -> Result<(), E> {
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
    fn search_step(&mut self, set: &[Node], step: &Step, ask: Ask<'_, Self, E>) -> Result<bool, E> {
        if let (&[node], Axis::Child, NodeTest::Name { .. }) = (set, step.axis, step.test) {
            return self.search_children(node, step, ask);
        }
        let document = self.document();
        let test = self.test(step);
        let marks = SetWalk::needs_marks(step.axis, set.len()).then(|| {
            let mut marks = self.path_state().marks.pop().unwrap_or_default();
            marks.begin(document.len() as usize);
            marks
        });
        let mut walk = SetWalk::new(&document, step.axis, &test, set, marks);
        let mut is_found = false;
        while let Some(node) = walk.next_passing(&document, &test, self.budget())? {
            if self.all_hold(step.predicates, node)? && ask(self, node)? {
                is_found = true;
                break;
            }
        }
        self.path_state().marks.extend(walk.marks);
        Ok(is_found)
    }

    /// As [`PathMachine::search_step`] for the children of one node that have a name: what most steps
    /// are, and the same steps are taken.
    fn search_children(
        &mut self,
        node: Node,
        step: &Step,
        ask: Ask<'_, Self, E>,
    ) -> Result<bool, E> {
        let document = self.document();
        let known = self.path_state().known(step);
        let tree = document.tree;
        let (mut at, end) = match document.sort(node) {
            Sort::Main(Main::Document) => (0, tree.len() as u32),
            Sort::Main(Main::Element(element)) => (element + 1, tree.element_end[element as usize]),
            _ => return Ok(false),
        };
        while at < end {
            self.charge(1)?;
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

    fn all_hold(&mut self, predicates: List, node: Node) -> Result<bool, E> {
        for &predicate in self.expressions(predicates) {
            self.charge(1)?;
            if !self.predicate_holds(predicate, Context::of(node))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A step whose predicates count positions, from one node; adds to `out`.
    fn positional_step(&mut self, node: Node, step: &Step, out: &mut Vec<Node>) -> Result<(), E> {
        let document = self.document();
        let test = self.test(step);
        if step.axis == Axis::Namespace
            && let Some(element) = document.element(node.position())
        {
            self.charge(document.declarations_met(element))?;
        }
        let mut walk = Walk::new(&document, step.axis, &test, node);
        let mut nodes = self.take_list();
        let mut predicates = self.expressions(step.predicates);
        if let Some(nth) = step.nth {
            predicates = &predicates[1..];
            self.charge(1)?;
            for count in 1..=nth {
                match walk.next_passing(&document, &test, self.budget())? {
                    Some(found) if count == nth => nodes.push(found),
                    Some(_) => {}
                    None => break,
                }
            }
        } else {
            while let Some(found) = walk.next_passing(&document, &test, self.budget())? {
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
    fn filter(&mut self, nodes: &mut Vec<Node>, predicate: ExprId) -> Result<(), E> {
        let size = nodes.len() as u32;
        let mut kept = 0;
        for index in 0..nodes.len() {
            self.charge(1)?;
            let node = nodes[index];
            let context = Context { node, position: index as u32 + 1, size };
            if self.predicate_holds(predicate, context)? {
                nodes[kept] = node;
                kept += 1;
            }
        }
        nodes.truncate(kept);
        Ok(())
    }

    /// Asks the nodes of a list, whose memory is taken back.
    fn search_list(&mut self, nodes: Vec<Node>, ask: Ask<'_, Self, E>) -> Result<bool, E> {
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
}

/// Document order, every node once.
pub(crate) fn put_in_order(nodes: &mut Vec<Node>) {
    if !nodes.is_sorted_by(|a, b| a < b) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}
