//! An automaton that does not change, and what has been compiled of it: the base of a changing one.
//!
//! It goes by number. Its arrays lie in a file, beside the records of the queries or without them.

use super::format::{FilePart, Tag};
use super::{check_texts, is_offsets, text_at};
use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::Nfa;
use crate::engine::nfa::expressions::{Room, Slot};
use crate::engine::nfa::frozen::{
    EndRecord, FrozenNfa, NO_EXPRESSION, PlanRecord, RangeRecord, StateRecord,
};
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::symbols::{Class, FIRST_NAME, SymbolTable};
use crate::language::xpath::Expression;
use std::ops::Range;
use std::sync::OnceLock;

/// Flag of an expression: it needs more of a message than elements, attributes and text.
pub(super) const NEEDS_FULL_TREE: u32 = 1;

/// An automaton in a file.
#[derive(Debug)]
pub struct FrozenAutomaton {
    file: FilePart,
    queries: usize,
    symbols: SymbolTable,
    nested: OnceLock<NestedPaths>,
    /// Expressions that have been needed so far.
    expressions: OnceLock<Box<[Slot]>>,
    expression_room: Room,
    needs_full_tree: bool,
}

impl FrozenAutomaton {
    /// The automaton of a part of a file, of so many queries.
    ///
    /// # Errors
    /// What is wrong with its arrays.
    pub(crate) fn of(file: FilePart, queries: usize) -> Result<Self, &'static str> {
        if let Some(fault) = check_automaton(&file, queries) {
            return Err(fault);
        }
        let mut symbols = SymbolTable::default();
        let offsets = file.array::<u32>(Tag::SymbolOffsets);
        for at in offsets.windows(2) {
            let notation = &file.bytes(Tag::Symbols)[at[0] as usize..at[1] as usize];
            symbols.intern(str::from_utf8(notation).expect("checked as a whole"));
        }
        if symbols.len() != FIRST_NAME as usize + offsets.len() - 1 {
            return Err("a symbol occurs twice");
        }
        let flags = file.array::<u32>(Tag::ExpressionFlags);
        let needs_full_tree = flags.iter().any(|&flags| flags & NEEDS_FULL_TREE != 0);
        let (expressions, nested) = (OnceLock::new(), OnceLock::new());
        Ok(FrozenAutomaton {
            file,
            queries,
            symbols,
            nested,
            expressions,
            expression_room: Room::default(),
            needs_full_tree,
        })
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.queries
    }

    /// The alphabet.
    pub(crate) fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// The automaton, for one run.
    pub fn nfa(&self) -> SnapshotNfa<'_> {
        SnapshotNfa { arrays: frozen(&self.file), automaton: self }
    }

    /// The nested paths of all plans, gathered the first time.
    fn nested_paths(&self) -> &NestedPaths {
        self.nested.get_or_init(|| {
            let plans = 0..self.file.array::<PlanRecord>(Tag::PlanRecords).len() as PlanId;
            NestedPaths::of(plans.map(|plan| self.plan_text(plan)))
        })
    }

    /// Canonical text of a plan.
    pub(crate) fn plan_text(&self, plan: PlanId) -> &str {
        text_at(&self.file, Tag::PlanOffsets, Tag::PlanTexts, plan)
    }

    /// Number of expressions.
    pub fn expression_count(&self) -> usize {
        self.file.array::<u32>(Tag::ExpressionFlags).len()
    }

    /// Canonical text of an expression, and whether it needs more of a message than elements, attributes and text.
    pub(crate) fn expression_entry(&self, id: ExpressionId) -> (&str, bool) {
        let text = text_at(&self.file, Tag::ExpressionOffsets, Tag::Expressions, id);
        let flags = self.file.array::<u32>(Tag::ExpressionFlags)[id as usize];
        (text, flags & NEEDS_FULL_TREE != 0)
    }

    /// Whether some expression needs more of a message than elements, attributes and text.
    pub fn needs_full_tree(&self) -> bool {
        self.needs_full_tree
    }
}

