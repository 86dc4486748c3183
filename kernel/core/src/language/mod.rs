//! Texts of queries: read, and what they say as data.
//!
//! Reading order: [`comparison`] (how values compare), [`arithmetic`] (of numbers), [`query`] (location paths to normal form), [`numbers`] (numbers
//! in texts), [`number_text`] (numbers as text), [`strings`] (functions of strings), [`folding`] (texts in one case), [`values`] (sets of values),
//! [`types`] (of atomic values), [`moments`] (dates, times, durations), [`moment_parts`] (their parts), [`moment_text`]
//! (these as text), [`moment_pictures`] and [`number_pictures`] (as pictures show them), [`patterns`] (regular expressions), [`pattern_text`] (their notation), [`pattern_literals`] (texts that their matches have), `text_tests` (what is asked of a text), [`functions`] (of both languages), [`tree`] (an XPath as it
//! was written), [`refusal`] (why a text is no query), `grammar` (that of both languages), [`reader`] (XPath 1.0: text to
//! that tree), [`compile`] (what the tree becomes), [`paths`] (paths as values: cover, widen, travel), [`xpath`] (XPath 1.0 as it is evaluated), [`xquery`]
//! (subscriptions as syntax trees), [`choice`] (which language a text is in), [`gates`] (what must be there for a program
//! to be delivered), [`edits`] (what is done to messages before subscriptions see them).

pub mod arithmetic;
pub mod choice;
pub mod comparison;
pub mod compile;
pub mod edits;
pub mod folding;
pub mod functions;
pub mod gates;
pub(crate) mod grammar;
pub(crate) mod moment_parts;
pub(crate) mod moment_pictures;
mod moment_text;
pub(crate) mod moments;
pub(crate) mod number_pictures;
pub(crate) mod number_text;
pub(crate) mod numbers;
pub mod paths;
pub(crate) mod pattern_literals;
pub(crate) mod pattern_text;
pub(crate) mod patterns;
pub mod query;
pub mod reader;
pub mod refusal;
pub(crate) mod strings;
mod text_tests;
pub mod tree;
pub mod types;
pub mod values;
pub mod xpath;
pub mod xquery;
