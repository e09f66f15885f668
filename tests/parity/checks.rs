//! What the deviations refer to: when a vector is of some kind, and what must hold for our result.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use skillopt_sleep::skill::region;

use super::compare::differences;
use super::{Vector, block, staged, trace_sound};

/// Whether a file among the vectors is data for other groups rather than a group.
pub(super) fn is_data(group: &str) -> bool {
    group == "bench/officeqa_corpus"
}

/// Whether the named condition holds for a vector and our result.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> bool {
    if name.starts_with("trace_") {
        return trace_sound::holds(name, vector, ours);
    }
    if name.starts_with("staged_") {
        return staged::holds(name, vector, ours);
    }
    let input = &vector.input;
    let expected = &vector.expected;
    match name {
        // Documents and their regions.
        "original_breaks_region" => {
            regions(&expected["skill"]) != regions(&input["skill"])
                || markers(&expected["skill"]) > markers(&input["skill"])
        }
        "no_operation" => edits(input)
            .iter()
            .any(|edit| edit.is_object() && !edit["op"].is_string()),
        "regions_kept" => regions(&ours["skill"]) == regions(&input["skill"]),
        "content_has_marker" => strings(input)
            .iter()
            .any(|text| without_document(input, text) && has_marker(text)),
        "no_marker_from_content" => markers(&ours["skill"]) <= 2 + markers(&input["skill"]),
        "end_marker_first" => end_marker_first(input["skill"].as_str().unwrap_or_default()),
        "reads_the_only_region" => {
            let content = ours["content"].as_str().unwrap_or_default();
            regions(&input["skill"]).len() == 1 && regions(&input["skill"])[0].contains(content)
        }
        // Reflection.
        "cached_patches" => input["cached_patch_files"]
            .as_object()
            .is_some_and(|files| !files.is_empty()),
        "every_group_is_asked" => asks_every_group(input, ours),
        "every_call_fails" => input["replies_in_call_order"]
            .as_array()
            .is_some_and(|replies| {
                !replies.is_empty() && replies.iter().all(|reply| reply.get("raise").is_some())
            }),
        "run_stops" => ours.get("error").is_some(),
        "bare_patch" => input["replies_in_call_order"]
            .as_array()
            .is_some_and(|replies| {
                replies
                    .iter()
                    .any(|reply| reply.get("patch").is_none() && !items(reply).is_empty())
            }),
        "patch_is_read" => {
            ours["raw_patches"].as_array().map_or(0, Vec::len)
                >= expected["raw_patches"].as_array().map_or(0, Vec::len)
        }
        "one_side_only" => ours["raw_patches"].as_array().is_some_and(|patches| {
            patches
                .iter()
                .all(|patch| patch["source_type"] == "failure")
        }),
        "goes_on" => ours.get("error").is_none(),
        // Learning rate and selection.
        "min_above_max" => input["min_lr"].as_u64() > input["max_lr"].as_u64(),
        "never_above_max" => {
            budgets(ours).all(|budget| budget <= input["max_lr"].as_u64().unwrap_or(0))
        }
        "no_budget" => input["max_edits"].as_i64() <= Some(0),
        "nothing_selected_without_a_call" => {
            ours["selected"] == json!([]) && ours["llm_calls"] == json!([])
        }
        // Merge and patches.
        "a_reply_is_empty" => empty_reply(input),
        "nothing_is_lost" => {
            items(&ours["merged"]).len() >= items(&expected["merged"]).len()
                && !items(&ours["merged"]).is_empty()
        }
        "items_not_objects" => !all_items(input).iter().all(|item| item.is_object()),
        "only_objects" => all_items(ours).iter().all(|item| item.is_object()),
        "support_is_a_number" => all_items(ours)
            .iter()
            .all(|item| item["support_count"].as_u64() >= Some(1)),
        "has_null" => strings_of_null(input),
        "says_no_none" => !ours.to_string().contains("None") && !ours.to_string().contains("null"),
        // Records.
        "edit_has_other_fields" => input["dict"].as_object().is_some_and(|dict| {
            let known = [
                "op",
                "content",
                "target",
                "support_count",
                "source_type",
                "merge_level",
            ];
            let origin = ["update_origin", "update_target"];
            dict.keys()
                .any(|key| !known.contains(&key.as_str()) && !origin.contains(&key.as_str()))
        }),
        "patch_has_other_items" => input["dict"]["edits"]
            .as_array()
            .is_some_and(|items| items.iter().any(|item| !item.is_object())),
        // JSON in replies.
        "array_expected" => {
            vector.expected_with_repair.as_ref().unwrap_or(expected)["value"].is_array()
        }
        "object_or_nothing" => ours["value"].is_object() || ours["value"].is_null(),
        "one_object_parses" => {
            only_object(input["text"].as_str().unwrap_or_default()) == Some(ours["value"].clone())
        }
        "has_every_key" => {
            let wanted = vector.expected_with_repair.as_ref().unwrap_or(expected)["value"].clone();
            wanted
                .as_object()
                .is_some_and(|object| object.keys().all(|key| !ours["value"][key].is_null()))
        }
        "not_a_number" => ["NaN", "Infinity"]
            .iter()
            .any(|word| input.to_string().contains(word)),
        // Feedback and judges.
        "phrase_in_a_word" => expected
            .as_array()
            .is_some_and(|signals| signals.iter().any(|signal| !at_a_word(input, signal))),
        "signals_at_words" => {
            let known: Vec<Value> = expected.as_array().cloned().unwrap_or_default();
            let apostrophe = |signal: &Value| signal.as_str().is_some_and(|s| s.contains('\''));
            let mut ours: Vec<Value> = ours.as_array().cloned().unwrap_or_default();
            ours.retain(|signal| {
                known.contains(signal) || !(apostrophe(signal) && at_a_word(input, signal))
            });
            ours == known
                .into_iter()
                .filter(|signal| at_a_word(input, signal))
                .collect::<Vec<_>>()
        }
        "typographic_apostrophe" => input["text"]
            .as_str()
            .unwrap_or_default()
            .contains(['’', '‘']),
        "needs_backtracking" => checks_of(input).iter().any(needs_backtracking),
        "unknown_operator" => checks_of(input)
            .iter()
            .any(|check| unknown_operator(&check["op"])),
        "reported_invalid" => ours["pass"] == json!(false) && ours["invalid"] == json!(true),
        "invalid_checks_do_not_pass" => invalid_checks_do_not_pass(vector, ours),
        "stricter" => {
            ours["exact"].as_f64() <= expected["exact"].as_f64()
                && ours["keyword_soft"].as_f64() <= expected["keyword_soft"].as_f64()
        }
        "one_line_sections" => {
            ours == &json!({"pass": false, "invalid": false}) && input["op"] == "section_present"
        }
        "unmeasured_is_left_out" => unmeasured_is_left_out(vector, ours),
        "tiny_credit" => scores(input, "hard")
            .iter()
            .any(|score| *score > 0.0 && *score < 1e-9),
        "tiny_credit_is_failure" => {
            ours["counts"]["improved"].as_u64() <= expected["counts"]["improved"].as_u64()
        }
        // Replies of the optimizer and the judge.
        "other_digits" => strings(input)
            .iter()
            .any(|text| text.chars().any(|c| c.is_numeric() && !c.is_ascii())),
        "fenced_array" => input["reply"]
            .as_str()
            .is_some_and(|reply| reply.starts_with("```json\n[")),
        "schedule_decides" => ours["decision"]["fallback"] == json!(true),
        "not_plain_text" => not_plain_text(&input["reply"]),
        "no_made_up_text" => {
            ours["result"].is_null() || !ours["result"].to_string().contains("None")
        }
        "no_grade" => !reply_score(input).is_some_and(|score| (0.0..=1.0).contains(&score)),
        "not_measured" => ours["parse_failed"] == json!(true),
        "array_in_object" => {
            input["kind"] == "array"
                && input["text"]
                    .as_str()
                    .is_some_and(|text| text.trim().starts_with('{'))
        }
        "nothing_found" => ours["found"] == json!(false),
        // The learnt block.
        "project_is_above" => {
            let wanted = wanted_folders(input);
            let project = resolved(input["project"].as_str().unwrap_or_default());
            let is_above = |folder: &PathBuf| *folder != project && folder.starts_with(&project);
            wanted.iter().any(is_above)
        }
        "project_is_below" => {
            let project = resolved(input["project"].as_str().unwrap_or_default());
            let mut wanted = wanted_folders(input).into_iter();
            wanted.any(|folder| project != folder && project.starts_with(folder))
        }
        "project_is_unknown" => input["project"] == "",
        "left_out" => ours == &json!(false),
        "two_slashes" => input["project"]
            .as_str()
            .is_some_and(|project| project.starts_with("//")),
        "taken_in" => ours == &json!(true),
        "writes_a_block" => input["document"].is_string(),
        "block_is_edited_in_place" => block::edited_in_place(vector, ours),
        "starts_a_skill" => input["scaffold"].is_string(),
        "scaffold_reads_back" => block::scaffold_reads_back(vector, ours),
        "one_slow_region_at_most" => block::one_slow_region_at_most(vector, ours),
        // Names and texts of staging.
        "name_refused_for_staging" => {
            ours["accepted_for_staging"] == json!(false)
                && ours["accepted_by_resolver"] == expected["accepted_by_resolver"]
        }
        "note_on_one_line" => is_plain_line(&ours["note"]),
        "rendered_on_one_line" => is_plain_line(&ours["rendered"]),
        _ => super::checks_data::holds(name, vector, ours)
            .or_else(|| super::checks_harvest::holds(name, vector, ours))
            .or_else(|| super::noise::holds(name, vector, ours))
            .or_else(|| super::redaction::holds(name, vector, ours))
            .or_else(|| super::tasks::holds(name, vector, ours))
            .unwrap_or_else(|| panic!("no such condition: {name}")),
    }
}

