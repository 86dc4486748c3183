//! The index that takes queries in and out while messages flow.
//!
//! It is a snapshot (the base) and what came since (the delta): a [`GrowingNfa`] for new queries, a
//! bitmap of tombstones for removed ones. [`Index::freeze`] merges the two into a new base. Query numbers
//! count the base first, then the delta in order of arrival; they change when the base does.
//!
//! Locks: a batch holds `renumbering` shared for its whole length, so that all its numbers mean the same;
//! a message holds `state` shared, so that a query counts from the next message on.

use crate::engine::conditions::Plan;
use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::Interrupted;
use crate::engine::nfa::growing::GrowingNfa;
use crate::language::compile::{compile_gate, compile_query};
use crate::language::query::ast::Step;
use crate::language::query::{Compiler, Namespaces};
use crate::language::reader::{Refusal, read_gate, read_query};
use crate::language::xpath::Expression;
use crate::registry::snapshot::build::{LiveQuery, freeze};
use crate::registry::snapshot::format::SnapshotFile;
use crate::registry::snapshot::import::import;
use crate::registry::snapshot::{NamespaceMap, QueryRecord, Snapshot};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A delta larger than this, and than half the base, is merged before the next batch.
const DELTA_MAX: usize = 1 << 14;

/// Strings in one buffer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Number of strings.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a string.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// A string.
    pub(crate) fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    fn memory(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// The ids behind query numbers; valid for the numbers of the batch it was taken for, however the index
/// has changed since.
#[derive(Debug, Clone, Default)]
pub struct IdTable {
    base: Option<Arc<Snapshot>>,
    delta: Arc<RwLock<Texts>>,
}

impl IdTable {
    /// The ids of a snapshot.
    pub fn of_snapshot(snapshot: Arc<Snapshot>) -> IdTable {
        IdTable { base: Some(snapshot), delta: Arc::default() }
    }

    /// Number of query numbers, removed ones counted.
    pub fn len(&self) -> usize {
        self.base.as_ref().map_or(0, |b| b.len()) + read(&self.delta).len()
    }

    /// Calls `f` with the id of each number.
    pub fn for_each(&self, numbers: impl Iterator<Item = QueryNumber>, mut f: impl FnMut(&str)) {
        let delta = read(&self.delta);
        let base_len = self.base.as_ref().map_or(0, |b| b.len());
        for number in numbers {
            match &self.base {
                Some(base) if (number as usize) < base_len => f(base.id(number)),
                _ => f(delta.get(number as usize - base_len)),
            }
        }
    }
}

/// What may change.
#[derive(Debug, Default)]
pub struct IndexState {
    base: Option<Arc<Snapshot>>,
    delta: GrowingNfa,
    delta_ids: Arc<RwLock<Texts>>,
    delta_texts: Texts,
    delta_namespaces: Vec<u32>,
    /// Numbers of the delta (counted within it) by id.
    by_id: HashTable<u32>,
    namespaces: Vec<NamespaceMap>,
    /// Numbers of the namespace maps by map.
    by_namespaces: HashTable<u32>,
    removed: Vec<u64>,
    removed_count: usize,
    /// Changes when the base does, and the delta begins anew.
    pub(crate) generation: u64,
}

/// An index shared by threads.
#[derive(Debug, Default)]
pub struct Index {
    /// What a message may cost, as its snapshots shall say.
    limits: Box<str>,
    renumbering: RwLock<()>,
    state: RwLock<IndexState>,
}

/// Why a query was not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRegistered {
    /// The id is taken.
    Duplicate,
    /// The expression is not one in canonical text.
    Expression,
}

/// Why the text of a query was not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdded {
    /// The text is no query.
    Refused(Refusal),
    /// The id is taken, or the evaluator does not take the expression that the query was compiled to.
    NotRegistered(NotRegistered),
}

/// No query has the id at this place of the list.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown(pub usize);

impl Index {
    /// An empty index whose snapshots say what a message may cost; see `Tag::Limits`.
    pub fn new(limits: &str) -> Index {
        Index { limits: limits.into(), ..Index::default() }
    }

