//! The functions of a program (XQuery 1.0 and XPath 2.0 Functions and Operators): names, arguments.

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
        SIGNATURES[self as usize].0
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

/// Name, function, least and greatest number of arguments.
pub(super) type Signature = (&'static str, Function, usize, usize);

/// All of them, by name.
static SIGNATURES: [Signature; 43] = [
    ("abs", Function::Abs, 1, 1),
    ("avg", Function::Avg, 1, 1),
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("compare", Function::Compare, 2, 3),
    ("concat", Function::Concat, 2, usize::MAX),
    ("contains", Function::Contains, 2, 3),
    ("count", Function::Count, 1, 1),
    ("data", Function::Data, 1, 1),
    ("distinct-values", Function::DistinctValues, 1, 1),
    ("empty", Function::Empty, 1, 1),
    ("ends-with", Function::EndsWith, 2, 3),
    ("exists", Function::Exists, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("id", Function::Id, 1, 1),
    ("lang", Function::Lang, 1, 1),
    ("last", Function::Last, 0, 0),
    ("local-name", Function::LocalName, 0, 1),
    ("lower-case", Function::LowerCase, 1, 1),
    ("matches", Function::Matches, 2, 3),
    ("max", Function::Max, 1, 1),
    ("min", Function::Min, 1, 1),
    ("name", Function::Name, 0, 1),
    ("namespace-uri", Function::NamespaceUri, 0, 1),
    ("normalize-space", Function::NormalizeSpace, 0, 1),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("replace", Function::Replace, 3, 4),
    ("round", Function::Round, 1, 1),
    ("starts-with", Function::StartsWith, 2, 3),
    ("string", Function::String, 0, 1),
    ("string-join", Function::StringJoin, 1, 2),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("substring-after", Function::SubstringAfter, 2, 2),
    ("substring-before", Function::SubstringBefore, 2, 2),
    ("sum", Function::Sum, 1, 1),
    ("tokenize", Function::Tokenize, 1, 3),
    ("translate", Function::Translate, 3, 3),
    ("true", Function::True, 0, 0),
    ("upper-case", Function::UpperCase, 1, 1),
];

/// The function of a name.
pub(super) fn find(name: &str) -> Option<&'static Signature> {
    let at = SIGNATURES.binary_search_by(|signature| signature.0.cmp(name)).ok()?;
    Some(&SIGNATURES[at])
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
pub(super) fn is_refused(name: &str) -> bool {
    REFUSED.binary_search(&name).is_ok()
}

/// Whether a function may be given so many arguments in XQuery, and not here.
pub(super) fn is_refused_with(function: Function, given: usize) -> bool {
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
        for (at, &(name, function, ..)) in SIGNATURES.iter().enumerate() {
            assert_eq!(function as usize, at, "{name}");
            assert!(find(name).is_some_and(|found| found.1 == function));
        }
    }
}
