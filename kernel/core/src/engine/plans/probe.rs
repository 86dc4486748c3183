//! Simple predicates of one operand, found from the value that the operand has.
//!
//! The paper groups selections by signature (path, level, attribute, operator) and merges their
//! constants into one index. An *operand* is such a signature without the operator: a predicate path
//! and what of its nodes is compared. One look-up gives the predicates that ask for equality, a walk
//! along an ordered map those that ask for less or more; what does not hold is not visited, except `!=`.
//!
//! Source: paper 002, section 5.2 (shared selection).

use crate::language::comparison::Comparison;
use hashbrown::{DefaultHashBuilder, HashMap};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

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
    index: HashMap<Box<str>, (TextId, u32), DefaultHashBuilder>,
    free: Vec<TextId>,
    /// Bytes of the longest string that was ever asked for; a longer value equals none.
    len_max: usize,
}

impl Texts {
    /// The number of a value, if some predicate asks for it. Cost: one look-up.
    #[inline]
    pub(crate) fn find(&self, value: &str) -> Option<TextId> {
        if value.len() > self.len_max {
            return None;
        }
        self.index.get(value).map(|&(id, _)| id)
    }

    /// The number of a string, which has one more user now.
    fn enter(&mut self, text: &str) -> TextId {
        self.len_max = self.len_max.max(text.len());
        if let Some((id, uses)) = self.index.get_mut(text) {
            *uses += 1;
            return *id;
        }
        let id = self.free.pop().unwrap_or(self.index.len() as TextId);
        self.index.insert(text.into(), (id, 1));
        id
    }

    /// A string has one user less.
    fn leave(&mut self, text: &str) {
        let Some((id, uses)) = self.index.get_mut(text) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.free.push(*id);
            self.index.remove(text);
        }
    }
}

/// What an operand is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    /// A number; not NaN. Values are compared as numbers.
    Number(f64),
    /// A string. Values are compared as strings, by code point.
    Text(Box<str>),
}

/// What is asked of the values of an operand: that one of them is so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ask {
    /// That there is one.
    Exists,
    /// A comparison.
    Compare(Comparison, Constant),
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

/// The predicates of one operand.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    exists: Option<PredicateId>,
    /// `= "string"`, by the number of the string.
    equal_texts: FxHashMap<TextId, PredicateId>,
    /// The other comparisons with strings.
    texts: Index<Box<str>>,
    numbers: Index<Finite>,
}

impl Probe {
    /// The predicate that asks this, if there is one.
    pub(crate) fn find(&mut self, ask: &Ask, texts: &Texts) -> Option<PredicateId> {
        match ask {
            Ask::Exists => self.exists,
            Ask::Compare(Comparison::Eq, Constant::Text(text)) => {
                self.equal_texts.get(&texts.find(text)?).copied()
            }
            Ask::Compare(operator, Constant::Text(text)) => self.texts.find(*operator, &**text),
            Ask::Compare(operator, Constant::Number(number)) => {
                self.numbers.find(*operator, &Finite::new(*number))
            }
        }
    }

    /// Adds a predicate that is not there yet.
    pub(crate) fn insert(&mut self, ask: &Ask, predicate: PredicateId, texts: &mut Texts) {
        match ask {
            Ask::Exists => self.exists = Some(predicate),
            Ask::Compare(Comparison::Eq, Constant::Text(text)) => {
                self.equal_texts.insert(texts.enter(text), predicate);
            }
            Ask::Compare(operator, Constant::Text(text)) => {
                self.texts.insert(*operator, text.clone(), predicate);
            }
            Ask::Compare(operator, Constant::Number(number)) => {
                self.numbers.insert(*operator, Finite::new(*number), predicate);
            }
        }
    }

