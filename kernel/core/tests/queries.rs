//! The table of queries (`testdata/queries.toml`), the same that the Python package runs.
//!
//! If these fail, the kernel reads a query otherwise than the Python package, or takes one that has
//! to be refused.

use pathcast_core::language::comparison::Comparison;
use pathcast_core::language::query::{
    Axis, Compiler, Condition, Constant, DEPTH_MAX, Declined, NODES_MAX, NameTest, Namespaces,
    Operator, PREDICATES_MAX, Stage, Step, TEXT_BYTES_MAX, canonical_text, compile,
    compile_canonical,
};
use pathcast_core::language::reader::read_query;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

#[derive(serde::Deserialize)]
struct Table {
    queries: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    query: String,
    #[serde(default)]
    namespaces: BTreeMap<String, String>,
    canonical: Option<String>,
    alternatives: Option<Vec<String>>,
    error: Option<String>,
    fast: Option<bool>,
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/queries.toml");
    let text = std::fs::read_to_string(path).expect("the table is there");
    let table: Table = toml::from_str(&text).expect("the table is well-formed");
    assert!(table.queries.len() > 400, "the table has shrunk");
    table.queries
}

fn form(text: &str, namespaces: &Namespaces) -> Result<String, Declined> {
    let steps = compile(text, namespaces)?;
    let mut canonical = String::new();
    canonical_text(&steps, &mut canonical);
    Ok(canonical)
}

#[test]
fn accepted_queries_have_their_canonical_form() {
    for case in cases() {
        let Some(canonical) = &case.canonical else { continue };
        let namespaces = Namespaces::new(case.namespaces);
        let expected = if case.fast == Some(false) { Err(Declined) } else { Ok(canonical.clone()) };
        assert_eq!(form(&case.query, &namespaces), expected, "{}", case.query);
    }
}

#[test]
fn canonical_text_reads_back() {
    for case in cases() {
        let Some(canonical) = case.canonical else { continue };
        assert_eq!(form(&canonical, Namespaces::NONE).as_ref(), Ok(&canonical));
    }
}

/// Every string of a few characters that mean something to a reader, as the constant of conditions.
#[test]
fn strings_are_read_as_they_were_written() {
    let alphabet = ['\'', '"', ']', ',', 'é'];
    let mut strings = vec![String::new()];
    let mut texts = HashSet::new();
    for start in 0.. {
        let Some(string) = strings.get(start).cloned() else { break };
        if string.chars().count() < 5 {
            strings.extend(alphabet.iter().map(|&character| format!("{string}{character}")));
        }
        let equal = || {
            Some((
                Operator::Compare(Comparison::Eq),
                Constant::String(Cow::Borrowed(string.as_str())),
            ))
        };
        let name = |local| NameTest::Name { uri: "".into(), local: Cow::Borrowed(local) };
        let conditions = vec![
            Condition::Value(
                Operator::Compare(Comparison::Ne),
                Constant::String(Cow::Borrowed(string.as_str())),
            ),
            Condition::Attribute { test: name("x"), compare: equal() },
            Condition::Text(equal()),
        ];
        let stages = vec![Stage { positions: vec![], conditions }];
        let steps = vec![Step { axis: Axis::Descendant, test: name("a"), stages }];
        let mut text = String::new();
        canonical_text(&steps, &mut text);
        assert_eq!(compile_canonical(&text).as_ref(), Ok(&steps), "{text}");
        assert_eq!(form(&text, Namespaces::NONE).as_ref(), Ok(&text));
        assert!(texts.insert(text), "two strings have one text");
    }
    assert_eq!(texts.len(), (5_usize.pow(6) - 1) / 4);
}

