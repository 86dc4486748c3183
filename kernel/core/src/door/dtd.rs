//! What an internal subset has declared.

use super::refusal::Step;

/// A general entity, as far as a processor that fetches nothing is concerned.
pub(super) enum Entity<'d> {
    /// Its replacement text.
    Internal(&'d str),
    /// External and parsed: skipped.
    External,
    /// External and unparsed.
    Unparsed,
}

/// The declarations of one message.
#[derive(Default)]
pub(super) struct Dtd {}

impl Dtd {
    /// The entity of a name; `None` when it may be declared where it was not read.
    pub fn entity(&self, name: &str, at: usize) -> Step<Option<(usize, Entity<'_>)>> {
        use super::refusal::{Code, Fault};
        Err(Fault::new(Code::EntityUndeclared, at).text("name", name))
    }

    /// Name of an entity.
    pub fn name(&self, _entity: usize) -> &str {
        ""
    }
}
