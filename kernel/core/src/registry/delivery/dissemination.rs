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
//! One that has steps goes the same ways, among those of its series, on the message after the steps. They are done where
//! its gate holds, which stands among all others and asks for what must be there before.
//!
//! What they were registered as is in a [`Catalogue`]. Locks: a batch holds `renumbering` shared, so that numbers of
//! subscriptions mean the same for its whole length; a message holds `state` shared, so that a subscription counts
//! from the next message on. What subscriptions that have left leave behind goes in the background
//! ([`Dissemination::settle`]): new gates, or all subscriptions anew, are built beside the old ones and take their
//! place.

pub use super::plans::Explained;
use super::plans::{Asked, Plans, Way};
use super::query::Scope;
pub use super::series::Steps;
use super::series::{SeriesNumber, SeriesSet, gate_before};
use super::serving::Audience;
use crate::engine::interrupt::{Interrupted, look, unwatched};
use crate::engine::plans::shared::SubscriptionNumber;
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
    /// There are [`SERIES_MAX`] other series of steps.
    TooManySeries,
}

/// Different series of steps of the subscriptions.
pub const SERIES_MAX: usize = 256;

/// What may change.
#[derive(Debug, Default)]
pub struct State {
    pub(super) plans: Plans,
    pub(super) series: SeriesSet,
    catalogue: Catalogue,
    /// Changes when subscriptions get new numbers, and everything was compiled anew.
    pub(super) generation: u64,
}

/// Which of the plans of a state.
#[derive(Clone, Copy, Debug)]
enum PlansOf {
    /// Messages as they come.
    Messages,
    /// Elements of steps.
    Elements,
    /// Messages after a series of steps.
    Series(SeriesNumber),
}

/// A merge that pays.
enum Merge {
    /// [`Dissemination::rebuild`]
    All,
    /// [`Dissemination::merge_gates_of`]
    Gates(PlansOf),
}

