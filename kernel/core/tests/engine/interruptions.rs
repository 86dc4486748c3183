//! Batches that are interrupted have no answer, and those that follow have theirs.

use crate::world::{Batch, answers, pool_with, register, register_all};
use pathcast_core::engine::interrupt::{Interrupted, watched};
use pathcast_core::registry::batch::Messages;
use pathcast_core::registry::delivery::dissemination::Dissemination;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// An index with a query whose steps grow with the cube of the elements of [`costly`].
fn hostile() -> Dissemination {
    let index = Dissemination::default();
    assert!(register(&index, "plain", "/a/b"));
    let expression =
        "(count(/descendant::b[(count(following::b[(count(preceding::b) > 7)]) > 3)]) > 1)";
    assert_eq!(register_all(&index, "hostile", &["/a"], Some(expression)), Ok(()));
    index
}

fn costly(elements: usize) -> Batch {
    Batch(vec![format!("<a>{}</a>", "<b/>".repeat(elements))])
}

/// A batch that the calling thread matches itself.
struct Alone(Batch);

impl Messages for Alone {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, at: usize) -> Option<&[u8]> {
        self.0.get(at)
    }
    fn bytes(&self) -> usize {
        0
    }
}

/// One message must not keep its caller until it has been matched, however long that takes; and the pool
/// must not keep what the interrupted message has left.
#[test]
fn a_single_message_is_interrupted() {
    let index = hostile();
    let pools = [(1 << 24, 1), (0, 1), (1 << 24, 3)]
        .map(|(cache, threads)| pool_with(cache, threads, 1 << 24));
    for pool in &pools {
        let expected = answers(pool, &index, &costly(10));
        let work = || pool.match_batch((&index).into(), &costly(10)).map(|answer| answer.work);
        let expected_work = work();
        assert!(expected_work.as_ref().is_ok_and(|work| work.len() == 1));
        for looks in 0..4 {
            let asked = Rc::new(Cell::new(0));
            let counter = Rc::clone(&asked);
            let ask = move || counter.replace(counter.get() + 1) == looks;
            let batch = Alone(costly(1_000));
            let answer = watched(Duration::ZERO, ask, || pool.match_batch((&index).into(), &batch));
            assert_eq!(answer.err(), Some(Interrupted), "at look {looks}");
            assert_eq!(asked.get(), looks + 1, "it went on after it was told to stop");
            assert_eq!(work(), expected_work, "steps of the interrupted message are counted");
            assert_eq!(answers(pool, &index, &costly(10)), expected);
        }
    }
}
