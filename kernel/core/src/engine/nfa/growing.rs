//! The NFA while it changes: hash-table states, as in paper 003, section 3.2.3.
//!
//! One hash table holds the transitions of all states, keyed by (state, symbol). Queries are
//! numbered in order of arrival. Nothing is taken out: a removed query is a tombstone of the index,
//! and the states it used go when the index is frozen or compacted (lazy deletion, section 3.2.2).
//!
//! A query of several alternatives ends at several places. The first one gives it its place among
//! the numbers of a snapshot; the others are kept as a list that equal queries share.

use super::expressions::ExpressionTable;
use super::{Nfa, path_of};
use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::symbols::{Class, EPSILON, FIRST_NAME, STAR, Symbol, SymbolTable};
use crate::language::query::anchoring::anchored_len;
use crate::language::query::ast::{Axis, Step};
use crate::language::query::canonical_text;
use crate::language::xpath::Expression;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// End of a linked list.
const END: u32 = u32::MAX;
/// Flag of [`GrowingNfa::first`]: the rest is a plan, not a state.
const IS_PLAN: u32 = 1 << 31;

/// Number of a list of further ends; equal lists have equal numbers.
pub(crate) type EndsId = u32;

#[derive(Debug, Clone, Copy)]
struct State {
    parent: StateId,
    symbol: Symbol,
    /// First entry of the list of queries accepted here without conditions.
    first_accept: u32,
    first_plan: PlanId,
}

#[derive(Debug)]
struct PlanEntry {
    state: StateId,
    text: Arc<str>,
    expression: Option<ExpressionId>,
    first_accept: u32,
    next: PlanId,
}

impl PlanEntry {
    /// The same plan, in which no query ends.
    fn copy(&self) -> PlanEntry {
        let text = Arc::clone(&self.text);
        PlanEntry { text, first_accept: END, ..*self }
    }
}

/// An entry of the list of queries that end at one place.
#[derive(Debug, Clone, Copy)]
struct Accept {
    query: QueryNumber,
    next: u32,
}

/// Where an alternative of a query ends: at a state, or in a plan at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Terminal {
    /// An accepting state.
    State(StateId),
    /// A plan.
    Plan(PlanId),
}

/// Where a query ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Where its first alternative ends.
    pub(crate) first: Terminal,
    /// Where its other alternatives end, in their order; none for a query of one alternative.
    pub(crate) others: Option<EndsId>,
}

/// What an insertion has changed of what was there before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// A state has a new child over a symbol.
    Child(StateId, Symbol),
    /// A state accepts one query more without conditions.
    Accept(StateId, QueryNumber),
    /// A state has a new plan.
    Plan(StateId, PlanId),
    /// A plan has one query more.
    Query(PlanId),
}

/// Changes that are remembered at least; twice as many at most.
const GROWTH_KEPT: usize = 1 << 10;

/// The latest changes, for what was compiled from the automaton before them.
#[derive(Debug, Default)]
struct GrowthLog {
    latest: Vec<Growth>,
    /// Number of those that are forgotten.
    forgotten: u64,
    /// States and plans from here on have come with the insertion at hand, so nobody has seen them.
    first_state: StateId,
    first_plan: PlanId,
}

impl GrowthLog {
    fn push(&mut self, growth: Growth) {
        if self.latest.len() == 2 * GROWTH_KEPT {
            self.latest.drain(..GROWTH_KEPT);
            self.forgotten += GROWTH_KEPT as u64;
        }
        self.latest.push(growth);
    }
}

/// An NFA that takes queries in.
#[derive(Debug)]
pub(crate) struct GrowingNfa {
    symbols: SymbolTable,
    states: Vec<State>,
    transitions: HashTable<StateId>,
    plans: Vec<PlanEntry>,
    plan_index: HashTable<PlanId>,
    expressions: ExpressionTable,
    accepts: Vec<Accept>,
    /// Per query: where its first alternative ends.
    first: Vec<u32>,
    /// Where the other alternatives end, for the queries that have any.
    others: FxHashMap<QueryNumber, EndsId>,
    ends: Vec<Box<[Terminal]>>,
    ends_index: HashTable<EndsId>,
    /// Gathered when the first message comes. None in the automaton of the nested paths themselves, which keeps all
    /// that there are.
    nested: Option<OnceLock<Box<NestedPaths>>>,
    growth: GrowthLog,
    buffer: String,
}

impl Default for GrowingNfa {
    fn default() -> Self {
        GrowingNfa { nested: Some(OnceLock::new()), ..GrowingNfa::of_nested_paths() }
    }
}

