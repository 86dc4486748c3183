//! Texts of queries: read, and what they say as data.
//!
//! Reading order: [`comparison`] (how values compare), [`query`] (location paths to normal form), [`numbers`] (numbers
//! in texts), [`tree`] (an XPath as it was written), [`reader`] (text to that tree), [`xpath`] (XPath 1.0 as it is evaluated), [`xquery`] (subscriptions
//! as syntax trees).

pub mod comparison;
pub mod gates;
pub(crate) mod numbers;
pub mod query;
pub mod reader;
pub mod tree;
pub mod xpath;
pub mod xquery;
