//! One message through the shared plans: from path matching to groupSequence-listSequence.
//!
//! 1. The binding paths run over the message: per element, the paths that have bound it.
//! 2. The predicate paths run below every BoundNode, all at once; what comes out is, per path, a stream
//!    of (BoundNode, nodes), in document order and without duplicates.
//! 3. The values of those nodes find the predicates that hold, per BoundNode.
//! 4. A selection reached through a predicate that holds is checked; the BoundNodes that pass are its
//!    *list*, shared by all subscriptions of the selection.
//! 5. The return paths run below the BoundNodes that some list has: streams grouped by BoundNode.
//!
//! A subscription's groupSequence-listSequence then is: for each BoundNode of its list, for each return
//! path of its template, the group of that path's stream. Nothing is copied for it, as nothing differs.
//!
//! Because streams begin at the BoundNode and not at the document node, a node is in a group once and in
//! document order whatever the paths look like: DupElim, hash joins and their optimisation by a DTD have
//! nothing left to do (ADR 0007).
//!
//! Source: paper 002, sections 3.3 and 5.2.

use super::found::{Found, Holds};
use super::probe::PredicateId;
use super::reached::{MASKED_MAX, Masks, Reached, parts_of};
use super::shared::{BindingId, Row, SharedPlans, SubscriptionNumber, is_marked};
use super::streams::{Streams, Walk};
use super::template::Leaf;
use super::values::{Look, Values, attribute_name};
use crate::engine::dfa::DfaState;
use crate::engine::paths::{PathId, PathRun, START};
use crate::xml::names::NameTable;
use crate::xml::tree::{Message, NONE};
use std::ops::Range;

/// Pairs of BoundNode and node that predicate streams gather before their values are looked up.
const PROBE_EVERY: usize = 1 << 20;
/// BoundNodes of a message up to which streams are indexed by them.
const INDEXED_MAX: usize = 1 << 12;
/// Node numbers that all columns of a message may hold together unless told otherwise: 128 MiB.
pub const ENTRIES_MAX: usize = 1 << 25;

/// The columns of a message would have grown past their bound. A message must be large and deeply nested
/// for that, and the paths must lead from nearly everywhere to nearly everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// What one worker keeps of the shared plans: caches of the automata and the columns of a message.
#[derive(Debug, Default)]
pub(crate) struct SharedRun {
    bindings: PathRun,
    predicates: PathRun,
    returns: PathRun,
    /// Per DFA state of the binding paths: the paths that end there, a bit each.
    bound_by: Vec<Option<Box<[u64]>>>,
    reached_by: Reached,
    /// Per predicate that holds: where its words are, if it is not of the base.
    places: Vec<Range<u32>>,
    masks: Masks,
    /// Number of the message; marks with it are of now.
    now: u32,
    /// Per DFA state of the binding paths: the last message with it.
    state_seen: Vec<u32>,
    /// Per binding path: the last message in which it has bound something.
    path_seen: Vec<u32>,
    /// Per element: state of the binding paths.
    reached: Vec<DfaState>,
    /// Elements that some path has bound, ascending.
    bound: Vec<u32>,
    /// Per element that is bound: its place in `bound`.
    place_of: Vec<u32>,
    /// Per element: state of a walk below a BoundNode.
    states: Vec<DfaState>,
    predicate_streams: Streams,
    return_streams: Streams,
    /// Per binding path without predicates: its BoundNodes.
    binding_lists: Vec<Vec<u32>>,
    active_bindings: Vec<PathId>,
    holds: Holds,
    values: Values,
    found: Found,
    entries_max: usize,
}

impl SharedRun {
    /// A run with empty caches; its columns may hold so many node numbers together for one message.
    pub(crate) fn new(entries_max: usize) -> Self {
        SharedRun { entries_max, ..SharedRun::default() }
    }

