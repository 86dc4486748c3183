//! A batch of messages matched on several threads; the answers are put together in the order of the
//! messages.

use crate::engine::counters::Stats;
use crate::engine::ids::QueryNumber;
use crate::engine::interrupt;
use crate::engine::interrupt::Interrupted;
use crate::engine::options::Options;
use crate::engine::verdicts::{Undecided, UsedUp, Verdict};
use crate::registry::matcher::Worker;
use crate::registry::target::Target;
use crate::registry::workers::Workers;
use crate::xml::parser::Refusal;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Batches below this many bytes are matched by the calling thread itself.
const INLINE_BYTES_MAX: usize = 1 << 20;
/// Bytes of number buffers kept for the next batch.
const SPARE_BYTES_MAX: usize = 64 << 20;

/// The messages of a batch.
pub trait Messages: Sync {
    /// Number of messages.
    fn len(&self) -> usize;
    /// A message; none if there is a gap at this place (a null).
    fn get(&self, at: usize) -> Option<&[u8]>;
    /// Bytes of all messages.
    fn bytes(&self) -> usize;
    /// Encoding of all messages, where the caller knows it.
    fn encoding(&self) -> Option<&str> {
        None
    }
    /// How many of the steps of subscriptions were done to a message before, in customised delivery.
    fn done(&self, _at: usize) -> usize {
        0
    }
}

/// What came of a batch.
#[derive(Debug, Default)]
pub struct Answer {
    /// Query numbers of all messages, one after the other.
    pub numbers: Vec<QueryNumber>,
    /// Where each message's numbers end.
    pub ends: Vec<usize>,
    /// The refused messages.
    pub refusals: Vec<(usize, Refusal)>,
    /// The pairs of message and query that are undecided, ascending, and whose steps were used up.
    pub undecided: Vec<(usize, QueryNumber, UsedUp)>,
    /// The pairs of message and subscription that are undecided for another reason, ascending.
    pub verdicts: Vec<(usize, QueryNumber, Verdict)>,
    /// Counters.
    pub stats: Stats,
}

/// Workers that keep their caches from batch to batch.
#[derive(Debug)]
pub struct Pool {
    options: Options,
    workers: Workers<Worker>,
    buffers: Arc<Buffers>,
}

/// Buffers of numbers that wait for the next batch.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<QueryNumber>>>);

impl Pool {
    /// A pool for `threads` threads (at least one); the bound on the caches is shared out to them.
    pub fn new(mut options: Options, threads: usize) -> Self {
        let threads = threads.max(1);
        options.cache_bytes_max /= threads;
        Pool { options, workers: Workers::new(threads), buffers: Arc::default() }
    }

    /// Matches a batch. Calls may overlap; each takes the workers it needs.
    ///
    /// # Errors
    /// It was interrupted.
    pub fn run(
        &self,
        target: &(impl Target + Sync),
        messages: &impl Messages,
    ) -> Result<Answer, Interrupted> {
        let make = || Worker::new(self.options.clone());
        let work = |worker: &mut Worker, range| {
            let one = |at, message: &[u8], answer: &mut Answer| {
                worker.match_message(target, message, messages.encoding(), &mut answer.numbers)?;
                let Undecided { by_query, by_message } = &worker.undecided;
                let by_query = by_query.iter().map(|&number| (at, number, UsedUp::Query));
                let by_message = by_message.iter().map(|&number| (at, number, UsedUp::Message));
                let found = answer.undecided.len();
                answer.undecided.extend(by_query.chain(by_message));
                answer.undecided[found..].sort_unstable();
                Ok(())
            };
            let answer = match_run(messages, range, self.buffers.take(), one);
            Answer { stats: std::mem::take(&mut worker.stats), ..answer }
        };
        run(&self.workers, &self.buffers, messages, make, work)
    }

    /// Where buffers of numbers go when they are read.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }
}

impl Buffers {
    /// Takes a buffer of numbers back for a later batch. Fresh memory costs a page fault every
    /// 1,024 numbers, which is a good part of what collecting them costs.
    pub fn give(&self, mut numbers: Vec<QueryNumber>) {
        numbers.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = spare.iter().map(|buffer| buffer.capacity() * 4).sum();
        if kept + numbers.capacity() * 4 <= SPARE_BYTES_MAX {
            spare.push(numbers);
        }
    }

    pub(crate) fn take(&self) -> Vec<QueryNumber> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Puts parts together in order. The first part is grown rather than copied.
    fn join(&self, parts: Vec<Answer>) -> Answer {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return Answer::default() };
        let rest = parts.as_slice();
        all.numbers.reserve(rest.iter().map(|part| part.numbers.len()).sum());
        all.ends.reserve_exact(rest.iter().map(|part| part.ends.len()).sum());
        for part in parts {
            let before = all.numbers.len();
            all.numbers.extend_from_slice(&part.numbers);
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.refusals.extend(part.refusals);
            all.undecided.extend(part.undecided);
            all.verdicts.extend(part.verdicts);
            all.stats.add(&part.stats);
            self.give(part.numbers);
        }
        all
    }
}

/// Matches a batch with workers; `work` matches a run of messages.
pub(crate) fn run<W: Send>(
    workers: &Workers<W>,
    buffers: &Buffers,
    messages: &impl Messages,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Range<usize>) -> Answer + Sync,
) -> Result<Answer, Interrupted> {
    if messages.bytes() < INLINE_BYTES_MAX {
        let work = |worker: &mut W| work(worker, 0..messages.len());
        return workers.with(make, |worker| interrupt::finished(work(worker)));
    }
    Ok(buffers.join(workers.run(messages.len(), make, work)?))
}

/// Matches a run of messages, each with `one`.
pub(crate) fn match_run(
    messages: &impl Messages,
    range: Range<usize>,
    numbers: Vec<QueryNumber>,
    mut one: impl FnMut(usize, &[u8], &mut Answer) -> Result<(), Refusal>,
) -> Answer {
    let mut answer = Answer { numbers, ..Answer::default() };
    answer.ends.reserve(range.len());
    for at in range {
        if interrupt::look() {
            break;
        }
        if let Some(message) = messages.get(at)
            && let Err(refusal) = one(at, message, &mut answer)
        {
            answer.refusals.push((at, refusal));
        }
        answer.ends.push(answer.numbers.len());
    }
    answer
}
