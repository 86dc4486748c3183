//! The fast way from query text to normal form.
//!
//! One pass over the bytes, for the evaluated language in its usual notation: abbreviated steps,
//! attributes, `text()`, comparisons either way round, positions, `and`, nested paths, and the
//! papers' `$msg/`, `document("...")/` and `/[`. It takes every canonical text. Everything else
//! (other notations, and everything that is wrong) is [`Declined`]: [`crate::language::compile`] then gives
//! either the paths or the refusal.
//!
//! It never accepts what that refuses, and never gives another normal form.

use super::arrange::{add_predicate, arrange, or_self};
use super::ast::{Axis, Condition, Constant, NameTest, Operator, Stage, Step};
use super::canonical::text_of;
use super::namespaces::{Namespaces, is_collapsed};
use crate::language::grammar::Scanner;
use crate::language::grammar::names::{Written, ncname_length, written_name};
use crate::language::grammar::scan::Lexis;
use crate::language::values::VALUE_BYTES_MAX;
use std::borrow::Cow;

/// Bytes of a query, as written and in canonical form.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;

/// How deep brackets may nest, as written and in canonical form.
pub const DEPTH_MAX: usize = 64;

/// Syntax nodes of a query as written: steps (`//` stands for one), predicates, constants, calls,
/// operators and minuses.
pub const NODES_MAX: usize = 512;

/// Predicates of one step as written.
pub const PREDICATES_MAX: usize = 16;

/// Canonical text is at most this many times as long as the query, namespace URIs aside: the
/// worst is `[1]`, which becomes `[position()=1]`.
const GROWTH_MAX: usize = 5;

/// The query is not in a notation that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined;

/// A main path in normal form; one step or more.
pub type NormalPath<'q> = Vec<Step<'q>>;

/// The normal form of a query.
///
/// # Errors
/// [`Declined`] when the query is not in a notation that is read here; it may still be good.
///
/// ```
/// use pathcast_core::language::query::{Namespaces, canonical_text, compile};
/// let steps = compile("a//*/b[ 3 < @c ]/text()", Namespaces::NONE).unwrap();
/// let mut text = String::new();
/// canonical_text(&steps, &mut text);
/// assert_eq!(text, "/a/*//b[@c>3][text()]");
/// ```
pub fn compile<'q>(text: &'q str, namespaces: &'q Namespaces) -> Result<NormalPath<'q>, Declined> {
    let mut compiler = Compiler::default();
    compiler.compile(text, namespaces)?;
    Ok(compiler.steps)
}

/// The normal form of a canonical text. It may have more syntax nodes than the query had, and more
/// predicates to a step (`[@a and @b]` has one), so these are not counted.
///
/// # Errors
/// [`Declined`] when the text is not canonical.
pub fn compile_canonical(text: &str) -> Result<NormalPath<'_>, Declined> {
    let mut compiler = Compiler::default();
    compiler.compile_within(text, Namespaces::NONE, true)?;
    Ok(compiler.steps)
}

/// The normal form of a text that [`canonical_text`](super::canonical_text) has written: nothing of it has to be put in order.
///
/// # Errors
/// [`Declined`] when the text is not canonical; one that reads like it may give a path that is not in normal form.
pub(crate) fn read_canonical(text: &str) -> Result<NormalPath<'_>, Declined> {
    let mut steps = Vec::new();
    let mut parser = Parser::new(text, Namespaces::NONE, true);
    parser.is_arranged = true;
    parser.query(&mut steps)?;
    debug_assert_eq!(text_of(&steps), text, "it is canonical");
    Ok(steps)
}

/// Compiles one query after the other into the same memory.
#[derive(Debug, Default)]
pub struct Compiler<'q> {
    steps: Vec<Step<'q>>,
}

impl<'q> Compiler<'q> {
    /// The normal form of a query, as [`compile`] gives it; valid until the next call.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn compile(
        &mut self,
        text: &'q str,
        namespaces: &'q Namespaces,
    ) -> Result<&[Step<'q>], Declined> {
        self.compile_within(text, namespaces, false)
    }

    /// The normal form of a query, or of canonical text: it may cast, and no limit of nodes or predicates applies.
    fn compile_within(
        &mut self,
        text: &'q str,
        namespaces: &'q Namespaces,
        is_canonical: bool,
    ) -> Result<&[Step<'q>], Declined> {
        self.steps.clear();
        let text_bytes_max = TEXT_BYTES_MAX + if is_canonical { VALUE_BYTES_MAX } else { 0 };
        if text.len() > text_bytes_max {
            return Err(Declined);
        }
        let mut parser = Parser::new(text, namespaces, is_canonical);
        parser.query(&mut self.steps)?;
        if parser.nodes > NODES_MAX && !is_canonical {
            return Err(Declined);
        }
        let bound = text.len() * GROWTH_MAX + parser.uri_bytes;
        if bound > TEXT_BYTES_MAX && !is_within_bytes(&text_of(&self.steps), &self.steps) {
            return Err(Declined);
        }
        Ok(&self.steps)
    }
}

