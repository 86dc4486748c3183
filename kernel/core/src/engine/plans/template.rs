//! Templates: what is written for each BoundNode, and the frame around all of it.
//!
//! A return clause is cut into bytes that never change and holes, each with a return path. Tags are
//! bytes; what they enclose is filled in by the message factory. Equal templates exist once.
//!
//! Source: paper 002, section 2.1 (message factory) and 2.2 (groupSequence-listSequence).

use super::frozen::FrozenPlans;
use super::shared::Slots;
use crate::engine::paths::PathId;
use crate::language::query::ast::Step;
use crate::language::xquery::Delivered;
use crate::xml::serializer::Namespaces;
use hashbrown::{DefaultHashBuilder, HashMap};
use std::sync::Arc;

/// Number of a template; equal templates have equal numbers.
pub(crate) type TemplateId = u32;

/// What of a node is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Leaf {
    /// The element; compared, its string value.
    Element,
    /// Its text nodes.
    Text,
    /// An attribute of it.
    Attribute {
        /// Namespace URI; empty for none.
        uri: Box<str>,
        /// Local name.
        local: Box<str>,
    },
}

/// A return path and what of its nodes is meant.
#[derive(Clone, Debug)]
pub(crate) struct TargetSpec {
    /// Relative to the BoundNode; empty for the node itself.
    pub(crate) path: Vec<Step<'static>>,
    /// What of its nodes.
    pub(crate) leaf: Leaf,
}

/// How the nodes of a hole are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// Copied; a text node as its text, an attribute as an attribute of the start tag it stands in.
    Copy,
    /// Their values, with a space between them, as content of an element.
    Values,
    /// The value of the first, as content of an element.
    FirstValue,
    /// Their values, with a space between them, in the value of an attribute.
    AttributeValues,
    /// The value of the first, in the value of an attribute.
    FirstAttributeValue,
}

impl Form {
    /// All of them, by number.
    pub(crate) const ALL: [Form; 5] = {
        use Form::*;
        [Copy, Values, FirstValue, AttributeValues, FirstAttributeValue]
    };
}

/// A part of a return clause.
#[derive(Clone, Debug)]
pub(crate) enum PartSpec {
    /// Bytes that are always the same.
    Bytes(Vec<u8>),
    /// A hole.
    Hole {
        /// What is filled in.
        target: TargetSpec,
        /// How.
        form: Form,
        /// Namespaces in scope around it.
        outer: Namespaces,
    },
}

/// The constructors around a FLWR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// What stands before the first group.
    pub(crate) before: Box<[u8]>,
    /// What stands after the last.
    pub(crate) after: Box<[u8]>,
}

/// A return clause and its frame.
#[derive(Clone, Debug)]
pub(crate) struct TemplateSpec {
    /// What stands before the first group and after the last; without a frame, every item of a group
    /// is a result of its own.
    pub(crate) frame: Option<Frame>,
    /// What is written for a BoundNode.
    pub(crate) parts: Vec<PartSpec>,
    /// Whether a BoundNode always gives an item: the return clause is a constructor. Otherwise it is
    /// one hole, and every node of it is an item.
    pub(crate) is_constructor: bool,
    /// What of it is delivered.
    pub(crate) deliver: Deliver,
}

/// What a subscriber wants of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deliver {
    /// The results.
    Fragment,
    /// The message as it came.
    Message,
    /// That there is something, and no more.
    Ids,
    /// The places of the results, which are nodes of the message.
    Nodes,
}

impl Deliver {
    /// All of them, by number.
    pub(crate) const ALL: [Deliver; 4] =
        [Deliver::Fragment, Deliver::Message, Deliver::Ids, Deliver::Nodes];

    /// Whether all that is asked of a query is whether it holds.
    pub fn is_condition(self) -> bool {
        matches!(self, Deliver::Message | Deliver::Ids)
    }

    /// What a result is, for the static rules of programs.
    pub fn delivered(self) -> Delivered {
        match self {
            Deliver::Fragment => Delivered::Results,
            Deliver::Message | Deliver::Ids => Delivered::Condition,
            Deliver::Nodes => Delivered::Nodes,
        }
    }
}

/// A hole's return path; none is the BoundNode itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Number of the path.
    pub(crate) path: Option<PathId>,
    /// What of its nodes.
    pub(crate) leaf: Leaf,
}

/// A part of a return clause; see [`PartSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bytes that are always the same.
    Bytes(Box<[u8]>),
    /// A hole.
    Hole {
        /// What is filled in.
        target: Target,
        /// How.
        form: Form,
        /// Namespaces in scope around it.
        outer: Namespaces,
    },
}

/// A template; see [`TemplateSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    /// What stands before the first group and after the last.
    pub(crate) frame: Option<Frame>,
    /// What is written for a BoundNode.
    pub(crate) parts: Box<[Part]>,
    /// Whether a BoundNode always gives an item.
    pub(crate) is_constructor: bool,
    /// What of it is delivered.
    pub(crate) deliver: Deliver,
    /// Subscriptions that use it.
    pub(crate) uses: u32,
}

