//! Names and records: what can be staged under which name, which records are read, which night is
//! the latest, who may lock.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use skillopt_staging::{
    Approver, StagingArea, collision_key, dry_run, live_path, recover, skill_name,
};

use super::super::Vector;
use super::home::{Home, at, text};

/// Our result: every proposal staged, or an error for the first that cannot be, or for two that
/// cannot be adopted together.
pub(super) fn proposal_rows(vector: &Vector) -> Value {
    let mut home = Home::new(&vector.input);
    let mut skills = Vec::new();
    for row in vector.input["proposals"].as_array().into_iter().flatten() {
        // What a night checks of a name and a path before it reads the document.
        let (name, live) = (text(row, "skill_name"), text(row, "live_skill_path"));
        let (Some(name), Some(live)) = (skill_name(&name), live_path(&live)) else {
            return json!({"error": "a name or path that cannot be used"});
        };
        let mut row = row.clone();
        row["skill_name"] = json!(name);
        row["live_skill_path"] = json!(live);
        skills.push(row);
    }
    let staged = home
        .stage(&json!({"skills": skills}))
        .and_then(|()| home.accept_all());
    if let Err(error) = staged {
        return json!({"error": error.to_string()});
    }
    let ids: Vec<&str> = home
        .night
        .rows()
        .iter()
        .map(|row| row.id.as_str())
        .collect();
    let area = home.area().expect("an area");
    let plan = area.plan(&ids, Approver::Person, at(2)).expect("a plan");
    let preview = dry_run(&plan, &home.state, &home.roots).expect("a preview");
    if let Some((_, refusal)) = preview.refusals.first() {
        return json!({"error": refusal.to_string()});
    }
    let rows = home.night.rows().iter().zip(&preview.writes);
    rows.map(
        |(row, write)| json!({"name": row.name, "live": row.live, "sha256": write.after_sha256}),
    )
    .collect()
}

/// Of the recorded rows, what is not the name of a file of the original's.
pub(super) fn recorded_rows(vector: &Vector) -> Value {
    let expected = &vector.expected;
    let Some(rows) = expected["rows"].as_array() else {
        return expected.clone();
    };
    rows.iter()
        .map(|row| {
            json!({"name": row["skill_name"], "live": row["live_skill_path"], "sha256": row["sha256"]})
        })
        .collect()
}

/// Whether the record of a proposal with the same fault is read.
pub(super) fn manifest_checks(vector: &Vector) -> Value {
    let mut home = Home::new(&json!({}));
    let skill = json!({
        "skill_name": "s", "proposed_skill": "x\n", "live_skill_path": "/home/dev/s/s/SKILL.md",
    });
    home.stage(&json!({"skills": [skill]})).expect("a night");
    let file = home.night.places("$NIGHT/manifest.json").remove(0);
    if let Some(text) = vector.input["manifest_text"].as_str() {
        fs::write(&file, text).expect("our own record");
    } else {
        let manifest = &vector.input["manifest"];
        let mut record: Value =
            serde_json::from_slice(&fs::read(&file).expect("our record")).expect("a record");
        // The original's version 2 is our version 1, and a foreign name is no version of ours.
        let old = manifest.get("schema").is_none() && manifest.get("schema_version").is_none();
        match &manifest["schema_version"] {
            _ if old => {}
            _ if manifest["schema"] != "skillopt-sleep-staging" => record["format"] = Value::Null,
            Value::Number(version) if version.is_u64() => {
                record["format"] = json!(version.as_u64().expect("a number") - 1);
            }
            Value::Number(_) => record["format"] = json!(1.0),
            Value::Null => drop(record.as_object_mut().expect("a record").remove("format")),
            other => record["format"] = other.clone(),
        }
        record["unknown"] = json!("kept");
        fs::write(&file, record.to_string()).expect("our own record");
    }
    let listing = home.area().and_then(|area| area.list()).expect("a listing");
    json!({"read": listing.staged.len() == 1})
}

/// What the original's reader of rows does with the manifest.
pub(super) fn recorded_reader(vector: &Vector) -> Value {
    json!({"read": vector.expected["skills"].get("error").is_none()})
}

/// The night of the newest proposal.
pub(super) fn latest_night(vector: &Vector) -> Value {
    let home = Home::new(&json!({}));
    let root = home.state.join("staging");
    for (position, night) in vector.input["nights"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let name = text(night, "dir");
        let folder = root.join(&name);
        let age = night["age"].as_i64().unwrap_or(position as i64);
        if let Some(target) = night["symlink"].as_str() {
            // A sound night, but somewhere else.
            let area = StagingArea::open(&home.path.join("other")).expect("an area");
            stage_night(&home, &area, &name, age);
            let elsewhere = home.here(target);
            fs::rename(area.root().join(&name), &elsewhere).expect("a night elsewhere");
            symlink(elsewhere, folder).expect("a link to it");
        } else if night["manifest"] == false || !is_night(&name) {
            fs::create_dir_all(folder.join("notes")).expect("somebody's folder");
        } else {
            stage_night(&home, &home.area().expect("an area"), &name, age);
        }
    }
    let listing = home.area().and_then(|area| area.list()).expect("a listing");
    json!({
        "night": listing.staged.last().map(|staged| staged.proposal.night.as_str()),
        "listed": listing.staged.len(),
    })
}

