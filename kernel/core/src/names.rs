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

/// Expanded names (namespace URI, local name). No namespace is the empty URI.
#[derive(Debug, Default)]
pub struct NameTable {
    text: String,
    /// (start of URI, start of local name, end) in `text`.
    entries: Vec<(u32, u32, u32)>,
    hashes: Vec<u64>,
    index: HashTable<NameId>,
    generation: u64,
}

impl NameTable {
    /// Number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no name has been interned since the table was made or emptied.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all names.
    #[inline]
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Changes whenever the ids given out before have become meaningless.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Namespace URI ("" for none).
    pub fn uri(&self, id: NameId) -> &str {
        let (uri, local, _) = self.entries[id as usize];
        &self.text[uri as usize..local as usize]
    }

    /// Local name.
    pub fn local(&self, id: NameId) -> &str {
        let (_, local, end) = self.entries[id as usize];
        &self.text[local as usize..end as usize]
    }

    /// The [`hash_name`] of a name.
    pub fn hash(&self, id: NameId) -> u64 {
        self.hashes[id as usize]
    }

    /// The id of a known expanded name, given as UTF-8; `hash` is its [`hash_name`], which a caller
    /// who asks often computes once. Cost: one probe.
    pub fn find(&self, hash: u64, uri: &[u8], local: &[u8]) -> Option<NameId> {
        let is_same =
            |&id: &NameId| self.uri(id).as_bytes() == uri && self.local(id).as_bytes() == local;
        self.index.find(hash, is_same).copied()
    }

    /// The id of an expanded name, new or known. Cost: one hash of the text.
    pub fn intern(&mut self, uri: &str, local: &str) -> NameId {
        let hash = hash_name(uri, local);
        if let Some(id) = self.find(hash, uri.as_bytes(), local.as_bytes()) {
            return id;
        }
        let id = self.entries.len() as NameId;
        let start = self.text.len() as u32;
        self.text.push_str(uri);
        let middle = self.text.len() as u32;
        self.text.push_str(local);
        self.entries.push((start, middle, self.text.len() as u32));
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.index.insert_unique(hash, id, |&id| hashes[id as usize]);
        id
    }

    /// Forgets every name and begins a new generation.
    pub fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.hashes.clear();
        self.index.clear();
        self.generation += 1;
    }
}

/// Hash of an expanded name, for [`NameTable::find`]; the same in every table of this process, and
/// of no other: it is seeded, so that nobody can send names made to collide.
pub fn hash_name(uri: &str, local: &str) -> u64 {
    let mut hasher = SEED.build_hasher();
    hasher.write(uri.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(local.as_bytes());
    hasher.finish()
}
