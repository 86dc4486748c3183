//! Linear paths with numbers, found in a part of a message: from given places on, in given states.
//!
//! Whoever holds a piece of a larger automaton does not begin at the document. It is told which paths end at
//! which elements, and finds what goes on from there. So a run begins with nothing active; where an element
//! has *entries*, the states in which the paths of those numbers end are active there as well.
//!
//! The automaton and its lazy DFA are those of everything else; an accepting state means "this path".

use crate::engine::paths::{PathId, PathRun, PathSet};
use crate::language::query::ast::NameTest;
use crate::xml::names::{NameId, NameTable};

/// Bytes of compiled states beyond which they are dropped before the next run.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Names of messages beyond which they are forgotten before the next run.
const NAMES_MAX: usize = 65_536;
/// The same in bytes.
const NAME_BYTES_MAX: usize = 4 << 20;

/// The place of the document, before the first element.
pub(crate) const DOCUMENT: i64 = -1;

/// Elements of a message in document order, with each those that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Part<'m> {
    /// Expanded names.
    pub names: &'m [(String, String)],
    /// Of each element, as a place in `names`.
    pub name: &'m [u32],
    /// Of each element; 1 for the root element.
    pub depth: &'m [u32],
}

/// What a run gives.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Path and element at which it ends, by element and path.
    pub ends: Vec<(PathId, i64)>,
    /// Elements at which something was active, the document counted.
    pub steps: u64,
}

/// What cannot be run, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsound(pub &'static str);

/// Paths, and what has been compiled of them.
#[derive(Debug, Default)]
pub struct PathFinder {
    paths: PathSet,
    run: PathRun,
    names: NameTable,
}

impl PathFinder {
    /// The number of a path, new or known. Labels are those of transitions; none is epsilon.
    pub fn number(&mut self, labels: &[Option<NameTest<'_>>]) -> PathId {
        self.paths.intern_labels(labels.iter().map(Option::as_ref))
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.paths.memory() + self.run.memory() + self.names.text_bytes()
    }

    /// Where paths end in a part of a message, given where some end: those of `entries`, themselves included, and
    /// what goes on from there.
    ///
    /// Cost: one look-up an element, and what it has not seen before.
    pub fn find(&mut self, part: Part<'_>, entries: &[(PathId, i64)]) -> Result<Found, Unsound> {
        self.check(part, entries)?;
        let mut entries: Vec<(i64, PathId)> =
            entries.iter().map(|&(path, at)| (at, path)).collect();
        entries.sort_unstable();
        entries.dedup();
        if self.names.len() > NAMES_MAX || self.names.text_bytes() > NAME_BYTES_MAX {
            self.names.clear();
        }
        let intern = |(uri, local): &(String, String)| self.names.intern(uri, local);
        let names: Vec<NameId> = part.names.iter().map(intern).collect();
        let (paths, run) = (&self.paths, &mut self.run);
        run.begin(paths, &self.names, CACHE_BYTES_MAX);
        let mut left = &entries[..];
        let mut found = Found::default();
        let mut open = vec![run.nothing()];
        for place in DOCUMENT..part.name.len() as i64 {
            let mut state = open[0];
            if place != DOCUMENT {
                let at = place as usize;
                open.truncate(part.depth[at] as usize);
                let parent = *open.last().expect("the document is open");
                state = run.step(paths, parent, names[part.name[at] as usize]);
            }
            let here = left.partition_point(|&(at, _)| at == place);
            if here > 0 {
                state = run.entered(paths, state, left[..here].iter().map(|&(_, path)| path));
                left = &left[here..];
            }
            if place == DOCUMENT {
                open[0] = state;
            } else {
                open.push(state);
            }
            if !run.is_dead(state) {
                found.steps += 1;
                found.ends.extend(run.accepted(state).iter().map(|&path| (path, place)));
            }
        }
        Ok(found)
    }

    fn check(&self, part: Part<'_>, entries: &[(PathId, i64)]) -> Result<(), Unsound> {
        if part.name.len() != part.depth.len() {
            return Err(Unsound("columns of different lengths"));
        }
        if part.name.iter().any(|&name| name as usize >= part.names.len()) {
            return Err(Unsound("a name that is not among the names"));
        }
        let mut above = 0;
        for &depth in part.depth {
            if depth == 0 || depth > above + 1 {
                return Err(Unsound("an element whose parent is not there"));
            }
            above = depth;
        }
        for &(path, place) in entries {
            if path as usize >= self.paths.len() {
                return Err(Unsound("an entry of no path"));
            }
            if place < DOCUMENT || place >= part.name.len() as i64 {
                return Err(Unsound("an entry at no element"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(local: &str) -> Option<NameTest<'_>> {
        Some(NameTest::Name { uri: "".into(), local: local.into() })
    }

    fn names() -> Vec<(String, String)> {
        ["a", "b", "c"].map(|name| (String::new(), name.to_owned())).into()
    }

    #[test]
    fn what_goes_on_from_an_entry_is_found_and_nothing_else() {
        let mut finder = PathFinder::default();
        let a = finder.number(&[named("a")]);
        let ab = finder.number(&[named("a"), named("b")]);
        let a_c = finder.number(&[named("a"), None, named("c")]);
        // <a><b><c/></b><a><b/></a></a>
        let part = Part { names: &names(), name: &[0, 1, 2, 0, 1], depth: &[1, 2, 3, 2, 3] };
        let found = finder.find(part, &[(a, 3)]).unwrap();
        assert_eq!(found, Found { ends: vec![(a, 3), (ab, 4)], steps: 2 });
        let found = finder.find(part, &[(a, 0)]).unwrap();
        assert_eq!(found.ends, [(a, 0), (ab, 1), (a_c, 2)]);
        let below = finder.number(&[named("a"), None]);
        let found = finder.find(part, &[(below, 1)]).unwrap();
        assert_eq!(found.ends, [(below, 1), (a_c, 2), (below, 2)]);
        let start = finder.number(&[]);
        assert_eq!(finder.find(part, &[(start, DOCUMENT)]).unwrap().ends[1], (a, 0));
    }

    #[test]
    fn a_part_that_is_none_is_refused() {
        let mut finder = PathFinder::default();
        let a = finder.number(&[named("a")]);
        let names = names();
        let mut find = |name: &[u32], depth: &[u32], entry| {
            finder.find(Part { names: &names, name, depth }, &[entry]).unwrap_err().0
        };
        assert_eq!(find(&[0], &[], (a, 0)), "columns of different lengths");
        assert_eq!(find(&[3], &[1], (a, 0)), "a name that is not among the names");
        assert_eq!(find(&[0, 0], &[1, 3], (a, 0)), "an element whose parent is not there");
        assert_eq!(find(&[0], &[0], (a, 0)), "an element whose parent is not there");
        assert_eq!(find(&[0], &[1], (a + 1, 0)), "an entry of no path");
        assert_eq!(find(&[0], &[1], (a, 1)), "an entry at no element");
        assert_eq!(find(&[0], &[1], (a, -2)), "an entry at no element");
    }
}
