//! What subscriptions become, by number: a row of the shared plans, or a program behind a gate.

use super::gates::Gates;
use super::query::{Refused, Scope, SubscriptionQuery, shared_plan_of_path};
use crate::engine::plans::shared::{Counts, PlanSpec, SharedPlans, Sharing, SubscriptionNumber};
use crate::engine::plans::template::Deliver;
use crate::engine::programs::{Bounds, RunError, Session};
use crate::language::choice::{Language, begins_as_xquery};
use crate::language::compile::{CompiledQuery, Evaluated, compile_gate, compile_query};
use crate::language::gates::gate_of;
use crate::language::paths::Path;
use crate::language::query::ast::Step;
use crate::language::query::compile;
use crate::language::tree;
use crate::language::xpath::Expression;
use crate::language::xquery::{Program, undeliverable_part};
use crate::registry::automaton::Tombstones;
use crate::registry::catalogue::Entry;
use crate::registry::snapshot::Snapshot;
use crate::registry::snapshot::parts::{FrozenPart, FrozenWay};
use crate::registry::target::View;
use crate::xml::tree::NodeRef;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

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

impl<'s> Asked<'s> {
    /// What a subscription asks.
    pub(super) fn of(&Entry { text, language, deliver, .. }: &Entry<'s>) -> Self {
        Asked { text, language, deliver }
    }
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
    /// Nodes of an expression, or their places, selected where the gate holds.
    Selection(Arc<Expression>, Deliver),
    /// Where the query holds, the message or the fact.
    Filter(Deliver),
    /// Where the gate holds, the steps of a series (by its number) are done, and then what this number is there.
    Stepped(u32, SubscriptionNumber),
    /// Its text is not what the snapshot says of it.
    Damaged,
}

impl Way {
    /// What is delivered where the gate holds.
    pub(super) fn deliver(&self) -> Deliver {
        match self {
            Way::Program(_, deliver) | Way::Selection(_, deliver) | Way::Filter(deliver) => {
                *deliver
            }
            Way::Unsubscribed | Way::Shared | Way::Stepped(..) | Way::Damaged => Deliver::Fragment,
        }
    }

    /// The nodes whose places are delivered where the gate holds.
    pub(super) fn nodes(
        &self,
        session: &mut Session<'_>,
        bounds: Bounds,
    ) -> Result<Vec<NodeRef>, RunError> {
        match self {
            Way::Program(program, Deliver::Nodes) => session.run_nodes(program, bounds),
            Way::Selection(expression, Deliver::Nodes) => session.nodes(expression, bounds),
            _ => Ok(Vec::new()),
        }
    }

