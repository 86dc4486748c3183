//! Routing while a message arrives: which targets are reached so far, and whether more can be.
//!
//! The push parser's events drive the lazy DFA, one state an open element. What a condition needs of a
//! message decides when it can be looked at ([`super::depths`]): start tags are there at once; for what
//! lies inside an element, the element is held from its start tag to its end. So memory is that of the
//! open elements, and of the outermost element that some path with targets still unreached looks into.
//!
//! A decision is *final* when every target has been reached, or nothing that can still come or is held
//! leads to another. What comes after it is only checked for being well-formed.
//!
//! Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1, for what is ignored; deciding before the
//! end of the message is ours.

use super::RoutingTable;
use super::open_elements::{Part, Siblings};
use crate::engine::collect::Collector;
use crate::engine::conditions::PostProcessor;
use crate::engine::counters::Stats;
use crate::engine::dfa::{BlockId, DfaState, INITIAL, LazyDfa};
use crate::engine::evaluate::budget::Budget;
use crate::engine::ids::PlanId;
use crate::engine::nfa::Nfa;
use crate::engine::options::Options;
use crate::engine::predicates::program::Place;
use crate::engine::predicates::run::{Blocks, Contents, Ends};
use crate::engine::reach::is_reached;
use crate::engine::runner::{Conditions, Marks, Run};
use crate::xml::names::NameTable;
use crate::xml::parser::push::{Bounds, EndTag, Handler, Markup, PushParser, StartTag, Text};
use crate::xml::parser::{Code, Refusal};
use crate::xml::tree::Message;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a held part up to which it is looked at whenever an element in it has ended; from there on
/// when it has doubled, so that looking costs what has arrived.
const OFTEN: usize = 256;

/// Routes messages as they arrive, one after another.
#[derive(Debug)]
pub struct RoutingStream {
    parser: PushParser,
    router: Router,
    /// Bytes that had arrived when the decision fell.
    decided_at: Option<u64>,
}

impl RoutingStream {
    /// A stream over a table that prunes. What has to be held of a message is bounded as a whole message is
    /// by the limits in `options`.
    pub fn new(table: Arc<RoutingTable>, options: Options, bounds: Bounds) -> Self {
        assert!(table.prunes, "what is looked at to the end cannot be decided before it");
        let parser = PushParser::new(options.limits.clone(), bounds);
        let mut stream =
            RoutingStream { parser, router: Router::new(table, options), decided_at: None };
        stream.begin(None);
        stream
    }

    /// Begins a message, whatever has become of the one before.
    pub fn begin(&mut self, encoding: Option<&str>) {
        self.parser.begin(encoding);
        self.router.begin();
        self.decided_at = None;
    }

    /// Takes in the next bytes of the message.
    ///
    /// # Errors
    /// The message is refused, or more of it would have to be held than may be.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), Refusal> {
        self.parser.feed(block, &mut self.router)?;
        self.look()
    }

    /// The message ends here; the decision is final.
    ///
    /// # Errors
    /// As for [`RoutingStream::feed`].
    pub fn finish(&mut self) -> Result<(), Refusal> {
        self.parser.finish(&mut self.router)?;
        self.look()
    }

    fn look(&mut self) -> Result<(), Refusal> {
        self.router.settle(self.parser.names());
        if let Some((code, limit, maximum)) = self.router.too_much {
            return Err(self.parser.refuse_limit(code, limit, maximum));
        }
        if self.decided_at.is_none() && self.router.is_final() {
            self.router.decide();
            self.decided_at = Some(self.parser.bytes());
        }
        Ok(())
    }

    /// The targets reached so far, ascending.
    pub fn targets(&self) -> Vec<u32> {
        let found = &self.router.found;
        (0..self.router.table.targets()).filter(|&target| found.contains(target)).collect()
    }

    /// Bytes that had arrived when the decision was final; none while it is not.
    pub fn decided_at(&self) -> Option<u64> {
        self.decided_at
    }

    /// Bytes of memory held for the message, about.
    pub fn held_bytes(&self) -> usize {
        self.parser.held_bytes() + self.router.spine.memory() + self.router.held.memory()
    }
}

