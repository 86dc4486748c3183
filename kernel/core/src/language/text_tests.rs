//! What is asked of a text, folded or as it is: equality, beginnings, parts, patterns.

use super::folding::{Fold, TextTest};
use super::patterns;
use super::values::{self, each};
use memchr::memmem;

impl TextTest {
    /// Whether a text, folded, passes with one of some texts, which are held as
    /// [`Values::text`](super::values::Values::text).
    ///
    /// Cost: linear in the text for each of the given ones; a pattern is compiled anew.
    pub(crate) fn holds(self, fold: Fold, given: &[u8], text: &[u8]) -> bool {
        let folded = fold.of(text);
        match self {
            TextTest::Is => values::has(given, &folded),
            TextTest::Begins => each(given).any(|one| folded.starts_with(one)),
            TextTest::Has => each(given).any(|one| memmem::find(&folded, one).is_some()),
            TextTest::Matches => each(given).any(|one| patterns::matches(one, text)),
        }
    }
}
