//! Thawing: the automaton of a snapshot back into one that grows.

use super::automaton::FrozenAutomaton;
use crate::engine::ids::{ExpressionId, QueryNumber};
use crate::engine::interrupt::{Interrupted, did};
use crate::engine::nfa::Nfa;
use crate::engine::nfa::growing::{Ending, GrowingNfa, Terminal};
use crate::engine::symbols::FIRST_NAME;

/// Work of a state with its plans, as [`did`] counts it.
const STATE_WORK: u64 = 32;

/// Adds the states, plans and expressions of a frozen automaton to an NFA and says where its queries end
/// there. Cost: about a microsecond a state or plan.
///
/// # Errors
/// It was interrupted; what has been added leads to no query.
pub(crate) fn import(
    base: &FrozenAutomaton,
    nfa: &mut GrowingNfa,
) -> Result<Vec<Ending>, Interrupted> {
    let from = base.nfa();
    let arrays = from.arrays;
    let names = base.symbols();
    let symbol_of: Vec<u32> = (0..names.len() as u32)
        .map(|symbol| match symbol {
            0..FIRST_NAME => symbol,
            _ => nfa.symbols_mut().intern(names.notation(symbol)),
        })
        .collect();
    let expression_of: Vec<ExpressionId> = (0..base.expression_count() as u32)
        .map(|id| {
            let (text, needs_full_tree) = base.expression_entry(id);
            nfa.expressions_mut().intern(text, needs_full_tree)
        })
        .collect();
    let mut state_of = vec![0; arrays.symbol.len()];
    let mut ends = ImportedEnds::of(base.len());
    for state in 0..arrays.symbol.len() {
        let here = state_of[state];
        let record = &arrays.states[state];
        if did(STATE_WORK) {
            return Err(Interrupted);
        }
        for child in record.first_child..arrays.states[state + 1].first_child {
            let symbol = symbol_of[arrays.symbol[child as usize] as usize];
            state_of[child as usize] = nfa.child(here, symbol);
        }
        ends.add((record.first_query, record.query_count), 0, Terminal::State(here));
        for range in arrays.ranges_at(state as u32) {
            let queries = (range.first_query, range.query_count);
            ends.add(queries, range.alternative, Terminal::State(here));
        }
        for plan in arrays.plans_at(state as u32) {
            let record = &arrays.plans[plan as usize];
            let expression = from.expression(plan).map(|id| expression_of[id as usize]);
            let known = nfa.intern_plan(here, base.plan_text(plan), expression);
            ends.add((record.first_query, record.query_count), 0, Terminal::Plan(known));
            for range in arrays.ranges_of(plan) {
                let queries = (range.first_query, range.query_count);
                ends.add(queries, range.alternative, Terminal::Plan(known));
            }
        }
    }
    Ok(ends.finish(nfa))
}

/// Where the queries of a snapshot end, while it is read.
struct ImportedEnds {
    endings: Vec<Ending>,
    /// First query, number of queries, alternative, and where it ends.
    further: Vec<(QueryNumber, u32, u32, Terminal)>,
}

impl ImportedEnds {
    fn of(queries: usize) -> Self {
        let nowhere = Ending { first: Terminal::State(0), others: None };
        ImportedEnds { endings: vec![nowhere; queries], further: vec![] }
    }

    fn add(&mut self, (first, count): (QueryNumber, u32), alternative: u32, terminal: Terminal) {
        if alternative > 0 {
            self.further.push((first, count, alternative, terminal));
            return;
        }
        for ending in &mut self.endings[first as usize..(first + count) as usize] {
            ending.first = terminal;
        }
    }

    fn finish(mut self, nfa: &mut GrowingNfa) -> Vec<Ending> {
        self.further.sort_unstable();
        // Queries of the same ends throughout have the same range in all records.
        for alike in self.further.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let terminals: Vec<Terminal> = alike.iter().map(|end| end.3).collect();
            let others = nfa.intern_ends(&terminals);
            let (first, count) = (alike[0].0, alike[0].1);
            for ending in &mut self.endings[first as usize..(first + count) as usize] {
                ending.others = others;
            }
        }
        self.endings
    }
}
