//! A batch handed out to several threads, run by run, and its parts put back in order.
//!
//! Messages are handed out in small runs, so that one slow message does not hold up a thread's whole
//! share. The calling thread only waits, and looks from time to time whether the batch is to be given
//! up (Ctrl-C); the others are told. What is done with a run is the caller's affair.

use crate::engine::interrupt;
use crate::engine::interrupt::{ASK_EVERY, Interrupted};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Messages handed to a thread at a time.
const RUN: usize = 32;

/// Workers that keep their caches from batch to batch.
#[derive(Debug)]
pub(crate) struct Workers<W> {
    threads: usize,
    /// Boxed: to move a worker takes longer than a short message does.
    idle: Mutex<Vec<Box<W>>>,
}

impl<W: Send> Workers<W> {
    /// None yet; at most one a thread is kept.
    pub(crate) fn new(threads: usize) -> Self {
        Workers { threads: threads.max(1), idle: Mutex::default() }
    }

    /// Whether a batch is done by one thread.
    pub(crate) fn is_one(&self) -> bool {
        self.threads == 1
    }

    /// Calls `f` with a worker, an idle one or a new one.
    pub(crate) fn with<T>(&self, make: impl FnOnce() -> W, f: impl FnOnce(&mut W) -> T) -> T {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = idle.unwrap_or_else(|| Box::new(make()));
        let answer = f(&mut worker);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.threads {
            idle.push(worker);
        }
        answer
    }

    /// Does all runs of a batch of so many messages; their answers in the order of the messages.
    ///
    /// `work` is given a worker and the places of a run; it is watched for the batch being given up. Calls
    /// may overlap; each takes the workers it needs.
    pub(crate) fn run<T: Send>(
        &self,
        messages: usize,
        make: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, Range<usize>) -> T + Sync,
    ) -> Result<Vec<T>, Interrupted> {
        let next = AtomicUsize::new(0);
        let stop = Arc::new(AtomicBool::new(false));
        // One thread keeps everything in order by itself; more of them hand in run by run.
        let run_len = if self.threads == 1 { messages.max(1) } else { RUN };
        let (send, receive) = channel();
        let mut parts = std::thread::scope(|scope| {
            for _ in 0..self.threads.min(messages.div_ceil(RUN)) {
                let (send, next, stop) = (send.clone(), &next, Arc::clone(&stop));
                let (make, work) = (&make, &work);
                let ask = move || stop.load(Ordering::Relaxed);
                let serve = move || {
                    self.with(make, |worker| {
                        loop {
                            let start = next.fetch_add(run_len, Ordering::Relaxed);
                            if start >= messages || interrupt::look() {
                                break;
                            }
                            let range = start..messages.min(start + run_len);
                            // The receiver lives until this scope ends.
                            drop(send.send((start, work(worker, range))));
                        }
                    });
                };
                // To ask is to read a flag.
                scope.spawn(move || interrupt::watched(Duration::ZERO, ask, serve));
            }
            drop(send);
            let mut parts = Vec::new();
            loop {
                match receive.recv_timeout(ASK_EVERY) {
                    Ok(part) => parts.push(part),
                    Err(RecvTimeoutError::Disconnected) => break parts,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                // A flood of small parts must not keep the question from being asked.
                if interrupt::look() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        });
        parts.sort_unstable_by_key(|&(start, _)| start);
        interrupt::finished(parts.into_iter().map(|(_, part)| part).collect())
    }
}
