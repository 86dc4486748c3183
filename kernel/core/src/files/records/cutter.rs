//! Records of a range whose place is known, as messages.
//!
//! A file is a row of *items* at the level above records: elements of the level of records, tags of
//! their ancestors, and text, comments, sections and instructions between them. An item belongs to the
//! range in which it begins. A cutter looks for the first `<` of its range at that level that ends
//! text, begins there, and goes on until there is such a `<` beyond its range: so each item is handled
//! once, however a file is shared out.
//!
//! What is no record is checked by the door together with the ancestors: its faults are rows without a
//! message, and cost nothing else. Where tags do not add up the file breaks off.

use super::context::Context;
use super::gaps::{Gap, too_long};
use super::hold::{Block, Hold};
use super::judge::{Judge, NameTest};
use super::lexer::{LexicalFault, Sink, State, advance};
use super::place::Place;
use super::rows::{Fault, Rows};
use crate::xml::parser::{Code, Limits, Param};

/// A message that is made of a record is never longer, whatever limits say: rows are counted in 32 bits.
const MESSAGE_BYTES_MAX: u64 = 2_000_000_000;

/// What is to be cut out of a file.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Tests of the names from the root element to a record.
    pub path: Vec<NameTest>,
    /// What a message may cost.
    pub limits: Limits,
    /// Bytes of what is written around each record.
    pub context_bytes_max: usize,
    /// What stands before the root element of each message ([`crate::xml::parser::Head::carried`]).
    pub head: Vec<u8>,
    /// The file has a document type declaration.
    pub has_doctype: bool,
}

/// What a cutter is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// An item that belongs to a range before.
    Foreign,
    /// No element of the level of records.
    Between,
    /// The start tag of such an element.
    Undecided,
    /// Such an element that is no record.
    Other,
    /// A record.
    Record,
    /// Nothing any more.
    Done,
}

/// Cuts one range.
///
/// ```
/// use pathcast_core::xml::parser::Limits;
/// use pathcast_core::files::records::{Cut, Cutter, NameTest, Place};
///
/// let name = |local: &str| NameTest { uri: Some(String::new()), local: Some(local.into()) };
/// let cut = Cut {
///     path: vec![name("list"), name("record")],
///     limits: Limits::default(),
///     context_bytes_max: 1 << 16,
///     head: Vec::new(),
///     has_doctype: false,
/// };
/// let file = b"<list day='1'><record>1</record> <!-- <record/> --> <record/></list>";
/// let mut cutter = Cutter::new(&cut, &Place::root(), &[], 0, file.len() as u64);
/// cutter.feed(file);
/// cutter.finish();
/// let rows = cutter.take();
/// assert_eq!(rows.offsets, [14, 52]);
/// assert_eq!(&rows.values[..rows.ends[0]], b"<list day='1'><record>1</record></list>");
/// ```
pub struct Cutter {
    state: State,
    base: u64,
    body: Body,
}

pub(super) struct Body {
    pub(super) judge: Judge,
    pub(super) context: Context,
    context_bytes_max: u64,
    pub(super) message_bytes_max: u64,
    pub(super) has_doctype: bool,
    start: u64,
    until: u64,
    /// The place at `until`, once it has come there.
    after: Option<Place>,
    /// Elements open.
    depth: u64,
    /// Elements above a record.
    ancestors: u64,
    pub(super) is_closed: bool,
    mode: Mode,
    pub(super) hold: Hold,
    /// The start tag at hand of an ancestor, or that of the element of the level of records.
    tag: u64,
    is_in_ancestor_tag: bool,
    /// Where the start tags of the ancestors begin whose tags are complete.
    tags: Vec<u64>,
    /// Its beginning, where the whole of it is not held.
    long_tag: Option<Vec<u8>>,
    pub(super) gap: Gap,
    /// The record at hand is longer than a message may be; the fault in what could be a message of it.
    is_too_long: bool,
    earlier: Option<Fault>,
    pub(super) rows: Rows,
}

