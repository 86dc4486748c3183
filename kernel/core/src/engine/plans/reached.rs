//! What predicates reach: their selections and subscriptions, put together to be read from end to end.

use super::found::{Found, ListId};
use super::probe::PredicateId;
use super::shared::{Attached, SelectionId, SharedPlans};
use std::ops::Range;

/// What predicates reach, each put together in one place, so that it is read from end to end.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// By predicate after those of the base: where it is, and [`SharedPlans::version`] from which it was made.
    pub(crate) places: Vec<(Range<u32>, u64)>,
    /// For each predicate: the number of selections that ask for nothing more, and of those that do;
    /// of the former, (binding path, rows); then their rows (subscription, template); of the latter,
    /// (binding path, selection).
    pub(crate) words: Vec<u32>,
}

/// Appends the words of a predicate that reaches some selections; `number` gives the numbers of those that ask for more.
pub(super) fn put_words(
    plans: &SharedPlans,
    attached: &[Attached],
    words: &mut Vec<u32>,
    mut number: impl FnMut(SelectionId) -> SelectionId,
) {
    let is_plain = |attached: &&Attached| !plans.selections.get(attached.selection).has_others();
    let plain: Vec<&Attached> = attached.iter().filter(is_plain).collect();
    words.extend([plain.len() as u32, (attached.len() - plain.len()) as u32]);
    for each in &plain {
        let rows = plans.selections.get(each.selection).rows.len();
        words.extend([each.binding, rows as u32]);
    }
    for each in plain {
        let rows = &plans.selections.get(each.selection).rows;
        words.extend(rows.iter().flat_map(|row| [row.subscription, row.template]));
    }
    let checked = attached.iter().filter(|attached| !is_plain(attached));
    words.extend(checked.flat_map(|each| [each.binding, number(each.selection)]));
}

/// Of the words of a predicate: the selections that ask for nothing more, their rows, and those that do.
#[inline]
pub(super) fn parts_of(words: &[u32]) -> (&[u32], &[u32], &[u32]) {
    let (counts, words) = words.split_at(2);
    let (plain, words) = words.split_at(2 * counts[0] as usize);
    let (rows, checked) = words.split_at(words.len() - 2 * counts[1] as usize);
    (plain, rows, checked)
}

/// Where nothing is.
const NOWHERE: Range<u32> = 0..0;

impl Reached {
    /// Where the words of a predicate are.
    #[inline]
    pub(crate) fn place(&mut self, plans: &SharedPlans, predicate: PredicateId) -> Range<u32> {
        let at = (predicate - plans.predicates.first()) as usize;
        let (place, version) = &self.places[at];
        if !place.is_empty() && *version == plans.version(predicate) {
            return place.clone();
        }
        self.add(plans, predicate)
    }

    #[cold]
    pub(crate) fn add(&mut self, plans: &SharedPlans, predicate: PredicateId) -> Range<u32> {
        let start = self.words.len();
        let attached = &plans.predicates.get(predicate).selections;
        put_words(plans, attached, &mut self.words, |selection| selection);
        let place = start as u32..self.words.len() as u32;
        let at = (predicate - plans.predicates.first()) as usize;
        self.places[at] = (place.clone(), plans.version(predicate));
        place
    }

    /// Makes ready for a message.
    pub(crate) fn begin(&mut self, plans: &SharedPlans, bytes_max: usize) {
        if self.memory() > bytes_max || u32::try_from(self.words.len() * 2).is_err() {
            self.places.clear();
            self.words.clear();
        }
        let count = plans.predicates.bound() - plans.predicates.first() as usize;
        self.places.resize(count.max(self.places.len()), (NOWHERE, 0));
    }

    pub(crate) fn memory(&self) -> usize {
        self.places.len() * size_of::<(Range<u32>, u64)>() + self.words.len() * 4
    }
}

/// The lists that one predicate has given, by which of its BoundNodes are in them: a bit each, for the
/// first of them. Binding paths that have bound the same ones share a list.
#[derive(Debug, Default)]
pub(crate) struct Masks(pub(crate) Vec<(u64, ListId)>);

/// BoundNodes of one predicate that a [`Masks`] can tell apart.
pub(crate) const MASKED_MAX: usize = 64;

impl Masks {
    /// The list of the BoundNodes whose bits are set; none if there is none.
    pub(crate) fn list(&mut self, mask: u64, holds: &[u32], found: &mut Found) -> Option<ListId> {
        if mask == 0 {
            return None;
        }
        if let Some(&(_, list)) = self.0.iter().find(|&&(known, _)| known == mask) {
            return Some(list);
        }
        let start = found.nodes.len();
        let nodes = holds.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1);
        found.nodes.extend(nodes.map(|(_, &node)| node));
        let list = found.add_list(start);
        self.0.push((mask, list));
        Some(list)
    }
}
