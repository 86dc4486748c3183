//! What the language has is accepted, and nothing else: subscribers are told by the Python parser
//! what is wrong with a text, and a text that only one of the two parsers took would be lost between
//! them.

use pathcast_core::language::refusal::Parsed;
use pathcast_core::language::xquery::{Expr, Program};

fn parse(text: &str) -> Parsed<Program> {
    let namespaces = [("p", "urn:p"), ("q", "urn:q&x"), ("b", "urn:{}")];
    let namespaces = namespaces.map(|(prefix, uri)| (prefix.to_owned(), uri.to_owned()));
    Program::parse(text, &namespaces)
}

const ACCEPTED: &[&str] = &[
    "for $a at $i in //a, $b in $a/b for $c in $b let $d := $c/@d, $e := 1 return ($d, $e, $i)",
    "for $a in //a stable order by $a/@x descending empty greatest, $a ascending empty least return $a",
    "for $for in //for where $for return $for/return/where/order/by",
    "let $h := for $a in //a order by $a return <x>{$a}</x> return $h[position() <= 3]",
    "let $msg := //a return $msg/b",
    "let $p:x := //a return $p:x/b",
    "for $a in //a where every $b in $a/b satisfies $b eq 'x' or $b ne 'y' return $a",
    "if (//a = (1, 2.5, 1e3, .5, 5., 'x')) then //b else //c",
    "//a[. = 'x'][2][b or c][position() = last()]/d[last()]",
    "//a/.. | //b union //c/ancestor-or-self::d/following-sibling::*[1]",
    "//@a | //text() | //comment() | //processing-instruction('x-y') | //node() | //element(a)",
    "//p:a/@p:b | //*:a | //p:* | //@p:* | //@*:a | //Q{urn:r}a | //Q{}a | //Q{urn:r}*",
    "(//a)[1]/b, (//a, //b)[last()], (//a[b])[c]/d",
    "$msg/a, doc('x.xml')//a, document('x')/a, fn:doc('y'), /a, a, ., ./a, .//a, ../a, /",
    "//div/mod[or and and or or]/eq",
    "-1 + +2 - 3 * 4 div 5 mod 6 idiv 7 + count(//a)",
    "string(), name(), number(), normalize-space(), position(), last(), //a",
    r#"string-join((//a, "a ""quote""", 'it''s', "&lt;&amp;&#65;&#x42;&quot;"), "")"#,
    "<a >{ //b , 1 } text {{not}} &amp; &#65; <![CDATA[<raw> {x}]]> <b c='d' /></a >",
    r#"<a b="{//c/@d} and {{}} &lt; ''" e='{1}"it''s"'>{//f}</a>"#,
    "<p:a p:b='1' xmlns:r='urn:r' r:c='{//r:x}'>{//r:d}</p:a>",
    "<a xmlns='urn:x'>{//b}<c xmlns=''>{//d}</c></a>",
    "<a\n  b='x\ty&#10;z'\n>\n{\n//b\n}\r\n</a\n>",
    r#"xquery version "1.0" encoding "utf-8"; declare namespace n = "urn:n"; <n:a>{//n:b}</n:a>"#,
    r#"declare default element namespace "urn:d"; <a>{//b/@c}</a>"#,
    "(: comment :) for(:x:)$a(:y:)in(:z:)//a return(::)$a",
    "declare/a, import, xquery/version",
    "(//a, //b)[2], (<a/>, //b)[2]",
    "//a intersect //b except //c, 1 to count(//a), 'a' || //b || 1, //a => count() => string()",
    "//a ! <b>{.}</b>, //a instance of element(a)*, (//a treat as node()+)/b",
    "sum(//a, 0), format-number(//a, '#,##0'), format-time(//a, '[h]:[m01] [Pn]'), round(//a, 2)",
    "element a {attribute b {//c}, text {//d}, 1}, element {'p:a'} {}",
    "declare variable $n := 1; declare function local:f($x as xs:string?) {$x, $n}; local:f(//a)",
    "//a[@t < current-dateTime()], head(//a), insert-before(//a, 1, <b/>)",
];

