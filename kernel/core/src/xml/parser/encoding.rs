//! Bytes to text: which encoding a message is in, whether it says the truth about it, and where a
//! place in the text lies in the bytes (4.3.3 and appendix F of the recommendation).
//!
//! The caller's word (say, a charset parameter) goes before the byte order mark, that before the
//! declaration. A declaration that names another encoding than the one the bytes are in is an
//! error, unless the caller has overruled it.

use super::declaration::Declaration;
use super::refusal::{Code, Fault, Step};
use encoding_rs::{
    DecoderResult, Encoding, UTF_16BE, UTF_16LE, WINDOWS_874, WINDOWS_1252, WINDOWS_1254,
};

/// How bytes become characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    /// Seven bits, strictly.
    Ascii,
    /// UTF-16 of either order; the message shows which.
    Utf16,
    Utf16Le,
    Utf16Be,
    /// ISO-8859-1: byte = character. (For the web that name means windows-1252; for XML it does not.)
    Latin1,
    /// A part of ISO-8859 that the web takes for a Windows code page: as that one, but with the C1
    /// controls where they are in ISO-8859.
    Iso(&'static Encoding),
    /// Anything else.
    Other(&'static Encoding),
}

impl Charset {
    /// The charset of a label, without regard to case.
    pub(crate) fn of(label: &str) -> Option<Charset> {
        let lower = label.trim().to_ascii_lowercase();
        match lower.as_str() {
            "utf-16" | "iso-10646-ucs-2" | "ucs-2" => return Some(Charset::Utf16),
            "utf-16le" => return Some(Charset::Utf16Le),
            "utf-16be" => return Some(Charset::Utf16Be),
            "latin-1" => return Some(Charset::Latin1),
            _ => {}
        }
        let encoding = Encoding::for_label_no_replacement(lower.as_bytes())?;
        let is_windows = lower.contains("125") || lower.contains("874");
        Some(if encoding == encoding_rs::UTF_8 {
            Charset::Utf8
        } else if encoding == UTF_16LE {
            Charset::Utf16
        } else if encoding == WINDOWS_1252 && (lower.contains("ascii") || lower.starts_with("ansi"))
        {
            Charset::Ascii
        } else if encoding == WINDOWS_1252 && !is_windows {
            Charset::Latin1
        } else if (encoding == WINDOWS_1254 || encoding == WINDOWS_874) && !is_windows {
            Charset::Iso(encoding)
        } else {
            Charset::Other(encoding)
        })
    }

    /// Name for a message to a person.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Charset::Utf8 => "UTF-8",
            Charset::Ascii => "US-ASCII",
            Charset::Utf16 => "UTF-16",
            Charset::Utf16Le => "UTF-16LE",
            Charset::Utf16Be => "UTF-16BE",
            Charset::Latin1 => "ISO-8859-1",
            Charset::Iso(encoding) if encoding == WINDOWS_1254 => "ISO-8859-9",
            Charset::Iso(_) => "ISO-8859-11",
            Charset::Other(encoding) => encoding.name(),
        }
    }

    fn is_wide(self) -> bool {
        matches!(self, Charset::Utf16 | Charset::Utf16Le | Charset::Utf16Be)
    }
}

/// What the bytes of a message are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detected {
    pub(crate) charset: Charset,
    /// Bytes of the byte order mark.
    pub(crate) mark: usize,
    /// The declaration has no say: the caller has spoken.
    pub(crate) is_given: bool,
}

/// Finds out the encoding of a message.
pub(super) fn detect(bytes: &[u8], given: Option<&str>) -> Step<Detected> {
    if let Some(label) = given {
        let charset = Charset::of(label)
            .ok_or_else(|| Fault::new(Code::EncodingUnknown, 0).text("encoding", label))?;
        return Ok(detect_given(bytes, charset));
    }
    let found = |charset, mark| Ok(Detected { charset, mark, is_given: false });
    match bytes {
        [0xEF, 0xBB, 0xBF, ..] => found(Charset::Utf8, 3),
        [0, 0, 0xFE, 0xFF, ..]
        | [0xFF, 0xFE, 0, 0, ..]
        | [0, 0, 0, b'<', ..]
        | [b'<', 0, 0, 0, ..] => {
            Err(Fault::new(Code::EncodingUnknown, 0).text("encoding", "UTF-32"))
        }
        [0xFE, 0xFF, ..] => found(Charset::Utf16Be, 2),
        [0xFF, 0xFE, ..] => found(Charset::Utf16Le, 2),
        [0, b'<', ..] => found(Charset::Utf16Be, 0),
        [b'<', 0, ..] => found(Charset::Utf16Le, 0),
        [0x4C, 0x6F, 0xA7, 0x94, ..] => {
            Err(Fault::new(Code::EncodingUnknown, 0).text("encoding", "EBCDIC"))
        }
        _ => found(declared(bytes)?, 0),
    }
}

