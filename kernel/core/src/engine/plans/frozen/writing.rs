//! Plans that change, written to be frozen.

use super::{PARTS, Part, WAYS, templates};
use crate::engine::ask::Ask;
use crate::engine::plans::probe::{PredicateId, TextId, key_of, number_key};
use crate::engine::plans::reached::put_words;
use crate::engine::plans::shared::{Operand, Row, SharedPlans};
use crate::engine::plans::template::Leaf;
use crate::engine::symbols::{FIRST_NAME, Symbol};
use crate::language::numbers::untyped_number;
use crate::language::values::each;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

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
        encoded.extend(templates::encoded(template));
        ends.push(encoded.len() as u64);
        kinds.push(templates::kind_byte(template));
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
                Ask::OneOf(set) => texts.extend(each(set)),
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
            for value in each(set) {
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
