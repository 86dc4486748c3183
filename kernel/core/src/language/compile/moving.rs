//! Moves over tree patterns: down to a new node, up to the node before or to one between.
//!
//! A [`Cursor`] is a place on a walk. Moves give the places where a node of the message may be, and say of it what is
//! asked. They are a part of [`super::walking`], which says why they are exact.

use super::losses::{Loss, Reason};
use super::spine::{Compare, NodeKind, PatternNode, Spine, common_test, folded};
use crate::language::query::{self as normal, Condition, NameTest, Operator};
use crate::language::tree::{self, NodeType, Offset, Step};
use std::borrow::Cow;
use std::rc::Rc;

/// Pattern nodes made and predicates read for one query of few disjuncts; beyond, walks say nothing more. Few queries
/// take more than a hundred; nested `.//.[...]` would take exponentially many.
const WORK_MAX: usize = 2048;

/// The same for each alternative that a query of many disjuncts may have.
const WORK_OF_ALTERNATIVE: usize = 16;

/// Alternatives of a query that writes no disjunction: ways in which its axes can be followed.
const WAYS_MAX: usize = 16;

/// Alternatives of any query.
const ALTERNATIVES_MAX: usize = 512;

/// How many alternatives a query of so many disjuncts (operands of `or` and of unions) may have: some for each, so that
/// a list of values is indexed value by value, however long it is; a product of several lists has more, and is not.
pub(super) fn alternatives_max(disjuncts: usize) -> usize {
    ALTERNATIVES_MAX.min(WAYS_MAX.max(4 * disjuncts))
}

/// A walk has too many ends to be followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooMany;

/// A result of a walk.
pub(super) type Walked<T> = Result<T, TooMany>;

/// Nodes of the context node's spine below the place where a walk has left it, the topmost first.
pub(super) type Parked<'t> = Option<Rc<ParkedNode<'t>>>;

#[derive(Debug)]
pub(super) struct ParkedNode<'t> {
    node: PatternNode<'t>,
    below: Parked<'t>,
}

/// A place on a walk.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'t> {
    /// From the document node to the current node.
    pub(super) spine: Spine<'t>,
    /// Key of the node of the spine where the walk left that of the context node.
    pub(super) fork: u32,
    pub(super) parked: Parked<'t>,
}

impl<'t> Cursor<'t> {
    /// At the focus of a spine.
    pub(super) fn at(spine: Spine<'t>) -> Self {
        let fork = spine.node().key;
        Cursor { spine, fork, parked: None }
    }

    /// At the document node of a spine.
    pub(super) fn at_document(spine: &Spine<'t>) -> Self {
        let mut spine = spine.clone();
        let mut parked = None;
        while let Some(before) = spine.before().cloned() {
            parked = Some(Rc::new(ParkedNode { node: spine.node().clone(), below: parked }));
            spine = before;
        }
        let fork = spine.node().key;
        Cursor { spine, fork, parked }
    }

    /// The current node.
    pub(super) fn node(&self) -> &PatternNode<'t> {
        self.spine.node()
    }

    /// The kind of the node before the current one.
    fn kind_before(&self) -> Option<NodeKind> {
        self.spine.before().map(|before| before.node().kind)
    }
}

/// Reads a query as patterns; the files of this room add to it what they know.
pub(super) struct Weakener<'t> {
    /// Whatever the patterns found so far do not say.
    pub(super) losses: Vec<Loss<'t>>,
    /// Alternatives that anything in the query may become.
    pub(super) alternatives_max: usize,
    work_max: usize,
    work: usize,
    keys: u32,
}

impl<'t> Weakener<'t> {
    /// For a query of so many disjuncts.
    pub(super) fn new(disjuncts: usize) -> Self {
        let alternatives_max = alternatives_max(disjuncts);
        let work_max = WORK_MAX.max(WORK_OF_ALTERNATIVE * alternatives_max);
        Weakener { losses: Vec::new(), alternatives_max, work_max, work: 0, keys: 0 }
    }

