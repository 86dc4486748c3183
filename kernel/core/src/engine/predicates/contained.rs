//! Which of many strings a value contains, found in one pass over the value.

use super::atoms::{Atom, AtomId, keep_distinct};
use crate::engine::ask::Ask;
use aho_corasick::AhoCorasick;

/// Strings up to which searching for each is quicker than an automaton.
const FEW: usize = 8;

/// Searches that cost as much as to put one string into an automaton, about.
const SEARCHES_A_STRING: usize = 8;

/// Steps that a search costs, in looks at an element.
const STEPS_A_SEARCH: u64 = 16;

/// The strings of one subject.
#[derive(Debug, Default)]
pub(crate) struct Contained {
    atoms: Vec<AtomId>,
    /// An automaton over the first so many of them.
    automaton: Option<(AhoCorasick, usize)>,
    /// Searches for strings that it does not know, since it was made.
    searches: usize,
}

impl Contained {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// The atoms.
    pub(crate) fn atoms(&self) -> &[AtomId] {
        &self.atoms
    }

    /// Adds an atom.
    pub(crate) fn add(&mut self, id: AtomId) {
        self.atoms.push(id);
    }

    /// Makes an automaton over all strings once searching for those that it does not know has cost as much.
    fn build_if_worth_it(&mut self, atoms: &[Atom]) {
        let built = self.automaton.as_ref().map_or(0, |(_, built)| *built);
        let waiting = self.atoms.len() - built;
        if waiting > FEW {
            self.searches += waiting;
            if self.searches > SEARCHES_A_STRING * self.atoms.len() {
                self.searches = 0;
                let needles = self.atoms.iter().map(|&id| needle(id, atoms));
                // It fails for more bytes than it can number; each string is searched for then.
                let made = AhoCorasick::new(needles).ok();
                self.automaton = made.map(|made| (made, self.atoms.len()));
            }
        }
    }

    /// Adds the atoms whose strings the value contains, each once. Cost: one pass over the value, and a
    /// search for each of the few strings that the automaton does not know yet. Returns it in steps.
    pub(crate) fn find(&mut self, value: &[u8], atoms: &[Atom], out: &mut Vec<AtomId>) -> u64 {
        self.build_if_worth_it(atoms);
        let start = out.len();
        let mut unknown = 0;
        if let Some((automaton, built)) = &self.automaton {
            // Strings that are parts of one another can be found more often than the value has bytes.
            let most = 8 * value.len() + 64;
            let mut found = automaton.find_overlapping_iter(value);
            out.extend(found.by_ref().take(most).map(|m| self.atoms[m.pattern().as_usize()]));
            if found.next().is_none() {
                unknown = *built;
            }
        }
        let is_contained = |id: &&AtomId| atoms[**id as usize].ask.holds(value);
        out.extend(self.atoms[unknown..].iter().filter(is_contained));
        let searches = (self.atoms.len() - unknown) as u64;
        let steps =
            (out.len() - start) as u64 + searches * (STEPS_A_SEARCH + value.len() as u64 / 64);
        keep_distinct(out, start);
        steps
    }
}

fn needle(id: AtomId, atoms: &[Atom]) -> &[u8] {
    match &atoms[id as usize].ask {
        Ask::Contains(literal) => literal,
        _ => unreachable!("only atoms that ask for a contained string are added"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::atoms::VALUE;
    use super::*;

    #[test]
    fn every_contained_string_is_found_once() {
        let (mut contained, mut atoms) = (Contained::default(), Vec::new());
        for number in 0..300_u32 {
            let literal = match number % 3 {
                0 => "a".repeat(number as usize / 3 + 1),
                1 => format!("w{number}"),
                _ => format!("é{number}é"),
            };
            atoms.push(Atom { subject: VALUE, ask: Ask::Contains(literal.into_bytes().into()) });
            contained.add(number);
            for value in ["", "aaaa", "x w100 é200é w299", &"a".repeat(5000)] {
                let mut found = Vec::new();
                contained.find(value.as_bytes(), &atoms, &mut found);
                let holds = |&id: &AtomId| atoms[id as usize].ask.holds(value.as_bytes());
                let expected: Vec<AtomId> = (0..=number).filter(holds).collect();
                assert_eq!(found, expected, "{value:.20}");
            }
        }
    }
}
