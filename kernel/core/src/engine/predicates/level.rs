//! The block indexes of one automaton, compiled when a block is first reached.

use super::atoms::{Atoms, Kind, is_found};
use super::block_builder::{BlockIndexBuilder, Conjunction, Counts};
use super::block_index::{BlockIndex, Check};
use super::program::{Conjunct, Need, Outcome, Packed, conjuncts_of};
use crate::engine::ask::Ask;
use crate::engine::dfa::BlockId;
use crate::engine::ids::{PlanId, QueryNumber};
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::nfa::{Nfa, path_of};
use crate::language::comparison::Comparison;
use crate::language::folding::TextTest;
use std::ops::Range;

/// What is known of a plan: what it comes to, where its program lies, how many conjuncts it has, and which
/// choice of access conditions it is of.
#[derive(Clone, Copy, Debug)]
enum Program {
    Unknown,
    Known(Outcome, u32, u32, u32),
}

/// What a plan decides when all of its conjuncts hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// That these queries hold: the first, and how many.
    Queries(QueryNumber, u32),
    /// Something has to be looked at still.
    Plan(PlanId),
}

/// Stands for no query where one could be named.
pub(crate) const NO_QUERY: QueryNumber = QueryNumber::MAX;

impl Decision {
    const IS_PLAN: u64 = 1 << 63;

    fn word(self) -> u64 {
        match self {
            Decision::Queries(first, count) => u64::from(count) << 32 | u64::from(first),
            Decision::Plan(plan) => u64::from(plan) | Decision::IS_PLAN,
        }
    }

    #[inline]
    fn of_word(word: u64) -> Decision {
        if word & Decision::IS_PLAN == 0 {
            Decision::Queries(word as u32, (word >> 32) as u32)
        } else {
            Decision::Plan(word as u32)
        }
    }
}

/// Checks for each compiled plan that must have been made before better access conditions are looked for,
/// which takes all plans to be compiled again: that costs as much as about so many checks.
const CHECKS_A_PLAN: u32 = 16;
/// Messages after which counts say something.
const MESSAGES_MIN: u32 = 32;

/// Conjuncts that an answer can count.
const CONJUNCTS_MAX: usize = 1 << 15;

/// Atoms up to which keys of look-ups are numbers of 31 bits, with the places that are not far.
const ATOMS_MAX: usize = 1 << 25;

/// The indexes of one automaton.
#[derive(Debug, Default)]
pub(crate) struct Level {
    indexes: Vec<Option<Box<BlockIndex>>>,
    programs: Vec<Program>,
    /// Programs. Of each plan: its access condition, a [`Decision`], its other conjuncts.
    code: Vec<u64>,
    counts: Counts,
    memory: usize,
    /// Plans compiled into blocks, as often as they stand in one.
    compiled: u32,
    /// Whether some plan had a choice of access conditions.
    has_choices: bool,
    /// Plans checked since they were chosen.
    checks: u32,
    /// Counts the choices of access conditions.
    choice: u32,
    /// Messages that had been seen then.
    chosen_at: u32,
    ranges: Vec<Range<QueryNumber>>,
    conjuncts: Vec<Conjunct>,
}

/// What the choice of an access condition goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statistics<'s> {
    /// Messages seen.
    pub(crate) messages: u32,
    /// Messages in which nested paths were counted.
    pub(crate) nested_messages: u32,
    /// Elements at which each nested path held in those.
    pub(crate) nested_hits: &'s [u32],
    /// The same, guessed, for one message.
    pub(crate) nested_guesses: &'s [f32],
}

