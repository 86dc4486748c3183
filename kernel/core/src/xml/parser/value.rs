//! Attribute-value normalisation (3.3.3), for values in tags and for defaults in declarations.

use super::chars::{VALUE_STOP, is};
use super::dtd::{Dtd, Entity};
use super::limits::Limits;
use super::references::{Expansion, Reference, reference};
use super::refusal::{Code, Fault, Step};

/// Writes one value, references expanded, into `out`.
pub(super) struct ValueReader<'r> {
    pub(crate) dtd: &'r Dtd,
    pub(crate) limits: &'r Limits,
    pub(crate) expansion: &'r mut Expansion,
    pub(crate) out: &'r mut String,
    /// Where the outermost entity that holds the value is referred to; `None` in the document.
    pub(crate) place: Option<usize>,
    /// Has met a reference to an entity that is not predefined.
    pub(crate) has_entities: bool,
}

/// A text that waits for the end of an entity it refers to.
struct Frame<'r> {
    text: &'r str,
    resume: usize,
    entity: usize,
}

impl<'r> ValueReader<'r> {
    /// Reads a value whose first character is at `start`; gives the byte after the closing quote.
    pub(crate) fn read(&mut self, text: &'r str, start: usize, quote: u8) -> Step<usize> {
        let outer_place = self.place;
        let mut frames: Vec<Frame<'r>> = Vec::new();
        let (mut text, mut at) = (text, start);
        loop {
            let bytes = text.as_bytes();
            let run = bytes[at..].iter().position(|&byte| is(byte, VALUE_STOP));
            let stop = run.map_or(bytes.len(), |len| at + len);
            self.out.push_str(&text[at..stop]);
            at = stop;
            match bytes.get(at) {
                None => {
                    let Some(frame) = frames.pop() else {
                        return Err(self.end(text));
                    };
                    self.expansion.close(frame.entity);
                    (text, at) = (frame.text, frame.resume);
                    if frames.is_empty() {
                        self.place = outer_place;
                    }
                }
                Some(&byte) if byte == quote && frames.is_empty() => return Ok(at + 1),
                Some(b'<') => {
                    return Err(Fault::new(Code::AttributeLess, self.place.unwrap_or(at)));
                }
                Some(b'&') => {
                    let place = self.place.unwrap_or(at);
                    let (found, next) =
                        reference(text, at).map_err(|fault| self.moved(text, fault))?;
                    match found {
                        Reference::Character(c) => {
                            self.out.push(c);
                            at = next;
                        }
                        Reference::Entity { start, end } => {
                            self.has_entities = true;
                            match self.enter(&text[start..end], place)? {
                                None => at = next,
                                Some((entity, inner)) => {
                                    frames.push(Frame { text, resume: next, entity });
                                    self.place = Some(place);
                                    (text, at) = (inner, 0);
                                }
                            }
                        }
                    }
                }
                Some(&byte) => at += self.push_one(bytes, at, byte),
            }
        }
    }

    /// The replacement text of an entity, or nothing when it is one that was not read.
    fn enter(&mut self, name: &str, place: usize) -> Step<Option<(usize, &'r str)>> {
        let code = match self.dtd.entity(name, place)? {
            None => return Ok(None),
            Some((entity, Entity::Internal(inner))) => {
                self.expansion.open(entity, name, inner.len(), self.limits, place)?;
                return Ok(Some((entity, inner)));
            }
            Some((_, Entity::External)) => Code::EntityExternal,
            Some((_, Entity::Unparsed)) => Code::EntityUnparsed,
        };
        Err(Fault::new(code, place).text("name", name))
    }

    /// Writes white space or a quote; gives the bytes it takes up.
    fn push_one(&mut self, bytes: &[u8], at: usize, byte: u8) -> usize {
        if byte == b'"' || byte == b'\'' {
            self.out.push(char::from(byte));
            return 1;
        }
        self.out.push(' ');
        // In the document a line end of two characters is one; entities have had theirs normalised
        // when they were declared.
        let is_pair = byte == b'\r' && self.place.is_none() && bytes.get(at + 1) == Some(&b'\n');
        if is_pair { 2 } else { 1 }
    }

    fn end(&self, text: &str) -> Box<Fault> {
        match self.place {
            None => Fault::end("an attribute value", text.len()),
            Some(place) => {
                Fault::new(Code::EntityUnbalanced, place).text("name", "an attribute value")
            }
        }
    }

    fn moved(&self, text: &str, mut fault: Box<Fault>) -> Box<Fault> {
        match (self.place, fault.code) {
            (None, _) => {}
            (Some(_), Code::End) => return self.end(text),
            (Some(place), _) => fault.at = place,
        }
        fault
    }
}

/// The further normalisation of values that are not CDATA: no blanks at the ends, no two together.
/// Only U+0020 counts; a tab can be here only by a character reference, which keeps it.
pub(super) fn collapse(value: &str) -> String {
    value.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A normalised value must not be longer than the limit.
pub(super) fn check_value_size(len: usize, limits: &Limits, at: usize) -> Step<()> {
    let (given, maximum) = (len as u64, u64::from(limits.attribute_value_bytes_max));
    if given <= maximum {
        return Ok(());
    }
    let code = Code::LimitAttributeValueBytes;
    Err(Fault::limit(code, at, "attribute_value_bytes_max", given, maximum))
}
