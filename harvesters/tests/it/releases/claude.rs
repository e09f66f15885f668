//! Claude Code.

use serde_json::{Value, json};
use skillopt_harvesters::Agent;
use skillopt_harvesters::session::{CallStatus, IncidentKind, Origin, PromptKind, SkillTrigger};

use super::{plant, prompts, text};
use crate::fixtures::Home;

/// A log of Claude Code under a session's name: these records, with the members that all
/// have filled in.
struct ClaudeLog {
    session: &'static str,
    version: &'static str,
    records: Vec<Value>,
}

impl ClaudeLog {
    fn new(session: &'static str, version: &'static str) -> Self {
        ClaudeLog {
            session,
            version,
            records: Vec::new(),
        }
    }

    /// A record in the user's role: id, parent (none when empty), time within the hour, content.
    fn user(self, id: &str, parent: &str, at: &str, content: Value) -> Self {
        let message = json!({"role": "user", "content": content});
        self.record("user", id, parent, at, message)
    }

    /// A record in the user's role that the program wrote.
    fn meta(mut self, id: &str, parent: &str, at: &str, text: &str) -> Self {
        self = self.user(id, parent, at, json!(text));
        if let Some(record) = self.records.last_mut() {
            record["isMeta"] = json!(true);
        }
        self
    }

    /// One content block of a model's message.
    fn model(self, id: &str, parent: &str, at: &str, message: &str, block: Value) -> Self {
        let message = json!({
            "id": message, "role": "assistant", "model": "claude-test", "content": [block],
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 2},
        });
        self.record("assistant", id, parent, at, message)
    }

    fn record(mut self, kind: &str, id: &str, parent: &str, at: &str, message: Value) -> Self {
        self.records.push(json!({
            "type": kind, "message": message, "uuid": id, "isSidechain": false,
            "parentUuid": (!parent.is_empty()).then_some(parent),
            "timestamp": format!("2025-09-01T10:{at}Z"), "cwd": "/home/dev/x",
            "sessionId": self.session, "version": self.version, "userType": "external",
        }));
        self
    }

    fn plant(&self, home: &Home) {
        let name = format!("projects/-home-dev-x/{}.jsonl", self.session);
        plant(home, Agent::Claude, &name, &self.records);
    }
}

fn tool(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": "toolu_one", "name": name, "input": input})
}

/// The content of the result of that call.
fn result(text: &str, is_error: bool) -> Value {
    json!([{
        "type": "tool_result", "tool_use_id": "toolu_one", "content": text, "is_error": is_error,
    }])
}

/// The conversation that the next two tests continue in another file.
fn parent(session: &'static str, version: &'static str) -> ClaudeLog {
    ClaudeLog::new(session, version)
        .user("user-one", "", "00:00", json!("fix the rounding"))
        .model("answer-one", "user-one", "00:09", "msg_one", text("Fixed."))
}

/// Goes on with it: the same records and ids, all dated anew.
fn copied(session: &'static str, version: &'static str) -> ClaudeLog {
    ClaudeLog::new(session, version)
        .user("user-one", "", "05:00", json!([text("fix the rounding")]))
        .model("answer-one", "user-one", "05:00", "msg_one", text("Fixed."))
        .user("user-two", "answer-one", "05:01", json!("it still fails"))
        .model(
            "answer-two",
            "user-two",
            "05:09",
            "msg_two",
            text("Now fixed."),
        )
}

#[test]
fn an_old_resume_copies_records_with_their_ids_and_stands_for_the_file_before_it() {
    let home = Home::new();
    parent("first", "1.0.88").plant(&home);
    copied("second", "1.0.88").plant(&home);
    let found = home.harvest(Agent::Claude);
    let [session] = found.sessions.as_slice() else {
        panic!("{:?}", found.report);
    };
    assert_eq!(session.id, "second");
    assert_eq!(prompts(session), ["fix the rounding", "it still fails"]);
    assert_eq!(session.superseded_files.len(), 1);
    assert_eq!(session.forked_from, None);
    assert_eq!(session.usage.unwrap().output, 4);
}

#[test]
fn a_later_release_that_copies_in_this_way_has_forked() {
    let home = Home::new();
    parent("first", "2.0.14").plant(&home);
    copied("second", "2.0.14").plant(&home);
    let mut sessions = home.harvest(Agent::Claude).sessions;
    sessions.sort_by(|one, other| one.id.cmp(&other.id));
    let [first, second] = sessions.as_slice() else {
        panic!("{} sessions", sessions.len());
    };
    assert_eq!(prompts(first), ["fix the rounding"]);
    assert_eq!(prompts(second), ["it still fails"]);
    assert_eq!(second.forked_from.as_deref(), Some("first"));
    assert_eq!(second.usage.unwrap().output, 2);
}

