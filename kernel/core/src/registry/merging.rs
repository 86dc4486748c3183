//! Merges that messages do not wait for: a thread of their own, and short locks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::Builder;

/// Entries that a merge takes over under one lock.
pub(crate) const TAKEN_OVER: usize = 1 << 10;

/// One piece of work at a time.
#[derive(Debug, Default)]
pub(crate) struct Background {
    is_busy: Arc<AtomicBool>,
}

/// Ends the work of a [`Background`], also if it panics.
struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Background {
    /// Begins work, unless some is going on or the system has no thread for it; whoever wants it asks again.
    pub(crate) fn begin(&self, work: impl FnOnce() + Send + 'static) {
        if self.is_busy.swap(true, Ordering::Acquire) {
            return;
        }
        let busy = Busy(Arc::clone(&self.is_busy));
        let begun = Builder::new().name("pathcast-merge".to_owned()).spawn(move || {
            let _busy = busy;
            work();
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
