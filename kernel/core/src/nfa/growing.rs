//! The NFA while it changes: hash-table states, as in paper 003, section 3.2.3.
//!
//! One hash table holds the transitions of all states, keyed by (state, symbol). Queries are
//! numbered in order of arrival. Nothing is taken out: a removed query is a tombstone of the index,
//! and the states it used go when the index is frozen or compacted (lazy deletion, section 3.2.2).

use super::{Nfa, PlanId, QueryNumber, StateId, plan_of};
use crate::conditions::Plan;
use crate::content::anchoring::anchored_len;
use crate::content::nested_paths::NestedPaths;
use crate::query::ast::{Axis, Step};
use crate::query::canonical_text;
use crate::symbols::{Class, EPSILON, STAR, Symbol, SymbolTable};
use hashbrown::HashTable;
use std::ops::Range;
use std::sync::OnceLock;

/// End of a linked list of queries.
const END: u32 = u32::MAX;
/// Flag of [`GrowingNfa::terminal`]: the rest is a plan, not a state.
const IS_PLAN: u32 = 1 << 31;

#[derive(Debug, Clone, Copy)]
struct State {
    parent: StateId,
    symbol: Symbol,
    /// First of the queries accepted here without conditions.
    first_query: QueryNumber,
    first_plan: PlanId,
}

#[derive(Debug)]
struct PlanEntry {
    state: StateId,
    text: Box<str>,
    compiled: OnceLock<Plan>,
    first_query: QueryNumber,
    next: PlanId,
}

/// Where a query ends: at a state, or in a plan at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Terminal {
    /// An accepting state.
    State(StateId),
    /// A plan.
    Plan(PlanId),
}

/// An NFA that takes queries in.
#[derive(Debug)]
pub struct GrowingNfa {
    symbols: SymbolTable,
    states: Vec<State>,
    transitions: HashTable<StateId>,
    plans: Vec<PlanEntry>,
    plan_index: HashTable<PlanId>,
    /// Per query: where it ends.
    terminals: Vec<u32>,
    /// Per query: the next one that ends at the same place.
    next_query: Vec<QueryNumber>,
    /// None in the automaton of the nested paths themselves, which keeps all that there are.
    nested: Option<Box<NestedPaths>>,
    buffer: String,
}

impl Default for GrowingNfa {
    fn default() -> Self {
        GrowingNfa { nested: Some(Box::default()), ..GrowingNfa::of_nested_paths() }
    }
}

impl GrowingNfa {
    /// An empty automaton that does not gather the nested paths of its queries.
    pub fn of_nested_paths() -> Self {
        GrowingNfa {
            symbols: SymbolTable::default(),
            states: vec![State { parent: END, symbol: EPSILON, first_query: END, first_plan: END }],
            transitions: HashTable::new(),
            plans: Vec::new(),
            plan_index: HashTable::new(),
            terminals: Vec::new(),
            next_query: Vec::new(),
            nested: None,
            buffer: String::new(),
        }
    }

    /// Number of queries that have been inserted.
    pub fn len(&self) -> usize {
        self.terminals.len()
    }

