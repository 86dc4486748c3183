//! What inputs are made from: the queries and messages of `testdata`, pieces of XPath and XML, and
//! mutations that cut, double, join and change them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A small generator of numbers (SplitMix64): inputs replay from their seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn of<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}

/// Words of XPath; three names, so that most expressions meet something.
const WORDS: [&str; 98] = [
    "a",
    "b",
    "c",
    "a",
    "b",
    "*",
    "@x",
    "@y",
    "@*",
    "/",
    "//",
    "/",
    "//",
    "[",
    "]",
    "(",
    ")",
    "[1]",
    "[2]",
    "[last()]",
    ".",
    "..",
    "|",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    " div ",
    " mod ",
    " and ",
    " or ",
    "*",
    ",",
    "'1'",
    "'u'",
    "''",
    "1",
    "2",
    "0",
    "-1",
    ".5",
    "1e3",
    "\"",
    "'",
    "child::",
    "descendant::",
    "parent::",
    "ancestor::",
    "following::",
    "following-sibling::",
    "preceding::",
    "preceding-sibling::",
    "attribute::",
    "namespace::",
    "self::",
    "descendant-or-self::",
    "ancestor-or-self::",
    "text()",
    "node()",
    "comment()",
    "processing-instruction('p')",
    "position()",
    "last()",
    "count(",
    "id(",
    "local-name(",
    "namespace-uri(",
    "name(",
    "string(",
    "concat(",
    "starts-with(",
    "double(",
    "[double(@x)<3]",
    "contains(",
    "substring-before(",
    "substring-after(",
    "substring(",
    "string-length(",
    "normalize-space(",
    "translate(",
    "boolean(",
    "not(",
    "true()",
    "false()",
    "lang(",
    "number(",
    "sum(",
    "floor(",
    "ceiling(",
    "round(",
    "Q{u}a",
    "*:a",
    "$v",
    "p:a",
];

/// Words of XQuery, among those of XPath.
const PROGRAM_WORDS: [&str; 44] = [
    "for $a in ",
    "for $b at $i in ",
    "let $c := ",
    " where ",
    " order by ",
    " descending",
    " empty greatest",
    " return ",
    "some $d in ",
    "every $d in ",
    " satisfies ",
    "if (",
    ") then ",
    " else ",
    "()",
    "$a",
    "$b",
    "$c",
    "$msg",
    "<e>",
    "</e>",
    "<e x='{",
    "}'>",
    "<e/>",
    "{",
    "}",
    "{{",
    "&amp;",
    "<![CDATA[",
    "]]>",
    " xmlns='u'",
    " xmlns:p='v'",
    "p:",
    "distinct-values(",
    "string-join(",
    "data(",
    "min(",
    "exists(",
    " idiv ",
    " eq ",
    " union ",
    "element()",
    "(: ",
    " :)",
];

const EXPRESSIONS: [&str; 25] = [
    "//a[count(b) > 1]/preceding-sibling::*[1]",
    "/a/b[position() = last()] | //c[@x = ../@x]",
    "not(//a[@x = 1]) or sum(//b) > 3",
    "//b[. = following::b]/ancestor::a[2]",
    "substring(//a, 2, count(//b)) = 'u'",
    "(//a/b)[3]/@*[2]",
    "//a[starts-with(@x, '1')][contains(., 'u')]//b[last()]",
    "//text()[. != normalize-space(.)]",
    "/descendant::node()[position() mod 2 = 1]/self::comment()",
    "//*[lang('en')]/namespace::*",
    "//a[@x = concat(\"'\", '\"][@y=1')][contains(., concat('\"', \"'\"))]",
    "id('i1')/.. | id(//@y)",
    "concat(name(//b), string(1 div 3), 'x') != translate(//a, 'u', 'v')",
    "//a[b[c[@x]]/b]//*[@y][2]",
    "//a//a[@x]//a/b[@y > 1]//@x",
    "//a[.//b = 2][text()]//text()",
    "/*/*[3 > @x]/b[. >= 2][1]",
    "-(-(//a + 1)) * 2 mod 3 = round(1.5)",
    "//processing-instruction()[preceding::b]",
    "//a[@x=1]/b[@y!='u'] ",
    "//a[position()<=2][@x]/b[position()>1]",
    "//*[self::a or self::b][not(@x)]/@y",
    "string-length(//a) > 2 and boolean(//b/..)",
    "//b[../a/@x = @x]/c",
    "ancestor-or-self::node()/a",
];

const MESSAGES: [&str; 8] = [
    "<a x='1'><b y='u'>2<c/></b><b>u<!--m--><a x='2'/></b></a>",
    "<!DOCTYPE a [<!ATTLIST b y ID #IMPLIED><!ENTITY e 'u<c/>'>]><a><b y='i1'>&e;</b><?p 1?></a>",
    "<p:a xmlns:p='u' xmlns='v' xml:lang='en'><a xmlns=''/><p:b p:x='1'/></p:a>",
    "<a><a><a x='1'><a><b>1</b></a><b x='2' y='1'/></a></a></a>",
    "<!--1--><?p i?><a>\n <b> 5 </b><![CDATA[<]]>&#65;</a><!--2-->",
    "<c/>",
    "<a><b>1</b><b>2</b><b>3</b><c x='1' y='2'>u</c><b y=''/></a>",
    "<a x='5'><a x='5.0'>5<b x='u'>NaN</b></a><b x=''>-0</b></a>",
];

const MARKUP: [&str; 24] = [
    "<a>",
    "</a>",
    "<b x='1'>",
    "</b>",
    "<c/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?p",
    "?>",
    "&lt;",
    "&#65;",
    "&e;",
    "&",
    "<",
    ">",
    "'",
    "xmlns='u'",
    "xmlns:p='u'",
    "p:",
    "\u{e9}",
    "\u{1f600}",
    "<!DOCTYPE a [",
];

