//! Which targets can still be reached from where, and which conjunctions hold.
//!
//! Query numbers of a routing table are its targets, and behind them, from [`Reach::first_part`] on, its
//! *parts*: paths that an entry wants together with others. What is known of a message is one bitmap over
//! both. A set of targets is a *mask*, the first words of that bitmap; equal masks are kept once.

use crate::engine::collect::Collector;
use crate::engine::ids::{PlanId, QueryNumber, StateId};
use rustc_hash::FxHashMap;

/// Number of a mask.
pub(crate) type MaskId = u32;

/// Sets of targets, each once.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    words: usize,
    bits: Vec<u64>,
    known: FxHashMap<Box<[u64]>, MaskId>,
}

impl Masks {
    /// None yet, of so many words each.
    pub(crate) fn new(words: usize) -> Self {
        Masks { words, ..Masks::default() }
    }

    /// The number of a mask, new or known.
    pub(crate) fn intern(&mut self, mask: &[u64]) -> MaskId {
        if let Some(&known) = self.known.get(mask) {
            return known;
        }
        let id = self.known.len() as MaskId;
        self.bits.extend_from_slice(mask);
        self.known.insert(mask.into(), id);
        id
    }

    pub(crate) fn get(&self, id: MaskId) -> &[u64] {
        &self.bits[id as usize * self.words..][..self.words]
    }

    fn memory(&self) -> usize {
        self.bits.len() * 16 + self.known.capacity() * 24
    }
}

/// Paths that lead to targets together.
#[derive(Debug, Clone, Copy)]
struct Conjunction {
    first_part: u32,
    part_count: u32,
    targets: MaskId,
}

/// What can be reached from where; see the module's text.
#[derive(Debug, Default)]
pub struct Reach {
    targets: u32,
    masks: Masks,
    /// Per plan, per state: what it leads to itself. Conjunctions that it is a part of count.
    plans: Vec<MaskId>,
    states: Vec<MaskId>,
    /// Per state: what the states lead to that it leads to.
    under: Vec<MaskId>,
    /// Per state: what the plans lead to that look into the elements it is reached by.
    inside: Vec<MaskId>,
    /// Per part: what the conjunctions lead to that it is a part of.
    parts: Vec<MaskId>,
    conjunctions: Vec<Conjunction>,
    /// The numbers of their parts.
    conjuncts: Vec<QueryNumber>,
    /// Where the conjunctions begin that are looked at when a part holds; those of one part are neighbours.
    looked_at: Vec<u32>,
}

/// A conjunction on its way in.
#[derive(Debug)]
pub(crate) struct Conjuncts {
    /// Its parts, each once, counted from 0.
    pub(crate) parts: Vec<u32>,
    /// What it leads to.
    pub(crate) targets: Box<[u64]>,
}

impl Reach {
    /// The reach of a table; `plans`, `states`, `under` and `inside` are numbers of `masks`.
    pub(crate) fn new(
        targets: u32,
        mut masks: Masks,
        plans: Vec<MaskId>,
        states: Vec<MaskId>,
        [under, inside]: [Vec<MaskId>; 2],
        part_count: usize,
        mut conjunctions: Vec<Conjuncts>,
    ) -> Self {
        let mut reach = vec![0; part_count * masks.words];
        let mut uses = vec![0u32; part_count];
        for each in &conjunctions {
            for &part in &each.parts {
                uses[part as usize] += 1;
                add(&mut reach[part as usize * masks.words..], &each.targets);
            }
        }
        let parts = reach.chunks(masks.words).map(|mask| masks.intern(mask)).collect();
        // Each is looked at when its rarest part holds.
        for each in &mut conjunctions {
            each.parts.sort_unstable_by_key(|&part| (uses[part as usize], part));
        }
        conjunctions.sort_by_key(|each| each.parts[0]);
        let mut made = Reach { targets, plans, states, under, inside, parts, ..Reach::default() };
        for each in &conjunctions {
            made.looked_at.resize(each.parts[0] as usize + 1, made.conjunctions.len() as u32);
            made.conjunctions.push(Conjunction {
                first_part: made.conjuncts.len() as u32,
                part_count: each.parts.len() as u32,
                targets: masks.intern(&each.targets),
            });
            let first = masks.words as u32 * 64;
            made.conjuncts.extend(each.parts.iter().map(|part| first + part));
        }
        made.looked_at.resize(part_count + 1, made.conjunctions.len() as u32);
        made.masks = masks;
        made
    }

