//! The shared plans of many subscriptions, which enter and leave one by one.
//!
//! A plan is what the paper draws above the matching engine, cut where subscriptions can share it:
//!
//! - binding paths, predicate paths and return paths, each distinct one once, in three automata;
//! - *operands*: a predicate path and what of its nodes is compared. All predicates of an operand are
//!   found from a value together ([`Probe`]: the shared selection);
//! - *predicates*: true at a BoundNode or not, whatever path has bound it;
//! - *selections*: a binding path and the predicates that must hold where it has bound a node. Reached
//!   through one of the predicates, the *access predicate*, or, where there are none, the binding path;
//! - *templates*: the return clause and the frame around it, with its return paths;
//! - rows: a subscription is one row, (selection, template).
//!
//! Entering and leaving touch what the subscription itself mentions and nothing else.
//!
//! Source: paper 002, section 5 (plan sharing, incremental construction). Differs: predicates are
//! shared by binding paths too, so a shared join exists once a predicate path, not once a pair of paths;
//! several predicates are no obstacle to sharing (ADR 0007).

use super::frozen::FrozenPlans;
use super::probe::{PredicateId, Probe, Texts};
use super::template::{Leaf, Template, TemplateId, TemplateSpec, Templates};
use crate::engine::ask::Ask;
use crate::engine::paths::{PathId, PathSet};
use crate::language::comparison::Comparison;
use crate::language::query::ast::Step;
use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Number of a binding path.
pub(crate) type BindingId = PathId;
/// Number of an operand.
pub(crate) type OperandId = u32;
/// Number of a selection.
pub(crate) type SelectionId = u32;
/// Number of a subscription; 0-based, given in order of arrival.
pub(crate) type SubscriptionNumber = u32;

/// What a subscription of the shared class asks for.
#[derive(Clone, Debug)]
pub(crate) struct PlanSpec {
    /// The binding path, from the document node; location steps without predicates.
    pub(crate) binding: Vec<Step<'static>>,
    /// What must hold at a BoundNode.
    pub(crate) conditions: Vec<ConditionSpec>,
    /// What is returned for each BoundNode, and the frame around it.
    pub(crate) template: TemplateSpec,
}

/// A condition on a BoundNode: that a node of a path is so.
#[derive(Clone, Debug)]
pub(crate) struct ConditionSpec {
    /// The predicate path, relative to the BoundNode; empty for the node itself.
    pub(crate) path: Vec<Step<'static>>,
    /// What of its nodes is compared.
    pub(crate) leaf: Leaf,
    /// What is asked.
    pub(crate) ask: Ask,
}

/// A predicate path and what of its nodes is compared.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) path: PathId,
    pub(crate) leaf: Leaf,
    pub(crate) probe: Probe,
    predicates: u32,
}

#[derive(Debug)]
pub(crate) struct Predicate {
    pub(super) operand: OperandId,
    pub(super) ask: Ask,
    uses: u32,
    /// The selections that are reached through it.
    pub(crate) selections: Vec<Attached>,
}

/// A selection and its binding path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attached {
    pub(crate) binding: BindingId,
    pub(crate) selection: SelectionId,
}

#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) binding: BindingId,
    /// Ascending.
    predicates: Box<[PredicateId]>,
    access: Option<PredicateId>,
    /// Its place in the list it is reached through.
    place: u32,
    pub(crate) rows: Vec<Row>,
}

impl Selection {
    /// The predicates that are to be checked where the access predicate holds.
    pub(crate) fn others(&self) -> impl Iterator<Item = PredicateId> {
        let access = self.access;
        self.predicates.iter().copied().filter(move |&predicate| Some(predicate) != access)
    }

    /// Whether the access predicate is all.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        self.predicates.len() > 1
    }
}

/// A subscription in a selection.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Row {
    /// Which subscription.
    pub(crate) subscription: SubscriptionNumber,
    /// What it gets.
    pub(crate) template: TemplateId,
}

/// Where a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    selection: SelectionId,
    row: u32,
}

