//! Generalisations of a path: functions to a path that covers it.
//!
//! Whatever message has the path has what is made of it, and mostly more messages do. A step whose conditions change
//! loses its positions: they count what is left by the conditions before them.
//!
//! ```
//! use pathcast_core::language::paths::Path;
//! let path = Path::read("/m/quote[@sym='IBM'][bid[.>3]]/time")?;
//! let texts = |paths: Vec<Path>| paths.iter().map(|path| path.text().to_owned()).collect::<Vec<_>>();
//! assert_eq!(texts(path.linear_paths()), ["/m/quote[@sym='IBM']/bid[.>3]", "/m/quote[@sym='IBM']/time"]);
//! assert_eq!(path.last_name().text(), "//bid");
//! # Ok::<(), pathcast_core::language::query::Declined>(())
//! ```
//!
//! Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (content generalisation: "replacing some path expressions
//! with more general ones"), which gives examples of methods and no list. Differs: a range and a prefix of values, and
//! nothing that is not proved by containment.

use super::Path;
use crate::language::comparison::Comparison;
use crate::language::compile::{Pattern, needed};
use crate::language::numbers::number;
use crate::language::query::arrange::{add_predicate, arrange};
use crate::language::query::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use crate::language::types::Type;
use std::borrow::Cow;
use std::collections::BTreeSet;

type Steps = Vec<Step<'static>>;
type Leaf = Condition<'static>;

