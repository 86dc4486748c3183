//! The store check: most candidates fail because something that they need does not occur in the
//! message at all, and that can be seen without looking at the plan.
//!
//! Every condition of a query must hold, so every name that its nested paths ask for must occur,
//! and so must every attribute with the value that it must have. A plan carries up to four such
//! needs as numbers of bits; a message sets the bits of what it has. A bit that is not set refuses
//! the plan; bits that are set by chance cost time and no answer.
//!
//! Source: paper 003, 6.2.2, store check; here also for attribute values, and by bits.

use super::plan::{ANY, Arrays, Named, Operation, Slice, Test};
use crate::engine::ask::Ask;
use crate::language::comparison::Comparison;
use crate::language::numbers::untyped_number;
use crate::xml::names::NameTable;
use crate::xml::tree::Message;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Up to four numbers of bits of 16 bits each; 0 stands for no need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs(u64);

/// Bits of a message.
const BITS: usize = 1 << 16;

/// Candidates of a message from which on its bits are worth their price.
const CANDIDATES_MIN: u32 = 16;

/// Values from which on so many bits would be set that looking at them is in vain.
const VALUES_MAX: usize = BITS / 4;

/// Bytes up to which values are worth hashing.
const VALUE_BYTES_MAX: usize = 64;

/// What a message has.
#[derive(Debug, Default)]
pub(super) struct Presence {
    bits: Vec<u64>,
    candidates: u32,
}

impl Presence {
    /// Forgets the message before.
    pub(crate) fn begin_message(&mut self) {
        self.candidates = 0;
    }

    /// Whether the message has what a plan needs, as far as can be told.
    #[inline]
    pub(crate) fn may_hold(
        &mut self,
        needs: Needs,
        message: Message<'_>,
        names: &NameTable,
    ) -> bool {
        if self.candidates < CANDIDATES_MIN {
            self.candidates += 1;
            if self.candidates < CANDIDATES_MIN {
                return true;
            }
            self.set_bits(message, names);
        }
        (0..4).all(|at| {
            let bit = (needs.0 >> (16 * at)) as u16;
            self.bits[bit as usize / 64] >> (bit % 64) & 1 == 1
        })
    }

    #[cold]
    fn set_bits(&mut self, message: Message<'_>, names: &NameTable) {
        let tree = message.tree;
        self.bits.clear();
        if tree.attribute_name.len() > VALUES_MAX {
            self.bits.resize(BITS / 64, u64::MAX);
            return;
        }
        self.bits.resize(BITS / 64, 0);
        self.set(0);
        for &name in &tree.name {
            self.set(of_element(names.hash(name)));
        }
        for (&name, &span) in tree.attribute_name.iter().zip(&tree.attribute_value) {
            let (hash, value) = (names.hash(name), message.bytes(span));
            self.set(of_attribute(hash));
            if value.len() <= VALUE_BYTES_MAX {
                self.set(of_string(hash, value));
            }
            // A number of XPath is cast to the same number.
            let number = untyped_number(value);
            if !number.is_nan() {
                self.set(of_number(hash, number));
            }
        }
    }

    fn set(&mut self, bit: u16) {
        self.bits[bit as usize / 64] |= 1 << (bit % 64);
    }
}

/// What a plan needs: values first, which are rarest, then names of attributes, then names in nested
/// paths. The names of the main path are no need: it is known to end somewhere.
pub(super) fn needs_of(arrays: &Arrays, main: Slice) -> Needs {
    let mut bits: Vec<(u8, u16)> = Vec::new();
    for operation in &arrays.operations {
        let Operation::Attribute(test, ask) = *operation else {
            continue;
        };
        let Some(hash) = name_hash(arrays, test, Named::Attribute) else {
            continue;
        };
        bits.push(match ask {
            Ask::Text(Comparison::Eq, literal)
                if literal.end - literal.start <= VALUE_BYTES_MAX as u32 =>
            {
                let literal = &arrays.text[literal.start as usize..literal.end as usize];
                (0, of_string(hash, literal.as_bytes()))
            }
            Ask::Number(Comparison::Eq, constant) | Ask::Cast(Comparison::Eq, constant) => {
                (0, of_number(hash, constant))
            }
            _ => (1, of_attribute(hash)),
        });
    }
    for check in &arrays.checks[..main.start as usize] {
        if let Some(hash) = name_hash(arrays, check.test, Named::Element) {
            bits.push((2, of_element(hash)));
        }
    }
    bits.sort_unstable();
    bits.dedup();
    let packed = bits.iter().take(4).fold(0, |packed, &(_, bit)| packed << 16 | u64::from(bit));
    Needs(packed)
}

fn name_hash(arrays: &Arrays, test: u32, named: Named) -> Option<u64> {
    if test == ANY {
        return None;
    }
    match arrays.tests[test as usize] {
        (for_what, Test::Name { hash, .. }) if for_what == named => Some(hash),
        _ => None,
    }
}

fn of_element(name: u64) -> u16 {
    bit(name, 1)
}

fn of_attribute(name: u64) -> u16 {
    bit(name, 2)
}

fn of_string(name: u64, value: &[u8]) -> u16 {
    let mut hasher = FxHasher::default();
    hasher.write(value);
    bit(name ^ hasher.finish(), 3)
}

fn of_number(name: u64, value: f64) -> u16 {
    // 0 and -0 are equal and have different bits.
    let value = if value == 0.0 { 0.0 } else { value };
    bit(name ^ value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15), 4)
}

/// A bit other than 0. The multiplication brings all bits of the hash to the top.
fn bit(hash: u64, kind: u64) -> u16 {
    let mixed =
        (hash ^ kind.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    ((mixed >> 48) as u16).max(1)
}
