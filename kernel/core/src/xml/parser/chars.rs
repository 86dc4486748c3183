//! Classes of characters: XML 1.0 (fifth edition), productions 2 (Char), 3 (S), 4 and 4a (Name),
//! 13 (PubidChar).
//!
//! The scanner asks about bytes: a byte of 0x80 and above counts as part of a name until the name
//! is met for the first time, when its characters are checked once and for all.

/// Byte does not end a name in content. Some of these, such as brackets, cannot be part of a name
/// either; they are found when the name is met for the first time.
pub(crate) const NAME: u8 = 1;
/// White space.
pub(crate) const SPACE: u8 = 2;
/// Byte ends a run of character data that can be taken as it is.
pub(super) const TEXT_STOP: u8 = 4;
/// Byte ends a run of an attribute value that can be taken as it is.
pub(super) const VALUE_STOP: u8 = 8;
/// Byte may be part of a name.
const EXACT_NAME: u8 = 16;

/// Class bits of every byte.
pub(super) static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'-' | b'.') || b >= 0x80 {
            class |= EXACT_NAME;
        }
        if !(b < b'-' || b == b'/' || matches!(b, b';'..=b'?')) {
            class |= NAME;
        }
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
            class |= SPACE;
        }
        if matches!(b, b'<' | b'&' | b']') {
            class |= TEXT_STOP;
        }
        if matches!(b, b'<' | b'&' | b'"' | b'\'' | b'\t' | b'\n' | b'\r') {
            class |= VALUE_STOP;
        }
        table[byte] = class;
        byte += 1;
    }
    table
}

/// Whether a byte has one of the classes.
#[inline(always)]
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// First byte from `at` on that ends a name in content.
#[inline(always)]
pub(crate) fn name_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(chunk) = bytes.get(end..).and_then(|rest| rest.first_chunk::<8>()) {
        let stops = name_stops(u64::from_le_bytes(*chunk));
        if stops == 0 {
            end += 8;
            continue;
        }
        end += (stops.trailing_zeros() / 8) as usize;
        if !is(bytes[end], NAME) {
            return end;
        }
        end += 1;
    }
    while bytes.get(end).is_some_and(|&byte| is(byte, NAME)) {
        end += 1;
    }
    end
}

/// First byte from `at` on that cannot be part of a name.
pub(super) fn exact_name_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    at + rest.iter().position(|&byte| !is(byte, EXACT_NAME)).unwrap_or(rest.len())
}

/// The bytes of a word that may end a name, by their highest bits: blanks and all up to the comma,
/// the slash, and 0x38 to 0x3F, of which two digits and the colon do not end one after all.
#[inline(always)]
fn name_stops(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // In each, the lowest byte that is marked is right; a borrow reaches higher ones only.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGH;
    below(word, 0x2D)
        | below(word ^ (ONES * 0x2F), 1)
        | below((word & (ONES * 0xF8)) ^ (ONES * 0x38), 1)
}

/// First byte from `at` on that is not white space.
#[inline(always)]
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && is(bytes[at], SPACE) {
        at += 1;
    }
    at
}

/// Production 2.
pub(super) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Production 4, without the colon.
pub(crate) fn is_ncname_start(c: char) -> bool {
    matches!(c,
        'A'..='Z' | '_' | 'a'..='z'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// Production 4a, without the colon.
pub(crate) fn is_ncname_char(c: char) -> bool {
    is_ncname_start(c)
        || matches!(c,
            '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Production 13.
pub(super) fn is_pubid_char(c: char) -> bool {
    matches!(c, ' ' | '\r' | '\n' | 'a'..='z' | 'A'..='Z' | '0'..='9')
        || "-'()+,./:=?;!*#@$_%".contains(c)
}

/// Byte offset in `name` of the first character that production 5 (Name) does not allow there.
pub(super) fn name_fault(name: &str) -> Option<usize> {
    for (at, c) in name.char_indices() {
        let fits = c == ':' || if at == 0 { is_ncname_start(c) } else { is_ncname_char(c) };
        if !fits {
            return Some(at);
        }
    }
    if name.is_empty() { Some(0) } else { None }
}

/// What one look over the whole message tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    /// There is a carriage return, so line ends must be normalised.
    pub(crate) has_return: bool,
    /// All bytes are below 0x80.
    pub(crate) is_ascii: bool,
    /// A byte below 0x20 that is no white space.
    pub(crate) has_control: bool,
}

/// One vectorisable pass over the message.
pub(super) fn survey(bytes: &[u8]) -> Survey {
    let (mut high, mut control, mut returns) = (0u8, 0u8, 0u8);
    for &byte in bytes {
        let is_return = (byte == b'\r') as u8;
        let is_space = (byte == b'\t') as u8 | (byte == b'\n') as u8 | is_return;
        high |= byte;
        control |= ((byte < 0x20) as u8) ^ is_space;
        returns |= is_return;
    }
    Survey { has_return: returns != 0, is_ascii: high < 0x80, has_control: control != 0 }
}

/// First byte of the first character that production 2 does not allow.
pub(super) fn first_illegal(text: &str, survey: Survey) -> Option<usize> {
    let control = if survey.has_control {
        text.bytes().position(|b| b < 0x20 && !is(b, SPACE))
    } else {
        None
    };
    if survey.is_ascii {
        return control;
    }
    // U+FFFE and U+FFFF are the only others that UTF-8 can hold.
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = memchr::memchr(0xEF, &bytes[from..]) {
        let at = from + found;
        if control.is_some_and(|control| control < at) {
            break;
        }
        if bytes[at + 1] == 0xBF && bytes[at + 2] >= 0xBE {
            return Some(at);
        }
        from = at + 3;
    }
    control
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when where a name ends depends on where it lies.
    #[test]
    fn a_name_ends_at_the_same_byte_whatever_follows() {
        for byte in 0..=255u8 {
            let ends = !is(byte, NAME);
            for before in 0..20 {
                for after in [0, 3, 9, 30] {
                    let text = [vec![b'n'; before], vec![byte], vec![b'm'; after]].concat();
                    let expected = if ends { before } else { text.len() };
                    assert_eq!(name_end(&text, 0), expected, "{byte} {before} {after}");
                }
            }
        }
    }

    /// Fails when a character of a name ends one.
    #[test]
    fn every_byte_of_a_name_goes_on() {
        for byte in 0..=255 {
            assert!(!is(byte, EXACT_NAME) || is(byte, NAME), "{byte}");
        }
    }
}
