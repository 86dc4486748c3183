//! Customised delivery by itself: how long subscribing, groupSequence-listSequence and writing take.
//!
//!     cargo run --release --example customize_bench -- QUERIES MESSAGES...
//!
//! QUERIES has one subscription a line.

use pathcast_core::engine::plans::run::ENTRIES_MAX;
use pathcast_core::registry::delivery::dissemination::{Deliver, Dissemination, Entry};
use pathcast_core::registry::delivery::query::Scope;
use pathcast_core::registry::delivery::serving::{Options, Output};
use pathcast_core::registry::delivery::worker::{GroupCounts, Worker};
use pathcast_core::xml::parser::Limits;
use std::time::Duration;

/// Time of this process on a processor, which other processes do not lengthen much.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let ns = told.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("nanoseconds"))
}

fn best(mut f: impl FnMut()) -> Duration {
    let rounds = (0..7).map(|_| {
        let started = processor_time();
        f();
        processor_time() - started
    });
    rounds.min().expect("there are rounds")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let queries = std::fs::read_to_string(arguments.next().expect("QUERIES")).expect("a file");
    let messages: Vec<Vec<u8>> =
        arguments.map(|path| std::fs::read(path).expect("a message")).collect();
    let queries: Vec<&str> = queries.lines().collect();
    let target = Dissemination::default();
    let scope = Scope::default();
    let subscribe = |prefix: &str, count: usize| {
        let started = processor_time();
        let mut refused = 0;
        target.change(|state| {
            let namespaces = state.namespace_number(&scope.map);
            for (at, text) in queries.iter().take(count).enumerate() {
                let id = format!("{prefix}{at}");
                let entry = Entry {
                    id: &id,
                    text,
                    language: None,
                    namespaces,
                    subscriber: "",
                    deliver: Deliver::Fragment,
                };
                refused += usize::from(state.subscribe(entry, &scope).is_err());
            }
        });
        (processor_time() - started, refused)
    };
    let (elapsed, refused) = subscribe("q", queries.len());
    let per = elapsed.as_secs_f64() * 1e6 / queries.len() as f64;
    println!("subscribe {} in {elapsed:?} ({per:.2} us each), {refused} refused", queries.len());
    let options = Options {
        limits: Limits::default(),
        cache_bytes_max: 256 << 20,
        steps_max: 1_000_000,
        message_steps_max: 100_000_000,
        message_result_bytes_max: 1 << 26,
        result_bytes_max: 1 << 20,
        result_ratio_max: 20,
        entries_max: ENTRIES_MAX,
        puts_spans: false,
    };
    let mut worker = Worker::new(options);
    let count = messages.len() as f64;
    let us = |elapsed: Duration| elapsed.as_secs_f64() * 1e6 / count;
    let mut counts = GroupCounts::default();
    for message in &messages {
        worker.count_groups(&target, message, true, &mut counts).expect("good messages");
    }
    println!("a message: {:?}", counts);
    for visits in [false, true] {
        let elapsed = best(|| {
            for message in &messages {
                let mut counts = GroupCounts::default();
                worker.count_groups(&target, message, visits, &mut counts).expect("good messages");
            }
        });
        worker.stats = Default::default();
        println!("groups, visited {visits}: {:.1} us a message", us(elapsed));
    }
    let mut out = Output::default();
    let (mut deliveries, mut fragments, mut bytes) = (0, 0, 0);
    let elapsed = best(|| {
        (deliveries, fragments, bytes) = (0, 0, 0);
        for message in &messages {
            worker.serve(&target, message, None, 0, &mut out).expect("good messages");
            deliveries += out.deliveries.len();
            fragments += out.fragments.ends.len();
            bytes += out.fragments.bytes.len();
            out.deliveries.clear();
            out.verdicts.clear();
            out.fragments.clear();
        }
    });
    println!(
        "served: {:.1} us a message; a message {:.0} deliveries, {:.0} fragments, {:.0} bytes; {:.0} MB/s",
        us(elapsed),
        deliveries as f64 / count,
        fragments as f64 / count,
        bytes as f64 / count,
        bytes as f64 / elapsed.as_secs_f64() / 1e6,
    );
    let stats = worker.stats;
    let each = |ns: u64| ns as f64 / 1e3 / stats.messages as f64;
    println!(
        "parsing {:.1} us, matching {:.1} us, writing {:.1} us",
        each(stats.parsing_ns),
        each(stats.matching_ns),
        each(stats.collecting_ns)
    );
    let some = 10_000.min(queries.len());
    let (elapsed, _) = subscribe("n", some);
    let ids: Vec<String> = (0..some).map(|at| format!("n{at}")).collect();
    let started = processor_time();
    target.change(|state| state.unsubscribe(ids.iter().map(String::as_str)).expect("known"));
    let left = processor_time() - started;
    let rate = some as f64 / (elapsed + left).as_secs_f64();
    println!("{some} enter in {elapsed:?} and leave in {left:?}: {rate:.0} a second");
}
