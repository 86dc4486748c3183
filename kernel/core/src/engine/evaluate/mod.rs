//! All of XPath 1.0, evaluated exactly over a message.
//!
//! ```
//! use pathcast_core::xml::parser::{Door, Limits};
//! use pathcast_core::language::xpath::Expression;
//! use pathcast_core::engine::evaluate::{Scratch, Value};
//!
//! let mut door = Door::new(Limits::default());
//! let parsed = door.parse(b"<a><b/><b x='1'/></a>", None)?;
//! let mut scratch = Scratch::default();
//!
//! let expression = Expression::parse("count(/child::a/child::b) > 1")?;
//! assert!(expression.holds(parsed.message, parsed.names, &mut scratch, 1_000)?);
//!
//! let expression = Expression::parse("/descendant::b[position() = last()]/attribute::x")?;
//! let value = expression.evaluate(parsed.message, parsed.names, &mut scratch, 1_000)?;
//! assert!(matches!(value, Value::Nodes(nodes) if nodes.len() == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The time of an evaluation is polynomial in expression and message (see `analyse`), and bounded
//! by a number of steps: a node visited by an axis, an evaluation of a predicate, a call of a
//! function, 64 bytes of text handled. The same expression takes the same steps on the same message
//! every time, with one tree as with the other.
//!
//! What it does not do: bind variables or prefixes, find the queries that are worth evaluating,
//! select what a subscriber gets.
//!
//! Source: XPath 1.0; Gottlob, Koch, Pichler, "Efficient algorithms for processing XPath queries".

#![forbid(unsafe_code)]

pub(crate) mod axes;
pub(crate) mod budget;
pub(crate) mod call;
mod compare;
pub(crate) mod document;
mod evaluator;
pub(crate) mod ids;
mod memo;
pub(crate) mod node_test;

pub(crate) mod path_machine;
mod paths;
pub(crate) mod set_walk;

pub(crate) use budget::OverBudget;

use crate::language::xpath::Expression;
use crate::language::xpath::ast::Kind;
use crate::xml::names::NameTable;
use crate::xml::tree::{MarkupKind, Message, NodeRef};
use budget::{Budget, Within};
use document::{Document, Main, Node, Positions, Sort};
use evaluator::{Evaluator, State};
use path_machine::Context;

/// What evaluations work with; keeps its memory from message to message.
#[derive(Debug, Default)]
pub struct Scratch {
    positions: Positions,
    state: State,
    steps_taken: u64,
}

impl Scratch {
    /// Steps that the last evaluation has taken.
    pub fn steps_taken(&self) -> u64 {
        self.steps_taken
    }
}

/// Value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string.
    String(String),
    /// A node-set, in document order.
    Nodes(Vec<NodeRef>),
}

impl Expression {
    /// `boolean(expression)` with the document node as context node.
    ///
    /// Panics if the expression needs a full tree and the message does not have one.
    ///
    /// Cost: at most `steps_max` steps, and one pass over the nodes of the message.
    pub fn holds(
        &self,
        message: Message<'_>,
        names: &NameTable,
        scratch: &mut Scratch,
        steps_max: u64,
    ) -> Result<bool, OverBudget> {
        Session::new(message, names, scratch).holds(self, steps_max)
    }

    /// The value of the expression with the document node as context node; otherwise as
    /// [`Expression::holds`].
    pub fn evaluate(
        &self,
        message: Message<'_>,
        names: &NameTable,
        scratch: &mut Scratch,
        steps_max: u64,
    ) -> Result<Value, OverBudget> {
        Session::new(message, names, scratch).evaluate_at(None, self, steps_max)
    }
}

/// Evaluations over one message, which is prepared for them once.
///
/// ```
/// use pathcast_core::xml::parser::{Door, Limits};
/// use pathcast_core::language::xpath::Expression;
/// use pathcast_core::engine::evaluate::{Scratch, Session};
///
/// let mut door = Door::new(Limits::default());
/// let parsed = door.parse(b"<a><b/></a>", None)?;
/// let mut scratch = Scratch::default();
/// let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
/// assert!(session.holds(&Expression::parse("//b[not(c)]")?, 1_000)?);
/// assert!(!session.holds(&Expression::parse("//b/preceding-sibling::c")?, 1_000)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session<'s> {
    document: Document<'s>,
    state: &'s mut State,
    steps_taken: &'s mut u64,
}

