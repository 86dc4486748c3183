//! The syntax tree of a program: what the parser builds, the evaluator walks and the shared plans
//! are recognised in.
//!
//! As that of [`crate::engine::evaluate`] it is an arena: every expression has a number, lists are ranges of
//! vectors. Names are resolved to (namespace URI, local name), variables to slots, abbreviations to
//! steps. It says nothing about values; those are in [`crate::engine::programs`].

use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::functions::Function;
use crate::language::moment_pictures::MomentPicture;
use crate::language::number_pictures::NumberPicture;
use crate::language::patterns::Pattern;
use crate::language::types::Type;
use crate::language::values::Values;
use crate::language::xpath::{List, Step, TextRange};

pub use crate::language::xpath::{Axis, ExprId, NodeTest};

/// A program: the body of a subscription, ready to be run.
///
/// ```
/// use pathcast_core::language::xquery::{Expr, Program};
///
/// let text = "<r>{for $b in //book where $b/price < 10 return $b/title}</r>";
/// let program = Program::parse(text, &[])?;
/// assert!(matches!(program.expr(program.body()), Expr::Element(_)));
/// # Ok::<(), Box<pathcast_core::language::refusal::Refusal>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) lists: Vec<ExprId>,
    pub(crate) steps: Vec<Step>,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) keys: Vec<OrderKey>,
    pub(crate) elements: Vec<Element>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) parts: Vec<Part>,
    /// Patterns, by number of the call that has each.
    pub(crate) patterns: Vec<(ExprId, Pattern)>,
    /// Pictures of numbers, dates and times, by number of the call that has each.
    pub(crate) pictures: Vec<(ExprId, Picture)>,
    /// Sequences of literals, by number of the expression.
    pub(crate) sets: Vec<(ExprId, ValueSet)>,
    /// Names, literals and text of constructors.
    pub(crate) text: String,
    pub(crate) body: ExprId,
    /// Number of variables.
    pub(crate) slots: u32,
    /// Number of node tests.
    pub(crate) tests: u32,
    /// Number of values that are kept.
    pub(crate) kept_slots: u32,
    /// By number of the expression: where its value is kept, `u32::MAX` if it is not.
    pub(crate) kept: Vec<u32>,
    /// The expressions of the frame that depend on the message, ascending.
    pub(crate) contents: Vec<ExprId>,
    pub(crate) needs_full_tree: bool,
    /// A constructor can be given attributes of the message where none may come, or a name that is none.
    pub(crate) may_fail: bool,
    /// A constructor of the frame has a computed name.
    pub(crate) has_computed_frame: bool,
}

