//! The states of a snapshot, level by level, so that children lie next to each other.

use super::symbol_ranks::Ranking;
use crate::engine::ids::StateId;
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::symbols::Symbol;

/// The states in level order.
pub(super) struct LevelOrder {
    /// Old number -> new number.
    pub(crate) number: Vec<StateId>,
    pub(crate) symbol: Vec<Symbol>,
    pub(crate) first_child: Vec<StateId>,
}

impl LevelOrder {
    pub(crate) fn of(nfa: &GrowingNfa, used: &[bool], symbols: &Ranking) -> LevelOrder {
        // A child always has a higher old number than its parent, so levels come in one pass.
        let mut level = vec![0u32; used.len()];
        let mut by_level: Vec<Vec<StateId>> = vec![vec![]];
        for state in (1..used.len()).filter(|&s| used[s]) {
            let depth = level[nfa.origin(state as StateId).0 as usize] + 1;
            level[state] = depth;
            if by_level.len() <= depth as usize {
                by_level.push(vec![]);
            }
            by_level[depth as usize].push(state as StateId);
        }
        let mut number = vec![u32::MAX; used.len()];
        number[0] = 0;
        let (mut symbol, mut parent) = (vec![0], vec![0]);
        for states in &by_level[1..] {
            let mut keys: Vec<(u64, StateId)> = states
                .iter()
                .map(|&state| {
                    let (parent, symbol) = nfa.origin(state);
                    let parent = u64::from(number[parent as usize]);
                    (parent << 32 | u64::from(symbols.new[symbol as usize]), state)
                })
                .collect();
            keys.sort_unstable();
            for (key, state) in keys {
                number[state as usize] = symbol.len() as StateId;
                symbol.push(key as Symbol);
                parent.push((key >> 32) as StateId);
            }
        }
        let states = symbol.len();
        let mut first_child = vec![0; states + 1];
        for &parent in &parent[1..] {
            first_child[parent as usize + 1] += 1;
        }
        first_child[0] = 1;
        for state in 0..states {
            first_child[state + 1] += first_child[state];
        }
        LevelOrder { number, symbol, first_child }
    }
}
