//! Streams made to lie, or to cost more than they are worth.

use crate::oracle::{Both, VERSION};
use pathcast_core::xml::parser::wire::{Dictionaries, Dictionary, Encoder};
use pathcast_core::xml::parser::{Door, Limits};
use std::sync::Arc;

/// Code and offset of a refusal, or the number of elements.
fn outcome(limits: Limits, stream: &[u8]) -> (String, u64) {
    match Both::new(limits).door((true, true)).parse(stream, None) {
        Ok(parsed) => ("elements".to_owned(), parsed.message.tree.len() as u64),
        Err(refusal) => (refusal.code.as_str().to_owned(), refusal.offset),
    }
}

fn number(mut value: u32) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A stream without a dictionary, whose text has that length.
fn stream(len: u32, items: &[u8]) -> Vec<u8> {
    [&[1][..], &number(len), items].concat()
}

/// Fails when a limit of the door does not count for streams, or its refusal has no place.
#[test]
fn a_million_open_tags_are_refused_by_the_limits_of_the_door() {
    // <a> in band, then the same name by number: one byte a level.
    let open = |levels: usize| [&[3, 1, b'a'][..], &vec![0x0B; levels - 1]].concat();
    let levels = 1_000_000;
    let unclosed = stream(3 * levels as u32, &open(levels));
    assert_eq!(outcome(Limits::default(), &unclosed), ("limit.depth".into(), 5 + 3 + 255));
    let deep = Limits { depth_max: u32::MAX, ..Limits::default() };
    assert_eq!(outcome(deep.clone(), &unclosed), ("xml.end".into(), unclosed.len() as u64));
    let closed = stream(7 * levels as u32, &[open(levels), vec![0; levels]].concat());
    assert_eq!(outcome(deep, &closed), ("elements".into(), levels as u64));
    let few = Limits { elements_max: 10, ..Limits::default() };
    assert_eq!(outcome(few, &closed), ("limit.elements".into(), 5 + 3 + 9));
    let names = Limits { names_max: 1, ..Limits::default() };
    let two = stream(7, &[3, 1, b'a', 5, 1, b'b']);
    assert_eq!(outcome(names, &two).0, "limit.names");
    let attributes = Limits { attributes_max: 1, ..Limits::default() };
    let two = stream(14, &[6, 1, b'a', 2, 0, 1, b'b', 0, 0, 1, b'c', 0]);
    assert_eq!(outcome(attributes, &two), ("limit.attributes".into(), 10));
    let value = Limits { attribute_value_bytes_max: 2, ..Limits::default() };
    let long = stream(13, &[6, 1, b'a', 1, 0, 1, b'b', 8, b'1', b'2', b'3', b'4']);
    assert_eq!(outcome(value, &long), ("limit.attribute_value_bytes".into(), 6));
}

/// Fails when a stream is believed that says how long it is, or pays for more than it shows.
#[test]
fn lengths_that_lie_are_refused_where_they_lie() {
    let good: [u8; 3] = [5, 1, b'a'];
    assert_eq!(outcome(Limits::default(), &stream(4, &good)), ("elements".into(), 1));
    assert_eq!(outcome(Limits::default(), &stream(3, &good)), ("wire.length".into(), 2));
    assert_eq!(outcome(Limits::default(), &stream(5, &good)), ("wire.length".into(), 5));
    let huge = stream(u32::MAX, &good);
    assert_eq!(outcome(Limits::default(), &huge), ("limit.message_bytes".into(), 0));
    let small = Limits { message_bytes_max: 100, ..Limits::default() };
    assert_eq!(outcome(small.clone(), &stream(101, &good)), ("limit.message_bytes".into(), 0));
    assert_eq!(outcome(small, &[&[1][..], &[0; 200]].concat()), ("limit.message_bytes".into(), 0));
    // A short stream that stands for a long text: a name of 4 KB, a thousand times.
    let name = vec![b'n'; 4096];
    let items = [&[3][..], &number(4096), &name, &vec![0x0D; 1000], &[0]].concat();
    let len = 4098 + 1000 * 4099 + 4099;
    assert_eq!(outcome(Limits::default(), &stream(len, &items)), ("elements".into(), 1001));
    let many = [&items[..items.len() - 1], &vec![0x0D; 5000], &[0]].concat();
    assert_eq!(outcome(Limits::default(), &stream(len, &many)).0, "wire.length");
}

/// Fails when a number can be written in more ways than one, or an item reaches past the end.
#[test]
fn numbers_and_ends_are_checked() {
    let all = |bytes: &[u8]| outcome(Limits::default(), bytes);
    assert_eq!(all(&[1, 0x84, 0, 5, 1, b'a']), ("wire.number".into(), 1));
    assert_eq!(all(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]), ("wire.number".into(), 1));
    assert_eq!(all(&[1, 0xFF]), ("wire.end".into(), 2));
    assert_eq!(all(&[1]), ("wire.end".into(), 1));
    assert_eq!(all(&[1, 4, 5, 9, b'a']), ("wire.end".into(), 5));
    assert_eq!(all(&[1, 4, 5, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, b'a']), ("wire.end".into(), 9));
    assert_eq!(all(&[1, 4]), ("wire.length".into(), 2));
    assert_eq!(all(&[1, 4, 13, 1, b'a']), ("wire.name".into(), 2), "name 1, and none is known");
    assert_eq!(all(&[1, 0]), ("xml.end".into(), 2));
}

