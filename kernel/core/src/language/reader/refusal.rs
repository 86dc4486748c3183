//! Why a text is no query: data, without sentences.

use crate::language::tree::{NodeType, Offset};
use crate::language::xpath::Kind;
use std::fmt;

/// What makes a text no query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub reason: Reason,
    /// Where, in bytes from the start of the text; 0 where it is the whole text.
    pub offset: Offset,
}

/// What can be wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A word stands where an operator must.
    NoOperator {
        /// The word.
        word: String,
    },
    /// No local name follows a colon.
    NoLocalName {
        /// The prefix and the colon.
        after: String,
    },
    /// `Q{` without `}` and a name.
    OpenBraces,
    /// A string does not end.
    OpenString {
        /// The quote that it begins with.
        quote: char,
    },
    /// No name follows a dollar.
    NoVariableName,
    /// A character that begins no token.
    NoToken {
        /// The character.
        character: char,
    },
    /// A token stands where the grammar has another.
    Unexpected {
        /// What may stand there.
        expected: Expected,
        /// The token as written; empty at the end of the text.
        found: String,
        /// The innermost bracket that is open there.
        bracket: Option<Bracket>,
    },
    /// There is no such axis.
    NoAxis {
        /// The name before `::`.
        name: String,
    },
    /// There is no such function.
    NoFunction {
        /// Its name, perhaps with a prefix.
        name: String,
    },
    /// A function is given too few arguments or too many.
    ArgumentCount {
        /// The function.
        name: &'static str,
        /// How many it is given.
        given: usize,
    },
    /// The text is too long.
    TooLong {
        /// Its bytes.
        given: usize,
        /// Most bytes.
        maximum: usize,
    },
    /// It has too many syntax nodes.
    TooLarge {
        /// Most nodes.
        maximum: usize,
    },
    /// It nests too deep.
    TooDeep {
        /// Deepest.
        maximum: usize,
    },
    /// A step has too many predicates.
    TooManyPredicates {
        /// Most predicates.
        maximum: usize,
    },
    /// A node-set is needed where there is none.
    NoNodeSet {
        /// What needs it.
        needed_by: NodeSetUse,
        /// The type that there is.
        found: Kind,
    },
    /// A variable is not declared.
    NoVariable {
        /// Its name.
        name: String,
    },
    /// A prefix is not bound.
    NoPrefix {
        /// The prefix.
        prefix: String,
        /// The local name after it, or `*`.
        local: String,
    },
    /// `doc()` of something else than a literal.
    ComputedDocument {
        /// The function.
        name: String,
    },
    /// A prefix is bound to a URI that no name test can have.
    BadUri {
        /// What is wrong with it.
        fault: UriFault,
    },
}

/// What may stand at a place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// An expression.
    Expression,
    /// A location step.
    Step,
    /// A location step; a call of a function stands there.
    StepNotFunction,
    /// A name, `*` or a node type.
    NodeTest,
    /// The parenthesis that ends `comment()`.
    CommentEnd,
    /// The parenthesis that ends `node()`.
    NodeEnd,
    /// The parenthesis that ends `processing-instruction()`.
    InstructionEnd,
    /// The parenthesis that ends `text()`.
    TextEnd,
    /// An operator or the end.
    OperatorOrEnd,
    /// An operator or the closing bracket.
    OperatorOrClosing,
    /// An operator, a comma or the closing parenthesis.
    OperatorOrComma,
}

/// A bracket that nests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bracket {
    /// `(`
    Round,
    /// `[`
    Square,
}

/// What needs a node-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSetUse {
    /// A predicate after an expression.
    Filter,
    /// A path that begins at an expression.
    Path,
    /// A union.
    Union,
    /// A function.
    Function(&'static str),
}

/// What is wrong with the URI that a prefix is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriFault {
    /// White space that would be collapsed.
    Blanks,
    /// A brace.
    Braces,
    /// It is no Unicode text.
    Unwritable,
}

/// A parameter of a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// A text, or the name of a choice.
    Text(String),
    /// A number.
    Number(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.reason.code())
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    pub(super) fn new(reason: Reason, offset: usize) -> Self {
        Refusal { reason, offset: offset as Offset }
    }
}

