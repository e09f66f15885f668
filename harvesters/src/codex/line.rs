//! One line of a rollout, in whichever of the three formats it is (session-logs.md,
//! sections 3.2 and 3.3). The format is decided line by line: an older program may
//! append to a newer one's file.

use std::collections::HashSet;

use crate::clock;
use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::report::Report;
use crate::session::Agent;

use super::call;
use super::content;
use super::fact::{CompactedBy, Fact, Format, Line, Meta, Teller, Tokens};
use super::item;

/// What is known where a line stands.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// Which of the thread's files it is in.
    pub(super) file: u32,
    /// Whether payloads are compared with another thread's.
    pub(super) hashed: bool,
    /// Calls that items before it settled: their outputs are passed over. They are the
    /// longest texts of a log, and written down twice.
    pub(super) told: &'a HashSet<Redacted>,
    pub(super) door: Door<'a>,
}

/// Reads one record of a rollout.
pub(super) fn read(
    record: Node<'_>,
    offset: u64,
    context: Context<'_>,
    report: &mut Report,
) -> Line {
    let payload = record.get("payload");
    let enveloped = payload.is_object() && record.get("type").str().is_some();
    let ordinal = record.get("ordinal").count();
    let format = match (enveloped, ordinal) {
        (false, _) => Format::Bare,
        (true, None) => Format::Legacy,
        (true, Some(_)) => Format::Paginated,
    };
    let body = if enveloped { payload } else { record };
    let mut facts = Vec::new();
    if enveloped {
        envelope(
            record.get("type").str().unwrap_or_default(),
            body,
            context,
            report,
            &mut facts,
        );
    } else {
        bare(record, context, report, &mut facts);
    }
    let turn = body.get("turn_id").text().or_else(|| {
        body.at(&["internal_chat_message_metadata_passthrough", "turn_id"])
            .text()
    });
    Line {
        file: context.file,
        offset,
        at: clock::time(record.get("timestamp")),
        format,
        ordinal,
        turn: turn.map(str::to_owned),
        payload: if context.hashed { hash(body) } else { 0 },
        facts,
    }
}

/// A stand-in for a payload's content.
fn hash(body: Node<'_>) -> u64 {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = std::hash::DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

fn envelope(
    kind: &str,
    body: Node<'_>,
    context: Context<'_>,
    report: &mut Report,
    facts: &mut Vec<Fact>,
) {
    let door = context.door;
    match kind {
        "session_meta" => facts.push(Fact::Meta(Box::new(meta(body, door)))),
        "turn_context" => facts.push(Fact::Turn {
            model: body.get("model").text().map(|name| door.note(name)),
            cwd: body.get("cwd").text().map(|path| door.note(path)),
        }),
        "world_state" => {
            let state = body.get("state");
            if state.at(&["agents_md", "text"]).text().is_some()
                && let Some(folder) = state.at(&["agents_md", "directory"]).text()
            {
                facts.push(Fact::Instructions(
                    door.note(&format!("{folder}/AGENTS.md")),
                ));
            }
        }
        "compacted" => facts.push(Fact::Compacted(CompactedBy::Line)),
        "token_usage_record" => facts.push(Fact::Usage {
            response: body.get("response_id").str().unwrap_or_default().to_owned(),
            usage: tokens(body.get("usage")).unwrap_or_default(),
        }),
        "response_item" => response_item(body, context, report, facts),
        "event_msg" => event(body, door, report, facts),
        "inter_agent_communication_metadata"
        | "retained_context"
        | "realtime_item"
        | "security_risk_score" => {}
        unknown => {
            facts.extend(
                body.get("cwd")
                    .text()
                    .map(|path| Fact::Cwd(door.note(path))),
            );
            report.unknown_kind(Agent::Codex, unknown);
        }
    }
}

/// A line without envelope: the head, a state mark, or an item.
fn bare(record: Node<'_>, context: Context<'_>, report: &mut Report, facts: &mut Vec<Fact>) {
    if record.get("record_type").is_some() {
        return;
    }
    if record.get("type").str().is_some() {
        response_item(record, context, report, facts);
    } else if record.get("id").text().is_some() {
        facts.push(Fact::Meta(Box::new(meta(record, context.door))));
    } else {
        report.unknown_kind(Agent::Codex, "?");
    }
}

fn meta(body: Node<'_>, door: Door<'_>) -> Meta {
    let note = |node: Node<'_>| node.text().map(|text| door.note(text));
    let git = body.get("git");
    let base = body.get("history_base");
    Meta {
        id: note(body.get("id")),
        started: clock::time(body.get("timestamp")),
        cwd: note(body.get("cwd")),
        // Before they told them apart, releases gave one name to all their programs.
        source: note(body.get("source"))
            .or_else(|| note(body.get("originator")).filter(|name| name != "codex_cli_rs")),
        version: note(body.get("cli_version")),
        branch: note(git.get("branch")),
        commit: note(git.get("commit_hash")),
        repository: note(git.get("repository_url")),
        forked_from: note(body.get("forked_from_id")),
        base: base
            .get("thread_id")
            .text()
            .zip(base.get("end_ordinal_exclusive").count())
            .map(|(id, end)| (id.to_owned(), end)),
    }
}

/// Tokens; none when there is no object.
fn tokens(usage: Node<'_>) -> Option<Tokens> {
    let count = |name: &str| usage.get(name).count().unwrap_or_default();
    usage.is_object().then(|| Tokens {
        input: count("input_tokens"),
        cached: count("cached_input_tokens"),
        written: count("cache_write_input_tokens"),
        output: count("output_tokens"),
    })
}

/// What the model saw or made.
fn response_item(body: Node<'_>, context: Context<'_>, report: &mut Report, facts: &mut Vec<Fact>) {
    let door = context.door;
    match body.get("type").str().unwrap_or_default() {
        "message" => message(body, door, facts),
        "function_call"
        | "custom_tool_call"
        | "local_shell_call"
        | "web_search_call"
        | "image_generation_call"
        | "tool_search_call" => facts.push(Fact::Call(Box::new(call::call(body, door)))),
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            let id = body.get("call_id").str().unwrap_or_default();
            if !context.told.contains(id) {
                facts.push(Fact::Output(Box::new(call::output(body, door))));
            }
        }
        "reasoning" | "compaction" | "compaction_summary" | "agent_message"
        | "additional_tools" | "ghost_snapshot" | "other" | "context_compaction" => {}
        unknown => report.unknown_kind(Agent::Codex, &format!("response_item/{unknown}")),
    }
}