/// Plans of one block that look into the same place, under numbers of their own.
#[derive(Debug, Default)]
struct Groups {
    groups: Vec<Group>,
    of_block: FxHashMap<BlockId, Range<u32>>,
}

#[derive(Debug)]
struct Group {
    plans: Box<[PlanId]>,
    targets: Box<[u64]>,
    /// The highest element that they look into; none if start tags are enough.
    place: Option<Place>,
}

impl Blocks for Groups {
    fn plans(&self, group: BlockId) -> &[PlanId] {
        &self.groups[group as usize].plans
    }

    fn has_reached(&self, group: BlockId, found: &Collector) -> bool {
        is_reached(&self.groups[group as usize].targets, found)
    }
}

impl Groups {
    /// The groups of a block, made when it is first asked for.
    fn of(&mut self, block: BlockId, dfa: &LazyDfa, table: &RoutingTable) -> Range<u32> {
        if let Some(known) = self.of_block.get(&block) {
            return known.clone();
        }
        let start = self.groups.len() as u32;
        let mut plans = dfa.block(block).plans.to_vec();
        let place = |plan: &PlanId| table.depths.of_plan(*plan);
        plans.sort_by_key(|plan| (place(plan), *plan));
        for alike in plans.chunk_by(|a, b| place(a) == place(b)) {
            let mut targets = vec![0; table.reach.words()];
            alike.iter().for_each(|&plan| super::add(&mut targets, table.reach.of_plan(plan)));
            self.groups.push(Group {
                plans: alike.into(),
                targets: targets.into(),
                place: place(&alike[0]),
            });
        }
        let groups = start..self.groups.len() as u32;
        self.of_block.insert(block, groups.clone());
        groups
    }
}

/// A group, and an element of the held part at which its paths end.
type Pending = (BlockId, u32);

#[derive(Debug)]
struct Router {
    table: Arc<RoutingTable>,
    options: Options,
    dfa: LazyDfa,
    contents: Contents,
    conditions: Conditions,
    marks: Marks,
    post: PostProcessor,
    groups: Groups,
    found: Collector,
    over_budget: Collector,
    undecided: Collector,
    budget: Budget,
    /// The DFA state of each open element.
    states: Vec<DfaState>,
    /// The open elements, without text.
    spine: Part,
    /// Their places among their siblings, and the children that each has had; first those of the document.
    ordinals: Vec<(u32, u32)>,
    siblings: Vec<Siblings>,
    /// The open elements down to one that is looked into, and all of that one.
    held: Part,
    held_ordinals: Vec<(u32, u32)>,
    /// Depth of the element that is looked into, while it is open.
    held_from: Option<usize>,
    /// By the depth of the open element that they look into.
    pending: Vec<Vec<Pending>>,
    /// Those whose element has ended.
    ripe: Vec<Pending>,
    /// Length of the held part when it was looked at last.
    looked_at: usize,
    /// The root element has ended.
    has_ended: bool,
    is_decided: bool,
    too_much: Option<(Code, &'static str, u64)>,
}

impl Router {
    fn new(table: Arc<RoutingTable>, options: Options) -> Self {
        Router {
            budget: Budget::new(options.message_steps_max),
            table,
            options,
            dfa: LazyDfa::default(),
            contents: Contents::default(),
            conditions: Conditions::default(),
            marks: Marks::default(),
            post: PostProcessor::default(),
            groups: Groups::default(),
            found: Collector::default(),
            over_budget: Collector::default(),
            undecided: Collector::default(),
            states: Vec::new(),
            spine: Part::default(),
            ordinals: Vec::new(),
            siblings: Vec::new(),
            held: Part::default(),
            held_ordinals: Vec::new(),
            held_from: None,
            pending: Vec::new(),
            ripe: Vec::new(),
            looked_at: 0,
            has_ended: false,
            is_decided: false,
            too_much: None,
        }
    }

