//! What is configured about one role's model.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Backend, ModelError};
use crate::model::Role;
use crate::model::openai_compatible::Secret;

/// One role's model. What is absent is looked up in the environment, or has the default of its
/// backend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoleConfig {
    /// The protocol; absent: `openai_compatible`, or `scripted` when a script is given.
    pub backend: Option<Backend>,
    /// The file of rules of the scripted model.
    pub script: Option<PathBuf>,
    /// Where the server is, such as `http://127.0.0.1:8080/v1`.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The key itself; better kept out of files.
    pub api_key: Option<Secret>,
    /// The model's name as the server knows it.
    pub model: Option<String>,
    /// Sent only when given.
    pub temperature: Option<f64>,
    /// The most completion tokens of any call.
    pub max_tokens: Option<u32>,
    /// How long one attempt may take: a number of seconds, or a text such as `5m`.
    #[serde(deserialize_with = "timeout", serialize_with = "seconds")]
    pub timeout: Option<Duration>,
    /// Merged into each request's body; a null removes a standard field.
    pub extra_body: Option<Map<String, Value>>,
    /// The most calls at once; 8 when absent.
    pub concurrency: Option<usize>,
    /// Attempts in all for a call that fails in passing, the first included; 5 when absent.
    pub retries: Option<u32>,
    /// US dollars per million prompt tokens.
    pub price_in: Option<f64>,
    /// US dollars per million completion tokens.
    pub price_out: Option<f64>,
}

impl RoleConfig {
    /// The most calls at once.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.concurrency.unwrap_or(8)
    }

    /// Checks the numbers that no backend looks at.
    pub(super) fn check(&self, role: Role) -> Result<(), ModelError> {
        let invalid = |leaf: &str, reason: &str| ModelError::Invalid {
            what: format!("models.{role}.{leaf}"),
            reason: reason.to_owned(),
        };
        if self.concurrency == Some(0) {
            return Err(invalid("concurrency", "it must be at least 1"));
        }
        if self.retries == Some(0) {
            return Err(invalid(
                "retries",
                "it counts the first attempt, so it must be at least 1",
            ));
        }
        for (leaf, price) in [("price_in", self.price_in), ("price_out", self.price_out)] {
            if price.is_some_and(|price| !price.is_finite() || price < 0.0) {
                return Err(invalid(leaf, "it must be an amount of money"));
            }
        }
        Ok(())
    }
}

fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    use serde::de::Error;
    let seconds = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| D::Error::custom(format!("{seconds} is not a number of seconds")))
    };
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => seconds(number.as_f64().unwrap_or(f64::NAN)).map(Some),
        Some(Value::String(text)) => {
            if let Ok(number) = text.parse() {
                return seconds(number).map(Some);
            }
            text.parse::<jiff::SignedDuration>()
                .ok()
                .and_then(|duration| Duration::try_from(duration).ok())
                .map(Some)
                .ok_or_else(|| {
                    D::Error::custom(format!("`{text}` is not a time span such as 90s or 5m"))
                })
        }
        Some(other) => Err(D::Error::custom(format!(
            "{other} is not a time span such as 90s or 5m"
        ))),
    }
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn seconds<S: Serializer>(timeout: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    timeout
        .map(|timeout| timeout.as_secs_f64())
        .serialize(serializer)
}
