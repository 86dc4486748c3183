//! What must hold of any text and its stream, and of any bytes that claim to be a stream.

use pathcast_core::xml::parser::wire::{Dictionaries, Dictionary, Encoder, is_stream, text_of};
use pathcast_core::xml::parser::{Code, Door, Limits, Parsed, Refusal};
use std::sync::Arc;

/// Version of the dictionary of [`Both::new`].
pub const VERSION: [u8; 8] = *b"\0names\xFF\x80";

/// A generator of its own, so that a failure replays from its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Doors that keep a slim tree, a full one, source spans, and both.
const KEEPS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

pub struct Both {
    limits: Limits,
    pub dictionaries: Arc<Dictionaries>,
    dictionary: Dictionary,
    encoder: Encoder,
    /// Streams that were as good as their texts.
    pub equal: usize,
}

impl Both {
    /// The dictionary knows these names, one of which is none and one of which is there twice.
    pub fn new(limits: Limits) -> Self {
        let names =
            ["a", "b", "p:c", "no name", "x", "xml:lang", "xmlns", "xmlns:p", "a", "nitf", "id"];
        let dictionary = || Dictionary::new(VERSION, names.map(str::to_owned).to_vec());
        let dictionaries = Arc::new(Dictionaries::default());
        dictionaries.add(dictionary());
        let (dictionary, encoder) = (dictionary(), Encoder::default());
        Both { limits, dictionaries, dictionary, encoder, equal: 0 }
    }

    pub fn door(&self, (is_full, has_spans): (bool, bool)) -> Door {
        let mut door = Door::new(self.limits.clone());
        door.keep_full_tree(is_full);
        door.keep_source_spans(has_spans);
        door.take_streams(Some(Arc::clone(&self.dictionaries)));
        door
    }

    /// The streams of a text: with and without the dictionary; none where it travels as text.
    pub fn streams(&mut self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut streams = Vec::new();
        for dictionary in [None, Some(&self.dictionary)] {
            let mut stream = b"before".to_vec();
            let is_written = self.encoder.encode(text, dictionary, &mut stream);
            assert_eq!(stream[..6], *b"before");
            assert_eq!(is_written, stream.len() > 6);
            if is_written {
                streams.push(stream.split_off(6));
            }
        }
        streams
    }

    /// A text is read as its streams are, or refused for the same reason.
    pub fn check_text(&mut self, text: &[u8]) {
        for stream in self.streams(text) {
            assert!(is_stream(&stream) && stream.len() < text.len());
            match text_of(&stream, &self.dictionaries, &self.limits) {
                Ok(rebuilt) => assert_eq!(rebuilt.as_bytes(), text),
                Err(refusal) => assert_eq!(refusal.code, Code::LimitMessageBytes),
            }
            for keeps in KEEPS {
                let (mut one, mut other) = (self.door(keeps), self.door(keeps));
                match (one.parse(text, None), other.parse(&stream, None)) {
                    (Ok(text), Ok(stream)) => {
                        check_equal(&text, &stream);
                        self.equal += 1;
                    }
                    (Err(text), Err(found)) => {
                        check_place(&found, &stream);
                        assert_eq!(family(text.code), family(found.code), "{text} / {found}");
                    }
                    (Ok(_), Err(refusal)) => panic!("only the stream is refused: {refusal}"),
                    (Err(refusal), Ok(_)) => panic!("only the text is refused: {refusal}"),
                }
            }
        }
    }

    /// Bytes are refused, or read as the text is that they stand for.
    pub fn check_stream(&mut self, stream: &[u8]) {
        if !is_stream(stream) {
            return;
        }
        let text = text_of(stream, &self.dictionaries, &self.limits);
        for keeps in KEEPS {
            let (mut one, mut other) = (self.door(keeps), self.door(keeps));
            match (other.parse(stream, None), &text) {
                (Err(refusal), _) => check_place(&refusal, stream),
                (Ok(_), Err(refusal)) => panic!("a stream without a text is read: {refusal}"),
                (Ok(stream), Ok(text)) => {
                    let text = one.parse(text.as_bytes(), Some("UTF-8"));
                    check_equal(&text.expect("the text of a stream that was read"), &stream);
                    self.equal += 1;
                }
            }
        }
    }
}

/// A text and its stream are refused for the same reason; where a message ends too early, and in
/// what, is a matter of how far one has read.
fn family(code: Code) -> &'static str {
    let code = code.as_str();
    if code.starts_with("limit.") || code == "dtd.refused" { code } else { "ill-formed" }
}

fn check_place(refusal: &Refusal, stream: &[u8]) {
    assert!(refusal.offset <= stream.len() as u64, "{refusal}");
    assert_eq!((refusal.line, refusal.column), (1, refusal.offset + 1));
}

/// Every column is the same, the names behind the numbers, and the bytes behind the spans.
fn check_equal(text: &Parsed<'_>, stream: &Parsed<'_>) {
    assert_eq!(text.original, stream.original);
    assert_eq!(text.message.source, stream.message.source);
    let columns = |parsed: &Parsed<'_>| {
        let decoded = format!("decoded: {:?}", parsed.message.tree.decoded);
        format!("{:?}", parsed.message.tree).replace(&decoded, "")
    };
    assert_eq!(columns(text), columns(stream));
    let names = |parsed: &Parsed<'_>| {
        let ids = 0..parsed.names.len() as u32;
        ids.map(|id| format!("{{{}}}{}", parsed.names.uri(id), parsed.names.local(id)))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(text), names(stream));
}
