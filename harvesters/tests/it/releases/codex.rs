//! Codex.

use serde_json::{Value, json};
use skillopt_harvesters::Agent;
use skillopt_harvesters::session::{CallStatus, IncidentKind, Origin, PromptKind};

use super::{plant, prompts, text};
use crate::fixtures::Home;

/// A paginated log of Codex with these lines after its head.
fn plant_codex(home: &Home, lines: &[(&str, Value)]) {
    let head = json!({
        "id": "01a12f44-1be4-7292-a61b-921e516a6928", "cwd": "/home/dev/x",
        "originator": "codex-tui", "cli_version": "0.150.0", "source": "cli",
        "history_mode": "paginated",
    });
    let lines: Vec<Value> = std::iter::once(&("session_meta", head))
        .chain(lines)
        .enumerate()
        .map(|(ordinal, (kind, payload))| {
            json!({
                "timestamp": format!("2026-10-12T08:39:{:02}.352Z", ordinal + 15),
                "ordinal": ordinal, "type": kind, "payload": payload,
            })
        })
        .collect();
    let name = "sessions/2026/10/12/rollout-2026-10-12T08-39-15-01a12f44-1be4-7292-a61b-921e516a6928.jsonl";
    plant(home, Agent::Codex, name, &lines);
}

/// An item of a turn of that log.
fn item(item: Value) -> (&'static str, Value) {
    let payload = json!({"type": "item_completed", "turn_id": "t1", "item": item});
    ("event_msg", payload)
}

#[test]
fn a_name_that_all_programs_of_a_release_had_does_not_tell_who_started_it() {
    let home = Home::new();
    let id = "8dfcb030-29a7-4d68-97d9-8a993ccb5c80";
    let line = |kind: &str, payload: Value| json!({"timestamp": "2025-09-12T08:39:15.352Z", "type": kind, "payload": payload});
    let call = json!({
        "type": "function_call", "name": "shell", "call_id": "c1",
        "arguments": r#"{"command":["bash","-lc","pytest"]}"#,
    });
    let output = json!({
        "type": "function_call_output", "call_id": "c1",
        "output": "failed in sandbox None with execution error: command timed out",
    });
    let lines = [
        line(
            "session_meta",
            json!({"id": id, "cwd": "/home/dev/x", "originator": "codex_cli_rs", "cli_version": "0.34.0"}),
        ),
        line(
            "event_msg",
            json!({"type": "user_message", "message": "run the tests", "kind": "plain"}),
        ),
        line("response_item", call),
        line("response_item", output),
    ];
    let name = format!("sessions/2025/09/12/rollout-2025-09-12T08-39-15-{id}.jsonl");
    plant(&home, Agent::Codex, &name, &lines);
    let found = home.harvest(Agent::Codex);
    assert_eq!(found.sessions[0].origin, Origin::Unknown);
    let (call, run) = found.sessions[0].commands().next().unwrap();
    assert_eq!(call.status, CallStatus::TimedOut);
    assert_eq!(run.verification.as_ref().unwrap().passed, None);

    plant(
        &home,
        Agent::Codex,
        "history.jsonl",
        &[json!({"session_id": "another", "ts": 1, "text": "hi"})],
    );
    assert_eq!(
        home.harvest(Agent::Codex).sessions[0].origin,
        Origin::Headless
    );
}

#[test]
fn a_command_whose_item_came_before_its_output_has_the_output_of_its_call() {
    let home = Home::new();
    let call = json!({
        "type": "function_call", "name": "exec_command", "call_id": "c1",
        "arguments": r#"{"cmd":"pytest -q || true"}"#,
    });
    let output = json!({
        "type": "function_call_output", "call_id": "c1",
        "output": "Chunk ID: a1\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\n1 failed, 2 passed\n",
    });
    plant_codex(
        &home,
        &[
            item(json!({"type": "UserMessage", "content": [text("run the tests")]})),
            ("response_item", call),
            item(json!({
                "type": "CommandExecution", "id": "c1", "status": "completed", "exit_code": 0,
                "command": ["/bin/bash", "-lc", "pytest -q || true"], "aggregated_output": "",
            })),
            ("response_item", output),
            item(json!({"type": "AgentMessage", "content": [{"type": "Text", "text": "Done."}]})),
        ],
    );
    let found = home.harvest(Agent::Codex);
    let (call, run) = found.sessions[0].commands().next().unwrap();
    assert_eq!(call.result, "1 failed, 2 passed\n");
    assert_eq!(run.exit_code, Some(0));
    assert_eq!(run.verification.as_ref().unwrap().passed, Some(false));
}

/// A log of Codex in the format without ordinals: seconds since the start, kind, payload.
fn plant_old_codex(home: &Home, id: &str, lines: &[(u32, &str, Value)]) {
    let lines: Vec<Value> = lines
        .iter()
        .map(|(second, kind, payload)| {
            let timestamp = format!("2026-05-06T10:{:02}:{:02}.000Z", second / 60, second % 60);
            json!({"timestamp": timestamp, "type": kind, "payload": payload})
        })
        .collect();
    let name = format!("sessions/2026/05/06/rollout-2026-05-06T10-00-00-{id}.jsonl");
    plant(home, Agent::Codex, &name, &lines);
}

