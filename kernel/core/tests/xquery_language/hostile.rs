//! Programs and messages made to cost: steps, bytes, depth. Every run ends with a result or a
//! verdict, and the verdict is the same every time.

use pathcast_core::engine::programs::{Bounds, Results, RunError, Scratch, Session};
use pathcast_core::language::xquery::Program;
use pathcast_core::xml::parser::{Door, Limits};

fn run(text: &str, message: &str, bounds: Bounds) -> (Result<bool, RunError>, Results, u64) {
    let program = Program::parse(text, &[]).unwrap_or_else(|declined| panic!("{text}: {declined}"));
    let mut door = Door::new(Limits::default());
    door.keep_source_spans(true);
    door.keep_full_tree(program.needs_full_tree());
    let parsed = door.parse(message.as_bytes(), None).expect("a message");
    let mut scratch = Scratch::default();
    let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
    let mut results = Results { bytes: b"before".to_vec(), ends: vec![6] };
    let answer = session.run(&program, bounds, &mut results);
    let steps = session.steps_taken();
    let mut again = Results::default();
    assert_eq!(session.run(&program, bounds, &mut again), answer, "{text}");
    assert_eq!(session.steps_taken(), steps, "{text}");
    assert_eq!(again.bytes, results.bytes[6..], "{text}");
    (answer, results, steps)
}

const BOUNDS: Bounds = Bounds { steps_max: 1_000_000, bytes_max: 1 << 20 };

fn wide(count: usize) -> String {
    let items: String = (0..count).map(|at| format!("<i k='{}'>{at}</i>", at % 7)).collect();
    format!("<r>{items}</r>")
}

/// Programs over 2,000 items that would take millions of steps.
#[test]
fn steps_are_bounded() {
    let message = wide(2_000);
    for text in [
        "for $a in //i, $b in //i, $c in //i where $a = $b and $b = $c return $c",
        "count(for $a in //i, $b in //i return $a)",
        "some $a in //i, $b in //i, $c in //i satisfies $a + $b + $c = -1",
        "//i[count(preceding::i[count(preceding::i[count(preceding::i) > 1]) > 1]) > 1]",
        "let $a := (//i, //i), $b := ($a, $a), $c := ($b, $b), $d := ($c, $c), $e := ($d, $d), \
         $f := ($e, $e), $g := ($f, $f), $h := ($g, $g), $j := ($h, $h) return count($j)",
        "let $a := <a>{//i}</a>, $b := <b>{$a, $a}</b>, $c := <c>{$b, $b}</c>, $d := <d>{$c, $c}</d>, \
         $e := <e>{$d, $d}</e>, $f := <f>{$e, $e}</f>, $g := <g>{$f, $f}</g>, $h := <h>{$g, $g}</h>, \
         $k := <k>{$h, $h}</k> return (count($k), //i)",
        "let $a := string($msg), $b := concat($a, $a, $a, $a), $c := concat($b, $b, $b, $b), \
         $d := concat($c, $c, $c, $c), $e := concat($d, $d, $d, $d), $f := concat($e, $e, $e, $e), \
         $g := concat($f, $f, $f, $f) return string-length($g)",
        "for $a in //i for $b in //i order by $a, $b return <x/>",
        "count(for $a in //i return translate(string($msg), string($msg), string($msg)))",
        "for $a in //i where //i > $a and //i != //i and //i/text() >= //i return $a/x",
    ] {
        let (answer, results, steps) = run(text, &message, BOUNDS);
        assert_eq!(answer, Err(RunError::OverBudget), "{text} takes {steps}");
        assert_eq!((results.bytes, results.ends), (b"before".to_vec(), vec![6]), "{text}");
    }
}

/// Joins and repeated sub-expressions that are linear if they are done well.
#[test]
fn what_can_be_cheap_is_cheap() {
    let message = wide(2_000);
    for (text, steps_max) in [
        ("for $a in //i where $a = //r/i return $a/@k", 30_000),
        (
            "<r>{for $k in distinct-values(//i/@k) return <k n='{count(//i[@k = $k])}'/>}</r>",
            100_000,
        ),
        ("if (//i = //i/text()) then //i[1] else ()", 20_000),
        ("//i[last()]/@k, (//i)[last()]", 20_000),
        ("for $a in //i order by $a descending return $a", 30_000),
    ] {
        let bounds = Bounds { steps_max, ..BOUNDS };
        let (answer, _, steps) = run(text, &message, bounds);
        assert_eq!(answer, Ok(true), "{text} takes {steps}");
    }
}

/// The limit counts what is written, wherever it is reached.
#[test]
fn bytes_are_bounded() {
    let message = wide(2_000);
    let copies = "for $a in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10) return <all>{$msg}</all>";
    for (text, bytes_max) in [
        (copies, 100_000),
        ("//i", 1_000),
        ("//i/text()", 500),
        ("//i/@k", 100),
        ("<a b='{//i}'>{1, //i[1]}</a>", 500),
        ("<a>{//i[1]}</a>", 10),
        ("string($msg)", 1_000),
        ("for $a in //i return 1", 100),
        ("let $x := <x>{//i}</x> return ($x, $x)", 60_000),
    ] {
        let (answer, results, _) = run(text, &message, Bounds { bytes_max, ..BOUNDS });
        assert_eq!(answer, Err(RunError::TooLong), "{text}");
        assert_eq!(results.bytes.len(), 6, "{text}");
        let (answer, ..) = run(text, &message, BOUNDS);
        assert_eq!(answer, Ok(true), "{text}");
    }
}

/// Everything within everything, as deep as the parser lets it be, and chains as long.
#[test]
fn depth_is_bounded() {
    let deep = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let message = format!("{}x{}", "<a>".repeat(200), "</a>".repeat(200));
    for text in [
        deep("(", "//a", ")[1]", 31),
        deep("<e>{", "//a", "}</e>", 63),
        deep("//a[", "a", "]", 63),
        deep("for $x in //a[1] return ", "$x", "", 63),
        deep("for $x in (", "//a", ") return $x", 31),
        deep("if (//a) then ", "//a", " else ()", 63),
        deep("count((", "//a", ", 1))", 31),
        deep("some $x in //a satisfies ", "$x = 'x'", "", 63),
        format!("count(//a){}", " + 1".repeat(120)),
        format!("let $x := //a{} return $x", " let $x := ($x, 1)[1]".repeat(200)),
        format!("//a{}", "/..//a".repeat(300)),
        format!("{}count(//a)", "- ".repeat(1_000)),
        format!("<r a='{}'>{{//a}}</r>", "{1}".repeat(900)),
    ] {
        let handle = std::thread::Builder::new().stack_size(1 << 20);
        let message = message.clone();
        let name = text.chars().take(60).collect::<String>();
        let ran = handle.spawn(move || run(&text, &message, BOUNDS).0).expect("a thread").join();
        assert!(
            matches!(ran, Ok(Ok(_) | Err(RunError::OverBudget | RunError::TooLong))),
            "{name}: {ran:?}"
        );
    }
}