const DECLINED: &[&str] = &[
    // Not supported.
    "element {//a} {//b}",
    "attribute a {//b}",
    "element a {//b, attribute c {1}}",
    "text {//b}",
    "<a><!-- c -->{//b}</a>",
    "<a>{//b}<?p i?></a>",
    "typeswitch (//a) case xs:string return 1 default return 2",
    "//a instance of schema-element(a)",
    "//a instance of function(*)",
    "//a cast as xs:float",
    "validate {//a}",
    "ordered {//a}",
    "declare function local:f() external; //a",
    "declare function f() {1}; //a",
    "declare function local:f($x) {local:f($x)}; //a",
    "declare function local:f($x) {1}; local:f(), //a",
    "declare variable $x external; //a",
    "declare boundary-space preserve; //a",
    "import module namespace x = 'y'; //a",
    "xquery version '3.1'; //a",
    "matches(//a, '(x)\\1')",
    "p:count(//a)",
    "//a is //b",
    "//a << //b",
    "//document-node()",
    "//element(a, xs:string)",
    "//a/self::attribute(a)",
    "doc($msg)/a",
    "xs:float(//a)",
    "for $a as xs:string in //a return $a",
    "for $a in //a order by $a collation 'x' return $a",
    "for $a in //a group by $b return $b",
    "//a => $f()",
    "1 to //a to 3",
    "(# p #) {//a}",
    "//a/namespace::b",
    "//a/string()",
    "<a>{-1}</a>",
    "<a>{10 + 10}{string-length('x')}</a>",
    "<a>{let $x := //b return 1}</a>",
    "<a>{for $x in (1, 2)[. = 1][last()] return $x}</a>",
    "<a>{.[/ < 5]}</a>",
    "id(//a, //b)",
    "format-number(//a, '0e0')",
    "format-date(//a, '[H]')",
    "max(//a, 'en')",
    "<a>{}</a>",
    "for $a in //a where $a/b where $a/c return $a",
    "xquery version '1.0' encoding '9x'; //a",
    "declare default element namespace 'http://www.w3.org/2000/xmlns/'; //a",
    "//a/(b | c)",
    "//a <> 1, //b",
    "1234567890123456789 + count(//a)",
    "<a b='{//c}' xmlns:n='urn:n'>{//b}</a>",
    "//b:a, 1",
    // The value of a constructed element.
    "let $x := <a>{//b}</a> return $x/b",
    "let $x := <a>{//b}</a> return $x = 'b'",
    "let $x := <a>{//b}</a> return string($x)",
    "let $x := <a>{//b}</a> return -$x",
    "for $x in (<a/>, //b) order by $x return $x",
    "for $x in (<a/>, //b) return <c d='{$x}'/>",
    "for $x in (<a/>, //b) where $x return 1",
    "(<a/>, //b)[. = 'x']",
    "(<a/>, //b)[c]",
    "//a | <b/>",
    "not(<a>{//b}</a>)",
    // Types.
    "distinct-values(//a)/b",
    "(//a, 1)/b",
    "for $a at $i in //a return $i/b",
    "('a', 'b')[c], //d",
    "//a | 1, 2",
    "for $x in 1 return name($x)",
    // Not XQuery.
    "",
    "for $a in //a",
    "let $a = //a return 1",
    "if (//a) then 1",
    "(//a, )",
    "//a = //b = //c, 1",
    "<a>{//b}</c>",
    "<a>{}</a>",
    "<a>}{//b}</a>",
    "<a b='1'c='2'>{//b}</a>",
    "<a>&x;{//b}</a>",
    "<a>&#xD800;{//b}</a>",
    "<a><![CDATA[{//b}</a>",
    "(//a (: b)",
    "//a (: b",
    "//a, 10div 2",
    "//a, \u{1}",
    "//a, '\u{FFFE}'",
    "for $a in $a return 1",
    "for $a in //a return 1, $a",
    "count(//a, 1)",
    "<a z:b='1'>{//b}</a>",
    "<a b='1' b='2'>{//c}</a>",
    "<a xmlns:x='u' xmlns:y='u' x:b='1' y:b='2'>{//c}</a>",
    "<a xmlns:b='{//c}'/>",
    "<a xmlns:b=''>{//c}</a>",
    "<a xmlns:xmlns='x'>{//b}</a>",
    "declare namespace a = 'x'; declare namespace a = 'y'; //b",
    "declare namespace xml = 'x'; //a",
    "for $a at $a in //a return $a",
    "/*5",
    "/<a/>",
    // The same for every message.
    "<a>text</a>",
    "<a b='{//c}'/>",
    "<a>{1, 'x', ()}<b/></a>",
];

#[test]
fn what_subscribers_may_write_is_accepted() {
    for text in ACCEPTED {
        if let Err(declined) = parse(text) {
            panic!("{text}: {declined:?}");
        }
    }
}

#[test]
fn nothing_else_is_accepted() {
    for text in DECLINED {
        let declined = parse(text).expect_err(text);
        assert!(declined.offset <= text.len(), "{text}: {declined:?}");
    }
}

/// Beyond these numbers of the Python parser, nobody would be told why a text is refused.
#[test]
fn limits_are_those_of_the_language() {
    let nested = |depth: usize| format!("{}//a{}, 1", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(64)).is_ok());
    assert!(parse(&nested(65)).is_err());
    let sum = |terms: usize| format!("//a, 1{}", " + 1".repeat(terms));
    assert!(parse(&sum(126)).is_ok());
    assert!(parse(&sum(127)).is_err());
    let any = |terms: usize| format!("//a, (1{})", " or 1".repeat(terms));
    assert!(parse(&any(1_000)).is_ok());
    assert!(parse(&any(1_030)).is_err());
    let predicates = |count: usize| format!("//a{}, 1", "[1]".repeat(count));
    assert!(parse(&predicates(64)).is_ok());
    assert!(parse(&predicates(65)).is_err());
    let long = |len: usize| format!("//a, '{}'", "x".repeat(len));
    assert!(parse(&long(32 * 1024 - 7)).is_ok());
    assert!(parse(&long(32 * 1024 - 6)).is_err());
}

/// The shared plans are recognised in this tree.
#[test]
fn the_tree_says_each_thing_in_one_way() {
    let program = parse("$msg/a/(b)").map(|program| program.expr(program.body()));
    assert!(program.is_err());
    for text in ["($msg/a)/b[c]", "/a/b[c]", "a/b[c]", "doc('x')/a/./b[c]"] {
        let program = parse(text).expect(text);
        let Expr::Path { start, steps } = program.expr(program.body()) else {
            panic!("{text} is a path");
        };
        assert_eq!(start, pathcast_core::language::xquery::Start::Root, "{text}");
        assert_eq!(program.steps(steps).len(), 2, "{text}");
    }
}
