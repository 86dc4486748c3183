//! Schema dictionaries: names that both ends of a link know by number.

use super::VERSION_BYTES;
use hashbrown::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A list of names of elements and attributes, as written, and its version.
///
/// The version is a digest of the names, made by `pathcast.message.wire.Dictionary`. Whoever says a
/// version and means other names is not believed: the names are not looked at here, but each is checked,
/// as any name is, in the first message that uses it.
#[derive(Debug)]
pub struct Dictionary {
    version: [u8; VERSION_BYTES],
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Dictionary {
    /// A dictionary of distinct names; of a name given twice, the first number counts.
    pub fn new(version: [u8; VERSION_BYTES], names: Vec<String>) -> Self {
        let names: Vec<Box<str>> = names.into_iter().map(String::into_boxed_str).collect();
        let mut numbers = HashMap::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            numbers.entry(name.clone()).or_insert(number as u32);
        }
        Dictionary { version, names, numbers }
    }

    /// What streams name it by.
    pub(crate) fn version(&self) -> [u8; VERSION_BYTES] {
        self.version
    }

    /// Number of names.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name of a number.
    #[inline]
    pub(crate) fn name(&self, number: usize) -> Option<&str> {
        self.names.get(number).map(|name| &**name)
    }

    /// The number of a name, given as UTF-8.
    #[inline]
    pub(super) fn number(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(std::str::from_utf8(name).ok()?).copied()
    }
}

/// The dictionaries that a door knows, by version. They may change while messages are read.
#[derive(Debug, Default)]
pub struct Dictionaries {
    known: RwLock<HashMap<[u8; VERSION_BYTES], Arc<Dictionary>>>,
}

impl Dictionaries {
    /// Adds one, in the place of another of the same version.
    pub fn add(&self, dictionary: Dictionary) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(dictionary.version, Arc::new(dictionary));
    }

    /// Forgets one; streams that name it are refused from the next message on.
    pub fn remove(&self, version: [u8; VERSION_BYTES]) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(&version);
    }

    /// The dictionary of a version.
    pub fn get(&self, version: [u8; VERSION_BYTES]) -> Option<Arc<Dictionary>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&version).cloned()
    }
}