impl Level {
    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.code.len() * size_of::<u64>()
    }

    /// The index of a block, which [`Level::ensure`] has seen.
    #[inline]
    pub(crate) fn of_block(&self, block: BlockId) -> &BlockIndex {
        self.indexes[block as usize].as_ref().expect("ensured before")
    }

    /// The plans of a block that are no conjunctions.
    pub(crate) fn complex(&self, block: BlockId) -> &[PlanId] {
        &self.of_block(block).complex
    }

    /// Numbers given to places and lists of thresholds so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether a plan is no conjunction, but was looked up by the conjuncts that it needs.
    pub(crate) fn is_needing(&self, plan: PlanId) -> bool {
        matches!(self.programs[plan as usize], Program::Known(Outcome::Complex, _, 1.., _))
    }

    /// The conjuncts that a check is about.
    #[inline]
    pub(crate) fn conjuncts(&self, check: Check) -> &[u64] {
        let first = check.start as usize + 1;
        &self.code[first..first + check.count as usize]
    }

    /// What follows if they hold.
    #[inline]
    pub(crate) fn decision_of(&self, check: Check) -> Decision {
        Decision::of_word(self.code[check.start as usize])
    }

    /// Touches the memory of a program; the result means nothing.
    #[inline]
    pub(crate) fn touch(&self, check: Check) -> u64 {
        self.code[check.start as usize]
    }

    /// Calls `f` with the nested paths that each of some compiled plans asks for.
    pub(crate) fn asked_nested(&self, plans: &[PlanId], mut f: impl FnMut(&[QueryNumber])) {
        let mut asked = Vec::new();
        for &plan in plans {
            let Program::Known(_, start, count @ 1.., _) = self.programs[plan as usize] else {
                continue;
            };
            let words = &self.code[start as usize..(start + count) as usize + 1];
            // The second word is the decision.
            let conjuncts = words.iter().enumerate().filter(|(at, _)| *at != 1);
            asked.clear();
            asked.extend(conjuncts.filter_map(|(_, &word)| match Packed::of_word(word).need() {
                Need::Nested(number) => Some(number),
                _ => None,
            }));
            f(&asked);
        }
    }

    /// Notes that plans have been checked.
    pub(crate) fn count_checks(&mut self, checks: u32) {
        self.checks = self.checks.saturating_add(checks);
    }

    /// Forgets the access conditions if they do badly and more is known about the stream than when they
    /// were chosen (the paper's sorting of predicates, as it adapts). What this costs is made up for by the
    /// checks that have been made since the last time.
    pub(crate) fn adapt(&mut self, messages: u32) {
        let is_costly = self.has_choices && self.checks / CHECKS_A_PLAN > self.compiled;
        let is_worth_it = is_costly && messages / 4 > self.chosen_at;
        // What the first messages have compiled was guessed; it is little, and the guess is bad if more has
        // been checked than compiled.
        let was_guessed = self.chosen_at == 0 && self.has_choices && self.checks > self.compiled;
        if messages >= MESSAGES_MIN && (is_worth_it || was_guessed) {
            self.memory -=
                self.indexes.drain(..).flatten().map(|index| index.memory()).sum::<usize>();
            (self.compiled, self.checks) = (0, 0);
            self.choice += 1;
            self.chosen_at = messages;
        }
    }

    /// Forgets what was compiled of blocks and plans that have changed. Numbers and programs of theirs stay
    /// taken, and so does the memory of the programs.
    ///
    /// Cost: the index of each of the blocks is compiled again, with all its plans, when it is next reached.
    pub(crate) fn forget(&mut self, blocks: &[BlockId], plans: impl Iterator<Item = PlanId>) {
        for &block in blocks {
            let index = self.indexes.get_mut(block as usize).and_then(Option::take);
            self.memory -= index.map_or(0, |index| index.memory());
        }
        for plan in plans {
            if let Some(program) = self.programs.get_mut(plan as usize) {
                *program = Program::Unknown;
            }
        }
    }

    /// Compiles the index of a block if it is not there.
    #[expect(clippy::too_many_arguments, reason = "all of it is lent by different owners")]
    pub(crate) fn ensure<N: Nfa>(
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
        self.compiled = self.compiled.saturating_add(plans.len() as u32);
        for &plan in plans {
            let (outcome, start, count) =
                self.program(nfa, plan, nested, atoms, offset, statistics);
            if outcome == Outcome::Never {
                continue;
            }
            let is_complex = outcome == Outcome::Complex;
            if is_complex {
                builder.add_complex(plan);
            }
            if count == 0 && is_complex {
                continue;
            }
            if count == 0 {
                builder.add_unconditional(plan);
                continue;
            }
            self.ranges.clear();
            // Where an expression or the path as it is written has the last word, a plan alone decides nothing.
            if nfa.expression(plan).is_none() && !is_complex && count == 1 {
                nfa.plan_numbers(plan, &mut self.ranges);
            }
            let (start, end) = (start as usize, (start + count) as usize);
            let access = Packed::of_word(self.code[start]);
            let others = self.code[start + 2..end + 1].iter().map(|&word| Packed::of_word(word));
            let query = match Decision::of_word(self.code[start + 1]) {
                Decision::Queries(first, 1) => first,
                // Some of them may be known by other alternatives, and others not.
                Decision::Queries(..) | Decision::Plan(_) => NO_QUERY,
            };
            let start = start as u32 + 1;
            let conjunction = Conjunction { access, others, start, query };
            builder.add(conjunction, &self.ranges, offset, atoms);
        }
        builder.build(atoms, &mut self.counts)
    }

    fn program<N: Nfa>(
        &mut self,
        nfa: &N,
        plan: PlanId,
        nested: Option<&NestedPaths>,
        atoms: &mut Atoms,
        offset: QueryNumber,
        statistics: Statistics<'_>,
    ) -> (Outcome, u32, u32) {
        if self.programs.len() <= plan as usize {
            self.memory -= self.programs.len() * size_of::<Program>();
            self.programs.resize(nfa.plan_count(), Program::Unknown);
            self.memory += self.programs.len() * size_of::<Program>();
        }
        if let Program::Known(outcome, start, count, choice) = self.programs[plan as usize] {
            if choice != self.choice && count > 1 {
                self.choose_again(start as usize, count as usize, atoms, statistics);
                self.programs[plan as usize] = Program::Known(outcome, start, count, self.choice);
            }
            return (outcome, start, count);
        }
        self.conjuncts.clear();
        let steps = path_of(nfa.plan_text(plan));
        let mut outcome = conjuncts_of(&steps, nested, atoms, &mut self.conjuncts);
        let is_far = self.conjuncts.iter().any(|conjunct| conjunct.place.is_far())
            || self.conjuncts.len() > CONJUNCTS_MAX;
        if outcome != Outcome::Never && (is_far || atoms.len() > ATOMS_MAX) {
            outcome = Outcome::Complex;
            self.conjuncts.clear();
        }
        let start = self.code.len() as u32;
        let mut count = 0;
        if outcome != Outcome::Never && !self.conjuncts.is_empty() {
            if self.conjuncts.len() > 1 {
                self.choose(atoms, statistics);
                self.has_choices = true;
            }
            count = self.conjuncts.len() as u32;
            let decision = match outcome {
                Outcome::Complex => Decision::Plan(plan),
                _ => self.decision(nfa, plan, offset),
            };
            let mut words = self.conjuncts.iter().map(|&conjunct| Packed::new(conjunct).word());
            self.code.extend(words.next());
            self.code.push(decision.word());
            self.code.extend(words);
        }
        self.programs[plan as usize] = Program::Known(outcome, start, count, self.choice);
        (outcome, start, count)
    }

    /// Brings the conjuncts of a program into the order of what is known now. No index is of the old one.
    fn choose_again(
        &mut self,
        start: usize,
        count: usize,
        atoms: &Atoms,
        statistics: Statistics<'_>,
    ) {
        let conjunct_of = |word: &u64| {
            let packed = Packed::of_word(*word);
            Conjunct { place: packed.place(), need: packed.need() }
        };
        self.conjuncts.clear();
        self.conjuncts.push(conjunct_of(&self.code[start]));
        self.conjuncts.extend(self.code[start + 2..=start + count].iter().map(conjunct_of));
        self.choose(atoms, statistics);
        let mut words = self.conjuncts.iter().map(|&conjunct| Packed::new(conjunct).word());
        self.code[start] = words.next().expect("one was pushed");
        self.code[start + 2..=start + count]
            .iter_mut()
            .zip(words)
            .for_each(|(to, word)| *to = word);
    }

    /// Makes the rarest conjunct the access condition.
    fn choose(&mut self, atoms: &Atoms, statistics: Statistics<'_>) {
        let weights = self.conjuncts.iter().map(|c| weight(c.need, atoms, statistics));
        let least = weights.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        self.conjuncts.swap(0, least.map_or(0, |(at, _)| at));
        self.bring_attribute_forward(atoms, statistics);
    }

    /// Makes the rarest condition on an attribute the first that is checked, since a
    /// [`Signature`](super::signature::Signature) can refuse it.
    fn bring_attribute_forward(&mut self, atoms: &Atoms, statistics: Statistics<'_>) {
        let others = self.conjuncts.iter().enumerate().skip(1);
        let rarest = others
            .filter(|(_, conjunct)| matches!(conjunct.need, Need::Found(Kind::Attribute, _)))
            .map(|(at, conjunct)| (at, weight(conjunct.need, atoms, statistics)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((at, _)) = rarest {
            self.conjuncts.swap(1, at);
        }
    }

    fn decision<N: Nfa>(&mut self, nfa: &N, plan: PlanId, offset: QueryNumber) -> Decision {
        self.ranges.clear();
        nfa.plan_numbers(plan, &mut self.ranges);
        match &*self.ranges {
            [range] if nfa.expression(plan).is_none() => {
                Decision::Queries(range.start + offset, range.len() as u32)
            }
            _ => Decision::Plan(plan),
        }
    }
}

/// How many elements of a message satisfy a condition, about: counted where enough has been seen, guessed
/// from its kind otherwise.
fn weight(need: Need, atoms: &Atoms, statistics: Statistics<'_>) -> f32 {
    let rate = |hits: u32, messages: u32| (hits as f32 + 0.1) / messages as f32;
    match need {
        Need::Nested(number) => match statistics.nested_hits.get(number as usize) {
            Some(&hits) if statistics.nested_messages >= 4 => {
                rate(hits, statistics.nested_messages)
            }
            _ => statistics.nested_guesses.get(number as usize).copied().unwrap_or(1.0),
        },
        Need::Found(_, id) | Need::Tried(id) => {
            let ask = &atoms.get(id).ask;
            if is_found(ask) && statistics.messages >= MESSAGES_MIN {
                return rate(atoms.hits(id), statistics.messages);
            }
            match ask {
                Ask::Text(Comparison::Eq, _) => 0.1,
                Ask::Number(Comparison::Eq, _)
                | Ask::Cast(Comparison::Eq, _)
                | Ask::Moment(_, Comparison::Eq, _) => 0.2,
                Ask::StartsWith(_) | Ask::OneOf(_) | Ask::NumberOf(..) => 0.4,
                Ask::Texts(TextTest::Is | TextTest::Begins, ..) => 0.4,
                Ask::Contains(_) | Ask::Texts(..) => 0.5,
                Ask::Exists => 2.0,
                Ask::Text(Comparison::Ne, _)
                | Ask::Number(Comparison::Ne, _)
                | Ask::Cast(Comparison::Ne, _) => 5.0,
                Ask::Text(..) | Ask::Number(..) | Ask::Cast(..) | Ask::Moment(..) => 3.0,
            }
        }
    }
}
