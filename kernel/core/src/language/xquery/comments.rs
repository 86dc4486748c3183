//! Comments of XQuery, in a text of either language.
//!
//! XPath 1.0 has no comments; a subscription may have them whichever language it is in, and they say nothing about
//! which that is. So they are blanks before that is asked.

use std::borrow::Cow;

/// A text with blanks for its comments, so that every byte stays where it is.
///
/// What looks like a comment inside a string or `Q{...}` is none. A comment that does not end is left as it is.
///
/// Cost: linear in the text.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("(:") {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut plain = String::with_capacity(text.len());
    let (mut done, mut at) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest {
            [quote @ (b'"' | b'\''), inside @ ..] => {
                at += inside.iter().position(|byte| byte == quote).map_or(1, |len| len + 2);
            }
            [b'Q', b'{', inside @ ..] => {
                let end = inside.iter().position(|byte| matches!(byte, b'{' | b'}'));
                at += end.filter(|&len| inside[len] == b'}').map_or(1, |len| len + 3);
            }
            [b'(', b':', ..] => {
                let Some(end) = comment_end(bytes, at + 2) else { break };
                plain.push_str(&text[done..at]);
                plain.extend(std::iter::repeat_n(' ', end - at));
                (done, at) = (end, end);
            }
            _ => at += 1,
        }
    }
    plain.push_str(&text[done..]);
    Cow::Owned(plain)
}

/// Where the comment ends whose inside begins at a place.
fn comment_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut level = 1;
    while let Some(&[first, second]) = bytes.get(at..at + 2) {
        match [first, second] {
            [b'(', b':'] => level += 1,
            [b':', b')'] => level -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if level == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_are_blanks_but_not_in_strings() {
        for (text, plain) in [
            ("//a[b = '(: c :)'] (: d (: e :) :)", "//a[b = '(: c :)']                "),
            ("//Q{(:}a(:é:)/b", "//Q{(:}a      /b"),
            ("//a(: open", "//a(: open"),
            ("(::)//a", "    //a"),
        ] {
            assert_eq!(without_comments(text), plain);
        }
    }
}
