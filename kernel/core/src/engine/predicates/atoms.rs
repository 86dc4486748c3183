//! Conditions on the values of one element, each distinct one once: *atoms*.
//!
//! An atom is a subject (an attribute, the text nodes, the string-value, a position) and a
//! comparison. Those that a value can look up (equality, `starts-with`, existence) are found from the
//! value: one hash look-up gives the atoms that it satisfies, whatever number there are. The others
//! are tried where a query needs them.
//!
//! Atoms are numbered as they come and never forgotten by a worker's cache before that is dropped.

use super::contained::Occurrences;
use super::keys::{KEY_BYTES, Key, KeyId, Keys, number_key};
use super::pattern_set::PatternSet;
use super::text_index::TextIndex;
use crate::engine::ask::Ask;
use crate::engine::conditions::PatternCache;
use crate::language::comparison::Comparison;
use crate::language::folding::Fold;
use crate::language::folding::TextTest;
use crate::language::numbers::Notation;
use crate::language::pattern_literals::Required;
use crate::language::patterns::Pattern;
use crate::language::values::{Values, each};
use crate::xml::names::{NameTable, hash_name};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
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
        Ask::Exists
        | Ask::StartsWith(_)
        | Ask::Contains(_)
        | Ask::OneOf(_)
        | Ask::NumberOf(..)
        | Ask::Texts(..) => true,
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
    /// What it is found by, if it is a pattern.
    pub(super) needed: Option<Box<Needed>>,
}

/// Texts of which a value that a pattern matches has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Needed {
    test: TextTest,
    fold: Fold,
    /// As a set.
    pub(super) texts: Box<[u8]>,
}

/// What the atoms of one subject are found by.
#[derive(Debug, Default)]
struct Found {
    is_asked: bool,
    exists: Option<AtomId>,
    /// By how values are folded.
    texts: [TextIndex; Fold::ALL.len()],
    /// By how values are read as numbers.
    numbers: [FxHashMap<u64, KeyId>; Notation::ALL.len()],
    /// Those that ask for patterns of which no text is known that every match has.
    patterns: PatternSet,
    /// What is found by texts may be a pattern that does not match.
    has_patterns: bool,
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
    /// Memory for a folded value.
    folded: Vec<u8>,
    /// Atoms of a list that were seen, a bit each, while it is made distinct.
    seen: Vec<u64>,
    /// Bytes that groups of patterns take.
    group_bytes: usize,
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
            folded: Vec::new(),
            seen: Vec::new(),
            group_bytes: 0,
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
        let needed = needed_by(&ask).map(Box::new);
        self.atoms.push(Atom { subject, ask: ask.map(Box::from), needed });
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
        let Atom { subject, ask, needed } = &self.atoms[id as usize];
        let found = &mut self.found[*subject as usize];
        let mut keys = Keys { keys: &mut self.keys, atoms: &self.atoms, seed: self.seed };
        found.is_asked = true;
        let [plain, ..] = &mut found.texts;
        let mut add_one = |test, text: &[u8]| {
            let key = keys.push(id, 0);
            text.len() + plain.add(test, key, &mut keys)
        };
        self.memory += match ask {
            Ask::Exists => {
                found.exists = Some(id);
                0
            }
            Ask::Text(Comparison::Eq, text) => add_one(TextTest::Is, text),
            Ask::StartsWith(text) => add_one(TextTest::Begins, text),
            Ask::Contains(text) => add_one(TextTest::Has, text),
            Ask::OneOf(set) => add_set(plain, TextTest::Is, set, id, &mut keys),
            Ask::Texts(TextTest::Matches, ..) => {
                found.has_patterns = true;
                match needed {
                    Some(needed) => {
                        let index = &mut found.texts[needed.fold as usize];
                        add_set(index, needed.test, &needed.texts, id, &mut keys)
                    }
                    None => {
                        found.patterns.add(id);
                        0
                    }
                }
            }
            Ask::Texts(test, fold, set) => {
                add_set(&mut found.texts[*fold as usize], *test, set, id, &mut keys)
            }
            Ask::NumberOf(notation, set) => {
                let numbers = &mut found.numbers[*notation as usize];
                let mut bytes = set.len();
                for value in each(set) {
                    keys.add_number(numbers, Notation::Double.read(value), id);
                    bytes += KEY_BYTES;
                }
                bytes
            }
            ask => {
                if let Some((notation, Comparison::Eq, constant)) = ask.numeric() {
                    keys.add_number(&mut found.numbers[notation as usize], constant, id);
                }
                0
            }
        };
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

