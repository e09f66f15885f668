//! The groups of the filters that tell a person's prompts and sessions from programs', of where logs
//! are looked for, and of which agents are read. Each is asked of the readers themselves.

use std::ffi::OsString;
use std::path::Path;

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Value, json};

use skillopt_harvesters::{Agent, HarvestOptions, ProjectScope, Roots, Session, harvest};
use skillopt_sleep::config::NightConfig;

use super::engine::{refused, text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("sleep/noise_meta_prompt", meta_prompt),
    group("sleep/noise_headless", headless),
    group("sleep/noise_agent_session", agent_session),
    group("sleep/source_dispatch", source_dispatch),
    group("sleep/copilot_vscode_roots", copilot_roots),
    group("sleep/cursor_slug", cursor_slug),
];

/// The sessions of a log with these prompts, each answered, between two times.
fn sessions_of(
    prompts: &[String],
    started: &str,
    ended: &str,
    options: &HarvestOptions,
) -> Vec<Session> {
    let home = tempfile::tempdir().expect("a folder");
    let mut log = format!(
        "{}\n",
        json!({"type": "session", "id": "s", "cwd": "/home/dev/proj", "version": 3, "timestamp": started})
    );
    let mut parent = Value::Null;
    for (number, prompt) in prompts.iter().enumerate() {
        for (role, said) in [("user", prompt.as_str()), ("assistant", "done")] {
            let id = format!("{role}{number}");
            let time = if role == "user" { started } else { ended };
            log += &format!(
                "{}\n",
                json!({"type": "message", "id": id, "parentId": parent, "timestamp": time,
                       "message": {"role": role, "content": [{"type": "text", "text": said}]}})
            );
            parent = json!(id);
        }
    }
    let path = home.path().join("sessions/proj/s.jsonl");
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
    std::fs::write(path, log).expect("a log");
    harvest(&Roots::none().with(Agent::Pi, home.path()), options).sessions
}

const STARTED: &str = "2026-05-01T10:00:00Z";
const ENDED: &str = "2026-05-01T10:30:00Z";

/// Whether a text in the user's role is no prompt.
fn meta_prompt(vector: &Vector) -> Value {
    let asked = "rename the settings struct across the crate".to_owned();
    let prompts = [asked, text(&vector.input, "text")];
    let sessions = sessions_of(&prompts, STARTED, ENDED, &HarvestOptions::default());
    let kept: usize = sessions
        .iter()
        .map(|session| session.prompts().count())
        .sum();
    json!(kept < prompts.len())
}

/// Whether a session is nobody's.
fn headless(vector: &Vector) -> Value {
    let input = &vector.input;
    let mut prompts = texts(&input["user_prompts"]);
    let turns = input["n_user_turns"].as_u64().unwrap_or_default();
    // A log has as many prompts as there were turns.
    prompts.truncate(usize::try_from(turns).unwrap_or(usize::MAX));
    while !prompts.is_empty() && (prompts.len() as u64) < turns {
        prompts.push("and now the other half of it".to_owned());
    }
    let sessions = sessions_of(
        &prompts,
        &text(input, "started_at"),
        &text(input, "ended_at"),
        &HarvestOptions::default(),
    );
    json!(sessions.is_empty())
}

/// Whether a session is another agent's.
fn agent_session(vector: &Vector) -> Value {
    let markers = text(&vector.input, "extra_markers");
    let options = HarvestOptions {
        program_markers: markers
            .split(',')
            .map(|marker| marker.trim().to_owned())
            .filter(|marker| !marker.is_empty())
            .collect(),
        ..HarvestOptions::default()
    };
    let mut prompts = texts(&vector.input["user_prompts"]);
    prompts.push("and now the other half of it".to_owned());
    json!(sessions_of(&prompts, STARTED, ENDED, &options).is_empty())
}

