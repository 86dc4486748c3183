//! Series of steps: what subscriptions with the same steps become, and the steps that their messages go through first.
//!
//! Distinct steps are numbered, and the elements of all of them are found together ([`SeriesSet::finder`]). A series has
//! plans of its own, which are run on the message after its steps. Series are in the order of their steps, so that those
//! that begin alike are neighbours.

use super::plans::{Asked, Plans};
use super::query::{Refused, Scope, SubscriptionQuery};
use crate::engine::plans::shared::SubscriptionNumber;
use crate::engine::plans::template::Deliver;
use crate::language::choice::Language;
use crate::language::compile::{alternatives_of_conjunction, compile_gate, compile_query};
use crate::language::edits::EditStep;
use crate::language::gates::gate_of;
use crate::language::paths::Path;
use crate::language::paths::before_steps::Effect;
use crate::language::xquery::undeliverable_part;
use crate::registry::snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Series that have gone, beyond those that are there, for which nothing is entered anew.
const WORN_MIN: usize = 1 << 10;

/// Number of a series.
pub(super) type SeriesNumber = u32;

/// The steps of a subscription.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The steps, one or more.
    pub steps: Arc<[EditStep]>,
    /// Their texts as they were given.
    pub texts: Box<[Box<str>]>,
}

/// A series, and the subscriptions that begin with it.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) steps: Arc<[EditStep]>,
    /// The number of each step in [`SeriesSet::finder`].
    pub(super) numbers: Box<[u32]>,
    /// Its place in the order of all series.
    pub(super) rank: u32,
    pub(super) plans: Plans,
    /// By number in its plans: the number among all subscriptions.
    pub(super) subscriptions: Vec<SubscriptionNumber>,
    /// By number in its plans: which of the texts of the steps.
    pub(super) text_of: Vec<u32>,
    /// Texts that the steps were given as, most of them once.
    pub(super) texts: Vec<Box<[Box<str>]>>,
    users: usize,
}

impl Series {
    /// The texts of the steps of one of its subscriptions.
    pub(super) fn texts(&self, number: SubscriptionNumber) -> &[Box<str>] {
        &self.texts[self.text_of[number as usize] as usize]
    }
}

/// All series.
#[derive(Debug, Default)]
pub(super) struct SeriesSet {
    /// The elements of distinct steps, by number.
    pub(super) finder: Plans,
    /// By number: how many series have the step.
    uses: Vec<u32>,
    numbers: HashMap<EditStep, u32>,
    series: Vec<Option<Series>>,
    by_steps: BTreeMap<Arc<[EditStep]>, SeriesNumber>,
    /// Something here needs messages parsed with all that there is; it is asked again when everything is built anew.
    pub(super) needs_full_tree: bool,
}

impl SeriesSet {
    /// The series of a snapshot, by their numbers. Cost: a compilation for each distinct step.
    pub(super) fn on(snapshot: &Arc<Snapshot>) -> SeriesSet {
        let mut set = SeriesSet::default();
        for (at, part) in snapshot.parts().iter().enumerate().skip(1) {
            let (steps, texts) = part.steps();
            let number = set.enter(&steps.as_slice().into()).expect("checked when opened");
            let series = set.get_mut(number).expect("it has just been entered");
            series.plans = Plans::on(snapshot, at);
            series.subscriptions = part.members().to_vec();
            series.text_of = part.step_texts().to_vec();
            series.texts.clone_from(texts);
            series.users = part.len();
            let needs_full_tree = series.plans.needs_full_tree();
            set.needs_full_tree |= needs_full_tree;
        }
        set
    }

    /// Number of series.
    pub(super) fn len(&self) -> usize {
        self.by_steps.len()
    }

    /// Whether so many series have gone that it pays to enter those that are there anew.
    pub(super) fn is_worn(&self) -> bool {
        self.series.len() > WORN_MIN + 2 * self.len()
    }

    /// A series.
    pub(super) fn get(&self, number: SeriesNumber) -> Option<&Series> {
        self.series.get(number as usize)?.as_ref()
    }

    /// A series.
    pub(super) fn get_mut(&mut self, number: SeriesNumber) -> Option<&mut Series> {
        self.series.get_mut(number as usize)?.as_mut()
    }

    /// The series of some steps.
    pub(super) fn of(&self, steps: &[EditStep]) -> Option<SeriesNumber> {
        self.by_steps.get(steps).copied()
    }

