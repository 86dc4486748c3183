//! The version of a set of subscriptions: a digest that a change costs what changes.
//!
//! `pathcast.registry.identity` says what is digested, and is the other implementation. The digests of the members are
//! added up modulo 2^256, so the order in which they came makes no difference, nor what came and went between.

use super::{Entry, NamespaceMap};
use crate::engine::plans::template::Deliver;
use crate::language::choice::Language;
use blake2::digest::consts::{U16, U32};
use blake2::{Blake2b, Digest};
use std::fmt::Write;

/// Goes before all else that is digested. That of another format of snapshots is another one, so that whoever names files
/// by the version finds none that cannot be read.
const FORMAT: &[u8] = b"pathcast subscriptions 3";
/// Bytes of the sum.
pub const SUM_BYTES: usize = 32;

/// The digests of some subscriptions, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetSum {
    sum: [u64; 4],
    count: u64,
}

impl SetSum {
    /// Adds a subscription: `content` is what [`write_content`] writes.
    pub(crate) fn add(&mut self, content: &str) {
        let digest = Blake2b::<U32>::digest(content.as_bytes());
        let (words, _) = digest.as_chunks::<8>();
        let mut carry = false;
        for (sum, word) in self.sum.iter_mut().zip(words) {
            let (added, over) = sum.overflowing_add(u64::from_le_bytes(*word));
            let (added, again) = added.overflowing_add(u64::from(carry));
            *sum = added;
            carry = over || again;
        }
        self.count += 1;
    }

    /// The sum, little endian.
    pub fn bytes(&self) -> [u8; SUM_BYTES] {
        let mut bytes = [0; SUM_BYTES];
        for (at, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.sum) {
            *at = word.to_le_bytes();
        }
        bytes
    }

    /// The version of the set under `limits`, a JSON object.
    pub(crate) fn version(&self, limits: &str) -> Version {
        let digest = Blake2b::<U16>::new()
            .chain_update(FORMAT)
            .chain_update(limits)
            .chain_update(self.count.to_le_bytes())
            .chain_update(self.bytes());
        digest.finalize().into()
    }
}

/// The version of a subscription.
pub type Version = [u8; 16];

/// The version of the subscription that [`write_content`] wrote this of.
pub(crate) fn version_of(content: &str) -> Version {
    let digest: [u8; SUM_BYTES] = Blake2b::<U32>::digest(content.as_bytes()).into();
    std::array::from_fn(|at| digest[at])
}

/// Writes what is digested of a subscription in the place of what is in `content`; `namespaces` are as
/// [`namespaces_text`] has them.
pub(crate) fn write_content(
    content: &mut String,
    entry: &Entry<'_>,
    namespaces: &str,
    steps: &[Box<str>],
) {
    content.clear();
    let deliver = match entry.deliver {
        Deliver::Fragment => "fragment",
        Deliver::Message => "message",
        Deliver::Ids => "ids",
        Deliver::Nodes => "nodes",
    };
    for text in [entry.id, entry.subscriber, entry.text, deliver, namespaces] {
        write_field(content, text);
    }
    if entry.language == Some(Language::XQuery) {
        write_field(content, "xquery");
    }
    steps.iter().for_each(|step| write_field(content, step));
}

fn write_field(content: &mut String, text: &str) {
    let characters = if text.is_ascii() { text.len() } else { text.chars().count() };
    write!(content, "{characters}:").expect("strings take all that is written");
    content.push_str(text);
}

/// Bindings of prefixes as one text; empty for none.
pub(crate) fn namespaces_text(namespaces: &NamespaceMap) -> String {
    if namespaces.is_empty() {
        return String::new();
    }
    serde_json::to_string(namespaces).expect("maps of strings are JSON")
}

/// Digits of bytes.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("strings take all that is written");
        digits
    })
}
