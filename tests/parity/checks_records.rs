//! Why our sessions differ from recorded digests, as far as it is about what a record is and says:
//! which records are read, and which of their texts are prompts, answers and tools.

use serde_json::{Value, json};

use super::Vector;
use super::checks_harvest::{Digests, each_pair, logs, names_its_project, said};
use super::harvest::cleaned;
use super::logged::{made_texts, plain, records, says_not_what_it_is, texts_within, within};
use super::redaction::differ_by_marks;

/// Weakness 14: where events and items tell the same conversation, one family is read.
pub(super) fn one_record_family(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    if !logs(vector, r#""event_msg""#) || !logs(vector, r#""response_item""#) {
        return;
    }
    each_pair(expected, found, |theirs, ours| {
        let records = records(vector, theirs["session"].as_str().unwrap_or_default());
        let logged: Vec<String> = records.iter().flat_map(texts_within).collect();
        let is_logged = |text: &String| logged.iter().any(|logged| logged.contains(text.as_str()));
        let of_family = |kind: &str| -> Vec<String> {
            let records = records.iter().filter(|record| record["type"] == kind);
            records.flat_map(texts_within).collect()
        };
        let families = [of_family("event_msg"), of_family("response_item")];
        for key in ["user_prompts", "assistant_finals", "tools_used"] {
            let (known, kept) = (said(theirs, key), said(ours, key));
            // All that the original has of the family that is read: events where they tell it.
            let tells = |family: &[String], text: &str| {
                let same = |told: &String| told.contains(text) || differ_by_marks(told, text);
                family.iter().any(same)
            };
            let is_told = |family: &&Vec<String>| known.iter().any(|text| tells(family, text));
            let is_whole = families.iter().find(is_told).is_none_or(|family| {
                let mut of_family = known.iter().filter(|text| tells(family, text));
                of_family.all(|text| kept.contains(text))
            });
            let is_sound = match key {
                "user_prompts" => is_whole && kept.iter().all(|text| known.contains(text)),
                "tools_used" => kept.iter().all(|text| known.contains(text)),
                // Five are kept: without those said twice, older ones come into view.
                _ => {
                    kept.is_empty() == known.is_empty()
                        && kept.iter().all(|text| is_logged(&plain(text)))
                }
            };
            if is_sound {
                theirs[key] = json!(kept);
            }
        }
    });
    // Where events tell of answers alone, nobody asked anything.
    expected.retain(|session, theirs| {
        let records = records(vector, session);
        let events = records
            .iter()
            .filter(|record| record["type"] == "event_msg");
        let events: Vec<String> = events.flat_map(texts_within).collect();
        let mut asked = said(theirs, "user_prompts").into_iter();
        found.contains_key(session)
            || events.is_empty()
            || asked.any(|text| events.contains(&plain(&text)))
    });
}

/// A value that is no text is none where a text belongs; a message that is a text itself is one.
pub(super) fn text_is_text(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let of_session = |session: &str| match vector.input["files"].get(session) {
        Some(_) => records(vector, session),
        None => all_records(vector),
    };
    for (session, theirs) in expected.iter_mut() {
        let made = made_texts(&of_session(session));
        for key in ["user_prompts", "assistant_finals", "tools_used"] {
            let mut known = said(theirs, key);
            known.retain(|text| !made.contains(text));
            if theirs.get(key).is_some() {
                theirs[key] = json!(known);
            }
        }
        let project = theirs["project"].as_str().unwrap_or_default();
        if let Some(ours) = found.get(session)
            && made.contains(project)
            && names_its_project(vector, ours)
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

/// What a record does not say to be, is not made of it: its texts count on neither side.
pub(super) fn kinds_of_records(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
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
        if texts_of(session).contains(&plain(project)) && names_its_project(vector, ours) {
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
pub(super) fn requests_of_any_agent(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
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
pub(super) fn dropped_later(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
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

/// Weakness 17: no answer is lost, whatever it looks like, and each text of a message stands for
/// itself.
pub(super) fn every_answer(_: &Vector, expected: &mut Digests, found: &mut Digests) {
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
pub(super) fn query_alone(_: &Vector, expected: &mut Digests, found: &mut Digests) {
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
pub(super) fn tools_called(vector: &Vector, expected: &mut Digests, found: &mut Digests) {
    let odd = logs(
        vector,
        r#"_end"|_tool_call"|"name": [0-9]|"type": "x"|"type": "(function|custom_tool|web_search|tool_search)_call""#,
    );
    if odd {
        each_pair(expected, found, |theirs, ours| {
            let records = records(vector, theirs["session"].as_str().unwrap_or_default());
            let logged = records.iter().flat_map(texts_within);
            let logged: Vec<String> = logged.map(|text| cleaned(&text)).collect();
            let (known, called) = (said(theirs, "tools_used"), said(ours, "tools_used"));
            if called
                .iter()
                .all(|tool| logged.contains(tool) || known.contains(tool))
            {
                theirs["tools_used"] = json!(called);
            }
        });
    }
}
