//! The subscriptions of one moment, and the snapshot that they become.
//!
//! They are copied under a lock, and frozen without one. Gates are frozen from the automata that they are in; shared plans
//! are made again from their texts, which need not be there in any other form.

use super::gates::{GateMerge, RenumberedGates};
use super::plans::{Asked, Plans, WayKind, shared_plan_of};
use super::query::Scope;
use super::series::{Series, SeriesNumber};
use crate::engine::interrupt::{Interrupted, look};
use crate::engine::plans::frozen::frozen;
use crate::engine::plans::shared::{SharedPlans, SubscriptionNumber};
use crate::language::edits::EditStep;
use crate::registry::catalogue::{Catalogue, Entry};
use crate::registry::snapshot::Snapshot;
use crate::registry::snapshot::parts::{FrozenWay, PartArrays};
use crate::registry::snapshot::records::RecordColumns;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Shared plans that are made between two looks for an interruption.
const PLANS_A_LOOK: usize = 1 << 10;
/// Stands for the number of a subscription that has left.
const LEFT: SubscriptionNumber = SubscriptionNumber::MAX;

/// Why subscriptions did not become a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFrozen {
    /// It was interrupted.
    Interrupted,
    /// The text of a subscription is not what the snapshot that it is of says of it.
    Damaged,
}

impl From<Interrupted> for NotFrozen {
    fn from(Interrupted: Interrupted) -> Self {
        NotFrozen::Interrupted
    }
}

/// Subscriptions of one moment.
pub(super) struct CopiedState {
    catalogue: Catalogue,
    plans: CopiedPlans,
    series: Vec<CopiedSeries>,
}

/// What is done for them.
struct CopiedPlans {
    gates: GateMerge,
    /// By number: what is done, and whether that needs all of a message; none where all are filters.
    ways: Vec<(WayKind, bool)>,
}

struct CopiedSeries {
    number: SeriesNumber,
    steps: Arc<[EditStep]>,
    plans: CopiedPlans,
    /// By number in the series: the number among all.
    members: Vec<SubscriptionNumber>,
    text_of: Vec<u32>,
    texts: Vec<Box<[Box<str>]>>,
}

impl CopiedPlans {
    fn of(plans: &Plans) -> CopiedPlans {
        let numbers = if plans.are_filters() { 0 } else { plans.number_count() };
        let way = |number| (plans.kind(number), plans.way_needs_full_tree(number));
        let ways = (0..numbers as SubscriptionNumber).map(way).collect();
        CopiedPlans { gates: plans.gates.merge(), ways }
    }
}

impl CopiedSeries {
    pub(super) fn of((number, series): (SeriesNumber, &Series)) -> CopiedSeries {
        CopiedSeries {
            number,
            steps: Arc::clone(&series.steps),
            plans: CopiedPlans::of(&series.plans),
            members: series.subscriptions.clone(),
            text_of: series.text_of.clone(),
            texts: series.texts.clone(),
        }
    }
}

/// A snapshot, and what it was made from.
pub(super) struct Frozen {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) gates: RenumberedGates,
    /// By number in the snapshot: the number so far.
    pub(super) old: Vec<SubscriptionNumber>,
}

/// What some subscriptions have become.
struct FrozenPlansOf {
    arrays: PartArrays,
    gates: RenumberedGates,
    old: Vec<SubscriptionNumber>,
}

impl CopiedState {
    /// A copy. Cost: a pass over what came after the snapshot that the catalogue goes on from.
    pub(super) fn of<'s>(
        catalogue: &Catalogue,
        plans: &Plans,
        series: impl Iterator<Item = (SeriesNumber, &'s Series)>,
    ) -> CopiedState {
        CopiedState {
            catalogue: catalogue.copy(),
            plans: CopiedPlans::of(plans),
            series: series.map(CopiedSeries::of).collect(),
        }
    }