impl<'s> Session<'s> {
    /// Prepares a message. Cost: one pass over its nodes.
    pub fn new(message: Message<'s>, names: &'s NameTable, scratch: &'s mut Scratch) -> Self {
        let Scratch { positions, state, steps_taken } = scratch;
        positions.number(message.tree);
        state.ids.begin();
        let document = Document::new(message, names, positions);
        Session { document, state, steps_taken }
    }

    /// The message as it is walked.
    pub(crate) fn document(&self) -> Document<'s> {
        self.document
    }

    /// As [`Expression::holds`].
    pub fn holds(&mut self, expression: &Expression, steps_max: u64) -> Result<bool, OverBudget> {
        self.run(expression, steps_max, |evaluator| {
            evaluator.boolean(expression.root, Context::of(Node::ROOT))
        })
    }

    /// The value of an expression with an element as context node; none is the document node.
    /// Otherwise as [`Expression::holds`].
    pub fn evaluate_at(
        &mut self,
        element: Option<u32>,
        expression: &Expression,
        steps_max: u64,
    ) -> Result<Value, OverBudget> {
        let root = expression.root;
        self.run(expression, steps_max, |evaluator| {
            let at = |element| Node::at(evaluator.document.element_position(element));
            let context = Context::of(element.map_or(Node::ROOT, at));
            Ok(match expression.arena.kind(root) {
                Kind::Boolean => Value::Boolean(evaluator.boolean(root, context)?),
                Kind::Number => Value::Number(evaluator.number(root, context)?),
                Kind::String => {
                    let text = evaluator.string(root, context)?;
                    Value::String(String::from_utf8_lossy(&text).into_owned())
                }
                Kind::Nodes => {
                    let nodes = evaluator.nodes(root, context)?;
                    let document = evaluator.document;
                    Value::Nodes(nodes.iter().map(|&node| node_ref(&document, node)).collect())
                }
            })
        })
    }

    /// Steps that the last evaluation has taken.
    pub fn steps_taken(&self) -> u64 {
        *self.steps_taken
    }

    fn run<T>(
        &mut self,
        expression: &Expression,
        steps_max: u64,
        ask: impl FnOnce(&mut Evaluator<'_>) -> Within<T>,
    ) -> Result<T, OverBudget> {
        let Session { document, state, steps_taken } = self;
        let arena = &expression.arena;
        assert!(
            document.tree.is_full || !expression.needs_full_tree(),
            "this expression needs a full tree"
        );
        state.store.begin(arena.slots, document.len());
        state.paths.begin(document, arena.tests, &arena.steps, &arena.text);
        let budget = Budget::new(steps_max);
        let mut evaluator = Evaluator { document: *document, arena, state, budget };
        let answer = ask(&mut evaluator);
        **steps_taken = evaluator.budget.taken();
        answer
    }
}

pub(crate) fn node_ref(document: &Document<'_>, node: Node) -> NodeRef {
    let element = || document.element(node.position()).unwrap_or(0);
    match document.sort(node) {
        Sort::Main(Main::Document) => NodeRef::Document,
        Sort::Main(Main::Element(element)) => NodeRef::Element(element),
        Sort::Main(Main::Text(text)) => NodeRef::Text(text),
        Sort::Main(Main::Markup(markup)) => match document.tree.markup_kind[markup as usize] {
            MarkupKind::Comment => NodeRef::Comment(markup),
            MarkupKind::Instruction => NodeRef::Instruction(markup),
        },
        Sort::Attribute(attribute) => NodeRef::Attribute(attribute),
        Sort::Namespace(declaration) => NodeRef::Namespace(element(), Some(declaration)),
        Sort::XmlNamespace => NodeRef::Namespace(element(), None),
    }
}
