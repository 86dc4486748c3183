//! Subscriptions of all kinds behind one face, changing while messages flow.
//!
//! A subscription goes one of three ways:
//!
//! - *shared*: its plan is one of the shared plans; everything that it has in common with others is
//!   done once;
//! - *gated*: it is a program, run on the messages in which one of its gate paths holds. The gate is a
//!   query of the index, so that a hundred thousand of them cost what a hundred thousand queries cost;
//! - *filtering*: a bare XPath whose messages are delivered as they are; a query of the index.
//!
//! A message holds `state` shared, so that a subscription counts from the next message on. Numbers of
//! subscriptions are never used again, so those of a batch mean the same for ever; gates are known to the
//! index by the number of their subscription.

use super::query::{Refused, Scope, SubscriptionQuery, shared_plan_of_path};
use crate::engine::interrupt::Interrupted;
use crate::engine::plans::shared::{Counts, PlanSpec, SharedPlans, Sharing, SubscriptionNumber};
pub use crate::engine::plans::template::Deliver;
use crate::language::choice::{Language, begins_as_xquery};
use crate::language::compile::{CompiledQuery, compile_gate, compile_query, expression_text};
use crate::language::gates::condition_of;
use crate::language::query::ast::Step;
use crate::language::query::compile;
use crate::language::tree;
use crate::language::xpath::Expression;
use crate::language::xquery::{Program, undeliverable_part};
use crate::registry::index::{Index, NotRegistered, Texts};
use crate::registry::snapshot::QueryRecord;
use hashbrown::{DefaultHashBuilder, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A subscription as it is registered.
#[derive(Clone, Copy, Debug)]
pub struct Subscription<'s> {
    /// Chosen by the caller.
    pub id: &'s str,
    /// XPath or XQuery.
    pub text: &'s str,
    /// Which of the two; none leaves it to the text.
    pub language: Option<Language>,
    /// What is delivered.
    pub deliver: Deliver,
}

/// Why a subscription was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The id is taken.
    Duplicate,
    /// The text is no query, is over a limit, or cannot be delivered so.
    Refused,
}

/// What is done for a subscription.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Nothing: it has left.
    Gone,
    /// It is among the shared plans.
    Shared,
    /// A program, run where the gate holds.
    Program(Arc<Program>, Deliver),
    /// Nodes of an expression, selected where the gate holds.
    Selection(Arc<Expression>),
    /// Where the query holds, the message or the fact.
    Filter(Deliver),
}

/// What may change.
#[derive(Debug, Default)]
pub struct State {
    pub(super) plans: SharedPlans,
    pub(super) ways: Vec<Way>,
    pub(super) gate: Index,
    ids: Arc<RwLock<Texts>>,
    by_id: HashMap<Box<str>, SubscriptionNumber, DefaultHashBuilder>,
    /// Programs that need comments, instructions or prefixes.
    full_tree_users: usize,
    gated: usize,
}

/// Subscriptions shared by threads.
#[derive(Debug, Default)]
pub struct Dissemination {
    state: RwLock<State>,
}

/// The ids behind numbers of subscriptions. Grows with the subscriptions; a number keeps its id.
#[derive(Clone, Debug)]
pub struct SubscriptionIds(Arc<RwLock<Texts>>);

impl SubscriptionIds {
    /// Number of subscriptions, those that have left counted.
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Sorts what belongs to subscriptions by their ids, in the order of code points.
    pub(super) fn sort<T>(&self, items: &mut [T], number: impl Fn(&T) -> SubscriptionNumber) {
        let ids = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let id = |item: &T| ids.get(number(item) as usize);
        items.sort_unstable_by(|a, b| id(a).cmp(id(b)));
    }

    /// Calls `f` with the id of each number.
    pub fn for_each(
        &self,
        numbers: impl Iterator<Item = SubscriptionNumber>,
        mut f: impl FnMut(&str),
    ) {
        let ids = self.0.read().unwrap_or_else(PoisonError::into_inner);
        numbers.for_each(|number| f(ids.get(number as usize)));
    }
}

