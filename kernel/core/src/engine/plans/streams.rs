//! Streams: what paths reach below BoundNodes, and the walk that fills them.

use crate::engine::dfa::DfaState;
use crate::engine::paths::{PathId, PathRun, PathSet, START};
use crate::xml::tree::Message;
use std::ops::Range;

/// The stream of one path: for each BoundNode, the nodes of the path below it.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// BoundNodes, ascending, and where the nodes of each begin.
    pub(crate) groups: Vec<(u32, u32)>,
    pub(crate) nodes: Vec<u32>,
    /// By the place of a BoundNode among those of the message: where its nodes begin; one entry more
    /// than there are. Empty where there are too many BoundNodes for that.
    starts: Vec<u32>,
}

impl Stream {
    pub(crate) fn push(&mut self, bound: u32, node: u32) {
        if self.groups.last().is_none_or(|&(last, _)| last != bound) {
            self.groups.push((bound, self.nodes.len() as u32));
        }
        self.nodes.push(node);
    }

    pub(crate) fn range(&self, group: usize) -> Range<usize> {
        let end = self.groups.get(group + 1).map_or(self.nodes.len(), |&(_, start)| start as usize);
        self.groups[group].1 as usize..end
    }

    /// The nodes below a BoundNode, in document order. `place` is its place among the BoundNodes of
    /// the message. Cost: a look-up, or in large messages a binary search.
    #[inline]
    pub(crate) fn group(&self, bound: u32, place: u32) -> &[u32] {
        let place = place as usize;
        match self.starts.get(place..place + 2) {
            Some(range) => &self.nodes[range[0] as usize..range[1] as usize],
            None => self.search(bound),
        }
    }

    pub(crate) fn search(&self, bound: u32) -> &[u32] {
        let found = self.groups.binary_search_by_key(&bound, |&(bound, _)| bound);
        found.map_or(&[], |group| &self.nodes[self.range(group)])
    }

    /// Makes groups quick to find.
    pub(crate) fn index(&mut self, place_of: &[u32], bound_count: usize) {
        for &(bound, start) in &self.groups {
            // Those between have no nodes: theirs begin and end where the next ones begin.
            self.starts.resize(place_of[bound as usize] as usize + 1, start);
        }
        self.starts.resize(bound_count + 1, self.nodes.len() as u32);
    }

    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.nodes.clear();
        self.starts.clear();
    }
}

/// The streams of all paths of one set.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: Vec<Stream>,
    /// Paths whose stream is not empty.
    pub(crate) active: Vec<PathId>,
    /// Nodes of all streams.
    pub(crate) total: usize,
}

impl Streams {
    pub(crate) fn begin(&mut self, path_count: usize) {
        for path in self.active.drain(..) {
            self.streams[path as usize].clear();
        }
        if self.streams.len() < path_count {
            self.streams.resize_with(path_count, Stream::default);
        }
        self.total = 0;
    }

    pub(crate) fn push(&mut self, path: PathId, bound: u32, node: u32) {
        let stream = &mut self.streams[path as usize];
        if stream.nodes.is_empty() {
            self.active.push(path);
        }
        stream.push(bound, node);
        self.total += 1;
    }
}

/// Paths that are run below BoundNodes.
pub(crate) struct Walk<'m> {
    pub(crate) paths: &'m PathSet,
    pub(crate) message: Message<'m>,
}

impl Walk<'_> {
    /// Adds to the streams what the paths reach from one BoundNode. Subtrees that no path leads into
    /// are stepped over.
    pub(crate) fn below(
        &self,
        bound: u32,
        run: &mut PathRun,
        states: &mut [DfaState],
        streams: &mut Streams,
    ) {
        let tree = self.message.tree;
        states[bound as usize] = START;
        for &path in run.accepted(START) {
            streams.push(path, bound, bound);
        }
        let end = tree.element_end[bound as usize];
        let mut element = bound + 1;
        while element < end {
            let at = element as usize;
            let from = states[tree.parent[at] as usize];
            let state = run.step(self.paths, from, tree.name[at]);
            if run.is_dead(state) {
                element = tree.element_end[at];
                continue;
            }
            states[at] = state;
            for &path in run.accepted(state) {
                streams.push(path, bound, element);
            }
            element += 1;
        }
    }
}
