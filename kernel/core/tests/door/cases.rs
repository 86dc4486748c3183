//! `testdata/wellformedness.toml`: every case gives its tree or its error.

use crate::dump::{check_columns, dump};
use crate::table::table;
use pathcast_core::xml::parser::{Door, Limits};

fn outcome(door: &mut Door, bytes: &[u8], encoding: Option<&str>) -> String {
    match door.parse(bytes, encoding) {
        Ok(parsed) => {
            check_columns(&parsed);
            dump(&parsed)
        }
        Err(refusal) => refusal.code.as_str().to_owned(),
    }
}

/// Fails when a production or constraint of the recommendations is not kept.
#[test]
fn every_case_gives_its_tree_or_its_error() {
    let mut wrong = Vec::new();
    for case in table() {
        let mut door = Door::new(case.limits());
        let found = outcome(&mut door, &case.bytes(), case.encoding.as_deref());
        if found != case.expected() {
            wrong.push(format!("{}: expected {}, found {found}", case.name, case.expected()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fails when what is kept of a message decides whether it is let in.
#[test]
fn a_full_tree_is_the_same_tree_with_more() {
    for case in table() {
        let mut door = Door::new(case.limits());
        door.keep_full_tree(true);
        let found = outcome(&mut door, &case.bytes(), case.encoding.as_deref());
        assert_eq!(found, case.expected(), "{}", case.name);
    }
}

/// Fails when anything of one message is left in the door for the next.
#[test]
fn a_door_that_has_seen_all_cases_answers_as_a_new_one() {
    let cases = table();
    let mut door = Door::new(Limits::default());
    for _ in 0..2 {
        for case in cases.iter().filter(|case| case.limits.is_empty()) {
            let found = outcome(&mut door, &case.bytes(), case.encoding.as_deref());
            assert_eq!(found, case.expected(), "{}", case.name);
        }
    }
}
