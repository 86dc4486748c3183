//! An immutable index: queries and automaton in one file that is opened by memory map.
//!
//! Every thread and process that opens the file shares one copy. What is compiled on top of it at run
//! time (the lazy DFA) belongs to the matcher.

pub(crate) mod build;
pub mod format;
pub(crate) mod import;
mod level_order;
mod numbering;
mod symbol_ranks;

use crate::engine::conditions::Plan;
use crate::engine::ids::{ExpressionId, PlanId, QueryNumber, StateId};
use crate::engine::nfa::expressions::{Room, Slot};
use crate::engine::nfa::frozen::{
    EndRecord, FrozenNfa, NO_EXPRESSION, PlanRecord, RangeRecord, StateRecord,
};
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::nfa::{Nfa, plan_of};
use crate::engine::symbols::{Class, SymbolTable};
use crate::language::query::anchoring::anchored_len;
use crate::language::query::compile_canonical;
use crate::language::xpath::Expression;
use format::{FormatError, KIND_AUTOMATON, SnapshotFile, Tag};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

/// Prefix -> namespace URI; "" is the default element namespace.
pub type NamespaceMap = BTreeMap<String, String>;

/// A query as it was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryRecord<'s> {
    /// Chosen by the caller.
    pub id: &'s str,
    /// Query text.
    pub text: &'s str,
    /// Which of the namespace maps it was registered with.
    pub namespaces: u32,
}

/// Flag of an expression: it needs more of a message than elements, attributes and text.
const NEEDS_FULL_TREE: u32 = 1;

/// An open snapshot.
#[derive(Debug)]
pub struct Snapshot {
    file: SnapshotFile,
    symbols: SymbolTable,
    namespaces: Vec<NamespaceMap>,
    /// Plans that have been needed so far.
    plans: OnceLock<Box<[OnceLock<Plan>]>>,
    nested: OnceLock<NestedPaths>,
    /// Expressions that have been needed so far.
    expressions: OnceLock<Box<[Slot]>>,
    expression_room: Room,
    needs_full_tree: bool,
}

impl Snapshot {
    /// Opens a snapshot that holds an automaton. Cost: the checksum, and one pass over the offsets.
    pub fn open(path: &Path) -> Result<Snapshot, FormatError> {
        Self::from_file(SnapshotFile::open(path)?)
    }