fn regions(document: &Value) -> Vec<String> {
    let document = document.as_str().unwrap_or_default();
    region::regions(document)
        .into_iter()
        .map(|region| document[region.span].to_owned())
        .collect()
}

fn markers(document: &Value) -> usize {
    let document = document.as_str().unwrap_or_default();
    document.matches("<!-- SLOW_UPDATE_").count() + document.matches("<!-- APPENDIX_").count()
}

/// The edit, or the edits, of an input.
fn edits(input: &Value) -> Vec<Value> {
    input["edits"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![input["edit"].clone()])
}

fn has_marker(text: &str) -> bool {
    region::without_markers(text) != text
}

/// Every text in a value.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

fn without_document(input: &Value, text: &str) -> bool {
    input["skill"].as_str() != Some(text) && input["document"].as_str() != Some(text)
}

fn strings_of_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(strings_of_null),
        Value::Object(fields) => fields.values().any(strings_of_null),
        _ => false,
    }
}

fn end_marker_first(document: &str) -> bool {
    match (document.find("_END -->"), document.find("_START -->")) {
        (Some(end), Some(start)) => end < start,
        _ => false,
    }
}

fn budgets(result: &Value) -> impl Iterator<Item = u64> {
    result["budgets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
}

const PAYLOADS: [&str; 3] = ["edits", "revise_suggestions", "skill_candidates"];

fn items(patch: &Value) -> Vec<Value> {
    PAYLOADS
        .iter()
        .filter_map(|key| patch[*key].as_array())
        .flatten()
        .cloned()
        .collect()
}

/// The items of every patch anywhere in a value.
fn all_items(value: &Value) -> Vec<Value> {
    let mut found = items(value);
    match value {
        Value::Array(values) => found.extend(values.iter().flat_map(all_items)),
        Value::Object(fields) => found.extend(fields.values().flat_map(all_items)),
        _ => {}
    }
    found
}

/// Every minibatch is a call of its own: a finished one is answered by the journal, by its content
/// rather than by its number.
fn asks_every_group(input: &Value, ours: &Value) -> bool {
    let size = usize::try_from(input["minibatch_size"].as_u64().unwrap_or(1)).unwrap_or(1);
    let results: Vec<&Value> = input["results"].as_array().into_iter().flatten().collect();
    let passed = results
        .iter()
        .filter(|result| result["hard"].as_f64() >= Some(1e-9))
        .count();
    let groups = passed.div_ceil(size) + (results.len() - passed).div_ceil(size);
    ours["llm_calls"].as_array().map(Vec::len) == Some(groups)
}

fn empty_reply(input: &Value) -> bool {
    input["replies"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|reply| PAYLOADS.iter().any(|key| reply[*key] == json!([])))
}

/// The one top-level object of a text, found by trying every opening brace.
fn only_object(text: &str) -> Option<Value> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(next) = text[at..].find('{') {
        let start = at + next;
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                at = start + values.byte_offset();
            }
            _ => at = start + 1,
        }
    }
    <[Value; 1]>::try_from(found).ok().map(|[only]| only)
}

