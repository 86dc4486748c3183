//! What a query becomes: paths that are indexed and, where need be, an expression.
//!
//! > the query holds  <=>  some alternative holds, and the expression (if there is one) is true
//!
//! Reading order: [`spine`] (tree patterns in the making), [`moving`] and [`walking`] (location paths over them),
//! [`string_conditions`], [`number_conditions`], [`weakening`] (what must be there if an expression is true),
//! [`alternatives`] (patterns to paths in normal form), [`expression`] (text for the evaluators), [`layout`] (the arena
//! that they run). [`losses`] tells why there is an expression.
//!
//! ```
//! use pathcast_core::language::compile::{CostClass, compile_query};
//! use pathcast_core::language::query::Namespaces;
//! use pathcast_core::language::reader::read_query;
//!
//! let tree = read_query("//a[last()]/b[@x]", Namespaces::NONE)?;
//! let query = compile_query(&tree)?;
//! assert_eq!(query.alternatives[0].text, "//a/b[@x]");
//! assert_eq!(query.cost(), CostClass::CandidateChecked);
//! # Ok::<(), Box<pathcast_core::language::refusal::Refusal>>(())
//! ```

mod alternatives;
mod constants;
mod containment;
mod expression;
mod generalising;
mod implication;
mod layout;
mod losses;
mod moving;
mod number_conditions;
mod spine;
mod string_conditions;
mod view;
mod walking;
mod weakening;

pub use alternatives::Alternative;
pub(crate) use alternatives::is_no_message;
pub(crate) use containment::{Pattern, needed};
use expression::expression_text;
pub use implication::{Facts, can_be_count, holds, is_any_count};

use crate::language::query::arrange::depth;
use crate::language::query::{DEPTH_MAX, NormalPath, Step, TEXT_BYTES_MAX, is_within_bytes};
use crate::language::reader::{EXPRESSION_BYTES_MAX, disjuncts};
use crate::language::refusal::{Parsed, Reason, Refusal};
use crate::language::tree::{Expr, Offset};
use crate::language::xpath::Expression;
use alternatives::{alternatives_of, alternatives_of_paths, conjunction_of, in_order};
use losses::Loss;
use moving::{Weakener, alternatives_max};
use spine::Spine;
use std::borrow::Cow;

/// Alternatives that a reason shows.
const SHOWN_MAX: usize = 3;

/// Characters of each that it shows.
const SHOWN_CHARACTERS_MAX: usize = 400;

/// What a query costs a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostClass {
    /// Nothing beyond the shared index: its paths say all of it.
    Indexed,
    /// The expression is evaluated for messages in which one of the paths is found.
    CandidateChecked,
    /// The expression is evaluated for every message: nothing is known that must be there.
    Scan,
}

impl CostClass {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CostClass::Indexed => "indexed",
            CostClass::CandidateChecked => "candidate-checked",
            CostClass::Scan => "scan",
        }
    }
}

/// Why a query has an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// A clause: "uses last(), which only the evaluator knows".
    pub text: String,
    /// Where in the query.
    pub offset: Offset,
}

/// An expression as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated {
    /// Canonical expression text.
    pub text: String,
    /// See [`Expression::needs_full_tree`].
    pub needs_full_tree: bool,
}

impl Evaluated {
    /// A resolved expression.
    ///
    /// # Errors
    /// It is over a limit.
    pub fn of(resolved: &Expr) -> Parsed<Self> {
        let mut text = String::with_capacity(256);
        expression_text(resolved, &mut text);
        check_length(&text, EXPRESSION_BYTES_MAX)?;
        check_nesting(&text)?;
        Ok(Evaluated { text, needs_full_tree: Expression::of(resolved).needs_full_tree() })
    }
}

