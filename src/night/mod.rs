//! The sleep cycle: session logs in, staged proposals out.
//!
//! ```text
//! gather ─▶ mine ─▶ split ─▶ training (replay · judge · the trainer) ─▶ stage ─▶ report
//! ```
//!
//! [`cycle`] is the story; [`training`] hands one document and a [`replay`] environment to the
//! trainer; [`stage`] turns what comes of it into a proposal. The pure parts: what a person's words
//! say about the work ([`feedback`]), what a [`task`] is and how one is mined ([`mine`]), which
//! tasks train and which validate ([`split`]), and how an attempt is judged without a model
//! ([`rule_judge`], [`exact`]).

pub mod cycle;
pub mod deltas;
pub mod document;
pub mod event;
pub mod exact;
pub mod feedback;
pub mod gate_record;
pub mod gather;
pub mod guidance;
pub mod judge;
pub mod judge_reply;
pub mod mine;
pub mod observers;
pub mod pattern;
pub mod replay;
pub mod report;
pub mod rule_judge;
pub mod split;
pub mod stage;
pub mod task;
pub mod training;
