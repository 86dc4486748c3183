//! A message whose results are longer together than they may be, or whose subscriptions take more steps:
//! who is served, and who is not.
//!
//! Subscriptions are served in the order of their ids, as long as there is room. The first one whose
//! results do not fit, and all after it that would have a result, are told so; nothing is written for
//! them. So are the first one for which the steps do not suffice, and all after it that would have to be
//! evaluated by themselves; none of those is evaluated. Equal results take room once, whoever made them, so that the answer depends on the message and
//! the subscriptions alone: not on what an engine happens to share, nor on who came first.

use super::plans::{Plans, Way};
use super::serving::{Allowance, Audience, DELIVERY_BYTES, Delivery, Output, Whole};
use super::steps::MessageSteps;
use crate::engine::interrupt::did;
use crate::engine::plans::factory::{Factory, Source, is_delivered, returned};
use crate::engine::plans::found::{Found, ListId};
use crate::engine::plans::shared::SubscriptionNumber;
use crate::engine::plans::template::{Deliver, TemplateId};
use crate::engine::programs::{Results, Session};
use crate::engine::verdicts::Verdict;
use crate::engine::work::QueryWork;
use crate::xml::places::{PLACE_BYTES, Places};
use crate::xml::tree::NodeRef;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// A subscription that may have a result: by the shared plans, or because its gate holds.
type Wanted = (SubscriptionNumber, Option<(ListId, TemplateId)>);

/// What subscriptions are served with.
pub(super) struct Service<'s, 'm> {
    pub(crate) plans: &'s Plans,
    pub(crate) source: Source<'m>,
    pub(crate) places: Places<'m>,
    /// It has begun with what the shared plans have found.
    pub(crate) factory: &'s mut Factory,
    pub(crate) session: Session<'m>,
    pub(crate) allowance: &'s Allowance,
    pub(crate) steps: &'s mut MessageSteps,
    /// Gets the steps of single subscriptions.
    pub(crate) work: &'s mut Vec<QueryWork>,
}

/// What came of a subscription.
enum Outcome {
    /// Its results are these of [`Ordered::fragments`].
    Results(Range<usize>),
    /// Its results are the places of these nodes.
    Nodes(Vec<NodeRef>),
    /// It gets the message, or the notice.
    Told(Deliver),
    /// It would have a result, and there is no room.
    Full,
    /// Nothing.
    Unasked,
}

/// Memory of messages whose results are too long together.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    wanted: Vec<Wanted>,
    /// Results of one subscription.
    scratch: Results,
    /// By hash of its bytes: a fragment of the message.
    known: HashMap<u64, u32, FxBuildHasher>,
    /// Fragments of those who are served, one after another.
    fragments: Vec<u32>,
    /// By template and BoundNodes: which of `fragments`; none where the results are too long.
    written: HashMap<(TemplateId, ListId), Option<Range<usize>>, FxBuildHasher>,
    spent: usize,
    is_full: bool,
}

impl Ordered {
    /// Puts those who may have a result in order.
    pub(crate) fn begin(
        &mut self,
        audience: Audience<'_>,
        found: Option<&Found>,
        candidates: &[SubscriptionNumber],
    ) {
        // Such messages are rare, and their memory large: it is not kept.
        *self = Ordered::default();
        for (number, list, template) in found.into_iter().flat_map(Found::iter) {
            self.wanted.push((number, Some((list, template))));
        }
        self.wanted.extend(candidates.iter().map(|&number| (number, None)));
        let ids = audience.catalogue.entries();
        ids.sort(&mut self.wanted, |&(number, _)| audience.number(number));
    }

    /// Serves them.
    pub(crate) fn serve(
        &mut self,
        mut with: Service<'_, '_>,
        whole: &mut Whole<'_>,
        out: &mut Output,
    ) {
        let deliveries = out.deliveries.len();
        for (subscription, shared) in std::mem::take(&mut self.wanted) {
            let taken = with.steps.taken();
            let outcome = match shared {
                Some((list, template)) => self.shared(&mut with, list, template, out),
                None => self.gated(&mut with, subscription, out),
            };
            if did(self.scratch.bytes.len() as u64 + 1) {
                return;
            }
            with.work.push((subscription, with.steps.taken() - taken));
            match outcome {
                Ok(Outcome::Results(range)) => {
                    let fragments = self.fragments[range].iter().enumerate();
                    out.deliveries.extend(fragments.map(|(result, &fragment)| Delivery {
                        subscription,
                        result: result as u32,
                        fragment,
                    }));
                }
                Ok(Outcome::Nodes(nodes)) => out.deliver_nodes(subscription, &with.places, &nodes),
                Ok(Outcome::Told(deliver)) => {
                    let delivery = whole.delivery(subscription, deliver, &mut out.fragments);
                    out.deliveries.push(delivery);
                }
                Ok(Outcome::Full) => out.verdicts.push((subscription, Verdict::MessageFull)),
                Ok(Outcome::Unasked) => {}
                Err(verdict) => out.verdicts.push((subscription, verdict)),
            }
        }
        out.deliveries[deliveries..].sort_unstable_by_key(|d| (d.subscription, d.result));
    }

