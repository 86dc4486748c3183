//! Customised delivery: subscriptions that say how what they get must look.
//!
//! Reading order: [`dissemination`] (subscriptions of all kinds; [`query`]: what their texts are; `plans`: what they
//! become; `gates`; `freezing` to a snapshot), [`serving`] (a message against plans; `ordered`: where its results are too many, or take too many
//! steps, which `steps` counts), `series` (plans behind the same steps), [`restructuring`] (a step done to bytes), `walk`
//! (a message through many series), [`worker`] (a message against all), [`batch`] (many messages), [`links`] (steps for
//! others than subscriptions).
//!
//! It does not evaluate programs that have no shared plan ([`crate::engine::programs`]) nor find the messages that could
//! satisfy those ([`crate::registry::automaton`]).
//!
//! Source: paper 002.

#![forbid(unsafe_code)]

pub mod batch;
pub mod dissemination;
mod freezing;
mod gates;
pub mod links;
mod ordered;
mod plans;
pub mod query;
pub mod restructuring;
mod series;
pub mod serving;
mod steps;
mod walk;
pub mod worker;
