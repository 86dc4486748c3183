//! Where nested paths hold, found from the leaves of a message upwards: every element is looked at once,
//! however many anchors it lies below.
//!
//! Each step of each nested path is one bit, *satisfied* at the elements from which the rest of the
//! path can be walked. What is satisfied by the children of an element, and below it, is known when its turn
//! comes, so a word decides 64 steps at once: those whose next step is satisfied where its axis leads, and
//! whose name is that of the element. Only their conditions are looked at one by one.
//!
//! A nested path that asks for a name which the message does not have costs nothing; an element costs the
//! words in which its name stands and those that something below it has satisfied.
//!
//! Memory: two words a level of depth for every 64 steps, and the distinct rows of neighbouring anchors.
//!
//! Source: Gottlob, Koch, Pichler 2005 (a polynomial bound by evaluating from the leaves up), for many
//! paths at once in the manner of shift-and string matching.

use super::atoms::{AtomId, Kind};
use super::facts::Look;
use super::program::{Need, Outcome, Place, conjuncts_of};
use super::truth::Truth;
use crate::engine::evaluate::budget::{Budget, Within};
use crate::engine::ids::QueryNumber;
use crate::engine::nfa::nested_paths::NestedPaths;
use crate::engine::nfa::path_of;
use crate::language::query::ast::{Axis, NameTest, Step};
use crate::xml::names::{NameId, NameTable, hash_name};
use crate::xml::tree::MessageTree;
use rustc_hash::FxHashMap;

/// Words of all levels of depth together: 64 MiB.
const LEVEL_WORDS_MAX: usize = 1 << 23;
/// Steps that a word of a row costs: it is kept, 12 bytes long, for as long as the message.
const STEPS_A_ROW_WORD: u64 = 8;
/// No word.
const NOWHERE: u32 = u32::MAX;

/// Why rows were not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The message has used up its steps.
    Up,
    /// The message is too deep for so many nested paths, or a path cannot be read this way.
    Over,
}

/// A name test that outlives the text of its path.
#[derive(Debug)]
enum Test {
    Any,
    Name(u64, Box<str>, Box<str>),
    AnyIn(Box<str>),
    AnyNamespace(Box<str>),
}

/// One step of a nested path.
#[derive(Debug)]
struct NestedStep {
    axis: Axis,
    test: Test,
    needs: Box<[Need]>,
}

/// A nested path: its steps; none if it cannot hold.
type Steps = Option<Box<[NestedStep]>>;

/// Whether a path is worth a bit in the message at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    Unknown,
    None,
    Some,
}

/// What 64 steps have in common: they are the steps of one number, counted from the anchor, of nested
/// paths whose numbers share a word.
#[derive(Debug, Default)]
struct StepWord {
    /// Which step.
    level: u32,
    /// Word of the numbers of the paths.
    numbers: u32,
    /// The word of the steps after these.
    next: u32,
    /// Last steps.
    last: u64,
    /// Steps whose next step leads to a child, a descendant, or the element itself and its descendants.
    child: u64,
    below: u64,
    own: u64,
    /// Steps with conditions, or with a pattern for a name.
    checked: u64,
    /// Those of them that have a condition found from a value.
    found: u64,
    /// The axis of the steps themselves; used of first steps.
    from_child: u64,
    from_below: u64,
    from_own: u64,
}

/// Words and the bits of them that a name, or an atom, is about; ascending.
type Masks = Vec<(u32, u64)>;

