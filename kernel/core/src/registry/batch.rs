//! A batch of messages matched on several threads; the answers are put together in the order of the
//! messages.

use crate::engine::counters::Stats;
use crate::engine::ids::QueryNumber;
use crate::engine::interrupt;
use crate::engine::interrupt::Interrupted;
use crate::engine::verdicts::{UsedUp, Verdict};
use crate::engine::work::{QueryWork, add_up};
use crate::registry::workers::Workers;
use crate::xml::parser::Refusal;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

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
    /// How a message came.
    fn arrival(&self, _at: usize) -> Arrival<'_> {
        Arrival::default()
    }
}

/// What is known of a message besides its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival<'m> {
    /// Its encoding, where the caller knows it.
    pub encoding: Option<&'m str>,
    /// How many of the steps of subscriptions were done to it before, in customised delivery.
    pub done: usize,
    /// When it was: microseconds since the beginning of 1970, UTC.
    pub time: i64,
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
    /// Steps of single queries: of a batch, of the dearest.
    pub work: Vec<QueryWork>,
    /// Counters.
    pub stats: Stats,
}

/// Buffers of numbers that wait for the next batch.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<QueryNumber>>>);

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
        if rest.is_empty() {
            return all;
        }
        all.numbers.reserve(rest.iter().map(|part| part.numbers.len()).sum());
        all.ends.reserve_exact(rest.iter().map(|part| part.ends.len()).sum());
        for part in parts {
            let before = all.numbers.len();
            all.numbers.extend_from_slice(&part.numbers);
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.refusals.extend(part.refusals);
            all.undecided.extend(part.undecided);
            all.verdicts.extend(part.verdicts);
            all.work.extend(part.work);
            all.stats.add(&part.stats);
            self.give(part.numbers);
        }
        add_up(&mut all.work);
        all
    }
}

/// Matches a batch with workers; `work` matches a run of messages.
pub(crate) fn run<W: Send>(
    workers: &Workers<W>,
    buffers: &Buffers,
    messages: &(impl Messages + ?Sized),
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
    messages: &(impl Messages + ?Sized),
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
