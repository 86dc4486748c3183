//! The document type declaration and its internal subset (productions 28 to 31, 69, 75).
//!
//! Parameter entities are read between declarations only, as the internal subset demands, with an
//! explicit stack. External ones, and the external subset, are not read; what that leaves open is
//! kept in [`Dtd::is_complete`].

use super::attributes::split_qname;
use super::chars::{SPACE, exact_name_end, is, is_pubid_char, skip_space};
use super::dtd::{ByName, Dtd};
use super::limits::Limits;
use super::references::{Expansion, check_entity_name};
use super::refusal::{Code, Fault, Step};
use super::scan::{skip_comment, skip_instruction};
use std::rc::Rc;

/// A parameter entity.
pub(super) struct Parameter {
    /// Replacement text; `None` when it is external.
    pub(crate) text: Option<Rc<str>>,
    /// Declared in the subset itself rather than in a parameter entity.
    pub(crate) is_in_subset: bool,
    pub(crate) is_open: bool,
}

/// An internal subset being read.
pub(super) struct Subset<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) dtd: Dtd,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) parameter_index: ByName<usize>,
    pub(crate) expansion: Expansion,
    pub(crate) is_standalone: bool,
    /// There is an external subset or a reference to a parameter entity.
    pub(crate) has_more: bool,
    /// Entity and attribute-list declarations count; they no longer do after something that was
    /// not read (5.1).
    pub(crate) is_processing: bool,
    /// Where the outermost parameter entity being read is referred to.
    pub(crate) place: Option<usize>,
}

/// What an external identifier names.
#[derive(PartialEq, Eq)]
pub(super) enum External {
    None,
    /// `PUBLIC` with a public identifier alone, as notations may have it.
    PublicOnly,
    System,
}

struct Frame {
    /// `None` for the document.
    text: Option<Rc<str>>,
    resume: usize,
    parameter: usize,
}

/// Reads a document type declaration from its `<` on; gives what it declares, what entities have
/// cost, and the byte after it.
pub(super) fn read_doctype(
    text: &str,
    start: usize,
    limits: &Limits,
    is_standalone: bool,
    expansion: Expansion,
) -> Step<(Dtd, Expansion, usize)> {
    let mut subset = Subset {
        limits,
        dtd: Dtd::default(),
        parameters: Vec::new(),
        parameter_index: ByName::default(),
        expansion,
        is_standalone,
        has_more: false,
        is_processing: true,
        place: None,
    };
    let end = subset.doctype(text, start)?;
    subset.dtd.is_complete = !subset.has_more || is_standalone;
    Ok((subset.dtd, subset.expansion, end))
}

