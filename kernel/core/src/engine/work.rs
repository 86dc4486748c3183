//! Work of single queries, counted in steps and never timed: what a message takes for one of them alone.
//!
//! An evaluation that equal queries share is that of the one with the lowest number. Paths, and conditions that are
//! decided for all queries together, are nobody's.

use crate::engine::ids::QueryNumber;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Queries whose work is told of a batch, the dearest.
pub const TOLD_MAX: usize = 256;

/// Bytes of results that count as one step.
pub(crate) const BYTES_A_STEP: usize = 64;

/// Queries for which room is kept from batch to batch, in each thread.
const KEPT_MAX: usize = 1 << 12;

/// A query and its steps.
pub type QueryWork = (QueryNumber, u64);

/// Steps by query, added up over messages. They take room by the queries that had any, however high their numbers are.
#[derive(Debug, Default)]
pub(crate) struct WorkSums {
    steps: HashMap<QueryNumber, u64, FxBuildHasher>,
}

impl WorkSums {
    /// Takes in what a message took, under the numbers that `number` says.
    pub(crate) fn take_in(
        &mut self,
        message: &mut Vec<QueryWork>,
        number: impl Fn(QueryNumber) -> QueryNumber,
    ) {
        for (query, steps) in message.drain(..) {
            self.add(number(query), steps);
        }
    }

    /// Adds what others have counted.
    pub(crate) fn extend(&mut self, work: impl Iterator<Item = QueryWork>) {
        work.for_each(|(query, steps)| self.add(query, steps));
    }

    /// Adds steps.
    #[inline]
    pub(crate) fn add(&mut self, query: QueryNumber, steps: u64) {
        if steps > 0 {
            *self.steps.entry(query).or_default() += steps;
        }
    }

    /// The sums, in any order; begins anew.
    pub(crate) fn take(&mut self) -> Vec<QueryWork> {
        let work = self.steps.drain().collect();
        if self.steps.capacity() > 2 * KEPT_MAX {
            self.steps = HashMap::default();
        }
        work
    }
}

/// Adds up the work of parts of a batch, in each of which a query is once: each once, ascending.
pub(crate) fn add_up(work: &mut Vec<QueryWork>) {
    work.sort_unstable_by_key(|&(query, _)| query);
    work.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        kept.1 += if is_same { next.1 } else { 0 };
        is_same
    });
}

/// The dearest of queries that are there once: descending by steps, then ascending by number.
pub(crate) fn dearest(mut work: Vec<QueryWork>) -> Vec<QueryWork> {
    let order = |&(query, steps): &QueryWork| u128::from(!steps) << 32 | u128::from(query);
    if work.len() > TOLD_MAX {
        work.select_nth_unstable_by_key(TOLD_MAX, order);
        work.truncate(TOLD_MAX);
    }
    work.sort_unstable_by_key(order);
    work
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_begin_anew_when_they_are_taken() {
        let mut sums = WorkSums::default();
        sums.take_in(&mut vec![(3, 5), (1, 2), (3, 1), (2, 0)], |query| query + 1);
        let mut taken = sums.take();
        taken.sort_unstable();
        assert_eq!(taken, [(2, 2), (4, 6)]);
        assert_eq!(sums.take(), []);
        sums.take_in(&mut vec![(4, 1)], |query| query);
        assert_eq!(sums.take(), [(4, 1)], "nothing of an earlier batch is left");
    }

    #[test]
    fn sums_take_room_by_the_queries_that_occur_and_keep_little_of_it() {
        let mut sums = WorkSums::default();
        sums.add(QueryNumber::MAX, 1);
        assert!(sums.steps.capacity() < 100, "a high number is one number");
        sums.extend((0..20 * KEPT_MAX as u32).map(|query| (query, 1)));
        assert_eq!(sums.take().len(), 20 * KEPT_MAX + 1);
        assert!(sums.steps.capacity() <= 2 * KEPT_MAX);
        sums.extend((0..KEPT_MAX as u32).map(|query| (query, 1)));
        sums.take();
        assert!(sums.steps.capacity() >= KEPT_MAX, "room for so many stays");
    }

    #[test]
    fn the_dearest_are_told_of_all_parts_together() {
        let few = (0..TOLD_MAX as u32 + 50).map(|query| (query, 1));
        let mut parts = few.chain([(7, 4), (300, 2), (7, 4)]).collect();
        add_up(&mut parts);
        let found = dearest(parts);
        assert_eq!(found.len(), TOLD_MAX);
        assert_eq!(found[..3], [(7, 9), (300, 3), (0, 1)]);
    }
}
