//! Expanded names, interned once and numbered.
//!
//! A table belongs to one door and outlives a message, so that the engine can keep what it has
//! compiled per name in plain vectors indexed by [`NameId`]. The door empties the table between
//! messages when it has grown past its bound; [`NameTable::generation`] changes when that happens.

use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Drawn once, never changed.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Number of an expanded name in one [`NameTable`] (0-based).
pub type NameId = u32;

/// Number of a namespace URI in one [`NameTable`] (0-based).
pub(crate) type UriId = u32;

/// Expanded names (namespace URI, local name). No namespace is the empty URI.
///
/// A URI is kept, hashed and compared once: a few letters of a message can name a namespace of many
/// kilobytes, as often as they like.
#[derive(Debug, Default)]
pub struct NameTable {
    text: String,
    entries: Vec<Entry>,
    hashes: Vec<u64>,
    index: HashTable<NameId>,
    uris: Vec<Uri>,
    uri_index: HashTable<UriId>,
    generation: u64,
}

/// Start and end in the text of a table.
type Span = (u32, u32);

#[derive(Clone, Copy, Debug)]
struct Entry {
    uri: UriId,
    local: Span,
}

#[derive(Clone, Copy, Debug)]
struct Uri {
    text: Span,
    hash: u64,
}

impl NameTable {
    /// Number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of all names.
    #[inline]
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Changes whenever the ids given out before have become meaningless.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Namespace URI ("" for none).
    pub fn uri(&self, id: NameId) -> &str {
        self.at(self.uris[self.entries[id as usize].uri as usize].text)
    }

    /// Local name.
    pub fn local(&self, id: NameId) -> &str {
        self.at(self.entries[id as usize].local)
    }

    /// The [`hash_name`] of a name.
    pub(crate) fn hash(&self, id: NameId) -> u64 {
        self.hashes[id as usize]
    }

    /// The id of a known expanded name, given as UTF-8; `hash` is its [`hash_name`], which a caller
    /// who asks often computes once. Cost: one probe.
    pub(crate) fn find(&self, hash: u64, uri: &[u8], local: &[u8]) -> Option<NameId> {
        let is_same =
            |&id: &NameId| self.uri(id).as_bytes() == uri && self.local(id).as_bytes() == local;
        self.index.find(hash, is_same).copied()
    }

    /// The id of an expanded name, new or known. Cost: one hash of the text.
    pub fn intern(&mut self, uri: &str, local: &str) -> NameId {
        let uri = self.intern_uri(uri);
        self.intern_in(uri, local)
    }

    /// The id of a URI, new or known. Cost: one hash of it.
    pub(crate) fn intern_uri(&mut self, uri: &str) -> UriId {
        let hash = hash_uri(uri);
        let is_same = |&id: &UriId| self.at(self.uris[id as usize].text) == uri;
        if let Some(&id) = self.uri_index.find(hash, is_same) {
            return id;
        }
        let id = self.uris.len() as UriId;
        let text = self.append(uri);
        self.uris.push(Uri { text, hash });
        let uris = &self.uris;
        self.uri_index.insert_unique(hash, id, |&id| uris[id as usize].hash);
        id
    }

    /// The id of a name in a namespace, new or known. Cost: one hash of the local name.
    pub(crate) fn intern_in(&mut self, uri: UriId, local: &str) -> NameId {
        let hash = hash_in(self.uris[uri as usize].hash, local);
        let is_same = |&id: &NameId| {
            let entry = self.entries[id as usize];
            entry.uri == uri && self.at(entry.local) == local
        };
        if let Some(&id) = self.index.find(hash, is_same) {
            return id;
        }
        let id = self.entries.len() as NameId;
        let local = self.append(local);
        self.entries.push(Entry { uri, local });
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.index.insert_unique(hash, id, |&id| hashes[id as usize]);
        id
    }

    fn at(&self, (start, end): Span) -> &str {
        &self.text[start as usize..end as usize]
    }

    fn append(&mut self, part: &str) -> Span {
        let start = self.text.len() as u32;
        self.text.push_str(part);
        (start, self.text.len() as u32)
    }

    /// Forgets every name and begins a new generation.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.hashes.clear();
        self.index.clear();
        self.uris.clear();
        self.uri_index.clear();
        self.generation += 1;
    }
}

/// Hash of an expanded name, for [`NameTable::find`]; the same in every table of this process, and
/// of no other: it is seeded, so that nobody can send names made to collide.
pub(crate) fn hash_name(uri: &str, local: &str) -> u64 {
    hash_in(hash_uri(uri), local)
}

fn hash_uri(uri: &str) -> u64 {
    let mut hasher = SEED.build_hasher();
    hasher.write(uri.as_bytes());
    hasher.finish()
}

fn hash_in(uri: u64, local: &str) -> u64 {
    let mut hasher = SEED.build_hasher();
    hasher.write_u64(uri);
    hasher.write(local.as_bytes());
    hasher.finish()
}
