//! Times programs over one message: `xquery_speed FILE PROGRAM...`; and parsing alone, of programs in
//! a file with one on each line: `xquery_speed --parse FILE`. With `--accept` it reads programs, with
//! `--answers` programs and messages by turns, a NUL byte after each, and prints whether each is
//! accepted, or what it gives: to hold the kernel to other engines.
//!
//! Prints per program the median time of parsing it and of a run in a session for many, in
//! microseconds, the steps and the bytes of a run.

use pathcast_core::engine::programs::{Bounds, Results, Scratch, Session};
use pathcast_core::language::xquery::Program;
use pathcast_core::xml::parser::{Door, Limits};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [option, file] if option == "--parse" => parse_all(&std::fs::read_to_string(file)?),
        [option] if option == "--accept" => accept_all(),
        [option] if option == "--answers" => answer_all(),
        [file, programs @ ..] => run_all(&std::fs::read(file)?, programs),
        [] => Err("usage: xquery_speed FILE PROGRAM...".into()),
    }
}

/// Programs apart by NUL bytes on the standard input: prints for each whether it is accepted.
fn accept_all() -> Result<(), Box<dyn std::error::Error>> {
    let input = std::io::read_to_string(std::io::stdin())?;
    for text in input.split('\0') {
        match Program::parse(text, &[]) {
            Ok(_) => println!("yes"),
            Err(declined) => println!("{declined}"),
        }
    }
    Ok(())
}

/// Prints for each pair `error ...` or the number of results, and each result with its length.
fn answer_all() -> Result<(), Box<dyn std::error::Error>> {
    let input = std::io::read_to_string(std::io::stdin())?;
    let texts: Vec<&str> = input.split('\0').collect();
    let bounds = Bounds { steps_max: 1_000_000, bytes_max: 1 << 20 };
    let mut scratch = Scratch::default();
    let mut results = Results::default();
    for pair in texts.chunks_exact(2) {
        results.clear();
        let program = match Program::parse(pair[0], &[]) {
            Ok(program) => program,
            Err(declined) => {
                println!("declined {declined}");
                continue;
            }
        };
        let mut door = Door::new(Limits::default());
        door.keep_source_spans(true);
        door.keep_full_tree(program.needs_full_tree());
        let parsed = door.parse(pair[1].as_bytes(), None)?;
        let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
        match session.run(&program, bounds, &mut results) {
            Err(error) => println!("error {error}"),
            Ok(is_delivered) => println!("{is_delivered} {}", results.ends.len()),
        }
        let mut start = 0;
        for &end in &results.ends {
            println!("{}\n{}", end - start, String::from_utf8_lossy(&results.bytes[start..end]));
            start = end;
        }
    }
    Ok(())
}

fn parse_all(texts: &str) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let mut programs = Vec::new();
    for text in texts.lines() {
        programs.push(Program::parse(text, &[])?);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.0} programs a second, {} kept", programs.len() as f64 / seconds, programs.len());
    Ok(())
}

fn run_all(bytes: &[u8], programs: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut door = Door::new(Limits::default());
    door.keep_source_spans(true);
    door.keep_full_tree(memchr::memmem::find(bytes, b"xmlns").is_some());
    let parsed = door.parse(bytes, None)?;
    let mut scratch = Scratch::default();
    let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
    let bounds = Bounds { steps_max: u64::MAX, bytes_max: usize::MAX };
    let mut results = Results::default();
    for text in programs {
        let program = Program::parse(text, &[])?;
        let parsing = median(|| Program::parse(text, &[]).is_ok());
        let running = median(|| {
            results.clear();
            session.run(&program, bounds, &mut results).is_ok()
        });
        let (steps, len) = (session.steps_taken(), results.bytes.len());
        println!("{parsing:7.3} us {running:9.3} us {steps:6} steps {len:6} bytes {text}");
    }
    Ok(())
}

/// Median time of one call in microseconds.
fn median(mut work: impl FnMut() -> bool) -> f64 {
    let mut times: Vec<f64> = (0..100)
        .map(|_| {
            let start = Instant::now();
            assert!((0..50).all(|_| work()), "no bound is exceeded");
            start.elapsed().as_secs_f64() * 1e6 / 50.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[50]
}
