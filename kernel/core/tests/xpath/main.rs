//! The XPath evaluator against the recommendation, against limits, and against hostile text.

mod bounds;
mod cases;
mod trees;