impl Cutter {
    /// A cutter of the range from `start` to `until`.
    ///
    /// `tags` are the start tags of the elements that `place` names, whole even where the range begins
    /// inside the last of them.
    pub fn new(cut: &Cut, place: &Place, tags: &[Vec<u8>], start: u64, until: u64) -> Self {
        let judge = Judge::new(cut.path.clone(), &cut.limits);
        let mut context = Context::new(&cut.head, cut.context_bytes_max);
        tags.iter().for_each(|tag| context.push(tag));
        let mut hold = Hold::default();
        if place.state == State::Less && start > 0 {
            // The first byte of a tag that may be an ancestor's.
            hold.carry(Block { bytes: b"<", base: start - 1 }, start - 1, start);
        }
        let body = Body {
            ancestors: judge.ancestors() as u64,
            judge,
            context,
            context_bytes_max: cut.context_bytes_max as u64,
            message_bytes_max: u64::from(cut.limits.message_bytes_max).min(MESSAGE_BYTES_MAX),
            has_doctype: cut.has_doctype,
            start,
            until,
            after: None,
            depth: place.depth,
            is_closed: place.is_closed,
            mode: Mode::Foreign,
            hold,
            tag: start,
            is_in_ancestor_tag: false,
            tags: place.tags.clone(),
            long_tag: None,
            gap: Gap::new(start, place.is_closed),
            is_too_long: false,
            earlier: None,
            rows: Rows::default(),
        };
        let mut cutter = Cutter { state: place.state, base: start, body };
        cutter.pass_until();
        cutter
    }

    /// Reads on; gives the bytes read, which are fewer than there are when rows are to be taken first.
    pub fn feed(&mut self, block: &[u8]) -> usize {
        let mut at = 0;
        while at < block.len() && !self.is_done() && !self.body.rows.is_full() {
            // A part ends where the range does, so that the place there is told.
            let rest = &block[at..];
            let left = self.body.until.saturating_sub(self.base);
            let size = if left == 0 { rest.len() } else { left.min(rest.len() as u64) as usize };
            let part = Block { bytes: &rest[..size], base: self.base };
            let mut cutting = Cutting { body: &mut self.body, block: part };
            let read = match advance(&mut self.state, part.bytes, self.base, &mut cutting) {
                Ok(read) => read,
                Err(fault) => {
                    self.body.break_off(part, fault);
                    part.bytes.len()
                }
            };
            self.body.carry(Block { bytes: &part.bytes[..read], base: self.base });
            self.base += read as u64;
            at += read;
            self.pass_until();
        }
        if self.is_done() { block.len() } else { at }
    }

    /// Where the range ends: what the next one begins in is known, and when nothing begins in this one,
    /// nothing more is wanted.
    fn pass_until(&mut self) {
        let body = &mut self.body;
        if self.base < body.until || body.after.is_some() || body.mode == Mode::Done {
            return;
        }
        let mut tags = body.tags.clone();
        if body.is_in_ancestor_tag {
            tags.push(body.tag);
        }
        let (depth, is_closed) = (body.depth, body.is_closed);
        body.after = Some(Place { state: self.state, depth, is_closed, tags });
        if body.mode == Mode::Foreign {
            body.mode = Mode::Done;
        }
    }

    /// What the range after this one begins in: as [`Place::after`] a survey of this one, without one.
    /// Nothing where this one has not been read to its end, or the file breaks off in it.
    pub fn after(&self) -> Option<&Place> {
        self.body.after.as_ref()
    }

    /// The file ends here.
    pub fn finish(&mut self) {
        let end = Block { bytes: &[], base: self.base };
        let body = &mut self.body;
        match body.mode {
            Mode::Foreign | Mode::Done => {}
            Mode::Between if body.is_closed && self.state == State::Text => {
                body.end_gap(end, self.base);
            }
            _ => body.break_off(end, LexicalFault { code: Code::End, at: self.base }),
        }
        body.mode = Mode::Done;
    }

    /// Whether nothing more is wanted of the file.
    pub fn is_done(&self) -> bool {
        self.body.mode == Mode::Done
    }

    /// Whether rows are to be taken before it reads on.
    pub fn is_full(&self) -> bool {
        self.body.rows.is_full()
    }

    /// The offset up to which the file has been read.
    pub fn offset(&self) -> u64 {
        self.base
    }

    /// The rows so far.
    pub fn take(&mut self) -> Rows {
        std::mem::take(&mut self.body.rows)
    }
}

impl Body {
    /// Begins what lies between records.
    fn begin_gap(&mut self, at: u64) {
        self.mode = Mode::Between;
        self.gap = Gap::new(at, self.is_closed);
        self.hold.drop_before(at);
    }

    /// The tag of an element of the level of records is complete.
    #[inline]
    fn decide(&mut self, block: Block<'_>, end: u64) {
        if end - self.tag > self.message_bytes_max {
            self.begin_record();
            return;
        }
        let tag = self.hold.slice(block, self.tag, end);
        let (before, after) = (self.context.before(), self.context.after());
        let is_record = if self.context.is_too_long() {
            self.judge.may_be_record(tag)
        } else {
            self.judge.is_record(before, after, tag)
        };
        if is_record {
            self.begin_record();
        } else {
            self.mode = Mode::Other;
        }
    }

