//! The functions of both languages: the core library (XPath 1.0, 4), and more for programs (XQuery 1.0 and XPath 2.0
//! Functions and Operators). Names, arguments, types.

/// Type of an XPath; known before evaluation, as there are no variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A boolean.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// A node-set.
    Nodes,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says, see `SIGNATURES`")]
pub enum Function {
    Abs,
    Avg,
    Boolean,
    Ceiling,
    Compare,
    Concat,
    Contains,
    Count,
    Data,
    DistinctValues,
    Empty,
    EndsWith,
    Exists,
    False,
    Floor,
    Id,
    Lang,
    Last,
    LocalName,
    LowerCase,
    Matches,
    Max,
    Min,
    Name,
    NamespaceUri,
    NormalizeSpace,
    Not,
    Number,
    Position,
    Replace,
    Round,
    StartsWith,
    String,
    StringJoin,
    StringLength,
    Substring,
    SubstringAfter,
    SubstringBefore,
    Sum,
    Tokenize,
    Translate,
    True,
    UpperCase,
}

impl Function {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.signature().name
    }

    /// What it takes and gives.
    pub(crate) fn signature(self) -> &'static Signature {
        &SIGNATURES[self as usize]
    }

    /// The most arguments that XPath 1.0 gives it, which has no collations.
    pub(crate) fn arguments_max_in_xpath(self) -> usize {
        let is_collated = matches!(self, Function::Contains | Function::StartsWith);
        if is_collated { 2 } else { self.signature().arguments_max }
    }

    /// Whether its arguments must be node-sets in XPath 1.0.
    pub(crate) fn takes_nodes(self) -> bool {
        use Function::*;
        matches!(self, Count | Sum | LocalName | Name | NamespaceUri)
    }

    /// Whether it is given the context item where it is given nothing.
    pub(crate) fn has_context_default(self) -> bool {
        use Function::*;
        matches!(
            self,
            String | Number | StringLength | NormalizeSpace | LocalName | Name | NamespaceUri
        )
    }

    /// Whether XPath 1.0 has it.
    pub(crate) fn is_in_xpath(self) -> bool {
        use Function::*;
        !matches!(
            self,
            Abs | Avg
                | Compare
                | Data
                | DistinctValues
                | Empty
                | EndsWith
                | Exists
                | LowerCase
                | Matches
                | Max
                | Min
                | Replace
                | StringJoin
                | Tokenize
                | UpperCase
        )
    }
}

/// What a function takes and gives.
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) arguments_min: usize,
    pub(crate) arguments_max: usize,
    /// The type of what it gives; for [`Kind::Number`], XQuery may give other atomic values too.
    pub(crate) kind: Kind,
}

const fn signature(
    name: &'static str,
    function: Function,
    (arguments_min, arguments_max): (usize, usize),
    kind: Kind,
) -> Signature {
    Signature { name, function, arguments_min, arguments_max, kind }
}

/// All of them, by name.
static SIGNATURES: [Signature; 43] = [
    signature("abs", Function::Abs, (1, 1), Kind::Number),
    signature("avg", Function::Avg, (1, 1), Kind::Number),
    signature("boolean", Function::Boolean, (1, 1), Kind::Boolean),
    signature("ceiling", Function::Ceiling, (1, 1), Kind::Number),
    signature("compare", Function::Compare, (2, 3), Kind::Number),
    signature("concat", Function::Concat, (2, usize::MAX), Kind::String),
    signature("contains", Function::Contains, (2, 3), Kind::Boolean),
    signature("count", Function::Count, (1, 1), Kind::Number),
    signature("data", Function::Data, (1, 1), Kind::Number),
    signature("distinct-values", Function::DistinctValues, (1, 1), Kind::Number),
    signature("empty", Function::Empty, (1, 1), Kind::Boolean),
    signature("ends-with", Function::EndsWith, (2, 3), Kind::Boolean),
    signature("exists", Function::Exists, (1, 1), Kind::Boolean),
    signature("false", Function::False, (0, 0), Kind::Boolean),
    signature("floor", Function::Floor, (1, 1), Kind::Number),
    signature("id", Function::Id, (1, 1), Kind::Nodes),
    signature("lang", Function::Lang, (1, 1), Kind::Boolean),
    signature("last", Function::Last, (0, 0), Kind::Number),
    signature("local-name", Function::LocalName, (0, 1), Kind::String),
    signature("lower-case", Function::LowerCase, (1, 1), Kind::String),
    signature("matches", Function::Matches, (2, 3), Kind::Boolean),
    signature("max", Function::Max, (1, 1), Kind::Number),
    signature("min", Function::Min, (1, 1), Kind::Number),
    signature("name", Function::Name, (0, 1), Kind::String),
    signature("namespace-uri", Function::NamespaceUri, (0, 1), Kind::String),
    signature("normalize-space", Function::NormalizeSpace, (0, 1), Kind::String),
    signature("not", Function::Not, (1, 1), Kind::Boolean),
    signature("number", Function::Number, (0, 1), Kind::Number),
    signature("position", Function::Position, (0, 0), Kind::Number),
    signature("replace", Function::Replace, (3, 4), Kind::String),
    signature("round", Function::Round, (1, 1), Kind::Number),
    signature("starts-with", Function::StartsWith, (2, 3), Kind::Boolean),
    signature("string", Function::String, (0, 1), Kind::String),
    signature("string-join", Function::StringJoin, (1, 2), Kind::String),
    signature("string-length", Function::StringLength, (0, 1), Kind::Number),
    signature("substring", Function::Substring, (2, 3), Kind::String),
    signature("substring-after", Function::SubstringAfter, (2, 2), Kind::String),
    signature("substring-before", Function::SubstringBefore, (2, 2), Kind::String),
    signature("sum", Function::Sum, (1, 1), Kind::Number),
    signature("tokenize", Function::Tokenize, (1, 3), Kind::String),
    signature("translate", Function::Translate, (3, 3), Kind::String),
    signature("true", Function::True, (0, 0), Kind::Boolean),
    signature("upper-case", Function::UpperCase, (1, 1), Kind::String),
];

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Signature> {
    let at = SIGNATURES.binary_search_by(|signature| signature.name.cmp(name)).ok()?;
    Some(&SIGNATURES[at])
}

