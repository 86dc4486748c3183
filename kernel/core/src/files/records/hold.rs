//! The bytes of the item at hand, wherever blocks end.

/// A block of the file, and where it begins.
#[derive(Clone, Copy)]
pub(super) struct Block<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) base: u64,
}

/// Bytes of earlier blocks that are still needed. Those of the block at hand are taken from it.
#[derive(Default)]
pub(super) struct Hold {
    bytes: Vec<u8>,
    from: u64,
}

impl Hold {
    /// A piece of the file that begins not before what is held, and ends in this block.
    pub(crate) fn slice<'s>(&'s mut self, block: Block<'s>, from: u64, to: u64) -> &'s [u8] {
        if from >= block.base || self.bytes.is_empty() {
            return &block.bytes[(from - block.base) as usize..(to - block.base) as usize];
        }
        self.extend(block, to);
        &self.bytes[(from - self.from) as usize..(to - self.from) as usize]
    }

    /// Forgets what lies before this offset.
    pub(crate) fn drop_before(&mut self, from: u64) {
        if from >= self.from + self.bytes.len() as u64 {
            self.bytes.clear();
        } else if from > self.from {
            self.bytes.drain(..(from - self.from) as usize);
            self.from = from;
        }
    }

    /// Keeps what of the block lies between two offsets, after what is held.
    pub(crate) fn carry(&mut self, block: Block<'_>, from: u64, to: u64) {
        if self.bytes.is_empty() {
            self.from = from.max(block.base);
        }
        self.extend(block, to);
    }

    fn extend(&mut self, block: Block<'_>, to: u64) {
        let held = self.from + self.bytes.len() as u64;
        if held < to {
            let range = (held - block.base) as usize..(to - block.base) as usize;
            self.bytes.extend_from_slice(&block.bytes[range]);
        }
    }
}
