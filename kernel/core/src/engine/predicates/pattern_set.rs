//! Patterns that no text leads to, searched for together.
//!
//! Of most patterns some text is known that each match has, and an index of texts finds those that may match. The others
//! are one automaton for each few hundred of them, built while values come and within a bound; where that bound is met
//! again and again, the search goes on without it, in time that is linear in the value and in the patterns.

use super::atoms::{Atom, AtomId};
use crate::engine::ask::Ask;
use crate::language::patterns::PatternGroup;
use std::ops::Range;

/// Bytes that the groups of one automaton's atoms take, at most: further patterns are tried one by one.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Patterns up to which trying each is quicker.
const FEW: usize = 4;
/// Trials that cost as much as to put one pattern into an automaton, about.
const TRIALS_A_PATTERN: usize = 64;
/// Patterns of one automaton.
const GROUP_MAX: usize = 512;
/// Bytes of text that cost a step.
const BYTES_A_STEP: usize = 64;

/// The patterns of one subject.
#[derive(Debug, Default)]
pub(super) struct PatternSet {
    atoms: Vec<AtomId>,
    /// With the atoms of each.
    groups: Vec<(PatternGroup, Range<usize>)>,
    /// How many of the atoms the groups have.
    grouped: usize,
    /// Trials since groups were made.
    trials: usize,
    is_over: bool,
}

impl PatternSet {
    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// Adds an atom that asks for patterns.
    pub(super) fn add(&mut self, id: AtomId) {
        self.atoms.push(id);
    }

    /// Makes groups of what is tried one by one once that has cost as much; `bytes` is what all groups take.
    fn group_if_worth_it(&mut self, atoms: &[Atom], bytes: &mut usize) {
        let waiting = self.atoms.len() - self.grouped;
        if waiting <= FEW || self.is_over {
            return;
        }
        self.trials += waiting;
        if self.trials <= TRIALS_A_PATTERN * self.atoms.len() {
            return;
        }
        self.trials = 0;
        *bytes -= self.groups.drain(..).map(|(group, _)| group.bytes()).sum::<usize>();
        self.grouped = 0;
        let mut size = GROUP_MAX;
        while self.grouped < self.atoms.len() && size > FEW {
            let members = self.grouped..self.atoms.len().min(self.grouped + size);
            let sets = self.atoms[members.clone()].iter().map(|&id| patterns_of(id, atoms));
            match PatternGroup::new(sets, GROUP_BYTES_MAX - *bytes) {
                Some(made) => {
                    *bytes += made.bytes();
                    self.grouped = members.end;
                    self.groups.push((made, members));
                }
                // They are too large together.
                None => size /= 2,
            }
        }
        // No more can be had.
        self.is_over = self.grouped < self.atoms.len();
    }

    /// Adds the atoms of which a pattern matches a part of a value; `is_match` tries one set of patterns, and
    /// `group_bytes` is what the groups of all subjects take. Returns steps besides those of trials.
    pub(super) fn find(
        &mut self,
        value: &[u8],
        atoms: &[Atom],
        group_bytes: &mut usize,
        mut is_match: impl FnMut(&[u8]) -> bool,
        out: &mut Vec<AtomId>,
    ) -> u64 {
        self.group_if_worth_it(atoms, group_bytes);
        let mut steps = 0;
        for (group, members) in &mut self.groups {
            steps += 1 + (value.len() / BYTES_A_STEP) as u64;
            let ids = &self.atoms[members.clone()];
            group.each_match(value, |at| out.push(ids[at]));
        }
        let rest = self.atoms[self.grouped..].iter();
        out.extend(rest.copied().filter(|&id| is_match(patterns_of(id, atoms))));
        steps
    }
}

