//! Every node of many messages, written into other namespaces and parsed again.

use crate::infoset::{self, namespaces, wrapped};
use crate::messages::{Random, message};
use pathcast_core::xml::parser::{Door, Limits, Parsed};
use pathcast_core::xml::serializer::{Limit, Scratch, Writer, write_node};
use pathcast_core::xml::tree::NodeRef;

/// Where fragments are put.
pub const OUTERS: [&[(&str, &str)]; 6] = [
    &[],
    &[("", "urn:a")],
    &[("p", "urn:b"), ("é", "urn:ü<")],
    &[("", "u?x=1&y='2'"), ("p", "urn:a"), ("q", "urn:b")],
    &[("other", "urn:other")],
    &[("", "urn:dtd"), ("q", "urn:z"), ("z", "urn:a")],
];

/// How a door reads a message that is to be written.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// With source spans: raw where it can be.
    Spans,
    /// The same with a full tree, for programs that ask for one.
    SpansAndFull,
    /// Without source spans: always anew.
    Full,
}

pub fn door(way: Way) -> Door {
    let limits = Limits { entity_expansion_ratio_max: 1000, ..Limits::default() };
    let mut door = Door::new(limits);
    door.keep_source_spans(!matches!(way, Way::Full));
    door.keep_full_tree(!matches!(way, Way::Spans));
    door
}

/// What has been compared.
#[derive(Debug, Default)]
struct Tally {
    raw: usize,
    anew: usize,
    other: usize,
    refused: usize,
}

/// Writes every element, text, comment and instruction, and the document, in all ways into all
/// outers.
fn compare(
    bytes: &[u8],
    doors: &mut [(Way, Door); 3],
    again: &mut Door,
    scratch: &mut Scratch,
    tally: &mut Tally,
) {
    let mut full = door(Way::Full);
    let Ok(original) = full.parse(bytes, None) else {
        tally.refused += 1;
        return;
    };
    for (way, door) in doors {
        let parsed = door.parse(bytes, None).expect("what one door reads, all read");
        assert_eq!(parsed.message.tree.len(), original.message.tree.len());
        let mut writer = Writer::new(parsed.message, parsed.names, scratch);
        for (number, outer) in OUTERS.iter().enumerate() {
            let scope = namespaces(outer);
            let mut write = |node| {
                let mut out = b"kept".to_vec();
                writer.node(&mut out, node, &scope, Limit::NONE).expect("there is no limit");
                assert!(out.starts_with(b"kept"));
                out.split_off(4)
            };
            for element in 0..original.message.tree.len() as u32 {
                let fragment = write(NodeRef::Element(element));
                let shown = || String::from_utf8_lossy(&fragment).into_owned();
                let whole = wrapped(outer, &fragment);
                let reread = again
                    .parse(&whole, None)
                    .unwrap_or_else(|error| panic!("{way:?} {element}: {error:?}\n{}", shown()));
                let expected = infoset::element(&original, element, outer);
                let found = infoset::element(&reread, 1, &[]);
                assert_eq!(found, expected, "{way:?} {outer:?} element {element}: {}", shown());
                if number == 0 {
                    let mut out = Vec::new();
                    let (message, node) = (parsed.message, NodeRef::Element(element));
                    write_node(&mut out, message, parsed.names, node, &scope);
                    assert_eq!(out, fragment, "a writer for one node writes the same");
                }
                let tree = parsed.message.tree;
                if tree.is_verbatim { tally.raw += 1 } else { tally.anew += 1 }
            }
            compare_texts(&original, &mut write, again, tally);
            compare_document(&original, &write(NodeRef::Document), outer, again);
            if parsed.message.tree.is_full {
                compare_markup(&original, &mut write, again, tally);
            }
        }
    }
}

fn compare_texts(
    original: &Parsed<'_>,
    write: &mut impl FnMut(NodeRef) -> Vec<u8>,
    again: &mut Door,
    tally: &mut Tally,
) {
    let tree = original.message.tree;
    let texts = tree.text_value.iter().zip(0..).map(|(&value, text)| (value, NodeRef::Text(text)));
    let values = tree.attribute_value.iter().zip(0..);
    let values = values.map(|(&value, attribute)| (value, NodeRef::Attribute(attribute)));
    for (value, node) in texts.chain(values) {
        let whole = wrapped(&[], &write(node));
        let reread = again.parse(&whole, None).expect("text is well-formed");
        let found: String = reread
            .message
            .tree
            .text_value
            .iter()
            .map(|&span| infoset::text(&reread, span))
            .collect();
        assert_eq!(found, infoset::text(original, value), "{node:?}");
        tally.other += 1;
    }
}