    /// Freezes them; see [`super::dissemination::Dissemination::rebuild`].
    ///
    /// # Errors
    /// It was interrupted, or the snapshot that they are of is damaged.
    pub(super) fn freeze(self, limits: &str) -> Result<Frozen, NotFrozen> {
        let CopiedState { catalogue, plans, series } = self;
        let mut scopes = Scopes { catalogue: &catalogue, scopes: FxHashMap::default() };
        let mut parts = Vec::with_capacity(1 + series.len());
        let mut places = FxHashMap::default();
        for (at, series) in series.into_iter().enumerate() {
            let CopiedSeries { number, steps, plans, members, text_of, texts } = series;
            let frozen = plans.freeze(&mut scopes, |place| members[place as usize], |way| way)?;
            let new_place = new_numbers(&frozen.old, members.len());
            places.insert(number, (at as u32, new_place));
            let FrozenPlansOf { mut arrays, old, .. } = frozen;
            let texts = old.iter().map(|&place| &*texts[text_of[place as usize] as usize]);
            let members = old.iter().map(|&place| members[place as usize]).collect();
            arrays.set_steps(members, &steps, texts);
            parts.push(arrays);
        }
        let first = plans.freeze(
            &mut scopes,
            |number| number,
            |way| match way {
                FrozenWay::Stepped(series, place) => {
                    let (at, new_place) = &places[&series];
                    FrozenWay::Stepped(*at, new_place[place as usize])
                }
                way => way,
            },
        )?;
        let FrozenPlansOf { arrays, gates, old } = first;
        let numbers = old.iter().max().map_or(0, |&last| last as usize + 1);
        let new_number = new_numbers(&old, numbers);
        for part in &mut parts {
            part.members.iter_mut().for_each(|number| *number = new_number[*number as usize]);
        }
        drop(new_number);
        let (maps, number_of) = catalogue.used_namespaces(&old);
        let columns = RecordColumns::of(&maps, |push| {
            for &number in &old {
                catalogue.with(number, |entry| {
                    let namespaces = number_of[entry.namespaces as usize];
                    push(Entry { namespaces, ..entry });
                });
            }
        });
        parts.insert(0, arrays);
        let snapshot = Arc::new(Snapshot::of(&parts, &columns, limits));
        Ok(Frozen { snapshot, gates, old })
    }
}

impl CopiedPlans {
    /// Freezes them: those that have a gate get the numbers of their gates, the others follow in the order of their ids.
    /// `number` gives the number of one among all, `way` what is to be written of what is done for it.
    fn freeze(
        self,
        scopes: &mut Scopes<'_>,
        number: impl Fn(SubscriptionNumber) -> SubscriptionNumber,
        way: impl Fn(FrozenWay) -> FrozenWay,
    ) -> Result<FrozenPlansOf, NotFrozen> {
        let CopiedPlans { gates, ways } = self;
        let order = |a, b| scopes.catalogue.order(number(a), number(b));
        let (automaton, gates) = gates.freeze(order)?;
        let is_shared = |&(_, (kind, _)): &(usize, &(WayKind, bool))| {
            *kind == WayKind::Active(FrozenWay::Shared)
        };
        let shared = ways.iter().enumerate().filter(is_shared);
        let mut shared: Vec<_> = shared.map(|(at, _)| at as SubscriptionNumber).collect();
        shared.sort_unstable_by(|&a, &b| order(a, b));
        let mut old = gates.owners.clone();
        let mut plans = SharedPlans::default();
        for (at, &each) in shared.iter().enumerate() {
            if at % PLANS_A_LOOK == 0 && look() {
                return Err(NotFrozen::Interrupted);
            }
            let new = (old.len() + at) as SubscriptionNumber;
            let plan = scopes.with(number(each), shared_plan_of);
            plans.enter(new, &plan.ok_or(NotFrozen::Damaged)?);
        }
        let plans = if shared.is_empty() { Vec::new() } else { frozen(&plans) };
        let mut arrays = PartArrays::of(automaton, plans);
        for &owner in &old {
            match ways.get(owner as usize) {
                Some(&(WayKind::Active(kind), needs_full_tree)) => {
                    arrays.push(way(kind), needs_full_tree);
                }
                _ => arrays.push(FrozenWay::Filter, false),
            }
        }
        old.extend(shared);
        Ok(FrozenPlansOf { arrays, gates, old })
    }
}

/// Namespace bindings of entries, read once.
struct Scopes<'c> {
    catalogue: &'c Catalogue,
    scopes: FxHashMap<u32, Scope>,
}

impl Scopes<'_> {
    fn with<T>(&mut self, number: SubscriptionNumber, f: impl FnOnce(Asked<'_>, &Scope) -> T) -> T {
        let Scopes { catalogue, scopes } = self;
        catalogue.with(number, |entry| {
            let scope = scopes.entry(entry.namespaces).or_insert_with(|| {
                Scope::new(catalogue.namespaces()[entry.namespaces as usize].clone())
            });
            f(Asked::of(&entry), scope)
        })
    }
}

/// By old number: the new one.
fn new_numbers(old: &[SubscriptionNumber], count: usize) -> Vec<SubscriptionNumber> {
    let mut new = vec![LEFT; count];
    for (at, &number) in old.iter().enumerate() {
        new[number as usize] = at as SubscriptionNumber;
    }
    new
}
