//! Subscriptions of all kinds behind one face, changing while messages flow.
//!
//! A subscription goes one of three ways:
//!
//! - *shared*: its plan is one of the shared plans; everything that it has in common with others is
//!   done once;
//! - *gated*: it is a program, run on the messages in which one of its gate paths holds. The gate is a
//!   query of the index, so that a hundred thousand of them cost what a hundred thousand queries cost;
//! - *filtering*: a bare XPath whose messages are delivered as they are; a query of the index.
//!
//! What they were registered as is in a [`Catalogue`]. Locks: a batch holds `renumbering` shared, so that numbers of
//! subscriptions mean the same for its whole length; a message holds `state` shared, so that a subscription counts
//! from the next message on. What subscriptions that have left leave behind goes in the background
//! ([`Dissemination::settle`]): new gates, or all subscriptions anew, are built beside the old ones and take their
//! place.

use super::gates::Gates;
use super::query::{Refused, Scope, SubscriptionQuery, shared_plan_of_path};
use crate::engine::interrupt::{Interrupted, look, unwatched};
use crate::engine::plans::shared::{Counts, PlanSpec, SharedPlans, Sharing, SubscriptionNumber};
use crate::language::choice::begins_as_xquery;
use crate::language::compile::{CompiledQuery, Evaluated, compile_gate, compile_query};
use crate::language::gates::condition_of;
use crate::language::query::ast::Step;
use crate::language::query::compile;
use crate::language::tree;
use crate::language::xpath::Expression;
use crate::language::xquery::{Program, undeliverable_part};
use crate::registry::catalogue::{Catalogue, IdTable};
pub use crate::registry::catalogue::{Deliver, Entry};
use crate::registry::merging::{ENTRIES_A_LOCK, Merging, SUBSCRIPTIONS_A_LOCK, read, write};
use crate::registry::snapshot::NamespaceMap;
use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

/// Why a subscription was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The id is taken.
    Duplicate,
    /// The text is no query, is over a limit, or cannot be delivered so.
    Refused,
}

/// What is done for a subscription.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Nothing: it has left.
    Unsubscribed,
    /// It is among the shared plans.
    Shared,
    /// A program, run where the gate holds.
    Program(Arc<Program>, Deliver),
    /// Nodes of an expression, selected where the gate holds.
    Selection(Arc<Expression>),
    /// Where the query holds, the message or the fact.
    Filter(Deliver),
}

/// What may change.
#[derive(Debug, Default)]
pub struct State {
    pub(super) plans: SharedPlans,
    pub(super) ways: Vec<Way>,
    pub(super) gates: Gates,
    catalogue: Catalogue,
    /// Programs that need comments, instructions or prefixes.
    full_tree_users: usize,
    gated: usize,
    /// Changes when subscriptions get new numbers, and everything was compiled anew.
    pub(super) generation: u64,
}

/// Subscriptions shared by threads.
#[derive(Debug, Default)]
pub struct Dissemination {
    renumbering: RwLock<()>,
    state: RwLock<State>,
    merging: Merging,
}

/// How a subscription is done, for `explain`.
#[derive(Clone, Debug)]
pub enum Explained {
    /// Among the shared plans, and what it shares.
    Shared(Sharing, Counts),
    /// Run where its gate holds.
    Gated,
    /// Nodes selected where its gate holds.
    Selecting,
    /// A query of the index.
    Filtering,
}

