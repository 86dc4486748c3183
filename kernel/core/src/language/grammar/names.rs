//! Names in a text of a query: plain, with a prefix, with a namespace in braces (Namespaces in XML 1.0; XQuery 3.1, A.2).
//!
//! They are read by bytes; characters are decoded only beyond ASCII.

use crate::xml::parser::{is_ncname_char, is_ncname_start};

const NAME_START: u8 = 1;
const NAME_CHAR: u8 = 2;

/// What each byte can be; bytes beyond ASCII are decoded before they count.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let letter = (byte as u8).is_ascii_alphabetic() || byte as u8 == b'_';
        let other = (byte as u8).is_ascii_digit() || byte as u8 == b'-' || byte as u8 == b'.';
        if letter {
            table[byte] = NAME_START | NAME_CHAR;
        } else if other {
            table[byte] = NAME_CHAR;
        }
        byte += 1;
    }
    table
}

/// Length of a name without a colon (production 4 of Namespaces in XML 1.0); 0 if none is here.
#[inline]
pub(crate) fn ncname_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let Some(&first) = bytes.first() else { return 0 };
    if CLASSES[usize::from(first)] & NAME_START == 0 && first < 128 {
        return 0;
    }
    let is_plain = |byte: u8| CLASSES[usize::from(byte)] & NAME_CHAR != 0;
    let mut length = 0;
    while length < bytes.len() && is_plain(bytes[length]) {
        length += 1;
    }
    if length < bytes.len() && bytes[length] >= 128 { length_beyond_ascii(text) } else { length }
}

#[cold]
fn length_beyond_ascii(text: &str) -> usize {
    if !text.starts_with(is_ncname_start) {
        return 0;
    }
    text.find(|c| !is_ncname_char(c)).unwrap_or(text.len())
}

/// A name as written, from one that may have a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written<'t> {
    Plain(&'t str),
    Prefixed(&'t str, &'t str),
    /// `prefix:*`
    AnyIn(&'t str),
    /// `Q{uri}local`; no local name is `Q{uri}*`.
    Braced(&'t str, Option<&'t str>),
}

/// The name that a text begins with, and its length. Without a local name after it, a prefix or `Q` is a plain name.
pub(crate) fn written_name(text: &str) -> Option<(Written<'_>, usize)> {
    let length = ncname_length(text);
    let (first, rest) = text.split_at(length);
    // The local name that begins so many bytes after the first.
    let local = |distance: usize| {
        let rest = &rest[distance..];
        match ncname_length(rest) {
            0 => rest.starts_with('*').then_some((None, length + distance + 1)),
            local => Some((Some(&rest[..local]), length + distance + local)),
        }
    };
    let longer = match rest.as_bytes() {
        [b'{', ..] if first == "Q" => {
            let end = rest[1..].find(['{', '}']).map(|end| end + 1);
            let end = end.filter(|&end| rest.as_bytes()[end] == b'}');
            end.and_then(|end| {
                local(end + 1)
                    .map(|(local, length)| (Written::Braced(&rest[1..end], local), length))
            })
        }
        [b':', ..] if length > 0 => local(1).map(|(local, length)| match local {
            Some(local) => (Written::Prefixed(first, local), length),
            None => (Written::AnyIn(first), length),
        }),
        _ => None,
    };
    longer.or_else(|| (length > 0).then_some((Written::Plain(first), length)))
}

/// Length of a name that may have a prefix; 0 if none is here.
pub(crate) fn qname_length(rest: &str) -> usize {
    let first = ncname_length(rest);
    let local = match rest[first..].strip_prefix(':') {
        Some(after) if first > 0 => ncname_length(after),
        _ => 0,
    };
    if local > 0 { first + 1 + local } else { first }
}

/// Length of a name, a name test or a braced name; 0 if none is here.
pub(crate) fn name_length(rest: &str) -> usize {
    written_name(rest).map_or(0, |(_, length)| length)
}