/// A date has a text of its own, whatever the time zone it was given in, and is never compared by `!=`.
#[test]
fn dates_are_read_in_canonical_text_alone() {
    for (name, dates) in [
        ("date", ["2026-12-31Z", "2026-12-30-14:00", "-0001-12-31+09:59"]),
        (
            "dateTime",
            ["2026-12-31T23:00:00Z", "2026-02-28T00:00:00.000001Z", "-7000-01-01T00:00:00Z"],
        ),
        ("time", ["12:00:00Z", "23:59:00-14:00", "00:00:00.5+14:00"]),
    ] {
        for (operator, date) in
            ["=", "<", "<=", ">", ">="].iter().flat_map(|it| dates.map(|d| (it, d)))
        {
            let text = format!(
                "//{name}[@{name}][{name}(.){operator}'{date}'][{name}(@a){operator}'{date}']/b[c]"
            );
            let steps = compile_canonical(&text).expect("canonical");
            let mut again = String::new();
            canonical_text(&steps, &mut again);
            assert!(again.contains(&format!("{name}(.){operator}'{date}'")), "{again}");
            assert_eq!(compile_canonical(&again), Ok(steps), "{again}");
            assert_eq!(form(&again, Namespaces::NONE), Err(Declined), "{again}");
        }
    }
    for wrong in [
        "//a[date(.)]",
        "//a[date(b)='2026-12-31Z']",
        "//a[date(.)!='2026-12-31Z']",
        "//a[date(.)=3]",
        "//a[date(.)='2023-02-29Z']",
        "//a[time(.)='2026-12-31Z']",
        "//a[date(.)='2026-12-31Z' ",
        "//a[dateTime(.)='2026-12-31T00:00:00.0000001Z']",
    ] {
        assert_eq!(compile_canonical(wrong), Err(Declined), "{wrong}");
    }
}

