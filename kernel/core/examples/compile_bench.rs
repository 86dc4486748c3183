//! Time to compile a query: `cargo run --release --example compile_bench [QUERIES]`.
//!
//! Bound to come near: one load and one branch a byte, so some 2 ns for each; a million queries must
//! compile in far less than the 4 s that registering them may take. QUERIES is a file of queries,
//! one a line.

use pathcast_core::language::query::{Compiler, Namespaces};
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 40;
const REPEATS: usize = 5_000;
/// Queries between two looks at the clock: short enough to fall between interruptions.
const CHUNK: usize = 500;

const QUERIES: [(&str, &str); 4] = [
    ("bare steps", "/nitf/*/body.head//org"),
    ("two attributes", "/nitf/head//tobject[@type='news'][@id=3]"),
    ("text and attributes", "/nitf/*/body.content//dl/dt[@dir=4][@lang=13]/event[text()=9]"),
    ("nested path", "/*/*[body.head/byline/*//alt-code]//tagline/a[@style=15]/location"),
];

fn main() {
    for (name, query) in QUERIES {
        report(name, &vec![query; REPEATS]);
    }
    if let Some(path) = std::env::args().nth(1) {
        let text = std::fs::read_to_string(&path).expect("the file of queries can be read");
        report(&path, &text.lines().collect::<Vec<_>>());
    }
}

/// Prints the mean time of a query, each chunk in its best and in its median run.
fn report(name: &str, queries: &[&str]) {
    let chunks: Vec<&[&str]> = queries.chunks_exact(CHUNK).collect();
    let mut times = vec![Vec::with_capacity(RUNS); chunks.len()];
    let mut compiler = Compiler::default();
    let mut declined = 0;
    for _ in 0..RUNS {
        for (chunk, times) in chunks.iter().zip(&mut times) {
            let start = Instant::now();
            for query in *chunk {
                let steps = compiler.compile(query, Namespaces::NONE);
                declined += usize::from(black_box(steps).is_err());
            }
            times.push(start.elapsed().as_nanos() as f64 / CHUNK as f64);
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let mean = |at: usize| times.iter().map(|times| times[at]).sum::<f64>() / times.len() as f64;
    println!(
        "{name}: best {:.0} ns, median {:.0} ns, {declined} declined",
        mean(0),
        mean(RUNS / 2)
    );
}
