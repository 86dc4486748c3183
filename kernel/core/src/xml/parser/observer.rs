//! Who looks on while the scanner reads: nobody, when it builds a tree; the push parser, when it
//! builds none and hands each construct on.
//!
//! There is one scanner. What it does for either is chosen when it is compiled, so that the door pays
//! nothing for the other.

use super::dtd::AttributeList;
use super::refusal::Step;
use super::scan::Memory;
use crate::xml::names::{NameId, NameTable};
use crate::xml::tree::MessageTree;

/// A start tag that has been read and checked as a whole.
pub(super) struct ScannedTag<'s> {
    /// The text that the tag is in: the document's, or an entity's.
    pub(crate) text: &'s str,
    /// The document, into which values point.
    pub(crate) document: &'s str,
    /// Its attributes and namespace declarations are the last rows of these columns.
    pub(crate) tree: &'s MessageTree,
    pub(crate) names: &'s NameTable,
    pub(crate) memory: &'s Memory,
    pub(crate) list: Option<&'s AttributeList>,
    pub(crate) name: NameId,
    /// Its `<`.
    pub(crate) start: usize,
    /// End of its name.
    pub(crate) name_end: usize,
    /// The byte after it.
    pub(crate) end: usize,
    pub(crate) is_empty: bool,
    /// Where the outermost entity being read is referred to.
    pub(crate) entity_place: Option<usize>,
}

/// What is neither element nor text.
pub(super) struct ScannedMarkup<'s> {
    pub(crate) text: &'s str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) depth: usize,
    pub(crate) entity_place: Option<usize>,
}

/// An element that ends.
pub(super) struct ScannedEnd<'s> {
    pub(crate) text: &'s str,
    pub(crate) name: NameId,
    pub(crate) name_len: u32,
    /// Its end tag; empty for an empty-element tag.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) depth: usize,
    pub(crate) entity_place: Option<usize>,
}

/// See the module.
pub(super) trait Observer {
    /// The columns of elements and texts are filled. If not, the tree holds the attributes and
    /// declarations of the tag at hand and nothing else.
    const BUILDS_TREE: bool;

    /// A construct of the document begins, at this byte; all before it has been dealt with, and
    /// entities have expanded to so many bytes.
    fn token(&mut self, _text: &str, _at: usize, _expanded: u64) -> Step<()> {
        Ok(())
    }

    /// Elements before the one that begins, where there is no tree to count them.
    fn elements(&self) -> u64 {
        0
    }

    fn start(&mut self, _tag: ScannedTag<'_>) -> Step<()> {
        Ok(())
    }

    fn end(&mut self, _end: ScannedEnd<'_>) {}

    /// Text up to byte `at` of the document, which is the place of a reference while an entity is
    /// read. Gives the length that the scratch buffer goes back to.
    fn text(&mut self, _document: &str, _value: &str, _at: usize) -> usize {
        0
    }

    fn markup(&mut self, _markup: &ScannedMarkup<'_>) -> Step<()> {
        Ok(())
    }

    /// Whether a CDATA section that the document does not end may go on when there is more of it.
    fn takes_part_of_cdata(&mut self) -> bool {
        false
    }

    /// Whether what comes is the rest of such a section; asked once.
    fn resumes_cdata(&mut self) -> bool {
        false
    }
}

/// The door's: there is a tree, and nobody looks on.
pub(super) struct TreeOnly;

impl Observer for TreeOnly {
    const BUILDS_TREE: bool = true;
}
