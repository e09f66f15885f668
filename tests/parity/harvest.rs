//! The groups of reading logs: the files of a vector are laid out, our readers read them as a night
//! does, and what a person would find in the sessions is compared.
//!
//! The original keeps a digest of a session; ours has far more in it. Compared is what both have:
//! which sessions are seen, their projects and branches, what a person asked, the last answers, the
//! tools and skills. A session is known by its file or row. Sessions in which nobody asked anything
//! are none here, because neither miner can use them. The order is compared where a limit makes it
//! matter. Not compared: times, which the original takes from any record; files, which it never has
//! right (weakness 13); counts and feedback, which have groups of their own.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use skillopt_harvesters::{Agent, ProjectScope, Redactor, Roots, Session};
use skillopt_sleep::night::gather::Gatherer;

use super::engine::{text, texts};
use super::redaction::{MARK, differ_by_marks, unmarked};
use super::{Group, Vector, outcome_group};

pub(super) const GROUPS: &[Group] = &[
    outcome_group("sleep/claude_harvest", claude, |vector| {
        seen(&vector.expected)
    }),
    outcome_group("sleep/codex_harvest", codex, |vector| {
        seen(&vector.expected)
    }),
    outcome_group("sleep/copilot_cli_harvest", copilot_cli, |vector| {
        seen(&vector.expected)
    }),
    outcome_group("sleep/copilot_vscode_harvest", copilot_chat, |vector| {
        seen(&vector.expected)
    }),
    outcome_group("sleep/cursor_harvest", cursor, |vector| {
        seen(&vector.expected)
    }),
    outcome_group("sleep/opencode_harvest", opencode, |vector| {
        seen(&vector.expected)
    }),
    outcome_group("sleep/pi_harvest", pi, |vector| seen(&vector.expected)),
    outcome_group("sleep/devin_convert", devin, |vector| {
        converted(&vector.expected)
    }),
];

fn claude(vector: &Vector) -> Value {
    read(vector, Agent::Claude)
}

fn codex(vector: &Vector) -> Value {
    read(vector, Agent::Codex)
}

fn copilot_chat(vector: &Vector) -> Value {
    read(vector, Agent::CopilotChat)
}

fn cursor(vector: &Vector) -> Value {
    read(vector, Agent::Cursor)
}

fn pi(vector: &Vector) -> Value {
    read(vector, Agent::Pi)
}

fn copilot_cli(vector: &Vector) -> Value {
    read(vector, Agent::CopilotCli)
}

fn opencode(vector: &Vector) -> Value {
    read(vector, Agent::OpenCode)
}

/// Devin's transcripts, which the original turns into logs of another agent first.
fn devin(vector: &Vector) -> Value {
    let mut files = serde_json::Map::new();
    for (name, content) in vector.input["files"].as_object().into_iter().flatten() {
        let below = name.strip_prefix("tr/").unwrap_or(name);
        files.insert(format!("transcripts/{below}"), content.clone());
    }
    let home = home_of(&json!({"files": files}));
    let gatherer = gatherer(Agent::Devin, home.path());
    let sessions = gatherer.read().sessions;
    let told = sessions.iter().map(|session| {
        let digest = digest(session, None);
        json!({"session": session.id, "user_prompts": digest["user_prompts"],
               "assistant_finals": digest["assistant_finals"]})
    });
    with_marks_of(&vector.expected, in_order(told))
}

/// What is compared of converted transcripts: the prompts and answers of each.
fn converted(expected: &Value) -> Value {
    const PREFIX: &str = "devin_";
    let mut sessions = Vec::new();
    for (name, records) in expected["outputs"].as_object().into_iter().flatten() {
        let Some((_, id)) = name.rsplit_once(PREFIX) else {
            continue;
        };
        let said = |role: &str| -> Vec<String> {
            let records = records.as_array().into_iter().flatten();
            records
                .filter(|record| record["type"] == role)
                .map(|record| unmarked(&text(&record["message"], "content")).replace('\0', ""))
                .filter(|text| text != "[no reply recorded]")
                .collect()
        };
        let mut answers = said("assistant");
        answers.drain(..answers.len().saturating_sub(LAST_ANSWERS));
        let id = id.trim_end_matches(".jsonl").to_owned();
        sessions.push(
            json!({"session": id, "user_prompts": said("user"), "assistant_finals": answers}),
        );
    }
    in_order(sessions.into_iter())
}

/// How many answers a digest keeps.
const LAST_ANSWERS: usize = 5;

/// The files or the database of a vector, laid out.
fn home_of(input: &Value) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    for (name, content) in input["files"].as_object().into_iter().flatten() {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        std::fs::write(&path, content.as_str().unwrap_or_default()).expect("a file");
        if let Some(seconds) = input["mtimes"][name].as_f64() {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(seconds);
            let file = std::fs::File::options().write(true).open(&path);
            file.and_then(|file| file.set_modified(time))
                .expect("its time");
        }
    }
    if let Some(name) = input["db"].as_str() {
        let path = home.path().join(name);
        match input["sql"].as_str().unwrap_or_default() {
            "" => std::fs::write(&path, "no database").expect("a file"),
            sql => rusqlite::Connection::open(&path)
                .and_then(|database| database.execute_batch(sql))
                .expect("a database"),
        }
    }
    home
}

fn gatherer(agent: Agent, root: &Path) -> Gatherer {
    Gatherer {
        roots: Roots::none().with(agent, root),
        sources: vec![agent],
        projects: ProjectScope::All,
        since: None,
        max_sessions: 0,
        program_markers: Vec::new(),
        redactor: Redactor::new(),
    }
}

