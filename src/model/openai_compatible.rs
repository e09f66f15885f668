//! Any server that speaks OpenAI's Chat Completions: hosted ones, gateways, and local ones such as
//! llama.cpp, vLLM, Ollama or LM Studio (backends 4.2).
//!
//! One call is one `POST …/chat/completions`, without streaming. [`Settings`] says where the
//! server, key and model come from, `wire` what travels; this file sends, bounds what comes
//! back, and turns every way in which a call can fail into a [`CallError`] whose message names the
//! server, the model and what was said, and never the key.

mod settings;
mod wire;

pub use settings::{Secret, Settings};

use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode};

use super::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, ModelError};

/// The largest reply body that is read, in bytes. The longest answers have some hundred kilobytes;
/// a server that sends more is broken or hostile.
pub const LARGEST_BODY: usize = 16 * 1024 * 1024;

/// How much of what a server said is quoted, in characters.
const LONGEST_QUOTE: usize = 200;

/// A model behind a Chat Completions server.
#[derive(Debug)]
pub struct OpenAiCompatible {
    settings: Settings,
    id: String,
    client: Client,
}

impl OpenAiCompatible {
    /// Prepares calls; makes none.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] when the HTTP client cannot be set up (no usable TLS roots).
    pub fn new(settings: Settings) -> Result<OpenAiCompatible, ModelError> {
        let mut builder = Client::builder()
            .connect_timeout(Duration::from_secs(10).min(settings.timeout))
            // A POST that is redirected becomes a GET, or carries the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("skillopt-sleep/", env!("CARGO_PKG_VERSION")));
        if settings.is_loopback() {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ModelError::Invalid {
            what: "HTTP client".to_owned(),
            reason: error.to_string(),
        })?;
        let id = format!("openai_compatible/{}@{}", settings.model, settings.server());
        Ok(OpenAiCompatible {
            settings,
            id,
            client,
        })
    }

    /// A failure of this call: "the model M at S" and what happened.
    fn failure(&self, kind: CallErrorKind, what: impl std::fmt::Display) -> CallError {
        CallError::new(
            kind,
            format!(
                "the model `{}` at {} {what}",
                self.settings.model,
                self.settings.server()
            ),
        )
    }

    /// What the server said, fit for a one-line message.
    fn quote(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let said = wire::error_message(&text).unwrap_or_else(|| text.into_owned());
        let said = match &self.settings.api_key {
            Some(key) => key.hide_in(&said),
            None => said,
        };
        let line = said
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect::<String>()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        match line.char_indices().nth(LONGEST_QUOTE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None if line.is_empty() => "nothing".to_owned(),
            None => line,
        }
    }

    async fn call(&self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        let mut post = self
            .client
            .post(self.settings.endpoint())
            .timeout(self.settings.timeout)
            .json(&wire::body(&self.settings, request));
        // Servers that want no key ignore this one; some clients and gateways insist on any.
        let key = self
            .settings
            .api_key
            .as_ref()
            .map_or("dummy", Secret::expose);
        post = post.bearer_auth(key);
        let mut response = post.send().await.map_err(|error| self.unsent(&error))?;

        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > LARGEST_BODY => {
                    return Err(self.failure(
                        CallErrorKind::Malformed,
                        format_args!(
                            "sent more than {} MB; check that the base URL is a Chat Completions \
                             server",
                            LARGEST_BODY / (1024 * 1024)
                        ),
                    ));
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(self.unsent(&error)),
            }
        }
        if !status.is_success() {
            return Err(self.refused(status, &headers, &body));
        }
        match wire::reply(&body, request) {
            Ok(reply) => Ok(reply),
            Err(wire::Unusable {
                kind,
                reason,
                usage,
            }) => {
                let what = match kind {
                    CallErrorKind::Malformed => {
                        format!("{reason}; it said: {}", self.quote(&body))
                    }
                    CallErrorKind::Refused => self.quote(reason.as_bytes()),
                    _ => reason,
                };
                Err(CallError {
                    usage,
                    ..self.failure(kind, what)
                })
            }
        }
    }

    /// No answer came, or only a part of one.
    fn unsent(&self, error: &reqwest::Error) -> CallError {
        if error.is_timeout() {
            return self.failure(
                CallErrorKind::Timeout,
                format_args!(
                    "did not answer within {} s",
                    self.settings.timeout.as_secs_f64()
                ),
            );
        }
        // The innermost cause is the one that helps ("connection refused", "unknown host").
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let cause = self.quote(cause.to_string().as_bytes());
        self.failure(
            CallErrorKind::Connection,
            if error.is_connect() {
                format!("cannot be reached: {cause}; check the base URL and that the server runs")
            } else {
                format!("broke the connection: {cause}")
            },
        )
    }

    /// The server answered with a status that is no success.
    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CallError {
        use CallErrorKind as Kind;
        let text = String::from_utf8_lossy(body);
        let code = wire::error_code(&text);
        let kind = match (status.as_u16(), code.as_deref()) {
            // Busy by status, but no waiting fills an empty account.
            (429, Some("insufficient_quota")) => Kind::Rejected,
            (400, Some("content_filter")) => Kind::Refused,
            (401 | 403, _) => Kind::Unauthorized,
            (404, _) => Kind::NotFound,
            (408, _) => Kind::Timeout,
            (429 | 529, _) => Kind::RateLimited,
            (409 | 500..=599, _) => Kind::Server,
            _ => Kind::Rejected,
        };
        let remedy = match kind {
            Kind::Unauthorized => "; check the API key",
            Kind::NotFound => "; check the model name and the base URL (it usually ends in /v1)",
            Kind::Rejected if status.is_redirection() => {
                "; set the base URL to where it redirects to"
            }
            _ => "",
        };
        CallError {
            retry_after: retry_after(headers, jiff::Timestamp::now()),
            ..self.failure(
                kind,
                format_args!(
                    "answered HTTP {}: {}{remedy}",
                    status.as_u16(),
                    self.quote(body)
                ),
            )
        }
    }
}

/// What the provider asks to wait: milliseconds or seconds, or until a date.
fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = header("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = header("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Duration::try_from(until.duration_since(now)).ok()
}

impl ChatModel for OpenAiCompatible {
    fn id(&self) -> &str {
        &self.id
    }

    fn fingerprint(&self) -> String {
        self.settings.fingerprint()
    }

    fn reply_bound(&self, request: &ChatRequest) -> u32 {
        request.max_tokens.min(self.settings.max_tokens)
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(self.call(request))
    }
}

#[cfg(test)]
mod tests;
