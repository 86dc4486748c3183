//! The streaming chunker, from Rust: chunks do not depend on how a message is split, and how fast it is.

use pathcast_core::files::chunks::{Chunker, CutTree, Fault, Summary};
use pathcast_core::xml::parser::Limits;
use pathcast_core::xml::parser::push::{Bounds, Handler, PushParser};
use std::hint::black_box;
use std::time::Instant;

const MESSAGE: &str = "<?xml version='1.0'?><!-- p --><a k='/>' xmlns:n='urn:n'><b>x<c>1</c></b>\
    <n:b/><d><e f='\"'/>y</d><!-- c --><b n:k=''><c/><![CDATA[</b>]]></b><d/></a>";

fn tree() -> CutTree {
    let mut tree = CutTree::new(3);
    tree.add(&[("", "a"), ("", "b")], 0, 0b001);
    tree.add(&[("", "a"), ("", "b"), ("", "c")], 0b010, 0);
    tree.add(&[("", "a"), ("", "d")], 0b001, 0b010);
    tree.add(&[("", "a"), ("urn:n", "b")], 0, 0b100);
    tree
}

fn cut(chunker: &mut Chunker, message: &[u8], block: usize) -> (Vec<String>, Summary) {
    chunker.begin(None);
    let mut chunks = vec![Vec::new(); 3];
    for piece in message.chunks(block) {
        chunker.feed(piece).unwrap();
        for (number, chunk) in chunks.iter_mut().enumerate() {
            chunk.append(chunker.grown(number));
        }
    }
    let summary = chunker.finish().unwrap();
    for (number, chunk) in chunks.iter_mut().enumerate() {
        chunk.append(chunker.grown(number));
    }
    (chunks.into_iter().map(|chunk| String::from_utf8(chunk).unwrap()).collect(), summary)
}

#[test]
fn chunks_do_not_depend_on_the_blocks() {
    let mut chunker = Chunker::new(tree(), Limits::default(), Bounds::default());
    for block in 1..=MESSAGE.len() {
        let (chunks, summary) = cut(&mut chunker, MESSAGE.as_bytes(), block);
        assert_eq!(
            chunks,
            [
                "<!-- p --><a k='/>' xmlns:n='urn:n'><b>x<c>1</c></b><d></d>\
                 <b n:k=''><c/><![CDATA[</b>]]></b><d/></a>",
                "<!-- p --><a k='/>' xmlns:n='urn:n'><b><c></c></b><d><e f='\"'/>y</d>\
                 <b n:k=''><c/></b><d/></a>",
                "<!-- p --><a k='/>' xmlns:n='urn:n'><n:b/></a>",
            ],
            "blocks of {block}"
        );
        assert_eq!((summary.elements, summary.fault), (vec![7, 8, 2], None));
    }
}

#[test]
fn a_schema_is_held_to() {
    let (a, b, d) = (("", "a"), ("", "b"), ("", "d"));
    for (edges, fault) in [
        (vec![(a, b), (a, d), (a, ("urn:n", "b")), (b, ("", "c")), (d, ("", "e"))], None),
        (vec![(a, b), (a, d), (a, ("urn:n", "b")), (b, ("", "c"))], Some(Fault::Schema)),
    ] {
        let mut tree = CutTree::new(3);
        tree.set_schema(a, &edges);
        tree.add(&[a, b], 0, 0b001);
        let mut chunker = Chunker::new(tree, Limits::default(), Bounds::default());
        assert_eq!(cut(&mut chunker, MESSAGE.as_bytes(), 10).1.fault, fault);
    }
}

/// A handler that looks at nothing.
struct Nobody;
impl Handler for Nobody {}

/// Prints how much of the parser's speed the chunker has: `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn speed() {
    let record = "<b id='17'><name>Name 4711</name><url href='http://example.org/'>page</url></b>\n  \
        <d><name>Name 4711</name><email>somebody@example.org</email></d>\n";
    let message = format!("<a>{}</a>", record.repeat(60_000)).into_bytes();
    let mut parser = PushParser::new(Limits::default(), Bounds::default());
    let mut chunker = Chunker::new(tree(), Limits::default(), Bounds::default());
    let (mut bare, mut cutting) = (f64::MAX, f64::MAX);
    for _ in 0..15 {
        let started = Instant::now();
        parser.begin(None);
        message.chunks(1 << 18).for_each(|block| parser.feed(block, &mut Nobody).unwrap());
        parser.finish(&mut Nobody).unwrap();
        bare = bare.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        chunker.begin(None);
        for block in message.chunks(1 << 18) {
            chunker.feed(block).unwrap();
            (0..3).for_each(|chunk| black_box(chunker.grown(chunk)).clear());
        }
        chunker.finish().unwrap();
        cutting = cutting.min(started.elapsed().as_secs_f64());
    }
    let megabytes = message.len() as f64 / 1e6;
    println!(
        "parser {:.0} MB/s, chunker {:.0} MB/s, {:.2} of it",
        megabytes / bare,
        megabytes / cutting,
        bare / cutting
    );
}