    /// The series, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SeriesNumber, &Series)> {
        self.by_steps.values().filter_map(|&number| Some((number, self.get(number)?)))
    }

    /// Bytes held, shared plans and programs not counted.
    pub(super) fn memory(&self) -> usize {
        let plans = self.iter().map(|(_, series)| series.plans.memory());
        plans.sum::<usize>() + self.finder.memory()
    }

    /// How many subscriptions begin with each of the beginnings of a series.
    pub(super) fn sharing(&self, number: SeriesNumber) -> Vec<usize> {
        let Some(Series { steps, .. }) = self.get(number) else { return Vec::new() };
        let users = |length| {
            let alike = self.iter().filter(|(_, each)| each.steps.starts_with(&steps[..length]));
            alike.map(|(_, each)| each.users).sum()
        };
        (1..=steps.len()).map(users).collect()
    }

    /// The series of some steps, which has a user more.
    ///
    /// Cost: of one that is new, a compilation for each step that no other has, and a look at all series.
    ///
    /// # Errors
    /// A step has a path that selects no nodes; nothing has changed.
    pub(super) fn enter(&mut self, steps: &Arc<[EditStep]>) -> Result<SeriesNumber, Refused> {
        if let Some(number) = self.of(steps) {
            self.get_mut(number).expect("it is there").users += 1;
            return Ok(number);
        }
        let mut numbers = Vec::with_capacity(steps.len());
        for step in steps.iter() {
            match self.enter_step(step) {
                Ok(number) => numbers.push(number),
                Err(refused) => {
                    self.leave_steps(&steps[..numbers.len()], &numbers);
                    return Err(refused);
                }
            }
        }
        self.needs_full_tree |= self.finder.needs_full_tree();
        let number = self.series.len() as SeriesNumber;
        self.series.push(Some(Series {
            steps: Arc::clone(steps),
            numbers: numbers.into(),
            rank: 0,
            plans: Plans::default(),
            subscriptions: Vec::new(),
            text_of: Vec::new(),
            texts: Vec::new(),
            users: 1,
        }));
        self.by_steps.insert(Arc::clone(steps), number);
        self.rank();
        Ok(number)
    }

    /// The series has a user less; without any it goes.
    pub(super) fn leave(&mut self, number: SeriesNumber) {
        let Some(series) = self.get_mut(number) else { return };
        series.users -= 1;
        if series.users == 0
            && let Some(series) = self.series[number as usize].take()
        {
            self.by_steps.remove(&series.steps);
            self.leave_steps(&series.steps, &series.numbers);
            self.rank();
        }
    }

    /// Takes a subscription of a series, which gets a number among all subscriptions; gives its number in the series.
    ///
    /// # Errors
    /// Its text is refused; nothing has changed.
    pub(super) fn add(
        &mut self,
        series: SeriesNumber,
        (asked, scope): (Asked<'_>, &Scope),
        subscription: SubscriptionNumber,
        texts: &[Box<str>],
    ) -> Result<SubscriptionNumber, Refused> {
        let series = self.get_mut(series).ok_or(Refused)?;
        let number = series.plans.add(asked, scope)?;
        series.subscriptions.push(subscription);
        if series.texts.last().is_none_or(|last| **last != *texts) {
            series.texts.push(texts.into());
        }
        series.text_of.push(series.texts.len() as u32 - 1);
        let needs_full_tree = series.plans.needs_full_tree();
        self.needs_full_tree |= needs_full_tree;
        Ok(number)
    }

    /// Takes a subscription out of its series.
    pub(super) fn remove(&mut self, series: SeriesNumber, number: SubscriptionNumber) {
        if let Some(series) = self.get_mut(series) {
            series.plans.remove(number);
        }
        self.leave(series);
    }

    /// The steps of a subscription.
    pub(super) fn steps(&self, series: SeriesNumber, number: SubscriptionNumber) -> Option<Steps> {
        let series = self.get(series)?;
        let texts = series.texts(number).into();
        Some(Steps { steps: Arc::clone(&series.steps), texts })
    }

    fn enter_step(&mut self, step: &EditStep) -> Result<u32, Refused> {
        let number = match self.numbers.get(step) {
            Some(&number) => number,
            None => {
                let scope = Scope::new(step.namespaces.iter().cloned().collect());
                let language = Some(Language::XPath);
                let asked = Asked { text: &step.path, language, deliver: Deliver::Fragment };
                let number = self.finder.add(asked, &scope)?;
                self.uses.push(0);
                self.numbers.insert(step.clone(), number);
                number
            }
        };
        self.uses[number as usize] += 1;
        Ok(number)
    }

    fn leave_steps(&mut self, steps: &[EditStep], numbers: &[u32]) {
        for (step, &number) in steps.iter().zip(numbers) {
            self.uses[number as usize] -= 1;
            if self.uses[number as usize] == 0 {
                self.numbers.remove(step);
                self.finder.remove(number);
            }
        }
    }

    fn rank(&mut self) {
        for (rank, &number) in self.by_steps.values().enumerate() {
            if let Some(series) = self.series[number as usize].as_mut() {
                series.rank = rank as u32;
            }
        }
    }
}

/// Paths of which a message has one, before the steps, if anything is delivered of it after them.
///
/// # Errors
/// The text is refused.
pub(super) fn gate_before(
    asked: Asked<'_>,
    scope: &Scope,
    steps: &[EditStep],
) -> Result<BTreeSet<Path>, Refused> {
    let Asked { text, language, deliver } = asked;
    let is_condition = deliver.is_condition();
    let gate;
    let query = SubscriptionQuery::read(text, language, scope, deliver)?;
    let compiled = match &query {
        SubscriptionQuery::XQuery(program) => {
            if undeliverable_part(program, deliver.delivered()).is_some() {
                return Err(Refused);
            }
            gate = gate_of(program, is_condition);
            compile_gate(&gate, is_condition)
        }
        SubscriptionQuery::XPath(tree) => compile_query(tree).map_err(|_| Refused)?,
    };
    let effect = Effect::of(steps);
    let mut gate = BTreeSet::new();
    for paths in compiled.conjunctions() {
        let paths: Vec<Path> = paths.iter().map(|path| Path::of(&path.steps)).collect();
        let before = effect.before(&paths);
        let paths: Vec<_> = before.paths().iter().map(Path::steps).collect();
        let alternatives = alternatives_of_conjunction(&paths);
        gate.extend(alternatives.iter().map(|path| Path::of(&path.steps)));
    }
    if gate.is_empty() {
        // It never holds.
        gate.extend(compiled.alternatives.iter().map(|path| Path::of(&path.steps)));
    }
    Ok(gate)
}