    /// What the last message gave.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// The nodes of a return path below a BoundNode that a list has; none is the node itself.
    #[inline]
    pub(crate) fn group(&self, path: PathId, bound: u32) -> &[u32] {
        let place = self.place_of[bound as usize];
        self.return_streams.streams[path as usize].group(bound, place)
    }

    /// Runs a message through the plans. `subscription_bound` is one past the largest number of a
    /// subscription; the bits of those of the base that have left are set in `left`.
    ///
    /// Cost: a step for each pair of a BoundNode and an element below it that a path can reach; a
    /// look-up for each value that an operand has; what holds.
    pub(crate) fn run(
        &mut self,
        plans: &SharedPlans,
        (subscription_bound, left): (usize, &[u64]),
        message: Message<'_>,
        names: &NameTable,
        cache_bytes_max: usize,
    ) -> Result<(), Overflow> {
        self.found.begin(subscription_bound);
        self.bind(plans, message, names, cache_bytes_max);
        if self.bound.is_empty() {
            return Ok(());
        }
        self.states.resize(message.tree.len().max(self.states.len()), START);
        self.find_predicates(plans, message, names, cache_bytes_max)?;
        self.select(plans)?;
        self.found.take_out(left);
        if self.found.is_empty() {
            return Ok(());
        }
        self.returns.begin(&plans.return_paths, names, cache_bytes_max / 3);
        self.return_streams.begin(plans.return_paths.len());
        let walk = Walk { paths: &plans.return_paths, message };
        for &bound in &self.bound {
            if self.found.is_wanted[bound as usize] {
                walk.below(bound, &mut self.returns, &mut self.states, &mut self.return_streams);
                self.check(self.return_streams.total)?;
            }
        }
        if self.bound.len() <= INDEXED_MAX {
            let Streams { streams, active, .. } = &mut self.return_streams;
            for &path in &*active {
                streams[path as usize].index(&self.place_of, self.bound.len());
            }
        }
        Ok(())
    }

    /// The subscriptions whose binding path has bound something in the last message: after an
    /// [`Overflow`], those that it may have kept from their results. Ascending.
    pub(crate) fn affected(&self, plans: &SharedPlans, left: &[u64]) -> Vec<SubscriptionNumber> {
        let mut affected = Vec::new();
        let mut add = |binding: BindingId, rows: &[Row]| {
            if self.path_seen[binding as usize] == self.now {
                affected.extend(rows.iter().map(|row| row.subscription));
            }
        };
        if let Some(base) = &plans.base {
            base.each_selection(|binding, _, rows| add(binding, rows));
        }
        plans.selections.iter().for_each(|selection| add(selection.binding, &selection.rows));
        affected.retain(|&subscription| !is_marked(left, subscription));
        affected.sort_unstable();
        affected
    }

    fn check(&self, total: usize) -> Result<(), Overflow> {
        let entries = total + self.holds.total + self.found.nodes.len();
        if entries > self.entries_max { Err(Overflow) } else { Ok(()) }
    }

    /// Runs the predicate paths and finds the predicates that hold, and where.
    fn find_predicates(
        &mut self,
        plans: &SharedPlans,
        message: Message<'_>,
        names: &NameTable,
        cache_bytes_max: usize,
    ) -> Result<(), Overflow> {
        self.values.begin(message.tree);
        self.holds.begin(plans.predicates.bound());
        self.predicates.begin(&plans.predicate_paths, names, cache_bytes_max / 3);
        self.predicate_streams.begin(plans.predicate_paths.len());
        let walk = Walk { paths: &plans.predicate_paths, message };
        for at in 0..self.bound.len() {
            let streams = &mut self.predicate_streams;
            walk.below(self.bound[at], &mut self.predicates, &mut self.states, streams);
            if streams.total > PROBE_EVERY {
                self.probe(plans, message, names);
                self.predicate_streams.begin(plans.predicate_paths.len());
                self.check(0)?;
            }
        }
        self.probe(plans, message, names);
        self.check(0)
    }

