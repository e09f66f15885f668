//! skillopt-sleep learns from the coding agents on a machine while nobody is using them.
//!
//! ```text
//!  session logs ─▶ Session ─mine─▶ Task ─┐
//!                                        ├─▶ Environment ─▶ Trainer ─▶ Candidate ─stage─▶ Proposal ─review─▶ adopted file
//!  benchmark data ─load─────────▶ Item ──┘
//! ```
//!
//! Data flows left to right, once; nothing on the left knows anything on the right. There is one
//! [`trainer`]; a night and a benchmark differ only in the environment that they hand to it.
//!
//! | module | what it is | depends on |
//! |---|---|---|
//! | [`cli`] | arguments in, one call, rendering out; one file a subcommand | everything below |
//! | [`night`] | the sleep cycle | trainer, model, store, impact, the crates `harvesters` and `staging` |
//! | [`impact`] | sessions before and after an adoption | store, trainer (its intervals), the crates `harvesters` and `staging` |
//! | [`bench`] | benchmark environments | trainer, model |
//! | [`trainer`] | the gated trainer: rollout, reflect, aggregate, select, update, gate | skill, model |
//! | [`model`] | chat models and everything around a call | nothing of ours |
//! | [`skill`] | the document being trained; pure | nothing of ours |
//! | [`store`] | the SQLite database | the crate `harvesters` (its `Session`) |
//! | [`config`] | typed configuration, layers, overrides | model, trainer (their settings) |
//!
//! Crates beside this one: `skillopt-harvesters` reads session logs, `skillopt-staging` keeps
//! proposals and changes live files, `skillopt-files` writes files so that a crash leaves the old or
//! the new one. None of them can reach a model or the network.

pub mod bench;
pub mod cli;
pub mod config;
pub mod impact;
pub mod model;
pub mod night;
pub mod skill;
pub mod store;
pub mod trainer;
