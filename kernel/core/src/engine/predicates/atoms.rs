//! Conditions on the values of one element, each distinct one once: *atoms*.
//!
//! An atom is a subject (an attribute, the text nodes, the string-value, a position) and a
//! comparison. Those that a value can look up (equality, `starts-with`, existence) are found from the
//! value: one hash look-up gives the atoms that it satisfies, whatever number there are. The others
//! are tried where a query needs them.
//!
//! Atoms are numbered as they come and never forgotten by a worker's cache before that is dropped.

use super::contained::Contained;
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::Notation;
use crate::xml::names::{NameTable, hash_name};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{BuildHasher, Hasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of an atom.
pub(crate) type AtomId = u32;
/// Number of a subject.
pub(crate) type SubjectId = u32;

/// The text nodes of an element.
pub(crate) const TEXT: SubjectId = 0;
/// The string-value of an element.
pub(crate) const VALUE: SubjectId = 1;
/// Its position among its siblings.
pub(crate) const ORDINAL_OF_ANY: SubjectId = 2;
/// Its position among its siblings of the same name.
pub(crate) const ORDINAL_OF_NAME: SubjectId = 3;
/// Its attributes, whatever their names.
pub(crate) const ANY_ATTRIBUTE: SubjectId = 4;
const FIRST_ATTRIBUTE: SubjectId = 5;
/// No query asks for an attribute of that name.
pub(crate) const NO_SUBJECT: SubjectId = u32::MAX;

/// What kinds of values a subject has; one bit each in a set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Attributes.
    Attribute = 0,
    /// Text nodes.
    Text = 1,
    /// String-values.
    Value = 2,
    /// Positions.
    Ordinal = 3,
}

/// All kinds, in the order of their bits.
pub(crate) const KINDS: [Kind; 4] = [Kind::Attribute, Kind::Text, Kind::Value, Kind::Ordinal];

/// The kind of a subject.
pub(crate) fn kind_of(subject: SubjectId) -> Kind {
    match subject {
        TEXT => Kind::Text,
        VALUE => Kind::Value,
        ORDINAL_OF_ANY | ORDINAL_OF_NAME => Kind::Ordinal,
        _ => Kind::Attribute,
    }
}

