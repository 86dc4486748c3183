//! The functions of both languages: the core library (XPath 1.0, 4), and more for programs (XQuery 1.0 and XPath 2.0
//! Functions and Operators). Names, arguments, types.

use crate::language::types::Type;

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
    AdjustDateToTimezone,
    AdjustDateTimeToTimezone,
    AdjustTimeToTimezone,
    Avg,
    Boolean,
    Ceiling,
    CodepointEqual,
    CodepointsToString,
    Compare,
    Concat,
    Contains,
    ContainsToken,
    Count,
    CurrentDate,
    CurrentDateTime,
    CurrentTime,
    Data,
    DateTime,
    DayFromDate,
    DayFromDateTime,
    DaysFromDuration,
    DeepEqual,
    DistinctValues,
    Empty,
    EncodeForUri,
    EndsWith,
    Exists,
    False,
    Floor,
    FormatDate,
    FormatDateTime,
    FormatNumber,
    FormatTime,
    Head,
    HoursFromDateTime,
    HoursFromDuration,
    HoursFromTime,
    Id,
    ImplicitTimezone,
    IndexOf,
    InsertBefore,
    Lang,
    Last,
    LocalName,
    LowerCase,
    Matches,
    Max,
    Min,
    MinutesFromDateTime,
    MinutesFromDuration,
    MinutesFromTime,
    MonthFromDate,
    MonthFromDateTime,
    MonthsFromDuration,
    Name,
    NamespaceUri,
    NormalizeSpace,
    NormalizeUnicode,
    Not,
    Number,
    Position,
    Remove,
    Replace,
    Reverse,
    Round,
    RoundHalfToEven,
    SecondsFromDateTime,
    SecondsFromDuration,
    SecondsFromTime,
    StartsWith,
    String,
    StringJoin,
    StringLength,
    StringToCodepoints,
    Subsequence,
    Substring,
    SubstringAfter,
    SubstringBefore,
    Sum,
    Tail,
    TimezoneFromDate,
    TimezoneFromDateTime,
    TimezoneFromTime,
    Tokenize,
    Translate,
    True,
    UpperCase,
    YearFromDate,
    YearFromDateTime,
    YearsFromDuration,
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
        match self {
            Function::Round | Function::Sum => 1,
            Function::Contains
            | Function::StartsWith
            | Function::SubstringAfter
            | Function::SubstringBefore => 2,
            _ => self.signature().arguments_max,
        }
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
            Data | String
                | Number
                | StringLength
                | NormalizeSpace
                | LocalName
                | Name
                | NamespaceUri
        )
    }

    /// Whether XPath 1.0 has it.
    pub(crate) fn is_in_xpath(self) -> bool {
        use Function::*;
        matches!(
            self,
            Boolean
                | Ceiling
                | Concat
                | Contains
                | Count
                | False
                | Floor
                | Id
                | Lang
                | Last
                | LocalName
                | Name
                | NamespaceUri
                | NormalizeSpace
                | Not
                | Number
                | Position
                | Round
                | StartsWith
                | String
                | StringLength
                | Substring
                | SubstringAfter
                | SubstringBefore
                | Sum
                | Translate
                | True
        )
    }

    /// Whether it gives items of an argument as they are.
    pub(crate) fn gives_argument(self, at: usize) -> bool {
        use Function::*;
        match self {
            Head | Remove | Reverse | Subsequence | Tail => at == 0,
            InsertBefore => at != 1,
            _ => false,
        }
    }

    /// The type of dates or times that it writes, or puts into another time zone.
    pub(crate) fn moments(self) -> Option<Type> {
        use Function::*;
        match self {
            AdjustDateToTimezone | FormatDate => Some(Type::Date),
            AdjustDateTimeToTimezone | FormatDateTime => Some(Type::DateTime),
            AdjustTimeToTimezone | FormatTime => Some(Type::Time),
            _ => None,
        }
    }

    /// The part of a date, a time or a duration that it gives, and of which type that is.
    pub(crate) fn component(self) -> Option<(&'static str, Type)> {
        let (part, of) = self.name().split_once("-from-")?;
        let of = match (part, of) {
            ("years" | "months", "duration") => Type::YearMonthDuration,
            (_, "duration") => Type::DayTimeDuration,
            (_, of) => Type::of_name(of)?,
        };
        Some((part, of))
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
static SIGNATURES: [Signature; 91] = [
    signature("abs", Function::Abs, (1, 1), Kind::Number),
    signature("adjust-date-to-timezone", Function::AdjustDateToTimezone, (1, 2), Kind::Number),
    signature(
        "adjust-dateTime-to-timezone",
        Function::AdjustDateTimeToTimezone,
        (1, 2),
        Kind::Number,
    ),
    signature("adjust-time-to-timezone", Function::AdjustTimeToTimezone, (1, 2), Kind::Number),
    signature("avg", Function::Avg, (1, 1), Kind::Number),
    signature("boolean", Function::Boolean, (1, 1), Kind::Boolean),
    signature("ceiling", Function::Ceiling, (1, 1), Kind::Number),
    signature("codepoint-equal", Function::CodepointEqual, (2, 2), Kind::Boolean),
    signature("codepoints-to-string", Function::CodepointsToString, (1, 1), Kind::String),
    signature("compare", Function::Compare, (2, 3), Kind::Number),
    signature("concat", Function::Concat, (2, usize::MAX), Kind::String),
    signature("contains", Function::Contains, (2, 3), Kind::Boolean),
    signature("contains-token", Function::ContainsToken, (2, 3), Kind::Boolean),
    signature("count", Function::Count, (1, 1), Kind::Number),
    signature("current-date", Function::CurrentDate, (0, 0), Kind::Number),
    signature("current-dateTime", Function::CurrentDateTime, (0, 0), Kind::Number),
    signature("current-time", Function::CurrentTime, (0, 0), Kind::Number),
    signature("data", Function::Data, (0, 1), Kind::Number),
    signature("dateTime", Function::DateTime, (2, 2), Kind::Number),
    signature("day-from-date", Function::DayFromDate, (1, 1), Kind::Number),
    signature("day-from-dateTime", Function::DayFromDateTime, (1, 1), Kind::Number),
    signature("days-from-duration", Function::DaysFromDuration, (1, 1), Kind::Number),
    signature("deep-equal", Function::DeepEqual, (2, 3), Kind::Boolean),
    signature("distinct-values", Function::DistinctValues, (1, 2), Kind::Number),
    signature("empty", Function::Empty, (1, 1), Kind::Boolean),
    signature("encode-for-uri", Function::EncodeForUri, (1, 1), Kind::String),
    signature("ends-with", Function::EndsWith, (2, 3), Kind::Boolean),
    signature("exists", Function::Exists, (1, 1), Kind::Boolean),
    signature("false", Function::False, (0, 0), Kind::Boolean),
    signature("floor", Function::Floor, (1, 1), Kind::Number),
    signature("format-date", Function::FormatDate, (2, 2), Kind::String),
    signature("format-dateTime", Function::FormatDateTime, (2, 2), Kind::String),
    signature("format-number", Function::FormatNumber, (2, 2), Kind::String),
    signature("format-time", Function::FormatTime, (2, 2), Kind::String),
    signature("head", Function::Head, (1, 1), Kind::Number),
    signature("hours-from-dateTime", Function::HoursFromDateTime, (1, 1), Kind::Number),
    signature("hours-from-duration", Function::HoursFromDuration, (1, 1), Kind::Number),
    signature("hours-from-time", Function::HoursFromTime, (1, 1), Kind::Number),
    signature("id", Function::Id, (1, 1), Kind::Nodes),
    signature("implicit-timezone", Function::ImplicitTimezone, (0, 0), Kind::Number),
    signature("index-of", Function::IndexOf, (2, 3), Kind::Number),
    signature("insert-before", Function::InsertBefore, (3, 3), Kind::Number),
    signature("lang", Function::Lang, (1, 1), Kind::Boolean),
    signature("last", Function::Last, (0, 0), Kind::Number),
    signature("local-name", Function::LocalName, (0, 1), Kind::String),
    signature("lower-case", Function::LowerCase, (1, 1), Kind::String),
    signature("matches", Function::Matches, (2, 3), Kind::Boolean),
    signature("max", Function::Max, (1, 2), Kind::Number),
    signature("min", Function::Min, (1, 2), Kind::Number),
    signature("minutes-from-dateTime", Function::MinutesFromDateTime, (1, 1), Kind::Number),
    signature("minutes-from-duration", Function::MinutesFromDuration, (1, 1), Kind::Number),
    signature("minutes-from-time", Function::MinutesFromTime, (1, 1), Kind::Number),
    signature("month-from-date", Function::MonthFromDate, (1, 1), Kind::Number),
    signature("month-from-dateTime", Function::MonthFromDateTime, (1, 1), Kind::Number),
    signature("months-from-duration", Function::MonthsFromDuration, (1, 1), Kind::Number),
    signature("name", Function::Name, (0, 1), Kind::String),
    signature("namespace-uri", Function::NamespaceUri, (0, 1), Kind::String),
    signature("normalize-space", Function::NormalizeSpace, (0, 1), Kind::String),
    signature("normalize-unicode", Function::NormalizeUnicode, (1, 2), Kind::String),
    signature("not", Function::Not, (1, 1), Kind::Boolean),
    signature("number", Function::Number, (0, 1), Kind::Number),
    signature("position", Function::Position, (0, 0), Kind::Number),
    signature("remove", Function::Remove, (2, 2), Kind::Number),
    signature("replace", Function::Replace, (3, 4), Kind::String),
    signature("reverse", Function::Reverse, (1, 1), Kind::Number),
    signature("round", Function::Round, (1, 2), Kind::Number),
    signature("round-half-to-even", Function::RoundHalfToEven, (1, 2), Kind::Number),
    signature("seconds-from-dateTime", Function::SecondsFromDateTime, (1, 1), Kind::Number),
    signature("seconds-from-duration", Function::SecondsFromDuration, (1, 1), Kind::Number),
    signature("seconds-from-time", Function::SecondsFromTime, (1, 1), Kind::Number),
    signature("starts-with", Function::StartsWith, (2, 3), Kind::Boolean),
    signature("string", Function::String, (0, 1), Kind::String),
    signature("string-join", Function::StringJoin, (1, 2), Kind::String),
    signature("string-length", Function::StringLength, (0, 1), Kind::Number),
    signature("string-to-codepoints", Function::StringToCodepoints, (1, 1), Kind::Number),
    signature("subsequence", Function::Subsequence, (2, 3), Kind::Number),
    signature("substring", Function::Substring, (2, 3), Kind::String),
    signature("substring-after", Function::SubstringAfter, (2, 3), Kind::String),
    signature("substring-before", Function::SubstringBefore, (2, 3), Kind::String),
    signature("sum", Function::Sum, (1, 2), Kind::Number),
    signature("tail", Function::Tail, (1, 1), Kind::Number),
    signature("timezone-from-date", Function::TimezoneFromDate, (1, 1), Kind::Number),
    signature("timezone-from-dateTime", Function::TimezoneFromDateTime, (1, 1), Kind::Number),
    signature("timezone-from-time", Function::TimezoneFromTime, (1, 1), Kind::Number),
    signature("tokenize", Function::Tokenize, (1, 3), Kind::String),
    signature("translate", Function::Translate, (3, 3), Kind::String),
    signature("true", Function::True, (0, 0), Kind::Boolean),
    signature("upper-case", Function::UpperCase, (1, 1), Kind::String),
    signature("year-from-date", Function::YearFromDate, (1, 1), Kind::Number),
    signature("year-from-dateTime", Function::YearFromDateTime, (1, 1), Kind::Number),
    signature("years-from-duration", Function::YearsFromDuration, (1, 1), Kind::Number),
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
static REFUSED: [&str; 60] = [
    "QName",
    "analyze-string",
    "apply",
    "available-environment-variables",
    "base-uri",
    "collection",
    "default-collation",
    "doc-available",
    "document-uri",
    "element-with-id",
    "environment-variable",
    "error",
    "escape-html-uri",
    "exactly-one",
    "filter",
    "fold-left",
    "fold-right",
    "for-each",
    "for-each-pair",
    "format-integer",
    "function-arity",
    "function-lookup",
    "function-name",
    "generate-id",
    "has-children",
    "idref",
    "in-scope-prefixes",
    "innermost",
    "iri-to-uri",
    "json-doc",
    "json-to-xml",
    "local-name-from-QName",
    "namespace-uri-for-prefix",
    "namespace-uri-from-QName",
    "nilled",
    "node-name",
    "one-or-more",
    "outermost",
    "parse-ietf-date",
    "parse-json",
    "parse-xml",
    "parse-xml-fragment",
    "path",
    "prefix-from-QName",
    "put",
    "resolve-QName",
    "resolve-uri",
    "root",
    "serialize",
    "sort",
    "static-base-uri",
    "trace",
    "transform",
    "unordered",
    "unparsed-text",
    "unparsed-text-available",
    "unparsed-text-lines",
    "uri-collection",
    "xml-to-json",
    "zero-or-one",
];

/// The functions of the standard library that are refused by their names.
pub fn refused() -> &'static [&'static str] {
    &REFUSED
}

/// The functions that programs may call, by name: the fewest and the most arguments.
pub fn called() -> impl Iterator<Item = (&'static str, usize, usize)> {
    SIGNATURES.iter().map(|found| (found.name, found.arguments_min, found.arguments_max))
}

/// Whether a function of the standard library is refused by its name.
pub(crate) fn is_refused(name: &str) -> bool {
    REFUSED.binary_search(&name).is_ok()
}

/// Whether a function may be given so many arguments in XQuery, and not here.
pub(crate) fn is_refused_with(function: Function, given: usize) -> bool {
    use Function::*;
    matches!(
        (function, given),
        (Id | Lang, 2) | (FormatNumber, 3) | (FormatDate | FormatDateTime | FormatTime, 5)
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
