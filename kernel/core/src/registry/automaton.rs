//! Queries by number, which come and go while messages flow.
//!
//! They are a base that does not change and what came since: a [`GrowingNfa`] for new ones (the delta), a bitmap of
//! tombstones for removed ones. Numbers count the base first, then the delta in order of arrival.
//!
//! A merge makes a new base of the queries that are left. It works on the base, which nobody changes, and on a copy
//! of the rest ([`Merge`]), so that messages and changes go on meanwhile; what has changed by the time it is done is
//! worked into a new delta ([`Merged`]), and the new automaton takes the place of the old one, with new numbers.
//!
//! It knows no ids and no texts.

use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::Interrupted;
use crate::engine::nfa::growing::GrowingNfa;
use crate::language::compile::Evaluated;
use crate::language::query::ast::Step;
use crate::registry::snapshot::automaton::FrozenAutomaton;
use crate::registry::snapshot::build::{FrozenArrays, LiveQuery};
use crate::registry::snapshot::import::import;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// So many new or removed queries are let be, whatever the size of the base.
const UNMERGED_MAX: usize = 1 << 14;

/// The generation of automata that do not change.
pub(crate) const UNCHANGING: u64 = 1;

/// Stands for the number of a query that a merge has left out.
const LEFT_OUT: QueryNumber = QueryNumber::MAX;

/// Queries by number; see the module's text.
#[derive(Debug)]
pub(crate) struct Automaton {
    base: Option<Arc<FrozenAutomaton>>,
    delta: GrowingNfa,
    removed: Tombstones,
    /// Another one for each automaton of this process.
    generation: u64,
}

impl Default for Automaton {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(UNCHANGING + 1);
        Automaton {
            base: None,
            delta: GrowingNfa::default(),
            removed: Tombstones::default(),
            generation: NEXT.fetch_add(1, atomic::Ordering::Relaxed),
        }
    }
}

/// Numbers of what was removed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tombstones {
    bits: Vec<u64>,
    count: usize,
}

