//! How a turn or a session went, and what that rests on.

use serde::{Deserialize, Serialize};

use super::Place;
use crate::redact::Redacted;

/// How something went, as an attentive person would say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It worked.
    Success,
    /// It did not.
    Fail,
    /// Signals disagree and none settles it.
    Mixed,
    /// Nothing tells.
    #[default]
    Unknown,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// How it went.
    pub verdict: Verdict,
    /// What it rests on, the deciding signal first.
    pub signals: Vec<Signal>,
}

/// One reason for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signal {
    /// What kind of evidence.
    pub kind: SignalKind,
    /// A short text: the command, the feedback.
    pub detail: Redacted,
    /// Where it stands.
    pub place: Place,
}

/// Kinds of evidence for an outcome, strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// The last verification passed.
    VerificationPassed,
    /// The last verification failed.
    VerificationFailed,
    /// The person asked to take the work back.
    Reverted,
    /// The person praised.
    PositiveFeedback,
    /// The person complained.
    NegativeFeedback,
    /// The agent answered a complaint by showing that it was unfounded.
    Rebutted,
    /// The turn ended with an API error.
    ApiError,
    /// The person stopped the agent.
    Interrupted,
    /// Needed tools were refused.
    Denied,
    /// Work was done without error and nobody objected.
    WorkDone,
    /// Nothing to go by.
    #[default]
    Silence,
}
