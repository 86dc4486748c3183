//! Bounds: of text, of nesting, of steps.

use pathcast_core::engine::evaluate::Scratch;
use pathcast_core::language::compile::compile_query;
use pathcast_core::language::query::Namespaces;
use pathcast_core::language::reader::read_query;
use pathcast_core::language::xpath::Expression;
use pathcast_core::xml::parser::{Door, Limits};

/// Runs on a stack as threads have it by default.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work);
    thread.expect("a thread").join().expect("no overflow");
}

fn nested(open: &str, close: &str, times: usize, inner: &str) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

/// An overflow of the stack ends the process, whatever the budget.
#[test]
fn the_deepest_expressions_fit_the_stack() {
    on_a_small_stack(|| {
        let mut door = Door::new(Limits::default());
        let message = nested("<a>", "</a>", 100, "");
        let parsed = door.parse(message.as_bytes(), None).expect("a message");
        let mut scratch = Scratch::default();
        for text in [
            nested("(1 + ", ")", 64, "1"),
            nested("(", " - 1)", 64, "1"),
            "1 - ".repeat(500) + "1",
            nested("count(//a[", "])", 32, "1"),
            nested("//a[", "]", 64, "1"),
            nested("a[(1 < (2 + ", "))]", 21, "1"),
            nested("not(", ")", 64, "//a"),
            nested("concat('x', ", ")", 64, "//a"),
            nested("(//a[position() = ", "])", 32, "last()"),
            nested("(//a | ", ")", 64, "//a"),
        ] {
            let expression = Expression::parse(&text).unwrap_or_else(|error| {
                panic!("{error}: {}", &text[..40]);
            });
            // Over budget or not: it comes back.
            let _ = expression.holds(parsed.message, parsed.names, &mut scratch, 1_000_000);
            let _ = expression.evaluate(parsed.message, parsed.names, &mut scratch, 1_000_000);
        }
    });
}

#[test]
fn deeper_ones_are_refused() {
    on_a_small_stack(|| {
        for text in [
            nested("(", ")", 100_000, "1"),
            nested("not(", ")", 100_000, "1"),
            nested("a[", "]", 100_000, "1"),
            nested("(1 + ", ")", 65, "1"),
            nested("a[", "]", 65, "1"),
            nested("-", "", 100_000, "1"),
            "//a | ".repeat(10_000) + "b",
        ] {
            assert!(Expression::parse(&text).is_err(), "{}", &text[..10]);
        }
        // No nesting.
        for text in [nested("-", "", 1_000, "1"), "//a | ".repeat(300) + "b"] {
            assert!(Expression::parse(&text).is_ok(), "{}", &text[..10]);
        }
    });
}

/// A snapshot that keeps a text which is not read again takes its queries with it.
#[test]
fn what_is_stored_of_the_largest_queries_is_read_again() {
    let endless = format!("1{}", "0".repeat(309));
    for text in [
        format!("//a[last() > {}]", [endless.as_str(); 26].join(" - ")),
        nested("(", ")[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]", 30, "//a"),
        format!("//a[last()]{}", "//b".repeat(254)),
        format!("a[{}last()]", "-".repeat(507)),
    ] {
        let tree = read_query(&text, Namespaces::NONE).expect(&text);
        let compiled = compile_query(&tree).expect(&text);
        let stored = compiled.expression.expect("no path says this").text;
        assert!(Expression::parse(&stored).is_ok(), "{text}");
    }
}

/// What is no expression must be refused, not half understood.
#[test]
fn texts_that_are_no_expression_are_refused() {
    for text in [
        "",
        " ",
        "//",
        "a/",
        "/a//",
        "a[",
        "a[]",
        "a]",
        "(a",
        "a)",
        "a b",
        "a or",
        "or or",
        "1 +",
        "* * ",
        "'a",
        "p:a",
        "p:*",
        "$a",
        "$msg:a",
        "foo()",
        "foo(a)",
        "a/foo()",
        "count()",
        "count(1)",
        "count('a')",
        "sum(1)",
        "name('a')",
        "position(1)",
        "last(a)",
        "not()",
        "concat('a')",
        "substring('a')",
        "translate('a', 'b')",
        "1 | a",
        "a | 1",
        "'a'/b",
        "1[1]",
        "(1)/a",
        "1/a",
        "up::a",
        "child:a",
        "child::",
        "@@a",
        "a::b",
        "Q{u",
        "Q{u}",
        "Q{{u}a",
        "*:",
        "*:*",
        "@",
        "...",
        "text(1)",
        "comment('a')",
        "processing-instruction(a)",
        "node(",
        "a!b",
        "a = ",
        "a == b",
        "a\0b",
        "é(",
    ] {
        assert!(Expression::parse(text).is_err(), "{text:?}");
    }
}

/// Names that are operators elsewhere, and operators without blanks.
#[test]
fn words_are_read_where_they_stand() {
    let mut door = Door::new(Limits::default());
    let message = b"<or><and>6</and><div>3</div><mod>4</mod><text>x</text><a-b>1</a-b></or>";
    let parsed = door.parse(message, None).expect("a message");
    let mut scratch = Scratch::default();
    for text in [
        "/or/and div /or/div = 2",
        "/or/*[1] * 2 = 12",
        "or/and mod or/mod = 2",
        "or and or/and or or",
        "or/mod mod 3=1",
        "//text/text()='x'",
        "or/a-b - 1 = 0",
        "or/a-b -1 = 0",
        "or/* = 6",
        "count(or/*) * 1 = 5",
        "/ = /or",
        "(/) and /",
        "6<=or/and and 6>=or/and",
        " child :: or / child :: * [ 1 ] = 6 ",
    ] {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let verdict = expression.holds(parsed.message, parsed.names, &mut scratch, 1_000);
        assert_eq!(verdict, Ok(true), "{text}");
    }
}

/// Random damage to texts: an error or a value, never a panic, never more steps than given.
#[test]
fn damaged_expressions_do_no_harm() {
    let mut door = Door::new(Limits::default());
    door.keep_full_tree(true);
    let parsed = door.parse(b"<a x='1'><b>2</b><!--c--><b>3</b></a>", None).expect("a message");
    let mut scratch = Scratch::default();
    let texts: Vec<String> = crate::cases::table()
        .group
        .into_iter()
        .flat_map(|group| group.cases.into_iter().map(|(text, _)| text))
        .collect();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut parsed_count = 0;
    for round in 0..20_000 {
        let mut text: Vec<char> = texts[round % texts.len()].chars().collect();
        let other: Vec<char> = texts[random(texts.len())].chars().collect();
        for _ in 0..=random(3) {
            let at = random(text.len() + 1);
            match random(3) {
                0 if at < text.len() => {
                    text.remove(at);
                }
                1 => text.insert(at, other[random(other.len())]),
                _ => {
                    let from = random(other.len());
                    let to = from + random(other.len() - from);
                    text.splice(at..at, other[from..to].iter().copied());
                }
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(expression) = Expression::parse(&text) {
            parsed_count += 1;
            let verdict = expression.holds(parsed.message, parsed.names, &mut scratch, 500);
            assert_eq!(verdict.is_err(), scratch.steps_taken() > 500 || verdict.is_err());
            assert!(scratch.steps_taken() <= 500, "{text}");
            let again = expression.holds(parsed.message, parsed.names, &mut scratch, 500);
            assert_eq!(verdict, again, "{text}");
        }
    }
    assert!(parsed_count > 1_000, "{parsed_count} texts were still expressions");
}
