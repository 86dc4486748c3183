//! What post-processing costs per candidate: one query whose structure matches, on one message.
//!
//! Bound: a probe per name and a look at the attributes of a few elements, so 30 to 60 ns for one
//! attribute condition. Messages have about 70 elements in 12 levels of few names, as the documents
//! of the YFilter generator. Run with
//! `cargo run --release -p pathcast-core --example conditions_bench [PLANS [ROUNDS]]`.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/conditions/document.rs"]
mod document;
#[path = "../tests/conditions/oracle.rs"]
mod oracle;
#[allow(dead_code, reason = "the benchmark has queries of its own")]
#[path = "../tests/conditions/random.rs"]
mod random;

use document::{Built, Document};
use pathcast_core::engine::conditions::{Plan, PostProcessor};
use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::query::ast::{
    Axis, Condition, Constant, NameTest, Operator, Stage, Step,
};
use pathcast_core::xml::names::NameTable;
use random::Random;
use std::hint::black_box;
use std::time::Instant;

const NAMES: [&str; 20] = [
    "nitf", "head", "title", "meta", "docdata", "body", "content", "block", "p", "hl", "media",
    "table", "tr", "td", "ul", "li", "em", "person", "org", "location",
];
const ATTRIBUTES: [&str; 10] =
    ["id", "class", "style", "lang", "type", "size", "date", "source", "width", "height"];
const MESSAGES: usize = 20;

/// A message of about 70 elements: names get deeper with the levels and recur.
fn message(random: &mut Random) -> Document {
    let mut document = Document::default();
    let mut level = vec![document.element(None, "", NAMES[0])];
    let mut depth = 1;
    while document.nodes.len() < 70 && !level.is_empty() {
        let mut next = Vec::new();
        for &parent in &level {
            for _ in 0..random.below(4).max(usize::from(parent == 0)) {
                let local = NAMES[(depth * 2 + random.below(6)) % NAMES.len()];
                let element = document.element(Some(parent), "", local);
                for _ in 0..random.below(4) {
                    let name = random.pick(&ATTRIBUTES);
                    let is_new =
                        document.nodes[element].attributes.iter().all(|known| known.1 != name);
                    if is_new {
                        let value = random.below(50).to_string();
                        document.nodes[element].attributes.push(("", name, value));
                    }
                }
                document.nodes[element]
                    .content
                    .push(document::Content::Text(random.below(500).to_string()));
                next.push(element);
            }
        }
        level = next;
        depth += 1;
    }
    document
}

fn named(local: &'static str) -> NameTest<'static> {
    NameTest::Name { uri: "".into(), local: local.into() }
}

/// The label path of a random element, some axes made `//` and the steps above dropped.
fn path(random: &mut Random, document: &Document, length: usize) -> Vec<Step<'static>> {
    let mut node = random.below(document.nodes.len());
    let mut steps = Vec::new();
    loop {
        let axis = if random.chance(20) { Axis::Descendant } else { Axis::Child };
        steps.push(Step { axis, test: named(document.nodes[node].local), stages: vec![] });
        match document.nodes[node].parent {
            Some(parent) if steps.len() < length => node = parent,
            Some(_) => {
                steps.last_mut().expect("a step").axis = Axis::Descendant;
                break;
            }
            None => break,
        }
    }
    steps.reverse();
    steps
}

fn attribute(random: &mut Random) -> Condition<'static> {
    let constant = if random.chance(50) {
        Constant::Number(random.below(50) as f64)
    } else {
        Constant::String(random.below(50).to_string().into())
    };
    let compare = Some((
        random.pick(&[
            Operator::Compare(Comparison::Eq),
            Operator::Compare(Comparison::Eq),
            Operator::Compare(Comparison::Ge),
        ]),
        constant,
    ));
    Condition::Attribute { test: named(random.pick(&ATTRIBUTES)), compare }
}

fn add(
    step: &mut Step<'static>,
    positions: Vec<(Comparison, f64)>,
    conditions: Vec<Condition<'static>>,
) {
    step.stages.push(Stage { positions, conditions });
}

/// Of one message: (plan, end of its ends in the list of all ends), and that list.
type Candidates = (Vec<(usize, usize)>, Vec<u32>);

type Shape = fn(&mut Random, &Document) -> Vec<Step<'static>>;

