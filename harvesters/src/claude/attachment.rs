//! Context given to the model (session-logs.md, section 2.6, last paragraph).

use crate::node::Node;
use crate::redact::Door;
use crate::session::PromptKind;

use super::row::RowKind;
use super::user;

/// What an `attachment` record is.
pub(super) fn classify(record: Node<'_>, door: Door<'_>) -> RowKind {
    let attachment = record.get("attachment");
    match attachment.get("type").str().unwrap_or_default() {
        "queued_command" => queued(attachment, door),
        "instructions" => RowKind::Instructions(
            attachment
                .get("files")
                .list()
                .filter_map(|file| file.get("path").text())
                .map(|path| door.note(path))
                .collect(),
        ),
        "nested_memory" => RowKind::Instructions(
            attachment
                .get("path")
                .text()
                .map(|path| door.note(path))
                .into_iter()
                .collect(),
        ),
        "hook_success" | "hook_additional_context" | "hook_blocking_error" => {
            hook(attachment, door)
        }
        _ => RowKind::Link,
    }
}

/// A message that was sent while the agent worked.
fn queued(attachment: Node<'_>, door: Door<'_>) -> RowKind {
    let prompt = attachment.get("prompt");
    let (text, images) = user::text_of(prompt);
    let by_person = matches!(attachment.get("commandMode").str(), None | Some("prompt"))
        && attachment
            .at(&["origin", "kind"])
            .str()
            .is_none_or(|kind| kind == "human");
    absorbed(&text, images, by_person, door)
}

/// A message that the model was given in the middle of its turn.
pub(super) fn absorbed(text: &str, images: u32, by_person: bool, door: Door<'_>) -> RowKind {
    if by_person && !text.trim_start().starts_with("<task-notification>") {
        RowKind::Prompt {
            text: door.prompt(text),
            kind: PromptKind::Steering,
            images,
        }
    } else {
        RowKind::Notice {
            text: door.prompt(text),
            wakes: false,
        }
    }
}

/// What a hook said to the model. Output of other hooks than these only goes to a log.
fn hook(attachment: Node<'_>, door: Door<'_>) -> RowKind {
    let speaks = attachment.get("type").str() != Some("hook_success")
        || matches!(
            attachment.get("hookEvent").str(),
            Some("UserPromptSubmit" | "SessionStart")
        );
    if !speaks {
        return RowKind::Link;
    }
    let text = attachment
        .get("stdout")
        .text()
        .or_else(|| attachment.get("content").text())
        .or_else(|| attachment.get("blockingError").text())
        .unwrap_or_default();
    RowKind::Hook(door.note(text))
}