    /// Notes that something is not said.
    pub(super) fn lose(&mut self, reason: Reason<'t>, offset: Offset) {
        self.losses.push(Loss { reason, offset });
    }

    /// Notes that a construct is not said.
    pub(super) fn lose_construct(&mut self, text: &'static str, offset: Offset) {
        self.lose(Reason::Construct(text), offset);
    }

    /// Counts what a query takes to be read.
    pub(super) fn work(&mut self) -> Walked<()> {
        self.work += 1;
        if self.work > self.work_max { Err(TooMany) } else { Ok(()) }
    }

    fn new_key(&mut self) -> Walked<u32> {
        self.work()?;
        self.keys += 1;
        Ok(self.keys)
    }

    /// A cursor at a new node below.
    pub(super) fn pushed(
        &mut self,
        cursor: &Cursor<'t>,
        kind: NodeKind,
        axis: normal::Axis,
        test: NameTest<'t>,
    ) -> Walked<Cursor<'t>> {
        let node = PatternNode::new(self.new_key()?, kind, axis, test);
        let spine = cursor.spine.clone().pushed(node);
        Ok(Cursor { spine, fork: cursor.fork, parked: cursor.parked.clone() })
    }

    /// A cursor at the node before in the spine; the document node stays where it is.
    fn lifted(&self, cursor: Cursor<'t>) -> Cursor<'t> {
        let Cursor { spine, fork, parked } = cursor;
        let (node, before) = spine.popped();
        let Some(mut spine) = before else {
            return Cursor { spine: Spine::of(node), fork, parked };
        };
        if node.key == fork {
            let fork = spine.node().key;
            return Cursor {
                spine,
                fork,
                parked: Some(Rc::new(ParkedNode { node, below: parked })),
            };
        }
        let is_main = spine.node().kind == NodeKind::Document;
        let conditions = folded(vec![node], is_main);
        if !conditions.is_empty() {
            spine.node_mut().add(conditions);
        }
        Cursor { spine, fork, parked }
    }

    /// A cursor at a new element between its node, then on `axis`, and the node before.
    fn above(&mut self, cursor: &Cursor<'t>, axis: normal::Axis) -> Walked<Cursor<'t>> {
        let key = self.new_key()?;
        let between =
            PatternNode::new(key, NodeKind::Element, normal::Axis::Descendant, NameTest::Any);
        let (mut node, before) = cursor.spine.clone().popped();
        node.axis = axis;
        let spine = match before {
            Some(before) => before.pushed(between),
            None => Spine::of(between),
        };
        let spine = spine.pushed(node);
        Ok(self.lifted(Cursor { spine, fork: cursor.fork, parked: cursor.parked.clone() }))
    }

    /// Where the parent may be.
    pub(super) fn parents(&mut self, cursor: &Cursor<'t>) -> Walked<Vec<Cursor<'t>>> {
        let (kind, axis) = (cursor.node().kind, cursor.node().axis);
        if kind == NodeKind::Document {
            return Ok(Vec::new());
        }
        self.check_lift(kind, axis);
        if axis == normal::Axis::Child {
            return Ok(vec![self.lifted(cursor.clone())]);
        }
        let between = self.above(cursor, normal::Axis::Child)?;
        let is_impossible = cursor.kind_before() == Some(NodeKind::Document)
            && matches!(kind, NodeKind::Attribute | NodeKind::Text);
        if is_impossible {
            return Ok(vec![between]);
        }
        let mut direct = cursor.clone();
        direct.spine.node_mut().axis = normal::Axis::Child;
        Ok(vec![self.lifted(direct), between])
    }

    /// Where an ancestor may be.
    pub(super) fn ancestors(&mut self, cursor: &Cursor<'t>) -> Walked<Vec<Cursor<'t>>> {
        let mut found = Vec::new();
        if !cursor.node().is_container() {
            for owner in self.parents(cursor)? {
                let above = self.ancestors(&owner)?;
                found.push(owner);
                found.extend(above);
            }
            return Ok(found);
        }
        let mut cursor = cursor.clone();
        while cursor.node().kind != NodeKind::Document {
            let (kind, axis) = (cursor.node().kind, cursor.node().axis);
            self.check_lift(kind, axis);
            if axis != normal::Axis::Child {
                found.push(self.above(&cursor, normal::Axis::Descendant)?);
            }
            cursor = self.lifted(cursor);
            found.push(cursor.clone());
        }
        Ok(found)
    }

    /// The cursors' nodes and all nodes below them.
    pub(super) fn expanded(&mut self, cursors: Vec<Cursor<'t>>) -> Walked<Vec<Cursor<'t>>> {
        let mut found = Vec::with_capacity(cursors.len());
        for cursor in cursors {
            let mut below = Vec::new();
            if cursor.node().is_container() {
                for (kind, axis) in [
                    (NodeKind::Element, normal::Axis::Descendant),
                    (NodeKind::Text, normal::Axis::DescendantOrSelf),
                    (NodeKind::Other, normal::Axis::DescendantOrSelf),
                ] {
                    below.push(self.pushed(&cursor, kind, axis, NameTest::Any)?);
                }
            }
            found.push(cursor);
            found.append(&mut below);
        }
        Ok(found)
    }

    /// The cursor if its node may pass the node test of a step, with what that says of it.
    pub(super) fn tested(&mut self, cursor: Cursor<'t>, step: &'t Step) -> Option<Cursor<'t>> {
        let kind = cursor.node().kind;
        let test = match &step.test {
            tree::NodeTest::Name(test) => test,
            tree::NodeTest::Type(NodeType::Node, _) => return Some(cursor),
            tree::NodeTest::Type(NodeType::Text, _) => {
                return (kind == NodeKind::Text).then_some(cursor);
            }
            tree::NodeTest::Type(..) => return (kind == NodeKind::Other).then_some(cursor),
        };
        if kind != NodeKind::Element {
            return None;
        }
        self.narrowed(cursor, &name_test(test), step.offset)
    }

    /// The cursor if its node may have a name that passes a test, with that said of it.
    pub(super) fn narrowed(
        &mut self,
        mut cursor: Cursor<'t>,
        test: &NameTest<'t>,
        offset: Offset,
    ) -> Option<Cursor<'t>> {
        let node = cursor.node();
        let both = common_test(&node.test, test)?;
        if both == node.test {
            return Some(cursor);
        }
        let is_or_self = node.axis == normal::Axis::DescendantOrSelf;
        if node.kind == NodeKind::Element && (node.is_counted || is_or_self) {
            let text = "the name of a node whose position counts among other names";
            self.lose_construct(text, offset);
            return Some(cursor);
        }
        if node.kind == NodeKind::Attribute && !node.compares.is_empty() {
            self.lose_construct("the name of an attribute that was compared", offset);
            return Some(cursor);
        }
        cursor.spine.node_mut().test = both;
        Some(cursor)
    }

    /// A cursor whose node has a value as asked.
    pub(super) fn compared(
        &mut self,
        mut cursor: Cursor<'t>,
        goal: &Compare<'t>,
        offset: Offset,
    ) -> Walked<Cursor<'t>> {
        if cursor.node().kind == NodeKind::Document {
            // Its string-value is that of the root element.
            cursor = self.pushed(&cursor, NodeKind::Element, normal::Axis::Child, NameTest::Any)?;
        }
        let node = cursor.node();
        match node.kind {
            NodeKind::Element => {
                let (operator, constant) = goal.clone();
                cursor.spine.node_mut().add([Condition::Value(operator, constant)]);
                return Ok(cursor);
            }
            NodeKind::Other => return Ok(cursor),
            _ => {}
        }
        let is_one = node.kind == NodeKind::Attribute && matches!(node.test, NameTest::Name { .. });
        let is_call =
            matches!(goal.0, Operator::StartsWith | Operator::Contains | Operator::Matches);
        if !is_one && is_call {
            let is_text = node.kind == NodeKind::Text;
            let nodes = if is_text { "text nodes" } else { "attributes of several names" };
            self.lose(Reason::OfSeveral(goal.0, nodes), offset);
            return Ok(containing(cursor, goal));
        }
        if !is_one && !node.compares.is_empty() {
            self.lose_construct("several comparisons of one node of several", offset);
            return Ok(cursor);
        }
        cursor.spine.node_mut().compares.push(goal.clone());
        Ok(cursor)
    }

    /// Notes the loss of a node that no condition asks for.
    pub(super) fn check_kind(&mut self, kind: NodeKind, offset: Offset) {
        if kind == NodeKind::Other {
            let text = "comments, instructions and namespaces are for the evaluator";
            self.lose_construct(text, offset);
        }
    }

    /// Notes what is lost by going up from a node.
    fn check_lift(&mut self, kind: NodeKind, axis: normal::Axis) {
        self.check_kind(kind, 0);
        if kind == NodeKind::Element && axis == normal::Axis::DescendantOrSelf {
            // Only while `//.[...]` is tried, which then is read otherwise.
            self.lose_construct("goes up from //.", 0);
        }
    }

    /// The spine of the context node in which a walk has come to its end.
    ///
    /// `goal` compares the string-value of the node at the end.
    pub(super) fn finished(
        &mut self,
        mut cursor: Cursor<'t>,
        goal: Option<&Compare<'t>>,
        offset: Offset,
    ) -> Walked<Spine<'t>> {
        if let Some(goal) = goal {
            cursor = self.compared(cursor, goal, offset)?;
        }
        self.check_kind(cursor.node().kind, offset);
        let Cursor { mut spine, fork, parked } = cursor;
        let mut branch = Vec::new();
        while spine.node().key != fork {
            let (node, before) = spine.popped();
            match before {
                Some(before) => {
                    branch.push(node);
                    spine = before;
                }
                None => {
                    spine = Spine::of(node);
                    break;
                }
            }
        }
        if !branch.is_empty() {
            branch.reverse();
            let is_main = spine.node().kind == NodeKind::Document;
            let conditions = folded(branch, is_main);
            if !conditions.is_empty() {
                spine.node_mut().add(conditions);
            }
        }
        let mut below = &parked;
        while let Some(parked) = below {
            spine = spine.pushed(parked.node.clone());
            below = &parked.below;
        }
        Ok(spine)
    }
}

/// A cursor at a text node with some text: so has the value of the element it is in.
fn containing<'t>(mut cursor: Cursor<'t>, goal: &Compare<'t>) -> Cursor<'t> {
    let is_in_element = cursor.kind_before() == Some(NodeKind::Element);
    let is_part = goal.0 != Operator::Matches;
    if cursor.node().kind != NodeKind::Text || !is_in_element || !is_part {
        return cursor;
    }
    let (node, before) = cursor.spine.popped();
    let value = Condition::Value(Operator::Contains, goal.1.clone());
    cursor.spine = match before {
        Some(before) => before.with(value).pushed(node),
        None => Spine::of(node),
    };
    cursor
}

/// A resolved name test in the normal form's terms.
pub(super) fn name_test(test: &tree::NameTest) -> NameTest<'_> {
    if test.prefix.as_deref() == Some("*") {
        return NameTest::AnyNamespace { local: Cow::Borrowed(&test.local) };
    }
    match &test.uri {
        None => NameTest::Any,
        Some(uri) if test.local == "*" => NameTest::AnyIn { uri: Cow::Borrowed(uri) },
        Some(uri) => NameTest::Name { uri: Cow::Borrowed(uri), local: Cow::Borrowed(&test.local) },
    }
}
