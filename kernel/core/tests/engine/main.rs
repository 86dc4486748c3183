//! The engine as a whole: whatever way an automaton is held and run, the answers are the same.

mod alternatives;
mod files;
mod growing;
mod histories;
mod interruptions;
mod snapshot_file;
mod world;
