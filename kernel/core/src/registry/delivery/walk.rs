//! One message through series of steps: what series begin with is done once, within what the message may cost.
//!
//! Series are gone through in their order. The texts of the series at hand, and of its beginnings, are kept; each is
//! read once, to find the elements of all steps that follow it, and to serve the series that ends with it.

use super::restructuring::{Growth, Places};
use super::series::{Series, SeriesSet};
use super::serving::{Allowance, Options, RESULT_BYTES_FREE, Selected, Serving};
use crate::engine::verdicts::{StepFault, Verdict};
use crate::language::edits::EditStep;
use crate::registry::batch::Arrival;
use crate::xml::parser::{Door, Parsed};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Bytes read or written that count as a step, as where programs are evaluated.
const BYTES_PER_STEP: u64 = 64;
/// Elements that are found for steps at a time, if each selects all.
const FOUND_MAX: usize = 1 << 20;

/// What is left to a message.
#[derive(Debug)]
pub(super) struct MessageBudget {
    pub(super) steps: u64,
    pub(super) result_bytes: usize,
    /// Steps taken to find elements, to read and to write texts.
    pub(super) restructuring_steps: u64,
}

impl MessageBudget {
    /// A message may take so much.
    pub(super) fn new(steps: u64, result_bytes: usize) -> Self {
        MessageBudget { steps, result_bytes, restructuring_steps: 0 }
    }

    /// A text of so many bytes is read or written.
    pub(super) fn take_text(&mut self, bytes: usize) {
        self.take_steps(1 + bytes as u64 / BYTES_PER_STEP);
    }

    fn take_steps(&mut self, steps: u64) {
        self.steps = self.steps.saturating_sub(steps);
        self.restructuring_steps += steps;
    }

    /// Why no more may be done.
    pub(super) fn check(&self) -> Result<(), Verdict> {
        match (self.steps, self.result_bytes) {
            (0, _) => Err(Verdict::MessageOverBudget),
            (_, 0) => Err(Verdict::MessageFull),
            _ => Ok(()),
        }
    }
}

/// A text of a message; none is the message as it came.
pub(super) type Text = Option<Rc<Vec<u8>>>;

/// A message after the first steps of the series at hand.
struct Level {
    text: Result<Text, Verdict>,
    /// Of steps that follow.
    found: Vec<FoundPlaces>,
}

/// Where the elements of a step are, by its number.
struct FoundPlaces {
    number: u32,
    places: Result<Places, Verdict>,
    /// Steps that it took to find them.
    steps: u64,
    /// The same of the gates of several steps, said of the first.
    gate_steps: u64,
}

impl Level {
    fn new(text: Result<Text, Verdict>) -> Level {
        Level { text, found: Vec::new() }
    }
}

/// What one thread does steps with.
pub(super) struct Tools<'w> {
    pub(super) door: &'w mut Door,
    /// Caches of [`SeriesSet::finder`].
    pub(super) finder: &'w mut Serving,
    pub(super) options: &'w Options,
}

/// A message as it came.
#[derive(Clone, Copy)]
pub(super) struct Came<'w> {
    pub(super) bytes: &'w [u8],
    /// Every series that it goes through begins with the steps that were done to it before.
    pub(super) arrival: Arrival<'w>,
}

/// A message on its way through series of steps.
pub(super) struct Walk<'w> {
    pub(super) tools: Tools<'w>,
    set: &'w SeriesSet,
    /// Those that it goes through, in order.
    series: Vec<&'w Series>,
    came: Came<'w>,
    pub(super) budget: MessageBudget,
    /// The text that the door has read last.
    held: Option<Text>,
    /// From the message as it came on.
    levels: Vec<Level>,
    /// The steps of the series at hand.
    numbers: &'w [u32],
    pub(super) parsing_ns: u64,
}

impl<'w> Walk<'w> {
    /// A message, which the door has read last if `is_read` says so. No series has fewer steps than were done to it.
    pub(super) fn new(
        tools: Tools<'w>,
        (set, series): (&'w SeriesSet, Vec<&'w Series>),
        came: Came<'w>,
        budget: MessageBudget,
        is_read: bool,
    ) -> Self {
        Walk {
            tools,
            set,
            series,
            came,
            budget,
            held: is_read.then_some(None),
            levels: vec![Level::new(Ok(None))],
            numbers: &[],
            parsing_ns: 0,
        }
    }

