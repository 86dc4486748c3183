//! Paths in normal form as values of their own: what other rooms ask of them, and what they make of them.
//!
//! [`Path`] is one path, [`Conjunction`] paths that must all be in a message. [`widening`] makes paths that cover a
//! given one, [`covering`] finds which of many cover which, [`before_steps`] what must hold before steps. They travel
//! and are kept as canonical text, which is shorter than any bytes that say the same and is read in a microsecond.
//!
//! ```
//! use pathcast_core::language::paths::Path;
//! let wide = Path::read("//quote[@price>3]")?;
//! let narrow = Path::read("/m/quote[@price>5][sym]/x")?;
//! assert!(wide.covers(&narrow) && !narrow.covers(&wide));
//! # Ok::<(), pathcast_core::language::query::Declined>(())
//! ```

pub mod before_steps;
pub mod covering;
pub mod widening;

use crate::language::compile::{Alternative, Pattern, compile_query, is_no_message, needed};
use crate::language::query::arrange::arrange;
use crate::language::query::{
    Axis, Declined, NameTest, Namespaces, NormalPath, Step, compile_canonical, text_of,
};
use crate::language::reader::read_query;
use crate::language::refusal::Parsed;
use crate::language::tree::{Expr, Operator};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A path in normal form and its canonical text, by which it is equal to others.
#[derive(Clone, Debug)]
pub struct Path {
    steps: NormalPath<'static>,
    text: String,
}

impl Path {
    /// The path of some steps, which are in normal form.
    pub fn of(steps: &[Step<'_>]) -> Path {
        Path::in_order(steps.iter().cloned().map(Step::into_owned).collect())
    }

    /// The path that is written in canonical text, or in the usual notation that [`super::query::compile`] takes,
    /// without prefixes.
    ///
    /// # Errors
    /// It is not.
    pub fn read(text: &str) -> Result<Path, Declined> {
        Ok(Path::of(&compile_canonical(text)?))
    }

    /// The path of any message: `/*`.
    pub fn any_message() -> Path {
        Path::arranged(Vec::new())
    }

    /// A main path of steps that are to be put in order; of any message where there is none.
    pub(crate) fn arranged(mut steps: NormalPath<'static>) -> Path {
        if steps.is_empty() {
            steps.push(Step { axis: Axis::Child, test: NameTest::Any, stages: Vec::new() });
        }
        arrange(&mut steps, true);
        Path::in_order(steps)
    }

    fn in_order(steps: NormalPath<'static>) -> Path {
        let text = text_of(&steps);
        Path { steps, text }
    }

    /// The main path.
    pub fn steps(&self) -> &[Step<'static>] {
        &self.steps
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether some message may have it; false only if its steps or conditions exclude each other.
    pub fn can_match(&self) -> bool {
        !is_no_message(&self.steps) && self.pattern().can_match()
    }

    /// Whether every message that has another path has this one; sound.
    ///
    /// Cost: steps of the one times steps of the other, times the wildcards between two names.
    pub fn covers(&self, special: &Path) -> bool {
        self.pattern().covers(&special.pattern())
    }

    fn pattern(&self) -> Pattern<'_, 'static> {
        Pattern::new(&self.steps)
    }
}

impl From<Alternative<'_>> for Path {
    fn from(Alternative { steps, text }: Alternative<'_>) -> Path {
        Path { steps: steps.into_iter().map(Step::into_owned).collect(), text }
    }
}

/// What stands between the paths of a conjunction.
const AND: &str = " and ";

/// Paths that must all be in a message: one or more, sorted by canonical text, each once.
#[derive(Clone, Debug)]
pub struct Conjunction {
    paths: Vec<Path>,
    text: String,
}

impl Conjunction {
    /// The conjunction of some paths; that of any message where there is none.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Conjunction {
        let mut paths: Vec<Path> = paths.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        if paths.is_empty() {
            paths.push(Path::any_message());
        }
        let texts: Vec<&str> = paths.iter().map(Path::text).collect();
        let text = texts.join(AND);
        Conjunction { paths, text }
    }

    /// The conjunction that a text stands for: paths, with "and" between them; nothing if more has to be said.
    ///
    /// Cost: a microsecond a path in canonical text, some more for another one.
    ///
    /// # Errors
    /// The text is no query.
    pub fn read(text: &str) -> Parsed<Option<Conjunction>> {
        let canonical: Result<Vec<Path>, Declined> = parts_of(text).map(Path::read).collect();
        if let Ok(paths) = canonical {
            return Ok(Some(Conjunction::of(paths)));
        }
        let tree = read_query(text, Namespaces::NONE)?;
        let parts = match &tree {
            Expr::Binary { operators, operands, .. } if operators[0] == Operator::And => operands,
            other => std::slice::from_ref(other),
        };
        let mut paths = Vec::with_capacity(parts.len());
        for part in parts {
            let compiled = compile_query(part)?;
            let ([path], None) = (&compiled.alternatives[..], compiled.expression) else {
                return Ok(None);
            };
            paths.push(path.clone().into());
        }
        Ok(Some(Conjunction::of(paths)))
    }

    /// The conjunction of the linear paths that its paths ask for.
    pub fn linear(&self) -> Conjunction {
        Conjunction::of(self.paths.iter().flat_map(Path::linear_paths))
    }

    /// Conjunctions in order, without those that another one covers; all of them where they are very many.
    pub fn uncovered(of: impl IntoIterator<Item = Conjunction>) -> Vec<Conjunction> {
        let mut found: Vec<Conjunction> =
            of.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let mut kept =
            needed(&found, Conjunction::patterns, |special, general| cover(general, special));
        found.retain(|_| kept.next() == Some(true));
        found
    }

    /// The paths.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Its canonical text, which is XPath but for namespaces: the texts of its paths with "and" between them.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether every message that has all paths of another one has all of this one; sound.
    ///
    /// Cost: a comparison for each path of the one and path of the other.
    pub fn covers(&self, special: &Conjunction) -> bool {
        cover(&self.patterns(), &special.patterns())
    }

    fn patterns(&self) -> Vec<Pattern<'_, 'static>> {
        self.paths.iter().map(Path::pattern).collect()
    }
}

/// Whether every message that has all of some paths has all of others.
fn cover<'q>(general: &[Pattern<'q, 'static>], special: &[Pattern<'q, 'static>]) -> bool {
    general.iter().all(|wide| special.iter().any(|narrow| wide.covers(narrow)))
}

/// The texts of the paths of a conjunction: " and " in brackets, literals and URIs is theirs.
fn parts_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut depth, mut closing) = (0usize, None);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if closing.is_some() => closing = closing.filter(|&closing| closing != byte),
                b'\'' | b'"' => closing = Some(byte),
                b'{' => closing = Some(b'}'),
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth = depth.saturating_sub(1),
                b' ' if depth == 0 && text[at..].starts_with(AND) => {
                    rest = Some(&text[at + AND.len()..]);
                    return Some(&text[..at]);
                }
                _ => {}
            }
        }
        rest = None;
        Some(text)
    })
}

/// Equality, order and display by the canonical text.
macro_rules! by_text {
    ($kind:ident) => {
        impl PartialEq for $kind {
            fn eq(&self, other: &Self) -> bool {
                self.text == other.text
            }
        }

        impl Eq for $kind {}

        impl PartialOrd for $kind {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $kind {
            fn cmp(&self, other: &Self) -> Ordering {
                self.text.cmp(&other.text)
            }
        }

        impl Hash for $kind {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.text.hash(state);
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.text)
            }
        }
    };
}

by_text!(Path);
by_text!(Conjunction);
