//! Shared plans that do not change, read where they lie: the base of plans that change.
//!
//! Predicates are in the order of operand, way of comparing and constant, so that a look-up is a binary search and the
//! predicates that a value satisfies are neighbours. Strings that predicates ask for are in order, so that a string is
//! compared as its number. What a predicate reaches lies in one place, as [`super::reached`] puts it together. Paths and
//! operands are few and become those of the plans that change; templates are decoded when they are written the first time.

use super::frozen_templates;
use super::probe::{PredicateId, TextId, key_of, number_key, values_of};
use super::reached::{parts_of, put_words};
use super::shared::{Operand, Row, SharedPlans};
use super::template::{Kind, Leaf, Template, TemplateId};
use crate::engine::ask::Ask;
use crate::engine::paths::PathSet;
use crate::engine::symbols::{FIRST_NAME, Symbol};
use crate::language::comparison::Comparison;
use crate::language::numbers::untyped_number;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Debug;
use std::hash::Hash;
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
    /// The plans in a range of some bytes, of subscriptions whose numbers are below a bound.
    ///
    /// Cost: a pass over the arrays.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn of(
        bytes: Arc<dyn Bytes>,
        range: Range<usize>,
        numbers: usize,
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
        plans.fault(numbers).map_or(Ok(plans), Err)
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
        frozen_templates::kind(self.bytes(Part::TemplateKinds)[template as usize])
    }

    /// A template, decoded the first time.
    pub(super) fn template(&self, template: TemplateId) -> &Template {
        let slots = self
            .decoded
            .get_or_init(|| (0..self.template_count()).map(|_| OnceLock::new()).collect());
        slots[template as usize].get_or_init(|| {
            let decoded = frozen_templates::decoded(self.encoded(template));
            Box::new(decoded.expect("a checksum has covered what was encoded"))
        })
    }

    /// The number of a template that is equal. Cost: a look at each.
    pub(super) fn find_template(&self, template: &Template) -> Option<TemplateId> {
        let encoded = frozen_templates::encoded(template);
        (0..self.template_count() as TemplateId).find(|&each| self.encoded(each) == encoded)
    }

    fn encoded(&self, template: TemplateId) -> &[u8] {
        let ends = &self.array::<u64>(Part::TemplateEnds)[template as usize..][..2];
        &self.bytes(Part::Templates)[ends[0] as usize..ends[1] as usize]
    }

    /// What is wrong with the arrays, if anything: every number must be that of something.
    fn fault(&self, numbers: usize) -> Option<&'static str> {
        let sound =
            self.has_sound_names() && self.has_sound_predicates() && self.has_sound_rows(numbers);
        (!sound).then_some("a plan names what is not there")
    }

    fn has_sound_names(&self) -> bool {
        let Ok(names) = str::from_utf8(self.bytes(Part::Names)) else { return false };
        let ends = self.array::<u32>(Part::NameEnds);
        let counts = self.array::<u32>(Part::PathCounts);
        let paths: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let (path_ends, labels) =
            (self.array::<u32>(Part::PathEnds), self.array::<u32>(Part::Labels));
        let labels_end = path_ends.last().copied().unwrap_or(0) as usize;
        let is_name = |name: u32| (name as usize) < ends.len();
        ends.is_sorted()
            && ends.iter().all(|&end| names.is_char_boundary(end as usize))
            && counts.len() == 3
            && path_ends.len() as u64 == paths
            && path_ends.is_sorted()
            && labels_end == labels.len()
            && labels.iter().all(|&label| label.checked_sub(FIRST_NAME).is_none_or(is_name))
            && are_distinct((0..ends.len() as u32).map(|name| self.name(name)))
            && self.has_distinct_paths(counts)
            && self.array::<[u32; 4]>(Part::Operands).iter().all(|&[path, kind, uri, local]| {
                path < counts[1] && kind <= 2 && (kind < 2 || is_name(uri) && is_name(local))
            })
    }

    fn has_distinct_paths(&self, counts: &[u32]) -> bool {
        let labels = self.array::<Symbol>(Part::Labels);
        let mut start = 0;
        let mut paths = self.array::<u32>(Part::PathEnds).iter().map(|&end| {
            let end = end as usize;
            &labels[std::mem::replace(&mut start, end)..end]
        });
        counts.iter().all(|&count| are_distinct(paths.by_ref().take(count as usize)))
    }

    fn has_sound_predicates(&self) -> bool {
        let operands = self.array::<[u32; 4]>(Part::Operands).len();
        let (keys, starts) =
            (self.array::<u64>(Part::PredicateKeys), self.array::<u32>(Part::PredicateStarts));
        let members = self.array::<u32>(Part::MemberPredicates);
        let text_ends = self.array::<u64>(Part::TextEnds);
        let slots = self.array::<u32>(Part::TextSlots);
        let texts = self.text_count();
        cuts(starts, operands * WAYS, keys.len())
            && starts.chunks_exact(WAYS).all(|ways| {
                let texts_of = ways[TEXT_WAYS] as usize..ways[CAST_WAYS] as usize;
                keys[texts_of].iter().all(|&key| key < texts as u64)
            })
            && cuts(self.array(Part::MemberStarts), operands * 2, members.len())
            && self.array::<u64>(Part::MemberKeys).len() == members.len()
            && members.iter().all(|&predicate| (predicate as usize) < keys.len())
            && text_ends.first() == Some(&0)
            && text_ends.is_sorted()
            && text_ends.last() == Some(&(self.bytes(Part::Texts).len() as u64))
            && slots.len().is_power_of_two()
            && slots.iter().all(|&text| text as usize <= texts)
    }

    fn has_sound_rows(&self, numbers: usize) -> bool {
        let bindings = self.array::<u32>(Part::PathCounts)[0];
        let (predicates, checked) = (self.predicate_count(), self.checked_count());
        let templates = self.template_count();
        let others = self.array::<u32>(Part::Others);
        let is_row = |row: &Row| {
            (row.subscription as usize) < numbers && (row.template as usize) < templates
        };
        let are_rows = |part: Part| self.array::<Row>(part).iter().all(is_row);
        let count_of = |part: Part| self.array::<Row>(part).len();
        let ends = self.array::<u64>(Part::TemplateEnds);
        let is_word = |words: &[u32]| {
            let Some((counts, rest)) = words.split_first_chunk::<2>() else { return false };
            let [plain, several] = counts.map(|count| 2 * count as usize);
            if plain + several > rest.len() {
                return false;
            }
            let (plain, rows, checked_pairs) = parts_of(words);
            let rows_of: usize = plain.iter().skip(1).step_by(2).map(|&rows| rows as usize).sum();
            plain.iter().step_by(2).all(|&binding| binding < bindings)
                && rows.len() == 2 * rows_of
                && bytemuck::cast_slice(rows).iter().all(is_row)
                && checked_pairs
                    .chunks_exact(2)
                    .all(|pair| pair[0] < bindings && (pair[1] as usize) < checked)
        };
        cuts(self.array(Part::WordStarts), predicates, self.array::<u32>(Part::Words).len())
            && (0..predicates).all(|predicate| is_word(self.words(predicate as PredicateId)))
            && cuts(self.array(Part::OtherStarts), checked, others.len())
            && others.iter().all(|&other| (other as usize) < predicates)
            && cuts(self.array(Part::CheckedStarts), checked, count_of(Part::CheckedRows))
            && are_rows(Part::CheckedRows)
            && cuts(self.array(Part::BindingStarts), bindings as usize, count_of(Part::BindingRows))
            && are_rows(Part::BindingRows)
            && ends.len() == templates + 1
            && ends[0] == 0
            && ends.is_sorted()
            && ends[templates] == self.bytes(Part::Templates).len() as u64
    }
}

