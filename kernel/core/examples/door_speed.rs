//! Times the door over a directory of messages: `door_speed DIRECTORY [ROUNDS] [spans|full|text]
//! [stream|dictionary]`, with source spans or a full tree if asked, and of the messages' element streams
//! if asked, whose dictionary has the names of the first half of the messages.
//!
//! Prints the median of the rounds in microseconds per message, with spread, as one JSON line, so
//! that a caller can set it against another parser timed in the same minute.

use pathcast_core::xml::parser::wire::{Dictionaries, Dictionary, Encoder};
use pathcast_core::xml::parser::{Door, Limits};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// The names, as far as they have no prefix, of some messages.
fn dictionary(messages: &[Vec<u8>]) -> Dictionary {
    let mut names = BTreeSet::new();
    let mut door = Door::new(Limits::default());
    for message in messages {
        if let Ok(parsed) = door.parse(message, None) {
            names
                .extend((0..parsed.names.len() as u32).map(|id| parsed.names.local(id).to_owned()));
        }
    }
    Dictionary::new([0; 8], names.into_iter().collect())
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory =
        arguments.next().unwrap_or_else(|| panic!("usage: door_speed DIRECTORY [ROUNDS]"));
    let rounds: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(50);
    let keeps = arguments.next();
    let mut paths: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{directory}: {error}"))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
        .collect();
    paths.sort();
    let mut messages: Vec<Vec<u8>> =
        paths.iter().filter_map(|path| std::fs::read(path).ok()).collect();
    let known = Arc::new(Dictionaries::default());
    if let Some(kind) = arguments.next() {
        let names = || dictionary(&messages[..messages.len() / 2]);
        let (used, mut encoder) = ((kind == "dictionary").then(names), Encoder::default());
        let encode = |message: &Vec<u8>| {
            let mut stream = Vec::new();
            let is_stream = encoder.encode(message, used.as_ref(), &mut stream);
            if is_stream { stream } else { message.clone() }
        };
        let streams = messages.iter().map(encode).collect();
        known.add(names());
        messages = streams;
    }
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let mut door = Door::new(Limits { message_bytes_max: 1 << 30, ..Limits::default() });
    door.keep_source_spans(keeps.as_deref() == Some("spans"));
    door.keep_full_tree(keeps.as_deref() == Some("full"));
    door.take_streams(Some(known));
    let (mut elements, mut refused) = (0, 0);
    let mut times = Vec::new();
    for _ in 0..rounds {
        (elements, refused) = (0, 0);
        let start = Instant::now();
        for message in &messages {
            match door.parse(message, None) {
                Ok(parsed) => elements += parsed.message.tree.len(),
                Err(_) => refused += 1,
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / messages.len() as f64);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"messages\": {}, \"bytes\": {bytes}, \"elements\": {elements}, \"refused\": {refused}, \
         \"us_min\": {:.3}, \"us_median\": {:.3}, \"us_max\": {:.3}}}",
        messages.len(),
        times[0],
        times[times.len() / 2],
        times[times.len() - 1],
    );
}