/// A query, split into what is indexed and what is evaluated.
#[derive(Debug)]
pub struct CompiledQuery<'t> {
    /// Paths in normal form, one or more, sorted by canonical text, without duplicates. If the query holds, one of them
    /// does.
    pub alternatives: Vec<Alternative<'t>>,
    /// What is evaluated; none where the alternatives say all of the query.
    pub expression: Option<Evaluated>,
    /// What the alternatives do not say.
    losses: Vec<Loss<'t>>,
    /// Of the whole message; if the query holds, one of them is there.
    patterns: Vec<Spine<'t>>,
}

impl<'t> CompiledQuery<'t> {
    /// Whether the alternatives say all of it.
    pub fn is_exact(&self) -> bool {
        self.losses.is_empty()
    }

    /// What it costs a message.
    pub fn cost(&self) -> CostClass {
        if self.is_exact() {
            return CostClass::Indexed;
        }
        cost_of_evaluated(&self.alternatives)
    }

    /// Why the alternatives are not all of it: each reason once, in the order in which they were found, and where
    /// candidates come from; empty if they are all of it.
    pub fn reasons(&self) -> Vec<Why> {
        let mut first: Vec<Loss<'_>> = Vec::new();
        for loss in &self.losses {
            if !first.iter().any(|known| known.reason == loss.reason) {
                first.push(*loss);
            }
        }
        let told = first.iter();
        let told = told.map(|loss| Why { text: loss.reason.to_string(), offset: loss.offset });
        let source = (!first.is_empty()).then(|| source_of(&self.alternatives));
        told.chain(source).collect()
    }

    /// Paths that must all be in a message, one conjunction or more: if the query holds, one of the conjunctions does.
    ///
    /// They say what the alternatives say of one path each, without putting paths together at the root element; none
    /// where the query never holds.
    pub fn conjunctions(&self) -> Vec<Vec<Alternative<'t>>> {
        let found = self.patterns.iter().filter_map(conjunction_of);
        found.map(|paths| within_limits(paths.into_iter().map(Alternative::of))).collect()
    }
}

/// Compiles a query.
///
/// Cost: in proportion to the tree, times the alternatives at each place.
///
/// # Errors
/// It is over a limit.
pub fn compile_query(resolved: &Expr) -> Parsed<CompiledQuery<'_>> {
    let mut weakener = Weakener::new(disjuncts(resolved));
    let patterns = weakener.holds(resolved.into(), &Spine::document(), false);
    let (alternatives, is_all) = alternatives_of(&patterns, weakener.alternatives_max);
    // Where no path can be found, there is nothing to evaluate.
    let is_never = alternatives.len() == 1 && alternatives[0].is_no_message();
    if is_never {
        weakener.losses.clear();
    }
    if !is_all {
        weakener.lose_construct("asks for several paths together, which are too many ways", 0);
    }
    let losses = weakener.losses;
    if losses.is_empty() {
        alternatives.iter().try_for_each(check_path)?;
        return Ok(CompiledQuery { alternatives, expression: None, losses, patterns });
    }
    let expression = Some(Evaluated::of(resolved)?);
    Ok(CompiledQuery { alternatives: within_limits(alternatives), expression, losses, patterns })
}

/// The XPath condition of the document node that a delivered message fulfils.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// The condition, names resolved; `true()` if nothing is known.
    pub condition: Expr,
    /// A message that fulfils it is delivered.
    pub is_exact: bool,
}

/// Compiles a gate, of which the paths are kept alone. Where they do not say all of it the program decides, by its
/// effective boolean value if `is_condition` says so.
///
/// Cost: in proportion to the tree, times the alternatives at each place.
pub fn compile_gate(gate: &Gate, is_condition: bool) -> CompiledQuery<'_> {
    let resolved = &gate.condition;
    let mut weakener = Weakener::new(disjuncts(resolved));
    let patterns = weakener.holds(resolved.into(), &Spine::document(), false);
    let (alternatives, is_all) = alternatives_of(&patterns, weakener.alternatives_max);
    let is_whole = gate.is_exact && is_all && weakener.losses.is_empty();
    if is_whole && alternatives.iter().all(|path| check_path(path).is_ok()) {
        return CompiledQuery { alternatives, expression: None, losses: Vec::new(), patterns };
    }
    let alternatives = within_limits(alternatives);
    let decides = if is_condition {
        "the program decides"
    } else {
        "the program decides and makes the result"
    };
    let losses = vec![Loss { reason: losses::Reason::Construct(decides), offset: 0 }];
    CompiledQuery { alternatives, expression: None, losses, patterns }
}

