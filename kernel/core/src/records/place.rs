//! What a byte of a file lies in: the state of the machine, and the elements that are open.

use super::lexer::State;
use super::survey::Outcome;

/// What a byte of a file lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// In which markup.
    pub state: State,
    /// Elements that are open; one whose start tag is not complete is.
    pub depth: u64,
    /// The root element has ended.
    pub is_closed: bool,
    /// Offsets of the start tags of the outermost of these, as many as records have ancestors.
    pub tags: Vec<u64>,
}

impl Place {
    /// Where the root element begins.
    pub fn root() -> Self {
        Place { state: State::Text, depth: 0, is_closed: false, tags: Vec::new() }
    }

    /// The place after a range that begins here; nothing where the file breaks off in it.
    ///
    /// `outcome` is that of this state, `kept` the number of ancestors of a record.
    pub fn after(&self, outcome: &Outcome, kept: usize) -> Option<Place> {
        let Outcome { state, effect } = outcome;
        if effect.fault.is_some() || effect.closed > self.depth {
            return None;
        }
        let low = self.depth - effect.closed;
        // Beside each other, at the very top, there can be one element.
        let is_first = !self.is_closed && effect.closed == 0;
        if low == 0 && effect.beside > u8::from(is_first) {
            return None;
        }
        let depth = low + effect.open;
        let is_closed = self.is_closed || depth == 0 && (effect.closed > 0 || effect.beside > 0);
        let mut tags = self.tags.clone();
        tags.truncate(low.min(kept as u64) as usize);
        let room = kept - tags.len();
        tags.extend(effect.tags.iter().take(room));
        Some(Place { state: *state, depth, is_closed, tags })
    }
}
