//! Times the writing of elements: `output_speed [ROUNDS]`.
//!
//! Messages of known shape; every item of one is written as a fragment of its own, as a subscription
//! that selects items would have it, and every value escaped as text. One JSON line for each shape:
//! bytes of a fragment, nanoseconds each, megabytes a second of output (median of the rounds).

use pathcast_core::xml::parser::{Door, Limits};
use pathcast_core::xml::serializer::{Limit, Namespaces, Scratch, Writer};
use pathcast_core::xml::tree::NodeRef;
use std::time::Instant;

/// Name, attributes of the root, items, children of an item, whether it has a document type
/// declaration that makes every element be written anew.
const SHAPES: [(&str, &str, usize, usize, bool); 7] = [
    ("small, no namespaces", "", 1_000, 2, false),
    ("medium, no namespaces", "", 1_000, 9, false),
    ("small, two namespaces", NAMESPACES, 1_000, 2, false),
    ("medium, two namespaces", NAMESPACES, 1_000, 9, false),
    ("large, two namespaces", NAMESPACES, 10, 2_000, false),
    ("medium, anew", NAMESPACES, 1_000, 9, true),
    ("large, anew", NAMESPACES, 10, 2_000, true),
];
const NAMESPACES: &str = " xmlns='urn:example:orders' xmlns:m='urn:example:money'";

fn message(attributes: &str, items: usize, children: usize, is_anew: bool) -> String {
    let prefix = if attributes.is_empty() { "" } else { "m:" };
    let mut out = String::new();
    if is_anew {
        out.push_str("<!DOCTYPE orders [<!ENTITY e ''>]>");
    }
    out.push_str(&format!("<orders{attributes}>"));
    for item in 0..items {
        out.push_str(&format!("<item number=\"{item}\">"));
        for child in 0..children {
            out.push_str(&format!(
                "<{prefix}price currency=\"EUR\">{item}.{child}</{prefix}price>"
            ));
        }
        out.push_str("</item>\n");
    }
    out.push_str(if is_anew { "&e;</orders>" } else { "</orders>" });
    out
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(51);
    let mut door = Door::new(Limits { message_bytes_max: 1 << 30, ..Limits::default() });
    door.keep_source_spans(true);
    let mut scratch = Scratch::default();
    for (name, attributes, items, children, is_anew) in SHAPES {
        let text = message(attributes, items, children, is_anew);
        let parsed = door
            .parse(text.as_bytes(), None)
            .unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        let tree = parsed.message.tree;
        let elements = (0..tree.len() as u32).filter(|&at| tree.depth[at as usize] == 1);
        let nodes: Vec<_> = elements.map(NodeRef::Element).collect();
        report(name, rounds, &parsed, &nodes, &mut scratch);
        let texts: Vec<_> = (0..tree.text_value.len() as u32).map(NodeRef::Text).collect();
        report(&format!("{name}: texts"), rounds, &parsed, &texts, &mut scratch);
    }
    let long = format!("<a>{}</a>", "plain text, of some length, & so on &amp; on ".repeat(20_000));
    let long = long.replace("& so", "&lt; so");
    let parsed = door.parse(long.as_bytes(), None).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    report("one long text, escaped", rounds, &parsed, &[NodeRef::Text(0)], &mut scratch);
}

fn report(
    name: &str,
    rounds: usize,
    parsed: &pathcast_core::xml::parser::Parsed<'_>,
    nodes: &[NodeRef],
    scratch: &mut Scratch,
) {
    let outer = Namespaces::default();
    let mut out = Vec::new();
    let mut times = Vec::new();
    for _ in 0..rounds {
        out.clear();
        let limit = Limit::after(&out, 1 << 30);
        let start = Instant::now();
        let mut writer = Writer::new(parsed.message, parsed.names, scratch);
        for &node in nodes {
            if writer.node(&mut out, node, &outer, limit).is_err() {
                panic!("{name}: too long");
            }
        }
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let seconds = times[times.len() / 2];
    println!(
        "{{\"shape\": \"{name}\", \"fragments\": {}, \"bytes_each\": {}, \"ns_each\": {:.1}, \
         \"mb_per_second\": {:.0}}}",
        nodes.len(),
        out.len() / nodes.len(),
        seconds * 1e9 / nodes.len() as f64,
        out.len() as f64 / seconds / 1e6,
    );
}
