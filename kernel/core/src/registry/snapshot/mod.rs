//! An immutable index: queries and automaton in one file that is opened by memory map.
//!
//! Every thread and process that opens the file shares one copy. What is compiled on top of it at run
//! time (the lazy DFA) belongs to the matcher.

pub(crate) mod automaton;
pub(crate) mod build;
pub mod format;
pub(crate) mod import;
mod level_order;
mod numbering;
pub(crate) mod records;
mod symbol_ranks;

use crate::engine::ids::QueryNumber;
use automaton::{FrozenAutomaton, SnapshotNfa};
use build::FrozenArrays;
use format::{FileBuilder, FormatError, KIND_AUTOMATON, SnapshotFile, Tag};
use records::RecordColumns;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

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

/// An open snapshot.
#[derive(Debug)]
pub struct Snapshot {
    automaton: Arc<FrozenAutomaton>,
    namespaces: Vec<NamespaceMap>,
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
        if let Some(fault) = check_queries(&file).or_else(|| check_order(&file)) {
            return Err(FormatError::Damaged(fault));
        }
        let namespaces = serde_json::from_slice(file.bytes(Tag::Namespaces))
            .map_err(|_| FormatError::Damaged("the namespaces are not JSON"))?;
        let queries = file.array::<u32>(Tag::NamespaceOf).len();
        let automaton = FrozenAutomaton::of(file, queries).map_err(FormatError::Damaged)?;
        Ok(Snapshot { automaton: Arc::new(automaton), namespaces })
    }

    /// A snapshot of arrays and records, which are in the same order. `limits` go into the file as they are.
    pub(crate) fn of(arrays: &FrozenArrays, records: &RecordColumns, limits: &str) -> Snapshot {
        let version = records.version(limits);
        let (states, plans, expressions) = arrays.counts();
        let metadata = format!(
            r#"{{"version":"{version:016x}","queries":{},"states":{states},"plans":{plans},"expressions":{expressions}}}"#,
            records.len(),
        );
        let mut file = FileBuilder::default();
        records.add_to(&mut file);
        file.section(Tag::Metadata, metadata.as_bytes()).section(Tag::Limits, limits.as_bytes());
        arrays.add_to(&mut file);
        Self::from_file(file.build(KIND_AUTOMATON)).expect("what was frozen is sound")
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.automaton.len()
    }

    /// What a message may cost, as [`Tag::Limits`] has it.
    pub fn limits(&self) -> &str {
        str::from_utf8(self.file().bytes(Tag::Limits)).expect("checked when opened")
    }

    /// The file.
    pub fn file(&self) -> &SnapshotFile {
        self.automaton.file()
    }

    /// The automaton, which goes by number.
    pub fn automaton(&self) -> &Arc<FrozenAutomaton> {
        &self.automaton
    }

    /// The automaton, for one run.
    pub fn nfa(&self) -> SnapshotNfa<'_> {
        self.automaton.nfa()
    }

    /// A query.
    pub fn query(&self, number: QueryNumber) -> QueryRecord<'_> {
        QueryRecord {
            id: self.id(number),
            text: text_at(self.file(), Tag::TextOffsets, Tag::Texts, number),
            namespaces: self.file().array(Tag::NamespaceOf)[number as usize],
        }
    }

    /// The id of a query.
    pub(crate) fn id(&self, number: QueryNumber) -> &str {
        text_at(self.file(), Tag::IdOffsets, Tag::Ids, number)
    }

    /// The number of a query. Cost: a binary search.
    pub fn number_of(&self, id: &str) -> Option<QueryNumber> {
        let order = self.file().array::<u32>(Tag::IdOrder);
        let found = order.binary_search_by(|&number| self.id(number).as_bytes().cmp(id.as_bytes()));
        found.ok().map(|at| order[at])
    }

    /// The namespace maps that [`QueryRecord::namespaces`] counts.
    pub fn namespaces(&self) -> &[NamespaceMap] {
        &self.namespaces
    }
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

fn check_order(file: &SnapshotFile) -> Option<&'static str> {
    let queries = file.array::<u32>(Tag::NamespaceOf).len();
    let order = file.array::<u32>(Tag::IdOrder);
    let is_order =
        order.len() == queries && order.iter().all(|&number| (number as usize) < queries);
    (!is_order).then_some("the order of the ids is not one of all queries")
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