/// The function of a name in XPath 1.0.
pub(crate) fn find_in_xpath(name: &str) -> Option<&'static Signature> {
    find(name).filter(|found| found.function.is_in_xpath())
}

/// Functions of the standard library that are refused by name; by name, bytes compared.
static REFUSED: [&str; 108] = [
    "QName",
    "adjust-date-to-timezone",
    "adjust-dateTime-to-timezone",
    "adjust-time-to-timezone",
    "analyze-string",
    "apply",
    "available-environment-variables",
    "base-uri",
    "codepoint-equal",
    "codepoints-to-string",
    "collection",
    "contains-token",
    "current-date",
    "current-dateTime",
    "current-time",
    "dateTime",
    "day-from-date",
    "day-from-dateTime",
    "days-from-duration",
    "deep-equal",
    "default-collation",
    "doc-available",
    "document-uri",
    "element-with-id",
    "encode-for-uri",
    "environment-variable",
    "error",
    "escape-html-uri",
    "exactly-one",
    "filter",
    "fold-left",
    "fold-right",
    "for-each",
    "for-each-pair",
    "format-date",
    "format-dateTime",
    "format-integer",
    "format-number",
    "format-time",
    "function-arity",
    "function-lookup",
    "function-name",
    "generate-id",
    "has-children",
    "head",
    "hours-from-dateTime",
    "hours-from-duration",
    "hours-from-time",
    "idref",
    "implicit-timezone",
    "in-scope-prefixes",
    "index-of",
    "innermost",
    "insert-before",
    "iri-to-uri",
    "json-doc",
    "json-to-xml",
    "local-name-from-QName",
    "minutes-from-dateTime",
    "minutes-from-duration",
    "minutes-from-time",
    "month-from-date",
    "month-from-dateTime",
    "months-from-duration",
    "namespace-uri-for-prefix",
    "namespace-uri-from-QName",
    "nilled",
    "node-name",
    "normalize-unicode",
    "one-or-more",
    "outermost",
    "parse-ietf-date",
    "parse-json",
    "parse-xml",
    "parse-xml-fragment",
    "path",
    "prefix-from-QName",
    "put",
    "remove",
    "resolve-QName",
    "resolve-uri",
    "reverse",
    "root",
    "round-half-to-even",
    "seconds-from-dateTime",
    "seconds-from-duration",
    "seconds-from-time",
    "serialize",
    "sort",
    "static-base-uri",
    "string-to-codepoints",
    "subsequence",
    "tail",
    "timezone-from-date",
    "timezone-from-dateTime",
    "timezone-from-time",
    "trace",
    "transform",
    "unordered",
    "unparsed-text",
    "unparsed-text-available",
    "unparsed-text-lines",
    "uri-collection",
    "xml-to-json",
    "year-from-date",
    "year-from-dateTime",
    "years-from-duration",
    "zero-or-one",
];

/// Whether a function of the standard library is refused by its name.
pub(crate) fn is_refused(name: &str) -> bool {
    REFUSED.binary_search(&name).is_ok()
}

/// Whether a function may be given so many arguments in XQuery, and not here.
pub(crate) fn is_refused_with(function: Function, given: usize) -> bool {
    use Function::*;
    matches!(
        (function, given),
        (SubstringBefore | SubstringAfter, 3)
            | (DistinctValues | Min | Max | Sum | Id | Lang | Round, 2)
            | (Data, 0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_functions_are_sorted_and_no_others() {
        assert!(REFUSED.is_sorted());
        assert!(is_refused("QName") && is_refused("zero-or-one"));
        assert!(REFUSED.iter().all(|name| find(name).is_none()));
    }

    #[test]
    fn every_function_is_found_by_its_name() {
        for (at, signature) in SIGNATURES.iter().enumerate() {
            assert_eq!(signature.function as usize, at, "{}", signature.name);
            assert!(find(signature.name).is_some_and(|found| found.function == signature.function));
        }
    }
}