impl Tombstones {
    /// Number of numbers.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The numbers, a bit each.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Whether a number is among them.
    pub(crate) fn has(&self, number: QueryNumber) -> bool {
        self.bits.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a number.
    pub(crate) fn set(&mut self, number: QueryNumber) {
        if self.has(number) {
            return;
        }
        let word = number as usize / 64;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (number % 64);
        self.count += 1;
    }

    /// The numbers that are not in another set.
    fn without<'t>(&'t self, other: &'t Tombstones) -> impl Iterator<Item = QueryNumber> + 't {
        self.bits.iter().enumerate().flat_map(move |(at, &word)| {
            let mut rest = word & !other.bits.get(at).copied().unwrap_or(0);
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}

impl Automaton {
    /// An automaton that goes on from a base.
    pub(crate) fn on(base: Arc<FrozenAutomaton>) -> Automaton {
        Automaton { base: Some(base), ..Automaton::default() }
    }

    /// Number of queries.
    pub(crate) fn len(&self) -> usize {
        self.number_count() - self.removed.count
    }

    /// Number of query numbers, removed ones counted.
    pub(crate) fn number_count(&self) -> usize {
        self.base_len() + self.delta.len()
    }

    /// Number of the first query of the delta.
    pub(crate) fn base_len(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len())
    }

    /// The queries that do not change.
    pub(crate) fn base(&self) -> Option<&Arc<FrozenAutomaton>> {
        self.base.as_ref()
    }

    /// The queries that came since.
    pub(crate) fn delta(&self) -> &GrowingNfa {
        &self.delta
    }

    /// Bitmap of the removed numbers; none when there are none.
    pub(crate) fn removed(&self) -> Option<&[u64]> {
        (self.removed.count > 0).then_some(&self.removed.bits)
    }

    /// Which base, and which delta that grows.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether there is so much to merge that it pays.
    pub(crate) fn is_worn(&self) -> bool {
        self.delta.len() > UNMERGED_MAX.max(self.base_len() / 2)
            || self.removed.count > UNMERGED_MAX.max(self.len() / 2)
    }

    /// Bytes held by the delta and the tombstones.
    pub(crate) fn memory(&self) -> usize {
        self.delta.memory() + self.removed.bits.capacity() * 8
    }

    /// Inserts a query and returns its number: it holds where one of its alternatives (normal form, one at
    /// least) holds and the expression, if there is one, is true. See [`GrowingNfa::insert`].
    pub(crate) fn insert(
        &mut self,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
    ) -> QueryNumber {
        let expression = expression.map(|Evaluated { text, needs_full_tree }| {
            self.delta.expressions_mut().intern(text, *needs_full_tree)
        });
        let number = self.delta.insert(alternatives, expression);
        self.base_len() as QueryNumber + number
    }

    /// Removes a query. Cost: a bit; what it used goes with the next merge.
    pub(crate) fn remove(&mut self, number: QueryNumber) {
        self.removed.set(number);
    }
}

/// What a merge works on: an automaton at one moment.
#[derive(Debug)]
pub(crate) struct Merge {
    base: Option<Arc<FrozenAutomaton>>,
    delta: GrowingNfa,
    removed: Tombstones,
}

impl Merge {
    /// A copy of all but the base.
    pub(crate) fn of(automaton: &Automaton) -> Merge {
        Merge {
            base: automaton.base.clone(),
            delta: automaton.delta.copy(),
            removed: automaton.removed.clone(),
        }
    }

    /// The arrays of the new base. `order` decides between queries that end alike, by their numbers.
    ///
    /// Cost: about 1.5 µs a query. Memory: the base as an automaton that grows, and the new base.
    ///
    /// # Errors
    /// It was interrupted.
    pub(crate) fn freeze(
        mut self,
        order: impl Fn(QueryNumber, QueryNumber) -> Ordering,
    ) -> Result<(FrozenArrays, Renumbered), Interrupted> {
        let base_len = self.base.as_ref().map_or(0, |base| base.len());
        let count = base_len + self.delta.len();
        let base_endings = match &self.base {
            Some(base) => import(base, &mut self.delta)?,
            None => vec![],
        };
        let is_live = |number: &QueryNumber| !self.removed.has(*number);
        let mut queries: Vec<LiveQuery> = (0..count as QueryNumber)
            .filter(is_live)
            .map(|number| {
                let ending = match (number as usize).checked_sub(base_len) {
                    Some(at) => self.delta.ending(at as u32),
                    None => base_endings[number as usize],
                };
                LiveQuery { ending, number }
            })
            .collect();
        drop(base_endings);
        let arrays = FrozenArrays::of(&self.delta, &mut queries, order)?;
        let old = queries.iter().map(|query| query.number).collect();
        Ok((arrays, Renumbered { old, count, base_len, removed: self.removed }))
    }
}

/// What a new base is made from.
#[derive(Debug)]
pub(crate) struct Renumbered {
    /// The numbers so far in the order of the new ones.
    pub(crate) old: Vec<QueryNumber>,
    /// Number of queries of the old automaton, removed ones counted.
    count: usize,
    base_len: usize,
    removed: Tombstones,
}

impl Renumbered {
    /// A new automaton, on the new base.
    pub(crate) fn on(self, base: Arc<FrozenAutomaton>) -> Merged {
        let mut new_number = vec![LEFT_OUT; self.count];
        for (new, &old) in self.old.iter().enumerate() {
            new_number[old as usize] = new as QueryNumber;
        }
        let (base_len, removed) = (self.base_len, self.removed);
        Merged { automaton: Automaton::on(base), base_len, new_number, removed }
    }
}

/// A new automaton that is to take the place of the one it was made from.
#[derive(Debug)]
pub(crate) struct Merged {
    automaton: Automaton,
    /// That of the old automaton.
    base_len: usize,
    /// By number in the copy of the old one.
    new_number: Vec<QueryNumber>,
    /// The numbers that were removed then.
    removed: Tombstones,
}

impl Merged {
    /// Number of queries that the old automaton had when it was copied, removed ones counted.
    pub(crate) fn copied(&self) -> usize {
        self.new_number.len()
    }

    /// Number in the old automaton of the next query that is to be taken over.
    fn next(&self) -> usize {
        self.copied() + self.automaton.delta.len()
    }

    /// Takes over at most so many of the queries that the old automaton has got meanwhile; whether that was all.
    pub(crate) fn catch_up(&mut self, old: &Automaton, most: usize) -> bool {
        let until = old.number_count().min(self.next().saturating_add(most));
        for number in self.next()..until {
            let in_delta = (number - self.base_len) as QueryNumber;
            self.automaton.delta.insert_of(&old.delta, in_delta);
        }
        until == old.number_count()
    }

    /// The new automaton, with all that the old one has become. Calls `removed` with the new numbers of what was removed
    /// meanwhile.
    pub(crate) fn finish(
        mut self,
        old: &Automaton,
        mut removed: impl FnMut(QueryNumber),
    ) -> Automaton {
        self.catch_up(old, usize::MAX);
        for number in old.removed.without(&self.removed) {
            let new = match self.new_number.get(number as usize) {
                Some(&new) => new,
                None => {
                    (self.automaton.base_len() + number as usize - self.new_number.len()) as u32
                }
            };
            if new != LEFT_OUT {
                self.automaton.remove(new);
                removed(new);
            }
        }
        self.automaton
    }
}
