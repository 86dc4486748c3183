//! Texts of which every match of a pattern has one, so that an index of texts finds the patterns that may match.
//!
//! What is told is necessary, and now and then all there is to say. A part of a pattern is known by all texts that it
//! matches, if these are few, or by some texts of which one is in whatever it matches. A pattern without regard to case
//! is looked for in upper case, in which nearly all letters that XPath takes for the same are one.

use super::folding::{Fold, TextTest};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};

/// Texts that a part of a pattern is known by.
const TEXTS_MAX: usize = 64;
/// Texts that the alternatives of a pattern are known by: a list of words is one pattern.
const ALTERNATIVES_MAX: usize = 1024;
/// Characters of a class that is read as so many texts.
const CLASS_MAX: usize = 8;
/// Times that a repeated part is looked at.
const COPIES_MAX: u32 = 4;
/// Bytes of the texts of a part.
const BYTES_MAX: usize = 16 << 10;

/// Texts of which each match has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Required {
    /// Where: whatever is searched is one, begins with one, or has one.
    pub(crate) test: TextTest,
    /// How the searched text is folded.
    pub(crate) fold: Fold,
    /// The texts, folded; none of them is empty but where the searched text is one.
    pub(crate) texts: Vec<String>,
    /// A text that passes matches.
    pub(crate) is_all: bool,
}

/// The texts of which each match of a pattern has one, if that is told; the pattern in the notation of the engine.
///
/// Cost: in proportion to the pattern, which is bounded.
pub(crate) fn required(
    translated: &str,
    is_multi_line: bool,
    is_case_blind: bool,
) -> Option<Required> {
    let mut parser = ParserBuilder::new().utf8(false).multi_line(is_multi_line).build();
    let pattern = parser.parse(translated).ok()?;
    let fold = if is_case_blind { Fold::Upper } else { Fold::None };
    let mut parts: Vec<&Hir> = match pattern.kind() {
        HirKind::Concat(parts) => parts.iter().collect(),
        _ => vec![&pattern],
    };
    let is_look =
        |part: Option<&&Hir>, look| part.is_some_and(|it| *it.kind() == HirKind::Look(look));
    let begins = is_look(parts.first(), Look::Start);
    let ends = is_look(parts.last(), Look::End) && !(begins && parts.len() == 1);
    parts.drain(..usize::from(begins));
    parts.truncate(parts.len() - usize::from(ends));
    let has_looks = parts.iter().any(|part| !part.properties().look_set().is_empty());
    let known = Known::of_parts(parts.into_iter(), fold);
    // Folded texts are fewer than those that they are of.
    let is_exact = fold == Fold::None && !has_looks;
    let (test, texts, is_all) = match (known.all, known.some) {
        (Some(all), _) if begins && ends => (TextTest::Is, all, is_exact),
        (Some(all), _) if begins && is_usable(&all) => (TextTest::Begins, all, is_exact),
        (Some(all), _) if is_usable(&all) => (TextTest::Has, all, is_exact && !ends),
        (_, some) => (TextTest::Has, some?, false),
    };
    let is_all = is_all && !(test == TextTest::Has && begins);
    let texts = if test == TextTest::Is { texts } else { shortest_of(test, texts) };
    Some(Required { test, fold, texts, is_all })
}

/// What is known of a part of a pattern; of one that is repeated, once for each time that it must be there.
fn copies_of(part: &Hir, fold: Fold) -> Vec<Known> {
    match part.kind() {
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            let count = repetition.min.min(COPIES_MAX);
            let mut copies = vec![Known::of(&repetition.sub, fold); count as usize];
            if repetition.max != Some(count) {
                copies.push(Known::NOTHING);
            }
            copies
        }
        _ => vec![Known::of(part, fold)],
    }
}

/// The texts without those that pass by another one of them; all where they are many.
fn shortest_of(test: TextTest, texts: Vec<String>) -> Vec<String> {
    if texts.len() > TEXTS_MAX {
        return texts;
    }
    let passes_by = |text: &str, other: &str| match test {
        TextTest::Begins => text.starts_with(other),
        _ => text.contains(other),
    };
    let is_needed =
        |text: &&String| !texts.iter().any(|other| other != *text && passes_by(text, other));
    texts.iter().filter(is_needed).cloned().collect()
}

/// Whether texts leave something out.
fn is_usable(texts: &[String]) -> bool {
    !texts.is_empty() && texts.iter().all(|text| !text.is_empty())
}

/// What is known of whatever a part of a pattern matches.
#[derive(Clone, Debug)]
struct Known {
    /// It is one of these.
    all: Option<Vec<String>>,
    /// It has one of these, none of which is empty.
    some: Option<Vec<String>>,
}

