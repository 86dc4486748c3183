//! Nodes of a message as XML text: what a subscriber is given.
//!
//! ```
//! use pathcast_core::xml::parser::{Door, Limits};
//! use pathcast_core::xml::serializer::{Limit, Namespaces, Scratch, Writer};
//! use pathcast_core::xml::tree::NodeRef;
//!
//! let mut door = Door::new(Limits::default());
//! door.keep_source_spans(true);
//! let parsed = door.parse(b"<o xmlns='urn:o'><item n='1'>a &amp; b</item></o>", None)?;
//! let mut scratch = Scratch::default();
//! let mut writer = Writer::new(parsed.message, parsed.names, &mut scratch);
//! let mut out = Vec::new();
//! writer.node(&mut out, NodeRef::Element(1), &Namespaces::default(), Limit::NONE)?;
//! assert_eq!(out, b"<item xmlns=\"urn:o\" n='1'>a &amp; b</item>");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The text is UTF-8 without a declaration. It can stand wherever the namespaces in scope are those
//! given as `outer`, and is then, parsed again, the node it was written from: the names, attributes,
//! character data, comments, instructions and namespaces in scope are those the node has in its
//! message. Namespaces of `outer` that the node's own do not replace are in scope besides. So is the
//! default namespace of `outer` for elements with a prefix that have none and do not take it back
//! themselves; an element in no namespace takes it back (`xmlns=""`) from itself and all that is in
//! it (XQuery 1.0, 3.7.1.3).
//!
//! What is copied raw: an element is copied byte for byte, quotes, references, CDATA sections and
//! white space inside its tags as the sender wrote them, with the namespace declarations that it
//! needs in its new place put behind its name (and `xmlns=""` behind the names of elements in it that
//! would inherit a default namespace now). That is so for every element of a message in UTF-8 (of its
//! decoded text, for another encoding), unless the message has referred to an entity that its
//! document type declaration declares, or has been given or normalised an attribute by one
//! ([`crate::xml::tree::MessageTree::is_verbatim`]). The elements of such a message are written anew from
//! the tree. Text nodes and attribute values are always written anew, escaped.
//!
//! What it does not do: evaluate queries (`xquery`), indent, canonicalise, choose between UTF-8 and
//! other encodings.
//!
//! Source: XML 1.0 (fifth edition), Namespaces in XML 1.0, XSLT 2.0 and XQuery 1.0 Serialization
//! (method xml).

#![forbid(unsafe_code)]

mod anew;
mod defaults;
mod escape;
mod namespaces;
mod scopes;
mod writer;

pub use escape::{write_attribute_value, write_text};
pub use namespaces::Namespaces;
pub use writer::{Scratch, Writer, write_node};

/// Output has become longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the output is longer than its limit")
    }
}

impl std::error::Error for TooLong {}

/// How long a buffer may become.
///
/// ```
/// use pathcast_core::xml::serializer::{Limit, TooLong, write_text};
/// let mut out = b"kept".to_vec();
/// let limit = Limit::after(&out, 5);
/// write_text(&mut out, b"a<b");
/// assert_eq!(limit.check(&out), Err(TooLong));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    len_max: usize,
}

impl Limit {
    /// No limit.
    pub const NONE: Limit = Limit { len_max: usize::MAX };

    /// As many bytes more than the buffer has now.
    pub fn after(out: &[u8], bytes_max: usize) -> Self {
        Limit { len_max: out.len().saturating_add(bytes_max) }
    }

    /// Whether the buffer is within the limit.
    #[inline]
    pub fn check(self, out: &[u8]) -> Result<(), TooLong> {
        if out.len() <= self.len_max { Ok(()) } else { Err(TooLong) }
    }

    /// Whether it still is with so many bytes more.
    #[inline]
    pub(crate) fn check_room(self, out: &[u8], bytes: usize) -> Result<(), TooLong> {
        if bytes <= self.len_max.saturating_sub(out.len()) { Ok(()) } else { Err(TooLong) }
    }
}