    /// An index that goes on from a snapshot.
    pub fn from_snapshot(snapshot: Arc<Snapshot>) -> Index {
        let index = Index::new(snapshot.limits());
        write(&index.state).rebase(snapshot);
        index
    }

    /// Keeps query numbers as they are while the guard lives.
    pub fn pin_numbers(&self) -> RwLockReadGuard<'_, ()> {
        read(&self.renumbering)
    }

    /// The state, for one message or one look.
    pub fn state(&self) -> RwLockReadGuard<'_, IndexState> {
        read(&self.state)
    }

    /// Registers many queries under one lock. `f` calls [`IndexState::register`].
    pub fn change<T>(&self, f: impl FnOnce(&mut IndexState) -> T) -> T {
        f(&mut write(&self.state))
    }

    /// Merges base and delta into a new base without the removed queries, and returns it.
    /// Waits for batches under way. Cost: about 1.5 µs a query.
    ///
    /// # Errors
    /// It was interrupted; the queries are the same, and so are their numbers.
    pub fn freeze(&self) -> Result<Arc<Snapshot>, Interrupted> {
        let _renumbering = self.renumbering.write().unwrap_or_else(PoisonError::into_inner);
        write(&self.state).merge(&self.limits)
    }

    /// Merges the delta if it has outgrown the base; called before a batch.
    ///
    /// # Errors
    /// It was interrupted.
    pub fn settle(&self) -> Result<(), Interrupted> {
        let state = self.state();
        let base = state.base.as_ref().map_or(0, |b| b.len());
        let is_large = state.delta.len() > DELTA_MAX.max(base / 2);
        drop(state);
        if is_large {
            self.freeze()?;
        }
        Ok(())
    }
}