impl Known {
    const NOTHING: Known = Known { all: None, some: None };

    fn one_of(texts: Vec<String>) -> Known {
        Known { all: Some(texts), some: None }
    }

    /// Texts that it has one of: the best.
    fn best(self) -> Option<Vec<String>> {
        better(self.all.filter(|all| is_usable(all)), self.some)
    }

    fn of(part: &Hir, fold: Fold) -> Known {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Known::one_of(vec![String::new()]),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => Known::of_texts(text.chars().map(|one| ways_of(one, fold))),
                Err(_) => Known::NOTHING,
            },
            HirKind::Class(class) => of_class(class, fold).map_or(Known::NOTHING, Known::one_of),
            HirKind::Capture(capture) => Known::of(&capture.sub, fold),
            HirKind::Concat(parts) => Known::of_parts(parts.iter(), fold),
            HirKind::Alternation(parts) => {
                Known::of_alternatives(parts.iter().map(|part| Known::of(part, fold)))
            }
            HirKind::Repetition(repetition) => {
                let once = Known::of(&repetition.sub, fold);
                match (repetition.min, repetition.max) {
                    (1, Some(1)) => once,
                    (0, Some(1)) => {
                        let all = once.all.map(|all| distinct(all, [String::new()]));
                        Known { all, some: None }
                    }
                    (0, _) => Known::NOTHING,
                    _ => Known::joined(copies_of(part, fold).into_iter()),
                }
            }
        }
    }

    fn of_parts<'h>(parts: impl Iterator<Item = &'h Hir>, fold: Fold) -> Known {
        Known::joined(parts.flat_map(|part| copies_of(part, fold)))
    }

    fn of_texts(parts: impl Iterator<Item = Vec<String>>) -> Known {
        Known::joined(parts.map(Known::one_of))
    }

    /// What is known of parts in a row.
    fn joined(parts: impl Iterator<Item = Known>) -> Known {
        let mut run = vec![String::new()];
        let (mut best, mut is_all) = (None, true);
        for Known { all, some } in parts {
            best = better(best, some);
            let Some(all) = all else {
                best = better(best, Some(run).filter(|run| is_usable(run)));
                run = vec![String::new()];
                is_all = false;
                continue;
            };
            match product(&run, &all) {
                Some(longer) => run = longer,
                None => {
                    best = better(best, Some(run).filter(|run| is_usable(run)));
                    run = all;
                    is_all = false;
                }
            }
        }
        if is_all {
            return Known { all: Some(run), some: best };
        }
        Known { all: None, some: better(best, Some(run).filter(|run| is_usable(run))) }
    }

    fn of_alternatives(parts: impl Iterator<Item = Known>) -> Known {
        let (mut all, mut some) = (Some(Vec::new()), Some(Vec::new()));
        for part in parts {
            all = all.zip(part.all.clone()).map(|(known, more)| distinct(known, more));
            some = some.zip(part.best()).map(|(known, more)| distinct(known, more));
        }
        let is_few = |texts: &Vec<String>| is_within(texts, ALTERNATIVES_MAX);
        Known { all: all.filter(is_few), some: some.filter(is_few) }
    }
}

fn is_within(texts: &[String], count_max: usize) -> bool {
    texts.len() <= count_max && texts.iter().map(String::len).sum::<usize>() <= BYTES_MAX
}

fn distinct(mut known: Vec<String>, more: impl IntoIterator<Item = String>) -> Vec<String> {
    known.extend(more);
    known.sort_unstable();
    known.dedup();
    known
}

/// Each text of one list before each of another, if these are few.
fn product(first: &[String], second: &[String]) -> Option<Vec<String>> {
    let count_max = TEXTS_MAX.max(first.len()).max(second.len());
    if first.len() * second.len() > count_max {
        return None;
    }
    let joined =
        first.iter().flat_map(|one| second.iter().map(move |other| format!("{one}{other}")));
    Some(distinct(Vec::new(), joined)).filter(|joined| is_within(joined, count_max))
}

/// Of two lists the one that fewer texts have one of: whose shortest text is longer.
fn better(one: Option<Vec<String>>, other: Option<Vec<String>>) -> Option<Vec<String>> {
    let shortest = |texts: &Vec<String>| texts.iter().map(String::len).min().unwrap_or(0);
    match (one, other) {
        (Some(one), Some(other)) => {
            let rank = |texts: &Vec<String>| (shortest(texts), usize::MAX - texts.len());
            Some(if rank(&other) > rank(&one) { other } else { one })
        }
        (one, other) => one.or(other),
    }
}

