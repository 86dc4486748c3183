//! Line, column and offset of refusals.

use pathcast_core::xml::parser::{Door, Limits};

fn place(message: &[u8], encoding: Option<&str>) -> (String, u64, u64, u64) {
    let mut door = Door::new(Limits::default());
    let refusal = door.parse(message, encoding).expect_err("a refusal");
    (refusal.code.as_str().to_owned(), refusal.line, refusal.column, refusal.offset)
}

fn at(code: &str, line: u64, column: u64, offset: u64) -> (String, u64, u64, u64) {
    (code.to_owned(), line, column, offset)
}

/// Fails when a person is sent to the wrong place of a message.
#[test]
fn places_are_counted_in_lines_characters_and_bytes() {
    assert_eq!(place(b"<a>\n  <b></c>", None), at("xml.tag.mismatch", 2, 6, 9));
    assert_eq!(place("<é>ü&x;</é>".as_bytes(), None), at("xml.entity.undeclared", 1, 5, 6));
    assert_eq!(place(b"<a>\r\n\r\r\n&x;</a>", None), at("xml.entity.undeclared", 4, 1, 8));
    assert_eq!(place(b"<a>", None), at("xml.end", 1, 4, 3));
    assert_eq!(place(b"", None), at("xml.end", 1, 1, 0));
    assert_eq!(place(b"<a>\nx\x01</a>", None), at("xml.character", 2, 2, 5));
    assert_eq!(place(b"<a>\nx\xff</a>", None), at("encoding.invalid", 2, 2, 5));
    assert_eq!(place(b"\xef\xbb\xbf<a>&x;</a>", None), at("xml.entity.undeclared", 1, 4, 6));
    assert_eq!(place(b"\xef\xbb\xbf<a>\xff</a>", None), at("encoding.invalid", 1, 4, 6));
    assert_eq!(place(b"<?xml version='2.0'?><a/>", None), at("xml.declaration", 1, 16, 15));
}

/// Fails when the place of a fault in another encoding is told in bytes of the decoded text.
#[test]
fn offsets_are_those_of_the_message_as_it_arrived() {
    let text = "<é>\nü&x;</é>";
    let place_in = |mark: &[u8], bytes: Vec<u8>| place(&[mark, &bytes].concat(), None);
    let little = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(place_in(b"\xff\xfe", little), at("xml.entity.undeclared", 2, 2, 12));
    let big = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(place_in(b"\xfe\xff", big), at("xml.entity.undeclared", 2, 2, 12));
    let latin = b"<\xe9>\n\xfc&x;</\xe9>";
    assert_eq!(place(latin, Some("ISO-8859-1")), at("xml.entity.undeclared", 2, 2, 5));
    let kana = b"<a>\x93\xfa\x96\x7b&x;</a>";
    assert_eq!(place(kana, Some("Shift_JIS")), at("xml.entity.undeclared", 1, 6, 7));
    let long = ["<a>".as_bytes(), &b"\x93\xfa".repeat(9000), b"&x;</a>"].concat();
    assert_eq!(place(&long, Some("Shift_JIS")), at("xml.entity.undeclared", 1, 9004, 18003));
}

/// Fails when a fault inside an entity is not told at the reference that brought it in.
#[test]
fn a_fault_in_an_entity_is_told_at_its_reference() {
    let message = b"<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '<b></c>'>]>\n<a>\n &e;</a>";
    assert_eq!(place(message, None), at("xml.tag.mismatch", 3, 2, 59));
    let message = b"<!DOCTYPE a [<!ENTITY % p '<!ELEMENT a>'>\n%p;]><a/>";
    assert_eq!(place(message, None), at("xml.dtd", 2, 1, 42));
}

/// Fails when a refusal does not say which limit, how much and how much is allowed.
#[test]
fn a_limit_says_given_and_maximum() {
    let mut door = Door::new(Limits { depth_max: 2, ..Limits::default() });
    let refusal = door.parse(b"<a><b><c/></b></a>", None).expect_err("a refusal");
    let shown = refusal.to_string();
    assert_eq!(shown, "line 1, column 7: limit.depth, limit \"depth_max\", given 3, maximum 2");
}
