//! The text of regular expressions and of replacements (XQuery and XPath Functions and Operators 3.1, 5.6; XML Schema
//! 1.1, part 2, G), translated to the notation of the engine.
//!
//! The engine's notation differs in the meaning of `.`, `\s`, `\w` and of a subtraction in a class. Back references
//! (`\1`), which need backtracking, and blocks (`\p{IsGreek}`), for which the engine has no table, are refused by name.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::fmt::Write;

/// Characters and classes of a pattern, those that are repeated counted as often.
const WEIGHT_MAX: usize = 4096;
/// XPath's case variants have one lower or one upper case in common: so has the dotless i, which Unicode's simple
/// folding leaves by itself.
const DOTLESS_CASES: [char; 3] = ['i', 'I', '\u{131}'];
/// Parentheses within one another.
const DEPTH_MAX: usize = 32;

/// Why a pattern is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternFault {
    /// It is not written as patterns are.
    Syntax,
    /// A letter of the flags is none of `s`, `m`, `i`, `x`, `q`.
    Flags,
    /// `\1`
    BackReference,
    /// `\p{IsGreek}`
    Block,
    /// It is too long, repeats too much, or has too many bytes compiled.
    TooLarge,
    /// It matches the empty text, where that makes no sense.
    MatchesEmpty,
    /// A replacement with `$` or `\` that refers to nothing.
    Replacement,
}

/// A piece of a replacement.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// A text.
    Text(String),
    /// What a group matched; all of the match is group 0.
    Group(usize),
}

/// The flags of a pattern.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    is_dot_all: bool,
    pub(super) is_multi_line: bool,
    pub(super) is_case_blind: bool,
    is_spaced: bool,
    pub(super) is_literal: bool,
}

impl Flags {
    /// Reads the letters.
    pub(super) fn read(letters: &str) -> Result<Flags, PatternFault> {
        let mut flags = Flags::default();
        for letter in letters.chars() {
            *match letter {
                's' => &mut flags.is_dot_all,
                'm' => &mut flags.is_multi_line,
                'i' => &mut flags.is_case_blind,
                'x' => &mut flags.is_spaced,
                'q' => &mut flags.is_literal,
                _ => return Err(PatternFault::Flags),
            } = true;
        }
        Ok(flags)
    }
}

/// The pieces of a replacement: `$1`, `\$`, `\\` and text.
pub(super) fn pieces(written: &str, groups: usize) -> Result<Vec<Piece>, PatternFault> {
    let mut found = Vec::new();
    let mut text = String::new();
    let mut rest = written.chars().peekable();
    while let Some(one) = rest.next() {
        match one {
            '\\' => match rest.next() {
                Some(escaped @ ('\\' | '$')) => text.push(escaped),
                _ => return Err(PatternFault::Replacement),
            },
            '$' => {
                let digit = rest.next().and_then(|digit| digit.to_digit(10));
                let mut group = digit.ok_or(PatternFault::Replacement)? as usize;
                // As many digits as there are groups for; the others are text.
                while let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(10))
                    && group * 10 + digit as usize <= groups
                {
                    group = group * 10 + digit as usize;
                    rest.next();
                }
                found.push(Piece::Text(std::mem::take(&mut text)));
                // A group that there is not is empty.
                found.extend((group <= groups).then_some(Piece::Group(group)));
            }
            other => text.push(other),
        }
    }
    found.push(Piece::Text(text));
    Ok(found)
}

/// XML Schema's characters of names, and those that names begin with.
const NAME_START: &str = ":A-Z_a-z\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{2FF}\\x{370}-\\x{37D}\\x{37F}-\\x{1FFF}\
    \\x{200C}-\\x{200D}\\x{2070}-\\x{218F}\\x{2C00}-\\x{2FEF}\\x{3001}-\\x{D7FF}\\x{F900}-\\x{FDCF}\\x{FDF0}-\\x{FFFD}\
    \\x{10000}-\\x{EFFFF}";
