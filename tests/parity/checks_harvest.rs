//! Why our sessions differ from recorded digests: each reason takes away what it explains from both
//! sides, and a deviation is sound when nothing is left.
//!
//! `harvest_has_NAME` holds for a vector in which that reason explains something,
//! `harvest_explained` when all reasons together explain everything.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use super::checks::resolved;
use super::compare::differences;
use super::logged::{
    has_odd_times, made_texts, plain, records, says_not_what_it_is, texts_within, within,
};
use super::{Vector, noise};

/// Digests by session.
type Digests = BTreeMap<String, Value>;

/// Takes away what a reason explains.
type Reason = fn(&Vector, &mut Digests, &mut Digests);

const REASONS: &[(&str, Reason)] = &[
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
    ("newest_by_end", newest_by_end),
];

/// The conditions of deviations about harvesting.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let reason = name.strip_prefix("harvest_")?;
    let (mut expected, mut found) = (by_session(&vector.expected), by_session(ours));
    if reason == "explained" {
        for (_, reason) in REASONS {
            reason(vector, &mut expected, &mut found);
        }
        return Some(expected == found);
    }
    let (_, reason) = REASONS
        .iter()
        .find(|(known, _)| reason.strip_prefix("has_") == Some(known))?;
    let before = differences(&json!(expected), &json!(found), false);
    reason(vector, &mut expected, &mut found);
    Some(differences(&json!(expected), &json!(found), false) != before)
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

fn said(digest: &Value, key: &str) -> Vec<String> {
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

fn logs(vector: &Vector, pattern: &str) -> bool {
    Regex::new(pattern)
        .expect("a pattern")
        .is_match(&logged(vector))
}

fn option<'a>(vector: &'a Vector, name: &str) -> &'a Value {
    &vector.input["options"][name]
}