fn stage_night(home: &Home, area: &StagingArea, name: &str, age: i64) {
    let mut draft = home.new_document("/home/dev/s/a/SKILL.md", "x\n");
    name.clone_into(&mut draft.night);
    draft.created = at(age);
    area.stage(draft).expect("a night");
}

fn is_night(name: &str) -> bool {
    let pattern = regex::Regex::new(r"^\d{8}-\d{6}(-\d+)?$").expect("a pattern");
    pattern.is_match(name)
}

pub(super) fn recorded_night(vector: &Vector) -> Value {
    let nights = vector.input["nights"].as_array().into_iter().flatten();
    let sound = nights.filter(|night| {
        is_night(&text(night, "dir"))
            && night["manifest"] != false
            && night.get("symlink").is_none()
    });
    json!({"night": vector.expected["night"], "listed": sound.count()})
}

/// How many files a set of paths is, and whether a state directory can hold the lock.
pub(super) fn locks(vector: &Vector) -> Value {
    let input = &vector.input;
    let Some(state) = input["lock_dir_state"].as_str() else {
        let one = input.get("live_path").into_iter();
        let paths = one.chain(input["live_paths"].as_array().into_iter().flatten());
        let keys = paths.map(|path| collision_key(path.as_str().unwrap_or_default()));
        let keys: std::collections::BTreeSet<String> = keys.collect();
        return json!({"documents": keys.len()});
    };
    let home = Home::new(&json!({}));
    let folder = home.state.join("locks");
    fs::create_dir_all(&home.state).expect("a state directory");
    match state {
        "absent" => {}
        "file" => fs::write(&folder, "x").expect("a file"),
        "symlink" => symlink(&home.path, &folder).expect("a link"),
        mode => {
            fs::create_dir(&folder).expect("a folder");
            let mode = u32::from_str_radix(mode, 8).unwrap_or(0o777);
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }
    match recover(&folder, &home.roots) {
        Ok(_) => json!({"ok": true}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

pub(super) fn recorded_locks(vector: &Vector) -> Value {
    let expected = &vector.expected;
    match (&expected["lock_files"], expected.get("lock_file")) {
        (Value::Array(files), _) => json!({"documents": files.len()}),
        (_, Some(_)) => json!({"documents": 1}),
        _ => expected.clone(),
    }
}

/// A value as our files hold it.
pub(super) fn json_safe(vector: &Vector) -> Value {
    let home = Home::new(&json!({}));
    let file = home.path.join("value.json");
    let value = Recorded(&vector.input["value"]);
    skillopt_files::write_atomic_json(&file, &value).expect("a file");
    let bytes = fs::read(&file).expect("our file");
    json!({"value": serde_json::from_slice::<Value>(&bytes).expect("JSON")})
}

/// A recorded value with the numbers that JSON lacks.
struct Recorded<'t>(&'t Value);

impl serde::Serialize for Recorded<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(Recorded)),
            Value::Object(fields) => match (fields.get("$float"), fields.get("$tuple")) {
                (Some(name), _) => {
                    let name = name.as_str().unwrap_or_default();
                    serializer.serialize_f64(name.parse().unwrap_or(f64::NAN))
                }
                (_, Some(items)) => Recorded(items).serialize(serializer),
                _ => {
                    serializer.collect_map(fields.iter().map(|(key, value)| (key, Recorded(value))))
                }
            },
            plain => plain.serialize(serializer),
        }
    }
}

/// What a shell makes of a quoted path: the path again, as one word.
pub(super) fn shell_quoting(vector: &Vector) -> Value {
    use skillopt_sleep::cli::shell::quoted;
    let path = text(&vector.input, "text");
    json!({"word": word(&quoted(path.as_ref()))})
}

pub(super) fn recorded_quoting(vector: &Vector) -> Value {
    json!({"word": word(&text(&vector.expected, "posix"))})
}

/// The only word that a POSIX shell reads.
fn word(quoted: &str) -> Option<String> {
    let script = format!("for word in {quoted}; do printf '%s|' \"$word\"; done");
    if script.contains('\0') {
        return None;
    }
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output();
    let words = String::from_utf8(output.expect("a shell").stdout).ok()?;
    words
        .strip_suffix('|')
        .filter(|rest| !rest.contains('|'))
        .map(str::to_owned)
}
