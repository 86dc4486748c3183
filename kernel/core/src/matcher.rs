//! One message against an index: door, path matching, post-processing, collection.
//!
//! A [`Worker`] owns everything that changes while it runs (trees, caches, bitmaps), so an index or a
//! snapshot is shared by any number of workers without a lock on the way.

use crate::collect::Collector;
use crate::conditions::PostProcessor;
use crate::door::wire::Dictionaries;
use crate::door::{Door, Limits, Parsed, Refusal};
use crate::index::IndexState;
use crate::nfa::{Nfa, QueryNumber};
use crate::routing::RoutingTable;
use crate::runner::{Run, Runner};
use crate::snapshot::Snapshot;
use crate::xpath;
use crate::xpath::budget::Budget;
use std::sync::Arc;
use std::time::Instant;

/// How a worker runs the automaton.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a message may cost.
    pub limits: Limits,
    /// Bytes that the lazy DFA of one automaton may hold; 0 runs the plain NFA always.
    pub cache_bytes_max: usize,
    /// Steps that the evaluation of one expression on one message may take.
    pub steps_max: u64,
    /// Steps that one message may take over all queries.
    pub message_steps_max: u64,
    /// The dictionaries of element streams; none if they are not taken ([`Door::take_streams`]).
    pub streams: Option<Arc<Dictionaries>>,
}

/// Counters of a batch; see `pathcast.model.BatchStats`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "described once, in the Python class of the same fields")]
pub struct Stats {
    pub messages: u64,
    pub bytes: u64,
    pub refused: u64,
    pub matches: u64,
    pub nodes: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cache_resets: u64,
    pub nfa_messages: u64,
    pub evaluations: u64,
    pub steps: u64,
    pub verdicts: u64,
    pub deliveries: u64,
    pub result_bytes: u64,
    pub parsing_ns: u64,
    pub matching_ns: u64,
    pub collecting_ns: u64,
    pub customising_ns: u64,
}

impl Stats {
    /// Adds the counters of another worker.
    pub fn add(&mut self, other: &Stats) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.matches += other.matches;
        self.nodes += other.nodes;
        self.cache_hits += other.cache_hits;
        self.cache_misses += other.cache_misses;
        self.cache_resets += other.cache_resets;
        self.nfa_messages += other.nfa_messages;
        self.evaluations += other.evaluations;
        self.steps += other.steps;
        self.verdicts += other.verdicts;
        self.deliveries += other.deliveries;
        self.result_bytes += other.result_bytes;
        self.parsing_ns += other.parsing_ns;
        self.matching_ns += other.matching_ns;
        self.collecting_ns += other.collecting_ns;
        self.customising_ns += other.customising_ns;
    }
}

/// What a message is matched against.
pub trait Target {
    /// Calls `f` with the automata of now, which stay as they are until it returns.
    fn with<T>(&self, f: impl FnOnce(View<'_>) -> T) -> T;
}

/// The automata of one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    base: Option<&'v Snapshot>,
    delta: Option<&'v crate::nfa::growing::GrowingNfa>,
    removed: Option<&'v [u64]>,
    routes: Option<&'v RoutingTable>,
    /// What the caches of base and delta were compiled from.
    generation: u64,
    revision: u64,
}

impl<'v> View<'v> {
    const EMPTY: View<'static> =
        View { base: None, delta: None, removed: None, routes: None, generation: 1, revision: 1 };

    /// A snapshot alone.
    pub fn of_snapshot(snapshot: &'v Snapshot) -> Self {
        View { base: Some(snapshot), ..View::EMPTY }
    }

    /// A routing table: the numbers are its targets.
    pub fn of_routes(routes: &'v RoutingTable) -> Self {
        View { routes: Some(routes), ..View::EMPTY }
    }

    /// A changing index.
    pub fn of_index(state: &'v IndexState) -> Self {
        View {
            base: state.base().map(|base| &**base),
            delta: (!state.delta().is_empty()).then(|| state.delta()),
            removed: state.removed(),
            routes: None,
            generation: state.generation,
            revision: state.revision,
        }
    }

    /// Whether some expression needs more of a message than elements, attributes and text.
    pub fn needs_full_tree(&self) -> bool {
        self.base.is_some_and(Snapshot::needs_full_tree)
            || self.delta.is_some_and(Nfa::needs_full_tree)
    }

    fn number_count(&self) -> usize {
        self.base.map_or(0, Snapshot::len)
            + self.delta.map_or(0, |delta| delta.len())
            + self.routes.map_or(0, Nfa::query_count)
    }
}

/// Everything one thread needs to match messages.
#[derive(Debug)]
pub struct Worker {
    door: Door,
    engine: Engine,
    /// Counters since they were last taken.
    pub stats: Stats,
    /// What the last message has left undecided; not among the satisfied queries.
    pub undecided: Undecided,
}

/// Queries that a message leaves undecided; both lists ascend.
#[derive(Debug, Default)]
pub struct Undecided {
    /// Those whose evaluation has used up its own steps.
    pub by_query: Vec<QueryNumber>,
    /// Those that were left when the message had used up its steps over all queries.
    pub by_message: Vec<QueryNumber>,
}

impl Undecided {
    /// Empties it.
    pub fn clear(&mut self) {
        self.by_query.clear();
        self.by_message.clear();
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.by_query.len() + self.by_message.len()
    }

