//! What a message may cost; the same names and defaults as `pathcast.limits.Limits`.

/// What the door does with a document type declaration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DtdPolicy {
    /// Read the internal subset; never fetch an external one.
    #[default]
    Internal,
    /// Refuse the message.
    Refuse,
}

/// Bounds that the door enforces on one message.
///
/// ```
/// use pathcast_core::xml::parser::Limits;
/// let limits = Limits { depth_max: 64, ..Limits::default() };
/// assert_eq!(limits.names_max, 10_000);
/// # let _ = limits;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes as they arrive; also bounds the decoded text.
    pub message_bytes_max: u32,
    /// Elements from the root to the deepest one, both counted.
    pub depth_max: u32,
    /// Elements.
    pub elements_max: u32,
    /// Attributes of one element, namespace declarations and defaults included.
    pub attributes_max: u32,
    /// Bytes of one attribute value after normalisation.
    pub attribute_value_bytes_max: u32,
    /// Bytes that entities may expand to, as a multiple of the bytes of the message.
    pub entity_expansion_ratio_max: u32,
    /// Bytes that entities may expand to, whatever the message's size.
    pub entity_expansion_bytes_max: u32,
    /// Distinct names of elements and attributes.
    pub names_max: u32,
    /// Whether a document type declaration is read or refused.
    pub dtd: DtdPolicy,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            message_bytes_max: 8 << 20,
            depth_max: 256,
            elements_max: 1_000_000,
            attributes_max: 256,
            attribute_value_bytes_max: 64 << 10,
            entity_expansion_ratio_max: 10,
            entity_expansion_bytes_max: 8 << 20,
            names_max: 10_000,
            dtd: DtdPolicy::Internal,
        }
    }
}

impl Limits {
    /// Bytes that the text of a message may have: places in it are 31 bits.
    pub(super) fn text_bytes_max(&self) -> u64 {
        u64::from(self.message_bytes_max.min(i32::MAX as u32))
    }
}
