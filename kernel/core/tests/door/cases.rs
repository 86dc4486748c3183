//! `testdata/wellformedness.toml`: every case gives its tree or its error.

use crate::dump::{check_columns, dump};
use pathcast_core::door::{Door, DtdPolicy, Limits};
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    message: Option<String>,
    hex: Option<String>,
    encoding: Option<String>,
    #[serde(default)]
    limits: toml::Table,
    tree: Option<String>,
    error: Option<String>,
}

impl Case {
    fn bytes(&self) -> Vec<u8> {
        match (&self.message, &self.hex) {
            (Some(message), None) => message.clone().into_bytes(),
            (None, Some(hex)) => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
                .collect(),
            _ => panic!("{}: message or hex", self.name),
        }
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            let number = value.as_integer().unwrap_or(0) as u32;
            match name.as_str() {
                "message_bytes_max" => limits.message_bytes_max = number,
                "depth_max" => limits.depth_max = number,
                "elements_max" => limits.elements_max = number,
                "attributes_max" => limits.attributes_max = number,
                "attribute_value_bytes_max" => limits.attribute_value_bytes_max = number,
                "entity_expansion_ratio_max" => limits.entity_expansion_ratio_max = number,
                "entity_expansion_bytes_max" => limits.entity_expansion_bytes_max = number,
                "names_max" => limits.names_max = number,
                "dtd" => limits.dtd = DtdPolicy::Refuse,
                other => panic!("{}: unknown limit {other}", self.name),
            }
        }
        limits
    }

    fn expected(&self) -> &str {
        self.tree.as_deref().or(self.error.as_deref()).expect("tree or error")
    }
}

fn outcome(door: &mut Door, bytes: &[u8], encoding: Option<&str>) -> String {
    match door.parse(bytes, encoding) {
        Ok(parsed) => {
            check_columns(&parsed);
            dump(&parsed)
        }
        Err(refusal) => refusal.code.as_str().to_owned(),
    }
}

fn table() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/wellformedness.toml");
    let text = std::fs::read_to_string(path).expect("the table of cases");
    let table: Table = toml::from_str(&text).expect("the table is TOML");
    assert!(table.case.len() >= 200, "only {} cases", table.case.len());
    table.case
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