    /// Finds the BoundNodes of all binding paths.
    fn bind(
        &mut self,
        plans: &SharedPlans,
        message: Message<'_>,
        names: &NameTable,
        cache_bytes_max: usize,
    ) {
        let tree = message.tree;
        if self.bindings.begin(&plans.bindings, names, cache_bytes_max / 3) || self.now == u32::MAX
        {
            self.bound_by.clear();
            self.state_seen.clear();
            self.path_seen.clear();
            self.now = 0;
        }
        self.now += 1;
        self.reached_by.begin(plans, cache_bytes_max / 3);
        self.path_seen.resize(plans.bindings.len(), 0);
        for path in self.active_bindings.drain(..) {
            self.binding_lists[path as usize].clear();
        }
        self.binding_lists
            .resize_with(plans.bindings.len().max(self.binding_lists.len()), Vec::new);
        self.reached.clear();
        self.bound.clear();
        self.place_of.resize(tree.len().max(self.place_of.len()), 0);
        for (element, (&name, &parent)) in tree.name.iter().zip(&tree.parent).enumerate() {
            let from = if parent == NONE { START } else { self.reached[parent as usize] };
            let state = self.bindings.step(&plans.bindings, from, name);
            self.reached.push(state);
            let paths = self.bindings.accepted(state);
            if paths.is_empty() {
                continue;
            }
            self.place_of[element] = self.bound.len() as u32;
            self.bound.push(element as u32);
            for &path in paths {
                if plans.is_unconditional(path) {
                    let list = &mut self.binding_lists[path as usize];
                    if list.is_empty() {
                        self.active_bindings.push(path);
                    }
                    list.push(element as u32);
                }
            }
            if self.state_seen.len() <= state as usize {
                self.state_seen.resize(state as usize + 1, 0);
                self.bound_by.resize(state as usize + 1, None);
            }
            if std::mem::replace(&mut self.state_seen[state as usize], self.now) == self.now {
                continue;
            }
            paths.iter().for_each(|&path| self.path_seen[path as usize] = self.now);
            self.bound_by[state as usize].get_or_insert_with(|| {
                let mut bits = vec![0u64; plans.bindings.len().div_ceil(64)];
                paths.iter().for_each(|&path| bits[path as usize / 64] |= 1 << (path % 64));
                bits.into()
            });
        }
    }

    /// Looks up the values that the predicate streams lead to.
    fn probe(&mut self, plans: &SharedPlans, message: Message<'_>, names: &NameTable) {
        for at in 0..self.predicate_streams.active.len() {
            let path = self.predicate_streams.active[at];
            let Some(operands) = plans.operands_of.get(path as usize) else { continue };
            for &operand in operands {
                self.probe_operand(plans, operand, message, names);
            }
        }
    }

    fn probe_operand(
        &mut self,
        plans: &SharedPlans,
        operand: u32,
        message: Message<'_>,
        names: &NameTable,
    ) {
        let operand = plans.operands.get(operand);
        let stream = &self.predicate_streams.streams[operand.path as usize];
        let attribute = match &operand.leaf {
            Leaf::Attribute { uri, local } => match attribute_name(names, uri, local) {
                Some(name) => Some(name),
                None => return,
            },
            _ => None,
        };
        let holds = &mut self.holds;
        let mut look = Look { message, texts: &plans.texts, values: &mut self.values };
        for group in 0..stream.groups.len() {
            let bound = stream.groups[group].0;
            let mut hold = |predicate: PredicateId| holds.add(predicate, bound);
            for &node in &stream.nodes[stream.range(group)] {
                match (&operand.leaf, attribute) {
                    (Leaf::Element, _) => look.element(node, &operand.probe, &mut hold),
                    (Leaf::Text, _) => look.texts(node, &operand.probe, &mut hold),
                    (Leaf::Attribute { .. }, Some(name)) => {
                        look.attribute(node, name, &operand.probe, &mut hold);
                    }
                    (Leaf::Attribute { .. }, None) => {}
                }
            }
        }
    }

