//! Steps of a message over all subscriptions that are evaluated by themselves.

use super::serving::Allowance;
use crate::engine::interrupt;
use crate::engine::programs::{Bounds, RunError, Session};
use crate::engine::verdicts::Verdict;

/// What is left of the steps of a message.
#[derive(Debug)]
pub(super) struct MessageSteps {
    steps_max: u64,
    /// None from when they did not suffice.
    left: Option<u64>,
}

impl MessageSteps {
    pub(crate) fn new(steps_max: u64) -> Self {
        MessageSteps { steps_max, left: Some(steps_max) }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.steps_max - self.left.unwrap_or(0)
    }

    /// Evaluates a subscription, unless the steps are used up; if they do not suffice for it, they are
    /// used up for all that follow, and it has no answer, whatever it has written.
    ///
    /// An evaluation takes the same steps whichever came before it. So all subscriptions of a message
    /// are within its steps in every order, or in none.
    pub(crate) fn evaluate(
        &mut self,
        session: &mut Session<'_>,
        allowance: &Allowance,
        ask: impl FnOnce(&mut Session<'_>, Bounds) -> Result<bool, RunError>,
    ) -> Result<bool, Verdict> {
        let left = self.left.take().ok_or(Verdict::MessageOverBudget)?;
        let bounds = allowance.bounds();
        let answer = ask(session, Bounds { steps_max: bounds.steps_max.min(left), ..bounds });
        if answer == Err(RunError::OverBudget) && left < bounds.steps_max {
            return Err(Verdict::MessageOverBudget);
        }
        let taken = session.steps_taken();
        let left = left.checked_sub(taken).filter(|_| !interrupt::did(taken + 1));
        let left = left.ok_or(Verdict::MessageOverBudget)?;
        self.left = Some(left);
        answer.map_err(|error| allowance.verdict(error))
    }
}
