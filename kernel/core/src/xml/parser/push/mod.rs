//! The push parser: a message that arrives in blocks, of any size and without end, as events.
//!
//! It checks what the door checks, with the door's own scanner, and refuses what the door refuses, with
//! the same code, line, column and offset, however the message is cut into blocks. It holds one
//! construct at most (a tag, a comment, an instruction, the document type declaration), the names of
//! open elements, the namespaces in scope and the distinct names, each up to
//! [`Bounds::held_bytes_max`]; text and CDATA sections are handed on in parts.
//!
//! ```
//! use pathcast_core::xml::parser::Limits;
//! use pathcast_core::xml::parser::push::{Bounds, Handler, PushParser, StartTag};
//!
//! #[derive(Default)]
//! struct Names(Vec<String>);
//! impl Handler for Names {
//!     fn start(&mut self, tag: &StartTag<'_>) {
//!         self.0.push(format!("{}@{}", tag.names().local(tag.name), tag.start));
//!     }
//! }
//!
//! let mut parser = PushParser::new(Limits::default(), Bounds::default());
//! let mut names = Names::default();
//! for block in [&b"<a><b x"[..], b"='1'/></", b"a>"] {
//!     parser.feed(block, &mut names)?;
//! }
//! parser.finish(&mut names)?;
//! assert_eq!(names.0, ["a@0", "b@3"]);
//! # Ok::<(), pathcast_core::xml::parser::Refusal>(())
//! ```
//!
//! A construct that has not arrived as a whole is tried again when there is more of it: the scanner says
//! that the text has ended, its traces are removed, and so there is no second grammar that would have to
//! find the ends of constructs. A fault is believed once enough has arrived behind it that
//! nothing to come could change it.
//!
//! It differs from the door in what depends on bytes that are yet to come: an encoding fault or too long a
//! message is reported where it is met, not before everything else; and
//! `entity_expansion_ratio_max`, which is taken of the message's length, is judged when the message has
//! ended without another fault. It does not build a tree, nor keep declared ids.

mod counts;
mod events;
mod input;
mod place;
mod stages;
mod watch;

pub use counts::Counts;
pub use events::{Attribute, EndTag, Handler, Held, Markup, MarkupKind, StartTag, Text};

use super::dtd::Dtd;
use super::encoding::{Charset, Detected, detect};
use super::limits::Limits;
use super::references::{Expansion, ratio_exceeded};
use super::refusal::{Code, Fault, Refusal, Step};
use super::refusal_at;
use super::scan::Memory;
use crate::xml::names::NameTable;
use crate::xml::tree::MessageTree;
use input::Input;
use place::Place;
use stages::{Stage, may_declare};
use watch::Progress;

/// Blocks are taken in by pieces of this size, which stay in the cache while they are looked at.
const PIECE: usize = 32 << 10;

/// What has been dealt with is dropped once it is this long.
const DROPPED_MIN: usize = 64 << 10;

/// The least of [`Bounds::held_bytes_max`].
const HELD_MIN: u32 = 128 << 10;

/// A fault this far from the end of what has arrived is one whatever comes: nothing looks further ahead,
/// and no more of a name is shown.
const CERTAIN: usize = 512;

/// How often a construct is tried again because it may be complete; after that, when it has doubled.
const HINTS_MAX: u32 = 8;

/// Charges of entities whose ratio to the length of the message is not known yet. Should there be more,
/// the place of a refusal is that of the last one kept.
const CHARGES_MAX: usize = 1 << 16;

/// What the push parser bounds otherwise than the door, in place of the same names in [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of a message as they arrive.
    pub message_bytes_max: u64,
    /// Elements.
    pub elements_max: u64,
    /// Bytes that may have to be held of a message: of one tag, comment, instruction or document type
    /// declaration; of the names of all open elements; of the namespaces declared on them; of all distinct
    /// names. At least 128 KiB.
    pub held_bytes_max: u32,
}