impl Dissemination {
    /// Keeps numbers of subscriptions as they are while the guard lives.
    pub fn pin_numbers(&self) -> RwLockReadGuard<'_, ()> {
        read(&self.renumbering)
    }

    /// The state, for one message or one look.
    pub fn state(&self) -> RwLockReadGuard<'_, State> {
        read(&self.state)
    }

    /// Changes many subscriptions under one lock.
    pub fn change<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut write(&self.state))
    }

    /// Begins in the background what pays: to merge the gates that came or left, or to build everything anew without
    /// what subscriptions that have left have left behind. Called before a batch.
    pub fn settle(self: &Arc<Self>) {
        if self.state().merge_that_pays().is_none() {
            return;
        }
        let subscriptions = Arc::clone(self);
        self.merging.begin(move || {
            // Another merge may have ended since.
            let merge = subscriptions.state().merge_that_pays();
            merge.map_or(Ok(()), |merge| merge(&subscriptions))
        });
    }

    /// Merges the gates. Messages and changes go on meanwhile.
    ///
    /// # Errors
    /// It was interrupted; the gates are the same.
    pub fn merge_gates(&self) -> Result<(), Interrupted> {
        let _alone = self.merging.alone();
        let merge = self.state().gates.merge();
        let mut merged = merge.run()?;
        while !merged.catch_up(&self.state().gates, ENTRIES_A_LOCK) {}
        let mut state = write(&self.state);
        let gates = merged.finish(&state.gates);
        let old = std::mem::replace(&mut state.gates, gates);
        drop(state);
        // Messages and changes do not wait for it.
        drop(old);
        Ok(())
    }

    /// Subscribes all that are there to a new state, under new numbers, which then takes the place of the old one.
    /// Messages and changes go on meanwhile.
    ///
    /// Cost: as to subscribe them all. Memory: the new state beside the old one.
    ///
    /// # Errors
    /// It was interrupted; the state is the same.
    pub fn rebuild(&self) -> Result<(), Interrupted> {
        let _alone = self.merging.alone();
        let mut rebuilt = Rebuilt::default();
        rebuilt.follow(self)?;
        let merged = rebuilt.state.gates.merge().run()?;
        rebuilt.state.gates = merged.finish(&rebuilt.state.gates);
        rebuilt.follow(self)?;
        let renumbering = write(&self.renumbering);
        let mut state = write(&self.state);
        unwatched(|| rebuilt.catch_up(&state, usize::MAX));
        rebuilt.state.generation = state.generation + 1;
        let old = std::mem::replace(&mut *state, rebuilt.state);
        drop((state, renumbering));
        drop(old);
        Ok(())
    }
}

/// [`Dissemination::rebuild`] or [`Dissemination::merge_gates`].
type SubscriptionMerge = fn(&Dissemination) -> Result<(), Interrupted>;

/// A new state that is to take the place of the one it is made from.
#[derive(Debug, Default)]
struct Rebuilt {
    state: State,
    /// By number in the old state: whether it is in the new one.
    is_there: Vec<bool>,
    /// By number of the namespace map in the old state: that in the new one.
    scopes: HashMap<u32, (Scope, u32)>,
}

impl Rebuilt {
    /// Takes over what is not there, in pieces that are not interrupted: half a query would be subscribed.
    fn follow(&mut self, subscriptions: &Dissemination) -> Result<(), Interrupted> {
        while !unwatched(|| self.catch_up(&subscriptions.state(), SUBSCRIPTIONS_A_LOCK)) {
            if look() {
                return Err(Interrupted);
            }
        }
        Ok(())
    }

    /// Takes over at most so many of the subscriptions that are not there; whether that was all, and those that have
    /// left are taken out.
    fn catch_up(&mut self, old: &State, most: usize) -> bool {
        let until = old.ways.len().min(self.is_there.len().saturating_add(most));
        for number in self.is_there.len()..until {
            let is_live = !matches!(old.ways[number], Way::Unsubscribed);
            if is_live {
                old.catalogue.with(number as u32, |entry| {
                    if self.state.number(entry.id).is_some() {
                        // That of somebody who has left meanwhile.
                        self.take_out(old);
                    }
                    self.take_over(old, entry);
                });
            }
            self.is_there.push(is_live);
        }
        let is_all = until == old.ways.len();
        if is_all {
            self.take_out(old);
        }
        is_all
    }

    /// Takes out the subscriptions that have left since they were taken over.
    fn take_out(&mut self, old: &State) {
        for (number, is_there) in self.is_there.iter_mut().enumerate() {
            if *is_there && matches!(old.ways[number], Way::Unsubscribed) {
                *is_there = false;
                let left = old
                    .catalogue
                    .with(number as u32, |entry| self.state.unsubscribe(std::iter::once(entry.id)));
                debug_assert!(left.is_ok(), "it was taken over");
            }
        }
    }