    /// Takes a predicate out.
    pub(crate) fn remove(&mut self, ask: &Ask, texts: &mut Texts) {
        match ask {
            Ask::Exists => self.exists = None,
            Ask::Compare(Comparison::Eq, Constant::Text(text)) => {
                if let Some(id) = texts.find(text) {
                    self.equal_texts.remove(&id);
                }
                texts.leave(text);
            }
            Ask::Compare(operator, Constant::Text(text)) => self.texts.remove(*operator, &**text),
            Ask::Compare(operator, Constant::Number(number)) => {
                self.numbers.remove(*operator, &Finite::new(*number));
            }
        }
    }

    /// The predicate that asks for existence.
    pub(crate) fn exists(&self) -> Option<PredicateId> {
        self.exists
    }

    /// Whether values matter; otherwise existence is all that is asked for.
    #[inline]
    pub(crate) fn reads_values(&self) -> bool {
        !self.equal_texts.is_empty() || self.reads_more_than_texts()
    }

    /// Whether more is asked of values than which string they are.
    #[inline]
    pub(crate) fn reads_more_than_texts(&self) -> bool {
        !self.numbers.is_empty() || !self.texts.is_empty()
    }

    /// The predicate that asks for a value, by its number.
    #[inline]
    pub(crate) fn equal_to(&self, text: TextId) -> Option<PredicateId> {
        self.equal_texts.get(&text).copied()
    }

    /// Gives the predicates that a value satisfies, but for existence and those of [`Probe::equal_to`].
    ///
    /// `number` reads the value as a number; it is asked at most once.
    pub(crate) fn satisfied(
        &self,
        value: &str,
        number: impl FnOnce() -> f64,
        mut found: impl FnMut(PredicateId),
    ) {
        if !self.texts.is_empty() {
            self.texts.satisfied(value, &mut found);
        }
        if self.numbers.is_empty() {
            return;
        }
        let number = number();
        if number.is_nan() {
            // NaN is unlike every number, and neither less nor more.
            self.numbers.unequal.values().for_each(|&predicate| found(predicate));
        } else {
            self.numbers.satisfied(&Finite::new(number), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfied(probe: &Probe, texts: &Texts, value: &str) -> Vec<PredicateId> {
        let mut found: Vec<PredicateId> =
            texts.find(value).and_then(|text| probe.equal_to(text)).into_iter().collect();
        probe.satisfied(value, || value.parse().unwrap_or(f64::NAN), |p| found.push(p));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_value_finds_what_it_satisfies_and_nothing_else() {
        let number = |operator, number| Ask::Compare(operator, Constant::Number(number));
        let text = |operator, text: &str| Ask::Compare(operator, Constant::Text(text.into()));
        let asks = [
            number(Comparison::Eq, 2.0),
            number(Comparison::Ne, 2.0),
            number(Comparison::Lt, 2.0),
            number(Comparison::Le, 2.0),
            number(Comparison::Gt, 2.0),
            number(Comparison::Ge, 2.0),
            text(Comparison::Eq, "2"),
            text(Comparison::Lt, "3"),
            text(Comparison::Ge, "10"),
        ];
        let (mut probe, mut texts) = (Probe::default(), Texts::default());
        for (id, ask) in asks.iter().enumerate() {
            assert_eq!(probe.find(ask, &texts), None);
            probe.insert(ask, id as PredicateId, &mut texts);
            assert_eq!(probe.find(ask, &texts), Some(id as PredicateId));
        }
        assert_eq!(satisfied(&probe, &texts, "2"), [0, 3, 5, 6, 7, 8]);
        assert_eq!(satisfied(&probe, &texts, "2.0"), [0, 3, 5, 7, 8]);
        assert_eq!(satisfied(&probe, &texts, "1"), [1, 2, 3, 7]);
        assert_eq!(satisfied(&probe, &texts, "30"), [1, 4, 5, 8]);
        assert_eq!(satisfied(&probe, &texts, "x"), [1, 8]);
        for ask in &asks {
            probe.remove(ask, &mut texts);
        }
        assert!(satisfied(&probe, &texts, "2").is_empty());
        assert!(!probe.reads_values());
        assert_eq!(texts.find("2"), None, "nobody asks for it any more");
    }
}
