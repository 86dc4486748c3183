//! The token that a refusal is about.
//!
//! The disambiguation rules of XPath 1.0 (section 3.7) say which it is: after an operand `*` is the multiplication sign
//! and a name an operator; a name before `::` is an axis. Beyond XPath 1.0 there are `<>`, `*:name` and `Q{uri}name`.

use crate::language::grammar::names::{Written, ncname_length, qname_length, written_name};
use crate::language::grammar::scan::{decimal_length, is_blank};
use crate::language::refusal::Reason;

/// What is no token: the reason, where it is noticed, and the words of the text that say why.
pub(super) struct Fault<'t> {
    pub(super) reason: Reason,
    pub(super) offset: usize,
    pub(super) words: &'t str,
}

/// Symbols of two characters.
const SYMBOLS: [&str; 7] = ["..", "::", "//", "!=", "<>", "<=", ">="];

/// Where the token ends that begins right here; at the end of the text, here.
#[cold]
pub(super) fn token_end(
    text: &str,
    start: usize,
    is_after_operand: bool,
) -> Result<usize, Fault<'_>> {
    let rest = &text[start..];
    let fault = |reason, offset, words| Err(Fault { reason, offset: start + offset, words });
    let Some(first) = rest.chars().next() else { return Ok(start) };
    let is_colon = |at: usize| rest[at..].starts_with(':') && !rest[at + 1..].starts_with(':');
    match first {
        '*' if is_after_operand || !is_colon(1) => return Ok(start + 1),
        '*' => {
            return match ncname_length(&rest[2..]) {
                0 => fault(Reason::NoLocalName, 2, &rest[..2]),
                length => Ok(start + 2 + length),
            };
        }
        _ => {}
    }
    if is_after_operand {
        match &rest[..ncname_length(rest)] {
            "" => {}
            word @ ("and" | "or" | "mod" | "div") => return Ok(start + word.len()),
            word => return fault(Reason::NoOperator, 0, word),
        }
    } else if let Some((written, length)) = written_name(rest) {
        let after = rest[length..].trim_start_matches(is_blank);
        return match written {
            Written::Plain("Q") if rest[1..].starts_with('{') => fault(Reason::OpenBraces, 0, ""),
            Written::Plain(_) if is_colon(length) => {
                fault(Reason::NoLocalName, length + 1, &rest[..length + 1])
            }
            Written::Plain(_) if after.starts_with("::") => Ok(text.len() - after.len() + 2),
            _ => Ok(start + length),
        };
    }
    match first {
        '.' | '0'..='9' if first != '.' || rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(start + decimal_length(rest))
        }
        '\'' | '"' => match rest[1..].find(first) {
            Some(length) => Ok(start + length + 2),
            None => fault(Reason::OpenString, 0, &rest[..1]),
        },
        '$' => match qname_length(&rest[1..]) {
            0 => fault(Reason::NoVariableName, 0, ""),
            length => Ok(start + 1 + length),
        },
        _ if SYMBOLS.iter().any(|symbol| rest.starts_with(symbol)) => Ok(start + 2),
        _ if ".()[]@,/<>=|+-".contains(first) => Ok(start + 1),
        _ => fault(Reason::NoToken, 0, &rest[..first.len_utf8()]),
    }
}
