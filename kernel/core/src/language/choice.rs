//! Which language the text of a subscription is in.
//!
//! A subscriber may choose it. The rule for texts without a choice: XPath 1.0 where its grammar takes the text,
//! comments left out; XQuery otherwise. Of a text that neither takes the rule says which of the two it is nearer to, so
//! that the refusal is of the language that was meant.

use super::arithmetic::Arithmetic;
use super::grammar::scan::comment_end;
use super::reader::read;
use super::tree;
use super::xquery::{Expr, Program};
use std::borrow::Cow;
use std::sync::Arc;

/// A language of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// XPath 1.0, by the letter.
    XPath,
    /// The subset of XQuery that [`super::xquery`] reads.
    XQuery,
}

impl Language {
    /// The language that a subscriber chooses by a name.
    ///
    /// ```
    /// use pathcast_core::language::choice::Language;
    ///
    /// assert_eq!(Language::named("xpath1"), Some(Language::XPath));
    /// assert_eq!(Language::named("xquery"), Some(Language::XQuery));
    /// assert_eq!(Language::named("xpath"), None);
    /// ```
    pub fn named(name: &str) -> Option<Language> {
        match name {
            "xpath1" => Some(Language::XPath),
            "xquery" => Some(Language::XQuery),
            _ => None,
        }
    }

    /// The name that [`Language::named`] knows.
    pub fn name(self) -> &'static str {
        match self {
            Language::XPath => "xpath1",
            Language::XQuery => "xquery",
        }
    }

    /// The language of a text for which nobody chose one.
    ///
    /// ```
    /// use pathcast_core::language::choice::Language;
    ///
    /// assert_eq!(Language::of("//a[b < '9'] (: c :)"), Language::XPath);
    /// assert_eq!(Language::of("//a[b lt 9]"), Language::XQuery);
    /// ```
    ///
    /// Cost: linear in the text; that of reading it, but for texts that begin with a tag or with a variable that is
    /// bound.
    pub fn of(text: &str) -> Language {
        match Reading::of(text) {
            Reading::XPath(_) => Language::XPath,
            Reading::XQuery(_) => Language::XQuery,
            Reading::Unread(language) => language,
        }
    }
}

/// A text and what it was read as to find its language.
pub(crate) enum Reading {
    /// An XPath, comments left out, names as written.
    XPath(tree::Expr),
    /// An XQuery, read with no prefixes bound.
    XQuery(Arc<Program>),
    /// A text in a language that has not read it.
    Unread(Language),
}

impl Reading {
    /// That of a text for which nobody chose a language.
    pub(crate) fn of(text: &str) -> Reading {
        let plain = without_comments(text);
        if begins_as_xquery(&plain) {
            return Reading::Unread(Language::XQuery);
        }
        match read(&plain) {
            Ok(tree) => Reading::XPath(tree),
            Err(refusal) => {
                let place = plain[..refusal.offset].chars().count();
                xquery_reading(text, refusal.reason.code(), place)
                    .unwrap_or(Reading::Unread(Language::XPath))
            }
        }
    }
}

/// A text with blanks for its comments, a character each.
///
/// What looks like a comment inside a string or `Q{...}` is none. A comment that does not end is left as it is.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("(:") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'', 'Q', '(']) {
        let (before, here) = rest.split_at(at);
        plain.push_str(before);
        let length = match here.as_bytes()[0] {
            quote @ (b'"' | b'\'') => here[1..].find(char::from(quote)).map(|length| length + 2),
            b'Q' if here.starts_with("Q{") => match here[2..].find(['{', '}']) {
                Some(length) if here.as_bytes()[length + 2] == b'}' => Some(length + 3),
                _ => None,
            },
            b'(' if here.starts_with("(:") => {
                let Some(end) = comment_end(here, 0) else {
                    plain.push_str(here);
                    return Cow::Owned(plain);
                };
                plain.extend(here[..end].chars().map(|_| ' '));
                rest = &here[end..];
                continue;
            }
            _ => None,
        };
        let length = length.unwrap_or(1);
        plain.push_str(&here[..length]);
        rest = &here[length..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Whether a text begins as no XPath does: with a tag, or with a word before a variable.
pub(crate) fn begins_as_xquery<'t>(text: &'t str) -> bool {
    let after_blanks = |text: &'t str| text.trim_start_matches([' ', '\t', '\r', '\n']);
    let text = after_blanks(text);
    let is_bound = |word: &str| {
        text.strip_prefix(word).is_some_and(|rest| after_blanks(rest).starts_with('$'))
    };
    text.starts_with('<') || ["for", "let", "some", "every"].into_iter().any(is_bound)
}

