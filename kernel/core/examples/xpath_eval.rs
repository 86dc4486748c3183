//! Evaluates XPath expressions: for comparison with other implementations.
//!
//! Reads lines `[message, [expression, ...]]` (JSON) from standard input and writes for each line a
//! list with one entry per expression: a boolean, `{"number": "..."}`, `{"string": "..."}`,
//! `{"nodes": [...]}` or `{"error": "..."}`. An optional argument is the number of steps; `root`
//! makes the root element the context node; `plain` keeps of messages only what is needed.

use pathcast_core::engine::evaluate::{Scratch, Session, Value};
use pathcast_core::language::xpath::Expression;
use pathcast_core::xml::parser::{Door, Limits, Parsed};
use pathcast_core::xml::tree::NodeRef;
use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let steps_max = arguments.first().map_or(Ok(1_000_000), |steps| steps.parse())?;
    let context = arguments.iter().any(|argument| argument == "root").then_some(0);
    let is_plain = arguments.iter().any(|argument| argument == "plain");
    let mut scratch = Scratch::default();
    let mut full = Door::new(Limits::default());
    full.keep_full_tree(true);
    let mut plain = Door::new(Limits::default());
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let (message, expressions): (String, Vec<String>) = serde_json::from_str(&line?)?;
        let mut answers = Vec::new();
        for text in &expressions {
            let expression = match Expression::parse(text) {
                Ok(expression) => expression,
                Err(error) => {
                    answers.push(json!({ "error": error.to_string() }));
                    continue;
                }
            };
            let needs_full = expression.needs_full_tree() || !is_plain;
            let door = if needs_full { &mut full } else { &mut plain };
            let parsed = door.parse(message.as_bytes(), None)?;
            let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
            let value = session.evaluate_at(context, &expression, steps_max);
            answers.push(match value {
                Ok(value) => written(&parsed, value),
                Err(error) => json!({ "error": error.to_string() }),
            });
        }
        writeln!(out, "{}", Json::Array(answers))?;
    }
    Ok(())
}

fn written(parsed: &Parsed<'_>, value: Value) -> Json {
    match value {
        Value::Boolean(value) => json!(value),
        Value::Number(value) => json!({ "number": format!("{value:e}") }),
        Value::String(value) => json!({ "string": value }),
        Value::Nodes(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(|&node| node_text(parsed, node)).collect();
            json!({ "nodes": nodes })
        }
    }
}

fn node_text(parsed: &Parsed<'_>, node: NodeRef) -> String {
    let tree = parsed.message.tree;
    let text = |span| String::from_utf8_lossy(parsed.message.bytes(span)).into_owned();
    match node {
        NodeRef::Document => "D".to_owned(),
        NodeRef::Element(element) => format!("E{element}"),
        NodeRef::Attribute(attribute) => {
            format!("A{}", text(tree.attribute_value[attribute as usize]))
        }
        NodeRef::Namespace(_, None) => "Nxml=http://www.w3.org/XML/1998/namespace".to_owned(),
        NodeRef::Namespace(_, Some(declaration)) => {
            let prefix = text(tree.declaration_prefix[declaration as usize]);
            format!("N{prefix}={}", text(tree.declaration_uri[declaration as usize]))
        }
        NodeRef::Text(number) => format!("T{}", text(tree.text_value[number as usize])),
        NodeRef::Comment(number) => format!("C{}", text(tree.markup_content[number as usize])),
        NodeRef::Instruction(number) => {
            let target = text(tree.markup_target[number as usize]);
            format!("P{target} {}", text(tree.markup_content[number as usize]))
        }
    }
}
