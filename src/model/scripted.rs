//! A model whose replies come from a file of rules. It runs demos and tests without a network,
//! and says in its id that it is scripted.
//!
//! The file is YAML or JSON:
//!
//! ```yaml
//! rules:                        # tried in order; the first that matches answers
//!   - name: judge               # for messages
//!     when:                     # every given condition must hold; all text tests are for parts
//!       stage: judge            # exactly this stage
//!       contains: [alpha, beta] # all of these in the conversation
//!       not_contains: [gamma]   # none of these in it
//!       system_contains: [strict]   # all of these in the system messages
//!       last_contains: [delta]  # all of these in the last message
//!       capture: 'task (\d+)'   # a regular expression found in the conversation
//!     times: 2                  # used up after so many replies; absent: never
//!     reply: {score: 1, why: "task {{1}} is done"}   # text, or any value, sent as JSON
//!   - name: outage
//!     when: {stage: rollout}
//!     fail: {kind: rate_limited, message: "slow down", retry_after_seconds: 1}
//! default: "I do not know."     # when no rule matches; absent: the call is rejected
//! ```
//!
//! In replies, `{{0}}` stands for what `capture` found, `{{1}}` to `{{9}}` for its groups, and
//! `{{last}}` for the last message. Replies depend on nothing but the request, except through
//! `times`, which counts in the order of calls. Usage is estimated from the texts.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::{
    CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, ModelError, Speaker, Usage,
    estimate_tokens,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    rules: Vec<Rule>,
    default: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    #[serde(default)]
    when: When,
    times: Option<u64>,
    reply: Option<Value>,
    fail: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct When {
    stage: Option<String>,
    contains: Vec<String>,
    not_contains: Vec<String>,
    system_contains: Vec<String>,
    last_contains: Vec<String>,
    capture: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: CallErrorKind,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    retry_after_seconds: Option<f64>,
}

/// What a request holds, as rules see it.
struct Seen<'a> {
    stage: &'a str,
    all: String,
    system: String,
    last: &'a str,
}

impl<'a> Seen<'a> {
    fn of(request: &'a ChatRequest) -> Seen<'a> {
        let texts = |system_only: bool| {
            request
                .messages
                .iter()
                .filter(|message| !system_only || message.role == Speaker::System)
                .map(|message| message.content.as_str())
                .collect::<Vec<_>>()
                .join("\n")
        };
        Seen {
            stage: request.stage,
            all: texts(false),
            system: texts(true),
            last: request
                .messages
                .last()
                .map_or("", |message| message.content.as_str()),
        }
    }
}

impl When {
    fn holds(&self, seen: &Seen<'_>) -> bool {
        let all_in = |parts: &[String], text: &str| parts.iter().all(|part| text.contains(part));
        self.stage
            .as_deref()
            .is_none_or(|stage| stage == seen.stage)
            && all_in(&self.contains, &seen.all)
            && !self.not_contains.iter().any(|part| seen.all.contains(part))
            && all_in(&self.system_contains, &seen.system)
            && all_in(&self.last_contains, seen.last)
    }
}

/// A rule with its expression compiled and its uses counted.
#[derive(Debug)]
struct Armed {
    rule: Rule,
    capture: Option<Regex>,
    used: AtomicU64,
}

impl Armed {
    /// Takes one use, unless they are used up.
    fn take(&self) -> bool {
        let Some(times) = self.rule.times else {
            return true;
        };
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
                (used < times).then_some(used + 1)
            })
            .is_ok()
    }
}

/// A model that follows a script.
#[derive(Debug)]
pub struct Scripted {
    id: String,
    fingerprint: String,
    rules: Vec<Armed>,
    default: Option<Value>,
}

impl Scripted {
    /// Reads the script at `path`.
    ///
    /// # Errors
    /// [`ModelError::Script`] when the file cannot be read or is not a script.
    pub fn from_file(path: &Path) -> Result<Scripted, ModelError> {
        let name = path.display().to_string();
        let text = fs_err::read_to_string(path).map_err(|error| ModelError::Script {
            name: name.clone(),
            reason: error.to_string(),
        })?;
        Scripted::from_text(&name, &text)
    }

