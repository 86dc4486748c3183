//! What can be said about an expression before any message: which kinds of items it gives, what of
//! its surroundings it reads, how deep it is.

use crate::language::functions::Function;
use crate::language::xpath::Kind;

/// Kinds of items, as bits; an upper bound.
pub(super) mod items {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const NODES: u8 = 1;
    pub(crate) const ATOMS: u8 = 2;
    /// Elements that constructors build.
    pub(crate) const BUILT: u8 = 4;
}

/// What a value depends on besides the message, as bits.
pub(super) mod reads {
    pub(crate) const CONTEXT: u8 = 1;
    /// Position or size of the innermost predicate.
    pub(crate) const PLACE: u8 = 2;
    pub(crate) const VARIABLES: u8 = 4;
}

/// What is known about an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(crate) items: u8,
    pub(crate) reads: u8,
    /// It depends on the message, in itself or by a variable; what does not is constant.
    pub(crate) is_of_message: bool,
    /// It can be one number, which as predicate is a position.
    pub(crate) may_be_number: bool,
    /// It can be attributes of the message, which cannot go anywhere in a constructor.
    pub(crate) may_be_attribute: bool,
    /// Depth of the syntax tree.
    pub(crate) depth: u16,
    /// It is `for` with at least one round, or contains one: worth computing once.
    pub(crate) is_costly: bool,
}

impl Facts {
    /// Those of something that gives items of some kinds.
    pub(crate) fn of(items: u8) -> Facts {
        Facts { items, depth: 1, ..Facts::default() }
    }

    /// Those of an expression around others.
    pub(crate) fn around(self, inner: Facts) -> Facts {
        Facts {
            reads: self.reads | inner.reads,
            is_of_message: self.is_of_message | inner.is_of_message,
            depth: self.depth.max(inner.depth + 1),
            is_costly: self.is_costly | inner.is_costly,
            ..self
        }
    }

    /// Those of an expression that gives what others give.
    pub(crate) fn giving(self, inner: Facts) -> Facts {
        let around = self.around(inner);
        Facts {
            items: self.items | inner.items,
            may_be_number: self.may_be_number | inner.may_be_number,
            may_be_attribute: self.may_be_attribute | inner.may_be_attribute,
            ..around
        }
    }

    /// Those of something that comes from the message.
    pub(crate) fn of_message(self) -> Facts {
        Facts { is_of_message: true, ..self }
    }

    /// As the value of a variable: what depends on the message does so where the variable is used.
    pub(crate) fn as_let(self) -> Facts {
        Facts { is_of_message: false, ..self }
    }

    /// As a predicate of something: its context is that.
    pub(crate) fn as_predicate(self) -> Facts {
        Facts { reads: self.reads & reads::VARIABLES, ..self }
    }

    pub(crate) fn is_positional(&self) -> bool {
        self.may_be_number || self.reads & reads::PLACE != 0
    }
}

/// Kinds of items that a function gives, and whether that may be a number.
pub(super) fn result_of(function: Function) -> (u8, bool) {
    match function.signature().kind {
        _ if function.gives_argument(0) => (items::NONE, false),
        Kind::Nodes => (items::NODES, false),
        kind => (items::ATOMS, kind == Kind::Number),
    }
}