/// A frozen automaton with its arrays at hand.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotNfa<'s> {
    /// The arrays.
    pub(crate) arrays: FrozenNfa<'s>,
    automaton: &'s FrozenAutomaton,
}

impl Nfa for SnapshotNfa<'_> {
    fn symbols(&self) -> &SymbolTable {
        &self.automaton.symbols
    }

    #[inline]
    fn is_leaf(&self, state: StateId) -> bool {
        self.arrays.is_leaf(state)
    }

    #[inline]
    fn step(&self, state: StateId, class: &Class, targets: &mut Vec<StateId>) {
        self.arrays.step(state, class, targets);
    }

    #[inline]
    fn epsilon(&self, state: StateId) -> Option<StateId> {
        self.arrays.epsilon(state)
    }

    #[inline]
    fn accepted(&self, state: StateId, ranges: &mut Vec<Range<QueryNumber>>) {
        self.arrays.accepted(state, ranges);
    }

    #[inline]
    fn plans(&self, state: StateId, plans: &mut Vec<PlanId>) {
        plans.extend(self.arrays.plans_at(state));
    }

    fn plan_text(&self, plan: PlanId) -> &str {
        self.automaton.plan_text(plan)
    }

    fn nested_paths(&self) -> Option<&NestedPaths> {
        let nested = self.automaton.nested_paths();
        (nested.len() > 0).then_some(nested)
    }

    fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>) {
        self.arrays.plan_numbers(plan, ranges);
    }

    fn query_count(&self) -> usize {
        self.automaton.len()
    }

    fn plan_count(&self) -> usize {
        self.arrays.plans.len()
    }

    fn expression(&self, plan: PlanId) -> Option<ExpressionId> {
        let id = self.arrays.plans[plan as usize].expression;
        (id != NO_EXPRESSION).then_some(id)
    }

    fn with_expression<T>(&self, id: ExpressionId, f: impl FnOnce(&Expression) -> T) -> T {
        let slots = self
            .automaton
            .expressions
            .get_or_init(|| (0..self.expression_count()).map(|_| Slot::default()).collect());
        let text = self.automaton.expression_entry(id).0;
        slots[id as usize].with(text, &self.automaton.expression_room, f)
    }

    fn expression_count(&self) -> usize {
        self.automaton.expression_count()
    }

    fn needs_full_tree(&self) -> bool {
        self.automaton.needs_full_tree
    }
}

fn frozen(file: &FilePart) -> FrozenNfa<'_> {
    FrozenNfa {
        symbol: file.array(Tag::StateSymbol),
        states: file.array::<StateRecord>(Tag::StateRecords),
        ends: file.array::<EndRecord>(Tag::EndRecords),
        ranges: file.array::<RangeRecord>(Tag::RangeRecords),
        plans: file.array::<PlanRecord>(Tag::PlanRecords),
    }
}

fn check_automaton(file: &FilePart, queries: usize) -> Option<&'static str> {
    let symbols = file.array::<u32>(Tag::SymbolOffsets);
    let symbols_ok = is_offsets(symbols.iter().map(|&o| u64::from(o)), file.bytes(Tag::Symbols));
    if !symbols_ok {
        return Some("the symbols do not fit their offsets");
    }
    let nfa = frozen(file);
    if !check_texts(file, Tag::PlanOffsets, Tag::PlanTexts, nfa.plans.len()) {
        return Some("the plans do not fit their offsets");
    }
    let expressions = file.array::<u32>(Tag::ExpressionFlags).len();
    if !check_texts(file, Tag::ExpressionOffsets, Tag::Expressions, expressions) {
        return Some("the expressions do not fit their offsets");
    }
    nfa.fault(FIRST_NAME as usize + symbols.len() - 1, queries, expressions)
}
