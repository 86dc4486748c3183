//! The door: bytes to a message tree, or a typed refusal.