/// Finds rows; keeps the steps of the nested paths, and its memory, from message to message.
#[derive(Debug, Default)]
pub(super) struct BottomUp {
    /// By number of the nested path; compiled when first needed.
    paths: Vec<Option<Steps>>,
    chances: Vec<Chance>,
    /// Whether some plan of the message asks for it, by number.
    asked: Vec<bool>,
    words: Vec<StepWord>,
    /// First word of first steps.
    first_words: u32,
    of_name: FxHashMap<NameId, Masks>,
    of_any: Masks,
    of_atom: FxHashMap<AtomId, Masks>,
    kinds: u8,
    /// Per level of depth: what children have satisfied, and what lies below has.
    child: Vec<u64>,
    below: Vec<u64>,
    /// Per level of depth: the words of `below` that are not zero.
    touched: Vec<Vec<u32>>,
    /// What the element at hand satisfies, and the words of it that are not zero.
    own: Vec<u64>,
    own_words: Vec<u32>,
    allowed: Vec<u64>,
    allowed_words: Vec<u32>,
    row: Vec<(u32, u64)>,
    row_words: Vec<u32>,
}

impl BottomUp {
    /// Forgets what was compiled, because the nested paths or the atoms are others now.
    pub(crate) fn reset(&mut self) {
        *self = BottomUp::default();
    }

    /// Bytes held by what is compiled, roughly.
    pub(crate) fn memory(&self) -> usize {
        let steps = self.paths.iter().flatten().flatten();
        steps.map(|steps| 64 * steps.len()).sum::<usize>() + 16 * self.paths.len()
    }

    /// Forgets the message before.
    pub(crate) fn begin_message(&mut self, nested: &NestedPaths, look: &mut Look<'_, '_>) {
        look.post.index.find_names(look.message.tree, look.names);
        self.chances.clear();
        self.chances.resize(nested.len(), Chance::Unknown);
        self.asked.clear();
        self.asked.resize(nested.len(), false);
        if self.paths.len() < nested.len() {
            self.paths.resize_with(nested.len(), || None);
        }
    }

    /// Asks for the nested paths of one plan, unless one of them asks for a name that the message does not
    /// have. False if one cannot be read this way.
    pub(crate) fn ask(
        &mut self,
        numbers: &[QueryNumber],
        nested: &NestedPaths,
        look: &mut Look<'_, '_>,
    ) -> bool {
        for &number in numbers {
            match self.chance(number, nested, look) {
                None => return false,
                Some(Chance::None) => return true,
                Some(_) => {}
            }
        }
        numbers.iter().for_each(|&number| self.want(number));
        true
    }

    /// Gives a path bits, and those that it asks for.
    fn want(&mut self, number: QueryNumber) {
        if std::mem::replace(&mut self.asked[number as usize], true) {
            return;
        }
        let mut inner = Vec::new();
        let steps = self.paths[number as usize].as_ref().and_then(|steps| steps.as_deref());
        for need in steps.unwrap_or_default().iter().flat_map(|step| &step.needs) {
            if let Need::Nested(number) = need {
                inner.push(*number);
            }
        }
        inner.into_iter().for_each(|number| self.want(number));
    }

    /// Finds which of the nested paths that were asked for hold at the wanted elements. Charges an element for
    /// itself, a word, and a condition that is looked at.
    ///
    /// `truth` is begun here.
    pub(crate) fn find_rows(
        &mut self,
        nested: &NestedPaths,
        wanted: &[u64],
        look: &mut Look<'_, '_>,
        truth: &mut Truth,
        budget: &mut Budget,
    ) -> Result<(), Given> {
        let tree = look.message.tree;
        // New atoms have come with the paths.
        look.atoms.learn_names(look.names);
        look.facts.begin();
        let asked = self.asked.iter().enumerate().filter(|(_, is_asked)| **is_asked);
        let asked: Vec<QueryNumber> = asked.map(|(number, _)| number as QueryNumber).collect();
        let anchors = wanted.iter().map(|word| word.count_ones() as usize).sum();
        truth.begin(tree.len(), anchors, nested.len());
        if asked.is_empty() {
            return Ok(());
        }
        self.lay_out(&asked, look.names);
        let depth = tree.depth.iter().max().map_or(0, |&depth| depth as usize + 1);
        let width = self.words.len();
        if depth.saturating_mul(2 * width) > LEVEL_WORDS_MAX {
            return Err(Given::Over);
        }
        self.child.clear();
        self.child.resize(depth * width, 0);
        self.below.clear();
        self.below.resize(depth * width, 0);
        self.touched.iter_mut().for_each(Vec::clear);
        self.touched.resize_with(depth, Vec::new);
        self.own.clear();
        self.own.resize(width, 0);
        self.own_words.clear();
        self.allowed.clear();
        self.allowed.resize(width, 0);
        self.climb(wanted, look, truth, budget).map_err(|_| Given::Up)
    }

