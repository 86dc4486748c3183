//! The alphabet of a snapshot: the symbols that its queries use, by notation.

use crate::engine::ids::StateId;
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::symbols::{FIRST_NAME, Symbol};

/// The symbols in use, renumbered by their notation.
pub(super) struct Ranking {
    pub(crate) new: Vec<Symbol>,
    pub(crate) offsets: Vec<u32>,
    pub(crate) text: String,
}

impl Ranking {
    pub(crate) fn of_symbols(nfa: &GrowingNfa, used: &[bool]) -> Ranking {
        let table = crate::engine::nfa::Nfa::symbols(nfa);
        let mut is_used = vec![false; table.len()];
        for state in (1..used.len()).filter(|&s| used[s]) {
            is_used[nfa.origin(state as StateId).1 as usize] = true;
        }
        let mut old: Vec<Symbol> =
            (FIRST_NAME..table.len() as Symbol).filter(|&s| is_used[s as usize]).collect();
        old.sort_unstable_by_key(|&s| table.notation(s));
        let mut new: Vec<Symbol> = (0..table.len() as Symbol).collect();
        let (mut offsets, mut text) = (vec![0], String::new());
        for (rank, &symbol) in old.iter().enumerate() {
            new[symbol as usize] = FIRST_NAME + rank as Symbol;
            text.push_str(table.notation(symbol));
            offsets.push(text.len() as u32);
        }
        Ranking { new, offsets, text }
    }
}
