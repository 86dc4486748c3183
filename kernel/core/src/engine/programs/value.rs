//! Items of a sequence, and the texts they are made of.
//!
//! An item is a few words that are copied: nodes are their place in the message, texts a place in
//! the message, in the program or in what the run has written down, elements that were built a run
//! of the events that build them again.

use crate::engine::evaluate::document::Node;
use crate::language::moments::Moment;
use crate::language::xpath::TextRange;
use crate::language::xquery::syntax::Number;
use crate::xml::tree::Span;

/// A text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    start: u32,
    len: u32,
    pub(crate) place: Place,
}

/// Where the bytes of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The message, or the buffer beside it.
    Message,
    Beside,
    Program,
    /// What the run has computed.
    Kept,
    /// The space between atomic values.
    Space,
}

impl Text {
    pub(crate) const EMPTY: Text = Text { start: 0, len: 0, place: Place::Program };
    pub(crate) const SPACE: Text = Text { start: 0, len: 1, place: Place::Space };

    pub(crate) fn of_span(span: Span) -> Text {
        let is_beside = span.len_and_place & Span::IN_SCRATCH != 0;
        let place = if is_beside { Place::Beside } else { Place::Message };
        Text { start: span.start, len: span.len() as u32, place }
    }

    pub(crate) fn of_program(range: TextRange) -> Text {
        Text { start: range.start, len: range.end - range.start, place: Place::Program }
    }

    pub(crate) fn kept(start: usize, end: usize) -> Text {
        Text { start: start as u32, len: (end - start) as u32, place: Place::Kept }
    }

    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len == 0
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// A part of it.
    pub(crate) fn part(self, start: usize, end: usize) -> Text {
        Text { start: self.start + start as u32, len: (end - start) as u32, place: self.place }
    }
}

/// An item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item {
    Node(Node),
    Number(Number),
    Boolean(bool),
    /// A date, a time or a duration.
    Moment(Moment),
    String(Text),
    /// The value of a node: `xs:untypedAtomic`.
    Untyped(Text),
    /// An element that was built: a run of events.
    Built {
        start: u32,
        end: u32,
    },
}

impl Item {
    pub(crate) fn integer(value: usize) -> Item {
        Item::Number(Number::Integer(value as i64))
    }

    pub(crate) fn double(value: f64) -> Item {
        Item::Number(Number::Double(value))
    }
}

/// What a variable is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Item(Item),
    /// A run of the stack.
    Run {
        start: u32,
        end: u32,
    },
}

/// What builds an element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// So many events that come next build an element of its own, which is no content of the one around it.
    Apart(u32),
    /// The computed name of the element or attribute that comes next.
    Name(Text),
    /// A constructor, by number.
    Start(u32),
    /// An attribute of the constructor, by number, and its value.
    Attribute(u32, Text),
    /// An attribute of the message.
    CopiedAttribute(u32),
    Text(Text),
    Node(Node),
    End,
}