/// The checks of a judge, or the one check that the input is.
fn checks_of(input: &Value) -> Vec<Value> {
    match input["judge"]["checks"].as_array() {
        Some(checks) => checks.clone(),
        None => vec![input.clone()],
    }
}

fn needs_backtracking(check: &Value) -> bool {
    let pattern = check["arg"].as_str().unwrap_or_default();
    let back_reference = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit() && pair[1] != b'0');
    check["op"] == "regex"
        && (back_reference
            || ["(?=", "(?!", "(?<=", "(?<!", "(?P=", "(?>", "(?("]
                .iter()
                .any(|mark| pattern.contains(mark)))
}

fn unknown_operator(op: &Value) -> bool {
    let known: HashSet<&str> = [
        "section_present",
        "section_contains",
        "regex",
        "max_chars",
        "min_chars",
        "contains",
        "not_contains",
        "no_refusal",
        "tool_called",
    ]
    .into();
    op.as_str().is_none_or(|op| !known.contains(op))
}

/// The recorded score, with every check that cannot be carried out counted as failed.
fn invalid_checks_do_not_pass(vector: &Vector, ours: &Value) -> bool {
    let checks = checks_of(&vector.input);
    let invalid = checks
        .iter()
        .filter(|check| !check.is_object() || unknown_operator(&check["op"]))
        .count();
    if vector.expected.get("error").is_some() {
        return ours["hard"] == json!(0.0);
    }
    let soft =
        vector.expected["soft"].as_f64().unwrap_or(0.0) - invalid as f64 / checks.len() as f64;
    let failed = vector.expected["failed"].as_array().map_or(0, Vec::len) + invalid;
    differences(&json!({"hard": 0.0, "soft": soft}), ours, true).is_empty()
        && ours["failed"]
            .as_array()
            .is_some_and(|ours| ours.len() == failed)
}