impl Path {
    /// The linear paths that it asks for, each with all conditions on its steps: the main path and every nested path,
    /// from the document on. That they meet in one element is given up. Where a nested path stood before a position,
    /// the position goes, for it counts what the nested path has left.
    ///
    /// They are sorted by canonical text, without those that another one of them implies; all where they are very many.
    ///
    /// Cost: linear in the text it gives, and a comparison for each two of the paths.
    pub fn linear_paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        linear_after(&[], self.steps(), &mut found);
        let found = found.into_iter().map(Path::arranged);
        let mut paths: Vec<Path> = found.collect::<BTreeSet<_>>().into_iter().collect();
        let mut kept = needed(&paths, Path::pattern, Pattern::covers);
        paths.retain(|_| kept.next() == Some(true));
        paths
    }

    /// The main path without predicates.
    pub fn structure(&self) -> Path {
        let steps = self.steps().iter().filter(|step| !is_or_self(step));
        Path::arranged(steps.map(bare).collect())
    }

    /// The path with existence in place of every comparison.
    pub fn existing(&self) -> Path {
        self.with_leaves(&existing)
    }

    /// The path with the beginning of every string that is compared for equality: so many characters, at least one.
    ///
    /// Where `starts-with` cannot stand (text nodes, attributes of any name), existence remains; other comparisons stay
    /// as they are.
    pub fn begun(&self, length: usize) -> Path {
        self.with_leaves(&|leaf| begun(leaf, length))
    }

    /// The first steps of the main path, at least one.
    pub fn cut(&self, length: usize) -> Path {
        Path::arranged(self.steps()[..length.clamp(1, self.steps().len())].to_vec())
    }

    /// The path with any name in place of that of the step before the last; its positions, which count names, go.
    pub fn any_parent(&self) -> Path {
        let mut steps = self.steps().to_vec();
        if let Some(at) = steps.len().checked_sub(2) {
            steps[at] = any_name(&steps[at]);
        }
        Path::arranged(steps)
    }

    /// The path from its last two steps on, wherever they are.
    pub fn without_parents(&self) -> Path {
        let mut steps = self.steps()[self.steps().len().saturating_sub(2)..].to_vec();
        anywhere(&mut steps[0]);
        Path::arranged(steps)
    }

    /// The last step of the main path that has a name, anywhere, without predicates.
    pub fn last_name(&self) -> Path {
        let named = self.steps().iter().rfind(|step| step.test != NameTest::Any);
        let last = named.map(|step| Step { axis: Axis::Descendant, ..bare(step) });
        Path::arranged(last.into_iter().collect())
    }

    /// The comparison of a linear path that has one, at its end.
    fn ending(&self) -> Option<(Operator, &Constant<'static>)> {
        let (last, others) = self.steps().split_last()?;
        let [Stage { positions, conditions }] = &last.stages[..] else { return None };
        let ([], [leaf]) = (&positions[..], &conditions[..]) else { return None };
        let is_bare = others.iter().all(|step| step.stages.is_empty());
        leaf.compare().filter(|_| is_bare)
    }

    /// A linear path that compares one number, with bounds at powers of two; others as they are.
    pub fn in_powers(&self) -> Path {
        let bounds = self.ending().and_then(|(operator, constant)| match constant {
            // A power of two is hardly ever a date.
            Constant::Moment(..) => None,
            constant => bounds(operator, constant),
        });
        let ranged = bounds.and_then(|(low, high)| self.ranged(-power(-low), power(high)));
        ranged.unwrap_or_else(|| self.clone())
    }

    /// How much it asks for: more for what fewer messages have, by rule of thumb.
    pub fn weight(&self) -> u32 {
        weight(self.steps())
    }

    /// The constants that it compares with, in order; of comparisons of one kind, what more values pass is lower.
    pub fn widths(&self) -> Vec<(f64, String)> {
        let mut found = Vec::new();
        widths(self.steps(), &mut found);
        found
    }

    /// A path between bounds, in place of the comparison of a linear path.
    fn ranged(&self, low: f64, high: f64) -> Option<Path> {
        let made = number_like(self.ending()?.1);
        let ends: &[_] = if low == high {
            &[(Comparison::Eq, low)]
        } else {
            &[(Comparison::Ge, low), (Comparison::Le, high)]
        };
        let finite = ends.iter().filter(|(_, bound)| bound.is_finite());
        // Minus zero is written like zero.
        let compare = |&(comparison, bound)| (Operator::Compare(comparison), made(bound + 0.0));
        let ends: Vec<_> = finite.map(compare).collect();
        if ends.is_empty() { Some(self.existing()) } else { self.compared(&ends) }
    }

    /// A linear path with other comparisons in place of the one at its end.
    fn compared(&self, compares: &[(Operator, Constant<'static>)]) -> Option<Path> {
        let mut steps = self.steps().to_vec();
        let stage = steps.last_mut()?.stages.last_mut()?;
        let leaf = stage.conditions.pop()?;
        for (operator, constant) in compares.iter().cloned() {
            stage.conditions.push(with_compare(&leaf, operator, constant)?);
        }
        Some(Path::arranged(steps))
    }

    fn with_leaves(&self, change: &dyn Fn(&Leaf) -> Option<Leaf>) -> Path {
        Path::arranged(changed(self.steps(), change))
    }
}

/// The linear paths of some steps that follow others.
fn linear_after(before: &[Step<'static>], steps: &[Step<'static>], found: &mut Vec<Steps>) {
    let mut path = before.to_vec();
    for step in steps {
        let (linear, nested) = without_nested(step);
        if !linear.stages.is_empty() || !is_or_self(&linear) {
            path.push(linear);
        }
        for each in nested {
            linear_after(&path, each, found);
        }
    }
    found.push(path);
}

/// A step without its nested paths, and these.
fn without_nested<'s>(step: &'s Step<'static>) -> (Step<'static>, Vec<&'s [Step<'static>]>) {
    let mut nested: Vec<&[Step<'static>]> = Vec::new();
    let mut stages: Vec<Stage<'static>> = Vec::new();
    for part in &step.stages {
        // A position counts what the conditions before it have left.
        let positions = if nested.is_empty() { part.positions.clone() } else { Vec::new() };
        let mut others = Vec::new();
        for condition in &part.conditions {
            match condition {
                Condition::Nested(steps) => nested.push(steps),
                leaf => others.push(leaf.clone()),
            }
        }
        add_predicate(&mut stages, positions, others);
    }
    (Step { stages, ..bare(step) }, nested)
}

/// The steps with every comparison changed, or dropped.
fn changed(steps: &[Step<'static>], change: &dyn Fn(&Leaf) -> Option<Leaf>) -> Steps {
    let mut found = Steps::with_capacity(steps.len());
    for step in steps {
        let made: Vec<Leaf> =
            step.conditions().filter_map(|each| changed_condition(each, change)).collect();
        if made.iter().eq(step.conditions()) {
            found.push(step.clone());
        } else if !made.is_empty() || !is_or_self(step) {
            found.push(with_conditions(step, made));
        }
    }
    found
}

fn changed_condition(condition: &Leaf, change: &dyn Fn(&Leaf) -> Option<Leaf>) -> Option<Leaf> {
    let Condition::Nested(steps) = condition else { return change(condition) };
    let mut steps = changed(steps, change);
    if steps.is_empty() {
        return None;
    }
    arrange(&mut steps, false);
    Some(Condition::Nested(steps))
}

fn existing(leaf: &Leaf) -> Option<Leaf> {
    match leaf {
        Condition::Attribute { test, .. } => {
            Some(Condition::Attribute { test: test.clone(), compare: None })
        }
        Condition::Text(_) => Some(Condition::Text(None)),
        Condition::Value(..) | Condition::Nested(_) => None,
    }
}

fn begun(leaf: &Leaf, length: usize) -> Option<Leaf> {
    let Some((Operator::Compare(Comparison::Eq) | Operator::StartsWith, Constant::String(text))) =
        leaf.compare()
    else {
        return Some(leaf.clone());
    };
    let end = text.char_indices().nth(length.max(1)).map(|(end, _)| end);
    match (leaf, end) {
        _ if text.is_empty() => existing(leaf),
        (Condition::Attribute { test: NameTest::Name { .. }, .. } | Condition::Value(..), end) => {
            let Some(end) = end else { return Some(leaf.clone()) };
            let beginning = Constant::String(Cow::Owned(text[..end].to_owned()));
            with_compare(leaf, Operator::StartsWith, beginning)
        }
        _ => existing(leaf),
    }
}

/// A condition on a value with another comparison.
fn with_compare(leaf: &Leaf, operator: Operator, constant: Constant<'static>) -> Option<Leaf> {
    let compare = Some((operator, constant.clone()));
    match leaf {
        Condition::Attribute { test, .. } => {
            Some(Condition::Attribute { test: test.clone(), compare })
        }
        Condition::Text(_) => Some(Condition::Text(compare)),
        Condition::Value(..) => Some(Condition::Value(operator, constant)),
        Condition::Nested(_) => None,
    }
}

/// How a number is compared with a value that is read as for another constant.
fn number_like(constant: &Constant<'_>) -> fn(f64) -> Constant<'static> {
    match constant {
        Constant::Double(_) | Constant::Doubles(_) => Constant::Double,
        Constant::Moment(kind, _) => match kind {
            Type::Date => |bound| Constant::Moment(Type::Date, bound),
            Type::Time => |bound| Constant::Moment(Type::Time, bound),
            Type::DayTimeDuration => |bound| Constant::Moment(Type::DayTimeDuration, bound),
            Type::YearMonthDuration => |bound| Constant::Moment(Type::YearMonthDuration, bound),
            _ => |bound| Constant::Moment(Type::DateTime, bound),
        },
        Constant::Number(_)
        | Constant::Numbers(_)
        | Constant::String(_)
        | Constant::Strings(_)
        | Constant::Texts(..) => Constant::Number,
    }
}

/// Numbers that a value lies between, bounds included, if it compares as asked.
fn bounds(operator: Operator, constant: &Constant<'_>) -> Option<(f64, f64)> {
    let value = match constant {
        Constant::Number(value) | Constant::Double(value) | Constant::Moment(_, value) => *value,
        Constant::String(text) => number(text.as_bytes()),
        Constant::Numbers(values) | Constant::Doubles(values) => return Some(values.range()),
        Constant::Strings(_) | Constant::Texts(..) => return None,
    };
    let Operator::Compare(comparison) = operator else { return None };
    match comparison {
        _ if !value.is_finite() => None,
        Comparison::Eq => Some((value, value)),
        Comparison::Gt | Comparison::Ge => Some((value, f64::INFINITY)),
        Comparison::Lt | Comparison::Le => Some((f64::NEG_INFINITY, value)),
        Comparison::Ne => None,
    }
}

/// The least power of two, or zero, that is no less than a bound.
fn power(bound: f64) -> f64 {
    if bound == 0.0 || bound.is_infinite() {
        return bound;
    }
    let exponent = bound.abs().log2();
    let power = exponent.ceil().exp2();
    if bound < 0.0 {
        let power = exponent.floor().exp2();
        // The logarithm of a number next to a power is rounded.
        return if -power < bound { -power / 2.0 } else { -power };
    }
    if power < bound { power * 2.0 } else { power }
}

fn weight(steps: &[Step<'static>]) -> u32 {
    let of_condition = |condition: &Leaf| {
        let name = match condition {
            Condition::Nested(steps) => return weight(steps),
            Condition::Attribute { test, .. } => name_weight(test),
            Condition::Text(_) | Condition::Value(..) => 0,
        };
        // What a comparison weighs besides existence; two orders make a range, which an equality is in.
        1 + name
            + match condition.compare() {
                None => 0,
                Some((Operator::Compare(Comparison::Eq), _)) => 5,
                Some((Operator::StartsWith, _)) => 3,
                Some(_) => 2,
            }
    };
    let of_step = |step: &Step<'static>| {
        let positions: usize = step.stages.iter().map(|stage| stage.positions.len()).sum();
        let conditions: u32 = step.conditions().map(of_condition).sum();
        1 + name_weight(&step.test)
            + u32::from(step.axis == Axis::Child)
            + 3 * positions as u32
            + conditions
    };
    steps.iter().map(of_step).sum()
}

fn name_weight(test: &NameTest<'_>) -> u32 {
    match test {
        NameTest::Any => 0,
        NameTest::Name { .. } => 2,
        NameTest::AnyIn { .. } | NameTest::AnyNamespace { .. } => 1,
    }
}

fn widths(steps: &[Step<'static>], found: &mut Vec<(f64, String)>) {
    for condition in steps.iter().flat_map(Step::conditions) {
        if let Condition::Nested(steps) = condition {
            widths(steps, found);
        }
        let Some((operator, constant)) = condition.compare() else { continue };
        if let Some(values) = constant.values() {
            found.push((-(values.iter().count() as f64), values.text().to_owned()));
            continue;
        }
        found.push(match (constant, operator) {
            (
                Constant::Strings(_)
                | Constant::Numbers(_)
                | Constant::Doubles(_)
                | Constant::Texts(..),
                _,
            ) => continue,
            (Constant::String(text), _) => (text.chars().count() as f64, text.clone().into_owned()),
            (
                Constant::Number(bound) | Constant::Double(bound) | Constant::Moment(_, bound),
                Operator::Compare(comparison),
            ) => {
                let is_from_above = matches!(comparison, Comparison::Lt | Comparison::Le);
                let is_strict = matches!(comparison, Comparison::Lt | Comparison::Gt);
                let kind = if is_strict { "strict" } else { "" };
                (if is_from_above { -bound } else { *bound }, kind.to_owned())
            }
            (Constant::Number(bound) | Constant::Double(bound) | Constant::Moment(_, bound), _) => {
                (*bound, String::new())
            }
        });
    }
}

fn bare(step: &Step<'static>) -> Step<'static> {
    Step { axis: step.axis, test: step.test.clone(), stages: Vec::new() }
}

/// A step with some conditions and nothing else.
pub(super) fn with_conditions(step: &Step<'static>, conditions: Vec<Leaf>) -> Step<'static> {
    let mut found = bare(step);
    if !conditions.is_empty() {
        found.stages.push(Stage { positions: Vec::new(), conditions });
    }
    found
}

/// `*` in place of a step's name; its positions, which count names, are dropped.
fn any_name(step: &Step<'static>) -> Step<'static> {
    let has_positions = step.stages.iter().any(|stage| !stage.positions.is_empty());
    let kept = if has_positions {
        with_conditions(step, step.conditions().cloned().collect())
    } else {
        step.clone()
    };
    Step { test: NameTest::Any, ..kept }
}

/// `//` before a step.
pub(super) fn anywhere(step: &mut Step<'static>) {
    if step.axis == Axis::Child {
        step.axis = Axis::Descendant;
    }
}

pub(super) fn is_or_self(step: &Step<'_>) -> bool {
    step.axis == Axis::DescendantOrSelf
}