    /// Whether everything was decided.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A worker without its door.
#[derive(Debug)]
pub(crate) struct Engine {
    cache_bytes_max: usize,
    steps_max: u64,
    message_steps_max: u64,
    base: Runner,
    delta: Runner,
    post: PostProcessor,
    evaluation: xpath::Scratch,
    collector: Collector,
    /// Queries whose expression went past its budget.
    over_budget: Collector,
    /// Queries that the message had no steps left for.
    undecided: Collector,
}

impl Worker {
    /// A worker with empty caches.
    pub fn new(options: Options) -> Self {
        let mut door = Door::new(options.limits);
        door.take_streams(options.streams);
        Worker {
            door,
            engine: Engine::new(
                options.cache_bytes_max,
                options.steps_max,
                options.message_steps_max,
            ),
            stats: Stats::default(),
            undecided: Undecided::default(),
        }
    }

    /// Appends the numbers of the queries that the message satisfies, ascending.
    ///
    /// Errors: the door's refusal; nothing is appended then.
    pub fn match_message(
        &mut self,
        target: &impl Target,
        bytes: &[u8],
        encoding: Option<&str>,
        numbers: &mut Vec<QueryNumber>,
    ) -> Result<(), Refusal> {
        self.stats.messages += 1;
        self.stats.bytes += bytes.len() as u64;
        self.undecided.clear();
        loop {
            let started = Instant::now();
            let parsed = self.door.parse(bytes, encoding);
            self.stats.parsing_ns += started.elapsed().as_nanos() as u64;
            let parsed = parsed.inspect_err(|_| self.stats.refused += 1)?;
            let (engine, undecided) = (&mut self.engine, &mut self.undecided);
            let (stats, is_full) = (&mut self.stats, parsed.message.tree.is_full);
            let needs_full_tree = target.with(|view| {
                let needs_full_tree = view.needs_full_tree();
                if is_full || !needs_full_tree {
                    engine.run(view, parsed, numbers, undecided, stats);
                }
                needs_full_tree
            });
            // When the first query comes that sees more than elements, attributes and text, the
            // message at hand is read again; those that follow are read rightly at once.
            self.door.keep_full_tree(needs_full_tree);
            if is_full || !needs_full_tree {
                return Ok(());
            }
        }
    }
}

impl Engine {
    /// An engine with empty caches; see [`Options`].
    pub fn new(cache_bytes_max: usize, steps_max: u64, message_steps_max: u64) -> Self {
        Engine {
            cache_bytes_max,
            steps_max,
            message_steps_max,
            base: Runner::default(),
            delta: Runner::default(),
            post: PostProcessor::default(),
            evaluation: xpath::Scratch::default(),
            collector: Collector::default(),
            over_budget: Collector::default(),
            undecided: Collector::default(),
        }
    }

    /// The steps that a message may take from now on.
    pub fn set_message_steps_max(&mut self, steps: u64) {
        self.message_steps_max = steps;
    }

    /// Appends the numbers of the queries that a message satisfies, and of those that it leaves
    /// undecided; both ascending. The tree is full if the view needs that.
    pub fn run(
        &mut self,
        view: View<'_>,
        Parsed { message, names, .. }: Parsed<'_>,
        numbers: &mut Vec<QueryNumber>,
        undecided: &mut Undecided,
        stats: &mut Stats,
    ) {
        let started = Instant::now();
        let tree = message.tree;
        stats.nodes += (tree.len() + tree.attribute_name.len()) as u64;
        self.collector.reserve(view.number_count());
        self.over_budget.reserve(view.number_count());
        self.undecided.reserve(view.number_count());
        self.post.begin_message();
        let mut run = Run {
            message,
            names,
            post: &mut self.post,
            session: None,
            scratch: Some(&mut self.evaluation),
            collector: &mut self.collector,
            over_budget: &mut self.over_budget,
            undecided: &mut self.undecided,
            budget: Budget::new(self.message_steps_max),
            stats,
            cache_bytes_max: self.cache_bytes_max,
            steps_max: self.steps_max,
            offset: 0,
        };
        run.budget.take(tree.len() as u64);
        let mut used_nfa = false;
        if let Some(base) = view.base {
            self.base.follow(view.generation, 0);
            used_nfa |= self.base.run(&base.nfa(), &mut run);
        }
        if let Some(delta) = view.delta {
            let offset = view.base.map_or(0, Snapshot::len) as QueryNumber;
            self.delta.follow(view.revision, offset);
            used_nfa |= self.delta.run(delta, &mut run);
        }
        if let Some(routes) = view.routes {
            self.base.follow(view.generation, 0);
            used_nfa |= self.base.run(routes, &mut run);
            // What has not been decided may hold.
            run.collector.take_all(run.undecided);
            run.collector.take_all(run.over_budget);
            routes.conclude(run.collector);
        }
        let steps = run.budget.taken();
        let matched_at = Instant::now();
        let before = numbers.len();
        // What one alternative has decided is decided; what has used up its own steps says so.
        self.over_budget.remove_all(&self.collector);
        self.undecided.remove_all(&self.collector);
        self.undecided.remove_all(&self.over_budget);
        self.collector.drain_into(numbers, view.removed);
        if let Some(routes) = view.routes {
            let targets = numbers[before..].partition_point(|&number| number < routes.targets());
            numbers.truncate(before + targets);
        }
        self.over_budget.drain_into(&mut undecided.by_query, view.removed);
        self.undecided.drain_into(&mut undecided.by_message, view.removed);
        stats.verdicts += undecided.len() as u64;
        stats.steps += steps;
        stats.nfa_messages += u64::from(used_nfa);
        stats.matches += (numbers.len() - before) as u64;
        stats.matching_ns += (matched_at - started).as_nanos() as u64;
        stats.collecting_ns += matched_at.elapsed().as_nanos() as u64;
    }
}
