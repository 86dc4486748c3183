//! Large and deep messages. Work that grew with the square of the size, or recursed on the depth,
//! would not come back from these in minutes, or would end the process.

use crate::document::{Built, Document};
use pathcast_core::engine::conditions::{PostProcessor, holds};
use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::query::ast::{
    Axis, Condition, Constant, NameTest, Operator, Stage, Step,
};
use pathcast_core::xml::names::NameTable;

const ELEMENTS: usize = 200_000;

struct Scene {
    names: NameTable,
    built: Built,
    post: PostProcessor,
}

impl Scene {
    fn new(document: &Document) -> Scene {
        let mut names = NameTable::default();
        let built = document.build(&mut names);
        Scene { names, built, post: PostProcessor::default() }
    }

    fn holds(&mut self, query: &[Step<'static>], ends: &[u32]) -> bool {
        self.post.begin_message();
        holds(query, self.built.message(), &self.names, ends, &mut self.post)
    }
}

/// Elements `a` one inside the other; texts and attributes as wanted at each level.
fn chain(with: impl Fn(&mut Document, usize)) -> Document {
    let mut document = Document::default();
    let mut last = None;
    for _ in 0..ELEMENTS {
        let element = document.element(last, "", "a");
        with(&mut document, element);
        last = Some(element);
    }
    document
}

fn step(axis: Axis, local: &'static str, conditions: Vec<Condition<'static>>) -> Step<'static> {
    let test = match local {
        "*" => NameTest::Any,
        local => NameTest::Name { uri: "".into(), local: local.into() },
    };
    let stages = match conditions.is_empty() {
        true => vec![],
        false => vec![Stage { positions: vec![], conditions }],
    };
    Step { axis, test, stages }
}