/// XPath 1.0 has no function `double`: a cast has a text that is read back where canonical text is, and is refused
/// where a subscriber writes it.
#[test]
fn casts_are_read_in_canonical_text_alone() {
    let name = |local| NameTest::Name { uri: "".into(), local: Cow::Borrowed(local) };
    let operators = ["=", "!=", "<", "<=", ">", ">="];
    for operator in operators {
        let text = format!(
            "//double[double(.){operator}-0.5][double(@double){operator}3][double(@urn:*)=1]\
             [double(text()){operator}1000][@a{operator}3]/b[double(.)=3]"
        );
        let text = text.replace("@urn:*", "@Q{urn}*");
        let steps = compile_canonical(&text).expect("canonical");
        let attribute = Condition::Attribute {
            test: name("double"),
            compare: Some((Operator::Compare(Comparison::Eq), Constant::Double(3.0))),
        };
        let conditions = &steps[0].stages[0].conditions;
        assert_eq!(conditions.contains(&attribute), operator == "=");
        let mut again = String::new();
        canonical_text(&steps, &mut again);
        assert_eq!(compile_canonical(&again), Ok(steps), "{again}");
        assert_eq!(form(&again, Namespaces::NONE), Err(Declined), "{again}");
        let refusal = read_query(&again, Namespaces::NONE).expect_err("no function of XPath");
        assert_eq!(refusal.reason.code(), "XPST0017");
    }
    for wrong in [
        "//a[double(.)]",
        "//a[double(b)=3]",
        "//a[double(b/@c)=3]",
        "//a[double(.)='3']",
        "//a[3=double(.)]",
        "//a[double(.=3)]",
        "//a[double()=3]",
        "//a[starts-with(double(.),'3')]",
    ] {
        assert_eq!(compile_canonical(wrong), Err(Declined), "{wrong}");
    }
    // Calls nest, as brackets do.
    let nested = |depth: usize| {
        format!("/a{}[double(.)=1]{}", "[a".repeat(depth - 2), "]".repeat(depth - 2))
    };
    assert!(compile_canonical(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(compile_canonical(&nested(DEPTH_MAX + 1)), Err(Declined));
}

/// A set has a text that is read back where canonical text is, whatever the order and the number of its values.
#[test]
fn sets_are_read_in_canonical_text_alone() {
    let canonical = |text: &str| {
        let steps = compile_canonical(text).expect(text);
        let mut again = String::new();
        canonical_text(&steps, &mut again);
        assert_eq!(compile_canonical(&again), Ok(steps), "{again}");
        again
    };
    for (text, expected) in [
        ("//a[@b=('B', 'A','B')]", "//a[@b=('A','B')]"),
        ("//a[@b=('A','A')]", "//a[@b='A']"),
        ("//a[double(@b)=(10,2,1.0,-0)]", "//a[double(@b)=(0,1,10,2)]"),
        ("//a[double(.)=(3,3.0)]", "//a[double(.)=3]"),
        (
            "//a[text()=('',\"'\",concat('\"',\"'\"))]/b",
            "//a[text()=('',concat('\"',\"'\"),\"'\")]/b",
        ),
        ("//a[c][.=('A','B')][@b]", "//a[.=('A','B')][@b]/c"),
        ("//a[@*=('(',',')]", "//a[@*=('(',',')]"),
        ("//a[@b=(2,1.0,10)]", "//a[@b=(1,10,2)]"),
    ] {
        assert_eq!(canonical(text), expected);
        assert_eq!(canonical(expected), expected);
        assert_eq!(
            form(expected, Namespaces::NONE).is_err(),
            expected.contains("=(") || expected.contains("double")
        );
    }
    for wrong in [
        "//a[@b=()]",
        "//a[@b=('A',1)]",
        "//a[@b!=('A','B')]",
        "//a[('A','B')=@b]",
        "//a[@b=('A','B']",
        "//a[@b<(1,2)]",
        "//a[double(@b)=('A','B')]",
        "//a[double(@b)<(1,2)]",
        "//a[@b=('A',,'B')]",
        "//a[@b=('A\0','B')]",
    ] {
        assert_eq!(compile_canonical(wrong), Err(Declined), "{wrong}");
    }
    let nested = |depth: usize| {
        format!("/a{}[.=('A','B')]{}", "[a".repeat(depth - 2), "]".repeat(depth - 2))
    };
    assert!(compile_canonical(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(compile_canonical(&nested(DEPTH_MAX + 1)), Err(Declined));
    // The values of a set are not counted among the bytes of a path.
    let values: Vec<String> = (0..10_000).map(|number| format!("'{number:06}'")).collect();
    let long = canonical(&format!("//a[@b=({})]", values.join(",")));
    assert!(long.len() > TEXT_BYTES_MAX);
}

#[test]
fn alternatives_are_canonical() {
    let mut seen = 0;
    for text in cases().into_iter().filter_map(|case| case.alternatives).flatten() {
        assert_eq!(form(&text, Namespaces::NONE).as_ref(), Ok(&text));
        seen += 1;
    }
    assert!(seen > 100);
}

#[test]
fn refused_and_split_queries_are_declined() {
    for case in cases() {
        if case.error.is_some() || case.alternatives.is_some() {
            let namespaces = Namespaces::new(case.namespaces);
            assert_eq!(form(&case.query, &namespaces), Err(Declined), "{}", case.query);
        }
    }
}

#[test]
fn one_compiler_takes_one_query_after_the_other() {
    let table = cases();
    let namespaces: Vec<Namespaces> =
        table.iter().map(|case| Namespaces::new(case.namespaces.clone())).collect();
    let mut compiler = Compiler::default();
    for (case, namespaces) in table.iter().zip(&namespaces) {
        let alone = compile(&case.query, namespaces);
        assert_eq!(compiler.compile(&case.query, namespaces).map(<[_]>::to_vec), alone);
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize, inner: &str| {
        format!("/a{}{inner}{}", "[a".repeat(levels), "]".repeat(levels))
    };
    assert!(form(&nested(DEPTH_MAX, ""), Namespaces::NONE).is_ok());
    assert_eq!(form(&nested(DEPTH_MAX + 1, ""), Namespaces::NONE), Err(Declined));
    assert_eq!(form(&nested(2000, ""), Namespaces::NONE), Err(Declined));
    // The comparison takes a bracket in canonical form.
    assert!(form(&nested(DEPTH_MAX - 1, "=1"), Namespaces::NONE).is_ok());
    assert_eq!(form(&nested(DEPTH_MAX, "=1"), Namespaces::NONE), Err(Declined));
}

#[test]
fn every_place_of_a_branch_gives_one_form() {
    let branches = ["b", ".//c", "d[e][f]", "g[h][1]", "*//@i", "k='x'"];
    let mut forms = std::collections::BTreeSet::new();
    for rotation in 0..branches.len() {
        let mut order = branches;
        order.rotate_left(rotation);
        let nested: Vec<String> = order.iter().map(|branch| format!("[{branch}]")).collect();
        let mut texts = vec![format!("/a{}", nested.concat())];
        let (last, others) = nested.split_last().expect("there are branches");
        match order[order.len() - 1] {
            "k='x'" => texts.push(format!("/a{}/k[.='x']", others.concat())),
            ".//c" => texts.push(format!("/a{}//c", others.concat())),
            branch => texts.push(format!("/a{}/{branch}", others.concat())),
        }
        texts.push(format!("/a{last}[{}]", order[..order.len() - 1].join(" and ")));
        for text in texts {
            let main = form(&text, Namespaces::NONE).expect("it is read");
            let inner = form(&format!("/z[{}]", &text[1..]), Namespaces::NONE);
            assert_eq!(inner, Ok(format!("/z{main}")));
            forms.insert(main);
        }
    }
    let only = "/a[.//c][b][d[f]/e][g[h][position()=1]][k[.='x']]//*[@i]";
    assert_eq!(forms.into_iter().collect::<Vec<_>>(), [only]);
}

#[test]
fn the_deepest_branch_leads_on() {
    // A position keeps nested paths where they are, so these are as deep as they may be.
    let fixed = format!("{}b{}", "b[".repeat(DEPTH_MAX - 1), "][1]".repeat(DEPTH_MAX - 1));
    let canonical = fixed.replace("[1]", "[position()=1]");
    for text in [format!("/a[{fixed}]/a"), format!("/a[a]/{fixed}"), format!("/a[a][{fixed}]")] {
        assert_eq!(form(&text, Namespaces::NONE), Ok(format!("/a[a]/{canonical}")));
    }
    let folded = format!("{}a{}", "a[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    assert_eq!(form(&folded, Namespaces::NONE), Ok("/a".repeat(DEPTH_MAX + 1)));
}

#[test]
fn length_is_bounded() {
    let longest = format!("/{}", "a".repeat(TEXT_BYTES_MAX - 1));
    assert_eq!(form(&longest, Namespaces::NONE).as_ref(), Ok(&longest));
    assert_eq!(form(&format!("{longest}a"), Namespaces::NONE), Err(Declined));
    let namespaces = Namespaces::new([("", "u".repeat(100))]);
    assert!(form(&"/a".repeat(70), &namespaces).is_ok());
    assert_eq!(form(&"/a".repeat(100), &namespaces), Err(Declined));
    // `[1]` grows to `[position()=1]`.
    let positions = format!("/a{}", "[1]".repeat(TEXT_BYTES_MAX / 14 + 1));
    assert_eq!(form(&positions, Namespaces::NONE), Err(Declined));
}

#[test]
fn syntax_nodes_are_bounded_as_written() {
    // Each a syntax node or two; what Python counts (`tests/test_query_syntax.py`).
    let fill = |nodes: usize, tail: &str| format!("{}{tail}", "/a".repeat(nodes));
    for (tail, nodes) in [
        ("", 0),
        ("//b", 2),
        ("[b=1]", 4),
        ("[-1=b]", 5),
        ("[2]", 2),
        ("[position()<=2 and 3>position()]", 8),
        ("[@b and @c]", 4),
        ("[starts-with(@b,'x')]", 4),
        ("[.//b/text()='x']", 7),
        ("/.", 1),
    ] {
        assert!(form(&fill(NODES_MAX - nodes, tail), Namespaces::NONE).is_ok(), "{tail}");
        let large = fill(NODES_MAX - nodes + 1, tail);
        assert_eq!(form(&large, Namespaces::NONE), Err(Declined), "{tail}");
    }
    assert!(compile_canonical(&fill(NODES_MAX + 1, "[position()=2]")).is_ok());
    let growing = fill(NODES_MAX - 20, &"[1]".repeat(10));
    let canonical = form(&growing, Namespaces::NONE).expect("it is within the bounds");
    assert_eq!(form(&canonical, Namespaces::NONE), Err(Declined));
    assert!(compile_canonical(&canonical).is_ok());
}

#[test]
fn predicates_of_a_step_are_bounded_as_written() {
    let most = "[@b]".repeat(PREDICATES_MAX);
    for text in [format!("/a{most}"), format!("//c/a[@b]/{}", &most[4..]), format!("/a[c{most}]")] {
        assert!(form(&text, Namespaces::NONE).is_ok(), "{text}");
        let more = text.replacen("[@b]", "[@b][@b]", 1);
        assert_eq!(form(&more, Namespaces::NONE), Err(Declined), "{more}");
    }
    let names: Vec<String> = (10..10 + 2 * PREDICATES_MAX).map(|n| format!("@a{n}")).collect();
    let canonical = form(&format!("/a[{}]", names.join(" and ")), Namespaces::NONE);
    let canonical = canonical.expect("they stand in one predicate");
    assert_eq!(canonical.matches('[').count(), names.len());
    assert!(compile_canonical(&canonical).is_ok());
}

#[test]
fn broken_text_is_declined_without_a_panic() {
    let table = cases();
    for case in &table {
        for (at, _) in case.query.char_indices() {
            for piece in ["", "[", "]", "'", "/", "é", "\u{0}", "Q{", "$", ".", "*:"] {
                let damaged = format!("{}{piece}{}", &case.query[..at], &case.query[at..]);
                if let Ok(canonical) = form(&damaged, Namespaces::NONE) {
                    assert_eq!(form(&canonical, Namespaces::NONE), Ok(canonical), "{damaged}");
                }
            }
        }
    }
}
