//! A batch of messages on several threads; the answers are put together in the order of the messages.

use super::dissemination::Dissemination;
use super::serving::{NO_FRAGMENT, NodePlace, Options, Output};
use super::worker::{GroupCounts, Target, Worker};
use crate::engine::counters::Stats;
use crate::engine::interrupt;
use crate::engine::interrupt::Interrupted;
use crate::engine::plans::shared::SubscriptionNumber;
use crate::engine::verdicts::{UsedUp, Verdict};
use crate::engine::work::{QueryWork, add_up, dearest};
use crate::registry::batch::{self, Answer as Matched, Buffers, Messages, match_run};
use crate::registry::workers::Workers;
use crate::xml::parser::Refusal;
use crate::xml::places::Place;
use std::ops::Range;
use std::sync::Arc;

/// After so many messages of a run, room is made for what the others will probably give: growing bit by
/// bit copies everything several times.
const SURVEY: usize = 8;
/// Bytes that are reserved so at most.
const RESERVED_MAX: usize = 1 << 30;
/// Batches of no more messages are served by the calling thread itself.
const INLINE_MESSAGES_MAX: usize = 4;
/// So are those of no more bytes where there is one thread: it would only be waited for.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// What came of a batch, as columns.
#[derive(Debug, Default)]
pub struct Answer {
    /// Per delivery: the message, by its place in the batch.
    pub messages: Vec<u32>,
    /// Per delivery: the subscription.
    pub subscriptions: Vec<SubscriptionNumber>,
    /// Per delivery: which result of the subscription for the message.
    pub results: Vec<u32>,
    /// Per delivery: the fragment, or [`NO_FRAGMENT`].
    pub fragments: Vec<u32>,
    /// The fragments, one after the other.
    pub bytes: Vec<u8>,
    /// Where each fragment ends.
    pub ends: Vec<i64>,
    /// Per delivery of a node, ascending: which of the deliveries it is, and its place.
    pub places: Vec<(u32, Place)>,
    /// The refused messages, ascending.
    pub refusals: Vec<(usize, Refusal)>,
    /// Pairs of message and subscription without a delivery that might have had one, ascending.
    pub verdicts: Vec<(usize, SubscriptionNumber, Verdict)>,
    /// Steps of single subscriptions: of a batch, of the dearest.
    pub work: Vec<QueryWork>,
    /// Counters.
    pub stats: Stats,
}

impl Answer {
    /// The columns of deliveries.
    fn columns(&mut self) -> [&mut Vec<u32>; 4] {
        [&mut self.messages, &mut self.subscriptions, &mut self.results, &mut self.fragments]
    }

    /// Adds the deliveries and verdicts of one message; its fragments are those of the run.
    fn take(&mut self, message: usize, out: &mut Output) {
        if !out.places.is_empty() {
            self.take_places(out);
        }
        for delivery in out.deliveries.drain(..) {
            self.messages.push(message as u32);
            self.subscriptions.push(delivery.subscription);
            self.results.push(delivery.result);
            self.fragments.push(delivery.fragment);
        }
        let verdicts = out.verdicts.drain(..);
        self.verdicts.extend(verdicts.map(|(number, verdict)| (message, number, verdict)));
    }

    /// Adds the places among the deliveries of a message.
    fn take_places(&mut self, out: &mut Output) {
        let first = self.messages.len();
        out.places.sort_unstable_by_key(|each| (each.subscription, each.result));
        let mut places = out.places.drain(..).peekable();
        for (at, delivery) in out.deliveries.iter().enumerate() {
            let is_of = |each: &NodePlace| {
                (each.subscription, each.result) == (delivery.subscription, delivery.result)
            };
            if let Some(NodePlace { place, .. }) = places.next_if(is_of) {
                self.places.push(((first + at) as u32, place));
            }
        }
    }

    /// Adds the answer to the messages that follow.
    fn append(&mut self, next: Answer) {
        if self.messages.is_empty() && self.ends.is_empty() {
            let Answer { refusals, verdicts, work, stats, .. } = std::mem::replace(self, next);
            self.refusals.splice(0..0, refusals);
            self.verdicts.splice(0..0, verdicts);
            self.work.extend(work);
            self.stats.add(&stats);
            return;
        }
        let (base, rows) = (self.ends.len() as u32, self.messages.len() as u32);
        self.places.extend(next.places.into_iter().map(|(row, place)| (rows + row, place)));
        let start = self.bytes.len() as i64;
        self.messages.extend(next.messages);
        self.subscriptions.extend(next.subscriptions);
        self.results.extend(next.results);
        self.fragments.extend(next.fragments.into_iter().map(|fragment| match fragment {
            NO_FRAGMENT => NO_FRAGMENT,
            fragment => base + fragment,
        }));
        self.bytes.extend_from_slice(&next.bytes);
        self.ends.extend(next.ends.into_iter().map(|end| start + end));
        self.refusals.extend(next.refusals);
        self.verdicts.extend(next.verdicts);
        self.work.extend(next.work);
        self.stats.add(&next.stats);
    }
}