impl Subset<'_> {
    fn doctype(&mut self, text: &str, start: usize) -> Step<usize> {
        let bytes = text.as_bytes();
        let at = self.space(text, start + 9)?;
        let at = self.qname(text, at)?.1;
        let (external, mut at) = self.external_id(text, at, true)?;
        if external == External::System {
            self.has_more = true;
        }
        at = skip_space(bytes, at);
        if bytes.get(at) == Some(&b'[') {
            at = skip_space(bytes, self.subset(text, at + 1)?);
        }
        self.expect(text, at, b'>')
    }

    /// The internal subset, from its first character on; gives the byte after the `]`.
    fn subset(&mut self, document: &str, start: usize) -> Step<usize> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut inner: Option<Rc<str>> = None;
        let mut at = start;
        loop {
            let text: &str = inner.as_deref().unwrap_or(document);
            let bytes = text.as_bytes();
            at = skip_space(bytes, at);
            match bytes.get(at) {
                None => {
                    let Some(frame) = frames.pop() else {
                        return Err(self.end(text));
                    };
                    self.parameters[frame.parameter].is_open = false;
                    at = frame.resume;
                    inner = frame.text;
                    if inner.is_none() {
                        self.place = None;
                    }
                }
                Some(b']') if frames.is_empty() => return Ok(at + 1),
                Some(b'%') => {
                    let start = at;
                    let (found, next) = self.parameter_reference(text, start)?;
                    at = next;
                    if let Some(parameter) = found
                        && let Some(replacement) = self.parameters[parameter].text.clone()
                    {
                        self.place = Some(self.place_of(start));
                        let text = inner.replace(replacement);
                        frames.push(Frame { text, resume: next, parameter });
                        at = 0;
                    }
                }
                Some(b'<') => at = self.declaration(text, at)?,
                Some(_) => return Err(self.fault(Code::Dtd, at).text("expected", "a declaration")),
            }
        }
    }

    /// A reference to a parameter entity between declarations; gives the entity when there is
    /// something to read, and the byte after the reference.
    fn parameter_reference(&mut self, text: &str, at: usize) -> Step<(Option<usize>, usize)> {
        let (name, end) = self.entity_name(text, at + 1)?;
        let next = self.expect(text, end, b';')?;
        self.has_more = true;
        let found = self.parameter_index.get(name).copied();
        let must_be_declared = self.is_standalone && self.place.is_none();
        let found =
            found.filter(|&number| self.parameters[number].is_in_subset || !must_be_declared);
        let Some(number) = found else {
            if must_be_declared {
                return Err(self.fault(Code::EntityUndeclared, at).text("name", name));
            }
            self.is_processing = self.is_standalone && self.is_processing;
            return Ok((None, next));
        };
        let place = self.place_of(at);
        let parameter = &mut self.parameters[number];
        let Some(replacement) = &parameter.text else {
            self.is_processing = self.is_standalone && self.is_processing;
            return Ok((None, next));
        };
        if parameter.is_open {
            return Err(Fault::new(Code::EntityRecursive, place).text("name", name));
        }
        self.expansion.charge(replacement.len() as u64, self.limits, place)?;
        parameter.is_open = true;
        Ok((Some(number), next))
    }

    fn declaration(&mut self, text: &str, at: usize) -> Step<usize> {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"<!--") {
            return skip_comment(text, at).map_err(|fault| self.moved(text, fault));
        }
        if rest.starts_with(b"<?") {
            return skip_instruction(text, at).map_err(|fault| self.moved(text, fault));
        }
        for (keyword, read) in [
            ("<!ENTITY", Self::entity_declaration as fn(&mut Self, &str, usize) -> Step<usize>),
            ("<!ATTLIST", Self::attribute_list_declaration),
            ("<!ELEMENT", Self::element_declaration),
            ("<!NOTATION", Self::notation_declaration),
        ] {
            if rest.starts_with(keyword.as_bytes()) {
                return read(self, text, at + keyword.len());
            }
            if keyword.as_bytes().starts_with(rest) {
                return Err(self.end(text));
            }
        }
        if rest == b"<!-" {
            return Err(self.end(text));
        }
        if rest.starts_with(b"<![") {
            return Err(self.fault(Code::DtdConditional, at));
        }
        Err(self.fault(Code::Dtd, at).text("expected", "a declaration"))
    }

    /// Production 82.
    fn notation_declaration(&mut self, text: &str, at: usize) -> Step<usize> {
        let at = self.space(text, at)?;
        let (_, at) = self.entity_name(text, at)?;
        let (external, at) = self.external_id(text, at, false)?;
        if external == External::None {
            return Err(self.wrong(text, at, "SYSTEM or PUBLIC"));
        }
        self.expect(text, skip_space(text.as_bytes(), at), b'>')
    }
}

