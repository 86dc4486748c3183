//! Damaged messages and noise: a verdict for each, never a panic, and a tree that is whole.

use crate::dump::check_columns;
use pathcast_core::xml::parser::{Door, Limits};

/// A small generator of its own, so that a failure replays from the seed that it prints.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

const MESSAGES: [&str; 4] = [
    "<?xml version='1.0' encoding='UTF-8'?>\n<!-- c --><a x=\"1\" y='&lt;'>t&amp;<b>é</b>]<![CDATA[<]]><?p q?></a>\n",
    "<!DOCTYPE a [<!ENTITY e \"x<b c='1'/>\"><!ENTITY % p \"<!ATTLIST a d NMTOKENS ' 1  2 '>\">%p;\
     <!ELEMENT a (b|(c,d)*)+><!NOTATION n SYSTEM 'n'><!ENTITY u SYSTEM 'u' NDATA n>]><a>&e;&e;</a>",
    "<p:a xmlns:p='urn:p' xmlns='urn:d' p:q='1'><b xmlns=''><p:c xmlns:p='v'/></b><p:d r=' x\ty '/></p:a>",
    "<a>\r\n<b>1</b>\r<c/>&#13;&#x1F600;</a>",
];

fn try_message(door: &mut Door, message: &[u8], encoding: Option<&str>) {
    match door.parse(message, encoding) {
        Ok(parsed) => check_columns(&parsed),
        Err(refusal) => {
            assert!(refusal.line > 0 && refusal.column > 0);
            assert!(refusal.offset <= message.len() as u64, "{refusal}");
        }
    }
}

/// Fails when a message that is cut anywhere is taken for a whole one, or brings the door down.
#[test]
fn every_cut_is_refused() {
    let mut door = Door::new(Limits::default());
    for message in MESSAGES {
        let whole = message.trim_end();
        assert!(door.parse(whole.as_bytes(), None).is_ok(), "{whole}");
        for cut in 0..whole.len() {
            assert!(
                door.parse(&whole.as_bytes()[..cut], None).is_err(),
                "{}",
                &whole[..whole.floor_char_boundary(cut)]
            );
        }
    }
}

/// Fails when a changed byte brings the door down or gives a tree that is not whole.
#[test]
fn changed_bytes_give_a_verdict() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let mut door = Door::new(Limits::default());
    for round in 0..20_000 {
        door.keep_full_tree(round % 2 == 0);
        let mut bytes = MESSAGES[noise.below(MESSAGES.len())].as_bytes().to_vec();
        for _ in 0..1 + noise.below(4) {
            let at = noise.below(bytes.len());
            match noise.below(4) {
                0 => bytes[at] ^= 1 << noise.below(8),
                1 => bytes[at] = b"<>&;'\"[]!?-%/= \r\n\0x:"[noise.below(20)],
                2 => drop(bytes.remove(at)),
                _ => {
                    let from = noise.below(bytes.len());
                    let piece: Vec<u8> =
                        bytes[from..].iter().take(noise.below(12)).copied().collect();
                    bytes.splice(at..at, piece);
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        try_message(&mut door, &bytes, None);
    }
}

/// Fails when bytes that are no message at all bring the door down, in any encoding.
#[test]
fn random_bytes_give_a_verdict() {
    let mut noise = Noise(0xD1B5_4A32_D192_ED03);
    let mut door = Door::new(Limits::default());
    let encodings = [
        None,
        Some("utf-16"),
        Some("iso-8859-1"),
        Some("shift_jis"),
        Some("gb18030"),
        Some("iso-2022-jp"),
        Some("iso-8859-9"),
    ];
    for _ in 0..20_000 {
        let length = noise.below(60);
        let mut bytes: Vec<u8> = (0..length).map(|_| noise.next() as u8).collect();
        if noise.below(2) == 0 {
            let start: &[u8] =
                [&b"<a>"[..], b"\xff\xfe<\0a\0", b"<?xml ", b"<!DOCTYPE a ["][noise.below(4)];
            bytes.splice(0..0, start.iter().copied());
        }
        try_message(&mut door, &bytes, encodings[noise.below(encodings.len())]);
    }
}