/// How many subscriptions have each part of a plan, the one that is asked about counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Those with the same binding path.
    pub binding: u32,
    /// Per distinct predicate: those with it.
    pub predicates: Vec<u32>,
    /// Those with the same binding path and the same predicates.
    pub selection: u32,
    /// Those with the same frame and return clause.
    pub template: u32,
}

/// Number of distinct things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Binding paths.
    pub bindings: usize,
    /// Predicate paths.
    pub predicate_paths: usize,
    /// Return paths.
    pub return_paths: usize,
    /// Predicates.
    pub predicates: usize,
    /// Selections.
    pub selections: usize,
    /// Templates.
    pub templates: usize,
}

/// Things that are numbered from some number on, whose numbers are used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    first: u32,
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { first: 0, items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Numbers begin with this one.
    pub(super) fn from(first: u32) -> Self {
        Slots { first, ..Slots::default() }
    }

    /// The first number.
    #[inline]
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    pub(crate) fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.items[(id - self.first) as usize] = Some(item);
                id
            }
            None => {
                self.items.push(Some(item));
                self.first + (self.items.len() - 1) as u32
            }
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> T {
        self.free.push(id);
        self.items[(id - self.first) as usize].take().expect("what is removed is there")
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        self.items[(id - self.first) as usize].as_ref().expect("only what is there is asked for")
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        self.items[(id - self.first) as usize].as_mut().expect("only what is there is asked for")
    }

    /// All things, in order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().flatten()
    }

    /// One past the largest number.
    pub(crate) fn bound(&self) -> usize {
        self.first as usize + self.items.len()
    }

    /// Number of things.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

/// The plans of all subscriptions of the shared class: those of a base, and those that came since.
///
/// Paths and operands are those of both. Predicates, selections and templates are of one of the two, and those of the base
/// have the first numbers.
#[derive(Debug, Default)]
pub(crate) struct SharedPlans {
    pub(super) base: Option<Arc<FrozenPlans>>,
    /// Subscriptions of the base that have not left.
    base_live: usize,
    pub(crate) bindings: PathSet,
    pub(crate) predicate_paths: PathSet,
    pub(crate) return_paths: PathSet,
    /// By binding path: selections without predicates.
    pub(crate) unconditional: Vec<Vec<Attached>>,
    /// By predicate path.
    pub(crate) operands_of: Vec<Vec<OperandId>>,
    pub(crate) operands: Slots<Operand>,
    pub(crate) predicates: Slots<Predicate>,
    pub(crate) texts: Texts,
    pub(crate) selections: Slots<Selection>,
    selection_index: FxHashMap<Box<[u32]>, SelectionId>,
    pub(crate) templates: Templates,
    places: FxHashMap<SubscriptionNumber, Place>,
    /// Number of changes.
    clock: u64,
    /// By predicate after those of the base: the change that was the last one to its selections. No two have the same.
    versions: Vec<u64>,
    key: Vec<u32>,
}

impl SharedPlans {
    /// When the selections that are reached through a predicate last changed.
    #[inline]
    pub(crate) fn version(&self, predicate: PredicateId) -> u64 {
        self.versions[(predicate - self.predicates.first()) as usize]
    }

    /// The plans of a base, of so many subscriptions. Cost: that of its distinct paths and operands.
    pub(crate) fn on(base: Arc<FrozenPlans>, live: usize) -> SharedPlans {
        let [bindings, mut predicate_paths, return_paths] = base.paths();
        let mut operands_of = vec![Vec::new(); predicate_paths.len()];
        let mut operands = Slots::default();
        for (path, leaf) in base.operands() {
            let number = operands.bound() as OperandId;
            let probe = Probe::on(Arc::clone(&base), number);
            // The predicates of the base are one that stays.
            operands_of[path as usize].push(operands.insert(Operand {
                path,
                leaf,
                probe,
                predicates: 1,
            }));
            predicate_paths.enter(path);
        }
        SharedPlans {
            bindings,
            predicate_paths,
            return_paths,
            operands_of,
            operands,
            predicates: Slots::from(base.predicate_count() as PredicateId),
            texts: Texts::on(Arc::clone(&base)),
            selections: Slots::from(base.checked_count() as SelectionId),
            templates: Templates::on(Arc::clone(&base)),
            base_live: live,
            base: Some(base),
            ..SharedPlans::default()
        }
    }