    /// Number of targets.
    pub(crate) fn targets(&self) -> u32 {
        self.targets
    }

    /// 64-bit words of a set of targets.
    pub(crate) fn words(&self) -> usize {
        self.masks.words
    }

    /// The number of the first part.
    pub(crate) fn first_part(&self) -> QueryNumber {
        self.masks.words as u32 * 64
    }

    /// Numbers of targets and parts are below this.
    pub(crate) fn number_count(&self) -> usize {
        self.first_part() as usize + self.parts.len()
    }

    /// What a plan may lead to.
    pub(crate) fn of_plan(&self, plan: PlanId) -> &[u64] {
        self.masks.get(self.plans[plan as usize])
    }

    /// What a state leads to itself, its plans counted.
    pub(crate) fn of_state(&self, state: StateId) -> &[u64] {
        self.masks.get(self.states[state as usize])
    }

    /// What the states lead to that a state leads to.
    pub(crate) fn under(&self, state: StateId) -> &[u64] {
        self.masks.get(self.under[state as usize])
    }

    /// What the plans lead to that look into the elements that a state is reached by.
    pub(crate) fn inside(&self, state: StateId) -> &[u64] {
        self.masks.get(self.inside[state as usize])
    }

    /// Whether a number need not be looked for any more: it is a part of conjunctions whose targets are
    /// all reached.
    #[inline]
    pub(crate) fn is_pointless(&self, number: QueryNumber, found: &Collector) -> bool {
        number >= self.first_part() && {
            let part = (number - self.first_part()) as usize;
            is_reached(self.masks.get(self.parts[part]), found)
        }
    }

    /// Adds what the conjunctions lead to that hold. Cost: the parts that hold, and the conjunctions of which
    /// the rarest part does.
    pub(crate) fn conclude(&self, found: &mut Collector) {
        if self.conjunctions.is_empty() {
            return;
        }
        let words = self.masks.words;
        for at in words..self.number_count().div_ceil(64) {
            let mut bits = found.words()[at];
            while bits != 0 {
                let part = (at - words) * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let range = self.looked_at[part] as usize..self.looked_at[part + 1] as usize;
                for each in &self.conjunctions[range] {
                    let targets = self.masks.get(each.targets);
                    if !is_reached(targets, found) && self.holds(each, found) {
                        let set = targets.iter().enumerate().filter(|(_, bits)| **bits != 0);
                        set.for_each(|(at, &bits)| found.add_word(at as u32, bits));
                    }
                }
            }
        }
    }

    fn holds(&self, conjunction: &Conjunction, found: &Collector) -> bool {
        let first = conjunction.first_part as usize;
        let parts = &self.conjuncts[first..first + conjunction.part_count as usize];
        parts.iter().all(|&part| found.contains(part))
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let ids = self.plans.len() + 3 * self.states.len() + self.parts.len();
        self.masks.memory()
            + (ids + self.conjuncts.len() + self.looked_at.len()) * 4
            + self.conjunctions.len() * size_of::<Conjunction>()
    }
}

/// Whether all targets of a mask have been found.
#[inline]
pub(crate) fn is_reached(mask: &[u64], found: &Collector) -> bool {
    mask.iter().zip(found.words()).all(|(mask, found)| mask & !found == 0)
}

/// Adds the targets of a mask to those of another.
#[inline]
pub(crate) fn add(to: &mut [u64], mask: &[u64]) {
    to.iter_mut().zip(mask).for_each(|(to, mask)| *to |= mask);
}