fn has(local: &'static str) -> Condition<'static> {
    let test = NameTest::Name { uri: "".into(), local: local.into() };
    Condition::Attribute { test, compare: None }
}

fn positions(
    stages: &[&[(Comparison, f64)]],
    conditions: &[Condition<'static>],
) -> Vec<Stage<'static>> {
    let mut all = vec![Stage { positions: vec![], conditions: conditions.to_vec() }];
    all.extend(
        stages.iter().map(|positions| Stage { positions: positions.to_vec(), conditions: vec![] }),
    );
    all
}

#[test]
fn descendants_in_a_chain() {
    // The only @x is at the root, the only @y right below: the third step never finds a place.
    let document = chain(|document, element| match element {
        0 => document.attribute(element, "x", "1"),
        1 => document.attribute(element, "y", "1"),
        _ => {}
    });
    let mut scene = Scene::new(&document);
    let ends: Vec<u32> = (3..ELEMENTS as u32).collect();
    let path = |second, third| {
        vec![
            step(Axis::Descendant, "a", vec![]),
            step(Axis::Descendant, "a", vec![has(second)]),
            step(Axis::Descendant, "a", vec![has(third)]),
            step(Axis::Descendant, "a", vec![]),
        ]
    };
    assert!(!scene.holds(&path("x", "y"), &ends), "no element is above the root");
    assert!(!scene.holds(&path("y", "x"), &ends));
    let from_root = |second| {
        vec![
            step(Axis::Descendant, "a", vec![has("x")]),
            step(Axis::Descendant, "a", vec![has(second)]),
            step(Axis::Descendant, "a", vec![]),
        ]
    };
    assert!(scene.holds(&from_root("y"), &ends));
}

#[test]
fn nested_paths_in_a_chain() {
    let document = chain(|document, element| {
        if element + 1 == ELEMENTS {
            document.attribute(element, "x", "1");
        }
    });
    let mut scene = Scene::new(&document);
    let ends: Vec<u32> = (0..ELEMENTS as u32).collect();
    // //a[.//a[.//a[ ... @x]]]
    let mut query = vec![step(Axis::Descendant, "a", vec![has("x")])];
    for _ in 0..40 {
        query = vec![step(Axis::Descendant, "a", vec![Condition::Nested(query)])];
    }
    assert!(scene.holds(&query, &ends));
    assert!(!scene.holds(&query, &ends[ELEMENTS - 40..]), "too few levels are left below");
}

#[test]
fn positions_in_a_chain_and_among_many_siblings() {
    let mut document = Document::default();
    let root = document.element(None, "", "r");
    for number in 1..ELEMENTS {
        let element = document.element(Some(root), "", "a");
        if number % 2 == 0 {
            document.attribute(element, "x", "1");
        }
    }
    let mut scene = Scene::new(&document);
    let ends: Vec<u32> = (1..ELEMENTS as u32).collect();
    let query = |stages| {
        vec![step(Axis::Child, "r", vec![]), Step { stages, ..step(Axis::Child, "a", vec![]) }]
    };
    let last = (ELEMENTS / 2 - 1) as f64;
    let at = |position| positions(&[&[(Comparison::Eq, position)]], &[has("x")]);
    assert!(scene.holds(&query(at(last)), &ends));
    assert!(!scene.holds(&query(at(last + 1.0)), &ends));
    assert!(scene.holds(&query(at(last)), &ends[ELEMENTS - 3..]));
    assert!(!scene.holds(&query(at(last)), &ends[..ELEMENTS - 3]));
    let late = positions(&[&[(Comparison::Gt, last - 2.0)], &[(Comparison::Eq, 2.0)]], &[has("x")]);
    assert!(scene.holds(&query(late), &ends));

    let mut scene = Scene::new(&chain(|_, _| {}));
    let ends: Vec<u32> = (0..ELEMENTS as u32).collect();
    let second = Step {
        stages: positions(&[&[(Comparison::Ge, 1.0)], &[(Comparison::Eq, 2.0)]], &[]),
        ..step(Axis::Descendant, "*", vec![])
    };
    assert!(!scene.holds(&[second], &ends));
}

#[test]
fn values_and_texts_in_a_chain() {
    let compare = |operator, constant: &'static str| (operator, Constant::String(constant.into()));
    let document = chain(|document, element| {
        document.text(element, "x");
        if element + 1 == ELEMENTS {
            document.text(element, "7");
        }
    });
    let mut scene = Scene::new(&document);
    let ends: Vec<u32> = (0..ELEMENTS as u32).collect();
    let value = |operator, constant| {
        let (operator, constant) = compare(operator, constant);
        vec![step(Axis::Descendant, "a", vec![Condition::Value(operator, constant)])]
    };
    assert!(scene.holds(&value(Operator::Compare(Comparison::Eq), "x7"), &ends));
    assert!(!scene.holds(&value(Operator::Compare(Comparison::Eq), "xxx"), &ends));
    assert!(!scene.holds(&value(Operator::Compare(Comparison::Gt), "3"), &ends));
    let text = |constant| {
        let text = Condition::Text(Some(compare(Operator::Compare(Comparison::Eq), constant)));
        vec![step(Axis::Descendant, "a", vec![text])]
    };
    assert!(scene.holds(&text("7"), &ends));
    assert!(!scene.holds(&text("8"), &ends));
}

#[test]
fn numbers_in_a_chain() {
    let document = chain(|document, element| document.text(element, "1"));
    let mut scene = Scene::new(&document);
    let ends: Vec<u32> = (0..ELEMENTS as u32).collect();
    let value = |operator, constant| {
        let condition = Condition::Value(operator, Constant::Number(constant));
        vec![step(Axis::Descendant, "a", vec![condition])]
    };
    assert!(scene.holds(&value(Operator::Compare(Comparison::Eq), 11.0), &ends));
    let thirty = "1".repeat(30).parse().expect("a number");
    assert!(scene.holds(&value(Operator::Compare(Comparison::Eq), thirty), &ends));
    assert!(!scene.holds(&value(Operator::Compare(Comparison::Lt), 1.0), &ends));
    assert!(
        scene.holds(&value(Operator::Compare(Comparison::Gt), f64::MAX), &ends[..1]),
        "more digits than any number"
    );
}

#[test]
fn shared_ancestors_with_many_attributes() {
    // Every other end has the root for a parent: its attributes must not be read for each of them.
    let mut document = Document::default();
    let root = document.element(None, "", "a");
    let names: Vec<&'static str> =
        (0..256).map(|number| format!("x{number}").leak() as &str).collect();
    names.iter().for_each(|name| document.attribute(root, name, "1"));
    for _ in 0..ELEMENTS / 2 {
        let child = document.element(Some(root), "", "a");
        document.element(Some(child), "", "a");
    }
    let mut scene = Scene::new(&document);
    let ends: Vec<u32> = (1..ELEMENTS as u32).collect();
    let compare = Some((Operator::Compare(Comparison::Eq), Constant::Number(2.0)));
    for test in [NameTest::Any, NameTest::AnyNamespace { local: "x255".into() }] {
        let condition = Condition::Attribute { test, compare: compare.clone() };
        let query = [step(Axis::Descendant, "a", vec![condition]), step(Axis::Child, "a", vec![])];
        assert!(!scene.holds(&query, &ends));
    }
}