/// The agents that a source of the original's stands for are read, and no others.
fn source_dispatch(vector: &Vector) -> Value {
    let name = text(&vector.input, "transcript_source");
    let ours = match name.as_str() {
        "copilot" => "copilot-chat".to_owned(),
        "copilot_cli" => "copilot-cli".to_owned(),
        "auto" => "codex, claude".to_owned(),
        other => other.to_owned(),
    };
    let yaml = format!("sources: [{ours}]");
    let config = match NightConfig::parse(Path::new("config.yaml"), &yaml) {
        Ok(config) => config,
        Err(error) => return refused(error),
    };
    let called: Vec<String> = config
        .sources
        .iter()
        .map(|source| match source {
            Agent::CopilotChat => "copilot".to_owned(),
            other => other.name().replace('-', "_"),
        })
        .collect();
    json!({"called": called, "used": called.join("+")})
}

/// The folders of the two editions that the original knows, of all that ours looks into.
fn copilot_roots(vector: &Vector) -> Value {
    let input = &vector.input;
    let os = match text(input, "platform").as_str() {
        "darwin" => "macos",
        "win32" => "windows",
        _ => "linux",
    }
    .to_owned();
    let variable = |name: &str| input["env"][name].as_str().map(OsString::from);
    let home = text(input, "home");
    let roots = Roots::from_vars(&os, Path::new(&home), &variable);
    let known = ["Code", "Code - Insiders", "user-data"];
    let folders = roots.of(Agent::CopilotChat).iter().filter(|root| {
        let edition = root.parent().and_then(Path::file_name);
        edition.is_some_and(|name| known.iter().any(|known| name == *known))
    });
    folders
        .map(|root| json!(root.join("workspaceStorage").display().to_string()))
        .collect()
}

/// The folder in which a project's transcripts are found.
fn cursor_slug(vector: &Vector) -> Value {
    let expected = vector.expected.as_str().unwrap_or_default();
    let home = tempfile::tempdir().expect("a folder");
    for folder in [expected, &format!("{expected}-x"), &format!("x{expected}")] {
        let path = home.path().join(format!(
            "projects/{folder}/agent-transcripts/{folder}.jsonl"
        ));
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        let record = json!({"role": "user", "message": {"content": "rename the settings struct"}});
        std::fs::write(path, format!("{record}\n")).expect("a transcript");
    }
    let options = HarvestOptions {
        projects: ProjectScope::Under(vec![text(&vector.input, "project").into()]),
        ..HarvestOptions::default()
    };
    let found = harvest(&Roots::none().with(Agent::Cursor, home.path()), &options).sessions;
    let names: Vec<&str> = found.iter().map(|session| session.id.as_str()).collect();
    json!(names.join(" "))
}

/// The instant that a text names, as far as people write times: one without an offset is UTC here,
/// one without seconds is at their beginning.
fn instant(text: &str) -> Option<Timestamp> {
    let text = text.replacen(' ', "T", 1);
    text.parse::<Timestamp>()
        .or_else(|_| format!("{text}Z").parse())
        .ok()
}

/// Whether a text is one of the original's own calls, or its observers'.
pub(super) fn is_engines(text: &str) -> bool {
    let marks = [
        "## CURRENT SKILL",
        "## FAILED TASKS",
        "## SUCCESSFUL TASKS",
        "## OUTPUT FORMAT",
        "## TASK",
        "## SKILL",
        "## Skill",
        "strict grader",
        "Score the response",
        "SkillOpt-Sleep",
        "-pattern analyst",
        "Claude-Mem",
        "Hello memory agent",
        "skillopt_sleep_internal",
    ];
    marks.iter().any(|mark| text.contains(mark))
}

