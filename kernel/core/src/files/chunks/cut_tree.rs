//! The label paths that chunks ask for, as a trie, and the schema that messages are held to.

use crate::xml::names::{NameId, NameTable, hash_name};

/// A set of chunks, one bit each.
pub type Chunks = u64;

/// How many chunks there can be.
pub const CHUNKS_MAX: usize = Chunks::BITS as usize;

/// Number of a node of the trie; 0 is the document node.
pub(crate) type NodeId = u32;

/// No node: nothing below is asked for.
pub(crate) const NO_NODE: NodeId = NodeId::MAX;

/// Number of a name that the trie or the schema knows.
pub(crate) type Symbol = u32;

/// Namespace URI ("" for none) and local name.
pub(crate) type ExpandedName<'a> = (&'a str, &'a str);

/// A name that neither knows.
pub(crate) const UNKNOWN: Symbol = Symbol::MAX;

#[derive(Debug, Default)]
struct Node {
    /// Sorted by symbol.
    below: Vec<(Symbol, NodeId)>,
    single: Chunks,
    content: Chunks,
}

/// What a chunker cuts at.
#[derive(Debug)]
pub struct CutTree {
    names: NameTable,
    nodes: Vec<Node>,
    chunks: usize,
    schema: Option<Schema>,
}

/// Which element may stand in which, as bits: row of the parent, column of the child.
#[derive(Debug)]
struct Schema {
    root: Symbol,
    width: usize,
    edges: Vec<u64>,
}

impl CutTree {
    /// A trie without label paths, for so many chunks.
    ///
    /// # Panics
    ///
    /// If there are more than [`CHUNKS_MAX`].
    pub fn new(chunks: usize) -> Self {
        assert!(chunks <= CHUNKS_MAX, "{chunks} chunks");
        let nodes = vec![Node::default()];
        Self { names: NameTable::default(), nodes, chunks, schema: None }
    }

    /// How many chunks there are.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks
    }

    /// Adds a label path, from the root element down.
    ///
    /// # Arguments
    ///
    /// * `single` - chunks that keep the nodes there, as start tag and end tag.
    /// * `content` - chunks that keep them with all that is in them.
    pub fn add(&mut self, path: &[ExpandedName<'_>], single: Chunks, content: Chunks) {
        let mut here = 0;
        for &(uri, local) in path {
            let symbol = self.names.intern(uri, local);
            let below = &self.nodes[here as usize].below;
            here = match below.binary_search_by_key(&symbol, |&(symbol, _)| symbol) {
                Ok(place) => below[place].1,
                Err(place) => {
                    let node = self.nodes.len() as NodeId;
                    self.nodes[here as usize].below.insert(place, (symbol, node));
                    self.nodes.push(Node::default());
                    node
                }
            };
        }
        let node = &mut self.nodes[here as usize];
        node.single |= single;
        node.content |= content;
    }

    /// Sets the schema: the root element, and pairs of parent and child.
    pub fn set_schema(
        &mut self,
        root: ExpandedName<'_>,
        edges: &[(ExpandedName<'_>, ExpandedName<'_>)],
    ) {
        let root = self.names.intern(root.0, root.1);
        let pairs: Vec<(Symbol, Symbol)> = edges
            .iter()
            .map(|&((uri, local), (child_uri, child))| {
                (self.names.intern(uri, local), self.names.intern(child_uri, child))
            })
            .collect();
        let width = self.names.len().div_ceil(64);
        let mut bits = vec![0; width * self.names.len()];
        for (parent, child) in pairs {
            bits[parent as usize * width + child as usize / 64] |= 1 << (child % 64);
        }
        self.schema = Some(Schema { root, width, edges: bits });
    }

    /// The symbol of a name of a message.
    pub(super) fn symbol(&self, names: &NameTable, id: NameId) -> Symbol {
        let (uri, local) = (names.uri(id), names.local(id));
        let found = self.names.find(hash_name(uri, local), uri.as_bytes(), local.as_bytes());
        found.unwrap_or(UNKNOWN)
    }

    /// Whether messages are held to a schema.
    #[inline]
    pub(super) fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// Where a name leads from a node.
    #[inline]
    pub(super) fn below(&self, node: NodeId, symbol: Symbol) -> NodeId {
        if node == NO_NODE || symbol == UNKNOWN {
            return NO_NODE;
        }
        let below = &self.nodes[node as usize].below;
        // Of few, looking at each is quicker.
        let place = match below.len() {
            ..=8 => below.iter().position(|&(other, _)| other == symbol),
            _ => below.binary_search_by_key(&symbol, |&(symbol, _)| symbol).ok(),
        };
        place.map_or(NO_NODE, |place| below[place].1)
    }

    /// Whether a label path goes on below a node.
    #[inline]
    pub(super) fn goes_on(&self, node: NodeId) -> bool {
        node != NO_NODE && !self.nodes[node as usize].below.is_empty()
    }

    /// Chunks that keep a node alone, and with its content.
    #[inline]
    pub(super) fn kept(&self, node: NodeId) -> (Chunks, Chunks) {
        if node == NO_NODE {
            return (0, 0);
        }
        let node = &self.nodes[node as usize];
        (node.single, node.content)
    }

    /// Whether an element may stand in its parent (`None` for the root element).
    #[inline]
    pub(super) fn allows(&self, parent: Option<Symbol>, child: Symbol) -> bool {
        let Some(schema) = &self.schema else { return true };
        match parent {
            None => child == schema.root,
            Some(parent) if parent != UNKNOWN && child != UNKNOWN => {
                let (row, column) = (parent as usize * schema.width, child as usize);
                // Names of label paths that the schema lacks come after its own.
                schema
                    .edges
                    .get(row + column / 64)
                    .is_some_and(|bits| bits >> (column % 64) & 1 == 1)
            }
            Some(_) => false,
        }
    }
}
