//! Files of one root element with millions of records, cut into a message a record.
//!
//! ```text
//! read_head        what stands before the root element
//! Survey           a range, read from every state it may begin in     \  any ranges, side by side
//! Place::after     what the next range begins inside of               |
//! Cutter           the records of a range, each with its ancestors    /  any ranges, side by side
//! ```
//!
//! [`lexer`] finds where markup begins and ends, and stops and goes on at any byte. A [`Survey`] makes of
//! a range a function of what it begins inside of; these functions compose from left to right, so that
//! [`Place`]s are known, and nothing is guessed. A [`Cutter`] makes records into messages: the start tags
//! of the ancestors as they are written ([`Context`]), the bytes of the record, the end tags. So
//! attributes of ancestors, namespaces, `xml:lang`, defaults and entities of a document type declaration
//! mean what they mean in the file, and a query from the root element on finds what it finds there.
//!
//! Whether a record is well-formed is left to whoever takes it in: the door. What lies between records
//! is checked here, by the door as well ([`gaps`]).
//!
//! It opens no file: blocks come from outside, so that files, archives and streams are all the same.

#![forbid(unsafe_code)]

mod context;
mod cutter;
mod effect;
mod gaps;
mod hold;
mod judge;
mod lexer;
mod place;
mod rows;
mod survey;

pub use context::Context;
pub use cutter::{Cut, Cutter};
pub use effect::Effect;
pub use judge::NameTest;
pub use lexer::{LexicalFault, State};
pub use place::Place;
pub use rows::{Fault, Rows};
pub use survey::{Outcome, Survey};

/// Where a start tag ends: the byte after it, given the file from its `<` on; nothing when more is
/// needed, or there is none.
pub fn tag_end(bytes: &[u8]) -> Option<usize> {
    struct First;
    impl lexer::Sink for First {
        fn open(&mut self, _at: u64) -> bool {
            false
        }
        fn opened(&mut self, _end: u64) -> bool {
            true
        }
        fn empty(&mut self, _end: u64) -> bool {
            true
        }
        fn close(&mut self, _end: u64) -> bool {
            true
        }
    }
    let mut state = State::Text;
    let read = lexer::advance(&mut state, bytes, 0, &mut First).ok()?;
    (bytes[..read].ends_with(b">") && state == State::Text).then_some(read)
}
