//! The push parser against the door: the same tree, the same refusals, however a message is cut into
//! blocks; and memory that does not grow with the message.

mod bounds;
mod corpus;
mod events;
mod generated;
mod oracle;
#[path = "../fuzz/seeds.rs"]
#[allow(dead_code)]
mod seeds;
#[path = "../door/table.rs"]
#[allow(dead_code)]
mod table;

/// Takes no notice of what is read.
struct Ignore;

impl pathcast_core::xml::parser::push::Handler for Ignore {}
