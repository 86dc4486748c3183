//! What writing may cost.

use crate::infoset::namespaces;
use crate::round_trips::{Way, door};
use pathcast_core::xml::parser::{Door, Limits};
use pathcast_core::xml::serializer::{Limit, Scratch, TooLong, Writer};
use pathcast_core::xml::tree::NodeRef;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Far above what linear work takes, far below what quadratic work would.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fails when a result can be longer than its limit, or is refused within it.
#[test]
fn a_node_is_written_up_to_its_limit_and_no_further() {
    let message = "<!--before--><a xmlns='u' b='1&gt;'>t&amp;x<c><!--in--></c><?t in?></a>";
    for way in [Way::Spans, Way::SpansAndFull, Way::Full] {
        let mut door = door(way);
        let parsed = door.parse(message.as_bytes(), None).expect("a message");
        let mut scratch = Scratch::default();
        let mut writer = Writer::new(parsed.message, parsed.names, &mut scratch);
        let mut nodes = vec![
            NodeRef::Document,
            NodeRef::Element(0),
            NodeRef::Element(1),
            NodeRef::Text(0),
            NodeRef::Attribute(0),
            NodeRef::Namespace(0, Some(0)),
            NodeRef::Namespace(0, None),
        ];
        if parsed.message.tree.is_full {
            nodes.extend([NodeRef::Comment(0), NodeRef::Comment(1), NodeRef::Instruction(2)]);
        }
        for node in nodes {
            let outer = namespaces(&[("", "v")]);
            let mut whole = Vec::new();
            writer.node(&mut whole, node, &outer, Limit::NONE).expect("no limit");
            for bytes_max in 0..whole.len() + 2 {
                let mut out = b"before".to_vec();
                let limit = Limit::after(&out, bytes_max);
                let written = writer.node(&mut out, node, &outer, limit);
                let expected = if bytes_max < whole.len() { Err(TooLong) } else { Ok(()) };
                assert_eq!(written, expected, "{way:?} {node:?} {bytes_max}");
                assert!(written.is_err() || out[6..] == whole);
                // What comes before the check is a piece at most.
                assert!(out.len() <= 6 + whole.len());
            }
        }
    }
}

fn open_door(way: Way) -> Door {
    let mut door = Door::new(Limits {
        message_bytes_max: i32::MAX as u32,
        depth_max: u32::MAX,
        elements_max: u32::MAX,
        attributes_max: u32::MAX,
        names_max: u32::MAX,
        ..Limits::default()
    });
    door.keep_source_spans(!matches!(way, Way::Full));
    door.keep_full_tree(!matches!(way, Way::Spans));
    door
}

/// Writes nodes of a message within one limit, as the results of a subscription; gives how many.
fn write_all(way: Way, message: &str, bytes_max: usize, nodes: impl Fn(u32) -> Range<u32>) -> u32 {
    let mut door = open_door(way);
    let parsed = door.parse(message.as_bytes(), None).expect("a message");
    let mut scratch = Scratch::default();
    let mut writer = Writer::new(parsed.message, parsed.names, &mut scratch);
    let outer = namespaces(&[("", "outer")]);
    let start = Instant::now();
    let mut out = Vec::new();
    let limit = Limit::after(&out, bytes_max);
    let mut written = 0;
    for element in nodes(parsed.message.tree.len() as u32) {
        if writer.node(&mut out, NodeRef::Element(element), &outer, limit).is_err() {
            break;
        }
        written += 1;
    }
    assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
    written
}

/// Fails when elements are closed on the call stack, or copied out of each other.
#[test]
fn nesting_is_bounded_by_memory_alone() {
    let deep = "<a>".repeat(300_000) + &"</a>".repeat(300_000);
    for way in [Way::Spans, Way::Full] {
        assert_eq!(write_all(way, &deep, 1 << 20, |_| 0..1), 0, "longer than the limit");
        assert_eq!(write_all(way, &deep, 1 << 22, |_| 0..1), 1);
        assert_eq!(write_all(way, &deep, 1 << 22, |len| len - 1000..len), 1000);
    }
}

/// Fails when what is in scope is found anew for every element: by walking up to the root, or
/// through all declarations around it.
#[test]
fn many_declarations_around_many_elements() {
    let declared: String = (0..200_000).map(|at| format!(" xmlns:p{at}='u'")).collect();
    let wide = format!("<a{declared}>{}</a>", "<b/>".repeat(200_000));
    for way in [Way::Spans, Way::Full] {
        // 200 000 declarations in front of each of them.
        assert_eq!(write_all(way, &wide, 1 << 20, |len| 1..len), 0);
        assert_eq!(write_all(way, &wide, 1 << 26, |len| 1..len), 19);
    }
    // The same prefix again and again, all in each other.
    let mut nested = String::new();
    for level in 0..100_000 {
        nested.push_str(&format!("<a xmlns:p='u{level}' xmlns='v'>"));
    }
    nested.push_str(&"<b/>".repeat(100_000));
    nested.push_str(&"</a>".repeat(100_000));
    // Siblings that declare something below a root that declares much.
    let siblings = "<b xmlns='x' xmlns:p='y'><c/></b>".repeat(50_000);
    let declared: String = (0..20).map(|at| format!(" xmlns:p{at}='u'")).collect();
    let message = format!("<a{declared}>{siblings}</a>");
    for way in [Way::Spans, Way::Full] {
        let written = write_all(way, &nested, usize::MAX, |len| len - 100_000..len);
        assert_eq!(written, 100_000);
        assert_eq!(write_all(way, &message, usize::MAX, |len| 1..len), 100_000);
    }
}
