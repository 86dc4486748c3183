//! How two values compare, in every language.

use std::cmp::Ordering;

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// All of them, by number.
    pub(crate) const ALL: [Comparison; 6] = {
        use Comparison::*;
        [Eq, Ne, Lt, Le, Gt, Ge]
    };

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Eq => "=",
            Comparison::Ne => "!=",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }

    /// The operator with its operands exchanged.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        }
    }

    /// The operator that holds for two numbers if and only if this one does not, unless one is NaN.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Comparison::Eq => Comparison::Ne,
            Comparison::Ne => Comparison::Eq,
            Comparison::Lt => Comparison::Ge,
            Comparison::Ge => Comparison::Lt,
            Comparison::Gt => Comparison::Le,
            Comparison::Le => Comparison::Gt,
        }
    }

    /// By IEEE 754: NaN satisfies `!=` and nothing else.
    #[inline]
    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Eq => left == right,
            Comparison::Ne => left != right,
            Comparison::Lt => left < right,
            Comparison::Le => left <= right,
            Comparison::Gt => left > right,
            Comparison::Ge => left >= right,
        }
    }

    /// Whether two strings compare so, by code point, which is the order of UTF-8.
    #[inline]
    pub(crate) fn holds_text(self, left: &[u8], right: &[u8]) -> bool {
        match self {
            Comparison::Eq => left == right,
            Comparison::Ne => left != right,
            _ => self.holds_order(left.cmp(right)),
        }
    }

    /// Whether two values that are ordered in this way compare so.
    pub(crate) fn holds_order(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Comparison;

    #[test]
    fn nan_is_unequal_and_nothing_else() {
        for comparison in Comparison::ALL {
            let is_unequal = comparison == Comparison::Ne;
            assert_eq!(comparison.holds(f64::NAN, 1.0), is_unequal);
            assert_eq!(comparison.holds(1.0, f64::NAN), is_unequal);
            assert_eq!(comparison.holds(f64::NAN, f64::NAN), is_unequal);
        }
    }

    #[test]
    fn strings_compare_as_their_order_says() {
        use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
        for (left, right, expected) in [
            ("", "a", [Ne, Lt, Le]),
            ("a", "a", [Eq, Le, Ge]),
            ("b", "ab", [Ne, Gt, Ge]),
            ("\u{e9}", "z", [Ne, Gt, Ge]),
        ] {
            for comparison in Comparison::ALL {
                let holds = comparison.holds_text(left.as_bytes(), right.as_bytes());
                assert_eq!(
                    holds,
                    expected.contains(&comparison),
                    "{left:?} {comparison:?} {right:?}"
                );
            }
        }
    }
}
