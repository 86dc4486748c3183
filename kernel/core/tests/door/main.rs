//! The door against the table of well-formedness cases, hostile messages, and random damage.

mod cases;
mod damage;
mod dump;
mod hostile;
mod places;
mod table;