    /// Whether no query has been inserted.
    pub fn is_empty(&self) -> bool {
        self.terminals.is_empty()
    }

    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.states.len()
    }

    /// Inserts a query in normal form and returns its number. Cost: one hash look-up a step, and
    /// one more for a query with predicates. Source: paper 003, section 3.2.2.
    pub fn insert(&mut self, steps: &[Step<'_>]) -> QueryNumber {
        let mut state = 0;
        let kept = anchored_len(steps);
        for step in &steps[..kept] {
            if step.axis != Axis::Child {
                state = self.child(state, EPSILON);
            }
            if step.axis != Axis::DescendantOrSelf {
                let mut buffer = std::mem::take(&mut self.buffer);
                let symbol = self.symbols.intern_test(&step.test, &mut buffer);
                self.buffer = buffer;
                state = self.child(state, symbol);
            }
        }
        let is_plan = steps.iter().any(|step| !step.stages.is_empty());
        let terminal = if is_plan {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            canonical_text(steps, &mut buffer);
            let plan_count = self.plans.len();
            let plan = self.intern_plan(state, &buffer);
            self.buffer = buffer;
            if plan_count < self.plans.len()
                && let Some(nested) = &mut self.nested
            {
                nested.add_query(steps, kept);
            }
            Terminal::Plan(plan)
        } else {
            Terminal::State(state)
        };
        self.push_query(terminal)
    }

    /// Adds a query at a place that is known already and returns its number.
    pub fn push_query(&mut self, terminal: Terminal) -> QueryNumber {
        let number = self.terminals.len() as QueryNumber;
        let (first, code) = match terminal {
            Terminal::State(state) => (&mut self.states[state as usize].first_query, state),
            Terminal::Plan(plan) => (&mut self.plans[plan as usize].first_query, plan | IS_PLAN),
        };
        self.terminals.push(code);
        self.next_query.push(std::mem::replace(first, number));
        number
    }

    /// The state reached from `state` over `symbol`, new or known.
    pub fn child(&mut self, state: StateId, symbol: Symbol) -> StateId {
        if let Some(target) = self.find(state, symbol) {
            return target;
        }
        let target = self.states.len() as StateId;
        self.states.push(State { parent: state, symbol, first_query: END, first_plan: END });
        let states = &self.states;
        self.transitions.insert_unique(hash(state, symbol), target, |&t| {
            let s = &states[t as usize];
            hash(s.parent, s.symbol)
        });
        target
    }

    /// The plan with this canonical text at this state, new or known.
    pub fn intern_plan(&mut self, state: StateId, text: &str) -> PlanId {
        let key = hash_plan(state, text);
        let known = self.plan_index.find(key, |&p| {
            let plan = &self.plans[p as usize];
            plan.state == state && *plan.text == *text
        });
        if let Some(&plan) = known {
            return plan;
        }
        let plan = self.plans.len() as PlanId;
        let next = std::mem::replace(&mut self.states[state as usize].first_plan, plan);
        self.plans.push(PlanEntry {
            state,
            text: text.into(),
            compiled: OnceLock::new(),
            first_query: END,
            next,
        });
        let plans = &self.plans;
        self.plan_index.insert_unique(key, plan, |&p| {
            let plan = &plans[p as usize];
            hash_plan(plan.state, &plan.text)
        });
        plan
    }

    /// The alphabet, to be added to.
    pub fn symbols_mut(&mut self) -> &mut SymbolTable {
        &mut self.symbols
    }

    /// Where a query ends.
    pub fn terminal(&self, number: QueryNumber) -> Terminal {
        let code = self.terminals[number as usize];
        if code & IS_PLAN == 0 { Terminal::State(code) } else { Terminal::Plan(code & !IS_PLAN) }
    }

    /// State and canonical text of a plan.
    pub fn plan_entry(&self, plan: PlanId) -> (StateId, &str) {
        let entry = &self.plans[plan as usize];
        (entry.state, &entry.text)
    }

    /// Parent and symbol of a state other than the initial one.
    pub fn origin(&self, state: StateId) -> (StateId, Symbol) {
        let state = &self.states[state as usize];
        (state.parent, state.symbol)
    }

    /// Bytes held, texts of plans included.
    pub fn memory(&self) -> usize {
        self.symbols.memory()
            + self.states.capacity() * size_of::<State>()
            + self.transitions.capacity() * 5
            + self.terminals.capacity() * 8
            + self.plan_index.capacity() * 5
            + self.plans.capacity() * size_of::<PlanEntry>()
            + self.plans.iter().map(|p| p.text.len()).sum::<usize>()
    }

    fn find(&self, state: StateId, symbol: Symbol) -> Option<StateId> {
        self.transitions
            .find(hash(state, symbol), |&t| {
                let target = &self.states[t as usize];
                target.parent == state && target.symbol == symbol
            })
            .copied()
    }

    fn list(&self, mut number: QueryNumber, ranges: &mut Vec<Range<QueryNumber>>) {
        while number != END {
            ranges.push(number..number + 1);
            number = self.next_query[number as usize];
        }
    }
}

impl Nfa for GrowingNfa {
    fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    fn step(&self, state: StateId, class: &Class, targets: &mut Vec<StateId>) {
        for symbol in [STAR, class.exact, class.in_namespace, class.any_namespace] {
            if symbol != EPSILON {
                targets.extend(self.find(state, symbol));
            }
        }
    }

    fn epsilon(&self, state: StateId) -> Option<StateId> {
        self.find(state, EPSILON)
    }

    fn accepted(&self, state: StateId, ranges: &mut Vec<Range<QueryNumber>>) {
        self.list(self.states[state as usize].first_query, ranges);
    }

    fn plans(&self, state: StateId, plans: &mut Vec<PlanId>) {
        let mut plan = self.states[state as usize].first_plan;
        while plan != END {
            plans.push(plan);
            plan = self.plans[plan as usize].next;
        }
    }

    fn plan(&self, plan: PlanId) -> &Plan {
        let entry = &self.plans[plan as usize];
        entry.compiled.get_or_init(|| plan_of(&entry.text))
    }

    fn nested_paths(&self) -> Option<&NestedPaths> {
        self.nested.as_deref().filter(|nested| nested.len() > 0)
    }

    fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>) {
        self.list(self.plans[plan as usize].first_query, ranges);
    }

    fn query_count(&self) -> usize {
        self.terminals.len()
    }

    fn plan_count(&self) -> usize {
        self.plans.len()
    }
}

fn hash(state: StateId, symbol: Symbol) -> u64 {
    // Two odd constants: neighbouring states must not share their buckets' low bits.
    let key = (u64::from(state) << 32) | u64::from(symbol);
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn hash_plan(state: StateId, text: &str) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write_u32(state);
    hasher.write(text.as_bytes());
    hasher.finish()
}