impl Default for Bounds {
    /// Messages without end, and no construct longer than a message may be at the door.
    fn default() -> Self {
        Bounds { message_bytes_max: u64::MAX, elements_max: u64::MAX, held_bytes_max: 8 << 20 }
    }
}

/// Reads messages one after the other, each as it arrives.
pub struct PushParser {
    limits: Limits,
    bounds: Bounds,
    names: NameTable,
    memory: Memory,
    tree: MessageTree,
    input: Input,
    /// Memory for the text that is held next.
    spare: String,
    progress: Progress,
    stage: Stage,
    encoding: Option<String>,
    /// The message's first bytes, until they show the encoding.
    head: Vec<u8>,
    bytes: u64,
    /// The first byte of the text that line and column are known of.
    place: Place,
    /// Length of the construct that was not complete when it was tried last, and tries since it began.
    waiting: usize,
    hints: u32,
    is_standalone: bool,
    has_doctype: bool,
    dtd: Dtd,
    expansion: Expansion,
    charges: Vec<(u64, Place)>,
    context: u32,
    message_clock: u64,
    names_seen: u32,
    refusal: Option<Refusal>,
    is_finished: bool,
}

impl std::fmt::Debug for PushParser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushParser").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl PushParser {
    /// A parser with these limits, ready for a message.
    pub fn new(limits: Limits, bounds: Bounds) -> Self {
        let held = bounds.held_bytes_max.clamp(HELD_MIN, 1 << 30);
        let mut parser = PushParser {
            limits,
            bounds: Bounds { held_bytes_max: held, ..bounds },
            names: NameTable::default(),
            memory: Memory::new(),
            tree: MessageTree::default(),
            input: Input::new(),
            spare: String::new(),
            progress: Progress::default(),
            stage: Stage::Encoding,
            encoding: None,
            head: Vec::new(),
            bytes: 0,
            place: Place::first(0),
            waiting: 0,
            hints: 0,
            is_standalone: false,
            has_doctype: false,
            dtd: Dtd::default(),
            expansion: Expansion::of_stream(),
            charges: Vec::new(),
            context: 0,
            message_clock: 0,
            names_seen: 0,
            refusal: None,
            is_finished: false,
        };
        parser.tree.has_source_spans = true;
        parser.begin(None);
        parser
    }

    /// Begins a message, whatever has become of the one before. `encoding` is what the caller knows of its
    /// encoding; it goes before byte order mark and declaration.
    pub fn begin(&mut self, encoding: Option<&str>) {
        self.memory.begin(&mut self.names);
        self.memory.clock += 1;
        self.message_clock = self.memory.clock;
        self.tree.clear();
        self.tree.is_verbatim = true;
        self.input.begin(Detected { charset: Charset::Utf8, mark: 0, is_given: false });
        self.progress = Progress {
            names_before: self.names.text_bytes(),
            held_max: self.bounds.held_bytes_max.into(),
            ..Progress::default()
        };
        self.stage = Stage::Encoding;
        self.encoding = encoding.map(str::to_owned);
        self.head.clear();
        self.bytes = 0;
        self.place = Place::first(0);
        self.waiting = 0;
        self.is_standalone = false;
        self.has_doctype = false;
        self.dtd = Dtd::default();
        self.expansion = Expansion::of_stream();
        self.charges.clear();
        self.context = 0;
        self.names_seen = 0;
        self.refusal = None;
        self.is_finished = false;
    }

    /// Takes in the next bytes of the message, hands on what they complete.
    ///
    /// # Errors
    /// The message is refused; so is everything that is fed after it, until the next begins.
    ///
    /// # Panics
    /// The message has been finished, and no other has begun.
    pub fn feed<H: Handler>(&mut self, block: &[u8], handler: &mut H) -> Result<(), Refusal> {
        assert!(!self.is_finished, "feed after finish: begin comes first");
        block.chunks(PIECE).try_for_each(|piece| self.take(piece, false, handler))
    }

    /// The message ends here.
    ///
    /// # Errors
    /// The message is refused.
    pub fn finish<H: Handler>(&mut self, handler: &mut H) -> Result<(), Refusal> {
        self.take(&[], true, handler)?;
        self.is_finished = true;
        Ok(())
    }

    /// Refuses the message where it is: something that is made of it has come to a limit.
    pub(crate) fn refuse_limit(&mut self, code: Code, limit: &str, maximum: u64) -> Refusal {
        self.refuse(*Fault::limit(code, self.progress.token, limit, maximum + 1, maximum))
    }

    /// What name ids stand for. Ids stay good for the message, and after it while
    /// [`NameTable::generation`] does.
    pub(crate) fn names(&self) -> &NameTable {
        &self.names
    }

    /// Open elements.
    pub fn depth(&self) -> usize {
        self.memory.open.len()
    }

    /// Elements so far.
    pub fn elements(&self) -> u64 {
        self.progress.elements
    }

    /// Bytes so far, as they arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// As [`MessageTree::is_verbatim`], of what has been read so far.
    pub fn is_verbatim(&self) -> bool {
        self.tree.is_verbatim
    }

    /// Bytes of memory held for the message, about.
    pub fn held_bytes(&self) -> usize {
        self.input.text.capacity()
            + self.spare.capacity()
            + self.input.ends.capacity() * 16
            + self.head.capacity()
            + self.tree.scratch.capacity()
            + self.names.text_bytes()
            + self.memory.held_bytes()
    }

    fn take<H: Handler>(
        &mut self,
        piece: &[u8],
        is_last: bool,
        handler: &mut H,
    ) -> Result<(), Refusal> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        self.bytes += piece.len() as u64;
        match self.take_in(piece, is_last, handler) {
            Ok(()) => Ok(()),
            Err(fault) => Err(self.refuse(*fault)),
        }
    }

    fn take_in<H: Handler>(&mut self, piece: &[u8], is_last: bool, handler: &mut H) -> Step<()> {
        self.check_size(self.bytes)?;
        if self.stage == Stage::Encoding {
            self.head.extend_from_slice(piece);
            if !self.detect(is_last)? {
                return Ok(());
            }
        } else {
            self.input.add(piece, is_last);
        }
        if !self.input.is_verbatim() {
            self.check_size(self.progress.offset(self.input.text.len()))?;
        }
        self.progress.is_last = is_last || self.input.stop.is_some();
        if !self.is_worth_a_try(piece) {
            return Ok(());
        }
        let outcome = self.read(handler);
        handler.paused(&Held { text: &self.input.text, base: self.progress.base });
        self.settle_charges();
        match (self.input.stop, outcome) {
            (None, outcome) => outcome?,
            (Some(_), Err(fault)) if fault.code != Code::End => return Err(fault),
            (Some(stop), _) => return Err(self.input.stop_fault(stop)),
        }
        if is_last {
            return self.check_ratio();
        }
        let rest = self.input.text.len() - self.progress.token;
        if rest as u64 > self.progress.held_max + CERTAIN as u64 {
            return Err(self.progress.too_much(self.progress.token));
        }
        self.waiting = rest;
        if self.progress.token - self.place.at > DROPPED_MIN.max(rest) {
            self.drop_text();
        }
        if self.memory.qnames.is_full()
            || self.memory.namespaces.is_full()
            || self.memory.namespaces.has_idle_prefixes()
        {
            self.memory.forget(&mut self.context);
        }
        Ok(())
    }

    fn check_size(&self, bytes: u64) -> Step<()> {
        let maximum = self.bounds.message_bytes_max;
        if bytes <= maximum {
            return Ok(());
        }
        let code = Code::LimitMessageBytes;
        Err(Fault::limit(code, 0, "message_bytes_max", maximum + 1, maximum))
    }

    /// Finds out the encoding; false if too little has arrived.
    fn detect(&mut self, is_last: bool) -> Step<bool> {
        let head = &self.head;
        if !is_last && (head.len() < 4 || may_declare(head)) {
            let is_too_much = head.len() as u64 > self.progress.held_max;
            return if is_too_much { Err(self.progress.too_much(0)) } else { Ok(false) };
        }
        let detected = detect(head, self.encoding.as_deref())?;
        self.input.begin(detected);
        self.place = Place::first(detected.mark as u64);
        self.progress.base = if self.input.is_verbatim() { detected.mark as u64 } else { 0 };
        self.stage = Stage::Declaration;
        let head = std::mem::take(&mut self.head);
        self.input.add(&head[detected.mark..], is_last);
        Ok(true)
    }

    /// Whether a construct that was not complete may be so now.
    fn is_worth_a_try(&mut self, piece: &[u8]) -> bool {
        let rest = self.input.text.len() - self.progress.token;
        let is_long = rest as u64 > self.progress.held_max + CERTAIN as u64;
        if self.progress.is_last || is_long || rest >= 2 * self.waiting {
            return true;
        }
        let is_hint = self.hints < HINTS_MAX && memchr::memchr2(b'>', b';', piece).is_some();
        self.hints += u32::from(is_hint);
        is_hint
    }

    /// Drops the text that has been dealt with, but for the names of open elements, with which end tags are
    /// compared.
    fn drop_text(&mut self) {
        let token = self.progress.token;
        self.place.advance(&self.input, token);
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        self.memory.move_names(&self.input.text, &mut text);
        let head = text.len();
        text.push_str(&self.input.text[token..]);
        self.spare = std::mem::replace(&mut self.input.text, text);
        if self.spare.capacity() > 4 * DROPPED_MIN.max(self.input.text.len()) {
            self.spare = String::new();
        }
        let moved = |at: usize| at - token + head;
        self.input.ends.retain(|&(end, _)| end > token);
        self.input.ends.iter_mut().for_each(|(end, _)| *end = moved(*end));
        self.place.at = head;
        self.progress.base =
            self.progress.base.wrapping_add((token as u64).wrapping_sub(head as u64));
        self.progress.token = head;
        self.progress.shown = head;
    }

    /// Keeps of what entities have expanded to what may turn out to be too much for the length of the
    /// message.
    fn settle_charges(&mut self) {
        let Some(fresh) = &mut self.expansion.charges else { return };
        if fresh.is_empty() {
            return;
        }
        let mut place = self.place;
        for (after, at) in fresh.drain(..) {
            if self.charges.len() < CHARGES_MAX {
                place.advance(&self.input, at);
                self.charges.push((after, place));
            }
        }
        let allowed = u64::from(self.limits.entity_expansion_ratio_max).saturating_mul(self.bytes);
        self.charges.retain(|&(after, _)| after > allowed);
    }

    /// Entities must not expand to too many times the length of the message, which is known now.
    fn check_ratio(&mut self) -> Step<()> {
        let maximum = u64::from(self.limits.entity_expansion_ratio_max);
        let allowed = maximum.saturating_mul(self.bytes);
        if self.expansion.bytes <= allowed {
            return Ok(());
        }
        let first = self.charges.iter().find(|(after, _)| *after > allowed).or(self.charges.last());
        let (bytes, place) = *first.unwrap_or(&(self.expansion.bytes, self.place));
        self.place = place;
        Err(ratio_exceeded(bytes, self.bytes, maximum, place.at))
    }

    /// Counts line and column of a fault; the message is over.
    #[cold]
    fn refuse(&mut self, fault: Fault) -> Refusal {
        let refusal = if self.stage == Stage::Encoding || fault.code == Code::LimitMessageBytes {
            let early = Detected { charset: Charset::Latin1, mark: 0, is_given: false };
            refusal_at(fault, &self.head, early, "")
        } else {
            let mut place = self.place;
            place.advance(&self.input, fault.at.max(place.at));
            let Place { line, column, offset, .. } = place;
            Refusal { code: fault.code, line, column, offset, params: fault.params }
        };
        self.refusal = Some(refusal.clone());
        refusal
    }
}