    fn begin_record(&mut self) {
        self.mode = Mode::Record;
        self.is_too_long = false;
        self.earlier = None;
    }

    /// The element of the level of records ends.
    #[inline]
    fn end_item(&mut self, block: Block<'_>, end: u64) -> bool {
        if self.mode == Mode::Record {
            let size = end - self.tag;
            let given = size + self.context.bytes() as u64;
            if self.context.is_too_long() {
                self.rows.refuse(self.tag, size, self.context_fault(self.tag));
            } else if self.is_too_long || given > self.message_bytes_max {
                let fault = too_long(self.tag, given, self.message_bytes_max);
                self.rows.refuse(self.tag, size, fault);
            } else {
                let record = self.hold.slice(block, self.tag, end);
                self.rows.add(self.tag, record, self.context.before(), self.context.after());
            }
            self.begin_gap(end);
        } else if self.mode == Mode::Other {
            self.mode = Mode::Between;
        }
        self.rows.is_full()
    }

    /// The start tag of an ancestor is complete.
    #[cold]
    fn enter(&mut self, block: Block<'_>, end: u64) {
        if !std::mem::take(&mut self.is_in_ancestor_tag) {
            return;
        }
        self.gap.change(&self.context);
        self.gap.is_tag_too_long |= end - self.tag > self.context_bytes_max;
        match self.long_tag.take() {
            Some(beginning) => self.context.push(&beginning),
            None => self.context.push(self.hold.slice(block, self.tag, end)),
        }
        self.tags.push(self.tag);
        self.judge.forget();
    }

    /// Ancestors have ended.
    fn leave(&mut self) {
        if self.depth >= self.context.depth() as u64 {
            return;
        }
        self.gap.change(&self.context);
        self.context.truncate(self.depth as usize);
        self.tags.truncate(self.depth as usize);
        self.judge.forget();
    }

    pub(super) fn context_fault(&self, at: u64) -> Fault {
        let maximum = self.context_bytes_max;
        let params = vec![("maximum", Param::Int(maximum))];
        Fault { code: "records.context", at, params }
    }

    /// Keeps of a block, all of which was read, what is needed of it.
    fn carry(&mut self, block: Block<'_>) {
        let end = block.base + block.bytes.len() as u64;
        match self.mode {
            Mode::Done => self.hold.drop_before(end),
            Mode::Foreign if self.is_in_ancestor_tag => self.carry_tag(block, end),
            Mode::Foreign => self.hold.drop_before(end),
            Mode::Record => self.carry_record(block, end),
            Mode::Between | Mode::Undecided | Mode::Other => self.carry_gap(block, end),
        }
    }

    /// Keeps the tag of an ancestor as far as it may be written around a record.
    fn carry_tag(&mut self, block: Block<'_>, end: u64) {
        if self.long_tag.is_some() {
            return;
        }
        if end - self.tag > self.context_bytes_max {
            let upto = self.tag + self.context_bytes_max;
            let held = self.hold.slice(block, self.tag, end);
            self.long_tag = Some(held[..(upto - self.tag) as usize].to_vec());
            self.gap.is_too_long = true;
            self.hold.drop_before(end);
        } else {
            self.hold.drop_before(self.tag);
            self.hold.carry(block, self.tag, end);
        }
    }

    fn carry_record(&mut self, block: Block<'_>, end: u64) {
        if self.is_too_long {
            return;
        }
        if end - self.tag + self.context.bytes() as u64 > self.message_bytes_max {
            self.earlier = self.fault_in(block, self.tag, end);
            self.is_too_long = true;
            self.hold.drop_before(end);
        } else {
            self.hold.carry(block, self.tag, end);
        }
    }

    fn carry_gap(&mut self, block: Block<'_>, end: u64) {
        if self.is_in_ancestor_tag {
            self.carry_tag(block, end);
        } else if self.gap.is_too_long || !self.trim_gap(block, end) {
            self.hold.drop_before(end);
        } else if end - self.gap.start <= self.message_bytes_max {
            self.hold.carry(block, self.gap.start, end);
        } else if self.mode == Mode::Undecided {
            // Nobody will ever have its name and its declarations together: a record, too long.
            self.begin_record();
            self.carry_record(block, end);
        } else {
            self.gap.earlier = self.fault_in(block, self.gap.start, end);
            self.gap.is_too_long = true;
            self.hold.drop_before(end);
        }
    }

