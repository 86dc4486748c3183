//! Whether a path ends somewhere, its conditions seen to.
//!
//! Sets of elements climb from the ends towards the root: the set at hand holds the elements that the step
//! at hand can be bound to so that everything after it is satisfied. Each element enters a set once, and
//! ancestors are walked only as far as no one has walked before, so a step costs at most the elements of
//! the message.

use super::post_processor::PostProcessor;
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::{Notation, number};
use crate::language::query::anchoring::counts_siblings;
use crate::language::query::ast::{Axis, Condition, Constant, NameTest, Operator, Step};
use crate::language::query::text_of;
use crate::xml::names::{NameId, NameTable, hash_name};
use crate::xml::tree::{Message, NONE};
use std::sync::Arc;

/// Bytes that the anchors of one message's nested paths may occupy before they are forgotten, which costs
/// time and never an answer; those of a path in a message of a million elements take 125 KB.
const ANCHOR_BYTES_MAX: usize = 16 << 20;
/// Bytes of the bookkeeping of one nested path, about.
const ANCHOR_BYTES: usize = 128;
/// Up to so many names are compared by their letters: to look a name up takes as long.
const SPELLED_MAX: usize = 8;

/// Whether the query of a path in normal form selects something in the message.
///
/// Args:
///     steps: The path.
///     message: The message.
///     names: The table that the ids of the message belong to.
///     ends: The elements, without duplicates, at which the names and axes of the path end, conditions
///         ignored.
///     post: Scratch memory, told of the message by [`PostProcessor::begin_message`].
///
/// Cost: at most the size of the query times that of the message; recursion as deep as nested paths are
/// nested.
pub fn holds(
    steps: &[Step<'_>],
    message: Message<'_>,
    names: &NameTable,
    ends: &[u32],
    post: &mut PostProcessor,
) -> bool {
    post.steps += 1 + ends.len() as u64;
    let mut elements = ends.to_vec();
    // In the run of `/` steps at the end of a path each element follows from the end: names and axes above the
    // conditions there are right.
    let tail = steps.iter().rposition(|step| step.axis != Axis::Child).unwrap_or(0);
    let first = steps.iter().position(|step| !step.stages.is_empty()).unwrap_or(steps.len());
    let done = if first < tail { 0 } else { first };
    Climb { message, names, post }.climb_to_first_step(
        &steps[done..],
        tail - done.min(tail),
        &mut elements,
    );
    let begins_at_root = done == 0 && steps.first().is_some_and(|step| step.axis == Axis::Child);
    elements.iter().any(|&element| !begins_at_root || message.tree.parent[element as usize] == NONE)
}

/// What a comparison asks of a value; that there is one if there is no comparison.
pub(crate) fn ask_of<'c>(compare: Option<(Operator, &'c Constant<'_>)>) -> Ask<&'c str> {
    let Some((operator, constant)) = compare else { return Ask::Exists };
    match (operator, constant) {
        (
            Operator::Compare(comparison @ (Comparison::Eq | Comparison::Ne)),
            Constant::String(literal),
        ) => Ask::Text(comparison, literal),
        (Operator::StartsWith, Constant::String(literal)) => Ask::StartsWith(literal),
        (Operator::Contains, Constant::String(literal)) => Ask::Contains(literal),
        (Operator::Compare(comparison), Constant::String(literal)) => {
            Ask::Number(comparison, number(literal.as_bytes()))
        }
        (Operator::Compare(comparison), Constant::Number(constant)) => {
            Ask::Number(comparison, *constant)
        }
        (Operator::Compare(comparison), Constant::Double(constant)) => {
            Ask::Cast(comparison, *constant)
        }
        (Operator::Compare(comparison), Constant::Moment(kind, bound)) => {
            Ask::Moment(Notation::of_moments(*kind), comparison, *bound)
        }
        (Operator::Compare(_), Constant::Strings(values)) => Ask::OneOf(values.text()),
        (Operator::Compare(_), Constant::Numbers(values)) => {
            Ask::NumberOf(Notation::XPath, values.text())
        }
        (Operator::Compare(_), Constant::Doubles(values)) => {
            Ask::NumberOf(Notation::Double, values.text())
        }
        (operator, Constant::Texts(fold, texts)) => match operator.test() {
            Some(test) => Ask::Texts(test, *fold, texts.text()),
            None => {
                unreachable!("texts are tested for being one, beginning with one or having one")
            }
        },
        (Operator::StartsWith | Operator::Contains | Operator::Matches, _) => {
            unreachable!("functions compare strings")
        }
    }
}

/// Which names pass a test.
#[derive(Clone, Copy)]
enum Wanted<'t> {
    Every,
    Nothing,
    One(NameId),
    Spelled(&'t str, &'t str),
    Of(&'t str),
    Local(&'t str),
}

struct Climb<'a> {
    message: Message<'a>,
    names: &'a NameTable,
    post: &'a mut PostProcessor,
}

impl Climb<'_> {
    /// Of elements that the last step may be bound to, makes those that the first step is bound to where
    /// all conditions hold. From step `sure` on the names are known to be right.
    fn climb_to_first_step(&mut self, steps: &[Step<'_>], sure: usize, elements: &mut Vec<u32>) {
        for (at, step) in steps.iter().enumerate().rev() {
            self.filter(step, elements);
            if elements.is_empty() {
                return;
            }
            if at > 0 {
                let test = if at > sure { &NameTest::Any } else { &steps[at - 1].test };
                self.climb(step.axis, test, elements);
            }
        }
    }

    /// Makes of some elements those that they are on an axis of, if they pass a test; each once.
    fn climb(&mut self, axis: Axis, test: &NameTest<'_>, elements: &mut Vec<u32>) {
        let tree = self.message.tree;
        let among = if axis == Axis::Child { elements.len() } else { usize::MAX };
        let wanted = self.wanted(test, among);
        self.post.marks.begin(tree.len());
        self.post.steps += elements.len() as u64;
        for start in std::mem::take(elements) {
            let mut element = match axis {
                Axis::DescendantOrSelf => start,
                Axis::Child | Axis::Descendant => tree.parent[start as usize],
            };
            while element != NONE && self.post.marks.add(element) {
                if self.passes(wanted, tree.name[element as usize]) {
                    elements.push(element);
                }
                if axis == Axis::Child {
                    break;
                }
                element = tree.parent[element as usize];
            }
        }
        self.post.steps += elements.len() as u64;
    }

    /// The elements at which a nested path holds, a bit each.
    fn anchors(&mut self, steps: &[Step<'_>]) -> Arc<[u64]> {
        let key = text_of(steps);
        if let Some(known) = self.post.anchors.get(&*key) {
            return Arc::clone(known);
        }
        let mut bits = vec![0_u64; self.message.tree.len().div_ceil(64)];
        if let (Some(first), Some(last)) = (steps.first(), steps.last()) {
            let mut elements = self.everywhere(&last.test);
            self.climb_to_first_step(steps, steps.len(), &mut elements);
            self.climb(first.axis, &NameTest::Any, &mut elements);
            elements.iter().for_each(|&it| bits[it as usize / 64] |= 1 << (it % 64));
        }
        let post = &mut *self.post;
        post.anchor_bytes += ANCHOR_BYTES + key.len() + size_of_val(&*bits);
        if post.anchor_bytes > ANCHOR_BYTES_MAX {
            post.forget_anchors();
        }
        let anchors: Arc<[u64]> = bits.into();
        post.anchors.insert(key.into(), Arc::clone(&anchors));
        anchors
    }

    /// Every element of the message that passes a test.
    fn everywhere(&mut self, test: &NameTest<'_>) -> Vec<u32> {
        let tree = self.message.tree;
        self.post.index.find_names(tree, self.names);
        match self.wanted(test, usize::MAX) {
            Wanted::One(id) => self.post.index.elements(id).collect(),
            wanted => {
                let passes = |&it: &u32| self.passes(wanted, tree.name[it as usize]);
                (0..tree.len() as u32).filter(passes).collect()
            }
        }
    }

    /// Which names pass a test that about so many elements are put to.
    fn wanted<'t>(&self, test: &'t NameTest<'_>, among: usize) -> Wanted<'t> {
        match test {
            NameTest::Any => Wanted::Every,
            NameTest::Name { uri, local } if among <= SPELLED_MAX => Wanted::Spelled(uri, local),
            NameTest::Name { uri, local } => {
                let id = self.names.find(hash_name(uri, local), uri.as_bytes(), local.as_bytes());
                id.map_or(Wanted::Nothing, Wanted::One)
            }
            NameTest::AnyIn { uri } => Wanted::Of(uri),
            NameTest::AnyNamespace { local } => Wanted::Local(local),
        }
    }

    fn passes(&self, wanted: Wanted<'_>, name: NameId) -> bool {
        match wanted {
            Wanted::Every => true,
            Wanted::Nothing => false,
            Wanted::One(id) => name == id,
            Wanted::Spelled(uri, local) => {
                self.names.local(name) == local && self.names.uri(name) == uri
            }
            Wanted::Of(uri) => self.names.uri(name) == uri,
            Wanted::Local(local) => self.names.local(name) == local,
        }
    }

    /// Keeps the elements at which the predicates of a step hold.
    fn filter(&mut self, step: &Step<'_>, elements: &mut Vec<u32>) {
        if counts_siblings(step) {
            return self.filter_by_siblings(step, elements);
        }
        for stage in &step.stages {
            if !stage.positions.is_empty() {
                let index = &mut self.post.index;
                index.find_names(self.message.tree, self.names);
                index.count_siblings(self.message.tree);
                elements.retain(|&element| {
                    // `//.` is a step to the element itself, which is the first of one.
                    let ordinal = match (step.axis, &step.test) {
                        (Axis::DescendantOrSelf, _) => 1,
                        (_, NameTest::Any) => index.ordinal_of_any(element),
                        _ => index.ordinal_of_name(element),
                    };
                    are_satisfied(&stage.positions, ordinal)
                });
            }
            stage.conditions.iter().for_each(|condition| self.retain(condition, elements));
        }
    }

    /// The same where positions count what other predicates have left: all children of the parents
    /// concerned go through the predicates, parent by parent.
    fn filter_by_siblings(&mut self, step: &Step<'_>, elements: &mut Vec<u32>) {
        let tree = self.message.tree;
        // The names of the elements at hand are right.
        let wanted = match (&step.test, elements.first()) {
            (NameTest::Name { .. }, Some(&one)) => Wanted::One(tree.name[one as usize]),
            (test, _) => self.wanted(test, usize::MAX),
        };
        let mut siblings = std::mem::take(&mut self.post.siblings);
        self.post.marks.begin(tree.len());
        for &element in &*elements {
            let parent = tree.parent[element as usize];
            if parent == NONE {
                // The root has no siblings and is reached once.
                siblings.push(element);
            } else if self.post.marks.add(parent) {
                let mut child = parent + 1;
                while child < tree.element_end[parent as usize] {
                    if self.passes(wanted, tree.name[child as usize]) {
                        siblings.push(child);
                    }
                    child = tree.element_end[child as usize];
                }
            }
        }
        self.post.steps += siblings.len() as u64;
        for stage in &step.stages {
            let (mut group, mut position) = (None, 0);
            siblings.retain(|&element| {
                let parent = Some(tree.parent[element as usize]);
                position = if group == parent { position + 1 } else { 1 };
                group = parent;
                are_satisfied(&stage.positions, position)
            });
            stage.conditions.iter().for_each(|condition| self.retain(condition, &mut siblings));
        }
        let marks = &mut self.post.marks;
        marks.begin(tree.len());
        for element in siblings.drain(..) {
            marks.add(element);
        }
        elements.retain(|&element| marks.contains(element));
        self.post.siblings = siblings;
    }

    /// Keeps the elements that satisfy a condition.
    fn retain(&mut self, condition: &Condition<'_>, elements: &mut Vec<u32>) {
        self.post.steps += elements.len() as u64 + self.post.patterns.take_steps();
        let message = self.message;
        let ask = ask_of(condition.compare()).map(str::as_bytes);
        match condition {
            Condition::Attribute { test, .. } => {
                let wanted = self.wanted(test, elements.len());
                elements.retain(|&element| self.attribute_holds(element, wanted, &ask));
            }
            Condition::Text(_) => {
                elements.retain(|&element| self.post.text_holds(message, element, &ask));
            }
            Condition::Value(..) => {
                elements.retain(|&element| self.post.value_holds(message, element, &ask));
            }
            Condition::Nested(steps) => {
                let anchors = self.anchors(steps);
                elements.retain(|&it| anchors[it as usize / 64] >> (it % 64) & 1 == 1);
            }
        }
    }

    fn attribute_holds(&mut self, element: u32, wanted: Wanted<'_>, ask: &Ask<&[u8]>) -> bool {
        let tree = self.message.tree;
        let mut attributes = tree.attributes(element);
        self.post.steps += attributes.len() as u64;
        let message = self.message;
        attributes.any(|at| {
            self.passes(wanted, tree.attribute_name[at])
                && self.post.ask_holds(ask, message.bytes(tree.attribute_value[at]))
        })
    }
}

fn are_satisfied(positions: &[(Comparison, f64)], position: u32) -> bool {
    positions.iter().all(|&(comparison, at)| comparison.holds(f64::from(position), at))
}
