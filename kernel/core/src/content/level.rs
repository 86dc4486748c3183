//! The block indexes of one automaton, compiled when a block is first reached.

use super::atoms::{Ask, Atoms};
use super::block_index::{BlockIndex, BlockIndexBuilder, Counts};
use super::nested_paths::NestedPaths;
use super::program::{Conjunct, Need, Outcome, conjuncts_of};
use crate::dfa::BlockId;
use crate::nfa::{Nfa, PlanId, QueryNumber};
use std::ops::Range;

/// What is known of a plan: what it comes to, and where its conjuncts lie. The first of them is the
/// access condition.
#[derive(Clone, Copy, Debug)]
enum Program {
    Unknown,
    Known(Outcome, u32, u32),
}

/// Checks of a plan that a better access condition must be able to save before it is looked for.
const CHECKS_A_PLAN: u32 = 32;
/// Messages after which counts say something.
const MESSAGES_MIN: u32 = 32;

/// Atoms up to which keys of look-ups are numbers of 31 bits, with the places that are not far.
const ATOMS_MAX: usize = 1 << 25;

/// The indexes of one automaton.
#[derive(Debug, Default)]
pub struct Level {
    indexes: Vec<Option<Box<BlockIndex>>>,
    programs: Vec<Program>,
    code: Vec<Conjunct>,
    counts: Counts,
    memory: usize,
    /// Plans that had a choice of access conditions.
    choices: u32,
    /// Plans checked since they were chosen.
    checks: u32,
    /// Messages that had been seen then.
    chosen_at: u32,
    ranges: Vec<Range<QueryNumber>>,
    conjuncts: Vec<Conjunct>,
}

/// What the choice of an access condition goes by.
#[derive(Debug, Clone, Copy)]
pub struct Statistics<'s> {
    /// Messages seen.
    pub messages: u32,
    /// Messages in which nested paths were counted.
    pub nested_messages: u32,
    /// Elements at which each nested path held in those.
    pub nested_hits: &'s [u32],
}

