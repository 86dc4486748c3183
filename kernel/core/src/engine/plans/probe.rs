//! Simple predicates of one operand, found from the value that the operand has.
//!
//! The paper groups selections by signature (path, level, attribute, operator) and merges their
//! constants into one index. An *operand* is such a signature without the operator: a predicate path
//! and what of its nodes is compared. One look-up gives the predicates that ask for equality, a walk
//! along an ordered map those that ask for less or more; what does not hold is not visited, except `!=`.
//!
//! Source: paper 002, section 5.2 (shared selection).

use super::frozen::{CAST_SET, CAST_WAYS, FrozenPlans, TEXT_SET, TEXT_WAYS, WAYS};
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::untyped_number;
use crate::language::values::each;
use hashbrown::{DefaultHashBuilder, HashMap};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::ops::Bound;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Number of a predicate (operand, operator, constant); equal predicates have equal numbers.
pub(crate) type PredicateId = u32;

/// A number that can be a key: never NaN; 0 and -0 are one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Finite(f64);

impl Finite {
    fn new(number: f64) -> Self {
        Finite(if number == 0.0 { 0.0 } else { number })
    }
}

impl Eq for Finite {}

impl PartialOrd for Finite {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Finite {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl std::hash::Hash for Finite {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Number of a string that some predicate asks for; equal strings have equal numbers.
pub(crate) type TextId = u32;

/// The strings that predicates of any operand ask to be equal to. A value of a message is looked up here
/// once; after that it is a number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Those of a base have the first numbers.
    base: Option<Arc<FrozenPlans>>,
    base_len: TextId,
    index: HashMap<Box<[u8]>, (TextId, u32), DefaultHashBuilder>,
    free: Vec<TextId>,
    /// Bytes of the longest string that was ever asked for; a longer value equals none.
    len_max: usize,
}

impl Texts {
    /// Those of a base.
    pub(super) fn on(base: Arc<FrozenPlans>) -> Texts {
        let (base_len, len_max) = (base.text_count() as TextId, base.text_len_max());
        Texts { base: Some(base), base_len, len_max, ..Texts::default() }
    }

    /// The number of a value, if some predicate asks for it. Cost: one look-up.
    #[inline]
    pub(crate) fn find(&self, value: &[u8]) -> Option<TextId> {
        if value.len() > self.len_max {
            return None;
        }
        let known = self.base.as_ref().and_then(|base| base.find_text(value));
        known.or_else(|| self.index.get(value).map(|&(id, _)| id))
    }

    /// The number of a string, which has one more user now.
    fn enter(&mut self, text: &[u8]) -> TextId {
        if let Some(id) = self.base.as_ref().and_then(|base| base.find_text(text)) {
            return id;
        }
        self.len_max = self.len_max.max(text.len());
        if let Some((id, uses)) = self.index.get_mut(text) {
            *uses += 1;
            return *id;
        }
        let id = self.free.pop().unwrap_or(self.base_len + self.index.len() as TextId);
        self.index.insert(text.into(), (id, 1));
        id
    }

    /// A string has one user less.
    fn leave(&mut self, text: &[u8]) {
        let Some((id, uses)) = self.index.get_mut(text) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.free.push(*id);
            self.index.remove(text);
        }
    }
}

/// Predicates by constant, for one kind of constant.
#[derive(Debug)]
struct Index<K> {
    equal: HashMap<K, PredicateId, DefaultHashBuilder>,
    unequal: BTreeMap<K, PredicateId>,
    below: BTreeMap<K, PredicateId>,
    at_most: BTreeMap<K, PredicateId>,
    above: BTreeMap<K, PredicateId>,
    at_least: BTreeMap<K, PredicateId>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Index {
            equal: HashMap::default(),
            unequal: BTreeMap::new(),
            below: BTreeMap::new(),
            at_most: BTreeMap::new(),
            above: BTreeMap::new(),
            at_least: BTreeMap::new(),
        }
    }
}

impl<K: Ord + std::hash::Hash + Clone> Index<K> {
    fn is_empty(&self) -> bool {
        self.equal.is_empty()
            && [&self.unequal, &self.below, &self.at_most, &self.above, &self.at_least]
                .iter()
                .all(|map| map.is_empty())
    }

    fn map(&mut self, operator: Comparison) -> &mut BTreeMap<K, PredicateId> {
        match operator {
            Comparison::Ne => &mut self.unequal,
            Comparison::Lt => &mut self.below,
            Comparison::Le => &mut self.at_most,
            Comparison::Gt => &mut self.above,
            Comparison::Ge => &mut self.at_least,
            Comparison::Eq => unreachable!("these are kept by hash"),
        }
    }

