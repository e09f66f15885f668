//! What the analysts of a night are told: how to read these items, what the developer prefers, and
//! what was turned down before, so that it is not proposed again.

use minijinja::context;

use crate::trainer::error::TrainError;
use crate::trainer::prompt::Prompts;

/// Most declined edits that are passed on; the newest matter most.
const MAX_DECLINED: usize = 30;

/// An edit that was turned down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declined {
    /// The edit's text.
    pub edit: String,
    /// Who turned it down and why.
    pub reason: String,
}

/// The guidance text.
///
/// # Errors
/// When the template does not render.
pub fn guidance(
    prompts: &Prompts,
    preferences: &str,
    declined: &[Declined],
) -> Result<String, TrainError> {
    let declined: Vec<String> = declined
        .iter()
        .take(MAX_DECLINED)
        .map(|declined| format!("{:?} ({})", declined.edit, declined.reason))
        .collect();
    prompts.text(
        "guidance",
        context! { preferences => preferences.trim(), declined => declined },
    )
}
