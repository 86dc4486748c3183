//! The index that takes queries in and out while messages flow.
//!
//! It is an [`Automaton`], which goes by number, and what was registered: that of the base is in its snapshot, that
//! of the delta in a [`Catalogue`]. [`Index::freeze`] merges base and delta into a new base. Query numbers
//! count the base first, then the delta in order of arrival; they change when the base does.
//!
//! Locks: a batch holds `renumbering` shared for its whole length, so that all its numbers mean the same;
//! a message holds `state` shared, so that a query counts from the next message on. A merge holds `state`
//! shared while it copies, neither while it builds, and both for a moment when the new base takes its place.

use crate::engine::ids::QueryNumber;
use crate::engine::interrupt::Interrupted;
use crate::language::compile::{Evaluated, alternatives_of_conjunction, compile_query};
use crate::language::paths::{Conjunction, Path};
use crate::language::query::ast::Step;
use crate::language::query::{Compiler, Namespaces};
use crate::language::reader::{Refusal, read_query};
use crate::language::xpath::Expression;
use crate::registry::automaton::{Automaton, Merge, Merged};
use crate::registry::catalogue::{Catalogue, Deliver, Entry, IdTable};
use crate::registry::merging::{ENTRIES_A_LOCK, Merging, read, write};
use crate::registry::snapshot::records::RecordColumns;
use crate::registry::snapshot::{NamespaceMap, QueryRecord, Snapshot};
use std::sync::{Arc, RwLock, RwLockReadGuard};

/// What may change.
#[derive(Debug, Default)]
pub struct IndexState {
    records: Records,
    automaton: Automaton,
}

/// What was registered, by number.
#[derive(Debug, Default)]
struct Records {
    base: Option<Arc<Snapshot>>,
    /// That of the delta.
    catalogue: Catalogue,
}

/// An index shared by threads.
#[derive(Debug, Default)]
pub struct Index {
    /// What a message may cost, as its snapshots shall say.
    limits: Box<str>,
    renumbering: RwLock<()>,
    state: RwLock<IndexState>,
    merging: Merging,
}

/// The id of a query is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate;

