//! Steps done to the bytes of a message: each edit is made where its elements lie, and all else stays as it is.
//!
//! Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2.

use crate::engine::verdicts::StepFault;
use crate::language::edits::{Edit, EditStep};
use crate::xml::parser::{Door, Parsed};
use crate::xml::serializer::write_attribute_value;
use memchr::{memchr, memrchr};
use std::collections::HashMap;
use std::ops::Range;

/// Where the elements of a step lie in the bytes of a message, in document order; those that stay as they are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    elements: Vec<Range<u32>>,
    /// By first byte of a start tag: attributes that a declaration gives by the old name, as they are to be written.
    given: HashMap<u32, Vec<u8>>,
}

/// What a text may grow to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Bytes of any message.
    pub(super) bytes_max: usize,
    /// Bytes by those of the message that came.
    pub(super) grown_max: usize,
}

impl Places {
    /// The places of elements of the last message of a door, of which these are the bytes; none for a node that is no
    /// element.
    ///
    /// # Errors
    /// One of them does not lie in the bytes, or would get attributes by its new name.
    pub(super) fn of(
        elements: Option<&[u32]>,
        step: &EditStep,
        door: &Door,
        bytes: &[u8],
    ) -> Result<Places, StepFault> {
        let Parsed { message, .. } = door.last(bytes);
        let (tree, source) = (message.tree, message.source.as_ptr_range());
        let nowhere = || {
            StepFault::Unreadable(format!(
                "{step} is to edit what does not lie in its bytes: it is not in UTF-8, or an entity holds the \
                 element, or a node is no element"
            ))
        };
        let whole = bytes.as_ptr_range();
        let elements = elements.ok_or_else(nowhere)?;
        if source.start < whole.start || whole.end < source.end {
            return Err(nowhere());
        }
        let before = (source.start as usize - whole.start as usize) as u32;
        let mut places = Places::default();
        for &element in elements.iter().filter(|&&element| element > 0) {
            let (start, end) =
                (tree.source_start[element as usize], tree.source_end[element as usize]);
            if start == end {
                return Err(nowhere());
            }
            let place = start + before..end + before;
            match step.edit {
                Edit::Drop => {}
                Edit::Unwrap if tree.declaration_element.binary_search(&element).is_ok() => {
                    continue;
                }
                Edit::Unwrap => {}
                Edit::Rename => {
                    let tag = Tag::at(bytes, &place);
                    let given = given_attributes(&tag, &step.name, door)?;
                    if !given.is_empty() {
                        places.given.insert(place.start, given);
                    }
                }
            }
            places.elements.push(place);
        }
        Ok(places)
    }

    /// A message after the step; none if that changes nothing.
    ///
    /// # Errors
    /// It would be longer than it may; nothing is made then.
    pub(super) fn edited(
        &self,
        bytes: &[u8],
        step: &EditStep,
        growth: Growth,
    ) -> Result<Option<Vec<u8>>, StepFault> {
        let mut edits: Vec<Range<u32>> = Vec::new();
        let mut size = bytes.len();
        let mut add = |range: Range<u32>, text: usize| {
            size = size + text - range.len();
            edits.push(range);
            // Only a renaming makes a message longer, and it does so element by element.
            if size > bytes.len() && size > growth.bytes_max {
                return Err(StepFault::TooLong { given: size });
            }
            if size > bytes.len() && size > growth.grown_max {
                return Err(StepFault::Grown);
            }
            Ok(())
        };
        if step.edit == Edit::Drop {
            let mut dropped = 0;
            for place in &self.elements {
                // An element in one that is dropped goes with it.
                if place.start >= dropped {
                    dropped = place.end;
                    add(place.clone(), 0)?;
                }
            }
        } else {
            for place in &self.elements {
                let tag = Tag::at(bytes, place);
                let closing = tag.closing(bytes, place);
                if step.edit == Edit::Unwrap {
                    add(place.start..tag.end, 0)?;
                    if let Some(closing) = closing {
                        add(closing..place.end, 0)?;
                    }
                    continue;
                }
                let local = tag.local();
                let given = self.given.get(&place.start).map_or(0, Vec::len);
                let name = step.name.len();
                add(tag.name_start + local..tag.name_end, name + given)?;
                if let Some(closing) = closing {
                    let name_end = tag.name_end - tag.name_start + closing + 2;
                    add(closing + 2 + local..name_end, name)?;
                }
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }
        // End tags come after those of the elements within.
        edits.sort_unstable_by_key(|edit| edit.start);
        let mut made = Vec::with_capacity(size);
        let mut at = 0;
        for edit in edits {
            append_apart(&mut made, &bytes[at as usize..edit.start as usize]);
            if step.edit == Edit::Rename {
                made.extend_from_slice(step.name.as_bytes());
            }
            if !self.given.is_empty()
                && let Some(start) = memrchr(b'<', &bytes[..edit.start as usize])
                && let Some(given) = self.given.get(&(start as u32))
            {
                made.extend_from_slice(given);
            }
            at = edit.end;
        }
        append_apart(&mut made, &bytes[at as usize..]);
        Ok(Some(made))
    }
}

/// Appends a piece of a message. Texts that come together could mean something else than apart: `]]` and `>`, and the
/// two characters of one line end. The second is written as a reference then.
fn append_apart(made: &mut Vec<u8>, piece: &[u8]) {
    const APART: [(&[u8], &[u8], &[u8]); 3] =
        [(b"]]", b">", b"&gt;"), (b"]", b"]>", b"]&gt;"), (b"\r", b"\n", b"&#10;")];
    let mut piece = piece;
    let meets = |&&(last, first, _): &&(&[u8], &[u8], &[u8])| {
        made.ends_with(last) && piece.starts_with(first)
    };
    if let Some((_, first, reference)) = APART.iter().find(meets) {
        made.extend_from_slice(reference);
        piece = &piece[first.len()..];
    }
    made.extend_from_slice(piece);
}

/// A start tag or an empty-element tag in the bytes of a message that was let in.
struct Tag<'m> {
    /// From `<` to `>`.
    text: &'m [u8],
    name_start: u32,
    name_end: u32,
    end: u32,
}

