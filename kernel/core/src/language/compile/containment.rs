//! Containment: does every message that satisfies one path satisfy another?
//!
//! Sound: if [`Pattern::covers`] says true, whatever matches the other path matches this one. It looks for a mapping of
//! the steps of one path to steps of the other that keeps names, distances, conditions and branches. Bare wildcards are
//! no steps to be mapped but distances: `/a/*//b` is an `a` and a `b` two levels or more below.
//!
//! The test is complete (false means that some message tells the two apart) for linear paths without predicates; for
//! `/`, `//` and nested paths without `*`; and for `/`, `*` and nested paths without `//`. Beyond these it is sound: a
//! comparison is implied by comparisons of the same value, positions by positions in the same list. It speaks of
//! messages, not of a schema: nothing that a DTD excludes is taken into account.
//!
//! Source: Miklau and Suciu, "Containment and equivalence for a fragment of XPath", JACM 2004, for homomorphisms of
//! tree patterns and their limits. Differs: distances instead of wildcards, which makes the test complete for linear
//! paths.

use super::implication::{Facts, can_be_count, is_any_count};
use super::spine::Compare;
use crate::language::comparison::Comparison;
use crate::language::query::{Axis, Condition, Constant, NameTest, Operator, Step};
use rustc_hash::FxHasher;
use std::cell::OnceCell;
use std::hash::Hasher;

/// What must be found below an element: an anchor at a distance, or mere depth.
struct Branch {
    /// Levels down, at least or exactly.
    distance: usize,
    is_exact: bool,
    /// Number of the anchor; none if any element so far down will do.
    anchor: Option<usize>,
}

/// A step that is more than a bare wildcard; the document node has none.
struct Anchor<'q, 't> {
    step: Option<&'q Step<'t>>,
    leaves: Vec<&'q Condition<'t>>,
    branches: Vec<Branch>,
}

/// A step as something that anchors are mapped to.
struct Target<'q, 't> {
    /// None for the document node.
    step: Option<&'q Step<'t>>,
    /// Number of the target it leads on from.
    parent: usize,
    /// 0 for `//.`, else 1: levels below the parent, at least.
    distance: usize,
    is_exact: bool,
    /// Levels that are certainly below.
    below: usize,
    /// Name tests, and what is known of one attribute that passes each.
    by_attribute: Vec<(&'q NameTest<'t>, Facts<'t>)>,
    /// What is known of the element's value.
    value: Facts<'t>,
    /// What is known of one text node each.
    texts: Vec<Facts<'t>>,
    /// False if the conditions of the step exclude each other; nothing is known then.
    can_be: bool,
}

/// A path to be compared with many others, in both roles.
pub(crate) struct Pattern<'q, 't> {
    steps: &'q [Step<'t>],
    marks: Marks,
    /// No two of its conditions are of one value, so that none excludes another.
    is_plain: bool,
    /// Made when a comparison needs them, which few do.
    parts: OnceCell<Parts<'q, 't>>,
}

/// The steps of a path, ready to be compared.
struct Parts<'q, 't> {
    /// The document node, then the steps that are more than bare wildcards, parents first.
    anchors: Vec<Anchor<'q, 't>>,
    /// The document node, then all steps, parents first.
    targets: Vec<Target<'q, 't>>,
    /// False if its conditions exclude each other.
    can_match: bool,
}

/// The names and the strings that a path asks for, two bits each: a path covers none that does not ask for all that
/// it asks for itself. Others may have the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks([u128; 2]);

impl Marks {
    fn add(&mut self, kind: u8, text: &str) {
        let mut hasher = FxHasher::default();
        hasher.write_u8(kind);
        hasher.write(text.as_bytes());
        let hash = hasher.finish();
        self.0[0] |= 1 << (hash >> 57);
        self.0[1] |= 1 << (hash >> 50 & 127);
    }