/// Runs over the digests of sessions that both have.
fn each_pair(
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
        found.contains_key(session) || !said(theirs, "user_prompts").is_empty()
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

/// Weakness 14: where events and items tell the same conversation, one family is read.
fn one_record_family(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    if !logs(vector, r#""event_msg""#) || !logs(vector, r#""response_item""#) {
        return;
    }
    each_pair(expected, found, |theirs, ours| {
        for key in ["user_prompts", "assistant_finals", "tools_used"] {
            let (known, kept) = (said(theirs, key), said(ours, key));
            if kept.iter().all(|text| known.contains(text)) || key == "assistant_finals" {
                theirs[key] = json!(kept);
            }
        }
    });
    expected.retain(|session, theirs| {
        found.contains_key(session) || said(theirs, "user_prompts").is_empty()
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
    if option(vector, "since_iso").is_null() || !vector_keeps_file_times(vector) {
        return;
    }
    only_shared(expected, found);
}

/// Sources whose bound the original compares by day, by text or strictly.
fn vector_keeps_file_times(vector: &Vector) -> bool {
    let is_database = vector.input["db"] == "session-store.db";
    let since = option(vector, "since_iso").as_str().unwrap_or_default();
    let paths = vector.input["files"].as_object().into_iter().flatten();
    let is_cursor = paths
        .into_iter()
        .any(|(path, _)| path.contains("agent-transcripts"));
    is_database || is_cursor || since.len() < "2026-05-28".len() + 1 || since.ends_with('x')
}

/// The newest sessions are those that ended last: a copied file has a new time and an old session.
fn newest_by_end(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let most = option(vector, "limit").as_i64().unwrap_or_default();
    if most > 0 {
        only_shared(expected, found);
    }
}

fn only_shared(expected: &mut Digests, found: &mut Digests) {
    found.retain(|session, _| expected.contains_key(session));
    expected.retain(|session, _| found.contains_key(session));
}

/// A value that is no text is none where a text belongs; a message that is a text itself is one.
fn text_is_text(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let of_session = |session: &str| match vector.input["files"].get(session) {
        Some(_) => records(vector, session),
        None => all_records(vector),
    };
    for (session, theirs) in expected.iter_mut() {
        let made = made_texts(&of_session(session));
        for key in ["user_prompts", "assistant_finals", "tools_used"] {
            let mut known = said(theirs, key);
            known.retain(|text| !made.contains(text));
            theirs[key] = json!(known);
        }
        let project = theirs["project"].as_str().unwrap_or_default();
        if let Some(ours) = found.get(session)
            && made.contains(project)
        {
            theirs["project"] = ours["project"].clone();
        }
    }
    expected.retain(|session, theirs| {
        found.contains_key(session) || !said(theirs, "user_prompts").is_empty()
    });
    for (session, ours) in found.iter_mut() {
        let records = records(vector, session);
        let requests = records.iter().flat_map(within);
        let requests = requests.filter(|value| value.get("agent").is_some());
        let whole: Vec<String> = requests
            .filter_map(|request| request["message"].as_str().map(plain))
            .collect();
        let known = expected.get(session);
        let known = known.map_or(Vec::new(), |theirs| said(theirs, "user_prompts"));
        let mut kept = said(ours, "user_prompts");
        kept.retain(|text| known.contains(text) || !whole.contains(&plain(text)));
        ours["user_prompts"] = json!(kept);
    }
}

/// The values in the files of a vector that are one JSON document each.
fn all_records(vector: &Vector) -> Vec<Value> {
    let files = vector.input["files"].as_object().into_iter().flatten();
    let files = files.filter_map(|(_, content)| content.as_str());
    files
        .filter_map(|content| serde_json::from_str(content).ok())
        .collect()
}

/// A time written as a number is one, times out of order span from the first to the last, and one
/// moment says nothing about how long a session took.
fn real_times(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let is_odd = |session: &String| has_odd_times(&records(vector, session));
    found.retain(|session, _| expected.contains_key(session) || !is_odd(session));
    expected.retain(|session, _| found.contains_key(session) || !is_odd(session));
}

/// What a record does not say to be, is not made of it: its texts count on neither side.
fn kinds_of_records(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    if !logs(vector, r#""type": "(user|event_msg|response_item)""#) {
        return;
    }
    let texts_of = |session: &str| -> Vec<String> {
        let records = records(vector, session);
        let odd = records.iter().filter(|record| says_not_what_it_is(record));
        odd.flat_map(texts_within).collect()
    };
    each_pair(expected, found, |theirs, ours| {
        let session = theirs["session"].as_str().unwrap_or_default();
        let project = theirs["project"].as_str().unwrap_or_default();
        if texts_of(session).contains(&plain(project)) {
            theirs["project"] = ours["project"].clone();
        }
    });
    for digests in [&mut *expected, &mut *found] {
        for (session, digest) in digests.iter_mut() {
            let texts = texts_of(session);
            for key in ["user_prompts", "assistant_finals", "tools_used"] {
                let mut kept = said(digest, key);
                kept.retain(|text| !texts.contains(&plain(text)));
                digest[key] = json!(kept);
            }
        }
        digests.retain(|_, digest| !said(digest, "user_prompts").is_empty());
    }
}

/// A request of the editor's chat counts unless it names another extension, and what was done for
/// one counts whatever its text looks like.
fn requests_of_any_agent(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let is_known = |request: &Value| {
        let extension = &request["agent"]["extensionId"];
        let name = extension.as_str().or(extension["_lower"].as_str());
        let name = name.or(extension["value"].as_str());
        let text = request["message"]["text"].as_str().unwrap_or_default();
        name.is_some_and(|name| name.eq_ignore_ascii_case("github.copilot-chat"))
            && !text.trim().is_empty()
            && !text.trim().starts_with(['<', '/', '['])
    };
    for (session, ours) in found.iter_mut() {
        let records = records(vector, session);
        let requests = records.iter().flat_map(within);
        let requests =
            requests.filter(|value| value.get("agent").is_some() && value.get("message").is_some());
        let texts: Vec<String> = requests
            .filter(|request| !is_known(request))
            .flat_map(texts_within)
            .collect();
        let theirs = expected.get(session);
        for key in ["user_prompts", "tools_used"] {
            let known = theirs.map_or(Vec::new(), |theirs| said(theirs, key));
            let mut kept = said(ours, key);
            kept.retain(|text| known.contains(text) || !texts.contains(&plain(text)));
            ours[key] = json!(kept);
        }
    }
    found.retain(|session, ours| {
        expected.contains_key(session) || !said(ours, "user_prompts").is_empty()
    });
}

/// Converted transcripts are read as another agent's logs next, and what is no prompt there is
/// dropped then. Ours drops it at once.
fn dropped_later(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    if vector.expected.get("outputs").is_none() && vector.input.get("workspaces").is_none() {
        return;
    }
    let is_dropped = |text: &String| {
        let few_words = text.split_whitespace().count() <= 3;
        text.starts_with('<') && text.ends_with('>')
            || text.starts_with('/') && few_words
            || ["[Pasted text", "Caveat:", "# /"]
                .iter()
                .any(|opening| text.starts_with(opening))
            || text.contains("<command-")
    };
    for digests in [&mut *expected, &mut *found] {
        for digest in digests.values_mut() {
            let mut kept = said(digest, "user_prompts");
            kept.retain(|text| !is_dropped(text));
            digest["user_prompts"] = json!(kept);
        }
        digests.retain(|_, digest| !said(digest, "user_prompts").is_empty());
    }
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

/// Weakness 17: no answer is lost, whatever it looks like, and each text of a message stands for
/// itself.
fn every_answer(_: &Vector, expected: &mut Digests, found: &mut Digests) {
    each_pair(expected, found, |theirs, ours| {
        let (known, kept) = (
            said(theirs, "assistant_finals"),
            said(ours, "assistant_finals"),
        );
        let ours_has =
            |text: &String| kept.contains(text) || kept.join("\n").contains(text.as_str());
        // Five answers are compared: those that ours has more push the oldest ones out.
        let missing = known.iter().filter(|text| !ours_has(text)).count();
        if kept.len() > known.len() && missing == 0 || kept.len() == 5 && missing < known.len() {
            theirs["assistant_finals"] = json!(kept);
        }
    });
}

/// What a person asked is what stands between the tags of the query.
fn query_alone(_: &Vector, expected: &mut Digests, found: &mut Digests) {
    each_pair(expected, found, |theirs, ours| {
        let known = said(theirs, "user_prompts");
        let kept = said(ours, "user_prompts");
        let parts = |text: &String| {
            let parts = text.split(['\n', '<']).map(str::trim).map(str::to_owned);
            parts.collect::<Vec<_>>()
        };
        let tagged = known.iter().any(|text| text.contains("user_query>"));
        let whole = known.join("\n");
        if tagged
            && kept
                .iter()
                .flat_map(parts)
                .all(|part| whole.contains(&part))
        {
            theirs["user_prompts"] = json!(kept);
        }
    });
}

/// Weakness 14: a tool is what a record of a call names.
fn tools_called(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let odd = logs(
        vector,
        r#"_end"|_tool_call"|"name": [0-9]|"type": "x"|"type": "(function|custom_tool|web_search|tool_search)_call""#,
    );
    if odd {
        each_pair(expected, found, |theirs, ours| {
            theirs["tools_used"] = ours["tools_used"].clone();
        });
    }
}
