//! What the queries of a snapshot ask for, as columns: where their paths end, what they compare there.
//!
//! A *place* is a path without predicates and what of its nodes is meant. Every predicate of a query is a
//! place, an operator and a constant; places and constants are numbered, each distinct one once, so that
//! whoever wants to know a population as a whole counts integers.
//!
//! Source: paper 001, section 4.4, which aggregates "the predicates contained in the selection operators
//! at each accepting state".

#![forbid(unsafe_code)]

use crate::engine::ids::{QueryNumber, StateId};
use crate::engine::nfa::path_of;
use crate::engine::symbols::{EPSILON, STAR, write_test};
use crate::language::paths::Path;
use crate::language::query::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use crate::registry::snapshot::Snapshot;
use rustc_hash::FxHashMap;

/// What of the elements at a path is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The elements.
    Element,
    /// An attribute that passes the test.
    Attribute(NameTest<'static>),
    /// A text node child.
    Text,
    /// The string-value.
    Value,
}

/// A path without predicates, and what of its nodes is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// From the document node on.
    pub steps: Vec<(Axis, NameTest<'static>)>,
    /// What of the elements there.
    pub end: End,
}

impl Place {
    /// The path to the place, with a comparison there if there is one.
    pub fn path(&self, compare: Option<(Operator, Constant<'static>)>) -> Path {
        let bare = |(axis, test): &(Axis, NameTest<'static>)| Step {
            axis: *axis,
            test: test.clone(),
            stages: Vec::new(),
        };
        let mut steps: Vec<_> = self.steps.iter().map(bare).collect();
        let condition = match (&self.end, compare) {
            (End::Attribute(test), compare @ Some(_)) => {
                Some(Condition::Attribute { test: test.clone(), compare })
            }
            (End::Text, compare @ Some(_)) => Some(Condition::Text(compare)),
            (_, Some((operator, constant))) => Some(Condition::Value(operator, constant)),
            (_, None) => None,
        };
        match (steps.last_mut(), condition) {
            (Some(last), Some(condition)) => {
                last.stages.push(Stage { positions: Vec::new(), conditions: vec![condition] });
            }
            // Without its condition, "itself or below" asks for nothing.
            (Some(last), None) if last.axis == Axis::DescendantOrSelf => drop(steps.pop()),
            _ => {}
        }
        Path::arranged(steps)
    }
}

/// Where the path of an alternative ends: query, alternative, place.
pub(crate) type PathRow = (QueryNumber, u32, u32);

/// A predicate of an alternative: query, alternative, place, operator, constant.
pub(crate) type PredicateRow = (QueryNumber, u32, u32, Operator, u32);

/// What the queries of a snapshot ask for.
#[derive(Debug, Default)]
pub struct Population {
    /// Distinct places, by number.
    pub places: Vec<Place>,
    /// Distinct constants, by number.
    pub constants: Vec<Constant<'static>>,
    /// One row an alternative, ascending by query and alternative.
    pub paths: Vec<PathRow>,
    /// One row a predicate, ascending by query and alternative.
    pub predicates: Vec<PredicateRow>,
    place_numbers: FxHashMap<Box<str>, u32>,
    /// By whether the value is cast, and bits.
    numbers: FxHashMap<(bool, u64), u32>,
    strings: FxHashMap<Box<str>, u32>,
}

/// Bits of the number of an alternative of a query.
const ALTERNATIVE_BITS: usize = 10;

/// Values of a set that are told as an alternative each; of larger sets nothing is told.
const WAYS_MAX: usize = 256;

impl Population {
    /// What the queries of a snapshot ask for. Cost: about a microsecond a distinct query, and a sort.
    pub fn of(snapshot: &Snapshot) -> Population {
        let mut population = Population::default();
        let arrays = snapshot.nfa().arrays;
        let parents = parents(snapshot);
        for state in 0..arrays.symbol.len() as StateId {
            let accepted = accepted(snapshot, state);
            if !accepted.is_empty() {
                let steps = steps_to(snapshot, &parents, state);
                population.add(&steps, &accepted);
            }
            for plan in arrays.plans_at(state) {
                let steps = path_of(snapshot.automaton().plan_text(plan));
                let record = &arrays.plans[plan as usize];
                let mut alternatives = vec![(record.first_query, record.query_count, 0)];
                let further = arrays.ranges_of(plan).iter();
                alternatives.extend(further.map(|r| (r.first_query, r.query_count, r.alternative)));
                population.add(&steps, &alternatives);
            }
        }
        population.in_order()
    }

