//! The streaming chunker: a message comes in blocks, its chunks go out as they grow.
//!
//! A chunk is (P, F): the subtrees at label paths P, single nodes at label paths F, and the start tags
//! of all that they lie in. Names are followed down a trie of the label paths of all chunks; subtrees
//! that a chunk keeps are copied as they stand in the message, in runs as long as the parser has read. The start tag of an open element waits
//! until a chunk needs it, and no longer than the element is open.
//!
//! Memory: that of the push parser, the start tags of open elements on the trie, and what of the chunks
//! nobody has taken yet. Cost: that of the parser, one look-up an element, and the copying.
//!
//! `pathcast.chunking.plain` is the same in few lines of Python, and what this is held to.
//!
//! Source: Lehner and Irmert, BTW 2003, sections 4 and 5 (CHUNKTOOL).

mod cut_tree;

pub use cut_tree::{CHUNKS_MAX, Chunks, CutTree};
pub(crate) use cut_tree::{NodeId, Symbol};

use crate::xml::names::{NameId, NameTable};
use crate::xml::parser::push::{
    Bounds, EndTag, Handler, Held, Markup, MarkupKind, PushParser, StartTag, Text,
};
use crate::xml::parser::{Limits, Refusal};
use cut_tree::{NO_NODE, UNKNOWN};

/// Why the chunks of a message must not be used, and the whole of it be evaluated instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An element stands where the schema does not have it.
    Schema,
    /// An element that the message may be cut at comes from an entity.
    Entity,
}

/// What is known of a message at its end.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Elements of each chunk, ancestors and single nodes counted.
    pub elements: Vec<u64>,
    /// Why the chunks must not be used.
    pub fault: Option<Fault>,
}

/// Cuts messages, one after another.
#[derive(Debug)]
pub struct Chunker {
    parser: PushParser,
    cutter: Cutter,
}

impl Chunker {
    /// A chunker for the chunks of a trie.
    pub fn new(tree: CutTree, limits: Limits, bounds: Bounds) -> Self {
        Self { parser: PushParser::new(limits, bounds), cutter: Cutter::new(tree) }
    }

    /// Begins a message; what was not taken of the one before is forgotten.
    pub fn begin(&mut self, encoding: Option<&str>) {
        self.parser.begin(encoding);
        self.cutter.begin();
    }

    /// The next bytes of the message.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), Refusal> {
        self.parser.feed(block, &mut self.cutter)
    }

    /// The message ends here.
    pub fn finish(&mut self) -> Result<Summary, Refusal> {
        self.parser.finish(&mut self.cutter)?;
        Ok(Summary { elements: self.cutter.elements.clone(), fault: self.cutter.fault })
    }

    /// What a chunk has grown by since it was asked for last; the caller empties it.
    pub fn grown(&mut self, chunk: usize) -> &mut Vec<u8> {
        &mut self.cutter.output[chunk]
    }
}

/// An open element.
#[derive(Clone, Copy, Debug)]
struct Open {
    symbol: Symbol,
    node: NodeId,
    /// Chunks that copy it with its content.
    kept: Chunks,
    /// Other chunks that have its start tag.
    opened: Chunks,
    /// Where its start tag begins in `tags`; it ends where that of the next one begins.
    tag: usize,
}

/// What some chunks grow by.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// What lies between two offsets of the message, with so many elements.
    Source { chunks: Chunks, start: u64, end: u64, elements: u64 },
    /// Of one chunk, what `Cutter::above` holds up to here.
    Above { chunk: usize, end: usize },
}

#[derive(Debug)]
struct Cutter {
    tree: CutTree,
    /// By `NameId`; `None` if not looked up yet.
    symbols: Vec<Option<Symbol>>,
    generation: u64,
    open: Vec<Open>,
    /// Start tags of open elements that a chunk may come to need.
    tags: Vec<u8>,
    /// How many open elements, from the root on, each chunk has the start tag of.
    written: Vec<usize>,
    /// Chunks that have something.
    begun: Chunks,
    /// What chunks have grown by since the parser paused, in order.
    pieces: Vec<Piece>,
    /// What stands above subtrees that chunks have begun since.
    above: Vec<u8>,
    prolog: Vec<u8>,
    output: Vec<Vec<u8>>,
    elements: Vec<u64>,
    fault: Option<Fault>,
}

impl Cutter {
    fn new(tree: CutTree) -> Self {
        let chunks = tree.chunks();
        Self {
            tree,
            symbols: Vec::new(),
            generation: 0,
            open: Vec::new(),
            tags: Vec::new(),
            written: vec![0; chunks],
            begun: 0,
            pieces: Vec::new(),
            above: Vec::new(),
            prolog: Vec::new(),
            output: vec![Vec::new(); chunks],
            elements: vec![0; chunks],
            fault: None,
        }
    }

    fn begin(&mut self) {
        self.open.clear();
        self.tags.clear();
        self.prolog.clear();
        self.written.fill(0);
        self.begun = 0;
        self.pieces.clear();
        self.above.clear();
        self.elements.fill(0);
        self.output.iter_mut().for_each(Vec::clear);
        self.fault = None;
    }

