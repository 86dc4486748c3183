//! Freezing: live queries to the arrays of a snapshot.
//!
//! The numbering is what makes results cheap to collect: queries are sorted by the *reversed* path
//! of their accepting state (last location step first), so that those accepted together, which end
//! alike, get neighbouring numbers. It depends on the set of queries alone, not on the order in
//! which they came: symbols are ranked by their notation, equal paths by plan and id.

use super::format::{FileBuilder, KIND_AUTOMATON, SnapshotFile, Tag};
use super::{NamespaceMap, QueryRecord};
use crate::nfa::frozen::{NO_PLANS, PlanRecord, PlanSpan, StateRecord};
use crate::nfa::growing::{GrowingNfa, Terminal};
use crate::nfa::{PlanId, QueryNumber, StateId};
use crate::symbols::{FIRST_NAME, Symbol};
use xxhash_rust::xxh3::Xxh3;

/// A query to be frozen: where it ends in the NFA, and its record.
#[derive(Debug, Clone, Copy)]
pub struct LiveQuery<'q> {
    /// Where it ends.
    pub terminal: Terminal,
    /// What was registered.
    pub record: QueryRecord<'q>,
}

/// Builds the snapshot of `queries`, all of which end in `nfa`. Their order is changed.
///
/// Cost: two sorts of the queries (by end, by id) and one of the states; about 1 µs a query.
pub fn freeze(
    nfa: &GrowingNfa,
    queries: &mut [LiveQuery<'_>],
    namespaces: &[NamespaceMap],
) -> SnapshotFile {
    let used = used_states(nfa, queries);
    let symbols = Ranking::of_symbols(nfa, &used);
    let ends = Ends::sort(nfa, queries, &symbols);
    let states = LevelOrder::of(nfa, &used, &symbols);

    let mut columns = Columns::default();
    for query in queries.iter() {
        columns.push(&query.record);
    }
    let mut records: Vec<StateRecord> = states
        .first_child
        .iter()
        .map(|&first_child| StateRecord { first_child, plans: NO_PLANS, ..StateRecord::default() })
        .collect();
    let mut spans: Vec<PlanSpan> = Vec::new();
    for (&state, end) in ends.states.iter().zip(&ends.accepts) {
        let record = &mut records[states.number[state as usize] as usize];
        (record.first_query, record.query_count) = (end.first_query, end.query_count);
        if end.plans.plan_count > 0 {
            record.plans = spans.len() as u32;
            spans.push(end.plans);
        }
    }
    let mut plan_offsets = vec![0u64];
    let mut plan_texts = String::new();
    for &plan in &ends.plans {
        plan_texts.push_str(nfa.plan_entry(plan).1);
        plan_offsets.push(plan_texts.len() as u64);
    }
    let order = order_of_ids(queries);
    let namespaces = serde_json::to_vec(namespaces).expect("maps of strings are JSON");
    let version = columns.version(&namespaces);
    let metadata = format!(
        r#"{{"version":"{version:016x}","queries":{},"states":{},"plans":{}}}"#,
        queries.len(),
        states.symbol.len(),
        ends.plans.len()
    );
    let mut file = FileBuilder::default();
    file.section(Tag::IdOffsets, &columns.id_offsets)
        .section(Tag::Ids, columns.ids.as_bytes())
        .section(Tag::TextOffsets, &columns.text_offsets)
        .section(Tag::Texts, columns.texts.as_bytes())
        .section(Tag::NamespaceOf, &columns.namespaces)
        .section(Tag::Namespaces, &namespaces)
        .section(Tag::Metadata, metadata.as_bytes())
        .section(Tag::SymbolOffsets, &symbols.offsets)
        .section(Tag::Symbols, symbols.text.as_bytes())
        .section(Tag::StateSymbol, &states.symbol)
        .section(Tag::StateRecords, &records)
        .section(Tag::PlanSpans, &spans)
        .section(Tag::PlanRecords, &ends.plan_records)
        .section(Tag::PlanOffsets, &plan_offsets)
        .section(Tag::PlanTexts, plan_texts.as_bytes())
        .section(Tag::IdOrder, &order);
    file.build(KIND_AUTOMATON)
}

fn state_of(nfa: &GrowingNfa, terminal: Terminal) -> StateId {
    match terminal {
        Terminal::State(state) => state,
        Terminal::Plan(plan) => nfa.plan_entry(plan).0,
    }
}

/// The states on the way to a live query.
fn used_states(nfa: &GrowingNfa, queries: &[LiveQuery<'_>]) -> Vec<bool> {
    let mut used = vec![false; nfa.state_count()];
    used[0] = true;
    for query in queries {
        let mut state = state_of(nfa, query.terminal);
        while !used[state as usize] {
            used[state as usize] = true;
            state = nfa.origin(state).0;
        }
    }
    used
}

/// The symbols in use, renumbered by their notation.
struct Ranking {
    new: Vec<Symbol>,
    offsets: Vec<u32>,
    text: String,
}

impl Ranking {
    fn of_symbols(nfa: &GrowingNfa, used: &[bool]) -> Ranking {
        let table = crate::nfa::Nfa::symbols(nfa);
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

/// The states in level order.
struct LevelOrder {
    /// Old number -> new number.
    number: Vec<StateId>,
    symbol: Vec<Symbol>,
    first_child: Vec<StateId>,
}

impl LevelOrder {
    fn of(nfa: &GrowingNfa, used: &[bool], symbols: &Ranking) -> LevelOrder {
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

/// What one accepting state accepts.
#[derive(Clone, Default)]
struct Accepts {
    first_query: QueryNumber,
    query_count: u32,
    plans: PlanSpan,
}

/// Accepting states and plans in the order of the query numbers.
struct Ends {
    states: Vec<StateId>,
    accepts: Vec<Accepts>,
    plans: Vec<PlanId>,
    plan_records: Vec<PlanRecord>,
}

impl Ends {
    /// Sorts the queries into the order of their numbers and says what each state accepts.
    fn sort(nfa: &GrowingNfa, queries: &mut [LiveQuery<'_>], symbols: &Ranking) -> Ends {
        let mut is_end = vec![false; nfa.state_count()];
        for query in queries.iter() {
            is_end[state_of(nfa, query.terminal) as usize] = true;
        }
        let mut states: Vec<(u64, StateId)> = (0..is_end.len() as StateId)
            .filter(|&s| is_end[s as usize])
            .map(|s| (reversed_prefix(nfa, symbols, s), s))
            .collect();
        states.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| compare_reversed(nfa, symbols, a.1, b.1))
        });
        let states: Vec<StateId> = states.into_iter().map(|(_, state)| state).collect();
        let mut rank = vec![0u32; nfa.state_count()];
        for (at, &state) in states.iter().enumerate() {
            rank[state as usize] = at as u32;
        }
        let key = |query: &LiveQuery<'_>| match query.terminal {
            Terminal::State(state) => (u64::from(rank[state as usize]) << 1, ""),
            Terminal::Plan(plan) => {
                let (state, text) = nfa.plan_entry(plan);
                (u64::from(rank[state as usize]) << 1 | 1, text)
            }
        };
        queries.sort_unstable_by(|a, b| {
            key(a).cmp(&key(b)).then_with(|| a.record.id.cmp(b.record.id))
        });

        let mut accepts = vec![Accepts::default(); states.len()];
        let (mut plans, mut plan_records) = (Vec::new(), Vec::<PlanRecord>::new());
        for (number, query) in queries.iter().enumerate() {
            let number = number as u32;
            let accept = &mut accepts[rank[state_of(nfa, query.terminal) as usize] as usize];
            let (first, count) = match query.terminal {
                Terminal::State(_) => (&mut accept.first_query, &mut accept.query_count),
                Terminal::Plan(plan) => {
                    if plans.last() != Some(&plan) {
                        if accept.plans.plan_count == 0 {
                            accept.plans.first_plan = plans.len() as PlanId;
                        }
                        accept.plans.plan_count += 1;
                        plans.push(plan);
                        plan_records.push(PlanRecord::default());
                    }
                    let record = plan_records.last_mut().expect("just pushed");
                    (&mut record.first_query, &mut record.query_count)
                }
            };
            if *count == 0 {
                *first = number;
            }
            *count += 1;
        }
        Ends { states, accepts, plans, plan_records }
    }
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
) -> std::cmp::Ordering {
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
    std::cmp::Ordering::Equal
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

    /// A digest of the queries: equal sets of queries have equal versions.
    fn version(&self, namespaces: &[u8]) -> u64 {
        let mut digest = Xxh3::new();
        for part in [
            bytemuck::cast_slice(&self.id_offsets),
            self.ids.as_bytes(),
            bytemuck::cast_slice(&self.text_offsets),
            self.texts.as_bytes(),
            bytemuck::cast_slice(&self.namespaces),
            namespaces,
        ] {
            digest.update(part);
        }
        digest.digest()
    }
}
