//! Routing tables: entries that lead to targets, several to each.
//!
//! An *entry* is a conjunction of paths, and leads to a set of *targets*: links of a broker, partitions of a
//! population. The paths of all entries are one automaton, as the queries of an index are, but what its
//! states and plans give are targets. A target has as many alternatives as entries lead to it; equal paths
//! are one, whatever entries they are in.
//!
//! A message asks only which targets it reaches. So what leads only to targets that have been reached is
//! looked at no more ([`super::reach`]): not the conditions of a path, not the paths below an element; and the
//! message is done when all targets are reached, or those that are left cannot be.
//!
//! Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 ("a runtime mechanism that instructs YFilter to
//! ignore the processing for duplicate targets"). Differs: its dynamic analysis of the operator network is
//! a set of targets kept at each state of the lazy DFA.

#![forbid(unsafe_code)]

mod depths;
mod open_elements;
pub mod stream;

use crate::engine::collect::Collector;
use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::{GrowingNfa, Terminal};
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::reach::{Conjuncts, Masks, Reach, add};
use crate::engine::symbols::{Class, SymbolTable};
use crate::language::query::{canonical_text, compile_canonical};
use crate::language::xpath::Expression;
use depths::Depths;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// An entry: paths that must all hold, and what they lead to.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'e> {
    /// Numbers of paths, one at least.
    pub paths: &'e [u32],
    /// A bit for each target.
    pub targets: &'e [u64],
}

/// The path of this number is not in canonical text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotCanonical(pub usize);

/// Numbers that a path gives, as a part of all.
type Slice = Range<u32>;

/// Entries that do not change, and their automaton.
#[derive(Debug)]
pub struct RoutingTable {
    /// The paths. It has no queries: what ends where is said below.
    paths: GrowingNfa,
    accepted: FxHashMap<StateId, Slice>,
    plans: Vec<Slice>,
    ranges: Vec<Range<QueryNumber>>,
    reach: Reach,
    depths: Depths,
    prunes: bool,
}

impl RoutingTable {
    /// The table of some entries over paths in canonical text; targets are below `targets`.
    ///
    /// Cost: some microseconds a path.
    ///
    /// # Errors
    /// A path is none.
    ///
    /// # Panics
    /// An entry has no path, names one that is not there, or has not [`words_for`] `targets` words.
    pub fn new<'e>(
        targets: u32,
        paths: &[impl AsRef<str>],
        entries: impl Iterator<Item = Entry<'e>>,
    ) -> Result<Self, NotCanonical> {
        let mut nfa = GrowingNfa::default();
        let (mut ends, mut text) = (Vec::with_capacity(paths.len()), String::new());
        for (number, path) in paths.iter().enumerate() {
            let steps = compile_canonical(path.as_ref()).map_err(|_| NotCanonical(number))?;
            text.clear();
            canonical_text(&steps, &mut text);
            if text != path.as_ref() {
                return Err(NotCanonical(number));
            }
            ends.push(nfa.end_of(&steps, None));
        }
        let mut gathered = Gathered { words: words_for(targets), ..Gathered::default() };
        let mut terminals = Vec::new();
        for entry in entries {
            terminals.clear();
            terminals.extend(entry.paths.iter().map(|&path| ends[path as usize]));
            terminals.sort_unstable();
            terminals.dedup();
            gathered.add(&terminals, entry.targets);
        }
        Ok(gathered.into_table(targets, nfa))
    }

    /// The same table looking at everything to the end, for comparison.
    pub fn without_pruning(self) -> Self {
        RoutingTable { prunes: false, ..self }
    }

    /// Number of targets.
    pub(crate) fn targets(&self) -> u32 {
        self.reach.targets()
    }

    /// Adds what the conjunctions lead to that hold.
    pub(crate) fn conclude(&self, found: &mut Collector) {
        self.reach.conclude(found);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.paths.memory()
            + self.reach.memory()
            + self.accepted.capacity() * 16
            + (self.plans.len() + self.ranges.len()) * 8
    }
}

/// 64-bit words that have a bit for each target.
pub fn words_for(targets: u32) -> usize {
    targets.div_ceil(64).max(1) as usize
}

/// Entries by where their paths end.
#[derive(Default)]
struct Gathered {
    words: usize,
    /// What each end leads to by itself.
    alone: FxHashMap<Terminal, Box<[u64]>>,
    /// The part that an end is.
    part_of: FxHashMap<Terminal, u32>,
    conjunctions: Vec<Conjuncts>,
}

impl Gathered {
    fn add(&mut self, ends: &[Terminal], targets: &[u64]) {
        assert_eq!(targets.len(), self.words, "a set of targets has a bit for each");
        match ends {
            [] => panic!("an entry has a path"),
            [end] => {
                add(self.alone.entry(*end).or_insert_with(|| vec![0; self.words].into()), targets)
            }
            _ => {
                let known = &mut self.part_of;
                let part = |end: &Terminal| {
                    let next = known.len() as u32;
                    *known.entry(*end).or_insert(next)
                };
                let parts = ends.iter().map(part).collect();
                self.conjunctions.push(Conjuncts { parts, targets: targets.into() });
            }
        }
    }

