//! Characters of XML, and references to them in literals and constructors.

/// The reference that begins right here: its length, and the character that it stands for, if there is one.
pub(crate) fn referred(rest: &str) -> Option<(usize, Option<char>)> {
    let name = &rest[1..rest.find(';')?];
    let character = match (name, name.strip_prefix('#')) {
        ("lt", _) => Some('<'),
        ("gt", _) => Some('>'),
        ("amp", _) => Some('&'),
        ("quot", _) => Some('"'),
        ("apos", _) => Some('\''),
        (_, Some(digits)) => {
            let number = match digits.strip_prefix('x') {
                Some(hex) if is_made_of(hex, |byte| byte.is_ascii_hexdigit()) => number_of(hex, 16),
                None if is_made_of(digits, |byte| byte.is_ascii_digit()) => number_of(digits, 10),
                _ => return None,
            };
            number.and_then(char::from_u32).filter(|&c| is_xml_character(c))
        }
        _ => return None,
    };
    Some((name.len() + 2, character))
}

fn is_made_of(digits: &str, is_digit: impl Fn(u8) -> bool) -> bool {
    !digits.is_empty() && digits.bytes().all(is_digit)
}

fn number_of(digits: &str, radix: u32) -> Option<u32> {
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() { Some(0) } else { u32::from_str_radix(significant, radix).ok() }
}

/// Whether XML has a character.
pub(crate) fn is_xml_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}