fn are_distinct<T: Eq + Hash>(mut items: impl Iterator<Item = T>) -> bool {
    let mut seen = FxHashSet::default();
    items.all(|item| seen.insert(item))
}

/// Whether offsets cut so many things into so many pieces.
fn cuts(starts: &[u32], pieces: usize, things: usize) -> bool {
    starts.len() == pieces + 1
        && starts[0] == 0
        && starts.is_sorted()
        && starts[pieces] as usize == things
}

/// The plans of subscriptions that have entered one by one, none of which has left, as words for [`FrozenPlans::of`].
///
/// Cost: a sort of the predicates and of the strings that they ask for.
pub(crate) fn frozen(plans: &SharedPlans) -> Vec<u64> {
    let mut parts = Parts::default();
    parts.put_paths_and_operands(plans);
    let new_number = parts.put_predicates(plans);
    parts.put_rows(plans, &new_number);
    let templates = plans.templates.iter();
    let mut ends = vec![0u64];
    let (mut encoded, mut kinds) = (Vec::new(), Vec::new());
    for template in templates {
        encoded.extend(frozen_templates::encoded(template));
        ends.push(encoded.len() as u64);
        kinds.push(frozen_templates::kind_byte(template));
    }
    parts.put(Part::TemplateEnds, &ends);
    parts.put(Part::Templates, &encoded);
    parts.put(Part::TemplateKinds, &kinds);
    parts.together()
}

