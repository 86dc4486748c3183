//! The plans that subscriptions share: binding paths, selections, templates.
//!
//! Reading order: [`shared`] (what is shared between subscriptions), [`probe`] (predicates found from values),
//! [`template`] (what a result is made of), [`recognise`] (which programs are of the shared class), [`values`] and
//! [`streams`] (what a message says), [`reached`] and [`found`] (what is satisfied), [`run`] (one message),
//! [`factory`] (its results), [`frozen`] (plans that do not change, of a file).

#![forbid(unsafe_code)]

pub(crate) mod factory;
pub(crate) mod found;
pub(crate) mod frozen;
pub(crate) mod probe;
pub(crate) mod reached;
pub(crate) mod recognise;
pub mod run;
pub(crate) mod shared;
pub(crate) mod streams;
pub(crate) mod template;
pub(crate) mod values;
