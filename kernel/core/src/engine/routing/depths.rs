//! How much of a message a plan has to see before it can be decided.
//!
//! The start tags of an element and its ancestors, with the places among their siblings, are enough for
//! conditions on attributes and positions. Text, string-values and nested paths lie inside an element,
//! and are there when it ends.

use crate::engine::ids::{PlanId, StateId};
use crate::engine::nfa::growing::GrowingNfa;
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::nfa::{Nfa, path_of};
use crate::engine::predicates::atoms::{Atoms, Kind, kind_of};
use crate::engine::predicates::program::{Conjunct, Need, Outcome, Place, conjuncts_of};

/// The highest element that each plan looks into; none for a plan that needs start tags alone.
#[derive(Debug)]
pub(super) struct Depths {
    plans: Vec<Option<Place>>,
    /// Whether some plan asks for a position.
    pub(crate) has_positions: bool,
}

impl Depths {
    pub(super) fn of(paths: &GrowingNfa) -> Self {
        let (mut atoms, mut conjuncts) = (Atoms::default(), Vec::new());
        let mut has_positions = false;
        let plans =
            (0..paths.plan_count() as PlanId).map(|plan| {
                conjuncts.clear();
                let nested = paths.nested_paths();
                let outcome = of_plan(paths, plan, nested, &mut atoms, &mut conjuncts);
                let kind = |each: &Conjunct| kind_of_need(each.need, &atoms);
                has_positions |= conjuncts.iter().any(|each| kind(each) == Some(Kind::Ordinal));
                match outcome {
                    // What is no conjunction may look anywhere.
                    Outcome::Complex => Some(Place::Depth(0)),
                    Outcome::Never => None,
                    Outcome::Conjunction => highest(conjuncts.iter().filter(|each| {
                        !matches!(kind(each), Some(Kind::Attribute | Kind::Ordinal))
                    })),
                }
            });
        let plans = plans.collect();
        Depths { plans, has_positions }
    }

    /// The highest element that a plan looks into, seen from its end.
    pub(super) fn of_plan(&self, plan: PlanId) -> Option<Place> {
        self.plans[plan as usize]
    }

    /// The state that this element is reached by.
    pub(super) fn looked_into(&self, paths: &GrowingNfa, plan: PlanId) -> Option<StateId> {
        let place = self.of_plan(plan)?;
        let mut states = vec![paths.plan_entry(plan).0];
        while let Some(&state) = states.last()
            && state != 0
        {
            states.push(paths.origin(state).0);
        }
        states.pop();
        // The steps at the beginning of a path and those at its end are `/` steps, a state each, but for
        // `//.` before the latter: the elements of that are those of the `//`-child state.
        let at = match place {
            Place::Up(parents) => parents as usize,
            Place::Depth(depth) => states.len().saturating_sub(depth as usize + 1),
        };
        Some(states[at.min(states.len() - 1)])
    }
}

fn of_plan(
    paths: &GrowingNfa,
    plan: PlanId,
    nested: Option<&NestedPaths>,
    atoms: &mut Atoms,
    conjuncts: &mut Vec<Conjunct>,
) -> Outcome {
    conjuncts_of(&path_of(paths.plan_text(plan)), nested, atoms, conjuncts)
}

fn kind_of_need(need: Need, atoms: &Atoms) -> Option<Kind> {
    match need {
        Need::Found(kind, _) => Some(kind),
        Need::Tried(atom) => Some(kind_of(atoms.get(atom).subject)),
        Need::Nested(_) => None,
    }
}

/// The highest place: depths are above the run of steps that ends at the end.
fn highest<'c>(conjuncts: impl Iterator<Item = &'c Conjunct>) -> Option<Place> {
    let height = |place: &Place| match *place {
        Place::Depth(depth) => (0, i64::from(depth)),
        Place::Up(parents) => (1, -i64::from(parents)),
    };
    conjuncts.map(|each| each.place).min_by_key(height)
}
