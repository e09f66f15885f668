//! Asking the optimizer: one prompt in, one parsed JSON object out.

use minijinja::{Value as Context, context};
use serde_json::Value;

use super::error::TrainError;
use super::prompt::Prompts;
use super::update_mode::UpdateMode;
use crate::model::reply::extract_object;
use crate::model::{CallError, CallErrorKind, ChatModel, ChatRequest};

/// Most tokens of a reply (engine 8.2, 9, 10).
pub const REPLY_TOKENS: u32 = 16_384;
/// Most tokens of a consolidation of notes (engine 17).
pub const NOTES_TOKENS: u32 = 4_096;

/// The optimizer model with the prompts of a run and what is the same in all of them.
pub struct Optimizer<'a> {
    /// The model.
    pub model: &'a dyn ChatModel,
    /// What it is asked with.
    pub prompts: &'a Prompts,
    /// What it proposes.
    pub mode: UpdateMode,
    /// The memory of earlier epochs (engine 16); blank when there is none.
    pub meta_skill: &'a str,
    /// Most tokens of a reply that holds a whole document.
    pub document_tokens: u32,
}

/// One question.
pub struct Question<'a> {
    /// The stage under which usage is booked.
    pub stage: &'static str,
    /// The template.
    pub template: &'a str,
    /// What the template is filled with, beyond what is the same in all.
    pub context: Context,
    /// Which draw it is, as in [`ChatRequest`].
    pub sample: &'a str,
    /// Most tokens of the reply.
    pub max_tokens: u32,
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
    /// Renders the question, makes the call and reads the JSON of the reply.
    ///
    /// # Errors
    /// When the run cannot go on without a usable optimizer: the budget is used up, or the
    /// credential or the model is refused. Other failures are an [`Answer`], for which every
    /// stage has its fallback.
    pub async fn ask(&self, question: Question<'_>) -> Result<Answer, TrainError> {
        let context = context! { ..question.context, ..self.shared() };
        let request = ChatRequest {
            stage: question.stage,
            sample: question.sample.to_owned(),
            messages: self.prompts.render(question.template, context)?,
            max_tokens: question.max_tokens,
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

    /// Most tokens of a reply that lists items: whole documents in full rewrites.
    #[must_use]
    pub fn items_tokens(&self) -> u32 {
        match self.mode {
            UpdateMode::FullRewriteMinibatch => self.document_tokens,
            UpdateMode::Patch | UpdateMode::RewriteFromSuggestions => REPLY_TOKENS,
        }
    }

    /// How items are described in this mode, and the memory of earlier epochs.
    fn shared(&self) -> Context {
        let (item, rules) = match self.mode {
            UpdateMode::Patch => ("item_patch", "rules_patch"),
            UpdateMode::RewriteFromSuggestions => ("item_rewrite", "rules_rewrite"),
            UpdateMode::FullRewriteMinibatch => ("item_full_rewrite", "rules_full_rewrite"),
        };
        context! {
            item => item,
            rules => rules,
            payload_key => self.mode.payload_key(),
            noun => self.mode.plural(),
            single => self.mode == UpdateMode::FullRewriteMinibatch,
            meta_skill => self.meta_skill.trim(),
        }
    }
}