    #[inline]
    fn symbol(&mut self, names: &NameTable, id: NameId) -> Symbol {
        if self.generation != names.generation() {
            self.generation = names.generation();
            self.symbols.clear();
        }
        let place = id as usize;
        if place >= self.symbols.len() {
            self.symbols.resize(place + 1, None);
        }
        *self.symbols[place].get_or_insert_with(|| self.tree.symbol(names, id))
    }

    /// Writes the start tags of the open elements that a chunk has not got, the innermost one's apart.
    fn open_above(&mut self, chunk: usize) {
        let innermost = self.open.len() - 1;
        if self.begun >> chunk & 1 == 0 {
            self.begun |= 1 << chunk;
            self.above.extend_from_slice(&self.prolog);
        }
        for depth in self.written[chunk]..innermost {
            let tag = self.open[depth].tag..self.open[depth + 1].tag;
            self.above.extend_from_slice(&self.tags[tag]);
            self.open[depth].opened |= 1 << chunk;
            self.elements[chunk] += 1;
        }
        self.written[chunk] = innermost + 1;
        self.pieces.push(Piece::Above { chunk, end: self.above.len() });
    }

    /// Chunks grow by what lies between two offsets, in which so many elements begin. It is nothing where it
    /// comes from an entity: its reference is copied.
    #[inline]
    fn copy(&mut self, chunks: Chunks, start: u64, end: u64, elements: u64) {
        if let Some(Piece::Source { chunks: last, end: until, elements: sum, .. }) =
            self.pieces.last_mut()
            && *last == chunks
            && *until == start
        {
            *until = end;
            *sum += elements;
        } else if chunks != 0 {
            self.pieces.push(Piece::Source { chunks, start, end, elements });
        }
    }
}

impl Handler for Cutter {
    #[inline]
    fn start(&mut self, tag: &StartTag<'_>) {
        let (parent, node_above, kept_above) = match self.open.last() {
            None => (None, 0, 0),
            Some(above) => (Some(above.symbol), above.node, above.kept),
        };
        let is_asked = node_above != NO_NODE || self.tree.has_schema();
        let symbol = if is_asked { self.symbol(tag.names(), tag.name) } else { UNKNOWN };
        if !self.tree.allows(parent, symbol) {
            self.fault.get_or_insert(Fault::Schema);
        }
        let node = self.tree.below(node_above, symbol);
        let (single, content) = self.tree.kept(node);
        let kept = kept_above | content;
        if node != NO_NODE && tag.is_in_entity {
            self.fault.get_or_insert(Fault::Entity);
        }
        self.open.push(Open { symbol, node, kept, opened: 0, tag: self.tags.len() });
        if node == NO_NODE {
            self.copy(kept, tag.start, tag.end, 1);
            return;
        }
        let alone = single & !kept;
        bits(alone | (kept & !kept_above)).for_each(|chunk| self.open_above(chunk));
        let depth = self.open.len() - 1;
        self.open[depth].opened = alone;
        self.copy(kept | alone, tag.start, tag.end, 1);
        if self.tree.goes_on(node) {
            self.tags.extend_from_slice(tag.source.as_bytes());
        }
    }

    #[inline]
    fn end(&mut self, tag: &EndTag<'_>) {
        let Some(element) = self.open.pop() else { return };
        self.copy(element.kept | element.opened, tag.start, tag.end, 0);
        if element.node != NO_NODE {
            self.tags.truncate(element.tag);
            let depth = self.open.len();
            for chunk in bits(element.kept | element.opened) {
                self.written[chunk] = self.written[chunk].min(depth);
            }
        }
    }

    #[inline]
    fn text(&mut self, text: &Text<'_>) {
        if let Some(&Open { kept: kept @ 1.., .. }) = self.open.last() {
            self.copy(kept, text.start, text.end, 0);
        }
    }

    fn markup(&mut self, markup: &Markup<'_>) {
        if let Some(&Open { kept, .. }) = self.open.last() {
            self.copy(kept, markup.start, markup.end, 0);
        } else if markup.kind != MarkupKind::Declaration {
            // The encoding that a declaration names is not that of the chunks.
            self.prolog.extend_from_slice(markup.source.as_bytes());
        }
    }

    fn paused(&mut self, held: &Held<'_>) {
        let mut from = 0;
        for piece in self.pieces.drain(..) {
            match piece {
                Piece::Source { chunks, start, end, elements } => {
                    let source = held.between(start, end).as_bytes();
                    for chunk in bits(chunks) {
                        self.output[chunk].extend_from_slice(source);
                        self.elements[chunk] += elements;
                    }
                }
                Piece::Above { chunk, end } => {
                    self.output[chunk].extend_from_slice(&self.above[from..end]);
                    from = end;
                }
            }
        }
        self.above.clear();
    }
}

/// The chunks of a set.
fn bits(mut chunks: Chunks) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let chunk = chunks.trailing_zeros() as usize;
        chunks &= chunks.wrapping_sub(1);
        (chunk < CHUNKS_MAX).then_some(chunk)
    })
}