fn ids_with_scores(rows: &Value) -> HashSet<String> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter(|row| row.get("id").is_some() && !strings_of_null(row))
        .map(|row| {
            row["id"]
                .as_str()
                .map_or_else(|| row["id"].to_string(), str::to_owned)
        })
        .collect()
}

/// The recorded pairs, without those of items that one side did not measure.
fn unmeasured_is_left_out(vector: &Vector, ours: &Value) -> bool {
    let (before, now) = (
        ids_with_scores(&vector.input["prev"]),
        ids_with_scores(&vector.input["curr"]),
    );
    let pairs = ours["pairs"].as_array().cloned().unwrap_or_default();
    let items = vector.input["items"].as_array().map_or(0, Vec::len);
    let measured = |id: &Value| {
        id.as_str()
            .is_some_and(|id| before.contains(id) && now.contains(id))
    };
    if vector.expected.get("error").is_some() {
        return pairs.len() < items && pairs.iter().all(|pair| measured(&pair["id"]));
    }
    let recorded: Vec<Value> = vector.expected["pairs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|pair| measured(&pair["id"]))
        .cloned()
        .collect();
    pairs.len() < items && differences(&json!(recorded), &json!(pairs), false).is_empty()
}

fn scores(value: &Value, key: &str) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| scores(item, key)).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                if name == key {
                    value.as_f64().into_iter().collect()
                } else {
                    scores(value, key)
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn not_plain_text(reply: &Value) -> bool {
    reply.as_object().is_some_and(|fields| {
        [
            "new_skill",
            "slow_update_content",
            "meta_skill_content",
            "reasoning",
        ]
        .iter()
        .filter_map(|key| fields.get(*key))
        .any(|value| value.as_str().is_none_or(|text| text.trim().is_empty()))
    })
}

/// The score in a judge's reply, as far as it is plain.
fn reply_score(input: &Value) -> Option<f64> {
    let reply = input["reply"].as_str()?;
    let object: Value = serde_json::from_str(&reply[reply.find('{')?..=reply.rfind('}')?]).ok()?;
    match &object["score"] {
        Value::String(text) => text.parse().ok(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        other => other.as_f64(),
    }
}

/// Whether a signal's phrase stands at the beginning of a word of the text. A person's own phrases
/// count wherever they stand.
fn at_a_word(input: &Value, signal: &Value) -> bool {
    let plain = |text: &Value| {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        text.replace(['\u{2019}', '\u{2018}', '\u{2bc}'], "'")
    };
    let (said, signal) = (plain(&input["text"]), plain(signal));
    let (tone, phrase) = signal.split_once(':').unwrap_or(("", &signal));
    let own = match tone {
        "neg" => plain(&input["extra_negative"]),
        _ => plain(&input["extra_positive"]),
    };
    own.split(',').any(|own| own.trim() == phrase)
        || said.match_indices(phrase).any(|(at, _)| {
            let before = said[..at].chars().next_back();
            before.is_none_or(|letter| !letter.is_alphanumeric())
        })
}

/// A path as the system would resolve it if it had no links.
pub(super) fn resolved(path: &str) -> PathBuf {
    let mut resolved = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    resolved
}

/// The folders that an input's scope asks for.
fn wanted_folders(input: &Value) -> Vec<PathBuf> {
    let wanted = match input["scope"].as_array() {
        Some(listed) => listed.clone(),
        None => vec![input["invoked_project"].clone()],
    };
    let wanted = wanted.iter().filter_map(Value::as_str);
    wanted
        .filter(|path| !path.is_empty())
        .map(resolved)
        .collect()
}

fn is_plain_line(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|line| !line.contains('\n') && !skillopt_staging::has_hidden(line))
}