/// A message: each of its texts may be a person's or a program's.
fn message(body: Node<'_>, door: Door<'_>, facts: &mut Vec<Fact>) {
    let body_content = body.get("content");
    match body.get("role").str().unwrap_or_default() {
        "assistant" => facts.push(Fact::Answer {
            text: door.answer(&content::joined(body_content)),
            interim: body.get("phase").str() == Some("commentary"),
            by: Teller::Message,
        }),
        "user" => {
            let kinds: Vec<Option<&str>> = body
                .at(&[
                    "internal_chat_message_metadata_passthrough",
                    "content_item_kinds",
                ])
                .list()
                .map(Node::str)
                .collect();
            let mut own = Vec::new();
            for (index, text) in content::texts(body_content).into_iter().enumerate() {
                let marked = kinds.get(index).copied().flatten();
                let by_mark =
                    marked.is_some_and(|kind| !kind.starts_with("user.") && kind != "unknown");
                match content::machine_kind(text) {
                    Some(kind) => {
                        machine(kind, text, door, facts);
                        own.extend(content::persons_part(text));
                    }
                    None if by_mark => machine("context", text, door, facts),
                    None => own.push(text),
                }
            }
            let images = content::images(body_content);
            if !own.is_empty() {
                facts.push(Fact::Prompt {
                    text: door.prompt(&own.join("\n")),
                    images,
                    by: Teller::Message,
                    thread: None,
                });
            }
        }
        _ => {}
    }
}

/// A text by the program: some carry facts.
fn machine(kind: &'static str, text: &str, door: Door<'_>, facts: &mut Vec<Fact>) {
    match kind {
        "environment" => {
            if let Some(cwd) = content::tagged(text, "cwd") {
                facts.push(Fact::Cwd(door.note(cwd)));
            }
        }
        "instructions" => {
            let folder = text
                .trim_start()
                .strip_prefix("# AGENTS.md instructions for ")
                .and_then(|rest| rest.lines().next());
            if let Some(folder) = folder {
                let path = format!("{}/AGENTS.md", folder.trim());
                facts.push(Fact::Instructions(door.note(&path)));
            }
        }
        "skill_body" => {
            if let Some(name) = content::tagged(text, "name") {
                facts.push(Fact::Skill(door.note(name)));
            }
        }
        _ => {}
    }
    facts.push(Fact::Machine {
        kind,
        text: door.note(text),
    });
}

