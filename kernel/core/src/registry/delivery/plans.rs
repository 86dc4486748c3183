//! What subscriptions become, by number: a row of the shared plans, or a program behind a gate.

use super::gates::Gates;
use super::query::{Refused, Scope, SubscriptionQuery, shared_plan_of_path};
use crate::engine::plans::shared::{Counts, PlanSpec, SharedPlans, Sharing, SubscriptionNumber};
use crate::engine::plans::template::Deliver;
use crate::language::choice::{Language, begins_as_xquery};
use crate::language::compile::{CompiledQuery, Evaluated, compile_gate, compile_query};
use crate::language::gates::condition_of;
use crate::language::paths::Path;
use crate::language::query::ast::Step;
use crate::language::query::compile;
use crate::language::tree;
use crate::language::xpath::Expression;
use crate::language::xquery::{Program, undeliverable_part};
use crate::registry::target::View;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is asked of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'s> {
    /// XPath or XQuery.
    pub(crate) text: &'s str,
    /// Which of the two; none leaves it to the text.
    pub(crate) language: Option<Language>,
    /// What is delivered.
    pub(crate) deliver: Deliver,
}

/// What is done for a subscription.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Nothing: it has left.
    Unsubscribed,
    /// It is among the shared plans.
    Shared,
    /// A program, run where the gate holds.
    Program(Arc<Program>, Deliver),
    /// Nodes of an expression, selected where the gate holds.
    Selection(Arc<Expression>),
    /// Where the query holds, the message or the fact.
    Filter(Deliver),
    /// Where the gate holds, the steps of a series (by its number) are done, and then what this number is there.
    Stepped(u32, SubscriptionNumber),
}

impl Way {
    /// What is delivered where the gate holds.
    pub(super) fn deliver(&self) -> Deliver {
        match self {
            Way::Program(_, deliver) | Way::Filter(deliver) => *deliver,
            Way::Unsubscribed | Way::Shared | Way::Selection(_) | Way::Stepped(..) => {
                Deliver::Fragment
            }
        }
    }

    fn needs_full_tree(&self) -> bool {
        match self {
            Way::Program(program, _) => program.needs_full_tree(),
            Way::Selection(expression) => expression.needs_full_tree(),
            Way::Unsubscribed | Way::Shared | Way::Filter(_) | Way::Stepped(..) => false,
        }
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

/// Subscriptions by number, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Plans {
    pub(super) shared: SharedPlans,
    pub(super) ways: Vec<Way>,
    pub(super) gates: Gates,
    /// Programs that need comments, instructions or prefixes.
    full_tree_users: usize,
    gated: usize,
    stepped: usize,
}

impl Plans {
    /// Whether messages must be parsed with all that there is, whatever is in them.
    pub(super) fn needs_full_tree(&self) -> bool {
        self.full_tree_users > 0 || View::of(self.gates.automaton()).needs_full_tree()
    }

    /// Whether any subscription needs the gate.
    pub(super) fn has_gated(&self) -> bool {
        self.gated > 0
    }

    /// Whether any subscription has steps.
    pub(super) fn has_stepped(&self) -> bool {
        self.stepped > 0
    }

    /// Bytes held, shared plans and programs not counted.
    pub(super) fn memory(&self) -> usize {
        self.gates.memory() + self.ways.capacity() * size_of::<Way>()
    }

    /// Takes a subscription, whose text is read once; gives its number.
    ///
    /// # Errors
    /// Its text is refused; nothing has changed.
    pub(super) fn add(
        &mut self,
        asked: Asked<'_>,
        scope: &Scope,
    ) -> Result<SubscriptionNumber, Refused> {
        let Asked { text, language, deliver } = asked;
        // The usual notations of paths, which take less time. A text of which XPath 1.0 was asked may be XQuery.
        if language.is_none() && !begins_as_xquery(text) {
            if let Some(spec) = shared_plan_of_path(text, scope, deliver) {
                return Ok(self.add_shared(&spec));
            }
            if deliver != Deliver::Fragment
                && let Ok(steps) = compile(text, &scope.resolver)
            {
                return Ok(self.add_gated(&[&steps], None, Way::Filter(deliver)));
            }
        }
        let query = SubscriptionQuery::read(text, language, scope, deliver)?;
        if let Some(spec) = query.shared_plan(text, scope, deliver) {
            return Ok(self.add_shared(&spec));
        }
        match query {
            SubscriptionQuery::XQuery(program) => self.add_program(program, deliver),
            SubscriptionQuery::XPath(tree) => self.add_xpath(&tree, deliver),
        }
    }

