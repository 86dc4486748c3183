//! Messages that are mutated, in many encodings, and hostile ones, at random cuts.

use crate::oracle::{Both, Random};
use crate::seeds;
use pathcast_core::xml::parser::{DtdPolicy, Limits};
use std::time::{Duration, Instant};

/// Messages without a count of seconds in `PATHCAST_FUZZ_SECONDS`.
const MESSAGES: usize = 1_500;

fn rounds(mut round: impl FnMut(usize)) {
    let seconds = std::env::var("PATHCAST_FUZZ_SECONDS").ok().and_then(|it| it.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut done = 0;
    while end.map_or(done < MESSAGES, |end| Instant::now() < end) {
        round(done);
        done += 1;
    }
    println!("{done} messages");
}

/// Fails when damage is found, or overlooked, depending on the cuts.
#[test]
fn mutated_messages_at_random_cuts() {
    let seeds = seeds::Seeds::load();
    let mut source = seeds::Random(0x5EED_0010);
    let mut random = Random(0x5EED_0011);
    let mut both = Both::new(Limits::default());
    rounds(|round| {
        let message = seeds.message(&mut source);
        both.check_some_cuts(&message, None, &mut random, 2);
        if round % 16 == 0 && message.len() < 300 {
            both.check_every_cut(&message, None, 1);
        }
    });
}

/// Fails when a limit is enforced elsewhere than at the door.
#[test]
fn mutated_messages_under_tight_limits() {
    let seeds = seeds::Seeds::load();
    let mut source = seeds::Random(0x5EED_0020);
    let mut random = Random(0x5EED_0021);
    let tight = Limits {
        depth_max: 3,
        elements_max: 5,
        attributes_max: 2,
        attribute_value_bytes_max: 6,
        entity_expansion_ratio_max: 1,
        entity_expansion_bytes_max: 40,
        names_max: 4,
        ..Limits::default()
    };
    let mut all = [
        Both::new(tight.clone()),
        Both::new(Limits { dtd: DtdPolicy::Refuse, ..Limits::default() }),
        Both::new(Limits { depth_max: 100, elements_max: 100, ..tight }),
    ];
    rounds(|round| {
        let message = seeds.message(&mut source);
        all[round % 3].check_some_cuts(&message, None, &mut random, 2);
    });
}

/// Bytes of a text in an encoding that is named in its declaration, or shown by a mark.
fn encoded(text: &str, label: &str) -> Vec<u8> {
    let units = text.encode_utf16();
    match label {
        "utf-16le" => [0xFF, 0xFE].into_iter().chain(units.flat_map(u16::to_le_bytes)).collect(),
        "utf-16be" => units.flat_map(u16::to_be_bytes).collect(),
        "utf-8" => ["\u{FEFF}", text].concat().into_bytes(),
        "iso-8859-1" => {
            let text = format!("<?xml version='1.0' encoding='{label}'?>{text}");
            text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
        }
        _ => {
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).expect("a label");
            let text = format!("<?xml version='1.0' encoding='{label}'?>{text}");
            encoding.encode(&text).0.into_owned()
        }
    }
}

const LABELS: [&str; 12] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "iso-8859-1",
    "iso-8859-9",
    "iso-8859-11",
    "windows-1251",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "gb18030",
    "big5",
];

/// Fails when a character that lies in two blocks is read otherwise, or an offset is told in other bytes.
#[test]
fn every_encoding_at_random_cuts() {
    let seeds = seeds::Seeds::load();
    let mut source = seeds::Random(0x5EED_0030);
    let mut random = Random(0x5EED_0031);
    let mut both = Both::new(Limits::default());
    let words = ["é", "ü\n", "日本語", "<b x='漢\r\n字'/>", "Ж", "\u{1F600}", "ก", "&x;", "</b>"];
    rounds(|_| {
        let mut text = String::from_utf8_lossy(&seeds.message(&mut source)).into_owned();
        for _ in 0..random.below(5) {
            let at = text.floor_char_boundary(random.below(text.len() + 1));
            text.insert_str(at, words[random.below(words.len())]);
        }
        let label = LABELS[random.below(LABELS.len())];
        let mut message = encoded(&text, label);
        if random.below(3) == 0 && !message.is_empty() {
            let at = random.below(message.len());
            message[at] = random.next() as u8;
        }
        let given = [None, None, Some(label), Some("utf-16"), Some("shift_jis")][random.below(5)];
        both.check_some_cuts(&message, given, &mut random, 1);
    });
}