    fn needs_full_tree(&self) -> bool {
        match self {
            Way::Program(program, _) => program.needs_full_tree(),
            Way::Selection(expression, _) => expression.needs_full_tree(),
            Way::Unsubscribed | Way::Shared | Way::Filter(_) | Way::Stepped(..) | Way::Damaged => {
                false
            }
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

/// What is done for a subscription, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayKind {
    /// [`Way::Unsubscribed`]
    Unsubscribed,
    /// As a snapshot has it.
    Active(FrozenWay),
}

/// A part of a snapshot.
#[derive(Debug)]
struct Base {
    snapshot: Arc<Snapshot>,
    part: usize,
    /// By number: what is done for those that are not filters, compiled when it is needed.
    compiled: OnceLock<Box<[OnceLock<Way>]>>,
}

impl Base {
    fn part(&self) -> &FrozenPart {
        &self.snapshot.parts()[self.part]
    }

    /// The number among all.
    #[inline]
    fn number(&self, number: SubscriptionNumber) -> SubscriptionNumber {
        if self.part == 0 { number } else { self.part().members()[number as usize] }
    }

    fn way(&self, number: SubscriptionNumber) -> &Way {
        match self.part().way(number) {
            FrozenWay::Shared => &SHARED,
            FrozenWay::Filter => &FILTERS[self.snapshot.mode(self.number(number)).0 as usize],
            way => {
                let gated = self.part().automaton().len();
                let compiled =
                    self.compiled.get_or_init(|| (0..gated).map(|_| OnceLock::new()).collect());
                compiled[number as usize].get_or_init(|| self.compile(number, way))
            }
        }
    }

    fn compile(&self, number: SubscriptionNumber, way: FrozenWay) -> Way {
        if let FrozenWay::Stepped(series, place) = way {
            return Way::Stepped(series, place);
        }
        let entry = self.snapshot.entry(self.number(number));
        let Entry { text, language, deliver, namespaces, .. } = entry;
        let scope = Scope::new(self.snapshot.namespaces()[namespaces as usize].clone());
        let compiled = match (SubscriptionQuery::read(text, language, &scope, deliver), way) {
            (Ok(SubscriptionQuery::XQuery(program)), FrozenWay::Program)
                if undeliverable_part(&program, deliver.delivered()).is_none() =>
            {
                Way::Program(program, deliver)
            }
            (Ok(SubscriptionQuery::XPath(tree)), FrozenWay::Selection) => {
                Way::Selection(Arc::new(Expression::of(&tree)), deliver)
            }
            _ => Way::Damaged,
        };
        // Messages are parsed with no more than the snapshot says.
        let fits = compiled.needs_full_tree() <= self.part().needs_full_tree(number);
        if fits { compiled } else { Way::Damaged }
    }
}

/// Subscriptions by number: those of a base, and what came since in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Plans {
    pub(super) shared: SharedPlans,
    pub(super) gates: Gates,
    base: Option<Base>,
    base_len: usize,
    /// Those of the base that have left.
    base_left: Tombstones,
    later: Vec<Way>,
    /// Programs that need comments, instructions or prefixes.
    full_tree_users: usize,
    gated: usize,
    filters: usize,
    stepped: usize,
}

/// The shared plan of a subscription; none if it has none.
pub(super) fn shared_plan_of(asked: Asked<'_>, scope: &Scope) -> Option<PlanSpec> {
    let Asked { text, language, deliver } = asked;
    let usual = language.is_none() && !begins_as_xquery(text);
    let usual = usual.then(|| shared_plan_of_path(text, scope, deliver)).flatten();
    usual.or_else(|| {
        let query = SubscriptionQuery::read(text, language, scope, deliver).ok()?;
        query.shared_plan(text, scope, deliver)
    })
}

/// Filters of a base, by what they deliver.
static FILTERS: [Way; Deliver::ALL.len()] = [
    Way::Filter(Deliver::Fragment),
    Way::Filter(Deliver::Message),
    Way::Filter(Deliver::Ids),
    Way::Filter(Deliver::Nodes),
];
static SHARED: Way = Way::Shared;
/// What is done for one of a base that has left.
static LEFT: Way = Way::Unsubscribed;

impl Plans {
    /// The subscriptions of a part of a snapshot, by their numbers. Cost: that of the distinct paths of the shared plans.
    pub(super) fn on(snapshot: &Arc<Snapshot>, number: usize) -> Plans {
        let part = &snapshot.parts()[number];
        let gated = part.automaton().len();
        let [filters, stepped, full_tree_users] = part.counts();
        let shared =
            part.plans().map(|plans| SharedPlans::on(Arc::clone(plans), part.len() - gated));
        Plans {
            shared: shared.unwrap_or_default(),
            gates: Gates::on(Arc::clone(part.automaton())),
            base_len: part.len(),
            base: Some(Base {
                snapshot: Arc::clone(snapshot),
                part: number,
                compiled: OnceLock::new(),
            }),
            gated,
            filters,
            stepped,
            full_tree_users,
            ..Plans::default()
        }
    }

    /// Number of numbers.
    pub(super) fn number_count(&self) -> usize {
        self.base_len + self.later.len()
    }

    /// Number of subscriptions of the base that have not left.
    pub(super) fn base_live(&self) -> usize {
        self.base_len - self.base_left.len()
    }

    /// The bits of those of the base that have left.
    pub(super) fn base_left(&self) -> &[u64] {
        self.base_left.bits()
    }

    /// What is done for a subscription.
    #[inline]
    pub(super) fn way(&self, number: SubscriptionNumber) -> &Way {
        match ((number as usize).checked_sub(self.base_len), &self.base) {
            (Some(at), _) => &self.later[at],
            (None, Some(base)) if !self.base_left.has(number) => base.way(number),
            (None, _) => &LEFT,
        }
    }

    /// What is done for a subscription, in short; nothing is compiled for it.
    #[inline]
    pub(super) fn kind(&self, number: SubscriptionNumber) -> WayKind {
        match ((number as usize).checked_sub(self.base_len), &self.base) {
            (None, Some(base)) if !self.base_left.has(number) => {
                WayKind::Active(base.part().way(number))
            }
            (None, _) => WayKind::Unsubscribed,
            (Some(at), _) => WayKind::Active(match &self.later[at] {
                Way::Unsubscribed | Way::Damaged => return WayKind::Unsubscribed,
                Way::Shared => FrozenWay::Shared,
                Way::Program(..) => FrozenWay::Program,
                Way::Selection(..) => FrozenWay::Selection,
                Way::Filter(_) => FrozenWay::Filter,
                &Way::Stepped(series, place) => FrozenWay::Stepped(series, place),
            }),
        }
    }

    /// Whether a subscription has left.
    pub(super) fn has_left(&self, number: SubscriptionNumber) -> bool {
        self.kind(number) == WayKind::Unsubscribed
    }