    /// Number of subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.base_live + self.places.len()
    }

    /// What a predicate of the base reaches; none if it is not of the base.
    #[inline]
    pub(super) fn base_words(&self, predicate: PredicateId) -> Option<&[u32]> {
        let base = self.base.as_ref().filter(|_| predicate < self.predicates.first())?;
        Some(base.words(predicate))
    }

    /// Whether a binding path is all that some selection asks for.
    #[inline]
    pub(super) fn is_unconditional(&self, binding: BindingId) -> bool {
        self.unconditional.get(binding as usize).is_some_and(|list| !list.is_empty())
            || self.base.as_ref().is_some_and(|base| !base.unconditional(binding).is_empty())
    }

    /// A subscription of the base has left.
    pub(crate) fn leave_base(&mut self) {
        self.base_live -= 1;
    }

    /// Number of paths in the automata that nobody uses, and that somebody uses.
    pub(crate) fn unused_and_used(&self) -> (usize, usize) {
        let sets = [&self.bindings, &self.predicate_paths, &self.return_paths];
        let unused = sets.iter().map(|set| set.unused()).sum();
        (unused, sets.iter().map(|set| set.len()).sum::<usize>() - unused)
    }

    /// Number of distinct things of the base, those of which all have left counted, and of what came since.
    pub(crate) fn counts(&self) -> Counts {
        let counts = Counts {
            bindings: self.bindings.len() - self.bindings.unused(),
            predicate_paths: self.predicate_paths.len() - self.predicate_paths.unused(),
            return_paths: self.return_paths.len() - self.return_paths.unused(),
            predicates: self.predicates.len(),
            selections: self.selections.len(),
            templates: self.templates.iter().count(),
        };
        match &self.base {
            None => counts,
            Some(base) => Counts {
                predicates: base.predicate_count() + counts.predicates,
                selections: base.selection_count() + counts.selections,
                templates: base.template_count() + counts.templates,
                ..counts
            },
        }
    }

    /// The predicate of the base that is equal to one that came since.
    fn of_base(&self, predicate: PredicateId) -> Option<PredicateId> {
        let Predicate { operand, ask, .. } = self.predicates.get(predicate);
        self.base.as_ref()?.find(*operand, ask)
    }

    /// Adds a subscription, whose number is not in use.
    ///
    /// Cost: one look-up a location step, a predicate, the selection and the template.
    pub(crate) fn enter(&mut self, subscription: SubscriptionNumber, spec: &PlanSpec) {
        let binding = self.bindings.intern(&spec.binding);
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for condition in &spec.conditions {
            let predicate = self.enter_predicate(condition);
            key.push(predicate);
        }
        key.sort_unstable();
        key.dedup();
        let template = self.enter_template(&spec.template);
        key.push(binding);
        let selection = match self.selection_index.get(&key[..]) {
            Some(&selection) => selection,
            None => self.add_selection(binding, &key),
        };
        self.key = key;
        let rows = &mut self.selections.get_mut(selection).rows;
        let row = rows.len() as u32;
        rows.push(Row { subscription, template });
        self.places.insert(subscription, Place { selection, row });
        self.changed(selection);
    }

    /// What was kept of the access predicate of a selection is out of date.
    fn changed(&mut self, selection: SelectionId) {
        self.clock += 1;
        if let Some(access) = self.selections.get(selection).access {
            self.versions[(access - self.predicates.first()) as usize] = self.clock;
        }
    }

    /// Takes a subscription out; false if it is not there. Cost: as [`SharedPlans::enter`].
    pub(crate) fn leave(&mut self, subscription: SubscriptionNumber) -> bool {
        let Some(Place { selection: id, row }) = self.places.remove(&subscription) else {
            return false;
        };
        let selection = self.selections.get_mut(id);
        let Row { template, .. } = selection.rows.swap_remove(row as usize);
        if let Some(moved) = selection.rows.get(row as usize) {
            let place = self.places.get_mut(&moved.subscription);
            place.expect("a row belongs to a subscription").row = row;
        }
        let is_unused = selection.rows.is_empty();
        self.changed(id);
        self.leave_template(template);
        if is_unused {
            self.remove_selection(id);
        }
        true
    }

    /// What a subscription shares with how many; `left` are those of the base that have left. Cost: a look at every
    /// selection.
    pub(crate) fn sharing(
        &self,
        subscription: SubscriptionNumber,
        left: &[u64],
    ) -> Option<Sharing> {
        let mut all: Vec<SelectionParts> = Vec::new();
        if let Some(base) = &self.base {
            base.each_selection(|binding, predicates, rows| {
                let is_there = |row: &Row| !is_marked(left, row.subscription);
                let rows = rows.iter().copied().filter(is_there).collect();
                all.push((binding, predicates.to_vec(), rows));
            });
        }
        for Selection { binding, predicates, rows, .. } in self.selections.iter() {
            let number = |&predicate: &PredicateId| self.of_base(predicate).unwrap_or(predicate);
            all.push((*binding, predicates.iter().map(number).collect(), rows.clone()));
        }
        let is_own = |row: &&Row| row.subscription == subscription;
        let (own, number) =
            all.iter().find_map(|each| Some((each, each.2.iter().find(is_own)?.template)))?;
        let template = self.templates.get(number);
        let of_base = self.base.as_ref().and_then(|base| base.find_template(template));
        let alike = [of_base, self.templates.find(template)];
        let rows = |shares: &dyn Fn(&SelectionParts) -> bool| -> u32 {
            all.iter().filter(|each| shares(each)).map(|each| each.2.len() as u32).sum()
        };
        let has = |each: &SelectionParts, predicate: &PredicateId| each.1.contains(predicate);
        Some(Sharing {
            binding: rows(&|each| each.0 == own.0),
            predicates: own.1.iter().map(|one| rows(&|each| has(each, one))).collect(),
            selection: rows(&|each| {
                each.0 == own.0
                    && each.1.len() == own.1.len()
                    && own.1.iter().all(|one| has(each, one))
            }),
            template: all
                .iter()
                .flat_map(|each| &each.2)
                .filter(|row| alike.contains(&Some(row.template)))
                .count() as u32,
        })
    }

    /// The predicate of a condition; it is counted as used only by selections.
    fn enter_predicate(&mut self, condition: &ConditionSpec) -> PredicateId {
        let path = self.predicate_paths.intern(&condition.path);
        if self.operands_of.len() <= path as usize {
            self.operands_of.resize_with(path as usize + 1, Vec::new);
        }
        let known = self.operands_of[path as usize]
            .iter()
            .copied()
            .find(|&operand| self.operands.get(operand).leaf == condition.leaf);
        let operand = known.unwrap_or_else(|| {
            let leaf = condition.leaf.clone();
            let probe = Probe::default();
            let operand = self.operands.insert(Operand { path, leaf, probe, predicates: 0 });
            self.operands_of[path as usize].push(operand);
            self.predicate_paths.enter(path);
            operand
        });
        let probe = &mut self.operands.get_mut(operand).probe;
        if let Some(predicate) = probe.find(&condition.ask, &self.texts) {
            return predicate;
        }
        let ask = condition.ask.clone();
        let predicate = Predicate { operand, ask, uses: 0, selections: vec![] };
        let predicate = self.predicates.insert(predicate);
        self.versions.resize(self.predicates.bound() - self.predicates.first() as usize, 0);
        let operand = self.operands.get_mut(operand);
        operand.probe.insert(&condition.ask, predicate, &mut self.texts);
        operand.predicates += 1;
        predicate
    }

    fn add_selection(&mut self, binding: BindingId, key: &[u32]) -> SelectionId {
        let predicates: Box<[PredicateId]> = key[..key.len() - 1].into();
        self.bindings.enter(binding);
        for &predicate in &predicates {
            self.predicates.get_mut(predicate).uses += 1;
        }
        let access = predicates.iter().copied().min_by_key(|&predicate| {
            let predicate = self.predicates.get(predicate);
            (rank(&predicate.ask), predicate.selections.len())
        });
        let selection = self.selections.insert(Selection {
            binding,
            predicates,
            access,
            place: 0,
            rows: Vec::new(),
        });
        let list = self.reaching(binding, access);
        let place = list.len() as u32;
        list.push(Attached { binding, selection });
        self.selections.get_mut(selection).place = place;
        self.selection_index.insert(key.into(), selection);
        selection
    }

    fn remove_selection(&mut self, id: SelectionId) {
        let Selection { binding, predicates, access, place, .. } = self.selections.remove(id);
        let list = self.reaching(binding, access);
        list.swap_remove(place as usize);
        if let Some(moved) = list.get(place as usize).map(|attached| attached.selection) {
            self.selections.get_mut(moved).place = place;
        }
        let mut key = predicates.to_vec();
        key.push(binding);
        self.selection_index.remove(&key[..]);
        self.bindings.leave(binding);
        for &predicate in &predicates {
            self.leave_predicate(predicate);
        }
    }

    /// The list of selections that are reached through the access predicate or the binding path.
    fn reaching(&mut self, binding: BindingId, access: Option<PredicateId>) -> &mut Vec<Attached> {
        match access {
            Some(access) => &mut self.predicates.get_mut(access).selections,
            None => {
                if self.unconditional.len() <= binding as usize {
                    self.unconditional.resize_with(binding as usize + 1, Vec::new);
                }
                &mut self.unconditional[binding as usize]
            }
        }
    }

    fn leave_predicate(&mut self, id: PredicateId) {
        let predicate = self.predicates.get_mut(id);
        predicate.uses -= 1;
        if predicate.uses > 0 {
            return;
        }
        let Predicate { operand: operand_id, ask, .. } = self.predicates.remove(id);
        let operand = self.operands.get_mut(operand_id);
        operand.probe.remove(&ask, &mut self.texts);
        operand.predicates -= 1;
        if operand.predicates == 0 {
            let Operand { path, .. } = self.operands.remove(operand_id);
            self.operands_of[path as usize].retain(|&operand| operand != operand_id);
            self.predicate_paths.leave(path);
        }
    }

    fn enter_template(&mut self, spec: &TemplateSpec) -> TemplateId {
        let paths = &mut self.return_paths;
        let template = Template::new(spec, |path| paths.intern(path));
        let id = self.templates.enter(template);
        if self.templates.get(id).uses == 1 {
            for path in self.templates.get(id).paths() {
                self.return_paths.enter(path);
            }
        }
        id
    }

    fn leave_template(&mut self, id: TemplateId) {
        if let Some(template) = self.templates.leave(id) {
            for path in template.paths() {
                self.return_paths.leave(path);
            }
        }
    }
}

/// Binding path, predicates and rows of a selection.
type SelectionParts = (BindingId, Vec<PredicateId>, Vec<Row>);

/// Whether the bit of a number is set.
pub(super) fn is_marked(bits: &[u64], number: u32) -> bool {
    bits.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
}

/// The order in which predicates are asked: those that fewer values satisfy first.
fn rank(ask: &Ask) -> u8 {
    match ask {
        Ask::Text(Comparison::Eq, _) => 0,
        Ask::Cast(Comparison::Eq, _) | Ask::OneOf(_) | Ask::NumberOf(..) => 1,
        Ask::Text(Comparison::Ne, _) | Ask::Cast(Comparison::Ne, _) => 3,
        Ask::Exists => 4,
        _ => 2,
    }
}
