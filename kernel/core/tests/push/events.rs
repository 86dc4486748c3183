//! What a handler is told: offsets, sources, entities.

use crate::Ignore;
use crate::oracle::Shown;
use pathcast_core::xml::parser::Limits;
use pathcast_core::xml::parser::push::{
    Bounds, EndTag, Handler, Markup, PushParser, StartTag, Text,
};

/// One line an event.
#[derive(Default)]
struct Log(Vec<String>);

impl Handler for Log {
    fn start(&mut self, tag: &StartTag<'_>) {
        let name = tag.names().local(tag.name);
        let kind = if tag.is_in_entity { "entity " } else { "" };
        self.0.push(format!("{kind}start {name} {}..{} {}", tag.start, tag.end, tag.is_verbatim));
    }

    fn end(&mut self, tag: &EndTag<'_>) {
        self.0.push(format!("end {}..{} {:?}", tag.start, tag.end, tag.source));
    }

    fn text(&mut self, text: &Text<'_>) {
        self.0
            .push(format!("text {}..{} {:?} {:?}", text.start, text.end, text.value, text.source));
    }

    fn markup(&mut self, markup: &Markup<'_>) {
        self.0.push(format!("{:?} {}..{}", markup.kind, markup.start, markup.end));
    }
}

fn log(message: &[u8]) -> Vec<String> {
    let mut parser = PushParser::new(Limits::default(), Bounds::default());
    let mut log = Log::default();
    parser.feed(message, &mut log).expect("a good message");
    parser.finish(&mut log).expect("a good message");
    log.0
}

/// Fails when an event lies elsewhere than its bytes.
#[test]
fn events_say_where_they_lie() {
    let message =
        b"\xef\xbb\xbf<?xml version='1.0'?>\n<a x='1'>t&lt;<!--c--><b/><![CDATA[<]]></a>\n<?p?>";
    let expected = [
        "Declaration 3..24",
        "start a 25..34 true",
        "text 34..39 \"t<\" \"t&lt;\"",
        "Comment 39..47",
        "start b 47..51 true",
        "end 51..51 \"\"",
        "text 51..64 \"<\" \"<![CDATA[<]]>\"",
        "end 64..68 \"</a>\"",
        "Instruction 69..74",
    ];
    assert_eq!(log(message), expected);
    let text = std::str::from_utf8(&message[3..]).expect("UTF-8");
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = log(&wide);
    assert_eq!(found[1], "start a 22..31 true", "offsets in UTF-8 where the message is not");
}

/// Fails when what an entity holds is taken for bytes of the message.
#[test]
fn what_an_entity_holds_is_at_the_reference() {
    let message = b"<!DOCTYPE a [<!ENTITY e 'x<b/>y'>]><a>1&e;2</a>";
    let expected = [
        "DocumentType 0..35",
        "start a 35..38 true",
        "text 38..39 \"1x\" \"1\"",
        "entity start b 39..39 false",
        "end 39..39 \"\"",
        "text 39..43 \"y2\" \"&e;2\"",
        "end 43..47 \"</a>\"",
    ];
    assert_eq!(log(message), expected);
}

/// Fails when text is kept back although it is certain.
#[test]
fn what_has_arrived_is_handed_on_at_once() {
    let mut parser = PushParser::new(Limits::default(), Bounds::default());
    let mut shown = Shown::default();
    for (block, elements) in
        [("<root>", 1), ("<a", 1), (">", 2), ("text</a><b/", 2), ("><c x='1'>", 4)]
    {
        parser.feed(block.as_bytes(), &mut shown).expect("a beginning");
        assert_eq!(shown.elements, elements, "{block}");
    }
}

/// Fails when a message is fed after its end.
#[test]
#[should_panic(expected = "begin comes first")]
fn a_finished_message_takes_no_more() {
    let mut parser = PushParser::new(Limits::default(), Bounds::default());
    parser.feed(b"<a/>", &mut Ignore).expect("good");
    parser.finish(&mut Ignore).expect("good");
    let _ = parser.feed(b" ", &mut Ignore);
}
