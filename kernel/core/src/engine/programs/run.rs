//! One run of a program over a message.

use super::sink::Frame;
use super::value::{Event, Item, Place, Slot, Text};
use super::{Bounds, Results, RunError};
use crate::engine::evaluate::OverBudget;
use crate::engine::evaluate::budget::Budget;
use crate::engine::evaluate::document::{Document, Node};
use crate::engine::evaluate::ids::Ids;
use crate::engine::evaluate::path_machine::PathState;
use crate::language::xquery::Program;
use crate::xml::serializer::{Limit, Namespaces, Writer};
use crate::xml::tree::NodeRef;
use hashbrown::HashSet;
use std::hash::RandomState;

/// Result of a part of a run.
pub(super) type Run<T> = Result<T, RunError>;

impl From<OverBudget> for RunError {
    fn from(_: OverBudget) -> Self {
        RunError::OverBudget
    }
}

impl From<crate::xml::serializer::TooLong> for RunError {
    fn from(_: crate::xml::serializer::TooLong) -> Self {
        RunError::TooLong
    }
}

/// Memory of a run that is not given back for the next one beyond this.
const KEPT_MAX: usize = 1 << 16;
/// Bytes of computed text.
const TEXT_MAX: usize = 1 << 30;

/// What runs work with; keeps its memory.
#[derive(Debug, Default)]
pub(super) struct State {
    /// When the message was: microseconds since the beginning of 1970, UTC.
    pub(crate) time: i64,
    /// Values under way; a sequence is a run of it.
    pub(crate) stack: Vec<Item>,
    /// Computed text.
    pub(crate) text: Vec<u8>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) events: Vec<Event>,
    /// Nodes that do not change while the program runs.
    pub(crate) kept: Vec<Option<Vec<Node>>>,
    /// Their string values, where they have been asked for.
    pub(crate) kept_values: Vec<Option<HashSet<Box<[u8]>, RandomState>>>,
    pub(crate) paths: PathState,
    pub(crate) ids: Ids,
    pub(crate) frames: Vec<Frame>,
    /// Attributes of the elements under way that have computed names, by number, and their names as written.
    pub(crate) named: Vec<(u32, Text)>,
    /// Attributes of the message copied into the elements under way.
    pub(crate) copied: Vec<u32>,
    /// Namespaces in scope: around everything, and one more for each element that declares any.
    pub(crate) scopes: Vec<Namespaces>,
}

impl State {
    /// Forgets the run before.
    pub(crate) fn begin(&mut self, program: &Program, document: &Document<'_>) {
        if self.stack.capacity() > KEPT_MAX
            || self.text.capacity() > KEPT_MAX * 16
            || self.events.capacity() > KEPT_MAX
        {
            let ids = std::mem::take(&mut self.ids);
            *self = State { ids, time: self.time, ..State::default() };
        }
        self.stack.clear();
        self.text.clear();
        self.events.clear();
        self.frames.clear();
        self.named.clear();
        self.copied.clear();
        self.slots.clear();
        self.slots.resize(program.slots as usize, Slot::Run { start: 0, end: 0 });
        self.kept.clear();
        self.kept.resize(program.kept_slots as usize, None);
        self.kept_values.clear();
        self.kept_values.resize(program.kept_slots as usize, None);
        self.scopes.truncate(1);
        if self.scopes.is_empty() {
            self.scopes.push(Namespaces::default());
        }
        self.paths.begin(document, program.tests, &program.steps, &program.text);
    }
}

/// How much has been computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(crate) stack: usize,
    text: usize,
    events: usize,
}

/// What of a tuple of variables outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    Nothing,
    /// What has been put on the stack, above the values of its variables.
    Results,
    /// The values of its variables, too.
    Variables,
}

/// The item a predicate is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Focus {
    pub(crate) item: Item,
    pub(crate) position: u32,
    pub(crate) size: u32,
}

