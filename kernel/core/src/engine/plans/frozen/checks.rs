//! Whether the arrays of frozen plans fit together.
//!
//! A snapshot under a right checksum may still have been made by something else than [`super::writing`]. What is checked
//! here is that every number is that of something, that what is searched is in order, and that each subscription has one
//! plan; not that the plans are those of the texts, which would be to compile them.

use super::{CAST_SET, CAST_WAYS, FrozenPlans, Part, TEXT_SET, WAYS, templates};
use crate::engine::plans::probe::PredicateId;
use crate::engine::plans::reached::parts_of;
use crate::engine::plans::shared::{Row, SubscriptionNumber};
use crate::engine::plans::template::{Deliver, TemplateId};
use crate::engine::symbols::{FIRST_NAME, Symbol};
use rustc_hash::FxHashSet;
use std::hash::Hash;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

impl FrozenPlans {
    /// What is wrong, if anything.
    pub(super) fn fault(
        &self,
        numbers: Range<SubscriptionNumber>,
        deliver: impl Fn(SubscriptionNumber) -> Deliver,
    ) -> Option<&'static str> {
        if !self.has_sound_names() {
            return Some("the paths of the plans are not what they should be");
        }
        if !self.has_sound_texts() || !self.has_sound_predicates() {
            return Some("the predicates of the plans are not in order");
        }
        if !self.has_sound_templates() {
            return Some("the templates of the plans are not what they should be");
        }
        (!self.has_sound_rows(numbers, deliver)).then_some("the plans do not fit the subscriptions")
    }

    fn has_sound_names(&self) -> bool {
        let Ok(names) = str::from_utf8(self.bytes(Part::Names)) else { return false };
        let ends = self.array::<u32>(Part::NameEnds);
        let counts = self.array::<u32>(Part::PathCounts);
        let paths: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let (path_ends, labels) =
            (self.array::<u32>(Part::PathEnds), self.array::<u32>(Part::Labels));
        let labels_end = path_ends.last().copied().unwrap_or(0) as usize;
        let operands = self.array::<[u32; 4]>(Part::Operands);
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
            && operands.iter().all(|&[path, kind, uri, local]| {
                let is_attribute = kind == 2 && is_name(uri) && is_name(local);
                path < counts[1] && (is_attribute || kind < 2 && uri == 0 && local == 0)
            })
            && are_distinct(operands.iter())
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

    /// Whether the strings are in order, and [`FrozenPlans::find_text`] finds each.
    fn has_sound_texts(&self) -> bool {
        let ends = self.array::<u64>(Part::TextEnds);
        let slots = self.array::<u32>(Part::TextSlots);
        let fits = ends.first() == Some(&0)
            && ends.is_sorted()
            && ends.last() == Some(&(self.bytes(Part::Texts).len() as u64))
            && slots.len().is_power_of_two();
        let texts = 0..self.text_count() as u32;
        if !fits || !texts.clone().is_sorted_by(|&one, &next| self.text(one) < self.text(next)) {
            return false;
        }
        let mask = slots.len() - 1;
        let homes: Vec<usize> =
            texts.map(|text| xxh3_64(self.text(text)) as usize & mask).collect();
        // From a free place on, since a string may stand behind the end.
        let Some(free) = slots.iter().position(|&text| text == 0) else { return false };
        let (mut run, mut found) = (0, Marks::of(0..homes.len() as u32));
        for at in 1..=slots.len() {
            let place = (free + at) & mask;
            let Some(text) = slots[place].checked_sub(1) else {
                run = 0;
                continue;
            };
            let Some(home) = homes.get(text as usize) else { return false };
            // No place between is free.
            if !found.mark(text) || place.wrapping_sub(*home) & mask > run {
                return false;
            }
            run += 1;
        }
        found.are_all()
    }

    fn has_sound_predicates(&self) -> bool {
        let operands = self.array::<[u32; 4]>(Part::Operands).len();
        let (keys, starts) =
            (self.array::<u64>(Part::PredicateKeys), self.array::<u32>(Part::PredicateStarts));
        let texts = self.text_count() as u64;
        if !cuts(starts, operands * WAYS, keys.len()) {
            return false;
        }
        let are_in_order = starts.windows(2).enumerate().all(|(at, range)| {
            let keys = &keys[range[0] as usize..range[1] as usize];
            match at % WAYS {
                0 => keys.is_empty() || *keys == [0],
                // By hashes, of which two may be equal.
                TEXT_SET | CAST_SET => keys.is_sorted(),
                way => {
                    let is_known = way >= CAST_WAYS || keys.last().is_none_or(|&key| key < texts);
                    is_known && keys.is_sorted_by(|one, next| one < next)
                }
            }
        });
        are_in_order && self.has_sound_members(operands, starts)
    }

    fn has_sound_members(&self, operands: usize, predicates: &[u32]) -> bool {
        let texts = self.text_count() as u64;
        let starts = self.array::<u32>(Part::MemberStarts);
        let (keys, members) =
            (self.array::<u64>(Part::MemberKeys), self.array::<u32>(Part::MemberPredicates));
        cuts(starts, operands * 2, members.len())
            && keys.len() == members.len()
            && starts.windows(2).enumerate().all(|(at, range)| {
                let range = range[0] as usize..range[1] as usize;
                let (keys, members) = (&keys[range.clone()], &members[range]);
                let (operand, way) = (at / 2, if at % 2 == 0 { TEXT_SET } else { CAST_SET });
                let sets = &predicates[operand * WAYS + way..][..2];
                members.iter().all(|member| (sets[0]..sets[1]).contains(member))
                    && keys.iter().zip(members).is_sorted_by(|one, next| one < next)
                    && (way == CAST_SET || keys.last().is_none_or(|&key| key < texts))
            })
    }

    fn has_sound_templates(&self) -> bool {
        let ends = self.array::<u64>(Part::TemplateEnds);
        let kinds = self.bytes(Part::TemplateKinds);
        let paths = self.array::<u32>(Part::PathCounts)[2];
        ends.len() == kinds.len() + 1
            && ends[0] == 0
            && ends.is_sorted()
            && ends[kinds.len()] == self.bytes(Part::Templates).len() as u64
            && kinds.iter().enumerate().all(|(template, &kind)| {
                templates::is_sound(self.encoded(template as TemplateId), kind, paths)
            })
    }

    fn has_sound_rows(
        &self,
        numbers: Range<SubscriptionNumber>,
        deliver: impl Fn(SubscriptionNumber) -> Deliver,
    ) -> bool {
        let bindings = self.array::<u32>(Part::PathCounts)[0];
        let (predicates, checked) = (self.predicate_count(), self.checked_count());
        let others = self.array::<u32>(Part::Others);
        let count_of = |part: Part| self.array::<Row>(part).len();
        let fits =
            cuts(self.array(Part::WordStarts), predicates, self.array::<u32>(Part::Words).len())
                && cuts(self.array(Part::OtherStarts), checked, others.len())
                && others.iter().all(|&other| (other as usize) < predicates)
                && cuts(self.array(Part::CheckedStarts), checked, count_of(Part::CheckedRows))
                && cuts(
                    self.array(Part::BindingStarts),
                    bindings as usize,
                    count_of(Part::BindingRows),
                );
        if !fits {
            return false;
        }
        let (mut subscriptions, mut selections) =
            (Marks::of(numbers), Marks::of(0..checked as u32));
        let templates = self.template_count();
        let mut is_row = |row: &Row| {
            subscriptions.mark(row.subscription)
                && (row.template as usize) < templates
                && self.kind(row.template).deliver == deliver(row.subscription)
        };
        let mut is_word = |words: &[u32]| {
            let Some((counts, rest)) = words.split_first_chunk::<2>() else { return false };
            let [plain, several] = counts.map(|count| 2 * count as usize);
            if plain + several > rest.len() {
                return false;
            }
            let (plain, rows, checked_pairs) = parts_of(words);
            let rows_of: usize = plain.iter().skip(1).step_by(2).map(|&rows| rows as usize).sum();
            plain.iter().step_by(2).all(|&binding| binding < bindings)
                && rows.len() == 2 * rows_of
                && bytemuck::cast_slice(rows).iter().all(&mut is_row)
                && checked_pairs
                    .chunks_exact(2)
                    .all(|pair| pair[0] < bindings && selections.mark(pair[1]))
        };
        (0..predicates).all(|predicate| is_word(self.words(predicate as PredicateId)))
            && self.array::<Row>(Part::CheckedRows).iter().all(&mut is_row)
            && self.array::<Row>(Part::BindingRows).iter().all(&mut is_row)
            && subscriptions.are_all()
            && selections.are_all()
    }
}

/// Which numbers of a range have been seen.
struct Marks {
    numbers: Range<u32>,
    bits: Vec<u64>,
    left: usize,
}

impl Marks {
    fn of(numbers: Range<u32>) -> Marks {
        let bits = vec![0; numbers.len().div_ceil(64)];
        Marks { left: numbers.len(), numbers, bits }
    }

    /// Marks a number; false if it is not of the range, or has been marked before.
    #[inline]
    fn mark(&mut self, number: u32) -> bool {
        if !self.numbers.contains(&number) {
            return false;
        }
        let at = (number - self.numbers.start) as usize;
        let (word, bit) = (&mut self.bits[at / 64], 1 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        self.left -= usize::from(is_new);
        is_new
    }

    fn are_all(&self) -> bool {
        self.left == 0
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
