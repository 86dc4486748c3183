//! Location paths as walks over tree patterns.
//!
//! A [`Cursor`] is a place on a walk: the spine down to the current node, and where it left the spine of the context
//! node. Every step of a location path moves it; where the pattern leaves open what stands between two nodes (`//`),
//! there is a move for each possibility, so a walk has several ends, of which one must be the one in the message.
//!
//! - `child`, `descendant`, `attribute` add a node below, `self` says more of the node.
//! - `parent` goes back up. If the node was reached by `/`, it is the node before; if by `//`, it is the node before or
//!   a new one between. `ancestor` goes up any number of times. What is left behind becomes a nested path. All of this
//!   is exact: both directions of "a node of the message is selected if and only if one of the patterns is there with
//!   it" hold, for a pattern says of axes exactly what they are.
//! - Siblings weaken to children of the parent (their order is lost), `following` and `preceding` to nodes anywhere,
//!   comments, instructions and namespace nodes to nothing. These lose something, which is noted with its reason: then
//!   the patterns are only necessary.
//!
//! Positions count as the normal form counts: on a step of the axis child (also as `//` abbreviates it), when all
//! predicates before were read exactly and without alternatives. Otherwise they are lost.
//!
//! Source: Olteanu, Meuss, Furche, Bry, "XPath: Looking Forward" (2002), for the idea that reverse axes are forward
//! axes of another pattern.

use super::losses::Reason;
use super::moving::{Cursor, TooMany, Walked, Weakener, name_test};
use super::spine::{Compare, NodeKind, Spine, close_stage, open_stage};
use super::view::{View, is_bare_node};
use crate::language::comparison::Comparison;
use crate::language::query::{self as normal, Condition, NameTest};
use crate::language::tree::{Expr, NodeTest, NodeType, Offset, Predicate, Step};
use crate::language::xpath::Axis;
use crate::language::xpath::ast::Kind;

/// Ends that a walk may have while it goes on, if the query may not have more alternatives.
const CURSORS_MAX: usize = 64;

/// The ends of a walk, and whether `//.` is still to come after them.
type Ends<'t> = (Vec<Cursor<'t>>, bool);

impl<'t> Weakener<'t> {
    /// The ends of a walk, if they are not too many.
    fn few(&self, cursors: Vec<Cursor<'t>>) -> Walked<Vec<Cursor<'t>>> {
        if cursors.len() > CURSORS_MAX.max(self.alternatives_max) {
            Err(TooMany)
        } else {
            Ok(cursors)
        }
    }

    // Node-sets.

    /// The ends of the walks that a node-set is. `is_plain`: only existence is asked of the ends.
    pub(super) fn nodes(
        &mut self,
        expr: View<'t>,
        spine: &Spine<'t>,
        is_plain: bool,
    ) -> Walked<Ends<'t>> {
        match expr {
            View::Path { is_absolute, steps, .. } => {
                let start = if is_absolute {
                    Cursor::at_document(spine)
                } else {
                    Cursor::at(spine.clone())
                };
                self.walk(vec![start], steps, false, is_plain)
            }
            View::PathFrom { start, steps, .. } => {
                let (cursors, is_pending) = self.nodes(start.into(), spine, false)?;
                self.walk(cursors, steps, is_pending, is_plain)
            }
            View::Filter { primary, predicates, .. } => {
                let mut found = Vec::new();
                for cursor in self.all_nodes(primary.into(), spine)? {
                    found.extend(self.filtered(cursor, predicates, None, false)?);
                }
                Ok((self.few(found)?, false))
            }
            View::Binary { operands, .. } => {
                let mut found = Vec::new();
                for operand in operands {
                    found.extend(self.all_nodes(operand.into(), spine)?);
                }
                Ok((self.few(found)?, false))
            }
            other => {
                self.lose_construct("id() is for the evaluator", other.offset());
                let start = Cursor::at_document(spine);
                let axis = normal::Axis::Descendant;
                Ok((vec![self.pushed(&start, NodeKind::Element, axis, NameTest::Any)?], false))
            }
        }
    }

