//! What a file was cut into: records as messages, and what could not be cut.

use crate::xml::parser::{Param, Refusal};

/// A batch is handed on when it has reached one of the two.
pub(crate) const BATCH_BYTES: usize = 4 << 20;
/// See [`BATCH_BYTES`].
pub(crate) const BATCH_ROWS: usize = 4096;

/// Why a row has no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Key in the catalogue of errors.
    pub code: &'static str,
    /// Offset in the file.
    pub at: u64,
    /// What the sentence of the catalogue needs besides.
    pub params: Vec<(&'static str, Param)>,
}

impl Fault {
    /// A limit is exceeded.
    pub(crate) fn limit(
        code: &'static str,
        limit: &str,
        at: u64,
        given: u64,
        maximum: u64,
    ) -> Self {
        let params = vec![
            ("limit", Param::Text(limit.into())),
            ("given", Param::Int(given)),
            ("maximum", Param::Int(maximum)),
        ];
        Fault { code, at, params }
    }

    /// What the door has refused, at this offset of the file.
    pub(crate) fn refused(refusal: Refusal, at: u64) -> Self {
        Fault { code: refusal.code.as_str(), at, params: refusal.params }
    }
}

/// Rows in the order of the file.
#[derive(Debug, Default)]
pub struct Rows {
    /// Where each record, or what stands in its place, begins.
    pub offsets: Vec<u64>,
    /// Bytes of each record in the file.
    pub sizes: Vec<u64>,
    /// The messages, one after the other.
    pub values: Vec<u8>,
    /// Where each message ends in `values`.
    pub ends: Vec<usize>,
    /// Rows without a message, and why.
    pub faults: Vec<(usize, Fault)>,
}

impl Rows {
    /// Adds a record.
    #[inline]
    pub(crate) fn add(&mut self, at: u64, record: &[u8], before: &[u8], after: &[u8]) {
        self.values.extend_from_slice(before);
        self.values.extend_from_slice(record);
        self.values.extend_from_slice(after);
        self.end_row(at, record.len() as u64);
    }

    /// Adds what is not to be had.
    pub(crate) fn refuse(&mut self, at: u64, size: u64, fault: Fault) {
        self.faults.push((self.offsets.len(), fault));
        self.end_row(at, size);
    }

    fn end_row(&mut self, at: u64, size: u64) {
        self.offsets.push(at);
        self.sizes.push(size);
        self.ends.push(self.values.len());
    }

    /// Whether it is time to hand them on.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.values.len() >= BATCH_BYTES || self.offsets.len() >= BATCH_ROWS
    }
}
