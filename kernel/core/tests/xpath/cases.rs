//! `testdata/xpath_values.toml`: every expression has its value, on whichever tree.

use pathcast_core::engine::evaluate::{Scratch, Value};
use pathcast_core::language::xpath::Expression;
use pathcast_core::xml::parser::{Door, Limits};
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Table {
    pub group: Vec<Group>,
}

#[derive(Deserialize)]
pub struct Group {
    pub name: String,
    pub message: String,
    #[serde(default = "steps_default")]
    pub steps: u64,
    pub cases: Vec<(String, toml::Value)>,
    #[serde(default)]
    over: Vec<String>,
}

fn steps_default() -> u64 {
    1_000_000
}

pub fn table() -> Table {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/xpath_values.toml");
    let text = std::fs::read_to_string(path).expect("the table of cases");
    toml::from_str(&text).expect("a table of groups")
}

fn is_expected(value: &Value, expected: &toml::Value) -> bool {
    match (value, expected) {
        (Value::Boolean(value), toml::Value::Boolean(expected)) => value == expected,
        (Value::Nodes(nodes), toml::Value::Boolean(expected)) => nodes.is_empty() != *expected,
        (Value::Number(value), toml::Value::Integer(expected)) => *value == *expected as f64,
        (Value::Number(value), toml::Value::Float(expected)) => {
            value == expected || value.is_nan() && expected.is_nan()
        }
        (Value::String(value), toml::Value::String(expected)) => value == expected,
        _ => false,
    }
}

/// A wrong value here is a wrong verdict for some subscriber.
#[test]
fn every_expression_has_its_value() {
    let table = table();
    assert!(table.group.len() > 15, "the table is read");
    let mut door = Door::new(Limits::default());
    door.keep_full_tree(true);
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    for group in &table.group {
        let parsed = door.parse(group.message.as_bytes(), None).expect(&group.name);
        for (text, expected) in &group.cases {
            let expression = Expression::parse(text).unwrap_or_else(|error| {
                panic!("{}: {text}: {error}", group.name);
            });
            let (message, names) = (parsed.message, parsed.names);
            let value = expression.evaluate(message, names, &mut scratch, group.steps);
            if !value.as_ref().is_ok_and(|value| is_expected(value, expected)) {
                wrong.push(format!("{}: {text}\n  is {value:?}, not {expected}", group.name));
            }
        }
        for text in &group.over {
            let expression = Expression::parse(text).expect(text);
            let verdict = expression.holds(parsed.message, parsed.names, &mut scratch, group.steps);
            assert!(verdict.is_err(), "{text} takes {} steps", scratch.steps_taken());
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// If `holds` and `evaluate` disagreed, the kernel would not do what `explain` says.
#[test]
fn holds_is_the_truth_of_the_value() {
    let mut door = Door::new(Limits::default());
    door.keep_full_tree(true);
    let mut scratch = Scratch::default();
    for group in table().group {
        let parsed = door.parse(group.message.as_bytes(), None).expect(&group.name);
        for (text, _) in &group.cases {
            let expression = Expression::parse(text).expect(text);
            let (message, names) = (parsed.message, parsed.names);
            let truth = match expression.evaluate(message, names, &mut scratch, u64::MAX) {
                Ok(Value::Boolean(value)) => value,
                Ok(Value::Number(value)) => value != 0.0 && !value.is_nan(),
                Ok(Value::String(value)) => !value.is_empty(),
                Ok(Value::Nodes(nodes)) => !nodes.is_empty(),
                Err(error) => panic!("{text}: {error}"),
            };
            assert_eq!(
                expression.holds(message, names, &mut scratch, u64::MAX),
                Ok(truth),
                "{text}"
            );
        }
    }
}