/// Whether a path is no longer than one may be; the values of its sets are counted apart.
pub(crate) fn is_within_bytes(text: &str, steps: &[Step<'_>]) -> bool {
    if text.len() <= TEXT_BYTES_MAX {
        return true;
    }
    let values = value_bytes(steps);
    values <= VALUE_BYTES_MAX && text.len() - values.min(text.len()) <= TEXT_BYTES_MAX
}

/// Bytes that the values of the sets of a path take in its canonical text.
pub(crate) fn value_bytes(steps: &[Step<'_>]) -> usize {
    let conditions = steps.iter().flat_map(Step::conditions);
    let bytes = conditions.map(|condition| match condition {
        Condition::Nested(steps) => value_bytes(steps),
        condition => match condition.compare() {
            // Quotes besides, and a comma where the set has its end.
            Some((_, Constant::Strings(values) | Constant::Texts(_, values))) => {
                values.text().len() + 2 * values.iter().count()
            }
            Some((_, Constant::Numbers(values) | Constant::Doubles(values))) => values.text().len(),
            _ => 0,
        },
    });
    bytes.sum()
}

/// What a path ends in.
pub(super) enum End<'q> {
    Element,
    Attribute(NameTest<'q>),
    Text,
}

impl<'q> End<'q> {
    /// The condition on the element at the end; none when there is nothing to ask of it.
    pub(super) fn condition(
        self,
        compare: Option<(Operator, Constant<'q>)>,
    ) -> Option<Condition<'q>> {
        match self {
            End::Attribute(test) => Some(Condition::Attribute { test, compare }),
            End::Text => Some(Condition::Text(compare)),
            End::Element => {
                compare.map(|(operator, constant)| Condition::Value(operator, constant))
            }
        }
    }
}

pub(super) struct Parser<'q> {
    pub(super) scanner: Scanner<'q>,
    namespaces: &'q Namespaces,
    /// Bytes that namespace URIs add to the canonical text.
    uri_bytes: usize,
    /// Syntax nodes so far.
    pub(super) nodes: usize,
    /// The text is canonical: it may cast, and no limit of nodes or predicates applies.
    pub(super) is_canonical: bool,
    /// What stands in the text is in the order of the normal form.
    is_arranged: bool,
}

impl<'q> Parser<'q> {
    fn new(text: &'q str, namespaces: &'q Namespaces, is_canonical: bool) -> Self {
        let scanner = Scanner::new(text, Lexis::XPath, false);
        Parser { scanner, namespaces, uri_bytes: 0, nodes: 0, is_canonical, is_arranged: false }
    }

    fn query(&mut self, steps: &mut Vec<Step<'q>>) -> Result<(), Declined> {
        if matches!(self.scanner.peek(), b'$' | b'd') {
            self.document()?;
        }
        let mut is_pending = false;
        if self.scanner.take(b'/') {
            is_pending = self.scanner.take_here("/");
            self.nodes += usize::from(is_pending);
        }
        if self.bare_steps(steps, &mut is_pending) {
            return Ok(());
        }
        let end = self.path(steps, &mut is_pending, 0)?;
        let is_element = matches!(end, End::Element);
        if !self.scanner.is_at_end() || (steps.is_empty() && (is_element || !is_pending)) {
            return Err(Declined);
        }
        self.finish(steps, end.condition(None), is_pending && !is_element, true);
        Ok(())
    }

    /// A paper's way to say "the message": `$msg`, `doc("...")`, `document("...")`.
    fn document(&mut self) -> Result<(), Declined> {
        // A variable is one syntax node, a call with its argument two.
        self.nodes += 2;
        if self.scanner.take(b'$') {
            // A prefixed variable is another one, and so is a longer name.
            if self.scanner.ncname_here() != Some("msg") {
                return Err(Declined);
            }
        } else if !self.document_call()? {
            return Ok(());
        }
        if self.scanner.peek() == b'/' { Ok(()) } else { Err(Declined) }
    }

    fn document_call(&mut self) -> Result<bool, Declined> {
        let start = self.scanner.at;
        if matches!(self.scanner.ncname_here(), Some("doc" | "document")) && self.scanner.take(b'(')
        {
            self.scanner.literal().ok_or(Declined)?;
            return if self.scanner.take(b')') { Ok(true) } else { Err(Declined) };
        }
        self.scanner.at = start;
        Ok(false)
    }

    /// Steps that are no more than a name or `*`, up to the first other one; true at the end of the
    /// query. Most queries of a large workload consist of nothing else.
    #[inline]
    fn bare_steps(&mut self, steps: &mut Vec<Step<'q>>, is_pending: &mut bool) -> bool {
        let uri = self.namespaces.default_uri();
        let mut has_wildcard = false;
        while uri.is_empty() {
            let (local, slashes) = match self.bare_step() {
                Some(found) => found,
                None => return false,
            };
            let axis = if *is_pending { Axis::Descendant } else { Axis::Child };
            let test = match local {
                "*" => {
                    has_wildcard = true;
                    NameTest::Any
                }
                _ => NameTest::Name { uri: Cow::Borrowed(""), local: Cow::Borrowed(local) },
            };
            steps.push(Step { axis, test, stages: Vec::new() });
            *is_pending = slashes == 2;
            self.nodes += 1 + usize::from(*is_pending);
            if slashes == 0 {
                if has_wildcard && !self.is_arranged {
                    arrange(steps, true);
                }
                return true;
            }
        }
        false
    }

    /// `*` or a name directly before a slash or the end, and the number of slashes taken.
    #[inline(always)]
    fn bare_step(&mut self) -> Option<(&'q str, usize)> {
        let rest = self.scanner.rest();
        let length = match ncname_length(rest) {
            0 if rest.starts_with('*') => 1,
            0 => return None,
            length => length,
        };
        let after = &rest.as_bytes()[length..];
        let slashes = match after {
            [] => 0,
            [b'/', b'/', ..] => 2,
            // A predicate after a slash would belong to this step.
            [b'/', b'[' | b' ' | b'\t' | b'\r' | b'\n', ..] => return None,
            [b'/', ..] => 1,
            _ => return None,
        };
        self.scanner.at += length + slashes;
        Some((&rest[..length], slashes))
    }

    /// The steps of a path after its first slashes; sets whether a `//` waits for a step.
    pub(super) fn path(
        &mut self,
        steps: &mut Vec<Step<'q>>,
        is_pending: &mut bool,
        depth: usize,
    ) -> Result<End<'q>, Declined> {
        loop {
            self.nodes += 1;
            let mut written = 0;
            let mut is_element = false;
            match self.scanner.peek() {
                b'.' => {
                    if self.self_step(steps, is_pending, depth)? {
                        return Ok(End::Element);
                    }
                }
                b'@' => {
                    self.scanner.skip(1);
                    self.scanner.peek();
                    let test = self.name_test(false)?;
                    return self.last(End::Attribute(test));
                }
                _ => {
                    let Some(test) = self.element_test()? else { return self.last(End::Text) };
                    let axis = if *is_pending { Axis::Descendant } else { Axis::Child };
                    let stages = self.predicates(Vec::new(), depth, &mut written)?;
                    steps.push(Step { axis, test, stages });
                    *is_pending = false;
                    is_element = true;
                }
            }
            let before = is_element.then_some(&mut written);
            if !self.separator(steps, is_pending, before, depth)? {
                return Ok(End::Element);
            }
        }
    }

    /// `.`, and whether it ended the path with predicates: `//.[@a]`.
    fn self_step(
        &mut self,
        steps: &mut Vec<Step<'q>>,
        is_pending: &mut bool,
        depth: usize,
    ) -> Result<bool, Declined> {
        if matches!(self.scanner.byte_after(1), b'.' | b'0'..=b'9') {
            return Err(Declined);
        }
        self.scanner.skip(1);
        if self.scanner.peek() != b'[' {
            return Ok(false);
        }
        let stages = self.predicates(Vec::new(), depth, &mut 0)?;
        let [stage] = &stages[..] else { return Err(Declined) };
        // A text node or comment, too, has a value: only these two ask for an element.
        let is_plain = stage.positions.is_empty()
            && stage.conditions.iter().all(|condition| {
                matches!(condition, Condition::Attribute { .. } | Condition::Text(_))
            });
        if !*is_pending || !is_plain || self.scanner.peek() == b'/' {
            return Err(Declined);
        }
        steps.push(or_self(stages));
        *is_pending = false;
        Ok(true)
    }

    /// The slashes before the next step; whether there is a next step. `written` counts the
    /// predicates of the step before, if that is an element.
    fn separator(
        &mut self,
        steps: &mut [Step<'q>],
        is_pending: &mut bool,
        mut written: Option<&mut usize>,
        depth: usize,
    ) -> Result<bool, Declined> {
        while self.scanner.take(b'/') {
            if self.scanner.take_here("/") {
                *is_pending = true;
                self.nodes += 1;
                return Ok(true);
            }
            if self.scanner.peek() != b'[' {
                return Ok(true);
            }
            // A predicate after a slash belongs to the step before.
            match (steps.last_mut(), written.as_deref_mut()) {
                (Some(step), Some(written)) => {
                    let stages = std::mem::take(&mut step.stages);
                    step.stages = self.predicates(stages, depth, written)?;
                }
                _ => return Err(Declined),
            }
        }
        Ok(false)
    }

    /// An end after which nothing of the path may follow.
    fn last(&mut self, end: End<'q>) -> Result<End<'q>, Declined> {
        if matches!(self.scanner.peek(), b'[' | b'/') { Err(Declined) } else { Ok(end) }
    }

    /// A name test, or none for `text()`; blanks after it are skipped.
    #[inline]
    fn element_test(&mut self) -> Result<Option<NameTest<'q>>, Declined> {
        let start = self.scanner.at;
        let test = self.name_test(true)?;
        let end = self.scanner.at;
        match self.scanner.peek() {
            b'(' => {
                let is_text = self.scanner.slice(start, end) == "text";
                self.scanner.skip(1);
                if is_text && self.scanner.take(b')') { Ok(None) } else { Err(Declined) }
            }
            b':' => Err(Declined),
            _ => Ok(Some(test)),
        }
    }

    /// The name test that is right here.
    #[inline]
    fn name_test(&mut self, is_element: bool) -> Result<NameTest<'q>, Declined> {
        let start = self.scanner.at;
        let name = self.scanner.ncname_here();
        let (uri, local) = match (name, self.scanner.byte()) {
            (None, b'*') => {
                self.scanner.skip(1);
                if !self.scanner.take_here(":") {
                    return Ok(NameTest::Any);
                }
                let local = Cow::Borrowed(self.scanner.ncname_here().ok_or(Declined)?);
                return Ok(NameTest::AnyNamespace { local });
            }
            (None, _) => return Err(Declined),
            (Some(_), b':' | b'{') => {
                self.scanner.at = start;
                self.long_name()?
            }
            (Some(local), _) => {
                let uri = if is_element { self.namespaces.default_uri() } else { "" };
                if !uri.is_empty() {
                    self.count(uri)?;
                }
                (uri, Some(local))
            }
        };
        let uri = Cow::Borrowed(uri);
        Ok(match local {
            Some(local) => NameTest::Name { uri, local: Cow::Borrowed(local) },
            None => NameTest::AnyIn { uri },
        })
    }

    /// The namespace and, if it is not `*`, the local part of the name that is right here and says its namespace.
    fn long_name(&mut self) -> Result<(&'q str, Option<&'q str>), Declined> {
        let (written, length) = written_name(self.scanner.rest()).ok_or(Declined)?;
        self.scanner.skip(length);
        match written {
            Written::Prefixed(prefix, local) => Ok((self.bound(prefix)?, Some(local))),
            Written::AnyIn(prefix) => Ok((self.bound(prefix)?, None)),
            Written::Braced(uri, local) if is_collapsed(uri) => Ok((uri, local)),
            // A name before `::` is an axis.
            Written::Braced(..) | Written::Plain(_) => Err(Declined),
        }
    }

    /// The URI of a prefix.
    fn bound(&mut self, prefix: &str) -> Result<&'q str, Declined> {
        let uri = self.namespaces.uri(prefix).ok_or(Declined)?;
        self.count(uri)?;
        Ok(uri)
    }

    /// Notes the length of a bound URI; one with braces, or with white space that is collapsed where it
    /// is read again, cannot be written canonically.
    fn count(&mut self, uri: &str) -> Result<(), Declined> {
        self.uri_bytes += uri.len() + "Q{}".len();
        let has_braces = memchr::memchr2(b'{', b'}', uri.as_bytes()).is_some();
        if has_braces || !is_collapsed(uri) { Err(Declined) } else { Ok(()) }
    }

    /// Predicates in brackets, added to those before; blanks after them are skipped.
    #[inline]
    fn predicates(
        &mut self,
        mut stages: Vec<Stage<'q>>,
        depth: usize,
        written: &mut usize,
    ) -> Result<Vec<Stage<'q>>, Declined> {
        while self.scanner.peek() == b'[' {
            *written += 1;
            if *written > PREDICATES_MAX && !self.is_canonical {
                return Err(Declined);
            }
            self.predicate(&mut stages, depth + 1)?;
        }
        Ok(stages)
    }

    /// Puts the condition of a path's end where it belongs, and the path in order.
    pub(super) fn finish(
        &self,
        steps: &mut Vec<Step<'q>>,
        condition: Option<Condition<'q>>,
        is_pending: bool,
        is_main: bool,
    ) {
        if let Some(condition) = condition {
            match steps.last_mut() {
                Some(last) if !is_pending => {
                    add_predicate(&mut last.stages, Vec::new(), vec![condition]);
                }
                _ => {
                    let stage = Stage { positions: Vec::new(), conditions: vec![condition] };
                    steps.push(or_self(vec![stage]));
                }
            }
        }
        if !self.is_arranged {
            arrange(steps, is_main);
        }
    }
}
