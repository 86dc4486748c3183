//! Customised delivery: subscriptions that say how what they get must look.
//!
//! Reading order: [`plans`] (what subscriptions share), [`paths`], [`probe`] and [`template`] (what that
//! is made of), [`recognise`] (which programs have such a plan), [`run`] (a message through the plans;
//! `streams`, `reached` and [`found`] are its columns), `factory` (results become bytes; `ordered`: where those of a message are too many, or take
//! too many steps, which `steps` counts),
//! [`dissemination`] (subscriptions of all kinds), [`worker`] and [`batch`] (the whole way of a message,
//! of many).
//!
//! What it does not do: evaluate programs that have no plan of the shared class (`xquery`), find the
//! messages that could satisfy those (`index`).
//!
//! Source: paper 002.

#![forbid(unsafe_code)]

pub mod batch;
pub mod dissemination;
mod ordered;
mod steps;
pub mod worker;
