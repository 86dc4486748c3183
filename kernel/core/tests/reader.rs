//! The reader of XPath 1.0: trees of good texts, codes and places of bad ones.

use pathcast_core::language::query::{DEPTH_MAX, NODES_MAX, Namespaces, TEXT_BYTES_MAX};
use pathcast_core::language::reader::{
    Kind, disjuncts, kind_of, nesting, read, read_query, resolve,
};
use pathcast_core::language::refusal::{Detail, Parsed, Reason};
use pathcast_core::language::tree::{Expr, NodeTest};

fn written(text: &str) -> Parsed<Expr> {
    read(text)
}

fn bindings() -> Namespaces {
    let mut namespaces = Namespaces::new([("n", "urn:news"), ("b", "urn:{"), ("s", " urn:s")]);
    namespaces.bind_unwritable("u");
    namespaces
}

fn resolved(text: &str) -> Parsed<Expr> {
    read_query(text, &bindings())
}

fn refused(text: &str) -> (&'static str, &'static str, usize) {
    let refusal = resolved(text).expect_err(text);
    (refusal.reason.code(), refusal.reason.name(), refusal.offset)
}

#[test]
fn operators_bind_by_precedence_and_chain_from_left_to_right() {
    let Ok(Expr::Binary { operators, operands, offset, operator_offset }) =
        written(" a or b and c = 1 + 2 * 3 - 4 or d")
    else {
        panic!("no binary expression");
    };
    assert_eq!((operators.len(), operands.len(), offset, operator_offset), (2, 3, 1, 3));
    let Expr::Binary { operands, operator_offset: 8, .. } = &operands[1] else { panic!("no and") };
    let Expr::Binary { operands, .. } = &operands[1] else { panic!("no comparison") };
    let Expr::Binary { operators, operands, .. } = &operands[1] else { panic!("no sum") };
    assert_eq!((operators.len(), operands.len()), (2, 3));
    assert!(matches!(&operands[1], Expr::Binary { operator_offset: 22, .. }));
}

#[test]
fn a_predicate_after_a_slash_belongs_to_the_step_before() {
    let Ok(Expr::Path { steps, .. }) = written("/a/[b]//c[1]") else { panic!("no path") };
    let predicates: Vec<_> = steps.iter().map(|step| step.predicates.len()).collect();
    assert_eq!(predicates, [1, 0, 1]);
}

#[test]
fn names_get_their_uri_and_paths_from_the_message_are_absolute() {
    for text in ["$msg/n:a", "doc('x')/n:a", "(/)/n:a", "/Q{ urn:news }a"] {
        let Ok(Expr::Path { is_absolute: true, steps, .. }) = resolved(text) else {
            panic!("{text} is no absolute path");
        };
        let NodeTest::Name(test) = &steps[0].test else { panic!("no name test") };
        assert_eq!((test.uri.as_deref(), test.prefix.as_deref()), (Some("urn:news"), None));
    }
}

#[test]
fn types_nesting_and_disjuncts_are_known() {
    let kind = |text| kind_of(&written(text).expect(text));
    assert_eq!(
        ["a/b", "a = b", "a + b", "name(a)"].map(kind),
        [Kind::Nodes, Kind::Boolean, Kind::Number, Kind::String]
    );
    assert_eq!(nesting(&written("a[b = 1 + 2]").expect("read")), 3);
    assert_eq!(disjuncts(&written("a[@b = 1 or @b = 2 or @b = 3] | c").expect("read")), 4);
}

#[test]
fn what_cannot_be_read_is_refused_with_code_reason_and_place() {
    let many_predicates = format!("a{}", "[1]".repeat(17));
    for (text, expected) in [
        ("", ("XPST0003", "Unexpected", 0)),
        ("/a/", ("XPST0003", "Unexpected", 3)),
        ("a b", ("XPST0003", "NoOperator", 2)),
        ("a[é = 'x]", ("XPST0003", "OpenString", 7)),
        ("a:", ("XPST0003", "NoLocalName", 2)),
        ("a/Q{u", ("XPST0003", "OpenBraces", 2)),
        ("$1", ("XPST0003", "NoVariableName", 0)),
        ("a ; b", ("XPST0003", "NoToken", 2)),
        ("child:::c", ("XPST0003", "NoToken", 7)),
        ("up::a", ("XPST0003", "NoAxis", 0)),
        ("a[ends-with(b, 'c')]", ("XPST0017", "NoFunction", 2)),
        ("a[not(b, c)]", ("XPST0017", "ArgumentCount", 2)),
        ("$x/a", ("XPST0008", "NoVariable", 0)),
        ("/a/m:b", ("XPST0081", "NoPrefix", 3)),
        ("count('x')", ("XPTY0004", "NoNodeSet", 6)),
        ("(1)[2]", ("XPTY0004", "NoNodeSet", 1)),
        ("1 | a", ("XPTY0004", "NoNodeSet", 0)),
        ("doc(a)/b", ("query.unsupported", "ComputedDocument", 0)),
        ("b:a", ("query.unsupported", "BadUri", 0)),
        ("s:a", ("query.unsupported", "BadUri", 0)),
        ("u:a", ("query.unsupported", "BadUri", 0)),
        (&many_predicates, ("query.too_many_predicates", "TooManyPredicates", 49)),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn limits_hold_and_what_is_deep_is_refused_and_dropped_without_harm() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(resolved(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(refused(&nested(DEPTH_MAX + 1)), ("query.too_deep", "TooDeep", 64));
    // Each parenthesis holds operators of several levels.
    let deep = format!("{}a{}", "(1 + 2 * - (".repeat(32), "))".repeat(32));
    assert!(nesting(&written(&deep).expect("read")) < 2 * DEPTH_MAX);
    let deeper = format!("{}a{}", "1 or 1 and 1 = 1 < 1 + 1 * -(".repeat(39), ")".repeat(39));
    let tree = written(&deeper).expect("read");
    assert!(nesting(&tree) > 2 * DEPTH_MAX);
    assert!(resolve(tree, &bindings()).is_ok());
    assert_eq!(refused(&deeper), ("query.too_deep", "TooDeep", 0));
    let large = vec!["a"; NODES_MAX / 2 + 1].join("|");
    assert_eq!(refused(&large), ("query.too_large", "TooLarge", 512));
    let long = " ".repeat(TEXT_BYTES_MAX + 1);
    let refusal = written(&long).expect_err("too long");
    assert_eq!(refusal.reason, Reason::TooLong);
    assert_eq!(refusal.details, [TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX].map(Detail::from));
}
