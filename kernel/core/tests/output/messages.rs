//! Messages made by chance: namespaces declared, redeclared and undeclared at every level, all ways
//! of writing the same text, entities, declared attributes, other encodings.

/// A small generator of numbers (SplitMix64): messages replay from their seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub fn of<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}

pub const PREFIXES: [&str; 4] = ["", "p", "q", "é"];
/// As written in a message between double quotes.
pub const URIS: [&str; 4] = ["urn:a", "urn:b", "u?x=1&amp;y='2'", "urn:ü&lt;"];
const XML: &str = "http://www.w3.org/XML/1998/namespace";
const LOCALS: [&str; 5] = ["a", "b", "c", "long-name.with_everything", "ä"];
const TEXTS: [&str; 18] = [
    "x",
    " ",
    "\n  ",
    "a long run of text without anything in it that has to be looked at twice, ",
    "]]",
    "]",
    ">",
    "&lt;",
    "&amp;",
    "&gt;",
    "&#13;",
    "&#x9;&#10;",
    "&apos;\"'",
    "\r\n",
    "\r",
    "ünïcödé \u{10400} \u{feff}",
    "&#x1F600;",
    "\t",
];
const CDATA: [&str; 5] = ["", "<a/>", "&amp; & ]] >", "\r\nx", "<!-- no -->"];
const VALUES: [&str; 11] = [
    "v",
    " two  words ",
    "&lt;&amp;&gt;",
    "&#9;&#10;&#13;",
    "\t\n\r\n",
    "&quot;&apos;",
    ">",
    "é\u{10400}",
    "a value longer than what is looked at in one go, without anything",
    "",
    "{}",
];
const MARKUP: [&str; 6] =
    ["<!---->", "<!-- - \r\n & < -->", "<?t?>", "<?t  x > ?>", "<?t ?>", "<?xml-x a?b?>"];
const SUBSET: [&str; 9] = [
    "<!ENTITY e1 'text &#38;lt; &#38;#13;'>",
    "<!ENTITY e2 '<a xmlns=\"urn:b\"><p:b xmlns:p=\"urn:e\"/>t</a><!--in&#13;side-->'>",
    "<!ENTITY e3 '&e1;<b x=\"1\" y=\"&e1;\"><?t in?></b>'>",
    "<!ENTITY e4 SYSTEM 'nowhere'>",
    "<!ATTLIST a d CDATA 'de&#38;lt;fault'>",
    "<!ATTLIST b n NMTOKENS #IMPLIED xml:lang CDATA 'de'>",
    "<!ATTLIST c xmlns:z CDATA 'urn:z' z:d CDATA 'z'>",
    "<!ATTLIST b xmlns CDATA 'urn:dtd'>",
    "<!ENTITY % pe '<!ATTLIST p:a w CDATA \"w\">'>%pe;",
];

struct Maker<'r> {
    random: &'r mut Random,
    out: String,
    entities: Vec<&'static str>,
}

/// A message; refused by the door now and then, where chance has been unlucky.
pub fn message(random: &mut Random) -> String {
    let mut maker = Maker { random, out: String::new(), entities: Vec::new() };
    if maker.chance(3) {
        maker.out.push_str("<?xml version=\"1.0\"?>");
    }
    maker.misc();
    if maker.chance(3) {
        maker.doctype();
        maker.misc();
    }
    let size = maker.random.below(6);
    maker.element(size, &mut vec![]);
    maker.misc();
    maker.out
}