/// A text that is no XPath, for a reason of some code at a character, if it is an XQuery, or is one for longer.
fn xquery_reading(text: &str, code: &str, place: usize) -> Option<Reading> {
    let is_limit = |code: &str| {
        matches!(
            code,
            "query.too_long"
                | "query.too_deep"
                | "query.too_large"
                | "query.too_many_predicates"
                | "query.too_many_values"
        )
    };
    let is_over = is_limit(code);
    let is_nearer = match Program::parse(text, &[]) {
        Ok(program) => {
            let is_needed = !is_over || has_what_xpath_lacks(&program);
            return is_needed.then(|| Reading::XQuery(Arc::new(program)));
        }
        Err(refusal) => {
            let found = refusal.reason.code();
            if is_over {
                // A prefix that is not bound here may be bound where it is compiled.
                !is_limit(found) && !matches!(found, "XPST0003" | "XPST0081")
            } else {
                refusal.reason.is_unsupported()
                    || (found != "XPST0003" && found != code)
                    || text[..refusal.offset].chars().count() > place
            }
        }
    };
    is_nearer.then_some(Reading::Unread(Language::XQuery))
}

/// Whether a program says what XPath 1.0 has no words for.
fn has_what_xpath_lacks(program: &Program) -> bool {
    program.all().any(|expr| match expr {
        Expr::Sequence(_)
        | Expr::Flwor { .. }
        | Expr::If { .. }
        | Expr::Quantified { .. }
        | Expr::Element(_)
        | Expr::Comparison { is_value: true, .. }
        | Expr::Arithmetic { operator: Arithmetic::DivideWhole, .. } => true,
        Expr::Call(function, _) => !function.is_in_xpath(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blanks_where_they_are_comments() {
        for (text, plain) in [
            ("//a[b = '(: c :)'] (: d (: e :) :)", "//a[b = '(: c :)']                "),
            ("a(:é:)b", "a     b"),
            ("Q{(:}a(::)", "Q{(:}a    "),
            ("Q{(:{:)", "Q{     "),
            ("a 'b (: c", "a 'b (: c"),
            ("it's (: x :)", "it's        "),
        ] {
            assert_eq!(without_comments(text), plain, "{text}");
        }
    }

    #[test]
    fn the_grammar_of_xpath_decides() {
        for text in ["//a", "(//a)", "declare - 1", "//a[", "//p:a", "//a (: c :)", "a[. = '<b/>']"]
        {
            assert_eq!(Language::of(text), Language::XPath, "{text}");
        }
        for text in
            ["(//a, //b)", "<a>{//b}</a>", "min(//a)", "for $", "//a[b eq 1]", "<", "if (a) then b"]
        {
            assert_eq!(Language::of(text), Language::XQuery, "{text}");
        }
    }

    #[test]
    fn a_long_path_stays_one() {
        let long = vec!["a"; 5000].join("/");
        assert_eq!(Language::of(&long), Language::XPath);
        assert_eq!(Language::of(&vec!["a"; 600].join(", ")), Language::XQuery);
        let many = vec!["a"; 600].join(" or ");
        assert_eq!(Language::of(&many), Language::XPath);
        assert_eq!(Language::of(&format!("{many} or a eq b")), Language::XQuery);
    }
}