impl Level {
    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.memory + self.code.len() * size_of::<Conjunct>()
    }

    /// The index of a block, which [`Level::ensure`] has seen.
    #[inline]
    pub fn index(&self, block: BlockId) -> &BlockIndex {
        self.indexes[block as usize].as_ref().expect("ensured before")
    }

    /// Numbers given to places and lists of thresholds so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The conjuncts that an answer says are still to be checked.
    #[inline]
    pub fn conjuncts(&self, range: Range<u32>) -> &[Conjunct] {
        &self.code[range.start as usize..range.end as usize]
    }

    /// Touches the memory of conjuncts; the result means nothing.
    #[inline]
    pub fn touch(&self, start: u32) -> u32 {
        self.code.get(start as usize).map_or(0, |conjunct| conjunct.place.touch())
    }

    /// Notes that plans have been checked.
    pub fn count_checks(&mut self, checks: u32) {
        self.checks = self.checks.saturating_add(checks);
    }

    /// Forgets the access conditions if they do badly and more is known about the stream than when they
    /// were chosen (the paper's sorting of predicates, as it adapts). What this costs is made up for by the
    /// checks that have been made since the last time.
    pub fn adapt(&mut self, messages: u32) {
        let is_costly = self.choices > 0 && self.checks / CHECKS_A_PLAN > self.choices;
        if is_costly && messages / 4 > self.chosen_at.max(MESSAGES_MIN / 4) {
            *self = Level { counts: std::mem::take(&mut self.counts), ..Level::default() };
            self.chosen_at = messages;
        }
    }

    /// Compiles the index of a block if it is not there.
    #[expect(clippy::too_many_arguments, reason = "all of it is lent by different owners")]
    pub fn ensure<N: Nfa>(
        &mut self,
        nfa: &N,
        block: BlockId,
        plans: &[PlanId],
        nested: Option<&NestedPaths>,
        atoms: &mut Atoms,
        offset: QueryNumber,
        statistics: Statistics<'_>,
    ) {
        if self.indexes.len() <= block as usize {
            self.indexes.resize_with(block as usize + 1, || None);
        }
        if self.indexes[block as usize].is_none() {
            let index = self.compile(nfa, plans, nested, atoms, offset, statistics);
            self.memory += index.memory();
            self.indexes[block as usize] = Some(Box::new(index));
        }
    }

    fn compile<N: Nfa>(
        &mut self,
        nfa: &N,
        plans: &[PlanId],
        nested: Option<&NestedPaths>,
        atoms: &mut Atoms,
        offset: QueryNumber,
        statistics: Statistics<'_>,
    ) -> BlockIndex {
        let mut builder = BlockIndexBuilder::default();
        for &plan in plans {
            let (outcome, start, end) = self.program(nfa, plan, nested, atoms, statistics);
            if outcome == Outcome::Never {
                continue;
            }
            if outcome == Outcome::Complex {
                builder.add_complex(plan);
                continue;
            }
            if start == end {
                builder.add_unconditional(plan);
                continue;
            }
            let conjuncts = &self.code[start as usize..end as usize];
            self.ranges.clear();
            // Where an expression has the last word, a plan alone decides nothing.
            if nfa.expression(plan).is_none() {
                nfa.plan_numbers(plan, &mut self.ranges);
            }
            builder.add(plan, conjuncts, start, &self.ranges, offset, atoms);
        }
        builder.build(atoms, &mut self.counts)
    }

    fn program<N: Nfa>(
        &mut self,
        nfa: &N,
        plan: PlanId,
        nested: Option<&NestedPaths>,
        atoms: &mut Atoms,
        statistics: Statistics<'_>,
    ) -> (Outcome, u32, u32) {
        if self.programs.len() <= plan as usize {
            self.programs.resize(nfa.plan_count(), Program::Unknown);
            self.memory += self.programs.len() * size_of::<Program>();
        }
        if let Program::Known(outcome, start, end) = self.programs[plan as usize] {
            return (outcome, start, end);
        }
        self.conjuncts.clear();
        let outcome =
            nfa.with_plan(plan, |plan| conjuncts_of(plan, nested, atoms, &mut self.conjuncts));
        let start = self.code.len() as u32;
        let mut outcome = outcome;
        if atoms.len() > ATOMS_MAX || self.conjuncts.iter().any(|c| c.place.is_far()) {
            outcome = Outcome::Complex;
        }
        if outcome == Outcome::Conjunction {
            if self.conjuncts.len() > 1 {
                let weights = self.conjuncts.iter().map(|c| weight(c.need, atoms, statistics));
                let least = weights.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
                self.conjuncts.swap(0, least.map_or(0, |(at, _)| at));
                self.choices += 1;
            }
            self.code.extend_from_slice(&self.conjuncts);
        }
        let end = self.code.len() as u32;
        self.programs[plan as usize] = Program::Known(outcome, start, end);
        (outcome, start, end)
    }
}

/// How many elements of a message satisfy a condition, about: counted where enough has been seen, guessed
/// from its kind otherwise.
fn weight(need: Need, atoms: &Atoms, statistics: Statistics<'_>) -> f32 {
    let rate = |hits: u32, messages: u32| (hits as f32 + 0.1) / messages as f32;
    match need {
        Need::Nested(number) => match statistics.nested_hits.get(number as usize) {
            Some(&hits) if statistics.nested_messages >= 8 => {
                rate(hits, statistics.nested_messages)
            }
            _ => 0.7,
        },
        Need::Found(_, id) | Need::Tried(id) => {
            let ask = &atoms.get(id).ask;
            if ask.is_found() && statistics.messages >= MESSAGES_MIN {
                return rate(atoms.hits(id), statistics.messages);
            }
            match ask {
                Ask::Is(_) => 0.1,
                Ask::Equals(_) => 0.2,
                Ask::StartsWith(_) => 0.4,
                Ask::Contains(_) => 0.5,
                Ask::Exists => 2.0,
                Ask::Ordered(..) => 3.0,
                Ask::IsNot(_) | Ask::Differs(_) => 5.0,
            }
        }
    }
}
