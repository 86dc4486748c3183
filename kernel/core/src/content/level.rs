//! The block indexes of one automaton, compiled when a block is first reached.

use super::atoms::{Ask, Atoms};
use super::block_index::{BlockIndex, BlockIndexBuilder, Counts};
use super::nested_paths::NestedPaths;
use super::program::{Conjunct, Need, Outcome, conjuncts_of};
use crate::dfa::BlockId;
use crate::nfa::{Nfa, PlanId, QueryNumber};
use std::ops::Range;

/// What is known of a plan.
#[derive(Clone, Copy, Debug)]
enum Program {
    Unknown,
    Outcome(Outcome, u32, u32),
}

/// A block's index and how it does.
#[derive(Debug)]
pub struct Slot {
    /// The index.
    pub index: BlockIndex,
    /// Plans that had a choice of access conditions.
    choices: u32,
    /// Messages that had been seen when it was compiled.
    built_at: u32,
    /// Plans checked since.
    checks: u32,
}

/// Checks of a plan that a better access condition must be able to save before it is looked for.
const CHECKS_A_PLAN: u32 = 32;
/// Messages after which counts say something.
const MESSAGES_MIN: u32 = 32;

/// The indexes of one automaton.
#[derive(Debug, Default)]
pub struct Level {
    slots: Vec<Option<Box<Slot>>>,
    programs: Vec<Program>,
    code: Vec<Conjunct>,
    counts: Counts,
    memory: usize,
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
        &self.slots[block as usize].as_ref().expect("ensured before").index
    }

    /// Numbers given to places and lists of thresholds so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The conjuncts of a plan that is a conjunction and has been compiled.
    #[inline]
    pub fn conjuncts(&self, plan: PlanId) -> &[Conjunct] {
        match self.programs[plan as usize] {
            Program::Outcome(_, start, end) => &self.code[start as usize..end as usize],
            Program::Unknown => unreachable!("only plans of compiled blocks are asked for"),
        }
    }

    /// Notes that plans of a block have been checked.
    pub fn count_checks(&mut self, block: BlockId, checks: u32) {
        if let Some(slot) = &mut self.slots[block as usize] {
            slot.checks = slot.checks.saturating_add(checks);
        }
    }

    /// Compiles the index of a block if it is not there, or again if what is known about the stream has
    /// grown and its access conditions do badly (the paper's sorting of predicates, as it adapts).
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
        if self.slots.len() <= block as usize {
            self.slots.resize_with(block as usize + 1, || None);
        }
        if let Some(slot) = &self.slots[block as usize] {
            let is_costly = slot.checks / CHECKS_A_PLAN > slot.choices;
            let is_old = statistics.messages / 4 > slot.built_at.max(MESSAGES_MIN / 4);
            if !is_costly || !is_old || slot.choices == 0 {
                return;
            }
            self.memory -= slot.index.memory();
        }
        let slot = self.compile(nfa, plans, nested, atoms, offset, statistics);
        self.memory += slot.index.memory();
        self.slots[block as usize] = Some(Box::new(slot));
    }

    fn compile<N: Nfa>(
        &mut self,
        nfa: &N,
        plans: &[PlanId],
        nested: Option<&NestedPaths>,
        atoms: &mut Atoms,
        offset: QueryNumber,
        statistics: Statistics<'_>,
    ) -> Slot {
        let mut builder = BlockIndexBuilder::default();
        let mut choices = 0;
        for &plan in plans {
            let (outcome, start, end) = self.program(nfa, plan, nested, atoms);
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
            let mut access = 0;
            if conjuncts.len() > 1 {
                choices += 1;
                let weights = conjuncts.iter().map(|c| weight(c.need, atoms, statistics));
                let least = weights.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
                access = least.map_or(0, |(at, _)| at);
            }
            self.ranges.clear();
            // Where an expression has the last word, a plan alone decides nothing.
            if nfa.expression(plan).is_none() {
                nfa.plan_numbers(plan, &mut self.ranges);
            }
            builder.add(plan, conjuncts, access, &self.ranges, offset, atoms);
        }
        let index = builder.build(atoms, &mut self.counts);
        Slot { index, choices, built_at: statistics.messages, checks: 0 }
    }

    fn program<N: Nfa>(
        &mut self,
        nfa: &N,
        plan: PlanId,
        nested: Option<&NestedPaths>,
        atoms: &mut Atoms,
    ) -> (Outcome, u32, u32) {
        if self.programs.len() <= plan as usize {
            self.programs.resize(nfa.plan_count(), Program::Unknown);
            self.memory = self.memory.max(self.programs.len() * size_of::<Program>());
        }
        if let Program::Outcome(outcome, start, end) = self.programs[plan as usize] {
            return (outcome, start, end);
        }
        self.conjuncts.clear();
        let outcome =
            nfa.with_plan(plan, |plan| conjuncts_of(plan, nested, atoms, &mut self.conjuncts));
        let start = self.code.len() as u32;
        if outcome == Outcome::Conjunction {
            self.code.extend_from_slice(&self.conjuncts);
        }
        let end = self.code.len() as u32;
        self.programs[plan as usize] = Program::Outcome(outcome, start, end);
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
        Need::Atom(id) => {
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
