//! The syntax tree of an XPath 1.0 expression, as it was written.
//!
//! Every production of the grammar that carries meaning has a type of its name. Abbreviations are expanded (`@a` is
//! the attribute axis, `//` a step `descendant-or-self::node()`); parentheses leave no node of their own. Every node
//! knows the byte at which it begins. [`super::xpath`] has the arena that is evaluated.
//!
//! Source: XML Path Language (XPath) 1.0, sections 2 and 3.

use crate::language::arithmetic::Arithmetic;
use crate::language::comparison::Comparison;
use crate::language::folding::Fold;
use crate::language::folding::TextTest;
use crate::language::types::Type;
use crate::language::xpath::Axis;

/// A place in the text of a query, in bytes from its start.
pub type Offset = u32;

/// The node types that a node test can ask for (production 38).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeType {
    /// `comment()`
    Comment,
    /// `node()`
    Node,
    /// `processing-instruction()`, `processing-instruction('target')`
    Instruction(Option<String>),
    /// `text()`
    Text,
}

/// A name test (production 37), with the extensions `*:name` and `Q{uri}name`.
///
/// As written, `prefix` is the prefix and `uri` that of `Q{uri}name`. Once names are resolved there is a `uri` for
/// every test but `*` and `*:name`, and no prefix but the `*` of the latter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameTest {
    /// Prefix as written; `*` in `*:name`.
    pub prefix: Option<String>,
    /// Local name, or `*`.
    pub local: String,
    /// Namespace URI; empty for none, absent where none is known.
    pub uri: Option<String>,
    /// Where it begins.
    pub offset: Offset,
}

/// What a location step asks of a node (production 7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeTest {
    /// A name test.
    Name(NameTest),
    /// A test for a type of node, and where it begins.
    Type(NodeType, Offset),
}

/// An expression in square brackets (production 8).
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// The expression.
    pub expr: Expr,
    /// Where the bracket stands.
    pub offset: Offset,
}

/// A location step (production 4).
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Axis.
    pub axis: Axis,
    /// Node test.
    pub test: NodeTest,
    /// In order; a predicate after `.` or `..` is taken too, as XPath 2.0 does.
    pub predicates: Vec<Predicate>,
    /// Where the step begins; for the step that `//` stands for, the first slash.
    pub offset: Offset,
}

/// Operators between two expressions; `<>` is read as `!=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `or`
    Or,
    /// `and`
    And,
    /// A comparison.
    Compare(Comparison),
    /// A comparison of some node with a number, as XQuery casts its value to `xs:double`. The trees of gates have it;
    /// of texts, only that of a path in normal form says it (`double(x)=3`).
    Cast(Comparison),
    /// A comparison of nodes, cast to a type of dates or times, with the text of such a value; in gates only.
    CastToMoment(Type, Comparison),
    /// Some node, folded, passes a test with one of the texts that a literal holds
    /// ([`Values::text`](crate::language::values::Values)); of gates.
    Texts(TextTest, Fold),
    /// Some node, cast to `xs:double`, is one of the numbers that a literal holds; of gates.
    NumberOf,
    /// An operator on numbers.
    Calculate(Arithmetic),
    /// `|`
    Union,
}

/// Any expression (production 14).
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A location path (production 1).
    Path {
        /// Whether it begins at the document node.
        is_absolute: bool,
        /// Its steps.
        steps: Vec<Step>,
        /// Where it begins.
        offset: Offset,
    },
    /// A path that begins at the value of an expression: `id('n')//b` (production 19).
    PathFrom {
        /// Where it begins in the message.
        start: Box<Expr>,
        /// Its steps, one or more.
        steps: Vec<Step>,
        /// Where it begins in the text.
        offset: Offset,
    },
    /// A primary expression or one in parentheses, filtered (production 20).
    Filter {
        /// What is filtered.
        primary: Box<Expr>,
        /// One or more.
        predicates: Vec<Predicate>,
        /// Where it begins.
        offset: Offset,
    },
    /// A call of a function of the core library, or of `doc` and `document`.
    Call {
        /// Name of the function.
        name: &'static str,
        /// Its arguments.
        arguments: Vec<Expr>,
        /// Where the name stands.
        offset: Offset,
    },
    /// `$name`; none is left once names are resolved.
    Variable {
        /// Name.
        name: String,
        /// Where the dollar stands.
        offset: Offset,
    },
    /// A string in quotes.
    Literal {
        /// What stands between the quotes.
        value: String,
        /// Where the quote stands.
        offset: Offset,
    },
    /// A number; never negative, for the sign is an operator.
    Number {
        /// Its value.
        value: f64,
        /// Where it begins.
        offset: Offset,
    },
    /// One minus or several before an expression (production 27).
    Unary {
        /// How many.
        minuses: u32,
        /// What they stand before.
        operand: Box<Expr>,
        /// Where the first stands.
        offset: Offset,
    },
    /// Operators of one level, applied from left to right: `a - b + c` (productions 18, 21 to 26).
    Binary {
        /// One fewer than there are operands.
        operators: Vec<Operator>,
        /// Two or more.
        operands: Vec<Expr>,
        /// Where the first operand begins.
        offset: Offset,
        /// Where the first operator stands.
        operator_offset: Offset,
    },
}

impl Operator {
    /// The operator as written.
    pub fn text(self) -> &'static str {
        match self {
            Operator::Or => "or",
            Operator::And => "and",
            Operator::Compare(comparison)
            | Operator::Cast(comparison)
            | Operator::CastToMoment(_, comparison) => comparison.symbol(),
            Operator::Texts(..) | Operator::NumberOf => Comparison::Eq.symbol(),
            Operator::Calculate(arithmetic) => arithmetic.symbol(),
            Operator::Union => "|",
        }
    }
}

impl Expr {
    /// Where the expression begins.
    pub fn offset(&self) -> Offset {
        match *self {
            Expr::Path { offset, .. }
            | Expr::PathFrom { offset, .. }
            | Expr::Filter { offset, .. }
            | Expr::Call { offset, .. }
            | Expr::Variable { offset, .. }
            | Expr::Literal { offset, .. }
            | Expr::Number { offset, .. }
            | Expr::Unary { offset, .. }
            | Expr::Binary { offset, .. } => offset,
        }
    }
}
