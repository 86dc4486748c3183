//! Conditions at scale: value predicates as an index, nested paths as shared filters.
//!
//! [`crate::engine::conditions`] says whether one plan holds; here all plans that end at an element are
//! decided together. Three ideas:
//!
//! 1. Every condition has one place ([`crate::language::query::anchoring`]), so a plan is a conjunction of conditions at
//!    elements that follow from its end ([`program`]).
//! 2. A condition on a value is an atom, shared by all queries ([`atoms`]); a value finds the atoms that
//!    it satisfies, and each block of plans that end together has an index from atoms to plans
//!    ([`block_index`]), so what is paid is what holds.
//! 3. Nested paths are an automaton of their own ([`crate::engine::nfa::nested_paths`]), run from every anchor, the last
//!    one first; what holds where is kept as bits ([`truth`]) that plans are matched with by words.
//!
//! Plans that are no conjunctions are left to [`crate::engine::conditions`]. Nothing here depends on the order
//! of registration, and what is learnt from the stream changes costs, never answers.
//!
//! Source: paper 003, sections 5 and 6. Differs: an index in place of a list of predicates; nested
//! paths from the anchor down in place of joins of path matches.

#![forbid(unsafe_code)]

pub(crate) mod atoms;
mod block_builder;
mod block_index;
mod bottom_up;
mod contained;
mod facts;
mod keys;
mod level;
mod nested_states;
mod pattern_set;
mod prober;
pub(crate) mod program;
pub(crate) mod run;
mod signature;
mod sink;
mod text_index;
mod text_table;
mod truth;