    fn begin(&mut self) {
        let numbers = self.table.query_count();
        for collector in [&mut self.found, &mut self.over_budget, &mut self.undecided] {
            collector.reserve(numbers);
            collector.clear();
        }
        self.marks.begin(self.table.plan_count(), 0);
        self.budget = Budget::new(self.options.message_steps_max);
        self.forget();
        (self.has_ended, self.is_decided, self.too_much) = (false, false, None);
    }

    fn is_over_cache(&self) -> bool {
        self.dfa.memory() + self.contents.memory() > self.options.cache_bytes_max
    }

    /// Drops the caches, while nothing is held that knows of them.
    fn restart(&mut self, names: &NameTable) {
        self.dfa.reset(0);
        self.contents = Contents::default();
        self.groups = Groups::default();
        self.dfa.prepare(&*self.table, names);
        let mut from = INITIAL;
        for (state, &name) in self.states.iter_mut().zip(&self.spine.tree.name) {
            from = self.dfa.step_by_name(&*self.table, from, name);
            *state = from;
        }
    }

    /// Forgets what is known of the message besides what has been found.
    fn forget(&mut self) {
        self.states.clear();
        self.spine.clear();
        self.ordinals.clear();
        self.pending.iter_mut().for_each(Vec::clear);
        self.release();
        if let Some(document) = self.siblings.first_mut() {
            document.begin();
        }
    }

    /// Forgets the held part.
    fn release(&mut self) {
        self.held.clear();
        self.held_from = None;
        self.ripe.clear();
        self.looked_at = 0;
    }

    /// Nothing more is looked at.
    fn decide(&mut self) {
        self.is_decided = true;
        self.forget();
    }

    fn is_final(&self) -> bool {
        let is_left = |(group, _): &Pending| !self.groups.has_reached(*group, &self.found);
        self.has_ended
            || self.states.first().is_some_and(|&root| {
                self.dfa.has_reached_below(root, &self.found)
                    && !self.pending.iter().flatten().chain(&self.ripe).any(is_left)
            })
    }

    /// Looks at what has ended in the held part, if it is time.
    fn settle(&mut self, names: &NameTable) {
        let is_closed = self.held_from.is_none();
        let length = self.held.tree.len();
        let is_time = is_closed || length <= OFTEN || length >= 2 * self.looked_at;
        if !self.ripe.is_empty() && is_time {
            self.looked_at = length;
            let mut ripe = std::mem::take(&mut self.ripe);
            self.held.end_open();
            self.evaluate(true, &mut ripe, names);
            self.ripe = ripe;
            self.ripe.clear();
        }
        if is_closed && length > 0 {
            self.release();
        }
    }

    /// Decides groups of plans at elements of the held part, or of the spine.
    fn evaluate(&mut self, is_held: bool, ends: &mut Vec<Pending>, names: &NameTable) {
        let found = &self.found;
        ends.retain(|(group, _)| !self.groups.has_reached(*group, found));
        if ends.is_empty() {
            return;
        }
        ends.sort_unstable();
        let mut runs: Vec<(BlockId, Range<usize>)> = Vec::new();
        for (at, &(group, _)) in ends.iter().enumerate() {
            match runs.last_mut() {
                Some((last, range)) if *last == group => range.end = at + 1,
                _ => runs.push((group, at..at + 1)),
            }
        }
        let elements: Vec<u32> = ends.iter().map(|&(_, element)| element).collect();
        let (part, ordinals) = match is_held {
            true => (&self.held, &self.held_ordinals),
            false => (&self.spine, &self.ordinals),
        };
        self.post.begin_message();
        if self.table.depths.has_positions {
            self.post.index.know_ordinals(ordinals);
        }
        let mut run = Run {
            message: Message { tree: &part.tree, source: b"" },
            names,
            post: &mut self.post,
            session: None,
            scratch: None,
            collector: &mut self.found,
            over_budget: &mut self.over_budget,
            undecided: &mut self.undecided,
            budget: self.budget,
            stats: &mut Stats::default(),
            cache_bytes_max: self.options.cache_bytes_max,
            steps_max: self.options.steps_max,
            offset: 0,
        };
        let ends = Ends { runs: &runs, elements: &elements };
        let (contents, marks) = (&mut self.contents, &mut self.marks);
        self.conditions.decide(&*self.table, &self.groups, contents, ends, &mut run, marks);
        self.budget = run.budget;
        // What has not been decided may hold.
        self.found.take_all(&mut self.over_budget);
        self.found.take_all(&mut self.undecided);
        self.table.conclude(&mut self.found);
    }

