//! Steps: what an evaluation may cost, counted and never timed.

use std::fmt;

/// The evaluation would have taken more steps than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Steps it was given.
    pub steps_max: u64,
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

/// Steps given and taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    steps_max: u64,
    left: u64,
}

impl Budget {
    pub fn new(steps_max: u64) -> Self {
        Budget { steps_max, left: steps_max }
    }

    /// Steps that were given.
    pub fn given(&self) -> u64 {
        self.steps_max
    }

    /// Steps that are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    pub fn taken(&self) -> u64 {
        self.steps_max - self.left
    }

    /// Takes steps for what has been done already, as far as there are any.
    pub fn take(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    #[inline(always)]
    pub fn charge(&mut self, steps: u64) -> Within<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    #[cold]
    fn exhausted(&mut self) -> OverBudget {
        self.left = 0;
        OverBudget { steps_max: self.steps_max }
    }

    /// Charges for text that is looked at; short ones come with the node they belong to.
    #[inline(always)]
    pub fn charge_text(&mut self, bytes: usize) -> Within<()> {
        self.charge((bytes / BYTES_PER_STEP) as u64)
    }
}