const NAME_OTHER: &str = "\\-.0-9\\x{B7}\\x{300}-\\x{36F}\\x{203F}-\\x{2040}";
const CATEGORIES: [&str; 36] = [
    "C", "Cc", "Cf", "Cn", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N",
    "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So",
    "Z", "Zl", "Zp", "Zs",
];

/// A character or class that is written with a backslash.
enum Escaped {
    Character(char),
    /// A class, in the engine's notation.
    Class(String),
}

/// Translates a pattern to the notation of the engine.
pub(super) struct Translator {
    text: Vec<char>,
    at: usize,
    flags: Flags,
    /// The translation.
    pub(super) out: String,
    /// Groups until now.
    pub(super) groups: usize,
    /// Characters and classes until now, those that are repeated counted as often.
    pub(super) weight: usize,
}

impl Translator {
    /// A translator that has not begun.
    pub(super) fn of(text: &str, flags: Flags) -> Translator {
        let text = if flags.is_spaced && !flags.is_literal {
            without_spaces(text)
        } else {
            text.chars().collect()
        };
        Translator { text, at: 0, flags, out: String::new(), groups: 0, weight: 0 }
    }

    /// Translates all of the pattern.
    pub(super) fn translate(&mut self) -> Result<(), PatternFault> {
        if self.flags.is_literal {
            self.weight = self.text.len();
            for at in 0..self.text.len() {
                self.push_literal(self.text[at]);
            }
            return Ok(());
        }
        self.alternatives(0)?;
        if self.peek().is_some() { Err(PatternFault::Syntax) } else { Ok(()) }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn next(&mut self) -> Result<char, PatternFault> {
        let next = self.peek().ok_or(PatternFault::Syntax)?;
        self.at += 1;
        Ok(next)
    }

    /// Adds a character that stands for itself to the translation.
    fn push_literal(&mut self, one: char) {
        match one {
            _ if self.flags.is_case_blind && DOTLESS_CASES.contains(&one) => {
                self.out.push('[');
                self.out.extend(DOTLESS_CASES);
                self.out.push(']');
            }
            '<' | '>' => self.out.push_str(if one == '<' { "\\x3C" } else { "\\x3E" }),
            _ => {
                if one.is_ascii_punctuation() {
                    self.out.push('\\');
                }
                self.out.push(one);
            }
        }
    }

    fn alternatives(&mut self, depth: usize) -> Result<(), PatternFault> {
        if depth > DEPTH_MAX {
            return Err(PatternFault::TooLarge);
        }
        self.branch(depth)?;
        while self.take('|') {
            self.out.push('|');
            self.branch(depth)?;
        }
        Ok(())
    }

    fn branch(&mut self, depth: usize) -> Result<(), PatternFault> {
        while let Some(next) = self.peek().filter(|next| !matches!(next, '|' | ')')) {
            let (start, before) = (self.out.len(), self.weight);
            self.atom(next, depth)?;
            self.weight += 1;
            let Some((fewest, most)) = self.quantifier(start)? else { continue };
            let weight = (self.weight - before).saturating_mul(most.max(fewest).max(1));
            self.weight = before.saturating_add(weight);
            if self.weight > WEIGHT_MAX {
                return Err(PatternFault::TooLarge);
            }
        }
        Ok(())
    }

    /// One character, class or group.
    fn atom(&mut self, next: char, depth: usize) -> Result<(), PatternFault> {
        self.at += 1;
        let literal = match next {
            '\\' => match self.escape()? {
                Escaped::Character(one) => Some(one),
                Escaped::Class(class) => {
                    self.class_outside(&class);
                    None
                }
            },
            '?' | '*' | '+' | '{' | '}' | ']' => return Err(PatternFault::Syntax),
            '(' | '[' | '.' | '^' | '$' => None,
            other => Some(other),
        };
        if let Some(one) = literal {
            self.push_literal(one);
            return Ok(());
        }
        match next {
            '^' | '$' => self.out.push(next),
            '.' if self.flags.is_dot_all => self.out.push_str("(?s:.)"),
            '.' => self.out.push_str("[^\\n\\r]"),
            '[' => {
                let class = self.class(depth)?;
                self.class_outside(&class);
            }
            '(' => {
                if self.take('?') {
                    if !self.take(':') {
                        return Err(PatternFault::Syntax);
                    }
                    self.out.push_str("(?:");
                } else {
                    self.groups += 1;
                    self.out.push('(');
                }
                self.alternatives(depth + 1)?;
                if !self.take(')') {
                    return Err(PatternFault::Syntax);
                }
                self.out.push(')');
            }
            _ => {}
        }
        Ok(())
    }

    /// A class by itself: it has both cases of letters already, if that is wanted.
    fn class_outside(&mut self, class: &str) {
        self.out.push_str("(?-i:");
        self.out.push_str(class);
        self.out.push(')');
    }

    /// A quantifier: how many there are at least and at most.
    fn quantifier(&mut self, start: usize) -> Result<Option<(usize, usize)>, PatternFault> {
        let counts = match self.peek() {
            Some('?') => (0, 1),
            Some('*') => (0, 0),
            Some('+') => (1, 0),
            Some('{') => {
                self.at += 1;
                let fewest = self.count()?.ok_or(PatternFault::Syntax)?;
                let most = if self.take(',') { self.count()? } else { Some(fewest) };
                if self.peek() != Some('}') || most.is_some_and(|most| most < fewest) {
                    return Err(PatternFault::Syntax);
                }
                (fewest, most.unwrap_or(0))
            }
            _ => return Ok(None),
        };
        let written = self.next()?;
        // The quantifier repeats the whole translation of the atom.
        self.out.insert_str(start, "(?:");
        self.out.push(')');
        match (written, counts) {
            ('}', (fewest, most)) if most >= fewest && most > 0 => {
                self.out.push_str(&format!("{{{fewest},{most}}}"));
            }
            ('}', (0, 0)) if self.text[self.at - 2] != ',' => self.out.push_str("{0}"),
            ('}', (fewest, _)) => self.out.push_str(&format!("{{{fewest},}}")),
            (sign, _) => self.out.push(sign),
        }
        if self.take('?') {
            self.out.push('?');
        }
        if matches!(self.peek(), Some('?' | '*' | '+' | '{')) {
            return Err(PatternFault::Syntax);
        }
        Ok(Some(counts))
    }

    fn count(&mut self) -> Result<Option<usize>, PatternFault> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(10)) {
            let value = number.unwrap_or(0) * 10 + digit as usize;
            if value > WEIGHT_MAX {
                return Err(PatternFault::TooLarge);
            }
            number = Some(value);
            self.at += 1;
        }
        Ok(number)
    }

    /// Reads what stands after a backslash.
    fn escape(&mut self) -> Result<Escaped, PatternFault> {
        let class = |text: &str| Ok(Escaped::Class(text.to_owned()));
        match self.next()? {
            'n' => Ok(Escaped::Character('\n')),
            'r' => Ok(Escaped::Character('\r')),
            't' => Ok(Escaped::Character('\t')),
            one if "\\|.-^?*+{}()[]$".contains(one) => Ok(Escaped::Character(one)),
            'd' => class("\\p{Nd}"),
            'D' => class("\\P{Nd}"),
            's' => class("[ \\t\\n\\r]"),
            'S' => class("[^ \\t\\n\\r]"),
            'w' => class("[^\\p{P}\\p{Z}\\p{C}]"),
            'W' => class("[\\p{P}\\p{Z}\\p{C}]"),
            'i' => class(&format!("[{NAME_START}]")),
            'I' => class(&format!("[^{NAME_START}]")),
            'c' => class(&format!("[{NAME_START}{NAME_OTHER}]")),
            'C' => class(&format!("[^{NAME_START}{NAME_OTHER}]")),
            sign @ ('p' | 'P') => {
                let rest: String = self.text[self.at..].iter().collect();
                let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let (name, _) = inside.ok_or(PatternFault::Syntax)?;
                if name.starts_with("Is") {
                    return Err(PatternFault::Block);
                }
                if !CATEGORIES.contains(&name) {
                    return Err(PatternFault::Syntax);
                }
                self.at += name.len() + 2;
                class(&format!("\\{sign}{{{name}}}"))
            }
            '1'..='9' => Err(PatternFault::BackReference),
            _ => Err(PatternFault::Syntax),
        }
    }

    /// A class in brackets, after the first of them.
    fn class(&mut self, depth: usize) -> Result<String, PatternFault> {
        if depth > DEPTH_MAX {
            return Err(PatternFault::TooLarge);
        }
        let sign = if self.take('^') { "^" } else { "" };
        let mut ranges = Vec::new();
        let mut classes = String::new();
        let mut taken = String::new();
        loop {
            let is_empty = ranges.is_empty() && classes.is_empty();
            let next = self.next()?;
            match next {
                ']' if !is_empty => break,
                '[' | ']' => return Err(PatternFault::Syntax),
                '-' if !is_empty && self.take('[') => {
                    taken = format!("--{}", self.class(depth + 1)?);
                    if !self.take(']') {
                        return Err(PatternFault::Syntax);
                    }
                    break;
                }
                '-' if !is_empty && self.peek() != Some(']') => return Err(PatternFault::Syntax),
                '\\' => match self.escape()? {
                    Escaped::Character(one) => ranges.push(self.range(one)?),
                    Escaped::Class(text) => classes.push_str(&text),
                },
                one => ranges.push(self.range(one)?),
            }
            self.weight += 1;
            if self.weight > WEIGHT_MAX {
                return Err(PatternFault::TooLarge);
            }
        }
        // The case of letters counts in classes, whatever the flags.
        let mut ranges = ClassUnicode::new(ranges);
        if self.flags.is_case_blind {
            ranges.case_fold_simple();
            let has = |one: &char| ranges.iter().any(|it| it.start() <= *one && *one <= it.end());
            if DOTLESS_CASES.iter().any(has) {
                let cases = DOTLESS_CASES.map(|one| ClassUnicodeRange::new(one, one));
                ranges.union(&ClassUnicode::new(cases));
            }
        }
        for range in ranges.iter() {
            let (first, last) = (u32::from(range.start()), u32::from(range.end()));
            write!(classes, "\\x{{{first:X}}}-\\x{{{last:X}}}").expect("strings take all");
        }
        Ok(if taken.is_empty() {
            format!("[{sign}{classes}]")
        } else {
            format!("[[{sign}{classes}]{taken}]")
        })
    }

    /// A character of a class, or a range that begins with it.
    fn range(&mut self, first: char) -> Result<ClassUnicodeRange, PatternFault> {
        let after = self.text.get(self.at + 1).copied();
        if self.peek() != Some('-') || matches!(after, Some('[' | ']') | None) {
            return Ok(ClassUnicodeRange::new(first, first));
        }
        self.at += 1;
        let last = match self.next()? {
            '\\' => match self.escape()? {
                Escaped::Character(one) => one,
                Escaped::Class(_) => return Err(PatternFault::Syntax),
            },
            one => one,
        };
        if last < first || last == '-' && self.text[self.at - 1] == '-' && first != '-' {
            return Err(PatternFault::Syntax);
        }
        Ok(ClassUnicodeRange::new(first, last))
    }
}

/// A pattern without white space, but for that in classes and after a backslash.
fn without_spaces(text: &str) -> Vec<char> {
    let (mut depth, mut is_escaped) = (0usize, false);
    let is_kept = |&one: &char| {
        let is_space = matches!(one, '\t' | '\n' | '\r' | ' ') && depth == 0;
        match one {
            _ if is_escaped => {}
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = one == '\\' && !is_escaped;
        !is_space
    };
    text.chars().filter(is_kept).collect()
}
