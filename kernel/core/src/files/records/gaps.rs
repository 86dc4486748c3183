//! What lies between records: text, comments, tags of ancestors, other elements. The door reads it as
//! content of the ancestors, a piece at a time; what it refuses there costs no record anything.
//!
//! A piece is a tag, a comment, a section, an instruction or a whole element, with the text after it, or
//! text after a record. So pieces are the same wherever ranges begin.

use super::context::Context;
use super::cutter::Body;
use super::hold::Block;
use super::rows::Fault;
use crate::xml::parser::{Code, SPACE, is};

/// A piece of what lies between records.
pub(super) struct Gap {
    /// Where it begins; as far as it has been looked at, with something that is no white space.
    pub(crate) start: u64,
    is_trimmed: bool,
    /// The ancestors when it began, if they have changed since.
    context: Option<Context>,
    /// The root element had ended.
    is_after_root: bool,
    /// Elements opened in it.
    pub(crate) elements: u64,
    /// The tag of an ancestor is longer than what may be written around a record.
    pub(crate) is_tag_too_long: bool,
    /// It is longer than a message may be, and not held; the fault in as much as may be one.
    pub(crate) is_too_long: bool,
    pub(crate) earlier: Option<Fault>,
}

impl Gap {
    pub(crate) fn new(start: u64, is_after_root: bool) -> Self {
        Gap {
            start,
            is_trimmed: false,
            context: None,
            is_after_root,
            elements: 0,
            is_tag_too_long: false,
            is_too_long: false,
            earlier: None,
        }
    }

    /// The ancestors are about to become others.
    pub(crate) fn change(&mut self, context: &Context) {
        if self.context.is_none() {
            self.context = Some(context.clone());
        }
    }
}

impl Body {
    /// Passes over white space that a piece begins with; whether there is something else.
    pub(crate) fn trim_gap(&mut self, block: Block<'_>, to: u64) -> bool {
        if !self.gap.is_trimmed && to > self.gap.start {
            let gap = self.hold.slice(block, self.gap.start, to);
            let space = gap.iter().position(|&byte| !is(byte, SPACE));
            self.gap.is_trimmed = space.is_some();
            self.gap.start += space.unwrap_or(gap.len()) as u64;
            self.hold.drop_before(self.gap.start);
        }
        self.gap.is_trimmed
    }

    /// Ends a piece: what the door refuses of it is a row.
    #[inline]
    pub(crate) fn end_gap(&mut self, block: Block<'_>, to: u64) {
        if to != self.gap.start && (self.gap.is_too_long || self.trim_gap(block, to)) {
            self.check_gap(block, to);
        }
    }

    #[cold]
    fn check_gap(&mut self, block: Block<'_>, to: u64) {
        let before = self.gap.context.as_ref().unwrap_or(&self.context);
        let start = self.gap.start;
        if self.gap.is_tag_too_long {
            self.rows.refuse(start, 0, self.context_fault(start));
            return;
        }
        if before.is_too_long() || self.context.is_too_long() {
            return;
        }
        if self.gap.is_too_long || to - start > self.message_bytes_max {
            self.rows.refuse(start, 0, too_long(start, to - start, self.message_bytes_max));
            return;
        }
        let root = after_root(&self.gap);
        let gap = self.hold.slice(block, start, to);
        let parts = [before.before(), root, gap, self.context.after()];
        let skipped = (parts[0].len() + root.len()) as u64;
        let fault = match self.judge.count(&parts) {
            Err(refusal) => {
                let at = (start + refusal.offset.saturating_sub(skipped)).min(to - 1);
                Fault::refused(refusal, at)
            }
            Ok(elements) => {
                let outside = before.depth() as u64 + u64::from(!root.is_empty());
                if !self.has_doctype || elements as u64 == outside + self.gap.elements {
                    return;
                }
                Fault { code: "records.entity", at: start, params: Vec::new() }
            }
        };
        self.rows.refuse(fault.at, 0, fault);
    }

    /// What the door finds in the beginning of a piece, or of a record, as far as it may be a message,
    /// other than that it ends.
    #[cold]
    pub(crate) fn fault_in(&mut self, block: Block<'_>, start: u64, to: u64) -> Option<Fault> {
        let before = self.gap.context.as_ref().unwrap_or(&self.context);
        if before.is_too_long() || to < start {
            return None;
        }
        let root = after_root(&self.gap);
        let skipped = (before.before().len() + root.len()) as u64;
        let around = (before.bytes() + root.len()) as u64;
        let room = self.message_bytes_max.saturating_sub(around) as usize;
        let item = self.hold.slice(block, start, to);
        let item = &item[..item.len().min(room)];
        let refusal = self.judge.count(&[before.before(), root, item]).err()?;
        if refusal.code == Code::End {
            return None;
        }
        let at = start + refusal.offset.saturating_sub(skipped);
        Some(Fault::refused(refusal, at))
    }
}

/// What stands for the root element where it has ended.
fn after_root(gap: &Gap) -> &'static [u8] {
    if gap.is_after_root { b"<root/>" } else { b"" }
}

pub(super) fn too_long(at: u64, given: u64, maximum: u64) -> Fault {
    let code = Code::LimitMessageBytes.as_str();
    Fault::limit(code, "message_bytes_max", at, given, maximum)
}