/// Fails when items can stand where they make no text, or text that is cut in two otherwise.
#[test]
fn items_that_cannot_be_there_are_refused() {
    let all = |len: u32, items: &[u8]| outcome(Limits::default(), &stream(len, items)).0;
    assert_eq!(all(9, &[0]), "wire.item", "an end of nothing");
    assert_eq!(all(9, &[3, 1, b'a', 1, 0]), "wire.item", "an empty text");
    assert_eq!(all(9, &[3, 1, b'a', 9, b']', 10, b']', 0]), "wire.item", "two runs");
    assert_eq!(all(8, &[3, 1, b'a', 8, b'<']), "wire.item", "markup in character data");
    assert_eq!(all(8, &[3, 1, b'a', 8, b'&']), "wire.item", "a reference in character data");
    assert_eq!(all(10, &[3, 1, b'a', 24, b']', b']', b'>']), "xml.text.cdata_end");
    assert_eq!(all(10, &[3, 1, b'a', 26, b'<', b'b', b'>', 0]), "wire.item", "a tag in raw text");
    assert_eq!(all(7, &[3, 1, b'a', 34, b'<', b'/', b'a', b'>']), "xml.end", "an end in raw text");
    assert_eq!(all(11, &[3, 1, b'a', 34, b'<', b'/', b'a', b'>', 0]), "xml.end");
    assert_eq!(all(5, &[9, b'x', 5, 1, b'a']), "xml.outside", "text before the root element");
    assert_eq!(all(5, &[9, b' ', 5, 1, b'a']), "wire.item", "a prolog that is not raw");
    assert_eq!(all(6, &[18, b' ', b'<', 5, 1, b'a']), "xml.name");
    assert_eq!(all(6, &[0x17, b'<', b'a', 0]), "xml.end", "half a tag");
    assert_eq!(all(10, &[0x37, b'<', b'a', b'>', b'<', b'b', b'>', 0]), "wire.item", "two tags");
    assert_eq!(all(3, &[0x1F, b'a', b'/', b'>']), "wire.item", "a tag without its beginning");
    assert_eq!(all(9, &[6, 1, b'a', 0]), "wire.item", "attributes, and none");
    assert_eq!(all(12, &[6, 1, b'a', 1, 0, 1, b'x', 6, b'1', b'"', b'2']), "wire.item", "a quote");
    assert_eq!(all(12, &[6, 5, b'a', b' ', b'b', b'=', b'1', 1, 0, 1, b'x', 0]), "wire.length");
    assert_eq!(all(9, &[5, 6, b'a', b' ', b'b', b'=', b'1', b'"']), "xml.name");
    assert_eq!(all(4, &[5, 1, 0xFF]), "encoding.invalid");
    assert_eq!(all(4, &[5, 1, 1]), "xml.character");
    assert_eq!(all(8, &[5, 1, b'a', 5, 1, b'b']), "xml.outside", "two roots");
    assert_eq!(all(5, &[5, 1, b'a', 10, b'x']), "xml.outside", "text after the root element");
}

/// Fails when a dictionary is believed: a name of it is checked as any other.
#[test]
fn a_dictionary_that_lies_is_found_out() {
    let encode = |items: &[u8], len: u32| [&[2][..], &VERSION, &number(len), items].concat();
    let all = |items: &[u8], len: u32| outcome(Limits::default(), &encode(items, len));
    assert_eq!(all(&[13], 4), ("elements".into(), 1), "<a/>");
    assert_eq!(all(&[37], 10), ("xml.name".into(), 10), "<no name/>");
    let unknown = [&[2][..], &[7; 8], &[4, 13]].concat();
    assert_eq!(outcome(Limits::default(), &unknown), ("wire.dictionary".into(), 1));
    assert_eq!(outcome(Limits::default(), &unknown[..5]), ("wire.end".into(), 5));
    // The reader's names are others than the writer's: another message, or none, but never a fault.
    let theirs = Dictionary::new(VERSION, ["b", "a", "x"].map(str::to_owned).to_vec());
    let mut written = Vec::new();
    let text = b"<a x=\"1\"><b>t</b><b>u</b></a>";
    assert!(Encoder::default().encode(text, Some(&theirs), &mut written));
    assert_eq!(outcome(Limits::default(), &written).0, "wire.length");
    Both::new(Limits::default()).check_stream(&written);
}

/// Fails when a dictionary cannot come and go while messages are read.
#[test]
fn dictionaries_come_and_go() {
    let known = Arc::new(Dictionaries::default());
    let mut door = Door::new(Limits::default());
    door.take_streams(Some(Arc::clone(&known)));
    let names = || Dictionary::new([3; 8], vec!["order".into()]);
    let mut stream = Vec::new();
    let text = b"<order><order/><order/><order/></order>";
    assert!(Encoder::default().encode(text, Some(&names()), &mut stream));
    assert!(door.parse(&stream, None).is_err());
    known.add(names());
    assert_eq!(door.parse(&stream, None).expect("known now").original, text);
    known.remove([3; 8]);
    assert_eq!(door.parse(&stream, None).unwrap_err().code.as_str(), "wire.dictionary");
    door.take_streams(None);
    assert_eq!(door.parse(&stream, None).unwrap_err().code.as_str(), "xml.character");
}
