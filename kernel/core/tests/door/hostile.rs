//! Messages made to cost more than they are worth: each is refused, or read, in time that grows
//! with its length alone.

use pathcast_core::xml::parser::{Door, Limits};
use std::time::{Duration, Instant};

/// Far above what a linear pass takes, far below what a quadratic one would.
const PATIENCE: Duration = Duration::from_secs(20);

fn open_limits() -> Limits {
    Limits {
        message_bytes_max: i32::MAX as u32,
        depth_max: u32::MAX,
        elements_max: u32::MAX,
        attributes_max: u32::MAX,
        attribute_value_bytes_max: u32::MAX,
        entity_expansion_ratio_max: u32::MAX,
        entity_expansion_bytes_max: 1 << 25,
        names_max: u32::MAX,
        ..Limits::default()
    }
}

fn outcome(limits: Limits, message: &[u8]) -> String {
    let start = Instant::now();
    let mut door = Door::new(limits);
    let found = match door.parse(message, None) {
        Ok(parsed) => format!("{} elements", parsed.message.tree.len()),
        Err(refusal) => refusal.code.as_str().to_owned(),
    };
    assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
    found
}

/// Fails when nesting is kept on the call stack.
#[test]
fn a_million_levels_are_refused_or_read() {
    let message = "<a>".repeat(1_000_000) + &"</a>".repeat(1_000_000);
    assert_eq!(outcome(Limits::default(), message.as_bytes()), "limit.depth");
    assert_eq!(outcome(open_limits(), message.as_bytes()), "1000000 elements");
    assert_eq!(outcome(open_limits(), "<a>".repeat(1_000_000).as_bytes()), "xml.end");
}

/// Fails when a namespace is copied for each name in it, or hashed for each scope that a name has.
#[test]
fn a_long_namespace_is_kept_once_and_costs_once() {
    let uri = "u".repeat(4 << 20);
    let names: String = (0..20_000).map(|n| format!("<a{n}/>")).collect();
    let scopes: String = (0..200_000).map(|n| format!("<b xmlns:p='{n}'/>")).collect();
    let message = format!("<r xmlns='{uri}'>{names}{scopes}</r>");
    assert_eq!(outcome(open_limits(), message.as_bytes()), "220001 elements");
    let mut door = Door::new(open_limits());
    let parsed = door.parse(message.as_bytes(), None).expect("well-formed");
    let (table, tree) = (parsed.names, &parsed.message.tree);
    assert!(table.text_bytes() < 2 * uri.len());
    for node in [0, 1, 20_000, 20_001, 220_000] {
        assert_eq!(table.uri(tree.name[node]), uri);
    }
    assert_eq!(table.local(tree.name[20_000]), "a19999");
    assert_eq!(table.local(tree.name[220_000]), "b");
}

/// Fails when entities are expanded before they are counted, or counted one level only.
#[test]
fn entity_bombs_are_refused() {
    let mut subset = String::from("<!ENTITY e0 'lol'>");
    for level in 1..=60 {
        let inner = format!("&e{};", level - 1).repeat(10);
        subset.push_str(&format!("<!ENTITY e{level} '{inner}'>"));
    }
    let laughs = format!("<!DOCTYPE a [{subset}]><a>&e60;</a>");
    assert_eq!(outcome(Limits::default(), laughs.as_bytes()), "limit.entity_expansion");
    assert_eq!(outcome(open_limits(), laughs.as_bytes()), "limit.entity_expansion");
    let value = format!("<!DOCTYPE a [{subset}]><a b='&e60;'/>");
    assert_eq!(outcome(open_limits(), value.as_bytes()), "limit.entity_expansion");
    let default = format!("<!DOCTYPE a [{subset}<!ATTLIST a b CDATA '&e60;'>]><a/>");
    assert_eq!(outcome(open_limits(), default.as_bytes()), "limit.entity_expansion");
    let quadratic = format!(
        "<!DOCTYPE a [<!ENTITY e '{}'>]><a>{}</a>",
        "x".repeat(100_000),
        "&e;".repeat(100_000)
    );
    assert_eq!(outcome(Limits::default(), quadratic.as_bytes()), "limit.entity_expansion");
    let parameters: String = (0..60)
        .map(|level| match level {
            0 => "<!ENTITY % p0 '<!---->'>".to_owned(),
            _ => format!("<!ENTITY % p{level} '{}'>", format!("&#37;p{};", level - 1).repeat(10)),
        })
        .collect();
    let parameters = format!("<!DOCTYPE a [{parameters}%p59;]><a/>");
    assert_eq!(outcome(open_limits(), parameters.as_bytes()), "limit.entity_expansion");
}

/// Fails when entities that refer to one another are followed on the call stack.
#[test]
fn a_long_chain_of_entities_is_read() {
    let chain: String = (0..200_000).map(|at| format!("<!ENTITY e{at} '&e{};'>", at + 1)).collect();
    let content = format!("<!DOCTYPE a [{chain}<!ENTITY e200000 'x'>]><a>&e0;</a>");
    assert_eq!(outcome(open_limits(), content.as_bytes()), "1 elements");
    let value = format!("<!DOCTYPE a [{chain}<!ENTITY e200000 'x'>]><a b='&e0;'/>");
    assert_eq!(outcome(open_limits(), value.as_bytes()), "1 elements");
    let looped = format!("<!DOCTYPE a [{chain}<!ENTITY e200000 '&e0;'>]><a>&e0;</a>");
    assert_eq!(outcome(open_limits(), looped.as_bytes()), "xml.entity.recursive");
    let parameters: String =
        (0..100_000).map(|at| format!("<!ENTITY % e{at} '&#37;e{};'>", at + 1)).collect();
    let parameters = format!("<!DOCTYPE a [{parameters}<!ENTITY % e100000 ''>%e0;]><a/>");
    assert_eq!(outcome(open_limits(), parameters.as_bytes()), "1 elements");
}