/// Subscriptions shared by threads.
#[derive(Debug, Default)]
pub struct Dissemination {
    renumbering: RwLock<()>,
    state: RwLock<State>,
    merging: Merging,
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
            match merge {
                Some(Merge::All) => subscriptions.rebuild(),
                Some(Merge::Gates(of)) => subscriptions.merge_gates_of(of),
                None => Ok(()),
            }
        });
    }

    /// Merges the gates. Messages and changes go on meanwhile.
    ///
    /// # Errors
    /// It was interrupted; the gates are the same.
    pub fn merge_gates(&self) -> Result<(), Interrupted> {
        self.merge_gates_of(PlansOf::Messages)
    }

    fn merge_gates_of(&self, of: PlansOf) -> Result<(), Interrupted> {
        let _alone = self.merging.alone();
        let Some(merge) = self.state().plans(of).map(|plans| plans.gates.merge()) else {
            return Ok(());
        };
        let mut merged = merge.run()?;
        // A series may have gone meanwhile.
        let mut catch_up = |state: &State| {
            state.plans(of).is_none_or(|plans| merged.catch_up(&plans.gates, ENTRIES_A_LOCK))
        };
        while !catch_up(&self.state()) {}
        let mut state = write(&self.state);
        let Some(plans) = state.plans_mut(of) else { return Ok(()) };
        let gates = merged.finish(&plans.gates);
        let old = std::mem::replace(&mut plans.gates, gates);
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
        let merged = rebuilt.state.plans.gates.merge().run()?;
        rebuilt.state.plans.gates = merged.finish(&rebuilt.state.plans.gates);
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
        let until = old.plans.ways.len().min(self.is_there.len().saturating_add(most));
        for number in self.is_there.len()..until {
            let is_live = !matches!(old.plans.ways[number], Way::Unsubscribed);
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
        let is_all = until == old.plans.ways.len();
        if is_all {
            self.take_out(old);
        }
        is_all
    }

    /// Takes out the subscriptions that have left since they were taken over.
    fn take_out(&mut self, old: &State) {
        for (number, is_there) in self.is_there.iter_mut().enumerate() {
            if *is_there && matches!(old.plans.ways[number], Way::Unsubscribed) {
                *is_there = false;
                let left = old
                    .catalogue
                    .with(number as u32, |entry| self.state.unsubscribe(std::iter::once(entry.id)));
                debug_assert!(left.is_ok(), "it was taken over");
            }
        }
    }

    fn take_over(&mut self, old: &State, entry: Entry<'_>) {
        let number = entry.namespaces;
        let (scope, namespaces) = self.scopes.entry(number).or_insert_with(|| {
            let map = &old.catalogue.namespaces()[number as usize];
            (Scope::new(map.clone()), self.state.namespace_number(map))
        });
        let entry = Entry { namespaces: *namespaces, ..entry };
        let steps = old.steps(entry.id);
        let mut taken = self.state.subscribe_stepped(entry, scope, steps.as_ref());
        if taken == Err(NotTaken::TooManySeries) {
            // The room is that of somebody who has left meanwhile.
            self.take_out(old);
            let (scope, _) = &self.scopes[&number];
            taken = self.state.subscribe_stepped(entry, scope, steps.as_ref());
        }
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

    /// The steps of a subscription.
    pub fn steps(&self, id: &str) -> Option<Steps> {
        match self.plans.ways[self.number(id)? as usize] {
            Way::Stepped(series, number) => self.series.steps(series, number),
            _ => None,
        }
    }

    /// How many are in the shared plans.
    pub fn shared_len(&self) -> usize {
        self.plans.shared.len()
    }

    pub(super) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The subscriptions, of which those with steps are not served by it.
    pub(super) fn audience(&self) -> Audience<'_> {
        Audience { plans: &self.plans, catalogue: &self.catalogue, numbers: None }
    }

    /// Whether messages must be parsed with all that there is, whatever is in them.
    pub(super) fn needs_full_tree(&self) -> bool {
        self.plans.needs_full_tree() || self.series.needs_full_tree
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
        self.subscribe_stepped(subscription, scope, None)
    }

    /// Takes a subscription that sees messages after some steps, if it has any.
    ///
    /// Cost: with steps, that of a gate besides.
    ///
    /// # Errors
    /// It is not taken.
    pub fn subscribe_stepped(
        &mut self,
        subscription: Entry<'_>,
        scope: &Scope,
        steps: Option<&Steps>,
    ) -> Result<(), NotTaken> {
        let Entry { id, text, language, deliver, .. } = subscription;
        if self.number(id).is_some() {
            return Err(NotTaken::Duplicate);
        }
        let asked = Asked { text, language, deliver };
        match steps {
            None => drop(self.plans.add(asked, scope).map_err(|_| NotTaken::Refused)?),
            Some(steps) => self.add_stepped(asked, scope, steps)?,
        }
        self.catalogue.push(subscription);
        Ok(())
    }

    fn plans(&self, of: PlansOf) -> Option<&Plans> {
        match of {
            PlansOf::Messages => Some(&self.plans),
            PlansOf::Elements => Some(&self.series.finder),
            PlansOf::Series(number) => self.series.get(number).map(|series| &series.plans),
        }
    }

    fn plans_mut(&mut self, of: PlansOf) -> Option<&mut Plans> {
        match of {
            PlansOf::Messages => Some(&mut self.plans),
            PlansOf::Elements => Some(&mut self.series.finder),
            PlansOf::Series(number) => self.series.get_mut(number).map(|series| &mut series.plans),
        }
    }

    /// What pays: to build everything again, or to merge some gates.
    fn merge_that_pays(&self) -> Option<Merge> {
        if self.is_worn() {
            return Some(Merge::All);
        }
        let series = self.series.iter().map(|(number, _)| PlansOf::Series(number));
        let mut all = [PlansOf::Messages, PlansOf::Elements].into_iter().chain(series);
        let is_worn =
            |of: &PlansOf| self.plans(*of).is_some_and(|plans| plans.gates.automaton().is_worn());
        all.find(is_worn).map(Merge::Gates)
    }

    /// Takes a subscription that has steps, under the next number.
    fn add_stepped(
        &mut self,
        asked: Asked<'_>,
        scope: &Scope,
        steps: &Steps,
    ) -> Result<(), NotTaken> {
        let Steps { steps, texts } = steps;
        let gate = gate_before(asked, scope, steps).map_err(|_| NotTaken::Refused)?;
        if self.series.len() >= SERIES_MAX && self.series.of(steps).is_none() {
            return Err(NotTaken::TooManySeries);
        }
        let series = self.series.enter(steps).map_err(|_| NotTaken::Refused)?;
        let number = self.plans.ways.len() as SubscriptionNumber;
        match self.series.add(series, (asked, scope), number, texts) {
            Ok(place) => self.plans.add_stepped(&gate, series, place),
            Err(_) => {
                self.series.leave(series);
                return Err(NotTaken::Refused);
            }
        };
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
            if let Way::Stepped(series, place) = self.plans.remove(number) {
                self.series.remove(series, place);
            }
        }
        Ok(())
    }

    /// How a subscription is done, after its steps; and of how many subscriptions the steps begin with its first, with
    /// its first two, and so on.
    pub fn explain(&self, id: &str) -> Option<(Explained, Vec<usize>)> {
        let number = self.number(id)?;
        match self.plans.ways[number as usize] {
            Way::Stepped(series, place) => {
                let explained = self.series.get(series)?.plans.explain(place)?;
                Some((explained, self.series.sharing(series)))
            }
            _ => Some((self.plans.explain(number)?, Vec::new())),
        }
    }

    /// Bytes held, shared plans and programs not counted.
    pub fn memory(&self) -> usize {
        self.catalogue.memory() + self.plans.memory() + self.series.memory()
    }

    /// Whether so much of the shared plans is unused, or so many numbers are, that building everything
    /// again pays.
    fn is_worn(&self) -> bool {
        let (unused, used) = self.plans.shared.unused_and_used();
        let numbers = self.plans.ways.len();
        unused > WORN_MIN.max(used) || numbers - self.len() > WORN_MIN.max(8 * self.len())
    }
}

/// Unused paths or numbers that are always let be.
const WORN_MIN: usize = 1 << 14;