fn old_head(id: &str, second: u32, forked_from: Option<&str>) -> Value {
    json!({
        "id": id, "cwd": "/home/dev/x", "cli_version": "0.130.0", "originator": "codex_exec",
        "source": "exec", "forked_from_id": forked_from,
        "timestamp": format!("2026-05-06T10:{:02}:{:02}.000Z", second / 60, second % 60),
    })
}

fn asked(text: &str) -> Value {
    json!({"type": "user_message", "message": text, "images": []})
}

fn answered(text: &str) -> Value {
    json!({"type": "agent_message", "message": text})
}

#[test]
fn what_a_parent_wrote_after_the_fork_is_not_what_the_fork_copied() {
    const PARENT: &str = "01a229d9-7c99-79a2-87a0-710282a72fda";
    const FORK: &str = "01a229d9-8122-7652-8710-90a450fbfedb";
    // Both go on from the same total, and both start a turn in the same words.
    let total = json!({"input_tokens": 20, "output_tokens": 4});
    let last = json!({"input_tokens": 10, "output_tokens": 2});
    let count = json!({
        "type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last},
    });
    let home = Home::new();
    let event = "event_msg";
    let shared = |second: u32| {
        [
            (second, event, asked("run the tests")),
            (second, event, answered("They fail.")),
        ]
    };
    let mut parent = vec![(0, "session_meta", old_head(PARENT, 0, None))];
    parent.extend(shared(1));
    parent.extend([
        (300, event, asked("great, thanks")),
        (302, event, count.clone()),
        (305, event, answered("Gladly.")),
    ]);
    plant_old_codex(&home, PARENT, &parent);
    let mut fork = vec![
        (100, "session_meta", old_head(FORK, 100, Some(PARENT))),
        (100, "session_meta", old_head(PARENT, 0, None)),
    ];
    fork.extend(shared(100));
    fork.extend([
        (110, event, asked("do it with decimals")),
        (112, event, count),
        (115, event, answered("Done.")),
    ]);
    plant_old_codex(&home, FORK, &fork);
    let found = home.harvest(Agent::Codex);
    let fork = found
        .sessions
        .iter()
        .find(|session| session.id == FORK)
        .unwrap();
    assert_eq!(prompts(fork), ["do it with decimals"]);
    assert_eq!(fork.inherited_prompts.len(), 1);
    assert_eq!(fork.usage.unwrap().output, 2);
}

#[test]
fn a_fork_that_names_no_parent_has_the_parents_head_among_its_copies() {
    const PARENT: &str = "01a229d9-59da-7fc1-abf5-e451f3598501";
    const FORK: &str = "01a229da-0b69-78f1-aeb0-449c11e6108b";
    let event = "event_msg";
    let call = json!({
        "type": "function_call", "name": "shell", "call_id": "c1",
        "arguments": r#"{"command":["bash","-lc","pytest"]}"#,
    });
    let stopped = json!({
        "type": "function_call_output", "call_id": "c1",
        "output": "Wall time: 4.5 seconds\naborted by user",
    });
    let shared = |second: u32| {
        [
            (second, event, asked("run the tests")),
            (second, "response_item", call.clone()),
            (second, "response_item", stopped.clone()),
            (
                second,
                event,
                json!({"type": "turn_aborted", "reason": "interrupted"}),
            ),
            (second, event, asked("only one of them")),
            (second, event, answered("It fails.")),
            (second, event, answered("Compact task completed")),
        ]
    };
    let home = Home::new();
    let mut parent = vec![(0, "session_meta", old_head(PARENT, 0, None))];
    parent.extend(shared(1));
    plant_old_codex(&home, PARENT, &parent);
    let mut fork = vec![
        (100, "session_meta", old_head(FORK, 100, None)),
        (100, "session_meta", old_head(PARENT, 0, None)),
    ];
    fork.extend(shared(100));
    fork.extend([
        (110, event, asked("great, thanks")),
        (115, event, answered("Gladly.")),
    ]);
    plant_old_codex(&home, FORK, &fork);
    let found = home.harvest(Agent::Codex);
    let by_id = |id: &str| {
        found
            .sessions
            .iter()
            .find(|session| session.id == id)
            .unwrap()
    };
    let (parent, fork) = (by_id(PARENT), by_id(FORK));
    assert_eq!(
        parent.calls().next().unwrap().status,
        CallStatus::Interrupted
    );
    assert_eq!(parent.count(IncidentKind::Compaction), 1);
    assert_eq!(parent.finals().next().unwrap().text, "It fails.");
    assert_eq!(fork.forked_from.as_deref(), Some(PARENT));
    assert_eq!(prompts(fork), ["great, thanks"]);
    assert_eq!(fork.inherited_prompts.len(), 2);
    assert_eq!(fork.calls().count(), 0);
}

