//! Programs against the tables of cases, against limits, and against hostile text.

mod canonical;
mod cases;
mod hostile;
mod refused;
