//! Element streams: a message in pieces that say what they are, for links between brokers.
//!
//! A stream stands for the text of one message, byte for byte: whoever reads it has the message as it was
//! published, its names, prefixes, declarations, comments, references, quotes and white space, and so
//! its id and everything that is copied from it. What an element stream saves is size (a name is
//! said once, or is a number of a [`Dictionary`] that both sides know) and the search for where things end.
//! The columns of the tree are filled from it directly; its text is put together on the way, since that is
//! what values point into and what subscribers are given.
//!
//! It begins with a byte that no XML document begins with, so that a door that takes streams
//! ([`super::Door::take_streams`]) sees by it what has come. Layout: docs/wire.md.
//!
//! ```
//! use pathcast_core::xml::parser::{Door, Limits, wire};
//! use std::sync::Arc;
//!
//! let message = b"<order no='7'><item>tea</item><item>jam</item></order>";
//! let mut stream = Vec::new();
//! assert!(wire::Encoder::default().encode(message, None, &mut stream));
//! assert!(stream.len() < message.len());
//! let mut door = Door::new(Limits::default());
//! assert_eq!(door.parse(&stream, None).unwrap_err().code.as_str(), "xml.character");
//! door.take_streams(Some(Arc::default()));
//! let parsed = door.parse(&stream, None)?;
//! assert_eq!(parsed.original, message);
//! assert_eq!(parsed.names.local(parsed.message.tree.name[1]), "item");
//! # Ok::<(), pathcast_core::xml::parser::Refusal>(())
//! ```
//!
//! What it does not do: compress, check what only a whole message shows (the door does), carry a
//! message that is not in UTF-8 (it travels as text).
//!
//! Source: ONYX (VLDB 2004), 4.3.2, "Efficient XML Transmission". Differs: ADR 0012.

mod build;
mod dictionary;
mod encode;
mod item;
mod rebuild;

pub use dictionary::{Dictionaries, Dictionary};
pub use encode::Encoder;
pub(super) use rebuild::{Rebuilt, locate, rebuild};

use super::limits::Limits;
use super::refusal::{Fault, Refusal};

/// First byte of a stream whose names are all in it.
pub(crate) const IN_BAND: u8 = 1;
/// First byte of a stream whose names may be numbers of a dictionary.
pub const WITH_DICTIONARY: u8 = 2;
/// Bytes of the version of a dictionary.
pub const VERSION_BYTES: usize = 8;

/// Whether bytes begin as a stream does, and no XML document.
#[inline]
pub fn is_stream(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&(IN_BAND | WITH_DICTIONARY)))
}

/// The text that a stream stands for, not looked into but for being UTF-8.
///
/// Errors: it is no stream, or one that is longer than the limits allow; offsets are the stream's.
///
/// Cost: linear in the text.
pub fn text_of(bytes: &[u8], known: &Dictionaries, limits: &Limits) -> Result<String, Refusal> {
    let mut rebuilt = Rebuilt::default();
    rebuild(bytes, known, limits.text_bytes_max(), &mut rebuilt)
        .map_err(|fault| refusal(*fault))?;
    rebuilt.take_text().map_err(|mut fault| {
        fault.at = locate(bytes, known, fault.at);
        refusal(*fault)
    })
}

/// A fault whose place is a byte of the stream.
#[cold]
pub(super) fn refusal(fault: Fault) -> Refusal {
    let offset = fault.at as u64;
    Refusal { code: fault.code, line: 1, column: offset + 1, offset, params: fault.params }
}