/// Why the text of a query was not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdded {
    /// The text is no query.
    Refused(Refusal),
    /// The id is taken.
    Duplicate,
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
        let automaton = Automaton::on(Arc::clone(snapshot.automaton()), 1);
        let catalogue = Catalogue::knowing(snapshot.namespaces());
        let records = Records { base: Some(snapshot), catalogue };
        *write(&index.state) = IndexState { records, automaton };
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

    /// Merges base and delta into a new base without the removed queries, and returns it: the queries of one
    /// moment of the call. Messages and changes go on meanwhile; the new base takes its place between batches.
    ///
    /// Cost: about 1.5 µs a query. Memory: beside the old base, until it is done, the new one and the queries as an
    /// automaton that grows.
    ///
    /// # Errors
    /// It was interrupted; the queries are the same, and so are their numbers.
    pub fn freeze(&self) -> Result<Arc<Snapshot>, Interrupted> {
        let _alone = self.merging.alone();
        self.merge()
    }

    /// [`Index::freeze`], of who is alone in it.
    fn merge(&self) -> Result<Arc<Snapshot>, Interrupted> {
        let state = self.state();
        if let Some(base) = &state.records.base
            && state.automaton.is_merged()
        {
            return Ok(Arc::clone(base));
        }
        let (merge, records) = (Merge::of(&state.automaton), state.records.copy());
        drop(state);
        let order = |a, b| records.with(a, |a| records.with(b, |b| a.id.cmp(b.id)));
        let (merged, snapshot) = merge.run(order, |arrays, old| {
            let (maps, number_of) = records.used_namespaces(old);
            let columns = RecordColumns::of(&maps, |push| {
                for &number in old {
                    records.with(number, |record| {
                        let namespaces = number_of[record.namespaces as usize];
                        push(QueryRecord { namespaces, ..record });
                    });
                }
            });
            let snapshot = Arc::new(Snapshot::of(arrays, &columns, &self.limits));
            (Arc::clone(snapshot.automaton()), snapshot)
        })?;
        self.replace(merged, &snapshot);
        Ok(snapshot)
    }

    /// Puts a new base in its place.
    fn replace(&self, mut merged: Merged, snapshot: &Arc<Snapshot>) {
        let mut catalogue = Catalogue::knowing(snapshot.namespaces());
        let mut take_over = |state: &IndexState, most| {
            let first = merged.next();
            let is_all = merged.catch_up(&state.automaton, most);
            for number in first..merged.next() {
                state.records.with(number as QueryNumber, |record| {
                    let namespaces =
                        catalogue.namespace_number(state.namespaces(record.namespaces));
                    catalogue.push(entry_of(QueryRecord { namespaces, ..record }));
                });
            }
            is_all
        };
        while !take_over(&self.state(), ENTRIES_A_LOCK) {}
        let renumbering = write(&self.renumbering);
        let mut state = write(&self.state);
        take_over(&state, usize::MAX);
        let automaton = merged.finish(&state.automaton);
        for number in (automaton.base_len() as QueryNumber..).take(catalogue.len()) {
            if automaton.is_removed(number) {
                catalogue.remove(number - automaton.base_len() as QueryNumber);
            }
        }
        let records = Records { base: Some(Arc::clone(snapshot)), catalogue };
        let old = std::mem::replace(&mut *state, IndexState { records, automaton });
        drop((state, renumbering));
        // Messages and changes do not wait for it.
        drop(old);
    }

    /// Begins a merge in the background if there is much to merge; called before a batch.
    pub fn settle(self: &Arc<Self>) {
        if self.state().automaton.is_worn() {
            let index = Arc::clone(self);
            self.merging.begin(move || {
                let _alone = index.merging.alone();
                // Somebody may have merged since.
                let is_worn = index.state().automaton.is_worn();
                if is_worn { index.merge().map(drop) } else { Ok(()) }
            });
        }
    }
}

