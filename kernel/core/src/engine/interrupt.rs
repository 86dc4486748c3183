//! Interruption of long work (Ctrl-C): the thread that works looks for it, by work done.
//!
//! A caller says for its thread how to ask ([`watched`]); loops that can be long report their work
//! ([`did`]) or look between two pieces of it ([`look`]). Both say whether to stop. The answer of work that
//! was stopped is worthless, and [`watched`]'s caller knows whether it was. A thread that nobody watches is
//! never stopped.
//!
//! The watch belongs to the thread and is no argument, since the loops lie below everything else: a budget of
//! evaluation steps ([`crate::engine::evaluate::budget`]) looks when a slice of it is spent.
//!
//! ```
//! use pathcast_core::engine::interrupt::{did, watched};
//! use std::time::Duration;
//!
//! let rounds = watched(Duration::ZERO, || true, || (0..u64::MAX).find(|_| did(1 << 10)));
//! assert_eq!(rounds, Some(64));
//! assert!(!did(u64::MAX));
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Work between two looks at the clock, in evaluation steps, bytes or elements: a millisecond or less.
const WORK_BETWEEN_LOOKS: u64 = 1 << 16;

/// Time between two questions of a watch: asking waits for the interpreter.
pub const ASK_EVERY: Duration = Duration::from_millis(50);

/// The work was stopped, and has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// How a thread asks whether to stop.
struct Watch {
    every: Duration,
    asked: Instant,
    ask: Rc<dyn Fn() -> bool>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    static WORK_LEFT: Cell<u64> = const { Cell::new(WORK_BETWEEN_LOOKS) };
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work`, which stops early once `ask` has said so; `ask` is called on this thread, and not again
/// before `every` has passed. A watch around this one waits until `work` has returned.
pub fn watched<T>(
    every: Duration,
    ask: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let watch = Watch { every, asked: Instant::now(), ask: Rc::new(ask) };
    let _restored = Restored::enter(Some(watch));
    work()
}

/// Calls `work`, which is not stopped: it would leave something half done.
pub fn unwatched<T>(work: impl FnOnce() -> T) -> T {
    let _restored = Restored::enter(None);
    work()
}

/// Whether the work of this thread was stopped, so that its answer is worthless.
#[inline]
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.get()
}

/// `answer`, unless it is that of work that was stopped.
///
/// # Errors
/// It was stopped.
pub(crate) fn finished<T>(answer: T) -> Result<T, Interrupted> {
    if is_interrupted() { Err(Interrupted) } else { Ok(answer) }
}

/// Counts work that was done; true if the rest is to be left. Cost: a subtraction.
#[inline]
pub fn did(work: u64) -> bool {
    match WORK_LEFT.get().checked_sub(work) {
        Some(left) => {
            WORK_LEFT.set(left);
            false
        }
        None => look(),
    }
}

/// Whether to leave the rest, between two pieces of work of any size. Cost: a look at the clock.
#[inline(never)]
pub fn look() -> bool {
    if is_interrupted() {
        return true;
    }
    WORK_LEFT.set(WORK_BETWEEN_LOOKS);
    let due = WATCH.with_borrow_mut(|watch| {
        let watch = watch.as_mut().filter(|watch| watch.asked.elapsed() >= watch.every)?;
        Some(Rc::clone(&watch.ask))
    });
    let Some(ask) = due else { return false };
    let stops = ask();
    WATCH.with_borrow_mut(|watch| watch.iter_mut().for_each(|watch| watch.asked = Instant::now()));
    if stops {
        IS_INTERRUPTED.set(true);
        WORK_LEFT.set(0);
    }
    stops
}

/// The watch before, which comes back when this is dropped.
struct Restored {
    watch: Option<Watch>,
    work_left: u64,
    is_interrupted: bool,
}

impl Restored {
    fn enter(watch: Option<Watch>) -> Self {
        Restored {
            watch: WATCH.replace(watch),
            work_left: WORK_LEFT.replace(WORK_BETWEEN_LOOKS),
            is_interrupted: IS_INTERRUPTED.replace(false),
        }
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        WATCH.set(self.watch.take());
        WORK_LEFT.set(self.work_left);
        IS_INTERRUPTED.set(self.is_interrupted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stopped thread that was asked again could be told to go on, with half an answer.
    #[test]
    fn an_interruption_lasts_until_the_watch_ends() {
        let asked = Rc::new(Cell::new(0));
        let counter = Rc::clone(&asked);
        let ask = move || counter.replace(counter.get() + 1) == 0;
        watched(Duration::ZERO, ask, || {
            assert!(look());
            assert!(did(1) && look() && is_interrupted());
            assert_eq!(finished(5), Err(Interrupted));
        });
        assert_eq!(asked.get(), 1);
        assert!(!is_interrupted() && !look());
    }

    /// A change that is stopped half-way would be there by half.
    #[test]
    fn unwatched_work_is_not_stopped() {
        watched(
            Duration::ZERO,
            || true,
            || {
                unwatched(|| assert!(!look() && !did(u64::MAX)));
                assert!(look());
            },
        );
    }

    /// Asking waits for the interpreter; a loop that asks all the time would wait all the time.
    #[test]
    fn a_watch_is_not_asked_before_its_time() {
        watched(
            Duration::MAX,
            || unreachable!("the time has not come"),
            || {
                assert!((0..1_000).all(|_| !did(u64::MAX)));
            },
        );
    }
}
