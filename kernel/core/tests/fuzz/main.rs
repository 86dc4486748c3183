//! The fuzz entries on seeds and their mutations, bounded: what needs no fuzzer to be found.
//!
//! If one of these fails, some text or message brings the kernel down, or two ways to the same answer
//! differ; the input is printed. `PATHCAST_FUZZ_SECONDS=60 cargo test --release -p pathcast-core
//! --test fuzz` goes on for a minute with each entry, from another seed every time.

mod entries;
mod seeds;

use seeds::{Random, Seeds};
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const INPUTS: usize = 1500;

/// Prints the input if the entry panics.
struct Shown<'d>(&'d [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input: b\"{}\"", self.0.escape_ascii());
        }
    }
}

fn run(entry: impl Fn(&[u8]), kind: fn(&Seeds, &mut Random) -> Vec<u8>) {
    let seeds = Seeds::load();
    let seconds: Option<u64> = std::env::var("PATHCAST_FUZZ_SECONDS")
        .ok()
        .map(|seconds| seconds.parse().expect("PATHCAST_FUZZ_SECONDS is a number"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let mut random = Random(seconds.map_or(1, |_| now.as_nanos() as u64));
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut done = 0;
    while end.map_or(done < INPUTS, |end| Instant::now() < end) {
        let input = kind(&seeds, &mut random);
        let shown = Shown(&input);
        entry(&input);
        drop(shown);
        done += 1;
    }
    println!("{done} inputs");
    assert!(done > 100);
}

#[test]
fn query_text() {
    run(entries::query_text, Seeds::query);
}

#[test]
fn entry_text() {
    let accepted = Cell::new(0);
    let entry = |data: &[u8]| accepted.set(accepted.get() + usize::from(entries::entry_text(data)));
    run(entry, Seeds::query);
    assert!(accepted.get() > INPUTS / 5, "{} were entries", accepted.get());
}

#[test]
fn expression_text() {
    run(entries::expression_text, Seeds::expression);
}

#[test]
fn message_bytes() {
    run(entries::message_bytes, Seeds::message);
}

#[test]
fn message_blocks() {
    run(entries::message_blocks, Seeds::message);
}

#[test]
fn record_ranges() {
    run(entries::record_ranges, Seeds::file);
}

#[test]
fn evaluation() {
    run(entries::evaluation, Seeds::expression_and_message);
}

#[test]
fn engine() {
    run(entries::engine, Seeds::queries_and_message);
}

#[test]
fn program() {
    run(entries::program, Seeds::program_and_message);
}

/// Inputs that once brought something down, or were meant to.
#[test]
fn finds() {
    let deep = |open: &str, close: &str| open.repeat(3000) + "1" + &close.repeat(3000);
    let chain = "1+".repeat(4000) + "1";
    let steps = "a/".repeat(4000) + "a";
    let unions = "a|".repeat(4000) + "a";
    let predicates = String::from("a") + &"[1]".repeat(2700);
    for text in [deep("(", ")"), deep("-", ""), deep("a[", "]"), deep("not(", ")"), chain, steps]
        .into_iter()
        .chain([unions, predicates])
    {
        entries::query_text(text.as_bytes());
        entries::expression_text(text.as_bytes());
        entries::engine((text + "\n\n<a><a/></a>").as_bytes());
    }
    let finds: [&[u8]; 6] = [
        b"//a[@x]//@y\n\n<a><b><a x='' y=''/></b></a>",
        b"//a[.//@y][b]\n/a//b[text()]//text()\n\n<a><b><a y=''>1<b>2</b></a></b></a>",
        b"//b/preceding-sibling::a\n\n<r><a/><!--c--><?p?><b/></r>",
        b"/descendant::node()//b\n\n<a><b/><?p?></a>",
        b"/descendant::node()/*/*//d\n\n<!--1--><?p i?><a>\n <b> 5 </b></a><!--2-->",
        b"//namespace::p\n\n<r xmlns:p='u'><a xmlns=''/></r>",
    ];
    for input in finds {
        let _shown = Shown(input);
        entries::evaluation(input);
        entries::engine(input);
    }
}
