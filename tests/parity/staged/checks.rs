//! What must hold where our outcome differs from the recorded one.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use super::super::Vector;
use super::super::compare::differences;

/// The results that hold files.
const FILES: [&str; 5] = [
    "files",
    "after",
    "after_again",
    "after_recovery",
    "after_crash",
];

/// Whether the named condition holds for a vector and our outcome.
pub(in super::super) fn holds(name: &str, vector: &Vector, ours: &Value) -> bool {
    let (input, expected) = (&vector.input, &vector.expected);
    match name {
        "staged_forged" => !forged(input).is_empty() || touches_the_manifest(input),
        "staged_as_root" => {
            let probe = tempfile::tempfile().and_then(|file| file.metadata());
            probe.is_ok_and(|metadata| metadata.uid() == 0)
        }
        "staged_only_allowed" => only_allowed_texts(input, ours),
        "staged_nothing_adopted" => {
            let proposed = proposed(input);
            texts(ours).all(|(_, text)| !proposed.iter().any(|(_, _, other)| other == text))
        }
        "staged_no_file_changed" => {
            differences(&original(input), &plain(&ours["files"]), false).is_empty()
        }
        "staged_refused" => ours["staged"].get("refused").is_some(),
        "staged_new_file_modes" => {
            let mut settled = expected.clone();
            for key in FILES {
                usual_modes(input, &mut settled[key]);
            }
            let mut ours = ours.clone();
            for key in FILES {
                // Indexing made the keys that only one of the two has.
                if ours.get(key).is_none() {
                    ours[key] = Value::Null;
                }
            }
            differences(&settled, &ours, false).is_empty()
        }
        "staged_recovered" => {
            ours["recovery"] == json!({"done": true})
                && texts_of(&ours["after_recovery"]).all(|(path, text)| {
                    original(input)
                        .get(path)
                        .is_none_or(|original| original == text)
                })
                && original(input)
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(path, _)| ours["after_recovery"].get(path).is_some())
        }
        "staged_left_alone" => ["after", "after_recovery"]
            .iter()
            .all(|key| ours.get(key) == expected.get(key)),
        "staged_same_but_final_newline" => {
            let trimmed = |files: &Value| -> Vec<(String, String)> {
                let texts = texts_of(files);
                texts
                    .map(|(path, text)| (path.clone(), text.trim_end().to_owned()))
                    .collect()
            };
            trimmed(&ours["files"]) == trimmed(&expected["files"])
        }
        "staged_names_collide" => {
            let kind = expected["error"].as_str().unwrap_or_default();
            ["proposal_file_collision", "skill_name_duplicate"].contains(&kind)
        }
        "staged_dir_mismatch" => expected["error"] == "live_dir_mismatch",
        "staged_rows" => ours.as_array().map_or(0, Vec::len) == list(input, "proposals").count(),
        "staged_rows_refused" => ours.get("error").is_some(),
        "staged_pointer" => !input["pointer"].is_null(),
        "staged_all_listed" => ours["listed"] == expected["listed"] && ours["night"].is_string(),
        "staged_hidden_text" => {
            let text = input["text"].as_str().unwrap_or_default();
            skillopt_staging::has_hidden(text) || text.contains(['\n', '\t'])
        }
        "staged_state_of_original" => {
            let counts = |operation: &Value| operation["op"] == "begin_night";
            !input["file"].is_null() || !list(input, "ops").any(counts)
        }
        "staged_not_taken" => ours.get("error").is_some(),
        "staged_lock_ok" => ours == &json!({"ok": true}),
        "staged_not_read" => ours == &json!({"read": false}),
        "staged_one_word" => ours["word"]
            .as_str()
            .is_some_and(|word| !skillopt_staging::has_hidden(word)),
        other => panic!("no condition {other}"),
    }
}

fn list<'t>(value: &'t Value, key: &str) -> impl Iterator<Item = &'t Value> {
    value[key].as_array().into_iter().flatten()
}

/// What somebody did, before or in between.
fn changes(input: &Value) -> impl Iterator<Item = &Value> {
    let also = list(&input["fail"], "also");
    list(input, "mutate").chain(list(input, "then")).chain(also)
}

fn touches_the_manifest(input: &Value) -> bool {
    changes(input).any(|change| change["path"] == "$NIGHT/manifest.json")
}

