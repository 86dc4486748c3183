//! Which number each query gets, and what ends at which state of a snapshot.
//!
//! Queries are sorted by where their first alternative ends; equal ends are neighbours, so that a
//! state or a plan gives one range of numbers. A further alternative of a query ends somewhere
//! else, at a place whose own range does not hold the query: that place gets a further range, one for
//! all queries that have the same ends throughout.

use super::build::LiveQuery;
use super::symbol_ranks::Ranking;
use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::frozen::{EndRecord, NO_EXPRESSION, PlanRecord, RangeRecord};
use crate::engine::nfa::growing::{EndsId, GrowingNfa, Terminal};
use std::cmp::Ordering;

/// What ends at one state.
#[derive(Clone, Default)]
pub(super) struct Accepts {
    pub(crate) first_query: QueryNumber,
    pub(crate) query_count: u32,
    pub(crate) ends: EndRecord,
}

/// States where queries end, and the records of what ends there, in the order of the numbers.
#[derive(Default)]
pub(super) struct Numbering {
    pub(crate) states: Vec<StateId>,
    pub(crate) accepts: Vec<Accepts>,
    pub(crate) ranges: Vec<RangeRecord>,
    /// The plan of each record.
    pub(crate) plans: Vec<PlanId>,
    pub(crate) plan_records: Vec<PlanRecord>,
    /// The expressions in use, by text.
    pub(crate) expressions: Vec<ExpressionId>,
}

/// The queries of which one alternative ends at one place.
struct End {
    terminal: Terminal,
    alternative: u32,
    first_query: QueryNumber,
    query_count: u32,
}

impl Numbering {
    /// Sorts the queries into the order of their numbers and says what ends where.
    pub(crate) fn sort(
        nfa: &GrowingNfa,
        queries: &mut [LiveQuery],
        symbols: &Ranking,
        of_equal: impl Fn(QueryNumber, QueryNumber) -> Ordering,
    ) -> Numbering {
        let order = Order::of(nfa, queries, symbols);
        queries.sort_unstable_by(|a, b| {
            let key = |query: &LiveQuery| {
                (order.key(query.ending.first), order.rank_of_ends(query.ending.others))
            };
            key(a).cmp(&key(b)).then_with(|| of_equal(a.number, b.number))
        });
        let mut ends = first_ends(queries);
        let is_sorted = ends.len();
        further_ends(nfa, queries, &mut ends);
        if ends.len() > is_sorted {
            ends.sort_by_key(|end| (order.key(end.terminal), end.alternative, end.first_query));
        }
        let mut numbering = Numbering {
            accepts: vec![Accepts::default(); order.states.len()],
            ..Numbering::default()
        };
        for end in &ends {
            numbering.add(end, &order);
        }
        Numbering { states: order.states, expressions: order.expressions, ..numbering }
    }

    /// Adds queries to what ends at a place; those of one place come one after the other, those
    /// whose first alternative it is before the others.
    fn add(&mut self, end: &End, order: &Order<'_>) {
        let End { terminal, alternative, first_query, query_count } = *end;
        let accepts = &mut self.accepts[order.rank_of_state(terminal) as usize];
        let next_range = self.ranges.len() as u32;
        let (first, first_range) = match terminal {
            Terminal::State(_) => {
                let ends = &mut accepts.ends;
                (
                    (&mut accepts.first_query, &mut accepts.query_count),
                    (&mut ends.first_range, &mut ends.range_count),
                )
            }
            Terminal::Plan(plan) => {
                if self.plans.last() != Some(&plan) {
                    if accepts.ends.plan_count == 0 {
                        accepts.ends.first_plan = self.plans.len() as PlanId;
                    }
                    accepts.ends.plan_count += 1;
                    self.plans.push(plan);
                    let expression = order.rank_of_expression(plan);
                    self.plan_records.push(PlanRecord {
                        expression,
                        first_query: 0,
                        query_count: 0,
                        first_range: 0,
                        range_count: 0,
                    });
                }
                let record = self.plan_records.last_mut().expect("just pushed");
                (
                    (&mut record.first_query, &mut record.query_count),
                    (&mut record.first_range, &mut record.range_count),
                )
            }
        };
        if alternative == 0 {
            (*first.0, *first.1) = (first_query, query_count);
            return;
        }
        if *first_range.1 == 0 {
            *first_range.0 = next_range;
        }
        *first_range.1 += 1;
        self.ranges.push(RangeRecord { first_query, query_count, alternative });
    }
}

/// Where the first alternatives end; queries that share an end are neighbours.
fn first_ends(queries: &[LiveQuery]) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        match ends.last_mut() {
            Some(end) if end.terminal == query.ending.first => end.query_count += 1,
            _ => ends.push(End {
                terminal: query.ending.first,
                alternative: 0,
                first_query: number as QueryNumber,
                query_count: 1,
            }),
        }
    }
    ends
}

/// Adds where the other alternatives end; queries that share all their ends are neighbours.
fn further_ends(nfa: &GrowingNfa, queries: &[LiveQuery], ends: &mut Vec<End>) {
    let mut first_query = 0;
    for alike in queries.chunk_by(|a, b| a.ending == b.ending) {
        let query_count = alike.len() as u32;
        if let Some(others) = alike[0].ending.others {
            for (at, &terminal) in nfa.ends(others).iter().enumerate() {
                ends.push(End { terminal, alternative: at as u32 + 1, first_query, query_count });
            }
        }
        first_query += query_count;
    }
}

/// What queries are sorted by: a text, or something that was ranked by one.
type Key<'n> = (u64, &'n str, u32);

