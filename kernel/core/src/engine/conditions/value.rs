//! Values and how they compare (XPath 1.0, 3.4 and 4.4).
//!
//! Works on bytes as they lie in the message; nothing is copied unless a number is spread over
//! several text nodes. It does not know elements: which values to compare is the caller's affair.

use crate::language::query::ast::Operator;

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
    Number(Operator, f64),
}

/// `left op right` by IEEE 754: NaN satisfies `!=` and nothing else.
#[inline]
pub(crate) fn compare_numbers(operator: Operator, left: f64, right: f64) -> bool {
    match operator {
        Operator::Eq => left == right,
        Operator::Ne => left != right,
        Operator::Lt => left < right,
        Operator::Le => left <= right,
        Operator::Gt => left > right,
        Operator::Ge => left >= right,
        Operator::StartsWith | Operator::Contains => {
            unreachable!("these compare strings, and no such plan is compiled")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_unequal_and_nothing_else() {
        use Operator::*;
        for operator in [Eq, Lt, Le, Gt, Ge] {
            assert!(!compare_numbers(operator, f64::NAN, 1.0));
            assert!(!compare_numbers(operator, 1.0, f64::NAN));
        }
        assert!(compare_numbers(Ne, f64::NAN, 1.0));
        assert!(compare_numbers(Ne, f64::NAN, f64::NAN));
    }
}
