//! What must hold before steps that restructure a message, if paths hold after them.
//!
//! ```
//! use pathcast_core::language::edits::{Edit, EditStep};
//! use pathcast_core::language::paths::Path;
//! use pathcast_core::language::paths::before_steps::Effect;
//! let (path, name) = ("//cost".to_owned(), "price".to_owned());
//! let renaming = EditStep { edit: Edit::Rename, path, name, namespaces: Vec::new() };
//! let path = Path::read("/m/price[.>3]")?;
//! assert_eq!(Effect::of(&[renaming]).before(&[path]).text(), "/m/*[.>3]");
//! # Ok::<(), pathcast_core::language::query::Declined>(())
//! ```
//!
//! Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.2, which does not say what a message is routed by
//! before its steps.

use super::widening::{anywhere, is_or_self, with_conditions};
use super::{Conjunction, Path};
use crate::language::edits::{Edit, EditStep};
use crate::language::query::{Axis, Condition, NameTest, Step};

type Steps = Vec<Step<'static>>;
type Leaf = Condition<'static>;

/// What steps that restructure a message do to the conditions on it.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// Local names that a renaming gives.
    given: Vec<String>,
    /// Elements are unwrapped.
    unwraps: bool,
    /// For each dropping, URI and local name from the root on of what is dropped; none where that is another path.
    dropped: Vec<Option<Vec<(String, String)>>>,
}

impl Effect {
    /// The effect of some steps.
    pub fn of(steps: &[EditStep]) -> Effect {
        let with = |edit| steps.iter().filter(move |step| step.edit == edit);
        Effect {
            given: with(Edit::Rename).map(|step| step.name.clone()).collect(),
            unwraps: with(Edit::Unwrap).next().is_some(),
            dropped: with(Edit::Drop).map(EditStep::child_names).collect(),
        }
    }

    /// Linear paths that all hold if, some or all steps later, all of some paths do.
    ///
    /// Text may have been dropped or joined, so what is asked of it stays only where no step can have done that; an
    /// unwrapped element may have stood between two steps, so `/` becomes `//`; a name that a renaming gives may have
    /// been any.
    pub fn before(&self, paths: &[Path]) -> Conjunction {
        let linear = paths.iter().flat_map(Path::linear_paths);
        Conjunction::of(linear.map(|path| self.before_linear(path.steps())))
    }

    fn before_linear(&self, steps: &[Step<'static>]) -> Path {
        let mut found = Steps::new();
        for (at, step) in steps.iter().enumerate() {
            let keeps = |leaf: &&Leaf| self.keeps(&steps[..=at], leaf);
            let kept: Vec<Leaf> = step.conditions().filter(keeps).cloned().collect();
            if kept.is_empty() && is_or_self(step) {
                continue;
            }
            let mut step = with_conditions(step, kept);
            if let NameTest::Name { local, .. } | NameTest::AnyNamespace { local } = &step.test
                && self.is_given(local)
            {
                step.test = NameTest::Any;
            }
            if self.unwraps && at > 0 {
                anywhere(&mut step);
            }
            found.push(step);
        }
        Path::arranged(found)
    }

    fn is_given(&self, local: &str) -> bool {
        self.given.iter().any(|given| given == local)
    }

    /// Whether a condition on the element that a path leads to holds before if it does after.
    fn keeps(&self, path: &[Step<'static>], leaf: &Leaf) -> bool {
        match leaf {
            Condition::Attribute { .. } => true,
            Condition::Text(_) if self.unwraps => false,
            _ => self.dropped.is_empty() || self.is_apart(path),
        }
    }

    /// Whether nothing is dropped within the element that a path leads to.
    ///
    /// Where nothing is unwrapped, and no element on the path renamed, all of these have always had the names that they
    /// have; and so has what was dropped in them.
    fn is_apart(&self, path: &[Step<'static>]) -> bool {
        let name_of = |step: &Step<'static>| match (step.axis, &step.test) {
            (Axis::Child, NameTest::Name { uri, local }) if !self.is_given(local) => {
                Some((uri.clone(), local.clone()))
            }
            _ => None,
        };
        let Some(names) = path.iter().map(name_of).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let is_elsewhere = |dropped: &[(String, String)]| {
            let mut pairs = dropped.iter().zip(&names);
            dropped.len() <= names.len()
                || pairs.any(|(dropped, name)| dropped.0 != name.0 || dropped.1 != name.1)
        };
        !self.unwraps && self.dropped.iter().all(|each| each.as_deref().is_some_and(is_elsewhere))
    }
}
