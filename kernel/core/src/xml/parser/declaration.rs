//! The XML declaration (productions 23 to 26, 32, 80, 81).
//!
//! It is read from bytes, before the encoding is known, and again from the decoded text.

use super::chars::{SPACE, is, skip_space};
use super::refusal::{Code, Fault, Step};

/// What an XML declaration says.
#[derive(Debug)]
pub(super) struct Declaration {
    /// Where the encoding's name lies.
    pub(crate) encoding: Option<(usize, usize)>,
    /// `standalone="yes"`.
    pub(crate) is_standalone: bool,
    /// The byte after it.
    pub(crate) end: usize,
}

impl Declaration {
    /// The declaration at the start of a text, if there is one.
    pub(crate) fn read(bytes: &[u8]) -> Step<Option<Declaration>> {
        let Some(rest) = bytes.strip_prefix(b"<?xml") else {
            return Ok(None);
        };
        // `<?xml-stylesheet` is an instruction like any other.
        if rest.first().is_some_and(|&byte| !is(byte, SPACE) && byte != b'?') {
            return Ok(None);
        }
        let mut reader = Reader { bytes, at: 5 };
        let Some(version) = reader.pair(b"version")? else {
            return Err(reader.fault("\"version\" is missing"));
        };
        check_version(bytes, version)?;
        let encoding = reader.pair(b"encoding")?;
        if let Some((start, end)) = encoding {
            check_encoding_name(&bytes[start..end], start)?;
        }
        let is_standalone = match reader.pair(b"standalone")? {
            None => false,
            Some((start, end)) => match &bytes[start..end] {
                b"yes" => true,
                b"no" => false,
                _ => return Err(fault(start, "standalone must be \"yes\" or \"no\"")),
            },
        };
        let end = skip_space(bytes, reader.at);
        match &bytes[end..] {
            [b'?', b'>', ..] => Ok(Some(Declaration { encoding, is_standalone, end: end + 2 })),
            [] | [b'?'] => Err(Fault::end("the XML declaration", bytes.len())),
            _ => Err(fault(end, "version, encoding and standalone are allowed, in this order")),
        }
    }
}

fn fault(at: usize, reason: &str) -> Box<Fault> {
    Fault::new(Code::Declaration, at).text("reason", reason)
}

/// Production 26: any 1.x is read as 1.0.
fn check_version(bytes: &[u8], (start, end): (usize, usize)) -> Step<()> {
    match bytes[start..end].strip_prefix(b"1.") {
        Some(minor) if !minor.is_empty() && minor.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err(fault(start, "the version must be 1.0 (or another 1.x, read as 1.0)")),
    }
}

/// Production 81.
fn check_encoding_name(name: &[u8], at: usize) -> Step<()> {
    let is_tail = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    match name.split_first() {
        Some((first, tail)) if first.is_ascii_alphabetic() && tail.iter().all(is_tail) => Ok(()),
        _ => Err(fault(at, "this is no name of an encoding")),
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn fault(&self, reason: &str) -> Box<Fault> {
        if self.at >= self.bytes.len() {
            Fault::end("the XML declaration", self.bytes.len())
        } else {
            fault(self.at, reason)
        }
    }

    /// White space, `name`, `=`, and a quoted value; gives the place of the value, or nothing when
    /// something else comes.
    fn pair(&mut self, name: &[u8]) -> Step<Option<(usize, usize)>> {
        let start = skip_space(self.bytes, self.at);
        if start == self.at || !self.bytes[start..].starts_with(name) {
            return Ok(None);
        }
        self.at = skip_space(self.bytes, start + name.len());
        if self.bytes.get(self.at) != Some(&b'=') {
            return Err(self.fault("\"=\" expected"));
        }
        self.at = skip_space(self.bytes, self.at + 1);
        let quote = match self.bytes.get(self.at) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.fault("a quoted value expected")),
        };
        let value = self.at + 1;
        match self.bytes[value..].iter().position(|&byte| byte == quote || byte == b'>') {
            Some(len) if self.bytes[value + len] == quote => {
                self.at = value + len + 1;
                Ok(Some((value, value + len)))
            }
            Some(len) => Err(fault(value + len, "the quote is not closed")),
            None => Err(Fault::end("the XML declaration", self.bytes.len())),
        }
    }
}