/// Parts that are put together.
#[derive(Default)]
struct Parts {
    parts: [Vec<u8>; PARTS],
}

impl Parts {
    fn put<T: bytemuck::Pod>(&mut self, part: Part, items: &[T]) {
        self.parts[part as usize] = bytemuck::cast_slice(items).to_vec();
    }

    fn put_paths_and_operands(&mut self, plans: &SharedPlans) {
        let mut names = Names::default();
        let sets = [&plans.bindings, &plans.predicate_paths, &plans.return_paths];
        let (mut ends, mut labels) = (Vec::<u32>::new(), Vec::<Symbol>::new());
        for set in sets {
            for path in 0..set.len() as u32 {
                let symbols = set.symbols_to(path);
                labels.extend(symbols.iter().map(|&symbol| match symbol {
                    0..FIRST_NAME => symbol,
                    _ => FIRST_NAME + names.number(set.notation(symbol)),
                }));
                ends.push(labels.len() as u32);
            }
        }
        let operands: Vec<[u32; 4]> = plans
            .operands
            .iter()
            .map(|Operand { path, leaf, .. }| match leaf {
                Leaf::Element => [*path, 0, 0, 0],
                Leaf::Text => [*path, 1, 0, 0],
                Leaf::Attribute { uri, local } => {
                    [*path, 2, names.number(uri), names.number(local)]
                }
            })
            .collect();
        self.put(Part::PathCounts, &sets.map(|set| set.len() as u32));
        self.put(Part::PathEnds, &ends);
        self.put(Part::Labels, &labels);
        self.put(Part::Operands, &operands);
        self.put(Part::NameEnds, &names.ends);
        self.put(Part::Names, names.text.as_bytes());
    }

