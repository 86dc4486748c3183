//! What is written, letter by letter.

use crate::infoset::namespaces;
use crate::round_trips::{Way, door};
use pathcast_core::xml::serializer::write_node;
use pathcast_core::xml::tree::NodeRef;

fn written(message: &str, way: Way, node: NodeRef, outer: &[(&str, &str)]) -> String {
    let mut door = door(way);
    let parsed = door.parse(message.as_bytes(), None).expect(message);
    let mut out = Vec::new();
    write_node(&mut out, parsed.message, parsed.names, node, &namespaces(outer));
    String::from_utf8(out).expect("UTF-8")
}

/// Fails when more is declared than the new place lacks, or less; or when something else of the
/// element is not as the sender wrote it.
#[test]
fn only_what_the_new_place_lacks_is_declared() {
    let message = "<a xmlns='u' xmlns:p='v' xmlns:xml='http://www.w3.org/XML/1998/namespace'>\
        <b xmlns:q='w'  x = '&#65;' ><![CDATA[c]]></b ><p:c xmlns=''/></a>";
    let inside = "  x = '&#65;' ><![CDATA[c]]></b >";
    let cases = [
        (&[][..], 1, format!("<b xmlns=\"u\" xmlns:p=\"v\" xmlns:q='w'{inside}")),
        (&[("", "u"), ("p", "v")], 1, format!("<b xmlns:q='w'{inside}")),
        (&[("", "u"), ("p", "w"), ("r", "v")], 1, format!("<b xmlns:p=\"v\" xmlns:q='w'{inside}")),
        (&[("q", "w"), ("", "x")], 1, format!("<b xmlns=\"u\" xmlns:p=\"v\" xmlns:q='w'{inside}")),
        (&[], 2, "<p:c xmlns:p=\"v\" xmlns=''/>".to_owned()),
        (&[("", "u"), ("p", "v")], 2, "<p:c xmlns=''/>".to_owned()),
    ];
    for (outer, element, expected) in cases {
        let found = written(message, Way::Spans, NodeRef::Element(element), outer);
        assert_eq!(found, expected, "{outer:?}");
    }
    let expected = "<b xmlns=\"u\" xmlns:p=\"v\" xmlns:q=\"w\" x=\"A\">c</b>";
    assert_eq!(written(message, Way::Full, NodeRef::Element(1), &[]), expected);
    let expected = "<b xmlns:q=\"w\" x=\"A\">c</b>";
    let outer = [("", "u"), ("p", "v")];
    assert_eq!(written(message, Way::Full, NodeRef::Element(1), &outer), expected);
    let whole = "<a xmlns=\"u\" xmlns:p=\"v\"><b xmlns:q=\"w\" x=\"A\">c</b><p:c xmlns=\"\"/></a>";
    assert_eq!(written(message, Way::Full, NodeRef::Document, &[]), whole);
}

/// Fails when an element with a prefix does not inherit the default namespace around it, at any
/// depth, or an element without a namespace does.
#[test]
fn the_default_namespace_is_inherited_by_elements_with_a_prefix() {
    let inside = "<q/><p:r  xmlns = '' a=''><q/></p:r><s xmlns='w'><p:t xmlns=\"\"/></s>\
        <p:u><q><q/></q></p:u>";
    let message = format!("<x xmlns:p='v'><p:a>{inside}</p:a></x>");
    let anew_inside = "<q xmlns=\"\"/><p:r xmlns=\"\" a=\"\"><q/></p:r>\
        <s xmlns=\"w\"><p:t xmlns=\"\"/></s><p:u><q xmlns=\"\"><q/></q></p:u>";
    let raw_inside = "<q xmlns=\"\"/><p:r  xmlns = '' a=''><q/></p:r>\
        <s xmlns='w'><p:t xmlns=\"\"/></s><p:u><q xmlns=\"\"><q/></q></p:u>";
    let outer = [("", "u"), ("p", "v")];
    for (way, inside) in [(Way::Spans, raw_inside), (Way::Full, anew_inside)] {
        let found = written(&message, way, NodeRef::Element(1), &outer);
        assert_eq!(found, format!("<p:a>{inside}</p:a>"), "{way:?}");
    }
    let raw = written(&message, Way::Spans, NodeRef::Element(1), &[("p", "v")]);
    assert_eq!(raw, format!("<p:a>{inside}</p:a>"), "nothing around to inherit");
}

/// Fails when an element without a namespace falls into the default namespace around it.
#[test]
fn the_default_namespace_is_undeclared() {
    for way in [Way::Spans, Way::Full] {
        for (message, expected) in [
            ("<a/>", "<a xmlns=\"\"/>"),
            ("<a xmlns:p=\"v\"/>", "<a xmlns=\"\" xmlns:p=\"v\"/>"),
            ("<a xmlns=\"\"/>", "<a xmlns=\"\"/>"),
            ("<a xmlns=\"u\"/>", "<a xmlns=\"u\"/>"),
        ] {
            let found = written(message, way, NodeRef::Element(0), &[("", "outer")]);
            let declarations = |text: &str| {
                let mut words: Vec<_> = text.split([' ', '/']).map(str::to_owned).collect();
                words.sort();
                words
            };
            assert_eq!(declarations(&found), declarations(expected), "{way:?}");
        }
        assert_eq!(written("<a><b/></a>", way, NodeRef::Element(1), &[("p", "u")]), "<b/>");
    }
}

/// Fails when a result that is no element could be taken for one, or loses characters.
#[test]
fn what_is_no_element_is_text() {
    let message = "<!--1--><a x='&lt;b/>&#10;'>&lt;b/>&amp;&#13;<!--2--><?t  c?></a><?u?>";
    let document = "<!--1--><a x='&lt;b/>&#10;'>&lt;b/>&amp;&#13;<!--2--><?t  c?></a><?u?>";
    for way in [Way::SpansAndFull, Way::Full] {
        let found = |node| written(message, way, node, &[]);
        assert_eq!(found(NodeRef::Attribute(0)), "&lt;b/&gt;\n");
        assert_eq!(found(NodeRef::Text(0)), "&lt;b/&gt;&amp;&#13;");
        assert_eq!(found(NodeRef::Comment(1)), "<!--2-->");
        assert_eq!(found(NodeRef::Instruction(2)), "<?t c?>");
        assert_eq!(found(NodeRef::Instruction(3)), "<?u?>");
        let xml = "http://www.w3.org/XML/1998/namespace";
        assert_eq!(found(NodeRef::Namespace(0, None)), xml);
    }
    assert_eq!(written(message, Way::Spans, NodeRef::Document, &[]), document);
}
