//! What both make of a message, as one text: the tree with its comments, prefixes and declarations, or
//! the refusal with its place.

use pathcast_core::xml::names::{NameId, NameTable};
use pathcast_core::xml::parser::push::{
    Bounds, EndTag, Handler, Markup, MarkupKind, PushParser, StartTag, Text,
};
use pathcast_core::xml::parser::{Code, Door, Limits, Param, Parsed, Refusal};
use pathcast_core::xml::tree;
use pathcast_core::xml::tree::{NONE, Span};
use std::fmt::Write;

/// A small generator of numbers (xorshift), so that a failure replays from its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Bounds under which the push parser lets in what the door lets in.
pub fn bounds(limits: &Limits) -> Bounds {
    Bounds {
        elements_max: limits.elements_max.into(),
        message_bytes_max: limits.message_bytes_max.into(),
        ..Bounds::default()
    }
}

fn element(out: &mut String, names: &NameTable, name: NameId, prefix: &str) {
    write!(out, "({prefix}|{}|{}", names.uri(name), names.local(name)).expect("a text");
}

fn attribute(out: &mut String, names: &NameTable, name: NameId, prefix: &str, value: &str) {
    let (uri, local) = (names.uri(name), names.local(name));
    write!(out, " @{prefix}|{uri}|{local}={value:?}").expect("a text");
}

fn declaration(out: &mut String, prefix: &str, uri: &str) {
    write!(out, " ns {prefix}={uri:?}").expect("a text");
}

fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A comment or instruction, `source` as written.
fn markup(out: &mut String, is_comment: bool, target: &str, content: &str) {
    write!(out, " <{is_comment} {target:?} {content:?}>").expect("a text");
}

/// Builds the text from events, and checks what must hold of any events.
#[derive(Default)]
pub struct Shown {
    pub out: String,
    text: String,
    open: Vec<(NameId, u64)>,
    /// Sources of all events since the root element began.
    pub sources: String,
    pub begin: Option<u64>,
    pub end: u64,
    pub has_entities: bool,
    pub elements: u64,
}

impl Shown {
    fn flush(&mut self) {
        if !self.text.is_empty() {
            write!(self.out, " {:?}", self.text).expect("a text");
            self.text.clear();
        }
    }

    /// Events of what the document itself holds follow one another without a gap.
    fn cover(&mut self, source: &str, (start, end): (u64, u64), is_in_entity: bool) {
        if is_in_entity {
            self.has_entities = true;
            assert_eq!(start, end);
            assert_eq!(start, self.end, "an entity is referred to where the text before it ends");
            return;
        }
        assert_eq!(end - start, source.len() as u64);
        assert_eq!(start, self.end, "nothing lies between events");
        self.sources.push_str(source);
        self.end = end;
    }
}

impl Handler for Shown {
    fn start(&mut self, tag: &StartTag<'_>) {
        self.flush();
        if self.begin.is_none() {
            self.begin = Some(tag.start);
            self.end = tag.start;
        }
        self.cover(tag.source, (tag.start, tag.end), tag.is_in_entity);
        assert_eq!(tag.depth as usize, self.open.len());
        assert!(tag.source.starts_with('<') && tag.source.ends_with('>'));
        assert_eq!(tag.is_empty, tag.source.ends_with("/>"));
        assert!(tag.source[1..].starts_with(tag.written()));
        let (names, uri) = (tag.names(), tag.names().uri(tag.name));
        assert_eq!(tag.namespace(tag.prefix()).unwrap_or(""), uri);
        self.elements += 1;
        self.open.push((tag.name, tag.start));
        element(&mut self.out, names, tag.name, tag.prefix());
        for (prefix, uri) in tag.declarations() {
            assert_eq!(tag.namespace(prefix).unwrap_or(""), uri);
            declaration(&mut self.out, prefix, uri);
        }
        for it in tag.attributes() {
            attribute(&mut self.out, names, it.name, it.prefix, it.value);
        }
    }

    fn end(&mut self, tag: &EndTag<'_>) {
        self.flush();
        self.cover(tag.source, (tag.start, tag.end), tag.is_in_entity);
        let (name, start) = self.open.pop().expect("an element is open");
        assert_eq!(name, tag.name);
        assert!(start <= tag.start);
        assert_eq!(tag.depth as usize, self.open.len());
        self.out.push(')');
    }

    fn text(&mut self, text: &Text<'_>) {
        assert!(!self.open.is_empty(), "text is inside the root element");
        self.cover(text.source, (text.start, text.end), false);
        self.text.push_str(text.value);
    }

