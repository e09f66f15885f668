//! Where the server, the key and the model come from.
//!
//! For each value the first that is given counts: the configuration, the role's variable
//! (`OPTIMIZER_OPENAI_COMPATIBLE_MODEL`), the shared variable (`OPENAI_COMPATIBLE_MODEL`), the
//! default (backends 2.4). There is one deliberate difference from the original: the public
//! OpenAI endpoint is the default only when a key is given. Without base URL and key there is no
//! model, so nothing is ever sent to the internet by default.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::model::Role;
use crate::model::stack::{Environment, ModelError, RoleConfig};

const FAMILY: &str = "OPENAI_COMPATIBLE";
const PUBLIC_ENDPOINT: &str = "https://api.openai.com/v1";
const DEFAULT_MODEL: &str = "gpt-4o-mini";
const DEFAULT_MAX_TOKENS: u32 = 8000;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// Body fields that the program itself depends on.
const RESERVED_FIELDS: [&str; 4] = ["messages", "model", "stream", "n"];

/// A credential. It has no `Display`, prints as `[redacted]`, and is written out redacted.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The credential itself, for the wire.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the credential.
    pub(super) fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() {
            text.to_owned()
        } else {
            text.replace(&self.0, "[redacted]")
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}

/// Everything that a call needs beside its request.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    base_url: Url,
    /// Sent as a bearer token.
    pub(super) api_key: Option<Secret>,
    /// The model's name as the server knows it.
    pub model: String,
    /// Sent only when given.
    pub temperature: Option<f64>,
    /// The most completion tokens of any call.
    pub max_tokens: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Merged into the request's body.
    pub extra_body: Map<String, Value>,
}

impl Settings {
    /// Settles each value for `role`.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when there is neither a base URL nor a key,
    /// [`ModelError::Invalid`] when a value cannot be used, naming where it came from.
    pub fn resolve(
        role: Role,
        config: &RoleConfig,
        env: Environment<'_>,
    ) -> Result<Settings, ModelError> {
        let lookup = Lookup { role, env };
        let base_url = match &config.base_url {
            Some(url) => Some((url.clone(), format!("models.{role}.base_url"))),
            None => lookup.text("BASE_URL"),
        };
        let api_key = Self::key(config, &lookup)?;
        if base_url.is_none() && api_key.is_none() {
            return Err(ModelError::NotConfigured { roles: vec![role] });
        }
        let (base_url, origin) = base_url.unwrap_or_else(|| {
            (
                PUBLIC_ENDPOINT.to_owned(),
                "the default base URL".to_owned(),
            )
        });
        let base_url = parse_base_url(&base_url, &origin)?;

        let model = config
            .model
            .clone()
            .or_else(|| lookup.text("MODEL").map(|(text, _)| text))
            .or_else(|| lookup.variable(&format!("{}_DEPLOYMENT", lookup.prefix())))
            .unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let temperature = match config.temperature {
            Some(temperature) => Some(temperature),
            None => match lookup.text("TEMPERATURE") {
                Some((text, _)) if matches!(text.as_str(), "none" | "off" | "null") => None,
                Some((text, name)) => Some(number(&text, &name)?),
                None => None,
            },
        };
        if let Some(temperature) = temperature
            && !(0.0..=10.0).contains(&temperature)
        {
            return Err(ModelError::Invalid {
                what: format!("the temperature of the {role} model"),
                reason: format!("{temperature} is not between 0 and 10"),
            });
        }
        let max_tokens = match config.max_tokens {
            Some(most) => most,
            None => match lookup.text("MAX_TOKENS") {
                Some((text, name)) => number(&text, &name)?,
                None => DEFAULT_MAX_TOKENS,
            },
        };
        if max_tokens == 0 {
            return Err(ModelError::Invalid {
                what: format!("max_tokens of the {role} model"),
                reason: "it must be at least 1".to_owned(),
            });
        }
        let timeout =
            match config.timeout {
                Some(timeout) => timeout,
                None => match lookup.text("TIMEOUT_SECONDS") {
                    Some((text, name)) => Duration::try_from_secs_f64(number(&text, &name)?)
                        .map_err(|error| ModelError::Invalid {
                            what: name,
                            reason: error.to_string(),
                        })?,
                    None => DEFAULT_TIMEOUT,
                },
            };
        if timeout.is_zero() {
            return Err(ModelError::Invalid {
                what: format!("the timeout of the {role} model"),
                reason: "it must be above 0 s".to_owned(),
            });
        }
        let extra_body = Self::extra_body(config, &lookup)?;
        Ok(Settings {
            base_url,
            api_key,
            model,
            temperature,
            max_tokens,
            timeout,
            extra_body,
        })
    }

