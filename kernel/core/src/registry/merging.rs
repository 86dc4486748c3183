//! Merges that messages and changes do not wait for: a thread of their own, and short locks.
//!
//! A fork takes one thread along. What another one holds at that moment stays held in the new process, so a fork has
//! the process to itself ([`before_fork`]): it interrupts the work in the background and waits until that has let
//! everything go. The next batch begins it again.

use crate::engine::interrupt::watched;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::Builder;
use std::time::Duration;

/// Queries that a merge takes over under one lock.
pub(crate) const ENTRIES_A_LOCK: usize = 1 << 10;

/// Subscriptions that are subscribed again under one lock.
pub(crate) const SUBSCRIPTIONS_A_LOCK: usize = 64;

/// Held shared by work in the background, alone by a fork.
static AT_WORK: RwLock<()> = RwLock::new(());
static IS_FORKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static FORK: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Gives up the work in the background and begins none until [`after_fork`].
pub fn before_fork() {
    IS_FORKING.store(true, Ordering::Relaxed);
    FORK.with_borrow_mut(|fork| {
        fork.get_or_insert_with(|| write(&AT_WORK));
    });
}

/// Lets work begin again; called on the thread that has forked, in both processes.
pub fn after_fork() {
    IS_FORKING.store(false, Ordering::Relaxed);
    FORK.take();
}

/// The merges of one registry, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    merging: Mutex<()>,
    /// The process in which there is work in the background; 0 for none. A fork does not take that along.
    busy_in: Arc<AtomicU32>,
}

/// Ends the work of a [`Merging`] in the background, unless it must not begin again.
struct Busy {
    process: Arc<AtomicU32>,
    may_begin_again: bool,
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.may_begin_again {
            self.process.store(0, Ordering::Release);
        }
    }
}

impl Merging {
    /// Waits until no other merge is at work, and keeps others from it while the guard lives.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.merging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins work in the background, unless some is going on or the system has no thread for it. The work says whether
    /// the next caller may begin it again; after a panic, which has been reported, nobody may.
    pub(crate) fn begin(&self, work: impl FnOnce() -> bool + Send + 'static) {
        let (process, busy_in) = (std::process::id(), self.busy_in.load(Ordering::Relaxed));
        let (taken, seen) = (Ordering::Acquire, Ordering::Relaxed);
        if busy_in == process
            || self.busy_in.compare_exchange(busy_in, process, taken, seen).is_err()
        {
            return;
        }
        let busy = Busy { process: Arc::clone(&self.busy_in), may_begin_again: true };
        let begun = Builder::new().name("pathcast-merge".to_owned()).spawn(move || {
            let _at_work = read(&AT_WORK);
            let mut busy = busy;
            busy.may_begin_again = false;
            // To ask is to read a flag.
            let is_forking = || IS_FORKING.load(Ordering::Relaxed);
            busy.may_begin_again = watched(Duration::ZERO, is_forking, work);
        });
        // If there is no thread, the closure is dropped, and `busy` with it.
        drop(begun);
    }
}

/// A panic elsewhere leaves the data whole (every change is complete before the next can fail), so a
/// poisoned lock is taken as it is.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// The same, to change it.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::interrupt::{Interrupted, look};
    use std::sync::mpsc::channel;

    fn wait_until_free(merging: &Merging) {
        while merging.busy_in.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_fork_interrupts_the_work_and_none_begins_before_it_is_done() {
        let (merging, (begun, begins), (done, ends)) = (Merging::default(), channel(), channel());
        let work = |round: u32| {
            let (begun, done) = (begun.clone(), done.clone());
            move || {
                begun.send(round).expect("the test waits for it");
                let outcome = if round == 0 {
                    while !look() {}
                    Err(Interrupted)
                } else {
                    Ok(())
                };
                done.send(outcome).expect("the test waits for it");
                true
            }
        };
        merging.begin(work(0));
        assert_eq!(begins.recv(), Ok(0));
        before_fork();
        assert_eq!(ends.try_recv(), Ok(Err(Interrupted)), "the fork has waited for it");
        assert_eq!(merging.busy_in.load(Ordering::Acquire), 0);
        merging.begin(work(1));
        assert!(begins.try_recv().is_err());
        after_fork();
        assert_eq!((begins.recv(), ends.recv()), (Ok(1), Ok(Ok(()))));
        wait_until_free(&merging);
    }

    #[test]
    fn work_of_another_process_is_none_here_and_that_which_panics_is_not_begun_again() {
        let merging = Merging::default();
        merging.busy_in.store(std::process::id() + 1, Ordering::Release);
        let (sender, receiver) = channel();
        let first = sender.clone();
        merging.begin(move || {
            first.send(()).expect("the test waits for it");
            true
        });
        assert_eq!(receiver.recv(), Ok(()));
        wait_until_free(&merging);
        let panics = sender.clone();
        merging.begin(move || {
            let _sent_by_its_drop = panics;
            panic!("a fault of the kernel");
        });
        drop(sender);
        assert!(receiver.recv().is_err(), "it has panicked");
        merging.begin(|| unreachable!("it was begun again"));
        assert_eq!(merging.busy_in.load(Ordering::Acquire), std::process::id());
    }
}