fn detect_given(bytes: &[u8], given: Charset) -> Detected {
    let (charset, mark) = match (given, bytes) {
        (Charset::Utf8, [0xEF, 0xBB, 0xBF, ..]) => (given, 3),
        (Charset::Utf16 | Charset::Utf16Be, [0xFE, 0xFF, ..]) => (Charset::Utf16Be, 2),
        (Charset::Utf16 | Charset::Utf16Le, [0xFF, 0xFE, ..]) => (Charset::Utf16Le, 2),
        (Charset::Utf16, [_, 0, ..]) => (Charset::Utf16Le, 0),
        (Charset::Utf16, _) => (Charset::Utf16Be, 0),
        _ => (given, 0),
    };
    Detected { charset, mark, is_given: true }
}

/// The charset that a message without byte order mark, of bytes that hold ASCII, says it is in.
fn declared(bytes: &[u8]) -> Step<Charset> {
    let Some(declaration) = Declaration::read(bytes)? else {
        return Ok(Charset::Utf8);
    };
    let Some((start, end)) = declaration.encoding else {
        return Ok(Charset::Utf8);
    };
    let label = String::from_utf8_lossy(&bytes[start..end]);
    match Charset::of(&label) {
        None => Err(Fault::new(Code::EncodingUnknown, start).text("encoding", &label)),
        Some(charset) if charset.is_wide() => {
            Err(mismatch(&label, "an encoding of 8-bit units", start))
        }
        Some(charset) => Ok(charset),
    }
}

fn mismatch(declared: &str, found: &str, at: usize) -> Box<Fault> {
    Fault::new(Code::EncodingMismatch, at).text("declared", declared).text("found", found)
}

/// Checks what a declaration says of the encoding against the encoding the message is in.
pub(super) fn check_declared(label: &str, detected: Detected, at: usize) -> Step<()> {
    if detected.is_given {
        return Ok(());
    }
    let found = detected.charset;
    let is_same = match Charset::of(label) {
        Some(Charset::Utf16) => found.is_wide(),
        Some(charset) => charset == found,
        None => false,
    };
    if is_same { Ok(()) } else { Err(mismatch(label, found.name(), at)) }
}

/// Decodes a message that is not UTF-8 (or ASCII) into `out`, which is empty.
pub(super) fn decode(bytes: &[u8], charset: Charset, out: &mut String) -> Step<()> {
    let encoding = match charset {
        Charset::Latin1 => {
            out.reserve(bytes.len() + bytes.len() / 8);
            out.extend(bytes.iter().map(|&byte| char::from(byte)));
            return Ok(());
        }
        Charset::Iso(encoding) => return decode_iso(bytes, charset, encoding, out),
        Charset::Utf16Be => UTF_16BE,
        Charset::Utf16 | Charset::Utf16Le => UTF_16LE,
        Charset::Utf8 | Charset::Ascii => encoding_rs::UTF_8,
        Charset::Other(encoding) => encoding,
    };
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    out.reserve(room.unwrap_or(0));
    match decoder.decode_to_string_without_replacement(bytes, out, true).0 {
        DecoderResult::InputEmpty => Ok(()),
        _ => Err(invalid(charset, out.len())),
    }
}

fn decode_iso(
    bytes: &[u8],
    charset: Charset,
    encoding: &'static Encoding,
    out: &mut String,
) -> Step<()> {
    for run in bytes.chunk_by(|a, b| is_c1(*a) == is_c1(*b)) {
        if is_c1(run[0]) {
            out.extend(run.iter().map(|&byte| char::from(byte)));
            continue;
        }
        let mut decoder = encoding.new_decoder_without_bom_handling();
        out.reserve(decoder.max_utf8_buffer_length_without_replacement(run.len()).unwrap_or(0));
        let (result, _) = decoder.decode_to_string_without_replacement(run, out, true);
        if result != DecoderResult::InputEmpty {
            return Err(invalid(charset, out.len()));
        }
    }
    Ok(())
}

fn is_c1(byte: u8) -> bool {
    (0x80..0xA0).contains(&byte)
}

/// The bytes are not text of this charset; `at` is the place in what could be decoded.
pub(super) fn invalid(charset: Charset, at: usize) -> Box<Fault> {
    Fault::new(Code::EncodingInvalid, at).text("encoding", charset.name())
}

/// Byte of the message, its byte order mark left out, where byte `at` of the decoded text begins.
pub(super) fn original_offset(charset: Charset, bytes: &[u8], text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    match charset {
        Charset::Utf8 | Charset::Ascii => at,
        Charset::Utf16 | Charset::Utf16Le | Charset::Utf16Be => 2 * before.encode_utf16().count(),
        Charset::Other(encoding) if !encoding.is_single_byte() => {
            multibyte_offset(encoding, bytes, before.len())
        }
        _ => before.chars().count(),
    }
}

/// Decodes again until `wanted` bytes of text have come out; gives the bytes that went in.
fn multibyte_offset(encoding: &'static Encoding, bytes: &[u8], wanted: usize) -> usize {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut buffer = [0; 4096];
    let (mut produced, mut consumed) = (0, 0);
    // In large steps while there is room to spare, then byte by byte up to the very place.
    while consumed < bytes.len() && produced < wanted {
        let room = wanted - produced;
        let (input, output) = if room > 64 {
            (&bytes[consumed..], &mut buffer[..room.min(4096)])
        } else {
            (&bytes[consumed..consumed + 1], &mut buffer[..])
        };
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(input, output, false);
        produced += written;
        consumed += read;
        if matches!(result, DecoderResult::Malformed(..)) {
            break;
        }
    }
    consumed
}
