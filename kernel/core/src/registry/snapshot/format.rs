//! The snapshot file: a header, a table of sections, sections of plain little-endian arrays.
//!
//! ```text
//! 0   8  "PATHCAST"
//! 8   4  format version
//! 12  4  kind: 0
//! 16  4  number of sections
//! 20  4  0
//! 24  8  length of the file
//! 32  4  CRC-32 of everything after the header
//! 36  4  CRC-32 of bytes 0..36
//! 40 24  0
//! 64     {tag u32, part u32, offset u64, length u64} per section, then the sections at multiples of 64
//! ```
//!
//! Part 0 is what is asked of messages as they come; each of the others is what is asked of them after a series of steps.
//!
//! Opening maps the file and checks both checksums, so a damaged file is refused as a whole and the
//! arrays can be used where they lie.

use crate::engine::interrupt::look;
use memmap2::Mmap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Version of the layout; others are refused. Since 6 there are subscriptions of all kinds.
pub const FORMAT: u32 = 6;
/// The kind; files of the papers' engine are of another.
const KIND: u32 = 0;
const MAGIC: &[u8; 8] = b"PATHCAST";
/// Files of subscriptions of the formats 1 to 5 began with it.
const MAGIC_OF_TABLES: &[u8; 8] = b"PATHCUST";
const HEADER: usize = 64;
const ALIGN: usize = 64;
const ENTRY: usize = 24;

/// What a section holds. The first eight are in every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Tag {
    /// u64 per query and one more: where its id ends in `Ids`.
    IdOffsets = 1,
    /// Ids, UTF-8.
    Ids = 2,
    /// As `IdOffsets`, for `Texts`.
    TextOffsets = 3,
    /// Query texts as registered, UTF-8.
    Texts = 4,
    /// u32 per query: which entry of `Namespaces`.
    NamespaceOf = 5,
    /// JSON array of objects prefix -> URI.
    Namespaces = 6,
    /// JSON object: version and the like.
    Metadata = 7,
    /// JSON object: what a message may cost, as agreed where the queries were registered. It is kept
    /// for whoever opens the file, and not read here.
    Limits = 8,
    /// u32 per symbol from the first name on, and one more.
    SymbolOffsets = 10,
    /// Symbols in canonical notation.
    Symbols = 11,
    /// u32 per state.
    StateSymbol = 12,
    /// Four u32 per state and one more.
    StateRecords = 13,
    /// Four u32 per state where a plan or a further alternative ends.
    EndRecords = 14,
    /// Three u32 per further alternative of queries that are alike, by where it ends.
    RangeRecords = 15,
    /// Five u32 per plan.
    PlanRecords = 16,
    /// u64 per plan and one more.
    PlanOffsets = 17,
    /// Canonical texts of the plans.
    PlanTexts = 18,
    /// u32 per query: the numbers in the order of their ids.
    IdOrder = 19,
    /// u64 per expression and one more.
    ExpressionOffsets = 20,
    /// Expressions in canonical text.
    Expressions = 21,
    /// u32 per expression: 1 if it needs more of a message than elements, attributes and text.
    ExpressionFlags = 22,
    /// u64 per subscriber and one more.
    SubscriberOffsets = 23,
    /// Subscribers, UTF-8.
    Subscribers = 24,
    /// u32 per subscription; none where all are filter queries.
    SubscriberOf = 25,
    /// u8 per subscription, what is delivered and in which language it is; none where all are filter queries.
    Modes = 26,
    /// u8 per subscription that has a gate, what is done where it holds; none where all are filter queries.
    Ways = 27,
    /// Three u32 per subscription that has steps, by number: its number, which series, its number there.
    Stepped = 28,
    /// The shared plans.
    SharedPlans = 29,
    /// u32 per subscription of a series: its number among all.
    Members = 30,
    /// JSON array of the steps of a series, and the different texts that they were given as.
    Steps = 31,
    /// u32 per subscription of a series: which of the texts.
    StepTexts = 32,
}

const TAGS: usize = 33;
/// Parts that a file may have.
const PARTS_MAX: u32 = 1 << 16;

/// Where the sections of a part are, by tag.
type Sections = [(usize, usize); TAGS];

