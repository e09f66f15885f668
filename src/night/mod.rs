//! The sleep cycle.
//!
//! The modules here are the pure part of a night: what a person's words say about the work
//! ([`feedback`]), what a [`task`] is, which tasks train and which validate ([`split`]), how an
//! attempt is judged without a model ([`rule_judge`], [`exact`]) or by one ([`judge_reply`]), and
//! what a candidate changes task by task ([`deltas`]).

pub mod deltas;
pub mod exact;
pub mod feedback;
pub mod judge_reply;
pub mod pattern;
pub mod rule_judge;
pub mod split;
pub mod task;
