//! A range of a file, read before anybody knows what it begins inside of.
//!
//! It is read once from every state of the machine that it may begin in: character data, a comment, an
//! attribute value, the middle of `<![CDATA[`. What comes of that is a function from the state before
//! the range to the state after it, with the [`Effect`] on open elements; functions of neighbours
//! compose, so that every range learns exactly what it begins inside of. Nothing is guessed.
//!
//! That costs little more than one reading. Two readings that meet in the same state at the same byte
//! go on as one; those that begin in a tag or a value where there is none come upon a `<` and end there;
//! those that begin in a comment or a section look for its end, which is the search for two bytes.

use super::effect::{Effect, Follower};
use super::lexer::{State, advance};

/// Readings are compared after so many bytes, and so many more.
const STEPS: [usize; 3] = [64, 1024, 64 << 10];

/// A range from a state: the state after it, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The state after the range; of no meaning where there is a fault.
    pub state: State,
    /// What the range does to open elements.
    pub effect: Effect,
}

/// A reading that goes on, or several that have become one.
struct Lane {
    state: State,
    follower: Follower,
    /// The piece that it is reading.
    piece: usize,
}

/// What a reading did until it ended or became one with others.
#[derive(Clone, Default)]
struct Piece {
    state: Option<State>,
    effect: Effect,
    /// The piece that goes on where this one ends.
    next: Option<usize>,
}

/// Reads a range block by block.
///
/// ```
/// use pathcast_core::files::records::{State, Survey};
/// let mut survey = Survey::new(2, 1000);
/// survey.feed(b"b='>'/><c>x</c></a><!--");
/// let outcomes = survey.outcomes();
/// // Begun in a start tag, it closes that element and `a`, and ends in a comment.
/// let in_tag = &outcomes[State::StartTag as usize];
/// assert_eq!((in_tag.state, in_tag.effect.closed), (State::Comment, 2));
/// // In a value in double quotes it cannot have begun: there is a `<` before the next quote.
/// assert!(outcomes[State::Double as usize].effect.fault.is_some());
/// ```
pub struct Survey {
    kept: usize,
    base: u64,
    lanes: Vec<Lane>,
    /// Those of the states come first, by number.
    pieces: Vec<Piece>,
    /// Bytes until readings are compared, and which step that is.
    left: usize,
    step: usize,
}

impl Survey {
    /// A survey of the range that begins at this offset, for records with so many ancestors.
    pub fn new(kept: usize, base: u64) -> Self {
        let lane = |(piece, state)| Lane { state, follower: Follower::new(kept), piece };
        Survey {
            kept,
            base,
            lanes: State::ALL.into_iter().enumerate().map(lane).collect(),
            pieces: vec![Piece::default(); State::ALL.len()],
            left: STEPS[0],
            step: 0,
        }
    }

    /// Reads the next block.
    pub fn feed(&mut self, mut block: &[u8]) {
        while !block.is_empty() {
            let (now, later) = block.split_at(self.left.min(block.len()));
            let (pieces, base) = (&mut self.pieces, self.base);
            self.lanes.retain_mut(|lane| {
                let Err(fault) = advance(&mut lane.state, now, base, &mut lane.follower) else {
                    return true;
                };
                lane.follower.effect.fault = Some(fault);
                lane.end(pieces, None);
                false
            });
            self.base += now.len() as u64;
            self.left -= now.len();
            block = later;
            if self.left == 0 {
                self.step = (self.step + 1).min(STEPS.len() - 1);
                self.left = STEPS[self.step];
                self.join();
            }
        }
    }

    /// Readings in the same state go on as one.
    fn join(&mut self) {
        self.lanes.sort_by_key(|lane| lane.state);
        let mut joined = Vec::with_capacity(self.lanes.len());
        let mut lanes = std::mem::take(&mut self.lanes).into_iter().peekable();
        while let Some(mut first) = lanes.next() {
            let is_same = |other: &Lane| other.state == first.state;
            if lanes.peek().is_some_and(is_same) {
                let next = self.pieces.len();
                self.pieces.push(Piece::default());
                while let Some(mut other) = lanes.next_if(|other| other.state == first.state) {
                    other.end(&mut self.pieces, Some(next));
                }
                first.end(&mut self.pieces, Some(next));
                first.piece = next;
                first.follower = Follower::new(self.kept);
            }
            joined.push(first);
        }
        self.lanes = joined;
    }

    /// What comes of the range, as far as it was read, from each state, by its number.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let mut pieces = self.pieces.clone();
        for lane in &self.lanes {
            let effect = lane.follower.effect.clone();
            pieces[lane.piece] = Piece { state: Some(lane.state), effect, next: None };
        }
        let outcome = |start: usize| {
            let first = &pieces[start];
            let (mut effect, mut state, mut next) = (first.effect.clone(), first.state, first.next);
            while let Some(number) = next {
                let piece = &pieces[number];
                effect = effect.then(&piece.effect, self.kept);
                (state, next) = (piece.state, piece.next);
            }
            Outcome { state: state.unwrap_or(State::Text), effect }
        };
        (0..State::ALL.len()).map(outcome).collect()
    }
}

impl Lane {
    fn end(&mut self, pieces: &mut [Piece], next: Option<usize>) {
        let effect = std::mem::take(&mut self.follower.effect);
        pieces[self.piece] = Piece { state: Some(self.state), effect, next };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &[u8] = b"<r><!-- <r> -- >--><a b='<'/>";

    /// Fails when a range and its halves, composed, differ: from any state, for any cut.
    #[test]
    fn outcomes_of_neighbours_compose() {
        let text = b"x<r a='>'>\"<s/> ]]><![CDATA[<r>]]><!-- <r> '-->\
            <?p <r> \"?></r></q><t><u b=\"'/\"><v></v></u></t>"
            .as_slice();
        for text in [text, HOSTILE] {
            for kept in [0, 1, 3] {
                let whole = surveyed(text, kept, 0);
                for cut in 0..=text.len() {
                    let (before, after) = text.split_at(cut);
                    let first = surveyed(before, kept, 0);
                    let second = surveyed(after, kept, cut as u64);
                    for state in State::ALL {
                        let one = first[state as usize].clone();
                        if one.effect.fault.is_some() {
                            assert_eq!(one.effect.fault, whole[state as usize].effect.fault);
                            continue;
                        }
                        let two = &second[one.state as usize];
                        let effect = one.effect.then(&two.effect, kept);
                        let expected = &whole[state as usize];
                        assert_eq!(effect, expected.effect, "{state:?} {cut}");
                        if effect.fault.is_none() {
                            assert_eq!(two.state, expected.state, "{state:?} {cut}");
                        }
                    }
                }
            }
        }
    }

    fn surveyed(text: &[u8], kept: usize, base: u64) -> Vec<Outcome> {
        let mut survey = Survey::new(kept, base);
        survey.feed(text);
        survey.outcomes()
    }

    /// Fails when readings that have become one lose what they did before.
    #[test]
    fn a_survey_is_each_reading_by_itself() {
        let piece = b"<a b='c'><d>text \" ' ]]> more</d><!-- x --><e f=\"g\"/></a></b><h>";
        let text = piece.repeat(2000);
        let found = surveyed(&text, 2, 7);
        for state in State::ALL {
            let (mut alone, mut at) = (Follower::new(2), state);
            let read = advance(&mut at, &text, 7, &mut alone);
            let outcome = &found[state as usize];
            assert_eq!(outcome.effect.fault, read.err(), "{state:?}");
            if read.is_ok() {
                assert_eq!((outcome.state, &outcome.effect), (at, &alone.effect), "{state:?}");
            }
        }
    }
}
