//! Where elements lie, and when their bytes mean the same elsewhere.

use crate::round_trips::{Way, door};
use pathcast_core::xml::parser::{Door, Limits};

/// Fails when a span is off by a byte, or an element of an entity has one.
#[test]
fn spans_go_from_the_first_byte_to_the_last() {
    let message = "\u{feff}<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e '<f/>'>]>\
        <a ><b x='>'/><c\n>&e;t</c\r\n></a>";
    let mut door = door(Way::Spans);
    let parsed = door.parse(message.as_bytes(), None).expect("a message");
    let tree = parsed.message.tree;
    let found: Vec<&str> = (0..tree.len())
        .map(|element| {
            let (start, end) = (tree.source_start[element], tree.source_end[element]);
            std::str::from_utf8(&parsed.message.source[start as usize..end as usize]).expect("text")
        })
        .collect();
    let root = "<a ><b x='>'/><c\n>&e;t</c\r\n></a>";
    assert_eq!(found, [root, "<b x='>'/>", "<c\n>&e;t</c\r\n>", ""]);
    assert!(!tree.is_verbatim && tree.is_full, "an entity was referred to");
}

/// Fails when elements are copied raw that say something else without the document type
/// declaration, or written anew though they need not be.
#[test]
fn bytes_are_copied_unless_a_declaration_counts() {
    let verbatim = [
        "<a>&lt;&#13;<![CDATA[<]]>\r\n</a>",
        "<a x='&amp;\r\n'/>",
        "<!DOCTYPE a SYSTEM 'x'><a/>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a/>",
        "<!DOCTYPE a [<!ENTITY lt '&#38;#60;'>]><a>&lt;</a>",
        "<!DOCTYPE a [<!ATTLIST b d CDATA 'x'>]><a/>",
        "<!DOCTYPE a [<!ATTLIST a d CDATA 'x'>]><a d='y'/>",
        "<!DOCTYPE a [<!ATTLIST a d NMTOKENS #IMPLIED>]><a d='y z'/>",
        "<!DOCTYPE a [<!ATTLIST a d ID #IMPLIED>]><a d='y'/>",
    ];
    let otherwise = [
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        "<!DOCTYPE a [<!ENTITY e ''>]><a b='&e;'/>",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'x'>]><a>&e;</a>",
        "<!DOCTYPE a SYSTEM 'x'><a>&e;</a>",
        "<!DOCTYPE a SYSTEM 'x'><a b='&e;'/>",
        "<!DOCTYPE a [<!ATTLIST a d CDATA 'x'>]><a/>",
        "<!DOCTYPE a [<!ATTLIST b xmlns CDATA 'x'>]><a><b/></a>",
        "<!DOCTYPE a [<!ATTLIST a d NMTOKENS #IMPLIED>]><a d=' y'/>",
    ];
    let mut door = door(Way::Spans);
    for (message, expected) in
        verbatim.map(|it| (it, true)).into_iter().chain(otherwise.map(|it| (it, false)))
    {
        let parsed = door.parse(message.as_bytes(), None).expect(message);
        assert_eq!(parsed.message.tree.is_verbatim, expected, "{message}");
        let has_doctype = message.contains("<!DOCTYPE");
        assert_eq!(parsed.message.tree.is_full, has_doctype, "{message}");
    }
}

/// Fails when one message leaves something of its tree to the next.
#[test]
fn a_door_keeps_what_it_is_asked_for_from_message_to_message() {
    let mut door = Door::new(Limits::default());
    let messages = [
        "<!DOCTYPE a><!--c--><a xmlns='u'><b/></a>",
        "<a xmlns='v'/>",
        "<!DOCTYPE a [<!ENTITY e ''>]><a><b/>&e;</a>",
        "<a><b/><!--c--></a>",
    ];
    for (round, message) in messages.iter().cycle().take(40).enumerate() {
        let (spans, full) = (round / 4 % 2 == 1, round / 8 % 2 == 1);
        door.keep_source_spans(spans);
        door.keep_full_tree(full);
        let broken = &message[..message.len() - 1];
        assert!(door.parse(broken.as_bytes(), None).is_err());
        let parsed = door.parse(message.as_bytes(), None).expect(message);
        let tree = parsed.message.tree;
        let is_full = full || spans && message.contains("<!DOCTYPE");
        assert_eq!((tree.has_source_spans, tree.is_full), (spans, is_full));
        assert_eq!(tree.source_start.len(), if spans { tree.len() } else { 0 });
        assert_eq!(tree.source_end.len(), tree.source_start.len());
        assert_eq!(tree.prefix.len(), if is_full { tree.len() } else { 0 });
        let comments = message.matches("<!--").count();
        assert_eq!(tree.markup_kind.len(), if is_full { comments } else { 0 });
        let declarations = message.matches("xmlns").count();
        let kept = if spans || full { declarations } else { 0 };
        assert_eq!(tree.declaration_element.len(), kept);
        assert_eq!(tree.declaration_uri.len(), kept);
    }
}
