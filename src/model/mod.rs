//! Talking to models.
//!
//! [`ChatModel`] is the one trait: messages in, reply and usage out. A backend speaks one
//! protocol; everything around a call (journal, retry, concurrency, budget, accounting) is a
//! wrapper of the same trait, composed in one place.
//!
//! ```text
//! caller ─▶ meter ─▶ journal ─▶ cache ─▶ health ─▶ retry ─▶ limit ─▶ budget ─▶ backend
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | [`stack`] | reads who plays which role, builds the backends, wraps them in the order above |
//! | [`openai_compatible`] | any Chat Completions server |
//! | [`scripted`] | replies from a file of rules; no network |
//! | [`meter`] | usage by role and stage |
//! | [`journal`] | finished replies on disk, so that a resumed run pays for none twice; also a cache that runs may share |
//! | [`health`] | stops a run whose model cannot answer at all |
//! | [`retry`] | tries again what may pass by itself |
//! | [`limit`] | how many calls run at once, and when none may start |
//! | [`budget`] | the hard limits on calls, tokens, money and time |

pub mod budget;
pub mod health;
pub mod journal;
pub mod limit;
pub mod meter;
pub mod openai_compatible;
pub mod retry;
pub mod scripted;
pub mod stack;
#[cfg(test)]
mod testing;

pub use stack::{ModelError, Models, ModelsConfig, RoleConfig};

pub mod reply;

use std::fmt;
use std::iter::Sum;
use std::ops::{AddAssign, Sub};
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

impl Role {
    /// Both roles, in the order in which they are listed to a user.
    pub const ALL: [Role; 2] = [Role::Optimizer, Role::Target];
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
    /// How many of the calls came without a count from the provider, so that their tokens are
    /// our estimate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_calls: u64,
    /// Replies beyond `calls` that another run had paid for: they came from the shared cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_calls: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Tokens sent and received.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.calls = self.calls.saturating_add(other.calls);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.estimated_calls = self.estimated_calls.saturating_add(other.estimated_calls);
        self.cached_calls = self.cached_calls.saturating_add(other.cached_calls);
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

impl Sub for Usage {
    type Output = Usage;

    /// What was added since `earlier`; never below zero.
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            calls: self.calls.saturating_sub(earlier.calls),
            prompt_tokens: self.prompt_tokens.saturating_sub(earlier.prompt_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_sub(earlier.completion_tokens),
            estimated_calls: self.estimated_calls.saturating_sub(earlier.estimated_calls),
            cached_calls: self.cached_calls.saturating_sub(earlier.cached_calls),
        }
    }
}

/// A guess of how many tokens a text has, for when no provider counted: one per four ASCII
/// characters, rounded up, and one per other character. The usual characters-by-four rule is far
/// too low outside English, and a budget that trusts it is overspent.
#[must_use]
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().count() - ascii;
    (ascii.div_ceil(4) + other) as u64
}

impl ChatRequest {
    /// A guess of how many tokens the conversation has, four a message for its frame included.
    #[must_use]
    pub fn estimated_prompt_tokens(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| estimate_tokens(&message.content) + 4)
            .sum()
    }
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

impl CallErrorKind {
    /// Whether the provider may well answer the same request later: it was busy or not reached.
    #[must_use]
    pub fn is_transient(self) -> bool {
        use CallErrorKind as Kind;
        matches!(
            self,
            Kind::RateLimited | Kind::Server | Kind::Timeout | Kind::Connection
        )
    }

    /// Whether the answer itself was useless, so that one more draw is worth its price, but not
    /// a series of them.
    #[must_use]
    pub fn deserves_second_draw(self) -> bool {
        matches!(self, CallErrorKind::Malformed | CallErrorKind::Empty)
    }

    /// Whether no request at all can succeed before a person changes something.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        matches!(self, CallErrorKind::Unauthorized | CallErrorKind::NotFound)
    }
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
    /// What the call cost although it gave nothing, when the provider said so.
    pub usage: Option<Usage>,
}

impl CallError {
    /// An error of this kind that says `message`.
    #[must_use]
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> CallError {
        CallError {
            kind,
            message: message.into(),
            retry_after: None,
            usage: None,
        }
    }
}

/// A model that answers conversations.
pub trait ChatModel: Send + Sync {
    /// A name that identifies backend, server and model, such as
    /// `openai_compatible/gpt-4o-mini@http://127.0.0.1:8089/v1`; part of the journal's keys.
    fn id(&self) -> &str;

    /// Everything beside the id and the request that shapes replies (temperature, extra body
    /// fields, a script's content); part of the journal's keys. Holds no secret.
    fn fingerprint(&self) -> String {
        String::new()
    }

    /// The most completion tokens that a reply to `request` can have, when the backend's own
    /// limit is below the request's; the budget reserves this much.
    fn reply_bound(&self, request: &ChatRequest) -> u32 {
        request.max_tokens
    }

    /// Makes one call.
    ///
    /// # Errors
    /// [`CallError`] when there is no usable reply.
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>>;
}

/// A line in every prompt that this program sends, by which its own calls are recognised when an
/// agent's log of them is read later (sleep-night weakness 8).
pub const INTERNAL_CALL_MARKER: &str = "<!-- skillopt-sleep:internal-call -->";