/// What has to be known of a template before anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// What of it is delivered.
    pub(crate) deliver: Deliver,
    /// Whether a subscription with a BoundNode may have nothing delivered: the nodes decide.
    pub(crate) may_be_empty: bool,
}

impl Kind {
    /// That of a template.
    pub(crate) fn of(template: &Template) -> Kind {
        Kind::new(template.deliver, template.is_constructor, template.frame.is_some())
    }

    /// That of a template, by whether it is a constructor and has a frame.
    pub(super) fn new(deliver: Deliver, is_constructor: bool, has_frame: bool) -> Kind {
        let may_be_empty = !is_constructor && (has_frame || deliver.is_condition());
        Kind { deliver, may_be_empty }
    }
}

impl Template {
    /// A template that nobody uses yet; `path_of` gives the numbers of its paths.
    pub(crate) fn new(spec: &TemplateSpec, mut path_of: impl FnMut(&[Step<'_>]) -> PathId) -> Self {
        let parts = spec.parts.iter().map(|part| match part {
            PartSpec::Bytes(bytes) => Part::Bytes(bytes.as_slice().into()),
            PartSpec::Hole { target, form, outer } => {
                let path = (!target.path.is_empty()).then(|| path_of(&target.path));
                let target = Target { path, leaf: target.leaf.clone() };
                Part::Hole { target, form: *form, outer: outer.clone() }
            }
        });
        Template {
            parts: parts.collect(),
            frame: spec.frame.clone(),
            is_constructor: spec.is_constructor,
            deliver: spec.deliver,
            uses: 0,
        }
    }

    /// The holes, in order.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.parts.iter().filter_map(|part| match part {
            Part::Bytes(_) => None,
            Part::Hole { target, .. } => Some(target),
        })
    }

    /// The distinct return paths.
    pub(crate) fn paths(&self) -> Vec<PathId> {
        let mut paths: Vec<PathId> = self.targets().filter_map(|target| target.path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// What tells it from other templates.
    fn key(&self) -> Box<[u8]> {
        let mut key = Vec::with_capacity(128);
        let mut push = |tag: u8, bytes: &[u8]| {
            key.push(tag);
            key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            key.extend_from_slice(bytes);
        };
        if let Some(Frame { before, after }) = &self.frame {
            push(0, before);
            push(1, after);
        }
        push(2, &[u8::from(self.is_constructor), self.deliver as u8]);
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => push(3, bytes),
                // The namespaces around a hole follow from the tags before it.
                Part::Hole { target, form, outer: _ } => {
                    push(4, &[*form as u8]);
                    push(5, &target.path.unwrap_or(PathId::MAX).to_le_bytes());
                    match &target.leaf {
                        Leaf::Element => push(6, &[]),
                        Leaf::Text => push(7, &[]),
                        Leaf::Attribute { uri, local } => {
                            push(8, uri.as_bytes());
                            push(9, local.as_bytes());
                        }
                    }
                }
            }
        }
        key.into()
    }
}

/// Distinct templates: those of a base, which have the first numbers, and those that came since.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    base: Option<Arc<FrozenPlans>>,
    slots: Slots<Template>,
    /// By number after the base, close together: they are looked at for every delivery.
    kinds: Vec<Kind>,
    index: HashMap<Box<[u8]>, TemplateId, DefaultHashBuilder>,
}

impl Templates {
    /// Those of a base.
    pub(super) fn on(base: Arc<FrozenPlans>) -> Templates {
        let slots = Slots::from(base.template_count() as TemplateId);
        Templates { base: Some(base), slots, ..Templates::default() }
    }

    /// The number of a template, which has one more user now.
    pub(crate) fn enter(&mut self, template: Template) -> TemplateId {
        let kind = Kind::of(&template);
        let slots = &mut self.slots;
        let id = *self.index.entry(template.key()).or_insert_with(|| slots.insert(template));
        let at = (id - self.slots.first()) as usize;
        if self.kinds.len() <= at {
            self.kinds.resize(at + 1, kind);
        }
        self.kinds[at] = kind;
        self.slots.get_mut(id).uses += 1;
        id
    }

    /// A template has one user less; gives it back if that was the last one.
    pub(crate) fn leave(&mut self, id: TemplateId) -> Option<Template> {
        let template = self.slots.get_mut(id);
        template.uses -= 1;
        if template.uses > 0 {
            return None;
        }
        let template = self.slots.remove(id);
        self.index.remove(&template.key());
        Some(template)
    }

    /// A template; of one of the base, it is not known how many use it.
    #[inline]
    pub(crate) fn get(&self, id: TemplateId) -> &Template {
        match &self.base {
            Some(base) if id < self.slots.first() => base.template(id),
            _ => self.slots.get(id),
        }
    }

    #[inline]
    pub(crate) fn kind(&self, id: TemplateId) -> Kind {
        match (&self.base, id.checked_sub(self.slots.first())) {
            (Some(base), None) => base.kind(id),
            (_, at) => self.kinds[at.unwrap_or(id) as usize],
        }
    }

    /// The number of a template that is equal, among those that came since.
    pub(super) fn find(&self, template: &Template) -> Option<TemplateId> {
        self.index.get(&template.key()).copied()
    }

    /// Those that came since, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Template> {
        self.slots.iter()
    }
}
