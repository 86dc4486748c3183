//! Why a text is no query, as data: a reason, a place, and the words of the text that a sentence about it needs.

use std::fmt;

/// A word or a number of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A name, a symbol or a piece of the text.
    Text(String),
    /// A count, or a byte of the text.
    Number(usize),
}

impl From<&str> for Detail {
    fn from(text: &str) -> Detail {
        Detail::Text(text.to_owned())
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Detail {
        Detail::Text(text)
    }
}

impl From<usize> for Detail {
    fn from(number: usize) -> Detail {
        Detail::Number(number)
    }
}

/// Result of reading a query.
pub type Parsed<T> = Result<T, Box<Refusal>>;

/// The text is no query of the language that it is read in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Byte at which it was noticed; 0 where it is the whole text.
    pub offset: usize,
    /// One past the token that was found where another is expected; `offset` at the end of the text, and for all other
    /// reasons.
    pub end: usize,
    /// The reason.
    pub reason: Reason,
    /// What the sentence about it names.
    pub details: Vec<Detail>,
}

impl Refusal {
    pub(crate) fn new(offset: usize, reason: Reason, details: Vec<Detail>) -> Box<Refusal> {
        Box::new(Refusal { offset, end: offset, reason, details })
    }

    /// Details that have a name of their own, by it.
    pub fn params(&self) -> impl Iterator<Item = (&'static str, &Detail)> {
        self.reason.params().iter().copied().zip(&self.details)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {} ({})", self.offset, self.reason.name(), self.reason.code())
    }
}

impl std::error::Error for Refusal {}

macro_rules! reasons {
    ($($(#[$meta:meta])* $name:ident $(($($param:ident),*))? = $code:literal,)*) => {
        /// Reasons for which a text is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$meta])* $name,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Reason] = &[$(Reason::$name,)*];

            /// Its name, by which catalogues of sentences know it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$name => stringify!($name),)*
                }
            }

            /// The W3C's code, or one of our own.
            pub fn code(self) -> &'static str {
                match self {
                    $(Reason::$name => $code,)*
                }
            }

            /// The names of its details, those that XPath has.
            fn params(self) -> &'static [&'static str] {
                match self {
                    $(Reason::$name => &[$($(stringify!($param)),*)?],)*
                }
            }
        }
    };
}

