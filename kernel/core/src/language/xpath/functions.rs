//! The core function library (XPath 1.0, 4): names, arguments, types.

use super::ast::{Kind, depends};

/// A core function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Id,
    Lang,
    Last,
    LocalName,
    Name,
    NamespaceUri,
    NormalizeSpace,
    Not,
    Number,
    Position,
    Round,
    StartsWith,
    String,
    StringLength,
    Substring,
    SubstringAfter,
    SubstringBefore,
    Sum,
    Translate,
    True,
}

/// What a function takes and gives.
pub(crate) struct Signature {
    pub(crate) function: Function,
    pub(crate) name: &'static str,
    pub(crate) arguments_min: usize,
    pub(crate) arguments_max: usize,
    pub(crate) kind: Kind,
    /// The arguments must be node-sets.
    pub(crate) takes_nodes: bool,
    /// What of the context it reads itself, given its arguments.
    pub(crate) reads: u8,
    /// Without an argument it reads the context node.
    pub(crate) has_context_default: bool,
}

const fn signature(
    function: Function,
    name: &'static str,
    (arguments_min, arguments_max): (usize, usize),
    kind: Kind,
) -> Signature {
    Signature {
        function,
        name,
        arguments_min,
        arguments_max,
        kind,
        takes_nodes: matches!(
            function,
            Function::Count
                | Function::Sum
                | Function::LocalName
                | Function::Name
                | Function::NamespaceUri
        ),
        reads: match function {
            Function::Position => depends::POSITION,
            Function::Last => depends::SIZE,
            Function::Lang => depends::NODE,
            _ => 0,
        },
        has_context_default: matches!(
            function,
            Function::String
                | Function::Number
                | Function::StringLength
                | Function::NormalizeSpace
                | Function::LocalName
                | Function::Name
                | Function::NamespaceUri
        ),
    }
}

/// All of them, by name.
static SIGNATURES: [Signature; 27] = [
    signature(Function::Boolean, "boolean", (1, 1), Kind::Boolean),
    signature(Function::Ceiling, "ceiling", (1, 1), Kind::Number),
    signature(Function::Concat, "concat", (2, usize::MAX), Kind::String),
    signature(Function::Contains, "contains", (2, 2), Kind::Boolean),
    signature(Function::Count, "count", (1, 1), Kind::Number),
    signature(Function::False, "false", (0, 0), Kind::Boolean),
    signature(Function::Floor, "floor", (1, 1), Kind::Number),
    signature(Function::Id, "id", (1, 1), Kind::Nodes),
    signature(Function::Lang, "lang", (1, 1), Kind::Boolean),
    signature(Function::Last, "last", (0, 0), Kind::Number),
    signature(Function::LocalName, "local-name", (0, 1), Kind::String),
    signature(Function::Name, "name", (0, 1), Kind::String),
    signature(Function::NamespaceUri, "namespace-uri", (0, 1), Kind::String),
    signature(Function::NormalizeSpace, "normalize-space", (0, 1), Kind::String),
    signature(Function::Not, "not", (1, 1), Kind::Boolean),
    signature(Function::Number, "number", (0, 1), Kind::Number),
    signature(Function::Position, "position", (0, 0), Kind::Number),
    signature(Function::Round, "round", (1, 1), Kind::Number),
    signature(Function::StartsWith, "starts-with", (2, 2), Kind::Boolean),
    signature(Function::String, "string", (0, 1), Kind::String),
    signature(Function::StringLength, "string-length", (0, 1), Kind::Number),
    signature(Function::Substring, "substring", (2, 3), Kind::String),
    signature(Function::SubstringAfter, "substring-after", (2, 2), Kind::String),
    signature(Function::SubstringBefore, "substring-before", (2, 2), Kind::String),
    signature(Function::Sum, "sum", (1, 1), Kind::Number),
    signature(Function::Translate, "translate", (3, 3), Kind::String),
    signature(Function::True, "true", (0, 0), Kind::Boolean),
];

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Signature> {
    let at = SIGNATURES.binary_search_by(|signature| signature.name.cmp(name)).ok()?;
    Some(&SIGNATURES[at])
}

impl Function {
    /// What it takes and gives.
    pub(crate) fn signature(self) -> &'static Signature {
        &SIGNATURES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_name() {
        for (at, signature) in SIGNATURES.iter().enumerate() {
            assert_eq!(signature.function as usize, at, "{}", signature.name);
            assert!(find(signature.name).is_some_and(|found| found.function == signature.function));
        }
    }
}