/// Whether [`Atoms::satisfied`] finds the atoms that ask this.
pub(crate) fn is_found(ask: &Ask) -> bool {
    match ask {
        Ask::Exists | Ask::StartsWith(_) | Ask::Contains(_) | Ask::OneOf(_) | Ask::NumberOf(..) => {
            true
        }
        Ask::Text(comparison, _)
        | Ask::Number(comparison, _)
        | Ask::Cast(comparison, _)
        | Ask::Moment(_, comparison, _) => *comparison == Comparison::Eq,
    }
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Atom {
    /// What is looked at.
    pub(crate) subject: SubjectId,
    /// What it is asked for.
    pub(crate) ask: Ask,
}

/// Number of a key.
type KeyId = u32;

/// No other key.
const NO_KEY: KeyId = u32::MAX;

/// A constant by which an atom is found: that of an equality, or one of a set.
#[derive(Clone, Copy, Debug)]
struct Key {
    atom: AtomId,
    /// Where the constant begins in the text of the atom.
    start: u32,
    /// The next key that is the same constant, of another atom.
    next: KeyId,
}

/// What the atoms of one subject are found by.
#[derive(Debug, Default)]
struct Found {
    is_asked: bool,
    exists: Option<AtomId>,
    strings: HashTable<KeyId>,
    string_len_max: usize,
    /// By how values are read as numbers.
    numbers: [FxHashMap<u64, KeyId>; Notation::ALL.len()],
    prefixes: HashTable<AtomId>,
    /// Lengths of the prefixes, ascending.
    prefix_lens: Vec<usize>,
    contained: Contained,
}

/// The atoms of one automaton.
#[derive(Debug)]
pub(crate) struct Atoms {
    atoms: Vec<Atom>,
    keys: Vec<Key>,
    /// Elements that satisfied each atom, since the worker began.
    hits: Vec<u32>,
    index: HashTable<AtomId>,
    /// Per subject.
    found: Vec<Found>,
    /// Attribute names of the subjects from [`FIRST_ATTRIBUTE`] on: (hash, URI, local name).
    attributes: Vec<(u64, Box<str>, Box<str>)>,
    attribute_index: HashTable<SubjectId>,
    /// Subject of each name of the messages.
    subject_of_name: Vec<SubjectId>,
    names_generation: u64,
    memory: usize,
    /// Steps that searching for contained strings has taken since somebody asked.
    searched: u64,
    /// Drawn once: nobody can register literals that are made to collide.
    seed: u64,
}

impl Default for Atoms {
    fn default() -> Self {
        Atoms {
            atoms: Vec::new(),
            keys: Vec::new(),
            hits: Vec::new(),
            index: HashTable::new(),
            found: (0..FIRST_ATTRIBUTE).map(|_| Found::default()).collect(),
            attributes: Vec::new(),
            attribute_index: HashTable::new(),
            subject_of_name: Vec::new(),
            names_generation: 0,
            memory: 0,
            searched: 0,
            seed: RandomState::new().hash_one(0),
        }
    }
}

impl Atoms {
    /// An atom.
    pub(crate) fn get(&self, atom: AtomId) -> &Atom {
        &self.atoms[atom as usize]
    }

    /// Number of atoms.
    pub(crate) fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Bytes held, roughly.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Whether some atom that is found by its value asks for a subject.
    pub(crate) fn is_asked(&self, subject: SubjectId) -> bool {
        self.found[subject as usize].is_asked
    }

    /// How many elements have satisfied an atom that is found by its value.
    pub(crate) fn hits(&self, atom: AtomId) -> u32 {
        self.hits[atom as usize]
    }

    /// The subject of an attribute name, new or known.
    pub(crate) fn attribute(&mut self, uri: &str, local: &str) -> SubjectId {
        let hash = hash_name(uri, local);
        let attributes = &self.attributes;
        let name_of = |subject: SubjectId| &attributes[(subject - FIRST_ATTRIBUTE) as usize];
        let known = self.attribute_index.find(hash, |&subject| {
            let (_, known_uri, known_local) = name_of(subject);
            **known_uri == *uri && **known_local == *local
        });
        if let Some(&known) = known {
            return known;
        }
        let subject = self.found.len() as SubjectId;
        self.found.push(Found::default());
        self.attributes.push((hash, uri.into(), local.into()));
        let attributes = &self.attributes;
        self.attribute_index.insert_unique(hash, subject, |&subject| {
            attributes[(subject - FIRST_ATTRIBUTE) as usize].0
        });
        self.subject_of_name.clear();
        subject
    }

    /// The number of an atom, new or known.
    pub(crate) fn intern(&mut self, subject: SubjectId, ask: Ask<&[u8]>) -> AtomId {
        let seed = self.seed;
        let hash = hash_atom(subject, &ask, seed);
        let atoms = &self.atoms;
        let is_same = |&known: &AtomId| {
            let known = &atoms[known as usize];
            known.subject == subject && known.ask.borrowed() == ask
        };
        if let Some(&known) = self.index.find(hash, is_same) {
            return known;
        }
        let id = self.atoms.len() as AtomId;
        self.memory += 120;
        self.atoms.push(Atom { subject, ask: ask.map(Box::from) });
        self.hits.push(0);
        let atoms = &self.atoms;
        self.index.insert_unique(hash, id, |&id| {
            let atom = &atoms[id as usize];
            hash_atom(atom.subject, &atom.ask.borrowed(), seed)
        });
        self.add_to_found(id);
        id
    }

    fn add_to_found(&mut self, id: AtomId) {
        let atoms = &self.atoms;
        let atom = &atoms[id as usize];
        let seed = self.seed;
        let literal_hash = |&id: &AtomId| match &atoms[id as usize].ask {
            Ask::StartsWith(literal) => xxh3_64_with_seed(literal, seed),
            _ => 0,
        };
        let found = &mut self.found[atom.subject as usize];
        found.is_asked = true;
        match &atom.ask {
            Ask::Exists => found.exists = Some(id),
            Ask::Text(Comparison::Eq, literal) => {
                let keys = &mut self.keys;
                add_string(
                    &mut found.strings,
                    keys,
                    atoms,
                    seed,
                    Key { atom: id, start: 0, next: NO_KEY },
                );
                found.string_len_max = found.string_len_max.max(literal.len());
                self.memory += literal.len() + 8;
            }
            Ask::OneOf(set) => {
                let mut start = 0;
                for end in memchr::memchr_iter(0, set) {
                    let key = Key { atom: id, start, next: NO_KEY };
                    add_string(&mut found.strings, &mut self.keys, atoms, seed, key);
                    found.string_len_max = found.string_len_max.max(end - start as usize);
                    start = end as u32 + 1;
                    self.memory += KEY_BYTES;
                }
                self.memory += set.len();
            }
            Ask::NumberOf(notation, set) => {
                let numbers = &mut found.numbers[*notation as usize];
                for value in set.split(|&byte| byte == 0).filter(|value| !value.is_empty()) {
                    add_number(numbers, &mut self.keys, Notation::Double.read(value), id);
                    self.memory += KEY_BYTES;
                }
                self.memory += set.len();
            }
            Ask::StartsWith(literal) => {
                if let Err(at) = found.prefix_lens.binary_search(&literal.len()) {
                    found.prefix_lens.insert(at, literal.len());
                }
                found.prefixes.insert_unique(xxh3_64_with_seed(literal, seed), id, literal_hash);
                self.memory += literal.len() + 8;
            }
            Ask::Contains(literal) => {
                found.contained.add(id);
                self.memory += literal.len() + 4;
            }
            ask => {
                if let Some((notation, Comparison::Eq, constant)) = ask.numeric() {
                    add_number(&mut found.numbers[notation as usize], &mut self.keys, constant, id);
                }
            }
        }
    }

    /// Learns the names that have come since the last time. Cost: the new names.
    pub(crate) fn learn_names(&mut self, names: &NameTable) {
        if self.names_generation != names.generation() {
            self.subject_of_name.clear();
            self.names_generation = names.generation();
        }
        for name in self.subject_of_name.len() as u32..names.len() as u32 {
            let (hash, uri, local) = (names.hash(name), names.uri(name), names.local(name));
            let subject = self.attribute_index.find(hash, |&subject| {
                let (_, known_uri, known_local) =
                    &self.attributes[(subject - FIRST_ATTRIBUTE) as usize];
                **known_uri == *uri && **known_local == *local
            });
            self.subject_of_name.push(subject.copied().unwrap_or(NO_SUBJECT));
        }
    }

    /// The subject of an attribute of a message, or [`NO_SUBJECT`]. Needs [`Atoms::learn_names`].
    #[inline]
    pub(crate) fn subject_of(&self, name: u32) -> SubjectId {
        self.subject_of_name[name as usize]
    }

    /// Adds the atoms that a value satisfies, of those that are found by their value. Cost: a
    /// look-up by string, one by number, one a length of prefix, a pass over the value for contained strings.
    pub(crate) fn satisfied(&mut self, subject: SubjectId, value: &[u8], out: &mut Vec<AtomId>) {
        self.satisfied_by_text(subject, value, out);
        self.satisfied_by_number(subject, |notation| notation.read(value), out);
        let found = &mut self.found[subject as usize];
        if !found.contained.is_empty() {
            self.searched += found.contained.find(value, &self.atoms, out);
        }
    }

    /// The same without numbers and contained strings. Cost: at most the length of the longest literal.
    pub(crate) fn satisfied_by_text(
        &self,
        subject: SubjectId,
        value: &[u8],
        out: &mut Vec<AtomId>,
    ) {
        let found = &self.found[subject as usize];
        out.extend(found.exists);
        if !found.strings.is_empty() && value.len() <= found.string_len_max {
            let known = found.strings.find(xxh3_64_with_seed(value, self.seed), |&key| {
                constant_of(self.keys[key as usize], &self.atoms) == value
            });
            known.into_iter().for_each(|&key| self.add_found(key, out));
        }
        for &length in found.prefix_lens.iter().take_while(|&&length| length <= value.len()) {
            let prefix = &value[..length];
            let known = found.prefixes.find(xxh3_64_with_seed(prefix, self.seed), |&id| {
                matches!(&self.atoms[id as usize].ask, Ask::StartsWith(literal) if **literal == *prefix)
            });
            out.extend(known);
        }
    }

    /// Adds the atoms whose strings a value contains.
    pub(crate) fn satisfied_by_containing(
        &mut self,
        subject: SubjectId,
        value: &[u8],
        out: &mut Vec<AtomId>,
    ) {
        let found = &mut self.found[subject as usize];
        if !found.contained.is_empty() {
            self.searched += found.contained.find(value, &self.atoms, out);
        }
    }

    /// The strings that values of a subject are asked to contain.
    pub(crate) fn contained(&self, subject: SubjectId) -> &[AtomId] {
        self.found[subject as usize].contained.atoms()
    }

    /// A string that values of a subject are asked to contain.
    pub(crate) fn string(&self, id: AtomId) -> &[u8] {
        match &self.atoms[id as usize].ask {
            Ask::Contains(literal) => literal,
            _ => unreachable!("only atoms that ask for a contained string are asked"),
        }
    }

    /// Adds the atoms that ask for exactly a number; `read` reads the value.
    pub(crate) fn satisfied_by_number(
        &self,
        subject: SubjectId,
        mut read: impl FnMut(Notation) -> f64,
        out: &mut Vec<AtomId>,
    ) {
        for notation in Notation::ALL {
            let numbers = &self.found[subject as usize].numbers[notation as usize];
            if !numbers.is_empty() {
                let value = read(notation);
                let known = if value.is_nan() { None } else { numbers.get(&number_key(value)) };
                known.into_iter().for_each(|&key| self.add_found(key, out));
            }
        }
    }

    /// Adds the atoms of a key and of all that are the same constant.
    #[inline]
    fn add_found(&self, mut key: KeyId, out: &mut Vec<AtomId>) {
        while key != NO_KEY {
            let Key { atom, next, .. } = self.keys[key as usize];
            out.push(atom);
            key = next;
        }
    }

    /// Bytes of a value that are compared with literals, at most.
    pub(crate) fn compared_bytes(&self, subject: SubjectId) -> usize {
        let found = &self.found[subject as usize];
        found.string_len_max.max(found.prefix_lens.last().copied().unwrap_or(0))
    }

    /// Steps that searching for contained strings has taken since the last time.
    pub(crate) fn take_searched(&mut self) -> u64 {
        std::mem::take(&mut self.searched)
    }

    /// Counts that elements have satisfied atoms.
    pub(crate) fn count(&mut self, satisfied: &[AtomId]) {
        for &atom in satisfied {
            let hits = &mut self.hits[atom as usize];
            *hits = hits.saturating_add(1);
        }
    }
}

/// Sorts the end of a list, from `start` on, and keeps each atom once.
pub(crate) fn keep_distinct(list: &mut Vec<AtomId>, start: usize) {
    list[start..].sort_unstable();
    let mut kept = start;
    for at in start..list.len() {
        if at == start || list[at] != list[kept - 1] {
            list[kept] = list[at];
            kept += 1;
        }
    }
    list.truncate(kept);
}

/// Bytes that a key of a set takes, its place in a table included.
const KEY_BYTES: usize = size_of::<Key>() + 8;

/// The constant of a key that is a string.
fn constant_of(key: Key, atoms: &[Atom]) -> &[u8] {
    match &atoms[key.atom as usize].ask {
        Ask::OneOf(set) => {
            let rest = &set[key.start as usize..];
            &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
        }
        Ask::Text(_, literal) => literal,
        _ => unreachable!("only these are found by a string"),
    }
}

/// Adds a key that is a string.
fn add_string(
    strings: &mut HashTable<KeyId>,
    keys: &mut Vec<Key>,
    atoms: &[Atom],
    seed: u64,
    mut key: Key,
) {
    let id = keys.len() as KeyId;
    let constant = constant_of(key, atoms);
    let hash = xxh3_64_with_seed(constant, seed);
    if let Some(known) =
        strings.find_mut(hash, |&known| constant_of(keys[known as usize], atoms) == constant)
    {
        key.next = std::mem::replace(known, id);
    } else {
        let hash_of =
            |&key: &KeyId| xxh3_64_with_seed(constant_of(keys[key as usize], atoms), seed);
        strings.insert_unique(hash, id, hash_of);
    }
    keys.push(key);
}

/// Adds a key that is a number.
fn add_number(numbers: &mut FxHashMap<u64, KeyId>, keys: &mut Vec<Key>, number: f64, atom: AtomId) {
    let id = keys.len() as KeyId;
    let next = numbers.insert(number_key(number), id).unwrap_or(NO_KEY);
    keys.push(Key { atom, start: 0, next });
}

/// The bits of a number; 0 and -0 are equal and have different ones.
fn number_key(value: f64) -> u64 {
    if value == 0.0 { 0.0f64.to_bits() } else { value.to_bits() }
}

fn hash_atom(subject: SubjectId, ask: &Ask<&[u8]>, seed: u64) -> u64 {
    let (tag, bytes, bits): (u64, &[u8], u64) = match ask {
        Ask::Exists => (0, &[], 0),
        Ask::StartsWith(literal) => (1, literal, 0),
        Ask::Contains(literal) => (2, literal, 0),
        Ask::OneOf(set) => (3, set, 0),
        Ask::NumberOf(notation, set) => (4, set, *notation as u64),
        Ask::Text(comparison, literal) => (8 + *comparison as u64, literal, 0),
        Ask::Number(comparison, constant) => (16 + *comparison as u64, &[], constant.to_bits()),
        Ask::Cast(comparison, constant) => (24 + *comparison as u64, &[], constant.to_bits()),
        Ask::Moment(notation, comparison, bound) => {
            (32 + 8 * *notation as u64 + *comparison as u64, &[], bound.to_bits())
        }
    };
    let mut hasher = FxHasher::default();
    hasher.write_u64(u64::from(subject) << 8 | tag);
    hasher.write_u64(bits);
    hasher.write_u64(xxh3_64_with_seed(bytes, seed));
    hasher.finish()
}