const SHAPES: [(&str, Shape); 8] = [
    ("one attribute, last step", |random, document| {
        let mut steps = path(random, document, 6);
        let condition = attribute(random);
        add(steps.last_mut().expect("a step"), vec![], vec![condition]);
        steps
    }),
    ("one attribute, any step", |random, document| {
        let mut steps = path(random, document, 6);
        let at = random.below(steps.len());
        let condition = attribute(random);
        add(&mut steps[at], vec![], vec![condition]);
        steps
    }),
    ("two attributes, any steps", |random, document| {
        let mut steps = path(random, document, 6);
        for _ in 0..2 {
            let at = random.below(steps.len());
            let condition = attribute(random);
            add(&mut steps[at], vec![], vec![condition]);
        }
        steps
    }),
    ("one attribute between two //", |random, document| {
        let mut steps = path(random, document, 5);
        let length = steps.len();
        steps.iter_mut().for_each(|step| step.axis = Axis::Descendant);
        let condition = attribute(random);
        add(&mut steps[length.saturating_sub(2)], vec![], vec![condition]);
        steps
    }),
    ("position, any step", |random, document| {
        let mut steps = path(random, document, 6);
        let at = random.below(steps.len());
        let position = random.below(3) as f64 + 1.0;
        add(&mut steps[at], vec![(Comparison::Eq, position)], vec![]);
        steps
    }),
    ("value of an element > n", |random, document| {
        let mut steps = path(random, document, 6);
        let bound = Constant::Number(random.below(1000) as f64);
        add(
            steps.last_mut().expect("a step"),
            vec![],
            vec![Condition::Value(Operator::Compare(Comparison::Gt), bound)],
        );
        steps
    }),
    ("one nested path, any step", |random, document| {
        let mut steps = path(random, document, 6);
        let at = random.below(steps.len());
        let nested = nested(random, document);
        add(&mut steps[at], vec![], vec![Condition::Nested(nested)]);
        steps
    }),
    ("one nested path with an attribute", |random, document| {
        let mut steps = path(random, document, 6);
        let at = random.below(steps.len());
        let mut nested = nested(random, document);
        let condition = attribute(random);
        add(nested.last_mut().expect("a step"), vec![], vec![condition]);
        add(&mut steps[at], vec![], vec![Condition::Nested(nested)]);
        steps
    }),
];

fn nested(random: &mut Random, document: &Document) -> Vec<Step<'static>> {
    let mut nested = path(random, document, 2);
    nested[0].axis = Axis::Child;
    nested
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument =
        |default| arguments.next().map_or(default, |count| count.parse().expect("a count"));
    let (plans, rounds): (usize, usize) = (argument(2_000), argument(15));
    let mut random = Random(7);
    let mut names = NameTable::default();
    let documents: Vec<Document> = (0..MESSAGES).map(|_| message(&mut random)).collect();
    let built: Vec<Built> = documents.iter().map(|document| document.build(&mut names)).collect();
    let elements: usize = built.iter().map(|built| built.tree.len()).sum();
    println!("{MESSAGES} messages, {} elements each", elements / MESSAGES);
    println!(
        "{:36} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "conditions", "candidates", "hold", "ns each", "compile", "bytes"
    );
    for (title, shape) in SHAPES {
        measure(title, shape, (plans, rounds), &documents, &built, &names, &mut random);
    }
}

fn measure(
    title: &str,
    shape: Shape,
    (plans, rounds): (usize, usize),
    documents: &[Document],
    built: &[Built],
    names: &NameTable,
    random: &mut Random,
) {
    let queries: Vec<_> = (0..plans).map(|number| shape(random, &documents[number % 6])).collect();
    let start = Instant::now();
    let compiled: Vec<Plan> = queries.iter().map(|query| Plan::compile(query)).collect();
    let compile = start.elapsed().as_nanos() as usize / plans;
    let bytes = compiled.iter().map(Plan::bytes).sum::<usize>() / plans;

    let mut candidates: Vec<Candidates> = Vec::new();
    let (mut pairs, mut expected) = (0, 0);
    for (document, built) in documents.iter().zip(built) {
        let (mut here, mut ends) = (Vec::new(), Vec::new());
        for (number, query) in queries.iter().enumerate() {
            let selected = oracle::select_from_document(document, &oracle::bare(query));
            if !selected.is_empty() {
                ends.extend(
                    (0..built.nodes.len())
                        .filter(|&at| selected.contains(&built.nodes[at]))
                        .map(|at| at as u32),
                );
                here.push((number, ends.len()));
                expected += usize::from(!oracle::select_from_document(document, query).is_empty());
            }
        }
        pairs += here.len();
        candidates.push((here, ends));
    }

    let mut post = PostProcessor::default();
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let mut held = 0;
        let start = Instant::now();
        for (built, (here, ends)) in built.iter().zip(&candidates) {
            post.begin_message();
            let mut from = 0;
            for &(number, to) in here {
                let ends = &ends[from..to];
                from = to;
                let holds = compiled[number].holds(built.message(), names, ends, &mut post);
                held += usize::from(black_box(holds));
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / pairs as f64);
        assert_eq!(held, expected, "{title}: wrong answers have no time");
    }
    println!("{title:36} {pairs:>10} {expected:>9} {best:>9.1} {compile:>9} {bytes:>9}");
}