    /// The bytes of a text.
    pub(super) fn bytes<'t>(&self, text: &'t Text) -> &'t [u8]
    where
        'w: 't,
    {
        text.as_deref().map_or(self.came.bytes, Vec::as_slice)
    }

    /// The message after all steps of a series, which comes after those that were asked for before.
    ///
    /// # Errors
    /// They cannot be done to it, or it has used up what it may take.
    pub(super) fn after(&mut self, at: usize) -> Result<Text, Verdict> {
        let numbers = &*self.series[at].numbers;
        let before = std::mem::replace(&mut self.numbers, numbers);
        let common = before.iter().zip(numbers).take_while(|(one, other)| one == other).count();
        let done = self.came.arrival.done;
        self.levels.truncate(1 + common.saturating_sub(done));
        while self.levels.len() <= numbers.len() - done {
            let text = self.next(at);
            self.levels.push(Level::new(text));
        }
        self.levels[numbers.len() - done].text.clone()
    }

    /// Reads a text, unless the door has read it last.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn read(&mut self, text: &Text) -> Result<(), Verdict> {
        if self.held.as_ref().is_some_and(|held| is_same(held, text)) {
            return Ok(());
        }
        let started = Instant::now();
        let parsed = self.tools.door.parse(self.bytes(text), self.came.arrival.encoding).map(drop);
        self.parsing_ns += started.elapsed().as_nanos() as u64;
        self.held = parsed.is_ok().then(|| text.clone());
        parsed.map_err(|refusal| unrestructured(StepFault::Refused(refusal)))
    }

    /// The text that the door has read last.
    pub(super) fn parsed<'t>(&'t self, text: &'t Text) -> Parsed<'t> {
        self.tools.door.last(self.bytes(text))
    }

    /// The text after the next step of a series.
    fn next(&mut self, at: usize) -> Result<Text, Verdict> {
        let done = self.came.arrival.done + self.levels.len() - 1;
        let text = self.levels.last().map_or(Ok(None), |level| level.text.clone())?;
        self.budget.check()?;
        let (number, step) = (self.numbers[done], &self.series[at].steps[done]);
        let FoundPlaces { places, steps, gate_steps, .. } = self.places(at, done, number, &text)?;
        // What others have taken since was not known when they were looked for.
        let is_over = steps > self.budget.steps;
        self.budget.take_steps(steps + gate_steps);
        if is_over {
            return Err(Verdict::MessageOverBudget);
        }
        let bytes = self.bytes(&text);
        self.budget.take_text(bytes.len());
        let options = self.tools.options;
        let grown_max = self.came.bytes.len().saturating_mul(options.result_ratio_max);
        let growth = Growth {
            bytes_max: options.limits.message_bytes_max as usize,
            grown_max: grown_max.max(RESULT_BYTES_FREE),
        };
        let made = places?.edited(bytes, step, growth).map_err(unrestructured)?;
        let made = made.map(|made| Some(Rc::new(made))).unwrap_or(text);
        self.budget.take_text(self.bytes(&made).len());
        Ok(made)
    }

    /// Where the elements of a step are in the last text.
    fn places(
        &mut self,
        at: usize,
        done: usize,
        number: u32,
        text: &Text,
    ) -> Result<FoundPlaces, Verdict> {
        let level = self.levels.len() - 1;
        let is_it = |found: &FoundPlaces| found.number == number;
        if !self.levels[level].found.iter().any(is_it) {
            if let Err(verdict) = self.read(text) {
                self.levels[level].text = Err(verdict.clone());
                return Err(verdict);
            }
            self.levels[level].found = self.find(at, done, text);
        }
        let found = &mut self.levels[level].found;
        let place = found.iter().position(is_it).expect("it was looked for");
        Ok(found.swap_remove(place))
    }

    /// Finds the elements of the next steps of a series and of those after it that have begun alike.
    fn find(&mut self, at: usize, done: usize, text: &Text) -> Vec<FoundPlaces> {
        let begun = &self.numbers[..done];
        let alike = self.series[at..]
            .iter()
            .take_while(|each| each.numbers.len() > done && each.numbers[..done] == *begun);
        let mut wanted: Vec<(u32, &EditStep)> =
            alike.map(|each| (each.numbers[done], &each.steps[done])).collect();
        wanted.dedup_by_key(|&mut (number, _)| number);
        let bytes = self.bytes(text);
        let parsed = self.tools.door.last(bytes);
        wanted.truncate((FOUND_MAX / parsed.message.tree.len()).max(1));
        let MessageBudget { steps, result_bytes, .. } = self.budget;
        let allowance = Allowance::new(self.tools.options, bytes.len(), steps, result_bytes);
        let numbers: Vec<u32> = wanted.iter().map(|&(number, _)| number).collect();
        let selected = self.tools.finder.select(&self.set.finder, parsed, &numbers, &allowance);
        let places = |elements: Option<Vec<u32>>, step: &EditStep| {
            Places::of(elements.as_deref(), step, self.tools.door, bytes).map_err(unrestructured)
        };
        let found = wanted.iter().zip(selected);
        let found = found.map(|(&(number, step), selected)| {
            let Selected { elements, steps, gate_steps } = selected;
            let places = elements.and_then(|elements| places(elements, step));
            FoundPlaces { number, places, steps, gate_steps }
        });
        found.collect()
    }
}

fn is_same(one: &Text, other: &Text) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        _ => false,
    }
}

fn unrestructured(fault: StepFault) -> Verdict {
    Verdict::Unrestructured(Arc::new(fault))
}