/// How a subscription is done, for `explain`.
#[derive(Clone, Debug)]
pub enum Explained {
    /// Among the shared plans, and what it shares.
    Shared(Sharing, Counts),
    /// Run where its gate holds.
    Gated,
    /// Nodes selected where its gate holds.
    Selecting,
    /// A query of the index.
    Filtering,
}

impl Dissemination {
    /// The state, for one message or one look.
    pub fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Merges the gates that have come lately if they have become many; called before a batch.
    ///
    /// # Errors
    /// It was interrupted.
    pub(super) fn settle(&self) -> Result<(), Interrupted> {
        self.state().gate.settle()
    }

    /// Changes many subscriptions under one lock.
    pub fn change<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The ids of the numbers of now and of those to come.
    pub fn ids(&self) -> SubscriptionIds {
        SubscriptionIds(Arc::clone(&self.ids))
    }

    /// The number of an id.
    pub fn number(&self, id: &str) -> Option<SubscriptionNumber> {
        self.by_id.get(id).copied()
    }

    /// How many are in the shared plans.
    pub fn shared_len(&self) -> usize {
        self.plans.len()
    }

    /// Whether messages must be parsed with all that there is, whatever is in them.
    pub(super) fn needs_full_tree(&self) -> bool {
        self.full_tree_users > 0
    }

    /// Whether any subscription needs the gate.
    pub(super) fn has_gated(&self) -> bool {
        self.gated > 0
    }

    /// Takes a subscription: reads its text, once, and registers what it becomes.
    ///
    /// Cost: about 3 µs in the shared class; some tens of microseconds for programs that need a gate.
    ///
    /// # Errors
    /// It is not taken.
    pub fn subscribe(
        &mut self,
        subscription: Subscription<'_>,
        scope: &Scope,
    ) -> Result<(), NotTaken> {
        let Subscription { id, text, language, deliver } = subscription;
        if self.by_id.contains_key(id) {
            return Err(NotTaken::Duplicate);
        }
        // The usual notations of paths, which take less time. A text of which XPath 1.0 was asked may be XQuery.
        if language.is_none() && !begins_as_xquery(text) {
            if let Some(spec) = shared_plan_of_path(text, scope, deliver) {
                self.add_shared(id, &spec);
                return Ok(());
            }
            if deliver != Deliver::Fragment
                && let Ok(steps) = compile(text, &scope.resolver)
            {
                self.add_gate(subscription, scope, &[&steps], None)?;
                self.add(id, Way::Filter(deliver));
                return Ok(());
            }
        }
        let query = SubscriptionQuery::read(text, language, scope, deliver)
            .map_err(|Refused| NotTaken::Refused)?;
        if let Some(spec) = query.shared_plan(text, scope, deliver) {
            self.add_shared(id, &spec);
            return Ok(());
        }
        match query {
            SubscriptionQuery::XQuery(program) => {
                self.subscribe_program(subscription, scope, program)
            }
            SubscriptionQuery::XPath(tree) => self.subscribe_xpath(subscription, scope, &tree),
        }
    }

    fn subscribe_program(
        &mut self,
        subscription: Subscription<'_>,
        scope: &Scope,
        program: Arc<Program>,
    ) -> Result<(), NotTaken> {
        let deliver = subscription.deliver;
        let is_condition = deliver != Deliver::Fragment;
        if undeliverable_part(&program, is_condition).is_some() {
            return Err(NotTaken::Refused);
        }
        let condition = condition_of(&program, is_condition);
        self.add_compiled_gate(subscription, scope, &compile_gate(&condition, is_condition))?;
        self.add(subscription.id, Way::Program(program, deliver));
        Ok(())
    }

    fn subscribe_xpath(
        &mut self,
        subscription: Subscription<'_>,
        scope: &Scope,
        tree: &tree::Expr,
    ) -> Result<(), NotTaken> {
        let compiled = compile_query(tree).map_err(|_| NotTaken::Refused)?;
        let way = match subscription.deliver {
            Deliver::Fragment => {
                let mut text = String::new();
                expression_text(tree, &mut text);
                let expression = Expression::parse(&text).map_err(|_| NotTaken::Refused)?;
                Way::Selection(Arc::new(expression))
            }
            deliver => Way::Filter(deliver),
        };
        self.add_compiled_gate(subscription, scope, &compiled)?;
        self.add(subscription.id, way);
        Ok(())
    }

