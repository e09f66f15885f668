//! Contents of messages, and which of them a person wrote (session-logs.md, 3.4).

use std::borrow::Cow;

use crate::node::Node;

/// Beginnings of texts in the user's role that programs make, and what they are.
const MACHINE_OPENINGS: &[(&str, &str)] = &[
    ("<environment_context>", "environment"),
    ("# AGENTS.md instructions", "instructions"),
    ("<user_instructions>", "instructions"),
    ("<INSTRUCTIONS>", "instructions"),
    ("<skill>", "skill_body"),
    ("<user_shell_command>", "user_shell"),
    ("<turn_aborted>", "interruption"),
    ("<subagent_notification>", "notification"),
    ("<user_action>", "review"),
    ("<permissions", "permissions"),
    ("<codex_internal_context", "environment"),
    (EDITOR_CONTEXT, "environment"),
    ("<image ", "image_label"),
    ("</image>", "image_label"),
    (
        "Another language model started to solve this problem",
        "summary",
    ),
];

/// Begins what an editor's extension says of open files, in front of the person's request.
const EDITOR_CONTEXT: &str = "# Context from my IDE setup:";
/// Heads that request.
const EDITOR_REQUEST: &str = "## My request for Codex:";

/// Stands between a person's own instructions and those of the project.
const PROJECT_DOC: &str = "--- project-doc ---";

/// What made a text, if a program did.
pub(super) fn machine_kind(text: &str) -> Option<&'static str> {
    let text = text.trim_start();
    let opening = MACHINE_OPENINGS
        .iter()
        .find(|(opening, _)| text.starts_with(opening));
    match opening {
        Some((_, kind)) => Some(kind),
        None => text.contains(PROJECT_DOC).then_some("instructions"),
    }
}

/// What a person wrote behind instructions or surroundings that a program put in front of
/// it; none when nothing follows them.
pub(super) fn persons_part(text: &str) -> Option<&str> {
    ["</environment_context>", "</INSTRUCTIONS>", EDITOR_REQUEST]
        .into_iter()
        .find_map(|mark| {
            let rest = text.rsplit_once(mark)?.1.trim();
            (!rest.is_empty() && !rest.starts_with('<')).then_some(rest)
        })
}

/// What a person wrote of the text of an item, which holds nothing else but what an editor
/// put in front of it.
pub(super) fn request(text: &str) -> &str {
    let in_editor = text.trim_start().starts_with(EDITOR_CONTEXT);
    persons_part(text).filter(|_| in_editor).unwrap_or(text)
}

/// The texts of a content: of a string, of a list of parts, of an object.
pub(super) fn texts(content: Node<'_>) -> Vec<&str> {
    match content.str() {
        Some(text) => vec![text],
        None => content
            .list()
            .filter_map(|part| part.get("text").text().or_else(|| part.text()))
            .collect(),
    }
}

/// The texts of a content as one.
pub(super) fn joined(content: Node<'_>) -> Cow<'_, str> {
    match texts(content).as_slice() {
        [text] => Cow::Borrowed(*text),
        texts => Cow::Owned(texts.join("\n")),
    }
}

/// The number of pictures in a content.
pub(super) fn images(content: Node<'_>) -> u32 {
    let count = content
        .list()
        .filter(|part| {
            part.get("type")
                .str()
                .is_some_and(|kind| kind.to_ascii_lowercase().contains("image"))
        })
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The text between `<tag>` and `</tag>`.
pub(super) fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let from = text.find(&format!("<{tag}>"))? + tag.len() + 2;
    let rest = &text[from..];
    let to = rest.find(&format!("</{tag}>"))?;
    Some(rest[..to].trim())
}
