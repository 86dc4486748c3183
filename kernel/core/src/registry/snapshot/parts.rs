//! What subscriptions have become, in a snapshot: those of messages as they come, and those of each series of steps.
//!
//! In a part, subscriptions that have a gate have the numbers of their gates; those of the shared plans come after them.

use super::automaton::FrozenAutomaton;
use super::build::FrozenArrays;
use super::format::{FileBuilder, FilePart, Tag};
use super::mode_at;
use crate::engine::ids::QueryNumber;
use crate::engine::plans::frozen::FrozenPlans;
use crate::engine::plans::template::Deliver;
use crate::language::edits::{Edit, EditStep};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What is done for a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrozenWay {
    /// The message or the fact is delivered where the gate holds.
    Filter,
    /// A program is run where the gate holds.
    Program,
    /// Nodes of an expression are selected where the gate holds.
    Selection,
    /// Where the gate holds, a series of steps is done, and then what the number is there.
    Stepped(u32, QueryNumber),
    /// It is among the shared plans.
    Shared,
}

const FILTER: u8 = 0;
const PROGRAM: u8 = 1;
const SELECTION: u8 = 2;
const STEPPED: u8 = 3;
/// A program or an expression that needs all of a message.
const NEEDS_FULL_TREE: u8 = 4;

/// The steps of a series, and the different texts that they were given as.
pub(crate) type StepsAndTexts = (Vec<EditStep>, Vec<Texts>);

/// The steps of a subscription as texts.
type Texts = Box<[Box<str>]>;

/// A step as JSON: edit, path, name, namespaces.
type StepData = (String, String, String, Vec<(String, String)>);

/// The same, to be written.
type WrittenStep<'s> = (&'s str, &'s str, &'s str, &'s [(String, String)]);

/// A part of an open snapshot.
#[derive(Debug)]
pub(crate) struct FrozenPart {
    file: FilePart,
    automaton: Arc<FrozenAutomaton>,
    plans: Option<Arc<FrozenPlans>>,
    len: usize,
    steps: StepsAndTexts,
}

