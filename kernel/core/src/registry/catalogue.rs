//! What was registered, by number: id, text, namespaces, and to whom it is delivered in which way.
//!
//! A filter query is a subscription of nobody that is delivered as an id. Numbers are given in order of arrival;
//! those of removed entries stay taken. It knows nothing about what a text means.

use crate::engine::ids::QueryNumber;
pub use crate::engine::plans::template::Deliver;
use crate::language::choice::Language;
use crate::registry::merging::{read, write};
pub use crate::registry::snapshot::Entry;
use crate::registry::snapshot::set_version::{Version, namespaces_text, version_of, write_content};
use crate::registry::snapshot::{NamespaceMap, Snapshot};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

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

/// Entries that came after a snapshot, in the order of arrival. Those that have left stay.
#[derive(Debug, Default, Clone)]
struct Later {
    ids: Texts,
    texts: Texts,
    namespace_of: Vec<u32>,
    subscriber_of: Vec<u32>,
    deliver: Vec<(Deliver, Option<Language>)>,
    subscribers: Numbered<Box<str>>,
    /// The namespace maps, those of the snapshot first, as versions have them.
    namespace_texts: Vec<Box<str>>,
    /// Texts of the steps of those that have some.
    steps: FxHashMap<u32, Box<[Box<str>]>>,
}

impl Later {
    fn entry(&self, at: usize) -> Entry<'_> {
        Entry {
            id: self.ids.get(at),
            text: self.texts.get(at),
            language: self.deliver[at].1,
            namespaces: self.namespace_of[at],
            subscriber: &self.subscribers.items[self.subscriber_of[at] as usize],
            deliver: self.deliver[at].0,
        }
    }
}

/// The entries behind numbers; valid for the numbers of the batch it was taken for, however the registry has changed
/// since.
#[derive(Debug, Clone, Default)]
pub struct EntryTable {
    base: Option<Arc<Snapshot>>,
    later: Arc<RwLock<Later>>,
    /// Versions that were asked for.
    versions: Arc<Mutex<FxHashMap<QueryNumber, Version>>>,
}

impl EntryTable {
    /// The entries of a snapshot.
    pub fn of_snapshot(snapshot: Arc<Snapshot>) -> EntryTable {
        EntryTable { base: Some(snapshot), ..EntryTable::default() }
    }

    /// Number of numbers, removed ones counted.
    pub fn len(&self) -> usize {
        self.base_len() + read(&self.later).ids.len()
    }

    /// Calls `f` with the id of each number.
    pub fn for_each(&self, numbers: impl Iterator<Item = QueryNumber>, mut f: impl FnMut(&str)) {
        let (base_len, later) = (self.base_len(), read(&self.later));
        for number in numbers {
            match &self.base {
                Some(base) if (number as usize) < base_len => f(base.id(number)),
                _ => f(later.ids.get(number as usize - base_len)),
            }
        }
    }

    /// Calls `f` with the entry of each number and its version.
    ///
    /// Cost: a digest of the texts of each whose version was not asked for before.
    pub fn for_each_version(
        &self,
        numbers: impl Iterator<Item = QueryNumber>,
        mut f: impl FnMut(&Entry<'_>, &Version),
    ) {
        let (base_len, later) = (self.base_len(), read(&self.later));
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut content = String::new();
        for number in numbers {
            let at = number as usize;
            let (entry, base) = match &self.base {
                Some(base) if at < base_len => (base.entry(number), Some(base)),
                _ => (later.entry(at - base_len), None),
            };
            let version = versions.entry(number).or_insert_with(|| {
                let namespaces = entry.namespaces as usize;
                match base {
                    Some(base) => {
                        let namespaces = namespaces_text(&base.namespaces()[namespaces]);
                        write_content(&mut content, &entry, &namespaces, base.step_texts(number));
                    }
                    None => {
                        let steps = later.steps.get(&((at - base_len) as u32));
                        let steps = steps.map_or(&[][..], |steps| steps);
                        let namespaces = &later.namespace_texts[namespaces];
                        write_content(&mut content, &entry, namespaces, steps);
                    }
                }
                version_of(&content)
            });
            f(&entry, version);
        }
    }

    /// Sorts what belongs to numbers by their ids, in the order of code points.
    pub(crate) fn sort<T>(&self, items: &mut [T], number: impl Fn(&T) -> QueryNumber) {
        let (base_len, later) = (self.base_len(), read(&self.later));
        let id = |item: &T| match &self.base {
            Some(base) if (number(item) as usize) < base_len => base.id(number(item)),
            _ => later.ids.get(number(item) as usize - base_len),
        };
        items.sort_unstable_by(|a, b| id(a).cmp(id(b)));
    }

    fn base_len(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len())
    }
}

