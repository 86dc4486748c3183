//! Text nodes: character data, CDATA sections and references that belong together (productions 14
//! and 18 to 21, 2.11; XPath 1.0, 5.7).
//!
//! A text node that is one run of the document is a span of it; any other is put together in the
//! scratch buffer.

use super::chars::{TEXT_STOP, is};
use super::observer::Observer;
use super::refusal::{Code, Fault, Step};
use super::scan::Scanner;
use crate::xml::tree::{NONE, Span};

/// Text node at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    Nothing,
    /// A run of the document as it is.
    Source {
        start: u32,
        end: u32,
    },
    /// Everything in the scratch buffer from here on.
    Scratch {
        start: u32,
    },
}

impl<O: Observer> Scanner<'_, O> {
    /// Character data up to the next markup or reference (production 14).
    #[inline(always)]
    pub(crate) fn characters(&mut self, text: &str, start: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let mut at = start;
        loop {
            at = text_stop(bytes, at);
            if bytes.get(at) != Some(&b']') {
                break;
            }
            if bytes[at..].starts_with(b"]]>") {
                return Err(self.fault(Code::CdataEnd, at));
            }
            at += 1;
        }
        self.add_run(text, start, at);
        Ok(at)
    }

    /// Adds a run of the text being read to the text node, line ends normalised (2.11).
    #[inline(always)]
    pub(crate) fn add_run(&mut self, text: &str, start: usize, end: usize) {
        let is_document = self.entity_place.is_none();
        let has_return = self.has_return
            && is_document
            && memchr::memchr(b'\r', &text.as_bytes()[start..end]).is_some();
        if is_document && !has_return && self.pending == Pending::Nothing {
            self.pending = Pending::Source { start: start as u32, end: end as u32 };
        } else {
            self.add_slow(&text[start..end], has_return);
        }
    }

    fn add_slow(&mut self, run: &str, has_return: bool) {
        self.begin_scratch();
        if has_return {
            push_with_line_ends(&mut self.tree.scratch, run);
        } else {
            self.tree.scratch.push_str(run);
        }
    }

    pub(crate) fn add_character(&mut self, c: char) {
        self.begin_scratch();
        self.tree.scratch.push(c);
    }

    /// Makes the text node one that is built in the scratch buffer.
    fn begin_scratch(&mut self) {
        let start = self.tree.scratch.len() as u32;
        match self.pending {
            Pending::Scratch { .. } => return,
            Pending::Nothing => {}
            Pending::Source { start, end } => {
                self.tree.scratch.push_str(&self.document[start as usize..end as usize]);
            }
        }
        self.pending = Pending::Scratch { start };
    }

    /// Ends the text node at hand, if there is one, before the byte `at` of the text being read.
    #[inline(always)]
    pub(crate) fn flush_text(&mut self, at: usize) -> Step<()> {
        if !O::BUILDS_TREE {
            self.show_text(at);
            return Ok(());
        }
        let span = match self.pending {
            Pending::Nothing => return Ok(()),
            Pending::Source { start, end } => Span::in_message(start, end - start),
            Pending::Scratch { start } => {
                let end = self.tree.scratch.len();
                if end > Span::IN_SCRATCH as usize {
                    return Err(self.scratch_full());
                }
                Span::in_scratch(start, end as u32 - start)
            }
        };
        self.pending = Pending::Nothing;
        if span.len() > 0 {
            let parent = self.memory.open.last().map_or(NONE, |open| open.element);
            self.tree.text_parent.push(parent);
            self.tree.text_value.push(span);
        }
        Ok(())
    }

    /// Hands the text at hand on, without a tree.
    #[inline(always)]
    pub(crate) fn show_text(&mut self, at: usize) {
        let document = self.document;
        let value = match self.pending {
            Pending::Nothing => "",
            Pending::Source { start, end } => &document[start as usize..end as usize],
            Pending::Scratch { start } => &self.tree.scratch[start as usize..],
        };
        let place = self.place(at);
        let kept = self.observer.text(document, value, place);
        self.tree.scratch.truncate(kept);
        self.pending = Pending::Nothing;
    }

    /// The scratch buffer has outgrown what a span can say; only limits raised to gigabytes lead here.
    #[cold]
    pub(crate) fn scratch_full(&self) -> Box<Fault> {
        let maximum = u64::from(Span::IN_SCRATCH);
        let at = self.place(0);
        let given = self.tree.scratch.len() as u64;
        Fault::limit(Code::LimitMessageBytes, at, "message_bytes_max", given, maximum)
    }
}

/// First byte from `at` on that needs a closer look.
#[inline(always)]
fn text_stop(bytes: &[u8], at: usize) -> usize {
    let near = bytes.len().min(at + 24);
    for (step, &byte) in bytes[at..near].iter().enumerate() {
        if is(byte, TEXT_STOP) {
            return at + step;
        }
    }
    memchr::memchr3(b'<', b'&', b']', &bytes[near..]).map_or(bytes.len(), |found| near + found)
}

/// Appends a run with its line ends normalised (2.11).
pub(super) fn push_with_line_ends(out: &mut String, run: &str) {
    let mut pieces = run.split('\r');
    out.push_str(pieces.next().unwrap_or(""));
    for piece in pieces {
        if !piece.starts_with('\n') {
            out.push('\n');
        }
        out.push_str(piece);
    }
}