    /// Whether a nested path may hold somewhere in the message, as far as names tell, and the paths that it
    /// asks for. None if its steps cannot be read this way.
    fn chance(
        &mut self,
        number: QueryNumber,
        nested: &NestedPaths,
        look: &mut Look<'_, '_>,
    ) -> Option<Chance> {
        let at = number as usize;
        if self.chances[at] != Chance::Unknown {
            return Some(self.chances[at]);
        }
        if self.paths[at].is_none() {
            self.paths[at] = Some(steps_of(number, nested, look)?);
        }
        let mut chance = Chance::Some;
        let mut inner = Vec::new();
        match self.paths[at].as_ref().expect("compiled above") {
            None => chance = Chance::None,
            Some(steps) => {
                for step in steps {
                    if let Test::Name(hash, uri, local) = &step.test {
                        let id = look.names.find(*hash, uri.as_bytes(), local.as_bytes());
                        if !id.is_some_and(|id| look.post.index.has_element(id)) {
                            chance = Chance::None;
                        }
                    }
                    inner.extend(step.needs.iter().filter_map(|need| match need {
                        Need::Nested(inner) => Some(*inner),
                        _ => None,
                    }));
                }
            }
        }
        if chance == Chance::Some {
            for inner in inner {
                if self.chance(inner, nested, look)? == Chance::None {
                    chance = Chance::None;
                }
            }
        }
        self.chances[at] = chance;
        Some(chance)
    }

    /// Gives every step of the paths its bit. Later steps come first: what an element satisfies of a next
    /// step that leads to the element itself is known when the step is decided.
    fn lay_out(&mut self, numbers: &[QueryNumber], names: &NameTable) {
        self.words.clear();
        self.of_name.clear();
        self.of_any.clear();
        self.of_atom.clear();
        self.kinds = 0;
        let paths = &self.paths;
        let steps_of = |number: QueryNumber| {
            paths[number as usize].as_ref().and_then(|steps| steps.as_deref()).unwrap_or_default()
        };
        let longest = numbers.iter().map(|&number| steps_of(number).len()).max().unwrap_or(0);
        let mut next_words: Vec<(u32, u32)> = Vec::new();
        let mut here: Vec<(u32, u32)> = Vec::new();
        for level in (0..longest).rev() {
            here.clear();
            if level == 0 {
                self.first_words = self.words.len() as u32;
            }
            for &number in numbers {
                let steps = steps_of(number);
                let Some(step) = steps.get(level) else { continue };
                let (numbers, bit) = (number / 64, 1 << (number % 64));
                if here.last().is_none_or(|&(last, _)| last != numbers) {
                    let next = next_words.binary_search_by_key(&numbers, |&(word, _)| word);
                    let next = next.map_or(NOWHERE, |at| next_words[at].1);
                    here.push((numbers, self.words.len() as u32));
                    let level = level as u32;
                    self.words.push(StepWord { level, numbers, next, ..StepWord::default() });
                }
                let at = self.words.len() as u32 - 1;
                let word = &mut self.words[at as usize];
                match steps.get(level + 1).map(|next| next.axis) {
                    None => word.last |= bit,
                    Some(Axis::Child) => word.child |= bit,
                    Some(Axis::Descendant) => word.below |= bit,
                    Some(Axis::DescendantOrSelf) => word.own |= bit,
                }
                match step.axis {
                    Axis::Child => word.from_child |= bit,
                    Axis::Descendant => word.from_below |= bit,
                    Axis::DescendantOrSelf => word.from_own |= bit,
                }
                let is_pattern = matches!(step.test, Test::AnyIn(_) | Test::AnyNamespace(_));
                if is_pattern || !step.needs.is_empty() {
                    word.checked |= bit;
                }
                let found = step.needs.iter().find_map(|need| match need {
                    Need::Found(kind, atom) => Some((*kind, *atom)),
                    _ => None,
                });
                if let Some((kind, atom)) = found {
                    word.found |= bit;
                    self.kinds |= 1 << kind as u8;
                    add(self.of_atom.entry(atom).or_default(), at, bit);
                }
                let named = match &step.test {
                    Test::Name(hash, uri, local) => {
                        let id = names.find(*hash, uri.as_bytes(), local.as_bytes());
                        self.of_name
                            .entry(id.expect("paths without a chance are left out"))
                            .or_default()
                    }
                    _ => &mut self.of_any,
                };
                add(named, at, bit);
            }
            std::mem::swap(&mut next_words, &mut here);
        }
    }

