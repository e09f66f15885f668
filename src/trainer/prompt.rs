//! The optimizer's prompts: templates compiled into the binary, each replaceable by a file of the
//! same name in a folder of the user's.
//!
//! A template file holds the system text, a line `=== user ===`, and the user text. Rendering is a
//! single pass, so text that is put in is never expanded again (what somebody else wrote stays
//! data), and it goes in between tags that the system text declares to be material.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::{Environment, UndefinedBehavior, Value};

use super::error::TrainError;
use crate::model::{INTERNAL_CALL_MARKER, Message, Speaker};

const SEPARATOR: &str = "=== user ===";

/// Largest file of a prompt, in bytes.
const MOST_BYTES: u64 = 1 << 20;

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
    digest: String,
}

/// The `.md` files of a folder of prompts, by name without the ending.
fn replacements(folder: &Path) -> Result<BTreeMap<String, String>, TrainError> {
    let unreadable = |error: std::io::Error| {
        TrainError::Setup(format!("the folder of prompts cannot be read: {error}"))
    };
    let mut found = BTreeMap::new();
    for entry in fs_err::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if let Some(name) = name
            && path.extension().is_some_and(|ending| ending == "md")
        {
            let text = skillopt_files::read_text(&path, MOST_BYTES)
                .map_err(|error| TrainError::Setup(error.to_string()))?;
            found.insert(name.to_owned(), text);
        }
    }
    Ok(found)
}

impl Prompts {
    /// The compiled-in templates and the environment's `own`, pairs of a name and a text, with
    /// those found as `<name>.md` in `folder` put in their place.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, when a file is no template, and when a `.md` file
    /// has the name of no template, so that a misspelt name is not passed over.
    pub fn load(
        folder: Option<&Path>,
        own: &[(&'static str, &'static str)],
    ) -> Result<Self, TrainError> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let mut replaced = folder.map(replacements).transpose()?.unwrap_or_default();
        let mut digest = blake3::Hasher::new();
        for (name, builtin) in TEMPLATES.iter().chain(own) {
            let text = replaced
                .remove(*name)
                .unwrap_or_else(|| (*builtin).to_owned());
            digest.update(&(text.len() as u64).to_le_bytes());
            digest.update(text.as_bytes());
            templates
                .add_template_owned(*name, text)
                .map_err(|source| TrainError::Prompt {
                    name: (*name).to_owned(),
                    source,
                })?;
        }
        if let Some(name) = replaced.into_keys().next() {
            let names: Vec<&str> = TEMPLATES.iter().chain(own).map(|(name, _)| *name).collect();
            return Err(TrainError::Setup(format!(
                "{name}.md in the folder of prompts replaces nothing; the prompts are {}",
                names.join(", ")
            )));
        }
        Ok(Self {
            templates,
            digest: digest.finalize().to_hex().to_string(),
        })
    }

    /// Hex digest of every template: two runs with equal ones were asked with the same prompts.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
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
