//! Whether the arrays of frozen plans fit together.

use super::{CAST_WAYS, FrozenPlans, Part, TEXT_WAYS, WAYS};
use crate::engine::plans::probe::PredicateId;
use crate::engine::plans::reached::parts_of;
use crate::engine::plans::shared::Row;
use crate::engine::symbols::{FIRST_NAME, Symbol};
use rustc_hash::FxHashSet;
use std::hash::Hash;

impl FrozenPlans {
    /// What is wrong with the arrays, if anything: every number must be that of something.
    pub(super) fn fault(&self, numbers: usize) -> Option<&'static str> {
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
