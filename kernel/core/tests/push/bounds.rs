//! Messages without end: memory stays flat, and what cannot be held is refused and says so.

use crate::Ignore;
use pathcast_core::xml::parser::push::{Bounds, Handler, PushParser, Text};
use pathcast_core::xml::parser::{Code, Limits, Refusal};

const MIB: usize = 1 << 20;

/// Megabytes that the flat streams take: `PATHCAST_STREAM_MB`, for long runs.
fn megabytes() -> usize {
    std::env::var("PATHCAST_STREAM_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

/// Feeds a beginning, then the piece that `piece` makes of each number, for so many megabytes, then an
/// end; gives the most that was held.
fn stream(
    limits: Limits,
    (begin, end): (&str, &str),
    mut piece: impl FnMut(usize, &mut String),
    handler: &mut impl Handler,
) -> Result<usize, Refusal> {
    let mut parser = PushParser::new(limits, Bounds::default());
    parser.feed(begin.as_bytes(), handler)?;
    let (mut block, mut number, mut most) = (String::new(), 0, 0);
    while parser.bytes() < (megabytes() * MIB) as u64 {
        block.clear();
        while block.len() < 48 << 10 {
            piece(number, &mut block);
            number += 1;
        }
        parser.feed(block.as_bytes(), handler)?;
        most = most.max(parser.held_bytes());
    }
    parser.feed(end.as_bytes(), handler)?;
    parser.finish(handler)?;
    Ok(most)
}

#[derive(Default)]
struct Counted {
    texts: u64,
    parts: u64,
    longest: usize,
}

impl Handler for Counted {
    fn text(&mut self, text: &Text<'_>) {
        self.texts += text.value.len() as u64;
        self.parts += 1;
        self.longest = self.longest.max(text.source.len());
    }
}

/// Fails when something of each record is kept.
#[test]
fn records_leave_nothing_behind() {
    let record = |number: usize, out: &mut String| {
        let id = number % 1000;
        out.push_str(&format!(
            "<r:rec xmlns:r='urn:r' id='{number}' r:k{id}='&lt;'>t{number}</r:rec>\r\n"
        ));
    };
    let most = stream(Limits::default(), ("<all>", "</all>"), record, &mut Ignore).expect("flat");
    assert!(most < 2 * MIB, "{most}");
}

/// Fails when namespaces, prefixes or contexts that nobody uses any more are kept.
#[test]
fn ever_new_namespaces_leave_nothing_behind() {
    let record = |number: usize, out: &mut String| {
        out.push_str(&format!("<r xmlns:p{number}='urn:{number}' xmlns='urn:d'><c/></r>"));
    };
    let most = stream(Limits::default(), ("<all>", "</all>"), record, &mut Ignore).expect("flat");
    assert!(most < 8 * MIB, "{most}");
}

/// Fails when a text or CDATA section has to be held, or comes out short.
#[test]
fn text_without_end_is_handed_on_in_parts() {
    let word = |_: usize, out: &mut String| out.push_str("0123456789]]\r\n&amp;");
    let mut counted = Counted::default();
    let most = stream(Limits::default(), ("<a>", "</a>"), word, &mut counted).expect("flat");
    assert!(most < 2 * MIB && counted.longest < MIB, "{most}");
    assert!(counted.texts >= (megabytes() * MIB / 19 * 14) as u64 - 100);
    let word = |_: usize, out: &mut String| out.push_str("0123456789]]\r\n&amp;");
    let mut counted = Counted::default();
    let section = ("<a><![CDATA[", "]]></a>");
    let most = stream(Limits::default(), section, word, &mut counted).expect("flat");
    assert!(most < 2 * MIB && counted.parts > 100, "{most}");
    let spaces = |_: usize, out: &mut String| out.push_str("     \r\n");
    let most = stream(Limits::default(), ("<a/>", ""), spaces, &mut Ignore).expect("flat");
    assert!(most < 2 * MIB, "{most}");
}

/// Fails when what has to be held is held without bound, or refused at another place than where it begins.
#[test]
fn what_cannot_be_held_is_refused() {
    let fill = |piece: &'static str| move |_: usize, out: &mut String| out.push_str(piece);
    let refused = |ends: (&str, &str), piece: &'static str| {
        let refusal =
            stream(Limits::default(), ends, fill(piece), &mut Ignore).expect_err("refused");
        (refusal.code, refusal.line, refusal.column, refusal.offset)
    };
    assert_eq!(refused(("<a>\n<b x='", "'/></a>"), "x"), (Code::LimitHeldBytes, 2, 1, 4));
    assert_eq!(refused(("<a>\n<b", "/></a>"), "x"), (Code::LimitHeldBytes, 2, 1, 4));
    assert_eq!(refused(("<a>\n<b ", "/></a>"), " \n "), (Code::LimitHeldBytes, 2, 1, 4));
    assert_eq!(refused(("<a><!--", "--></a>"), "- >"), (Code::LimitHeldBytes, 1, 4, 3));
    assert_eq!(refused(("<?p ", "?><a/>"), "<a>"), (Code::LimitHeldBytes, 1, 1, 0));
    assert_eq!(refused(("<?xml ", "?><a/>"), "   "), (Code::LimitHeldBytes, 1, 1, 0));
    assert_eq!(refused(("<!DOCTYPE a [", "]><a/>"), "<!-- -->"), (Code::LimitHeldBytes, 1, 1, 0));
    assert_eq!(refused(("<a>&#", "65;</a>"), "0000"), (Code::LimitHeldBytes, 1, 4, 3));
    assert_eq!(refused(("", ""), "<a>"), (Code::LimitDepth, 1, 769, 768));
    let mut number = 0;
    let names = |_: usize, out: &mut String| {
        number += 1;
        out.push_str(&format!("<n{number}/>"));
    };
    let refusal =
        stream(Limits::default(), ("<a>", "</a>"), names, &mut Ignore).expect_err("refused");
    assert_eq!(refusal.code, Code::LimitNames);
}

/// Fails when raised limits let names or namespaces fill the memory.
#[test]
fn names_and_namespaces_are_bounded_in_bytes() {
    let limits = Limits { depth_max: u32::MAX, names_max: u32::MAX, ..Limits::default() };
    let long = "n".repeat(60_000);
    let deep = |_: usize, out: &mut String| out.push_str(&format!("<{long}>"));
    let refusal = stream(limits.clone(), ("", ""), deep, &mut Ignore).expect_err("refused");
    assert_eq!(refusal.code, Code::LimitHeldBytes);
    let scopes = |_: usize, out: &mut String| out.push_str(&format!("<a xmlns:p='{long}'>"));
    let refusal = stream(limits.clone(), ("", ""), scopes, &mut Ignore).expect_err("refused");
    assert_eq!(refusal.code, Code::LimitHeldBytes);
    let begin = format!("<a xmlns='{long}'>");
    let names = |number: usize, out: &mut String| out.push_str(&format!("<n{number}/>"));
    let refusal = stream(limits, (&begin, ""), names, &mut Ignore).expect_err("refused");
    assert_eq!(refusal.code, Code::LimitHeldBytes);
}

/// Fails when messages that need more and more room make a parser slow: one block after another, each a
/// little longer than nothing.
#[test]
fn a_long_construct_byte_by_byte_takes_linear_time() {
    let mut parser = PushParser::new(
        Limits { attribute_value_bytes_max: 1 << 30, ..Limits::default() },
        Bounds::default(),
    );
    let value = ">;".repeat(MIB);
    let start = std::time::Instant::now();
    for message in
        [format!("<a b='{value}'/>"), format!("<!--{value}--><a/>"), format!("<a>{value}</a>")]
    {
        parser.begin(None);
        for byte in message.as_bytes().chunks(1) {
            parser.feed(byte, &mut Ignore).expect("a good message");
        }
        parser.finish(&mut Ignore).expect("a good message");
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

/// Fails when the bounds of a whole message are not kept.
#[test]
fn bytes_and_elements_can_be_bounded() {
    let bounds = Bounds { message_bytes_max: 10, elements_max: 2, ..Bounds::default() };
    let mut parser = PushParser::new(Limits::default(), bounds);
    let mut told = |message: &str, encoding: Option<&str>| {
        parser.begin(encoding);
        let outcome = parser.feed(message.as_bytes(), &mut Ignore);
        let refusal = outcome.and_then(|()| parser.finish(&mut Ignore)).err()?;
        assert_eq!(parser.feed(b"<a/>", &mut Ignore), Err(refusal.clone()), "it stays refused");
        Some(refusal.to_string())
    };
    assert_eq!(
        told("<a><b/>", None).as_deref(),
        Some("line 1, column 8: xml.end, construct \"the root element\"")
    );
    let elements = "line 1, column 5: limit.elements, limit \"elements_max\", given 3, maximum 2";
    assert_eq!(told("<a/><b/><c", None).as_deref(), Some("line 1, column 5: xml.outside"));
    assert_eq!(told("<a><b/><c/", None).as_deref().map(|it| &it[18..32]), Some(&elements[18..32]));
    let bytes =
        "line 1, column 1: limit.message_bytes, limit \"message_bytes_max\", given 11, maximum 10";
    assert_eq!(told("<a>12345</a>", None).as_deref(), Some(bytes));
    assert_eq!(told("<a></a>   ", None), None);
}
