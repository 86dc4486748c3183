//! Sets of small numbers that are emptied by counting on.

/// Numbers for which memory is kept although sets are much smaller.
const IDLE_MAX: usize = 1 << 13;

/// A set of numbers; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    now: u32,
    marked: Vec<u32>,
}

impl Marks {
    /// Empties the set; most numbers to come are below `below`. Cost: constant, once the memory is there.
    pub(crate) fn begin(&mut self, below: usize) {
        let is_idle = self.marked.len() / 8 > below.max(IDLE_MAX);
        if self.now == u32::MAX || is_idle {
            *self = Marks::default();
        }
        self.now += 1;
        if self.marked.len() < below {
            self.marked.resize(below, 0);
        }
    }

    /// Adds a number; false if it was there.
    #[inline]
    pub(crate) fn add(&mut self, number: u32) -> bool {
        if self.marked.len() <= number as usize {
            self.marked.resize(number as usize + 1, 0);
        }
        std::mem::replace(&mut self.marked[number as usize], self.now) != self.now
    }

    /// Whether a number is there.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.marked[number as usize] == self.now
    }
}