reasons! {
    // Limits.
    /// Given and most bytes.
    TooLong(given, maximum) = "query.too_long",
    /// The most.
    TooLarge(maximum) = "query.too_large",
    /// The most.
    TooManyValues = "query.too_many_values",
    /// The most.
    TooDeep(maximum) = "query.too_deep",
    /// The most.
    TooManyPredicates(maximum) = "query.too_many_predicates",

    // Tokens.
    /// A character that XML does not have.
    NoCharacter = "XPST0003",
    /// A character that begins no token; the character, in XPath.
    NoToken(character) = "XPST0003",
    /// A string that does not end; its quote, in XPath.
    OpenString(character) = "XPST0003",
    /// A comment that does not end.
    OpenComment = "XPST0003",
    /// `$` without a name.
    NoVariableName = "XPST0003",
    /// The word that stands where an operator must.
    NoOperator(word) = "XPST0003",
    /// What has no local name after it: the prefix and the colon.
    NoLocalName(after) = "XPST0003",
    /// `Q{` without `}` and a name.
    OpenBraces = "XPST0003",
    /// A number with a name directly after it.
    NumberIntoName = "XPST0003",
    /// `&` that begins no reference.
    NoReference = "XPST0003",
    /// The reference.
    NoReferredCharacter = "XQST0090",

    // A token where another is expected.
    /// What may stand there, the token as written, "" at the end of the text, and the innermost bracket that is open
    /// there; in XPath.
    Unexpected(expected, found, bracket) = "XPST0003",
    /// An expression.
    ExpectedExpression = "XPST0003",
    /// An operator or the end.
    ExpectedEnd = "XPST0003",
    /// A version in quotes.
    ExpectedVersion = "XPST0003",
    /// An encoding in quotes.
    ExpectedEncoding = "XPST0003",
    /// The word, and what it belongs to.
    ExpectedWord = "XPST0003",
    /// The symbol, and what it belongs to.
    ExpectedSymbol = "XPST0003",
    /// The symbol, and the variable before it.
    ExpectedAfterVariable = "XPST0003",
    /// What is declared.
    ExpectedDeclaration = "XPST0003",
    /// A prefix.
    ExpectedPrefix = "XPST0003",
    /// A namespace URI in quotes.
    ExpectedUri = "XPST0003",
    /// A variable.
    ExpectedVariable = "XPST0003",
    /// `order by` after `stable`.
    ExpectedOrderBy = "XPST0003",
    /// A location step.
    ExpectedStep = "XPST0003",
    /// A location step, and not an operator after a slash that stands alone.
    ExpectedStepAfterSlash = "XPST0003",
    /// A name, `*` or a node test.
    ExpectedTest = "XPST0003",
    /// A node test.
    ExpectedKindTest = "XPST0003",
    /// The parenthesis of the node test that is named.
    ExpectedKindParenthesis = "XPST0003",
    /// A target.
    ExpectedTarget = "XPST0003",
    /// A name or `*`.
    ExpectedName = "XPST0003",
    /// The name of an element.
    ExpectedElementName = "XPST0003",
    /// An attribute or the end of the tag.
    ExpectedAttribute = "XPST0003",
    /// A blank or the end of the tag.
    ExpectedBlank = "XPST0003",
    /// A value in quotes.
    ExpectedValue = "XPST0003",
    /// The end tag of the element that is named.
    ExpectedEndTag = "XPST0003",

    // The prolog.
    /// The version.
    Version = "query.unsupported",
    /// The name of an encoding that cannot be one.
    NoEncoding = "XQST0087",
    /// The word that begins the declaration.
    PrologDeclaration = "query.unsupported",
    /// The words after `declare`.
    Declaration = "query.unsupported",
    /// A declaration of a namespace after one of a function or a variable.
    LateDeclaration = "XPST0003",
    /// `function` or `variable`, of which `external` says the rest.
    External = "query.unsupported",
    /// A function that is declared without a prefix, or in a namespace of the standard.
    ReservedFunction = "XQST0045",
    /// The function, and the number of its parameters.
    FunctionTwice = "XQST0034",
    /// The variable.
    VariableTwice = "XQST0049",
    /// The parameter.
    ParameterTwice = "XQST0039",
    /// The function or variable, of whose value its own is a part.
    Recursion = "query.unsupported",
    /// The function as written, how many arguments it takes, and how many it is given.
    DeclaredArguments = "XPST0017",
    /// `xml` or `xmlns` declared.
    XmlReserved = "XQST0070",
    /// A name with the prefix `xmlns`.
    XmlnsReserved = "XQST0070",
    /// The namespace.
    NamespaceReserved = "XQST0070",
    /// The prefix.
    PrefixTwice = "XQST0033",
    /// The default element namespace.
    DefaultTwice = "XQST0066",
    /// The prefix, or "" for the default, in one tag.
    AttributeTwiceDeclared = "XQST0071",
    /// The prefix.
    PrefixTakenBack = "XQST0085",
    /// The prefix, and those that are bound.
    PrefixNotBound = "XPST0081",
    /// The prefix, and the local name after it, or `*`; in XPath.
    NoPrefix(prefix, local) = "XPST0081",
    /// What is wrong with the URI that a prefix is bound to; in XPath.
    BadUri(fault) = "query.unsupported",
    /// A namespace URI with white space that would be collapsed.
    UriWithSpace = "query.unsupported",
    /// A namespace URI with braces.
    UriWithBraces = "query.unsupported",
    /// A namespace URI with U+FFFE, which no URI has and which stands for a lone surrogate.
    UriWithSurrogate = "query.unsupported",

    // Expressions.
    /// A window clause.
    Window = "query.unsupported",
    /// The word before a parenthesis or brace.
    Construct = "query.unsupported",
    /// The word before a name and a brace, or before a brace.
    ComputedConstructor = "query.unsupported",
    /// The word before a brace.
    Block = "query.unsupported",
    /// The word.
    FoundBeforeBrace = "XPST0003",
    /// The first word of the clause, and that of the clause before it.
    Clause = "query.unsupported",
    /// `as` after a variable.
    VariableType = "query.unsupported",
    /// `allowing` after a variable.
    AllowingEmpty = "query.unsupported",
    /// The variable.
    BoundTwice = "XQST0089",
    /// A comparison of a comparison.
    ComparisonChain = "XPST0003",
    /// The operator.
    Operator = "query.unsupported",
    /// `(#`
    Pragma = "query.unsupported",
    /// The variable, and those that are bound.
    NoVariable(name) = "XPST0008",
    /// The most digits.
    IntegerDigits = "query.unsupported",
    /// An expression that is no step, after a slash.
    ExpressionAsStep = "query.unsupported",
    /// The axis.
    NoAxis(name) = "XPST0003",
    /// The namespace axis.
    NamespaceAxis = "query.unsupported",
    /// `*:` without a name.
    NameAfterStar = "XPST0003",
    /// The node test.
    KindTest = "query.unsupported",
    /// The node test.
    SchemaTypeOfTest = "query.unsupported",
    /// The node test, and the axis.
    KindTestOnAxis = "query.unsupported",

    // Calls.
    /// The name as written, and the local name.
    SchemaType = "query.unsupported",
    /// The name of a type as written.
    NoType = "XQST0052",
    /// The text, and the type that it is no value of.
    NotCastable = "FORG0001",
    /// The function.
    Function = "query.unsupported",
    /// The word before a parenthesis.
    FunctionWord = "query.unsupported",
    /// The name as written, and in XQuery the local name.
    NoFunction(name) = "XPST0017",
    /// The function, and how many arguments it is given.
    Arguments = "query.unsupported",
    /// The function, and how many arguments it is given.
    ArgumentCount(name, given) = "XPST0017",
    /// The function.
    ComputedDocument(name) = "query.unsupported",
    /// The function.
    ComputedPattern = "query.unsupported",
    /// The pattern.
    Pattern = "FORX0002",
    /// The flags.
    PatternFlags = "FORX0001",
    /// The pattern.
    BackReference = "query.unsupported",
    /// The pattern.
    PatternBlock = "query.unsupported",
    /// The pattern, and the most bytes.
    PatternTooLarge = "query.unsupported",
    /// The pattern.
    PatternMatchesEmpty = "FORX0003",
    /// The replacement.
    Replacement = "FORX0004",
    /// A text in the place of a name.
    NoName = "XQDY0074",
    /// The collation.
    NoCollation = "FOCH0002",
    /// The function.
    ComputedCollation = "query.unsupported",
    /// The function.
    ComputedPicture = "query.unsupported",
    /// The picture.
    NumberPicture = "FODF1310",
    /// The picture.
    NumberExponent = "query.unsupported",
    /// The picture.
    MomentPicture = "FOFD1340",
    /// The letter of the part, and the type that does not have it.
    MomentPart = "FOFD1350",
    /// What is written in brackets.
    PicturePart = "query.unsupported",

    // Constructors.
    /// `<!--`
    CommentConstructor = "query.unsupported",
    /// `<?`
    InstructionConstructor = "query.unsupported",
    /// A value that does not end.
    OpenValue = "XPST0003",
    /// An element that does not end.
    OpenElement = "XPST0003",
    /// A CDATA section that does not end.
    OpenSection = "XPST0003",
    /// `}` alone.
    LoneBrace = "XPST0003",
    /// `{}`
    EmptyBraces = "query.unsupported",
    /// A namespace declaration with an enclosed expression.
    ComputedNamespace = "XQST0022",
    /// A namespace declaration after an enclosed expression.
    LateNamespace = "query.unsupported",
    /// The attribute as written.
    AttributeTwice = "XQST0040",

    // Static rules.
    /// The value of an element that is built is read.
    BuiltValue = "query.unsupported",
    /// A path in a predicate of what may not be nodes; 1 if it is sometimes.
    PathFromItem = "XPTY0020",
    /// A path from what may not be nodes; 1 if it is sometimes.
    PathFromAtoms = "XPTY0019",
    /// An operand of a union or its like that may not be nodes; 1 if it is sometimes, and the operator.
    SetOfAtoms = "XPTY0004",
    /// 1 if it is nodes sometimes, and the function.
    NodeOfAtoms = "XPTY0004",
    /// Nothing depends on the message.
    Constant = "subscription.constant",
    /// A boolean as a result of its own.
    BooleanResult = "subscription.fragment",
    /// A result whose place is asked for, and which may be no node of the message.
    NoNodeResult = "subscription.nodes",
    /// Several values as a condition.
    SeveralValues = "FORG0006",
    /// What needs a node-set, the function if it is one, and the type that there is; in XPath.
    NoNodeSet(needed_by, function, found) = "XPTY0004",
}

impl Reason {
    /// Whether the text is in the language, and beyond what is read of it.
    pub fn is_unsupported(self) -> bool {
        matches!(
            self.code(),
            "query.unsupported"
                | "subscription.constant"
                | "subscription.fragment"
                | "subscription.nodes"
        )
    }
}