    /// What queries ask for, each as the paths of which one must be there.
    pub fn of_paths(queries: &[Vec<&Path>]) -> Population {
        let mut population = Population::default();
        for (query, paths) in queries.iter().enumerate() {
            for (alternative, path) in paths.iter().enumerate() {
                population.add(path.steps(), &[(query as QueryNumber, 1, alternative as u32)]);
            }
        }
        population.in_order()
    }

    fn in_order(mut self) -> Population {
        self.paths.sort_unstable();
        self.predicates.sort_by_key(|row| (row.0, row.1));
        self
    }

    /// Adds a path that is an alternative of these queries: first query, number of queries, alternative.
    fn add(&mut self, steps: &[Step<'_>], alternatives: &[(QueryNumber, u32, u32)]) {
        let mut walk = Walk::default();
        walk.steps(self, steps);
        let end = self.place(&walk.above, End::Element);
        for &(first, count, alternative) in alternatives {
            for query in first..first + count {
                for way in 0..walk.ways.len().max(1) {
                    let alternative = alternative | (way << ALTERNATIVE_BITS) as u32;
                    self.paths.push((query, alternative, end));
                    let rows = walk.found.iter().chain(walk.ways.get(way));
                    self.predicates.extend(rows.map(|&(place, operator, constant)| {
                        (query, alternative, place, operator, constant)
                    }));
                }
            }
        }
    }

    fn place(&mut self, above: &Above<'_, '_>, end: End) -> u32 {
        let mut key = above.text.clone();
        match &end {
            End::Element => {}
            End::Attribute(test) => {
                key.push_str("/@");
                write_test(test, &mut key);
            }
            End::Text => key.push_str("/text()"),
            End::Value => key.push_str("/."),
        }
        if let Some(&known) = self.place_numbers.get(&*key) {
            return known;
        }
        let number = self.places.len() as u32;
        let steps =
            above.steps.iter().map(|(axis, test)| (*axis, (*test).clone().into_owned())).collect();
        self.places.push(Place { steps, end });
        self.place_numbers.insert(key.into(), number);
        number
    }

    fn constant(&mut self, constant: &Constant<'_>) -> u32 {
        let next = self.constants.len() as u32;
        match constant {
            Constant::Number(number) | Constant::Double(number) => {
                // The two zeros are equal.
                let number = number + 0.0;
                let is_cast = matches!(constant, Constant::Double(_));
                let found = *self.numbers.entry((is_cast, number.to_bits())).or_insert(next);
                if found == next {
                    let made = if is_cast { Constant::Double } else { Constant::Number };
                    self.constants.push(made(number));
                }
                found
            }
            Constant::Moment(..) | Constant::Texts(..) => {
                unreachable!("they ask for existence here")
            }
            Constant::Strings(_) | Constant::Numbers(_) | Constant::Doubles(_) => {
                unreachable!("sets are opened")
            }
            Constant::String(text) => {
                if let Some(&known) = self.strings.get(&**text) {
                    return known;
                }
                self.strings.insert((&**text).into(), next);
                self.constants.push(constant.clone().into_owned());
                next
            }
        }
    }
}

/// The path that is walked, as steps and as text.
#[derive(Default)]
struct Above<'s, 'q> {
    steps: Vec<(Axis, &'s NameTest<'q>)>,
    text: String,
}

impl<'s, 'q> Above<'s, 'q> {
    fn push(&mut self, step: &'s Step<'q>) {
        self.steps.push((step.axis, &step.test));
        self.text.push_str(match step.axis {
            Axis::Child => "/",
            Axis::Descendant => "//",
            Axis::DescendantOrSelf => "//.",
        });
        if step.axis != Axis::DescendantOrSelf {
            write_test(&step.test, &mut self.text);
        }
    }
}

/// The predicates of one path.
#[derive(Default)]
struct Walk<'s, 'q> {
    above: Above<'s, 'q>,
    found: Vec<(u32, Operator, u32)>,
    /// One of these must hold besides.
    ways: Vec<(u32, Operator, u32)>,
}

impl<'s, 'q> Walk<'s, 'q> {
    fn steps(&mut self, population: &mut Population, steps: &'s [Step<'q>]) {
        for step in steps {
            self.above.push(step);
            for condition in step.stages.iter().flat_map(|stage| &stage.conditions) {
                self.condition(population, condition);
            }
        }
    }

