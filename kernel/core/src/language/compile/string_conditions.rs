//! What must be there if a node-set is not empty, or a string is as asked.
//!
//! A part of [`super::weakening`], which argues for every rule.

use super::constants::{Value, constant_of};
use super::generalising::generalised;
use super::losses::Reason;
use super::moving::{Cursor, Walked, Weakener};
use super::spine::{Compare, NodeKind, Spine};
use super::view::View;
use crate::language::comparison::Comparison;
use crate::language::query::{Constant, NameTest, Operator, is_collapsed};
use crate::language::strings;
use crate::language::tree::{Expr, Offset};
use crate::language::xpath::ast::Kind;
use crate::xml::parser::{is_ncname_char, is_ncname_start};
use hashbrown::HashTable;
use std::borrow::Cow;
use std::collections::HashSet;

/// A test of a string. Nothing that is asked holds for an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringTest {
    Is,
    Begins,
    Has,
    /// It is not empty.
    IsSomething,
}

/// A test of a string, and the string that it takes: not empty, but for a test that takes none.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'t> {
    pub(super) test: StringTest,
    pub(super) text: Cow<'t, str>,
}

impl<'t> Wanted<'t> {
    /// That a string is not empty.
    pub(super) const SOMETHING: Wanted<'static> =
        Wanted { test: StringTest::IsSomething, text: Cow::Borrowed("") };

    pub(super) fn new(test: StringTest, text: impl Into<Cow<'t, str>>) -> Self {
        Wanted { test, text: text.into() }
    }

    /// The same asked of a node.
    fn comparison(self) -> Compare<'t> {
        let operator = match self.test {
            StringTest::Is => Operator::Compare(Comparison::Eq),
            StringTest::Begins => Operator::StartsWith,
            StringTest::Has => Operator::Contains,
            StringTest::IsSomething => Operator::Compare(Comparison::Ne),
        };
        (operator, Constant::String(self.text))
    }
}

