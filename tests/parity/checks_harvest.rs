//! Why our sessions differ from recorded digests: each reason takes away what it explains from both
//! sides, and a deviation is sound when nothing is left.
//!
//! `harvest_has_NAME` holds for a vector in which that reason explains something,
//! `harvest_explained` when the reasons that a group's deviations name explain everything.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use super::checks_records::{
    dropped_later, every_answer, kinds_of_records, one_record_family, query_alone,
    requests_of_any_agent, text_is_text, tools_called,
};
use super::checks_scope::resolved;
use super::compare::differences;
use super::logged::{ends_near_the_bound, exists, has_odd_times, plain, records, texts_within};
use super::{Vector, noise};

/// Digests by session.
pub(super) type Digests = BTreeMap<String, Value>;

/// Takes away what a reason explains.
type Reason = fn(&Vector, &mut Digests, &mut Digests);

const REASONS: &[(&str, Reason)] = &[
    ("newest_by_end", newest_by_end),
    ("people_write_it", people_write_it),
    ("programs_write_it", programs_write_it),
    ("sub_agents", sub_agents),
    ("own_runs", own_runs),
    ("one_record_family", one_record_family),
    ("other_places", other_places),
    ("no_lost_neighbour", no_lost_neighbour),
    ("projects_above", projects_above),
    ("folders_of_wanted", folders_of_wanted),
    ("unknown_project", unknown_project),
    ("instants", instants),
    ("text_is_text", text_is_text),
    ("real_times", real_times),
    ("kinds_of_records", kinds_of_records),
    ("requests_of_any_agent", requests_of_any_agent),
    ("dropped_later", dropped_later),
    ("whole_texts", whole_texts),
    ("every_answer", every_answer),
    ("query_alone", query_alone),
    ("tools_called", tools_called),
];

/// The check of deviations about harvesting.
pub(super) const CHECK: &str = "harvest_explained";

/// The conditions of deviations about harvesting.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let (_, reason) = REASONS
        .iter()
        .find(|(known, _)| name.strip_prefix("harvest_has_") == Some(known))?;
    let (mut expected, mut found) = (by_session(&vector.expected), by_session(ours));
    let before = differences(&json!(expected), &json!(found), false);
    reason(vector, &mut expected, &mut found);
    Some(differences(&json!(expected), &json!(found), false) != before)
}

/// Whether the reasons that a group's deviations name explain everything.
pub(super) fn explained(conditions: &[&str], vector: &Vector, ours: &Value) -> bool {
    let (mut expected, mut found) = (by_session(&vector.expected), by_session(ours));
    // No reason makes a session of nothing.
    if !found.keys().all(|session| exists(vector, session)) {
        return false;
    }
    for (name, reason) in REASONS {
        if conditions.contains(&format!("harvest_has_{name}").as_str()) {
            reason(vector, &mut expected, &mut found);
        }
    }
    expected == found
}

fn by_session(digests: &Value) -> Digests {
    let digests = digests.as_array().into_iter().flatten();
    digests
        .map(|digest| {
            let session = digest["session"].as_str().unwrap_or_default();
            (session.to_owned(), digest.clone())
        })
        .collect()
}

