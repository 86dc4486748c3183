//! What stands before the root element of a file of many messages: read by the grammar of the door,
//! and written before each of them.

use super::declaration::Declaration;
use super::doctype::read_doctype;
use super::encoding::{self, Charset, Detected};
use super::full_tree::read_misc;
use super::limits::{DtdPolicy, Limits};
use super::observer::TreeOnly;
use super::prolog::check_root;
use super::references::Expansion;
use super::refusal::{Code, Fault, Refusal, Step};
use super::{chars, refusal_at};
use crate::xml::tree::MessageTree;

/// No word of a declaration is longer.
const WORD_BYTES: usize = 64;

/// The prolog of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// What a part of the file needs before it to be read as in the file: the XML declaration, where
    /// the file is not in UTF-8, and the document type declaration, where there is one (both then).
    pub carried: Vec<u8>,
    /// The first byte of the root element.
    pub root: usize,
    /// There is a document type declaration.
    pub has_doctype: bool,
}

/// Reads the prolog from the first bytes of a file.
///
/// Gives nothing when more of the file is needed, which cannot be where `is_whole`.
///
/// # Errors
///
/// What the door would refuse; and an encoding whose markup cannot be found byte by byte: one of
/// 16 or 32 bits, or of several bytes a character other than UTF-8.
pub fn read_head(bytes: &[u8], is_whole: bool, limits: &Limits) -> Result<Option<Head>, Refusal> {
    if !is_whole && (bytes.len() < 4 || is_cut_declaration(bytes)) {
        return Ok(None);
    }
    let early = Detected { charset: Charset::Latin1, mark: 0, is_given: false };
    let detected = match encoding::detect(bytes, None).and_then(check_charset) {
        Ok(detected) => detected,
        Err(fault) if fault.code == Code::End && !is_whole => return Ok(None),
        Err(fault) => return Err(refusal_at(*fault, bytes, early, "")),
    };
    let body = &bytes[detected.mark..];
    let mut decoded = String::new();
    let text = match detected.charset {
        Charset::Utf8 | Charset::Ascii => {
            // What follows may be cut inside a character; the root element begins before that.
            let good = std::str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
            std::str::from_utf8(&body[..good]).unwrap_or("")
        }
        charset => match encoding::decode(body, charset, &mut decoded) {
            Ok(()) => decoded.as_str(),
            Err(fault) => return Err(refusal_at(*fault, bytes, detected, &decoded)),
        },
    };
    // Reading stops short of the first character that XML does not have.
    let illegal = chars::first_illegal(text, chars::survey(text.as_bytes()));
    let legal = &text[..illegal.unwrap_or(text.len())];
    match read(legal, detected, limits) {
        Ok((declaration, doctype, root)) => {
            let in_bytes = |at| encoding::original_offset(detected.charset, body, text, at);
            let mut carried = Vec::new();
            if detected.charset != Charset::Utf8 || doctype.1 > doctype.0 {
                carried.extend_from_slice(&body[..in_bytes(declaration)]);
            }
            carried.extend_from_slice(&body[in_bytes(doctype.0)..in_bytes(doctype.1)]);
            let root = detected.mark + in_bytes(root);
            Ok(Some(Head { carried, root, has_doctype: doctype.1 > doctype.0 }))
        }
        // A word that is cut is no fault of the file's.
        Err(fault)
            if !is_whole
                && illegal.is_none()
                && (fault.code == Code::End || text.len() < fault.at + WORD_BYTES) =>
        {
            Ok(None)
        }
        Err(fault) => {
            let fault = match illegal {
                Some(at) if fault.code == Code::End => {
                    let c = text[at..].chars().next().map_or(0, u32::from);
                    Fault::new(Code::Character, at).text("character", &format!("U+{c:04X}"))
                }
                _ => fault,
            };
            Err(refusal_at(*fault, bytes, detected, text))
        }
    }
}

/// Whether there is a beginning of an XML declaration, and not its end.
fn is_cut_declaration(bytes: &[u8]) -> bool {
    let body = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    body.starts_with(b"<?xml") && memchr::memmem::find(body, b"?>").is_none()
}

