//! Names of elements and attributes that expressions give (XQuery 3.1, 3.9.3).
//!
//! A name is kept as it is written, `prefix:local`; what its prefix means is looked up among the namespaces that are
//! statically known where the constructor stands.

use super::RunError;
use super::run::{Evaluator, Run};
use super::sink::Frame;
use super::value::{Item, Text};
use crate::language::grammar::names::qname_length;
use crate::language::numbers::is_blank;
use crate::language::xpath::{List, TextRange};
use crate::language::xquery::syntax::{ComputedName, Declaration};

impl Evaluator<'_, '_> {
    /// The computed name of an element or attribute as it is written; it is a name, and its prefix is bound.
    pub(super) fn computed_name(&mut self, name: ComputedName, is_attribute: bool) -> Run<Text> {
        let given = match self.first_atom(name.expr)? {
            Some(Item::String(text) | Item::Untyped(text)) => text,
            _ => return Err(RunError::Construction("XQDY0074")),
        };
        self.budget.charge(1 + (name.scope.range().len() / 16) as u64)?;
        self.budget.charge_text(given.len())?;
        let bytes = self.bytes(given);
        let start = bytes.iter().take_while(|&&byte| is_blank(byte)).count();
        let blanks = bytes[start..].iter().rev().take_while(|&&byte| is_blank(byte)).count();
        let written = given.part(start, bytes.len() - blanks);
        let text = std::str::from_utf8(self.bytes(written)).unwrap_or_default();
        if text.is_empty() || qname_length(text) != text.len() {
            return Err(RunError::Construction("XQDY0074"));
        }
        match text.strip_prefix("xmlns") {
            Some(rest) if is_attribute && (rest.is_empty() || rest.starts_with(':')) => {
                return Err(RunError::Construction("XQDY0044"));
            }
            Some(rest) if rest.starts_with(':') => {
                return Err(RunError::Construction("XQDY0096"));
            }
            _ => {}
        }
        match self.namespace_of(name, written, is_attribute) {
            Some(_) => Ok(written),
            None => Err(RunError::Construction("XQDY0074")),
        }
    }

    /// The prefix of a computed name and what it means; none if it is not bound.
    pub(super) fn namespace_of(
        &self,
        name: ComputedName,
        written: Text,
        is_attribute: bool,
    ) -> Option<(TextRange, TextRange)> {
        let (prefix, _) = split(self.bytes(written));
        if prefix.is_empty() && is_attribute {
            return Some(Default::default());
        }
        let program = self.program;
        let is_meant = |known: &&Declaration| program.text(known.prefix).as_bytes() == prefix;
        match program.declarations(name.scope).iter().find(is_meant) {
            Some(known) => Some((known.prefix, known.uri)),
            None => prefix.is_empty().then(Default::default),
        }
    }

    /// The computed name of an attribute of the element under way, empty for a constant one. No attribute before it has
    /// its name.
    pub(super) fn name_of_attribute(&mut self, at: u32) -> Run<Text> {
        let Some(&frame) = self.state.frames.last() else { return Ok(Text::EMPTY) };
        let program = self.program;
        let attribute = &program.attributes[at as usize];
        let before = List { start: program.element(frame.element).attributes.start, end: at };
        let (name, uri, local) = match attribute.computed {
            None if self.state.named.len() == frame.named_start as usize => {
                return Ok(Text::EMPTY);
            }
            None => {
                let name = attribute.name;
                (Text::EMPTY, program.text(name.uri), program.text(name.local).to_owned())
            }
            Some(computed) => {
                let name = self.computed_name(computed, true)?;
                let (_, uri) = self.namespace_of(computed, name, true).unwrap_or_default();
                let (_, local) = split(self.bytes(name));
                (name, program.text(uri), String::from_utf8_lossy(local).into_owned())
            }
        };
        if self.has_attribute(&frame, before, (uri, &local))? {
            return Err(RunError::Construction("XQDY0025"));
        }
        if attribute.computed.is_some() {
            self.state.named.push((at, name));
        }
        Ok(name)
    }

    /// Whether one of the attributes of a constructor, or one with a computed name in the element under way, has a
    /// name.
    pub(super) fn has_attribute(
        &mut self,
        frame: &Frame,
        attributes: List,
        (uri, local): (&str, &str),
    ) -> Run<bool> {
        let program = self.program;
        let is_constant = program.attributes(attributes).iter().any(|attribute| {
            attribute.computed.is_none()
                && program.text(attribute.name.local) == local
                && program.text(attribute.name.uri) == uri
        });
        let named = &self.state.named[frame.named_start as usize..];
        self.budget.charge((named.len() / 16) as u64)?;
        let is_computed = named.iter().any(|&(at, written)| {
            let computed = program.attributes[at as usize].computed;
            let known = computed.and_then(|computed| self.namespace_of(computed, written, true));
            split(self.bytes(written)).1 == local.as_bytes()
                && known.is_some_and(|(_, known)| program.text(known) == uri)
        });
        Ok(is_constant || is_computed)
    }
}

/// Prefix and local part of a name.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().position(|&byte| byte == b':') {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (&[], name),
    }
}