    fn into_table(self, targets: u32, paths: GrowingNfa) -> RoutingTable {
        let words = self.words;
        let first_part = words as u32 * 64;
        let (mut ranges, mut accepted) = (Vec::new(), FxHashMap::default());
        let mut plans = vec![0..0; paths.plan_count()];
        // What each end leads to, alone or with others.
        let mut leads_to = self.alone.clone();
        let mut of_parts = vec![vec![0; words]; self.part_of.len()];
        for each in &self.conjunctions {
            each.parts.iter().for_each(|&part| add(&mut of_parts[part as usize], &each.targets));
        }
        for (end, &part) in &self.part_of {
            let mask = leads_to.entry(*end).or_insert_with(|| vec![0; words].into());
            add(mask, &of_parts[part as usize]);
        }
        for end in leads_to.keys() {
            let start = ranges.len() as u32;
            if let Some(mask) = self.alone.get(end) {
                add_ranges(mask, &mut ranges);
            }
            if let Some(&part) = self.part_of.get(end) {
                ranges.push(first_part + part..first_part + part + 1);
            }
            let slice = start..ranges.len() as u32;
            match *end {
                Terminal::State(state) => {
                    accepted.insert(state, slice);
                }
                Terminal::Plan(plan) => plans[plan as usize] = slice,
            }
        }
        let depths = Depths::of(&paths);
        let reach =
            reach_of(targets, &paths, &depths, &leads_to, self.part_of.len(), self.conjunctions);
        RoutingTable { paths, accepted, plans, ranges, reach, depths, prunes: true }
    }
}

/// What every plan and every state leads to, and what lies under each state.
fn reach_of(
    targets: u32,
    paths: &GrowingNfa,
    depths: &Depths,
    leads_to: &FxHashMap<Terminal, Box<[u64]>>,
    part_count: usize,
    conjunctions: Vec<Conjuncts>,
) -> Reach {
    let words = words_for(targets);
    let mut masks = Masks::new(words);
    let mut plans = vec![masks.intern(&vec![0; words]); paths.plan_count()];
    let mut here = vec![0; words * paths.state_count()];
    let at = |state: StateId| state as usize * words..(state as usize + 1) * words;
    for (end, mask) in leads_to {
        match *end {
            Terminal::State(state) => add(&mut here[at(state)], mask),
            Terminal::Plan(plan) => {
                plans[plan as usize] = masks.intern(mask);
                add(&mut here[at(paths.plan_entry(plan).0)], mask);
            }
        }
    }
    let mut under = vec![0; here.len()];
    // A state is younger than the one that leads to it.
    for state in (1..paths.state_count() as StateId).rev() {
        let parent = at(paths.origin(state).0);
        let (above, below) = under.split_at_mut(at(state).start);
        add(&mut above[parent.clone()], &below[..words]);
        add(&mut above[parent], &here[at(state)]);
    }
    let mut inside = vec![0; here.len()];
    for (plan, mask) in plans.iter().enumerate() {
        if let Some(looked_into) = depths.looked_into(paths, plan as PlanId) {
            add(&mut inside[at(looked_into)], masks.get(*mask));
        }
    }
    let mut interned =
        |masks_of: &[u64]| masks_of.chunks(words).map(|it| masks.intern(it)).collect();
    let (states, under, inside) = (interned(&here), interned(&under), interned(&inside));
    Reach::new(targets, masks, plans, states, [under, inside], part_count, conjunctions)
}

/// The targets of a mask as ranges.
fn add_ranges(mask: &[u64], ranges: &mut Vec<Range<QueryNumber>>) {
    let known = ranges.len();
    for (at, &bits) in mask.iter().enumerate() {
        let mut rest = bits;
        while rest != 0 {
            let target = (at * 64) as u32 + rest.trailing_zeros();
            rest &= rest - 1;
            match ranges[known..].last_mut() {
                Some(last) if last.end == target => last.end += 1,
                _ => ranges.push(target..target + 1),
            }
        }
    }
}

impl Nfa for RoutingTable {
    fn symbols(&self) -> &SymbolTable {
        self.paths.symbols()
    }

    fn is_leaf(&self, state: StateId) -> bool {
        self.reach.under(state).iter().all(|&bits| bits == 0)
    }

    fn step(&self, state: StateId, class: &Class, targets: &mut Vec<StateId>) {
        self.paths.step(state, class, targets);
    }

    fn epsilon(&self, state: StateId) -> Option<StateId> {
        self.paths.epsilon(state)
    }

    fn accepted(&self, state: StateId, ranges: &mut Vec<Range<QueryNumber>>) {
        if let Some(slice) = self.accepted.get(&state) {
            ranges.extend_from_slice(&self.ranges[slice.start as usize..slice.end as usize]);
        }
    }

    fn plans(&self, state: StateId, plans: &mut Vec<PlanId>) {
        self.paths.plans(state, plans);
    }

    fn plan_text(&self, plan: PlanId) -> &str {
        self.paths.plan_text(plan)
    }

    fn nested_paths(&self) -> Option<&NestedPaths> {
        self.paths.nested_paths()
    }

    fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>) {
        let slice = &self.plans[plan as usize];
        ranges.extend_from_slice(&self.ranges[slice.start as usize..slice.end as usize]);
    }

    fn query_count(&self) -> usize {
        self.reach.number_count()
    }

    fn plan_count(&self) -> usize {
        self.paths.plan_count()
    }

    fn expression(&self, _plan: PlanId) -> Option<ExpressionId> {
        None
    }

    fn with_expression<T>(&self, id: ExpressionId, f: impl FnOnce(&Expression) -> T) -> T {
        self.paths.with_expression(id, f)
    }

    fn expression_count(&self) -> usize {
        0
    }

    fn needs_full_tree(&self) -> bool {
        false
    }

    fn reach(&self) -> Option<&Reach> {
        self.prunes.then_some(&self.reach)
    }
}