    /// Finds the selections with a BoundNode and marks their subscriptions.
    fn select(&mut self, plans: &SharedPlans) -> Result<(), Overflow> {
        self.found.is_wanted.clear();
        self.found.is_wanted.resize(self.reached.len(), false);
        for at in 0..self.active_bindings.len() {
            let path = self.active_bindings[at];
            let start = self.found.nodes.len();
            self.found.nodes.extend_from_slice(&self.binding_lists[path as usize]);
            let list = self.found.add_list(start);
            if let Some(base) = &plans.base {
                self.found.add_rows(base.unconditional(path), list);
            }
            for attached in plans.unconditional.get(path as usize).into_iter().flatten() {
                self.found.add_rows(&plans.selections.get(attached.selection).rows, list);
            }
        }
        // All places first, and the first word of each: so the processor waits for them together.
        self.places.clear();
        let mut touched = 0;
        for &predicate in &self.holds.active {
            if let Some(words) = plans.base_words(predicate) {
                touched ^= words[0];
                self.places.push(0..0);
            } else {
                let place = self.reached_by.place(plans, predicate);
                touched ^= self.reached_by.words[place.start as usize];
                self.places.push(place);
            }
        }
        std::hint::black_box(touched);
        for at in 0..self.holds.active.len() {
            self.select_by(plans, self.holds.active[at], self.places[at].clone())?;
        }
        Ok(())
    }

    /// Finds the selections that are reached through one predicate, from its words.
    fn select_by(
        &mut self,
        plans: &SharedPlans,
        predicate: PredicateId,
        place: Range<u32>,
    ) -> Result<(), Overflow> {
        let words = plans
            .base_words(predicate)
            .unwrap_or_else(|| &self.reached_by.words[place.start as usize..place.end as usize]);
        let (plain, rows, checked) = parts_of(words);
        let holds = self.holds.of(predicate);
        let found = &mut self.found;
        let bound_by = |binding: BindingId| {
            let (word, bit) = (binding as usize / 64, binding % 64);
            let (bound_by, states) = (&self.bound_by, &self.reached);
            move |node: u32| {
                let paths = bound_by[states[node as usize] as usize].as_deref();
                paths.is_some_and(|paths| paths[word] >> bit & 1 == 1)
            }
        };
        self.masks.0.clear();
        let mut start = 0;
        for pair in plain.chunks_exact(2) {
            let (binding, end) = (pair[0], start + 2 * pair[1] as usize);
            let own = &rows[start..end];
            start = end;
            if self.path_seen[binding as usize] != self.now {
                continue;
            }
            let is_bound = bound_by(binding);
            let list = if holds.len() <= MASKED_MAX {
                let bits = holds.iter().enumerate();
                let mask = bits.fold(0, |mask, (at, &node)| mask | u64::from(is_bound(node)) << at);
                self.masks.list(mask, holds, found)
            } else {
                let start = found.nodes.len();
                found.nodes.extend(holds.iter().copied().filter(|&node| is_bound(node)));
                (found.nodes.len() > start).then(|| found.add_list(start))
            };
            if let Some(list) = list {
                found.add(own.chunks_exact(2).map(|row| (row[0], row[1])), list);
                if found.nodes.len() > self.entries_max {
                    return Err(Overflow);
                }
            }
        }
        for pair in checked.chunks_exact(2) {
            let (binding, selection) = (pair[0], pair[1]);
            if self.path_seen[binding as usize] != self.now {
                continue;
            }
            let is_bound = bound_by(binding);
            let start = found.nodes.len();
            found.nodes.extend(holds.iter().copied().filter(|&node| is_bound(node)));
            found.check_others(plans, selection, start, &self.holds);
            if found.nodes.len() > self.entries_max {
                return Err(Overflow);
            }
        }
        Ok(())
    }
}