    /// The ends of the walks that a node-set is, `//.` included.
    pub(super) fn all_nodes(
        &mut self,
        expr: View<'t>,
        spine: &Spine<'t>,
    ) -> Walked<Vec<Cursor<'t>>> {
        let (cursors, is_pending) = self.nodes(expr, spine, false)?;
        if is_pending { self.expanded(cursors) } else { Ok(cursors) }
    }

    /// Adds the spines of the context node in which a walk has come to its end.
    ///
    /// `goal` compares the string-value of the node at the end; `is_pending`: `//.` is still to come.
    pub(super) fn finish(
        &mut self,
        cursor: Cursor<'t>,
        goal: Option<&Compare<'t>>,
        offset: Offset,
        is_pending: bool,
        found: &mut Vec<Spine<'t>>,
    ) -> Walked<()> {
        let ends =
            if is_pending && goal.is_some() { self.expanded(vec![cursor])? } else { vec![cursor] };
        for end in ends {
            found.push(self.finished(end, goal, offset)?);
        }
        Ok(())
    }

    /// The spines in which there is a child by name at a position, counted after the step's predicates.
    pub(super) fn nth_child(
        &mut self,
        step: &'t Step,
        position: f64,
        spine: &Spine<'t>,
        offset: Offset,
    ) -> Walked<Vec<Spine<'t>>> {
        let nth = View::Number { value: position, offset: step.offset };
        let mut cursors = Vec::new();
        for moved in self.moves(&Cursor::at(spine.clone()), step, false)? {
            cursors.extend(self.filtered(moved, &step.predicates, Some(nth), true)?);
        }
        let mut found = Vec::new();
        for cursor in self.few(cursors)? {
            self.finish(cursor, None, offset, false, &mut found)?;
        }
        Ok(found)
    }

    // Steps.

    fn walk(
        &mut self,
        mut cursors: Vec<Cursor<'t>>,
        steps: &'t [Step],
        mut is_pending: bool,
        is_plain: bool,
    ) -> Walked<Ends<'t>> {
        for (index, step) in steps.iter().enumerate() {
            if is_bare_node(step, Axis::Itself) {
                continue;
            }
            if is_bare_node(step, Axis::DescendantOrSelf) {
                is_pending = true;
                continue;
            }
            let is_last = is_plain && index + 1 == steps.len();
            let is_countable = step.axis == Axis::Child && matches!(step.test, NodeTest::Name(_));
            let mut found = Vec::with_capacity(cursors.len());
            for cursor in cursors {
                let below = is_pending && cursor.node().is_container();
                if below
                    && is_last
                    && step.axis == Axis::Itself
                    && let Some(kept) = self.or_self(&cursor, step)?
                {
                    found.push(kept);
                    continue;
                }
                for moved in self.moves(&cursor, step, below)? {
                    if step.predicates.is_empty() {
                        found.push(moved);
                    } else {
                        found.extend(self.filtered(moved, &step.predicates, None, is_countable)?);
                    }
                }
            }
            cursors = self.few(found)?;
            is_pending = false;
        }
        Ok((cursors, is_pending))
    }

    /// `//.[@a]` at the end of a path, which is how `//@a` is written canonically.
    fn or_self(&mut self, cursor: &Cursor<'t>, step: &'t Step) -> Walked<Option<Cursor<'t>>> {
        if !matches!(step.test, NodeTest::Type(NodeType::Node, _)) {
            return Ok(None);
        }
        let noted = self.losses.len();
        let axis = normal::Axis::DescendantOrSelf;
        let start = self.pushed(cursor, NodeKind::Element, axis, NameTest::Any)?;
        let mut results = self.filtered(start, &step.predicates, None, false)?;
        let is_exact = self.losses.len() == noted;
        if let (true, 1, Some(result)) = (is_exact, results.len(), results.pop())
            && result.spine.before() == Some(&cursor.spine)
        {
            let stages = result.node().stages.iter();
            let mut only = stages.flat_map(|stage| &stage.conditions).peekable();
            // A text node or comment, too, has a value: only these two ask for an element.
            let is_any = only.peek().is_some();
            if only
                .all(|each| matches!(each.get(), Condition::Attribute { .. } | Condition::Text(_)))
            {
                return Ok(is_any.then_some(result));
            }
        }
        self.losses.truncate(noted);
        Ok(None)
    }

    /// Where a step may lead before its predicates. `is_pending`: it starts at the node or anything below.
    fn moves(
        &mut self,
        cursor: &Cursor<'t>,
        step: &'t Step,
        is_pending: bool,
    ) -> Walked<Vec<Cursor<'t>>> {
        match step.axis {
            Axis::Child => return self.down(cursor, step, is_pending),
            Axis::Descendant => return self.down(cursor, step, true),
            Axis::Attribute => return self.attributes(cursor, step, is_pending),
            _ => {}
        }
        if is_pending {
            let below = self.expanded(vec![cursor.clone()])?;
            if matches!(step.axis, Axis::Itself | Axis::DescendantOrSelf) {
                return Ok(self.all_tested(below, step));
            }
            let mut found = Vec::new();
            for each in below {
                found.extend(self.moves(&each, step, false)?);
            }
            return Ok(found);
        }
        let candidates = match step.axis {
            Axis::Itself => vec![cursor.clone()],
            Axis::DescendantOrSelf => {
                let mut found = self.all_tested(vec![cursor.clone()], step);
                found.extend(self.down(cursor, step, true)?);
                return Ok(found);
            }
            Axis::Parent => self.parents(cursor)?,
            Axis::Ancestor => self.ancestors(cursor)?,
            Axis::AncestorOrSelf => {
                let mut found = vec![cursor.clone()];
                found.extend(self.ancestors(cursor)?);
                found
            }
            _ => return self.elsewhere(cursor, step),
        };
        Ok(self.all_tested(candidates, step))
    }

    fn all_tested(&mut self, cursors: Vec<Cursor<'t>>, step: &'t Step) -> Vec<Cursor<'t>> {
        cursors.into_iter().filter_map(|each| self.tested(each, step)).collect()
    }

    /// The axes that no pattern knows; exact only where they are empty.
    fn elsewhere(&mut self, cursor: &Cursor<'t>, step: &'t Step) -> Walked<Vec<Cursor<'t>>> {
        let (axis, kind) = (step.axis, cursor.node().kind);
        if axis == Axis::Namespace {
            if kind != NodeKind::Element {
                return Ok(Vec::new());
            }
            let hangs_on = normal::Axis::Child;
            return Ok(vec![self.pushed(cursor, NodeKind::Other, hangs_on, NameTest::Any)?]);
        }
        let is_sibling = matches!(axis, Axis::FollowingSibling | Axis::PrecedingSibling);
        if kind == NodeKind::Document || (is_sibling && kind == NodeKind::Attribute) {
            return Ok(Vec::new());
        }
        self.lose(Reason::Axis(axis), step.offset);
        if is_sibling {
            let mut beside = Vec::new();
            for above in self.parents(cursor)? {
                let mut found = self.down(&above, step, false)?;
                if above.node().kind == NodeKind::Document && kind == NodeKind::Element {
                    // The root element is the only one there.
                    found.retain(|each| each.node().kind == NodeKind::Other);
                }
                beside.append(&mut found);
            }
            return Ok(beside);
        }
        // What the walk has seen so far stays known, as a branch of its own.
        let left = self.finished(cursor.clone(), None, step.offset)?;
        self.down(&Cursor::at_document(&left), step, true)
    }

    /// Child nodes, or nodes anywhere below.
    fn down(
        &mut self,
        cursor: &Cursor<'t>,
        step: &'t Step,
        is_deep: bool,
    ) -> Walked<Vec<Cursor<'t>>> {
        if !cursor.node().is_container() {
            return Ok(Vec::new());
        }
        let (axis, leaf_axis) = if is_deep {
            (normal::Axis::Descendant, normal::Axis::DescendantOrSelf)
        } else {
            (normal::Axis::Child, normal::Axis::Child)
        };
        let test = match &step.test {
            NodeTest::Name(test) => {
                return Ok(vec![self.pushed(cursor, NodeKind::Element, axis, name_test(test))?]);
            }
            NodeTest::Type(test, _) => test,
        };
        let mut found = Vec::new();
        if *test == NodeType::Node {
            found.push(self.pushed(cursor, NodeKind::Element, axis, NameTest::Any)?);
        }
        let has_text = is_deep || cursor.node().kind == NodeKind::Element;
        if matches!(test, NodeType::Node | NodeType::Text) && has_text {
            found.push(self.pushed(cursor, NodeKind::Text, leaf_axis, NameTest::Any)?);
        }
        if *test != NodeType::Text {
            found.push(self.pushed(cursor, NodeKind::Other, leaf_axis, NameTest::Any)?);
        }
        Ok(found)
    }

    /// The attributes of an element, or of one there or below.
    fn attributes(
        &mut self,
        cursor: &Cursor<'t>,
        step: &'t Step,
        is_pending: bool,
    ) -> Walked<Vec<Cursor<'t>>> {
        let is_owner = match cursor.node().kind {
            NodeKind::Element => true,
            NodeKind::Document => is_pending,
            _ => false,
        };
        let wanted = match &step.test {
            NodeTest::Name(test) => name_test(test),
            NodeTest::Type(NodeType::Node, _) => NameTest::Any,
            NodeTest::Type(..) => return Ok(Vec::new()),
        };
        if !is_owner {
            return Ok(Vec::new());
        }
        let axis = if is_pending { normal::Axis::DescendantOrSelf } else { normal::Axis::Child };
        Ok(vec![self.pushed(cursor, NodeKind::Attribute, axis, wanted)?])
    }

    // Predicates.

    /// The cursors that one cursor becomes by predicates of its node, and perhaps one more of them.
    ///
    /// `is_countable`: positions count as the normal form counts them.
    fn filtered(
        &mut self,
        cursor: Cursor<'t>,
        predicates: &'t [Predicate],
        one_more: Option<View<'t>>,
        is_countable: bool,
    ) -> Walked<Vec<Cursor<'t>>> {
        let (mut cursors, mut is_exact) = (vec![cursor], true);
        let views = predicates.iter().map(|predicate| View::from(&predicate.expr));
        for condition in views.chain(one_more) {
            let noted = self.losses.len();
            let is_position = condition.kind() == Kind::Number;
            let has_position = is_position || has_position(condition);
            let counts = is_countable && is_exact;
            let mut found = Vec::with_capacity(cursors.len());
            for each in &cursors {
                self.work()?;
                let was_counted = each.node().is_counted;
                let spine = open_stage(&each.spine, has_position);
                let results = if is_position {
                    // A number is compared with the position (2.4).
                    let position = View::position(condition.offset());
                    self.comparison(Comparison::Eq, position, condition, &spine, counts)
                } else {
                    self.holds(condition, &spine, counts)
                };
                drop(spine);
                for result in results {
                    let spine = close_stage(result, was_counted);
                    found.push(Cursor { spine, fork: each.fork, parked: each.parked.clone() });
                }
            }
            if found.len() > self.alternatives_max {
                // What the predicates before say is necessary without this one, too.
                self.lose(Reason::Alternatives(self.alternatives_max), condition.offset());
            } else {
                cursors = found;
            }
            is_exact = is_exact && self.losses.len() == noted && cursors.len() == 1;
        }
        Ok(cursors)
    }
}

/// Whether a predicate asks for the position or the size of its own list.
fn has_position(expr: View<'_>) -> bool {
    let within = |exprs: &[Expr]| exprs.iter().any(|each| has_position(each.into()));
    match expr {
        View::Call { name: "position" | "last", .. } => true,
        View::Call { arguments, .. } => within(arguments),
        View::Binary { operands, .. } => within(operands),
        View::Unary { operand, .. } => has_position(operand.into()),
        View::PathFrom { start, .. } => has_position(start.into()),
        View::Filter { primary, .. } => has_position(primary.into()),
        View::Path { .. } | View::Literal { .. } | View::Number { .. } => false,
    }
}
