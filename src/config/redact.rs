//! Configurations without their credentials, for run records and reports (W-S1).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// What stands in place of a credential.
pub const REDACTED: &str = "[redacted]";

/// Words that make a name one of a credential when they are its last.
const SECRET_WORDS: [&str; 11] = [
    "key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "cookie",
];

/// Whether a value under this name is a credential. `max_tokens` and `api_key_env` are none: the
/// one is a number of tokens, the other the name of a variable.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let last = name.rsplit(['_', '-', '.', ' ']).next().unwrap_or(&name);
    SECRET_WORDS.contains(&last)
}

/// A user name and password within a URL.
#[expect(
    clippy::unwrap_used,
    reason = "the expression is a constant, tested below"
)]
static USER_INFO: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/@\s]+@").unwrap());

/// The value with every credential replaced whole, at any depth. Blank and null ones stay, because
/// they say that none was given.
#[must_use]
pub fn redact(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let value = match value {
                    Value::Null => Value::Null,
                    Value::String(text) if text.is_empty() => value.clone(),
                    _ if is_secret_name(name) => Value::from(REDACTED),
                    other => redact(other),
                };
                (name.clone(), value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(redact).collect(),
        Value::String(text) => {
            let shown = format!("${{scheme}}{REDACTED}@");
            Value::from(USER_INFO.replace_all(text, shown.as_str()).into_owned())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_like_name_is_redacted_whole_and_nothing_else_is() {
        let value = json!({
            "azure_openai_api_key": "supersecretvalue",
            "optimizer_qwen_chat_api_key": 12,
            "minimax_api_key": "",
            "api_key": null,
            "api_key_env": "MY_KEY",
            "max_tokens": 8000,
            "rewrite_max_completion_tokens": 64000,
            "extra": [{"Auth-Token": "x", "url": "http://me:pw@host/v1"}],
            "split_seed": 3
        });
        assert_eq!(
            redact(&value),
            json!({
                "azure_openai_api_key": "[redacted]",
                "optimizer_qwen_chat_api_key": "[redacted]",
                "minimax_api_key": "",
                "api_key": null,
                "api_key_env": "MY_KEY",
                "max_tokens": 8000,
                "rewrite_max_completion_tokens": 64000,
                "extra": [{"Auth-Token": "[redacted]", "url": "http://[redacted]@host/v1"}],
                "split_seed": 3
            })
        );
    }
}