pub(super) fn said(digest: &Value, key: &str) -> Vec<String> {
    let texts = digest[key].as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The text of all files or of the database.
fn logged(vector: &Vector) -> String {
    let files = vector.input["files"].as_object().into_iter().flatten();
    let files = files.filter_map(|(_, content)| content.as_str());
    files
        .chain(vector.input["sql"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn logs(vector: &Vector, pattern: &str) -> bool {
    Regex::new(pattern)
        .expect("a pattern")
        .is_match(&logged(vector))
}

fn option<'a>(vector: &'a Vector, name: &str) -> &'a Value {
    &vector.input["options"][name]
}

/// Whether a digest's project is none or one that the session's log names.
pub(super) fn names_its_project(vector: &Vector, digest: &Value) -> bool {
    let session = digest["session"].as_str().unwrap_or_default();
    let project = digest["project"].as_str().unwrap_or_default();
    let log = vector.input["files"][session].as_str().unwrap_or_default();
    project.is_empty() || log.contains(&format!("\"{project}\""))
}

/// Runs over the digests of sessions that both have.
pub(super) fn each_pair(
    expected: &mut Digests,
    found: &mut Digests,
    mut each: impl FnMut(&mut Value, &mut Value),
) {
    for (session, theirs) in expected {
        if let Some(ours) = found.get_mut(session) {
            each(theirs, ours);
        }
    }
}

/// Weakness 12: markup, paths, pasted text and commands that start work are a person's.
fn people_write_it(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let peoples = |text: &String| {
        text.starts_with(['<', '/'])
            || text.contains("<command-")
            || text.starts_with("[Pasted text")
    };
    let commands = logs(vector, "<command-name>");
    each_pair(expected, found, |theirs, ours| {
        let known = said(theirs, "user_prompts");
        let mut kept = said(ours, "user_prompts");
        kept.retain(|text| known.contains(text) || !peoples(text));
        ours["user_prompts"] = json!(kept);
        if commands {
            let known = said(theirs, "skills_used");
            let mut kept = said(ours, "skills_used");
            kept.retain(|name| known.contains(name));
            ours["skills_used"] = json!(kept);
        }
    });
    // A session of nothing else, but for the engine's phrases, is there for us alone.
    found.retain(|session, ours| {
        let prompts = said(ours, "user_prompts");
        let nothing_else = prompts
            .iter()
            .all(|text| peoples(text) || noise::is_engines(text));
        expected.contains_key(session) || !(nothing_else && prompts.iter().any(peoples))
    });
}

/// Weakness 12: what the log marks as a program's is no prompt, nor is the agent's own note that it
/// was interrupted or goes on.
fn programs_write_it(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let flags = ["isMeta", "isSidechain", "isCompactSummary"];
    let is_marked = |record: &&Value| flags.iter().any(|flag| record[*flag] == true);
    let notes = ["[Request interrupted", "This session is being continued"];
    for (session, theirs) in expected.iter_mut() {
        let records = records(vector, session);
        let marked: Vec<&Value> = records.iter().filter(is_marked).collect();
        let texts: Vec<String> = marked
            .iter()
            .flat_map(|record| texts_within(record))
            .collect();
        let ours = found.get(session);
        let kept = ours.map_or(Vec::new(), |ours| said(ours, "user_prompts"));
        let mut known = said(theirs, "user_prompts");
        known.retain(|text| {
            let by_program =
                texts.contains(&plain(text)) || notes.iter().any(|note| text.starts_with(note));
            kept.contains(text) || !by_program
        });
        theirs["user_prompts"] = json!(known);
        if let Some(ours) = ours
            && marked
                .iter()
                .any(|record| record["cwd"] == theirs["project"])
        {
            theirs["project"] = ours["project"].clone();
        }
    }
    expected.retain(|session, theirs| {
        let records = records(vector, session);
        let named = records
            .iter()
            .filter(|record| record["cwd"] == theirs["project"]);
        let named: Vec<&Value> = named.collect();
        // Where it began is known from a program's records alone.
        let by_program = !named.is_empty() && named.iter().all(is_marked);
        let nobody_asked = said(theirs, "user_prompts").is_empty();
        found.contains_key(session) || !(nobody_asked || by_program)
    });
}

/// Weakness 12: what a sub-agent was told is part of the session that started it.
fn sub_agents(_: &Vector, expected: &mut Digests, _: &mut Digests) {
    expected.retain(|session, _| !session.contains("/subagents/"));
}

/// Weaknesses 8 and 14: the original's own calls are left out of every source.
fn own_runs(_: &Vector, expected: &mut Digests, found: &mut Digests) {
    expected.retain(|session, theirs| {
        found.contains_key(session)
            || !said(theirs, "user_prompts")
                .iter()
                .any(|text| noise::is_engines(text))
    });
}

/// Weakness 14 and the readers' tables: live and nested logs and older formats are read too.
fn other_places(_: &Vector, expected: &mut Digests, found: &mut Digests) {
    found.retain(|session, _| {
        let place: Vec<&str> = session.split('/').collect();
        let is_other = match place.as_slice() {
            ["archived_sessions", _] => false,
            ["archived_sessions" | "sessions", .., _] => !session.contains("--"),
            ["workspaceStorage", _, _, rest @ ..] => session.ends_with(".json") || rest.len() > 1,
            ["projects", _, "agent-transcripts", _] => true,
            _ => false,
        };
        expected.contains_key(session) || !is_other
    });
}

/// One bad record costs that record, not the session or all sessions.
fn no_lost_neighbour(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    found.retain(|session, _| {
        expected.contains_key(session) || !noise::is_irregular(vector, session)
    });
}

/// Weakness 10: a session that began above the invoked project is about another one.
fn projects_above(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let invoked = option(vector, "invoked_project")
        .as_str()
        .unwrap_or_default();
    let invoked = invoked.trim_end_matches('/');
    if option(vector, "scope") != "invoked" || invoked.is_empty() {
        return;
    }
    expected.retain(|session, theirs| {
        let project = theirs["project"].as_str().unwrap_or_default();
        let (project, invoked) = (resolved(project), resolved(invoked));
        let above = project != invoked && invoked.starts_with(&project);
        found.contains_key(session) || !above
    });
    // The last of several folders in the project is as good as the first.
    each_pair(expected, found, |theirs, ours| {
        let both = [&*theirs, &*ours].map(|digest| digest["project"].as_str().unwrap_or_default());
        if both.iter().all(|project| project.starts_with(invoked)) {
            theirs["project"] = ours["project"].clone();
        }
    });
}

/// Weakness 16: one rule of scope; the folders of a wanted project are part of it.
fn folders_of_wanted(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let wanted = match option(vector, "scope") {
        Value::Array(listed) => listed.clone(),
        scope if *scope == "invoked" => vec![option(vector, "invoked_project").clone()],
        _ => return,
    };
    found.retain(|session, ours| {
        let project = ours["project"].as_str().unwrap_or_default();
        let wanted = wanted.iter().filter_map(Value::as_str);
        let mut folders = wanted.map(|folder| format!("{}/", folder.trim_end_matches('/')));
        expected.contains_key(session) || !folders.any(|folder| project.starts_with(&folder))
    });
}

/// Weakness 10: a session of an unknown project is one of no project; a folder's name is no path.
fn unknown_project(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let is_remote = logs(vector, r#""vscode-remote:"#);
    found.retain(|session, ours| {
        let project = ours["project"].as_str().unwrap_or_default();
        expected.contains_key(session) || project.starts_with('/') && !is_remote
    });
    each_pair(expected, found, |theirs, ours| {
        let project = theirs["project"].as_str().unwrap_or_default();
        if ours["project"] == "" && !project.starts_with('/') || project.starts_with("//") {
            theirs["project"] = ours["project"].clone();
        }
    });
}

/// Weaknesses 11 and 15: times are compared as instants; a session of that instant counts, one
/// without a known end is known by its beginning, and a bound that is no time is refused.
fn instants(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    if option(vector, "since_iso").is_null() {
        return;
    }
    let is_near =
        |session: &String| exists(vector, session) && ends_near_the_bound(vector, session);
    found.retain(|session, _| expected.contains_key(session) || !is_near(session));
    expected.retain(|session, _| found.contains_key(session) || !is_near(session));
}

/// The newest sessions are those that ended last: a copied file has a new time and an old session.
/// As many are taken, and all of them are there.
fn newest_by_end(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let most = option(vector, "limit").as_u64().unwrap_or_default();
    let all_exist = found.keys().all(|session| exists(vector, session));
    if expected.len() <= found.len() && found.len() as u64 <= most && all_exist {
        found.retain(|session, _| expected.contains_key(session));
        expected.retain(|session, _| found.contains_key(session));
    }
}

/// A time written as a number is one, times out of order span from the first to the last, and one
/// moment says nothing about how long a session took.
fn real_times(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let is_odd = |session: &String| has_odd_times(&records(vector, session));
    found.retain(|session, _| expected.contains_key(session) || !is_odd(session));
    expected.retain(|session, _| found.contains_key(session) || !is_odd(session));
}

/// Texts are kept to the length that configuration says, not to 4000 characters.
fn whole_texts(_: &Vector, expected: &mut Digests, found: &mut Digests) {
    // A mark in place of a longer one makes the rest of a cut text shorter.
    const CUT: usize = 3900;
    let beginning = |text: &str| text.get(..CUT).unwrap_or(text).to_owned();
    each_pair(expected, found, |theirs, ours| {
        for key in ["user_prompts", "assistant_finals"] {
            let texts = said(ours, key).into_iter().zip(said(theirs, key));
            let texts: Vec<String> = texts
                .map(|(ours, theirs)| match theirs.chars().count() {
                    CUT.. if ours.starts_with(&beginning(&theirs)) => theirs,
                    _ => ours,
                })
                .collect();
            if texts.len() == said(ours, key).len() {
                ours[key] = json!(texts);
            }
        }
    });
}
