//! One message against an index: door, path matching, post-processing, collection.
//!
//! A [`Worker`] owns everything that changes while it runs (trees, caches, bitmaps), so an index or a
//! snapshot is shared by any number of workers without a lock on the way.

use crate::engine::collect::Collector;
use crate::engine::conditions::PostProcessor;
use crate::engine::counters::Stats;
use crate::engine::evaluate;
use crate::engine::evaluate::budget::Budget;
use crate::engine::ids::QueryNumber;
use crate::engine::options::Options;
use crate::engine::runner::{Run, Runner};
use crate::engine::verdicts::Undecided;
use crate::registry::snapshot::automaton::FrozenAutomaton;
use crate::registry::target::{Target, View};
use crate::xml::parser::{Door, Parsed, Refusal};
use std::time::Instant;

/// Everything one thread needs to match messages.
#[derive(Debug)]
pub struct Worker {
    door: Door,
    engine: Engine,
    /// Counters since they were last taken.
    pub stats: Stats,
    /// What the last message has left undecided; not among the satisfied queries.
    pub(crate) undecided: Undecided,
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
    evaluation: evaluate::Scratch,
    collector: Collector,
    /// Queries whose expression went past its budget.
    over_budget: Collector,
    /// Queries that the message had no steps left for.
    undecided: Collector,
}

impl Worker {
    /// A worker with empty caches.
    pub fn new(options: Options) -> Self {
        let door = Door::new(options.limits);
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
            let (stats, tree) = (&mut self.stats, parsed.message.tree);
            let is_full = tree.is_full;
            let needs_full_tree = target.with(|view| {
                let needs_full_tree = view.needs_full_tree();
                if is_full || !needs_full_tree {
                    let known = numbers.len();
                    engine.run(view, parsed, numbers, undecided, stats);
                    stats.nodes += (tree.len() + tree.attribute_name.len()) as u64;
                    stats.matches += (numbers.len() - known) as u64;
                    stats.verdicts += undecided.len() as u64;
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
    pub(crate) fn new(cache_bytes_max: usize, steps_max: u64, message_steps_max: u64) -> Self {
        Engine {
            cache_bytes_max,
            steps_max,
            message_steps_max,
            base: Runner::default(),
            delta: Runner::default(),
            post: PostProcessor::default(),
            evaluation: evaluate::Scratch::default(),
            collector: Collector::default(),
            over_budget: Collector::default(),
            undecided: Collector::default(),
        }
    }

    /// The steps that a message may take from now on.
    pub(crate) fn set_message_steps_max(&mut self, steps: u64) {
        self.message_steps_max = steps;
    }

    /// Appends the numbers of the queries that a message satisfies, and of those that it leaves
    /// undecided; both ascending. The tree is full if the view needs that. Counts its work, but neither the
    /// message nor what was found: the caller knows what that is.
    pub(crate) fn run(
        &mut self,
        view: View<'_>,
        Parsed { message, names, .. }: Parsed<'_>,
        numbers: &mut Vec<QueryNumber>,
        undecided: &mut Undecided,
        stats: &mut Stats,
    ) {
        let started = Instant::now();
        let tree = message.tree;
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
            let offset = view.base.map_or(0, FrozenAutomaton::len) as QueryNumber;
            self.delta.follow_growing(delta, view.generation, offset);
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
        stats.steps += steps;
        stats.nfa_messages += u64::from(used_nfa);
        stats.matching_ns += (matched_at - started).as_nanos() as u64;
        stats.collecting_ns += matched_at.elapsed().as_nanos() as u64;
    }
}
