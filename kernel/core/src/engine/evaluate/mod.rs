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

use crate::language::functions::Function;
use crate::language::xpath::ast::Kind;
use crate::language::xpath::{ExprId, Expression};
use crate::xml::names::NameTable;
use crate::xml::tree::{MarkupKind, Message, NodeRef};
use budget::{Budget, Within};
use document::{Document, Main, Node, Positions, Sort};
use evaluator::{Evaluator, State};
use path_machine::Context;
use std::borrow::Cow;

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

/// Value of an expression; nodes are an `N` each.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<N = NodeRef> {
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string.
    String(String),
    /// A node-set, in document order.
    Nodes(Vec<N>),
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
        scratch.positions.number(message.tree);
        scratch.state.ids.begin();
        Session::again(message, names, scratch)
    }

    /// As [`Session::new`], of the message that was the scratch's last.
    pub fn again(message: Message<'s>, names: &'s NameTable, scratch: &'s mut Scratch) -> Self {
        let Scratch { positions, state, steps_taken } = scratch;
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
        self.run(expression, steps_max, |evaluator| {
            let document = evaluator.document;
            let at = |element| Node::at(document.element_position(element));
            let context = Context::of(element.map_or(Node::ROOT, at));
            value_of(evaluator, expression.root, context, |node| node_ref(&document, node))
        })
    }

    /// The values of an expression in contexts, within `steps_max` for all of them: a node, its position and the
    /// size that positions count in. Nodes are numbers that sort in document order; the document node is 0.
    pub fn values_at(
        &mut self,
        contexts: &[(u64, u32, u32)],
        expression: &Expression,
        steps_max: u64,
    ) -> Result<Vec<Value<u64>>, OverBudget> {
        self.run(expression, steps_max, |evaluator| {
            contexts
                .iter()
                .map(|&(number, position, size)| {
                    evaluator.budget.charge(1)?;
                    let context = Context { node: Node::of_number(number), position, size };
                    value_of(evaluator, expression.root, context, Node::number)
                })
                .collect()
        })
    }

    /// The node of a number, as [`Session::values_at`] numbers them. Cost: the siblings before it.
    pub fn node_of(&self, number: u64) -> NodeFacts<'s> {
        let (document, node) = (self.document, Node::of_number(number));
        let fact = |node| {
            let name = |function| call::name_of(&document, function, node);
            (kind_name(&document, node), name(Function::NamespaceUri), name(Function::LocalName))
        };
        let own = fact(node);
        let mut place = 1;
        let mut at = node.position();
        while let Some(before) = document.sibling_before(at, true).filter(|_| node.is_main()) {
            at = before;
            place += u32::from(fact(Node::at(at)) == own);
        }
        let parent = document.parent_of(node).map(|position| Node::at(position).number());
        let (kind, uri, local) = own;
        NodeFacts { kind, uri, local, place, parent }
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

/// What a node is, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts<'s> {
    /// "document", "element", "attribute", "namespace", "text", "comment" or "processing instruction".
    pub kind: &'static str,
    /// Namespace of its name; empty for what is in none, or has no name.
    pub uri: Cow<'s, [u8]>,
    /// Local name; the target of an instruction, the prefix of a namespace node; empty for what has no name.
    pub local: Cow<'s, [u8]>,
    /// Its place, from 1, among the siblings of its kind and name.
    pub place: u32,
    /// Number of the parent; none for the document node.
    pub parent: Option<u64>,
}

/// The value of a sub-expression in a context.
fn value_of<N>(
    evaluator: &mut Evaluator<'_>,
    id: ExprId,
    context: Context,
    of_node: impl Fn(Node) -> N,
) -> Within<Value<N>> {
    Ok(match evaluator.arena.kind(id) {
        Kind::Boolean => Value::Boolean(evaluator.boolean(id, context)?),
        Kind::Number => Value::Number(evaluator.number(id, context)?),
        Kind::String => {
            let text = evaluator.string(id, context)?;
            Value::String(String::from_utf8_lossy(&text).into_owned())
        }
        Kind::Nodes => {
            Value::Nodes(evaluator.nodes(id, context)?.into_iter().map(of_node).collect())
        }
    })
}

fn kind_name(document: &Document<'_>, node: Node) -> &'static str {
    match node_ref(document, node) {
        NodeRef::Document => "document",
        NodeRef::Element(_) => "element",
        NodeRef::Text(_) => "text",
        NodeRef::Comment(_) => "comment",
        NodeRef::Instruction(_) => "processing instruction",
        NodeRef::Attribute(_) => "attribute",
        NodeRef::Namespace(..) => "namespace",
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