#[derive(Deserialize)]
struct Queries {
    queries: Vec<OneQuery>,
}

#[derive(Deserialize)]
struct OneQuery {
    query: String,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    message: String,
    #[serde(default)]
    queries: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Groups {
    group: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    message: String,
    cases: Vec<(String, toml::Value)>,
}

pub struct Seeds {
    queries: Vec<String>,
    messages: Vec<String>,
    /// Programs, each with a message that it is meant for.
    programs: Vec<(String, String)>,
}

impl Seeds {
    pub fn load() -> Seeds {
        let read = |name: &str| {
            let path = format!("{}/../../testdata/{name}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).expect("testdata is there")
        };
        let table: Queries = toml::from_str(&read("queries.toml")).expect("a table of queries");
        let cases: Cases = toml::from_str(&read("matching.toml")).expect("a table of cases");
        let mut queries: Vec<String> = table.queries.into_iter().map(|it| it.query).collect();
        let mut messages: Vec<String> = MESSAGES.map(str::to_owned).into();
        for case in cases.case {
            messages.push(case.message);
            queries.extend(case.queries.into_values());
        }
        queries.retain(|query| query.len() < 300);
        messages.retain(|message| message.len() < 2000);
        assert!(queries.len() > 300 && messages.len() > 50, "testdata has shrunk");
        let groups: Groups = toml::from_str(&read("xquery.toml")).expect("a table of programs");
        let mut programs = Vec::new();
        for Group { message, cases } in groups.group {
            programs.extend(cases.into_iter().map(|(query, _)| (query, message.clone())));
        }
        assert!(programs.len() > 300, "testdata has shrunk");
        Seeds { queries, messages, programs }
    }

    pub fn program_and_message(&self, random: &mut Random) -> Vec<u8> {
        let (program, message) = random.of(&self.programs);
        let words: &[&str] = if random.below(2) == 0 { &PROGRAM_WORDS } else { &WORDS };
        let mut input = self.changed(random, program.clone().into_bytes(), words);
        if random.below(4) == 0 {
            self.append_message(random, &mut input);
        } else {
            input.extend_from_slice(b"\n\n");
            input.extend_from_slice(message.as_bytes());
        }
        input
    }

    pub fn query(&self, random: &mut Random) -> Vec<u8> {
        let text = match random.below(3) {
            0 => words(random),
            _ => random.of(&self.queries).clone(),
        };
        self.changed(random, text.into_bytes(), &WORDS)
    }

    pub fn expression(&self, random: &mut Random) -> Vec<u8> {
        let text = match random.below(4) {
            0 => words(random),
            1 => random.of(&self.queries).clone(),
            _ => (*random.of(&EXPRESSIONS)).to_owned(),
        };
        self.changed(random, text.into_bytes(), &WORDS)
    }

    pub fn message(&self, random: &mut Random) -> Vec<u8> {
        let text = random.of(&self.messages).clone();
        self.changed(random, text.into_bytes(), &MARKUP)
    }

    /// Levels, two cuts, and a file that is one message or many.
    pub fn file(&self, random: &mut Random) -> Vec<u8> {
        let mut input: Vec<u8> = (0..3).map(|_| random.below(256) as u8).collect();
        if random.below(2) == 0 {
            input.extend(self.message(random));
            return input;
        }
        input.extend(b"<l><m a='>'>");
        (0..random.below(5)).for_each(|_| input.extend(self.message(random)));
        input.extend(b"</m></l>");
        input
    }

    pub fn expression_and_message(&self, random: &mut Random) -> Vec<u8> {
        let mut input = self.expression(random);
        self.append_message(random, &mut input);
        input
    }

    pub fn queries_and_message(&self, random: &mut Random) -> Vec<u8> {
        let mut input = Vec::new();
        for _ in 0..1 + random.below(8) {
            let line =
                if random.below(2) == 0 { self.query(random) } else { self.expression(random) };
            input.extend(line.iter().filter(|&&byte| byte != b'\n'));
            input.push(b'\n');
        }
        input.pop();
        self.append_message(random, &mut input);
        input
    }

    /// Mostly as it is: a message that is refused shows nothing of queries.
    fn append_message(&self, random: &mut Random, input: &mut Vec<u8>) {
        input.extend_from_slice(b"\n\n");
        if random.below(8) == 0 {
            input.extend(self.message(random));
        } else {
            let own = random.below(3) > 0;
            let message =
                if own { *random.of(&MESSAGES) } else { random.of(&self.messages).as_str() };
            input.extend_from_slice(message.as_bytes());
        }
    }

    fn changed(&self, random: &mut Random, mut bytes: Vec<u8>, words: &[&str]) -> Vec<u8> {
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() + 1);
            match random.below(7) {
                0 => bytes.truncate(at.max(1)),
                1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                3 => {
                    let from = random.below(bytes.len() + 1);
                    let piece: Vec<u8> =
                        bytes[from..].iter().take(random.below(20)).copied().collect();
                    drop(bytes.splice(at..at, piece));
                }
                4 => {
                    let other = random.of(&self.queries).as_bytes();
                    let from = random.below(other.len().max(1)).min(other.len());
                    drop(bytes.splice(at.., other[from..].iter().copied()));
                }
                _ => {
                    let word = random.of(words).as_bytes();
                    drop(bytes.splice(at..at, word.iter().copied()));
                }
            }
        }
        bytes
    }
}

fn words(random: &mut Random) -> String {
    (0..1 + random.below(12)).map(|_| *random.of(&WORDS)).collect()
}
