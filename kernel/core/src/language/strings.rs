//! String functions on UTF-8 (XPath 1.0, 4.2). Characters are Unicode code points.

use super::number_text::round;
use super::numbers::is_blank;
use memchr::memmem;
use std::borrow::Cow;
use std::cmp::Ordering;
use unicode_normalization::UnicodeNormalization;

type Text<'a> = Cow<'a, [u8]>;

/// Number of characters. The text is valid UTF-8.
pub(crate) fn char_count(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| is_first(byte)).count()
}

/// Whether a byte is the first of its character.
fn is_first(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// A part of a text, without a copy if it lies in the message.
fn part(text: Text<'_>, start: usize, end: usize) -> Text<'_> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            text.drain(..start);
            Cow::Owned(text)
        }
    }
}

/// Where a mark begins in a text, by the collation of code points or by the case-blind one, to which the letters of
/// ASCII are the same in both cases, and which leaves all lengths as they are.
fn place_of(text: &[u8], mark: &[u8], is_case_blind: bool) -> Option<usize> {
    match is_case_blind {
        true => memmem::find(&text.to_ascii_lowercase(), &mark.to_ascii_lowercase()),
        false => memmem::find(text, mark),
    }
}

/// The order of two texts by a collation: the case-blind one has that of the texts in capital letters.
pub(crate) fn order_of(left: &[u8], right: &[u8], is_case_blind: bool) -> Ordering {
    match is_case_blind {
        true => {
            let right = right.iter().map(u8::to_ascii_uppercase);
            left.iter().map(u8::to_ascii_uppercase).cmp(right)
        }
        false => left.cmp(right),
    }
}

/// `substring-before()`.
pub(crate) fn before<'a>(text: Text<'a>, mark: &[u8], is_case_blind: bool) -> Text<'a> {
    match place_of(&text, mark, is_case_blind) {
        Some(at) => part(text, 0, at),
        None => Cow::Borrowed(b""),
    }
}

/// `substring-after()`.
pub(crate) fn after<'a>(text: Text<'a>, mark: &[u8], is_case_blind: bool) -> Text<'a> {
    match place_of(&text, mark, is_case_blind) {
        Some(at) => {
            let end = text.len();
            part(text, at + mark.len(), end)
        }
        None => Cow::Borrowed(b""),
    }
}

/// `substring()`: the characters whose position p, from 1, is `p >= round(start)` and
/// `p < round(start) + round(length)`. Comparisons with NaN are false.
pub(crate) fn substring<'a>(text: Text<'a>, start: f64, length: Option<f64>) -> Text<'a> {
    let first = round(start);
    let end = length.map_or(f64::INFINITY, |length| first + round(length));
    let takes = |position: usize| position as f64 >= first && (position as f64) < end;
    let mut position = 0;
    let mut from = None;
    let mut to = text.len();
    for (at, &byte) in text.iter().enumerate() {
        if !is_first(byte) {
            continue;
        }
        position += 1;
        match (from, takes(position)) {
            (None, true) => from = Some(at),
            (Some(_), false) => {
                to = at;
                break;
            }
            _ => {}
        }
    }
    match from {
        Some(from) => part(text, from, to),
        None => Cow::Borrowed(b""),
    }
}