impl GrowingNfa {
    /// An empty automaton that does not gather the nested paths of its queries.
    pub(crate) fn of_nested_paths() -> Self {
        GrowingNfa {
            symbols: SymbolTable::default(),
            states: vec![State {
                parent: END,
                symbol: EPSILON,
                first_accept: END,
                first_plan: END,
            }],
            transitions: HashTable::new(),
            plans: Vec::new(),
            plan_index: HashTable::new(),
            expressions: ExpressionTable::default(),
            accepts: Vec::new(),
            first: Vec::new(),
            others: FxHashMap::default(),
            ends: Vec::new(),
            ends_index: HashTable::new(),
            nested: None,
            growth: GrowthLog::default(),
            buffer: String::new(),
        }
    }

    /// Number of queries that have been inserted.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// Whether no query has been inserted.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Number of states.
    pub(crate) fn state_count(&self) -> usize {
        self.states.len()
    }

    /// Inserts a query and returns its number. It holds where one of its alternatives (normal form,
    /// one at least) holds and the expression, if there is one, is true.
    ///
    /// Cost: one hash look-up a step, and one more for an alternative with predicates. Source: paper
    /// 003, section 3.2.2.
    pub(crate) fn insert(
        &mut self,
        alternatives: &[&[Step<'_>]],
        expression: Option<ExpressionId>,
    ) -> QueryNumber {
        let (first, rest) = alternatives.split_first().expect("a query has an alternative");
        self.begin_growth();
        let first = self.end_of(first, expression);
        let mut others = Vec::new();
        for steps in rest {
            let end = self.end_of(steps, expression);
            if end != first && !others.contains(&end) {
                others.push(end);
            }
        }
        let others = self.intern_ends(&others);
        self.push_query(Ending { first, others })
    }

    /// Whatever is there now may have been seen when something is added.
    pub(crate) fn begin_growth(&mut self) {
        self.growth.first_state = self.states.len() as StateId;
        self.growth.first_plan = self.plans.len() as PlanId;
    }

    /// How much has changed so far, for [`GrowingNfa::growth_since`].
    pub(crate) fn growth(&self) -> u64 {
        self.growth.forgotten + self.growth.latest.len() as u64
    }

    /// What has changed since then; none if not all of it is remembered.
    pub(crate) fn growth_since(&self, growth: u64) -> Option<&[Growth]> {
        let from = growth.checked_sub(self.growth.forgotten)?;
        self.growth.latest.get(from as usize..)
    }

    /// Inserts a query of another automaton, which has its number there, and returns its number here.
    ///
    /// Cost: as [`GrowingNfa::insert`].
    pub(crate) fn insert_of(&mut self, other: &GrowingNfa, number: QueryNumber) -> QueryNumber {
        self.begin_growth();
        let Ending { first, others } = other.ending(number);
        let first = self.terminal_of(other, first);
        let others: Vec<Terminal> = others
            .map_or(&[][..], |id| other.ends(id))
            .iter()
            .map(|&terminal| self.terminal_of(other, terminal))
            .collect();
        let others = self.intern_ends(&others);
        self.push_query(Ending { first, others })
    }

    /// Where an alternative ends here that ends so in another automaton.
    fn terminal_of(&mut self, other: &GrowingNfa, terminal: Terminal) -> Terminal {
        let mut from = match terminal {
            Terminal::State(state) => state,
            Terminal::Plan(plan) => other.plan_entry(plan).0,
        };
        let mut symbols = Vec::new();
        while from != 0 {
            let (parent, symbol) = other.origin(from);
            symbols.push(symbol);
            from = parent;
        }
        let mut state = 0;
        for symbol in symbols.into_iter().rev() {
            let symbol = match symbol {
                0..FIRST_NAME => symbol,
                _ => self.symbols.intern(other.symbols.notation(symbol)),
            };
            state = self.child(state, symbol);
        }
        let Terminal::Plan(plan) = terminal else { return Terminal::State(state) };
        let expression = other.plan_expression(plan).map(|id| {
            let (text, needs_full_tree) = other.expressions.entry(id);
            self.expressions.intern(text, needs_full_tree)
        });
        let text = other.plan_entry(plan).1;
        let known = self.plans.len();
        let plan = self.intern_plan(state, text, expression);
        if known < self.plans.len()
            && let Some(nested) = self.nested.as_mut().and_then(OnceLock::get_mut)
        {
            nested.add_query(&path_of(text));
        }
        Terminal::Plan(plan)
    }

    /// The same automaton, to be frozen: without nested paths, without the queries by their ends, without what is
    /// compiled, and without a memory of its changes.
    ///
    /// Cost: a copy of its arrays; some ten nanoseconds a query.
    pub(crate) fn copy(&self) -> GrowingNfa {
        GrowingNfa {
            symbols: self.symbols.clone(),
            states: self.states.iter().map(|state| State { first_accept: END, ..*state }).collect(),
            transitions: self.transitions.clone(),
            plans: self.plans.iter().map(PlanEntry::copy).collect(),
            plan_index: self.plan_index.clone(),
            expressions: self.expressions.copy(),
            accepts: Vec::new(),
            first: self.first.clone(),
            others: self.others.clone(),
            ends: self.ends.clone(),
            ends_index: self.ends_index.clone(),
            nested: None,
            growth: GrowthLog::default(),
            buffer: String::new(),
        }
    }

    /// Where a path ends. What an expression has still to decide is never accepted outright.
    pub(crate) fn end_of(
        &mut self,
        steps: &[Step<'_>],
        expression: Option<ExpressionId>,
    ) -> Terminal {
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
        let has_conditions = steps.iter().any(|step| !step.stages.is_empty());
        if !has_conditions && expression.is_none() {
            return Terminal::State(state);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        canonical_text(steps, &mut buffer);
        let plan_count = self.plans.len();
        let plan = self.intern_plan(state, &buffer, expression);
        self.buffer = buffer;
        if plan_count < self.plans.len()
            && let Some(nested) = self.nested.as_mut().and_then(OnceLock::get_mut)
        {
            nested.add_query(steps);
        }
        Terminal::Plan(plan)
    }

    /// Adds a query whose ends are known already and returns its number.
    pub(crate) fn push_query(&mut self, ending: Ending) -> QueryNumber {
        let number = self.first.len() as QueryNumber;
        self.first.push(match ending.first {
            Terminal::State(state) => state,
            Terminal::Plan(plan) => plan | IS_PLAN,
        });
        self.accept(ending.first, number);
        if let Some(others) = ending.others {
            self.others.insert(number, others);
            for at in 0..self.ends[others as usize].len() {
                self.accept(self.ends[others as usize][at], number);
            }
        }
        number
    }

    fn accept(&mut self, terminal: Terminal, query: QueryNumber) {
        let first = match terminal {
            Terminal::State(state) => &mut self.states[state as usize].first_accept,
            Terminal::Plan(plan) => &mut self.plans[plan as usize].first_accept,
        };
        let next = std::mem::replace(first, self.accepts.len() as u32);
        match terminal {
            Terminal::State(state) if state < self.growth.first_state => {
                self.growth.push(Growth::Accept(state, query));
            }
            Terminal::Plan(plan) if plan < self.growth.first_plan => {
                self.growth.push(Growth::Query(plan));
            }
            _ => {}
        }
        self.accepts.push(Accept { query, next });
    }

    /// The state reached from `state` over `symbol`, new or known.
    pub(crate) fn child(&mut self, state: StateId, symbol: Symbol) -> StateId {
        if let Some(target) = self.find(state, symbol) {
            return target;
        }
        if state < self.growth.first_state {
            self.growth.push(Growth::Child(state, symbol));
        }
        let target = self.states.len() as StateId;
        self.states.push(State { parent: state, symbol, first_accept: END, first_plan: END });
        let states = &self.states;
        self.transitions.insert_unique(hash(state, symbol), target, |&t| {
            let s = &states[t as usize];
            hash(s.parent, s.symbol)
        });
        target
    }

    /// The plan with this canonical text and expression at this state, new or known.
    pub(crate) fn intern_plan(
        &mut self,
        state: StateId,
        text: &str,
        expression: Option<ExpressionId>,
    ) -> PlanId {
        let key = hash_plan(state, text, expression);
        let known = self.plan_index.find(key, |&p| {
            let plan = &self.plans[p as usize];
            plan.state == state && plan.expression == expression && *plan.text == *text
        });
        if let Some(&plan) = known {
            return plan;
        }
        let plan = self.plans.len() as PlanId;
        if state < self.growth.first_state {
            self.growth.push(Growth::Plan(state, plan));
        }
        let next = std::mem::replace(&mut self.states[state as usize].first_plan, plan);
        self.plans.push(PlanEntry {
            state,
            text: text.into(),
            expression,
            first_accept: END,
            next,
        });
        let plans = &self.plans;
        self.plan_index.insert_unique(key, plan, |&p| {
            let plan = &plans[p as usize];
            hash_plan(plan.state, &plan.text, plan.expression)
        });
        plan
    }

    /// The list of these ends, new or known; none if there are none.
    pub(crate) fn intern_ends(&mut self, ends: &[Terminal]) -> Option<EndsId> {
        if ends.is_empty() {
            return None;
        }
        let key = hash_of(ends);
        if let Some(&known) = self.ends_index.find(key, |&id| *self.ends[id as usize] == *ends) {
            return Some(known);
        }
        let id = self.ends.len() as EndsId;
        self.ends.push(ends.into());
        let all = &self.ends;
        self.ends_index.insert_unique(key, id, |&id| hash_of(&all[id as usize]));
        Some(id)
    }

    /// The expressions, to be added to.
    pub(crate) fn expressions_mut(&mut self) -> &mut ExpressionTable {
        &mut self.expressions
    }

    /// The expressions.
    pub(crate) fn expressions(&self) -> &ExpressionTable {
        &self.expressions
    }

    /// The alphabet, to be added to.
    pub(crate) fn symbols_mut(&mut self) -> &mut SymbolTable {
        &mut self.symbols
    }

    /// Where a query ends.
    pub(crate) fn ending(&self, number: QueryNumber) -> Ending {
        let code = self.first[number as usize];
        let first = match code & IS_PLAN {
            0 => Terminal::State(code),
            _ => Terminal::Plan(code & !IS_PLAN),
        };
        Ending { first, others: self.others.get(&number).copied() }
    }

    /// The ends of a list.
    pub(crate) fn ends(&self, id: EndsId) -> &[Terminal] {
        &self.ends[id as usize]
    }

    /// Number of lists of further ends.
    pub(crate) fn ends_count(&self) -> usize {
        self.ends.len()
    }

    /// State and canonical text of a plan.
    pub(crate) fn plan_entry(&self, plan: PlanId) -> (StateId, &str) {
        let entry = &self.plans[plan as usize];
        (entry.state, &entry.text)
    }

    /// The expression of a plan.
    pub(crate) fn plan_expression(&self, plan: PlanId) -> Option<ExpressionId> {
        self.plans[plan as usize].expression
    }

    /// Parent and symbol of a state other than the initial one.
    pub(crate) fn origin(&self, state: StateId) -> (StateId, Symbol) {
        let state = &self.states[state as usize];
        (state.parent, state.symbol)
    }

    /// Bytes held, texts of plans included.
    pub(crate) fn memory(&self) -> usize {
        self.symbols.memory()
            + self.states.capacity() * size_of::<State>()
            + self.transitions.capacity() * 5
            + self.first.capacity() * 4
            + self.accepts.capacity() * size_of::<Accept>()
            + self.others.capacity() * 9
            + self.ends.iter().map(|ends| 16 + size_of_val(&**ends)).sum::<usize>()
            + self.ends_index.capacity() * 5
            + self.expressions.memory()
            + self.plan_index.capacity() * 5
            + self.plans.capacity() * size_of::<PlanEntry>()
            + self.plans.iter().map(|p| p.text.len()).sum::<usize>()
            + self.growth.latest.capacity() * size_of::<Growth>()
    }

    fn find(&self, state: StateId, symbol: Symbol) -> Option<StateId> {
        self.transitions
            .find(hash(state, symbol), |&t| {
                let target = &self.states[t as usize];
                target.parent == state && target.symbol == symbol
            })
            .copied()
    }

    fn list(&self, mut at: u32, ranges: &mut Vec<Range<QueryNumber>>) {
        while at != END {
            let Accept { query, next } = self.accepts[at as usize];
            ranges.push(query..query + 1);
            at = next;
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
        self.list(self.states[state as usize].first_accept, ranges);
    }

    fn plans(&self, state: StateId, plans: &mut Vec<PlanId>) {
        let mut plan = self.states[state as usize].first_plan;
        while plan != END {
            plans.push(plan);
            plan = self.plans[plan as usize].next;
        }
    }

    fn plan_text(&self, plan: PlanId) -> &str {
        self.plan_entry(plan).1
    }

    fn nested_paths(&self) -> Option<&NestedPaths> {
        let gather = || Box::new(NestedPaths::of(self.plans.iter().map(|plan| &*plan.text)));
        let nested = self.nested.as_ref()?.get_or_init(gather);
        (nested.len() > 0).then_some(nested)
    }

    fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>) {
        self.list(self.plans[plan as usize].first_accept, ranges);
    }

    fn query_count(&self) -> usize {
        self.first.len()
    }

    fn plan_count(&self) -> usize {
        self.plans.len()
    }

    fn expression(&self, plan: PlanId) -> Option<ExpressionId> {
        self.plan_expression(plan)
    }

    fn with_expression<T>(&self, id: ExpressionId, f: impl FnOnce(&Expression) -> T) -> T {
        self.expressions.with(id, f)
    }

    fn expression_count(&self) -> usize {
        self.expressions.len()
    }

    fn needs_full_tree(&self) -> bool {
        self.expressions.needs_full_tree()
    }
}

fn hash(state: StateId, symbol: Symbol) -> u64 {
    // Two odd constants: neighbouring states must not share their buckets' low bits.
    let key = (u64::from(state) << 32) | u64::from(symbol);
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn hash_plan(state: StateId, text: &str, expression: Option<ExpressionId>) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(state);
    hasher.write_u32(expression.unwrap_or(END));
    hasher.write(text.as_bytes());
    hasher.finish()
}

fn hash_of(ends: &[Terminal]) -> u64 {
    let mut hasher = FxHasher::default();
    ends.hash(&mut hasher);
    hasher.finish()
}