/// Entries by number and by id: those of a snapshot, and what came since.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    entries: EntryTable,
    by_id: HashTable<u32>,
    namespaces: Numbered<NamespaceMap>,
}

impl Catalogue {
    /// The queries of a snapshot.
    pub(crate) fn on(base: Arc<Snapshot>) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for map in base.namespaces() {
            catalogue.namespace_number(map);
        }
        catalogue.entries.base = Some(base);
        catalogue
    }

    /// The snapshot that it goes on from.
    pub(crate) fn base(&self) -> Option<&Arc<Snapshot>> {
        self.entries.base.as_ref()
    }

    fn base_len(&self) -> usize {
        self.entries.base_len()
    }

    /// Number of those that are not removed.
    pub(crate) fn later_live(&self) -> usize {
        self.by_id.len()
    }

    /// Adds an entry, and returns its number.
    pub(crate) fn push(&mut self, entry: Entry<'_>) -> u32 {
        let mut later = write(&self.entries.later);
        let at = later.ids.len() as u32;
        later.ids.push(entry.id);
        let ids = &later.ids;
        self.by_id.insert_unique(hash(entry.id), at, |&n| hash(ids.get(n as usize)));
        later.texts.push(entry.text);
        later.namespace_of.push(entry.namespaces);
        let subscriber = later.subscribers.number::<str>(entry.subscriber);
        later.subscriber_of.push(subscriber);
        later.deliver.push((entry.deliver, entry.language));
        self.base_len() as u32 + at
    }

    /// Adds an entry that has steps, and returns its number.
    pub(crate) fn push_with_steps(&mut self, entry: Entry<'_>, steps: &[Box<str>]) -> u32 {
        let number = self.push(entry);
        write(&self.entries.later).steps.insert(number - self.base_len() as u32, steps.into());
        number
    }

    /// Frees the id of an entry, unless it is of the snapshot. Its number stays taken.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some(at) = number.checked_sub(self.base_len() as u32) else { return };
        let key = hash(read(&self.entries.later).ids.get(at as usize));
        if let Ok(entry) = self.by_id.find_entry(key, |&n| n == at) {
            entry.remove();
        }
    }

    /// The number of an id, which may be removed if it is of the snapshot.
    pub(crate) fn number_of(&self, id: &str) -> Option<u32> {
        let later = read(&self.entries.later);
        let found = self.by_id.find(hash(id), |&n| later.ids.get(n as usize) == id);
        match found {
            Some(&at) => Some(self.base_len() as u32 + at),
            None => self.base()?.number_of(id),
        }
    }

    /// Calls `f` with an entry.
    pub(crate) fn with<T>(&self, number: u32, f: impl FnOnce(Entry<'_>) -> T) -> T {
        match self.base() {
            Some(base) if (number as usize) < base.len() => f(base.entry(number)),
            _ => f(read(&self.entries.later).entry(number as usize - self.base_len())),
        }
    }

    /// The order of two entries by their ids.
    pub(crate) fn order(&self, one: u32, other: u32) -> Ordering {
        self.with(one, |one| self.with(other, |other| one.id.cmp(other.id)))
    }

    /// The namespace maps that entries use, sorted, and old number -> new number.
    pub(crate) fn used_namespaces(&self, entries: &[u32]) -> (Vec<NamespaceMap>, Vec<u32>) {
        let all = self.namespaces();
        let mut used = vec![false; all.len()];
        for &number in entries {
            used[self.with(number, |entry| entry.namespaces) as usize] = true;
        }
        let maps = all.iter().zip(&used).filter(|(_, used)| **used);
        let mut sorted: Vec<NamespaceMap> = maps.map(|(map, _)| map.clone()).collect();
        sorted.sort();
        // An unused map has no number; none is asked for.
        let number = |map| sorted.binary_search(map).unwrap_or(0) as u32;
        let numbers = all.iter().map(number).collect();
        (sorted, numbers)
    }

    /// The entries of the numbers of now and of those to come.
    pub(crate) fn entries(&self) -> &EntryTable {
        &self.entries
    }

    /// The number of a namespace map, for [`Entry::namespaces`]. Cost: a hash of it.
    pub(crate) fn namespace_number(&mut self, namespaces: &NamespaceMap) -> u32 {
        let number = self.namespaces.number(namespaces);
        let mut later = write(&self.entries.later);
        if later.namespace_texts.len() < self.namespaces.items.len() {
            later.namespace_texts.push(namespaces_text(namespaces).into());
        }
        number
    }

    /// The namespace maps by number.
    pub(crate) fn namespaces(&self) -> &[NamespaceMap] {
        &self.namespaces.items
    }

    /// The same entries, which others do not see change.
    pub(crate) fn copy(&self) -> Catalogue {
        let later = read(&self.entries.later).clone();
        Catalogue {
            entries: EntryTable {
                base: self.entries.base.clone(),
                later: Arc::new(RwLock::new(later)),
                versions: Arc::default(),
            },
            by_id: self.by_id.clone(),
            namespaces: self.namespaces.clone(),
        }
    }

    /// Bytes held, but for the namespace maps. Cost: a look at each subscriber.
    pub(crate) fn memory(&self) -> usize {
        let later = read(&self.entries.later);
        let versions = self.entries.versions.lock().unwrap_or_else(PoisonError::into_inner);
        later.ids.memory()
            + later.texts.memory()
            + (later.namespace_of.capacity() + later.subscriber_of.capacity()) * 4
            + later.deliver.capacity() * 2
            + (self.by_id.capacity() + self.namespaces.index.capacity()) * 5
            + later.subscribers.index.capacity() * 5
            + later.subscribers.items.capacity() * size_of::<Box<str>>()
            + later.subscribers.items.iter().map(|subscriber| subscriber.len()).sum::<usize>()
            + versions.capacity() * size_of::<(QueryNumber, Version)>()
    }
}

/// Distinct items, numbered as they come.
#[derive(Debug, Clone)]
struct Numbered<T> {
    items: Vec<T>,
    index: HashTable<u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { items: Vec::new(), index: HashTable::new() }
    }
}

impl<T: Hash> Numbered<T> {
    fn number<Q>(&mut self, item: &Q) -> u32
    where
        Q: Hash + Eq + ToOwned + ?Sized,
        T: std::borrow::Borrow<Q> + From<Q::Owned>,
    {
        let items = &mut self.items;
        let known = self.index.find(hash_of(item), |&n| items[n as usize].borrow() == item);
        if let Some(&number) = known {
            return number;
        }
        let number = items.len() as u32;
        items.push(item.to_owned().into());
        self.index.insert_unique(hash_of(item), number, |&n| hash_of(items[n as usize].borrow()));
        number
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(id.as_bytes());
    hasher.finish()
}

fn hash_of<Q: Hash + ?Sized>(item: &Q) -> u64 {
    let mut hasher = FxHasher::default();
    item.hash(&mut hasher);
    hasher.finish()
}
