//! `testdata/xquery.toml` and `testdata/flwr.toml`: every program has its results.

use crate::canonical::canonical;
use pathcast_core::engine::programs::{Bounds, Results, RunError, Scratch, Session};
use pathcast_core::language::xquery::Program;
use pathcast_core::xml::parser::{Door, Limits};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Groups {
    group: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    message: String,
    #[serde(default)]
    namespaces: BTreeMap<String, String>,
    cases: Vec<(String, toml::Value)>,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    query: String,
    #[serde(default)]
    namespaces: BTreeMap<String, String>,
    #[serde(default)]
    messages: Vec<Asked>,
    refused: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    text: String,
    results: Option<Vec<String>>,
    error: Option<String>,
}

const BOUNDS: Bounds = Bounds { steps_max: 1_000_000, bytes_max: 1 << 20 };

/// A door with the columns that a program needs; or with all.
fn door_for(program: &Program, is_full: bool) -> Door {
    let mut door = Door::new(Limits::default());
    door.keep_source_spans(true);
    door.keep_full_tree(is_full || program.needs_full_tree());
    door
}

/// What a program gives, or the code of its verdict.
fn outcome(program: &Program, message: &[u8], is_full: bool) -> Result<Vec<String>, String> {
    let mut door = door_for(program, is_full);
    let parsed = door.parse(message, None).map_err(|error| error.to_string())?;
    let mut scratch = Scratch::default();
    let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
    let mut results = Results::default();
    let answer = session.run(program, BOUNDS, &mut results);
    if answer.is_ok() {
        // Whoever gets a result is noticed, unless it is a value and that is false.
        let holds = session.holds(program, BOUNDS);
        let is_built = results.bytes.contains(&b'<');
        assert!(holds == answer || (answer == Ok(true) && !is_built), "delivered, results or none");
    }
    match answer {
        Ok(_) => Ok(split(&results)),
        Err(RunError::Construction(code)) => Err(code.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn split(results: &Results) -> Vec<String> {
    let starts = std::iter::once(0).chain(results.ends.iter().copied());
    let ranges = starts.zip(&results.ends);
    ranges.map(|(start, &end)| canonical(&results.bytes[start..end])).collect()
}

fn pairs(namespaces: &BTreeMap<String, String>) -> Vec<(String, String)> {
    namespaces.iter().map(|(prefix, uri)| (prefix.clone(), uri.clone())).collect()
}

fn wrong(
    (name, query): (&str, &str),
    namespaces: &BTreeMap<String, String>,
    message: &str,
    expected: &Result<Vec<String>, String>,
) -> Option<String> {
    let program = match Program::parse(query, &pairs(namespaces)) {
        Ok(program) => program,
        Err(declined) => return Some(format!("{name}: {query}\n  {declined}")),
    };
    for is_full in [false, true] {
        let found = outcome(&program, message.as_bytes(), is_full);
        if found != *expected {
            return Some(format!("{name}: {query}\n  is  {found:?}\n  not {expected:?}"));
        }
    }
    None
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/../../testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the table of cases");
    toml::from_str(&text).expect("a table of cases")
}

/// A wrong result here is a wrong delivery to some subscriber.
#[test]
fn every_program_has_its_results() {
    let groups: Groups = read("xquery.toml");
    let mut found = Vec::new();
    let mut count = 0;
    for group in &groups.group {
        for (query, expected) in &group.cases {
            let expected = match expected {
                toml::Value::String(code) => Err(code.clone()),
                toml::Value::Array(results) => {
                    let texts = results.iter().filter_map(toml::Value::as_str);
                    Ok(texts.map(|text| canonical(text.as_bytes())).collect())
                }
                other => panic!("{other}"),
            };
            count += 1;
            found.extend(wrong((&group.name, query), &group.namespaces, &group.message, &expected));
        }
    }
    assert!(count > 300, "the table is read");
    assert!(found.is_empty(), "{} of {count} wrong:\n{}", found.len(), found.join("\n"));
}

/// The queries of the papers.
#[test]
fn subscriptions_of_the_papers_have_their_results() {
    let cases: Cases = read("flwr.toml");
    let mut found = Vec::new();
    for case in &cases.case {
        if case.refused.is_some() {
            let parsed = Program::parse(&case.query, &pairs(&case.namespaces));
            assert!(parsed.is_err(), "{}", case.name);
            continue;
        }
        for asked in &case.messages {
            let results = asked.results.iter().flatten();
            let expected = match &asked.error {
                Some(code) => Err(code.clone()),
                None => Ok(results.map(|text| canonical(text.as_bytes())).collect()),
            };
            found.extend(wrong(
                (&case.name, &case.query),
                &case.namespaces,
                &asked.text,
                &expected,
            ));
        }
    }
    assert!(cases.case.len() > 5, "the table is read");
    assert!(found.is_empty(), "{} wrong:\n{}", found.len(), found.join("\n"));
}