    fn find<Q>(&mut self, operator: Comparison, key: &Q) -> Option<PredicateId>
    where
        K: Borrow<Q>,
        Q: Ord + std::hash::Hash + ?Sized,
    {
        match operator {
            Comparison::Eq => self.equal.get(key).copied(),
            _ => self.map(operator).get(key).copied(),
        }
    }

    fn insert(&mut self, operator: Comparison, key: K, predicate: PredicateId) {
        match operator {
            Comparison::Eq => drop(self.equal.insert(key, predicate)),
            _ => drop(self.map(operator).insert(key, predicate)),
        }
    }

    fn remove<Q>(&mut self, operator: Comparison, key: &Q)
    where
        K: Borrow<Q>,
        Q: Ord + std::hash::Hash + ?Sized,
    {
        match operator {
            Comparison::Eq => drop(self.equal.remove(key)),
            _ => drop(self.map(operator).remove(key)),
        }
    }

    fn satisfied<Q>(&self, value: &Q, mut found: impl FnMut(PredicateId))
    where
        K: Borrow<Q>,
        Q: Ord + std::hash::Hash + ?Sized,
    {
        if let Some(&predicate) = self.equal.get(value) {
            found(predicate);
        }
        for (constant, predicate) in &self.unequal {
            if constant.borrow() != value {
                found(*predicate);
            }
        }
        let (less, more) = (Bound::Excluded(value), Bound::Included(value));
        // value < constant, value <= constant, value > constant, value >= constant
        self.below.range((less, Bound::Unbounded)).for_each(|(_, &p)| found(p));
        self.at_most.range((more, Bound::Unbounded)).for_each(|(_, &p)| found(p));
        self.above.range((Bound::Unbounded, less)).for_each(|(_, &p)| found(p));
        self.at_least.range((Bound::Unbounded, more)).for_each(|(_, &p)| found(p));
    }
}

/// The predicates that ask for one of several values.
#[derive(Debug, Default)]
struct Sets {
    /// By the set as a text; whether it is of numbers.
    known: HashMap<(bool, Box<[u8]>), PredicateId, DefaultHashBuilder>,
    /// By the number of a string.
    texts: FxHashMap<TextId, Vec<PredicateId>>,
    numbers: HashMap<Finite, Vec<PredicateId>, DefaultHashBuilder>,
}

impl Sets {
    fn insert_texts(&mut self, set: &[u8], predicate: PredicateId, texts: &mut Texts) {
        self.known.insert((false, set.into()), predicate);
        for value in each(set) {
            self.texts.entry(texts.enter(value)).or_default().push(predicate);
        }
    }

    fn insert_numbers(&mut self, set: &[u8], predicate: PredicateId) {
        self.known.insert((true, set.into()), predicate);
        for value in each(set) {
            self.numbers.entry(Finite::new(untyped_number(value))).or_default().push(predicate);
        }
    }

    fn remove_texts(&mut self, set: &[u8], texts: &mut Texts) {
        let Some(predicate) = self.known.remove(&(false, Box::from(set))) else { return };
        for value in each(set) {
            if let Some(id) = texts.find(value)
                && let Entry::Occupied(entry) = self.texts.entry(id)
            {
                let (id, left) = entry.remove_entry();
                self.texts.extend(without(left, predicate).map(|left| (id, left)));
            }
            texts.leave(value);
        }
    }

    fn remove_numbers(&mut self, set: &[u8]) {
        let Some(predicate) = self.known.remove(&(true, Box::from(set))) else { return };
        for value in each(set) {
            let number = Finite::new(untyped_number(value));
            let left = self.numbers.remove(&number).and_then(|left| without(left, predicate));
            self.numbers.extend(left.map(|left| (number, left)));
        }
    }
}

/// How an ask compares, as a number, and its constant: two that differ in neither are equal. A string is its number among
/// those that are asked for; none if it is not there.
pub(super) fn key_of(ask: &Ask, number: impl Fn(&[u8]) -> Option<TextId>) -> Option<(usize, u64)> {
    Some(match ask {
        Ask::Exists => (0, 0),
        Ask::Text(comparison, text) => (TEXT_WAYS + *comparison as usize, number(text)?.into()),
        Ask::Cast(comparison, number) => (CAST_WAYS + *comparison as usize, number_key(*number)),
        Ask::OneOf(set) => (TEXT_SET, xxh3_64(set)),
        Ask::NumberOf(_, set) => (CAST_SET, xxh3_64(set)),
        Ask::StartsWith(_)
        | Ask::Contains(_)
        | Ask::Number(..)
        | Ask::Moment(..)
        | Ask::Texts(..) => is_not_shared(),
    })
}

