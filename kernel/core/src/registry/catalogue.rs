//! What was registered, by number: id, text, namespaces, and to whom it is delivered in which way.
//!
//! A filter query is a subscription of nobody that is delivered as an id. Numbers are given in order of arrival;
//! those of removed entries stay taken. It knows nothing about what a text means.

use crate::engine::ids::QueryNumber;
pub use crate::engine::plans::template::Deliver;
use crate::language::choice::Language;
use crate::registry::merging::{read, write};
use crate::registry::snapshot::{NamespaceMap, Snapshot};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
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

/// An entry.
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

/// Entries by number and by id.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
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
    /// An empty one that knows namespace maps.
    pub(crate) fn knowing(namespaces: &[NamespaceMap]) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for map in namespaces {
            catalogue.namespaces.number(map);
        }
        catalogue
    }

    /// Number of entries, removed ones counted.
    pub(crate) fn len(&self) -> usize {
        self.namespace_of.len()
    }

    /// Number of entries that are not removed.
    pub(crate) fn live_len(&self) -> usize {
        self.by_id.len()
    }

    /// Adds an entry whose id is not taken, and returns its number.
    pub(crate) fn push(&mut self, entry: Entry<'_>) -> u32 {
        let number = self.len() as u32;
        let mut ids = write(&self.ids);
        ids.push(entry.id);
        self.by_id.insert_unique(hash(entry.id), number, |&n| hash(ids.get(n as usize)));
        drop(ids);
        self.texts.push(entry.text);
        self.namespace_of.push(entry.namespaces);
        let subscriber = self.subscribers.number::<str>(entry.subscriber);
        self.subscriber_of.push(subscriber);
        self.deliver.push((entry.deliver, entry.language));
        number
    }

    /// Frees the id of an entry. Its number stays taken.
    pub(crate) fn remove(&mut self, number: u32) {
        let key = hash(read(&self.ids).get(number as usize));
        if let Ok(entry) = self.by_id.find_entry(key, |&n| n == number) {
            entry.remove();
        }
    }

    /// The number of an id.
    pub(crate) fn number_of(&self, id: &str) -> Option<u32> {
        let ids = read(&self.ids);
        self.by_id.find(hash(id), |&n| ids.get(n as usize) == id).copied()
    }

    /// Calls `f` with an entry.
    pub(crate) fn with<T>(&self, number: u32, f: impl FnOnce(Entry<'_>) -> T) -> T {
        let (at, ids) = (number as usize, read(&self.ids));
        f(Entry {
            id: ids.get(at),
            text: self.texts.get(at),
            language: self.deliver[at].1,
            namespaces: self.namespace_of[at],
            subscriber: &self.subscribers.items[self.subscriber_of[at] as usize],
            deliver: self.deliver[at].0,
        })
    }

    /// The ids of the numbers of now and of those to come, which follow those of a snapshot if there is one.
    pub(crate) fn ids(&self, base: Option<Arc<Snapshot>>) -> IdTable {
        IdTable { base, later: Arc::clone(&self.ids) }
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