/// An order of all ends that depends on the set of queries alone.
struct Order<'n> {
    nfa: &'n GrowingNfa,
    /// The states where something ends, by reversed path.
    states: Vec<StateId>,
    /// Per state: its place among them.
    rank: Vec<u32>,
    expressions: Vec<ExpressionId>,
    /// Per expression: its place among them.
    expression_rank: Vec<u32>,
    /// Per list of further ends: 1 and its place among those in use.
    ends_rank: Vec<u32>,
}

impl<'n> Order<'n> {
    fn of(nfa: &'n GrowingNfa, queries: &[LiveQuery], symbols: &Ranking) -> Order<'n> {
        let mut uses_ends = vec![false; nfa.ends_count()];
        let mut is_end = vec![false; nfa.state_count()];
        let mut uses_expression = vec![false; nfa.expressions().len()];
        let mut visit = |terminal: Terminal| match terminal {
            Terminal::State(state) => is_end[state as usize] = true,
            Terminal::Plan(plan) => {
                is_end[nfa.plan_entry(plan).0 as usize] = true;
                if let Some(id) = nfa.plan_expression(plan) {
                    uses_expression[id as usize] = true;
                }
            }
        };
        for query in queries {
            visit(query.ending.first);
            if let Some(others) = query.ending.others
                && !std::mem::replace(&mut uses_ends[others as usize], true)
            {
                nfa.ends(others).iter().for_each(|&terminal| visit(terminal));
            }
        }
        let states = sorted_states(nfa, &is_end, symbols);
        let mut expressions = numbers_of(&uses_expression);
        expressions.sort_unstable_by_key(|&id| nfa.expressions().entry(id).0);
        let mut order = Order {
            nfa,
            rank: ranks(&states, is_end.len()),
            states,
            expression_rank: ranks(&expressions, uses_expression.len()),
            expressions,
            ends_rank: vec![],
        };
        let mut ends = numbers_of(&uses_ends);
        let keys = |&id: &EndsId| nfa.ends(id).iter().map(|&terminal| order.key(terminal));
        ends.sort_unstable_by(|a, b| keys(a).cmp(keys(b)));
        order.ends_rank = ranks(&ends, uses_ends.len());
        order.ends_rank.iter_mut().for_each(|rank| *rank += 1);
        order
    }

    fn key(&self, terminal: Terminal) -> Key<'n> {
        let rank = u64::from(self.rank_of_state(terminal)) << 1;
        match terminal {
            Terminal::State(_) => (rank, "", NO_EXPRESSION),
            Terminal::Plan(plan) => {
                (rank | 1, self.nfa.plan_entry(plan).1, self.rank_of_expression(plan))
            }
        }
    }

    fn rank_of_state(&self, terminal: Terminal) -> u32 {
        self.rank[state_of(self.nfa, terminal) as usize]
    }

    /// The number of a plan's expression in the snapshot.
    fn rank_of_expression(&self, plan: PlanId) -> ExpressionId {
        let expression = self.nfa.plan_expression(plan);
        expression.map_or(NO_EXPRESSION, |id| self.expression_rank[id as usize])
    }

    fn rank_of_ends(&self, others: Option<EndsId>) -> u32 {
        others.map_or(0, |id| self.ends_rank[id as usize])
    }
}

/// The state at which an alternative ends.
pub(super) fn state_of(nfa: &GrowingNfa, terminal: Terminal) -> StateId {
    match terminal {
        Terminal::State(state) => state,
        Terminal::Plan(plan) => nfa.plan_entry(plan).0,
    }
}

/// The places that are set.
fn numbers_of(set: &[bool]) -> Vec<u32> {
    (0..set.len() as u32).filter(|&at| set[at as usize]).collect()
}

/// Number -> place in the list; 0 for a number that is not there.
fn ranks(list: &[u32], numbers: usize) -> Vec<u32> {
    let mut ranks = vec![0; numbers];
    for (at, &number) in list.iter().enumerate() {
        ranks[number as usize] = at as u32;
    }
    ranks
}

/// The states that are ends, by reversed path.
fn sorted_states(nfa: &GrowingNfa, is_end: &[bool], symbols: &Ranking) -> Vec<StateId> {
    let mut states: Vec<(u64, StateId)> = numbers_of(is_end)
        .into_iter()
        .map(|state| (reversed_prefix(nfa, symbols, state), state))
        .collect();
    states.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| compare_reversed(nfa, symbols, a.1, b.1))
    });
    states.into_iter().map(|(_, state)| state).collect()
}

/// The first symbols of the reversed path, packed so that they compare as the path does.
fn reversed_prefix(nfa: &GrowingNfa, symbols: &Ranking, mut state: StateId) -> u64 {
    const BITS: u32 = 16;
    const MAX: u64 = (1 << BITS) - 1;
    let mut key = 0;
    for _ in 0..64 / BITS {
        key <<= BITS;
        if state != 0 {
            let (parent, symbol) = nfa.origin(state);
            key |= u64::from(symbols.new[symbol as usize] + 1).min(MAX);
            state = parent;
        }
    }
    key
}

fn compare_reversed(
    nfa: &GrowingNfa,
    symbols: &Ranking,
    mut a: StateId,
    mut b: StateId,
) -> Ordering {
    while a != b {
        if a == 0 || b == 0 {
            return (a != 0).cmp(&(b != 0));
        }
        let ((up_a, symbol_a), (up_b, symbol_b)) = (nfa.origin(a), nfa.origin(b));
        let order = symbols.new[symbol_a as usize].cmp(&symbols.new[symbol_b as usize]);
        if order.is_ne() {
            return order;
        }
        (a, b) = (up_a, up_b);
    }
    Ordering::Equal
}