impl FrozenPart {
    /// A part of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of(file: FilePart, part: usize) -> Result<FrozenPart, &'static str> {
        let tag = if part == 0 { Tag::NamespaceOf } else { Tag::Members };
        let len = file.array::<u32>(tag).len();
        let range = file.range(Tag::SharedPlans);
        let ways = file.bytes(Tag::Ways);
        let gated = if ways.is_empty() && range.is_empty() { len } else { ways.len() };
        let are_ways = ways.iter().all(|&way| way < 2 * NEEDS_FULL_TREE);
        let (first, members) = (file.part(0), file.array::<QueryNumber>(Tag::Members));
        let deliver = |number: QueryNumber| {
            let number = if part == 0 { Some(&number) } else { members.get(number as usize) };
            number.map_or(Deliver::Ids, |&number| mode_at(&first, number).0)
        };
        // A filter delivers no nodes, a selection nothing else.
        let fits = |number: usize| match ways.get(number).map_or(FILTER, |way| way & 3) {
            FILTER => deliver(number as QueryNumber).is_condition(),
            SELECTION => !deliver(number as QueryNumber).is_condition(),
            _ => true,
        };
        let are_sound = are_ways && gated <= len && (gated == len || !range.is_empty());
        if !are_sound || !(0..gated).all(fits) {
            return Err("the ways of the subscriptions do not fit them");
        }
        let stepped = file.array::<[u32; 3]>(Tag::Stepped);
        let has_steps = |&(_, way): &(usize, &u8)| way & 3 == STEPPED;
        let numbers = ways.iter().enumerate().filter(has_steps).map(|(number, _)| number as u32);
        if !numbers.eq(stepped.iter().map(|row| row[0])) {
            return Err("the steps do not fit the subscriptions");
        }
        let steps = if part == 0 { StepsAndTexts::default() } else { steps_of(&file, len)? };
        let plans = if range.is_empty() {
            None
        } else {
            let numbers = gated as QueryNumber..len as QueryNumber;
            let plans = FrozenPlans::of(file.file().clone(), range, numbers, deliver)?;
            Some(Arc::new(plans))
        };
        let automaton = Arc::new(FrozenAutomaton::of(file.clone(), gated)?);
        Ok(FrozenPart { file, automaton, plans, len, steps })
    }

    /// Number of subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The gates, by the numbers of their subscriptions.
    pub(crate) fn automaton(&self) -> &Arc<FrozenAutomaton> {
        &self.automaton
    }

    /// The shared plans, if some subscription is among them.
    pub(crate) fn plans(&self) -> Option<&Arc<FrozenPlans>> {
        self.plans.as_ref()
    }

    /// What is done for a subscription.
    #[inline]
    pub(crate) fn way(&self, number: QueryNumber) -> FrozenWay {
        if number as usize >= self.automaton.len() {
            return FrozenWay::Shared;
        }
        match self.file.bytes(Tag::Ways).get(number as usize).map_or(FILTER, |way| way & 3) {
            FILTER => FrozenWay::Filter,
            PROGRAM => FrozenWay::Program,
            SELECTION => FrozenWay::Selection,
            _ => {
                let stepped = self.file.array::<[u32; 3]>(Tag::Stepped);
                let at = stepped.binary_search_by_key(&number, |row| row[0]);
                let [_, series, place] = stepped[at.expect("checked when opened")];
                FrozenWay::Stepped(series, place)
            }
        }
    }

    /// Whether a program or expression needs all of a message.
    pub(crate) fn needs_full_tree(&self, number: QueryNumber) -> bool {
        let way = self.file.bytes(Tag::Ways).get(number as usize);
        way.is_some_and(|way| way & NEEDS_FULL_TREE != 0)
    }

    /// How many are filters, how many have steps, and how many need all of a message.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let ways = self.file.bytes(Tag::Ways);
        let count = |is: fn(u8) -> bool| ways.iter().filter(|&&way| is(way)).count();
        let filters =
            if ways.is_empty() { self.automaton.len() } else { count(|w| w & 3 == FILTER) };
        [filters, count(|w| w & 3 == STEPPED), count(|w| w & NEEDS_FULL_TREE != 0)]
    }

    /// The subscriptions of a series by their numbers there: the numbers among all.
    pub(crate) fn members(&self) -> &[QueryNumber] {
        self.file.array(Tag::Members)
    }

    /// The steps of a series, and the different texts that they were given as.
    pub(crate) fn steps(&self) -> &StepsAndTexts {
        &self.steps
    }

    /// The texts of the steps of one of the subscriptions of a series.
    pub(crate) fn texts_of(&self, number: QueryNumber) -> &[Box<str>] {
        &self.steps.1[self.step_texts()[number as usize] as usize]
    }

    /// By number in a series: which of the texts.
    pub(crate) fn step_texts(&self) -> &[u32] {
        self.file.array(Tag::StepTexts)
    }
}

fn steps_of(file: &FilePart, len: usize) -> Result<StepsAndTexts, &'static str> {
    let fault = "the steps of a series are not what they should be";
    let (steps, texts): (Vec<StepData>, Vec<Texts>) =
        serde_json::from_slice(file.bytes(Tag::Steps)).map_err(|_| fault)?;
    let of = file.array::<u32>(Tag::StepTexts);
    if steps.is_empty() || of.len() != len || of.iter().any(|&at| at as usize >= texts.len()) {
        return Err(fault);
    }
    let steps = steps.into_iter().map(|(edit, path, name, namespaces)| {
        let edit = Edit::named(&edit).ok_or(fault)?;
        Ok::<_, &str>(EditStep { edit, path, name, namespaces })
    });
    let steps = steps.collect::<Result<Vec<_>, &str>>()?;
    let are_sound = steps.iter().all(EditStep::selects_nodes);
    if are_sound { Ok((steps, texts)) } else { Err(fault) }
}

