//! Freezing: live queries to the arrays of a snapshot.
//!
//! The numbering is what makes results cheap to collect: queries are sorted by the *reversed* path
//! of their accepting state (last location step first), so that those accepted together, which end
//! alike, get neighbouring numbers. It depends on the set of queries alone, not on the order in
//! which they came: symbols are ranked by their notation, equal paths by plan, expression, further
//! alternatives and id.

use super::format::{FORMAT, FileBuilder, KIND_AUTOMATON, SnapshotFile, Tag};
use super::level_order::LevelOrder;
use super::numbering::{Numbering, state_of};
use super::symbol_ranks::Ranking;
use super::{NEEDS_FULL_TREE, NamespaceMap, QueryRecord};
use crate::engine::interrupt::{Interrupted, look};
use crate::engine::nfa::frozen::{EndRecord, NO_ENDS, StateRecord};
use crate::engine::nfa::growing::{Ending, GrowingNfa, Terminal};
use xxhash_rust::xxh3::Xxh3;

/// A query to be frozen: where it ends in the NFA, and its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveQuery<'q> {
    /// Where it ends.
    pub(crate) ending: Ending,
    /// What was registered.
    pub(crate) record: QueryRecord<'q>,
}

/// Builds the snapshot of `queries`, all of which end in `nfa`. Their order is changed. `limits` go
/// into the file as they are.
///
/// Cost: two sorts of the queries (by end, by id) and one of the states; about 1 µs a query.
///
/// # Errors
/// It was interrupted.
pub(crate) fn freeze(
    nfa: &GrowingNfa,
    queries: &mut [LiveQuery<'_>],
    namespaces: &[NamespaceMap],
    limits: &str,
) -> Result<SnapshotFile, Interrupted> {
    // Each of these takes a part of a microsecond a query.
    let between = || if look() { Err(Interrupted) } else { Ok(()) };
    between()?;
    let used = used_states(nfa, queries);
    let symbols = Ranking::of_symbols(nfa, &used);
    between()?;
    let ends = Numbering::sort(nfa, queries, &symbols);
    between()?;
    let states = LevelOrder::of(nfa, &used, &symbols);

    let mut columns = Columns::default();
    for query in queries.iter() {
        columns.push(&query.record);
    }
    let (records, end_records) = state_records(&states, &ends);
    let (plan_offsets, plan_texts) = texts(ends.plans.iter().map(|&plan| nfa.plan_entry(plan).1));
    let expressions = || ends.expressions.iter().map(|&id| nfa.expressions().entry(id));
    let (expression_offsets, expression_texts) = texts(expressions().map(|(text, _)| text));
    let expression_flags: Vec<u32> = expressions()
        .map(|(_, needs_full_tree)| if needs_full_tree { NEEDS_FULL_TREE } else { 0 })
        .collect();
    between()?;
    let order = order_of_ids(queries);
    between()?;
    let namespaces = serde_json::to_vec(namespaces).expect("maps of strings are JSON");
    let version = columns.version(&namespaces, limits);
    let metadata = format!(
        r#"{{"version":"{version:016x}","queries":{},"states":{},"plans":{},"expressions":{}}}"#,
        queries.len(),
        states.symbol.len(),
        ends.plans.len(),
        ends.expressions.len()
    );
    let mut file = FileBuilder::default();
    file.section(Tag::IdOffsets, &columns.id_offsets)
        .section(Tag::Ids, columns.ids.as_bytes())
        .section(Tag::TextOffsets, &columns.text_offsets)
        .section(Tag::Texts, columns.texts.as_bytes())
        .section(Tag::NamespaceOf, &columns.namespaces)
        .section(Tag::Namespaces, &namespaces)
        .section(Tag::Metadata, metadata.as_bytes())
        .section(Tag::Limits, limits.as_bytes())
        .section(Tag::SymbolOffsets, &symbols.offsets)
        .section(Tag::Symbols, symbols.text.as_bytes())
        .section(Tag::StateSymbol, &states.symbol)
        .section(Tag::StateRecords, &records)
        .section(Tag::EndRecords, &end_records)
        .section(Tag::RangeRecords, &ends.ranges)
        .section(Tag::PlanRecords, &ends.plan_records)
        .section(Tag::PlanOffsets, &plan_offsets)
        .section(Tag::PlanTexts, plan_texts.as_bytes())
        .section(Tag::IdOrder, &order)
        .section(Tag::ExpressionOffsets, &expression_offsets)
        .section(Tag::Expressions, expression_texts.as_bytes())
        .section(Tag::ExpressionFlags, &expression_flags);
    Ok(file.build(KIND_AUTOMATON))
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
fn used_states(nfa: &GrowingNfa, queries: &[LiveQuery<'_>]) -> Vec<bool> {
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

/// The numbers in the order of their ids.
fn order_of_ids(queries: &[LiveQuery<'_>]) -> Vec<u32> {
    let prefix = |id: &str| {
        let mut bytes = [0u8; 8];
        let count = id.len().min(8);
        bytes[..count].copy_from_slice(&id.as_bytes()[..count]);
        u64::from_be_bytes(bytes)
    };
    let mut order: Vec<(u64, u32)> = queries
        .iter()
        .enumerate()
        .map(|(number, query)| (prefix(query.record.id), number as u32))
        .collect();
    let id = |number: u32| queries[number as usize].record.id;
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| id(a.1).cmp(id(b.1))));
    order.into_iter().map(|(_, number)| number).collect()
}

/// What was registered, in the order of the query numbers.
struct Columns {
    id_offsets: Vec<u64>,
    ids: String,
    text_offsets: Vec<u64>,
    texts: String,
    namespaces: Vec<u32>,
}

impl Default for Columns {
    fn default() -> Self {
        Columns {
            id_offsets: vec![0],
            ids: String::new(),
            text_offsets: vec![0],
            texts: String::new(),
            namespaces: Vec::new(),
        }
    }
}

impl Columns {
    fn push(&mut self, record: &QueryRecord<'_>) {
        self.ids.push_str(record.id);
        self.id_offsets.push(self.ids.len() as u64);
        self.texts.push_str(record.text);
        self.text_offsets.push(self.texts.len() as u64);
        self.namespaces.push(record.namespaces);
    }

    /// A digest of what decides the answers: equal sets of queries under equal limits have equal
    /// versions. That of another format is another one, so that whoever names files by it finds none
    /// that cannot be read.
    fn version(&self, namespaces: &[u8], limits: &str) -> u64 {
        let mut digest = Xxh3::new();
        digest.update(&FORMAT.to_le_bytes());
        for part in [
            bytemuck::cast_slice(&self.id_offsets),
            self.ids.as_bytes(),
            bytemuck::cast_slice(&self.text_offsets),
            self.texts.as_bytes(),
            bytemuck::cast_slice(&self.namespaces),
            namespaces,
            limits.as_bytes(),
        ] {
            digest.update(part);
        }
        digest.digest()
    }
}
