//! What is wrong with a file, said with its line and key.

use std::path::Path;

use serde_json::Value;

use crate::config::yaml::{self, join};
use crate::config::{ConfigError, Origin, nearest};

/// A file whose values are checked.
pub(super) struct File<'a> {
    pub(super) path: &'a Path,
    pub(super) document: &'a yaml::Document,
}

impl File<'_> {
    fn at(&self, line: usize) -> Origin {
        Origin::File {
            path: self.path.to_owned(),
            line,
        }
    }

    /// The line of the key, or of the nearest mapping around it that the file has.
    fn origin(&self, key: &str) -> Origin {
        std::iter::successors(Some(key), |key| Some(key.rsplit_once('.')?.0))
            .find_map(|key| self.document.lines.get(key))
            .map_or(Origin::Default, |line| self.at(*line))
    }

    pub(super) fn wrong(&self, key: &str, reason: String) -> ConfigError {
        ConfigError::Value {
            origin: self.origin(key),
            key: key.to_owned(),
            reason,
        }
    }

    /// Compares mappings with the default's; where that has none, anything goes (`extra_body`), or
    /// the typed reading decides (list items).
    pub(super) fn check_keys(
        &self,
        path: &str,
        value: &Value,
        known: &Value,
    ) -> Result<(), ConfigError> {
        let (Value::Object(given), Value::Object(known)) = (value, known) else {
            return Ok(());
        };
        for (key, value) in given {
            let path = join(path, key);
            let Some(known_value) = known.get(key) else {
                let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
                return Err(ConfigError::UnknownKey {
                    origin: self.origin(&path),
                    nearest: nearest(key, known.keys().map(String::as_str))
                        .map(|name| join(parent, name)),
                    key: path,
                });
            };
            self.check_keys(&path, value, known_value)?;
        }
        Ok(())
    }

    /// A value of the wrong type: the key on whose line the reader stopped.
    pub(super) fn mistyped(&self, error: &serde_saphyr::Error) -> ConfigError {
        let error = error.without_snippet();
        let line = error
            .location()
            .map_or(0, |location| usize::try_from(location.line()).unwrap_or(0));
        let key = self
            .document
            .lines
            .iter()
            .filter(|(_, at)| **at <= line)
            .max_by_key(|(key, at)| (**at, key.len()));
        // The line is said already.
        let message = error.to_string();
        let message = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(message, _)| message);
        let reason = if message.starts_with("duplicate mapping key") {
            "is set twice".to_owned()
        } else if message.starts_with("invalid u") {
            "must be a whole number".to_owned()
        } else {
            format!("cannot be read: {message}")
        };
        match key {
            Some((key, at)) => ConfigError::Value {
                origin: self.at(*at),
                key: key.clone(),
                reason,
            },
            None => ConfigError::Syntax {
                path: self.path.to_owned(),
                line,
                reason,
            },
        }
    }
}