    fn shared(
        &mut self,
        with: &mut Service<'_, '_>,
        list: ListId,
        template: TemplateId,
        out: &mut Output,
    ) -> Result<Outcome, Verdict> {
        let kind = with.plans.shared.templates.kind(template);
        let plan = with.plans.shared.templates.get(template);
        let deliver = with.allowance.deliver(kind.deliver);
        if deliver.is_condition() || kind.may_be_empty || self.is_full {
            let bound = with.source.shared.found().list(list);
            let is_delivered = is_delivered(&with.source, plan, bound);
            if !is_delivered || deliver.is_condition() || self.is_full {
                return Ok(told(deliver, is_delivered));
            }
        }
        if deliver == Deliver::Nodes {
            let nodes = returned(&with.source, plan, with.source.shared.found().list(list));
            let nodes = with.allowance.check_nodes(nodes);
            let nodes = nodes.map_err(|error| with.allowance.verdict(error))?;
            return Ok(self.keep_nodes(with.allowance, nodes));
        }
        let bytes_max = with.allowance.bytes_max;
        let too_long = Verdict::TooLong { bytes_max };
        let key = (template, with.factory.first_like(list));
        if let Some(written) = self.written.get(&key) {
            let range = written.clone().ok_or(too_long)?;
            self.spent += range.len() * DELIVERY_BYTES;
            self.is_full = self.spent > with.allowance.message_bytes_max;
            return Ok(if self.is_full { Outcome::Full } else { Outcome::Results(range) });
        }
        self.scratch.clear();
        with.factory.forget();
        let template = (template, || plan);
        let written =
            with.factory.write(&with.source, template, list, bytes_max, &mut self.scratch);
        if written.is_err() {
            self.written.insert(key, None);
            return Err(too_long);
        }
        let kept = self.keep(with.allowance, out);
        if let Outcome::Results(range) = &kept {
            self.written.insert(key, Some(range.clone()));
        }
        Ok(kept)
    }

    fn gated(
        &mut self,
        with: &mut Service<'_, '_>,
        subscription: SubscriptionNumber,
        out: &mut Output,
    ) -> Result<Outcome, Verdict> {
        self.scratch.clear();
        let way = with.plans.way(subscription);
        if let Way::Unsubscribed | Way::Shared | Way::Stepped(..) = way {
            return Ok(Outcome::Unasked);
        }
        if let Way::Damaged = way {
            return Err(Verdict::Damaged);
        }
        let deliver = with.allowance.deliver(way.deliver());
        if let Way::Filter(_) = way {
            return Ok(Outcome::Told(deliver));
        }
        let (is_full, scratch) = (self.is_full || !with.allowance.writes, &mut self.scratch);
        let is_written = !deliver.is_condition() && !is_full;
        let mut nodes = Vec::new();
        let is_delivered = with.steps.evaluate(
            &mut with.session,
            with.allowance,
            |session, bounds| match way {
                Way::Program(program, Deliver::Fragment | Deliver::Nodes) if is_full => {
                    session.is_delivered(program, bounds)
                }
                Way::Program(program, Deliver::Fragment) => session.run(program, bounds, scratch),
                Way::Program(program, Deliver::Message | Deliver::Ids) => {
                    session.holds(program, bounds)
                }
                Way::Selection(expression, _) if is_full => session.selects(expression, bounds),
                Way::Program(_, Deliver::Nodes) | Way::Selection(_, Deliver::Nodes) => {
                    nodes = with.allowance.check_nodes(way.nodes(session, bounds)?)?;
                    Ok(!nodes.is_empty())
                }
                Way::Selection(expression, _) => session.select(expression, bounds, scratch),
                Way::Unsubscribed
                | Way::Shared
                | Way::Filter(_)
                | Way::Stepped(..)
                | Way::Damaged => Ok(false),
            },
        )?;
        if !is_written {
            return Ok(told(deliver, is_delivered));
        }
        if deliver == Deliver::Nodes {
            return Ok(self.keep_nodes(with.allowance, nodes));
        }
        Ok(self.keep(with.allowance, out))
    }

    /// Makes room for the places of nodes, if there is room for all of them.
    fn keep_nodes(&mut self, allowance: &Allowance, nodes: Vec<NodeRef>) -> Outcome {
        self.spent += nodes.len() * (DELIVERY_BYTES + PLACE_BYTES);
        self.is_full = self.spent > allowance.message_bytes_max;
        if self.is_full { Outcome::Full } else { Outcome::Nodes(nodes) }
    }

    /// Takes the results that lie in `scratch` over, each unless the message has an equal one already;
    /// nothing if there is no room for all of them.
    fn keep(&mut self, allowance: &Allowance, out: &mut Output) -> Outcome {
        let Output { fragments, .. } = out;
        let (bytes, ends, first) =
            (fragments.bytes.len(), fragments.ends.len(), self.fragments.len());
        let mut start = 0;
        for &end in &self.scratch.ends {
            let result = &self.scratch.bytes[start..end];
            start = end;
            let hash = xxh3_64(result);
            let known = self.known.get(&hash).copied();
            let fragment = known.filter(|&fragment| fragments.get(fragment) == result);
            let fragment = fragment.unwrap_or_else(|| {
                let fragment = fragments.ends.len() as u32;
                fragments.bytes.extend_from_slice(result);
                fragments.ends.push(fragments.bytes.len());
                self.known.insert(hash, fragment);
                self.spent += result.len();
                fragment
            });
            self.fragments.push(fragment);
            self.spent += DELIVERY_BYTES;
            if self.spent > allowance.message_bytes_max {
                fragments.bytes.truncate(bytes);
                fragments.ends.truncate(ends);
                self.fragments.truncate(first);
                self.is_full = true;
                return Outcome::Full;
            }
        }
        Outcome::Results(first..self.fragments.len())
    }
}

/// What comes of a subscription for which no result is made.
fn told(deliver: Deliver, is_delivered: bool) -> Outcome {
    match deliver {
        _ if !is_delivered => Outcome::Unasked,
        Deliver::Fragment | Deliver::Nodes => Outcome::Full,
        Deliver::Message | Deliver::Ids => Outcome::Told(deliver),
    }
}
