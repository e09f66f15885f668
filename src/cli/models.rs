//! Models for a command: from the configuration, the environment and `--model`, and what to say when
//! there is none that works.

use std::path::Path;

use miette::Diagnostic as _;

use super::failure::{ExitStatus, Failure};
use crate::model::{CallErrorKind, ModelError, Models, ModelsConfig};
use crate::trainer::error::TrainError;

/// The process's environment, as the models look variables up.
pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Builds the models, with their journal at `journal`.
pub(super) fn build(config: &ModelsConfig, journal: &Path) -> Result<Models, ModelError> {
    if let Some(parent) = journal.parent() {
        skillopt_files::create_private_dir(parent).map_err(|error| ModelError::Invalid {
            what: format!("the run directory {}", parent.display()),
            reason: error.to_string(),
        })?;
    }
    Models::build(config, Some(journal), &env)
}

/// A model that cannot be set up.
pub(super) fn failure(error: &ModelError) -> Failure {
    let status = match error {
        ModelError::NotConfigured { .. } => ExitStatus::NoModel,
        _ => ExitStatus::Situation,
    };
    let failure = Failure::of(status, error);
    match error.help() {
        Some(help) => failure.hint(help.to_string()),
        None => failure,
    }
}

/// Training that stopped: one sentence, with what to check when the cause is a model.
pub(super) fn training_failure(error: &TrainError, models: Option<&Models>) -> Failure {
    if let Some((role, cause)) = models.and_then(Models::tripped) {
        return Failure::new(
            ExitStatus::NoModel,
            format!("the {role} model cannot be used: {}", cause.message),
        )
        .hint(what_to_check(cause.kind));
    }
    match error {
        TrainError::Budget(message) => Failure::new(ExitStatus::Budget, message.clone())
            .hint("state is kept: give the same command a larger budget to go on"),
        TrainError::Optimizer(cause) => {
            Failure::of(ExitStatus::NoModel, error).hint(what_to_check(cause.kind))
        }
        TrainError::NothingMeasured { .. } | TrainError::Coverage { .. } => {
            Failure::of(ExitStatus::NoModel, error)
                .hint("state is kept: when the model answers again, the same command goes on")
        }
        TrainError::Setup(_) | TrainError::Prompt { .. } | TrainError::Record(_) => {
            Failure::situation(error)
        }
    }
}

fn what_to_check(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::Unauthorized => {
            "check the key (OPENAI_COMPATIBLE_API_KEY, or the role's own variable)"
        }
        CallErrorKind::NotFound => {
            "check the model's name and that the base URL ends where the API begins, often in /v1"
        }
        CallErrorKind::Connection | CallErrorKind::Timeout => {
            "check the base URL and that the server is running"
        }
        CallErrorKind::Empty => {
            "the model answers with nothing: check that it is a chat model and its token limit"
        }
        CallErrorKind::RateLimited => "the provider limits this key: lower `concurrency`, or wait",
        CallErrorKind::Malformed => {
            "the answer is not of the Chat Completions protocol: check the base URL"
        }
        _ => "see the message; state is kept, and the same command goes on",
    }
}