/// Bytes below 0x80 must stand for themselves and for nothing else.
fn check_charset(detected: Detected) -> Step<Detected> {
    let is_fit = match detected.charset {
        Charset::Utf8 | Charset::Ascii | Charset::Latin1 | Charset::Iso(_) => true,
        Charset::Other(encoding) => encoding.is_single_byte(),
        Charset::Utf16 | Charset::Utf16Le | Charset::Utf16Be => false,
    };
    if is_fit {
        return Ok(detected);
    }
    let name = format!("{} (in a file of records; UTF-8 is)", detected.charset.name());
    Err(Fault::new(Code::EncodingUnknown, 0).text("encoding", &name))
}

/// The ends of the XML declaration, of the document type declaration (with its start) and of the
/// prolog.
fn read(text: &str, detected: Detected, limits: &Limits) -> Step<(usize, (usize, usize), usize)> {
    let (mut declared, mut is_standalone) = (0, false);
    if let Some(declaration) = Declaration::read(text.as_bytes())? {
        if let Some((start, end)) = declaration.encoding {
            encoding::check_declared(&text[start..end], detected, start)?;
        }
        (declared, is_standalone) = (declaration.end, declaration.is_standalone);
    }
    let mut unused = MessageTree::default();
    let mut at = read_misc(text, declared, &mut unused, false, &mut TreeOnly)?;
    let mut doctype = (at, at);
    if text.as_bytes()[at..].starts_with(b"<!DOCTYPE") {
        if limits.dtd == DtdPolicy::Refuse {
            return Err(Fault::new(Code::DtdRefused, at));
        }
        let expansion = Expansion::new(text.len() as u64);
        let end = read_doctype(text, at, limits, is_standalone, expansion)?.2;
        doctype = (at, end);
        at = read_misc(text, end, &mut unused, false, &mut TreeOnly)?;
    }
    check_root(text, at)?;
    // A name has to be there, or its first byte.
    if text.len() < at + 2 {
        return Err(Fault::end("the prolog; there is no root element", text.len()));
    }
    Ok((declared, doctype, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(bytes: &[u8]) -> Head {
        read_head(bytes, true, &Limits::default()).unwrap().unwrap()
    }

    #[test]
    fn what_a_record_needs_is_carried_and_nothing_else() {
        assert_eq!(head(b"<a/>"), Head { carried: vec![], root: 0, has_doctype: false });
        assert_eq!(head(b"\xEF\xBB\xBF<?xml version='1.0'?>\n<!-- x --><a/>").root, 35);
        assert_eq!(head(b"<?xml version='1.0'?><a/>").carried, b"");
        let declared = b"<?xml version='1.0' encoding='ISO-8859-1'?><!--\xe9--><a/>";
        assert_eq!(head(declared).carried, &declared[..43]);
        assert_eq!(head(declared).root, 51);
        let typed = b"<?xml version='1.0'?><!--x--><!DOCTYPE a [<!ENTITY e '<b>'>]> <a/>";
        assert_eq!(head(typed).carried, b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e '<b>'>]>");
    }

    /// Fails when a cut prolog is refused, or one is taken for whole.
    #[test]
    fn a_prolog_that_is_cut_anywhere_asks_for_more() {
        let whole = "\u{FEFF}<?xml version='1.0' encoding='utf-8'?><!-- é --><?p q?>\
            <!DOCTYPE a [<!ENTITY e '<b>'> <!ATTLIST a b CDATA 'é'> %p; ]> <a b='1'/>";
        let root = head(whole.as_bytes()).root;
        for cut in 0..root + 2 {
            let found = read_head(&whole.as_bytes()[..cut], false, &Limits::default());
            assert_eq!(found, Ok(None), "{cut}");
        }
        let found = read_head(&whole.as_bytes()[..root + 2], false, &Limits::default());
        assert_eq!(found.unwrap().unwrap().root, root);
    }

    #[test]
    fn an_encoding_that_is_not_one_byte_a_character_is_refused_by_name() {
        for bytes in [
            &b"\xFF\xFE<\0a\0/\0>\0"[..],
            b"<?xml version='1.0' encoding='Shift_JIS'?><a/>",
            b"<?xml version='1.0' encoding='ISO-2022-JP'?><a/>",
        ] {
            let refusal = read_head(bytes, true, &Limits::default()).unwrap_err();
            assert_eq!(refusal.code, Code::EncodingUnknown);
        }
    }
}
