//! An immutable registry: subscriptions of all kinds and what they have become, in one file that is opened by memory map.
//!
//! Every thread and process that opens the file shares one copy. What is compiled on top of it at run time (the lazy DFA,
//! the programs that messages have needed) belongs to the matcher.

pub(crate) mod automaton;
pub(crate) mod build;
pub mod format;
pub(crate) mod import;
mod level_order;
mod numbering;
pub(crate) mod parts;
pub(crate) mod records;
pub mod set_version;
mod symbol_ranks;

use crate::engine::ids::QueryNumber;
use crate::engine::plans::template::Deliver;
use crate::language::choice::Language;
use automaton::{FrozenAutomaton, SnapshotNfa};
use format::{FileBuilder, FilePart, FormatError, SnapshotFile, Tag};
use parts::{FrozenPart, FrozenWay, PartArrays, check_steps};
use records::RecordColumns;
use set_version::hexadecimal;
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

/// A subscription as it was made; a filter query is one of nobody that is delivered as an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'e> {
    /// Chosen by the caller.
    pub id: &'e str,
    /// XPath or XQuery.
    pub text: &'e str,
    /// Which of the two; none leaves it to the text.
    pub language: Option<Language>,
    /// Which of the namespace maps it was registered with.
    pub namespaces: u32,
    /// Whom its results go to; empty for a filter query.
    pub subscriber: &'e str,
    /// What is delivered.
    pub deliver: Deliver,
}

/// An open snapshot.
#[derive(Debug)]
pub struct Snapshot {
    file: FilePart,
    namespaces: Vec<NamespaceMap>,
    parts: Vec<FrozenPart>,
    others: usize,
}

impl Snapshot {
    /// Opens a snapshot that holds an automaton. Cost: the checksum, and one pass over the arrays; nothing is compiled.
    pub fn open(path: &Path) -> Result<Snapshot, FormatError> {
        Self::from_file(SnapshotFile::open(path)?)
    }

    /// Reads a checked file.
    pub fn from_file(file: SnapshotFile) -> Result<Snapshot, FormatError> {
        let part_count = file.part_count();
        let first = FilePart::first(file);
        let fault = check_queries(&first).or_else(|| check_order(&first));
        if let Some(fault) = fault.or_else(|| check_subscriptions(&first)) {
            return Err(FormatError::Damaged(fault));
        }
        let namespaces = serde_json::from_slice(first.bytes(Tag::Namespaces))
            .map_err(|_| FormatError::Damaged("the namespaces are not JSON"))?;
        let parts = (0..part_count).map(|part| FrozenPart::of(first.part(part), part));
        let parts = parts.collect::<Result<Vec<_>, _>>().map_err(FormatError::Damaged)?;
        if let Some(fault) = check_steps(&parts) {
            return Err(FormatError::Damaged(fault));
        }
        let mut snapshot = Snapshot { file: first, namespaces, parts, others: 0 };
        snapshot.others = snapshot.count_others();
        Ok(snapshot)
    }

    /// A snapshot of parts and records, which are in the same order. `limits` go into the file as they are.
    pub(crate) fn of(parts: &[PartArrays], records: &RecordColumns, limits: &str) -> Snapshot {
        let sum = records.sum(parts);
        let version = hexadecimal(&sum.version(limits));
        let sum = hexadecimal(&sum.bytes());
        let (states, plans, expressions) = parts[0].automaton.counts();
        let metadata = format!(
            r#"{{"version":"{version}","sum":"{sum}","queries":{},"states":{states},"plans":{plans},"expressions":{expressions}}}"#,
            records.len(),
        );
        let mut file = FileBuilder::default();
        records.add_to(&mut file);
        file.section(Tag::Metadata, metadata.as_bytes()).section(Tag::Limits, limits.as_bytes());
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                file.begin_part();
            }
            part.add_to(&mut file);
        }
        Self::from_file(file.build()).expect("what was frozen is sound")
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.file.array::<u32>(Tag::NamespaceOf).len()
    }

    /// How many of them are no filter queries.
    pub fn others(&self) -> usize {
        self.others
    }

    /// What a message may cost, as [`Tag::Limits`] has it.
    pub fn limits(&self) -> &str {
        str::from_utf8(self.file().bytes(Tag::Limits)).expect("checked when opened")
    }

    /// The file.
    pub fn file(&self) -> &SnapshotFile {
        self.file.file()
    }

    /// The automaton of what is asked of messages as they come, which goes by number.
    pub fn automaton(&self) -> &Arc<FrozenAutomaton> {
        self.parts[0].automaton()
    }

    /// The automaton, for one run.
    pub fn nfa(&self) -> SnapshotNfa<'_> {
        self.automaton().nfa()
    }

    /// What is asked of messages as they come, and after each series of steps.
    pub(crate) fn parts(&self) -> &[FrozenPart] {
        &self.parts
    }

    /// A subscription.
    pub fn entry(&self, number: QueryNumber) -> Entry<'_> {
        let at = number as usize;
        let (deliver, language) = self.mode(number);
        let subscriber = self.file.array::<u32>(Tag::SubscriberOf).get(at);
        let subscriber = subscriber.map_or("", |&subscriber| {
            text_at(&self.file, Tag::SubscriberOffsets, Tag::Subscribers, subscriber)
        });
        Entry {
            id: self.id(number),
            text: text_at(&self.file, Tag::TextOffsets, Tag::Texts, number),
            language,
            namespaces: self.file.array(Tag::NamespaceOf)[at],
            subscriber,
            deliver,
        }
    }

    /// The texts of the steps of a subscription.
    pub(crate) fn step_texts(&self, number: QueryNumber) -> &[Box<str>] {
        match self.parts[0].way(number) {
            FrozenWay::Stepped(series, place) => self.parts[series as usize + 1].texts_of(place),
            _ => &[],
        }
    }

    /// What is delivered, and in which language the text is.
    #[inline]
    pub(crate) fn mode(&self, number: QueryNumber) -> (Deliver, Option<Language>) {
        mode_at(&self.file, number)
    }

    /// The id of a subscription.
    pub(crate) fn id(&self, number: QueryNumber) -> &str {
        text_at(&self.file, Tag::IdOffsets, Tag::Ids, number)
    }

    /// The number of a subscription. Cost: a binary search.
    pub fn number_of(&self, id: &str) -> Option<QueryNumber> {
        let order = self.file.array::<u32>(Tag::IdOrder);
        let found = order.binary_search_by(|&number| self.id(number).as_bytes().cmp(id.as_bytes()));
        found.ok().map(|at| order[at])
    }

    /// The namespace maps that [`Entry::namespaces`] counts.
    pub fn namespaces(&self) -> &[NamespaceMap] {
        &self.namespaces
    }

    fn count_others(&self) -> usize {
        if self.file.bytes(Tag::Modes).is_empty() {
            let [filters, ..] = self.parts[0].counts();
            return self.len() - filters;
        }
        let nobody: Vec<bool> = self
            .file
            .array::<u64>(Tag::SubscriberOffsets)
            .windows(2)
            .map(|ends| ends[0] == ends[1])
            .collect();
        let columns =
            self.file.bytes(Tag::Modes).iter().zip(self.file.array::<u32>(Tag::SubscriberOf));
        let queries = columns.enumerate().filter(|&(number, (&mode, &subscriber))| {
            mode == QUERY_MODE
                && nobody[subscriber as usize]
                && self.parts[0].way(number as QueryNumber) == FrozenWay::Filter
        });
        self.len() - queries.count()
    }
}