    fn add_test(&mut self, kind: u8, test: &NameTest<'_>) {
        if let NameTest::Name { local, .. } | NameTest::AnyNamespace { local } = test {
            self.add(kind, local);
        }
    }

    /// All of a path; whether it is clear at a glance that no step has conditions that exclude each other.
    fn add_path(&mut self, steps: &[Step<'_>]) -> bool {
        let mut is_plain = true;
        for step in steps {
            self.add_test(b'/', &step.test);
            is_plain &= is_plain_step(step);
            for condition in step.conditions() {
                match condition {
                    Condition::Attribute { test, compare } => {
                        self.add_test(b'@', test);
                        compare.iter().for_each(|(operator, text)| self.add_equal(*operator, text));
                    }
                    Condition::Text(compare) => {
                        compare.iter().for_each(|(operator, text)| self.add_equal(*operator, text));
                    }
                    Condition::Value(operator, text) => self.add_equal(*operator, text),
                    Condition::Nested(nested) => is_plain &= self.add_path(nested),
                }
            }
        }
        is_plain
    }

    /// Nothing but itself implies that a value is a string.
    fn add_equal(&mut self, operator: Operator, constant: &Constant<'_>) {
        if let (Operator::Compare(Comparison::Eq), Constant::String(text)) = (operator, constant) {
            self.add(b'=', text);
        }
    }

    fn has_all(self, asked: Marks) -> bool {
        asked.0[0] & !self.0[0] == 0 && asked.0[1] & !self.0[1] == 0
    }
}

impl<'q, 't> Pattern<'q, 't> {
    pub(crate) fn new(steps: &'q [Step<'t>]) -> Self {
        let mut marks = Marks::default();
        let is_plain = marks.add_path(steps);
        Pattern { steps, marks, is_plain, parts: OnceCell::new() }
    }

    /// Whether some message may have the path; false only if its conditions exclude each other.
    pub(crate) fn can_match(&self) -> bool {
        self.parts().can_match
    }

    fn parts(&self) -> &Parts<'q, 't> {
        self.parts.get_or_init(|| Parts::of(self.steps))
    }

    /// Whether every message that satisfies another path satisfies this one.
    ///
    /// Cost: most pairs differ in a name or a constant, or else in what one step asks for; else steps of the one times
    /// steps of the other, times the wildcards between two names.
    pub(crate) fn covers(&self, special: &Pattern<'_, 't>) -> bool {
        let is_marked = special.marks.has_all(self.marks);
        if !is_marked && special.is_plain {
            return false;
        }
        if !special.parts().can_match {
            return true;
        }
        is_marked && (self.steps == special.steps || self.parts().cover(special.parts()))
    }
}

