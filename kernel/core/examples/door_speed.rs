//! Times the door over a directory of messages: `door_speed DIRECTORY [ROUNDS] [spans|full]`, with source spans
//! or a full tree if asked.
//!
//! Prints the median of the rounds in microseconds per message, with spread, as one JSON line, so
//! that a caller can set it against another parser timed in the same minute.

use pathcast_core::xml::parser::{Door, Limits};
use std::time::Instant;

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
    let messages: Vec<Vec<u8>> = paths.iter().filter_map(|path| std::fs::read(path).ok()).collect();
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let mut door = Door::new(Limits { message_bytes_max: 1 << 30, ..Limits::default() });
    door.keep_source_spans(keeps.as_deref() == Some("spans"));
    door.keep_full_tree(keeps.as_deref() == Some("full"));
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
