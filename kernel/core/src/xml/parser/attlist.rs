//! Attribute-list declarations (productions 52 to 60).

use super::chars::{exact_name_end, skip_space};
use super::doctype::Subset;
use super::refusal::{Code, Step};
use super::value::{ValueReader, check_value_size, collapse};

/// Types that are one word; a longer one before those it begins with.
const WORD_TYPES: [&str; 8] =
    ["CDATA", "IDREFS", "IDREF", "ID", "ENTITIES", "ENTITY", "NMTOKENS", "NMTOKEN"];

impl Subset<'_> {
    /// From the byte after `<!ATTLIST` on; gives the byte after the declaration.
    pub(super) fn attribute_list_declaration(&mut self, text: &str, at: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let at = self.space(text, at)?;
        let (element, mut at) = self.qname(text, at)?;
        loop {
            let after = skip_space(bytes, at);
            if bytes.get(after) == Some(&b'>') {
                return Ok(after + 1);
            }
            let start = self.space(text, at)?;
            let (name, end) = self.qname(text, start)?;
            let start = self.space(text, end)?;
            let (kind, end) = self.attribute_type(text, start)?;
            let is_cdata = kind == "CDATA";
            let start = self.space(text, end)?;
            let (default, end) = self.default_declaration(text, start)?;
            at = end;
            let default = default.map(|value| if is_cdata { value } else { collapse(&value) });
            if let Some(default) = &default {
                check_value_size(default.len(), self.limits, self.place_of(start))?;
            }
            if self.is_processing {
                self.dtd.declare_attribute(element, name, (is_cdata, kind == "ID"), default);
            }
        }
    }

    /// The type, empty if it is no single word, and the byte after it (productions 54 to 59).
    fn attribute_type(&self, text: &str, at: usize) -> Step<(&'static str, usize)> {
        let bytes = text.as_bytes();
        if bytes.get(at) == Some(&b'(') {
            return Ok(("", self.enumeration(text, at, false)?));
        }
        if let Some(at) = self.keyword(text, at, "NOTATION") {
            let at = self.space(text, at)?;
            return Ok(("", self.enumeration(text, at, true)?));
        }
        let word = WORD_TYPES.iter().find_map(|word| Some((*word, self.keyword(text, at, word)?)));
        match word {
            Some(found) => Ok(found),
            None => Err(self.wrong(text, at, "a type of attribute")),
        }
    }

    /// `(a | b)`: names of notations, or name tokens.
    fn enumeration(&self, text: &str, at: usize, is_notation: bool) -> Step<usize> {
        let bytes = text.as_bytes();
        let mut at = self.expect(text, at, b'(')?;
        loop {
            at = skip_space(bytes, at);
            at = if is_notation { self.entity_name(text, at)?.1 } else { self.token(text, at)? };
            at = skip_space(bytes, at);
            match bytes.get(at) {
                Some(b'|') => at += 1,
                Some(b')') => return Ok(at + 1),
                _ => return Err(self.wrong(text, at, "\"|\" or \")\"")),
            }
        }
    }

    /// Production 7.
    fn token(&self, text: &str, at: usize) -> Step<usize> {
        use super::chars::is_ncname_char;
        let end = if at < text.len() { exact_name_end(text.as_bytes(), at) } else { at };
        if end == at {
            return Err(self.wrong(text, at, "a name token"));
        }
        match text[at..end].find(|c| c != ':' && !is_ncname_char(c)) {
            Some(bad) => Err(self.fault(Code::Name, at + bad).text("name", &text[at..end])),
            None => Ok(end),
        }
    }

    /// The default, if there is one, and the byte after the declaration of it (production 60).
    fn default_declaration(&mut self, text: &str, at: usize) -> Step<(Option<String>, usize)> {
        for word in ["#REQUIRED", "#IMPLIED"] {
            if let Some(end) = self.keyword(text, at, word) {
                return Ok((None, end));
            }
        }
        let at = match self.keyword(text, at, "#FIXED") {
            Some(at) => self.space(text, at)?,
            None => at,
        };
        let quote = match text.as_bytes().get(at) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.wrong(text, at, "a default")),
        };
        // Entities must be declared before a default uses them; but where something was not read,
        // the declaration may have been there. Inside a parameter entity nothing is demanded.
        self.dtd.is_complete = self.place.is_none() && (self.is_standalone || !self.has_more);
        let mut value = String::new();
        let mut reader = ValueReader {
            dtd: &self.dtd,
            limits: self.limits,
            expansion: &mut self.expansion,
            out: &mut value,
            place: self.place,
            has_entities: false,
        };
        let end = reader.read(text, at + 1, quote)?;
        Ok((Some(value), end))
    }
}