#[test]
fn a_fork_of_a_fork_names_the_fork() {
    let home = Home::new();
    parent("first", "2.1.250").plant(&home);
    copied("second", "2.1.250").plant(&home);
    copied("third", "2.1.250")
        .user("user-three", "answer-two", "06:00", json!("and a test"))
        .model(
            "answer-three",
            "user-three",
            "06:09",
            "msg_three",
            text("Added."),
        )
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let third = found
        .sessions
        .iter()
        .find(|session| session.id == "third")
        .unwrap();
    assert_eq!(prompts(third), ["and a test"]);
    assert_eq!(third.forked_from.as_deref(), Some("second"));
}

#[test]
fn what_the_program_says_to_an_unknown_command_is_no_prompt() {
    let caveat =
        "Caveat: The messages below were generated by the user while running local commands.";
    let home = Home::new();
    ClaudeLog::new("unknown", "1.0.128")
        .meta("caveat", "", "00:00", caveat)
        .user(
            "reply",
            "caveat",
            "00:00",
            json!("Unknown slash command: triage"),
        )
        .user("asked", "reply", "00:20", json!("then sort the issues"))
        .model("answer", "asked", "00:29", "msg_one", text("Sorted."))
        .plant(&home);
    ClaudeLog::new("refused", "2.0.76")
        .meta("caveat-2", "", "10:00", caveat)
        .user("command-2", "caveat-2", "10:00", json!("/triage"))
        .user(
            "reply-2",
            "command-2",
            "10:00",
            json!("Only the agent may run this command."),
        )
        .user("asked-2", "reply-2", "10:20", json!("then sort the issues"))
        .model("answer-2", "asked-2", "10:29", "msg_two", text("Sorted."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    assert_eq!(found.sessions.len(), 2, "{:?}", found.report);
    for session in &found.sessions {
        assert_eq!(prompts(session), ["then sort the issues"], "{}", session.id);
    }
}

#[test]
fn a_message_that_only_the_queue_tells_of_was_sent_while_the_agent_worked() {
    let queued = |operation: &str, more: Value| {
        let mut record = json!({
            "type": "queue-operation", "operation": operation, "sessionId": "queued",
            "timestamp": "2026-01-20T10:00:05Z",
        });
        let more = more.as_object().unwrap().clone();
        record.as_object_mut().unwrap().extend(more);
        record
    };
    let home = Home::new();
    let mut log = ClaudeLog::new("queued", "2.1.20")
        .user("asked", "", "00:00", json!("run the tests"))
        .model(
            "call",
            "asked",
            "00:02",
            "msg_one",
            tool("Bash", json!({"command": "pytest"})),
        )
        .user("result", "call", "00:09", result("1 passed", false));
    // Typed and given to the model; typed and taken back; a notice; said by its own record.
    log.records.extend([
        queued("enqueue", json!({"content": "also print the version"})),
        queued("enqueue", json!({"content": "never mind"})),
        queued("enqueue", json!({"content": "<task-notification>done</task-notification>"})),
        queued("enqueue", json!({"content": "and the date"})),
        queued("remove", json!({})),
        queued("remove", json!({"content": "never mind", "reason": "removed"})),
        queued("remove", json!({})),
        queued("remove", json!({})),
        json!({
            "type": "attachment", "uuid": "told", "parentUuid": "result", "isSidechain": false,
            "attachment": {"type": "queued_command", "prompt": "and the date", "commandMode": "prompt"},
        }),
    ]);
    log.model("answer", "result", "00:20", "msg_two", text("It is 1.2."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let session = &found.sessions[0];
    assert_eq!(
        prompts(session),
        ["run the tests", "also print the version", "and the date"]
    );
    assert_eq!(session.turns.len(), 1);
    assert_eq!(session.machine_texts[0].kind, "notification");
}

#[test]
fn what_an_editor_puts_before_a_request_is_no_part_of_it() {
    let opened = "<ide_opened_file>The file /home/dev/x/a.py was opened.</ide_opened_file>";
    let home = Home::new();
    ClaudeLog::new("editor", "2.1.60")
        .user(
            "blocks",
            "",
            "00:00",
            json!([text(opened), text("fix the rounding")]),
        )
        .model("one", "blocks", "00:09", "msg_one", text("Fixed."))
        .user(
            "string",
            "one",
            "01:00",
            json!(format!("{opened}\nand add a test")),
        )
        .model("two", "string", "01:09", "msg_two", text("Added."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    assert_eq!(
        prompts(&found.sessions[0]),
        ["fix the rounding", "and add a test"]
    );
}

#[test]
fn a_command_that_was_stopped_is_no_failure_of_its_own() {
    let home = Home::new();
    ClaudeLog::new("stopped", "2.0.76")
        .user("asked", "", "00:00", json!("run the tests"))
        .model(
            "call",
            "asked",
            "00:02",
            "msg_one",
            tool("Bash", json!({"command": "pytest"})),
        )
        .user(
            "result",
            "call",
            "00:09",
            result(
                "Exit code 137\n[Request interrupted by user for tool use]",
                true,
            ),
        )
        .user(
            "stop",
            "result",
            "00:09",
            json!([text("[Request interrupted by user for tool use]")]),
        )
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let (call, run) = found.sessions[0].commands().next().unwrap();
    assert_eq!(call.status, CallStatus::Interrupted);
    assert_eq!(run.exit_code, None);
    assert_eq!(run.verification.as_ref().unwrap().passed, None);
}

#[test]
fn the_end_of_a_command_in_the_background_is_what_was_asked_for_later() {
    let asked = json!({"type": "tool_use", "id": "toolu_two", "name": "BashOutput", "input": {"bash_id": "bash_1"}});
    let mut told = result(
        "<status>failed</status>\n\n<exit_code>3</exit_code>\n\n<stdout>\n1 failed\n</stdout>",
        false,
    );
    told[0]["tool_use_id"] = json!("toolu_two");
    let home = Home::new();
    ClaudeLog::new("background", "1.0.88")
        .user("asked", "", "00:00", json!("run the tests"))
        .model(
            "call",
            "asked",
            "00:02",
            "msg_one",
            tool(
                "Bash",
                json!({"command": "pytest", "run_in_background": true}),
            ),
        )
        .user(
            "started",
            "call",
            "00:03",
            result("Command running in background with ID: bash_1", false),
        )
        .model("look", "started", "00:05", "msg_two", asked)
        .user("ended", "look", "00:06", told)
        .model("answer", "ended", "00:09", "msg_three", text("One fails."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let (call, run) = found.sessions[0].commands().next().unwrap();
    assert_eq!(call.status, CallStatus::Background);
    assert_eq!((run.exit_code, run.late_exit_code), (None, Some(3)));
}

#[test]
fn a_line_of_the_history_without_a_session_tells_who_typed_by_its_text() {
    let home = Home::new();
    parent("typed", "2.0.14").plant(&home);
    ClaudeLog::new("piped", "2.0.14")
        .user("other", "", "20:00", json!("count the words"))
        .model("told", "other", "20:09", "msg_two", text("Twelve."))
        .plant(&home);
    let line = json!({"display": "fix the rounding ", "timestamp": 1, "project": "/home/dev/x"});
    plant(&home, Agent::Claude, "history.jsonl", &[line]);
    let found = home.harvest(Agent::Claude);
    let origin = |id: &str| {
        let session = found.sessions.iter().find(|session| session.id == id);
        session.unwrap().origin
    };
    assert_eq!(origin("typed"), Origin::Interactive);
    assert_eq!(origin("piped"), Origin::Headless);
}

#[test]
fn a_command_to_the_program_on_a_branch_that_was_left_is_no_dead_prompt() {
    let home = Home::new();
    parent("left", "2.1.250")
        .user("compact", "answer-one", "01:00", json!("/compact"))
        .user("rewound", "answer-one", "02:00", json!("add a test"))
        .user("asked", "answer-one", "03:00", json!("great, thanks"))
        .model("answer", "asked", "03:09", "msg_two", text("Gladly."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let session = &found.sessions[0];
    assert_eq!(prompts(session), ["fix the rounding", "great, thanks"]);
    let dead: Vec<&str> = session
        .dead_prompts
        .iter()
        .map(|prompt| prompt.text.as_str())
        .collect();
    assert_eq!(dead, ["add a test"]);
}

#[test]
fn what_a_hook_said_is_no_prompt() {
    let home = Home::new();
    ClaudeLog::new("hooks", "1.0.88")
        .user("asked", "", "00:00", json!("clean up"))
        .meta(
            "hint",
            "asked",
            "00:00",
            "<user-prompt-submit-hook>Remember the freeze.</user-prompt-submit-hook>",
        )
        .model("answer", "hint", "00:05", "msg_one", text("Done."))
        .user(
            "stop",
            "answer",
            "00:06",
            json!("Stop hook feedback:\n- [./stop.sh]: run the linter too"),
        )
        .model(
            "again",
            "stop",
            "00:09",
            "msg_two",
            text("Now really done."),
        )
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let session = &found.sessions[0];
    assert_eq!(prompts(session), ["clean up"]);
    let finals: Vec<&str> = session
        .finals()
        .map(|answer| answer.text.as_str())
        .collect();
    assert_eq!(finals, ["Now really done."]);
    let said: Vec<&str> = session
        .machine_texts
        .iter()
        .map(|said| said.text.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "Remember the freeze.",
            "Stop hook feedback:\n- [./stop.sh]: run the linter too"
        ]
    );
}

#[test]
fn a_skill_that_the_agent_called_is_no_command_of_a_person() {
    let home = Home::new();
    ClaudeLog::new("skill", "2.0.36")
        .user("asked", "", "00:00", json!("triage issue 12"))
        .model("call", "asked", "00:02", "msg_one", tool("Skill", json!({"skill": "triage"})))
        .user("result", "call", "00:03", result("Launching skill: triage", false))
        .user(
            "runs",
            "result",
            "00:03",
            json!("<command-message>The \"triage\" skill is running</command-message>\n<command-name>triage</command-name>"),
        )
        .meta("body", "runs", "00:03", "Base directory for this skill: /home/dev/x")
        .model("answer", "body", "00:09", "msg_two", text("Sorted."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let session = &found.sessions[0];
    assert_eq!(prompts(session), ["triage issue 12"]);
    let [skill] = session.skills.as_slice() else {
        panic!("{:?}", session.skills);
    };
    assert_eq!(
        (skill.name.as_str(), skill.trigger),
        ("triage", SkillTrigger::Tool)
    );
}

#[test]
fn what_old_releases_refused_was_refused() {
    for said in [
        "This command requires approval",
        "This Bash command contains multiple operations. The following parts require approval: rm, ls",
        "This Bash command contains multiple operations. The following part requires approval: n.txt",
        "cd in '/' was blocked. For security, Claude Code may only change directories to …",
        "Command contains $() command substitution",
        "Contains command_substitution",
    ] {
        let home = Home::new();
        ClaudeLog::new("refused", "2.0.36")
            .user("asked", "", "00:00", json!("clean up"))
            .model(
                "call",
                "asked",
                "00:02",
                "msg_one",
                tool("Bash", json!({"command": "rm x"})),
            )
            .user("result", "call", "00:03", result(said, true))
            .model("answer", "result", "00:09", "msg_two", text("I may not."))
            .plant(&home);
        let found = home.harvest(Agent::Claude);
        let session = &found.sessions[0];
        assert_eq!(
            session.calls().next().unwrap().status,
            CallStatus::Denied,
            "{said}"
        );
        assert_eq!(session.count(IncidentKind::Denial), 1, "{said}");
    }
}

#[test]
fn a_summary_without_a_mark_before_it_is_a_compaction() {
    let home = Home::new();
    let mut log = parent("compacted", "1.0.88").user(
        "summary",
        "",
        "01:00",
        json!("This session is being continued from …"),
    );
    if let Some(record) = log.records.last_mut() {
        record["isCompactSummary"] = json!(true);
    }
    log.user("asked", "summary", "02:00", json!("great, thanks"))
        .model("answer", "asked", "02:09", "msg_two", text("Gladly."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let session = &found.sessions[0];
    assert_eq!(session.count(IncidentKind::Compaction), 1);
    assert_eq!(prompts(session), ["fix the rounding", "great, thanks"]);
}

#[test]
fn a_command_that_went_to_the_model_as_it_was_typed_is_a_prompt() {
    let home = Home::new();
    ClaudeLog::new("typed", "1.0.88")
        .user("asked", "", "00:00", json!("/triage 7"))
        .model("answer", "asked", "00:09", "msg_one", text("Sorted."))
        .user("next", "answer", "01:00", json!("/etc/hosts is wrong"))
        .model("last", "next", "01:09", "msg_two", text("Now it is right."))
        .plant(&home);
    let found = home.harvest(Agent::Claude);
    let kinds: Vec<PromptKind> = found.sessions[0]
        .prompts()
        .map(|prompt| prompt.kind)
        .collect();
    assert_eq!(kinds, [PromptKind::SlashCommand, PromptKind::Typed]);
}