/// Workers that keep their caches from batch to batch.
#[derive(Debug)]
pub struct Pool {
    options: Options,
    workers: Workers<Worker>,
    buffers: Arc<Buffers>,
}

impl Pool {
    /// A pool for `threads` threads (at least one); the bound on the caches is shared out to them.
    pub fn new(mut options: Options, threads: usize) -> Self {
        let threads = threads.max(1);
        options.cache_bytes_max /= threads;
        Pool { options, workers: Workers::new(threads), buffers: Arc::default() }
    }

    /// Serves a batch.
    ///
    /// # Errors
    /// It was interrupted.
    pub fn run(
        &self,
        target: &Dissemination,
        messages: &(impl Messages + ?Sized),
    ) -> Result<Answer, Interrupted> {
        let make = || Worker::new(self.options.clone());
        let is_small = self.workers.is_one() && messages.bytes() <= INLINE_BYTES_MAX;
        let mut answer = Answer::default();
        if is_small || messages.len() <= INLINE_MESSAGES_MAX {
            answer = self.workers.with(make, |worker| {
                interrupt::finished(serve_run(worker, target, messages, 0..messages.len()))
            })?;
        } else {
            let work = |worker: &mut Worker, range| serve_run(worker, target, messages, range);
            let parts = self.workers.run(messages.len(), make, work)?;
            parts.into_iter().for_each(|part| answer.append(part));
            add_up(&mut answer.work);
        }
        answer.work = dearest(answer.work);
        Ok(answer)
    }

    /// Matches a batch: which queries each message satisfies, and which subscriptions are delivered something of it.
    ///
    /// # Errors
    /// It was interrupted.
    pub fn match_batch(
        &self,
        target: Target<'_>,
        messages: &(impl Messages + ?Sized),
    ) -> Result<Matched, Interrupted> {
        let make = || Worker::new(self.options.clone());
        let work = |worker: &mut Worker, range| {
            let one = |at, message: &[u8], answer: &mut Matched| {
                let Matched { numbers, undecided, verdicts, .. } = answer;
                let arrival = messages.arrival(at);
                worker.match_message(target, message, arrival, numbers, |number, why| match why {
                    Verdict::OverBudget => undecided.push((at, number, UsedUp::Query)),
                    Verdict::MessageOverBudget => undecided.push((at, number, UsedUp::Message)),
                    why => verdicts.push((at, number, why)),
                })
            };
            let answer = match_run(messages, range, self.buffers.take(), one);
            let work = worker.take_work(target);
            let stats = std::mem::take(&mut worker.stats);
            Matched { stats, work, ..answer }
        };
        let answer = batch::run(&self.workers, &self.buffers, messages, make, work)?;
        Ok(Matched { work: dearest(answer.work), ..answer })
    }

    /// Where buffers of numbers go when they are read.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// Runs the shared plans to groupSequence-listSequence on one thread; see
    /// [`Worker::count_groups`]. Messages that the door refuses are passed over.
    pub fn count_groups(
        &self,
        target: &Dissemination,
        messages: &impl Messages,
        visits: bool,
    ) -> (GroupCounts, Stats) {
        self.workers.with(
            || Worker::new(self.options.clone()),
            |worker| {
                let mut counts = GroupCounts::default();
                for message in (0..messages.len()).filter_map(|at| messages.get(at)) {
                    if interrupt::look() {
                        break;
                    }
                    // A refusal is counted by the worker.
                    drop(worker.count_groups(target, message, visits, &mut counts));
                }
                (counts, std::mem::take(&mut worker.stats))
            },
        )
    }
}

/// Reserves for so many further messages what the first ones have needed each, and some more.
fn make_room<T>(list: &mut Vec<T>, messages: usize) {
    let further = (list.len() / SURVEY + 1).saturating_mul(messages);
    let further = (further + further / 8).min(RESERVED_MAX / size_of::<T>());
    // If there is not that much memory it grows as it must.
    drop(list.try_reserve(further));
}

fn serve_run(
    worker: &mut Worker,
    target: &Dissemination,
    messages: &(impl Messages + ?Sized),
    range: Range<usize>,
) -> Answer {
    let mut answer = Answer::default();
    let mut out = Output::default();
    let (first, end) = (range.start, range.end);
    for at in range {
        if interrupt::look() {
            break;
        }
        if at - first == SURVEY {
            make_room(&mut out.fragments.bytes, end - at);
            make_room(&mut out.fragments.ends, end - at);
            for column in answer.columns() {
                make_room(column, end - at);
            }
        }
        let Some(message) = messages.get(at) else { continue };
        match worker.serve(target, message, messages.arrival(at), &mut out) {
            Ok(()) => answer.take(at, &mut out),
            Err(refusal) => answer.refusals.push((at, refusal)),
        }
    }
    answer.bytes = out.fragments.bytes;
    answer.ends = out.fragments.ends.into_iter().map(|end| end as i64).collect();
    answer.work = worker.take_work(target.into());
    answer.stats = std::mem::take(&mut worker.stats);
    answer
}
