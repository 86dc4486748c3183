//! The gate of a subscription: what is in every message that it delivers.
//!
//! Reading order: [`formula`] (conditions over nodes, and how XPath says them), [`necessary`] (what must be there for
//! an expression to give an item), [`conditions`] (to be true), [`texts`] (where texts are asked), [`steps`] (paths).
//!
//! A gate that is weak costs time, one that is wrong loses a delivery: where a limit is met, the gate becomes weaker.

mod conditions;
mod formula;
mod necessary;
mod steps;
mod texts;

use super::compile::Gate;
use super::reader::{check_nesting, size};
use super::tree::Expr as Condition;
use super::xquery::{Expr, ExprId, Program, deciding_parts};
use formula::{Formula, ROOT, call, exact, implied};
use necessary::{Item, Necessary};

/// Syntax nodes of a condition.
const NODES_MAX: usize = 8192;

/// What is in every message that a program delivers. `is_condition` says whether the effective boolean value of the program decides, not whether it gives a
/// result.
///
/// ```
/// use pathcast_core::language::compile::compile_gate;
/// use pathcast_core::language::gates::gate_of;
/// use pathcast_core::language::xquery::Program;
///
/// let text = "<r>{for $a in //a, $b in $a/b where $a/@x = 'y' and $b/c return $b/d}</r>";
/// let gate = gate_of(&Program::parse(text, &[])?, false);
/// assert_eq!(compile_gate(&gate, false).alternatives[0].text, "//a[@x='y']/b[d]/c");
/// # Ok::<(), Box<pathcast_core::language::refusal::Refusal>>(())
/// ```
///
/// Cost: linear in the program for usual ones; bounded for all.
pub fn gate_of(program: &Program, is_condition: bool) -> Gate {
    let root = Item::node(ROOT);
    let asked = if is_condition { deciding_parts(program) } else { Vec::new() };
    let mut walk = Necessary::new(program);
    let mut is_truth = false;
    let formula = match asked[..] {
        // Several values are true, whatever they are.
        [part] if !matches!(program.expr(part), Expr::Element(_)) => {
            is_truth = is_all_but_nothing(program, part);
            walk.truth(part, None, root)
        }
        _ => {
            let contents = program.contents.iter();
            let ways = contents.map(|&content| walk.gives(content, None, root));
            Formula::any_of(ways.collect::<Vec<_>>())
        }
    };
    let is_within =
        |condition: &Condition| check_nesting(condition).is_ok() && size(condition) <= NODES_MAX;
    if is_truth && let Some(condition) = exact(&formula, ROOT).filter(is_within) {
        return Gate { condition, is_exact: true };
    }
    let condition = implied(&formula, ROOT, false).filter(is_within);
    let condition = condition.unwrap_or_else(|| call("true", Vec::new()));
    Gate { condition, is_exact: false }
}

/// Whether a part of the body of a program is all of it but for empty sequences.
fn is_all_but_nothing(program: &Program, part: ExprId) -> bool {
    let is_nothing = |id| matches!(program.expr(id), Expr::Sequence(list) if list.is_empty());
    let body = program.body();
    match program.expr(body) {
        _ if body == part => true,
        Expr::Sequence(list) => program.list(list).iter().all(|&id| id == part || is_nothing(id)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::compile::compile_gate;

    fn gate(text: &str) -> Vec<String> {
        let program = Program::parse(text, &[]).expect(text);
        let gate = gate_of(&program, false);
        let gate = compile_gate(&gate, false);
        gate.alternatives.into_iter().map(|alternative| alternative.text).collect()
    }

    #[test]
    fn a_comparison_with_a_number_is_one_atom() {
        for (text, expected) in [
            ("for $o in //o where $o/total = 3 return $o", &["//o/total[double(.)=3]"][..]),
            ("for $o in //o where 1e3 < $o/@total return $o", &["//o[double(@total)>1000]"]),
            ("for $o in //o where $o/text() != -3.50 return $o", &["//o[double(text())!=-3.5]"]),
            (
                "for $o in //o where $o/@a >= 1 and $o/@b <= 2 and $o/c != 3 return $o",
                &["//o[double(@a)>=1][double(@b)<=2]/c[double(.)!=3]"],
            ),
            ("for $o in //o where $o/@a = (1, 2) return $o", &["//o[double(@a)=(1,2)]"]),
            ("for $o in //o where $o/@a eq 3 return $o", &["//o[double(@a)=3]"]),
            // The narrower of two says all.
            ("(//o[@a > 3], //o[@a > 5])", &["//o[double(@a)>3]"]),
            // It says all of the comparison, so that it may be denied, and positions count what it leaves.
            ("for $o in //o[not(. = 3)] return $o", &["//o[double(.)!=3]"]),
            ("for $o in //o[not(. = (3, 4))] return $o", &["//o[double(.)!=3][double(.)!=4]"]),
            (
                "for $o in //o where $o/@a = 'b' or $o/@a = 'a' or $o/@c return $o",
                &["//o[@a=('a','b')]", "//o[@c]"],
            ),
            (
                "for $o in //o where ('b', 2, 'a', 1) = $o/@a return $o",
                &["//o[@a=('a','b')]", "//o[double(@a)=(1,2)]"],
            ),
            ("for $o in //o[@a = 3][2] return $o", &["//o[double(@a)=3][position()=2]"]),
            // What is no number is not below one, and not above it either.
            ("for $o in //o[not(. < 3)] return $o", &["//o"]),
            ("for $o in //o where $o/@a = 1e400 return $o", &["//o[@a]"]),
        ] {
            assert_eq!(gate(text), expected, "{text}");
        }
    }
}
