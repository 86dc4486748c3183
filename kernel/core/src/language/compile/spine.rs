//! Tree patterns in the making: what is known to be there on the way to the node in question.
//!
//! A *spine* is the chain of pattern nodes from the document node down to the node that an expression is read for (the
//! focus). Each pattern node stands for one node of the message; what hangs off the chain is folded into conditions of
//! its nodes. So a spine is a path in normal form that is not yet closed: going down adds a node, going up closes one.
//! Spines share the nodes that they have in common, and nodes the conditions.
//!
//! Nothing here decides what a query means; [`super::weakening`] does.

use crate::language::comparison::Comparison;
use crate::language::query::arrange::arrange;
use crate::language::query::{self as normal, Condition, Constant, NameTest, Operator, Step};
use rustc_hash::FxHasher;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// `op constant`
pub(super) type Compare<'t> = (Operator, Constant<'t>);

/// Kind of node of the message that a pattern node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Document,
    Element,
    Attribute,
    Text,
    /// A comment, a processing instruction or a namespace node: no condition can ask for it.
    Other,
}

/// A condition that many spines share.
#[derive(Clone, Debug)]
pub(super) struct Shared<'t>(Rc<(Condition<'t>, OnceCell<u64>)>);

impl<'t> Shared<'t> {
    pub(super) fn new(condition: Condition<'t>) -> Self {
        Shared(Rc::new((condition, OnceCell::new())))
    }

    pub(super) fn get(&self) -> &Condition<'t> {
        &self.0.0
    }

    /// A number that equal conditions share, computed once.
    fn fingerprint(&self) -> u64 {
        *self.0.1.get_or_init(|| {
            let mut hasher = FxHasher::default();
            hash_condition(&self.0.0, &mut hasher);
            hasher.finish()
        })
    }

    fn into_condition(self) -> Condition<'t> {
        Rc::try_unwrap(self.0).map_or_else(|shared| shared.0.clone(), |(condition, _)| condition)
    }
}

impl PartialEq for Shared<'_> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0) || self.get() == other.get()
    }
}

/// Predicates of a pattern node, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OpenStage<'t> {
    pub(super) positions: Vec<(Comparison, f64)>,
    pub(super) conditions: Vec<Shared<'t>>,
}

impl<'t> OpenStage<'t> {
    fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.conditions.is_empty()
    }

    /// The stage in normal form, but for the order, which `arrange` brings.
    pub(super) fn closed(self) -> normal::Stage<'t> {
        let conditions = self.conditions.into_iter().map(Shared::into_condition).collect();
        normal::Stage { positions: self.positions, conditions }
    }
}

/// A node that must be there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatternNode<'t> {
    /// Tells pattern nodes of one query apart.
    pub(super) key: u32,
    pub(super) kind: NodeKind,
    /// How it hangs on the node before it; for an attribute or text, `//.` says that it belongs to that element or one
    /// below it.
    pub(super) axis: normal::Axis,
    /// Its name, for elements and attributes.
    pub(super) test: NameTest<'t>,
    /// Predicates of an element, conditions of the document node.
    pub(super) stages: Vec<OpenStage<'t>>,
    /// Values that an attribute or text must have.
    pub(super) compares: Vec<Compare<'t>>,
    /// Positions count nodes of exactly this test, so it must stay as it is.
    pub(super) is_counted: bool,
}

impl<'t> PatternNode<'t> {
    pub(super) fn new(key: u32, kind: NodeKind, axis: normal::Axis, test: NameTest<'t>) -> Self {
        let (stages, compares) = (Vec::new(), Vec::new());
        PatternNode { key, kind, axis, test, stages, compares, is_counted: false }
    }

    /// Whether it may have children.
    pub(super) fn is_container(&self) -> bool {
        matches!(self.kind, NodeKind::Document | NodeKind::Element)
    }

    /// Adds conditions after all predicates that it has.
    pub(super) fn add(&mut self, conditions: impl IntoIterator<Item = Condition<'t>>) {
        let mut added = conditions.into_iter().map(Shared::new).peekable();
        if added.peek().is_none() {
            return;
        }
        if self.stages.is_empty() {
            self.stages.push(OpenStage::default());
        }
        if let Some(last) = self.stages.last_mut() {
            last.conditions.extend(added);
        }
    }

    fn into_step(self) -> Step<'t> {
        let kept = self.stages.into_iter().filter(|stage| !stage.is_empty());
        Step { axis: self.axis, test: self.test, stages: kept.map(OpenStage::closed).collect() }
    }
}

