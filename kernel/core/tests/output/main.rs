//! Nodes written as text: what is parsed again must be what was written.

mod attributes;
mod bounds;
mod infoset;
mod messages;
mod places;
mod round_trips;
mod texts;