impl IndexState {
    /// Number of queries.
    pub fn len(&self) -> usize {
        self.number_count() - self.removed_count
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of query numbers, removed ones counted.
    pub(crate) fn number_count(&self) -> usize {
        self.base_len() + self.delta.len()
    }

    /// The snapshot below the delta.
    pub fn base(&self) -> Option<&Arc<Snapshot>> {
        self.base.as_ref()
    }

    /// The queries that came since.
    pub(crate) fn delta(&self) -> &GrowingNfa {
        &self.delta
    }

    /// Bitmap of the removed numbers; none when there are none.
    pub(crate) fn removed(&self) -> Option<&[u64]> {
        (self.removed_count > 0).then_some(&self.removed)
    }

    /// The ids of the numbers of now.
    pub fn ids(&self) -> IdTable {
        IdTable { base: self.base.clone(), delta: Arc::clone(&self.delta_ids) }
    }

    /// Bytes held by the delta.
    pub fn memory(&self) -> usize {
        self.delta.memory()
            + read(&self.delta_ids).memory()
            + self.delta_texts.memory()
            + self.delta_namespaces.capacity() * 4
            + self.by_id.capacity() * 5
            + self.by_namespaces.capacity() * 5
            + self.removed.capacity() * 8
    }

    /// The number of a namespace map, for [`IndexState::register`]. Cost: a hash of it.
    pub fn namespace_number(&mut self, namespaces: &NamespaceMap) -> u32 {
        let maps = &mut self.namespaces;
        let is_known = |&number: &u32| maps[number as usize] == *namespaces;
        let hash = hash_of(namespaces);
        if let Some(&number) = self.by_namespaces.find(hash, is_known) {
            return number;
        }
        let number = maps.len() as u32;
        maps.push(namespaces.clone());
        self.by_namespaces.insert_unique(hash, number, |&n| hash_of(&maps[n as usize]));
        number
    }

    /// The namespace map of a number.
    pub fn namespaces(&self, number: u32) -> &NamespaceMap {
        &self.namespaces[number as usize]
    }

    /// Inserts a query: it holds where one of its alternatives (normal form, one at least) holds
    /// and the expression, if there is one, is true. See [`GrowingNfa::insert`].
    ///
    /// # Errors
    /// The id is taken, or the expression is not one; nothing has changed then.
    pub fn register(
        &mut self,
        record: QueryRecord<'_>,
        alternatives: &[&[Step<'_>]],
        expression: Option<&str>,
    ) -> Result<(), NotRegistered> {
        if self.number_of(record.id).is_some() {
            return Err(NotRegistered::Duplicate);
        }
        let expression = expression.map(|text| self.delta.expressions_mut().intern(text));
        let expression = expression.transpose().map_err(|_| NotRegistered::Expression)?;
        let number = self.delta.insert(alternatives, expression);
        let mut ids = self.delta_ids.write().unwrap_or_else(PoisonError::into_inner);
        ids.push(record.id);
        let hash = hash(record.id);
        self.by_id.insert_unique(hash, number, |&n| self::hash(ids.get(n as usize)));
        drop(ids);
        self.delta_texts.push(record.text);
        self.delta_namespaces.push(record.namespaces);
        Ok(())
    }

    /// Compiles a query and inserts it; whether the usual notation was enough for that.
    ///
    /// # Errors
    /// The text is no query, or it is not registered; nothing has changed then.
    pub fn add<'q>(
        &mut self,
        record: QueryRecord<'q>,
        namespaces: &'q Namespaces,
        compiler: &mut Compiler<'q>,
    ) -> Result<bool, NotAdded> {
        if let Ok(steps) = compiler.compile(record.text, namespaces) {
            self.register(record, &[steps], None).map_err(NotAdded::NotRegistered)?;
            return Ok(true);
        }
        let tree = read_query(record.text, namespaces).map_err(NotAdded::Refused)?;
        let query = compile_query(&tree).map_err(NotAdded::Refused)?;
        let paths: Vec<&[Step<'_>]> =
            query.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.register(record, &paths, query.expression.as_deref())
            .map_err(NotAdded::NotRegistered)?;
        Ok(false)
    }

    /// Inserts a gate ([`read_gate`]): where its paths cannot be told together, it holds of messages that have not all.
    ///
    /// # Errors
    /// As [`IndexState::add`].
    pub fn add_gate(&mut self, record: QueryRecord<'_>) -> Result<(), NotAdded> {
        let tree = read_gate(record.text).map_err(NotAdded::Refused)?;
        let gate = compile_gate(&tree, true);
        let paths: Vec<&[Step<'_>]> =
            gate.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.register(record, &paths, None).map_err(NotAdded::NotRegistered)
    }

    /// Removes queries, all or none. Cost: a bit each; what they used goes with the next merge.
    pub fn remove<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Result<(), Unknown> {
        let mut numbers = Vec::new();
        for (at, id) in ids.enumerate() {
            numbers.push(self.number_of(id).ok_or(Unknown(at))?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        self.removed.resize(self.number_count().div_ceil(64), 0);
        for number in numbers {
            self.removed[number as usize / 64] |= 1 << (number % 64);
            self.removed_count += 1;
        }
        Ok(())
    }

    /// The query of an id.
    pub fn find<T>(
        &self,
        id: &str,
        f: impl FnOnce(QueryRecord<'_>, &NamespaceMap) -> T,
    ) -> Option<T> {
        let number = self.number_of(id)?;
        let ids = read(&self.delta_ids);
        let record = self.record(number, &ids);
        Some(f(record, &self.namespaces[record.namespaces as usize]))
    }

    fn base_len(&self) -> usize {
        self.base.as_ref().map_or(0, |b| b.len())
    }

    fn is_removed(&self, number: QueryNumber) -> bool {
        let word = self.removed.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    /// The number of a query that is not removed.
    fn number_of(&self, id: &str) -> Option<QueryNumber> {
        let base_len = self.base_len() as u32;
        let is_live = |number: &QueryNumber| !self.is_removed(*number);
        let ids = read(&self.delta_ids);
        let in_delta = self
            .by_id
            .find(hash(id), |&n| ids.get(n as usize) == id && !self.is_removed(base_len + n));
        in_delta
            .map(|&n| base_len + n)
            .or_else(|| self.base.as_ref()?.number_of(id).filter(is_live))
    }

    fn record<'s>(&'s self, number: QueryNumber, ids: &'s Texts) -> QueryRecord<'s> {
        let base_len = self.base_len();
        match &self.base {
            Some(base) if (number as usize) < base_len => base.query(number),
            _ => {
                let at = number as usize - base_len;
                QueryRecord {
                    id: ids.get(at),
                    text: self.delta_texts.get(at),
                    namespaces: self.delta_namespaces[at],
                }
            }
        }
    }

    fn merge(&mut self, limits: &str) -> Result<Arc<Snapshot>, Interrupted> {
        if let Some(base) = &self.base
            && self.delta.is_empty()
            && self.removed_count == 0
        {
            return Ok(Arc::clone(base));
        }
        // If it is interrupted, the states that were imported stay and lead to no query.
        let base_endings = match self.base.clone() {
            Some(base) => import(&base, &mut self.delta)?,
            None => vec![],
        };
        let (namespaces, namespace_of) = self.used_namespaces();
        let ids = read(&self.delta_ids);
        let base_len = self.base_len();
        let mut queries: Vec<LiveQuery<'_>> = (0..self.number_count() as u32)
            .filter(|&number| !self.is_removed(number))
            .map(|number| {
                let mut record = self.record(number, &ids);
                record.namespaces = namespace_of[record.namespaces as usize];
                let ending = match (number as usize).checked_sub(base_len) {
                    Some(at) => self.delta.ending(at as u32),
                    None => base_endings[number as usize],
                };
                LiveQuery { ending, record }
            })
            .collect();
        let file: SnapshotFile = freeze(&self.delta, &mut queries, &namespaces, limits)?;
        drop(ids);
        let snapshot = Snapshot::from_file(file).expect("what freeze has built is sound");
        let snapshot = Arc::new(snapshot);
        self.rebase(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// The namespace maps that live queries use, sorted, and old number -> new number.
    fn used_namespaces(&self) -> (Vec<NamespaceMap>, Vec<u32>) {
        let base_of = self.base.as_ref().map_or(&[][..], |base| base.namespace_numbers());
        let of = base_of.iter().chain(&self.delta_namespaces);
        let mut used = vec![false; self.namespaces.len()];
        for (number, &namespaces) in of.enumerate() {
            used[namespaces as usize] |= !self.is_removed(number as u32);
        }
        let maps = self.namespaces.iter().zip(&used).filter(|(_, used)| **used);
        let mut sorted: Vec<NamespaceMap> = maps.map(|(map, _)| map.clone()).collect();
        sorted.sort();
        // An unused map has no number; none is asked for.
        let number = |map| sorted.binary_search(map).unwrap_or(0) as u32;
        let numbers = self.namespaces.iter().map(number).collect();
        (sorted, numbers)
    }

    fn rebase(&mut self, snapshot: Arc<Snapshot>) {
        let namespaces = snapshot.namespaces().to_vec();
        let hash = |&number: &u32| hash_of(&namespaces[number as usize]);
        let mut by_namespaces = HashTable::with_capacity(namespaces.len());
        for number in 0..namespaces.len() as u32 {
            by_namespaces.insert_unique(hash(&number), number, hash);
        }
        *self = IndexState {
            namespaces,
            by_namespaces,
            base: Some(snapshot),
            generation: self.generation + 1,
            ..IndexState::default()
        };
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(id.as_bytes());
    hasher.finish()
}

fn hash_of(namespaces: &NamespaceMap) -> u64 {
    let mut hasher = FxHasher::default();
    namespaces.hash(&mut hasher);
    hasher.finish()
}

/// A panic elsewhere leaves the data whole (every change is complete before the next can fail), so a
/// poisoned lock is taken as it is.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Plans and expressions are shared by threads.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Plan>();
    is_shared::<Expression>();
    is_shared::<Index>();
};