/// What all declarations are made of.
impl Subset<'_> {
    pub(crate) fn place_of(&self, at: usize) -> usize {
        self.place.unwrap_or(at)
    }

    #[cold]
    pub(crate) fn fault(&self, code: Code, at: usize) -> Box<Fault> {
        Fault::new(code, self.place_of(at))
    }

    /// The text ends inside a declaration.
    #[cold]
    pub(crate) fn end(&self, text: &str) -> Box<Fault> {
        match self.place {
            None => Fault::end("the document type declaration", text.len()),
            Some(place) => Fault::new(Code::EntityUnbalanced, place).text("name", "a declaration"),
        }
    }

    #[cold]
    pub(crate) fn moved(&self, text: &str, mut fault: Box<Fault>) -> Box<Fault> {
        match (self.place, fault.code) {
            (None, _) => {}
            (Some(_), Code::End) => return self.end(text),
            (Some(place), _) => fault.at = place,
        }
        fault
    }

    /// Something else was expected at `at`.
    #[cold]
    pub(crate) fn wrong(&self, text: &str, at: usize, expected: &str) -> Box<Fault> {
        match text.as_bytes().get(at) {
            None => self.end(text),
            Some(b'%') => self.fault(Code::DtdParameter, at),
            Some(_) => self.fault(Code::Dtd, at).text("expected", expected),
        }
    }

    /// White space that must be there; gives the byte after it.
    pub(crate) fn space(&self, text: &str, at: usize) -> Step<usize> {
        match text.as_bytes().get(at) {
            Some(&byte) if is(byte, SPACE) => Ok(skip_space(text.as_bytes(), at)),
            _ => Err(self.wrong(text, at, "white space")),
        }
    }

    /// One character that must be there; gives the byte after it.
    pub(crate) fn expect(&self, text: &str, at: usize, byte: u8) -> Step<usize> {
        if text.as_bytes().get(at) == Some(&byte) {
            return Ok(at + 1);
        }
        Err(self.wrong(text, at, &format!("{:?}", char::from(byte))))
    }

    /// A qualified name and the byte after it.
    pub(crate) fn qname<'t>(&self, text: &'t str, at: usize) -> Step<(&'t str, usize)> {
        let end = self.some_name(text, at)?;
        let name = &text[at..end];
        split_qname(name, at).map_err(|fault| self.moved(text, fault))?;
        Ok((name, end))
    }

    /// A name without a colon and the byte after it.
    pub(crate) fn entity_name<'t>(&self, text: &'t str, at: usize) -> Step<(&'t str, usize)> {
        let end = self.some_name(text, at)?;
        let name = &text[at..end];
        check_entity_name(name, at).map_err(|fault| self.moved(text, fault))?;
        Ok((name, end))
    }

    fn some_name(&self, text: &str, at: usize) -> Step<usize> {
        let end = if at < text.len() { exact_name_end(text.as_bytes(), at) } else { at };
        if end == at { Err(self.wrong(text, at, "a name")) } else { Ok(end) }
    }

    /// The byte after a keyword, if it is there.
    pub(crate) fn keyword(&self, text: &str, at: usize, keyword: &str) -> Option<usize> {
        text.as_bytes().get(at..)?.starts_with(keyword.as_bytes()).then_some(at + keyword.len())
    }

    /// White space and an external identifier, if there is one (production 75); the byte after it.
    pub(crate) fn external_id(
        &self,
        text: &str,
        at: usize,
        needs_system: bool,
    ) -> Step<(External, usize)> {
        let start = skip_space(text.as_bytes(), at);
        if start == at {
            return Ok((External::None, at));
        }
        if let Some(at) = self.keyword(text, start, "SYSTEM") {
            let at = self.space(text, at)?;
            return Ok((External::System, self.literal(text, at)?.1));
        }
        let Some(at) = self.keyword(text, start, "PUBLIC") else {
            return Ok((External::None, at));
        };
        let at = self.space(text, at)?;
        let (public, end) = self.literal(text, at)?;
        if let Some(bad) = public.find(|c| !is_pubid_char(c)) {
            let fault = self.fault(Code::Dtd, at + 1 + bad);
            return Err(fault.text("expected", "a character of a public identifier"));
        }
        let after = skip_space(text.as_bytes(), end);
        let has_system = matches!(text.as_bytes().get(after), Some(b'"' | b'\''));
        if !needs_system && !has_system {
            return Ok((External::PublicOnly, end));
        }
        let at = self.space(text, end)?;
        Ok((External::System, self.literal(text, at)?.1))
    }

    /// A quoted literal in which nothing is looked at; its text and the byte after it.
    fn literal<'t>(&self, text: &'t str, at: usize) -> Step<(&'t str, usize)> {
        let bytes = text.as_bytes();
        let quote = match bytes.get(at) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.wrong(text, at, "a quoted literal")),
        };
        match memchr::memchr(quote, &bytes[at + 1..]) {
            Some(len) => Ok((&text[at + 1..at + 1 + len], at + len + 2)),
            None => Err(self.end(text)),
        }
    }
}
