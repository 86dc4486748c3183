//! A message from its declaration to its end, as far as it has arrived; what [`super::super::prolog`] does for
//! one that is all there.

use super::super::chars::name_end;
use super::super::declaration::Declaration;
use super::super::doctype::read_doctype;
use super::super::encoding::check_declared;
use super::super::full_tree::read_misc;
use super::super::limits::DtdPolicy;
use super::super::observer::ScannedMarkup;
use super::super::prolog::check_root;
use super::super::refusal::{Code, Fault, Step};
use super::super::scan::Scanner;
use super::super::text::Pending;
use super::events::{Handler, MarkupKind};
use super::watch::Watch;
use super::{CERTAIN, PushParser};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The encoding is not known.
    Encoding,
    Declaration,
    /// Up to the root element, which may have a document type declaration.
    Prolog,
    /// The root element.
    Content,
    /// After it.
    Epilog,
}

/// Whether a beginning may be that of an XML declaration that has not arrived as a whole.
pub(super) fn may_declare(bytes: &[u8]) -> bool {
    let sign = b"<?xml";
    sign.starts_with(bytes) || bytes.starts_with(sign) && memchr::memchr(b'>', bytes).is_none()
}

/// Whether what comes outside the root element, after comments and instructions, shows what it is: no
/// comment, instruction or document type declaration begins otherwise.
fn is_shown(rest: &str) -> bool {
    match rest.as_bytes() {
        [] | [b'<'] => false,
        [b'<', b'!' | b'?', ..] => rest.len() >= "<!DOCTYPE".len(),
        _ => true,
    }
}

impl PushParser {
    /// Reads what has arrived, as far as it is whole.
    pub(super) fn read<H: Handler>(&mut self, handler: &mut H) -> Step<()> {
        loop {
            let before = self.stage;
            let token = self.progress.token;
            match self.stage {
                Stage::Encoding | Stage::Declaration => self.declaration(handler)?,
                Stage::Prolog => self.prolog(handler)?,
                Stage::Content => self.content(handler)?,
                Stage::Epilog => self.epilog(handler)?,
            }
            if self.progress.token > token {
                self.hints = 0;
            }
            if self.stage == before {
                return Ok(());
            }
        }
    }

    /// End of the text that can be read: what might begin `]]>` or a line end of two characters waits.
    fn readable(&self) -> usize {
        let bytes = self.input.text.as_bytes();
        let len = bytes.len();
        let waits = match bytes {
            _ if self.progress.is_last => 0,
            [.., b']', b']'] => 2,
            [.., b']' | b'\r'] => 1,
            _ => 0,
        };
        (len - waits).max(self.progress.token)
    }

    /// Whether a fault is one whatever comes after this text.
    fn is_certain(&self, fault: &Fault, len: usize) -> bool {
        self.progress.is_last || (fault.code != Code::End && fault.at + CERTAIN <= len)
    }

    /// The fault of a construct that begins at `token`, or nothing if the construct is to be tried again.
    fn judge(&self, fault: Box<Fault>, len: usize) -> Step<()> {
        let token = self.progress.token;
        if fault.at.saturating_sub(token) as u64 > self.progress.held_max {
            return Err(self.progress.too_much(token));
        }
        if self.is_certain(&fault, len) { Err(fault) } else { Ok(()) }
    }

    fn declaration<H: Handler>(&mut self, handler: &mut H) -> Step<()> {
        let text = &self.input.text[..];
        if !self.progress.is_last && may_declare(text.as_bytes()) {
            return Ok(());
        }
        if let Some(declaration) = Declaration::read(text.as_bytes())? {
            if let Some((start, end)) = declaration.encoding {
                check_declared(&text[start..end], self.input.detected, start)?;
            }
            self.is_standalone = declaration.is_standalone;
            let (start, end) = (0, declaration.end);
            let markup = ScannedMarkup { text, start, end, depth: 0, entity_place: None };
            self.progress.show_markup(handler, MarkupKind::Declaration, &markup)?;
            self.progress.token = end;
        }
        self.stage = Stage::Prolog;
        Ok(())
    }