    /// Takes subscriptions out, all or, if an id is unknown, none; gives its place in the list then.
    pub fn unsubscribe<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Result<(), usize> {
        let ids: Vec<&str> = ids.collect();
        if let Some(at) = ids.iter().position(|id| !self.by_id.contains_key(*id)) {
            return Err(at);
        }
        for id in ids {
            // An id may stand in the list twice.
            let Some(number) = self.by_id.remove(id) else { continue };
            match std::mem::replace(&mut self.ways[number as usize], Way::Gone) {
                Way::Gone => {}
                Way::Shared => drop(self.plans.leave(number)),
                way => {
                    self.gated -= 1;
                    self.full_tree_users -= usize::from(way.needs_full_tree());
                    let gate = number.to_string();
                    let removed = self.gate.change(|gates| gates.remove([&*gate].into_iter()));
                    debug_assert!(removed.is_ok(), "a gated subscription has a gate");
                }
            }
        }
        Ok(())
    }

    /// How a subscription is done.
    pub fn explain(&self, id: &str) -> Option<Explained> {
        let number = self.number(id)?;
        Some(match &self.ways[number as usize] {
            Way::Gone => return None,
            Way::Shared => Explained::Shared(self.plans.sharing(number)?, self.plans.counts()),
            Way::Program(..) => Explained::Gated,
            Way::Selection(_) => Explained::Selecting,
            Way::Filter(_) => Explained::Filtering,
        })
    }

    /// Whether so much of the automata is unused, or so many numbers are, that building everything
    /// again pays; see [`Dissemination`].
    pub fn is_worn(&self) -> bool {
        let (unused, used) = self.plans.unused_and_used();
        unused > WORN_MIN.max(used)
            || self.ways.len() - self.by_id.len() > WORN_MIN.max(8 * self.len())
    }

    fn add_shared(&mut self, id: &str, spec: &PlanSpec) {
        let number = self.add(id, Way::Shared);
        self.plans.enter(number, spec);
    }

    fn add(&mut self, id: &str, way: Way) -> SubscriptionNumber {
        let number = self.ways.len() as SubscriptionNumber;
        self.full_tree_users += usize::from(way.needs_full_tree());
        self.gated += usize::from(!matches!(way, Way::Shared));
        self.ways.push(way);
        self.ids.write().unwrap_or_else(PoisonError::into_inner).push(id);
        self.by_id.insert(id.into(), number);
        number
    }

    fn add_compiled_gate(
        &mut self,
        subscription: Subscription<'_>,
        scope: &Scope,
        compiled: &CompiledQuery<'_>,
    ) -> Result<(), NotTaken> {
        let paths: Vec<&[Step<'_>]> =
            compiled.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.add_gate(subscription, scope, &paths, compiled.expression.as_deref())
    }

    /// Registers the gate of the subscription that is added next, under its number.
    fn add_gate(
        &mut self,
        subscription: Subscription<'_>,
        scope: &Scope,
        alternatives: &[&[Step<'_>]],
        expression: Option<&str>,
    ) -> Result<(), NotTaken> {
        let id = self.ways.len().to_string();
        let registered = self.gate.change(|gates| {
            let namespaces = gates.namespace_number(&scope.map);
            let record = QueryRecord { id: &id, text: subscription.text, namespaces };
            gates.register(record, alternatives, expression)
        });
        registered.map_err(|why| match why {
            NotRegistered::Duplicate | NotRegistered::Expression => NotTaken::Refused,
        })
    }
}

impl Way {
    fn needs_full_tree(&self) -> bool {
        match self {
            Way::Program(program, _) => program.needs_full_tree(),
            Way::Selection(expression) => expression.needs_full_tree(),
            Way::Gone | Way::Shared | Way::Filter(_) => false,
        }
    }
}

/// Unused paths or numbers that are always let be.
const WORN_MIN: usize = 1 << 14;
