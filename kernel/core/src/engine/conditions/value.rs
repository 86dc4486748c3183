//! Values and how they compare (XPath 1.0, 3.4 and 4.4).
//!
//! Works on bytes as they lie in the message; nothing is copied unless a number is spread over
//! several text nodes. It does not know elements: which values to compare is the caller's affair.

use crate::language::comparison::Comparison;

/// A place in the text of a plan, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What a value is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Compare {
    /// That it is there.
    Exists,
    /// `= 'literal'`: the same characters.
    Is(TextRange),
    /// `!= 'literal'`: not the same characters.
    IsNot(TextRange),
    /// `starts-with`: these characters and more.
    StartsWith(TextRange),
    /// `contains`: these characters somewhere.
    Contains(TextRange),
    /// Every other comparison: `number(value) op number`.
    Number(Comparison, f64),
}
