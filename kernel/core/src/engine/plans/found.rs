//! What the shared plans have found in a message: lists of BoundNodes, and who has which.

use super::probe::PredicateId;
use super::shared::{Row, SelectionId, SharedPlans, SubscriptionNumber};
use super::template::TemplateId;

/// Number of a list of BoundNodes of one message.
pub(crate) type ListId = u32;

/// The BoundNodes at which predicates hold.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// By predicate: 1 + the place of its list.
    places: Vec<u32>,
    lists: Vec<Vec<u32>>,
    /// The predicates that hold somewhere.
    pub(crate) active: Vec<PredicateId>,
    /// Entries of all lists.
    pub(crate) total: usize,
}

impl Holds {
    /// Makes ready for a message, and so many predicates.
    pub(crate) fn begin(&mut self, bound: usize) {
        for (at, predicate) in self.active.drain(..).enumerate() {
            self.places[predicate as usize] = 0;
            self.lists[at].clear();
        }
        self.total = 0;
        if self.places.len() < bound {
            // Pages that are not touched take no memory.
            self.places = vec![0; bound.max(2 * self.places.len())];
        }
    }

    /// A predicate holds at a BoundNode, which is the last one of its list, or after it.
    #[inline]
    pub(crate) fn add(&mut self, predicate: PredicateId, bound: u32) {
        let place = &mut self.places[predicate as usize];
        if *place == 0 {
            self.active.push(predicate);
            *place = self.active.len() as u32;
            if self.lists.len() < self.active.len() {
                self.lists.push(Vec::new());
            }
        }
        let list = &mut self.lists[*place as usize - 1];
        if list.last() != Some(&bound) {
            list.push(bound);
            self.total += 1;
        }
    }

    /// The BoundNodes of a predicate, ascending.
    #[inline]
    pub(crate) fn of(&self, predicate: PredicateId) -> &[u32] {
        match self.places[predicate as usize] {
            0 => &[],
            place => &self.lists[place as usize - 1],
        }
    }
}

/// What a message gave: which subscriptions, and the BoundNodes of each.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// BoundNodes of all lists.
    pub(crate) nodes: Vec<u32>,
    /// Where each list is in `nodes`.
    lists: Vec<(u32, u32)>,
    /// By subscription: its list and template, if its bit is set.
    answers: Vec<(ListId, TemplateId)>,
    hits: Vec<u64>,
    count: usize,
    /// Per element: whether some list has it.
    pub(crate) is_wanted: Vec<bool>,
}

impl Found {
    pub(crate) fn begin(&mut self, bound: usize) {
        self.nodes.clear();
        self.lists.clear();
        self.count = 0;
        if self.answers.len() < bound {
            // Pages that are not touched take no memory.
            self.answers = vec![(0, 0); bound.max(2 * self.answers.len())];
        }
        self.hits.clear();
        self.hits.resize(bound.div_ceil(64), 0);
    }

    /// The BoundNodes from `start` on are a list.
    pub(crate) fn add_list(&mut self, start: usize) -> ListId {
        for &node in &self.nodes[start..] {
            self.is_wanted[node as usize] = true;
        }
        self.lists.push((start as u32, self.nodes.len() as u32));
        (self.lists.len() - 1) as ListId
    }

    /// The BoundNodes from `start` on are a selection's by its access predicate; keeps those at which
    /// its other predicates hold.
    pub(crate) fn check_others(
        &mut self,
        plans: &SharedPlans,
        selection: SelectionId,
        start: usize,
        holds: &Holds,
    ) {
        let mut check = |other: PredicateId| {
            let holds = holds.of(other);
            retain_from(&mut self.nodes, start, |node| holds.binary_search(&node).is_ok());
        };
        let rows = match &plans.base {
            Some(base) if selection < plans.selections.first() => {
                let (others, rows) = base.checked(selection);
                others.iter().copied().for_each(check);
                rows
            }
            _ => {
                let selection = plans.selections.get(selection);
                selection.others().for_each(&mut check);
                &selection.rows
            }
        };
        if self.nodes.len() > start {
            let list = self.add_list(start);
            self.add_rows(rows, list);
        }
    }

    /// Takes out the subscriptions whose bits are set.
    pub(crate) fn take_out(&mut self, left: &[u64]) {
        for (hits, left) in self.hits.iter_mut().zip(left) {
            self.count -= (*hits & left).count_ones() as usize;
            *hits &= !left;
        }
    }

    /// These subscriptions (with their templates) have the BoundNodes of a list.
    #[inline]
    pub(crate) fn add(
        &mut self,
        rows: impl ExactSizeIterator<Item = (SubscriptionNumber, TemplateId)>,
        list: ListId,
    ) {
        self.count += rows.len();
        for (subscription, template) in rows {
            let at = subscription as usize;
            self.hits[at / 64] |= 1 << (at % 64);
            self.answers[at] = (list, template);
        }
    }

    /// The same, for the rows of a selection.
    pub(crate) fn add_rows(&mut self, rows: &[Row], list: ListId) {
        self.add(rows.iter().map(|row| (row.subscription, row.template)), list);
    }

    /// Number of subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The subscriptions with a BoundNode, ascending; list and template of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SubscriptionNumber, ListId, TemplateId)> {
        self.hits.iter().enumerate().flat_map(move |(word, &bits)| {
            let mut bits = bits;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                (bits != 0).then(|| {
                    bits &= bits - 1;
                    let subscription = word as u32 * 64 + bit;
                    let (list, template) = self.answers[subscription as usize];
                    (subscription, list, template)
                })
            })
        })
    }

    /// The BoundNodes of a subscription, if it has any.
    pub(crate) fn of(&self, subscription: SubscriptionNumber) -> Option<&[u32]> {
        let at = subscription as usize;
        let is_hit = self.hits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        is_hit.then(|| self.list(self.answers[at].0))
    }

    /// The BoundNodes of a list, in document order.
    pub(crate) fn list(&self, list: ListId) -> &[u32] {
        let (start, end) = self.lists[list as usize];
        &self.nodes[start as usize..end as usize]
    }

    /// Number of lists.
    pub(crate) fn list_count(&self) -> usize {
        self.lists.len()
    }
}

/// Keeps of the nodes from `start` on those that pass.
fn retain_from(nodes: &mut Vec<u32>, start: usize, mut passes: impl FnMut(u32) -> bool) {
    let mut kept = start;
    for at in start..nodes.len() {
        if passes(nodes[at]) {
            nodes[kept] = nodes[at];
            kept += 1;
        }
    }
    nodes.truncate(kept);
}
