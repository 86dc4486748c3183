//! The gate of a subscription: what is in every message that it delivers.
//!
//! Reading order: [`formula`] (conditions over nodes, and how XPath says them), [`necessary`] (what must be there for an
//! expression to give an item), [`conditions`] (to be true), [`steps`] (paths).
//!
//! A gate that is weak costs time, one that is wrong loses a delivery: where a limit is met, the gate becomes weaker.

mod conditions;
mod formula;
mod necessary;
mod steps;

use super::reader::{check_nesting, size};
use super::tree::Expr as Condition;
use super::xquery::{Expr, Program, deciding_parts};
use formula::{Formula, ROOT, call, implied};
use necessary::{Item, Necessary};

/// Syntax nodes of a condition: a comparison with a number is written in five ways.
const NODES_MAX: usize = 8192;

/// The XPath condition of the document node that a delivered message fulfils, names resolved; `true()` if nothing is
/// known. `is_condition` says whether the effective boolean value of the program decides, not whether it gives a result.
///
/// ```
/// use pathcast_core::language::compile::compile_gate;
/// use pathcast_core::language::gates::condition_of;
/// use pathcast_core::language::xquery::Program;
///
/// let text = "<r>{for $a in //a, $b in $a/b where $a/@x = 'y' and $b/c return $b/d}</r>";
/// let condition = condition_of(&Program::parse(text, &[])?, false);
/// assert_eq!(compile_gate(&condition, false).alternatives[0].text, "//a[@x='y']/b[d]/c");
/// # Ok::<(), pathcast_core::language::xquery::Refusal>(())
/// ```
///
/// Cost: linear in the program for usual ones; bounded for all.
pub fn condition_of(program: &Program, is_condition: bool) -> Condition {
    for casts_max in [1, 0] {
        match condition_with_casts(program, casts_max, is_condition) {
            None => break,
            Some(condition) if check_nesting(&condition).is_err() => {}
            Some(condition) if size(&condition) > NODES_MAX => {}
            Some(condition) => return condition,
        }
    }
    call("true", Vec::new())
}

/// The condition with so many comparisons with a number, each of which makes five ways of one; none if nothing is known.
fn condition_with_casts(
    program: &Program,
    casts_max: u32,
    is_condition: bool,
) -> Option<Condition> {
    let root = Item::node(ROOT);
    let asked = if is_condition { deciding_parts(program) } else { Vec::new() };
    let formula = |walk: &mut Necessary<'_>| match asked[..] {
        // Several values are true, whatever they are.
        [part] if !matches!(program.expr(part), Expr::Element(_)) => walk.truth(part, None, root),
        _ => {
            let contents = program.contents.iter();
            let ways = contents.map(|&content| walk.gives(content, None, root));
            Formula::any_of(ways.collect::<Vec<_>>())
        }
    };
    // An equality says more than an order, so that it is carried over rather.
    let mut walk = Necessary::new(program, casts_max, true);
    let mut found = formula(&mut walk);
    if walk.casts_left == casts_max && walk.has_left_out {
        found = formula(&mut Necessary::new(program, casts_max, false));
    }
    implied(&found, ROOT, false)
}