impl Reason {
    /// The code of the error: of the W3C, or of Pathcast's limits.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::NoFunction { .. } | Reason::ArgumentCount { .. } => "XPST0017",
            Reason::NoNodeSet { .. } => "XPTY0004",
            Reason::NoVariable { .. } => "XPST0008",
            Reason::NoPrefix { .. } => "XPST0081",
            Reason::TooLong { .. } => "query.too_long",
            Reason::TooLarge { .. } => "query.too_large",
            Reason::TooDeep { .. } => "query.too_deep",
            Reason::TooManyPredicates { .. } => "query.too_many_predicates",
            Reason::ComputedDocument { .. } | Reason::BadUri { .. } => "query.unsupported",
            _ => "XPST0003",
        }
    }

    /// The name of the reason, by which catalogues of sentences know it.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::NoOperator { .. } => "no-operator",
            Reason::NoLocalName { .. } => "no-local-name",
            Reason::OpenBraces => "open-braces",
            Reason::OpenString { .. } => "open-string",
            Reason::NoVariableName => "no-variable-name",
            Reason::NoToken { .. } => "no-token",
            Reason::Unexpected { .. } => "unexpected",
            Reason::NoAxis { .. } => "no-axis",
            Reason::NoFunction { .. } => "no-function",
            Reason::ArgumentCount { .. } => "argument-count",
            Reason::TooLong { .. } => "too-long",
            Reason::TooLarge { .. } => "too-large",
            Reason::TooDeep { .. } => "too-deep",
            Reason::TooManyPredicates { .. } => "too-many-predicates",
            Reason::NoNodeSet { .. } => "no-node-set",
            Reason::NoVariable { .. } => "no-variable",
            Reason::NoPrefix { .. } => "no-prefix",
            Reason::ComputedDocument { .. } => "computed-document",
            Reason::BadUri { .. } => "bad-uri",
        }
    }

    /// Its parameters, by name.
    pub fn params(&self) -> Vec<(&'static str, Param)> {
        let text = |name, value: &str| (name, Param::Text(value.to_owned()));
        let number = |name, value: usize| (name, Param::Number(value));
        match self {
            Reason::OpenBraces | Reason::NoVariableName => Vec::new(),
            Reason::NoOperator { word } => vec![text("word", word)],
            Reason::NoLocalName { after } => vec![text("after", after)],
            Reason::OpenString { quote: character } | Reason::NoToken { character } => {
                vec![("character", Param::Text(character.to_string()))]
            }
            Reason::Unexpected { expected, found, bracket } => {
                let bracket = bracket.map_or("", Bracket::opening);
                vec![
                    text("expected", expected.name()),
                    text("found", found),
                    text("bracket", bracket),
                ]
            }
            Reason::NoAxis { name }
            | Reason::NoFunction { name }
            | Reason::NoVariable { name }
            | Reason::ComputedDocument { name } => vec![text("name", name)],
            Reason::ArgumentCount { name, given } => {
                vec![text("name", name), number("given", *given)]
            }
            Reason::TooLong { given, maximum } => {
                vec![number("given", *given), number("maximum", *maximum)]
            }
            Reason::TooLarge { maximum }
            | Reason::TooDeep { maximum }
            | Reason::TooManyPredicates { maximum } => vec![number("maximum", *maximum)],
            Reason::NoNodeSet { needed_by, found } => {
                let (needed_by, function) = match *needed_by {
                    NodeSetUse::Filter => ("filter", ""),
                    NodeSetUse::Path => ("path", ""),
                    NodeSetUse::Union => ("union", ""),
                    NodeSetUse::Function(name) => ("function", name),
                };
                let found = match found {
                    Kind::Nodes => "node-set",
                    Kind::Boolean => "boolean",
                    Kind::Number => "number",
                    Kind::String => "string",
                };
                vec![text("needed_by", needed_by), text("function", function), text("found", found)]
            }
            Reason::NoPrefix { prefix, local } => {
                vec![text("prefix", prefix), text("local", local)]
            }
            Reason::BadUri { fault } => {
                let fault = match fault {
                    UriFault::Blanks => "blanks",
                    UriFault::Braces => "braces",
                    UriFault::Unwritable => "unwritable",
                };
                vec![text("fault", fault)]
            }
        }
    }
}

impl Expected {
    /// The parenthesis that ends a node type.
    pub(super) fn end_of(node_type: &NodeType) -> Self {
        match node_type {
            NodeType::Comment => Expected::CommentEnd,
            NodeType::Node => Expected::NodeEnd,
            NodeType::Instruction(_) => Expected::InstructionEnd,
            NodeType::Text => Expected::TextEnd,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Expected::Expression => "expression",
            Expected::Step => "step",
            Expected::StepNotFunction => "step-not-function",
            Expected::NodeTest => "node-test",
            Expected::CommentEnd => "comment-end",
            Expected::NodeEnd => "node-end",
            Expected::InstructionEnd => "processing-instruction-end",
            Expected::TextEnd => "text-end",
            Expected::OperatorOrEnd => "operator-or-end",
            Expected::OperatorOrClosing => "operator-or-closing",
            Expected::OperatorOrComma => "operator-or-comma",
        }
    }
}

impl Bracket {
    fn opening(self) -> &'static str {
        match self {
            Bracket::Round => "(",
            Bracket::Square => "[",
        }
    }
}
