//! A message's text as a stream.

use super::super::chars::{NAME, is, name_end, skip_space};
use super::super::doctype::read_doctype;
use super::super::encoding::{Charset, Detected, detect};
use super::super::limits::Limits;
use super::super::references::Expansion;
use super::super::scan::{skip_comment, skip_instruction};
use super::dictionary::Dictionary;
use super::item::{
    EMPTY, EMPTY_ATTRIBUTES, N_MAX, RAW, START, START_ATTRIBUTES, TAG, TEXT, TEXT_END, write_number,
};
use super::{IN_BAND, WITH_DICTIONARY};
use hashbrown::HashMap;
use std::hash::RandomState;

/// Writes streams one after the other, keeping its memory.
///
/// It looks at a message as far as it must to cut it into items, so that a message that is not
/// well-formed may become a stream, which a door then refuses as it would have refused the text.
#[derive(Debug, Default)]
pub struct Encoder {
    limits: Limits,
    /// Names that this stream has said, by their number.
    numbers: HashMap<Box<[u8]>, u32, RandomState>,
    /// Start and end of the names of the open elements.
    open: Vec<(usize, usize)>,
}

/// What is written stands for the text so far.
struct Stream<'e> {
    encoder: &'e mut Encoder,
    text: &'e [u8],
    dictionary: Option<&'e Dictionary>,
    out: &'e mut Vec<u8>,
}

impl Encoder {
    /// Appends the stream of a message, whose names may be numbers of the dictionary. If it would not be
    /// shorter than the message, or cannot be (the message is not in UTF-8, begins with a byte order mark,
    /// has blanks in its end tags, or is no XML), nothing is appended and the answer is false: the
    /// message travels as text.
    ///
    /// Cost: one pass, and a look-up for each name.
    pub fn encode(
        &mut self,
        message: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        self.numbers.clear();
        self.open.clear();
        let is_utf8 = match detect(message, None) {
            Ok(Detected { charset: Charset::Utf8, mark: 0, .. }) => true,
            Ok(Detected { charset: Charset::Ascii, .. }) => message.is_ascii(),
            _ => false,
        };
        let Ok(text) = std::str::from_utf8(message) else { return false };
        let Ok(len) = u32::try_from(text.len()) else { return false };
        if !is_utf8 || len > N_MAX {
            return false;
        }
        match dictionary {
            None => out.push(IN_BAND),
            Some(dictionary) => {
                out.push(WITH_DICTIONARY);
                out.extend_from_slice(&dictionary.version());
            }
        }
        write_number(out, len);
        let limits = self.limits.clone();
        let mut stream = Stream { encoder: self, text: message, dictionary, out };
        let is_whole = root_start(text, &limits).and_then(|root| stream.write(root)).is_some();
        let is_shorter = out.len() - start < message.len();
        if !(is_whole && is_shorter) {
            out.truncate(start);
        }
        is_whole && is_shorter
    }
}

/// Where the root element begins.
fn root_start(text: &str, limits: &Limits) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    if bytes.starts_with(b"<?xml") && !bytes.get(5).is_some_and(|&byte| is(byte, NAME)) {
        at = memchr::memmem::find(bytes, b"?>")? + 2;
    }
    loop {
        at = skip_space(bytes, at);
        let rest = &bytes[at..];
        at = match rest {
            [b'<', b'!', b'-', b'-', ..] => skip_comment(text, at).ok()?,
            [b'<', b'!', b'D', ..] => {
                let expansion = Expansion::new(text.len() as u64);
                read_doctype(text, at, limits, false, expansion).ok()?.2
            }
            [b'<', b'?', ..] => skip_instruction(text, at).ok()?,
            [b'<', ..] => return Some(at),
            _ => return None,
        };
    }
}

