//! Times the cutting of a file beside the door: `records_speed FILE LEVELS [ROUNDS]`, where records are
//! all elements of that level below the root element.
//!
//! Prints, as one JSON line, the least of the rounds in milliseconds: cutting the file, surveying it, and
//! the door over the messages that were cut.

use pathcast_core::files::records::{Cut, Cutter, NameTest, Place, Rows, Survey};
use pathcast_core::xml::parser::{Door, Limits, read_head};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: records_speed FILE LEVELS [ROUNDS]";
    let path = arguments.next().unwrap_or_else(|| panic!("{usage}"));
    let levels: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let rounds: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let limits = Limits::default();
    let head = match read_head(&file, true, &limits) {
        Ok(Some(head)) => head,
        other => panic!("{path}: {other:?}"),
    };
    let cut = Cut {
        path: vec![NameTest::default(); levels + 1],
        limits: limits.clone(),
        context_bytes_max: 64 << 10,
        head: head.carried,
        has_doctype: head.has_doctype,
    };
    let mut least = [f64::MAX; 3];
    let mut took = |at: usize, start: Instant| {
        least[at] = least[at].min(start.elapsed().as_secs_f64() * 1e3);
    };
    let (mut records, mut refused) = (0, 0);
    for _ in 0..rounds {
        let start = Instant::now();
        let batches = cut_all(&cut, &file, head.root);
        took(0, start);
        let start = Instant::now();
        let mut survey = Survey::new(levels, head.root as u64);
        file[head.root..].chunks(1 << 20).for_each(|block| survey.feed(block));
        assert_eq!(survey.outcomes()[0].effect.open, 0);
        took(1, start);
        let mut door = Door::new(limits.clone());
        let start = Instant::now();
        (records, refused) = (0, 0);
        for rows in &batches {
            let mut from = 0;
            for &end in &rows.ends {
                refused += usize::from(door.parse(&rows.values[from..end], None).is_err());
                from = end;
            }
            records += rows.ends.len();
        }
        took(2, start);
    }
    println!(
        "{{\"bytes\": {}, \"records\": {records}, \"refused\": {refused}, \"cut_ms\": {:.3}, \
         \"survey_ms\": {:.3}, \"door_ms\": {:.3}}}",
        file.len(),
        least[0],
        least[1],
        least[2],
    );
}

fn cut_all(cut: &Cut, file: &[u8], root: usize) -> Vec<Rows> {
    let mut cutter = Cutter::new(cut, &Place::root(), &[], root as u64, u64::MAX);
    let mut batches = Vec::new();
    for block in file[root..].chunks(1 << 20) {
        let mut at = 0;
        while at < block.len() {
            at += cutter.feed(&block[at..]);
            if cutter.is_full() {
                batches.push(cutter.take());
            }
        }
    }
    cutter.finish();
    batches.push(cutter.take());
    batches
}
