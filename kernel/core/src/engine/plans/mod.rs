//! The plans that subscriptions share: binding paths, selections, templates.
//!
//! Reading order: [`shared`] (what is shared between subscriptions), [`probe`] (predicates found from values),
//! [`template`] (what a result is made of), [`recognise`] (which programs are of the shared class), [`values`] and
//! [`streams`] (what a message says), [`reached`] and [`found`] (what is satisfied), [`run`] (one message),
//! [`factory`] (its results).

#![forbid(unsafe_code)]

pub(crate) mod factory;
pub mod found;
pub mod probe;
pub(crate) mod reached;
pub mod recognise;
pub mod run;
pub mod shared;
pub(crate) mod streams;
pub mod template;
pub(crate) mod values;