/// An expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expr {
    /// `e, e`; empty for `()`.
    Sequence(List),
    /// `for ... where ... order by ... return`
    Flwor {
        /// Run of [`Program::clauses`].
        clauses: List,
        /// `where`
        condition: Option<ExprId>,
        /// Run of [`Program::keys`].
        order: List,
        /// `return`
        body: ExprId,
    },
    /// `some`, `every`
    Quantified {
        /// `every`
        is_every: bool,
        /// Run of [`Program::clauses`], all of them `For`.
        bindings: List,
        /// `satisfies`
        condition: ExprId,
    },
    /// `if (condition) then ... else ...`
    If {
        /// Condition.
        condition: ExprId,
        /// `then`
        then: ExprId,
        /// `else`
        otherwise: ExprId,
    },
    /// `or`; at least two operands, none of them `or` itself.
    Or(List),
    /// `and`; at least two operands, none of them `and` itself.
    And(List),
    /// `=`, `eq`, ...
    Comparison {
        /// Operator.
        operator: Comparison,
        /// `eq` and not `=`.
        is_value: bool,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// `+`, `div`, ...
    Arithmetic {
        /// Operator.
        operator: Arithmetic,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// `-e`
    Negation(ExprId),
    /// `xs:date(e)`, `e cast as xs:date?`: the first item's value as one of a type.
    Cast {
        /// The type.
        to: Type,
        /// What is cast.
        operand: ExprId,
    },
    /// `e castable as xs:date`
    Castable {
        /// The type.
        to: Type,
        /// `xs:date?`: no item can be cast too.
        is_optional: bool,
        /// What would be cast.
        operand: ExprId,
    },
    /// `e instance of element(a)*`: whether the items are of a kind, and as many as it says.
    InstanceOf {
        /// The kind of each item.
        item: ItemTest,
        /// How many items there may be.
        occurrence: Occurrence,
        /// What is looked at.
        operand: ExprId,
    },
    /// `e to e`: the integers from one to another.
    Range {
        /// The first.
        first: ExprId,
        /// The last.
        last: ExprId,
    },
    /// `e ! e`: what an expression gives for each item, which is its context item.
    SimpleMap {
        /// The items.
        source: ExprId,
        /// What is found for each.
        body: ExprId,
    },
    /// `e | e`
    Union(List),
    /// `e intersect e`, `e except e`: the nodes on the left that are on the right too, or are not.
    Intersection {
        /// `except`
        is_except: bool,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// A location path; the message itself is the path from the root without steps.
    Path {
        /// Where it begins.
        start: Start,
        /// Run of [`Program::steps`].
        steps: List,
    },
    /// `(e)[predicate]`
    Filter {
        /// What is filtered.
        primary: ExprId,
        /// Predicates.
        predicates: List,
        /// Some predicate may ask for position or size, or be a number.
        is_positional: bool,
    },
    /// `$v`, by slot.
    Variable(u32),
    /// A literal string.
    String(TextRange),
    /// A literal number.
    Number(Number),
    /// A function call.
    Call(Function, List),
    /// `.`
    ContextItem,
    /// A direct element constructor, by number.
    Element(u32),
}

impl Expr {
    /// Whether it gives nodes, in document order and each once.
    pub(crate) fn gives_ordered_nodes(&self) -> bool {
        matches!(self, Expr::Path { .. } | Expr::Union(_) | Expr::Intersection { .. })
    }
}

/// What `instance of` asks of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemTest {
    /// `item()`
    Item,
    /// `document-node()`
    Document,
    /// Any other node test: the number of a step along the axis of attributes or to the node itself.
    Node(u32),
    /// `xs:anyAtomicType`
    AnyAtomic,
    /// `xs:untypedAtomic`
    Untyped,
    /// A type of atomic values.
    Atomic(Type),
}

/// How many items `instance of` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// One.
    One,
    /// `?`
    Optional,
    /// `*`
    Any,
    /// `+`
    Several,
    /// None: `empty-sequence()`.
    Nothing,
}

impl Occurrence {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Occurrence::One | Occurrence::Nothing => "",
            Occurrence::Optional => "?",
            Occurrence::Any => "*",
            Occurrence::Several => "+",
        }
    }

    /// Whether there may be so many items.
    pub(crate) fn allows(self, count: usize) -> bool {
        match self {
            Occurrence::One => count == 1,
            Occurrence::Optional => count <= 1,
            Occurrence::Any => true,
            Occurrence::Several => count > 0,
            Occurrence::Nothing => count == 0,
        }
    }
}

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The document node.
    Root,
    /// The context item.
    Context,
    /// The nodes of an expression.
    Expr(ExprId),
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `xs:integer`, of 64 bits; what has no room there is a double.
    Integer(i64),
    /// `xs:decimal`, with the precision of a double; finite, never -0.
    Decimal(f64),
    /// `xs:double`
    Double(f64),
}

impl Number {
    /// A decimal; a double where there is no such decimal.
    pub(crate) fn decimal(value: f64) -> Number {
        // Adding zero takes the sign of -0, which no decimal has.
        if value.is_finite() { Number::Decimal(value + 0.0) } else { Number::Double(value) }
    }

    /// The value as a double.
    pub(crate) fn value(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Decimal(value) | Number::Double(value) => value,
        }
    }
}

