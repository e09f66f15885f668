//! The sleep cycle: session logs in, staged proposals out.
//!
//! ```text
//! gather ─▶ mine ─▶ split ─▶ assignment ─▶ training (replay · judge · the trainer) ─▶ stage ─▶ report
//! ```
//!
//! [`cycle`] is the story of a [`plan`]; [`assignment`] gives each document its tasks, also those of the
//! [`used_skills`]; [`training`] hands one document and a [`replay`] environment to the
//! trainer; [`stage`] turns what comes of it into a proposal, with its
//! [`risk`]s, which [`auto_adopt`] adopts where configuration asks for it; [`housekeeping`] closes what nobody decided on. The pure parts: what a person's words
//! say about the work ([`feedback`]), what a [`task`] is and how one is mined ([`mine`]), which
//! tasks train and which validate ([`split`]), and how an attempt is judged without a model
//! ([`rule_judge`], [`exact`]).

pub mod assignment;
pub mod auto_adopt;
pub mod cycle;
pub mod deltas;
pub mod document;
pub mod event;
pub mod exact;
pub mod feedback;
pub mod gate_record;
pub mod gather;
pub mod guidance;
pub mod hosts;
pub mod housekeeping;
pub mod judge;
pub mod judge_reply;
pub mod mine;
pub mod observers;
pub mod pattern;
pub mod plan;
pub mod replay;
pub mod report;
pub mod risk;
pub mod rule_judge;
pub mod split;
pub mod stage;
pub mod task;
pub mod tasks_file;
pub mod training;
pub mod used_skills;