/// From the document node to the focus.
#[derive(Clone, Debug)]
pub(super) struct Spine<'t>(Rc<Link<'t>>);

#[derive(Clone, Debug)]
struct Link<'t> {
    node: PatternNode<'t>,
    before: Option<Spine<'t>>,
}

impl PartialEq for Spine<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (mut left, mut right) = (self, other);
        loop {
            if Rc::ptr_eq(&left.0, &right.0) {
                return true;
            }
            if left.0.node != right.0.node {
                return false;
            }
            match (&left.0.before, &right.0.before) {
                (Some(a), Some(b)) => (left, right) = (a, b),
                (a, b) => return a.is_none() && b.is_none(),
            }
        }
    }
}

impl<'t> Spine<'t> {
    /// The document node, with nothing known of it.
    pub(super) fn document() -> Self {
        Spine::of(PatternNode::new(0, NodeKind::Document, normal::Axis::Child, NameTest::Any))
    }

    /// A chain of one node.
    pub(super) fn of(node: PatternNode<'t>) -> Self {
        Spine(Rc::new(Link { node, before: None }))
    }

    /// The focus.
    pub(super) fn node(&self) -> &PatternNode<'t> {
        &self.0.node
    }

    /// The focus, to be changed; other spines keep it as it is.
    pub(super) fn node_mut(&mut self) -> &mut PatternNode<'t> {
        &mut Rc::make_mut(&mut self.0).node
    }

    /// The spine without its focus.
    pub(super) fn before(&self) -> Option<&Spine<'t>> {
        self.0.before.as_ref()
    }

    /// The focus, and the spine before it.
    pub(super) fn popped(self) -> (PatternNode<'t>, Option<Spine<'t>>) {
        match Rc::try_unwrap(self.0) {
            Ok(Link { node, before }) => (node, before),
            Err(shared) => (shared.node.clone(), shared.before.clone()),
        }
    }

    /// The spine with a node below its focus.
    pub(super) fn pushed(self, node: PatternNode<'t>) -> Self {
        Spine(Rc::new(Link { node, before: Some(self) }))
    }

    /// The spine whose focus meets one condition more.
    pub(super) fn with(mut self, condition: Condition<'t>) -> Self {
        self.node_mut().add([condition]);
        self
    }

    /// Its nodes, the focus first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &PatternNode<'t>> {
        std::iter::successors(Some(self), |spine| spine.before()).map(Spine::node)
    }

    /// A number that equal spines share.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for node in self.nodes() {
            node.key.hash(&mut hasher);
            node.test.hash(&mut hasher);
            for stage in &node.stages {
                hash_positions(&stage.positions, &mut hasher);
                for condition in &stage.conditions {
                    condition.fingerprint().hash(&mut hasher);
                }
            }
            node.compares.iter().for_each(|compare| hash_compare(compare, &mut hasher));
        }
        hasher.finish()
    }
}

fn hash_condition(condition: &Condition<'_>, hasher: &mut FxHasher) {
    match condition {
        Condition::Attribute { test, compare } => {
            test.hash(hasher);
            compare.iter().for_each(|compare| hash_compare(compare, hasher));
        }
        Condition::Text(compare) => {
            compare.iter().for_each(|compare| hash_compare(compare, hasher))
        }
        Condition::Value(operator, constant) => hash_constant(*operator, constant, hasher),
        Condition::Nested(steps) => {
            for step in steps {
                (step.axis, &step.test).hash(hasher);
                for stage in &step.stages {
                    hash_positions(&stage.positions, hasher);
                    stage.conditions.iter().for_each(|inner| hash_condition(inner, hasher));
                }
            }
        }
    }
}

fn hash_positions(positions: &[(Comparison, f64)], hasher: &mut FxHasher) {
    positions.iter().for_each(|(_, number)| (number + 0.0).to_bits().hash(hasher));
}

fn hash_compare((operator, constant): &Compare<'_>, hasher: &mut FxHasher) {
    hash_constant(*operator, constant, hasher);
}

fn hash_constant(operator: Operator, constant: &Constant<'_>, hasher: &mut FxHasher) {
    operator.hash(hasher);
    match constant {
        // 0 and -0 are equal.
        Constant::Number(number) => (number + 0.0).to_bits().hash(hasher),
        Constant::Double(number) => (!(number + 0.0).to_bits()).hash(hasher),
        Constant::Moment(kind, bound) => (kind, (bound + 0.0).to_bits()).hash(hasher),
        Constant::String(text) => text.hash(hasher),
        Constant::Strings(values) | Constant::Numbers(values) | Constant::Doubles(values) => {
            values.hash(hasher);
        }
        Constant::Texts(fold, values) => (fold, values).hash(hasher),
    }
}

