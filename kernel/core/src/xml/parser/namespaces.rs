//! Namespace declarations in scope (Namespaces in XML 1.0, third edition).
//!
//! Every distinct chain of declarations has a number, its context; 0 is the empty chain. The
//! numbers outlive a message, so that messages of one kind meet the names they know.

use super::refusal::{Code, Fault, Step};
use crate::xml::names::{NameTable, UriId};
use hashbrown::HashMap;
use std::hash::RandomState;

pub(super) const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";
pub(super) const XMLNS_URI: &str = "http://www.w3.org/2000/xmlns/";

/// Contexts kept from message to message, and bytes of their declarations.
const CONTEXTS_MAX: usize = 4096;
const CONTEXT_BYTES_MAX: usize = 1 << 20;

/// What a prefix is bound to.
#[derive(Clone, Copy)]
struct Bound {
    /// Where the URI lies in `uris`.
    start: u32,
    end: u32,
    /// Its number, once a name has asked for it.
    id: Option<UriId>,
}

struct Binding {
    /// `None` when the prefix is not bound here.
    uri: Option<Bound>,
    /// Element that declared it last, to find a prefix declared twice.
    element: u64,
}

/// The scope of one message, and the contexts of all.
pub(super) struct Namespaces {
    prefixes: HashMap<Box<str>, u32, RandomState>,
    bindings: Vec<Binding>,
    uris: String,
    undo: Vec<(u32, Option<Bound>)>,
    contexts: HashMap<Box<[u8]>, u32, RandomState>,
    context_bytes: usize,
    next_context: u32,
    /// Declarations of the element at hand, as the key of its context.
    declared: Vec<u8>,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Namespaces {
            prefixes: HashMap::with_hasher(RandomState::new()),
            bindings: Vec::new(),
            uris: String::new(),
            undo: Vec::new(),
            contexts: HashMap::with_hasher(RandomState::new()),
            context_bytes: 0,
            next_context: 1,
            declared: Vec::new(),
        }
    }

    /// Whether so much is kept that it should be forgotten before the next message.
    pub(crate) fn is_full(&self) -> bool {
        self.contexts.len() >= CONTEXTS_MAX
            || self.context_bytes >= CONTEXT_BYTES_MAX
            || self.next_context >= 1 << 30
    }

    /// Forgets all contexts.
    pub(crate) fn clear(&mut self) {
        self.contexts.clear();
        self.context_bytes = 0;
        self.next_context = 1;
    }

    /// Begins a message: nothing is in scope.
    pub(crate) fn begin(&mut self) {
        if !self.prefixes.is_empty() {
            self.prefixes.clear();
            self.bindings.clear();
            self.uris.clear();
            self.undo.clear();
        }
        self.declared.clear();
    }

    /// What [`Namespaces::leave`] goes back to.
    #[inline(always)]
    pub(crate) fn mark(&self) -> u32 {
        self.undo.len() as u32
    }

    /// As [`Namespaces::leave`], for an element whose tag has not been read to its end.
    pub(crate) fn abandon(&mut self, mark: u32) {
        self.leave(mark);
        self.declared.clear();
    }

    /// Bytes of the namespaces that are declared on open elements.
    #[inline(always)]
    pub(crate) fn uri_bytes(&self) -> usize {
        self.uris.len()
    }

    /// Within a message, between two tags: forgets the contexts met so far and all prefixes that are
    /// not bound. `contexts` are those of the open elements from the outermost on; they get new
    /// numbers, so that the numbers never run out.
    pub(crate) fn forget<'c>(&mut self, contexts: impl Iterator<Item = &'c mut u32>) {
        self.clear();
        let mut before = 0;
        for context in contexts {
            if *context != before {
                before = *context;
                self.next_context += 1;
            }
            if before != 0 {
                *context = self.next_context - 1;
            }
        }
        let bindings = &self.bindings;
        self.prefixes.retain(|_, &mut id| bindings[id as usize].uri.is_some());
        let mut numbers: HashMap<u32, u32, RandomState> = HashMap::default();
        let mut kept = Vec::new();
        for id in self.prefixes.values_mut() {
            numbers.insert(*id, kept.len() as u32);
            kept.push(Binding { ..self.bindings[*id as usize] });
            *id = kept.len() as u32 - 1;
        }
        self.bindings = kept;
        for (id, _) in &mut self.undo {
            *id = numbers[&*id];
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.prefixes.capacity() * 32
            + self.bindings.capacity() * size_of::<Binding>()
            + self.uris.capacity()
            + self.contexts.capacity() * 32
            + self.context_bytes
    }

    /// Whether [`Namespaces::forget`] would win much.
    pub(crate) fn has_idle_prefixes(&self) -> bool {
        self.prefixes.len() > CONTEXTS_MAX.max(2 * self.undo.len())
    }

    /// Declares `prefix` ("" for the default namespace) on the element numbered `element`.
    /// Gives false when the element has declared it already.
    pub(crate) fn declare(
        &mut self,
        prefix: &str,
        uri: &str,
        element: u64,
        at: usize,
    ) -> Step<bool> {
        check_declaration(prefix, uri, at)?;
        let id = match self.prefixes.get(prefix) {
            Some(&id) => id,
            None => {
                let id = self.bindings.len() as u32;
                self.prefixes.insert(prefix.into(), id);
                self.bindings.push(Binding { uri: None, element: 0 });
                id
            }
        };
        let binding = &mut self.bindings[id as usize];
        if binding.element == element {
            return Ok(false);
        }
        binding.element = element;
        self.undo.push((id, binding.uri));
        let start = self.uris.len() as u32;
        self.uris.push_str(uri);
        binding.uri = Some(Bound { start, end: self.uris.len() as u32, id: None });
        // 0xFF occurs in no UTF-8 text, so the key can be read in one way only.
        self.declared.extend_from_slice(prefix.as_bytes());
        self.declared.push(0xFF);
        self.declared.extend_from_slice(uri.as_bytes());
        self.declared.push(0xFF);
        Ok(true)
    }

    /// The context inside an element whose declarations have all been given to `declare`.
    #[inline(always)]
    pub(crate) fn enter(&mut self, parent: u32) -> u32 {
        if self.declared.is_empty() { parent } else { self.enter_declared(parent) }
    }

    fn enter_declared(&mut self, parent: u32) -> u32 {
        self.declared.extend_from_slice(&parent.to_le_bytes());
        let known = self.contexts.get(self.declared.as_slice()).copied();
        let context = known.unwrap_or_else(|| {
            let context = self.next_context;
            self.next_context += 1;
            if !self.is_full() {
                self.context_bytes += self.declared.len();
                self.contexts.insert(self.declared.as_slice().into(), context);
            }
            context
        });
        self.declared.clear();
        context
    }

    /// Ends the scope of an element.
    #[inline(always)]
    pub(crate) fn leave(&mut self, mark: u32) {
        while self.undo.len() > mark as usize {
            if let Some((id, uri)) = self.undo.pop() {
                if let Some(bound) = self.bindings[id as usize].uri
                    && bound.end as usize == self.uris.len()
                {
                    self.uris.truncate(bound.start as usize);
                }
                self.bindings[id as usize].uri = uri;
            }
        }
    }

    /// URI of a prefix; "" as prefix is the default namespace, "" as URI is none.
    pub(crate) fn resolve(&self, prefix: &str, at: usize) -> Step<&str> {
        if prefix == "xml" {
            return Ok(XML_URI);
        }
        let bound = self.prefixes.get(prefix).and_then(|&id| self.bindings[id as usize].uri);
        match bound {
            Some(bound) => Ok(&self.uris[bound.start as usize..bound.end as usize]),
            None if prefix.is_empty() => Ok(""),
            None => Err(Fault::new(Code::NsPrefixUndeclared, at).text("prefix", prefix)),
        }
    }

    /// The same as a number in a table of names. Cost: a hash of the URI, once for a declaration.
    pub(crate) fn resolve_in(
        &mut self,
        names: &mut NameTable,
        prefix: &str,
        at: usize,
    ) -> Step<UriId> {
        let place = self.prefixes.get(prefix).copied().filter(|_| prefix != "xml");
        let known = place.and_then(|place| self.bindings[place as usize].uri?.id);
        if let Some(id) = known {
            return Ok(id);
        }
        let id = names.intern_uri(self.resolve(prefix, at)?);
        if let Some(bound) = place.and_then(|place| self.bindings[place as usize].uri.as_mut()) {
            bound.id = Some(id);
        }
        Ok(id)
    }
}

/// Namespaces in XML 1.0, 3: reserved prefixes and namespace names; 5: no prefix undeclaring.
fn check_declaration(prefix: &str, uri: &str, at: usize) -> Step<()> {
    let code = match (prefix, uri) {
        ("xml", XML_URI) => return Ok(()),
        ("xml" | "xmlns", _) => Code::NsPrefixReserved,
        (_, XML_URI | XMLNS_URI) => Code::NsUriReserved,
        ("", _) => return Ok(()),
        (_, "") => Code::NsPrefixEmpty,
        _ => return Ok(()),
    };
    Err(Fault::new(code, at).text("prefix", prefix).text("uri", uri))
}