/// Fails when defaults are copied for every element that lacks the attribute.
#[test]
fn default_attributes_do_not_multiply() {
    let list: String = (0..250).map(|at| format!(" a{at} CDATA '{}'", "x".repeat(200))).collect();
    let message = format!("<!DOCTYPE a [<!ATTLIST b{list}>]><a>{}</a>", "<b/>".repeat(200_000));
    assert_eq!(outcome(Limits::default(), message.as_bytes()), "limit.entity_expansion");
}

/// Fails when duplicates among attributes are looked for pair by pair.
#[test]
fn many_attributes_take_linear_time() {
    let many =
        |prefix: &str| -> String { (0..300_000).map(|at| format!(" {prefix}a{at}=''")).collect() };
    let plain = format!("<a{}/>", many(""));
    assert_eq!(outcome(Limits::default(), plain.as_bytes()), "limit.attributes");
    assert_eq!(outcome(open_limits(), plain.as_bytes()), "1 elements");
    let prefixed = format!("<a xmlns:p='u'{}/>", many("p:"));
    assert_eq!(outcome(open_limits(), prefixed.as_bytes()), "1 elements");
    let declarations: String = (0..300_000).map(|at| format!(" xmlns:p{at}='u{at}'")).collect();
    let declared = format!("<a{declarations}/>");
    assert_eq!(outcome(open_limits(), declared.as_bytes()), "1 elements");
    let lists: String = (0..200_000).map(|at| format!(" a{at} CDATA #IMPLIED")).collect();
    let lists = format!("<!DOCTYPE a [<!ATTLIST a{lists}>]><a/>");
    assert_eq!(outcome(open_limits(), lists.as_bytes()), "1 elements");
}

/// Fails when looking up a prefix walks through all declarations around it.
#[test]
fn nested_declarations_take_linear_time() {
    let mut message = String::from("<p:a xmlns:p='u'>");
    for level in 0..200_000 {
        message.push_str(&format!("<p:a xmlns:q{level}='u{level}'>"));
    }
    message.push_str(&"</p:a>".repeat(200_001));
    assert_eq!(outcome(open_limits(), message.as_bytes()), "200001 elements");
    let mut rebound = String::new();
    for level in 0..200_000 {
        rebound.push_str(&format!("<p:a xmlns:p='u{level}'>"));
    }
    rebound.push_str(&"</p:a>".repeat(200_000));
    assert_eq!(outcome(open_limits(), rebound.as_bytes()), "200000 elements");
}

/// Fails when a long run of anything is looked at again and again.
#[test]
fn long_runs_take_linear_time() {
    let long = 4_000_000;
    for (message, expected) in [
        (format!("<{}/>", "n".repeat(long)), "1 elements"),
        (format!("<a {}=''/>", "n".repeat(long)), "1 elements"),
        (format!("<a>{}</a>", "]".repeat(long)), "1 elements"),
        (format!("<a>{}</a>", "&lt;".repeat(long / 4)), "1 elements"),
        (format!("<a>{}</a>", "<!---->".repeat(long / 7)), "1 elements"),
        (format!("<a>{}</a>", "<![CDATA[]]>".repeat(long / 12)), "1 elements"),
        (format!("<a>{}</a>", "\r".repeat(long)), "1 elements"),
        (format!("<a b='{}'/>", "\r\n".repeat(long / 2)), "1 elements"),
        (format!("<a b='{}'/>", "\"".repeat(long)), "1 elements"),
        (format!("<a>&#{};</a>", "0".repeat(long)), "xml.reference.character"),
        (format!("<a>&#{}65;</a>", "0".repeat(long)), "1 elements"),
        (format!("<a{}/>", " ".repeat(long)), "1 elements"),
        (format!("<!--{}--><a/>", "- ".repeat(long / 2)), "1 elements"),
        (format!("<a><?p {}?></a>", "?".repeat(long)), "1 elements"),
        (format!("<a>{}", "<".repeat(long)), "xml.name"),
        (
            format!(
                "<!DOCTYPE a [<!ELEMENT a {}b{}>]><a/>",
                "(".repeat(long / 2),
                ")".repeat(long / 2)
            ),
            "1 elements",
        ),
        (
            format!("<!DOCTYPE a [<!ATTLIST a b ({}x) 'x'>]><a/>", "x|".repeat(long / 2)),
            "1 elements",
        ),
    ] {
        assert_eq!(outcome(open_limits(), message.as_bytes()), expected, "{}", &message[..40]);
    }
}

/// Fails when one door keeps all names it has ever seen.
#[test]
fn names_are_forgotten_when_they_are_too_many() {
    let mut door = Door::new(Limits::default());
    let first = door.names().generation();
    for message in 0..40 {
        let body: String = (0..4_000).map(|at| format!("<e{message}x{at}/>")).collect();
        let message = format!("<a xmlns='u{message}'>{body}</a>");
        let parsed = door.parse(message.as_bytes(), None).expect("a good message");
        assert_eq!(parsed.message.tree.len(), 4_001);
        let last = parsed.message.tree.name[4_000];
        assert!(parsed.names.local(last).ends_with("x3999"));
        assert!(parsed.names.len() <= 65_536 + 4_001);
    }
    assert!(door.names().generation() > first);
    assert_eq!(outcome(Limits::default(), wide_names(10_001).as_bytes()), "limit.names");
    assert_eq!(outcome(Limits::default(), wide_names(10_000).as_bytes()), "10000 elements");
}

fn wide_names(count: usize) -> String {
    let body: String = (1..count).map(|at| format!("<e{at}/>")).collect();
    format!("<a>{body}</a>")
}