/// A number in the order of numbers; not NaN.
pub(super) fn number_key(number: f64) -> u64 {
    let bits = Finite::new(number).0.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The predicates but for one, if any are left.
fn without(mut predicates: Vec<PredicateId>, one: PredicateId) -> Option<Vec<PredicateId>> {
    predicates.retain(|&predicate| predicate != one);
    (!predicates.is_empty()).then_some(predicates)
}

/// The predicates of one operand.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Those of a base, and which operand it is there.
    base: Option<(Arc<FrozenPlans>, u32)>,
    exists: Option<PredicateId>,
    /// `= "string"`, by the number of the string.
    equal_texts: FxHashMap<TextId, PredicateId>,
    /// The other comparisons with strings.
    texts: Index<Box<[u8]>>,
    /// The comparisons with numbers, as XQuery casts values.
    numbers: Index<Finite>,
    sets: Sets,
}

/// What is asked only of other queries than those of the shared class.
fn is_not_shared() -> ! {
    unreachable!("a program of the shared class compares with strings and casts to numbers")
}

impl Probe {
    /// The predicates of an operand of a base.
    pub(super) fn on(base: Arc<FrozenPlans>, operand: u32) -> Probe {
        Probe { base: Some((base, operand)), ..Probe::default() }
    }

    /// The predicate that asks this, if there is one that is not of the base.
    pub(crate) fn find(&mut self, ask: &Ask, texts: &Texts) -> Option<PredicateId> {
        match ask {
            Ask::Exists => self.exists,
            Ask::Text(Comparison::Eq, text) => self.equal_texts.get(&texts.find(text)?).copied(),
            Ask::Text(operator, text) => self.texts.find(*operator, &**text),
            Ask::Cast(operator, number) => self.numbers.find(*operator, &Finite::new(*number)),
            Ask::OneOf(set) => self.sets.known.get(&(false, set.clone())).copied(),
            Ask::NumberOf(_, set) => self.sets.known.get(&(true, set.clone())).copied(),
            Ask::StartsWith(_)
            | Ask::Contains(_)
            | Ask::Number(..)
            | Ask::Moment(..)
            | Ask::Texts(..) => is_not_shared(),
        }
    }

    /// Adds a predicate that is not there yet.
    pub(crate) fn insert(&mut self, ask: &Ask, predicate: PredicateId, texts: &mut Texts) {
        match ask {
            Ask::Exists => self.exists = Some(predicate),
            Ask::Text(Comparison::Eq, text) => {
                self.equal_texts.insert(texts.enter(text), predicate);
            }
            Ask::Text(operator, text) => {
                self.texts.insert(*operator, text.clone(), predicate);
            }
            Ask::Cast(operator, number) => {
                self.numbers.insert(*operator, Finite::new(*number), predicate);
            }
            Ask::OneOf(set) => self.sets.insert_texts(set, predicate, texts),
            Ask::NumberOf(_, set) => self.sets.insert_numbers(set, predicate),
            Ask::StartsWith(_)
            | Ask::Contains(_)
            | Ask::Number(..)
            | Ask::Moment(..)
            | Ask::Texts(..) => is_not_shared(),
        }
    }

    /// Takes a predicate out.
    pub(crate) fn remove(&mut self, ask: &Ask, texts: &mut Texts) {
        match ask {
            Ask::Exists => self.exists = None,
            Ask::Text(Comparison::Eq, text) => {
                if let Some(id) = texts.find(text) {
                    self.equal_texts.remove(&id);
                }
                texts.leave(text);
            }
            Ask::Text(operator, text) => self.texts.remove(*operator, &**text),
            Ask::Cast(operator, number) => {
                self.numbers.remove(*operator, &Finite::new(*number));
            }
            Ask::OneOf(set) => self.sets.remove_texts(set, texts),
            Ask::NumberOf(_, set) => self.sets.remove_numbers(set),
            Ask::StartsWith(_)
            | Ask::Contains(_)
            | Ask::Number(..)
            | Ask::Moment(..)
            | Ask::Texts(..) => is_not_shared(),
        }
    }

    /// The predicates that ask for existence.
    #[inline]
    pub(crate) fn exists(&self) -> impl Iterator<Item = PredicateId> {
        let of_base = self.base.as_ref().and_then(|(base, operand)| base.exists(*operand));
        of_base.into_iter().chain(self.exists)
    }

    #[inline]
    fn base_has(&self, ways: std::ops::Range<usize>) -> bool {
        self.base.as_ref().is_some_and(|(base, operand)| base.has_ways(*operand, ways))
    }

    /// Whether values matter; otherwise existence is all that is asked for.
    #[inline]
    pub(crate) fn reads_values(&self) -> bool {
        !self.equal_texts.is_empty()
            || !self.sets.texts.is_empty()
            || self.base_has(TEXT_WAYS..WAYS)
            || self.reads_more_than_texts()
    }

    /// Whether more is asked of values than which string they are.
    #[inline]
    pub(crate) fn reads_more_than_texts(&self) -> bool {
        self.reads_numbers()
            || !self.texts.is_empty()
            || self.base_has(TEXT_WAYS + 1..TEXT_SET)
            || self.base_has(CAST_SET..WAYS)
    }

