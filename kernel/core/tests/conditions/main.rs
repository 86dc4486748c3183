//! Predicates and nested paths against an evaluator taken straight from XPath 1.0.

mod document;
mod oracle;
mod random;
mod scale;

use document::Document;
use pathcast_core::engine::conditions::{PostProcessor, holds};
use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::query::ast::{
    Axis, Condition, Constant, NameTest, Operator, Stage, Step,
};
use pathcast_core::xml::names::NameTable;
use random::Random;

/// Where the main path ends in the message, conditions ignored.
fn ends(document: &Document, nodes: &[usize], steps: &[Step<'_>]) -> Vec<u32> {
    let selected = oracle::select_from_document(document, &oracle::bare(steps));
    (0..nodes.len() as u32).filter(|&at| selected.contains(&nodes[at as usize])).collect()
}

/// Random queries on random documents. If this fails, subscribers get messages that they did not
/// ask for, or miss some.
fn agree_on_random_pairs(seed: u64, documents: usize, queries: usize, elements_max: usize) {
    let mut random = Random(seed);
    let mut names = NameTable::default();
    let mut post = PostProcessor::default();
    let (mut asked, mut held, mut with_ends) = (0, 0, 0);
    for _ in 0..documents {
        let document = random::document(&mut random, elements_max);
        let built = document.build(&mut names);
        post.begin_message();
        for _ in 0..queries {
            let query = random::query(&mut random);
            let ends = ends(&document, &built.nodes, &query);
            let expected = !oracle::select_from_document(&document, &query).is_empty();
            let answer = holds(&query, built.message(), &names, &ends, &mut post);
            assert_eq!(answer, expected, "query {query:#?}\ndocument {document:#?}");
            asked += 1;
            held += usize::from(expected);
            with_ends += usize::from(!ends.is_empty());
        }
    }
    assert_eq!(asked, documents * queries);
    // A generator whose queries never or always hold proves nothing.
    assert!(held * 20 > asked, "{held} of {asked} held");
    assert!(
        (with_ends - held) * 20 > asked,
        "{} of {asked} failed by conditions",
        with_ends - held
    );
}

#[test]
fn agrees_on_small_documents() {
    agree_on_random_pairs(1, 1_500, 25, 12);
}

#[test]
fn agrees_on_larger_documents() {
    agree_on_random_pairs(2, 400, 40, 60);
}

#[test]
fn agrees_on_documents_of_several_words_of_elements() {
    agree_on_random_pairs(3, 40, 40, 900);
}

/// Every candidate after the first few passes the store check first: what it refuses must not hold.
#[test]
fn store_check_refuses_only_what_fails() {
    let long = "v".repeat(300);
    let mut document = Document::default();
    let root = document.element(None, "", "a");
    let leaf = document.element(Some(root), "urn:u", "b");
    for (name, value) in [("w", "+1e1"), ("x", " 007.0 "), ("y", "-0"), ("z", long.as_str())] {
        document.attribute(leaf, name, value);
    }
    let mut crowd = document.clone();
    for _ in 0..20_000 {
        let other = crowd.element(Some(root), "", "b");
        crowd.attribute(other, "x", "1");
    }
    for document in [document, crowd] {
        let mut names = NameTable::default();
        let built = document.build(&mut names);
        let mut post = PostProcessor::default();
        post.begin_message();
        for round in 0..40 {
            for (name, operator, constant, expected) in [
                ("x", Operator::Compare(Comparison::Eq), Constant::Number(7.0), true),
                ("x", Operator::Compare(Comparison::Eq), Constant::Number(8.0), false),
                ("x", Operator::Compare(Comparison::Eq), Constant::String(" 007.0 ".into()), true),
                ("x", Operator::Compare(Comparison::Eq), Constant::String("7".into()), false),
                ("x", Operator::Compare(Comparison::Ne), Constant::Number(8.0), true),
                ("x", Operator::Compare(Comparison::Eq), Constant::Double(7.0), true),
                ("x", Operator::Compare(Comparison::Eq), Constant::Double(8.0), false),
                ("w", Operator::Compare(Comparison::Eq), Constant::Double(10.0), true),
                ("w", Operator::Compare(Comparison::Eq), Constant::Number(10.0), false),
                ("y", Operator::Compare(Comparison::Eq), Constant::Number(0.0), true),
                ("y", Operator::Compare(Comparison::Ge), Constant::String("0".into()), true),
                (
                    "z",
                    Operator::Compare(Comparison::Eq),
                    Constant::String(long.as_str().into()),
                    true,
                ),
                ("z", Operator::Compare(Comparison::Ne), Constant::String("v".into()), true),
                ("z", Operator::Compare(Comparison::Ne), Constant::Number(1.0), true),
            ] {
                let test =
                    |local: &'static str| NameTest::Name { uri: "".into(), local: local.into() };
                let condition =
                    Condition::Attribute { test: test(name), compare: Some((operator, constant)) };
                let step = |axis, test, conditions| Step {
                    axis,
                    test,
                    stages: vec![Stage { positions: vec![], conditions }],
                };
                let below = NameTest::Name { uri: "urn:u".into(), local: "b".into() };
                let nested = vec![step(Axis::Child, below, vec![condition.clone()])];
                let query = [step(Axis::Child, test("a"), vec![Condition::Nested(nested)])];
                let answer = holds(&query, built.message(), &names, &[0], &mut post);
                assert_eq!(answer, expected, "round {round}: {condition:?}");
            }
        }
    }
}