/// Events for the program's own display.
fn event(body: Node<'_>, door: Door<'_>, report: &mut Report, facts: &mut Vec<Fact>) {
    match body.get("type").str().unwrap_or_default() {
        "user_message" => {
            let text = body.get("message").str().unwrap_or_default();
            let count = body.get("images").list().count() + body.get("local_images").list().count();
            let images = u32::try_from(count).unwrap_or(u32::MAX);
            let kind = content::machine_kind(text);
            if let Some(kind) = kind {
                machine(kind, text, door, facts);
            }
            let own = match kind {
                Some(_) => content::persons_part(text),
                None => Some(text),
            };
            facts.extend(own.map(|text| Fact::Prompt {
                text: door.prompt(text),
                images,
                by: Teller::Event,
                thread: None,
            }));
        }
        // What old releases said in the agent's name after they had compacted.
        "agent_message" if body.get("message").str() == Some("Compact task completed") => {
            facts.push(Fact::Compacted(CompactedBy::Event));
        }
        "agent_message" => facts.push(Fact::Answer {
            text: door.answer(body.get("message").str().unwrap_or_default()),
            interim: body.get("phase").str() == Some("commentary"),
            by: Teller::Event,
        }),
        "item_completed" => item::read(body, door, facts),
        "task_started" | "turn_started" => facts.push(Fact::TurnStarted),
        "task_complete" | "turn_complete" => facts.push(Fact::TurnEnded {
            error: error_text(body.get("error"), door),
        }),
        "turn_aborted" => facts.push(Fact::TurnAborted {
            interrupted: body
                .get("reason")
                .str()
                .is_none_or(|reason| reason == "interrupted"),
        }),
        "patch_apply_end" => facts.push(Fact::Edit {
            id: door.id(body.get("call_id").str().unwrap_or_default()),
            paths: item::changed_paths(body.get("changes")),
            ok: body.get("success").is_true(),
        }),
        "thread_rolled_back" => {
            let turns = body.get("num_turns").count().unwrap_or_default();
            facts.push(Fact::RolledBack(
                usize::try_from(turns).unwrap_or(usize::MAX),
            ));
        }
        "context_compacted" => facts.push(Fact::Compacted(CompactedBy::Event)),
        "entered_review_mode" => facts.push(Fact::ReviewStarted),
        "exited_review_mode" => facts.push(Fact::ReviewEnded),
        "error" => facts.extend(error_text(body, door).map(Fact::ApiError)),
        "token_count" => facts.push(Fact::Count {
            total: tokens(body.at(&["info", "total_token_usage"])),
            last: tokens(body.at(&["info", "last_token_usage"])),
        }),
        known if IGNORED_EVENTS.contains(&known) => {}
        unknown => report.unknown_kind(Agent::Codex, &format!("event_msg/{unknown}")),
    }
}

/// Events that say nothing new.
const IGNORED_EVENTS: &[&str] = &[
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "thread_settings_applied",
    "item_started",
    "exec_command_begin",
    "exec_command_end",
    "exec_command_output_delta",
    "patch_apply_begin",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "web_search_begin",
    "web_search_end",
    "turn_diff",
    "plan_update",
    "background_event",
    "stream_error",
    "warning",
    "session_configured",
    "thread_name_updated",
    "view_image_tool_call",
    "deprecation_notice",
    "undo_started",
    "undo_completed",
    "thread_goal_updated",
    "collab_agent_spawn_begin",
    "collab_agent_spawn_end",
    "collab_waiting_begin",
    "collab_waiting_end",
    "collab_close_begin",
    "collab_close_end",
    "model_reroute",
    "dynamic_tool_call_request",
    "guardian_assessment",
    "hook_started",
    "hook_completed",
    "image_generation_end",
    "raw_response_item",
];

/// The message of an error.
fn error_text(error: Node<'_>, door: Door<'_>) -> Option<Redacted> {
    error
        .get("message")
        .text()
        .or_else(|| error.text())
        .map(|text| door.note(text))
        .or_else(|| error.is_object().then(|| Redacted::own("API error")))
}