/// A clause that binds a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// `for $variable at $position in source`
    For {
        /// Slot of the variable.
        variable: u32,
        /// Slot of the position.
        position: Option<u32>,
        /// What is gone through.
        source: ExprId,
    },
    /// `let $variable := value`
    Let {
        /// Slot of the variable.
        variable: u32,
        /// Its value.
        value: ExprId,
    },
}

/// A key of `order by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// The key.
    pub key: ExprId,
    /// `descending`
    pub is_descending: bool,
    /// Whether the empty sequence and NaN come before everything else, and not after: what `empty
    /// least` says, and what holds if nothing is said.
    pub is_empty_least: bool,
    /// Whether texts are in the order of the case-blind collation.
    pub is_case_blind: bool,
}

impl ValueSet {
    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        let sets = [&self.strings, &self.numbers].into_iter().flatten();
        sets.map(|values| values.text().len()).sum()
    }
}

/// The value of a literal.
enum Literal<'p> {
    String(&'p str),
    Number(f64),
}

/// A name as written and resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Prefix; empty if it has none.
    pub prefix: TextRange,
    /// Namespace URI; empty for none.
    pub uri: TextRange,
    /// Local name.
    pub local: TextRange,
}

/// A name that an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputedName {
    /// The expression.
    pub expr: ExprId,
    /// The namespaces that are statically known there, a run of [`Program::declarations`].
    pub scope: List,
}

/// An element constructor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Name; empty if it is computed.
    pub name: Name,
    /// Where the name is computed.
    pub computed: Option<ComputedName>,
    /// Run of [`Program::attributes`].
    pub attributes: List,
    /// Its own namespace declarations, a run of [`Program::declarations`].
    pub namespaces: List,
    /// The constructor around it, whose declarations are in force here, too.
    pub(crate) outer: Option<u32>,
    /// Run of [`Program::parts`]. Boundary space is gone, neighbouring texts are one.
    pub content: List,
}

/// A namespace declaration attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Prefix; empty for the default namespace.
    pub prefix: TextRange,
    /// Namespace URI; empty for `xmlns=""`.
    pub uri: TextRange,
}

/// An attribute of a constructor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    /// Name; empty if it is computed.
    pub name: Name,
    /// Where the name is computed.
    pub computed: Option<ComputedName>,
    /// Value: run of [`Program::parts`], texts and enclosed expressions.
    pub parts: List,
}

/// Part of a constructor's content or of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text, references expanded.
    Text(TextRange),
    /// A nested constructor, by number.
    Element(u32),
    /// `{e}`
    Enclosed(ExprId),
}

/// How a number, or a date or time, is written.
#[derive(Clone, Debug)]
pub(crate) enum Picture {
    Number(Box<NumberPicture>),
    Moment(MomentPicture),
}

/// The values of a sequence of literals.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// The strings.
    pub(crate) strings: Option<Values<'static>>,
    /// The numbers.
    pub(crate) numbers: Option<Values<'static>>,
}

impl Program {
    /// The values of an expression that is a sequence of literals, two or more and all of them strings or finite numbers.
    pub(crate) fn set(&self, id: ExprId) -> Option<&ValueSet> {
        let at = self.sets.binary_search_by_key(&id, |&(known, _)| known).ok()?;
        Some(&self.sets[at].1)
    }

    /// The pattern of a call.
    pub(crate) fn pattern(&self, id: ExprId) -> Option<&Pattern> {
        let at = self.patterns.binary_search_by_key(&id, |&(known, _)| known).ok()?;
        Some(&self.patterns[at].1)
    }

    /// The picture of a call.
    pub(crate) fn picture(&self, id: ExprId) -> Option<&Picture> {
        let at = self.pictures.binary_search_by_key(&id, |&(known, _)| known).ok()?;
        Some(&self.pictures[at].1)
    }