/// Why a file was refused.
#[derive(Debug)]
pub enum FormatError {
    /// It cannot be read or written.
    Io(std::io::Error),
    /// It is something else.
    Foreign(&'static str),
    /// It has another layout version.
    Version(u32),
    /// It has been cut or changed.
    Damaged(&'static str),
}

impl From<std::io::Error> for FormatError {
    fn from(error: std::io::Error) -> Self {
        FormatError::Io(error)
    }
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Built(Vec<u64>),
}

/// A snapshot file in memory, checked.
#[derive(Debug)]
pub struct SnapshotFile {
    bytes: Bytes,
    parts: Vec<Sections>,
}

/// One part of a file.
#[derive(Clone, Debug)]
pub struct FilePart {
    file: Arc<SnapshotFile>,
    part: usize,
}

impl FilePart {
    /// The first part of a file.
    pub fn first(file: SnapshotFile) -> FilePart {
        FilePart { file: Arc::new(file), part: 0 }
    }

    /// Another part of the file, which is there.
    pub(crate) fn part(&self, part: usize) -> FilePart {
        FilePart { file: Arc::clone(&self.file), part }
    }

    /// A section; empty if the part has none of that tag.
    #[inline]
    pub fn bytes(&self, tag: Tag) -> &[u8] {
        &self.file.as_slice()[self.range(tag)]
    }

    /// A section as an array. A length that is no multiple of the element gives an empty array,
    /// which the checks of the caller refuse.
    #[inline]
    pub(crate) fn array<T: bytemuck::Pod>(&self, tag: Tag) -> &[T] {
        bytemuck::try_cast_slice(self.bytes(tag)).unwrap_or(&[])
    }

    /// Where a section lies in the file.
    #[inline]
    pub(crate) fn range(&self, tag: Tag) -> std::ops::Range<usize> {
        let (start, end) = self.file.parts[self.part][tag as usize];
        start..end
    }

    /// The file.
    pub(crate) fn file(&self) -> &Arc<SnapshotFile> {
        &self.file
    }
}

impl AsRef<[u8]> for SnapshotFile {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl SnapshotFile {
    /// Maps a file and checks it. Cost: one pass over the bytes for the checksum.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let file = File::open(path)?;
        if file.metadata()?.len() < HEADER as u64 {
            return Err(FormatError::Foreign("it is shorter than a header"));
        }
        // SAFETY: the map is read-only and private to this value. A snapshot is written under another
        // name and renamed, never changed in place; whoever truncates a mapped file from outside
        // gets a bus error, as with every memory-mapped format.
        let map = unsafe { Mmap::map(&file)? };
        Self::check(Bytes::Mapped(map))
    }

    fn check(bytes: Bytes) -> Result<Self, FormatError> {
        let all = bytes.as_slice();
        if all.get(..8) != Some(MAGIC) {
            if all.get(..8) == Some(MAGIC_OF_TABLES) {
                return Err(FormatError::Version(u32_at(all, 8)));
            }
            return Err(FormatError::Foreign("it does not begin with PATHCAST"));
        }
        let format = u32_at(all, 8);
        if u32_at(all, 36) != crc32fast::hash(&all[..36]) || all[40..HEADER].iter().any(|&b| b != 0)
        {
            return Err(FormatError::Damaged("the header does not match its checksum"));
        }
        if format != FORMAT {
            return Err(FormatError::Version(format));
        }
        if u64_at(all, 24) != all.len() as u64 {
            return Err(FormatError::Damaged("the length is not the one that was written"));
        }
        if u32_at(all, 32) != crc32fast::hash(&all[HEADER..]) {
            return Err(FormatError::Damaged("the content does not match its checksum"));
        }
        if u32_at(all, 12) != KIND {
            return Err(FormatError::Foreign("it is of another kind"));
        }
        let mut parts = vec![[(0, 0); TAGS]];
        let count = u32_at(all, 16) as usize;
        for entry in 0..count {
            let at = HEADER + entry * ENTRY;
            let fault = FormatError::Damaged("the section table is wrong");
            if at + ENTRY > all.len() {
                return Err(fault);
            }
            let (tag, part) = (u32_at(all, at), u32_at(all, at + 4));
            let (start, length) = (u64_at(all, at + 8), u64_at(all, at + 16));
            let end = start.checked_add(length).filter(|&end| end <= all.len() as u64);
            let Some(end) = end else { return Err(fault) };
            if start % ALIGN as u64 != 0 || part >= PARTS_MAX {
                return Err(fault);
            }
            if parts.len() <= part as usize {
                parts.resize(part as usize + 1, [(0, 0); TAGS]);
            }
            if let Some(section) = parts[part as usize].get_mut(tag as usize) {
                *section = (start as usize, end as usize);
            }
        }
        Ok(SnapshotFile { bytes, parts })
    }

    /// Number of parts.
    pub(crate) fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// All bytes of the file.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// A section of the first part; empty if it has none of that tag.
    #[inline]
    pub fn bytes(&self, tag: Tag) -> &[u8] {
        let (start, end) = self.parts[0][tag as usize];
        &self.bytes.as_slice()[start..end]
    }

    /// Writes the file beside its place and renames it, so that readers see all or nothing.
    pub fn save(&self, path: &Path) -> Result<(), FormatError> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let written = (|| {
            let mut file = File::create(&part)?;
            for piece in self.as_slice().chunks(PIECE) {
                file.write_all(piece)?;
                if look() {
                    return Err(std::io::Error::other("interrupted"));
                }
            }
            file.sync_all()?;
            std::fs::rename(&part, path)
        })();
        if written.is_err() {
            // The error that matters is the first one; the part file may never have existed.
            drop(std::fs::remove_file(&part));
        }
        Ok(written?)
    }
}

impl Bytes {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Built(words) => bytemuck::cast_slice(words),
        }
    }
}