/// Nodes below one another, the topmost first, as conditions of the node that they hang on; one or more, the last of
/// which may be an attribute, a text node or another. `is_main`: it hangs on the document node.
pub(super) fn folded<'t>(mut nodes: Vec<PatternNode<'t>>, is_main: bool) -> Vec<Condition<'t>> {
    let Some(last) = nodes.pop() else { return Vec::new() };
    let mut ends: Vec<Condition<'t>> = Vec::new();
    let is_below = last.axis == normal::Axis::DescendantOrSelf;
    match last.kind {
        NodeKind::Element => nodes.push(last),
        NodeKind::Attribute => {
            let test = last.test;
            ends.extend(
                compares_or_none(last.compares)
                    .map(|compare| Condition::Attribute { test: test.clone(), compare }),
            );
        }
        NodeKind::Text => ends.extend(compares_or_none(last.compares).map(Condition::Text)),
        NodeKind::Document | NodeKind::Other => {}
    }
    let mut steps: Vec<Step<'t>> = nodes.into_iter().map(PatternNode::into_step).collect();
    if is_below && !ends.is_empty() {
        let stage = normal::Stage { positions: Vec::new(), conditions: ends };
        let (axis, test) = (normal::Axis::DescendantOrSelf, NameTest::Any);
        steps.push(Step { axis, test, stages: vec![stage] });
    } else if let Some(step) = steps.last_mut() {
        match step.stages.last_mut() {
            Some(stage) => stage.conditions.extend(ends),
            None if ends.is_empty() => {}
            None => {
                step.stages.push(normal::Stage { positions: Vec::new(), conditions: ends });
            }
        }
    } else {
        return ends;
    }
    arrange(&mut steps, is_main);
    vec![Condition::Nested(steps)]
}

fn compares_or_none<'t>(compares: Vec<Compare<'t>>) -> impl Iterator<Item = Option<Compare<'t>>> {
    let none = compares.is_empty().then_some(None);
    compares.into_iter().map(Some).chain(none)
}

/// A spine whose focus begins to read a predicate.
///
/// Positions count what the predicates before have left, so a predicate's own conditions are kept apart until
/// [`close_stage`].
pub(super) fn open_stage<'t>(spine: &Spine<'t>, is_counted: bool) -> Spine<'t> {
    let mut spine = spine.clone();
    if spine.node().kind == NodeKind::Element {
        let node = spine.node_mut();
        node.stages.push(OpenStage::default());
        node.is_counted |= is_counted;
    }
    spine
}

/// A spine whose focus has read its predicate.
pub(super) fn close_stage(mut spine: Spine<'_>, was_counted: bool) -> Spine<'_> {
    let node = spine.node();
    let is_open = node.kind == NodeKind::Element
        && node.stages.last().is_some_and(|last| last.positions.is_empty());
    if !is_open {
        return spine;
    }
    let node = spine.node_mut();
    node.is_counted = was_counted;
    if let Some(last) = node.stages.pop() {
        match node.stages.last_mut() {
            // It stays even if it is empty: then it is that of a predicate further out, still open.
            Some(before) => before.conditions.extend(last.conditions),
            None if last.conditions.is_empty() => {}
            None => node.stages.push(last),
        }
    }
    spine
}

/// The names that pass both tests; none if there are none.
pub(super) fn common_test<'t>(left: &NameTest<'t>, right: &NameTest<'t>) -> Option<NameTest<'t>> {
    use NameTest::{Any, AnyIn, AnyNamespace, Name};
    if left == right {
        return Some(left.clone());
    }
    match (left, right) {
        (other, Any) | (Any, other) => Some(other.clone()),
        (Name { uri, .. }, AnyIn { uri: wanted }) => (uri == wanted).then(|| left.clone()),
        (AnyIn { uri: wanted }, Name { uri, .. }) => (uri == wanted).then(|| right.clone()),
        (Name { local, .. }, AnyNamespace { local: wanted }) => {
            (local == wanted).then(|| left.clone())
        }
        (AnyNamespace { local: wanted }, Name { local, .. }) => {
            (local == wanted).then(|| right.clone())
        }
        (AnyIn { uri }, AnyNamespace { local }) | (AnyNamespace { local }, AnyIn { uri }) => {
            Some(Name { uri: uri.clone(), local: local.clone() })
        }
        _ => None,
    }
}