    fn condition(&mut self, population: &mut Population, condition: &'s Condition<'q>) {
        // Who reads a population knows numbers and strings: dates and texts that are folded ask for existence there.
        if matches!(condition.compare(), Some((_, Constant::Moment(..) | Constant::Texts(..)))) {
            return;
        }
        let (end, operator, constant) = match condition {
            Condition::Nested(steps) => {
                let (depth, length) = (self.above.steps.len(), self.above.text.len());
                self.steps(population, steps);
                self.above.steps.truncate(depth);
                self.above.text.truncate(length);
                return;
            }
            Condition::Attribute { compare: None, .. } | Condition::Text(None) => return,
            Condition::Attribute { test, compare: Some((operator, constant)) } => {
                (End::Attribute(test.clone().into_owned()), *operator, constant)
            }
            Condition::Text(Some((operator, constant))) => (End::Text, *operator, constant),
            Condition::Value(operator, constant) => (End::Value, *operator, constant),
        };
        let place = population.place(&self.above, end);
        if let Some(values) = constant.values() {
            // A second set would make a product.
            if self.ways.is_empty() && values.iter().count() <= WAYS_MAX {
                let ways = values.iter().map(|value| match constant {
                    Constant::Numbers(_) => Constant::Number(value.parse().unwrap_or_default()),
                    Constant::Doubles(_) => Constant::Double(value.parse().unwrap_or_default()),
                    _ => Constant::String(value.into()),
                });
                self.ways = ways.map(|one| (place, operator, population.constant(&one))).collect();
            }
            return;
        }
        let row = (place, operator, population.constant(constant));
        if !self.found.contains(&row) {
            self.found.push(row);
        }
    }
}

/// The parent of each state; of the initial one itself.
fn parents(snapshot: &Snapshot) -> Vec<StateId> {
    let arrays = snapshot.nfa().arrays;
    let mut parents = vec![0; arrays.symbol.len()];
    for state in 0..arrays.symbol.len() {
        let (first, end) = (arrays.states[state].first_child, arrays.states[state + 1].first_child);
        parents[first as usize..end as usize].fill(state as StateId);
    }
    parents
}

/// The queries whose path ends at a state without conditions: first, number, alternative.
fn accepted(snapshot: &Snapshot, state: StateId) -> Vec<(QueryNumber, u32, u32)> {
    let arrays = snapshot.nfa().arrays;
    let record = &arrays.states[state as usize];
    let further = arrays.ranges_at(state).iter();
    let mut accepted: Vec<_> =
        further.map(|r| (r.first_query, r.query_count, r.alternative)).collect();
    if record.query_count > 0 {
        accepted.push((record.first_query, record.query_count, 0));
    }
    accepted
}

/// The path that leads to a state.
fn steps_to<'s>(snapshot: &'s Snapshot, parents: &[StateId], state: StateId) -> Vec<Step<'s>> {
    let arrays = snapshot.nfa().arrays;
    let mut symbols = Vec::new();
    let mut at = state;
    while at != 0 {
        symbols.push(arrays.symbol[at as usize]);
        at = parents[at as usize];
    }
    let mut steps = Vec::new();
    let mut axis = Axis::Child;
    for symbol in symbols.into_iter().rev() {
        let test = match symbol {
            EPSILON => {
                axis = Axis::Descendant;
                continue;
            }
            STAR => NameTest::Any,
            _ => test_of(snapshot.automaton().symbols().notation(symbol)),
        };
        steps.push(Step { axis, test, stages: vec![] });
        axis = Axis::Child;
    }
    if axis == Axis::Descendant {
        steps.push(Step { axis: Axis::DescendantOrSelf, test: NameTest::Any, stages: vec![] });
    }
    steps
}