    fn take_over(&mut self, old: &State, entry: Entry<'_>) {
        let (scope, namespaces) = self.scopes.entry(entry.namespaces).or_insert_with(|| {
            let map = &old.catalogue.namespaces()[entry.namespaces as usize];
            (Scope::new(map.clone()), self.state.namespace_number(map))
        });
        let taken = self.state.subscribe(Entry { namespaces: *namespaces, ..entry }, scope);
        debug_assert!(taken.is_ok(), "it was taken before");
    }
}

impl State {
    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.catalogue.live_len()
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of the numbers of now and of those to come.
    pub fn ids(&self) -> IdTable {
        self.catalogue.ids(None)
    }

    /// The number of an id.
    pub fn number(&self, id: &str) -> Option<SubscriptionNumber> {
        self.catalogue.number_of(id)
    }

    /// The subscription of an id, and its namespaces.
    pub fn find<T>(&self, id: &str, f: impl FnOnce(Entry<'_>, &NamespaceMap) -> T) -> Option<T> {
        let number = self.number(id)?;
        Some(self.catalogue.with(number, |entry| {
            f(entry, &self.catalogue.namespaces()[entry.namespaces as usize])
        }))
    }

    /// How many are in the shared plans.
    pub fn shared_len(&self) -> usize {
        self.plans.len()
    }

    /// Whether messages must be parsed with all that there is, whatever is in them.
    pub(super) fn needs_full_tree(&self) -> bool {
        self.full_tree_users > 0
    }

    /// Whether any subscription needs the gate.
    pub(super) fn has_gated(&self) -> bool {
        self.gated > 0
    }

    /// The number of a namespace map, for [`State::subscribe`]; valid until the numbers of subscriptions change. Cost: a
    /// hash of it.
    pub fn namespace_number(&mut self, namespaces: &NamespaceMap) -> u32 {
        self.catalogue.namespace_number(namespaces)
    }

    /// Takes a subscription, whose namespaces are those of the scope: reads its text, once, and registers what it
    /// becomes.
    ///
    /// Cost: about 3 µs in the shared class; some tens of microseconds for programs that need a gate.
    ///
    /// # Errors
    /// It is not taken.
    pub fn subscribe(&mut self, subscription: Entry<'_>, scope: &Scope) -> Result<(), NotTaken> {
        let Entry { id, text, language, deliver, .. } = subscription;
        if self.number(id).is_some() {
            return Err(NotTaken::Duplicate);
        }
        // The usual notations of paths, which take less time. A text of which XPath 1.0 was asked may be XQuery.
        if language.is_none() && !begins_as_xquery(text) {
            if let Some(spec) = shared_plan_of_path(text, scope, deliver) {
                self.add_shared(subscription, &spec);
                return Ok(());
            }
            if deliver != Deliver::Fragment
                && let Ok(steps) = compile(text, &scope.resolver)
            {
                self.add_gate(&[&steps], None);
                self.add(subscription, Way::Filter(deliver));
                return Ok(());
            }
        }
        let query = SubscriptionQuery::read(text, language, scope, deliver)
            .map_err(|Refused| NotTaken::Refused)?;
        if let Some(spec) = query.shared_plan(text, scope, deliver) {
            self.add_shared(subscription, &spec);
            return Ok(());
        }
        match query {
            SubscriptionQuery::XQuery(program) => self.subscribe_program(subscription, program),
            SubscriptionQuery::XPath(tree) => self.subscribe_xpath(subscription, &tree),
        }
    }

    fn subscribe_program(
        &mut self,
        subscription: Entry<'_>,
        program: Arc<Program>,
    ) -> Result<(), NotTaken> {
        let deliver = subscription.deliver;
        let is_condition = deliver != Deliver::Fragment;
        if undeliverable_part(&program, is_condition).is_some() {
            return Err(NotTaken::Refused);
        }
        let condition = condition_of(&program, is_condition);
        self.add_compiled_gate(&compile_gate(&condition, is_condition));
        self.add(subscription, Way::Program(program, deliver));
        Ok(())
    }

    fn subscribe_xpath(
        &mut self,
        subscription: Entry<'_>,
        tree: &tree::Expr,
    ) -> Result<(), NotTaken> {
        let compiled = compile_query(tree).map_err(|_| NotTaken::Refused)?;
        let way = match subscription.deliver {
            Deliver::Fragment => Way::Selection(Arc::new(Expression::of(tree))),
            deliver => Way::Filter(deliver),
        };
        self.add_compiled_gate(&compiled);
        self.add(subscription, way);
        Ok(())
    }

    /// Takes subscriptions out, all or, if an id is unknown, none; gives its place in the list then.
    pub fn unsubscribe<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Result<(), usize> {
        let ids: Vec<&str> = ids.collect();
        if let Some(at) = ids.iter().position(|id| self.number(id).is_none()) {
            return Err(at);
        }
        for id in ids {
            // An id may stand in the list twice.
            let Some(number) = self.number(id) else { continue };
            self.catalogue.remove(number);
            match std::mem::replace(&mut self.ways[number as usize], Way::Unsubscribed) {
                Way::Unsubscribed => {}
                Way::Shared => drop(self.plans.leave(number)),
                way => {
                    self.gated -= 1;
                    self.full_tree_users -= usize::from(way.needs_full_tree());
                    self.gates.remove(number);
                }
            }
        }
        Ok(())
    }

    /// How a subscription is done.
    pub fn explain(&self, id: &str) -> Option<Explained> {
        let number = self.number(id)?;
        Some(match &self.ways[number as usize] {
            Way::Unsubscribed => return None,
            Way::Shared => Explained::Shared(self.plans.sharing(number)?, self.plans.counts()),
            Way::Program(..) => Explained::Gated,
            Way::Selection(_) => Explained::Selecting,
            Way::Filter(_) => Explained::Filtering,
        })
    }

    /// Bytes held, shared plans and programs not counted.
    pub fn memory(&self) -> usize {
        self.catalogue.memory() + self.gates.memory() + self.ways.capacity() * size_of::<Way>()
    }

    /// Whether so much of the shared plans is unused, or so many numbers are, that building everything
    /// again pays.
    fn is_worn(&self) -> bool {
        let (unused, used) = self.plans.unused_and_used();
        unused > WORN_MIN.max(used) || self.ways.len() - self.len() > WORN_MIN.max(8 * self.len())
    }

    /// What pays: to build everything again, or to merge the gates.
    fn merge_that_pays(&self) -> Option<SubscriptionMerge> {
        if self.is_worn() {
            return Some(Dissemination::rebuild);
        }
        self.gates.automaton().is_worn().then_some(Dissemination::merge_gates)
    }

    fn add_shared(&mut self, subscription: Entry<'_>, spec: &PlanSpec) {
        let number = self.add(subscription, Way::Shared);
        self.plans.enter(number, spec);
    }

    fn add(&mut self, subscription: Entry<'_>, way: Way) -> SubscriptionNumber {
        self.full_tree_users += usize::from(way.needs_full_tree());
        self.gated += usize::from(!matches!(way, Way::Shared));
        self.ways.push(way);
        self.catalogue.push(subscription)
    }

    fn add_compiled_gate(&mut self, compiled: &CompiledQuery<'_>) {
        let paths: Vec<&[Step<'_>]> =
            compiled.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.add_gate(&paths, compiled.expression.as_ref());
    }

    /// Adds the gate of the subscription that is added next.
    fn add_gate(&mut self, alternatives: &[&[Step<'_>]], expression: Option<&Evaluated>) {
        let number = self.ways.len() as SubscriptionNumber;
        self.gates.add(number, alternatives, expression);
    }
}

impl Way {
    fn needs_full_tree(&self) -> bool {
        match self {
            Way::Program(program, _) => program.needs_full_tree(),
            Way::Selection(expression) => expression.needs_full_tree(),
            Way::Unsubscribed | Way::Shared | Way::Filter(_) => false,
        }
    }
}

/// Unused paths or numbers that are always let be.
const WORN_MIN: usize = 1 << 14;
