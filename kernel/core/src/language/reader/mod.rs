//! Query text to syntax tree: the whole of XPath 1.0.
//!
//! [`read`] gives the tree of a text as it was written, [`resolve`] one that stands by itself: prefixes are namespace
//! URIs, the message is the document node, types are right. A bad text is a [`Refusal`]: data, which Python renders.
//! Both are linear in the text. [`read_query`] does all that the text of a standing query asks for; [`read_canonical`]
//! reads the canonical text of an expression, which is what is stored of it.
//!
//! Reading order: `parser` (XPath 1.0 as a [grammar](super::grammar)), `tokens` (of refusals), `resolver`; `measure`
//! has what is asked of a tree.

mod measure;
mod parser;
mod resolver;
mod tokens;

pub use crate::language::xpath::Kind;
pub(crate) use measure::kind_of_run;
pub use measure::{check_nesting, disjuncts, kind_of, nesting, size};
pub use parser::read;
pub use resolver::resolve;

use crate::language::query::Namespaces;
use crate::language::refusal::Parsed;
use crate::language::tree::Expr;
use parser::{Limits, read_within};

/// Bytes of a canonical expression text: axes and namespace URIs are written out, so it may be longer than the query.
pub const EXPRESSION_BYTES_MAX: usize = 64 * 1024;

/// The syntax tree of a standing query, names resolved: [`read`], [`check_nesting`], [`resolve`].
pub fn read_query(text: &str, namespaces: &Namespaces) -> Parsed<Expr> {
    resolve_query(read(text)?, namespaces)
}

/// The syntax tree of a standing query that was read before: [`check_nesting`], [`resolve`].
pub(crate) fn resolve_query(expr: Expr, namespaces: &Namespaces) -> Parsed<Expr> {
    check_nesting(&expr)?;
    resolve(expr, namespaces)
}

/// The syntax tree of a canonical expression text, names resolved.
///
/// The text of a query within the limits is within these: what the query says in one place may be written in several.
pub fn read_canonical(text: &str) -> Parsed<Expr> {
    resolve_query(read_within(text, &Limits::CANONICAL)?, Namespaces::NONE)
}