    /// All elements, the last one first.
    fn climb(
        &mut self,
        wanted: &[u64],
        look: &mut Look<'_, '_>,
        truth: &mut Truth,
        budget: &mut Budget,
    ) -> Within<()> {
        let tree = look.message.tree;
        let width = self.words.len();
        let empty = Masks::new();
        for element in (0..tree.len() as u32).rev() {
            let depth = tree.depth[element as usize] as usize;
            let name = tree.name[element as usize];
            let named = self.of_name.get(&name).unwrap_or(&empty);
            let mut steps = 1;
            if !(named.is_empty() && self.of_any.is_empty()) {
                let here = Here {
                    element,
                    paths: &self.paths,
                    words: &self.words,
                    first_words: self.first_words,
                    child: &self.child[depth * width..(depth + 1) * width],
                    below: &self.below[depth * width..(depth + 1) * width],
                };
                let (own, allowed) = (&mut self.own, &mut self.allowed);
                if self.kinds != 0 {
                    for kind in super::block_index::kinds_in(self.kinds) {
                        steps += allow(
                            element,
                            kind,
                            &self.of_atom,
                            look,
                            allowed,
                            &mut self.allowed_words,
                        );
                    }
                }
                for (at, mask) in Both::new(named, &self.of_any) {
                    steps += 1;
                    let held = here.decide(at, mask, own, allowed, look, &mut steps);
                    if held != 0 {
                        own[at as usize] = held;
                        self.own_words.push(at);
                    }
                }
                for at in self.allowed_words.drain(..) {
                    allowed[at as usize] = 0;
                }
            }
            steps += (self.touched[depth].len() + self.own_words.len()) as u64;
            budget.charge(steps + look.facts.take_read())?;
            if wanted[element as usize / 64] >> (element % 64) & 1 == 1 {
                let added = self.add_row(element, depth, truth);
                budget.charge(added * STEPS_A_ROW_WORD)?;
            }
            self.hand_up(depth);
        }
        Ok(())
    }

    /// What holds at an anchor, to `truth`; how many words that are new.
    fn add_row(&mut self, anchor: u32, depth: usize, truth: &mut Truth) -> u64 {
        let width = self.words.len();
        let (child, below) = (&self.child[depth * width..], &self.below[depth * width..]);
        let is_first = |at: &&u32| **at >= self.first_words;
        self.row_words.clear();
        self.row_words.extend(self.touched[depth].iter().filter(is_first));
        self.row_words.extend(self.own_words.iter().filter(is_first));
        self.row_words.sort_unstable();
        self.row_words.dedup();
        self.row.clear();
        for &at in &self.row_words {
            let (word, at) = (&self.words[at as usize], at as usize);
            let bits = child[at] & word.from_child
                | below[at] & word.from_below
                | (below[at] | self.own[at]) & word.from_own;
            if bits != 0 {
                self.row.push((word.numbers, bits));
            }
        }
        truth.add_words(anchor, &self.row)
    }

