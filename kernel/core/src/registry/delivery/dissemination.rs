//! Subscriptions of all kinds, and filter queries, behind one face, changing while messages flow.
//!
//! A subscription goes one of three ways:
//!
//! - *shared*: its plan is one of the shared plans; everything that it has in common with others is
//!   done once;
//! - *gated*: it is a program, run on the messages in which one of its gate paths holds. The gate is a
//!   query of the automaton, so that a hundred thousand of them cost what a hundred thousand queries cost;
//! - *filtering*: a bare XPath whose messages are delivered as they are; a query of the automaton. A filter query is
//!   one of nobody that is delivered as an id.
//!
//! One that has steps goes the same ways, among those of its series, on the message after the steps. They are done where
//! its gate holds, which stands among all others and asks for what must be there before.
//!
//! What they were registered as is in a [`Catalogue`]. Numbers count those of a snapshot first
//! ([`Dissemination::from_snapshot`]), which is what they become ([`Dissemination::freeze`]), and then what came since. Locks: a batch holds `renumbering` shared, so that numbers of subscriptions mean the same for its whole
//! length; a message holds `state` shared, so that a subscription counts from the next message on. What comes, and what
//! subscriptions that have left leave behind, is merged in the background ([`Dissemination::settle`]): new gates, or a
//! new state, are built beside the old ones and take their place.

pub use super::freezing::NotFrozen;
use super::freezing::{CopiedState, Frozen};
use super::gates::MergedGates;
pub use super::plans::Explained;
use super::plans::{Asked, Plans, Way, WayKind};
use super::query::Scope;
pub use super::series::Steps;
use super::series::{SeriesNumber, SeriesSet, gate_before};
use super::serving::Audience;
use crate::engine::interrupt::{Interrupted, look, unwatched};
use crate::engine::plans::shared::SubscriptionNumber;
use crate::language::compile::{Evaluated, alternatives_of_conjunction, compile_query};
use crate::language::paths::{Conjunction, Path};
use crate::language::query::ast::Step;
use crate::language::query::{Compiler, Namespaces};
use crate::language::reader::read_query;
use crate::language::refusal::Refusal;
use crate::language::xpath::Expression;
use crate::registry::catalogue::{Catalogue, EntryTable};
pub use crate::registry::catalogue::{Deliver, Entry};
use crate::registry::merging::{ENTRIES_A_LOCK, Merging, SUBSCRIPTIONS_A_LOCK, read, write};
use crate::registry::snapshot::parts::FrozenWay;
use crate::registry::snapshot::set_version::{SetSum, namespaces_text, write_content};
use crate::registry::snapshot::{NamespaceMap, QueryRecord, Snapshot};
use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

/// Why a subscription was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The id is taken.
    Duplicate,
    /// The text is no query, is over a limit, or cannot be delivered so.
    Refused,
    /// The text is no filter query.
    NoQuery(Box<Refusal>),
    /// The text asks for more than the paths that a gate may have.
    NoGate,
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
    /// How many are no filter queries.
    others: usize,
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
    /// What a message may cost, as its snapshots shall say.
    limits: Box<str>,
    renumbering: RwLock<()>,
    state: RwLock<State>,
    merging: Merging,
}

impl Dissemination {
    /// Nobody has subscribed; snapshots say what a message may cost, see
    /// [`Tag::Limits`](crate::registry::snapshot::format::Tag::Limits).
    pub fn new(limits: &str) -> Self {
        Dissemination { limits: limits.into(), ..Dissemination::default() }
    }

    /// The subscriptions of a snapshot. Cost: that of the distinct paths of the shared plans, and of the distinct steps.
    pub fn from_snapshot(snapshot: Arc<Snapshot>) -> Self {
        let subscriptions = Dissemination::new(snapshot.limits());
        *write(&subscriptions.state) = State::on(snapshot);
        subscriptions
    }

    /// The same subscriptions, whose snapshots say that a message may cost this.
    #[must_use]
    pub fn with_limits(self, limits: &str) -> Self {
        Dissemination { limits: limits.into(), ..self }
    }

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
            let merged = match merge {
                Some(Merge::All) => subscriptions.rebuild(),
                Some(Merge::Gates(of)) => subscriptions.merge_gates_of(of).map_err(NotFrozen::from),
                None => Ok(()),
            };
            merged != Err(NotFrozen::Damaged)
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
        let (arrays, renumbered) = merge.freeze(|a, b| a.cmp(&b))?;
        let mut merged = renumbered.on_arrays(&arrays);
        drop(arrays);
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