    fn markup(&mut self, it: &Markup<'_>) {
        let is_comment = match it.kind {
            MarkupKind::Declaration | MarkupKind::DocumentType => return,
            MarkupKind::Comment => true,
            MarkupKind::Instruction => false,
        };
        self.flush();
        assert_eq!(it.depth as usize, self.open.len());
        if it.depth > 0 {
            self.cover(it.source, (it.start, it.end), it.is_in_entity);
        }
        // Line ends of entities have been normalised when they were declared.
        let source = if it.is_in_entity { it.source.to_owned() } else { with_line_ends(it.source) };
        if is_comment {
            markup(&mut self.out, true, "", &source[4..source.len() - 3]);
        } else {
            let inside = &source[2..source.len() - 2];
            let is_space = |c: char| " \t\r\n".contains(c);
            let (target, rest) = inside.split_at(inside.find(is_space).unwrap_or(inside.len()));
            markup(&mut self.out, false, target, rest.trim_start_matches(is_space));
        }
    }
}

/// The same text from the door's full tree.
pub fn tree_text(parsed: &Parsed<'_>) -> String {
    Walk { parsed, out: String::new(), text: 0, markup: 0 }.document()
}

struct Walk<'p> {
    parsed: &'p Parsed<'p>,
    out: String,
    text: usize,
    markup: usize,
}

impl Walk<'_> {
    fn of(&self, span: Span) -> &str {
        std::str::from_utf8(self.parsed.message.bytes(span)).expect("a value is UTF-8")
    }

    fn document(mut self) -> String {
        let tree = self.parsed.message.tree;
        self.markups(NONE, tree.markup_start[0]);
        let mut open: Vec<usize> = Vec::new();
        for element in 0..=tree.len() {
            let is_over =
                |outer: usize| element == tree.len() || tree.element_end[outer] as usize <= element;
            while let Some(outer) = open.pop_if(|outer| is_over(*outer)) {
                self.children(outer as u32, tree.text_end[outer], tree.markup_end[outer]);
                self.out.push(')');
            }
            if element < tree.len() {
                if let Some(&outer) = open.last() {
                    self.children(
                        outer as u32,
                        tree.text_start[element],
                        tree.markup_start[element],
                    );
                }
                self.tag(element);
                open.push(element);
            }
        }
        self.markups(NONE, tree.markup_kind.len() as u32);
        self.out
    }

    /// Texts and markup of an element that come before these, in document order.
    fn children(&mut self, parent: u32, text_end: u32, markup_end: u32) {
        let tree = self.parsed.message.tree;
        loop {
            let has_text = self.text < text_end as usize;
            let has_markup = self.markup < markup_end as usize;
            if has_markup && tree.markup_texts_before[self.markup] as usize <= self.text {
                self.markups(parent, self.markup as u32 + 1);
            } else if has_text {
                assert_eq!(tree.text_parent[self.text], parent);
                let value = format!(" {:?}", self.of(tree.text_value[self.text]));
                self.out.push_str(&value);
                self.text += 1;
            } else {
                return assert!(!has_markup);
            }
        }
    }

    fn markups(&mut self, parent: u32, end: u32) {
        let tree = self.parsed.message.tree;
        while self.markup < end as usize {
            assert_eq!(tree.markup_parent[self.markup], parent);
            let is_comment = tree.markup_kind[self.markup] == tree::MarkupKind::Comment;
            let target = self.of(tree.markup_target[self.markup]).to_owned();
            let content = self.of(tree.markup_content[self.markup]).to_owned();
            markup(&mut self.out, is_comment, &target, &content);
            self.markup += 1;
        }
    }

    fn tag(&mut self, at: usize) {
        let (tree, names) = (self.parsed.message.tree, self.parsed.names);
        let prefix = self.of(tree.prefix[at]).to_owned();
        element(&mut self.out, names, tree.name[at], &prefix);
        for it in tree.declaration_start[at] as usize..tree.declaration_start[at + 1] as usize {
            let prefix = self.of(tree.declaration_prefix[it]).to_owned();
            let uri = self.of(tree.declaration_uri[it]).to_owned();
            declaration(&mut self.out, &prefix, &uri);
        }
        for it in tree.attribute_start[at] as usize..tree.attribute_start[at + 1] as usize {
            let prefix = self.of(tree.attribute_prefix[it]).to_owned();
            let value = self.of(tree.attribute_value[it]).to_owned();
            attribute(&mut self.out, names, tree.attribute_name[it], &prefix, &value);
        }
    }
}

/// A door and a parser that are used for message after message.
pub struct Both {
    door: Door,
    relaxed: Door,
    parser: PushParser,
}

pub type Outcome = Result<String, Refusal>;