impl Stream<'_> {
    /// Writes all items; none if the text cannot be cut into items.
    fn write(&mut self, root: usize) -> Option<()> {
        self.run(RAW, 0, root);
        let mut at = self.start_tag(root)?;
        while !self.encoder.open.is_empty() {
            at = self.content(at)?;
        }
        self.run(RAW, at, self.text.len());
        Some(())
    }

    /// An item that is a number of bytes, unless there are none.
    fn run(&mut self, kind: u32, start: usize, end: usize) {
        if start < end {
            self.head(kind, end - start);
            self.out.extend_from_slice(&self.text[start..end]);
        }
    }

    fn head(&mut self, kind: u32, n: usize) {
        write_number(self.out, (n as u32) << 3 | kind);
    }

    /// What is before a tag, and the tag; gives the next byte.
    fn content(&mut self, start: usize) -> Option<usize> {
        let text = self.text;
        let (mut at, mut is_plain) = (start, true);
        let tag = loop {
            let next = at + memchr::memchr(b'<', &text[at..])?;
            let (open, close): (_, &[u8]) = match &text[next..] {
                [_, b'!', b'-', b'-', ..] => (4, b"-->"),
                [_, b'!', ..] => (2, b"]]>"),
                [_, b'?', ..] => (2, b"?>"),
                _ => break next,
            };
            is_plain = false;
            let inside = next + open;
            at = inside + memchr::memmem::find(&text[inside..], close)? + close.len();
        };
        let run = &text[start..tag];
        is_plain &= memchr::memchr(b'&', run).is_none();
        is_plain &= memchr::memmem::find(run, b"]]>").is_none();
        if text.get(tag + 1) != Some(&b'/') {
            self.run(if is_plain { TEXT } else { RAW }, start, tag);
            return self.start_tag(tag);
        }
        let next = self.end_tag(tag)?;
        if is_plain {
            self.head(TEXT_END, run.len());
            self.out.extend_from_slice(run);
        } else {
            self.run(RAW, start, tag);
            self.head(TEXT_END, 0);
        }
        Some(next)
    }

    /// The byte after the end tag that begins here, unless it has blanks or another name.
    fn end_tag(&mut self, at: usize) -> Option<usize> {
        let (start, end) = self.encoder.open.pop()?;
        let rest = self.text[at + 2..].strip_prefix(&self.text[start..end])?;
        rest.starts_with(b">").then_some(self.text.len() - rest.len() + 1)
    }

    fn start_tag(&mut self, start: usize) -> Option<usize> {
        let end = name_end(self.text, start + 1);
        if end == start + 1 {
            return None;
        }
        let (next, is_empty) = match self.plain_tag(start, end) {
            Some(found) => found,
            None => {
                let next = tag_end(self.text, end)?;
                self.run(TAG, start, next);
                (next, self.text[next - 2] == b'/')
            }
        };
        if !is_empty {
            self.encoder.open.push((start + 1, end));
        }
        Some(next)
    }

    /// A tag in which one blank stands before each attribute and none elsewhere. Gives the byte after it
    /// and whether the element is empty.
    fn plain_tag(&mut self, start: usize, name_end: usize) -> Option<(usize, bool)> {
        let (count, next, is_empty) = plain_attributes(self.text, name_end)?;
        let kind = match (count > 0, is_empty) {
            (false, false) => START,
            (true, false) => START_ATTRIBUTES,
            (false, true) => EMPTY,
            (true, true) => EMPTY_ATTRIBUTES,
        };
        self.name(start + 1, name_end, kind, 3);
        if count > 0 {
            write_number(self.out, count);
        }
        let mut at = name_end;
        for _ in 0..count {
            let (name, value, end) = plain_attribute(self.text, at)?;
            self.name(at + 1, name, 0, 0);
            let is_single = u32::from(self.text[end - 1] == b'\'');
            write_number(self.out, ((end - 1 - value) as u32) << 1 | is_single);
            self.out.extend_from_slice(&self.text[value..end - 1]);
            at = end;
        }
        Some((next, is_empty))
    }

    /// The number of a name, above the bits that say what follows; a new name with its bytes.
    fn name(&mut self, start: usize, end: usize, kind: u32, bits: u32) {
        let name = &self.text[start..end];
        let listed = self.dictionary.and_then(|dictionary| dictionary.number(name));
        if let Some(number) = listed.or_else(|| self.encoder.numbers.get(name).copied()) {
            write_number(self.out, (number + 1) << bits | kind);
            return;
        }
        let listed = self.dictionary.map_or(0, Dictionary::len);
        let number = listed + self.encoder.numbers.len();
        self.encoder.numbers.insert(name.into(), number as u32);
        write_number(self.out, kind);
        write_number(self.out, name.len() as u32);
        self.out.extend_from_slice(name);
    }
}

/// Number of attributes, the byte after the tag, and whether the element is empty.
fn plain_attributes(text: &[u8], mut at: usize) -> Option<(u32, usize, bool)> {
    let mut count = 0;
    loop {
        match &text[at..] {
            [b'>', ..] => return Some((count, at + 1, false)),
            [b'/', b'>', ..] => return Some((count, at + 2, true)),
            [b' ', ..] => at = plain_attribute(text, at)?.2,
            _ => return None,
        }
        count += 1;
    }
}

/// Of the attribute after this blank: the end of its name, the start of its value, the byte after it.
fn plain_attribute(text: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let name = name_end(text, at + 1);
    let quote = *text.get(name + 1).filter(|&&byte| byte == b'"' || byte == b'\'')?;
    if name == at + 1 || text[name] != b'=' {
        return None;
    }
    let value = name + 2;
    Some((name, value, value + memchr::memchr(quote, &text[value..])? + 1))
}

/// The byte after a tag.
fn tag_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr3(b'>', b'"', b'\'', &text[at..])?;
        if text[at] == b'>' {
            return Some(at + 1);
        }
        at += 2 + memchr::memchr(text[at], &text[at + 1..])?;
    }
}
