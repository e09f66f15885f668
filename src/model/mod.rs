//! Talking to models.
//!
//! [`ChatModel`] is the one trait: messages in, reply and usage out. A backend speaks one
//! protocol; everything around a call (journal, retry, concurrency, budget, accounting) is a
//! wrapper of the same trait, composed in one place.

pub mod reply;

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Who a call is made for. Each role has its own backend, model and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reflects on rollouts; writes, merges, ranks and rewrites edits; judges free-form answers.
    Optimizer,
    /// Attempts items under the skill being trained.
    Target,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Optimizer => "optimizer",
            Role::Target => "target",
        })
    }
}

/// Who speaks in a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// Instructions.
    System,
    /// Input.
    User,
    /// An earlier reply.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Speaker,
    /// What is said.
    pub content: String,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The label under which usage is booked: `rollout`, `analyst`, `merge`, `ranking`, `judge`
    /// and the other stages of `spec/engine.md` section 23.
    pub stage: &'static str,
    /// What this call is a fresh sample for, such as `step_0003`. Two calls with equal messages
    /// and different samples are different draws; with equal samples they are the same draw, and
    /// the journal answers the second.
    pub sample: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Most tokens that the reply may have.
    pub max_tokens: u32,
}

/// What calls cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Finished calls.
    pub calls: u64,
    /// Tokens sent, as the provider counted them.
    pub prompt_tokens: u64,
    /// Tokens received, reasoning included.
    pub completion_tokens: u64,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The reply's text; never blank (a blank reply is [`CallErrorKind::Empty`]).
    pub text: String,
    /// What it cost.
    pub usage: Usage,
    /// Why the model stopped (`stop`, `length`, …), when the provider says so.
    pub finish_reason: Option<String>,
}

/// Why a call gave no usable reply. A failed call is never a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallErrorKind {
    /// No credential, or one that the provider refused.
    Unauthorized,
    /// The provider does not know the model or the path.
    NotFound,
    /// The provider refused this request for good (other 4xx).
    Rejected,
    /// The model declined, or a content filter stepped in.
    Refused,
    /// 429 or 529.
    RateLimited,
    /// 5xx.
    Server,
    /// No answer in time.
    Timeout,
    /// No connection, or one that broke.
    Connection,
    /// An answer that is not of the protocol.
    Malformed,
    /// A reply without text.
    Empty,
    /// The budget does not allow the call.
    Budget,
    /// The run is stopping.
    Cancelled,
}

/// A call that gave no usable reply.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// The class, which decides whether to try again and whether the run can go on.
    pub kind: CallErrorKind,
    /// One sentence: what was being done, against which server and model, and what it said.
    pub message: String,
    /// What the provider asked to wait before the next attempt.
    pub retry_after: Option<Duration>,
}

/// A model that answers conversations.
pub trait ChatModel: Send + Sync {
    /// A name that identifies backend, server and model, such as
    /// `openai_compatible/gpt-4o-mini@http://127.0.0.1:8089/v1`; part of the journal's keys.
    fn id(&self) -> &str;

    /// Makes one call.
    ///
    /// # Errors
    /// [`CallError`] when there is no usable reply.
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>>;
}