/// Whether the log of a session breaks a rule of its format, so that the original drops it whole.
pub(super) fn is_irregular(vector: &Vector, session: &str) -> bool {
    if let Some(sql) = vector.input["sql"].as_str() {
        // Rows that are no JSON objects, folders and times that are none, tables that are not there.
        let texts = Regex::new("'((?:[^']|'')*)'").expect("a pattern");
        let bad_rows = texts.captures_iter(sql).any(|text| {
            let data = text[1].replace("''", "'");
            let is_data = data.starts_with(['{', '[']) || data.parse::<u8>().is_ok() || data == "x";
            is_data && !serde_json::from_str::<Value>(&data).is_ok_and(|value| value.is_object())
        });
        // Tables, folders and times that are not there.
        let no_table = !sql.contains("session_files (") && !sql.contains("TABLE session ");
        let no_place = Regex::new(r"NULL, '[^/']|, 0, 1[0-9]{12}|1[0-9]{12}, (0|'[^']*'), ");
        return no_table || bad_rows || no_place.expect("a pattern").is_match(sql);
    }
    let Some(log) = vector.input["files"][session].as_str() else {
        return false;
    };
    let mut records = Vec::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(record) if record.is_object() => records.push(record),
            // The original's reader of operations passes over a bad line as well.
            _ if session.contains("/chatSessions/") => {}
            _ => return true,
        }
    }
    let Some((header, entries)) = records.split_first() else {
        return false;
    };
    if session.contains("/chatSessions/") {
        // A log of operations without the state that they change.
        let is_state = |record: &Value| record["kind"] == json!(0) && record["v"].is_object();
        return !records.iter().any(is_state);
    }
    if header["type"] != "session" {
        return true;
    }
    let mut known: Vec<&Value> = vec![&Value::Null];
    let linear = header.get("version").is_none() || header["version"] == json!(1);
    let mut all_regular = true;
    for entry in entries {
        all_regular &= entry["type"] != "session" && regular_entry(entry, &known, linear);
        known.push(&entry["id"]);
    }
    let version = header["version"].as_i64();
    !all_regular
        || header["id"].as_str().is_none_or(str::is_empty)
        || !linear && !matches!(version, Some(2 | 3))
}

/// Whether an entry of a tree has a name of its own and a known parent.
fn regular_entry(entry: &Value, known: &[&Value], linear: bool) -> bool {
    let named = entry["id"].as_str().is_some_and(|id| !id.is_empty());
    let parent = entry.get("parentId").unwrap_or(&Value::Null);
    linear || named && !known.contains(&&entry["id"]) && known.contains(&parent)
}

/// How the agent itself opens its caveat; after any other colon stands what a person warns of.
const OWN_CAVEAT: &str = "Caveat: The messages below were generated by the user";

/// The conditions of deviations about what is a person's.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let input = &vector.input;
    let source = text(input, "transcript_source");
    let known = [
        "claude",
        "codex",
        "copilot",
        "copilot_cli",
        "cursor",
        "opencode",
        "pi",
    ];
    let ours_alone = ["copilot-chat", "copilot-cli", "gemini", "devin"];
    Some(match name {
        "text_of_people" => {
            let said = text(input, "text");
            let said = said.trim();
            said.starts_with(['<', '/'])
                || said.starts_with("[Pasted text")
                || said.contains("<command-")
                || said.starts_with("Caveat:") && !said.starts_with(OWN_CAVEAT)
        }
        "taken_for_a_prompt" => ours == &json!(false),
        "times_are_odd" => {
            let plain = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?$");
            let plain = plain.expect("a pattern");
            let (started, ended) = (text(input, "started_at"), text(input, "ended_at"));
            !plain.is_match(&started)
                || !plain.is_match(&ended)
                || instant(&started) >= instant(&ended)
        }
        "judged_by_the_clock" => {
            let (started, ended) = (text(input, "started_at"), text(input, "ended_at"));
            let short = match (instant(&started), instant(&ended)) {
                (Some(started), Some(ended)) => {
                    started < ended && ended.as_second() - started.as_second() < 3
                }
                _ => false,
            };
            ours == &json!(short)
        }
        "prompt_of_an_engine" => texts(&input["user_prompts"])
            .first()
            .is_some_and(|first| is_engines(first)),
        "turns_without_prompts" => {
            input["user_prompts"] == json!([]) && input["n_user_turns"] != json!(0)
        }
        "heading_alone" => texts(&input["user_prompts"]).iter().any(|prompt| {
            let end = prompt.rsplit('\n').nth(1).unwrap_or_default();
            prompt.ends_with('\n') && end.starts_with("## ")
        }),
        "source_is_auto" => source == "auto",
        "both_are_read" => ours["called"] == json!(["codex", "claude"]),
        "source_is_ours_alone" => ours_alone.contains(&source.as_str()),
        "it_is_read" => {
            let name = source.replace("copilot-chat", "copilot").replace('-', "_");
            ours["called"] == json!([name])
        }
        "source_is_unknown" => source != "auto" && !known.contains(&source.as_str()),
        "nothing_is_read" => ours.get("error").is_some() || ours["called"] == json!([]),
        _ => return None,
    })
}
