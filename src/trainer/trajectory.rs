//! Rollouts as text for the optimizer to study (engine 8.2).
//!
//! Long trajectories are cut in the middle, so that one runaway attempt cannot crowd out the rest
//! of a minibatch or the model's context (W-R5); what was cut is said.

use std::fmt::Write as _;

use serde_json::Value;

use super::environment::Rollout;

/// Most characters of one field of a trajectory that are shown.
const FIELD_CHARS: usize = 12_000;

/// The rollouts of a minibatch as an analyst reads them. One without a conversation is left out;
/// the others keep their position. A system prompt is shown with the first attempt that had it.
#[must_use]
pub fn minibatch(rollouts: &[&Rollout]) -> Vec<String> {
    let mut shown = Vec::new();
    rollouts
        .iter()
        .enumerate()
        .filter_map(|(index, rollout)| {
            let system = rollout.target_system_prompt.as_str();
            let first = (!shown.contains(&system)).then_some(system);
            let text = render(index + 1, rollout, first)?;
            shown.push(system);
            Some(text)
        })
        .collect()
}

/// One rollout as an analyst reads it, with `system_prompt` unless it was shown before; `None` when
/// there is no conversation to learn from.
fn render(position: usize, rollout: &Rollout, system_prompt: Option<&str>) -> Option<String> {
    if rollout.conversation.is_empty() {
        return None;
    }
    let mut text = format!("### Attempt {position}: {}\n", rollout.id);
    let field = |name: &str| rollout.fields.get(name).map(plain).unwrap_or_default();
    for (title, body) in [
        ("Task", rollout.task_description.as_str()),
        ("Type", &rollout.task_type),
        ("Why it failed", &rollout.fail_reason),
        ("Turns", &field("n_turns")),
        (
            "What a good answer has (the target never sees this)",
            &rollout.reference_text,
        ),
        (
            "System prompt of the target",
            system_prompt.unwrap_or_default(),
        ),
        ("User prompt of the target", &rollout.target_user_prompt),
        ("Trace of the agent", &field("codex_trace_summary")),
        ("Probe of the trace", &field("codex_probe_trace_steps")),
        ("Preview of the spreadsheet", &field("spreadsheet_preview")),
    ] {
        if !body.trim().is_empty() {
            let _ = writeln!(text, "{title}: {}", clip(body.trim()));
        }
    }
    text.push_str("Conversation:\n");
    text.push_str(&conversation(&rollout.conversation));
    Some(text)
}

/// A conversation, one paragraph an entry.
#[must_use]
pub fn conversation(entries: &[Value]) -> String {
    let mut text = String::new();
    for entry in entries {
        let Some(object) = entry.as_object() else {
            let _ = writeln!(text, "[agent] {}", clip(&plain(entry)));
            continue;
        };
        let field = |name: &str| object.get(name).map(plain).unwrap_or_default();
        if object.get("type").and_then(Value::as_str) == Some("tool_call") {
            let _ = writeln!(
                text,
                "[action] {}\n[obs] {}",
                clip(&field("cmd")),
                clip(&field("obs"))
            );
        } else if object.contains_key("action") && object.contains_key("env_feedback") {
            let step = field("step");
            if object.contains_key("reasoning") {
                let _ = writeln!(text, "[think {step}] {}", clip(&field("reasoning")));
            }
            let _ = writeln!(
                text,
                "[action {step}] {}\n[obs {step}] {}",
                clip(&field("action")),
                clip(&field("env_feedback"))
            );
        } else {
            let role = object
                .get("role")
                .and_then(Value::as_str)
                .unwrap_or("agent");
            let role = if role == "system" {
                "verification"
            } else {
                role
            };
            let _ = writeln!(text, "[{role}] {}", clip(&field("content")));
        }
    }
    text
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn clip(text: &str) -> String {
    let total = text.chars().count();
    if total <= FIELD_CHARS {
        return text.to_owned();
    }
    let half = FIELD_CHARS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(total - half).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        total - 2 * half
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_entry_keeps_both_ends() {
        let entry = serde_json::json!({"role": "assistant", "content": format!("A{}Z", "x".repeat(50_000))});
        let text = conversation(&[entry]);
        assert!(text.starts_with("[assistant] A"));
        assert!(text.trim_end().ends_with('Z'));
        assert!(text.chars().count() < 13_000);
    }
}