    /// Takes a subscription whose steps are done where one of some paths is there; gives its number.
    pub(super) fn add_stepped(
        &mut self,
        gate: &BTreeSet<Path>,
        series: u32,
        number: SubscriptionNumber,
    ) -> SubscriptionNumber {
        let paths: Vec<&[Step<'_>]> = gate.iter().map(Path::steps).collect();
        self.add_gated(&paths, None, Way::Stepped(series, number))
    }

    /// Takes a subscription out; gives what was done for it.
    pub(super) fn remove(&mut self, number: SubscriptionNumber) -> Way {
        let way = std::mem::replace(&mut self.ways[number as usize], Way::Unsubscribed);
        match &way {
            Way::Unsubscribed => {}
            Way::Shared => drop(self.shared.leave(number)),
            way => {
                self.gated -= 1;
                self.stepped -= usize::from(matches!(way, Way::Stepped(..)));
                self.full_tree_users -= usize::from(way.needs_full_tree());
                self.gates.remove(number);
            }
        }
        way
    }

    /// How a subscription is done.
    pub(super) fn explain(&self, number: SubscriptionNumber) -> Option<Explained> {
        Some(match &self.ways[number as usize] {
            Way::Unsubscribed | Way::Stepped(..) => return None,
            Way::Shared => Explained::Shared(self.shared.sharing(number)?, self.shared.counts()),
            Way::Program(..) => Explained::Gated,
            Way::Selection(_) => Explained::Selecting,
            Way::Filter(_) => Explained::Filtering,
        })
    }

    fn add_program(
        &mut self,
        program: Arc<Program>,
        deliver: Deliver,
    ) -> Result<SubscriptionNumber, Refused> {
        let is_condition = deliver != Deliver::Fragment;
        if undeliverable_part(&program, is_condition).is_some() {
            return Err(Refused);
        }
        let condition = condition_of(&program, is_condition);
        let gate = compile_gate(&condition, is_condition);
        Ok(self.add_compiled(&gate, Way::Program(program, deliver)))
    }

    fn add_xpath(
        &mut self,
        tree: &tree::Expr,
        deliver: Deliver,
    ) -> Result<SubscriptionNumber, Refused> {
        let compiled = compile_query(tree).map_err(|_| Refused)?;
        let way = match deliver {
            Deliver::Fragment => Way::Selection(Arc::new(Expression::of(tree))),
            deliver => Way::Filter(deliver),
        };
        Ok(self.add_compiled(&compiled, way))
    }

    fn add_compiled(&mut self, compiled: &CompiledQuery<'_>, way: Way) -> SubscriptionNumber {
        let paths: Vec<&[Step<'_>]> =
            compiled.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.add_gated(&paths, compiled.expression.as_ref(), way)
    }

    fn add_gated(
        &mut self,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
        way: Way,
    ) -> SubscriptionNumber {
        let number = self.ways.len() as SubscriptionNumber;
        self.gates.add(number, alternatives, expression);
        self.stepped += usize::from(matches!(way, Way::Stepped(..)));
        self.full_tree_users += usize::from(way.needs_full_tree());
        self.gated += 1;
        self.ways.push(way);
        number
    }

    fn add_shared(&mut self, spec: &PlanSpec) -> SubscriptionNumber {
        let number = self.ways.len() as SubscriptionNumber;
        self.shared.enter(number, spec);
        self.ways.push(Way::Shared);
        number
    }
}