/// Alternatives of a message that has all of some paths. Where these have too many combinations at the root element,
/// they say the longest path alone.
pub fn alternatives_of_conjunction<'t>(paths: &[&[Step<'t>]]) -> Vec<Alternative<'t>> {
    within_limits(alternatives_of_paths(paths, alternatives_max(1)))
}

/// The cost class of a query that is evaluated where one of the paths is found.
pub fn cost_of_evaluated(paths: &[Alternative<'_>]) -> CostClass {
    let is_scan = paths.iter().any(Alternative::is_any_message);
    if is_scan { CostClass::Scan } else { CostClass::CandidateChecked }
}

/// Refuses a query one of whose paths is too long or nests too deep.
fn check_path(path: &Alternative<'_>) -> Parsed<()> {
    if !is_within_bytes(&path.text, &path.steps) {
        check_length(&path.text, TEXT_BYTES_MAX)?;
    }
    if depth(&path.steps) > DEPTH_MAX { Err(too_deep()) } else { Ok(()) }
}

fn check_length(text: &str, maximum: usize) -> Parsed<()> {
    if text.len() <= maximum {
        return Ok(());
    }
    Err(Refusal::new(0, Reason::TooLong, vec![text.len().into(), maximum.into()]))
}

/// Refuses a query whose expression nests too deep.
fn check_nesting(expression: &str) -> Parsed<()> {
    let mut deepest = 0usize;
    let bytes = expression.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let closing = match byte {
            b'\'' | b'"' => Some(byte),
            b'Q' if bytes.get(at + 1) == Some(&b'{') => Some(b'}'),
            _ => None,
        };
        if let Some(closing) = closing {
            at += 1 + memchr::memchr(closing, &bytes[at + 1..]).unwrap_or(0);
        }
        match byte {
            b'(' | b'[' => deepest += 1,
            b')' | b']' => deepest = deepest.saturating_sub(1),
            _ => {}
        }
        if deepest > DEPTH_MAX {
            return Err(too_deep());
        }
        at += 1;
    }
    Ok(())
}

fn too_deep() -> Box<Refusal> {
    Refusal::new(0, Reason::TooDeep, vec![DEPTH_MAX.into()])
}

/// The paths; without predicates where the limits of a path leave no room for them.
fn within_limits<'t>(paths: impl IntoIterator<Item = Alternative<'t>>) -> Vec<Alternative<'t>> {
    in_order(paths.into_iter().map(|path| {
        if is_within_bytes(&path.text, &path.steps) && depth(&path.steps) <= DEPTH_MAX {
            return path;
        }
        let bare = Alternative::of(without_predicates(path.steps));
        if bare.text.len() > TEXT_BYTES_MAX { Alternative::any_message() } else { bare }
    }))
}

fn without_predicates(mut steps: NormalPath<'_>) -> NormalPath<'_> {
    steps.iter_mut().for_each(|step| step.stages.clear());
    crate::language::query::arrange::arrange(&mut steps, true);
    steps
}

/// A path as a reason shows it: without most of a long list.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

/// Where candidates come from.
fn source_of(paths: &[Alternative<'_>]) -> Why {
    let text = if cost_of_evaluated(paths) == CostClass::Scan {
        "every message is a candidate: nothing is known that must be in it".to_owned()
    } else {
        let shown: Vec<_> =
            paths.iter().take(SHOWN_MAX).map(|path| shortened(&path.text)).collect();
        let shown = shown.join(", ");
        match paths.len().saturating_sub(SHOWN_MAX) {
            0 => format!("candidates come from {shown}"),
            more => format!("candidates come from {shown} and {more} more"),
        }
    };
    Why { text, offset: 0 }
}
