//! What can be said about an expression before any message: types, what of the context it depends
//! on, what is worth keeping, which parts of a message it needs.
//!
//! The worst case is polynomial by Gottlob, Koch and Pichler, "Efficient algorithms for processing
//! XPath queries" (2005): a sub-expression that does not depend on position and size has one value
//! per context node, and one that does not depend on the context has one value. These are kept
//! where they could be asked for again. Differs: node-sets are computed a set at a time where
//! positions do not count, and nothing is kept where an axis cannot lead to a node twice.

use super::ast::{
    Arena, Axis, Expr, ExprId, Facts, Kind, List, Memo, NodeTest, Start, Step, depends,
};
use crate::language::comparison::Comparison;
use crate::language::functions::Function;

/// Adds a sub-expression whose parts are in the arena.
pub(crate) fn push(arena: &mut Arena, expr: Expr) -> ExprId {
    let facts = Facts { kind: kind(expr), depends: dependence(arena, expr), memo: Memo::No };
    arena.exprs.push(expr);
    arena.facts.push(facts);
    arena.exprs.len() as ExprId - 1
}

fn kind(expr: Expr) -> Kind {
    match expr {
        Expr::Number(_) | Expr::Calculate(..) | Expr::Negate(_) => Kind::Number,
        Expr::Literal(_) => Kind::String,
        Expr::Or(_) | Expr::And(_) | Expr::Compare(..) => Kind::Boolean,
        Expr::Union(_) | Expr::Path { .. } => Kind::Nodes,
        Expr::Call(function, _) => function.signature().kind,
    }
}

fn dependence(arena: &Arena, expr: Expr) -> u8 {
    let of_list =
        |list: List| arena.list(list).iter().fold(0, |bits, &id| bits | arena.depends(id));
    match expr {
        Expr::Number(_) | Expr::Literal(_) => 0,
        Expr::Or(list) | Expr::And(list) | Expr::Union(list) => of_list(list),
        Expr::Compare(_, left, right) | Expr::Calculate(_, left, right) => {
            arena.depends(left) | arena.depends(right)
        }
        Expr::Negate(operand) => arena.depends(operand),
        Expr::Path { start, .. } => match start {
            Start::Context => depends::NODE,
            Start::Root => 0,
            Start::Filter { set, .. } => arena.depends(set),
        },
        Expr::Call(function, list) => {
            let is_default = list.is_empty() && function.has_context_default();
            let own = match function {
                Function::Position => depends::POSITION,
                Function::Last => depends::SIZE,
                _ if is_default || function == Function::Lang => depends::NODE,
                _ => 0,
            };
            own | of_list(list)
        }
    }
}

/// Whether a predicate asks for position or size.
pub(crate) fn is_positional(arena: &Arena, id: ExprId) -> bool {
    arena.depends(id) & depends::PLACE != 0
}

/// The n of `[n]`, where n is a whole number from 1 on.
pub(crate) fn nth(arena: &Arena, id: ExprId) -> Option<u32> {
    let Expr::Compare(Comparison::Eq, left, right) = arena.exprs[id as usize] else {
        return None;
    };
    let is_position =
        |id: ExprId| matches!(arena.exprs[id as usize], Expr::Call(Function::Position, _));
    let number = match (arena.exprs[left as usize], arena.exprs[right as usize]) {
        (_, Expr::Number(number)) if is_position(left) => number,
        (Expr::Number(number), _) if is_position(right) => number,
        _ => return None,
    };
    (number >= 1.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX))
        .then_some(number as u32)
}

/// How often a sub-expression is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    /// Once in an evaluation of the whole.
    Once,
    /// At most once for any context node.
    PerNode,
    /// As often as the expression around it pleases.
    Many,
}

