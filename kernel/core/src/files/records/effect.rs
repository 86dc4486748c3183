//! What a range of a file does to the elements that are open before it, whatever they are.

use super::lexer::{LexicalFault, Sink};

/// Net effect of some markup: it closes elements that were open, and leaves others open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Elements closed that were open before.
    pub closed: u64,
    /// Elements opened afterwards, beside each other, at the lowest level reached; two stand for more.
    pub beside: u8,
    /// Elements left open.
    pub open: u64,
    /// Offsets of the start tags of the outermost of these; as many as records have ancestors.
    pub tags: Vec<u64>,
    /// The markup ends here.
    pub fault: Option<LexicalFault>,
}

impl Effect {
    /// The effect of this and then of another; `kept` is the most tags to be kept.
    pub(crate) fn then(mut self, next: &Effect, kept: usize) -> Effect {
        if self.fault.is_some() {
            return self;
        }
        if next.closed > self.open {
            self.closed += next.closed - self.open;
            (self.beside, self.open) = (next.beside, next.open);
            self.tags.clone_from(&next.tags);
        } else {
            self.open -= next.closed;
            if self.open == 0 {
                self.beside = (self.beside + next.beside).min(2);
            }
            self.tags.truncate(self.open.min(kept as u64) as usize);
            let room = kept - self.tags.len();
            self.open += next.open;
            self.tags.extend(next.tags.iter().take(room));
        }
        self.fault = next.fault;
        self
    }
}

/// Follows the effect of markup.
pub(super) struct Follower {
    pub(crate) effect: Effect,
    kept: usize,
}

impl Follower {
    pub(crate) fn new(kept: usize) -> Self {
        Follower { effect: Effect::default(), kept }
    }

    #[inline(always)]
    fn pop(&mut self) -> bool {
        let effect = &mut self.effect;
        if effect.open > 0 {
            effect.open -= 1;
            if effect.open < effect.tags.len() as u64 {
                effect.tags.pop();
            }
        } else {
            effect.closed += 1;
            effect.beside = 0;
        }
        false
    }
}

impl Sink for Follower {
    #[inline(always)]
    fn open(&mut self, at: u64) -> bool {
        let effect = &mut self.effect;
        if effect.open == 0 {
            effect.beside = (effect.beside + 1).min(2);
        }
        if effect.open < self.kept as u64 {
            effect.tags.push(at);
        }
        effect.open += 1;
        false
    }

    #[inline(always)]
    fn empty(&mut self, _end: u64) -> bool {
        self.pop()
    }

    #[inline(always)]
    fn close(&mut self, _end: u64) -> bool {
        self.pop()
    }
}