    /// The subscriptions of one moment of the call as a snapshot, which their registry goes on from, under new numbers.
    ///
    /// Cost and memory: as of [`Dissemination::rebuild`]; nothing if nothing has changed.
    ///
    /// # Errors
    /// It was interrupted, or the snapshot that they are of is damaged; the state is the same.
    pub fn freeze(&self) -> Result<Arc<Snapshot>, NotFrozen> {
        let _alone = self.merging.alone();
        let unchanged = self.state().unchanged().cloned();
        let unchanged = unchanged.filter(|base| base.limits() == &*self.limits);
        unchanged.map_or_else(|| self.renew(), Ok)
    }

    /// Puts a new state without what has left in the place of the old one, under new numbers. Messages and changes go on
    /// meanwhile.
    ///
    /// Cost: about 1.5 µs for each that has a gate, and about 4 µs for each that has a shared plan. Memory: the new state
    /// beside the old one, the gates as an automaton that grows, and the shared plans as they are when they change.
    ///
    /// # Errors
    /// As [`Dissemination::freeze`].
    pub fn rebuild(&self) -> Result<(), NotFrozen> {
        let _alone = self.merging.alone();
        self.renew().map(drop)
    }

    /// [`Dissemination::rebuild`], of who is alone in it; gives the snapshot.
    fn renew(&self) -> Result<Arc<Snapshot>, NotFrozen> {
        let state = self.state();
        let copied = state.plans.number_count();
        let copy = CopiedState::of(&state.catalogue, &state.plans, state.series.iter());
        drop(state);
        let Frozen { snapshot, gates, old } = copy.freeze(&self.limits)?;
        let mut renewed = Renewed {
            gates: gates.on(Arc::clone(snapshot.automaton())),
            state: State::on(Arc::clone(&snapshot)),
            old,
            copied,
            taken: 0,
            scopes: HashMap::new(),
        };
        renewed.follow(self)?;
        let renumbering = write(&self.renumbering);
        let mut state = write(&self.state);
        unwatched(|| renewed.catch_up(&state, usize::MAX));
        let new = renewed.finish(&state);
        let old = std::mem::replace(&mut *state, new);
        drop((state, renumbering));
        // Messages and changes do not wait for it.
        drop(old);
        Ok(snapshot)
    }
}

/// A new state that is to take the place of the one it is made from. Its numbers are those of its snapshot first, then
/// those of what came later.
struct Renewed {
    state: State,
    gates: MergedGates,
    /// By number in the snapshot: the number in the old state.
    old: Vec<SubscriptionNumber>,
    /// Number in the old state of the first one that came later.
    copied: usize,
    /// How many of those are taken over.
    taken: usize,
    /// By number of the namespace map in the old state: that in the new one.
    scopes: HashMap<u32, (Scope, u32)>,
}

impl Renewed {
    /// Takes over what is not there, in pieces that are not interrupted: half a query would be subscribed.
    fn follow(&mut self, subscriptions: &Dissemination) -> Result<(), Interrupted> {
        while !unwatched(|| self.catch_up(&subscriptions.state(), SUBSCRIPTIONS_A_LOCK)) {
            if look() {
                return Err(Interrupted);
            }
        }
        Ok(())
    }

    /// Takes over at most so many that are not there; whether that was all.
    fn catch_up(&mut self, old: &State, most: usize) -> bool {
        let all = old.plans.number_count() - self.copied;
        let until = all.min(self.taken.saturating_add(most));
        while self.taken < until {
            self.take_over(old, (self.copied + self.taken) as SubscriptionNumber);
            self.taken += 1;
        }
        self.gates.catch_up(&old.plans.gates, most) && until == all
    }

    /// Gives the next number to a subscription. Its gate is taken over with all others.
    fn take_over(&mut self, old: &State, number: SubscriptionNumber) {
        let Renewed { state, scopes, .. } = self;
        old.catalogue.with(number, |entry| {
            let (scope, namespaces) = scopes.entry(entry.namespaces).or_insert_with(|| {
                let map = &old.catalogue.namespaces()[entry.namespaces as usize];
                (Scope::new(map.clone()), state.namespace_number(map))
            });
            let entry = Entry { namespaces: *namespaces, ..entry };
            let asked = Asked::of(&entry);
            let mut step_texts = None;
            let way = match old.plans.way(number) {
                Way::Shared => {
                    let taken = state.plans.add(asked, scope);
                    debug_assert!(taken.is_ok(), "it was taken before");
                    state.others += 1;
                    state.catalogue.push(entry);
                    return;
                }
                &Way::Stepped(series, place) => {
                    let steps = old.series.steps(series, place).expect("its series is there");
                    let number = state.plans.number_count() as SubscriptionNumber;
                    let series = state.series.enter(&steps.steps).expect("it was entered before");
                    let place = state.series.add(series, (asked, scope), number, &steps.texts);
                    step_texts = Some(steps.texts);
                    Way::Stepped(series, place.expect("it was taken before"))
                }
                way => way.clone(),
            };
            let has_left = matches!(way, Way::Unsubscribed);
            let number = state.plans.push(way);
            let is_other = !has_left && !is_query(&entry, state.plans.kind(number));
            state.others += usize::from(is_other);
            let new = match step_texts {
                None => state.catalogue.push(entry),
                Some(texts) => state.catalogue.push_with_steps(entry, &texts),
            };
            if has_left {
                state.catalogue.remove(new);
            }
        });
    }

