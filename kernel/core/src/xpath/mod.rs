//! All of XPath 1.0, evaluated exactly over a message.
//!
//! ```
//! use pathcast_core::door::{Door, Limits};
//! use pathcast_core::xpath::{Expression, Scratch, Value};
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

mod analyse;
mod ast;
mod axes;
mod budget;
mod call;
mod compare;
mod document;
mod evaluate;
mod functions;
mod memo;
mod node_test;
mod number_text;
mod parse;
mod paths;
mod simplify;
mod strings;
mod tokens;

pub use budget::OverBudget;
pub use tokens::ParseError;

use crate::names::NameTable;
use crate::tree::{MarkupKind, Message};
use ast::{Arena, ExprId, Kind, NodeTest};
use budget::{Budget, Within};
use document::{Document, Main, Node, Positions, Sort};
use evaluate::{Context, Evaluator, State};

/// An XPath 1.0 expression, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Expression {
    arena: Arena,
    root: ExprId,
}

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

/// A node of a message, by its number in the columns of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// The document node.
    Document,
    /// An element.
    Element(u32),
    /// An attribute.
    Attribute(u32),
    /// The namespace node of an element for one of the declarations in force; none for `xml`.
    Namespace(u32, Option<u32>),
    /// A text node.
    Text(u32),
    /// A comment, by its number among comments and instructions.
    Comment(u32),
    /// A processing instruction, by its number among comments and instructions.
    Instruction(u32),
}

impl Expression {
    /// Reads canonical expression text: XPath 1.0 with names resolved (`Q{uri}local`, `Q{uri}*`,
    /// `*:local`). Abbreviations and precedence are understood too.
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        let (arena, root) = parse::parse(text)?;
        Ok(Expression { arena, root })
    }

    /// Whether the message must have been parsed with [`crate::door::Door::keep_full_tree`]:
    /// comments and instructions, prefixes, namespace nodes or declared ids can matter.
    pub fn needs_full_tree(&self) -> bool {
        analyse::needs_full_tree(&self.arena)
    }

    /// The same question under the name of its most common reason.
    pub fn needs_comments_or_pis(&self) -> bool {
        self.needs_full_tree()
    }

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
        self.run(message, names, scratch, steps_max, |evaluator| {
            evaluator.boolean(self.root, Context::of(Node::ROOT))
        })
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
        self.evaluate_at(None, message, names, scratch, steps_max)
    }

    /// As [`Expression::evaluate`], with an element as context node; none is the document node.
    pub fn evaluate_at(
        &self,
        element: Option<u32>,
        message: Message<'_>,
        names: &NameTable,
        scratch: &mut Scratch,
        steps_max: u64,
    ) -> Result<Value, OverBudget> {
        self.run(message, names, scratch, steps_max, |evaluator| {
            let at = |element| Node::at(evaluator.document.element_position(element));
            let context = Context::of(element.map_or(Node::ROOT, at));
            Ok(match self.arena.kind(self.root) {
                Kind::Boolean => Value::Boolean(evaluator.boolean(self.root, context)?),
                Kind::Number => Value::Number(evaluator.number(self.root, context)?),
                Kind::String => {
                    let text = evaluator.string(self.root, context)?;
                    Value::String(String::from_utf8_lossy(&text).into_owned())
                }
                Kind::Nodes => {
                    let nodes = evaluator.nodes(self.root, context)?;
                    let document = evaluator.document;
                    Value::Nodes(nodes.iter().map(|&node| node_ref(&document, node)).collect())
                }
            })
        })
    }

    fn run<T>(
        &self,
        message: Message<'_>,
        names: &NameTable,
        scratch: &mut Scratch,
        steps_max: u64,
        ask: impl FnOnce(&mut Evaluator<'_>) -> Within<T>,
    ) -> Result<T, OverBudget> {
        assert!(
            message.tree.is_full || !self.needs_full_tree(),
            "this expression needs a full tree"
        );
        let Scratch { positions, state, steps_taken } = scratch;
        positions.number(message.tree);
        let document = Document::new(message, names, positions);
        state.store.begin(self.arena.slots, document.len());
        state.known.clear();
        for step in &self.arena.steps {
            let known = match step.test {
                NodeTest::Name { uri, local, hash } => {
                    let (uri, local) = (self.arena.text(uri), self.arena.text(local));
                    names.find(hash, uri.as_bytes(), local.as_bytes())
                }
                _ => None,
            };
            let number = step.test_number as usize;
            state.known.resize(state.known.len().max(number + 1), None);
            state.known[number] = known;
        }
        let budget = Budget::new(steps_max);
        let mut evaluator = Evaluator { document, arena: &self.arena, state, budget };
        let answer = ask(&mut evaluator);
        *steps_taken = evaluator.budget.taken();
        answer
    }
}

fn node_ref(document: &Document<'_>, node: Node) -> NodeRef {
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
