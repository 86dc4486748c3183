//! The ancestors of records, as text that is written around each of them.

use crate::xml::parser::name_end;

/// What stands before and after a record in the message that it becomes.
///
/// ```
/// use pathcast_core::files::records::Context;
/// let mut context = Context::new(b"<?xml version='1.0'?>", 100);
/// context.push(b"<orders xmlns='urn:o'>");
/// context.push(b"<day n=\"1\">");
/// assert_eq!(context.before(), b"<?xml version='1.0'?><orders xmlns='urn:o'><day n=\"1\">");
/// assert_eq!(context.after(), b"</day></orders>");
/// context.truncate(1);
/// assert_eq!(context.after(), b"</orders>");
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    before: Vec<u8>,
    after: Vec<u8>,
    /// Where each start tag begins in `before`.
    tags: Vec<usize>,
    /// Lengths of `after` with so many ancestors.
    ends: Vec<usize>,
    bytes_max: usize,
    /// The ancestor with which it has become too long; of those from it on, only names are kept.
    too_long_from: Option<usize>,
}

impl Context {
    /// No ancestors, and what stands before all of them.
    pub fn new(head: &[u8], bytes_max: usize) -> Self {
        Context {
            before: head.to_vec(),
            after: Vec::new(),
            tags: Vec::new(),
            ends: Vec::new(),
            bytes_max,
            too_long_from: None,
        }
    }

    /// Adds the innermost ancestor by its start tag or, of one that is too long, the beginning of it.
    pub fn push(&mut self, tag: &[u8]) {
        self.tags.push(self.before.len());
        self.ends.push(self.after.len());
        let name = &tag[1..name_end(tag, 1).min(1 + self.bytes_max)];
        let bytes = self.bytes() + tag.len() + name.len() + 3;
        if bytes > self.bytes_max || !tag.ends_with(b">") {
            self.too_long_from.get_or_insert(self.tags.len() - 1);
        }
        if self.is_too_long() {
            return;
        }
        self.before.extend_from_slice(tag);
        let end = [b"</", name, b">"].concat();
        self.after.splice(0..0, end);
    }

    /// Leaves so many ancestors.
    pub fn truncate(&mut self, ancestors: usize) {
        if ancestors < self.tags.len() {
            self.too_long_from = self.too_long_from.filter(|&from| from < ancestors);
            let dropped = self.after.len() - self.ends[ancestors];
            self.after.drain(..dropped);
            self.before.truncate(self.tags[ancestors]);
            self.tags.truncate(ancestors);
            self.ends.truncate(ancestors);
        }
    }

    /// How many ancestors there are.
    pub(crate) fn depth(&self) -> usize {
        self.tags.len()
    }

    /// Before a record.
    pub fn before(&self) -> &[u8] {
        &self.before
    }

    /// After it.
    pub fn after(&self) -> &[u8] {
        &self.after
    }

    /// Whether there is more than may be written around a record.
    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long_from.is_some()
    }

    /// Bytes of both.
    pub(crate) fn bytes(&self) -> usize {
        self.before.len() + self.after.len()
    }
}
