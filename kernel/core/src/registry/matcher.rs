//! One message against automata: path matching, post-processing, collection.
//!
//! An [`Engine`] owns everything that changes while it runs (caches, bitmaps), so a registry or a
//! snapshot is shared by any number of them without a lock on the way.

use crate::engine::collect::Collector;
use crate::engine::conditions::PostProcessor;
use crate::engine::counters::Stats;
use crate::engine::evaluate;
use crate::engine::evaluate::budget::Budget;
use crate::engine::ids::QueryNumber;
use crate::engine::runner::{Run, Runner};
use crate::engine::verdicts::Undecided;
use crate::engine::work::QueryWork;
use crate::registry::snapshot::automaton::FrozenAutomaton;
use crate::registry::target::View;
use crate::xml::parser::Parsed;
use std::time::Instant;

/// Everything that one thread needs to run messages through automata.
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

impl Engine {
    /// An engine with empty caches, for whose expressions one message may take so many steps each.
    pub(crate) fn new(steps_max: u64) -> Self {
        Engine {
            cache_bytes_max: 0,
            steps_max,
            message_steps_max: 0,
            base: Runner::default(),
            delta: Runner::default(),
            post: PostProcessor::default(),
            evaluation: evaluate::Scratch::default(),
            collector: Collector::default(),
            over_budget: Collector::default(),
            undecided: Collector::default(),
        }
    }

    /// The steps of single queries since they were last taken.
    pub(crate) fn take_work(&mut self, view: View<'_>) -> Vec<QueryWork> {
        let (mut work, View { generation, removed, .. }) = (Vec::new(), view);
        if let Some(base) = view.base {
            self.base.take_work(&base.nfa(), generation, removed, &mut work);
        }
        if let Some(delta) = view.delta {
            self.delta.take_work(delta, generation, removed, &mut work);
        }
        work
    }

    /// The bytes that caches may hold, of each automaton, and the steps that a message may take from now on.
    pub(crate) fn allow(&mut self, cache_bytes_max: usize, message_steps_max: u64) {
        (self.cache_bytes_max, self.message_steps_max) = (cache_bytes_max, message_steps_max);
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