    /// Gives the parent what the element and what lies below it satisfy.
    fn hand_up(&mut self, depth: usize) {
        let width = self.words.len();
        if depth == 0 {
            self.own_words.clear();
            return;
        }
        let (above, here) = ((depth - 1) * width, depth * width);
        let (upper, lower) = self.touched.split_at_mut(depth);
        let touched = &mut upper[depth - 1];
        for at in lower[0].drain(..) {
            let at = at as usize;
            let bits = std::mem::take(&mut self.below[here + at]);
            self.child[here + at] = 0;
            if self.below[above + at] == 0 {
                touched.push(at as u32);
            }
            self.below[above + at] |= bits;
        }
        for at in self.own_words.drain(..) {
            let at = at as usize;
            let bits = std::mem::take(&mut self.own[at]);
            if self.below[above + at] == 0 {
                touched.push(at as u32);
            }
            self.below[above + at] |= bits;
            self.child[above + at] |= bits;
        }
    }
}

/// One element while it is decided.
struct Here<'b> {
    element: u32,
    paths: &'b [Option<Steps>],
    words: &'b [StepWord],
    first_words: u32,
    child: &'b [u64],
    below: &'b [u64],
}

impl Here<'_> {
    /// Of the steps `mask` of a word those that the element satisfies.
    fn decide(
        &self,
        at: u32,
        mask: u64,
        own: &[u64],
        allowed: &[u64],
        look: &mut Look<'_, '_>,
        steps: &mut u64,
    ) -> u64 {
        let word = &self.words[at as usize];
        let mut ready = word.last;
        if word.next != NOWHERE {
            let next = word.next as usize;
            ready |= self.child[next] & word.child
                | self.below[next] & word.below
                | (self.below[next] | own[next]) & word.own;
        }
        let ready = ready & mask;
        let mut held = ready & !word.checked;
        let mut rest = ready & word.checked & (allowed[at as usize] | !word.found);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            let path = self.paths[(word.numbers * 64 + bit) as usize].as_ref();
            let step =
                path.and_then(|steps| steps.as_ref()).map(|steps| &steps[word.level as usize]);
            let step = step.expect("only paths that may hold have bits");
            if self.passes(step, look, steps) {
                held |= 1 << bit;
            }
        }
        held
    }

    /// Whether the element has the name of a step, where that is a pattern, and meets its conditions.
    fn passes(&self, step: &NestedStep, look: &mut Look<'_, '_>, steps: &mut u64) -> bool {
        let name = look.message.tree.name[self.element as usize];
        let is_named = match &step.test {
            Test::Any | Test::Name(..) => true,
            Test::AnyIn(uri) => *look.names.uri(name) == **uri,
            Test::AnyNamespace(local) => *look.names.local(name) == **local,
        };
        is_named
            && step.needs.iter().all(|&need| {
                *steps += 1;
                match need {
                    Need::Found(kind, atom) => {
                        let satisfied = look.satisfied(self.element, kind);
                        look.atoms_at(satisfied).contains(&atom)
                    }
                    Need::Tried(atom) => look.holds(atom, self.element),
                    Need::Nested(number) => self.holds(number, look, steps),
                }
            })
    }

    /// Whether a nested path holds at the element.
    fn holds(&self, number: QueryNumber, look: &mut Look<'_, '_>, steps: &mut u64) -> bool {
        let first = &self.words[self.first_words as usize..];
        let Ok(at) = first.binary_search_by_key(&(number / 64), |word| word.numbers) else {
            return false;
        };
        let (word, at) = (&first[at], self.first_words as usize + at);
        let bit = 1 << (number % 64);
        if word.from_child & bit != 0 {
            return self.child[at] & bit != 0;
        }
        if self.below[at] & bit != 0 {
            return true;
        }
        // `.//.` is a path of one step, and asks for no nested path at its anchor.
        word.from_own & bit != 0
            && self.paths[number as usize]
                .as_ref()
                .and_then(|path| path.as_ref())
                .is_some_and(|path| self.passes(&path[0], look, steps))
    }
}

