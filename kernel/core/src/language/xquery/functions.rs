//! The functions of a program (XQuery 1.0 and XPath 2.0 Functions and Operators): names, arguments.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says, see `SIGNATURES`")]
pub enum Function {
    Abs,
    Avg,
    Boolean,
    Ceiling,
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
    Max,
    Min,
    Name,
    NamespaceUri,
    NormalizeSpace,
    Not,
    Number,
    Position,
    Round,
    StartsWith,
    String,
    StringJoin,
    StringLength,
    Substring,
    SubstringAfter,
    SubstringBefore,
    Sum,
    Translate,
    True,
    UpperCase,
}

/// Name, function, least and greatest number of arguments.
pub(super) type Signature = (&'static str, Function, usize, usize);

/// All of them, by name.
static SIGNATURES: [Signature; 39] = [
    ("abs", Function::Abs, 1, 1),
    ("avg", Function::Avg, 1, 1),
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, usize::MAX),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("data", Function::Data, 1, 1),
    ("distinct-values", Function::DistinctValues, 1, 1),
    ("empty", Function::Empty, 1, 1),
    ("ends-with", Function::EndsWith, 2, 2),
    ("exists", Function::Exists, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("id", Function::Id, 1, 1),
    ("lang", Function::Lang, 1, 1),
    ("last", Function::Last, 0, 0),
    ("local-name", Function::LocalName, 0, 1),
    ("lower-case", Function::LowerCase, 1, 1),
    ("max", Function::Max, 1, 1),
    ("min", Function::Min, 1, 1),
    ("name", Function::Name, 0, 1),
    ("namespace-uri", Function::NamespaceUri, 0, 1),
    ("normalize-space", Function::NormalizeSpace, 0, 1),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("starts-with", Function::StartsWith, 2, 2),
    ("string", Function::String, 0, 1),
    ("string-join", Function::StringJoin, 2, 2),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("substring-after", Function::SubstringAfter, 2, 2),
    ("substring-before", Function::SubstringBefore, 2, 2),
    ("sum", Function::Sum, 1, 1),
    ("translate", Function::Translate, 3, 3),
    ("true", Function::True, 0, 0),
    ("upper-case", Function::UpperCase, 1, 1),
];

/// The function of a name.
pub(super) fn find(name: &str) -> Option<&'static Signature> {
    let at = SIGNATURES.binary_search_by(|signature| signature.0.cmp(name)).ok()?;
    Some(&SIGNATURES[at])
}

impl Function {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_name() {
        for (at, &(name, function, ..)) in SIGNATURES.iter().enumerate() {
            assert_eq!(function as usize, at, "{name}");
            assert!(find(name).is_some_and(|found| found.1 == function));
        }
    }
}