    /// The file breaks off at a fault: whatever it lies in is a row without a message.
    #[cold]
    fn break_off(&mut self, block: Block<'_>, fault: LexicalFault) {
        let mode = std::mem::replace(&mut self.mode, Mode::Done);
        if matches!(mode, Mode::Foreign | Mode::Done) {
            return;
        }
        // What is wrong may have begun earlier, as an end tag that is missing.
        let to = fault.at.min(block.base + block.bytes.len() as u64);
        let is_long_tag = mode == Mode::Undecided && to - self.tag > self.message_bytes_max;
        let is_record = mode == Mode::Record || is_long_tag;
        let is_long_ancestor = self.gap.is_tag_too_long
            || self.is_in_ancestor_tag && to - self.tag > self.context_bytes_max;
        let earlier = if is_record && self.is_too_long {
            self.earlier.take()
        } else if is_record {
            self.fault_in(block, self.tag, to)
        } else if is_long_ancestor {
            None
        } else if self.gap.is_too_long {
            self.gap.earlier.take()
        } else {
            self.trim_gap(block, to);
            self.fault_in(block, self.gap.start, to)
        };
        let text = |text: &str| Param::Text(text.into());
        let params = match fault.code {
            Code::End => vec![("construct", text("the root element"))],
            Code::Tag if self.depth == 0 => vec![("expected", text("no end tag"))],
            Code::Tag => vec![("expected", text("\">\""))],
            Code::Name => vec![("name", text(""))],
            _ => Vec::new(),
        };
        let fault = Fault { code: fault.code.as_str(), at: fault.at, params };
        let fault = earlier.filter(|earlier| earlier.at < fault.at).unwrap_or(fault);
        let start = if is_record { self.tag } else { fault.at };
        self.rows.refuse(start, 0, fault);
    }
}

/// A cutter while it reads a block.
struct Cutting<'c> {
    body: &'c mut Body,
    block: Block<'c>,
}

impl Sink for Cutting<'_> {
    #[inline(always)]
    fn less(&mut self, at: u64) -> bool {
        let body = &mut *self.body;
        if body.depth > body.ancestors {
            return false;
        }
        if body.mode == Mode::Foreign && at >= body.start {
            body.begin_gap(at);
        }
        if body.mode == Mode::Between {
            body.end_gap(self.block, at);
            body.begin_gap(at);
            if at >= body.until {
                body.mode = Mode::Done;
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn open(&mut self, at: u64) -> bool {
        let body = &mut *self.body;
        if body.is_closed {
            body.break_off(self.block, LexicalFault { code: Code::Outside, at });
            return true;
        }
        body.depth += 1;
        if body.depth > body.ancestors + 1 {
            body.gap.elements += u64::from(body.mode == Mode::Other);
            return false;
        }
        if body.mode != Mode::Between {
            if body.mode == Mode::Foreign && body.depth <= body.ancestors {
                (body.tag, body.is_in_ancestor_tag) = (at, true);
            }
            return false;
        }
        body.tag = at;
        body.gap.elements += 1;
        if body.depth > body.ancestors {
            body.mode = Mode::Undecided;
        } else {
            body.is_in_ancestor_tag = true;
        }
        false
    }

    #[inline(always)]
    fn opened(&mut self, end: u64) -> bool {
        let body = &mut *self.body;
        if body.depth > body.ancestors + 1 {
            return false;
        }
        match body.mode {
            Mode::Undecided => body.decide(self.block, end),
            Mode::Between | Mode::Foreign => body.enter(self.block, end),
            _ => {}
        }
        false
    }

    #[inline(always)]
    fn empty(&mut self, end: u64) -> bool {
        let body = &mut *self.body;
        body.depth -= 1;
        if body.depth > body.ancestors {
            return false;
        }
        if body.mode == Mode::Undecided {
            body.decide(self.block, end);
        }
        body.after_element(self.block, end)
    }

    #[inline(always)]
    fn close(&mut self, end: u64) -> bool {
        let body = &mut *self.body;
        if body.depth > body.ancestors + 1 {
            body.depth -= 1;
            return false;
        }
        if body.depth == 0 {
            let at = body.gap.start;
            body.break_off(self.block, LexicalFault { code: Code::Tag, at });
            return true;
        }
        body.depth -= 1;
        body.after_element(self.block, end)
    }
}

impl Body {
    /// An element of the level of records, or an ancestor, has ended.
    #[inline(always)]
    fn after_element(&mut self, block: Block<'_>, end: u64) -> bool {
        if std::mem::take(&mut self.is_in_ancestor_tag) {
            // That of an empty one.
            self.gap.is_tag_too_long |= end - self.tag > self.context_bytes_max;
            self.long_tag = None;
        }
        self.is_closed |= self.depth == 0;
        if self.depth == self.ancestors && self.mode != Mode::Between {
            return self.end_item(block, end);
        }
        self.leave();
        false
    }
}
