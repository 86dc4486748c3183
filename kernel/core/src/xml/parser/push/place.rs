//! Line, column and offset of a place, counted on from one that lies before it.

use super::super::encoding::original_offset;
use super::input::Input;

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Byte of the text that is held.
    pub(crate) at: usize,
    pub(crate) line: u64,
    pub(crate) column: u64,
    /// Offset in the message as it arrives.
    pub(crate) offset: u64,
}

impl Place {
    /// The first byte of a text.
    pub(crate) fn first(offset: u64) -> Self {
        Place { at: 0, line: 1, column: 1, offset }
    }

    /// Goes on to a later byte. Cost: linear in what lies between.
    pub(crate) fn advance(&mut self, input: &Input, to: usize) {
        let Some(passed) = input.text.get(self.at..to) else { return };
        let bytes = passed.as_bytes();
        let mut line_start = None;
        if input.has_return {
            let all = input.text.as_bytes();
            for found in memchr::memchr2_iter(b'\n', b'\r', bytes) {
                if bytes[found] == b'\n' || all.get(self.at + found + 1) != Some(&b'\n') {
                    self.line += 1;
                    line_start = Some(found + 1);
                }
            }
        } else {
            self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
            line_start = memchr::memrchr(b'\n', bytes).map(|found| found + 1);
        }
        if line_start.is_some() {
            self.column = 1;
        }
        self.column += passed[line_start.unwrap_or(0)..].chars().count() as u64;
        self.offset += if input.is_multibyte() {
            let end = input.ends.partition_point(|&(end, _)| end < to);
            let offset = input.ends.get(end).map_or(self.offset, |&(_, offset)| offset);
            if to > self.at { offset.saturating_sub(self.offset) } else { 0 }
        } else {
            original_offset(input.detected.charset, &[], passed, passed.len()) as u64
        };
        self.at = to;
    }
}
