//! References (productions 66 to 68) and the account of what entities expand to.

use super::chars::{is_char, name_end, name_fault};
use super::limits::Limits;
use super::refusal::{Code, Fault, Step};

/// A reference that is syntactically right.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// A character reference, or a reference to a predefined entity.
    Character(char),
    /// Any other entity; where its name lies.
    Entity { start: usize, end: usize },
}

/// The reference that begins with the `&` at `at`, and the byte after it.
pub(super) fn reference(text: &str, at: usize) -> Step<(Reference, usize)> {
    let bytes = text.as_bytes();
    let start = at + 1;
    if bytes.get(start) == Some(&b'#') {
        return character_reference(text, at);
    }
    let end = name_end(bytes, start);
    let found = match bytes.get(end) {
        None => return Err(Fault::end("a reference", text.len())),
        Some(_) if end == start => return Err(Fault::new(Code::Reference, at)),
        Some(b';') => match &text[start..end] {
            "lt" => Reference::Character('<'),
            "gt" => Reference::Character('>'),
            "amp" => Reference::Character('&'),
            "quot" => Reference::Character('"'),
            "apos" => Reference::Character('\''),
            name => {
                check_entity_name(name, start)?;
                Reference::Entity { start, end }
            }
        },
        Some(_) => {
            check_entity_name(&text[start..end], start)?;
            return Err(Fault::new(Code::Reference, at));
        }
    };
    Ok((found, end + 1))
}

/// Name of an entity: a Name, and without a colon (Namespaces in XML, 7).
pub(super) fn check_entity_name(name: &str, at: usize) -> Step<()> {
    if let Some(fault) = name_fault(name) {
        return Err(Fault::new(Code::Name, at + fault).text("name", name));
    }
    match name.find(':') {
        Some(colon) => Err(Fault::new(Code::NsColon, at + colon).text("name", name)),
        None => Ok(()),
    }
}

/// Production 66 and its constraint "Legal Character".
fn character_reference(text: &str, at: usize) -> Step<(Reference, usize)> {
    let bytes = text.as_bytes();
    let (radix, start) = if bytes.get(at + 2) == Some(&b'x') { (16, at + 3) } else { (10, at + 2) };
    let mut end = start;
    let mut value = 0u32;
    while let Some(digit) = bytes.get(end).and_then(|&b| char::from(b).to_digit(radix)) {
        // Stays above the last character once it is there, however many digits follow.
        value = (value * radix + digit).min(0x0011_0000);
        end += 1;
    }
    match bytes.get(end) {
        None => return Err(Fault::end("a character reference", text.len())),
        Some(b';') if end > start => {}
        Some(_) => return Err(Fault::new(Code::Reference, at)),
    }
    match char::from_u32(value).filter(|&c| is_char(c)) {
        Some(c) => Ok((Reference::Character(c), end + 1)),
        None => {
            let fault = Fault::new(Code::ReferenceCharacter, at);
            Err(fault.text("reference", &text[at..end + 1]))
        }
    }
}

/// What entities have been expanded to so far, and which are open.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// Bytes of the message: what the ratio is taken of.
    pub(crate) message_bytes: u64,
    pub(crate) bytes: u64,
    open: Vec<bool>,
    /// While the message's length is not known: bytes after each charge, and its place, for the ratio
    /// to be judged later.
    pub(crate) charges: Option<Vec<(u64, usize)>>,
}

impl Expansion {
    /// Begins a message.
    pub(crate) fn new(message_bytes: u64) -> Self {
        Expansion { message_bytes, bytes: 0, open: Vec::new(), charges: None }
    }

    /// Begins a message of a length that is not known yet.
    pub(crate) fn of_stream() -> Self {
        Expansion { charges: Some(Vec::new()), ..Expansion::new(u64::MAX) }
    }

    /// Goes back to the time at which entities had expanded to `bytes` and none was open.
    pub(crate) fn go_back(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.open.fill(false);
        if let Some(charges) = &mut self.charges {
            charges.retain(|&(after, _)| after <= bytes);
        }
    }

    /// Begins the replacement text of an entity, before anything of it is read.
    pub(crate) fn open(
        &mut self,
        entity: usize,
        name: &str,
        len: usize,
        limits: &Limits,
        at: usize,
    ) -> Step<()> {
        if entity >= self.open.len() {
            self.open.resize(entity + 16, false);
        }
        if self.open[entity] {
            return Err(Fault::new(Code::EntityRecursive, at).text("name", name));
        }
        self.charge(len as u64, limits, at)?;
        self.open[entity] = true;
        Ok(())
    }

    /// Ends it.
    pub(crate) fn close(&mut self, entity: usize) {
        self.open[entity] = false;
    }

    /// Counts bytes that the document gains without holding them.
    pub(crate) fn charge(&mut self, bytes: u64, limits: &Limits, at: usize) -> Step<()> {
        self.bytes += bytes;
        let code = Code::LimitEntityExpansion;
        let maximum = u64::from(limits.entity_expansion_bytes_max);
        if self.bytes > maximum {
            return Err(Fault::limit(code, at, "entity_expansion_bytes_max", self.bytes, maximum));
        }
        if let Some(charges) = &mut self.charges {
            if bytes > 0 {
                charges.push((self.bytes, at));
            }
            return Ok(());
        }
        let maximum = u64::from(limits.entity_expansion_ratio_max);
        if self.bytes > maximum * self.message_bytes {
            return Err(ratio_exceeded(self.bytes, self.message_bytes, maximum, at));
        }
        Ok(())
    }
}

/// Entities expand to more bytes than the message's length allows.
#[cold]
pub(super) fn ratio_exceeded(
    bytes: u64,
    message_bytes: u64,
    maximum: u64,
    at: usize,
) -> Box<Fault> {
    let given = bytes.div_ceil(message_bytes.max(1));
    let limit = "entity_expansion_ratio_max";
    Fault::limit(Code::LimitEntityExpansion, at, limit, given, maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_number_is_refused_and_does_not_wrap() {
        let text = "&#x100000041;";
        let code = reference(text, 0).map_err(|fault| fault.code);
        assert_eq!(code, Err(Code::ReferenceCharacter));
        assert_eq!(reference("&#x41;", 0).ok(), Some((Reference::Character('A'), 6)));
    }
}
