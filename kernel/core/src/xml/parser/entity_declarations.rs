//! Entity declarations and entity values (productions 9, 70 to 76).

use super::chars::{SPACE, is};
use super::doctype::{External, Parameter, Subset};
use super::dtd::EntityValue;
use super::references::{Reference, reference};
use super::refusal::{Code, Step};
use std::rc::Rc;

impl Subset<'_> {
    /// From the byte after `<!ENTITY` on; gives the byte after the declaration.
    pub(super) fn entity_declaration(&mut self, text: &str, at: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let mut at = self.space(text, at)?;
        let is_parameter =
            bytes.get(at) == Some(&b'%') && bytes.get(at + 1).is_none_or(|&byte| is(byte, SPACE));
        if is_parameter {
            at = self.space(text, at + 1)?;
        }
        let (name, at) = self.entity_name(text, at)?;
        let at = self.space(text, at)?;
        let (value, at) = match bytes.get(at) {
            Some(&quote @ (b'"' | b'\'')) => {
                let (value, next) = self.entity_value(text, at + 1, quote)?;
                (EntityValue::Internal(value), next)
            }
            _ => self.external_entity(text, at, is_parameter)?,
        };
        let end = self.expect(text, super::chars::skip_space(bytes, at), b'>')?;
        if self.is_processing {
            let is_in_subset = self.place.is_none();
            if is_parameter {
                self.declare_parameter(name, value, is_in_subset);
            } else {
                self.dtd.declare_entity(name, value, is_in_subset);
            }
        }
        Ok(end)
    }

    fn declare_parameter(&mut self, name: &str, value: EntityValue, is_in_subset: bool) {
        if self.parameter_index.contains_key(name) {
            return;
        }
        let text = match value {
            EntityValue::Internal(text) => Some(Rc::from(text)),
            _ => None,
        };
        self.parameter_index.insert(name.into(), self.parameters.len());
        self.parameters.push(Parameter { text, is_in_subset, is_open: false });
    }

    fn external_entity(
        &mut self,
        text: &str,
        at: usize,
        is_parameter: bool,
    ) -> Step<(EntityValue, usize)> {
        // The white space before it has been read; go back to it, since it belongs to the identifier.
        let (external, end) = self.external_id(text, at - 1, true)?;
        if external != External::System {
            return Err(self.wrong(text, at, "a quoted value, SYSTEM or PUBLIC"));
        }
        let after = super::chars::skip_space(text.as_bytes(), end);
        if is_parameter || after == end {
            return Ok((EntityValue::External, end));
        }
        let Some(at) = self.keyword(text, after, "NDATA") else {
            return Ok((EntityValue::External, end));
        };
        let at = self.space(text, at)?;
        let (_, end) = self.entity_name(text, at)?;
        Ok((EntityValue::Unparsed, end))
    }

    /// The replacement text of a literal: character references expanded, references to general
    /// entities left alone (4.5), line ends normalised; and the byte after the closing quote.
    fn entity_value(&mut self, text: &str, start: usize, quote: u8) -> Step<(String, usize)> {
        let bytes = text.as_bytes();
        let mut value = String::new();
        let mut at = start;
        loop {
            let is_stop = |byte: &u8| *byte == quote || matches!(byte, b'&' | b'%' | b'\r');
            let Some(len) = bytes[at..].iter().position(is_stop) else {
                return Err(self.end(text));
            };
            value.push_str(&text[at..at + len]);
            at += len;
            match bytes[at] {
                b'%' => return Err(self.fault(Code::DtdParameter, at)),
                b'&' => {
                    let read = reference(text, at).map_err(|fault| self.moved(text, fault))?;
                    match read {
                        (Reference::Character(c), next) if bytes[at + 1] == b'#' => {
                            value.push(c);
                            at = next;
                        }
                        (_, next) => {
                            value.push_str(&text[at..next]);
                            at = next;
                        }
                    }
                }
                // What a parameter entity holds has been through this already.
                b'\r' if self.place.is_none() => {
                    value.push('\n');
                    at += if bytes.get(at + 1) == Some(&b'\n') { 2 } else { 1 };
                }
                b'\r' => {
                    value.push('\r');
                    at += 1;
                }
                _ => return Ok((value, at + 1)),
            }
        }
    }
}
