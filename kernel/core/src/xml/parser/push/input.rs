//! Bytes to text, block by block: what [`super::super::encoding`] does for a message as a whole.

use super::super::chars::{first_illegal, survey};
use super::super::encoding::{Charset, Detected, invalid};
use super::super::refusal::{Code, Fault};
use encoding_rs::{Decoder, DecoderResult, UTF_16BE, UTF_16LE};

/// What ends the text before the message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A character that XML does not have.
    Character(char),
    /// Bytes that are no text.
    Encoding,
}

/// The text that is held, and how more bytes become more of it.
pub(super) struct Input {
    pub(crate) text: String,
    pub(crate) detected: Detected,
    /// Bytes of a character of UTF-8 that has not arrived as a whole.
    cut: Vec<u8>,
    decoder: Option<Decoder>,
    /// Of an encoding with several bytes a character: where in the text characters end, and in the
    /// message.
    pub(crate) ends: Vec<(usize, u64)>,
    /// Bytes that have gone into the decoder.
    decoded: u64,
    pub(crate) has_return: bool,
    pub(crate) stop: Option<Stop>,
}

impl Input {
    pub(crate) fn new() -> Self {
        let detected = Detected { charset: Charset::Utf8, mark: 0, is_given: false };
        Input {
            text: String::new(),
            detected,
            cut: Vec::new(),
            decoder: None,
            ends: Vec::new(),
            decoded: 0,
            has_return: false,
            stop: None,
        }
    }

    /// Begins a message.
    pub(crate) fn begin(&mut self, detected: Detected) {
        self.text.clear();
        self.cut.clear();
        self.ends.clear();
        self.detected = detected;
        self.decoded = 0;
        self.has_return = false;
        self.stop = None;
        self.decoder = match detected.charset {
            Charset::Utf16Be => Some(UTF_16BE.new_decoder_without_bom_handling()),
            Charset::Utf16 | Charset::Utf16Le => Some(UTF_16LE.new_decoder_without_bom_handling()),
            Charset::Other(encoding) => Some(encoding.new_decoder_without_bom_handling()),
            Charset::Iso(encoding) => Some(encoding.new_decoder_without_bom_handling()),
            Charset::Utf8 | Charset::Ascii | Charset::Latin1 => None,
        };
    }

    /// Whether a byte of the message is a byte of the text.
    pub(crate) fn is_verbatim(&self) -> bool {
        matches!(self.detected.charset, Charset::Utf8 | Charset::Ascii)
    }

    /// Whether offsets in the message have to be kept in [`Input::ends`].
    pub(crate) fn is_multibyte(&self) -> bool {
        matches!(self.detected.charset, Charset::Other(encoding) if !encoding.is_single_byte())
    }

    /// Adds a block to the text.
    pub(crate) fn add(&mut self, block: &[u8], is_last: bool) {
        if self.stop.is_some() {
            return;
        }
        let from = self.text.len();
        let is_text = match self.detected.charset {
            Charset::Utf8 => self.add_utf8(block, is_last),
            Charset::Ascii => self.add_ascii(block),
            Charset::Latin1 => {
                self.text.extend(block.iter().map(|&byte| char::from(byte)));
                true
            }
            Charset::Iso(_) => self.add_iso(block),
            _ if self.is_multibyte() => self.add_multibyte(block, is_last),
            _ => self.decode(block, is_last),
        };
        let added = &self.text[from..];
        let found = survey(added.as_bytes());
        self.has_return |= found.has_return;
        if let Some(at) = first_illegal(added, found) {
            self.stop = added[at..].chars().next().map(Stop::Character);
            self.text.truncate(from + at);
        } else if !is_text {
            self.stop = Some(Stop::Encoding);
        }
    }

    /// Why the message is refused, if nothing before [`Input::stop`] is at fault.
    pub(crate) fn stop_fault(&self, stop: Stop) -> Box<Fault> {
        let at = self.text.len();
        match stop {
            Stop::Encoding => invalid(self.detected.charset, at),
            Stop::Character(c) => {
                let shown = format!("U+{:04X}", u32::from(c));
                Fault::new(Code::Character, at).text("character", &shown)
            }
        }
    }

    fn add_utf8(&mut self, mut block: &[u8], is_last: bool) -> bool {
        while !self.cut.is_empty()
            && let [first, rest @ ..] = block
        {
            self.cut.push(*first);
            block = rest;
            match std::str::from_utf8(&self.cut) {
                Ok(character) => {
                    self.text.push_str(character);
                    self.cut.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return false,
            }
        }
        match std::str::from_utf8(block) {
            Ok(text) => self.text.push_str(text),
            Err(error) => {
                let (good, rest) = block.split_at(error.valid_up_to());
                self.text.push_str(std::str::from_utf8(good).unwrap_or(""));
                if error.error_len().is_some() {
                    return false;
                }
                self.cut.extend_from_slice(rest);
            }
        }
        self.cut.is_empty() || !is_last
    }

    fn add_ascii(&mut self, block: &[u8]) -> bool {
        let good = block.iter().position(|&byte| byte >= 0x80).unwrap_or(block.len());
        self.text.push_str(std::str::from_utf8(&block[..good]).unwrap_or(""));
        good == block.len()
    }

    /// A single-byte encoding in which the C1 controls are themselves.
    fn add_iso(&mut self, block: &[u8]) -> bool {
        let is_c1 = |byte: u8| (0x80..0xA0).contains(&byte);
        block.chunk_by(|a, b| is_c1(*a) == is_c1(*b)).all(|run| {
            if is_c1(run[0]) {
                self.text.extend(run.iter().map(|&byte| char::from(byte)));
                return true;
            }
            self.decode(run, false)
        })
    }

    fn decode(&mut self, mut block: &[u8], is_last: bool) -> bool {
        let Some(decoder) = &mut self.decoder else { return true };
        loop {
            let room = decoder.max_utf8_buffer_length_without_replacement(block.len());
            self.text.reserve(room.unwrap_or(block.len()));
            let (result, read) =
                decoder.decode_to_string_without_replacement(block, &mut self.text, is_last);
            block = &block[read..];
            match result {
                DecoderResult::InputEmpty => return true,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => return false,
            }
        }
    }

    /// Byte by byte, so that it is known which bytes a character came from.
    fn add_multibyte(&mut self, block: &[u8], is_last: bool) -> bool {
        for at in 0..block.len() {
            let before = self.text.len();
            let is_good = self.decode(&block[at..=at], false);
            self.decoded += 1;
            if self.text.len() > before {
                self.ends.push((self.text.len(), self.detected.mark as u64 + self.decoded));
            }
            if !is_good {
                return false;
            }
        }
        !is_last || self.decode(&[], true)
    }
}
