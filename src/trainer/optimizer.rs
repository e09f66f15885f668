//! Asking the optimizer: one prompt in, one parsed JSON object out.

use minijinja::Value as Context;
use serde_json::Value;

use super::error::TrainError;
use super::prompt::Prompts;
use crate::model::reply::extract_object;
use crate::model::{CallError, CallErrorKind, ChatModel, ChatRequest};

/// Most tokens of a reply in patch mode (engine 8.2, 9, 10).
pub const REPLY_TOKENS: u32 = 16_384;

/// The optimizer model with the prompts of a run.
pub struct Optimizer<'a> {
    /// The model.
    pub model: &'a dyn ChatModel,
    /// What it is asked with.
    pub prompts: &'a Prompts,
}

/// What became of a question.
#[derive(Debug)]
pub enum Answer {
    /// A JSON value.
    Parsed(Value),
    /// A reply without usable JSON.
    Unusable,
    /// No reply, for a reason that may pass.
    Failed(CallError),
}

impl Answer {
    /// The JSON value, if there is one.
    #[must_use]
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Parsed(value) => Some(value),
            Self::Unusable | Self::Failed(_) => None,
        }
    }
}

impl Optimizer<'_> {
    /// Renders `template` with `context`, makes the call for `stage` and reads the JSON of the
    /// reply. `sample` says which draw it is, as in [`ChatRequest`].
    ///
    /// # Errors
    /// When the run cannot go on without a usable optimizer: the budget is used up, or the
    /// credential or the model is refused. Other failures are an [`Answer`], for which every
    /// stage has its fallback.
    pub async fn ask(
        &self,
        stage: &'static str,
        template: &str,
        context: Context,
        sample: &str,
    ) -> Result<Answer, TrainError> {
        let request = ChatRequest {
            stage,
            sample: sample.to_owned(),
            messages: self.prompts.render(template, context)?,
            max_tokens: REPLY_TOKENS,
        };
        match self.model.chat(&request).await {
            Ok(reply) => Ok(extract_object(&reply.text).map_or(Answer::Unusable, Answer::Parsed)),
            Err(error) => match error.kind {
                CallErrorKind::Budget => Err(TrainError::Budget(error.message)),
                CallErrorKind::Unauthorized | CallErrorKind::NotFound => {
                    Err(TrainError::Optimizer(error))
                }
                _ => Ok(Answer::Failed(error)),
            },
        }
    }
}