impl<'q, 't> Parts<'q, 't> {
    fn of(steps: &'q [Step<'t>]) -> Self {
        let document = Target {
            step: None,
            parent: 0,
            distance: 0,
            is_exact: true,
            below: 0,
            by_attribute: Vec::new(),
            value: Facts::default(),
            texts: Vec::new(),
            can_be: true,
        };
        let (anchors, targets) = (vec![Anchor::of(None)], vec![document]);
        let mut parts = Parts { anchors, targets, can_match: true };
        parts.add(steps);
        for at in (1..parts.targets.len()).rev() {
            let target = &parts.targets[at];
            let (parent, below) = (target.parent, target.distance + target.below);
            let parent = &mut parts.targets[parent];
            parent.below = parent.below.max(below);
        }
        parts.can_match = parts.targets.iter().all(|target| target.can_be);
        parts
    }

    fn add(&mut self, steps: &'q [Step<'t>]) {
        let mut waiting = vec![(steps, 0, 0)];
        while let Some((path, mut anchor, mut target)) = waiting.pop() {
            let (mut distance, mut is_exact) = (0, true);
            for step in path {
                distance += usize::from(step.axis != Axis::DescendantOrSelf);
                is_exact &= step.axis == Axis::Child;
                self.targets.push(Target::of(step, target));
                target = self.targets.len() - 1;
                if step.test == NameTest::Any && step.stages.is_empty() {
                    continue;
                }
                self.anchors.push(Anchor::of(Some(step)));
                let number = self.anchors.len() - 1;
                let branch = Branch { distance, is_exact, anchor: Some(number) };
                self.anchors[anchor].branches.push(branch);
                (anchor, distance, is_exact) = (number, 0, true);
                for condition in step.conditions() {
                    match condition {
                        Condition::Nested(nested) => waiting.push((nested, anchor, target)),
                        leaf => self.anchors[anchor].leaves.push(leaf),
                    }
                }
            }
            if distance > 0 {
                let branch = Branch { distance, is_exact: false, anchor: None };
                self.anchors[anchor].branches.push(branch);
            }
        }
    }

    fn cover(&self, special: &Parts<'_, 't>) -> bool {
        let is_met = |anchor| special.targets.iter().any(|target| target.passes(anchor));
        if !self.anchors.iter().rev().all(is_met) {
            return false;
        }
        let mut found: Vec<Vec<bool>> = vec![Vec::new(); self.anchors.len()];
        // Children stand after their parents: from the last to the first, each is known when asked for.
        for (number, anchor) in self.anchors.iter().enumerate().rev() {
            let mut fits = special.fitting(anchor);
            for branch in &anchor.branches {
                if !fits.contains(&true) {
                    return false;
                }
                special.keep_with_branch(&mut fits, branch, &found);
            }
            if !fits.contains(&true) {
                return false;
            }
            found[number] = fits;
        }
        true
    }

    /// The targets whose elements pass a step, its branches aside.
    fn fitting(&self, anchor: &Anchor<'_, 't>) -> Vec<bool> {
        self.targets.iter().map(|target| target.passes(anchor)).collect()
    }

    /// Drops the targets below which a branch is not found.
    fn keep_with_branch(&self, fits: &mut [bool], branch: &Branch, found: &[Vec<bool>]) {
        let targets = self.targets.iter();
        match branch.anchor {
            None => {
                for (fit, target) in fits.iter_mut().zip(targets) {
                    *fit &= target.below >= branch.distance;
                }
            }
            Some(anchor) if branch.is_exact => {
                let above = self.above_exactly(&found[anchor], branch.distance);
                fits.iter_mut().zip(above).for_each(|(fit, above)| *fit &= above);
            }
            Some(anchor) => {
                let farthest = self.farthest(&found[anchor]);
                for (fit, far) in fits.iter_mut().zip(farthest) {
                    *fit &= far.is_some_and(|far| far >= branch.distance);
                }
            }
        }
    }

    /// The targets that stand exactly so many levels above some of the given ones.
    fn above_exactly(&self, ends: &[bool], distance: usize) -> Vec<bool> {
        let mut here = ends.to_vec();
        for _ in 0..distance {
            let mut above = vec![false; here.len()];
            for (at, target) in self.targets.iter().enumerate().skip(1) {
                if here[at] && target.is_exact {
                    above[target.parent] = true;
                }
            }
            here = above;
        }
        here
    }

    /// For the targets around some given ones, how far below one of those certainly is.
    fn farthest(&self, ends: &[bool]) -> Vec<Option<usize>> {
        let mut farthest: Vec<Option<usize>> =
            ends.iter().map(|&is_end| is_end.then_some(0)).collect();
        // Parents stand before their children: each is reached before it is asked for its own parent.
        for at in (1..self.targets.len()).rev() {
            if let Some(far) = farthest[at] {
                let target = &self.targets[at];
                let parent = &mut farthest[target.parent];
                *parent = (*parent).max(Some(far + target.distance));
            }
        }
        farthest
    }
}

impl<'q, 't> Anchor<'q, 't> {
    fn of(step: Option<&'q Step<'t>>) -> Self {
        Anchor { step, leaves: Vec::new(), branches: Vec::new() }
    }
}