impl<'t> Weakener<'t> {
    /// Alternatives without repetition, and not more than may be.
    ///
    /// They extend `base`; if it is among them, it is all there is to say.
    pub(super) fn joined(
        &mut self,
        found: Vec<Spine<'t>>,
        base: &Spine<'t>,
        offset: Offset,
    ) -> Vec<Spine<'t>> {
        if found.len() < 2 {
            return found;
        }
        let found = distinct(found);
        if found.contains(base) {
            return vec![base.clone()];
        }
        if found.len() > self.alternatives_max {
            self.lose(Reason::Alternatives(self.alternatives_max), offset);
            return vec![generalised(&found, base)];
        }
        found
    }

    /// The spines of which one is there if a node-set has a node with a value as asked.
    pub(super) fn exists(
        &mut self,
        expr: View<'t>,
        spine: &Spine<'t>,
        goal: Option<&Compare<'t>>,
    ) -> Vec<Spine<'t>> {
        let expr = if goal.is_none() { without_first(expr) } else { expr };
        let ends = self.ends(expr, spine, goal);
        self.ends_or_base(ends, spine, expr.offset())
    }

    fn ends(
        &mut self,
        expr: View<'t>,
        spine: &Spine<'t>,
        goal: Option<&Compare<'t>>,
    ) -> Walked<Vec<Spine<'t>>> {
        let (cursors, is_pending) = self.nodes(expr, spine, goal.is_none())?;
        let mut found = Vec::with_capacity(cursors.len());
        for cursor in cursors {
            self.finish(cursor, goal, expr.offset(), is_pending, &mut found)?;
        }
        Ok(found)
    }

    pub(super) fn ends_or_base(
        &mut self,
        ends: Walked<Vec<Spine<'t>>>,
        base: &Spine<'t>,
        offset: Offset,
    ) -> Vec<Spine<'t>> {
        match ends {
            Ok(ends) => self.joined(ends, base, offset),
            Err(_) => {
                self.lose_construct("has too many ways to be true", offset);
                vec![base.clone()]
            }
        }
    }

    // Strings.

    /// The spines of which one is there if the string of an expression is as asked.
    pub(super) fn string(
        &mut self,
        expr: View<'t>,
        wanted: Wanted<'t>,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        let kind = expr.kind();
        if kind == Kind::Nodes {
            if !expr.is_single() {
                let text = "reads the first node of several as a string";
                self.lose_construct(text, expr.offset());
            }
            return self.exists(expr, spine, Some(&wanted.comparison()));
        }
        let (View::Call { name, arguments, offset }, Kind::String) = (expr, kind) else {
            self.lose_construct("reads a number or a condition as a string", expr.offset());
            return vec![spine.clone()];
        };
        let argument = View::argument(arguments, offset);
        match name {
            "string" => return self.string(argument, wanted, spine),
            "local-name" | "namespace-uri" | "name" => {
                return self.name(name, argument, wanted, spine);
            }
            "substring" => return self.substring(arguments, wanted, spine, offset),
            "substring-before" | "substring-after" => {
                return self.beside(name, arguments, wanted, spine, offset);
            }
            _ => {}
        }
        self.lose(Reason::Call(name), offset);
        match name {
            "normalize-space" => self.string(argument, longest_word(wanted), spine),
            "translate" => self.string(argument, Wanted::SOMETHING, spine),
            "concat" => self.joint(arguments, wanted, spine),
            _ => vec![spine.clone()],
        }
    }

    /// Asks for what a concatenation shows of its one part that is not constant.
    ///
    /// Characters that no constant part has come from that part, and next to one another.
    fn joint(
        &mut self,
        arguments: &'t [Expr],
        wanted: Wanted<'t>,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        let (mut known, mut others) = (HashSet::new(), Vec::new());
        for argument in arguments {
            match constant_of(argument) {
                Some(value) => known.extend(value.string().chars()),
                None => others.push(argument),
            }
        }
        let runs = wanted.text.split(|c: char| c == ' ' || known.contains(&c));
        let longest = first_longest(runs).to_owned();
        match others[..] {
            [other] if !longest.is_empty() => {
                self.string(other.into(), Wanted::new(StringTest::Has, longest), spine)
            }
            _ => vec![spine.clone()],
        }
    }

    /// Asks for what a substring shows of the string it is taken from.
    fn substring(
        &mut self,
        arguments: &'t [Expr],
        wanted: Wanted<'t>,
        spine: &Spine<'t>,
        offset: Offset,
    ) -> Vec<Spine<'t>> {
        let (whole, places) = (View::from(&arguments[0]), &arguments[1..]);
        let number_of = |place: &'t Expr| constant_of(place).map(|value| value.number());
        let is_start = number_of(&places[0]) == Some(1.0);
        let length = places.get(1).and_then(number_of);
        if let (true, Some(length), StringTest::Is) = (is_start, length, wanted.test)
            && length.fract() == 0.0
            && length > 0.0
        {
            let given = strings::char_count(wanted.text.as_bytes()) as f64;
            if given > length {
                return Vec::new();
            }
            let test = if given < length { StringTest::Is } else { StringTest::Begins };
            return self.string(whole, Wanted { test, ..wanted }, spine);
        }
        self.lose(Reason::Call("substring"), offset);
        if wanted.test == StringTest::IsSomething {
            return self.string(whole, wanted, spine);
        }
        let is_prefix = is_start && wanted.test != StringTest::Has;
        let test = if is_prefix { StringTest::Begins } else { StringTest::Has };
        self.string(whole, Wanted { test, ..wanted }, spine)
    }

    /// Asks for what stands before or after a mark.
    fn beside(
        &mut self,
        name: &'t str,
        arguments: &'t [Expr],
        wanted: Wanted<'t>,
        spine: &Spine<'t>,
        offset: Offset,
    ) -> Vec<Spine<'t>> {
        let whole = View::from(&arguments[0]);
        let mark = constant_of(&arguments[1]).map_or(Cow::Borrowed(""), Value::string);
        let is_before = name == "substring-before";
        if is_before && wanted.test == StringTest::Is && !mark.is_empty() {
            let both = format!("{}{mark}", wanted.text);
            let is_earlier = both.find(&*mark).is_some_and(|at| at < wanted.text.len());
            if is_earlier {
                return Vec::new();
            }
            return self.string(whole, Wanted::new(StringTest::Begins, both), spine);
        }
        self.lose(Reason::Call(name), offset);
        if wanted.test == StringTest::IsSomething {
            return self.string(whole, wanted, spine);
        }
        let is_has = wanted.test == StringTest::Has;
        if is_before {
            let test = if is_has { StringTest::Has } else { StringTest::Begins };
            return self.string(whole, Wanted { test, ..wanted }, spine);
        }
        let text = if is_has { wanted.text } else { Cow::Owned(format!("{mark}{}", wanted.text)) };
        self.string(whole, Wanted::new(StringTest::Has, text), spine)
    }

    // Names.

    /// Asks for a node's name: a node test, where it is known in full.
    fn name(
        &mut self,
        function: &'t str,
        path: View<'t>,
        wanted: Wanted<'t>,
        spine: &Spine<'t>,
    ) -> Vec<Spine<'t>> {
        if path.is_here() {
            let here = Cursor::at(spine.clone());
            let named = self.named(here, function, &wanted, path.offset());
            return named.into_iter().map(|cursor| cursor.spine).collect();
        }
        if !path.is_single() {
            let text = "reads the name of the first node of several";
            self.lose_construct(text, path.offset());
        }
        let ends = self.named_nodes(path, function, &wanted, spine);
        self.ends_or_base(ends, spine, path.offset())
    }

    /// Asks for a node of a node-set with a name as asked.
    fn named_nodes(
        &mut self,
        expr: View<'t>,
        function: &'t str,
        wanted: &Wanted<'t>,
        spine: &Spine<'t>,
    ) -> Walked<Vec<Spine<'t>>> {
        let mut found = Vec::new();
        for cursor in self.all_nodes(expr, spine)? {
            if let Some(named) = self.named(cursor, function, wanted, expr.offset()) {
                found.push(self.finished(named, None, expr.offset())?);
            }
        }
        Ok(found)
    }

    /// The cursor if its node may have a name as asked, with that said of it.
    fn named(
        &mut self,
        cursor: Cursor<'t>,
        function: &'t str,
        wanted: &Wanted<'t>,
        offset: Offset,
    ) -> Option<Cursor<'t>> {
        let kind = cursor.node().kind;
        if matches!(kind, NodeKind::Document | NodeKind::Text) {
            return None;
        }
        if kind == NodeKind::Other || wanted.test != StringTest::Is {
            if kind == NodeKind::Other || wanted.test != StringTest::IsSomething {
                self.lose(Reason::PartOfName(function), offset);
            } else if function == "namespace-uri" {
                self.lose_construct("asks whether there is a namespace", offset);
            }
            return Some(cursor);
        }
        if function == "namespace-uri" {
            return self.named_in(cursor, wanted, offset);
        }
        let (prefix, local) = match wanted.text.rsplit_once(':') {
            Some((prefix, local)) => (Some(prefix), local),
            None => (None, &*wanted.text),
        };
        if function == "local-name" && prefix.is_some() {
            return None;
        }
        if !is_ncname(local) || !prefix.is_none_or(is_ncname) {
            return None;
        }
        let local = part_of(&wanted.text, local);
        if function == "name" {
            if kind == NodeKind::Attribute && prefix.is_none() {
                let test = NameTest::Name { uri: Cow::Borrowed(""), local };
                return self.narrowed(cursor, &test, offset);
            }
            self.lose_construct("uses name(), which reads prefixes", offset);
        }
        self.narrowed(cursor, &NameTest::AnyNamespace { local }, offset)
    }

    fn named_in(
        &mut self,
        cursor: Cursor<'t>,
        wanted: &Wanted<'t>,
        offset: Offset,
    ) -> Option<Cursor<'t>> {
        if wanted.text.contains(['{', '}']) {
            self.lose_construct("a namespace URI with braces", offset);
            return Some(cursor);
        }
        if !is_collapsed(&wanted.text) {
            let text = "a namespace URI with white space that a name test collapses";
            self.lose_construct(text, offset);
            return Some(cursor);
        }
        self.narrowed(cursor, &NameTest::AnyIn { uri: wanted.text.clone() }, offset)
    }
}