/// `normalize-space()`.
pub(crate) fn normalized(text: Text<'_>) -> Text<'_> {
    if is_normal(&text) {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    for word in text.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
    Cow::Owned(out)
}

/// Whether `normalize-space()` leaves a text as it is.
pub(crate) fn is_normal(text: &[u8]) -> bool {
    let has_odd = |pair: &[u8]| is_blank(pair[0]) && (pair[0] != b' ' || is_blank(pair[1]));
    !text.first().is_some_and(|&byte| is_blank(byte))
        && !text.last().is_some_and(|&byte| is_blank(byte))
        && !text.windows(2).any(has_odd)
}

/// `translate()`. Cost: the text, and once the other two; characters beyond ASCII are looked up.
pub(crate) fn translated(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let table = Table::new(from, to);
    let mut out = Vec::with_capacity(text.len());
    for character in characters(text) {
        match table.of(character) {
            None => out.extend_from_slice(character),
            Some(replacement) => out.extend_from_slice(replacement),
        }
    }
    out
}

/// What each character becomes; nothing for those that fall away.
struct Table<'t> {
    ascii: [Option<&'t [u8]>; 128],
    others: Vec<(&'t [u8], &'t [u8])>,
}

impl<'t> Table<'t> {
    fn new(from: &'t [u8], to: &'t [u8]) -> Self {
        let mut table = Table { ascii: [None; 128], others: Vec::new() };
        let mut replacements = characters(to);
        for character in characters(from) {
            let replacement = replacements.next().unwrap_or(b"");
            match *character {
                // The first time a character comes up counts.
                [byte] => {
                    table.ascii[usize::from(byte)].get_or_insert(replacement);
                }
                _ => table.others.push((character, replacement)),
            }
        }
        table.others.sort_by_key(|&(character, _)| character);
        table.others.dedup_by_key(|&mut (character, _)| character);
        table
    }

    fn of(&self, character: &[u8]) -> Option<&'t [u8]> {
        if let [byte] = *character {
            return self.ascii[usize::from(byte)];
        }
        let at = self.others.binary_search_by_key(&character, |&(character, _)| character).ok()?;
        Some(self.others[at].1)
    }
}

/// The characters of a text, as bytes.
fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunk_by(|_, &byte| !is_first(byte))
}

/// A text in a normal form of Unicode; as it is if there is no such form.
pub(crate) fn in_normal_form(text: &str, form: &str) -> String {
    match form.trim().to_ascii_uppercase().as_str() {
        "NFC" => text.nfc().collect(),
        "NFD" => text.nfd().collect(),
        "NFKC" => text.nfkc().collect(),
        "NFKD" => text.nfkd().collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn substring_of(text: &str, start: f64, length: Option<f64>) -> String {
        let part = substring(Cow::Borrowed(text.as_bytes()), start, length);
        String::from_utf8(part.into_owned()).unwrap_or_default()
    }

    #[test]
    fn substring_follows_the_examples_of_the_recommendation() {
        assert_eq!(substring_of("12345", 1.5, Some(2.6)), "234");
        assert_eq!(substring_of("12345", 0.0, Some(3.0)), "12");
        assert_eq!(substring_of("12345", f64::NAN, Some(3.0)), "");
        assert_eq!(substring_of("12345", 1.0, Some(f64::NAN)), "");
        assert_eq!(substring_of("12345", -42.0, Some(f64::INFINITY)), "12345");
        assert_eq!(substring_of("12345", f64::NEG_INFINITY, Some(f64::INFINITY)), "");
        assert_eq!(substring_of("12345", 2.0, None), "2345");
        assert_eq!(substring_of("aéß漢𝄞z", 3.0, Some(3.0)), "ß漢𝄞");
    }

    #[test]
    fn translate_maps_characters_and_the_first_mention_counts() {
        let translate = |text: &str, from: &str, to: &str| {
            let out = translated(text.as_bytes(), from.as_bytes(), to.as_bytes());
            String::from_utf8(out).unwrap_or_default()
        };
        assert_eq!(translate("bar", "abc", "ABC"), "BAr");
        assert_eq!(translate("--aaa--", "abc-", "ABC"), "AAA");
        assert_eq!(translate("aéa", "éaé", "xyz"), "yxy");
        assert_eq!(translate("漢字", "漢", "é"), "é字");
    }

    #[test]
    fn normalize_space_knows_xml_white_space_only() {
        let normal = |text: &str| {
            let out = normalized(Cow::Borrowed(text.as_bytes())).into_owned();
            String::from_utf8(out).unwrap_or_default()
        };
        assert_eq!(normal("  a \t\n b  "), "a b");
        assert_eq!(normal("a\tb"), "a b");
        assert_eq!(normal("\u{a0}a\u{a0}"), "\u{a0}a\u{a0}");
        assert_eq!(normal(" \n "), "");
        assert_eq!(normal(""), "");
    }
}