impl<'q, 't> Target<'q, 't> {
    fn of(step: &'q Step<'t>, parent: usize) -> Self {
        let mut named: Vec<(&'q NameTest<'t>, Vec<Compare<'t>>)> = Vec::new();
        let mut others: Vec<(Option<&'q NameTest<'t>>, Option<Compare<'t>>)> = Vec::new();
        let mut values: Vec<Compare<'t>> = Vec::new();
        for condition in step.conditions() {
            match condition {
                Condition::Attribute { test: test @ NameTest::Name { .. }, compare } => {
                    // An element has one attribute of a name: all is said of the same value.
                    let compare = compare.iter().cloned();
                    match named.iter_mut().find(|(known, _)| *known == test) {
                        Some((_, compares)) => compares.extend(compare),
                        None => named.push((test, compare.collect())),
                    }
                }
                Condition::Attribute { test, compare } => {
                    others.push((Some(test), compare.clone()))
                }
                Condition::Text(compare) => others.push((None, compare.clone())),
                Condition::Value(operator, constant) => values.push((*operator, constant.clone())),
                Condition::Nested(_) => {}
            }
        }
        let value = Facts::of(values);
        let mut can_be =
            value.is_some() && step.stages.iter().all(|stage| can_be_count(&stage.positions, 1.0));
        let (mut by_attribute, mut texts) = (Vec::new(), Vec::new());
        for (test, compares) in named {
            match Facts::of(compares) {
                Some(facts) => by_attribute.push((test, facts)),
                None => can_be = false,
            }
        }
        for (test, compare) in others {
            match (test, Facts::of(compare)) {
                (Some(test), Some(facts)) => by_attribute.push((test, facts)),
                (None, Some(facts)) => texts.push(facts),
                (_, None) => can_be = false,
            }
        }
        Target {
            step: Some(step),
            parent,
            distance: usize::from(step.axis != Axis::DescendantOrSelf),
            is_exact: step.axis == Axis::Child,
            below: 0,
            by_attribute,
            value: value.unwrap_or_default(),
            texts,
            can_be,
        }
    }

    /// Whether its element passes a step, branches aside.
    fn passes(&self, anchor: &Anchor<'_, 't>) -> bool {
        match (anchor.step, self.step) {
            (None, None) => true,
            (Some(wanted), Some(known)) => {
                is_implied_name(&wanted.test, &known.test)
                    && anchor.leaves.iter().all(|leaf| self.implies(leaf))
                    && positions_are_implied(wanted, known)
            }
            _ => false,
        }
    }

    fn implies(&self, leaf: &Condition<'t>) -> bool {
        let passes = |facts: &Facts<'t>, compare: &Option<Compare<'t>>| {
            compare.as_ref().is_none_or(|compare| facts.imply(compare))
        };
        match leaf {
            Condition::Attribute { test, compare } => self
                .by_attribute
                .iter()
                .any(|(known, facts)| is_implied_name(test, known) && passes(facts, compare)),
            Condition::Text(compare) => self.texts.iter().any(|facts| passes(facts, compare)),
            Condition::Value(operator, constant) => {
                let wanted = (*operator, constant.clone());
                // The value of an element contains what one of its text nodes contains.
                self.value.imply(&wanted)
                    || (*operator == Operator::Contains
                        && self.texts.iter().any(|facts| facts.imply(&wanted)))
            }
            Condition::Nested(_) => false,
        }
    }
}

/// Whether every name that passes one test passes another.
fn is_implied_name(wanted: &NameTest<'_>, known: &NameTest<'_>) -> bool {
    match (wanted, known) {
        (NameTest::Any, _) => true,
        (NameTest::AnyIn { uri: wanted }, NameTest::Name { uri, .. }) => wanted == uri,
        (NameTest::AnyNamespace { local: wanted }, NameTest::Name { local, .. }) => wanted == local,
        _ => wanted == known,
    }
}

/// Whether an element at the positions of one step is at those of another.
///
/// Positions count in a list: the two lists must be the same, which equal node tests and equal predicates before the
/// position ensure.
fn positions_are_implied(wanted: &Step<'_>, known: &Step<'_>) -> bool {
    let Some(last) = wanted.stages.iter().rposition(|stage| !stage.positions.is_empty()) else {
        return true;
    };
    if wanted.test != known.test
        || known.stages.len() <= last
        || wanted.stages[..last] != known.stages[..last]
    {
        return false;
    }
    let given = &known.stages[last].positions;
    wanted.stages[last].positions.iter().all(|position| position_is_implied(given, *position))
}

fn position_is_implied(known: &[(Comparison, f64)], wanted: (Comparison, f64)) -> bool {
    for &position in known {
        if position == wanted {
            return true;
        }
        if position.0 == Comparison::Eq {
            return wanted.0.holds(position.1, wanted.1);
        }
    }
    if is_any_count(wanted.0, wanted.1, 1.0) {
        return true;
    }
    let as_compare = |(comparison, number): (Comparison, f64)| {
        (Operator::Compare(comparison), crate::language::query::Constant::Number(number))
    };
    let facts = Facts::of(known.iter().copied().map(as_compare));
    facts.is_none_or(|facts| facts.imply(&as_compare(wanted)))
}

/// Conditions of a step up to which each is looked for among the others.
const PLAIN_MAX: usize = 8;

/// Whether it is clear at a glance that a step has no conditions that exclude each other.
fn is_plain_step(step: &Step<'_>) -> bool {
    let can_be = |operator: Operator, constant: &Constant<'_>| match (operator, constant) {
        (Operator::Compare(comparison), Constant::String(_)) => {
            matches!(comparison, Comparison::Eq | Comparison::Ne)
        }
        (_, Constant::String(_)) => true,
        (_, Constant::Number(number)) => number.is_finite(),
        (_, Constant::Double(_) | Constant::Moment(..) | Constant::Texts(..)) => false,
        (_, Constant::Strings(_) | Constant::Numbers(_) | Constant::Doubles(_)) => false,
    };
    let is_sure = |compare: &Option<Compare<'_>>| {
        compare.as_ref().is_none_or(|(operator, constant)| can_be(*operator, constant))
    };
    let all = || step.conditions();
    step.stages.iter().all(|stage| stage.positions.is_empty())
        && all().enumerate().all(|(at, condition)| {
            at < PLAIN_MAX
                && match condition {
                    Condition::Attribute { test, compare } => {
                        is_sure(compare)
                            && !all().take(at).any(|before| {
                                matches!(before, Condition::Attribute { test: known, .. }
                                    if known == test)
                            })
                    }
                    Condition::Text(compare) => is_sure(compare),
                    Condition::Value(operator, constant) => {
                        can_be(*operator, constant)
                            && !all().take(at).any(|before| matches!(before, Condition::Value(..)))
                    }
                    Condition::Nested(_) => true,
                }
        })
}

/// Items up to which those that others make superfluous are looked for; each pair is compared.
const COMPARED_MAX: usize = 64;

/// For each item whether it stays: no other one that stays makes it superfluous. All stay where they are very many.
pub(crate) fn needed<'i, I, P>(
    items: &'i [I],
    pattern: impl Fn(&'i I) -> P,
    is_superfluous_beside: impl Fn(&P, &P) -> bool,
) -> std::vec::IntoIter<bool> {
    let mut is_kept = vec![true; items.len()];
    if (2..=COMPARED_MAX).contains(&items.len()) {
        let patterns: Vec<P> = items.iter().map(pattern).collect();
        for (at, mine) in patterns.iter().enumerate() {
            let mut others = patterns.iter().enumerate().filter(|&(other, _)| other != at);
            is_kept[at] = !others
                .any(|(other, theirs)| is_kept[other] && is_superfluous_beside(mine, theirs));
        }
    }
    is_kept.into_iter()
}