/// Bytes written between two looks for an interruption.
const PIECE: usize = 1 << 20;

/// Puts sections together.
#[derive(Debug, Default)]
pub(crate) struct FileBuilder<'a> {
    sections: Vec<(u32, Tag, &'a [u8])>,
    part: u32,
}

impl<'a> FileBuilder<'a> {
    /// Adds a section to the part at hand.
    pub(crate) fn section<T: bytemuck::Pod>(&mut self, tag: Tag, items: &'a [T]) -> &mut Self {
        self.sections.push((self.part, tag, bytemuck::cast_slice(items)));
        self
    }

    /// The part at hand is the next one from here on.
    pub(crate) fn begin_part(&mut self) {
        self.part += 1;
    }

    /// The file.
    pub(crate) fn build(&self) -> SnapshotFile {
        let mut parts = vec![[(0, 0); TAGS]; self.part as usize + 1];
        let mut at = (HEADER + self.sections.len() * ENTRY).next_multiple_of(ALIGN);
        for (part, tag, bytes) in &self.sections {
            parts[*part as usize][*tag as usize] = (at, at + bytes.len());
            at = (at + bytes.len()).next_multiple_of(ALIGN);
        }
        let mut words = vec![0u64; at / 8];
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for (index, (part, tag, bytes)) in self.sections.iter().enumerate() {
            let (start, end) = parts[*part as usize][*tag as usize];
            let entry = HEADER + index * ENTRY;
            all[entry..entry + 4].copy_from_slice(&(*tag as u32).to_le_bytes());
            all[entry + 4..entry + 8].copy_from_slice(&part.to_le_bytes());
            all[entry + 8..entry + 16].copy_from_slice(&(start as u64).to_le_bytes());
            all[entry + 16..entry + 24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            all[start..end].copy_from_slice(bytes);
        }
        let length = all.len() as u64;
        let body = crc32fast::hash(&all[HEADER..]);
        all[..8].copy_from_slice(MAGIC);
        all[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        all[12..16].copy_from_slice(&KIND.to_le_bytes());
        all[16..20].copy_from_slice(&(self.sections.len() as u32).to_le_bytes());
        all[24..32].copy_from_slice(&length.to_le_bytes());
        all[32..36].copy_from_slice(&body.to_le_bytes());
        let header = crc32fast::hash(&all[..36]);
        all[36..40].copy_from_slice(&header.to_le_bytes());
        SnapshotFile { bytes: Bytes::Built(words), parts }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