/// A query of the catalogue: delivered to nobody, as an id.
fn entry_of(record: QueryRecord<'_>) -> Entry<'_> {
    let QueryRecord { id, text, namespaces } = record;
    Entry { id, text, language: None, namespaces, subscriber: "", deliver: Deliver::Ids }
}

impl IndexState {
    /// Number of queries.
    pub fn len(&self) -> usize {
        self.automaton.len()
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The queries by number.
    pub(crate) fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// The ids of the numbers of now.
    pub fn ids(&self) -> IdTable {
        self.records.catalogue.ids(self.records.base.clone())
    }

    /// Bytes held by the delta.
    pub fn memory(&self) -> usize {
        self.automaton.memory() + self.records.catalogue.memory()
    }

    /// The number of a namespace map, for [`IndexState::register`]; valid until the next merge. Cost: a hash of it.
    pub fn namespace_number(&mut self, namespaces: &NamespaceMap) -> u32 {
        self.records.catalogue.namespace_number(namespaces)
    }

    /// The namespace map of a number.
    pub fn namespaces(&self, number: u32) -> &NamespaceMap {
        &self.records.catalogue.namespaces()[number as usize]
    }

    /// Inserts a query: it holds where one of its alternatives (normal form, one at least) holds
    /// and the expression, if there is one, is true.
    ///
    /// # Errors
    /// The id is taken; nothing has changed then.
    pub fn register(
        &mut self,
        record: QueryRecord<'_>,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
    ) -> Result<(), Duplicate> {
        if self.number_of(record.id).is_some() {
            return Err(Duplicate);
        }
        self.automaton.insert(alternatives, expression);
        self.records.catalogue.push(entry_of(record));
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
            self.register(record, &[steps], None).map_err(|Duplicate| NotAdded::Duplicate)?;
            return Ok(true);
        }
        let tree = read_query(record.text, namespaces).map_err(NotAdded::Refused)?;
        let query = compile_query(&tree).map_err(NotAdded::Refused)?;
        let paths: Vec<&[Step<'_>]> =
            query.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.register(record, &paths, query.expression.as_ref())
            .map_err(|Duplicate| NotAdded::Duplicate)?;
        Ok(false)
    }

    /// Inserts a gate, which is a [`Conjunction`]; one of any message if the text asks for more than paths.
    ///
    /// Where its paths have too many combinations at the root element, the gate keeps only the longest path and also
    /// holds for messages without the others.
    ///
    /// # Errors
    /// As [`IndexState::add`].
    pub fn add_gate(&mut self, record: QueryRecord<'_>) -> Result<(), NotAdded> {
        let read = Conjunction::read(record.text).map_err(NotAdded::Refused)?;
        let gate = read.unwrap_or_else(|| Conjunction::of([]));
        let paths: Vec<&[Step<'_>]> = gate.paths().iter().map(Path::steps).collect();
        let alternatives = alternatives_of_conjunction(&paths);
        let paths: Vec<&[Step<'_>]> = alternatives.iter().map(|path| &path.steps[..]).collect();
        self.register(record, &paths, None).map_err(|Duplicate| NotAdded::Duplicate)
    }

    /// Removes queries, all or none. Cost: a bit each; what they used goes with the next merge.
    pub fn remove<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Result<(), Unknown> {
        let mut numbers = Vec::new();
        for (at, id) in ids.enumerate() {
            numbers.push(self.number_of(id).ok_or(Unknown(at))?);
        }
        let base_len = self.automaton.base_len() as QueryNumber;
        for number in numbers {
            self.automaton.remove(number);
            if number >= base_len {
                self.records.catalogue.remove(number - base_len);
            }
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
        Some(self.records.with(number, |record| f(record, self.namespaces(record.namespaces))))
    }

    /// The number of a query that is not removed.
    fn number_of(&self, id: &str) -> Option<QueryNumber> {
        if let Some(number) = self.records.catalogue.number_of(id) {
            return Some(self.automaton.base_len() as QueryNumber + number);
        }
        let number = self.records.base.as_ref()?.number_of(id)?;
        (!self.automaton.is_removed(number)).then_some(number)
    }
}

impl Records {
    /// The same, which do not change.
    fn copy(&self) -> Records {
        Records { base: self.base.clone(), catalogue: self.catalogue.copy() }
    }

    fn with<T>(&self, number: QueryNumber, f: impl FnOnce(QueryRecord<'_>) -> T) -> T {
        let base_len = self.base.as_ref().map_or(0, |base| base.len());
        match &self.base {
            Some(base) if (number as usize) < base_len => f(base.query(number)),
            _ => self.catalogue.with(number - base_len as QueryNumber, |entry| {
                let Entry { id, text, namespaces, .. } = entry;
                f(QueryRecord { id, text, namespaces })
            }),
        }
    }

    /// The namespace maps that queries use, sorted, and old number -> new number.
    fn used_namespaces(&self, queries: &[QueryNumber]) -> (Vec<NamespaceMap>, Vec<u32>) {
        let all = self.catalogue.namespaces();
        let mut used = vec![false; all.len()];
        for &number in queries {
            used[self.with(number, |record| record.namespaces) as usize] = true;
        }
        let maps = all.iter().zip(&used).filter(|(_, used)| **used);
        let mut sorted: Vec<NamespaceMap> = maps.map(|(map, _)| map.clone()).collect();
        sorted.sort();
        // An unused map has no number; none is asked for.
        let number = |map| sorted.binary_search(map).unwrap_or(0) as u32;
        let numbers = all.iter().map(number).collect();
        (sorted, numbers)
    }
}

/// Expressions are shared by threads.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Expression>();
    is_shared::<Index>();
};