fn compare_markup(
    original: &Parsed<'_>,
    write: &mut impl FnMut(NodeRef) -> Vec<u8>,
    again: &mut Door,
    tally: &mut Tally,
) {
    for number in 0..original.message.tree.markup_kind.len() as u32 {
        let whole = wrapped(&[], &write(NodeRef::Comment(number)));
        let reread = again.parse(&whole, None).expect("markup is well-formed");
        assert_eq!(infoset::markup(&reread, 0), infoset::markup(original, number));
        tally.other += 1;
    }
}

/// The document node stands for all that is in it: nothing more than white space outside the root
/// element is lost.
fn compare_document(
    original: &Parsed<'_>,
    fragment: &[u8],
    outer: &[(&str, &str)],
    again: &mut Door,
) {
    let whole = wrapped(outer, fragment);
    let reread = again.parse(&whole, None).expect("a document is well-formed content");
    let root = infoset::element(original, 0, outer);
    assert_eq!(infoset::element(&reread, 1, &[]), root);
    let before = original.message.tree.markup_start[0];
    let after = original.message.tree.markup_end[0];
    let count = original.message.tree.markup_kind.len() as u32;
    assert_eq!(reread.message.tree.markup_start[1], before);
    assert_eq!(reread.message.tree.markup_end[1], after);
    let markups = |parsed: &Parsed<'_>| -> Vec<String> {
        (0..count).map(|number| infoset::markup(parsed, number)).collect()
    };
    assert_eq!(markups(&reread), markups(original));
    let texts = original.message.tree.text_value.len();
    assert_eq!(reread.message.tree.text_value.len(), texts, "no text between comments");
}

fn run(messages: impl Iterator<Item = (u64, Vec<u8>)>) -> Tally {
    let ways = [Way::Spans, Way::SpansAndFull, Way::Full];
    let mut doors = ways.map(|way| (way, door(way)));
    let mut again = door(Way::Full);
    let mut scratch = Scratch::default();
    let mut tally = Tally::default();
    for (seed, bytes) in messages {
        let shown = Shown(seed, &bytes);
        compare(&bytes, &mut doors, &mut again, &mut scratch, &mut tally);
        drop(shown);
    }
    println!("{tally:?}");
    tally
}

/// Prints the message if a comparison panics.
struct Shown<'d>(u64, &'d [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, message b\"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

/// Rounds of a test: more with `PATHCAST_OUTPUT_ROUNDS`, and then from another seed.
fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("PATHCAST_OUTPUT_ROUNDS").map(|rounds| rounds.parse::<u64>()) {
        Ok(Ok(rounds)) => 1_000_000..1_000_000 + count * rounds,
        _ => 0..count,
    }
}

/// Fails when a subscriber gets something else than the message says.
#[test]
fn what_is_written_is_what_was_there() {
    let count = seeds(400);
    let total = count.end - count.start;
    let made = count.map(|seed| (seed, message(&mut Random(seed)).into_bytes()));
    let tally = run(made);
    assert!(tally.raw > 4 * total as usize && tally.anew > 4 * total as usize, "{tally:?}");
    assert!((tally.refused as u64) < total / 8, "{tally:?}");
}

/// Fails when places are those of the bytes as they came rather than of the text.
#[test]
fn other_encodings_are_written_as_utf_8() {
    let made = seeds(60).map(|seed| {
        let text = message(&mut Random(seed ^ 0xe17c));
        let mut bytes = vec![];
        match seed % 3 {
            0 => {
                bytes.extend_from_slice(&[0xff, 0xfe]);
                bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            }
            1 => {
                let text = text.trim_start_matches("<?xml version=\"1.0\"?>");
                bytes.extend_from_slice(b"<?xml version='1.0' encoding='iso-8859-1'?>");
                bytes.extend(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')));
            }
            _ => {
                bytes.extend_from_slice(b"\xef\xbb\xbf");
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        (seed, bytes)
    });
    let tally = run(made);
    assert!(tally.raw > 100, "{tally:?}");
}

/// Fails when bytes that no sender writes on purpose lead to fragments that say something else, or
/// to none.
#[test]
fn damaged_messages_that_are_still_messages() {
    const PIECES: [&str; 14] = [
        "<",
        ">",
        "&",
        "/>",
        "xmlns=''",
        " xmlns:p='u'",
        "]]>",
        "<![CDATA[",
        "-->",
        "<!--",
        "&e1;",
        "'",
        "\"",
        "<a>",
    ];
    let made = seeds(2_000).map(|seed| {
        let mut random = Random(seed ^ 0xda3a);
        let mut bytes = message(&mut random).into_bytes();
        for _ in 0..1 + random.below(2) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = random.below(256) as u8,
                _ => drop(bytes.splice(at..at, random.of(&PIECES).bytes())),
            }
        }
        (seed, bytes)
    });
    let tally = run(made);
    assert!(tally.raw > 1_000, "{tally:?}");
}
