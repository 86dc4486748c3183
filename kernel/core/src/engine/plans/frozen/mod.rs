//! Shared plans that do not change, read where they lie: the base of plans that change.
//!
//! Predicates are in the order of operand, way of comparing and constant, so that a look-up is a binary search and the
//! predicates that a value satisfies are neighbours. Strings that predicates ask for are in order, so that a string is
//! compared as its number. What a predicate reaches lies in one place, as [`super::reached`] puts it together. Paths and
//! operands are few and become those of the plans that change; templates are decoded when they are written the first time.

mod checks;
mod templates;
mod writing;

pub(crate) use writing::frozen;

use super::probe::{PredicateId, TextId, key_of};
use super::reached::parts_of;
use super::shared::{Row, SubscriptionNumber};
use super::template::{Deliver, Kind, Leaf, Template, TemplateId};
use crate::engine::ask::Ask;
use crate::engine::paths::PathSet;
use crate::engine::symbols::FIRST_NAME;
use crate::language::comparison::Comparison;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64;

/// Ways of comparing: existence, six of strings, six of numbers, sets of strings and of numbers.
pub(super) const WAYS: usize = 15;
/// Where those of strings begin.
pub(super) const TEXT_WAYS: usize = 1;
/// Where those of numbers begin.
pub(super) const CAST_WAYS: usize = 7;
/// A set of strings.
pub(super) const TEXT_SET: usize = 13;
/// A set of numbers.
pub(super) const CAST_SET: usize = 14;

/// Parts of the bytes.
#[derive(Clone, Copy)]
enum Part {
    /// u32 per distinct name: where it ends in `Names`.
    NameEnds,
    Names,
    /// u32: number of binding, predicate and return paths.
    PathCounts,
    /// u32 per path of the three sets: where it ends in `Labels`.
    PathEnds,
    /// Symbols, those from the first name on by their number among the names.
    Labels,
    /// Four u32 per operand: path, kind of the leaf, its namespace and its local name.
    Operands,
    /// u32 per operand and way of comparing, and one more: its first predicate.
    PredicateStarts,
    /// u64 per predicate: its constant.
    PredicateKeys,
    /// u32 per operand and kind of set, and one more: its first value.
    MemberStarts,
    /// u64 per value of a set, ascending.
    MemberKeys,
    /// u32 per value of a set: the predicate.
    MemberPredicates,
    /// u64 per string, in order, and one more.
    TextEnds,
    Texts,
    /// u32, a power of two of them: 1 + the number of a string, at the first free place from its hash on.
    TextSlots,
    /// u32 per predicate, and one more.
    WordStarts,
    /// What each predicate reaches.
    Words,
    /// u32 per selection of several predicates, and one more: its other predicates.
    OtherStarts,
    Others,
    /// u32 per selection of several predicates, and one more.
    CheckedStarts,
    CheckedRows,
    /// u32 per binding path, and one more: rows without predicates.
    BindingStarts,
    BindingRows,
    /// u64 per template, and one more.
    TemplateEnds,
    Templates,
    /// u8 per template.
    TemplateKinds,
}

const PARTS: usize = Part::TemplateKinds as usize + 1;

/// Bytes that lie somewhere, such as in a file.
pub(crate) trait Bytes: AsRef<[u8]> + Debug + Send + Sync {}

impl<T: AsRef<[u8]> + Debug + Send + Sync> Bytes for T {}

/// Plans in some bytes.
#[derive(Debug)]
pub(crate) struct FrozenPlans {
    bytes: Arc<dyn Bytes>,
    parts: [Range<usize>; PARTS],
    decoded: OnceLock<Box<[OnceLock<Box<Template>>]>>,
}

