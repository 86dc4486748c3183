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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::records::{Cut, Cutter, NameTest, Survey};
    use crate::xml::parser::Limits;

    const PARTS: [&[u8]; 20] = [
        b"<r>",
        b"</r>",
        b"<r/>",
        b"<m a='>'>",
        b"</m>",
        b"x",
        b"<!-- <r> -->",
        b"<![CDATA[</m>]]>",
        b"<?p <r>?>",
        b"</l>",
        b"<l>",
        b"<r b=\"'/\">",
        b"<",
        b">",
        b"/",
        b"'",
        b"--",
        b"]]>",
        b"<x/>",
        b" ",
    ];

    /// Fails when a cutter finds another place than composed surveys do, in whatever it begins, or goes on
    /// where these say that the file breaks off.
    #[test]
    fn places_are_the_same_by_surveys_and_by_cutting() {
        let mut seed = 7u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        let (mut known, mut broken) = (0, 0);
        for number in 0..4000 {
            let levels = number % 4;
            let cut = Cut {
                path: vec![NameTest::default(); levels + 1],
                limits: Limits::default(),
                context_bytes_max: 1 << 10,
                head: Vec::new(),
                has_doctype: false,
            };
            // Half of them begin well, so that they come somewhere.
            let mut text: Vec<u8> = if random(2) == 0 { b"<l><m><r>".into() } else { Vec::new() };
            (0..random(12)).for_each(|_| text.extend_from_slice(PARTS[random(PARTS.len())]));
            let first = random(text.len() + 1);
            let second = first + random(text.len() + 1 - first);
            let mut place = Some(Place::root());
            for (start, until) in [(0, first), (first, second), (second, text.len())] {
                let Some(here) = place else { break };
                let mut survey = Survey::new(levels, start as u64);
                survey.feed(&text[start..until]);
                place = here.after(&survey.outcomes()[here.state as usize], levels);
                let tags: Vec<_> = here.tags.iter().map(|_| b"<a>".to_vec()).collect();
                let mut cutter = Cutter::new(&cut, &here, &tags, start as u64, until as u64);
                cutter.feed(&text[start..]);
                assert_eq!(cutter.after(), place.as_ref(), "{:?}", String::from_utf8_lossy(&text));
                known += usize::from(place.is_some());
                broken += usize::from(place.is_none());
            }
        }
        assert!(known > 3000 && broken > 1000, "{known} {broken}");
    }
}
