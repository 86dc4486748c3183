//! The namespace declarations of a message that are in force at an element.
//!
//! Elements that declare namespaces are few, and nodes are written mostly in document order: what
//! is in force is kept for one place of the message and moved to the next one, undoing and doing the
//! declarations between them. A thousand siblings below one root cost a thousand times nothing.

use super::escape::write_declaration;
use crate::xml::tree::{Message, NONE, Span};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// An element that declares namespaces.
#[derive(Clone, Copy, Debug)]
struct Owner {
    element: u32,
    /// Its declarations.
    start: u32,
    end: u32,
    /// The next owner around it, or [`NONE`].
    outer: u32,
}

/// Number of the empty prefix.
const DEFAULT: u32 = 0;

/// Declarations of one message, and which of them are in force where it was last asked.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    is_known: bool,
    owners: Vec<Owner>,
    /// Number of the prefix of each declaration.
    prefix: Vec<u32>,
    /// Each declaration as it is written, and where it ends.
    written: Vec<u8>,
    written_end: Vec<usize>,
    /// A declaration for each distinct prefix, by the hash of the prefix.
    by_prefix: HashTable<u32>,
    seed: RandomState,
    /// Per prefix, its place in `active`, or [`NONE`].
    slot: Vec<u32>,
    /// Declarations in force.
    active: Vec<u32>,
    /// What was in force at a place of `active` before; [`NONE`]: the place was not there.
    undo: Vec<(u32, u32)>,
    /// Owners around the place at hand, outermost first, and the length of `undo` before each.
    path: Vec<(u32, u32)>,
    /// Owners to be entered.
    entering: Vec<u32>,
    /// Per prefix, the last question in which an element declared it itself.
    own: Vec<u64>,
    question: u64,
    /// The element's own declaration of the default namespace, or [`NONE`].
    own_default: u32,
}

impl Scopes {
    /// Begins a message.
    pub(crate) fn begin(&mut self) {
        self.is_known = false;
    }

    /// Goes to the declarations in force at an element: with its own, or only those around it.
    pub(crate) fn go(&mut self, message: Message<'_>, element: u32, with_own: bool) {
        if !self.is_known {
            self.learn(message);
        }
        let ends = &message.tree.element_end;
        let mut owner = self.owner(element, ends);
        self.question += 1;
        self.own_default = NONE;
        if !with_own && owner != NONE && self.owners[owner as usize].element == element {
            let Owner { start, end, outer, .. } = self.owners[owner as usize];
            for declaration in start..end {
                let prefix = self.prefix[declaration as usize];
                self.own[prefix as usize] = self.question;
                if prefix == DEFAULT {
                    self.own_default = declaration;
                }
            }
            owner = outer;
        }
        self.enter(owner, ends);
    }

    /// Declarations in force where it was gone last that the element does not declare itself.
    pub(crate) fn inherited(&self) -> impl Iterator<Item = u32> {
        self.active.iter().copied().filter(|&declaration| {
            self.own[self.prefix[declaration as usize] as usize] != self.question
        })
    }