/// Decides what is kept, from the root down, which is computed once or in many contexts.
pub(crate) fn choose_memos(arena: &mut Arena, root: ExprId, has_many_contexts: bool) {
    let times = if has_many_contexts { Times::Many } else { Times::Once };
    let mut todo = vec![(root, times)];
    while let Some((id, asked)) = todo.pop() {
        let computed = choose(arena, id, asked);
        visit_parts(arena, id, computed, &mut todo);
    }
}

/// Decides for one sub-expression that is asked for so often; gives how often it is computed.
fn choose(arena: &mut Arena, id: ExprId, asked: Times) -> Times {
    let bits = arena.depends(id);
    if is_simple(arena, id) || bits & depends::PLACE != 0 {
        return asked;
    }
    let slot = arena.slots;
    let (memo, computed) = match (bits, asked) {
        (0, Times::PerNode | Times::Many) => (Memo::Once(slot), Times::Once),
        (_, Times::Many) => (Memo::PerNode(slot), Times::PerNode),
        _ => return asked,
    };
    arena.slots += 1;
    arena.facts[id as usize].memo = memo;
    computed
}

fn visit_parts(arena: &Arena, id: ExprId, times: Times, todo: &mut Vec<(ExprId, Times)>) {
    let mut push_list =
        |list: List, times: Times| todo.extend(arena.list(list).iter().map(|&id| (id, times)));
    match arena.exprs[id as usize] {
        Expr::Number(_) | Expr::Literal(_) => {}
        Expr::Or(list) | Expr::And(list) | Expr::Union(list) | Expr::Call(_, list) => {
            push_list(list, times);
        }
        Expr::Compare(_, left, right) | Expr::Calculate(_, left, right) => {
            todo.extend([(left, times), (right, times)]);
        }
        Expr::Negate(operand) => todo.push((operand, times)),
        Expr::Path { start, steps } => {
            // Whether different contexts of the path have led to different nodes so far.
            let mut is_apart = times != Times::Many;
            if let Start::Filter { predicates, .. } = start {
                is_apart = times == Times::Once;
                push_list(predicates, if is_apart { Times::PerNode } else { Times::Many });
            }
            for step in arena.steps(steps) {
                let is_set = times == Times::Once && !step.is_positional;
                is_apart = if times == Times::Once {
                    is_set || step.axis.is_disjoint()
                } else {
                    is_apart && step.axis.is_disjoint()
                };
                push_list(step.predicates, if is_apart { Times::PerNode } else { Times::Many });
            }
            if let Start::Filter { set, .. } = start {
                todo.push((set, times));
            }
        }
    }
}

/// Whether looking a value up costs as much as computing it.
fn is_simple(arena: &Arena, id: ExprId) -> bool {
    match arena.exprs[id as usize] {
        Expr::Number(_) | Expr::Literal(_) => true,
        Expr::Call(Function::Id, _) => false,
        Expr::Call(_, list) => list.is_empty(),
        _ => false,
    }
}

/// Whether the tree must have been kept in full: comments, instructions, prefixes, namespace
/// declarations, declared ids.
pub(crate) fn needs_full_tree(arena: &Arena) -> bool {
    let calls =
        arena.exprs.iter().any(|expr| matches!(expr, Expr::Call(Function::Name | Function::Id, _)));
    let paths = arena.exprs.iter().any(|expr| match *expr {
        Expr::Path { steps, .. } => needs_markup(arena.steps(steps)),
        _ => false,
    });
    calls || paths
}

/// Whether steps can lead to comments, instructions or namespace nodes, or pass them.
pub(crate) fn needs_markup(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step.test {
        _ if step.axis == Axis::Namespace => true,
        NodeTest::Comment | NodeTest::Instruction(_) => true,
        NodeTest::Node => matches!(
            step.axis,
            Axis::Child
                | Axis::Descendant
                | Axis::DescendantOrSelf
                | Axis::Following
                | Axis::FollowingSibling
                | Axis::Preceding
                | Axis::PrecedingSibling
        ),
        _ => false,
    })
}
