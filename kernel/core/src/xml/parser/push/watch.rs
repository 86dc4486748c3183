//! The scanner's observer: turns what it has read into events, and keeps how far it has come.

use super::super::observer::{Observer, ScannedEnd, ScannedMarkup, ScannedTag};
use super::super::refusal::{Code, Fault, Step};
use super::events::{EndTag, Handler, Markup, MarkupKind, StartTag, Text};

/// How far a message has been read. Places are bytes of the text that is held.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Offset in the message of the first byte held; wraps, since names of open elements stand before.
    pub(crate) base: u64,
    /// All before it has been dealt with: the construct that begins here may not be all there yet.
    pub(crate) token: usize,
    /// All before it has been in the source of an event.
    pub(crate) shown: usize,
    /// What entities had expanded to before `token`.
    pub(crate) expanded: u64,
    pub(crate) elements: u64,
    /// `token` is inside a CDATA section.
    pub(crate) is_in_cdata: bool,
    /// Nothing follows the text that is held.
    pub(crate) is_last: bool,
    /// Defaults of attributes lie before it in the scratch buffer.
    pub(crate) scratch_kept: usize,
    /// Bytes of the names of open elements.
    pub(crate) open_bytes: u64,
    /// Bytes of names before the message.
    pub(crate) names_before: usize,
    pub(crate) held_max: u64,
}

impl Progress {
    /// Offset in the message.
    #[inline(always)]
    pub(crate) fn offset(&self, at: usize) -> u64 {
        self.base.wrapping_add(at as u64)
    }

    /// Offsets of what begins and ends at these bytes, or of the reference that brought it in.
    #[inline(always)]
    fn place(&self, start: usize, end: usize, entity_place: Option<usize>) -> (u64, u64) {
        match entity_place {
            None => (self.offset(start), self.offset(end)),
            Some(place) => (self.offset(place), self.offset(place)),
        }
    }

    /// More would have to be held than may be. The same is said however much has arrived.
    #[cold]
    pub(crate) fn too_much(&self, at: usize) -> Box<Fault> {
        let (given, maximum) = (self.held_max + 1, self.held_max);
        Fault::limit(Code::LimitHeldBytes, at, "held_bytes_max", given, maximum)
    }

    /// One construct must not be longer than the limit.
    #[inline(always)]
    pub(crate) fn check_held(&self, start: usize, end: usize) -> Step<()> {
        if (end - start) as u64 > self.held_max { Err(self.too_much(start)) } else { Ok(()) }
    }

    /// Markup whose bytes are these is shown to a handler.
    pub(crate) fn show_markup<H: Handler>(
        &mut self,
        handler: &mut H,
        kind: MarkupKind,
        markup: &ScannedMarkup<'_>,
    ) -> Step<()> {
        let ScannedMarkup { text, start, end, depth, entity_place } = *markup;
        self.check_held(start, end)?;
        let source = &text[start..end];
        let (start, end) = self.place(start, end, entity_place);
        let is_in_entity = entity_place.is_some();
        if !is_in_entity {
            self.shown = markup.end;
        }
        handler.markup(&Markup { kind, source, start, end, depth: depth as u32, is_in_entity });
        Ok(())
    }
}

pub(super) struct Watch<'w, H> {
    pub(crate) progress: Progress,
    pub(crate) handler: &'w mut H,
}

impl<H: Handler> Observer for Watch<'_, H> {
    const BUILDS_TREE: bool = false;

    #[inline(always)]
    fn token(&mut self, text: &str, at: usize, expanded: u64) -> Step<()> {
        let before = self.progress.token;
        // Tags and markup are looked at where they are shown, and text may be as long as it likes.
        if at.saturating_sub(before) as u64 > self.progress.held_max
            && text.as_bytes()[before] == b'&'
        {
            return Err(self.progress.too_much(before));
        }
        self.progress.token = at;
        self.progress.expanded = expanded;
        Ok(())
    }

    #[inline(always)]
    fn elements(&self) -> u64 {
        self.progress.elements
    }

    #[inline(always)]
    fn start(&mut self, tag: ScannedTag<'_>) -> Step<()> {
        let progress = &mut self.progress;
        progress.check_held(tag.start, tag.end)?;
        progress.elements += 1;
        progress.open_bytes += (tag.name_end - tag.start - 1) as u64;
        let names = tag.names.text_bytes().saturating_sub(progress.names_before);
        let most = progress.open_bytes.max(names as u64);
        if most.max(tag.memory.namespaces.uri_bytes() as u64) > progress.held_max {
            return Err(progress.too_much(tag.entity_place.unwrap_or(tag.start)));
        }
        let (start, end) = progress.place(tag.start, tag.end, tag.entity_place);
        if tag.entity_place.is_none() {
            progress.shown = tag.end;
        }
        self.handler.start(&StartTag {
            name: tag.name,
            start,
            end,
            depth: tag.memory.open.len() as u32 - 1,
            is_empty: tag.is_empty,
            is_in_entity: tag.entity_place.is_some(),
            is_verbatim: tag.tree.is_verbatim,
            source: &tag.text[tag.start..tag.end],
            written: &tag.text[tag.start + 1..tag.name_end],
            text: tag.text,
            document: tag.document,
            tag_at: tag.start,
            tree: tag.tree,
            list: tag.list,
            names: tag.names,
            memory: tag.memory,
        });
        Ok(())
    }

    #[inline(always)]
    fn end(&mut self, tag: ScannedEnd<'_>) {
        let progress = &mut self.progress;
        progress.open_bytes -= u64::from(tag.name_len);
        let (start, end) = progress.place(tag.start, tag.end, tag.entity_place);
        if tag.entity_place.is_none() {
            progress.shown = tag.end;
        }
        self.handler.end(&EndTag {
            name: tag.name,
            start,
            end,
            depth: tag.depth as u32,
            is_in_entity: tag.entity_place.is_some(),
            source: &tag.text[tag.start..tag.end],
        });
    }

    #[inline(always)]
    fn text(&mut self, document: &str, value: &str, at: usize) -> usize {
        let progress = &mut self.progress;
        if !value.is_empty() || at > progress.shown {
            let (start, end) = progress.place(progress.shown, at, None);
            let source = &document[progress.shown..at];
            progress.shown = at;
            self.handler.text(&Text { value, source, start, end });
        }
        progress.scratch_kept
    }

    fn markup(&mut self, markup: &ScannedMarkup<'_>) -> Step<()> {
        let is_comment = markup.text.as_bytes()[markup.start + 1] == b'!';
        let kind = if is_comment { MarkupKind::Comment } else { MarkupKind::Instruction };
        self.progress.show_markup(self.handler, kind, markup)
    }

    fn takes_part_of_cdata(&mut self) -> bool {
        self.progress.is_in_cdata = !self.progress.is_last;
        self.progress.is_in_cdata
    }

    fn resumes_cdata(&mut self) -> bool {
        std::mem::take(&mut self.progress.is_in_cdata)
    }
}