/// The name test of its canonical notation. A local name holds no brace.
fn test_of(notation: &str) -> NameTest<'_> {
    if let Some(local) = notation.strip_prefix("*:") {
        return NameTest::AnyNamespace { local: local.into() };
    }
    let Some((uri, local)) = notation.strip_prefix("Q{").and_then(|rest| rest.rsplit_once('}'))
    else {
        return NameTest::Name { uri: "".into(), local: notation.into() };
    };
    match local {
        "*" => NameTest::AnyIn { uri: uri.into() },
        _ => NameTest::Name { uri: uri.into(), local: local.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::query::Compiler;
    use crate::language::query::Namespaces;
    use crate::registry::delivery::dissemination::Dissemination;
    use crate::registry::snapshot::{NamespaceMap, QueryRecord};

    fn population(texts: &[&str]) -> Population {
        let index = Dissemination::new("{}");
        let namespaces = Namespaces::new(NamespaceMap::new());
        index.change(|state| {
            let number = state.namespace_number(&NamespaceMap::new());
            for (at, text) in texts.iter().enumerate() {
                let mut compiler = Compiler::default();
                let steps = compiler.compile(text, &namespaces).unwrap();
                let id = format!("q{at}");
                let record = QueryRecord { id: &id, text, namespaces: number };
                state.register(record, &[steps], None).unwrap();
            }
        });
        let frozen = index.freeze().expect("nothing interrupts");
        Population::of(&frozen)
    }

    #[test]
    fn equal_places_and_constants_are_one() {
        let found =
            population(&["/a[@x = 1]", "/a[@x = 1]/b", "/a[c[@x = '1']]//d[. = 1]", "//*:e"]);
        let rows: Vec<usize> = (0..4)
            .map(|query| found.predicates.iter().filter(|row| row.0 == query).count())
            .collect();
        assert_eq!(rows.iter().sum::<usize>(), 4);
        assert_eq!(found.paths.len(), 4);
        assert_eq!(found.constants.len(), 2);
        let places: Vec<usize> = found.places.iter().map(|place| place.steps.len()).collect();
        // /a, /a/@x, /a/b, /a/c/@x, /a//d, /a//d/. and //*:e
        assert_eq!(places.len(), 7);
        assert!(found.predicates.is_sorted_by_key(|row| (row.0, row.1)));
    }

    #[test]
    fn a_path_that_is_cut_for_the_automaton_is_whole_here() {
        let found = population(&["//a[@x = 1]//b[@y = 2]//c"]);
        let place = &found.places[found.paths[0].2 as usize];
        assert_eq!(place.steps.len(), 3);
        assert_eq!(found.predicates.len(), 2);
    }

    #[test]
    fn notations_of_symbols_are_read_back() {
        for notation in ["a", "Q{urn:x}a", "Q{urn:x}*", "*:a"] {
            let mut written = String::new();
            write_test(&test_of(notation), &mut written);
            assert_eq!(written, notation);
        }
    }
}