/// The patterns that an atom asks for, as a set.
fn patterns_of(id: AtomId, atoms: &[Atom]) -> &[u8] {
    match &atoms[id as usize].ask {
        Ask::Texts(_, _, set) => set,
        _ => unreachable!("only atoms that ask for patterns are added"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::atoms::VALUE;
    use super::*;
    use crate::engine::conditions::PatternCache;
    use crate::language::folding::Fold;
    use crate::language::folding::TextTest;

    #[test]
    fn patterns_match_the_same_values_together_and_alone() {
        let (mut set, mut atoms, mut bytes) = (PatternSet::default(), Vec::new(), 0);
        let written = |number: u32| match number % 4 {
            0 => format!("[0-9]{{{}}}\0", number % 7 + 1),
            1 => format!("(?i)[a-{}]x\0", (b'a' + (number % 20) as u8) as char),
            2 => format!("^.{{{}}}$\0", number % 40),
            _ => format!("{}[0-9]\0[b-d]{}\0", number % 10, number % 10),
        };
        for number in 0..600_u32 {
            let ask =
                Ask::Texts(TextTest::Matches, Fold::None, written(number).into_bytes().into());
            atoms.push(Atom { subject: VALUE, ask, needed: None });
            set.add(number);
        }
        for round in 0..3 * TRIALS_A_PATTERN {
            let value = format!("{}Cx{}", "1".repeat(round % 9), round * round);
            let mut found = Vec::new();
            let mut tried = 0;
            let is_match = |set: &[u8]| {
                tried += 1;
                TextTest::Matches.holds(Fold::None, set, value.as_bytes())
            };
            if round % 16 == 0 || !set.groups.is_empty() && round % 5 == 0 {
                set.find(value.as_bytes(), &atoms, &mut bytes, is_match, &mut found);
                found.sort_unstable();
                let holds = |&id: &AtomId| atoms[id as usize].ask.holds(value.as_bytes());
                let expected: Vec<AtomId> = (0..600).filter(holds).collect();
                assert_eq!(found, expected, "{value}");
                assert_eq!(tried == 0, set.grouped == 600);
            } else {
                set.trials += 600;
            }
        }
        assert!(set.groups.len() > 1 && set.grouped == 600);
    }

    #[test]
    fn patterns_that_grow_large_stay_within_the_bound_and_match_as_alone() {
        let (mut atoms, mut bytes) = (Vec::new(), 0);
        let mut sets = [PatternSet::default(), PatternSet::default()];
        let many =
            |number: u32| (0..30).map(|at| format!("{}{at}", number + at)).collect::<Vec<_>>();
        let written = |number: u32| match number % 3 {
            0 => format!("[a-y]{{{}}}[^{number}]\0", 20 + number % 40),
            1 => format!("\\p{{L}}{{{}}}x\0", 2 + number % 8),
            _ => format!("({})+$\0", many(number).join("|")),
        };
        for number in 0..240_u32 {
            let ask =
                Ask::Texts(TextTest::Matches, Fold::None, written(number).into_bytes().into());
            atoms.push(Atom { subject: VALUE, ask, needed: None });
            sets[number as usize % 2].add(number);
        }
        let mut cache = PatternCache::default();
        let (mut is_bounded, mut is_grouped) = (false, false);
        for round in 0..4_usize {
            let value =
                format!("{}{}x{}", "é".repeat(7 * round), "b".repeat(30 * round), 141 + round);
            for (which, set) in sets.iter_mut().enumerate() {
                set.trials = usize::MAX / 2;
                let mut found = Vec::new();
                let is_match = |set: &[u8]| cache.is_match(set, value.as_bytes());
                set.find(value.as_bytes(), &atoms, &mut bytes, is_match, &mut found);
                found.sort_unstable();
                let mut holds = |&id: &AtomId| {
                    let patterns = patterns_of(id, &atoms);
                    id as usize % 2 == which && cache.is_match(patterns, value.as_bytes())
                };
                let expected: Vec<AtomId> = (0..240).filter(|id| holds(id)).collect();
                assert_eq!(found, expected, "{value}");
                is_bounded |= set.is_over;
                is_grouped |= !set.groups.is_empty();
            }
            let groups = sets.iter().flat_map(|set| &set.groups);
            assert_eq!(bytes, groups.map(|(group, _)| group.bytes()).sum::<usize>());
            assert!(bytes <= GROUP_BYTES_MAX, "{bytes}");
        }
        assert!(is_grouped && is_bounded, "the bound is met");
    }
}