/// Long constructs, which take many pieces: the same as at the door.
#[test]
fn long_constructs_at_random_cuts() {
    let long = 300_000;
    let limits = Limits { attribute_value_bytes_max: 1 << 30, ..Limits::default() };
    let mut both = Both::new(limits);
    let mut random = Random(0x5EED_0040);
    let names: String = (0..5_000).map(|at| format!("<n{at} xmlns:p{at}='u{at}'/>\n")).collect();
    for message in [
        format!("<{0}>é</{0}>", "n".repeat(long)),
        format!("<a {}=''>\r\n</b>", "n".repeat(long)),
        format!("<a>{}</a>", "]".repeat(long)),
        format!("<a>{}]]></a>", "]".repeat(long)),
        format!("<a><![CDATA[{}]]>&lt;{}</a>", "]>\r\n&".repeat(long / 4), "x\r".repeat(long)),
        format!("<a><![CDATA[{}", "x".repeat(long)),
        format!("<a>{}</a>", "&#65;é".repeat(long / 6)),
        format!("<a>&#{}65;&#{};</a>", "0".repeat(long), "0".repeat(long)),
        format!("<a>{}</a>", "<!---->\r".repeat(long / 8)),
        format!("<a b='{}'>{}</a>", ">\r\n".repeat(long / 3), " ".repeat(long)),
        format!("<!--{}--><?p {}?><a/>{}", "- ".repeat(long), "?>".repeat(2), " ".repeat(long)),
        format!("<a>{}", "<".repeat(long)),
        format!("<!DOCTYPE a [{}]><a/>", "<!ENTITY e 'x'>".repeat(long / 15)),
        format!("<!DOCTYPE a [<!ELEMENT a {}b{}>]><a/>", "(".repeat(long), ")".repeat(long)),
        format!("<!DOCTYPE a [<!ATTLIST a b ({}x) 'x'>]><a/>", "x|".repeat(long)),
        format!("<a>{names}<p:x/></a>"),
        format!("<a>{}\n{}</a>", "<b>".repeat(250), "</b>".repeat(250)),
        format!("<a>{}</a>\n{}", "\r\n".repeat(long), "<?p?>\n".repeat(long / 6)),
    ] {
        let message = message.as_bytes();
        let expected = both.expected(message, None);
        for _ in 0..2 {
            let size =
                [1 + random.below(1000), 1 + random.below(message.len()), 65536][random.below(3)];
            let shown = String::from_utf8_lossy(&message[..40]).into_owned();
            both.check(
                message,
                message.chunks(size),
                None,
                &expected,
                &format!("{shown} by {size}"),
            );
        }
    }
}

/// Fails when the place or the verdict of what entities expand to depends on when bytes arrive.
#[test]
fn the_ratio_of_entities_is_judged_by_the_whole_message() {
    let mut both = Both::new(Limits::default());
    let mut random = Random(0x5EED_0050);
    for round in 0..300 {
        let text = "x".repeat(random.below(60));
        let declared = format!("<!ENTITY e '{text}'><!ENTITY f '&e;<b/>&e;'><!ENTITY g '&f;&f;'>");
        let list = "<!ATTLIST c d CDATA '&f0;' x NMTOKENS ' 1  2 '>".replace("&f0;", &text);
        let mut body = String::new();
        for _ in 0..random.below(40) {
            body.push_str(["&e;", "&f;\n", "<c/>", "<c d='&e;&e;'/>", "&g;"][random.below(5)]);
        }
        body.push_str(&" ".repeat(random.below(400)));
        let end = if round % 5 == 0 { "</b>" } else { "</a>" };
        let message = format!("<!DOCTYPE a [{declared}{list}]>\n<a>{body}{end}");
        both.check_some_cuts(message.as_bytes(), None, &mut random, 2);
    }
}
