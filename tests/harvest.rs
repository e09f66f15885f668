//! What a user sees of the session logs: `harvest sources`, `list`, `show`, `tasks`.

use serde_json::Value;

use crate::machine::{Machine, data};

/// The cursor session of the test data.
const CURSOR: &str = "3f0e6c1a-6b1d-4c55-9a77-0d2a1f4b8c91";

/// A machine on which every agent was used; databases left out.
fn used() -> Machine {
    let machine = Machine::new();
    for (from, to) in [
        ("claude", "home/.claude"),
        ("codex", "home/.codex"),
        ("pi", "home/.pi"),
        ("gemini", "home/.gemini"),
        ("copilot-cli", "home/.copilot"),
        ("copilot-chat", "home/.config/Code"),
        ("opencode", "home/.local/share/opencode"),
        ("cursor", "home/.cursor"),
        ("devin", "home/.local/share/devin"),
    ] {
        machine.copy(&data(&format!("sessions/{from}")), to);
    }
    machine
}

fn agents(listed: &Value) -> Vec<&str> {
    let mut agents: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|session| session["agent"].as_str())
        .collect();
    agents.sort_unstable();
    agents.dedup();
    agents
}

#[test]
fn every_source_is_listed_with_where_it_looks_and_what_was_found() {
    let machine = used();
    let listed = machine.json(&["harvest", "sources", "--json"]);
    assert_eq!(listed["schema"], "skillopt-sleep.sources/1");
    let found: Vec<(&str, u64, bool)> = listed["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| {
            (
                source["source"]["agent"].as_str().unwrap(),
                source["sessions"].as_u64().unwrap(),
                source["configured"].as_bool().unwrap(),
            )
        })
        .collect();
    let others: Vec<_> = found[2..].to_vec();
    assert_eq!((found[0].0, found[0].2), ("claude", true));
    assert_eq!((found[1].0, found[1].2), ("codex", true));
    assert!(found[0].1 > 10 && found[1].1 > 10, "{found:?}");
    assert_eq!(
        others,
        [
            ("pi", 2, false),
            ("gemini", 2, false),
            ("copilot-cli", 1, false),
            ("copilot-chat", 3, false),
            ("opencode", 1, false),
            ("cursor", 2, false),
            ("devin", 1, false),
        ]
    );
    let text = machine.ok(&["harvest", "sources"]).stdout;
    let home = machine.path("home").display().to_string();
    for line in [
        "Cursor (cursor)".to_owned(),
        "  reads  projects/*/agent-transcripts/**/*.jsonl and *.txt, projects/*/.workspace-trusted"
            .to_owned(),
        format!("  from   {home}/.cursor"),
        "  found  2 sessions (not among the configured sources)".to_owned(),
        format!("  from   {home}/.config/VSCodium/User (not there)"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn sessions_are_listed_of_the_configured_or_the_named_agents() {
    let machine = used();
    let listed = machine.json(&["harvest", "list", "--json", "--max-sessions", "0"]);
    assert_eq!(listed["schema"], "skillopt-sleep.sessions/1");
    assert_eq!(agents(&listed), ["claude", "codex"]);
    let named = [
        "harvest", "list", "--json", "--source", "cursor", "--source", "opencode",
    ];
    assert_eq!(agents(&machine.json(&named)), ["cursor", "opencode"]);
    let tasks = machine.json(&["harvest", "tasks", "--json", "--source", "opencode"]);
    assert_eq!(tasks["schema"], "skillopt-sleep.tasks/1");
    assert!(tasks["tasks"].is_array(), "{tasks}");
    let unknown = machine.run(&["harvest", "list", "--source", "emacs"]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("`emacs` is no log source")
            && unknown.stderr.contains("copilot-chat"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn a_session_is_shown_as_a_timeline() {
    let machine = used();
    let text = machine.ok(&["harvest", "show", "3f0e6c1a"]).stdout;
    assert_eq!(
        text,
        format!(
            "session  {CURSOR}
agent    cursor
project  /home/dev/src/shopfront

> slugify must not end in a dash
  * Read {{\"path\":\"/home/dev/src/shopfront/src/slug.js\"}}
  * StrReplace {{\"path\":\"/home/dev/src/shopfront/src/slug.js\",\"old_string\":\"'-');\",\"new_string\":\"'-').replace(/^-+|-+$/g, '');\"}}
    edited /home/dev/src/shopfront/src/slug.js
  $ node --test test/slug.test.js  result unknown
  = slugify trims dashes at both ends now.
  feedback: negative

> still fails for \"--a\"
  $ node -e \"...\"
  = It gives \"a\" for \"--a\" here; please pull my change.
  feedback: positive

> ah, works. thanks!
  = Good.

outcome  success
"
        ) + text.split("outcome  success\n").nth(1).unwrap_or_default()
    );
    let session = machine.json(&["harvest", "show", CURSOR, "--json"]);
    assert_eq!(session["schema"], "skillopt-sleep.session/1");
    assert_eq!(session["id"], CURSOR);
}

#[test]
fn a_session_that_is_not_there_or_not_one_is_refused_with_the_nearest() {
    let machine = used();
    let unknown = machine.run(&["harvest", "show", "3f0e6c1b"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    assert!(
        unknown.stderr.contains("there is no session 3f0e6c1b")
            && unknown
                .stderr
                .replace(['\n', ' ', '│'], "")
                .contains(CURSOR),
        "{}",
        unknown.stderr
    );
    let several = machine.run(&["harvest", "show", "0"]);
    assert_eq!(several.code, Some(1), "{}", several.stdout);
    assert!(
        several.stderr.contains("sessions begin with 0")
            && several.stderr.contains("give more of the id"),
        "{}",
        several.stderr
    );
    let none = Machine::new().run(&["harvest", "show", "x"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("harvest sources"), "{}", none.stderr);
}
