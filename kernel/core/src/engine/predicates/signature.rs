//! What the attributes of one end and its ancestors satisfy, as a set of hashes: a plan that asks for
//! something else is refused without a look at it.

use super::atoms::Kind;
use super::facts::Look;
use super::program::{Conjunct, Need, Packed, Place};

const BITS: usize = 1 << 12;

/// The set for one end; reused from end to end.
#[derive(Debug)]
pub(crate) struct Signature {
    words: Box<[u64; BITS / 64]>,
    /// What is set.
    set: Vec<u32>,
    /// The end that it is for, and how much of its chain.
    of: Option<(u32, usize)>,
}

impl Default for Signature {
    fn default() -> Self {
        Signature { words: Box::new([0; BITS / 64]), set: Vec::new(), of: None }
    }
}

impl Signature {
    /// Forgets the end, for a new message or anchor.
    pub(crate) fn forget(&mut self) {
        self.of = None;
    }

    /// Makes it the set of the last element of a chain of ancestors, for paths that begin at depth `base`.
    /// Cost: the attributes of the chain, if it was that of another end.
    pub(crate) fn follow(&mut self, chain: &[u32], base: usize, look: &mut Look<'_, '_>) {
        let end = chain[chain.len() - 1];
        if self.of == Some((end, base)) {
            return;
        }
        self.of = Some((end, base));
        for &bit in &self.set {
            self.words[bit as usize / 64] = 0;
        }
        self.set.clear();
        // No plan is looked up by what is further away.
        let (first, near) = (base.min(chain.len() - 1), Place::FAR as usize);
        let low = (first + near).min(chain.len());
        let depths = (first..low).chain(low.max(chain.len().saturating_sub(near))..chain.len());
        for depth in depths {
            let up = (chain.len() - 1 - depth) as u32;
            let down = depth.wrapping_sub(base) as u32;
            let satisfied = look.satisfied(chain[depth], Kind::Attribute);
            for &atom in look.atoms_at(satisfied) {
                for place in [Place::Up(up), Place::Depth(down)] {
                    if !place.is_far() {
                        let need = Need::Found(Kind::Attribute, atom);
                        let bit = Packed::new(Conjunct { place, need }).hint();
                        self.words[bit as usize / 64] |= 1 << (bit % 64);
                        self.set.push(bit);
                    }
                }
            }
        }
    }

    /// Whether a conjunct with this hint may hold.
    #[inline]
    pub(crate) fn may_hold(&self, hint: u32) -> bool {
        hint == 0 || self.words[hint as usize / 64 % (BITS / 64)] >> (hint % 64) & 1 == 1
    }
}
