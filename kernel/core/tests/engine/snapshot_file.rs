//! Snapshot files that are changed, and signed again.

use pathcast_core::registry::snapshot::Snapshot;
use pathcast_core::registry::snapshot::format::FormatError;
use std::ops::Range;
use std::path::PathBuf;

/// A file that goes away with the test.
pub struct File(pub PathBuf);

impl File {
    pub fn new(name: &str) -> File {
        let name = format!("pathcast-{}-{name}.snapshot", std::process::id());
        File(std::env::temp_dir().join(name))
    }

    /// Opens a snapshot of these bytes, whose checksums are made right first.
    pub fn open_signed(&self, mut bytes: Vec<u8>) -> Result<Snapshot, FormatError> {
        sign(&mut bytes);
        std::fs::write(&self.0, &bytes).expect("written");
        Snapshot::open(&self.0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Makes the checksums those of the content, as somebody would who wants to be believed.
fn sign(bytes: &mut [u8]) {
    let body = crc32fast::hash(&bytes[64..]);
    bytes[32..36].copy_from_slice(&body.to_le_bytes());
    let header = crc32fast::hash(&bytes[..36]);
    bytes[36..40].copy_from_slice(&header.to_le_bytes());
}

/// A section of a file.
pub struct Section {
    pub tag: u32,
    /// Where its entry in the table is: tag, part, offset and length.
    pub entry: Range<usize>,
    pub content: Range<usize>,
}

/// The sections of a file, in the order of its table.
pub fn sections(bytes: &[u8]) -> Vec<Section> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let section = |at: usize| {
        let entry = 64 + at * 24..64 + (at + 1) * 24;
        // No file of a test is longer than 4 GiB.
        let start = word(entry.start + 8) as usize;
        let content = start..start + word(entry.start + 16) as usize;
        Section { tag: word(entry.start), entry, content }
    };
    (0..word(16) as usize).map(section).collect()
}
