//! Streams with bytes changed, put in, left out and exchanged, from fixed seeds.

use crate::oracle::{Both, Random};
use crate::table::table;
use pathcast_core::xml::parser::wire::{Dictionaries, WITH_DICTIONARY, text_of};
use pathcast_core::xml::parser::{Limits, Param};

/// A message of random structure, written in random ways.
fn message(random: &mut Random, out: &mut String, depth: usize) {
    const NAMES: [&str; 6] = ["a", "b", "p:c", "longer-name", "x", "\u{e9}"];
    const VALUES: [&str; 7] = ["1", "", "a b", "&amp;", "&#65;", "\n", "it"];
    let name = NAMES[random.below(NAMES.len())];
    out.push('<');
    out.push_str(name);
    if depth == 0 {
        out.push_str(" xmlns:p='urn:p'");
    }
    for attribute in ["x", "id", "p:y", "xml:lang"] {
        if random.below(4) == 0 {
            let quote = if random.below(2) == 0 { '"' } else { '\'' };
            let space = if random.below(8) == 0 { "\n " } else { " " };
            let value = VALUES[random.below(VALUES.len())];
            *out += &format!("{space}{attribute}={quote}{value}{quote}");
        }
    }
    let children = if depth < 6 { random.below(5) } else { 0 };
    if children == 0 && random.below(2) == 0 {
        out.push_str(if random.below(6) == 0 { " />" } else { "/>" });
        return;
    }
    out.push('>');
    for _ in 0..=children {
        const RUNS: [&str; 10] = [
            "",
            "<?q?>",
            "text",
            "a > b",
            "&lt;",
            "<!--c-->",
            "<?p i?>",
            "<![CDATA[<&]]>",
            "\r\n",
            "]]",
        ];
        out.push_str(RUNS[random.below(RUNS.len())]);
        if random.below(children + 1) > 0 {
            message(random, out, depth + 1);
        }
    }
    *out += &format!("</{name}>");
}

/// Fails when a stream of some message is not the message.
#[test]
fn generated_messages() {
    let mut both = Both::new(Limits::default());
    let mut random = Random(0x5EED_0011);
    for _ in 0..1500 {
        let mut text = String::new();
        message(&mut random, &mut text, 0);
        both.check_text(text.as_bytes());
    }
    println!("{} equal", both.equal);
    assert!(both.equal > 8000);
}

pub fn mutate(random: &mut Random, stream: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(stream.len());
        match random.below(6) {
            0 => stream[at] = random.next() as u8,
            1 => stream[at] ^= 1 << random.below(8),
            2 => stream.insert(at, random.next() as u8),
            3 if stream.len() > 1 => drop(stream.remove(at)),
            4 => stream.truncate(at.max(1)),
            _ => {
                let end = (at + random.below(12)).min(stream.len());
                let piece = stream[at..end].to_vec();
                let to = random.below(stream.len());
                stream.splice(to..to, piece);
            }
        }
    }
}

/// Fails when damage to a stream brings the door down, or gives a tree that no text gives.
#[test]
fn damaged_streams_are_refused_or_are_other_texts() {
    let mut both = Both::new(Limits::default());
    let mut random = Random(0x5EED_0012);
    let mut seeds = Vec::new();
    for case in table().iter().filter(|case| case.encoding.is_none() && case.limits.is_empty()) {
        let text = case.bytes();
        if text.len() < 2000 {
            seeds.extend(both.streams(&text));
        }
    }
    while seeds.len() < 600 {
        let mut text = String::new();
        message(&mut random, &mut text, 0);
        seeds.extend(both.streams(text.as_bytes()));
    }
    for _ in 0..8000 {
        let mut stream = seeds[random.below(seeds.len())].clone();
        mutate(&mut random, &mut stream);
        repair_length(&mut random, &both.dictionaries, &mut stream);
        both.check_stream(&stream);
    }
    println!("{} equal", both.equal);
    assert!(both.equal > 300, "only {} damaged streams were read", both.equal);
}

/// Makes the length that a stream says fit, in most: otherwise nothing else would be looked at.
fn repair_length(random: &mut Random, known: &Dictionaries, stream: &mut Vec<u8>) {
    let at = if stream[0] == WITH_DICTIONARY { 9 } else { 1 };
    if random.below(8) == 0 || stream.len() < at + 2 {
        return;
    }
    let end = at + stream[at..].iter().take_while(|&&byte| byte >= 0x80).count() + 1;
    for _ in 0..2 {
        let Err(refusal) = text_of(stream, known, &Limits::default()) else { return };
        let given = refusal.params.iter().find(|param| param.0 == "given");
        let Some((_, Param::Int(given))) = given else { return };
        if refusal.code.as_str() != "wire.length" || *given >= 1 << 14 {
            return;
        }
        let end = end.min(stream.len());
        if refusal.offset < stream.len() as u64 && end == at + 2 {
            // Too long: found out at the first item that is, so that the whole is tried first.
            stream.splice(at..end, [0xFF, 0x7F]);
            continue;
        }
        stream.splice(at..end, [*given as u8 | 0x80, (*given >> 7) as u8]);
        if *given < 128 {
            stream.splice(at..at + 2, [*given as u8]);
            return;
        }
    }
}