    /// Adds the atoms that a value satisfies, of those that are found by their value. Cost: a look-up by string, one by
    /// number, one a length of prefix, and for each folding that is asked for a pass over the value.
    pub(crate) fn satisfied(
        &mut self,
        subject: SubjectId,
        value: &[u8],
        patterns: &mut PatternCache,
        out: &mut Vec<AtomId>,
    ) {
        let start = out.len();
        self.satisfied_by_number(subject, |notation| notation.read(value), out);
        self.satisfied_by_text(subject, value, true, out);
        self.keep_matching(subject, value, patterns, start, out);
    }

    /// Adds the atoms that a value satisfies as a text, of those that are found by their value; without those that ask for
    /// texts within it, if the caller finds them. Patterns are candidates alone. Cost: at most the length of the longest
    /// text, or that of the value for texts within it.
    pub(crate) fn satisfied_by_text(
        &mut self,
        subject: SubjectId,
        value: &[u8],
        with_contained: bool,
        out: &mut Vec<AtomId>,
    ) {
        let found = &mut self.found[subject as usize];
        out.extend(found.exists);
        let keys = Keys { keys: &mut self.keys, atoms: &self.atoms, seed: self.seed };
        for (fold, index) in Fold::ALL.into_iter().zip(&mut found.texts) {
            if index.is_empty() {
                continue;
            }
            let reads_all = with_contained && index.reads_all();
            let folded = if fold == Fold::None {
                value
            } else {
                let few = (SHRINKING_MAX * index.compared_bytes()).saturating_add(SHRINKING_MAX);
                let length = if reads_all { value.len() } else { value.len().min(few) };
                self.folded.clear();
                fold.push(&value[..length], &mut self.folded);
                &self.folded
            };
            index.find_equal(folded, &keys, out);
            if reads_all {
                self.searched += index.contained.find(folded, &keys, out);
            }
        }
    }

    /// Of the atoms from a place on, those of a subject that a value satisfies, each once: patterns are put to it.
    pub(crate) fn keep_matching(
        &mut self,
        subject: SubjectId,
        value: &[u8],
        patterns: &mut PatternCache,
        start: usize,
        out: &mut Vec<AtomId>,
    ) {
        self.keep_distinct(out, start);
        let found = &mut self.found[subject as usize];
        if !found.has_patterns {
            return;
        }
        let mut kept = start;
        for at in start..out.len() {
            let id = out[at];
            out[kept] = id;
            kept += usize::from(match &self.atoms[id as usize].ask {
                Ask::Texts(TextTest::Matches, _, set) => patterns.is_match(set, value),
                _ => true,
            });
        }
        out.truncate(kept);
        if !found.patterns.is_empty() {
            let is_match = |set: &[u8]| patterns.is_match(set, value);
            let group_bytes = &mut self.group_bytes;
            self.searched += found.patterns.find(value, &self.atoms, group_bytes, is_match, out);
        }
    }

    /// Whether values of a subject, folded, are searched for texts.
    pub(crate) fn searches(&self, subject: SubjectId, fold: Fold) -> bool {
        self.found[subject as usize].texts[fold as usize].reads_all()
    }

    /// Where the texts that folded values of a subject may have stand in a folded text; no places if there are too many.
    pub(crate) fn find_all(
        &mut self,
        subject: SubjectId,
        fold: Fold,
        text: &[u8],
    ) -> Option<Occurrences> {
        let contained = &mut self.found[subject as usize].texts[fold as usize].contained;
        let keys = Keys { keys: &mut self.keys, atoms: &self.atoms, seed: self.seed };
        let (found, steps) = contained.find_all(text, &keys);
        self.searched += steps;
        found
    }

