//! Query text to syntax tree: the whole of XPath 1.0.
//!
//! [`read`] gives the tree of a text as it was written, [`resolve`] one that stands by itself: prefixes are namespace
//! URIs, the message is the document node, types are right. A bad text is a [`Refusal`]: data, which Python renders.
//! Both are linear in the text. [`read_query`] does all that the text of a standing query asks for.
//!
//! Reading order: `lexer`, `parser`, `resolver`, `refusal`; `measure` has what is asked of a tree.

mod lexer;
mod measure;
mod parser;
mod refusal;
mod resolver;

pub use crate::language::xpath::Kind;
pub(crate) use measure::kind_of_run;
pub use measure::{check_nesting, disjuncts, kind_of, nesting, size};
pub use parser::read;
pub use refusal::{Bracket, Expected, NodeSetUse, Param, Reason, Refusal, UriFault};
pub use resolver::resolve;

use crate::language::query::Namespaces;
use crate::language::tree::Expr;

/// The syntax tree of a gate: paths in canonical text, which may cast, with `and` between them.
pub fn read_gate(text: &str) -> Result<Expr, Refusal> {
    let expr = parser::read_text(text, true)?;
    check_nesting(&expr)?;
    resolve(expr, Namespaces::NONE)
}

/// The syntax tree of a standing query, names resolved: [`read`], [`check_nesting`], [`resolve`].
pub fn read_query(text: &str, namespaces: &Namespaces) -> Result<Expr, Refusal> {
    let expr = read(text)?;
    check_nesting(&expr)?;
    resolve(expr, namespaces)
}
