//! The optimizer's prompts: templates compiled into the binary, each replaceable by a file of the
//! same name in a folder of the user's.
//!
//! A template file holds the system text, a line `=== user ===`, and the user text. Rendering is a
//! single pass, so text that is put in is never expanded again (what somebody else wrote stays
//! data), and it goes in between tags that the system text declares to be material.

use std::path::Path;

use minijinja::{Environment, UndefinedBehavior, Value};

use super::error::TrainError;
use crate::model::{INTERNAL_CALL_MARKER, Message, Speaker};

const SEPARATOR: &str = "=== user ===";

/// Every template: its name and its text.
const TEMPLATES: &[(&str, &str)] = &[
    ("analyst_error", include_str!("prompts/analyst_error.md")),
    (
        "analyst_success",
        include_str!("prompts/analyst_success.md"),
    ),
    ("consolidate", include_str!("prompts/consolidate.md")),
    ("evidence", include_str!("prompts/evidence.md")),
    (
        "item_full_rewrite",
        include_str!("prompts/item_full_rewrite.md"),
    ),
    ("item_patch", include_str!("prompts/item_patch.md")),
    ("item_rewrite", include_str!("prompts/item_rewrite.md")),
    ("lr_autonomous", include_str!("prompts/lr_autonomous.md")),
    ("merge_failure", include_str!("prompts/merge_failure.md")),
    ("merge_final", include_str!("prompts/merge_final.md")),
    ("merge_success", include_str!("prompts/merge_success.md")),
    ("meta_skill", include_str!("prompts/meta_skill.md")),
    ("ranking", include_str!("prompts/ranking.md")),
    ("rewrite_skill", include_str!("prompts/rewrite_skill.md")),
    (
        "rules_full_rewrite",
        include_str!("prompts/rules_full_rewrite.md"),
    ),
    ("rules_patch", include_str!("prompts/rules_patch.md")),
    ("rules_rewrite", include_str!("prompts/rules_rewrite.md")),
    (
        "skill_aware_failure",
        include_str!("prompts/skill_aware_failure.md"),
    ),
    (
        "skill_aware_success",
        include_str!("prompts/skill_aware_success.md"),
    ),
    ("slow_update", include_str!("prompts/slow_update.md")),
];

/// The templates of a run.
pub struct Prompts {
    templates: Environment<'static>,
}

impl Prompts {
    /// The compiled-in templates, with those found as `<name>.md` in `folder` put in their place.
    ///
    /// # Errors
    /// When a file cannot be read or is no template.
    pub fn load(folder: Option<&Path>) -> Result<Self, TrainError> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        for (name, builtin) in TEMPLATES {
            let text = match folder.map(|folder| folder.join(format!("{name}.md"))) {
                Some(path) if path.exists() => fs_err::read_to_string(path)?,
                _ => (*builtin).to_owned(),
            };
            templates
                .add_template_owned(*name, text)
                .map_err(|source| TrainError::Prompt {
                    name: (*name).to_owned(),
                    source,
                })?;
        }
        Ok(Self { templates })
    }

    /// These templates and `more`, pairs of a name and a text.
    ///
    /// # Errors
    /// When a text is no template.
    pub fn with(mut self, more: &[(&'static str, &'static str)]) -> Result<Self, TrainError> {
        for (name, text) in more {
            self.templates
                .add_template(name, text)
                .map_err(|source| TrainError::Prompt {
                    name: (*name).to_owned(),
                    source,
                })?;
        }
        Ok(self)
    }

    /// A template as plain text.
    ///
    /// # Errors
    /// When the template asks for something that `context` does not have.
    pub fn text(&self, name: &str, context: Value) -> Result<String, TrainError> {
        self.templates
            .get_template(name)
            .and_then(|template| template.render(context))
            .map_err(|source| TrainError::Prompt {
                name: name.to_owned(),
                source,
            })
    }

    /// The messages of one call.
    ///
    /// # Errors
    /// When the template asks for something that `context` does not have.
    pub fn render(&self, name: &str, context: Value) -> Result<Vec<Message>, TrainError> {
        let text = self.text(name, context)?;
        let (system, user) = text.split_once(SEPARATOR).unwrap_or(("", &text));
        Ok(vec![
            Message {
                role: Speaker::System,
                content: format!("{}\n\n{INTERNAL_CALL_MARKER}", system.trim()),
            },
            Message {
                role: Speaker::User,
                content: user.trim().to_owned(),
            },
        ])
    }
}