    /// Reads a script that is already in memory; `name` goes into the id and into messages.
    ///
    /// # Errors
    /// [`ModelError::Script`] when the text is not a script.
    pub fn from_text(name: &str, text: &str) -> Result<Scripted, ModelError> {
        let error = |reason: String| ModelError::Script {
            name: name.to_owned(),
            reason,
        };
        let script: Script = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|cause| error(cause.to_string()))?
        } else {
            serde_saphyr::from_str(text)
                .map_err(|cause| error(cause.without_snippet().to_string()))?
        };
        let rules = script
            .rules
            .into_iter()
            .map(|rule| {
                if rule.reply.is_some() == rule.fail.is_some() {
                    return Err(error(format!(
                        "the rule `{}` needs either `reply` or `fail`",
                        rule.name
                    )));
                }
                let capture = rule.when.capture.as_deref().map(Regex::new).transpose();
                let capture =
                    capture.map_err(|cause| error(format!("the rule `{}`: {cause}", rule.name)))?;
                Ok(Armed {
                    rule,
                    capture,
                    used: AtomicU64::new(0),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Scripted {
            id: format!("scripted/{name}"),
            fingerprint: blake3::hash(text.as_bytes()).to_hex().to_string(),
            rules,
            default: script.default,
        })
    }

    fn answer(&self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        let seen = Seen::of(request);
        for armed in &self.rules {
            if !armed.rule.when.holds(&seen) {
                continue;
            }
            let mut groups = Vec::new();
            if let Some(capture) = &armed.capture {
                let Some(found) = capture.captures(&seen.all) else {
                    continue;
                };
                groups.extend(
                    found.iter().map(|group| {
                        group.map_or_else(String::new, |text| text.as_str().to_owned())
                    }),
                );
            }
            if !armed.take() {
                continue;
            }
            return match (&armed.rule.reply, &armed.rule.fail) {
                (Some(reply), _) => Self::reply(reply, &groups, &seen),
                (None, Some(failure)) => Err(self.failure(&armed.rule.name, failure)),
                (None, None) => continue,
            };
        }
        match &self.default {
            Some(reply) => Self::reply(reply, &[], &seen),
            None => Err(CallError::new(
                CallErrorKind::Rejected,
                format!(
                    "no rule of the script `{}` matches a call of the stage `{}`; add a rule or a \
                     default",
                    self.name(),
                    seen.stage
                ),
            )),
        }
    }

    fn name(&self) -> &str {
        self.id.trim_start_matches("scripted/")
    }

    fn failure(&self, rule: &str, failure: &Failure) -> CallError {
        let message = failure.message.as_deref().unwrap_or("fails as scripted");
        CallError {
            retry_after: failure
                .retry_after_seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            ..CallError::new(
                failure.kind,
                format!("the script `{}`, rule `{rule}`: {message}", self.name()),
            )
        }
    }

    fn reply(reply: &Value, groups: &[String], seen: &Seen<'_>) -> Result<ChatReply, CallError> {
        let text = match fill(reply, groups, seen) {
            Value::String(text) => text,
            value => value.to_string(),
        };
        if text.trim().is_empty() {
            return Err(CallError::new(
                CallErrorKind::Empty,
                format!(
                    "the script gave an empty reply in the stage `{}`",
                    seen.stage
                ),
            ));
        }
        Ok(ChatReply {
            usage: Usage {
                calls: 1,
                prompt_tokens: estimate_tokens(&seen.all),
                completion_tokens: estimate_tokens(&text),
                estimated_calls: 1,
                ..Usage::default()
            },
            text,
            finish_reason: Some("stop".to_owned()),
        })
    }
}

/// Puts what was captured in place of the placeholders, in every string of a reply.
fn fill(reply: &Value, groups: &[String], seen: &Seen<'_>) -> Value {
    match reply {
        Value::String(text) => {
            let mut filled = String::with_capacity(text.len());
            let mut rest = text.as_str();
            // One pass, so that a captured text is never itself taken for a placeholder.
            while let Some((before, after)) = rest.split_once("{{") {
                filled.push_str(before);
                let value = after.split_once("}}").and_then(|(name, after)| {
                    let value = match name {
                        "last" => seen.last,
                        name => groups.get(name.parse::<usize>().ok()?)?,
                    };
                    Some((value, after))
                });
                match value {
                    Some((value, after)) => {
                        filled.push_str(value);
                        rest = after;
                    }
                    None => {
                        filled.push_str("{{");
                        rest = after;
                    }
                }
            }
            filled.push_str(rest);
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, groups, seen)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), fill(value, groups, seen)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

impl ChatModel for Scripted {
    fn id(&self) -> &str {
        &self.id
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(std::future::ready(self.answer(request)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::request;

    const SCRIPT: &str = r#"
rules:
  - name: once
    when: {stage: rollout, last_contains: [capital]}
    times: 1
    reply: first
  - name: strict
    when:
      system_contains: ["a test"]
      contains: [capital]
      not_contains: [river]
      capture: 'capital of (\w+)'
    reply: {answer: "{{1}} and {{0}}", score: 1, odd: "{{7}} {{last}}"}
  - name: outage
    when: {contains: [river]}
    fail: {kind: rate_limited, message: slow down, retry_after_seconds: 0.5}
"#;

    fn said(model: &Scripted, text: &str) -> String {
        model.answer(&request(text)).unwrap().text
    }

    #[test]
    fn rules_match_in_order_are_used_up_and_fill_in_what_they_captured() {
        let model = Scripted::from_text("test", SCRIPT).unwrap();
        assert_eq!(said(&model, "the capital of France"), "first");
        assert_eq!(
            said(&model, "the capital of Peru {{1}}"),
            r#"{"answer":"Peru and capital of Peru","score":1,"odd":"{{7}} the capital of Peru {{1}}"}"#
        );
        assert_eq!(model.id(), "scripted/test");
    }

    #[test]
    fn failures_and_unmatched_calls_are_errors_that_name_rule_and_stage() {
        let model = Scripted::from_text("test", SCRIPT).unwrap();
        let error = model.answer(&request("the river")).unwrap_err();
        assert_eq!(error.kind, CallErrorKind::RateLimited);
        assert_eq!(error.retry_after, Some(Duration::from_millis(500)));
        assert!(error.message.contains("`outage`: slow down"));
        let error = model.answer(&request("hello")).unwrap_err();
        assert_eq!(error.kind, CallErrorKind::Rejected);
        assert!(error.message.contains("stage `rollout`"), "{error}");
    }

    #[test]
    fn json_scripts_and_defaults_work() {
        let model = Scripted::from_text("test", r#"{"default": [1, "x"]}"#).unwrap();
        assert_eq!(said(&model, "anything"), r#"[1,"x"]"#);
    }

    #[test]
    fn a_script_with_a_mistake_says_where() {
        for (text, part) in [
            ("rules: [{name: a, reply: x, fial: y}]", "fial"),
            ("rules: [{name: a}]", "`a` needs either"),
            (
                "rules: [{name: a, reply: x, when: {capture: '('}}]",
                "rule `a`",
            ),
        ] {
            let error = Scripted::from_text("s.yaml", text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("s.yaml"), "{error}");
        }
    }
}