/// The rows whose record or text somebody edited: `skills/0`, `legacy/memory`.
fn forged(input: &Value) -> BTreeSet<String> {
    changes(input)
        .filter(|change| change["op"] == "json" || change["op"] == "rehash")
        .filter_map(|change| change["pointer"].as_str())
        .map(|pointer| {
            let parts: Vec<&str> = pointer.split('/').skip(1).take(2).collect();
            parts.join("/")
        })
        .collect()
}

/// The proposals: row, document, text.
fn proposed(input: &Value) -> Vec<(String, String, String)> {
    let stage = &input["stage"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skills = list(stage, "skills").enumerate().map(|(number, row)| {
        (
            format!("skills/{number}"),
            text(&row["live_skill_path"]),
            text(&row["proposed_skill"]),
        )
    });
    let managed = [
        (
            "legacy/skill",
            "managed_skill",
            "/home/dev/managed/m/SKILL.md",
        ),
        ("legacy/memory", "memory", "/home/dev/proj/CLAUDE.md"),
    ];
    let managed = managed
        .into_iter()
        .filter(|(_, key, _)| stage[key].is_string());
    skills
        .chain(managed.map(|(row, key, path)| (row.to_owned(), path.to_owned(), text(&stage[key]))))
        .collect()
}

/// The files as they were, by path.
fn original(input: &Value) -> Value {
    let files = list(input, "tree").filter(|entry| entry["text"].is_string());
    files
        .map(|entry| {
            (
                entry["path"].as_str().unwrap_or_default().to_owned(),
                entry["text"].clone(),
            )
        })
        .filter(|(path, _)| !path.contains("/.skillopt-sleep/"))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}

/// Path and text of every file in one of our results.
fn texts_of(files: &Value) -> impl Iterator<Item = (&String, &str)> {
    let files = files.as_object().into_iter().flatten();
    files.filter_map(|(path, file)| Some((path, file["text"].as_str()?)))
}

fn texts(ours: &Value) -> impl Iterator<Item = (&String, &str)> {
    FILES
        .iter()
        .filter_map(|key| ours.get(key))
        .flat_map(texts_of)
}

fn plain(files: &Value) -> Value {
    let texts = texts_of(files);
    texts
        .map(|(path, text)| (path.clone(), json!(text)))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}

/// Every document holds what it held, what somebody wrote there, or the text that was approved for
/// it, unless its record was edited since. Nothing else was written anywhere.
fn only_allowed_texts(input: &Value, ours: &Value) -> bool {
    let forged = forged(input);
    let is_forged = |row: &str| {
        let whole = row.split('/').next().unwrap_or_default();
        forged.contains(row) || forged.contains(whole)
    };
    let approved = proposed(input);
    let before = original(input);
    let by_somebody: BTreeSet<&str> = changes(input)
        .filter(|change| {
            !change["path"]
                .as_str()
                .unwrap_or_default()
                .starts_with("$NIGHT")
        })
        .filter_map(|change| change["text"].as_str())
        .chain(
            before
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(_, text)| text.as_str()),
        )
        .collect();
    // A second name of one of our records, made by somebody.
    let record = |text: &str| text.contains("\"skillopt-sleep.") || text.contains("\"proposed\"");
    texts(ours).all(|(path, text)| {
        let adopted = approved
            .iter()
            .any(|(row, live, proposed)| live == path && proposed == text && !is_forged(row));
        // Elsewhere only what was moved or linked there.
        let elsewhere = !approved.iter().any(|(_, live, _)| live == path)
            && approved.iter().any(|(_, _, proposed)| proposed == text)
            && changes(input)
                .any(|change| change["to"] == path.as_str() || change["path"] == path.as_str());
        by_somebody.contains(text) || adopted || elsewhere || record(text)
    })
}

/// New files have the mode that the process gives to any new file, not the original's `0600`.
fn usual_modes(input: &Value, files: &mut Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let probe = folder.path().join("probe");
    std::fs::write(&probe, "x").expect("a file");
    let mode = std::fs::metadata(&probe)
        .expect("its mode")
        .permissions()
        .mode()
        & 0o7777;
    let before = original(input);
    for (path, file) in files.as_object_mut().into_iter().flatten() {
        if before.get(path).is_none() && file["mode"] == "0600" {
            file["mode"] = json!(format!("{mode:04o}"));
        }
    }
}
