//! What travels: the request's body, and what a reply's body means.

use serde_json::{Map, Value, json};

use super::Settings;
use crate::model::{CallErrorKind, ChatReply, ChatRequest, Usage, estimate_tokens};

/// The request's JSON. Extra fields of the settings replace standard ones; a null removes one
/// (`{"max_tokens": null, "max_completion_tokens": 8000}` suits servers that want the new name).
pub(super) fn body(settings: &Settings, request: &ChatRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(settings.model));
    body.insert("messages".to_owned(), json!(request.messages));
    body.insert(
        "max_tokens".to_owned(),
        json!(request.max_tokens.min(settings.max_tokens)),
    );
    if let Some(temperature) = settings.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    for (name, value) in &settings.extra_body {
        if value.is_null() {
            body.remove(name);
        } else {
            body.insert(name.clone(), value.clone());
        }
    }
    Value::Object(body)
}

/// Why a body with a success status is no usable reply.
pub(super) struct Unusable {
    pub(super) kind: CallErrorKind,
    pub(super) reason: String,
    pub(super) usage: Option<Usage>,
}

/// Reads a reply's body.
pub(super) fn reply(body: &[u8], request: &ChatRequest) -> Result<ChatReply, Unusable> {
    let unusable = |kind, reason: &str, usage| Unusable {
        kind,
        reason: reason.to_owned(),
        usage,
    };
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return Err(unusable(
            CallErrorKind::Malformed,
            "sent something that is not JSON",
            None,
        ));
    };
    let counted = usage(&value);
    let Some(choice) = value.pointer("/choices/0") else {
        return Err(unusable(
            CallErrorKind::Malformed,
            "sent a reply without choices",
            counted,
        ));
    };
    let finish_reason = choice
        .get("finish_reason")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let refusal = choice
        .pointer("/message/refusal")
        .and_then(Value::as_str)
        .filter(|refusal| !refusal.trim().is_empty());
    if let Some(refusal) = refusal {
        let reason = format!("declined: {refusal}");
        return Err(unusable(CallErrorKind::Refused, &reason, counted));
    }
    if finish_reason.as_deref() == Some("content_filter") {
        return Err(unusable(
            CallErrorKind::Refused,
            "was stopped by the provider's content filter",
            counted,
        ));
    }
    let text = text(choice.pointer("/message/content"));
    if text.trim().is_empty() {
        let reason = if finish_reason.as_deref() == Some("length") {
            "used up its tokens before it wrote an answer; raise max_tokens"
        } else {
            "gave an empty reply"
        };
        return Err(unusable(CallErrorKind::Empty, reason, counted));
    }
    let usage = counted.unwrap_or_else(|| Usage {
        calls: 1,
        prompt_tokens: request.estimated_prompt_tokens(),
        completion_tokens: estimate_tokens(&text),
        estimated_calls: 1,
        ..Usage::default()
    });
    Ok(ChatReply {
        text,
        usage,
        finish_reason,
    })
}

/// Content is a string, or a list of parts of which the text ones count.
fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let usage = value.get("usage")?;
    let count = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| usage.get(*name).and_then(Value::as_u64))
    };
    let prompt_tokens = count(["prompt_tokens", "input_tokens"]);
    let completion_tokens = count(["completion_tokens", "output_tokens"]);
    if prompt_tokens.is_none() && completion_tokens.is_none() {
        return None;
    }
    Some(Usage {
        calls: 1,
        prompt_tokens: prompt_tokens.unwrap_or_default(),
        completion_tokens: completion_tokens.unwrap_or_default(),
        ..Usage::default()
    })
}

/// The human part of an error body, in the shapes that servers use.
pub(super) fn error_message(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    ["/error/message", "/error", "/message", "/detail"]
        .iter()
        .find_map(|path| value.pointer(path)?.as_str())
        .map(str::to_owned)
}

/// The machine-readable part of an error body.
pub(super) fn error_code(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    ["/error/code", "/error/type"]
        .iter()
        .find_map(|path| value.pointer(path)?.as_str())
        .map(str::to_owned)
}
