//! The conditions of one path, and what is known of a message once some condition has asked.
//!
//! The automaton says at which elements the names and axes of a query's main path end; [`holds`] then
//! decides whether the query holds (Selection Postponed), with nested paths as filters over sets of anchors
//! (NP-Filter). Path tuples are never enumerated: what a step can be bound to is kept as a set of elements,
//! each element once, so `//a//a//a` in a deeply recursive message costs steps times elements at most.
//!
//! Nearly all plans are decided together ([`crate::engine::predicates`]); one at a time are those that are
//! no conjunctions, and all in a message that is too deep for its nested paths. Nothing here recurses on the
//! depth of a message.
//!
//! ```
//! use pathcast_core::engine::conditions::{PostProcessor, holds};
//! use pathcast_core::xml::names::NameTable;
//! use pathcast_core::language::query::ast::{Axis, Condition, NameTest, Stage, Step};
//! use pathcast_core::xml::tree::{Message, MessageTree, Span, NONE};
//!
//! // <a x="1"/>
//! let mut names = NameTable::default();
//! let tree = MessageTree {
//!     name: vec![names.intern("", "a")],
//!     parent: vec![NONE],
//!     depth: vec![0],
//!     element_end: vec![1],
//!     attribute_start: vec![0, 1],
//!     text_start: vec![0],
//!     text_end: vec![0],
//!     attribute_name: vec![names.intern("", "x")],
//!     attribute_value: vec![Span::in_message(6, 1)],
//!     ..MessageTree::default()
//! };
//! let message = Message { tree: &tree, source: br#"<a x="1"/>"# };
//!
//! // /a[@x]
//! let x = NameTest::Name { uri: "".into(), local: "x".into() };
//! let step = Step {
//!     axis: Axis::Child,
//!     test: NameTest::Name { uri: "".into(), local: "a".into() },
//!     stages: vec![Stage {
//!         positions: vec![],
//!         conditions: vec![Condition::Attribute { test: x, compare: None }],
//!     }],
//! };
//! let mut post = PostProcessor::default();
//! post.begin_message();
//! assert!(holds(&[step], message, &names, &[0], &mut post));
//! ```
//!
//! Source: paper 003, sections 5.2 and 6; XPath 1.0, 2.4, 3.4, 4.4. Differs: sets per step in
//! place of path matches; positions as XPath counts them.

#![forbid(unsafe_code)]

mod holds;
mod long_numbers;
pub(crate) mod message_index;
mod pattern_cache;
mod post_processor;
pub(crate) mod text_search;

pub(crate) use holds::ask_of;
pub use holds::holds;
pub(crate) use pattern_cache::PatternCache;
pub use post_processor::PostProcessor;
