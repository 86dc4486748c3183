//! A stream's items, straight into the columns of the tree: nothing is searched for.
//!
//! The scanner's own steps are taken (names, namespaces, duplicates, declared attributes, every limit),
//! so that a stream gives the tree of its text, or is refused.

use super::super::observer::TreeOnly;
use super::super::refusal::{Fault, Step};
use super::super::scan::Scanner;
use super::item::{Attribute, Item, Items, Name, wrong};
use super::rebuild::Rebuilt;

impl<'a> Scanner<'a, TreeOnly> {
    /// Fills the tree from the items of a stream; `root` is the byte of its text at which the root
    /// element begins. Gives the byte after it. Places of faults are bytes of the text.
    pub(in super::super) fn items(
        &mut self,
        stream: &[u8],
        rebuilt: &Rebuilt,
        root: usize,
    ) -> Step<usize> {
        let document = self.document;
        let mut items = Items::new(stream, rebuilt.body);
        let mut at = 0;
        if root > 0 {
            at = match items.next()? {
                Some(Item::Raw(prolog)) if prolog.len() == root => root,
                _ => return Err(wrong(root - 1, "a prolog that is no item of its own")),
            };
        }
        while let Some(item) = items.next()? {
            let has_open = !self.memory.open.is_empty();
            at = match item {
                Item::Start { name, attributes, is_empty } => {
                    let len = rebuilt.name_len(name);
                    let attributes = (0..attributes).map(|_| items.attribute());
                    let name_len = |name: Name<'_>| rebuilt.name_len(name);
                    self.known_tag((at, at + 1 + len), attributes, name_len, is_empty)?
                }
                Item::End => {
                    self.flush_text(at)?;
                    let open = self.memory.open.last().map_or(0, |open| open.name_len as usize);
                    let end = at + open + 3;
                    self.close_element(document, at, end);
                    end
                }
                Item::Text(run) if has_open => {
                    let end = at + run.len();
                    if self.characters(&document[..end], at)? < end {
                        return Err(wrong(at, "markup in character data"));
                    }
                    end
                }
                Item::Raw(run) if has_open => {
                    let (end, open) = (at + run.len(), self.memory.open.len());
                    let closed = self.content(&document[..end], at, open)?;
                    if closed.is_some() || self.memory.open.len() > open {
                        return Err(wrong(at, "a start tag in what is not a tag"));
                    }
                    end
                }
                Item::Tag(tag) => {
                    let end = at + tag.len();
                    if self.start_tag(&document[..end], at)? < end {
                        return Err(wrong(at, "more than one tag in a tag"));
                    }
                    end
                }
                Item::Text(_) | Item::Raw(_) => {
                    return Err(wrong(at, "text outside the root element"));
                }
            };
            if self.memory.open.is_empty() {
                return Ok(at);
            }
        }
        Err(Fault::end("the root element", document.len()))
    }

    /// A start tag whose `<` and end of name are known, and of its attributes the lengths; gives the
    /// byte after it.
    #[inline(always)]
    fn known_tag<'w>(
        &mut self,
        (start, name_end): (usize, usize),
        attributes: impl Iterator<Item = Step<Attribute<'w>>>,
        name_len: impl Fn(Name<'w>) -> usize,
        is_empty: bool,
    ) -> Step<usize> {
        let text = self.document;
        self.flush_text(start)?;
        self.begin_tag(text, start + 1, name_end)?;
        let (mut at, mut count) = (name_end, 0);
        for attribute in attributes {
            let Attribute { name, value, quote } = attribute?;
            count += 1;
            self.check_attribute_count(count, at)?;
            let (name_start, name_end) = (at + 1, at + 1 + name_len(name));
            at = name_end + 3 + value.len();
            let (value, end) = self.attribute_value(text, name_end + 2, quote)?;
            if end != at {
                return Err(wrong(name_end, "a quote in a value between such quotes"));
            }
            self.named_value(text, (name_start, name_end, name_end + 1), value)?;
        }
        let next = at + 1 + usize::from(is_empty);
        self.finish_tag(text, (start, name_end, next), count, is_empty)?;
        Ok(next)
    }
}