    /// The new state, with all that the old one has become.
    fn finish(self, old: &State) -> State {
        let Renewed { mut state, gates, old: base, copied, .. } = self;
        let gated = state.plans.gates.automaton().number_count();
        let new_number = |old: SubscriptionNumber| (base.len() + old as usize - copied) as u32;
        let mut left = Vec::new();
        state.plans.gates = gates.renewed(&old.plans.gates, new_number, |number| left.push(number));
        let shared = base.iter().enumerate().skip(gated);
        let has_left = |&(_, &number): &(usize, &SubscriptionNumber)| old.plans.has_left(number);
        left.extend(shared.filter(has_left).map(|(at, _)| at as SubscriptionNumber));
        let later = copied as SubscriptionNumber..old.plans.number_count() as SubscriptionNumber;
        left.extend(later.filter(|&number| old.plans.has_left(number)).map(new_number));
        left.into_iter().for_each(|number| state.leave(number));
        state.generation = old.generation + 1;
        state
    }
}

/// Whether a subscription is a filter query.
fn is_query(entry: &Entry<'_>, kind: WayKind) -> bool {
    kind == WayKind::Active(FrozenWay::Filter)
        && entry.deliver == Deliver::Ids
        && entry.subscriber.is_empty()
        && entry.language.is_none()
}

impl State {
    fn on(snapshot: Arc<Snapshot>) -> State {
        State {
            plans: Plans::on(&snapshot, 0),
            series: SeriesSet::on(&snapshot),
            others: snapshot.others(),
            catalogue: Catalogue::on(snapshot),
            generation: 0,
        }
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.plans.base_live() + self.catalogue.later_live()
    }

    /// The snapshot that it goes on from, if all are in it, and none has left.
    fn unchanged(&self) -> Option<&Arc<Snapshot>> {
        let is_base = |base: &&Arc<Snapshot>| {
            base.len() == self.plans.number_count() && base.len() == self.len()
        };
        self.catalogue.base().filter(is_base)
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries of the numbers of now and of those to come.
    pub fn entries(&self) -> EntryTable {
        self.catalogue.entries().clone()
    }

    /// The number of an id.
    pub fn number(&self, id: &str) -> Option<SubscriptionNumber> {
        self.catalogue.number_of(id).filter(|&number| !self.plans.has_left(number))
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
        match self.plans.kind(self.number(id)?) {
            WayKind::Active(FrozenWay::Stepped(series, number)) => {
                self.series.steps(series, number)
            }
            _ => None,
        }
    }

    /// The digests of the subscriptions of some ids, added up; an id that is unknown is passed over.
    pub fn sum_of<'i>(&self, ids: impl Iterator<Item = &'i str>) -> SetSum {
        let (mut sum, mut content) = (SetSum::default(), String::new());
        let mut texts = HashMap::new();
        for id in ids {
            let steps = self.steps(id);
            let steps = steps.as_ref().map_or(&[][..], |steps| &steps.texts);
            let found = self.find(id, |entry, namespaces| {
                let text = || namespaces_text(namespaces);
                let namespaces = texts.entry(entry.namespaces).or_insert_with(text);
                write_content(&mut content, &entry, namespaces, steps);
            });
            if found.is_some() {
                sum.add(&content);
            }
        }
        sum
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
        if self.number(subscription.id).is_some() {
            return Err(NotTaken::Duplicate);
        }
        let asked = Asked::of(&subscription);
        let number = match steps {
            None => self.plans.add(asked, scope).map_err(|_| NotTaken::Refused)?,
            Some(steps) => self.add_stepped(asked, scope, steps)?,
        };
        self.others += usize::from(!is_query(&subscription, self.plans.kind(number)));
        match steps {
            None => self.catalogue.push(subscription),
            Some(steps) => self.catalogue.push_with_steps(subscription, &steps.texts),
        };
        Ok(())
    }

