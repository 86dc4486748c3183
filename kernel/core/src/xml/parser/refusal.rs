//! Why a message was refused, and where.
//!
//! Inside the door a fault is a [`Code`] and a place in the decoded text; only when it leaves the
//! door do line, column and byte offset get counted, so that a good message never pays for them.

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $text:literal,)*) => {
        /// The constraint that a message broke. The text of a code is its key in the catalogue of
        /// errors (`pathcast.errors.CATALOGUE`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$meta])* #[doc = concat!("`", $text, "`")] $name,)*
        }

        impl Code {
            /// Every code the door can give.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// Key in the catalogue of errors.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    // The bytes.
    EncodingUnknown = "encoding.unknown",
    EncodingMismatch = "encoding.mismatch",
    EncodingInvalid = "encoding.invalid",
    // The document.
    End = "xml.end",
    Character = "xml.character",
    Name = "xml.name",
    Declaration = "xml.declaration",
    Outside = "xml.outside",
    // Tags and attributes.
    Tag = "xml.tag",
    TagMismatch = "xml.tag.mismatch",
    Attribute = "xml.attribute",
    AttributeDuplicate = "xml.attribute.duplicate",
    AttributeLess = "xml.attribute.less",
    // Other content.
    CdataEnd = "xml.text.cdata_end",
    Comment = "xml.comment",
    Instruction = "xml.instruction",
    InstructionTarget = "xml.instruction.target",
    Markup = "xml.markup",
    // References and entities.
    Reference = "xml.reference",
    ReferenceCharacter = "xml.reference.character",
    EntityUndeclared = "xml.entity.undeclared",
    EntityRecursive = "xml.entity.recursive",
    EntityUnparsed = "xml.entity.unparsed",
    EntityExternal = "xml.entity.external",
    EntityUnbalanced = "xml.entity.unbalanced",
    // Document type declaration.

    DoctypePlace = "xml.doctype.place",
    Dtd = "xml.dtd",
    DtdParameter = "xml.dtd.parameter",
    DtdConditional = "xml.dtd.conditional",
    // Namespaces.
    NsName = "ns.name",
    NsColon = "ns.colon",
    NsPrefixUndeclared = "ns.prefix.undeclared",
    NsPrefixReserved = "ns.prefix.reserved",
    NsPrefixEmpty = "ns.prefix.empty",
    NsUriReserved = "ns.uri.reserved",
    NsAttributeDuplicate = "ns.attribute.duplicate",
    // Limits and policy.
    LimitMessageBytes = "limit.message_bytes",
    LimitDepth = "limit.depth",
    LimitElements = "limit.elements",
    LimitAttributes = "limit.attributes",
    LimitAttributeValueBytes = "limit.attribute_value_bytes",
    LimitEntityExpansion = "limit.entity_expansion",
    LimitNames = "limit.names",
    LimitHeldBytes = "limit.held_bytes",
    DtdRefused = "dtd.refused",
}

/// A parameter of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// A text, cut to a length that fits a log line.
    Text(String),
    /// A number.
    Int(u64),
}

/// Why and where a message was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Constraint, limit or policy.
    pub code: Code,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Offset in bytes of the message as it arrived, from 0.
    pub offset: u64,
    /// What the sentence of the catalogue needs besides the place.
    pub params: Vec<(&'static str, Param)>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.code.as_str())?;
        for (name, value) in &self.params {
            match value {
                Param::Text(text) => write!(f, ", {name} {text:?}")?,
                Param::Int(number) => write!(f, ", {name} {number}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// A refusal before its line and column are counted.
#[derive(Debug)]
pub(super) struct Fault {
    pub code: Code,
    /// Byte in the decoded text of the document entity.
    pub at: usize,
    pub params: Vec<(&'static str, Param)>,
}

/// What every step of the door gives: boxed, so that the good case stays in registers.
pub(super) type Step<T> = Result<T, Box<Fault>>;

/// Characters of a name or value that a refusal shows.
const SHOWN_MAX: usize = 80;

impl Fault {
    #[cold]
    pub(crate) fn new(code: Code, at: usize) -> Box<Fault> {
        Box::new(Fault { code, at, params: Vec::new() })
    }

    /// The document ends inside a construct.
    #[cold]
    pub(crate) fn end(construct: &str, at: usize) -> Box<Fault> {
        Fault::new(Code::End, at).text("construct", construct)
    }

    /// A limit is exceeded.
    #[cold]
    pub(crate) fn limit(
        code: Code,
        at: usize,
        limit: &str,
        given: u64,
        maximum: u64,
    ) -> Box<Fault> {
        Fault::new(code, at).text("limit", limit).int("given", given).int("maximum", maximum)
    }

    #[cold]
    pub(crate) fn text(mut self: Box<Self>, name: &'static str, value: &str) -> Box<Self> {
        let shown: String = value.chars().take(SHOWN_MAX).collect();
        self.params.push((name, Param::Text(shown)));
        self
    }

    #[cold]
    pub(crate) fn int(mut self: Box<Self>, name: &'static str, value: u64) -> Box<Self> {
        self.params.push((name, Param::Int(value)));
        self
    }
}