impl<'m> Tag<'m> {
    fn at(bytes: &'m [u8], place: &Range<u32>) -> Tag<'m> {
        let text = &bytes[place.start as usize..place.end as usize];
        let is_end = |&byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>');
        let name_end = text.iter().position(is_end).unwrap_or(text.len());
        let mut end = name_end;
        while let Some(&byte) = text.get(end) {
            end += 1;
            match byte {
                b'>' => break,
                b'\'' | b'"' => end += memchr(byte, &text[end..]).map_or(0, |length| length + 1),
                _ => {}
            }
        }
        Tag {
            text: &text[..end],
            name_start: place.start + 1,
            name_end: place.start + name_end as u32,
            end: place.start + end as u32,
        }
    }

    fn name(&self) -> &'m [u8] {
        &self.text[1..1 + (self.name_end - self.name_start) as usize]
    }

    /// Bytes of the name before its local part.
    fn local(&self) -> u32 {
        memrchr(b':', self.name()).map_or(0, |colon| colon as u32 + 1)
    }

    /// Where the end tag begins; none of an empty-element tag, which is the whole element.
    fn closing(&self, bytes: &[u8], place: &Range<u32>) -> Option<u32> {
        let after = &bytes[self.end as usize..place.end as usize];
        memrchr(b'<', after).map(|at| self.end + at as u32)
    }

    /// The names of the attributes that are written in it, declarations among them.
    fn attributes(&self) -> Vec<&'m [u8]> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let mut rest = &self.text[1 + self.name().len()..];
        let mut found = Vec::new();
        while let Some(start) = rest.iter().position(|byte| !is_space(byte)) {
            rest = &rest[start..];
            let Some(equals) = memchr(b'=', rest) else { break };
            found.push(rest[..equals].trim_ascii_end());
            let quote = rest[equals..].iter().position(|byte| matches!(byte, b'\'' | b'"'));
            let Some(quote) = quote.map(|at| equals + at) else { break };
            let Some(length) = memchr(rest[quote], &rest[quote + 1..]) else { break };
            rest = &rest[quote + length + 2..];
        }
        found
    }
}

/// The attributes of an element that it has by default before a renaming, as they are to be written.
///
/// # Errors
/// By the defaults of its new name it would have an attribute more.
fn given_attributes(tag: &Tag<'_>, name: &str, door: &Door) -> Result<Vec<u8>, StepFault> {
    let defaults = |name: &str| door.default_attributes(name);
    let old = String::from_utf8_lossy(tag.name());
    let before = defaults(&old);
    let after = defaults(&format!("{}{name}", &old[..tag.local() as usize]));
    let mut given = Vec::new();
    if before.is_empty() && after.is_empty() {
        return Ok(given);
    }
    let written = tag.attributes();
    let is_new = |name: &&str| !written.contains(&name.as_bytes());
    let more: Vec<&str> =
        after.keys().copied().filter(|name| !before.contains_key(name)).filter(is_new).collect();
    if !more.is_empty() {
        return Err(StepFault::Unreadable(format!(
            "its declarations would give a renamed element what it has not: {}",
            more.join(", ")
        )));
    }
    for (name, value) in before.into_iter().filter(|(name, _)| is_new(name)) {
        given.push(b' ');
        given.extend_from_slice(name.as_bytes());
        given.extend_from_slice(b"=\"");
        write_attribute_value(&mut given, value.as_bytes());
        given.push(b'"');
    }
    Ok(given)
}