/// A character, folded, in each case that is the same to a pattern.
fn ways_of(one: char, fold: Fold) -> Vec<String> {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(one, one)]);
    if fold != Fold::None {
        class.case_fold_simple();
    }
    folded_of(&class, fold)
}

fn of_class(class: &Class, fold: Fold) -> Option<Vec<String>> {
    match class {
        Class::Unicode(class) => {
            let count: usize = class.iter().map(ClassUnicodeRange::len).sum();
            (count <= CLASS_MAX).then(|| folded_of(class, fold))
        }
        Class::Bytes(class) => {
            let unicode = class.to_unicode_class()?;
            of_class(&Class::Unicode(unicode), fold)
        }
    }
}

fn folded_of(class: &ClassUnicode, fold: Fold) -> Vec<String> {
    let characters = class.iter().flat_map(|range| range.start()..=range.end());
    let folded = characters.map(|one| {
        let folded = fold.of(one.encode_utf8(&mut [0; 4]).as_bytes()).into_owned();
        String::from_utf8(folded).unwrap_or_default()
    });
    distinct(Vec::new(), folded)
}

#[cfg(test)]
mod tests {
    use super::super::patterns::Pattern;
    use super::*;

    #[test]
    fn texts_of_which_every_match_has_one() {
        use TextTest::{Begins, Has, Is};
        let cases: [(&str, &str, TextTest, &[&str], bool); 25] = [
            ("disk \\d+ full", "", Has, &["disk "], false),
            ("disk", "", Has, &["disk"], true),
            ("^disk", "", Begins, &["disk"], true),
            ("^disk \\d", "", Has, &["disk "], false),
            ("^disk$", "", Is, &["disk"], true),
            ("^(disk|tape)?$", "", Is, &["", "disk", "tape"], true),
            ("disk$", "", Has, &["disk"], false),
            ("^disk", "m", Has, &["disk"], false),
            ("gr[ae]y", "", Has, &["gray", "grey"], true),
            ("(^| )disk( |$)", "", Has, &["disk"], false),
            ("gold|silver|go", "", Has, &["go", "silver"], true),
            (
                "(gold|silver)s? price",
                "",
                Has,
                &["gold price", "golds price", "silver price", "silvers price"],
                true,
            ),
            ("a.*longer.*b", "", Has, &["longer"], false),
            ("(ab){2,}", "", Has, &["abab"], false),
            ("^(a|b)x{2}yz+", "", Has, &["axxyz", "bxxyz"], false),
            ("a.b", "q", Has, &["a.b"], true),
            ("a b", "x", Has, &["ab"], true),
            ("maße", "i", Has, &["MASSE", "MAẞE"], false),
            ("item", "i", Has, &["ITEM"], false),
            ("^Kilo$", "i", Is, &["KILO", "\u{212a}ILO"], false),
            ("[st]ink", "i", Has, &["SINK", "TINK", "SIN\u{212a}", "TIN\u{212a}"], false),
            ("x+yz", "", Has, &["yz"], false),
            ("a{2}", "", Has, &["aa"], true),
            ("xa+y", "", Has, &["xa"], false),
            ("\u{3a9}1", "i", Has, &["\u{3a9}1", "\u{2126}1"], false),
        ];
        for (text, flags, test, texts, is_all) in cases {
            let pattern = Pattern::read(text, flags, None, 1 << 20).expect(text);
            let found = pattern.required().expect(text);
            let mut texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
            texts.sort_unstable();
            let mut given = found.texts.clone();
            given.sort_unstable();
            let told = (found.test, given, found.is_all);
            assert_eq!(told, (test, texts, is_all), "{text} {flags}");
        }
        for text in ["\\d+", "a?", "(a|)", ".", "a|\\d", "^", "$", "[a-z]{3}", "(a|b)*"] {
            let pattern = Pattern::read(text, "", None, 1 << 20).expect(text);
            assert_eq!(pattern.required(), None, "{text}");
        }
    }

    #[test]
    fn every_character_has_the_texts_of_those_that_a_pattern_takes_for_it() {
        for one in ('\u{0}'..='\u{2FFFF}').filter(|one| !one.is_ascii_control()) {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(one, one)]);
            class.case_fold_simple();
            let ways = ways_of(one, Fold::Upper);
            for other in class.iter().flat_map(|range| range.start()..=range.end()) {
                let folded = Fold::Upper.of(other.encode_utf8(&mut [0; 4]).as_bytes()).into_owned();
                assert!(ways.contains(&String::from_utf8(folded).unwrap()), "{one:?} {other:?}");
            }
        }
    }
}
