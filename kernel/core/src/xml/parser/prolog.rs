//! The document as a whole: declaration, what may stand before and after the root element
//! (productions 1, 22, 27).

use super::Door;
use super::chars::{Survey, first_illegal, name_end, name_fault};
use super::declaration::Declaration;
use super::doctype::read_doctype;
use super::dtd::Dtd;
use super::encoding::{Detected, check_declared};
use super::full_tree::read_misc;
use super::limits::DtdPolicy;
use super::observer::TreeOnly;
use super::references::Expansion;
use super::refusal::{Code, Fault, Step};
use super::scan::Scanner;
use super::text::Pending;

impl Door {
    /// Reads a decoded message into the tree.
    pub(super) fn read(
        &mut self,
        text: &str,
        survey: Survey,
        detected: Detected,
        message_bytes: usize,
    ) -> Step<()> {
        // Reading stops short of the first character that XML does not have. An end met there is
        // that character's fault.
        let illegal = first_illegal(text, survey);
        let legal = &text[..illegal.unwrap_or(text.len())];
        let outcome = self.read_legal(legal, survey, detected, message_bytes);
        let Some(at) = illegal else {
            return outcome;
        };
        match outcome {
            Err(fault) if fault.code != Code::End => Err(fault),
            _ => {
                let c = text[at..].chars().next().map_or(0, u32::from);
                Err(Fault::new(Code::Character, at).text("character", &format!("U+{c:04X}")))
            }
        }
    }

    fn read_legal(
        &mut self,
        text: &str,
        survey: Survey,
        detected: Detected,
        message_bytes: usize,
    ) -> Step<()> {
        let declaration = Declaration::read(text.as_bytes())?;
        let mut at = 0;
        let mut is_standalone = false;
        if let Some(declaration) = declaration {
            if let Some((start, end)) = declaration.encoding {
                check_declared(&text[start..end], detected, start)?;
            }
            at = declaration.end;
            is_standalone = declaration.is_standalone;
        }
        let mut dtd = Dtd::default();
        let mut expansion = Expansion::new(message_bytes as u64);
        let start = at;
        at = read_misc(text, at, &mut self.tree, survey.has_return, &mut TreeOnly)?;
        if text.as_bytes()[at..].starts_with(b"<!DOCTYPE") {
            if self.limits.dtd == DtdPolicy::Refuse {
                return Err(Fault::new(Code::DtdRefused, at));
            }
            if self.tree.has_source_spans && !self.tree.is_full {
                self.tree.is_full = true;
                self.tree.declaration_start.push(0);
                read_misc(text, start, &mut self.tree, survey.has_return, &mut TreeOnly)?;
            }
            (dtd, expansion, at) = read_doctype(text, at, &self.limits, is_standalone, expansion)?;
            dtd.place_defaults(&mut self.tree.scratch);
            at = read_misc(text, at, &mut self.tree, survey.has_return, &mut TreeOnly)?;
        }
        check_root(text, at)?;
        self.memory.specified.clear();
        self.memory.specified.resize(dtd.definitions() as usize, 0);
        self.memory.clock += 1;
        let message_clock = self.memory.clock;
        let keeps_more = self.tree.is_full || self.tree.has_source_spans;
        let mut scanner = Scanner {
            limits: &self.limits,
            tree: &mut self.tree,
            names: &mut self.names,
            memory: &mut self.memory,
            dtd: &dtd,
            document: text,
            has_return: survey.has_return,
            pending: Pending::Nothing,
            list: None,
            context: 0,
            entity_place: None,
            message_clock,
            names_seen: 0,
            expansion,
            keeps_more,
            elements_max: self.limits.elements_max.into(),
            observer: TreeOnly,
        };
        at = scanner.root(at)?;
        self.tree.attribute_start.push(self.tree.attribute_name.len() as u32);
        at = read_misc(text, at, &mut self.tree, survey.has_return, &mut TreeOnly)?;
        if self.tree.has_source_spans && dtd.definitions() > 0 {
            self.dtd = Some(dtd);
        }
        if at == text.len() {
            return Ok(());
        }
        let is_doctype = text[at..].starts_with("<!DOCTYPE");
        let code = if is_doctype { Code::DoctypePlace } else { Code::Outside };
        Err(Fault::new(code, at))
    }
}

/// The root element must begin here.
pub(super) fn check_root(text: &str, at: usize) -> Step<()> {
    let rest = &text.as_bytes()[at..];
    match rest {
        [] => Err(Fault::end("the prolog; there is no root element", text.len())),
        [b'<', b'!', ..] if b"<!DOCTYPE".starts_with(rest) || b"<!--".starts_with(rest) => {
            Err(Fault::end("markup", text.len()))
        }
        [b'<', b'!', ..] if rest.starts_with(b"<!DOCTYPE") => {
            Err(Fault::new(Code::DoctypePlace, at))
        }
        [b'<', b'!', ..] => Err(Fault::new(Code::Markup, at)),
        [b'<', b'/', ..] => Err(Fault::new(Code::Tag, at).text("expected", "the root element")),
        [b'<', ..] => {
            let name = &text[at + 1..name_end(text.as_bytes(), at + 1)];
            match name_fault(name) {
                Some(fault) if at + 1 + fault < text.len() => {
                    Err(Fault::new(Code::Name, at + 1 + fault).text("name", name))
                }
                _ => Ok(()),
            }
        }
        _ => Err(Fault::new(Code::Outside, at)),
    }
}