/// Reads the logs as a night does.
fn read(vector: &Vector, agent: Agent) -> Value {
    let home = home_of(&vector.input);
    let options = &vector.input["options"];
    let projects = match (options["scope"].as_str(), text(options, "invoked_project")) {
        (None, _) => {
            let folders = texts(&options["scope"]).into_iter().map(PathBuf::from);
            ProjectScope::Under(folders.collect())
        }
        // The original's reader of this agent takes nothing without a project.
        (Some("invoked"), invoked) if invoked.is_empty() && agent == Agent::Cursor => {
            ProjectScope::Under(Vec::new())
        }
        (Some("invoked"), invoked) if !invoked.is_empty() => {
            ProjectScope::Under(vec![invoked.into()])
        }
        _ => ProjectScope::All,
    };
    let most = options["limit"]
        .as_u64()
        .and_then(|most| usize::try_from(most).ok());
    let gatherer = Gatherer {
        projects,
        since: options["since_iso"].as_str().and_then(instant),
        max_sessions: most.unwrap_or_default(),
        ..gatherer(agent, home.path())
    };
    let sessions = gatherer.read().sessions;
    let ours = in_order(
        sessions
            .iter()
            .map(|session| digest(session, Some(home.path()))),
    );
    with_marks_of(&vector.expected, ours)
}

/// How many letters beside marks do not yet tell one text from another.
const SHORT: usize = 8;

/// Our digests with the recorded texts where only what is redacted in them differs: the groups of
/// redaction are about that.
fn with_marks_of(recorded: &Value, mut ours: Value) -> Value {
    for digest in ours.as_array_mut().into_iter().flatten() {
        let same = recorded
            .as_array()
            .into_iter()
            .flatten()
            .find(|other| other["session"] == digest["session"]);
        for key in ["user_prompts", "assistant_finals"] {
            let said = digest[key].as_array_mut().into_iter().flatten();
            for (index, said) in said.enumerate() {
                let texts = same.and_then(|other| other[key].as_array());
                let recorded = texts.into_iter().flatten().filter_map(Value::as_str);
                let Some(ours) = said.as_str() else {
                    continue;
                };
                // Others may be missing before it; a mark alone would stand for any text.
                let mut recorded = recorded.enumerate().filter(|(place, text)| {
                    let is_told = |text: &str| text.replace(MARK, "").chars().count() > SHORT;
                    *place == index || is_told(text) && is_told(ours)
                });
                if let Some((_, text)) = recorded.find(|(_, text)| differ_by_marks(text, ours)) {
                    *said = json!(text);
                }
            }
        }
    }
    ours
}

/// A session in the original's words.
fn digest(session: &Session, root: Option<&Path>) -> Value {
    let mut finals: Vec<&str> = session
        .turns
        .iter()
        .flat_map(|turn| turn.remarks.iter().chain(&turn.answer))
        .map(|said| said.text.as_str())
        .collect();
    finals.drain(..finals.len().saturating_sub(LAST_ANSWERS));
    let prompts: Vec<&str> = session
        .prompts()
        .map(|prompt| prompt.text.as_str())
        .collect();
    let file = session
        .files
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let real = root.and_then(|root| root.canonicalize().ok());
    let file = [root, real.as_deref()]
        .into_iter()
        .flatten()
        .find_map(|root| Path::new(file).strip_prefix(root).ok())
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let raw_path = match file.ends_with(".db") {
        true => format!("{file}#{}", session.id),
        false => file,
    };
    seen_one(&json!({
        "raw_path": raw_path,
        "project": session.project.clone().unwrap_or_default(),
        "git_branch": session.git.branch.clone().unwrap_or_default(),
        "user_prompts": prompts, "assistant_finals": finals,
        "tools_used": session.tools(), "skills_used": session.skills(),
    }))
}

/// What is compared of recorded digests.
fn seen(digests: &Value) -> Value {
    let digests = digests.as_array().into_iter().flatten();
    in_order(
        digests
            .filter(|digest| digest["user_prompts"] != json!([]))
            .map(seen_one),
    )
}

/// Which session is which must not depend on the order in which equal times come.
fn in_order(digests: impl Iterator<Item = Value>) -> Value {
    let mut digests: Vec<Value> = digests.collect();
    digests.sort_by_key(|digest| text(digest, "session"));
    digests.into()
}

fn seen_one(digest: &Value) -> Value {
    let plain = |key: &str| -> Vec<String> {
        let said = texts(&digest[key]);
        said.iter()
            .map(|text| unmarked(text).replace('\0', ""))
            .collect()
    };
    let mut tools: Vec<String> = texts(&digest["tools_used"])
        .iter()
        .map(|name| cleaned(name))
        .collect();
    tools.sort();
    tools.dedup();
    let path = text(digest, "raw_path");
    let name = path.rsplit(['#', '/']).next().unwrap_or_default();
    json!({
        "session": match path.contains('#') || path.contains("://") {
            true => name.to_owned(),
            false => path.clone(),
        },
        "project": digest["project"],
        "git_branch": digest["git_branch"],
        "user_prompts": plain("user_prompts"), "assistant_finals": plain("assistant_finals"),
        "tools_used": tools, "skills_used": digest["skills_used"],
    })
}

/// A tool's name as the original writes it; ours stays as logged.
fn cleaned(name: &str) -> String {
    let mut clean = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() || "_.:-".contains(letter) {
            clean.push(letter);
        } else if !clean.ends_with('\u{1}') {
            clean.push('\u{1}');
        }
    }
    clean.replace('\u{1}', "_").chars().take(80).collect()
}

/// The instant that a text names; one without an offset is UTC here.
fn instant(text: &str) -> Option<Timestamp> {
    text.parse::<Timestamp>()
        .or_else(|_| format!("{text}Z").parse())
        .ok()
}