/// The spines in order, each once.
pub(super) fn distinct(found: Vec<Spine<'_>>) -> Vec<Spine<'_>> {
    const FEW: usize = 8;
    let mut kept: Vec<Spine<'_>> = Vec::with_capacity(found.len());
    if found.len() <= FEW {
        for spine in found {
            if !kept.contains(&spine) {
                kept.push(spine);
            }
        }
        return kept;
    }
    let mut places: HashTable<(u64, usize)> = HashTable::with_capacity(found.len());
    for spine in found {
        let hash = spine.fingerprint();
        if places.find(hash, |&(known, at)| known == hash && kept[at] == spine).is_none() {
            places.insert_unique(hash, (hash, kept.len()), |&(hash, _)| hash);
            kept.push(spine);
        }
    }
    kept
}

/// A node-set without `[1]` or `[last()]` at its end: of some nodes, one is the first.
fn without_first(mut expr: View<'_>) -> View<'_> {
    while let View::Filter { primary, predicates, offset } = expr {
        let Some((last, others)) = predicates.split_last() else { break };
        let is_one = match &last.expr {
            Expr::Call { name, .. } => *name == "last",
            Expr::Number { value, .. } => *value == 1.0,
            _ => false,
        };
        if !is_one {
            break;
        }
        expr = if others.is_empty() {
            View::from(primary)
        } else {
            View::Filter { primary, predicates: others, offset }
        };
    }
    expr
}

/// What a string must hold for its normalised form to be as asked.
fn longest_word(wanted: Wanted<'_>) -> Wanted<'_> {
    let longest = first_longest(wanted.text.split(is_space));
    if longest.is_empty() {
        return Wanted::SOMETHING;
    }
    let text = part_of(&wanted.text, longest);
    Wanted { test: StringTest::Has, text }
}

/// White space of any script; more than XML has, which splits a word into parts that are contained as well.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The first of the longest texts, in characters.
fn first_longest<'a>(texts: impl Iterator<Item = &'a str>) -> &'a str {
    let (mut longest, mut length) = ("", 0);
    for text in texts {
        let count = strings::char_count(text.as_bytes());
        if count > length {
            (longest, length) = (text, count);
        }
    }
    longest
}

/// A part of a text, without a copy if that lies in the query.
fn part_of<'t>(whole: &Cow<'t, str>, part: &str) -> Cow<'t, str> {
    match whole {
        Cow::Borrowed(text) => {
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            Cow::Borrowed(&text[start..start + part.len()])
        }
        Cow::Owned(_) => Cow::Owned(part.to_owned()),
    }
}

/// Whether a text is a name without a colon (productions 4 and 4a of XML 1.0).
fn is_ncname(text: &str) -> bool {
    text.starts_with(is_ncname_start) && text.chars().all(is_ncname_char)
}