    /// The key: written in the configuration, in the variable that it names, or in ours. A named
    /// variable that is not set is an error rather than a call without a key.
    fn key(config: &RoleConfig, lookup: &Lookup<'_>) -> Result<Option<Secret>, ModelError> {
        if let Some(key) = &config.api_key {
            return Ok(Some(key.clone()));
        }
        if let Some(name) = &config.api_key_env {
            return match lookup.variable(name) {
                Some(key) => Ok(Some(Secret::new(key))),
                None => Err(ModelError::Invalid {
                    what: format!("models.{}.api_key_env", lookup.role),
                    reason: format!(
                        "the environment variable {name} is not set; export it, or correct the name"
                    ),
                }),
            };
        }
        Ok(lookup.text("API_KEY").map(|(key, _)| Secret::new(key)))
    }

    fn extra_body(
        config: &RoleConfig,
        lookup: &Lookup<'_>,
    ) -> Result<Map<String, Value>, ModelError> {
        let (fields, what) = match (&config.extra_body, lookup.text("EXTRA_BODY")) {
            (Some(fields), _) => (fields.clone(), format!("models.{}.extra_body", lookup.role)),
            (None, Some((text, name))) => match serde_json::from_str(&text) {
                Ok(Value::Object(fields)) => (fields, name),
                _ => {
                    return Err(ModelError::Invalid {
                        what: name,
                        reason: "it must be a JSON object such as {\"top_p\": 0.9}".to_owned(),
                    });
                }
            },
            (None, None) => return Ok(Map::new()),
        };
        match RESERVED_FIELDS
            .iter()
            .find(|name| fields.contains_key(**name))
        {
            Some(name) => Err(ModelError::Invalid {
                what,
                reason: format!("the field `{name}` is set by the program"),
            }),
            None => Ok(fields),
        }
    }

    /// The server for messages and ids: no credentials, no query.
    #[must_use]
    pub fn server(&self) -> String {
        let mut url = self.base_url.clone();
        url.set_query(None);
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// Where calls go: the base URL with `/chat/completions` added unless it is there.
    pub(super) fn endpoint(&self) -> Url {
        let mut url = self.base_url.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        if path.ends_with("/chat/completions") {
            url.set_path(&path);
        } else {
            url.set_path(&format!("{path}/chat/completions"));
        }
        url
    }

    /// Whether the server runs on this machine, where no proxy has a place.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.base_url.host_str().unwrap_or_default();
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// What shapes replies beside model and request.
    pub(super) fn fingerprint(&self) -> String {
        json!({
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "extra_body": self.extra_body,
        })
        .to_string()
    }
}

/// Reads the variables of one role.
struct Lookup<'a> {
    role: Role,
    env: Environment<'a>,
}

impl Lookup<'_> {
    fn prefix(&self) -> String {
        self.role.to_string().to_uppercase()
    }

    /// A variable's trimmed text; a blank one counts as not set.
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    /// The role's variable or the shared one, and its name.
    fn text(&self, leaf: &str) -> Option<(String, String)> {
        [
            format!("{}_{FAMILY}_{leaf}", self.prefix()),
            format!("{FAMILY}_{leaf}"),
        ]
        .into_iter()
        .find_map(|name| Some((self.variable(&name)?, name)))
    }
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, ModelError> {
    text.parse().map_err(|_| ModelError::Invalid {
        what: what.to_owned(),
        reason: format!("`{text}` is not a number in its range"),
    })
}

fn parse_base_url(text: &str, what: &str) -> Result<Url, ModelError> {
    let invalid = |reason: &str| ModelError::Invalid {
        what: what.to_owned(),
        reason: format!("{reason}; it should look like http://127.0.0.1:8080/v1"),
    };
    // The text itself is not quoted: it may hold a password.
    let mut url = Url::parse(text.trim()).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("it does not start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "it holds a user name or password; give the key apart",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}
