//! Copilot CLI and OpenCode.

use rusqlite::Connection;
use serde_json::{Value, json};
use skillopt_harvesters::Agent;
use skillopt_harvesters::session::CallStatus;

use super::plant;
use crate::fixtures::Home;

#[test]
fn copilot_told_exit_codes_at_the_end_of_the_output() {
    let event = |id: &str, kind: &str, data: Value| json!({"type": kind, "data": data, "id": id, "timestamp": "2026-05-05T08:39:15.1Z"});
    let call = |id: &str, command: &str| json!({"toolCallId": id, "name": "bash", "arguments": {"command": command}});
    let ended = |id: &str, output: &str| {
        let data = json!({"toolCallId": id, "success": true, "result": {"content": output}});
        event(id, "tool.execution_complete", data)
    };
    let calls = [
        call("t1", "pytest"),
        call("t2", "ls"),
        call("t3", "cat exit.txt"),
    ];
    let home = Home::new();
    plant(
        &home,
        Agent::CopilotCli,
        "session-state/c1/events.jsonl",
        &[
            event(
                "e1",
                "session.start",
                json!({"sessionId": "c1", "context": {"cwd": "/home/dev/x"}}),
            ),
            event("e2", "user.message", json!({"content": "run the tests"})),
            event(
                "e3",
                "assistant.message",
                json!({"content": "", "toolRequests": calls}),
            ),
            ended("t1", "1 failed\n<shellId: 2 completed with exit code 1>"),
            ended("t2", "a.py\n<exited with exit code 0>"),
            ended("t3", "<exited with exit code 4> is what it says\n"),
        ],
    );
    let found = home.harvest(Agent::CopilotCli);
    let codes: Vec<Option<i32>> = found.sessions[0]
        .commands()
        .map(|(_, run)| run.exit_code)
        .collect();
    assert_eq!(codes, [Some(1), Some(0), None]);
    let (call, run) = found.sessions[0].commands().next().unwrap();
    assert_eq!(call.status, CallStatus::Failed);
    assert_eq!(run.verification.as_ref().unwrap().passed, Some(false));
}

#[test]
fn what_a_command_changed_in_opencode_was_not_edited() {
    let part = |message: &str, data: Value| {
        let data = data.to_string().replace('\'', "''");
        format!("INSERT INTO part VALUES (NULL, '{message}', '{data}');")
    };
    let tool = |name: &str, input: Value| {
        let state = json!({"status": "completed", "input": input, "output": ""});
        json!({"type": "tool", "tool": name, "callID": name, "state": state})
    };
    let patch = |file: &str| json!({"type": "patch", "hash": "h", "files": [file]});
    let statements = [
        "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, version TEXT, revert TEXT, time_created INTEGER, time_updated INTEGER);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE TABLE part (id INTEGER PRIMARY KEY, message_id TEXT, data TEXT);
         INSERT INTO session VALUES ('s1', NULL, '/home/dev/x', 't', '1.18.33', NULL, 1760000000000, 1760000060000);
         INSERT INTO message VALUES ('m1', 's1', 1760000001000, '{\"role\":\"user\"}');
         INSERT INTO message VALUES ('m2', 's1', 1760000002000, '{\"role\":\"assistant\",\"finish\":\"stop\"}');"
            .to_owned(),
        part("m1", json!({"type": "text", "text": "fix it"})),
        part("m2", json!({"type": "step-start"})),
        part("m2", tool("bash", json!({"command": "pytest"}))),
        part("m2", patch("/home/dev/x/__pycache__/a.pyc")),
        part("m2", json!({"type": "step-start"})),
        part("m2", tool("apply_patch", json!({"patch": "…"}))),
        part("m2", patch("/home/dev/x/a.py")),
    ];
    let home = Home::new();
    let root = home.root(Agent::OpenCode);
    std::fs::create_dir_all(&root).unwrap();
    let database = Connection::open(root.join("opencode.db")).unwrap();
    database.execute_batch(&statements.join("\n")).unwrap();
    let found = home.harvest(Agent::OpenCode);
    let edits: Vec<Vec<&str>> = found.sessions[0]
        .calls()
        .map(|call| call.edits.iter().map(|path| path.as_str()).collect())
        .collect();
    assert_eq!(edits, [vec![], vec!["/home/dev/x/a.py"]]);
}
