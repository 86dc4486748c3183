//! An expression as an arena: what the evaluator walks.
//!
//! Every sub-expression has a number; lists (operands, arguments, predicates) are ranges of one
//! vector. Abbreviations and predicates that are numbers are gone: a predicate `[n]` is
//! `[position() = n]` here, so that every predicate is asked for its truth.

use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::functions::Function;

pub use crate::language::functions::Kind;

/// Number of a sub-expression.
pub type ExprId = u32;

/// A run of [`Arena::lists`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// First of the run.
    pub(crate) start: u32,
    /// One past the last.
    pub(crate) end: u32,
}

impl List {
    /// Its places.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Number of entries.
    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether there is none.
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// A run of [`Arena::text`], in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextRange {
    /// First byte.
    pub(crate) start: u32,
    /// One past the last.
    pub(crate) end: u32,
}

/// The thirteen axes (XPath 1.0, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// `ancestor`
    Ancestor,
    /// `ancestor-or-self`
    AncestorOrSelf,
    /// `attribute`
    Attribute,
    /// `child`
    Child,
    /// `descendant`
    Descendant,
    /// `descendant-or-self`
    DescendantOrSelf,
    /// `following`
    Following,
    /// `following-sibling`
    FollowingSibling,
    /// `namespace`
    Namespace,
    /// `parent`
    Parent,
    /// `preceding`
    Preceding,
    /// `preceding-sibling`
    PrecedingSibling,
    /// `self`
    Itself,
}

impl Axis {
    /// All of them, by name.
    const BY_NAME: [(&str, Axis); 13] = [
        ("ancestor", Axis::Ancestor),
        ("ancestor-or-self", Axis::AncestorOrSelf),
        ("attribute", Axis::Attribute),
        ("child", Axis::Child),
        ("descendant", Axis::Descendant),
        ("descendant-or-self", Axis::DescendantOrSelf),
        ("following", Axis::Following),
        ("following-sibling", Axis::FollowingSibling),
        ("namespace", Axis::Namespace),
        ("parent", Axis::Parent),
        ("preceding", Axis::Preceding),
        ("preceding-sibling", Axis::PrecedingSibling),
        ("self", Axis::Itself),
    ];

    /// The axis of a name.
    pub(crate) fn of_name(name: &str) -> Option<Axis> {
        let at = Axis::BY_NAME.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        Some(Axis::BY_NAME[at].1)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Axis::BY_NAME[self as usize].0
    }

    /// Whether its order is the reverse of document order.
    pub(crate) fn is_reverse(self) -> bool {
        use Axis::*;
        matches!(self, Ancestor | AncestorOrSelf | Preceding | PrecedingSibling)
    }

    /// Whether different context nodes have no node of the axis in common.
    pub(crate) fn is_disjoint(self) -> bool {
        matches!(self, Axis::Attribute | Axis::Child | Axis::Namespace | Axis::Itself)
    }
}

/// What a node must be (XPath 1.0, 2.3). The principal node type depends on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeTest {
    /// `*`: any node of the principal type.
    Any,
    /// `name`, `Q{uri}name`.
    Name {
        /// Namespace URI; empty for none.
        uri: TextRange,
        /// Local name.
        local: TextRange,
        /// The [`crate::xml::names::hash_name`] of both.
        hash: u64,
    },
    /// `Q{uri}*`
    AnyIn {
        /// Namespace URI.
        uri: TextRange,
    },
    /// `*:name`
    AnyNamespace {
        /// Local name.
        local: TextRange,
    },
    /// `node()`
    Node,
    /// The document node or an element: what `node()` comes to where only nodes with children or
    /// attributes lead on. Not in the language.
    Container,
    /// `text()`
    Text,
    /// `element()` of XQuery: an element, whatever the axis leads to.
    Element,
    /// `attribute()` of XQuery.
    Attribute,
    /// `comment()`
    Comment,
    /// `processing-instruction()`, `processing-instruction('target')`
    Instruction(Option<TextRange>),
}

impl NodeTest {
    /// Whether comments or instructions can pass on an axis that has them.
    pub(crate) fn sees_markup(self) -> bool {
        matches!(self, NodeTest::Node | NodeTest::Comment | NodeTest::Instruction(_))
    }
}

/// A location step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Axis.
    pub axis: Axis,
    /// Node test.
    pub test: NodeTest,
    /// Number of the test among those of the expression: its place in the table of known names.
    pub test_number: u32,
    /// Predicates, by number of sub-expression.
    pub predicates: List,
    /// Some predicate asks for position or size, which count per context node.
    pub(crate) is_positional: bool,
    /// The first predicate is `[n]`, n a positive whole number.
    pub(crate) nth: Option<u32>,
}

/// Where a path begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    Context,
    Root,
    /// `(expression)[predicates]`; positions count in document order.
    Filter {
        set: ExprId,
        predicates: List,
    },
}

/// A sub-expression.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expr {
    Number(f64),
    Literal(TextRange),
    Or(List),
    And(List),
    Compare(Comparison, ExprId, ExprId),
    Calculate(Arithmetic, ExprId, ExprId),
    Negate(ExprId),
    Union(List),
    /// `steps` is a run of [`Arena::steps`].
    Path {
        start: Start,
        steps: List,
    },
    Call(Function, List),
}

/// Which parts of the context a sub-expression depends on.
pub(crate) mod depends {
    pub(crate) const NODE: u8 = 1;
    pub(crate) const POSITION: u8 = 2;
    pub(crate) const SIZE: u8 = 4;
    pub(crate) const PLACE: u8 = POSITION | SIZE;
}

/// Whether the value of a sub-expression is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memo {
    /// It is evaluated at most once for any context, or as cheaply as it is looked up.
    No,
    /// It does not depend on the context: kept once, in this slot.
    Once(u32),
    /// It depends on the context node: kept for every node, in this slot.
    PerNode(u32),
}

/// What is known about a sub-expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) depends: u8,
    pub(crate) memo: Memo,
}

/// One expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    pub(crate) exprs: Vec<Expr>,
    /// One entry per entry of `exprs`.
    pub(crate) facts: Vec<Facts>,
    pub(crate) lists: Vec<ExprId>,
    pub(crate) steps: Vec<Step>,
    /// Literals and names.
    pub(crate) text: String,
    /// Number of slots for kept values.
    pub(crate) slots: u32,
    /// Number of node tests.
    pub(crate) tests: u32,
}

impl Arena {
    pub(crate) fn text(&self, range: TextRange) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }

    pub(crate) fn list(&self, list: List) -> &[ExprId] {
        &self.lists[list.start as usize..list.end as usize]
    }

    pub(crate) fn steps(&self, list: List) -> &[Step] {
        &self.steps[list.start as usize..list.end as usize]
    }

    pub(crate) fn kind(&self, id: ExprId) -> Kind {
        self.facts[id as usize].kind
    }

    pub(crate) fn depends(&self, id: ExprId) -> u8 {
        self.facts[id as usize].depends
    }
}