    /// Comments and instructions outside the root element; the first byte of something else, if it has
    /// arrived.
    fn misc<H: Handler>(&mut self, handler: &mut H) -> Step<Option<usize>> {
        let len = self.readable();
        let text = &self.input.text[..len];
        let (start, has_return) = (self.progress.token, self.input.has_return);
        let mut watch = Watch { progress: std::mem::take(&mut self.progress), handler };
        let outcome = read_misc(text, start, &mut self.tree, has_return, &mut watch);
        self.progress = watch.progress;
        match outcome {
            Ok(at) if self.progress.is_last || is_shown(&text[at..]) => Ok(Some(at)),
            Ok(_) => Ok(None),
            Err(fault) => self.judge(fault, len).map(|()| None),
        }
    }

    fn prolog<H: Handler>(&mut self, handler: &mut H) -> Step<()> {
        let Some(mut at) = self.misc(handler)? else { return Ok(()) };
        if !self.has_doctype && self.input.text[at..].starts_with("<!DOCTYPE") {
            if !self.doctype(at, handler)? {
                return Ok(());
            }
            match self.misc(handler)? {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
        let len = self.readable();
        if let Err(fault) = check_root(&self.input.text[..len], at) {
            return self.judge(fault, len);
        }
        let is_named = name_end(self.input.text.as_bytes(), at + 1) < len;
        if !is_named && !self.progress.is_last {
            return Ok(());
        }
        self.memory.specified.clear();
        self.memory.specified.resize(self.dtd.definitions() as usize, 0);
        self.progress.shown = at;
        self.stage = Stage::Content;
        Ok(())
    }

    /// The document type declaration, which is read as a whole; false if it is to be tried again.
    fn doctype<H: Handler>(&mut self, at: usize, handler: &mut H) -> Step<bool> {
        let len = self.readable();
        let text = &self.input.text[..len];
        if self.limits.dtd == DtdPolicy::Refuse {
            return Err(Fault::new(Code::DtdRefused, at));
        }
        let expansion = super::Expansion::of_stream();
        match read_doctype(text, at, &self.limits, self.is_standalone, expansion) {
            Ok((dtd, expansion, end)) => {
                let (start, entity_place) = (at, None);
                let markup = ScannedMarkup { text, start, end, depth: 0, entity_place };
                self.progress.show_markup(handler, MarkupKind::DocumentType, &markup)?;
                (self.dtd, self.expansion) = (dtd, expansion);
                self.dtd.place_defaults(&mut self.tree.scratch);
                self.progress.scratch_kept = self.tree.scratch.len();
                self.progress.token = end;
                self.has_doctype = true;
                Ok(true)
            }
            Err(fault) => self.judge(fault, len).map(|()| false),
        }
    }

    fn content<H: Handler>(&mut self, handler: &mut H) -> Step<()> {
        let len = self.readable();
        let mut scanner = Scanner {
            limits: &self.limits,
            tree: &mut self.tree,
            names: &mut self.names,
            memory: &mut self.memory,
            dtd: &self.dtd,
            document: &self.input.text[..len],
            has_return: self.input.has_return,
            pending: Pending::Nothing,
            list: None,
            context: self.context,
            entity_place: None,
            message_clock: self.message_clock,
            names_seen: self.names_seen,
            expansion: std::mem::take(&mut self.expansion),
            keeps_more: true,
            elements_max: self.bounds.elements_max,
            observer: Watch { progress: std::mem::take(&mut self.progress), handler },
        };
        let start = scanner.observer.progress.token;
        let outcome = scanner.root(start);
        let is_in_entity = scanner.entity_place.is_some();
        let token = scanner.observer.progress.token;
        if outcome.is_err() && !is_in_entity {
            scanner.abandon_tag(token);
            scanner.show_text(token);
        }
        self.context = scanner.context;
        self.names_seen = scanner.names_seen;
        self.expansion = scanner.expansion;
        self.progress = scanner.observer.progress;
        match outcome {
            Ok(end) => {
                self.progress.token = end;
                self.stage = Stage::Epilog;
                Ok(())
            }
            Err(fault) if is_in_entity => Err(fault),
            Err(fault) => {
                self.judge(fault, len)?;
                self.expansion.go_back(self.progress.expanded);
                Ok(())
            }
        }
    }

    fn epilog<H: Handler>(&mut self, handler: &mut H) -> Step<()> {
        let Some(at) = self.misc(handler)? else { return Ok(()) };
        let len = self.readable();
        if at == len {
            return Ok(());
        }
        let is_doctype = self.input.text[at..].starts_with("<!DOCTYPE");
        let code = if is_doctype { Code::DoctypePlace } else { Code::Outside };
        self.judge(Fault::new(code, at), len)
    }
}
