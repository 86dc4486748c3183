//! How texts are compared without regard to case: both as they are in one case.
//!
//! Each folding takes characters one by one, so that the folding of a part of a text is a part of its folding: a text
//! that is folded once can be searched for all that anybody asks of it. `lower-case` has no sigma for the ends of words.

use std::borrow::Cow;

/// How a text is read before it is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fold {
    /// As it is.
    #[default]
    None,
    /// `lower-case()`
    Lower,
    /// `upper-case()`
    Upper,
    /// The letters of ASCII in lower case, as the collation `html-ascii-case-insensitive` compares them.
    Ascii,
}

impl Fold {
    /// All of them, by number.
    pub const ALL: [Fold; 4] = [Fold::None, Fold::Lower, Fold::Upper, Fold::Ascii];

    /// The function of canonical text that folds so; none for the one that leaves a text as it is.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Fold::None => None,
            Fold::Lower => Some("lower-case"),
            Fold::Upper => Some("upper-case"),
            Fold::Ascii => Some("ascii-case"),
        }
    }

    /// Appends the folding of a text. What is no UTF-8 stays as it is.
    ///
    /// Cost: linear; most of it for characters beyond ASCII.
    pub(crate) fn push(self, text: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Fold::None => out.extend_from_slice(text),
            Fold::Ascii => {
                out.extend_from_slice(text);
                out[start..].make_ascii_lowercase();
            }
            Fold::Lower | Fold::Upper => {
                for chunk in text.utf8_chunks() {
                    self.push_valid(chunk.valid(), out);
                    out.extend_from_slice(chunk.invalid());
                }
            }
        }
    }

    /// The same of valid UTF-8, by `lower-case` or `upper-case`.
    fn push_valid(self, mut text: &str, out: &mut Vec<u8>) {
        let mut encoded = [0; 4];
        loop {
            let length = text.bytes().position(|byte| !byte.is_ascii()).unwrap_or(text.len());
            let (ascii, rest) = text.split_at(length);
            let start = out.len();
            out.extend_from_slice(ascii.as_bytes());
            if self == Fold::Lower {
                out[start..].make_ascii_lowercase();
            } else {
                out[start..].make_ascii_uppercase();
            }
            let mut others = rest.chars();
            let Some(other) = others.next() else { return };
            let mut push =
                |one: char| out.extend_from_slice(one.encode_utf8(&mut encoded).as_bytes());
            if self == Fold::Lower {
                other.to_lowercase().for_each(&mut push);
            } else {
                other.to_uppercase().for_each(&mut push);
            }
            text = others.as_str();
        }
    }

    /// The folding of a text.
    pub(crate) fn of(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == Fold::None {
            return Cow::Borrowed(text);
        }
        let mut folded = Vec::with_capacity(text.len());
        self.push(text, &mut folded);
        Cow::Owned(folded)
    }
}

/// What is asked of a text, given one text or several of which one is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextTest {
    /// It is the given one.
    Is,
    /// It begins with it.
    Begins,
    /// It contains it.
    Has,
    /// It has a part that the given one matches, a regular expression as `patterns::written` writes it.
    Matches,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_folds_to_a_part_of_its_folding() {
        let text = "Straße İstanbul ΟΔΟΣ ΟΔΟΣ. ﬃ ǅ \u{345}é\u{301}K";
        for fold in Fold::ALL {
            let whole = fold.of(text.as_bytes());
            let mut joined = Vec::new();
            for one in text.chars() {
                fold.push(one.encode_utf8(&mut [0; 4]).as_bytes(), &mut joined);
            }
            assert_eq!(whole, joined, "{fold:?}");
        }
        let lower = |text: &str| String::from_utf8(Fold::Lower.of(text.as_bytes()).into_owned());
        assert_eq!(lower("İẞΣ").as_deref(), Ok("i\u{307}ßσ"));
        assert_eq!(&*Fold::Upper.of("ßé".as_bytes()), "SSÉ".as_bytes());
        assert_eq!(&*Fold::Ascii.of("AÉ\u{212A}".as_bytes()), "aÉ\u{212A}".as_bytes());
        assert_eq!(&*Fold::Lower.of(b"A\xffB"), b"a\xffb");
    }
}
