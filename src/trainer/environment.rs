//! What the trainer needs of the world: items by split, and how to attempt one under a skill.
//!
//! What is trained on differs only here. An attempt ends *measured*, with scores, or *not
//! measured*, with the cause; an infrastructure failure never becomes a score of zero.

use std::fmt;
use std::future::Future;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::score::is_failure;
use crate::model::{CallError, CallErrorKind};

/// Which part of the items. File and field names use the method's own words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Split {
    /// Items that are reflected on.
    #[serde(rename = "train")]
    Train,
    /// Held-out items that decide about candidates.
    #[serde(rename = "valid_seen")]
    Selection,
    /// Items that are only measured, at the end.
    #[serde(rename = "valid_unseen")]
    Test,
}

impl Split {
    /// Reads a split's name or one of its aliases (engine 5.4); unknown names are `None` rather
    /// than the validation split (W-D3).
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "train" => Some(Self::Train),
            "valid_seen" | "selection" | "val" => Some(Self::Selection),
            "valid_unseen" | "test" => Some(Self::Test),
            _ => None,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Selection => "valid_seen",
            Self::Test => "valid_unseen",
        })
    }
}

/// One unit that an environment can attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Unique over all splits of a run.
    pub id: String,
    /// What the environment needs to attempt it; opaque to the trainer.
    pub payload: Value,
}

/// Why an attempt has no score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The server, the network or the machine failed.
    Infrastructure,
    /// The provider or the model declined to answer.
    Refused,
    /// No answer in time.
    TimedOut,
    /// The budget did not allow it.
    Budget,
}

impl From<CallErrorKind> for Missing {
    fn from(kind: CallErrorKind) -> Self {
        match kind {
            CallErrorKind::Refused => Self::Refused,
            CallErrorKind::Timeout => Self::TimedOut,
            CallErrorKind::Budget => Self::Budget,
            _ => Self::Infrastructure,
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// Scored.
    Measured {
        /// 0 or 1, or a fractional reward.
        hard: f64,
        /// 0 to 1.
        soft: f64,
    },
    /// Not scored; such attempts stay out of every mean.
    NotMeasured {
        /// The class of the cause.
        cause: Missing,
        /// What happened, in one sentence.
        message: String,
    },
}

/// One attempt at one item under one skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    /// The item's id.
    pub id: String,
    /// Scores, or why there are none.
    pub outcome: Outcome,
    /// Why it failed, in the environment's words; empty when it passed.
    #[serde(default)]
    pub fail_reason: String,
    /// The item's class for reports per type.
    #[serde(default)]
    pub task_type: String,
    /// What was asked, for reflection.
    #[serde(default)]
    pub task_description: String,
    /// What a good answer has, for reflection only; never shown to the target.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference_text: String,
    /// The system prompt that the target saw.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_system_prompt: String,
    /// The user prompt that the target saw.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_user_prompt: String,
    /// The target's answer.
    #[serde(default)]
    pub response: String,
    /// The trajectory, one entry a message, tool call or note (engine 8.2).
    #[serde(default)]
    pub conversation: Vec<Value>,
    /// Further columns of the environment's result rows.
    #[serde(default)]
    pub fields: Map<String, Value>,
}

impl Rollout {
    /// A rollout that ended without a score because a model call failed.
    #[must_use]
    pub fn not_measured(item: &Item, error: &CallError) -> Self {
        Self::missing(item, error.kind.into(), error.message.clone())
    }

    /// A rollout that ended without a score because the item itself cannot be attempted.
    #[must_use]
    pub fn unusable(item: &Item, message: &str) -> Self {
        Self::missing(item, Missing::Infrastructure, message.to_owned())
    }

    fn missing(item: &Item, cause: Missing, message: String) -> Self {
        Self {
            id: item.id.clone(),
            outcome: Outcome::NotMeasured { cause, message },
            fail_reason: String::new(),
            task_type: String::new(),
            task_description: String::new(),
            reference_text: String::new(),
            target_system_prompt: String::new(),
            target_user_prompt: String::new(),
            response: String::new(),
            conversation: Vec::new(),
            fields: Map::new(),
        }
    }

    /// `(hard, soft)` of a measured rollout.
    #[must_use]
    pub fn scores(&self) -> Option<(f64, f64)> {
        match self.outcome {
            Outcome::Measured { hard, soft } => Some((hard, soft)),
            Outcome::NotMeasured { .. } => None,
        }
    }

    /// The rollout as a row of `results.jsonl` (engine 6): the environment's columns, then
    /// ours. Scores of a rollout that was not measured are null.
    #[must_use]
    pub fn row(&self) -> Map<String, Value> {
        let mut row = Map::new();
        row.insert("id".to_owned(), json!(self.id));
        row.extend(self.fields.clone());
        let scores = self.scores();
        row.insert("hard".to_owned(), json!(scores.map(|(hard, _)| hard)));
        row.insert("soft".to_owned(), json!(scores.map(|(_, soft)| soft)));
        if let Outcome::NotMeasured { cause, message } = &self.outcome {
            row.insert(
                "not_measured".to_owned(),
                json!({"cause": cause, "message": message}),
            );
        }
        for (name, text) in [
            ("fail_reason", &self.fail_reason),
            ("task_type", &self.task_type),
            ("task_description", &self.task_description),
            ("response", &self.response),
        ] {
            row.insert(name.to_owned(), json!(text));
        }
        row
    }

    /// Whether it was measured and passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.scores().is_some_and(|(hard, _)| !is_failure(hard))
    }

    /// Whether it was measured and failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.scores().is_some_and(|(hard, _)| is_failure(hard))
    }
}

/// What an environment that reflects by itself is given.
#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    /// Where the microbatch's artefacts belong, relative to the run directory.
    pub dir: &'a str,
    /// The skill under which the rollouts were made.
    pub skill: &'a str,
    /// The rollouts, in item order.
    pub rollouts: &'a [Rollout],
    /// What earlier steps of the epoch tried, as text; blank when nothing.
    pub history: &'a str,
    /// The memory of earlier epochs; blank when there is none.
    pub meta_skill: &'a str,
    /// The batch's seed.
    pub seed: i64,
}

/// Items by split, and how to attempt one under a given skill.
pub trait Environment: Send + Sync {
    /// The name under which configuration and reports know it.
    fn name(&self) -> &str;

    /// The items of a split, in their fixed order.
    fn items(&self, split: Split) -> &[Item];

    /// What the analysts should know about this environment's failures, beyond the general
    /// instructions; `None` when there is nothing to add.
    fn analyst_guidance(&self) -> Option<&str> {
        None
    }

    /// Makes a batch of `count` train items from `seed`, in an environment that has no list of them,
    /// such as a simulator (engine 5.4). `None`: batches are cut from [`Environment::items`].
    fn draw(&self, _count: usize, _seed: i64) -> Option<Vec<Item>> {
        None
    }

    /// Studies a microbatch's rollouts in place of the analysts (engine 6), in an environment that
    /// knows better than a model what its failures call for. The patches have the shape of an
    /// analyst's reply (engine 8.3). `None`: the analysts do it.
    fn reflect(&self, _study: &Study<'_>) -> impl Future<Output = Option<Vec<Value>>> + Send {
        async { None }
    }

    /// Attempts `item` under `skill`. `sample` names the draw: equal samples of equal attempts
    /// may be answered from the journal, different ones are fresh.
    fn attempt(
        &self,
        item: &Item,
        skill: &str,
        sample: &str,
    ) -> impl Future<Output = Rollout> + Send;
}