    /// A declaration as it is written in a start tag, a blank before it.
    pub(crate) fn written(&self, declaration: u32) -> &[u8] {
        let at = declaration as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.written_end[before]);
        &self.written[start..self.written_end[at]]
    }

    /// The declaration of the default namespace in force at the element asked about, its own
    /// included.
    pub(crate) fn default(&self) -> Option<u32> {
        if self.own_default != NONE {
            return Some(self.own_default);
        }
        let slot = self.slot[DEFAULT as usize];
        (slot != NONE).then(|| self.active[slot as usize])
    }

    /// Whether that element declares it itself, if that was asked to be left out.
    pub(crate) fn has_own_default(&self) -> bool {
        self.own_default != NONE
    }

    /// The innermost owner that is the element or is around it.
    fn owner(&self, element: u32, ends: &[u32]) -> u32 {
        let after = self.owners.partition_point(|owner| owner.element <= element);
        let mut owner = (after as u32).wrapping_sub(1);
        while owner != NONE && ends[self.owners[owner as usize].element as usize] <= element {
            owner = self.owners[owner as usize].outer;
        }
        owner
    }

    fn enter(&mut self, owner: u32, ends: &[u32]) {
        let target = if owner == NONE { NONE } else { self.owners[owner as usize].element };
        while let Some(&(top, mark)) = self.path.last() {
            let element = self.owners[top as usize].element;
            if target != NONE && element <= target && target < ends[element as usize] {
                break;
            }
            self.leave(mark);
        }
        let top = self.path.last().map_or(NONE, |&(top, _)| top);
        let mut next = owner;
        while next != top {
            self.entering.push(next);
            next = self.owners[next as usize].outer;
        }
        while let Some(owner) = self.entering.pop() {
            self.path.push((owner, self.undo.len() as u32));
            let Owner { start, end, .. } = self.owners[owner as usize];
            for declaration in start..end {
                self.put(declaration);
            }
        }
    }

    fn put(&mut self, declaration: u32) {
        let slot = &mut self.slot[self.prefix[declaration as usize] as usize];
        if *slot == NONE {
            *slot = self.active.len() as u32;
            self.active.push(declaration);
            self.undo.push((*slot, NONE));
        } else {
            self.undo.push((*slot, self.active[*slot as usize]));
            self.active[*slot as usize] = declaration;
        }
    }

    fn leave(&mut self, mark: u32) {
        self.path.pop();
        while self.undo.len() > mark as usize {
            if let Some((place, before)) = self.undo.pop() {
                if before == NONE {
                    let last = self.active.pop().map_or(0, |declaration| declaration as usize);
                    self.slot[self.prefix[last] as usize] = NONE;
                } else {
                    self.active[place as usize] = before;
                }
            }
        }
    }

    /// Numbers prefixes and finds the owners. Cost: linear in the declarations of the message.
    #[cold]
    fn learn(&mut self, message: Message<'_>) {
        let tree = message.tree;
        self.owners.clear();
        self.prefix.clear();
        self.written.clear();
        self.written_end.clear();
        self.by_prefix.clear();
        self.active.clear();
        self.undo.clear();
        self.path.clear();
        self.slot.clear();
        self.slot.push(NONE);
        for declaration in 0..tree.declaration_element.len() as u32 {
            let number = self.number(message, declaration);
            self.prefix.push(number);
            let (prefix, uri) = declared(message, declaration);
            write_declaration(&mut self.written, prefix, uri);
            self.written_end.push(self.written.len());
            let element = tree.declaration_element[declaration as usize];
            match self.owners.last_mut() {
                Some(last) if last.element == element => last.end = declaration + 1,
                _ => self.add_owner(element, declaration, &tree.element_end),
            }
        }
        self.own.clear();
        self.own.resize(self.slot.len(), 0);
        self.question = 0;
        self.is_known = true;
    }

    fn add_owner(&mut self, element: u32, declaration: u32, ends: &[u32]) {
        let mut outer = (self.owners.len() as u32).wrapping_sub(1);
        while outer != NONE && ends[self.owners[outer as usize].element as usize] <= element {
            outer = self.owners[outer as usize].outer;
        }
        self.owners.push(Owner { element, start: declaration, end: declaration + 1, outer });
    }

    /// Number of the prefix of a declaration, new or known.
    fn number(&mut self, message: Message<'_>, declaration: u32) -> u32 {
        let prefixes = &message.tree.declaration_prefix;
        let prefix_of = |declaration: u32| message.bytes(prefixes[declaration as usize]);
        let prefix = prefix_of(declaration);
        if prefix.is_empty() {
            return DEFAULT;
        }
        let hash = self.seed.hash_one(prefix);
        if let Some(&known) = self.by_prefix.find(hash, |&known| prefix_of(known) == prefix) {
            return self.prefix[known as usize];
        }
        let seed = &self.seed;
        self.by_prefix.insert_unique(hash, declaration, |&known| seed.hash_one(prefix_of(known)));
        self.slot.push(NONE);
        self.slot.len() as u32 - 1
    }
}

/// Prefix and namespace of a declaration.
pub(super) fn declared<'m>(message: Message<'m>, declaration: u32) -> (&'m [u8], &'m [u8]) {
    let bytes = |spans: &[Span]| message.bytes(spans[declaration as usize]);
    (bytes(&message.tree.declaration_prefix), bytes(&message.tree.declaration_uri))
}
