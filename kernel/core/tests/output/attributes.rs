//! Attributes put into the start tags of constructed elements.

use crate::infoset::namespaces;
use crate::round_trips::{Way, door};
use pathcast_core::xml::serializer::{Limit, Scratch, TooLong, Writer};

/// The attributes of the root element, written one after the other into `<e ...>`.
fn written(message: &str, way: Way, outer: &[(&str, &str)]) -> String {
    let mut door = door(way);
    let parsed = door.parse(message.as_bytes(), None).expect(message);
    let mut scratch = Scratch::default();
    let mut writer = Writer::new(parsed.message, parsed.names, &mut scratch);
    let mut scope = namespaces(outer);
    let mut out = Vec::new();
    for attribute in 0..parsed.message.tree.attribute_name.len() as u32 {
        writer.attribute(&mut out, attribute, &mut scope, Limit::NONE).expect("no limit");
    }
    String::from_utf8(out).expect("UTF-8")
}

/// Fails when an attribute loses its namespace, or brings a prefix that is another namespace's.
#[test]
fn prefixes_are_declared_where_they_are_not_known() {
    let message =
        "<p:a xmlns:p='u' xmlns:q='v' p:x='1\"' q:x='2' x='3' xml:lang='de' p:y='&#10;'/>";
    for way in [Way::Spans, Way::Full] {
        let rest = " x=\"3\" xml:lang=\"de\"";
        assert_eq!(
            written(message, way, &[]),
            format!(" xmlns:p=\"u\" p:x=\"1&quot;\" xmlns:q=\"v\" q:x=\"2\"{rest} p:y=\"&#10;\"")
        );
        assert_eq!(
            written(message, way, &[("p", "u"), ("", "u"), ("q", "v")]),
            format!(" p:x=\"1&quot;\" q:x=\"2\"{rest} p:y=\"&#10;\"")
        );
        // The prefix is taken: another one of the same namespace, or one made for it.
        assert_eq!(
            written(message, way, &[("p", "other"), ("r", "u"), ("q", "u")]),
            format!(" q:x=\"1&quot;\" xmlns:q_1=\"v\" q_1:x=\"2\"{rest} q:y=\"&#10;\"")
        );
        assert_eq!(
            written(message, way, &[("p", "other"), ("p_1", "one"), ("q", "v")]),
            format!(" xmlns:p_2=\"u\" p_2:x=\"1&quot;\" q:x=\"2\"{rest} p_2:y=\"&#10;\"")
        );
    }
}

#[test]
fn an_attribute_is_written_within_the_limit() {
    let mut door = door(Way::Spans);
    let parsed = door.parse(b"<a x='12345'/>", None).expect("a message");
    let mut scratch = Scratch::default();
    let mut writer = Writer::new(parsed.message, parsed.names, &mut scratch);
    let mut scope = namespaces(&[]);
    for (bytes_max, expected) in [(4, Err(TooLong)), (9, Err(TooLong)), (10, Ok(()))] {
        let mut out = b"<e".to_vec();
        let limit = Limit::after(&out, bytes_max);
        assert_eq!(writer.attribute(&mut out, 0, &mut scope, limit), expected, "{bytes_max}");
    }
}
