//! What is kept of a message only when it is asked for: comments, processing instructions,
//! prefixes, namespace declarations, declared ids ([`MessageTree::is_full`]), and where elements lie
//! ([`MessageTree::has_source_spans`]).

use super::attributes::written_name;
use super::chars::{name_end, skip_space};
use super::observer::{Observer, ScannedMarkup};
use super::refusal::Step;
use super::scan::{Prefixed, Scanner, Written, skip_comment, skip_instruction};
use super::text::push_with_line_ends;
use crate::xml::tree::{MarkupKind, MessageTree, NONE, Span};

/// Comment or instruction, by the bytes of a text.
struct Markup {
    kind: MarkupKind,
    target: (usize, usize),
    content: (usize, usize),
}

impl Markup {
    /// The comment that begins and ends at these bytes.
    fn comment(start: usize, end: usize) -> Self {
        let content = (start + 4, end - 3);
        Markup { kind: MarkupKind::Comment, target: (start, start), content }
    }

    /// The instruction that begins and ends at these bytes: its content begins after the white
    /// space behind the target (production 16).
    fn instruction(text: &str, start: usize, end: usize) -> Self {
        let target = (start + 2, name_end(text.as_bytes(), start + 2).min(end - 2));
        let content = (skip_space(text.as_bytes(), target.1), end - 2);
        Markup { kind: MarkupKind::Instruction, target, content }
    }
}

/// Adds comments or instructions to a tree.
struct Keeper<'k> {
    tree: &'k mut MessageTree,
    /// The text is the document itself, so that spans can point into it.
    is_document: bool,
    has_return: bool,
}

impl Keeper<'_> {
    fn add(&mut self, text: &str, markup: Markup, parent: u32) {
        let target = self.span(text, markup.target);
        let content = self.span(text, markup.content);
        self.tree.markup_kind.push(markup.kind);
        self.tree.markup_parent.push(parent);
        self.tree.markup_texts_before.push(self.tree.text_value.len() as u32);
        self.tree.markup_target.push(target);
        self.tree.markup_content.push(content);
    }

    /// A run of the text, line ends normalised (2.11).
    fn span(&mut self, text: &str, (start, end): (usize, usize)) -> Span {
        let run = &text[start..end];
        let has_return = self.is_document && self.has_return && run.contains('\r');
        if self.is_document && !has_return {
            return Span::in_message(start as u32, (end - start) as u32);
        }
        let from = self.tree.scratch.len();
        if has_return {
            push_with_line_ends(&mut self.tree.scratch, run);
        } else {
            self.tree.scratch.push_str(run);
        }
        Span::in_scratch(from as u32, (self.tree.scratch.len() - from) as u32)
    }
}

/// White space, comments and instructions outside the root element; gives the first byte of
/// anything else.
pub(super) fn read_misc<O: Observer>(
    text: &str,
    mut at: usize,
    tree: &mut MessageTree,
    has_return: bool,
    observer: &mut O,
) -> Step<usize> {
    let bytes = text.as_bytes();
    loop {
        at = skip_space(bytes, at);
        observer.token(text, at, 0)?;
        let rest = &bytes[at..];
        let (markup, end) = if rest.starts_with(b"<!--") {
            let end = skip_comment(text, at)?;
            (Markup::comment(at, end), end)
        } else if rest.starts_with(b"<?") {
            let end = skip_instruction(text, at)?;
            (Markup::instruction(text, at, end), end)
        } else {
            return Ok(at);
        };
        if tree.is_full {
            Keeper { tree, is_document: true, has_return }.add(text, markup, NONE);
        }
        let (start, entity_place) = (at, None);
        observer.markup(&ScannedMarkup { text, start, end, depth: 0, entity_place })?;
        at = end;
    }
}