/// What is wrong between the parts, if anything.
pub(super) fn check_steps(parts: &[FrozenPart]) -> Option<&'static str> {
    let (first, series) = parts.split_first()?;
    let stepped = first.file.array::<[u32; 3]>(Tag::Stepped);
    let are_there = stepped.iter().all(|&[number, at, place]| {
        let members = series.get(at as usize).map(FrozenPart::members);
        members.and_then(|members| members.get(place as usize)) == Some(&number)
    });
    let members: usize = series.iter().map(FrozenPart::len).sum();
    let is_flat = series.iter().all(|part| part.file.array::<[u32; 3]>(Tag::Stepped).is_empty());
    if !are_there || members != stepped.len() || !is_flat {
        return Some("a subscription has steps that are not there");
    }
    let are_in_order = series.is_sorted_by(|one, next| one.steps.0 < next.steps.0);
    (!are_in_order).then_some("the series of steps are not in order")
}

/// A part that is to be put into a file.
pub(crate) struct PartArrays {
    /// The gates, those of the first numbers.
    pub(super) automaton: FrozenArrays,
    ways: Vec<u8>,
    stepped: Vec<[u32; 3]>,
    /// As [`crate::engine::plans::frozen::frozen`] gives them; none where there is no such subscription.
    plans: Vec<u64>,
    /// As [`FrozenPart::members`].
    pub(crate) members: Vec<QueryNumber>,
    steps: Vec<u8>,
    step_texts: Vec<u32>,
    /// What `step_texts` counts.
    distinct_texts: Vec<Box<[Box<str>]>>,
}

impl PartArrays {
    /// A part without subscriptions; ways are pushed in the order of numbers.
    pub(crate) fn of(automaton: FrozenArrays, plans: Vec<u64>) -> PartArrays {
        PartArrays {
            automaton,
            ways: vec![],
            stepped: vec![],
            plans,
            members: vec![],
            steps: vec![],
            step_texts: vec![],
            distinct_texts: vec![],
        }
    }

    /// Adds what is done for the next subscription that has a gate.
    pub(crate) fn push(&mut self, way: FrozenWay, needs_full_tree: bool) {
        let number = self.ways.len() as u32;
        let way = match way {
            FrozenWay::Filter => FILTER,
            FrozenWay::Program => PROGRAM,
            FrozenWay::Selection => SELECTION,
            FrozenWay::Stepped(series, place) => {
                self.stepped.push([number, series, place]);
                STEPPED
            }
            FrozenWay::Shared => unreachable!("it has no gate"),
        };
        self.ways.push(way | if needs_full_tree { NEEDS_FULL_TREE } else { 0 });
    }

    /// These are the subscriptions of a series: their numbers among all, the steps, and the texts of each.
    pub(crate) fn set_steps<'t>(
        &mut self,
        members: Vec<QueryNumber>,
        steps: &[EditStep],
        texts: impl Iterator<Item = &'t [Box<str>]>,
    ) {
        let mut distinct: Vec<&[Box<str>]> = Vec::new();
        let mut numbers = FxHashMap::default();
        for texts in texts {
            let next = distinct.len() as u32;
            let number = *numbers.entry(texts).or_insert(next);
            if number == next {
                distinct.push(texts);
            }
            self.step_texts.push(number);
        }
        let data: Vec<WrittenStep<'_>> = steps
            .iter()
            .map(|step| (step.edit.name(), &*step.path, &*step.name, &*step.namespaces))
            .collect();
        self.steps = serde_json::to_vec(&(data, &distinct)).expect("texts are JSON");
        self.members = members;
        self.distinct_texts = distinct.into_iter().map(Box::from).collect();
    }

    /// Number among all of each that has these steps, and the texts that it was given them as.
    pub(super) fn texts_of_steps(&self) -> impl Iterator<Item = (QueryNumber, &[Box<str>])> {
        let texts = self.step_texts.iter().map(|&at| &*self.distinct_texts[at as usize]);
        self.members.iter().copied().zip(texts)
    }

    /// Adds the part to a file.
    pub(super) fn add_to<'a>(&'a self, file: &mut FileBuilder<'a>) {
        self.automaton.add_to(file);
        if self.plans.is_empty()
            && self.members.is_empty()
            && self.ways.iter().all(|&way| way == FILTER)
        {
            return;
        }
        file.section(Tag::Ways, &self.ways)
            .section(Tag::Stepped, &self.stepped)
            .section(Tag::SharedPlans, &self.plans)
            .section(Tag::Members, &self.members)
            .section(Tag::Steps, &self.steps)
            .section(Tag::StepTexts, &self.step_texts);
    }
}
