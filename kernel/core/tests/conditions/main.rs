//! Predicates and nested paths against an evaluator taken straight from XPath 1.0.

mod document;
mod oracle;
mod random;
mod scale;

use document::Document;
use pathcast_core::conditions::{Plan, PostProcessor};
use pathcast_core::names::NameTable;
use pathcast_core::query::ast::Step;
use random::Random;

/// Where the main path ends in the message, conditions ignored.
fn ends(document: &Document, nodes: &[usize], steps: &[Step<'_>]) -> Vec<u32> {
    let selected = oracle::select_from_document(document, &oracle::bare(steps));
    (0..nodes.len() as u32)
        .filter(|&at| selected.contains(&nodes[at as usize]))
        .collect()
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
            let plan = Plan::compile(&query);
            let answer = plan.holds(built.message(), &names, &ends, &mut post);
            assert_eq!(
                answer, expected,
                "query {query:#?}\nplan {plan:#?}\ndocument {document:#?}"
            );
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