    /// Gives the new number of each predicate.
    fn put_predicates(&mut self, plans: &SharedPlans) -> Vec<PredicateId> {
        let asks = || plans.predicates.iter().map(|predicate| &predicate.ask);
        let mut texts: Vec<&[u8]> = Vec::new();
        for ask in asks() {
            match ask {
                Ask::Text(_, text) => texts.push(text),
                Ask::OneOf(set) => texts.extend(values_of(set)),
                _ => {}
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let number = |text: &[u8]| texts.binary_search(&text).ok().map(|at| at as TextId);
        let mut order: Vec<(u32, usize, u64, PredicateId)> = plans
            .predicates
            .iter()
            .enumerate()
            .map(|(old, predicate)| {
                let (way, key) = key_of(&predicate.ask, number).expect("its string is there");
                (predicate.operand, way, key, old as PredicateId)
            })
            .collect();
        order.sort_unstable();
        let mut new_number = vec![0; order.len()];
        let operands = plans.operands.len();
        let mut starts = vec![0u32; operands * WAYS + 1];
        let mut member_starts = vec![0u32; operands * 2 + 1];
        let mut members: Vec<(u32, u64, PredicateId)> = Vec::new();
        for (new, &(operand, way, _, old)) in order.iter().enumerate() {
            new_number[old as usize] = new as PredicateId;
            starts[operand as usize * WAYS + way + 1] += 1;
            let (kind, set) = match &plans.predicates.get(old).ask {
                Ask::OneOf(set) => (0, set),
                Ask::NumberOf(_, set) => (1, set),
                _ => continue,
            };
            for value in values_of(set) {
                let key = match kind {
                    0 => number(value).expect("it was put among the strings").into(),
                    _ => number_key(untyped_number(value)),
                };
                members.push((operand * 2 + kind, key, new as PredicateId));
                member_starts[(operand * 2 + kind) as usize + 1] += 1;
            }
        }
        sum_up(&mut starts);
        sum_up(&mut member_starts);
        members.sort_unstable();
        let mut ends = vec![0u64];
        ends.extend(texts.iter().scan(0, |end, text| {
            *end += text.len() as u64;
            Some(*end)
        }));
        // At most half full.
        let mut slots = vec![0u32; (2 * texts.len() + 1).next_power_of_two()];
        let mask = slots.len() - 1;
        for (at, text) in texts.iter().enumerate() {
            let mut slot = xxh3_64(text) as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = at as u32 + 1;
        }
        let column = |of: fn(&(u32, u64, PredicateId)) -> u64| -> Vec<u64> {
            members.iter().map(of).collect()
        };
        let keys: Vec<u64> = order.iter().map(|&(_, _, key, _)| key).collect();
        let predicates: Vec<u32> = members.iter().map(|member| member.2).collect();
        self.put(Part::PredicateStarts, &starts);
        self.put(Part::PredicateKeys, &keys);
        self.put(Part::MemberStarts, &member_starts);
        self.put(Part::MemberKeys, &column(|member| member.1));
        self.put(Part::MemberPredicates, &predicates);
        self.put(Part::TextEnds, &ends);
        self.put(Part::Texts, &texts.concat());
        self.put(Part::TextSlots, &slots);
        new_number
    }

    fn put_rows(&mut self, plans: &SharedPlans, new_number: &[PredicateId]) {
        let mut old_number = vec![0; new_number.len()];
        for (old, &new) in new_number.iter().enumerate() {
            old_number[new as usize] = old as PredicateId;
        }
        let (mut starts, mut words) = (vec![0u32], Vec::<u32>::new());
        let (mut other_starts, mut others) = (vec![0u32], Vec::<PredicateId>::new());
        let (mut checked_starts, mut checked_rows) = (vec![0u32], Vec::<Row>::new());
        for &old in &old_number {
            let attached = &plans.predicates.get(old).selections;
            put_words(plans, attached, &mut words, |selection| {
                let selection = plans.selections.get(selection);
                let number = checked_starts.len() as u32 - 1;
                others.extend(selection.others().map(|other| new_number[other as usize]));
                other_starts.push(others.len() as u32);
                checked_rows.extend_from_slice(&selection.rows);
                checked_starts.push(checked_rows.len() as u32);
                number
            });
            starts.push(words.len() as u32);
        }
        let (mut binding_starts, mut binding_rows) = (vec![0u32], Vec::<Row>::new());
        for binding in 0..plans.bindings.len() {
            for attached in plans.unconditional.get(binding).into_iter().flatten() {
                binding_rows.extend_from_slice(&plans.selections.get(attached.selection).rows);
            }
            binding_starts.push(binding_rows.len() as u32);
        }
        self.put(Part::WordStarts, &starts);
        self.put(Part::Words, &words);
        self.put(Part::OtherStarts, &other_starts);
        self.put(Part::Others, &others);
        self.put(Part::CheckedStarts, &checked_starts);
        self.put(Part::CheckedRows, &checked_rows);
        self.put(Part::BindingStarts, &binding_starts);
        self.put(Part::BindingRows, &binding_rows);
    }

    fn together(self) -> Vec<u64> {
        let mut at = PARTS * 8;
        let places = self.parts.each_ref().map(|part| {
            let place = at..at + part.len();
            at = place.end.next_multiple_of(8);
            place
        });
        let mut words = vec![0u64; at / 8];
        for (word, place) in words.iter_mut().zip(&places) {
            *word = place.end as u64;
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for (part, place) in self.parts.iter().zip(places) {
            bytes[place].copy_from_slice(part);
        }
        words
    }
}

/// Numbers of things by place to where each begins.
fn sum_up(starts: &mut [u32]) {
    let mut sum = 0;
    for start in starts {
        sum += *start;
        *start = sum;
    }
}

/// Distinct names, numbered as they come.
#[derive(Default)]
struct Names {
    ends: Vec<u32>,
    text: String,
    numbers: FxHashMap<Box<str>, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.ends.len() as u32;
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
        self.numbers.insert(name.into(), number);
        number
    }
}
