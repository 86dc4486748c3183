//! The cases of `testdata` and messages of the shared data, cut at every place.

use crate::oracle::{Both, Random};
use crate::table::table;
use pathcast_core::xml::parser::Limits;
use std::path::{Path, PathBuf};

/// Fails when the answer to a case of well-formedness depends on where it is cut.
#[test]
fn every_case_at_every_cut() {
    let mut random = Random(0x5EED_0001);
    for case in table() {
        let mut both = Both::new(case.limits());
        let (message, encoding) = (case.bytes(), case.encoding.as_deref());
        // Messages that expand to megabytes take their time.
        let (step, times) = if message.len() > 500 { (200, 1) } else { (1, 3) };
        both.check_every_cut(&message, encoding, step);
        both.check_some_cuts(&message, encoding, &mut random, times);
    }
}

/// Fails when anything of one message is left in the parser for the next.
#[test]
fn a_parser_that_has_seen_all_cases_answers_as_a_new_one() {
    let mut random = Random(0x5EED_0002);
    let mut both = Both::new(Limits::default());
    for _ in 0..2 {
        for case in table().iter().filter(|case| case.limits.is_empty()) {
            both.check_some_cuts(&case.bytes(), case.encoding.as_deref(), &mut random, 1);
        }
    }
}

fn xml_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            xml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            found.push(path);
        }
    }
}

/// Fails when real messages are read otherwise than at the door. Looks at up to 400 files below
/// `PATHCAST_SHARED_DATA`; without it, at none.
#[test]
fn real_messages_at_random_cuts() {
    let Some(directory) = std::env::var_os("PATHCAST_SHARED_DATA") else { return };
    let mut paths = Vec::new();
    xml_files(Path::new(&directory), &mut paths);
    let step = (paths.len() / 400).max(1);
    let mut random = Random(0x5EED_0003);
    let mut both = Both::new(Limits::default());
    let mut bytes = 0;
    for path in paths.iter().step_by(step) {
        let message = std::fs::read(path).expect("the file is there");
        if message.len() > 4 << 20 {
            continue;
        }
        let expected = both.expected(&message, None);
        let size = 1 + random.below(message.len().max(1));
        for size in [size, 1 + random.below(100), 4096] {
            let cut = format!("{} by {size}", path.display());
            both.check(&message, message.chunks(size), None, &expected, &cut);
        }
        bytes += message.len();
    }
    println!("{} files, {bytes} bytes", paths.len() / step);
}