/// Marks the steps that have a condition which a value of the element satisfies; how many words.
fn allow(
    element: u32,
    kind: Kind,
    of_atom: &FxHashMap<AtomId, Masks>,
    look: &mut Look<'_, '_>,
    allowed: &mut [u64],
    allowed_words: &mut Vec<u32>,
) -> u64 {
    let satisfied = look.satisfied(element, kind);
    let mut steps = satisfied.len() as u64;
    for atom in look.atoms_at(satisfied) {
        let masks = of_atom.get(atom).map_or(&[][..], Vec::as_slice);
        steps += masks.len() as u64;
        for &(at, bits) in masks {
            if allowed[at as usize] == 0 {
                allowed_words.push(at);
            }
            allowed[at as usize] |= bits;
        }
    }
    steps
}

fn add(masks: &mut Masks, at: u32, bit: u64) {
    match masks.last_mut() {
        Some((last, bits)) if *last == at => *bits |= bit,
        _ => masks.push((at, bit)),
    }
}

/// Two lists of masks as one, ascending.
struct Both<'m> {
    one: &'m [(u32, u64)],
    other: &'m [(u32, u64)],
}

impl<'m> Both<'m> {
    fn new(one: &'m [(u32, u64)], other: &'m [(u32, u64)]) -> Self {
        Both { one, other }
    }
}

impl Iterator for Both<'_> {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        let at = match (self.one.first(), self.other.first()) {
            (None, None) => return None,
            (Some(one), None) => one.0,
            (None, Some(other)) => other.0,
            (Some(one), Some(other)) => one.0.min(other.0),
        };
        let mut bits = 0;
        for list in [&mut self.one, &mut self.other] {
            if let Some((first, rest)) = list.split_first()
                && first.0 == at
            {
                bits |= first.1;
                *list = rest;
            }
        }
        Some((at, bits))
    }
}

/// Reads the steps of a nested path. None if one of them is no conjunction at its element.
fn steps_of(number: QueryNumber, nested: &NestedPaths, look: &mut Look<'_, '_>) -> Option<Steps> {
    let steps = path_of(nested.text(number));
    let mut read = Vec::with_capacity(steps.len());
    for step in &steps {
        let mut conjuncts = Vec::new();
        match conjuncts_of(std::slice::from_ref(step), Some(nested), look.atoms, &mut conjuncts) {
            Outcome::Conjunction => {}
            Outcome::Never => return Some(None),
            Outcome::Complex => return None,
        }
        if conjuncts.iter().any(|conjunct| conjunct.place != Place::Up(0)) {
            return None;
        }
        let needs = conjuncts.iter().map(|conjunct| conjunct.need).collect();
        read.push(NestedStep { axis: step.axis, test: test_of(step), needs });
    }
    Some(Some(read.into()))
}

fn test_of(step: &Step<'_>) -> Test {
    match &step.test {
        NameTest::Any => Test::Any,
        NameTest::Name { uri, local } => {
            Test::Name(hash_name(uri, local), (&**uri).into(), (&**local).into())
        }
        NameTest::AnyIn { uri } => Test::AnyIn((&**uri).into()),
        NameTest::AnyNamespace { local } => Test::AnyNamespace((&**local).into()),
    }
}

/// Elements of the subtrees of all marked elements together.
pub(super) fn visits(wanted: &[u64], tree: &MessageTree) -> u64 {
    let mut visits = 0;
    let mut from = 0;
    while let Some(anchor) = super::nested_states::next_wanted(wanted, from) {
        visits += u64::from(tree.element_end[anchor as usize] - anchor);
        from = anchor + 1;
    }
    visits
}