impl<O: Observer> Scanner<'_, O> {
    /// A comment, from its `<` on; gives the byte after it (production 15).
    pub(crate) fn comment(&mut self, text: &str, at: usize) -> Step<usize> {
        let end = skip_comment(text, at).map_err(|fault| self.moved(fault))?;
        self.keep_markup(text, |_| Markup::comment(at, end))?;
        self.show_markup(text, at, end)?;
        Ok(end)
    }

    /// A processing instruction, from its `<` on; gives the byte after it (production 16).
    pub(crate) fn instruction(&mut self, text: &str, at: usize) -> Step<usize> {
        let end = skip_instruction(text, at).map_err(|fault| self.moved(fault))?;
        self.keep_markup(text, |text| Markup::instruction(text, at, end))?;
        self.show_markup(text, at, end)?;
        Ok(end)
    }

    fn keep_markup(&mut self, text: &str, markup: impl FnOnce(&str) -> Markup) -> Step<()> {
        if !self.tree.is_full {
            return Ok(());
        }
        let parent = self.memory.open.last().map_or(NONE, |open| open.element);
        let (is_document, has_return) = (self.entity_place.is_none(), self.has_return);
        Keeper { tree: self.tree, is_document, has_return }.add(text, markup(text), parent);
        self.check_scratch()
    }

    fn check_scratch(&self) -> Step<()> {
        if self.tree.scratch.len() > Span::IN_SCRATCH as usize {
            return Err(self.scratch_full());
        }
        Ok(())
    }

    /// Keeps what the columns have no place for otherwise of the element at hand: all of its tag has
    /// been read, its name is at these bytes.
    #[cold]
    pub(crate) fn keep_element(&mut self, text: &str, start: usize, end: usize) -> Step<()> {
        let markups = self.tree.markup_kind.len() as u32;
        self.tree.markup_start.push(markups);
        self.tree.markup_end.push(markups);
        self.tree.declaration_start.push(self.tree.declaration_uri.len() as u32);
        let written = Written::Here { start: start as u32, end: end as u32 };
        let prefix = self.prefix_span(&text[start..end], written, 0)?;
        self.tree.prefix.push(prefix);
        self.tree.attribute_prefix.resize(self.tree.attribute_name.len(), Span::default());
        let list = self.list;
        for index in 0..self.memory.prefixed.len() {
            let Prefixed { attribute, name } = self.memory.prefixed[index];
            let prefix = self.prefix_span(written_name(text, start, list, name).0, name, 0)?;
            self.tree.attribute_prefix[attribute as usize] = prefix;
        }
        Ok(())
    }

    /// Keeps where an element begins; one of an entity is nowhere in the message.
    #[inline(always)]
    pub(crate) fn keep_start(&mut self, start: usize) {
        let start = if self.entity_place.is_none() { start as u32 } else { 0 };
        self.tree.source_start.push(start);
        self.tree.source_end.push(start);
    }

    /// Keeps where it ends.
    #[inline(always)]
    pub(crate) fn keep_end(&mut self, element: usize, next: usize) {
        if self.tree.is_full {
            self.tree.markup_end[element] = self.tree.markup_kind.len() as u32;
        }
        if self.tree.has_source_spans && self.entity_place.is_none() {
            self.tree.source_end[element] = next as u32;
        }
    }

    /// Keeps that the attribute about to be added is an id, unless it declares a namespace.
    #[cold]
    pub(crate) fn keep_id(&mut self, name: &str) {
        if self.tree.is_full && name != "xmlns" && !name.starts_with("xmlns:") {
            self.tree.id_attribute.push(self.tree.attribute_name.len() as u32);
        }
    }

    /// Keeps a namespace declaration of the element at hand.
    #[cold]
    pub(crate) fn keep_declaration(&mut self, name: &str, written: Written, uri: Span) -> Step<()> {
        let from = if name.starts_with("xmlns:") { 6 } else { name.len() };
        let prefix = self.prefix_span(name, written, from)?;
        self.tree.declaration_prefix.push(prefix);
        self.tree.declaration_uri.push(uri);
        if O::BUILDS_TREE {
            self.tree.declaration_element.push(self.tree.name.len() as u32 - 1);
        }
        Ok(())
    }

    /// What of a name is before its colon or, given a place behind the colon, from there on.
    fn prefix_span(&mut self, name: &str, written: Written, from: usize) -> Step<Span> {
        let end = if from > 0 { name.len() } else { name.find(':').unwrap_or(0) };
        match written {
            _ if from == end => Ok(Span::default()),
            Written::Here { start, .. } if self.entity_place.is_none() => {
                Ok(Span::in_message(start + from as u32, (end - from) as u32))
            }
            _ => {
                let start = self.tree.scratch.len();
                self.tree.scratch.push_str(&name[from..end]);
                self.check_scratch()?;
                Ok(Span::in_scratch(start as u32, (end - from) as u32))
            }
        }
    }
}
