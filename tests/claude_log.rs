//! Session logs of Claude Code, made by a test.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::machine::Machine;

/// A session under way.
pub(crate) struct ClaudeLog {
    id: String,
    project: String,
    now: Timestamp,
    lines: Vec<Value>,
}

impl ClaudeLog {
    /// A session that begins now and then.
    pub(crate) fn new(id: &str, project: &str, begins: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            project: project.to_owned(),
            now: begins,
            lines: Vec::new(),
        }
    }

    /// The developer says something.
    pub(crate) fn says(self, text: &str) -> Self {
        self.record("user", json!({"role": "user", "content": text}))
    }

    /// The agent answers.
    pub(crate) fn answers(self, text: &str) -> Self {
        self.replies(json!({"type": "text", "text": text}))
    }

    /// The agent uses a skill.
    pub(crate) fn uses(self, skill: &str) -> Self {
        self.calls("Skill", json!({"skill": skill}), "Launching skill", false)
    }

    /// The agent opens a file.
    pub(crate) fn opens(self, path: &str) -> Self {
        self.calls("Read", json!({"file_path": path}), "1\ttext", false)
    }

    /// The agent runs the tests, with this outcome.
    pub(crate) fn tests(self, pass: bool) -> Self {
        let output = if pass {
            "test result: ok. 3 passed; 0 failed"
        } else {
            "Exit code 101\ntest result: FAILED. 2 passed; 1 failed"
        };
        self.calls("Bash", json!({"command": "cargo test"}), output, !pass)
    }

    /// Puts it where Claude Code would.
    pub(crate) fn write(self, machine: &Machine) {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        let folder = self.project.replace('/', "-");
        machine.write(
            &format!("home/.claude/projects/{folder}/{}.jsonl", self.id),
            &text,
        );
    }

    fn calls(self, tool: &str, input: Value, result: &str, failed: bool) -> Self {
        let call = format!("toolu_{}_{}", self.id, self.lines.len());
        let called = self.replies(json!({
            "type": "tool_use", "id": call, "name": tool, "input": input,
        }));
        called.record(
            "user",
            json!({"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": call, "content": result, "is_error": failed,
            }]}),
        )
    }

    fn replies(self, block: Value) -> Self {
        let message = json!({
            "id": format!("msg_{}_{}", self.id, self.lines.len()), "role": "assistant",
            "model": "claude-test", "content": [block], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        });
        self.record("assistant", message)
    }

    fn record(mut self, kind: &str, message: Value) -> Self {
        let number = self.lines.len();
        let uuid = |number: usize| format!("{}-{number:04}", self.id);
        self.lines.push(json!({
            "type": kind, "message": message, "uuid": uuid(number),
            "parentUuid": number.checked_sub(1).map(uuid), "isSidechain": false,
            "userType": "external", "cwd": self.project, "sessionId": self.id,
            "version": "2.1.332", "gitBranch": "main", "timestamp": self.now.to_string(),
        }));
        self.now += SignedDuration::from_secs(20);
        self
    }
}
