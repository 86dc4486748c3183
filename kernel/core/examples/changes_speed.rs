//! What changes and new kinds of messages cost: `changes_speed SNAPSHOT MESSAGES QUERIES [ROUNDS]`.
//!
//! MESSAGES is a file of messages, each after its length in bytes (32 bits, little-endian); QUERIES has a path a
//! line, at least 200, which the snapshot does not hold. One line of JSON, microseconds a message: the door alone;
//! the first hundred messages of a new matcher, and the same again; a hundred that were not seen, after 50 others
//! and after 200 others; messages seen before; messages with a registration before each, with the first 200 queries
//! and with the last 200; the same messages when nothing more is registered.

use pathcast_core::engine::options::Options;
use pathcast_core::language::query::{Namespaces, compile};
use pathcast_core::registry::batch::{Messages, Pool};
use pathcast_core::registry::index::Index;
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord, Snapshot};
use pathcast_core::registry::target::Target;
use pathcast_core::xml::parser::{Door, Limits};
use std::sync::Arc;
use std::time::Instant;

struct Batch<'m>(&'m [Vec<u8>]);

impl Messages for Batch<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        Some(&self.0[at])
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

/// The least time of each step over the rounds, by name: another process on the core disturbs some steps of a round,
/// seldom the same ones of all.
#[derive(Default)]
struct Least(Vec<(&'static str, Vec<f64>)>);

impl Least {
    fn note(&mut self, name: &'static str, times: &[f64]) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, least)) => {
                least.iter_mut().zip(times).for_each(|(least, &time)| *least = least.min(time));
            }
            None => self.0.push((name, times.to_vec())),
        }
    }

    fn report(&self) -> String {
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let figure = |(name, times): &(&str, Vec<f64>)| format!("\"{name}\": {:.2}", mean(times));
        format!("{{{}}}", self.0.iter().map(figure).collect::<Vec<_>>().join(", "))
    }
}

/// What a call takes, in microseconds.
fn timed<T>(f: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let done = f();
    (started.elapsed().as_secs_f64() * 1e6, done)
}

/// Matches messages one by one; microseconds each.
fn pass(pool: &Pool, target: &(impl Target + Sync), messages: &[Vec<u8>]) -> Vec<f64> {
    let time = |message: &[Vec<u8>]| {
        let (time, answer) = timed(|| pool.run(target, &Batch(message)).expect("none interrupts"));
        pool.give_buffer(answer.numbers);
        time
    };
    messages.chunks(1).map(time).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [snapshot, messages, queries, rest @ ..] = &*arguments else {
        panic!("usage: changes_speed SNAPSHOT MESSAGES QUERIES [ROUNDS]");
    };
    let rounds: usize = rest.first().and_then(|text| text.parse().ok()).unwrap_or(5);
    let snapshot = Arc::new(Snapshot::open(snapshot.as_ref()).expect("a snapshot"));
    let mut bytes = &*std::fs::read(messages).expect("messages");
    let mut messages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (message, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        messages.push(message.to_vec());
        bytes = rest;
    }
    let (namespaces, resolver) = (NamespaceMap::new(), Namespaces::default());
    let queries = std::fs::read_to_string(queries).expect("queries");
    let queries: Vec<&str> =
        queries.lines().filter(|text| compile(text, &resolver).is_ok()).collect();
    let options = Options {
        limits: Limits::default(),
        cache_bytes_max: 256 << 20,
        steps_max: 1_000_000,
        message_steps_max: 50_000_000,
    };
    let pool = || Pool::new(options.clone(), 1);
    let mut least = Least::default();
    let mut door = Door::new(Limits::default());
    for _ in 0..rounds {
        let mut parse = |message: &Vec<u8>| timed(|| assert!(door.parse(message, None).is_ok())).0;
        least.note("door", &messages[..200].iter().map(&mut parse).collect::<Vec<_>>());
        let target = &*snapshot;
        let fresh = pool();
        least.note("first_100", &pass(&fresh, target, &messages[..100]));
        least.note("seen_100", &pass(&fresh, target, &messages[..100]));
        for (name, others) in [("unseen_after_50", 50), ("unseen_after_200", 200)] {
            let fresh = pool();
            pass(&fresh, target, &messages[..others]);
            least.note(name, &pass(&fresh, target, &messages[others..others + 100]));
        }
        let index = Index::from_snapshot(Arc::clone(&snapshot));
        let seen = pool();
        pass(&seen, &index, &messages[..200]);
        for _ in 0..2 {
            least.note("seen", &pass(&seen, &index, &messages[..200]));
        }
        let (mut register, mut after) = (Vec::new(), Vec::new());
        for (at, text) in queries.iter().enumerate() {
            let registered = timed(|| {
                let steps = compile(text, &resolver).expect("a path");
                index.change(|state| {
                    let namespaces = state.namespace_number(&namespaces);
                    let record = QueryRecord { id: &format!("later {at}"), text, namespaces };
                    assert!(state.register(record, &[&steps], None).is_ok());
                });
            });
            register.push(registered.0);
            after.extend(pass(&seen, &index, &messages[at % 200..at % 200 + 1]));
        }
        least.note("register", &register);
        least.note("registered_200", &after[..200]);
        least.note("registered_all", &after[queries.len() - 200..]);
        least.note("seen_then", &pass(&seen, &index, &messages[..200]));
    }
    println!("{}", least.report());
}
