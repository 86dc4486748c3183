//! Times the push parser against the door, in turns: `push_speed DIRECTORY [ROUNDS] [BLOCK]`.
//!
//! For the messages as they are, and for all of them together as records of one (up to a megabyte), one
//! JSON line: least time of either in microseconds, and the least and the median of the rounds' ratios
//! of the push parser's speed to the door's.

use pathcast_core::xml::parser::push::{Bounds, Handler, PushParser, StartTag};
use pathcast_core::xml::parser::{Door, Limits};
use std::time::Instant;

#[derive(Default)]
struct Count(usize);

impl Handler for Count {
    fn start(&mut self, _tag: &StartTag<'_>) {
        self.0 += 1;
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| panic!("usage: push_speed DIRECTORY"));
    let mut number = |otherwise| arguments.next().map_or(Some(otherwise), |text| text.parse().ok());
    let rounds: usize = number(50).unwrap_or(50);
    let block: usize = number(64 << 10).unwrap_or(64 << 10);
    let mut paths: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{directory}: {error}"))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
        .collect();
    paths.sort();
    let messages: Vec<Vec<u8>> = paths.iter().filter_map(|path| std::fs::read(path).ok()).collect();
    let mut together = b"<all>".to_vec();
    for message in messages.iter().cycle() {
        let text = String::from_utf8_lossy(message);
        let root = text.find('<').filter(|_| !text.starts_with("<?"));
        let start = root.or_else(|| text.find("?>").map(|at| at + 2)).unwrap_or(0);
        if together.len() + message.len() > 1 << 20 || text.contains("<!DOCTYPE") {
            break;
        }
        together.extend_from_slice(&message[start..]);
    }
    together.extend_from_slice(b"</all>");
    for (name, messages) in [("messages", messages), ("together", vec![together])] {
        measure(name, &messages, rounds, block);
    }
}

fn measure(name: &str, messages: &[Vec<u8>], rounds: usize, block: usize) {
    let limits = Limits { message_bytes_max: 1 << 30, ..Limits::default() };
    let mut door = Door::new(limits.clone());
    let mut parser = PushParser::new(limits, Bounds::default());
    let (mut ratios, mut least) = (Vec::new(), [f64::MAX; 2]);
    for _ in 0..rounds {
        let start = Instant::now();
        let mut elements = 0;
        for message in messages {
            elements += door.parse(message, None).map_or(0, |parsed| parsed.message.tree.len());
        }
        let door_time = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut count = Count::default();
        for message in messages {
            parser.begin(None);
            let mut blocks = message.chunks(block);
            let fed = blocks.try_for_each(|block| parser.feed(block, &mut count));
            assert!(fed.and_then(|()| parser.finish(&mut count)).is_ok());
        }
        let push_time = start.elapsed().as_secs_f64();
        assert_eq!(count.0, elements);
        ratios.push(door_time / push_time);
        least = [least[0].min(door_time), least[1].min(push_time)];
    }
    ratios.sort_by(f64::total_cmp);
    let bytes: usize = messages.iter().map(Vec::len).sum();
    println!(
        "{{\"case\": \"{name}\", \"messages\": {}, \"bytes\": {bytes}, \"door_us\": {:.3}, \
         \"push_us\": {:.3}, \"ratio_of_least\": {:.3}, \"ratio_min\": {:.3}, \"ratio_median\": {:.3}}}",
        messages.len(),
        least[0] * 1e6 / messages.len() as f64,
        least[1] * 1e6 / messages.len() as f64,
        least[0] / least[1],
        ratios[0],
        ratios[ratios.len() / 2],
    );
}
