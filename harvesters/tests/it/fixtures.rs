//! A log in the format of each agent.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use skillopt_harvesters::{Agent, Harvest, HarvestOptions, Roots, harvest};

/// In the prompt, the command, the call's id and the output of each fixture.
pub(crate) const SECRET: &str = "ghp_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE0000";
/// Where it stands in a fixture.
pub(crate) const MARK: &str = "SECRET";

/// A log in the format of one agent: a prompt with a secret, a test run that passes where
/// the format can tell, an answer, a praise.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) agent: Agent,
    /// Path below the root, and text.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Database below the root, and statements that make it.
    pub(crate) database: Option<(&'static str, &'static str)>,
}

pub(crate) const FIXTURES: &[Fixture] = &[
    Fixture {
        agent: Agent::Claude,
        files: &[(
            "projects/-home-dev-x/s1.jsonl",
            r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"fix it with SECRET"},"uuid":"u1","timestamp":"2026-10-05T08:39:15.1Z","entrypoint":"cli","cwd":"/home/dev/x","sessionId":"s1","version":"2.1.332","gitBranch":"main"}
{"parentUuid":"u1","isSidechain":false,"type":"assistant","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"},"uuid":"a1","timestamp":"2026-10-05T08:39:16.1Z","cwd":"/home/dev/x","sessionId":"s1","version":"2.1.332"}
{"parentUuid":"a1","isSidechain":false,"type":"user","message":{"role":"user","content":"perfect, thanks"},"uuid":"u2","timestamp":"2026-10-05T08:39:19.1Z","cwd":"/home/dev/x","sessionId":"s1","version":"2.1.332"}
"#,
        )],
        database: None,
    },
    Fixture {
        agent: Agent::Codex,
        files: &[(
            "sessions/2026/10/12/rollout-2026-10-12T08-39-15-01a12f44-1be4-7292-a61b-921e516a6928.jsonl",
            r#"{"timestamp":"2026-10-12T08:39:15.352Z","ordinal":0,"type":"session_meta","payload":{"id":"01a12f44-1be4-7292-a61b-921e516a6928","cwd":"/home/dev/x","originator":"codex-tui","cli_version":"0.171.0","source":"cli"}}
{"timestamp":"2026-10-12T08:39:16.352Z","ordinal":1,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"UserMessage","content":[{"type":"text","text":"fix it with SECRET"}]}}}
{"timestamp":"2026-10-12T08:39:17.352Z","ordinal":2,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"AgentMessage","content":[{"type":"Text","text":"Done."}]}}}
{"timestamp":"2026-10-12T08:39:18.352Z","ordinal":3,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t2","item":{"type":"UserMessage","content":[{"type":"text","text":"perfect, thanks"}]}}}
"#,
        )],
        database: None,
    },
    Fixture {
        agent: Agent::Pi,
        files: &[(
            "sessions/--home-dev-x--/2026-10-05T08-39-15-100Z_p1.jsonl",
            r#"{"type":"session","version":3,"id":"p1","timestamp":"2026-10-05T08:39:15.1Z","cwd":"/home/dev/x"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-10-05T08:39:15.2Z","message":{"role":"user","content":"fix it with SECRET"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-10-05T08:39:16.2Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1-SECRET","name":"bash","arguments":{"command":"TOKEN=SECRET pytest"}}],"model":"m"}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-10-05T08:39:17.2Z","message":{"role":"toolResult","toolCallId":"c1-SECRET","toolName":"bash","content":[{"type":"text","text":"1 passed SECRET"}]}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-10-05T08:39:18.2Z","message":{"role":"assistant","content":[{"type":"text","text":"Done."}],"model":"m"}}
{"type":"message","id":"a5","parentId":"a4","timestamp":"2026-10-05T08:39:19.2Z","message":{"role":"user","content":"perfect, thanks"}}
"#,
        )],
        database: None,
    },
    Fixture {
        agent: Agent::Gemini,
        files: &[(
            "tmp/x/chats/session-2026-10-05T08-39-g1.jsonl",
            r#"{"sessionId":"g1","projectHash":"h","startTime":"2026-10-05T08:39:15.1Z","lastUpdated":"2026-10-05T08:39:15.1Z","kind":"main"}
{"id":"m1","timestamp":"2026-10-05T08:39:15.2Z","type":"user","content":"fix it with SECRET"}
{"id":"m2","timestamp":"2026-10-05T08:39:16.2Z","type":"gemini","content":"","model":"m","toolCalls":[{"id":"c1-SECRET","name":"run_shell_command","args":{"command":"TOKEN=SECRET pytest"},"status":"success","result":[{"functionResponse":{"response":{"output":"1 passed SECRET"}}}]}]}
{"id":"m3","timestamp":"2026-10-05T08:39:17.2Z","type":"gemini","content":"Done.","model":"m"}
{"id":"m4","timestamp":"2026-10-05T08:39:18.2Z","type":"user","content":"perfect, thanks"}
"#,
        )],
        database: None,
    },
    Fixture {
        agent: Agent::CopilotCli,
        files: &[
            (
                "session-state/c1/events.jsonl",
                r#"{"type":"session.start","data":{"sessionId":"c1","copilotVersion":"1.0.102","context":{"cwd":"/home/dev/x","branch":"main","headCommit":"0e647b9a4ffc7ee6853c02385c290432c7bd80b0"}},"id":"e0","timestamp":"2026-10-05T08:39:15.1Z","parentId":null}
{"type":"user.message","data":{"content":"fix it with SECRET"},"id":"e1","timestamp":"2026-10-05T08:39:15.2Z","parentId":"e0"}
{"type":"user.message","data":{"content":"the body of a skill","source":"skill-x"},"id":"e1b","timestamp":"2026-10-05T08:39:15.3Z","parentId":"e1"}
{"type":"assistant.message","data":{"model":"m","content":"","toolRequests":[{"toolCallId":"t1-SECRET","name":"bash","arguments":{"command":"TOKEN=SECRET pytest"}}]},"id":"e2","timestamp":"2026-10-05T08:39:16.2Z","parentId":"e1"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1-SECRET","success":true,"shellExecution":{"exitCode":0},"result":{"content":"1 passed SECRET"}},"id":"e3","timestamp":"2026-10-05T08:39:17.2Z","parentId":"e2"}
{"type":"user.message","agentId":"helper","data":{"content":"a sub-agent's"},"id":"e3b","timestamp":"2026-10-05T08:39:17.3Z","parentId":"e3"}
{"type":"assistant.message","data":{"model":"m","content":"Done.","toolRequests":[]},"id":"e4","timestamp":"2026-10-05T08:39:18.2Z","parentId":"e3"}
{"type":"user.message","data":{"content":"perfect, thanks"},"id":"e5","timestamp":"2026-10-05T08:39:19.2Z","parentId":"e4"}
"#,
            ),
            ("session-state/c1/workspace.yaml", "id: c1\nname: Fix it\n"),
        ],
        database: Some((
            "session-store.db",
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, cwd TEXT, branch TEXT, summary TEXT, created_at TEXT, updated_at TEXT);
             CREATE TABLE turns (session_id TEXT, turn_index INTEGER, user_message TEXT, assistant_response TEXT, timestamp TEXT);
             INSERT INTO sessions VALUES ('c1', '/home/dev/x', 'main', 'in the log as well', '2026-10-05 08:39:15', NULL);
             INSERT INTO sessions VALUES ('c2', '/home/dev/x', 'main', 'SECRET', '2026-10-05 08:39:15', NULL);
             INSERT INTO turns VALUES ('c1', 0, 'fix it', 'Done.', NULL);
             INSERT INTO turns VALUES ('c2', 0, 'fix it with SECRET', 'Done.', NULL);
             INSERT INTO turns VALUES ('c2', 1, 'perfect, thanks', NULL, NULL);",
        )),
    },
    Fixture {
        agent: Agent::CopilotChat,
        files: &[
            (
                "workspaceStorage/w1/chatSessions/v1.jsonl",
                r#"{"kind":0,"v":{"version":3,"sessionId":"v1","creationDate":1790000000000,"requests":[],"inputState":{"inputText":"not sent"}}}
{"kind":2,"k":["requests"],"v":[{"requestId":"r1","timestamp":1790000001000,"modelId":"m","message":{"text":"fix it with SECRET"},"response":[],"isCanceled":false}]}
{"kind":2,"k":["requests",0,"response"],"v":[{"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"t1-SECRET","isComplete":true,"toolSpecificData":{"kind":"terminal","commandLine":{"original":"TOKEN=SECRET pytest"},"terminalCommandState":{"exitCode":0},"terminalCommandOutput":{"text":"1 passed SECRET"}}},{"value":"Do"}]}
{"kind":2,"k":["requests",0,"response"],"v":[{"value":"Done."}],"i":1}
{"kind":1,"k":["requests",1],"v":{"requestId":"r2","timestamp":1790000002000,"message":{"text":"perfect, thanks"},"response":[]}}
"#,
            ),
            ("workspaceStorage/w1/workspace.json", r#"{"folder":"file:///home/dev/x"}"#),
        ],
        database: None,
    },
    Fixture {
        agent: Agent::OpenCode,
        files: &[
            (
                "storage/session/p/ses_1.json",
                r#"{"id":"ses_1","version":"0.15.3","directory":"/home/dev/x","title":"Fix","time":{"created":1760000000000,"updated":1760000060000}}"#,
            ),
            (
                "storage/message/ses_1/msg_1.json",
                r#"{"id":"msg_1","role":"user","time":{"created":1760000001000}}"#,
            ),
            (
                "storage/part/msg_1/prt_1.json",
                r#"{"id":"prt_1","type":"text","text":"fix it with SECRET"}"#,
            ),
            (
                "storage/message/ses_1/msg_2.json",
                r#"{"id":"msg_2","role":"assistant","modelID":"m","providerID":"p","time":{"created":1760000002000}}"#,
            ),
            (
                "storage/part/msg_2/prt_2.json",
                r#"{"id":"prt_2","type":"tool","tool":"bash","callID":"t1-SECRET","state":{"status":"completed","input":{"command":"TOKEN=SECRET pytest"},"output":"1 passed SECRET","metadata":{"exit":0}}}"#,
            ),
            (
                "storage/part/msg_2/prt_3.json",
                r#"{"id":"prt_3","type":"text","text":"Done."}"#,
            ),
            (
                "storage/message/ses_1/msg_3.json",
                r#"{"id":"msg_3","role":"user","time":{"created":1760000003000}}"#,
            ),
            (
                "storage/part/msg_3/prt_4.json",
                r#"{"id":"prt_4","type":"text","text":"perfect, thanks"}"#,
            ),
        ],
        database: Some((
            "opencode.db",
            r#"CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, version TEXT, revert TEXT, time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);
             INSERT INTO session VALUES ('ses_2', NULL, '/home/dev/x', 'SECRET', '1.18.33', '{"messageID":"m5"}', 1760000000000, 1760000060000);
             INSERT INTO session VALUES ('ses_3', 'ses_2', '/home/dev/x', 'a sub-agent', '1.18.33', NULL, 1760000000000, 1760000060000);
             INSERT INTO message VALUES ('m1', 'ses_2', 1760000001000, '{"role":"user"}');
             INSERT INTO part VALUES ('p1', 'm1', '{"type":"text","text":"\"fix it with SECRET\""}');
             INSERT INTO message VALUES ('m2', 'ses_2', 1760000002000, '{"role":"assistant","modelID":"m","providerID":"p","finish":"stop"}');
             INSERT INTO part VALUES ('p2', 'm2', '{"type":"text","text":"Done."}');
             INSERT INTO message VALUES ('m3', 'ses_2', 1760000003000, '{"role":"user"}');
             INSERT INTO part VALUES ('p3', 'm3', '{"type":"text","text":"perfect, thanks"}');
             INSERT INTO message VALUES ('m5', 'ses_2', 1760000004000, '{"role":"user"}');
             INSERT INTO part VALUES ('p5', 'm5', '{"type":"text","text":"undone"}');"#,
        )),
    },
    Fixture {
        agent: Agent::Cursor,
        files: &[
            (
                "projects/home-dev-x/agent-transcripts/u1/u1.jsonl",
                r#"{"role":"user","message":{"content":[{"type":"text","text":"<open_files>\nSECRET\n</open_files>\n<user_query>\nfix it with SECRET\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Shell","input":{"command":"TOKEN=SECRET pytest"}}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}
{"type":"turn_ended","status":"success"}
{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nperfect, thanks\n</user_query>"}]}}
"#,
            ),
            (
                "projects/home-dev-x/agent-transcripts/u2.txt",
                "user:\n<user_query>\nfix it with SECRET\n</user_query>\n\nassistant:\n[Thinking] Let me see.\nHm.\n[Tool call] Shell\n  command: TOKEN=SECRET pytest\n\n[Tool result] Shell\n\nassistant:\nDone.\n\nuser:\n<user_query>\nperfect, thanks\n</user_query>\n",
            ),
            (
                "projects/home-dev-x/.workspace-trusted",
                r#"{"workspacePath":"/home/dev/x"}"#,
            ),
        ],
        database: None,
    },
    Fixture {
        agent: Agent::Devin,
        files: &[(
            "transcripts/amber-1.json",
            r#"{"schema_version":"ATIF-v1.7","session_id":"amber-1","agent":{"model_name":"m"},"steps":[{"step_id":1,"timestamp":"2026-10-05T08:39:15Z","source":"user","message":"fix it with SECRET"},{"step_id":2,"timestamp":"2026-10-05T08:39:16Z","source":"agent","message":"","tool_calls":[{"tool_call_id":"t1-SECRET","function_name":"exec","arguments":{"command":"TOKEN=SECRET pytest"}}],"observation":{"results":[{"source_call_id":"t1-SECRET","content":"1 passed SECRET\nExit code: 0"}]}},{"step_id":3,"timestamp":"2026-10-05T08:39:17Z","source":"agent","message":"Done."},{"step_id":4,"timestamp":"2026-10-05T08:39:18Z","source":"user","message":"perfect, thanks"}]}"#,
        )],
        database: Some((
            "sessions.db",
            r#"CREATE TABLE sessions (id TEXT PRIMARY KEY, working_directory TEXT, title TEXT, model TEXT, created_at INTEGER, last_activity_at INTEGER, main_chain_id INTEGER, hidden INTEGER);
             CREATE TABLE message_nodes (row_id INTEGER PRIMARY KEY, session_id TEXT, node_id INTEGER, parent_node_id INTEGER, chat_message TEXT, created_at INTEGER);
             INSERT INTO sessions VALUES ('amber-1', '/home/dev/x', 'SECRET', 'm', 1790000000, 1790000009, 1, 0);
             INSERT INTO sessions VALUES ('brisk-2', '/home/dev/x', 'SECRET', 'm', 1790000000, 1790000009, 3, 0);
             INSERT INTO sessions VALUES ('helper', '/home/dev/x', 'x', 'm', 1790000000, 1790000009, 1, 1);
             INSERT INTO message_nodes VALUES (1, 'brisk-2', 1, NULL, '{"role":"user","content":"fix it with SECRET"}', 1790000001);
             INSERT INTO message_nodes VALUES (2, 'brisk-2', 2, 1, '{"role":"assistant","content":"Done."}', 1790000002);
             INSERT INTO message_nodes VALUES (3, 'brisk-2', 3, 2, '{"role":"user","content":"perfect, thanks"}', 1790000003);
             INSERT INTO message_nodes VALUES (4, 'brisk-2', 4, 1, '{"role":"user","content":"dead"}', 1790000004);"#,
        )),
    },
];

/// Folders for the roots of some agents.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn root(&self, agent: Agent) -> PathBuf {
        self.0.path().join(agent.name())
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn plant(&self, fixture: &Fixture) {
        let root = self.root(fixture.agent);
        for (path, text) in fixture.files {
            self.write(&root.join(path), text.replace(MARK, SECRET).as_bytes());
        }
        if let Some((path, statements)) = fixture.database {
            std::fs::create_dir_all(&root).unwrap();
            let database = Connection::open(root.join(path)).unwrap();
            database.execute_batch("PRAGMA synchronous=OFF").unwrap();
            let statements = statements.replace(MARK, SECRET);
            database.execute_batch(&statements).unwrap();
        }
    }

    pub(crate) fn harvest(&self, agent: Agent) -> Harvest {
        self.harvest_with(agent, &HarvestOptions::default())
    }

    pub(crate) fn harvest_with(&self, agent: Agent, options: &HarvestOptions) -> Harvest {
        harvest(&Roots::none().with(agent, self.root(agent)), options)
    }
}

pub(crate) fn fixture(agent: Agent) -> &'static Fixture {
    FIXTURES
        .iter()
        .find(|fixture| fixture.agent == agent)
        .unwrap()
}

/// Sessions that a fixture holds: one in files, one in a database, one more for Cursor.
pub(crate) fn expected(fixture: &Fixture) -> usize {
    1 + usize::from(fixture.database.is_some() || fixture.agent == Agent::Cursor)
}
