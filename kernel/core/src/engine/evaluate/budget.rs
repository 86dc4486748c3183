//! Steps: what an evaluation may cost, counted and never timed.

use crate::engine::interrupt;
use std::fmt;

/// The evaluation would have taken more steps than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Steps it was given.
    pub(crate) steps_max: u64,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the evaluation takes more than {} steps", self.steps_max)
    }
}

impl std::error::Error for OverBudget {}

/// Result of a part of an evaluation.
pub(crate) type Within<T> = Result<T, OverBudget>;

/// Bytes of text that cost one step.
pub(crate) const BYTES_PER_STEP: usize = 64;

/// Steps after which a thread looks whether its work is to be stopped.
const SLICE: u64 = 1 << 14;

/// Steps given and taken. If the work is to be stopped ([`interrupt`]), all of them are used up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    steps_max: u64,
    /// Steps left until the next look, and those after it.
    slice: u64,
    rest: u64,
}

impl Budget {
    pub(crate) fn new(steps_max: u64) -> Self {
        let all = if interrupt::is_interrupted() { 0 } else { steps_max };
        let slice = all.min(SLICE);
        Budget { steps_max, slice, rest: all - slice }
    }

    /// Steps that were given.
    pub(crate) fn given(&self) -> u64 {
        self.steps_max
    }

    /// Steps that are left.
    pub(crate) fn left(&self) -> u64 {
        self.slice + self.rest
    }

    pub(crate) fn taken(&self) -> u64 {
        self.steps_max - self.left()
    }

    /// Takes steps for what has been done already, as far as there are any.
    pub(crate) fn take(&mut self, steps: u64) {
        // If there are not so many, they are used up.
        self.charge(steps).unwrap_or(());
    }

    #[inline(always)]
    pub(crate) fn charge(&mut self, steps: u64) -> Within<()> {
        match self.slice.checked_sub(steps) {
            Some(left) => {
                self.slice = left;
                Ok(())
            }
            None => self.next_slice(steps),
        }
    }

    #[cold]
    fn next_slice(&mut self, steps: u64) -> Within<()> {
        let left = self.left().checked_sub(steps).filter(|_| !interrupt::did(steps.max(SLICE)));
        self.slice = left.unwrap_or(0).min(SLICE);
        self.rest = left.unwrap_or(0) - self.slice;
        left.map(|_| ()).ok_or(OverBudget { steps_max: self.steps_max })
    }

    /// Charges for text that is looked at; short ones come with the node they belong to.
    #[inline(always)]
    pub(crate) fn charge_text(&mut self, bytes: usize) -> Within<()> {
        self.charge((bytes / BYTES_PER_STEP) as u64)
    }
}
