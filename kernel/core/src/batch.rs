//! A batch of messages on several threads.
//!
//! Messages are handed out in small runs, so that one slow message does not hold up a thread's whole
//! share, and the answers are put together in the order of the messages. The calling thread only
//! waits, and looks from time to time whether the batch is to be given up (Ctrl-C).

use crate::door::Refusal;
use crate::matcher::{Options, Stats, Target, Worker};
use crate::nfa::QueryNumber;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often the waiting thread looks whether to give up.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Batches below this many bytes are matched by the calling thread itself.
const INLINE_BYTES_MAX: usize = 1 << 20;
/// Messages handed to a thread at a time.
const RUN: usize = 32;
/// Bytes of number buffers kept for the next batch.
const SPARE_BYTES_MAX: usize = 64 << 20;

/// The messages of a batch.
pub trait Messages: Sync {
    /// Number of messages.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A message; none if there is a gap at this place (a null).
    fn get(&self, at: usize) -> Option<&[u8]>;
    /// Bytes of all messages.
    fn bytes(&self) -> usize;
    /// Encoding of all messages, where the caller knows it.
    fn encoding(&self) -> Option<&str> {
        None
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
    /// The pairs of message and query on which the evaluation used up its steps, ascending.
    pub over_budget: Vec<(usize, QueryNumber)>,
    /// Counters.
    pub stats: Stats,
}

/// The batch was given up.
#[derive(Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Workers that keep their caches from batch to batch.
#[derive(Debug)]
pub struct Pool {
    options: Options,
    threads: usize,
    idle: Mutex<Vec<Worker>>,
    spare: Mutex<Vec<Vec<QueryNumber>>>,
}

impl Pool {
    /// A pool for `threads` threads (at least one); the bound on the caches is shared out to them.
    pub fn new(mut options: Options, threads: usize) -> Self {
        let threads = threads.max(1);
        options.cache_bytes_max /= threads;
        Pool { options, threads, idle: Mutex::default(), spare: Mutex::default() }
    }

    /// Matches a batch. `give_up` is asked now and then, on the calling thread only.
    ///
    /// Calls may overlap; each takes the workers it needs.
    pub fn run(
        &self,
        target: &(impl Target + Sync),
        messages: &impl Messages,
        mut give_up: impl FnMut() -> bool,
    ) -> Result<Answer, Interrupted> {
        if messages.bytes() < INLINE_BYTES_MAX {
            let mut worker = self.take();
            let numbers = self.take_buffer();
            let all = 0..messages.len();
            let answer = match_run(&mut worker, target, messages, all, numbers, &|| false);
            self.give_back(worker);
            return Ok(answer);
        }
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let runs = messages.len().div_ceil(RUN);
        // One thread keeps everything in order by itself; more of them hand in run by run.
        let run_len = if self.threads == 1 { messages.len() } else { RUN };
        let (send, receive) = channel();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(runs) {
                let (send, next, stop) = (send.clone(), &next, &stop);
                scope.spawn(move || {
                    let mut worker = self.take();
                    loop {
                        let start = next.fetch_add(run_len, Ordering::Relaxed);
                        if start >= messages.len() || stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let range = start..messages.len().min(start + run_len);
                        let is_stopped = || stop.load(Ordering::Relaxed);
                        let numbers = self.take_buffer();
                        let part =
                            match_run(&mut worker, target, messages, range, numbers, &is_stopped);
                        // The receiver lives until this scope ends.
                        drop(send.send((start, part)));
                    }
                    self.give_back(worker);
                });
            }
            drop(send);
            let mut parts = Vec::with_capacity(runs);
            loop {
                match receive.recv_timeout(LOOK_EVERY) {
                    Ok(part) => parts.push(part),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                // A flood of small parts must not keep the question from being asked.
                if !stop.load(Ordering::Relaxed) && give_up() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Interrupted);
            }
            parts.sort_unstable_by_key(|(start, _)| *start);
            Ok(self.join(parts.into_iter().map(|(_, part)| part)))
        })
    }

    /// Takes a buffer of numbers back for a later batch. Fresh memory costs a page fault every
    /// 1,024 numbers, which is a good part of what collecting them costs.
    pub fn give_buffer(&self, mut numbers: Vec<QueryNumber>) {
        numbers.clear();
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = spare.iter().map(|buffer| buffer.capacity() * 4).sum();
        if kept + numbers.capacity() * 4 <= SPARE_BYTES_MAX {
            spare.push(numbers);
        }
    }

    fn take_buffer(&self) -> Vec<QueryNumber> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Puts parts together in order. The first part is grown rather than copied.
    fn join(&self, parts: impl Iterator<Item = Answer>) -> Answer {
        let mut parts = parts.collect::<Vec<_>>().into_iter();
        let Some(mut all) = parts.next() else { return Answer::default() };
        let rest = parts.as_slice();
        all.numbers.reserve(rest.iter().map(|part| part.numbers.len()).sum());
        all.ends.reserve_exact(rest.iter().map(|part| part.ends.len()).sum());
        for part in parts {
            let before = all.numbers.len();
            all.numbers.extend_from_slice(&part.numbers);
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.refusals.extend(part.refusals);
            all.over_budget.extend(part.over_budget);
            all.stats.add(&part.stats);
            self.give_buffer(part.numbers);
        }
        all
    }

    fn take(&self) -> Worker {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Worker::new(self.options.clone()))
    }

    /// Keeps a worker and its caches for the next batch.
    fn give_back(&self, worker: Worker) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.threads {
            idle.push(worker);
        }
    }
}

fn match_run(
    worker: &mut Worker,
    target: &impl Target,
    messages: &impl Messages,
    range: std::ops::Range<usize>,
    numbers: Vec<QueryNumber>,
    is_stopped: &impl Fn() -> bool,
) -> Answer {
    let mut answer = Answer { numbers, ..Answer::default() };
    answer.ends.reserve(range.len());
    for at in range {
        if is_stopped() {
            break;
        }
        let numbers = &mut answer.numbers;
        if let Some(message) = messages.get(at) {
            match worker.match_message(target, message, messages.encoding(), numbers) {
                Ok(()) => {
                    let over_budget = worker.over_budget.iter();
                    answer.over_budget.extend(over_budget.map(|&number| (at, number)));
                }
                Err(refusal) => answer.refusals.push((at, refusal)),
            }
        }
        answer.ends.push(answer.numbers.len());
    }
    answer.stats = std::mem::take(&mut worker.stats);
    answer
}