impl Both {
    pub fn new(limits: Limits) -> Self {
        let mut door = Door::new(limits.clone());
        door.keep_full_tree(true);
        let any_ratio = Limits { entity_expansion_ratio_max: u32::MAX, ..limits.clone() };
        let relaxed = Door::new(any_ratio);
        let parser = PushParser::new(limits.clone(), bounds(&limits));
        Both { door, relaxed, parser }
    }

    /// What the push parser must say: what the door says; where the door looks ahead, what it says of the
    /// message up to there.
    pub fn expected(&mut self, message: &[u8], encoding: Option<&str>) -> Outcome {
        let found = self.door.parse(message, encoding).map(|parsed| tree_text(&parsed));
        let Err(refusal) = &found else { return found };
        match refusal.code {
            // How much too long it is, nobody knows before its end.
            Code::LimitMessageBytes => {
                let mut refusal = refusal.clone();
                let Param::Int(maximum) = refusal.params[2].1 else { panic!("{refusal}") };
                refusal.params[1].1 = Param::Int(maximum + 1);
                Err(refusal)
            }
            Code::EncodingInvalid => {
                let good = &message[..refusal.offset as usize];
                match self.relaxed.parse(good, encoding) {
                    Err(before) if before.code != Code::End => Err(before),
                    _ => found,
                }
            }
            Code::LimitEntityExpansion => match self.relaxed.parse(message, encoding) {
                Err(other) => Err(other),
                Ok(_) => found,
            },
            _ => found,
        }
    }

    /// What the push parser says when the message comes in these blocks.
    pub fn pushed<'b>(
        &mut self,
        blocks: impl Iterator<Item = &'b [u8]>,
        encoding: Option<&str>,
    ) -> (Outcome, Shown) {
        self.parser.begin(encoding);
        let mut shown = Shown::default();
        let mut outcome = Ok(());
        for block in blocks {
            outcome = self.parser.feed(block, &mut shown);
            if outcome.is_err() {
                break;
            }
        }
        let outcome = outcome.and_then(|()| self.parser.finish(&mut shown));
        if outcome.is_ok() {
            assert_eq!(self.parser.depth(), 0);
            assert_eq!(self.parser.elements(), shown.elements);
            assert!(!shown.has_entities || !self.parser.is_verbatim());
        }
        (outcome.map(|()| std::mem::take(&mut shown.out)), shown)
    }

    /// Asserts that a message cut like this comes to the expected end.
    pub fn check<'b>(
        &mut self,
        message: &[u8],
        blocks: impl Iterator<Item = &'b [u8]>,
        encoding: Option<&str>,
        expected: &Outcome,
        cut: &str,
    ) {
        let (found, shown) = self.pushed(blocks, encoding);
        let told = || format!("{:?} {encoding:?} {cut}", String::from_utf8_lossy(message));
        assert_eq!(&found, expected, "{}", told());
        if let (Ok(_), Some(begin), Ok(text)) = (&found, shown.begin, std::str::from_utf8(message))
            && !is_declared_otherwise(message, encoding)
        {
            let source = &text[begin as usize..shown.end as usize];
            assert_eq!(shown.sources, source, "{}", told());
        }
    }

    /// In one block, byte by byte, and at random places.
    pub fn check_some_cuts(
        &mut self,
        message: &[u8],
        encoding: Option<&str>,
        random: &mut Random,
        times: usize,
    ) {
        let expected = self.expected(message, encoding);
        self.check(message, std::iter::once(message), encoding, &expected, "whole");
        self.check(message, message.chunks(1), encoding, &expected, "byte by byte");
        for _ in 0..times {
            let most = [4, 16, 100, 1000][random.below(4)];
            let mut rest = message;
            let mut blocks = Vec::new();
            while !rest.is_empty() {
                let (block, after) = rest.split_at((1 + random.below(most)).min(rest.len()));
                blocks.push(block);
                rest = after;
            }
            let cut = format!("{:?}", blocks.iter().map(|block| block.len()).collect::<Vec<_>>());
            self.check(message, blocks.into_iter(), encoding, &expected, &cut);
        }
    }

    /// At every place, or every so many, into two blocks.
    pub fn check_every_cut(&mut self, message: &[u8], encoding: Option<&str>, step: usize) {
        let expected = self.expected(message, encoding);
        for at in (0..=message.len()).step_by(step) {
            let (first, second) = message.split_at(at);
            let blocks = [first, second].into_iter();
            self.check(message, blocks, encoding, &expected, &format!("at {at}"));
        }
    }
}

fn is_declared_otherwise(message: &[u8], encoding: Option<&str>) -> bool {
    encoding.is_some_and(|label| !label.eq_ignore_ascii_case("utf-8"))
        || message.windows(9).any(|it| it == b"encoding=")
        || message.starts_with(&[0])
        || message.contains(&0)
}