    /// Adds the atoms whose texts stand in a part of a folded text, where that is known.
    pub(crate) fn satisfied_within(
        &mut self,
        subject: SubjectId,
        fold: Fold,
        (text, occurrences): (&[u8], &mut Option<Occurrences>),
        part: Range<usize>,
        out: &mut Vec<AtomId>,
    ) {
        let contained = &mut self.found[subject as usize].texts[fold as usize].contained;
        let keys = Keys { keys: &mut self.keys, atoms: &self.atoms, seed: self.seed };
        self.searched += match occurrences {
            Some(occurrences) => contained.find_within(occurrences, part, &keys, out),
            None => {
                let steps = (part.len() / 64) as u64;
                steps + contained.find(&text[part], &keys, out)
            }
        };
    }

    /// Adds the atoms that ask for exactly a number; `read` reads the value.
    pub(crate) fn satisfied_by_number(
        &mut self,
        subject: SubjectId,
        mut read: impl FnMut(Notation) -> f64,
        out: &mut Vec<AtomId>,
    ) {
        let keys = Keys { keys: &mut self.keys, atoms: &self.atoms, seed: self.seed };
        for notation in Notation::ALL {
            let numbers = &self.found[subject as usize].numbers[notation as usize];
            if !numbers.is_empty() {
                let value = read(notation);
                let known = if value.is_nan() { None } else { numbers.get(&number_key(value)) };
                known.into_iter().for_each(|&key| keys.push_atoms(key, out));
            }
        }
    }

    /// Bytes of a value that are compared with literals, at most.
    pub(crate) fn compared_bytes(&self, subject: SubjectId) -> usize {
        let found = &self.found[subject as usize];
        found.texts.iter().map(TextIndex::compared_bytes).max().unwrap_or(0)
    }

    /// Steps that searching for contained strings has taken since the last time.
    pub(crate) fn take_searched(&mut self) -> u64 {
        std::mem::take(&mut self.searched)
    }

    /// Keeps each atom of a list once, from `start` on.
    pub(crate) fn keep_distinct(&mut self, list: &mut Vec<AtomId>, start: usize) {
        if list.len() < start + 2 {
            return;
        }
        self.seen.resize(self.atoms.len().div_ceil(64), 0);
        let mut kept = start;
        for at in start..list.len() {
            let id = list[at];
            let (word, bit) = (&mut self.seen[id as usize / 64], 1 << (id % 64));
            list[kept] = id;
            kept += usize::from(*word & bit == 0);
            *word |= bit;
        }
        list.truncate(kept);
        list[start..].iter().for_each(|id| self.seen[*id as usize / 64] = 0);
    }

    /// Counts that elements have satisfied atoms.
    pub(crate) fn count(&mut self, satisfied: &[AtomId]) {
        for &atom in satisfied {
            let hits = &mut self.hits[atom as usize];
            *hits = hits.saturating_add(1);
        }
    }
}

/// A character in one case has at least one byte for so many in the other.
const SHRINKING_MAX: usize = 4;

/// Adds the texts of a set, by which an atom is found. Returns bytes that they take.
fn add_set(
    index: &mut TextIndex,
    test: TextTest,
    set: &[u8],
    atom: AtomId,
    keys: &mut Keys<'_>,
) -> usize {
    let mut start = 0;
    let mut bytes = set.len();
    for end in memchr::memchr_iter(0, set) {
        let key = keys.push(atom, start);
        bytes += index.add(test, key, keys);
        start = end + 1;
    }
    bytes
}

/// Bytes of a text from which on it tells patterns apart.
const NEEDED_BYTES_MIN: usize = 4;

/// What an atom that asks for patterns is found by.
fn needed_by(ask: &Ask<&[u8]>) -> Option<Needed> {
    let Ask::Texts(TextTest::Matches, _, set) = ask else { return None };
    let mut patterns = each(set);
    let (Some(only), None) = (patterns.next(), patterns.next()) else { return None };
    let pattern = Pattern::of_written(only)?;
    let Required { test, fold, texts, .. } = pattern.required()?;
    // Short texts are nearly everywhere.
    let is_short = |text: &String| *test == TextTest::Has && text.len() < NEEDED_BYTES_MIN;
    if texts.iter().any(is_short) {
        return None;
    }
    let texts = Values::of(texts.iter().map(String::as_str))?;
    Some(Needed { test: *test, fold: *fold, texts: texts.text().as_bytes().into() })
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
        Ask::Texts(test, fold, set) => (5, set, 8 * *test as u64 + *fold as u64),
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
