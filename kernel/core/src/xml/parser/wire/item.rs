//! The bytes of a stream, item by item, every bound checked.
//!
//! A number is written seven bits a byte, the lowest first, the highest bit set in all bytes but the last,
//! in as few bytes as it takes. The lowest three bits of the number that an item begins with say
//! what it is, the others (`n`) how long it is or whose name it has.

use super::super::refusal::{Code, Fault, Step};

/// `n` bytes of character data, and the end of the innermost element (`n` may be 0).
pub(super) const TEXT_END: u32 = 0;
/// `n` bytes of character data.
pub(super) const TEXT: u32 = 1;
/// `n` bytes of the text as they are: references, CDATA sections, comments, instructions and character
/// data, or the prolog, or what follows the root element.
pub(super) const RAW: u32 = 2;
/// A start tag with the name `n`, without attributes.
pub(super) const START: u32 = 3;
/// The same with attributes: how many, then for each its name and its value.
pub(super) const START_ATTRIBUTES: u32 = 4;
/// An empty-element tag without attributes.
pub(super) const EMPTY: u32 = 5;
/// The same with attributes.
pub(super) const EMPTY_ATTRIBUTES: u32 = 6;
/// `n` bytes that are a start tag or empty-element tag written in some other way.
pub(super) const TAG: u32 = 7;

/// The greatest `n`.
pub(super) const N_MAX: u32 = u32::MAX >> 3;

/// What a stream consists of.
pub(super) enum Item<'w> {
    Text(&'w [u8]),
    Raw(&'w [u8]),
    /// That many attributes follow ([`Items::attribute`]).
    Start {
        name: Name<'w>,
        attributes: u32,
        is_empty: bool,
    },
    Tag(&'w [u8]),
    End,
}

/// A name: said here, and known by the next number from now on, or of a number.
#[derive(Clone, Copy)]
pub(super) enum Name<'w> {
    New(&'w [u8]),
    Known(usize),
}

/// An attribute; its value as written, between two of these quotes.
pub(super) struct Attribute<'w> {
    pub name: Name<'w>,
    pub value: &'w [u8],
    pub(crate) quote: u8,
}

/// Reads items.
pub(super) struct Items<'w> {
    bytes: &'w [u8],
    /// Next byte.
    pub(crate) at: usize,
    has_end: bool,
    /// The last item was text or raw: another one would have been one with it.
    was_run: bool,
}

impl<'w> Items<'w> {
    pub(crate) fn new(bytes: &'w [u8], at: usize) -> Self {
        Items { bytes, at, has_end: false, was_run: false }
    }

    /// The next item; none at the end of the stream.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Step<Option<Item<'w>>> {
        if self.has_end {
            self.has_end = false;
            return Ok(Some(Item::End));
        }
        let start = self.at;
        if start == self.bytes.len() {
            return Ok(None);
        }
        let head = self.number()?;
        let (kind, n) = (head & 7, head >> 3);
        let is_run = matches!(kind, TEXT | RAW) || kind == TEXT_END && n > 0;
        if is_run && (n == 0 || self.was_run) {
            return Err(wrong(start, "a run of text that is empty or follows another"));
        }
        self.was_run = matches!(kind, TEXT | RAW);
        Ok(Some(match kind {
            TEXT_END if n == 0 => Item::End,
            TEXT_END => {
                self.has_end = true;
                Item::Text(self.run(n)?)
            }
            TEXT => Item::Text(self.run(n)?),
            RAW => Item::Raw(self.run(n)?),
            TAG => Item::Tag(self.run(n)?),
            _ => {
                let name = self.name(n)?;
                let has_attributes = matches!(kind, START_ATTRIBUTES | EMPTY_ATTRIBUTES);
                let attributes = if has_attributes { self.number()? } else { 0 };
                if has_attributes && attributes == 0 {
                    return Err(wrong(start, "a tag with attributes that has none"));
                }
                Item::Start { name, attributes, is_empty: kind >= EMPTY }
            }
        }))
    }

    /// The next attribute of the start tag at hand.
    #[inline(always)]
    pub(crate) fn attribute(&mut self) -> Step<Attribute<'w>> {
        let n = self.number()?;
        let name = self.name(n)?;
        let len = self.number()?;
        let quote = if len & 1 == 0 { b'"' } else { b'\'' };
        Ok(Attribute { name, value: self.run(len >> 1)?, quote })
    }

    #[inline(always)]
    fn name(&mut self, n: u32) -> Step<Name<'w>> {
        if n > 0 {
            return Ok(Name::Known(n as usize - 1));
        }
        let len = self.number()?;
        Ok(Name::New(self.run(len)?))
    }

    /// So many bytes.
    #[inline(always)]
    pub(crate) fn run(&mut self, len: u32) -> Step<&'w [u8]> {
        let rest = &self.bytes[self.at..];
        match rest.get(..len as usize) {
            Some(run) => {
                self.at += len as usize;
                Ok(run)
            }
            None => Err(self.end(len as usize - rest.len())),
        }
    }

    #[cold]
    fn end(&self, missing: usize) -> Box<Fault> {
        Fault::new(Code::WireEnd, self.bytes.len()).int("missing", missing as u64)
    }

    /// A number in its shortest form.
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Step<u32> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Step<u32> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else { return Err(self.end(1)) };
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return match u32::try_from(value) {
                    Ok(value) if byte > 0 => Ok(value),
                    _ => break,
                };
            }
        }
        Err(Fault::new(Code::WireNumber, start))
    }
}

/// An item that cannot be there.
#[cold]
pub(super) fn wrong(at: usize, found: &str) -> Box<Fault> {
    Fault::new(Code::WireItem, at).text("found", found)
}

/// Writes a number.
pub(super) fn write_number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written_and_in_no_other_form() {
        for value in [0, 1, 127, 128, 16_383, 16_384, 1 << 28, u32::MAX - 1, u32::MAX] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, value);
            let mut items = Items::new(&bytes, 0);
            assert_eq!((items.number().ok(), items.at), (Some(value), bytes.len()));
            for end in 0..bytes.len() {
                let cut = Items::new(&bytes[..end], 0).number();
                assert_eq!(cut.map_err(|fault| fault.code), Err(Code::WireEnd));
            }
        }
        for bytes in [&[0x80, 0][..], &[0xFF, 0x80, 0], &[0xFF; 9], &[0xFF, 0xFF, 0xFF, 0xFF, 16]] {
            let read = Items::new(bytes, 0).number();
            assert_eq!(read.map_err(|fault| (fault.code, fault.at)), Err((Code::WireNumber, 0)));
        }
    }
}
