//! Escaping (XML 1.0, 2.4, 2.11, 3.3.3).

/// Bytes looked at together; short enough that little is looked at twice.
const CHUNK: usize = 32;

/// Writes character data: `&`, `<`, `>` and carriage returns, which a parser would take for line
/// ends, as references.
///
/// ```
/// let mut out = Vec::new();
/// pathcast_core::output::write_text(&mut out, b"1 < 2\r\n & ]]>");
/// assert_eq!(out, b"1 &lt; 2&#13;\n &amp; ]]&gt;");
/// ```
///
/// Cost: one pass; runs without these characters are copied whole.
pub fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    write_escaped(out, text, is_text_special, |byte| match byte {
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
/// pathcast_core::output::write_attribute_value(&mut out, b"\"a\"\t>\n<b>");
/// assert_eq!(out, b"&quot;a&quot;&#9;>&#10;&lt;b>");
/// ```
///
/// Cost: as [`write_text`].
pub fn write_attribute_value(out: &mut Vec<u8>, value: &[u8]) {
    write_escaped(out, value, is_value_special, |byte| match byte {
        b'&' => b"&amp;",
        b'<' => b"&lt;",
        b'"' => b"&quot;",
        b'\t' => b"&#9;",
        b'\n' => b"&#10;",
        _ => b"&#13;",
    });
}

#[inline(always)]
fn is_text_special(byte: u8) -> bool {
    (byte == b'&') | (byte == b'<') | (byte == b'>') | (byte == b'\r')
}

#[inline(always)]
fn is_value_special(byte: u8) -> bool {
    let is_space = (byte == b'\t') | (byte == b'\n') | (byte == b'\r');
    (byte == b'&') | (byte == b'<') | (byte == b'"') | is_space
}

#[inline(always)]
fn write_escaped(
    out: &mut Vec<u8>,
    text: &[u8],
    is_special: impl Fn(u8) -> bool,
    escape: impl Fn(u8) -> &'static [u8],
) {
    out.reserve(text.len());
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let chunk = &text[at..text.len().min(at + CHUNK)];
        // Without a branch in it, so that it is done with vectors.
        let is_clean = !chunk.iter().fold(false, |found, &byte| found | is_special(byte));
        if !is_clean {
            for (offset, &byte) in chunk.iter().enumerate().filter(|(_, byte)| is_special(**byte)) {
                out.extend_from_slice(&text[copied..at + offset]);
                out.extend_from_slice(escape(byte));
                copied = at + offset + 1;
            }
        }
        at += chunk.len();
    }
    out.extend_from_slice(&text[copied..]);
}