    /// The set of the values of some expressions, if all are literals.
    pub(crate) fn set_of(&self, items: &[ExprId]) -> Option<ValueSet> {
        let (mut strings, mut numbers) = (Vec::new(), Vec::new());
        for &item in items {
            match self.literal(item)? {
                Literal::String(text) => strings.push(text),
                Literal::Number(number) => numbers.push(number),
            }
        }
        let of_strings = Values::of(strings.iter().copied());
        let of_numbers = Values::of_numbers(numbers.iter().copied());
        let is_whole = of_strings.is_some() != strings.is_empty()
            && of_numbers.is_some() != numbers.is_empty();
        is_whole.then_some(ValueSet { strings: of_strings, numbers: of_numbers })
    }

    /// The value of an expression that is a literal, with a minus or without.
    fn literal(&self, id: ExprId) -> Option<Literal<'_>> {
        match self.expr(id) {
            Expr::String(text) => Some(Literal::String(self.text(text))),
            Expr::Number(number) => Some(Literal::Number(number.value())),
            Expr::Negation(operand) => match self.expr(operand) {
                Expr::Number(number) => Some(Literal::Number(-number.value())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether an expression is a literal, with a minus or without.
    pub(crate) fn is_literal(&self, id: ExprId) -> bool {
        self.literal(id).is_some()
    }

    /// The body.
    pub fn body(&self) -> ExprId {
        self.body
    }

    /// An expression.
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id as usize]
    }

    /// All expressions, in no order that says anything.
    pub(crate) fn all(&self) -> impl Iterator<Item = Expr> + '_ {
        self.exprs.iter().copied()
    }

    /// A list of expressions.
    pub fn list(&self, list: List) -> &[ExprId] {
        &self.lists[list.range()]
    }

    /// The steps of a path.
    pub fn steps(&self, list: List) -> &[Step] {
        &self.steps[list.range()]
    }

    /// The step that says what a node must be for `instance of`.
    pub fn node_step(&self, number: u32) -> &Step {
        &self.steps[number as usize]
    }

    /// The clauses of a FLWOR or quantified expression.
    pub fn clauses(&self, list: List) -> &[Clause] {
        &self.clauses[list.range()]
    }

    /// The keys of `order by`.
    pub fn keys(&self, list: List) -> &[OrderKey] {
        &self.keys[list.range()]
    }

    /// A constructor.
    pub fn element(&self, number: u32) -> &Element {
        &self.elements[number as usize]
    }

    /// The attributes of a constructor.
    pub fn attributes(&self, list: List) -> &[Attribute] {
        &self.attributes[list.range()]
    }

    /// The namespace declarations of a constructor.
    pub fn declarations(&self, list: List) -> &[Declaration] {
        &self.declarations[list.range()]
    }

    /// The content of a constructor or the value of an attribute.
    pub fn parts(&self, list: List) -> &[Part] {
        &self.parts[list.range()]
    }

    /// A name, literal or text.
    pub fn text(&self, range: TextRange) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }

    /// Whether an expression of the frame depends on the message, so that it decides on delivery.
    pub(crate) fn is_content(&self, id: ExprId) -> bool {
        self.contents.binary_search(&id).is_ok()
    }

    /// Whether a constructor has a computed name.
    pub(crate) fn has_computed_names(&self) -> bool {
        self.elements.iter().any(|element| element.computed.is_some())
            || self.attributes.iter().any(|attribute| attribute.computed.is_some())
    }

    /// Whether an attribute of a constructor is `xml:id`, whose value is normalised.
    pub(crate) fn is_id(&self, attribute: &Attribute) -> bool {
        self.text(attribute.name.local) == "id" && self.text(attribute.name.prefix) == "xml"
    }

    /// Whether the message must have been parsed with [`crate::xml::parser::Door::keep_full_tree`], and not
    /// only with [`crate::xml::parser::Door::keep_source_spans`], which every program needs.
    pub fn needs_full_tree(&self) -> bool {
        self.needs_full_tree
    }
}
