//! Series of steps that are done to messages for others, such as the links of a broker.

use super::query::Refused;
use super::series::{Series, SeriesNumber, SeriesSet};
use super::serving::{Options, Serving};
use super::walk::{Came, MessageBudget, Tools, Walk};
use crate::engine::verdicts::Verdict;
use crate::language::edits::EditStep;
use crate::registry::batch::Arrival;
use crate::xml::parser::Door;
use std::sync::Arc;

/// Many series of steps, and what they are done with.
#[derive(Debug)]
pub struct Restructurings {
    options: Options,
    set: SeriesSet,
    /// By place in the list of [`Restructurings::set`].
    series: Vec<SeriesNumber>,
    door: Door,
    finder: Serving,
}

/// A message after the steps of a series; none where they change nothing.
pub type Restructured = Result<Option<Vec<u8>>, Verdict>;

impl Restructurings {
    /// No series.
    pub fn new(options: Options) -> Self {
        let mut door = Door::new(options.limits.clone());
        door.keep_source_spans(true);
        let finder = Serving::new(&options);
        Restructurings { options, set: SeriesSet::default(), series: Vec::new(), door, finder }
    }

    /// These are the series from now on.
    ///
    /// Cost: a compilation for each step that is new.
    ///
    /// # Errors
    /// A step of the series at this place has a path that selects no nodes. Nothing is changed then.
    pub fn set(&mut self, series: &[Arc<[EditStep]>]) -> Result<(), usize> {
        let is_worn = self.set.is_worn();
        let mut fresh = SeriesSet::default();
        let set = if is_worn { &mut fresh } else { &mut self.set };
        let mut numbers = Vec::with_capacity(series.len());
        for (at, steps) in series.iter().enumerate() {
            match set.enter(steps) {
                Ok(number) => numbers.push(number),
                Err(Refused) => {
                    numbers.into_iter().for_each(|number| set.leave(number));
                    return Err(at);
                }
            }
        }
        let before = std::mem::replace(&mut self.series, numbers);
        if is_worn {
            (self.set, self.finder) = (fresh, Serving::new(&self.options));
        } else {
            before.into_iter().for_each(|number| self.set.leave(number));
        }
        Ok(())
    }

    /// A message after each of some series, by their places: those that begin alike share the work, and all of them what
    /// the message may take. So many steps were done to it before; series of fewer leave it as it is.
    pub fn apply(&mut self, bytes: &[u8], done: usize, wanted: &[usize]) -> Vec<Restructured> {
        self.door.keep_full_tree(self.set.needs_full_tree);
        let set = &self.set;
        let series = wanted.iter().enumerate();
        let series = series.filter_map(|(place, &at)| Some((place, set.get(self.series[at])?)));
        let mut asked: Vec<(usize, &Series)> =
            series.filter(|(_, series)| series.numbers.len() >= done).collect();
        asked.sort_unstable_by_key(|&(_, series)| series.rank);
        let Options { message_steps_max, message_result_bytes_max, .. } = self.options;
        let budget = MessageBudget::new(message_steps_max, message_result_bytes_max);
        let tools =
            Tools { door: &mut self.door, finder: &mut self.finder, options: &self.options };
        let arrival = Arrival { done, ..Arrival::default() };
        let came = Came { bytes, arrival };
        let order = asked.iter().map(|&(_, series)| series).collect();
        let mut walk = Walk::new(tools, (set, order), came, budget, false);
        let mut made: Vec<Restructured> = wanted.iter().map(|_| Ok(None)).collect();
        for (at, &(place, _)) in asked.iter().enumerate() {
            made[place] = walk.after(at).map(|text| text.map(|text| text.to_vec()));
        }
        made
    }
}