    /// Reads a checked file of kind automaton.
    pub fn from_file(file: SnapshotFile) -> Result<Snapshot, FormatError> {
        if file.kind() != KIND_AUTOMATON {
            return Err(FormatError::Foreign("it holds queries only"));
        }
        let fault = check_queries(&file).or_else(|| check_automaton(&file));
        if let Some(fault) = fault {
            return Err(FormatError::Damaged(fault));
        }
        let namespaces = serde_json::from_slice(file.bytes(Tag::Namespaces))
            .map_err(|_| FormatError::Damaged("the namespaces are not JSON"))?;
        let mut symbols = SymbolTable::default();
        let offsets = file.array::<u32>(Tag::SymbolOffsets);
        for at in offsets.windows(2) {
            let notation = &file.bytes(Tag::Symbols)[at[0] as usize..at[1] as usize];
            symbols.intern(str::from_utf8(notation).expect("checked as a whole"));
        }
        if symbols.len() != crate::engine::symbols::FIRST_NAME as usize + offsets.len() - 1 {
            return Err(FormatError::Damaged("a symbol occurs twice"));
        }
        let flags = file.array::<u32>(Tag::ExpressionFlags);
        let needs_full_tree = flags.iter().any(|&flags| flags & NEEDS_FULL_TREE != 0);
        let (plans, expressions, nested) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Snapshot {
            file,
            symbols,
            namespaces,
            plans,
            nested,
            expressions,
            expression_room: Room::default(),
            needs_full_tree,
        })
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.file.array::<u32>(Tag::NamespaceOf).len()
    }

    /// What a message may cost, as [`Tag::Limits`] has it.
    pub fn limits(&self) -> &str {
        str::from_utf8(self.file.bytes(Tag::Limits)).expect("checked when opened")
    }

    /// The file.
    pub fn file(&self) -> &SnapshotFile {
        &self.file
    }

    /// A query.
    pub fn query(&self, number: QueryNumber) -> QueryRecord<'_> {
        QueryRecord {
            id: self.id(number),
            text: text_at(&self.file, Tag::TextOffsets, Tag::Texts, number),
            namespaces: self.namespace_numbers()[number as usize],
        }
    }

    /// Per query, [`QueryRecord::namespaces`].
    pub(crate) fn namespace_numbers(&self) -> &[u32] {
        self.file.array(Tag::NamespaceOf)
    }

    /// The id of a query.
    pub(crate) fn id(&self, number: QueryNumber) -> &str {
        text_at(&self.file, Tag::IdOffsets, Tag::Ids, number)
    }

    /// The number of a query. Cost: a binary search.
    pub fn number_of(&self, id: &str) -> Option<QueryNumber> {
        let order = self.file.array::<u32>(Tag::IdOrder);
        let found = order.binary_search_by(|&number| self.id(number).as_bytes().cmp(id.as_bytes()));
        found.ok().map(|at| order[at])
    }

    /// The namespace maps that [`QueryRecord::namespaces`] counts.
    pub fn namespaces(&self) -> &[NamespaceMap] {
        &self.namespaces
    }

    /// The alphabet.
    pub(crate) fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// The automaton, for one run.
    pub fn nfa(&self) -> SnapshotNfa<'_> {
        SnapshotNfa { arrays: frozen(&self.file), snapshot: self }
    }

    /// The nested paths of all plans. Cost: the first time, a microsecond or two a plan that has any.
    fn nested_paths(&self) -> &NestedPaths {
        self.nested.get_or_init(|| {
            let mut nested = NestedPaths::default();
            for plan in 0..self.file.array::<PlanRecord>(Tag::PlanRecords).len() as PlanId {
                let text = self.plan_text(plan);
                if may_have_nested_paths(text) {
                    let steps = compile_canonical(text);
                    let steps = steps.expect("plans are kept in canonical text");
                    nested.add_query(&steps, anchored_len(&steps));
                }
            }
            nested.sorted()
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

/// The automaton of a snapshot with its arrays at hand.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotNfa<'s> {
    /// The arrays.
    pub(crate) arrays: FrozenNfa<'s>,
    snapshot: &'s Snapshot,
}

impl Nfa for SnapshotNfa<'_> {
    fn symbols(&self) -> &SymbolTable {
        &self.snapshot.symbols
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

    fn plan(&self, plan: PlanId) -> &Plan {
        let slots = self
            .snapshot
            .plans
            .get_or_init(|| (0..self.plan_count()).map(|_| OnceLock::new()).collect());
        slots[plan as usize].get_or_init(|| plan_of(self.snapshot.plan_text(plan)))
    }

    fn with_plan<T>(&self, plan: PlanId, f: impl FnOnce(&Plan) -> T) -> T {
        f(&plan_of(self.snapshot.plan_text(plan)))
    }

    fn nested_paths(&self) -> Option<&NestedPaths> {
        let nested = self.snapshot.nested_paths();
        (nested.len() > 0).then_some(nested)
    }

    fn plan_numbers(&self, plan: PlanId, ranges: &mut Vec<Range<QueryNumber>>) {
        self.arrays.plan_numbers(plan, ranges);
    }

    fn query_count(&self) -> usize {
        self.snapshot.len()
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
            .snapshot
            .expressions
            .get_or_init(|| (0..self.expression_count()).map(|_| Slot::default()).collect());
        let text = self.snapshot.expression_entry(id).0;
        slots[id as usize].with(text, &self.snapshot.expression_room, f)
    }

    fn expression_count(&self) -> usize {
        self.snapshot.expression_count()
    }

    fn needs_full_tree(&self) -> bool {
        self.snapshot.needs_full_tree
    }
}

/// Whether a plan can have nested paths, or conditions between two `//`, which become nested paths.
fn may_have_nested_paths(text: &str) -> bool {
    let bytes = text.as_bytes();
    let opens_nested = |at: usize| !matches!(bytes.get(at + 1), Some(b'@'));
    memchr::memchr_iter(b'[', bytes).any(opens_nested)
        || memchr::memmem::find_iter(bytes, b"//").nth(1).is_some()
}

/// The queries of any checked file, of either kind, in the order of the file.
pub fn queries_of(
    file: &SnapshotFile,
) -> Result<(Vec<QueryRecord<'_>>, Vec<NamespaceMap>), FormatError> {
    if let Some(fault) = check_queries(file) {
        return Err(FormatError::Damaged(fault));
    }
    let namespaces = serde_json::from_slice(file.bytes(Tag::Namespaces))
        .map_err(|_| FormatError::Damaged("the namespaces are not JSON"))?;
    let of = file.array::<u32>(Tag::NamespaceOf);
    let records = (0..of.len() as u32).map(|number| QueryRecord {
        id: text_at(file, Tag::IdOffsets, Tag::Ids, number),
        text: text_at(file, Tag::TextOffsets, Tag::Texts, number),
        namespaces: of[number as usize],
    });
    Ok((records.collect(), namespaces))
}

fn text_at(file: &SnapshotFile, offsets: Tag, texts: Tag, number: u32) -> &str {
    let offsets = file.array::<u64>(offsets);
    let (start, end) = (offsets[number as usize], offsets[number as usize + 1]);
    str::from_utf8(&file.bytes(texts)[start as usize..end as usize]).expect("checked when opened")
}

fn frozen(file: &SnapshotFile) -> FrozenNfa<'_> {
    FrozenNfa {
        symbol: file.array(Tag::StateSymbol),
        states: file.array::<StateRecord>(Tag::StateRecords),
        ends: file.array::<EndRecord>(Tag::EndRecords),
        ranges: file.array::<RangeRecord>(Tag::RangeRecords),
        plans: file.array::<PlanRecord>(Tag::PlanRecords),
    }
}

fn check_queries(file: &SnapshotFile) -> Option<&'static str> {
    let queries = file.array::<u32>(Tag::NamespaceOf);
    let namespaces: Vec<NamespaceMap> =
        serde_json::from_slice(file.bytes(Tag::Namespaces)).unwrap_or_default();
    if queries.iter().any(|&n| n as usize >= namespaces.len()) {
        return Some("a query has unknown namespaces");
    }
    let texts_ok = check_texts(file, Tag::IdOffsets, Tag::Ids, queries.len())
        && check_texts(file, Tag::TextOffsets, Tag::Texts, queries.len());
    if !texts_ok {
        return Some("the ids or texts of the queries do not fit their offsets");
    }
    str::from_utf8(file.bytes(Tag::Limits)).is_err().then_some("the limits are not UTF-8")
}

fn check_automaton(file: &SnapshotFile) -> Option<&'static str> {
    let queries = file.array::<u32>(Tag::NamespaceOf).len();
    let order = file.array::<u32>(Tag::IdOrder);
    if order.len() != queries || order.iter().any(|&number| number as usize >= queries) {
        return Some("the order of the ids is not one of all queries");
    }
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
    nfa.fault(crate::engine::symbols::FIRST_NAME as usize + symbols.len() - 1, queries, expressions)
}

fn check_texts(file: &SnapshotFile, offsets: Tag, texts: Tag, count: usize) -> bool {
    let offsets = file.array::<u64>(offsets);
    offsets.len() == count + 1 && is_offsets(offsets.iter().copied(), file.bytes(texts))
}

/// Whether the offsets cut UTF-8 text into consecutive strings.
fn is_offsets(mut offsets: impl Iterator<Item = u64>, text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    let Some(mut last) = offsets.next() else {
        return false;
    };
    if last != 0 {
        return false;
    }
    for offset in offsets {
        if offset < last || !text.is_char_boundary(offset as usize) {
            return false;
        }
        last = offset;
    }
    last == text.len() as u64
}
