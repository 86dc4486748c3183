//! Operators on two numbers, in every language.

/// Operator on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `div`
    Divide,
    /// `idiv`, of XQuery
    DivideWhole,
    /// `mod`
    Modulo,
}

impl Arithmetic {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "div",
            Arithmetic::DivideWhole => "idiv",
            Arithmetic::Modulo => "mod",
        }
    }

    /// The result for doubles; of `idiv` the quotient, not yet cut.
    pub(crate) fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide | Arithmetic::DivideWhole => left / right,
            // Truncating, with the sign of the dividend (XPath 1.0, 3.5).
            Arithmetic::Modulo => left % right,
        }
    }
}