    /// The plans that end at the element that has just begun.
    fn end_paths(&mut self, state: DfaState, names: &NameTable) {
        let depth = self.states.len() - 1;
        let mut at_once = Vec::new();
        for &block in self.dfa.planned(state) {
            if self.dfa.has_reached(block, &self.found) {
                continue;
            }
            for group in self.groups.of(block, &self.dfa, &self.table) {
                if self.groups.has_reached(group, &self.found) {
                    continue;
                }
                match self.groups.groups[group as usize].place {
                    None => at_once.push((group, depth as u32)),
                    Some(place) => {
                        let into = match place {
                            Place::Up(parents) => depth - parents as usize,
                            Place::Depth(place) => depth.min(place as usize),
                        };
                        let element = self.held.open.last().expect("what is looked into is held");
                        self.pending[into].push((group, *element));
                    }
                }
            }
        }
        if !at_once.is_empty() {
            self.spine.end_open();
            self.evaluate(false, &mut at_once, names);
        }
    }
}

impl Handler for Router {
    fn start(&mut self, tag: &StartTag<'_>) {
        if self.is_decided || self.too_much.is_some() {
            return;
        }
        let names = tag.names();
        self.settle(names);
        let depth = self.states.len();
        if self.is_over_cache() && self.held_from.is_none() {
            self.restart(names);
        }
        self.dfa.prepare(&*self.table, names);
        let from = self.states.last().copied().unwrap_or(INITIAL);
        let state = self.dfa.step_by_name(&*self.table, from, tag.name);
        self.states.push(state);
        self.spine.start(tag);
        if self.table.depths.has_positions {
            self.siblings.resize_with(self.siblings.len().max(depth + 2), Siblings::default);
            self.ordinals.push(self.siblings[depth].add(tag.name));
            self.siblings[depth + 1].begin();
        }
        self.pending.resize_with(self.pending.len().max(depth + 1), Vec::new);
        let mut is_new = false;
        for (_, block) in self.dfa.accepting(state) {
            is_new |= !self.found.has_words(&block.words);
            self.found.add_words(&block.words);
        }
        if is_new {
            self.table.conclude(&mut self.found);
        }
        if self.held_from.is_some() {
            self.held.start(tag);
        } else if !self.dfa.has_reached_inside(state, &self.found) {
            self.held.copy_open(&self.spine);
            self.held_ordinals.clone_from(&self.ordinals);
            self.held_from = Some(depth);
        }
        self.end_paths(state, names);
        self.bound();
    }

    fn end(&mut self, _tag: &EndTag<'_>) {
        if self.is_decided || self.too_much.is_some() {
            return;
        }
        self.states.pop();
        self.spine.forget();
        self.ordinals.pop();
        let depth = self.states.len();
        if self.held_from.is_some() {
            self.held.end();
            self.ripe.append(&mut self.pending[depth]);
            self.held_from = self.held_from.filter(|&from| from != depth);
        }
        self.has_ended = depth == 0;
    }

    fn text(&mut self, text: &Text<'_>) {
        if self.held_from.is_some() {
            self.held.text(text.value);
            self.bound();
        }
    }

    fn markup(&mut self, _markup: &Markup<'_>) {
        self.held.markup();
    }
}

impl Router {
    /// Sees to it that no more is held than a whole message may have.
    fn bound(&mut self) {
        let limits = &self.options.limits;
        if self.held.tree.scratch.len() as u64 > u64::from(limits.message_bytes_max) {
            let maximum = limits.message_bytes_max.into();
            self.too_much = Some((Code::LimitMessageBytes, "message_bytes_max", maximum));
        } else if self.held.tree.len() as u64 > u64::from(limits.elements_max) {
            let maximum = limits.elements_max.into();
            self.too_much = Some((Code::LimitElements, "elements_max", maximum));
        }
    }
}