    /// Whether what is done for a subscription needs all of a message.
    pub(super) fn way_needs_full_tree(&self, number: SubscriptionNumber) -> bool {
        match ((number as usize).checked_sub(self.base_len), &self.base) {
            (Some(at), _) => self.later[at].needs_full_tree(),
            (None, base) => base.as_ref().is_some_and(|base| base.part().needs_full_tree(number)),
        }
    }

    /// Whether all that are there ask is whether their gate holds.
    pub(super) fn are_filters(&self) -> bool {
        self.filters == self.gated && self.shared.len() == 0
    }

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
        self.gates.memory() + self.later.capacity() * size_of::<Way>()
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
            if deliver.is_condition()
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
    pub(super) fn remove(&mut self, number: SubscriptionNumber) -> WayKind {
        let kind = self.kind(number);
        let WayKind::Active(way) = kind else { return kind };
        let needs_full_tree = self.way_needs_full_tree(number);
        let is_of_base = match (number as usize).checked_sub(self.base_len) {
            Some(at) => {
                self.later[at] = Way::Unsubscribed;
                false
            }
            None => {
                self.base_left.set(number);
                true
            }
        };
        match way {
            FrozenWay::Shared if is_of_base => self.shared.leave_base(),
            FrozenWay::Shared => drop(self.shared.leave(number)),
            way => {
                self.gated -= 1;
                self.filters -= usize::from(way == FrozenWay::Filter);
                self.stepped -= usize::from(matches!(way, FrozenWay::Stepped(..)));
                self.full_tree_users -= usize::from(needs_full_tree);
                self.gates.remove(number);
            }
        }
        kind
    }

    /// How a subscription is done.
    pub(super) fn explain(&self, number: SubscriptionNumber) -> Option<Explained> {
        let WayKind::Active(way) = self.kind(number) else { return None };
        Some(match way {
            FrozenWay::Stepped(..) => return None,
            FrozenWay::Shared => {
                let sharing = self.shared.sharing(number, self.base_left())?;
                Explained::Shared(sharing, self.shared.counts())
            }
            FrozenWay::Program => Explained::Gated,
            FrozenWay::Selection => Explained::Selecting,
            FrozenWay::Filter => Explained::Filtering,
        })
    }

    fn add_program(
        &mut self,
        program: Arc<Program>,
        deliver: Deliver,
    ) -> Result<SubscriptionNumber, Refused> {
        if undeliverable_part(&program, deliver.delivered()).is_some() {
            return Err(Refused);
        }
        let is_condition = deliver.is_condition();
        let gate = gate_of(&program, is_condition);
        let gate = compile_gate(&gate, is_condition);
        let way = match gate.is_exact() {
            true => Way::Filter(deliver),
            false => Way::Program(program, deliver),
        };
        Ok(self.add_compiled(&gate, way))
    }

    fn add_xpath(
        &mut self,
        tree: &tree::Expr,
        deliver: Deliver,
    ) -> Result<SubscriptionNumber, Refused> {
        let compiled = compile_query(tree).map_err(|_| Refused)?;
        let way = if deliver.is_condition() {
            Way::Filter(deliver)
        } else {
            Way::Selection(Arc::new(Expression::of(tree)), deliver)
        };
        Ok(self.add_compiled(&compiled, way))
    }

    fn add_compiled(&mut self, compiled: &CompiledQuery<'_>, way: Way) -> SubscriptionNumber {
        let paths: Vec<&[Step<'_>]> =
            compiled.alternatives.iter().map(|path| path.steps.as_slice()).collect();
        self.add_gated(&paths, compiled.expression.as_ref(), way)
    }

    /// Takes a subscription whose gate holds where one of the alternatives (normal form, one at least) holds and the
    /// expression, if there is one, is true.
    pub(super) fn add_gated(
        &mut self,
        alternatives: &[&[Step<'_>]],
        expression: Option<&Evaluated>,
        way: Way,
    ) -> SubscriptionNumber {
        let number = self.push(way);
        self.gates.add(number, alternatives, expression);
        number
    }

    fn add_shared(&mut self, spec: &PlanSpec) -> SubscriptionNumber {
        let number = self.push(Way::Shared);
        self.shared.enter(number, spec);
        number
    }

    /// Gives the next number to a subscription, whose plan or gate the caller enters.
    pub(super) fn push(&mut self, way: Way) -> SubscriptionNumber {
        let number = self.number_count() as SubscriptionNumber;
        self.gated += usize::from(!matches!(way, Way::Unsubscribed | Way::Shared));
        self.filters += usize::from(matches!(way, Way::Filter(_)));
        self.stepped += usize::from(matches!(way, Way::Stepped(..)));
        self.full_tree_users += usize::from(way.needs_full_tree());
        self.later.push(way);
        number
    }
}