#[test]
fn the_prompt_of_a_review_is_the_programs_however_often_it_is_logged() {
    let id = "01a229d9-a555-71b3-9fa6-537f5e64483c";
    let event = "event_msg";
    let home = Home::new();
    plant_old_codex(
        &home,
        id,
        &[
            (0, "session_meta", old_head(id, 0, None)),
            (
                1,
                event,
                json!({"type": "entered_review_mode", "target": {"type": "custom"}}),
            ),
            (1, event, json!({"type": "task_started", "turn_id": "t1"})),
            (1, event, asked("Review the change in money.py")),
            (1, event, asked("Review the change in money.py")),
            (
                9,
                event,
                json!({"type": "exited_review_mode", "review_output": {}}),
            ),
            (9, event, answered("No findings.")),
            (9, event, json!({"type": "task_complete", "turn_id": "t1"})),
            (60, event, asked("fix the rounding too")),
            (65, event, answered("Fixed.")),
        ],
    );
    let found = home.harvest(Agent::Codex);
    let session = &found.sessions[0];
    assert_eq!(prompts(session), ["fix the rounding too"]);
    let kinds: Vec<PromptKind> = session
        .turns
        .iter()
        .flat_map(|turn| &turn.prompts)
        .map(|prompt| prompt.kind)
        .collect();
    assert_eq!(kinds, [PromptKind::Machine, PromptKind::Typed]);
}

#[test]
fn an_agent_that_a_release_cannot_start_is_none() {
    let home = Home::new();
    plant_codex(
        &home,
        &[
            item(json!({"type": "UserMessage", "content": [text("go on")]})),
            (
                "response_item",
                json!({
                    "type": "function_call", "name": "spawn_agent", "call_id": "c1",
                    "arguments": r#"{"message":"find it"}"#,
                }),
            ),
            (
                "response_item",
                json!({
                    "type": "function_call_output", "call_id": "c1",
                    "output": "unsupported call: spawn_agent",
                }),
            ),
        ],
    );
    assert_eq!(home.harvest(Agent::Codex).sessions[0].sub_agents, 0);
}

#[test]
fn input_to_a_command_that_is_gone_failed() {
    let home = Home::new();
    plant_codex(
        &home,
        &[
            item(json!({"type": "UserMessage", "content": [text("go on")]})),
            (
                "response_item",
                json!({
                    "type": "function_call", "name": "write_stdin", "call_id": "c1",
                    "arguments": r#"{"session_id":4242,"chars":""}"#,
                }),
            ),
            (
                "response_item",
                json!({
                    "type": "function_call_output", "call_id": "c1",
                    "output": "write_stdin failed: Unknown process id 4242",
                }),
            ),
        ],
    );
    let found = home.harvest(Agent::Codex);
    let call = found.sessions[0].calls().next().unwrap();
    assert_eq!(call.status, CallStatus::Failed);
}

#[test]
fn what_an_editor_puts_before_a_request_is_no_part_of_it() {
    let home = Home::new();
    let asked = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nfix the rounding\n";
    plant_codex(
        &home,
        &[item(
            json!({"type": "UserMessage", "content": [text(asked)]}),
        )],
    );
    let found = home.harvest(Agent::Codex);
    assert_eq!(prompts(&found.sessions[0]), ["fix the rounding"]);
}

#[test]
fn a_command_that_went_on_after_its_script_stands_where_it_was_started() {
    let script = |id: &str, command: &str| {
        let input = format!("await tools.exec_command({{cmd: \"{command}\"}});");
        let call = json!({
            "type": "custom_tool_call", "name": "exec", "call_id": id, "input": input,
        });
        ("response_item", call)
    };
    let output = |id: &str| {
        let output = json!({
            "type": "custom_tool_call_output", "call_id": id,
            "output": "Script completed\nWall time 0.1 seconds\nOutput:\n",
        });
        ("response_item", output)
    };
    let ended = |id: &str, command: &str, code: i32| {
        item(json!({
            "type": "CommandExecution", "id": id, "status": "completed", "exit_code": code,
            "command": ["/bin/bash", "-lc", command], "aggregated_output": "",
        }))
    };
    let home = Home::new();
    plant_codex(
        &home,
        &[
            item(json!({"type": "UserMessage", "content": [text("try it")]})),
            script("c1", "./serve"),
            output("c1"),
            script("c2", "pytest"),
            ended("e2", "pytest", 0),
            output("c2"),
            ended("e1", "./serve", -1),
        ],
    );
    let found = home.harvest(Agent::Codex);
    let lines: Vec<&str> = found.sessions[0]
        .commands()
        .map(|(_, run)| run.text.as_str())
        .collect();
    assert_eq!(lines, ["./serve", "pytest"]);
    let names: Vec<&str> = found.sessions[0]
        .calls()
        .map(|call| call.name.as_str())
        .collect();
    assert_eq!(names, ["exec", "exec_command", "exec", "exec_command"]);
}