    fn reads_numbers(&self) -> bool {
        !self.numbers.is_empty() || !self.sets.numbers.is_empty()
    }

    /// Gives the predicates that ask for a value, by its number, alone or among others.
    #[inline]
    pub(crate) fn equal_to(&self, text: TextId, mut found: impl FnMut(PredicateId)) {
        if let Some((base, operand)) = &self.base
            && (text as usize) < base.text_count()
        {
            base.equal_to(*operand, text, &mut found);
        }
        self.equal_texts.get(&text).into_iter().for_each(|&predicate| found(predicate));
        if !self.sets.texts.is_empty() {
            self.sets
                .texts
                .get(&text)
                .into_iter()
                .flatten()
                .for_each(|&predicate| found(predicate));
        }
    }

    /// Gives the predicates that a value satisfies, but for existence and those of [`Probe::equal_to`].
    pub(crate) fn satisfied(&self, value: &[u8], mut found: impl FnMut(PredicateId)) {
        if !self.texts.is_empty() {
            self.texts.satisfied(value, &mut found);
        }
        if let Some((base, operand)) = &self.base
            && base.has_ways(*operand, TEXT_WAYS + 1..CAST_WAYS)
        {
            base.satisfied_by_text(*operand, value, &mut found);
        }
        let base_casts = self.base_has(CAST_WAYS..TEXT_SET) || self.base_has(CAST_SET..WAYS);
        if !self.reads_numbers() && !base_casts {
            return;
        }
        let number = untyped_number(value);
        if let Some((base, operand)) = &self.base {
            let key = (!number.is_nan()).then(|| number_key(number));
            base.satisfied_by_number(*operand, key, &mut found);
        }
        if number.is_nan() {
            // NaN is unlike every number, and neither less nor more.
            self.numbers.unequal.values().for_each(|&predicate| found(predicate));
        } else {
            let number = Finite::new(number);
            self.sets.numbers.get(&number).into_iter().flatten().for_each(|&it| found(it));
            self.numbers.satisfied(&number, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::numbers::Notation;

    fn satisfied(probe: &Probe, texts: &Texts, value: &str) -> Vec<PredicateId> {
        let value = value.as_bytes();
        let mut found: Vec<PredicateId> = Vec::new();
        if let Some(text) = texts.find(value) {
            probe.equal_to(text, |p| found.push(p));
        }
        probe.exists().for_each(|p| found.push(p));
        probe.satisfied(value, |p| found.push(p));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_value_finds_what_it_satisfies_and_nothing_else() {
        let of_text = |text: &'static str| {
            Comparison::ALL.into_iter().map(move |operator| Ask::Text(operator, text))
        };
        let of_number = |number: f64| {
            Comparison::ALL.into_iter().map(move |operator| Ask::Cast(operator, number))
        };
        let sets = [
            Ask::OneOf("\u{0}10\u{0}x\u{0}"),
            Ask::OneOf("10\u{0}2\u{0}"),
            Ask::NumberOf(Notation::Double, "1\u{0}10\u{0}"),
            Ask::NumberOf(Notation::Double, "-0.5\u{0}10\u{0}2\u{0}"),
        ];
        // Existence comes first, and so is taken out first: it reads no value.
        let asks: Vec<Ask> = std::iter::once(Ask::Exists)
            .chain(sets)
            .chain([of_text("2"), of_text("10")].into_iter().flatten())
            .chain([of_number(2.0), of_number(-0.5)].into_iter().flatten())
            .map(|ask| ask.map(|text| Box::from(text.as_bytes())))
            .collect();
        let (mut probe, mut texts) = (Probe::default(), Texts::default());
        for (id, ask) in asks.iter().enumerate() {
            assert_eq!(probe.find(ask, &texts), None);
            probe.insert(ask, id as PredicateId, &mut texts);
            assert_eq!(probe.find(ask, &texts), Some(id as PredicateId));
        }
        for value in ["2", "2.0", "+2", "2e0", "1", "10", "30", "-0.5", "INF", "x", ""] {
            let holds = |&id: &PredicateId| asks[id as usize].holds(value.as_bytes());
            let expected: Vec<PredicateId> = (0..asks.len() as PredicateId).filter(holds).collect();
            assert_eq!(satisfied(&probe, &texts, value), expected, "{value}");
        }
        for ask in &asks {
            assert!(probe.reads_values());
            probe.remove(ask, &mut texts);
            assert_eq!(probe.find(ask, &texts), None);
        }
        assert!(satisfied(&probe, &texts, "2").is_empty());
        assert!(!probe.reads_values());
        assert_eq!(texts.find(b"2"), None, "nobody asks for it any more");
    }
}
