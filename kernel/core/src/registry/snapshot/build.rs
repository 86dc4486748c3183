//! Freezing: where live queries end in an automaton that grows, to arrays.
//!
//! The numbering is what makes results cheap to collect: queries are sorted by the *reversed* path
//! of their accepting state (last location step first), so that those accepted together, which end
//! alike, get neighbouring numbers. It depends on the set of queries alone, not on the order in
//! which they came: symbols are ranked by their notation, equal paths by plan, expression, further
//! alternatives and what the caller tells them apart by.

use super::automaton::NEEDS_FULL_TREE;
use super::format::{FileBuilder, Tag};
use super::level_order::LevelOrder;
use super::numbering::{Numbering, state_of};
use super::symbol_ranks::Ranking;
use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::{Interrupted, look};
use crate::engine::nfa::frozen::{EndRecord, NO_ENDS, StateRecord};
use crate::engine::nfa::growing::{Ending, GrowingNfa, Terminal};
use std::cmp::Ordering;

/// A query to be frozen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveQuery {
    /// Where it ends.
    pub(crate) ending: Ending,
    /// Its number so far.
    pub(crate) number: QueryNumber,
}

/// The arrays of a frozen automaton.
pub(crate) struct FrozenArrays {
    symbols: Ranking,
    states: LevelOrder,
    ends: Numbering,
    records: Vec<StateRecord>,
    end_records: Vec<EndRecord>,
    plan_offsets: Vec<u64>,
    plan_texts: String,
    expression_offsets: Vec<u64>,
    expression_texts: String,
    expression_flags: Vec<u32>,
}

impl FrozenArrays {
    /// Freezes `queries`, all of which end in `nfa`, and brings them into the order of their new numbers.
    /// `order` decides between queries of equal ends, by their numbers so far.
    ///
    /// Cost: a sort of the queries by end and one of the states; about 1 µs a query.
    ///
    /// # Errors
    /// It was interrupted.
    pub(crate) fn of(
        nfa: &GrowingNfa,
        queries: &mut [LiveQuery],
        order: impl Fn(QueryNumber, QueryNumber) -> Ordering,
    ) -> Result<FrozenArrays, Interrupted> {
        // Each of these takes a part of a microsecond a query.
        let between = || if look() { Err(Interrupted) } else { Ok(()) };
        between()?;
        let used = used_states(nfa, queries);
        let symbols = Ranking::of_symbols(nfa, &used);
        between()?;
        let ends = Numbering::sort(nfa, queries, &symbols, order);
        between()?;
        let states = LevelOrder::of(nfa, &used, &symbols);
        let (records, end_records) = state_records(&states, &ends);
        let (plan_offsets, plan_texts) =
            texts(ends.plans.iter().map(|&plan| nfa.plan_entry(plan).1));
        let expressions = || ends.expressions.iter().map(|&id| nfa.expressions().entry(id));
        let (expression_offsets, expression_texts) = texts(expressions().map(|(text, _)| text));
        let expression_flags = expressions()
            .map(|(_, needs_full_tree)| if needs_full_tree { NEEDS_FULL_TREE } else { 0 })
            .collect();
        between()?;
        Ok(FrozenArrays {
            symbols,
            states,
            ends,
            records,
            end_records,
            plan_offsets,
            plan_texts,
            expression_offsets,
            expression_texts,
            expression_flags,
        })
    }

    /// Number of states, of plans and of expressions.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.states.symbol.len(), self.ends.plans.len(), self.ends.expressions.len())
    }

    /// Adds the arrays to a file.
    pub(crate) fn add_to<'a>(&'a self, file: &mut FileBuilder<'a>) {
        file.section(Tag::SymbolOffsets, &self.symbols.offsets)
            .section(Tag::Symbols, self.symbols.text.as_bytes())
            .section(Tag::StateSymbol, &self.states.symbol)
            .section(Tag::StateRecords, &self.records)
            .section(Tag::EndRecords, &self.end_records)
            .section(Tag::RangeRecords, &self.ends.ranges)
            .section(Tag::PlanRecords, &self.ends.plan_records)
            .section(Tag::PlanOffsets, &self.plan_offsets)
            .section(Tag::PlanTexts, self.plan_texts.as_bytes())
            .section(Tag::ExpressionOffsets, &self.expression_offsets)
            .section(Tag::Expressions, self.expression_texts.as_bytes())
            .section(Tag::ExpressionFlags, &self.expression_flags);
    }
}

/// The records of all states, and of what else ends at some.
fn state_records(states: &LevelOrder, ends: &Numbering) -> (Vec<StateRecord>, Vec<EndRecord>) {
    let mut records: Vec<StateRecord> = states
        .first_child
        .iter()
        .map(|&first_child| StateRecord { first_child, ends: NO_ENDS, ..StateRecord::default() })
        .collect();
    let mut end_records = Vec::new();
    for (&state, accepts) in ends.states.iter().zip(&ends.accepts) {
        let record = &mut records[states.number[state as usize] as usize];
        (record.first_query, record.query_count) = (accepts.first_query, accepts.query_count);
        if accepts.ends.plan_count + accepts.ends.range_count > 0 {
            record.ends = end_records.len() as u32;
            end_records.push(accepts.ends);
        }
    }
    (records, end_records)
}

/// Texts one after the other, and where each ends.
fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> (Vec<u64>, String) {
    let (mut offsets, mut all) = (vec![0], String::new());
    for text in texts {
        all.push_str(text);
        offsets.push(all.len() as u64);
    }
    (offsets, all)
}

/// The states on the way to a live query.
fn used_states(nfa: &GrowingNfa, queries: &[LiveQuery]) -> Vec<bool> {
    let mut used = vec![false; nfa.state_count()];
    used[0] = true;
    let mut use_path = |terminal: Terminal| {
        let mut state = state_of(nfa, terminal);
        while !used[state as usize] {
            used[state as usize] = true;
            state = nfa.origin(state).0;
        }
    };
    let mut seen = vec![false; nfa.ends_count()];
    for query in queries {
        use_path(query.ending.first);
        if let Some(others) = query.ending.others
            && !std::mem::replace(&mut seen[others as usize], true)
        {
            nfa.ends(others).iter().for_each(|&terminal| use_path(terminal));
        }
    }
    used
}
