//! The gated trainer: rollout → reflect → aggregate → select → update → gate.
//!
//! The modules here are the pure part of the method, which every stage shares: what a [`patch`]
//! is in each [`update_mode`], how patches are merged ([`merge_plan`]) and chosen ([`selection`])
//! under the budget of the [`schedule`], how rollouts are [`score`]d and candidates judged
//! ([`gate_rule`]), what an epoch remembers ([`failure_patterns`], [`step_buffer`]), which items it
//! draws ([`batches`], [`mt19937`]), how two skills compare on them ([`pairs`]), and what the
//! optimizer's other replies say ([`optimizer_reply`], [`lr_decision`]).

pub mod batches;
pub mod failure_patterns;
pub mod gate_rule;
pub mod lr_decision;
pub mod merge_plan;
pub mod mt19937;
pub mod optimizer_reply;
pub mod pairs;
pub mod patch;
pub mod schedule;
pub mod score;
pub mod selection;
pub mod step_buffer;
pub mod update_mode;
