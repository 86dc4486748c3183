//! Escaping (XML 1.0, 2.4, 2.11, 3.3.3).

/// Bytes looked at together; short enough that little is looked at twice.
const CHUNK: usize = 32;

/// Writes character data: `&`, `<`, `>` and carriage returns, which a parser would take for line
/// ends, as references.
///
/// ```
/// let mut out = Vec::new();
/// pathcast_core::xml::serializer::write_text(&mut out, b"1 < 2\r\n & ]]>");
/// assert_eq!(out, b"1 &lt; 2&#13;\n &amp; ]]&gt;");
/// ```
///
/// Cost: one pass; runs without these characters are copied whole.
pub fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    write_escaped(out, text, TEXT, is_text_special, |byte| match byte {
        b'&' => b"&amp;",
        b'<' => b"&lt;",
        b'>' => b"&gt;",
        _ => b"&#13;",
    });
}

/// Writes the inside of an attribute value that stands between double quotes: `&`, `<`, `"` and
/// white space other than blanks, which a parser would take for blanks, as references.
///
/// ```
/// let mut out = Vec::new();
/// pathcast_core::xml::serializer::write_attribute_value(&mut out, b"\"a\"\t>\n<b>");
/// assert_eq!(out, b"&quot;a&quot;&#9;>&#10;&lt;b>");
/// ```
///
/// Cost: as [`write_text`].
pub fn write_attribute_value(out: &mut Vec<u8>, value: &[u8]) {
    write_escaped(out, value, VALUE, is_value_special, |byte| match byte {
        b'&' => b"&amp;",
        b'<' => b"&lt;",
        b'"' => b"&quot;",
        b'\t' => b"&#9;",
        b'\n' => b"&#10;",
        _ => b"&#13;",
    });
}

/// ` xmlns:prefix="uri"`; nothing for `xml`, which has its namespace everywhere.
pub(super) fn write_declaration(out: &mut Vec<u8>, prefix: &[u8], uri: &[u8]) {
    if prefix == b"xml" {
        return;
    }
    out.extend_from_slice(b" xmlns");
    if !prefix.is_empty() {
        out.push(b':');
        out.extend_from_slice(prefix);
    }
    out.extend_from_slice(b"=\"");
    write_attribute_value(out, uri);
    out.push(b'"');
}

/// Class bits of every byte.
static CLASS: [u8; 256] = classes();

const TEXT: u8 = 1;
const VALUE: u8 = 2;

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if is_text_special(b) {
            table[byte] |= TEXT;
        }
        if is_value_special(b) {
            table[byte] |= VALUE;
        }
        byte += 1;
    }
    table
}

#[inline(always)]
const fn is_text_special(byte: u8) -> bool {
    (byte == b'&') | (byte == b'<') | (byte == b'>') | (byte == b'\r')
}

#[inline(always)]
const fn is_value_special(byte: u8) -> bool {
    let is_space = (byte == b'\t') | (byte == b'\n') | (byte == b'\r');
    (byte == b'&') | (byte == b'<') | (byte == b'"') | is_space
}

#[inline(always)]
fn write_escaped(
    out: &mut Vec<u8>,
    text: &[u8],
    class: u8,
    is_special: impl Fn(u8) -> bool,
    escape: impl Fn(u8) -> &'static [u8],
) {
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(chunk) = rest.first_chunk::<CHUNK>() {
            // Without a branch in it, so that it is done with vectors.
            if !chunk.iter().fold(false, |found, &byte| found | is_special(byte)) {
                at += CHUNK;
                continue;
            }
        }
        let end = text.len().min(at + CHUNK);
        for (&byte, place) in rest.iter().zip(at..end) {
            if CLASS[byte as usize] & class != 0 {
                out.extend_from_slice(&text[copied..place]);
                out.extend_from_slice(escape(byte));
                copied = place + 1;
            }
        }
        at = end;
    }
    out.extend_from_slice(&text[copied..]);
}
