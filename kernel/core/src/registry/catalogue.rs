//! What was registered, by number: id, text, namespaces, and to whom it is delivered in which way.
//!
//! A filter query is a subscription of nobody that is delivered as an id. Numbers are given in order of arrival;
//! those of removed entries stay taken. It knows nothing about what a text means.

use crate::engine::ids::QueryNumber;
pub use crate::engine::plans::template::Deliver;
use crate::language::choice::Language;
use crate::registry::merging::{read, write};
pub use crate::registry::snapshot::Entry;
use crate::registry::snapshot::{NamespaceMap, Snapshot};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, RwLock};

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

/// The ids behind numbers; valid for the numbers of the batch it was taken for, however the registry has changed
/// since.
#[derive(Debug, Clone, Default)]
pub struct IdTable {
    base: Option<Arc<Snapshot>>,
    later: Arc<RwLock<Texts>>,
}

impl IdTable {
    /// The ids of a snapshot.
    pub fn of_snapshot(snapshot: Arc<Snapshot>) -> IdTable {
        IdTable { base: Some(snapshot), later: Arc::default() }
    }

    /// Number of numbers, removed ones counted.
    pub fn len(&self) -> usize {
        self.base_len() + read(&self.later).len()
    }

    /// Calls `f` with the id of each number.
    pub fn for_each(&self, numbers: impl Iterator<Item = QueryNumber>, mut f: impl FnMut(&str)) {
        let (base_len, later) = (self.base_len(), read(&self.later));
        for number in numbers {
            match &self.base {
                Some(base) if (number as usize) < base_len => f(base.id(number)),
                _ => f(later.get(number as usize - base_len)),
            }
        }
    }

    /// Sorts what belongs to numbers by their ids, in the order of code points.
    pub(crate) fn sort<T>(&self, items: &mut [T], number: impl Fn(&T) -> QueryNumber) {
        let (base_len, later) = (self.base_len(), read(&self.later));
        let id = |item: &T| match &self.base {
            Some(base) if (number(item) as usize) < base_len => base.id(number(item)),
            _ => later.get(number(item) as usize - base_len),
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
    base: Option<Arc<Snapshot>>,
    ids: Arc<RwLock<Texts>>,
    texts: Texts,
    namespace_of: Vec<u32>,
    subscriber_of: Vec<u32>,
    deliver: Vec<(Deliver, Option<Language>)>,
    by_id: HashTable<u32>,
    namespaces: Numbered<NamespaceMap>,
    subscribers: Numbered<Box<str>>,
}

impl Catalogue {
    /// The queries of a snapshot.
    pub(crate) fn on(base: Arc<Snapshot>) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for map in base.namespaces() {
            catalogue.namespaces.number(map);
        }
        Catalogue { base: Some(base), ..catalogue }
    }

    /// The snapshot that it goes on from.
    pub(crate) fn base(&self) -> Option<&Arc<Snapshot>> {
        self.base.as_ref()
    }

    fn base_len(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len())
    }

    /// Number of entries that came after the snapshot, removed ones counted.
    pub(crate) fn later_len(&self) -> usize {
        self.namespace_of.len()
    }

    /// Number of those that are not removed.
    pub(crate) fn later_live(&self) -> usize {
        self.by_id.len()
    }

    /// Adds an entry, and returns its number.
    pub(crate) fn push(&mut self, entry: Entry<'_>) -> u32 {
        let at = self.later_len() as u32;
        let mut ids = write(&self.ids);
        ids.push(entry.id);
        self.by_id.insert_unique(hash(entry.id), at, |&n| hash(ids.get(n as usize)));
        drop(ids);
        self.texts.push(entry.text);
        self.namespace_of.push(entry.namespaces);
        let subscriber = self.subscribers.number::<str>(entry.subscriber);
        self.subscriber_of.push(subscriber);
        self.deliver.push((entry.deliver, entry.language));
        self.base_len() as u32 + at
    }

    /// Frees the id of an entry, unless it is of the snapshot. Its number stays taken.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some(at) = number.checked_sub(self.base_len() as u32) else { return };
        let key = hash(read(&self.ids).get(at as usize));
        if let Ok(entry) = self.by_id.find_entry(key, |&n| n == at) {
            entry.remove();
        }
    }

    /// The number of an id, which may be removed if it is of the snapshot.
    pub(crate) fn number_of(&self, id: &str) -> Option<u32> {
        let ids = read(&self.ids);
        let later = self.by_id.find(hash(id), |&n| ids.get(n as usize) == id);
        match later {
            Some(&at) => Some(self.base_len() as u32 + at),
            None => self.base.as_ref()?.number_of(id),
        }
    }

    /// Calls `f` with an entry.
    pub(crate) fn with<T>(&self, number: u32, f: impl FnOnce(Entry<'_>) -> T) -> T {
        let at = match &self.base {
            Some(base) if (number as usize) < base.len() => {
                return f(base.entry(number));
            }
            _ => number as usize - self.base_len(),
        };
        let ids = read(&self.ids);
        f(Entry {
            id: ids.get(at),
            text: self.texts.get(at),
            language: self.deliver[at].1,
            namespaces: self.namespace_of[at],
            subscriber: &self.subscribers.items[self.subscriber_of[at] as usize],
            deliver: self.deliver[at].0,
        })
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

    /// The ids of the numbers of now and of those to come.
    pub(crate) fn ids(&self) -> IdTable {
        IdTable { base: self.base.clone(), later: Arc::clone(&self.ids) }
    }

    /// The number of a namespace map, for [`Entry::namespaces`]. Cost: a hash of it.
    pub(crate) fn namespace_number(&mut self, namespaces: &NamespaceMap) -> u32 {
        self.namespaces.number(namespaces)
    }

    /// The namespace maps by number.
    pub(crate) fn namespaces(&self) -> &[NamespaceMap] {
        &self.namespaces.items
    }

    /// The same entries, which others do not see change.
    pub(crate) fn copy(&self) -> Catalogue {
        Catalogue {
            base: self.base.clone(),
            ids: Arc::new(RwLock::new(read(&self.ids).clone())),
            texts: self.texts.clone(),
            namespace_of: self.namespace_of.clone(),
            subscriber_of: self.subscriber_of.clone(),
            deliver: self.deliver.clone(),
            by_id: self.by_id.clone(),
            namespaces: self.namespaces.clone(),
            subscribers: self.subscribers.clone(),
        }
    }

    /// Bytes held, but for the namespace maps. Cost: a look at each subscriber.
    pub(crate) fn memory(&self) -> usize {
        read(&self.ids).memory()
            + self.texts.memory()
            + (self.namespace_of.capacity() + self.subscriber_of.capacity()) * 4
            + self.deliver.capacity() * 2
            + (self.by_id.capacity() + self.namespaces.index.capacity()) * 5
            + self.subscribers.index.capacity() * 5
            + self.subscribers.items.capacity() * size_of::<Box<str>>()
            + self.subscribers.items.iter().map(|subscriber| subscriber.len()).sum::<usize>()
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