    /// Takes a filter query: it holds where one of its alternatives (normal form, one at least) holds and the expression,
    /// if there is one, is true.
    ///
    /// # Errors
    /// The id is taken; nothing has changed then.
    pub fn register(
        &mut self,
        query: QueryRecord<'_>,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
    ) -> Result<(), NotTaken> {
        let QueryRecord { id, text, namespaces } = query;
        if self.number(id).is_some() {
            return Err(NotTaken::Duplicate);
        }
        let deliver = Deliver::Ids;
        self.plans.add_gated(alternatives, expression, Way::Filter(deliver));
        self.catalogue.push(Entry {
            id,
            text,
            language: None,
            namespaces,
            subscriber: "",
            deliver,
        });
        Ok(())
    }

    /// Compiles a filter query and takes it; whether the usual notation was enough for that.
    ///
    /// # Errors
    /// The text is no query, or it is not taken; nothing has changed then.
    pub fn add<'q>(
        &mut self,
        query: QueryRecord<'q>,
        namespaces: &'q Namespaces,
        compiler: &mut Compiler<'q>,
    ) -> Result<bool, NotTaken> {
        if let Ok(steps) = compiler.compile(query.text, namespaces) {
            return self.register(query, &[steps], None).map(|()| true);
        }
        let tree = read_query(query.text, namespaces).map_err(NotTaken::NoQuery)?;
        let compiled = compile_query(&tree).map_err(NotTaken::NoQuery)?;
        let paths: Vec<&[Step<'_>]> =
            compiled.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.register(query, &paths, compiled.expression.as_ref()).map(|()| false)
    }

    /// Takes a gate, which is a [`Conjunction`].
    ///
    /// Where its paths have too many combinations at the root element, the gate keeps only the longest path and also
    /// holds for messages without the others.
    ///
    /// # Errors
    /// As [`State::add`]; or the text asks for more than paths.
    pub fn add_gate(&mut self, gate: QueryRecord<'_>) -> Result<(), NotTaken> {
        let paths = Conjunction::read(gate.text).map_err(NotTaken::NoQuery)?;
        let paths = paths.ok_or(NotTaken::NoGate)?;
        let paths: Vec<&[Step<'_>]> = paths.paths().iter().map(Path::steps).collect();
        let alternatives = alternatives_of_conjunction(&paths);
        let paths: Vec<&[Step<'_>]> = alternatives.iter().map(|path| &path.steps[..]).collect();
        self.register(gate, &paths, None)
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
        if self.is_worn() || self.others == 0 && self.plans.gates.automaton().is_worn() {
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
    ) -> Result<SubscriptionNumber, NotTaken> {
        let Steps { steps, texts } = steps;
        let gate = gate_before(asked, scope, steps).map_err(|_| NotTaken::Refused)?;
        if self.series.len() >= SERIES_MAX && self.series.of(steps).is_none() {
            return Err(NotTaken::TooManySeries);
        }
        let series = self.series.enter(steps).map_err(|_| NotTaken::Refused)?;
        let number = self.plans.number_count() as SubscriptionNumber;
        match self.series.add(series, (asked, scope), number, texts) {
            Ok(place) => Ok(self.plans.add_stepped(&gate, series, place)),
            Err(_) => {
                self.series.leave(series);
                Err(NotTaken::Refused)
            }
        }
    }

    /// Takes subscriptions out, all or, if an id is unknown, none; gives its place in the list then.
    pub fn unsubscribe<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Result<(), usize> {
        let ids: Vec<&str> = ids.collect();
        if let Some(at) = ids.iter().position(|id| self.number(id).is_none()) {
            return Err(at);
        }
        for id in ids {
            // An id may stand in the list twice.
            if let Some(number) = self.number(id) {
                self.leave(number);
            }
        }
        Ok(())
    }

    /// Takes a subscription out, unless it has left.
    fn leave(&mut self, number: SubscriptionNumber) {
        let kind = self.plans.remove(number);
        let WayKind::Active(way) = kind else { return };
        let is_query = self.catalogue.with(number, |entry| is_query(&entry, kind));
        self.others -= usize::from(!is_query);
        self.catalogue.remove(number);
        if let FrozenWay::Stepped(series, place) = way {
            self.series.remove(series, place);
        }
    }

    /// How a subscription is done, after its steps; and of how many subscriptions the steps begin with its first, with
    /// its first two, and so on.
    pub fn explain(&self, id: &str) -> Option<(Explained, Vec<usize>)> {
        let number = self.number(id)?;
        match self.plans.kind(number) {
            WayKind::Active(FrozenWay::Stepped(series, place)) => {
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
        let numbers = self.plans.number_count();
        unused > WORN_MIN.max(used) || numbers - self.len() > WORN_MIN.max(8 * self.len())
    }
}

/// Unused paths or numbers that are always let be.
const WORN_MIN: usize = 1 << 14;

/// Expressions are shared by threads.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Expression>();
    is_shared::<Dissemination>();
};