impl FrozenPlans {
    /// The plans in a range of some bytes, of subscriptions of these numbers; `deliver` tells what each is delivered.
    ///
    /// Cost: a pass over the arrays and the templates.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn of(
        bytes: Arc<dyn Bytes>,
        range: Range<usize>,
        numbers: Range<SubscriptionNumber>,
        deliver: impl Fn(SubscriptionNumber) -> Deliver,
    ) -> Result<FrozenPlans, &'static str> {
        let cut = Err("the parts of the plans do not fit");
        let all = &(*bytes).as_ref()[range.clone()];
        let Some(ends) = all.get(..PARTS * 8) else { return cut };
        let Ok(ends) = bytemuck::try_cast_slice::<u8, u64>(ends) else { return cut };
        let mut start = PARTS * 8;
        let mut parts = std::array::from_fn(|_| 0..0);
        for (part, &end) in parts.iter_mut().zip(ends) {
            let Ok(end) = usize::try_from(end) else { return cut };
            if end < start || end > all.len() {
                return cut;
            }
            *part = range.start + start..range.start + end;
            start = end.next_multiple_of(8);
        }
        let plans = FrozenPlans { bytes, parts, decoded: OnceLock::new() };
        plans.fault(numbers, deliver).map_or(Ok(plans), Err)
    }

    fn bytes(&self, part: Part) -> &[u8] {
        &(*self.bytes).as_ref()[self.parts[part as usize].clone()]
    }

    #[inline]
    fn array<T: bytemuck::Pod>(&self, part: Part) -> &[T] {
        bytemuck::try_cast_slice(self.bytes(part)).unwrap_or(&[])
    }

    fn name(&self, name: u32) -> &str {
        let ends = self.array::<u32>(Part::NameEnds);
        let start = if name == 0 { 0 } else { ends[name as usize - 1] };
        let bytes = &self.bytes(Part::Names)[start as usize..ends[name as usize] as usize];
        str::from_utf8(bytes).expect("checked when opened")
    }

    /// The sets of binding, predicate and return paths; the plans use each path once.
    pub(super) fn paths(&self) -> [PathSet; 3] {
        let (mut path, mut start) = (0, 0);
        let (ends, labels) = (self.array::<u32>(Part::PathEnds), self.array::<u32>(Part::Labels));
        let counts = self.array::<u32>(Part::PathCounts);
        std::array::from_fn(|at| {
            let mut set = PathSet::default();
            for _ in 0..counts[at] {
                let end = ends[path] as usize;
                let own = labels[start..end].iter();
                let known =
                    set.intern_symbols(own.map(|&label| match label.checked_sub(FIRST_NAME) {
                        Some(name) => Err(self.name(name)),
                        None => Ok(label),
                    }));
                set.enter(known);
                (path, start) = (path + 1, end);
            }
            set
        })
    }

    /// Path and leaf of each operand.
    pub(super) fn operands(&self) -> impl Iterator<Item = (u32, Leaf)> {
        self.array::<[u32; 4]>(Part::Operands).iter().map(|&[path, kind, uri, local]| {
            let leaf = match kind {
                0 => Leaf::Element,
                1 => Leaf::Text,
                _ => Leaf::Attribute { uri: self.name(uri).into(), local: self.name(local).into() },
            };
            (path, leaf)
        })
    }

    /// Number of strings that predicates ask for.
    pub(super) fn text_count(&self) -> usize {
        self.array::<u64>(Part::TextEnds).len().saturating_sub(1)
    }

    /// Bytes of the longest of them.
    pub(super) fn text_len_max(&self) -> usize {
        let lengths = self.array::<u64>(Part::TextEnds).windows(2).map(|ends| ends[1] - ends[0]);
        lengths.max().unwrap_or(0) as usize
    }

    #[inline]
    fn text(&self, text: TextId) -> &[u8] {
        let ends = self.array::<u64>(Part::TextEnds);
        let (start, end) = (ends[text as usize], ends[text as usize + 1]);
        &self.bytes(Part::Texts)[start as usize..end as usize]
    }

    /// The number of a string that some predicate asks for. Cost: a hash, and a look or two.
    #[inline]
    pub(super) fn find_text(&self, value: &[u8]) -> Option<TextId> {
        let slots = self.array::<u32>(Part::TextSlots);
        let mask = slots.len().checked_sub(1)?;
        let mut at = xxh3_64(value) as usize & mask;
        for _ in 0..slots.len() {
            let text = slots[at].checked_sub(1)?;
            if self.text(text) == value {
                return Some(text);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// How many strings are less than a value.
    fn rank(&self, value: &[u8]) -> u64 {
        let (mut low, mut high) = (0, self.text_count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.text(middle as TextId) < value { low = middle + 1 } else { high = middle }
        }
        low as u64
    }

    /// Number of predicates.
    pub(super) fn predicate_count(&self) -> usize {
        self.array::<u64>(Part::PredicateKeys).len()
    }

    /// The predicates of an operand that compare in a way: the first one, and their constants.
    #[inline]
    fn predicates(&self, operand: u32, way: usize) -> (PredicateId, &[u64]) {
        let at = operand as usize * WAYS + way;
        let starts = &self.array::<u32>(Part::PredicateStarts)[at..at + 2];
        let keys = &self.array::<u64>(Part::PredicateKeys)[starts[0] as usize..starts[1] as usize];
        (starts[0], keys)
    }

    /// Whether an operand has predicates of some ways of comparing.
    #[inline]
    pub(super) fn has_ways(&self, operand: u32, ways: Range<usize>) -> bool {
        let at = operand as usize * WAYS;
        let starts = self.array::<u32>(Part::PredicateStarts);
        starts[at + ways.start] < starts[at + ways.end]
    }

    /// The predicate of an operand that asks for existence.
    #[inline]
    pub(super) fn exists(&self, operand: u32) -> Option<PredicateId> {
        let (first, keys) = self.predicates(operand, 0);
        (!keys.is_empty()).then_some(first)
    }

    /// Gives the predicates of an operand that ask for a value of the set of strings or numbers.
    #[inline]
    fn each_set(&self, operand: u32, kind: usize, key: u64, mut found: impl FnMut(PredicateId)) {
        let at = operand as usize * 2 + kind;
        let starts = &self.array::<u32>(Part::MemberStarts)[at..at + 2];
        let range = starts[0] as usize..starts[1] as usize;
        if range.is_empty() {
            return;
        }
        let keys = &self.array::<u64>(Part::MemberKeys)[range.clone()];
        let first = keys.partition_point(|&each| each < key);
        let equal = keys[first..].iter().take_while(|&&each| each == key).count();
        let members = &self.array::<u32>(Part::MemberPredicates)[range];
        members[first..first + equal].iter().for_each(|&predicate| found(predicate));
    }

    /// Gives the predicates of an operand that ask for a string, alone or among others.
    #[inline]
    pub(super) fn equal_to(&self, operand: u32, text: TextId, mut found: impl FnMut(PredicateId)) {
        let (first, keys) = self.predicates(operand, TEXT_WAYS + Comparison::Eq as usize);
        if let Ok(at) = keys.binary_search(&u64::from(text)) {
            found(first + at as PredicateId);
        }
        self.each_set(operand, 0, text.into(), found);
    }

    /// Gives the predicates of an operand that compare strings, but not for equality, and that a value satisfies.
    pub(super) fn satisfied_by_text(
        &self,
        operand: u32,
        value: &[u8],
        found: impl FnMut(PredicateId),
    ) {
        let rank = self.rank(value);
        let is_asked = (rank as usize) < self.text_count() && self.text(rank as TextId) == value;
        self.satisfied(operand, TEXT_WAYS, (rank, is_asked), found);
    }

    /// Gives the predicates of an operand that compare with numbers and that a number satisfies, by its key; none is NaN,
    /// which is unlike every number, and neither less nor more.
    pub(super) fn satisfied_by_number(
        &self,
        operand: u32,
        key: Option<u64>,
        mut found: impl FnMut(PredicateId),
    ) {
        let Some(key) = key else {
            let (first, keys) = self.predicates(operand, CAST_WAYS + Comparison::Ne as usize);
            (first..first + keys.len() as PredicateId).for_each(found);
            return;
        };
        let (first, keys) = self.predicates(operand, CAST_WAYS + Comparison::Eq as usize);
        if let Ok(at) = keys.binary_search(&key) {
            found(first + at as PredicateId);
        }
        self.each_set(operand, 1, key, &mut found);
        self.satisfied(operand, CAST_WAYS, (key, true), found);
    }

    /// Gives the predicates that are satisfied by a value at a place in the order of constants, or just before it; not
    /// those that ask for equality.
    fn satisfied(
        &self,
        operand: u32,
        ways: usize,
        (key, is_at): (u64, bool),
        mut found: impl FnMut(PredicateId),
    ) {
        for comparison in Comparison::ALL {
            let (first, keys) = self.predicates(operand, ways + comparison as usize);
            if keys.is_empty() {
                continue;
            }
            let below = keys.partition_point(|&each| each < key);
            let equal = usize::from(is_at && keys.get(below) == Some(&key));
            let (one, other) = match comparison {
                Comparison::Eq => continue,
                Comparison::Ne => (0..below, below + equal..keys.len()),
                // value < constant, value <= constant, value > constant, value >= constant
                Comparison::Lt => (below + equal..keys.len(), 0..0),
                Comparison::Le => (below..keys.len(), 0..0),
                Comparison::Gt => (0..below, 0..0),
                Comparison::Ge => (0..below + equal, 0..0),
            };
            one.chain(other).for_each(|at| found(first + at as PredicateId));
        }
    }

    /// The predicate of an operand that asks this, if there is one; the operand may be one that came since.
    pub(super) fn find(&self, operand: u32, ask: &Ask) -> Option<PredicateId> {
        self.array::<[u32; 4]>(Part::Operands).get(operand as usize)?;
        let (way, key) = key_of(ask, |text| self.find_text(text))?;
        let (first, keys) = self.predicates(operand, way);
        keys.binary_search(&key).ok().map(|at| first + at as PredicateId)
    }

    /// What a predicate reaches, as [`super::reached`] puts it together.
    #[inline]
    pub(super) fn words(&self, predicate: PredicateId) -> &[u32] {
        let starts = &self.array::<u32>(Part::WordStarts)[predicate as usize..][..2];
        &self.array::<u32>(Part::Words)[starts[0] as usize..starts[1] as usize]
    }

    /// Number of selections of several predicates, which have the first numbers.
    pub(super) fn checked_count(&self) -> usize {
        self.array::<u32>(Part::OtherStarts).len().saturating_sub(1)
    }

    /// The other predicates of such a selection, and its rows.
    #[inline]
    pub(super) fn checked(&self, selection: u32) -> (&[PredicateId], &[Row]) {
        let part = |starts: Part| {
            let starts = &self.array::<u32>(starts)[selection as usize..][..2];
            starts[0] as usize..starts[1] as usize
        };
        let others = &self.array::<u32>(Part::Others)[part(Part::OtherStarts)];
        (others, &self.array::<Row>(Part::CheckedRows)[part(Part::CheckedStarts)])
    }

    /// The rows of a binding path that ask for no more.
    #[inline]
    pub(super) fn unconditional(&self, binding: u32) -> &[Row] {
        let starts = self.array::<u32>(Part::BindingStarts);
        match starts.get(binding as usize..binding as usize + 2) {
            Some(range) => {
                &self.array::<Row>(Part::BindingRows)[range[0] as usize..range[1] as usize]
            }
            None => &[],
        }
    }

    /// Calls `f` with each selection: binding path, predicates in any order, rows.
    pub(super) fn each_selection(&self, mut f: impl FnMut(u32, &[PredicateId], &[Row])) {
        for binding in 0..self.array::<u32>(Part::PathCounts)[0] {
            let rows = self.unconditional(binding);
            if !rows.is_empty() {
                f(binding, &[], rows);
            }
        }
        for predicate in 0..self.predicate_count() as PredicateId {
            let (plain, mut rows, checked) = parts_of(self.words(predicate));
            for pair in plain.chunks_exact(2) {
                let own;
                (own, rows) = rows.split_at(2 * pair[1] as usize);
                f(pair[0], &[predicate], bytemuck::cast_slice(own));
            }
            for pair in checked.chunks_exact(2) {
                let (others, rows) = self.checked(pair[1]);
                let all: Vec<PredicateId> = others.iter().copied().chain([predicate]).collect();
                f(pair[0], &all, rows);
            }
        }
    }

    /// Number of selections. Cost: a look at each.
    pub(super) fn selection_count(&self) -> usize {
        let mut count = 0;
        self.each_selection(|_, _, _| count += 1);
        count
    }

    /// Number of templates.
    pub(super) fn template_count(&self) -> usize {
        self.bytes(Part::TemplateKinds).len()
    }

    /// What has to be known of a template before anything is written.
    #[inline]
    pub(super) fn kind(&self, template: TemplateId) -> Kind {
        templates::kind(self.bytes(Part::TemplateKinds)[template as usize])
    }

    /// A template, decoded the first time.
    pub(super) fn template(&self, template: TemplateId) -> &Template {
        let slots = self
            .decoded
            .get_or_init(|| (0..self.template_count()).map(|_| OnceLock::new()).collect());
        slots[template as usize].get_or_init(|| {
            let decoded = templates::decoded(self.encoded(template));
            Box::new(decoded.expect("checked when opened"))
        })
    }

    /// The number of a template that is equal. Cost: a look at each.
    pub(super) fn find_template(&self, template: &Template) -> Option<TemplateId> {
        let encoded = templates::encoded(template);
        (0..self.template_count() as TemplateId).find(|&each| self.encoded(each) == encoded)
    }

    fn encoded(&self, template: TemplateId) -> &[u8] {
        let ends = &self.array::<u64>(Part::TemplateEnds)[template as usize..][..2];
        &self.bytes(Part::Templates)[ends[0] as usize..ends[1] as usize]
    }
}