impl Maker<'_> {
    fn chance(&mut self, of: usize) -> bool {
        self.random.below(of) == 0
    }

    fn misc(&mut self) {
        while self.chance(3) {
            let misc = *self.random.of(&["\n", "<!-- misc -->", "<?t misc?>", " ", "<!---->"]);
            self.out.push_str(misc);
        }
    }

    fn doctype(&mut self) {
        self.out.push_str("<!DOCTYPE a");
        if self.chance(4) {
            self.out.push_str(" SYSTEM 'x'");
            self.entities.push("&undeclared;");
        }
        self.out.push_str(" [");
        for (number, declaration) in SUBSET.iter().enumerate() {
            // The third entity refers to the first.
            if self.chance(2) || number == 0 {
                self.out.push_str(declaration);
                if number < 4 {
                    self.entities.push(["&e1;", "&e2;", "&e3;", "&e4;"][number]);
                }
            }
        }
        self.out.push_str("<!-- not part of it --><?t nor this?>]>");
    }

    /// An element; `scope` holds the prefixes in scope.
    fn element(&mut self, size: usize, scope: &mut Vec<&'static str>) {
        let before = scope.len();
        let mut tag = String::new();
        for prefix in PREFIXES {
            if !self.chance(4) {
                continue;
            }
            let uri = if prefix.is_empty() && self.chance(2) { "" } else { self.random.of(&URIS) };
            let colon = if prefix.is_empty() { "" } else { ":" };
            let quote = if uri.contains('\'') || self.chance(2) { '"' } else { '\'' };
            tag.push_str(&format!("{}xmlns{colon}{prefix}={quote}{uri}{quote}", self.space()));
            scope.push(prefix);
        }
        if self.chance(20) {
            tag.push_str(&format!(" xmlns:xml=\"{XML}\""));
        }
        let prefix = self.prefix(scope);
        let name = format!("{prefix}{}", self.random.of(&LOCALS));
        self.attributes(&mut tag, scope);
        if self.chance(4) {
            tag.push_str(self.space());
        }
        self.out.push_str(&format!("<{name}{tag}"));
        if size == 0 || self.chance(6) {
            let end = if self.chance(2) { "/>".to_owned() } else { format!(" ></{name}>") };
            self.out.push_str(&end);
        } else {
            self.out.push('>');
            self.content(size, scope);
            let end = if self.chance(4) { "\r\n>" } else { ">" };
            self.out.push_str(&format!("</{name}{end}"));
        }
        scope.truncate(before);
    }

    fn content(&mut self, size: usize, scope: &mut Vec<&'static str>) {
        for _ in 0..self.random.below(7) {
            match self.random.below(8) {
                0..=3 => {
                    let size = size - 1 - self.random.below(size.min(2));
                    self.element(size, scope);
                }
                4 => {
                    for _ in 0..1 + self.random.below(3) {
                        let text = *self.random.of(&TEXTS);
                        let is_end = text.starts_with('>') && self.out.ends_with("]]");
                        self.out.push_str(if is_end { "&gt;" } else { text });
                    }
                }
                5 => {
                    let text = self.random.of(&CDATA);
                    self.out.push_str(&format!("<![CDATA[{text}]]>"));
                }
                6 => {
                    let markup = *self.random.of(&MARKUP);
                    self.out.push_str(markup);
                }
                _ => {
                    let entity = self.entity();
                    self.out.push_str(entity);
                }
            }
        }
    }

    fn entity(&mut self) -> &'static str {
        if self.entities.is_empty() {
            return "";
        }
        let entities = std::mem::take(&mut self.entities);
        let entity = *self.random.of(&entities);
        self.entities = entities;
        entity
    }

    fn attributes(&mut self, tag: &mut String, scope: &[&'static str]) {
        for local in ["x", "y", "n", "ö", "lang"] {
            if !self.chance(4) {
                continue;
            }
            let prefix =
                if local == "lang" { "xml:".to_owned() } else { self.prefix_of_attribute(scope) };
            let mut value = (*self.random.of(&VALUES)).to_owned();
            let entity = if self.chance(4) { self.entity() } else { "" };
            // The others hold elements, or are external.
            if entity == "&e1;" {
                value.push_str(entity);
            }
            let quote = if value.contains('"') || self.chance(2) { '\'' } else { '"' };
            let equals = if self.chance(6) { " = " } else { "=" };
            tag.push_str(&format!("{}{prefix}{local}{equals}{quote}{value}{quote}", self.space()));
        }
    }

    fn space(&mut self) -> &'static str {
        if self.chance(5) { "\r\n\t" } else { " " }
    }

    fn prefix(&mut self, scope: &[&'static str]) -> String {
        if scope.is_empty() || self.chance(2) {
            return String::new();
        }
        match *self.random.of(scope) {
            "" => String::new(),
            prefix => format!("{prefix}:"),
        }
    }

    fn prefix_of_attribute(&mut self, scope: &[&'static str]) -> String {
        if self.chance(2) { String::new() } else { self.prefix(scope) }
    }
}