/// One run.
pub(super) struct Evaluator<'r, 'w> {
    pub(crate) document: Document<'r>,
    pub(crate) program: &'r Program,
    pub(crate) state: &'r mut State,
    pub(crate) budget: Budget,
    /// None outside all predicates.
    pub(crate) focus: Option<Focus>,
    pub(crate) writer: &'r mut Writer<'w>,
    pub(crate) out: &'r mut Results,
    pub(crate) limit: Limit,
    /// The nodes that are results, if it is nodes that are asked for.
    pub(crate) nodes: Option<Vec<NodeRef>>,
    /// Constructors around this one whose elements are written down as events.
    pub(crate) recording: u32,
    /// Items that have been given to results or constructors.
    pub(crate) items_put: u64,
    pub(crate) is_delivered: bool,
}

impl<'r, 'w> Evaluator<'r, 'w> {
    pub(crate) fn new(
        document: Document<'r>,
        program: &'r Program,
        state: &'r mut State,
        writer: &'r mut Writer<'w>,
        out: &'r mut Results,
        bounds: Bounds,
    ) -> Self {
        assert!(
            document.tree.is_full || !program.needs_full_tree,
            "this program needs a full tree"
        );
        state.begin(program, &document);
        let limit = Limit::after(&out.bytes, bounds.bytes_max);
        Evaluator {
            document,
            program,
            state,
            budget: Budget::new(bounds.steps_max),
            focus: None,
            writer,
            out,
            limit,
            nodes: None,
            recording: 0,
            items_put: 0,
            is_delivered: false,
        }
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.state.stack.push(item);
    }

    pub(crate) fn push_boolean(&mut self, value: bool) {
        self.push(Item::Boolean(value));
    }

    /// The bytes of a text.
    pub(crate) fn bytes(&self, text: Text) -> &[u8] {
        match text.place {
            Place::Message => &self.document.message.source[text.range()],
            Place::Beside => &self.document.tree.scratch.as_bytes()[text.range()],
            Place::Program => &self.program.text.as_bytes()[text.range()],
            Place::Kept => &self.state.text[text.range()],
            Place::Space => b" ",
        }
    }

    /// Makes room for a text that is computed: charges for it.
    pub(crate) fn charge_new_text(&mut self, len: usize) -> Run<()> {
        self.budget.charge_text(len)?;
        if self.state.text.len().saturating_add(len) > TEXT_MAX {
            return Err(RunError::OverBudget);
        }
        Ok(())
    }

    /// Keeps bytes that were computed.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Run<Text> {
        self.charge_new_text(bytes.len())?;
        let start = self.state.text.len();
        self.state.text.extend_from_slice(bytes);
        Ok(Text::kept(start, self.state.text.len()))
    }

    /// Adds a text to the end of what is kept.
    pub(crate) fn append(&mut self, text: Text) -> Run<()> {
        self.charge_new_text(text.len())?;
        let range = text.range();
        match text.place {
            Place::Message => {
                self.state.text.extend_from_slice(&self.document.message.source[range]);
            }
            Place::Beside => {
                self.state.text.extend_from_slice(&self.document.tree.scratch.as_bytes()[range]);
            }
            Place::Program => {
                self.state.text.extend_from_slice(&self.program.text.as_bytes()[range]);
            }
            Place::Kept => self.state.text.extend_from_within(range),
            Place::Space => self.state.text.push(b' '),
        }
        Ok(())
    }

    /// The string value of a node. Cost: a copy, if it is more than one run of text.
    pub(crate) fn node_text(&mut self, node: Node) -> Run<Text> {
        self.budget.charge_text(self.document.string_len(node))?;
        if let Some(span) = self.document.string_span(node) {
            return Ok(Text::of_span(span));
        }
        let value = self.document.string_value(node);
        self.keep(&value)
    }

    /// What has been computed so far.
    pub(crate) fn mark(&self) -> Mark {
        let State { stack, text, events, .. } = &*self.state;
        Mark { stack: stack.len(), text: text.len(), events: events.len() }
    }

    /// Forgets what has been computed since, unless an element that is being written down may still
    /// need it.
    pub(crate) fn release(&mut self, mark: Mark) {
        self.state.stack.truncate(mark.stack);
        if self.recording == 0 {
            self.state.text.truncate(mark.text);
            self.state.events.truncate(mark.events);
        }
    }
}
