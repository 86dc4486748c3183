//! Element streams: a stream is the text it stands for, or it is refused.

mod corpus;
mod hostile;
mod mutated;
mod oracle;
#[path = "../door/table.rs"]
#[allow(dead_code)]
mod table;