/// That of a filter query.
const QUERY_MODE: u8 = Deliver::Ids as u8;

/// What is delivered and in which language a text is, as a byte.
pub(crate) fn mode(deliver: Deliver, language: Option<Language>) -> u8 {
    let language = match language {
        None => 0,
        Some(Language::XPath) => 1,
        Some(Language::XQuery) => 2,
    };
    deliver as u8 | language << 2
}

/// What is delivered of a subscription of a file, and in which language its text is.
#[inline]
fn mode_at(file: &FilePart, number: QueryNumber) -> (Deliver, Option<Language>) {
    let mode = file.bytes(Tag::Modes).get(number as usize).copied();
    mode_of(mode.unwrap_or(QUERY_MODE))
}

#[inline]
fn mode_of(mode: u8) -> (Deliver, Option<Language>) {
    let language = match mode >> 2 {
        1 => Some(Language::XPath),
        2 => Some(Language::XQuery),
        _ => None,
    };
    (Deliver::ALL[usize::from(mode & 3)], language)
}

fn text_at(file: &FilePart, offsets: Tag, texts: Tag, number: u32) -> &str {
    let offsets = file.array::<u64>(offsets);
    let (start, end) = (offsets[number as usize], offsets[number as usize + 1]);
    str::from_utf8(&file.bytes(texts)[start as usize..end as usize]).expect("checked when opened")
}

fn check_queries(file: &FilePart) -> Option<&'static str> {
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

fn check_order(file: &FilePart) -> Option<&'static str> {
    let queries = file.array::<u32>(Tag::NamespaceOf).len();
    let order = file.array::<u32>(Tag::IdOrder);
    let (offsets, ids) = (file.array::<u64>(Tag::IdOffsets), file.bytes(Tag::Ids));
    let id = |number: u32| {
        let at = number as usize;
        &ids[offsets[at] as usize..offsets[at + 1] as usize]
    };
    let is_order = order.len() == queries
        && order.iter().all(|&number| (number as usize) < queries)
        && order.is_sorted_by(|&one, &next| id(one) < id(next));
    (!is_order).then_some("the ids are not in order, or two are equal")
}

fn check_subscriptions(file: &FilePart) -> Option<&'static str> {
    let queries = file.array::<u32>(Tag::NamespaceOf).len();
    let (modes, of) = (file.bytes(Tag::Modes), file.array::<u32>(Tag::SubscriberOf));
    let subscribers = file.array::<u64>(Tag::SubscriberOffsets).len().saturating_sub(1);
    let sound = if modes.is_empty() {
        of.is_empty()
    } else {
        modes.len() == queries
            && modes.iter().all(|mode| mode >> 2 < 3)
            && of.len() == queries
            && of.iter().all(|&subscriber| (subscriber as usize) < subscribers)
            && check_texts(file, Tag::SubscriberOffsets, Tag::Subscribers, subscribers)
    };
    (!sound).then_some("the subscribers do not fit the subscriptions")
}

fn check_texts(file: &FilePart, offsets: Tag, texts: Tag, count: usize) -> bool {
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
