//! Where the original's files of a night are in our state directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub(super) const RECORDED_HOME: &str = "/home/dev";

/// The names of the two documents that are not one of many skills.
pub(super) const MANAGED: &str = "m";
pub(super) const MEMORY: &str = "CLAUDE.md";

/// A staged proposal.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) id: String,
    /// The document, as recorded.
    pub(super) live: String,
}

/// What is staged, and where.
pub(super) struct Night {
    home: PathBuf,
    state: PathBuf,
    rows: Vec<Row>,
}

impl Night {
    pub(super) fn new(home: &Path, state: &Path) -> Night {
        Night {
            home: home.to_path_buf(),
            state: state.to_path_buf(),
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &str, live: &str, id: &str) {
        self.rows.push(Row {
            name: name.to_owned(),
            id: id.to_owned(),
            live: live.to_owned(),
        });
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn skills(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !is_managed(row))
    }

    pub(super) fn managed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| is_managed(row))
    }

    fn folder(&self, row: &Row) -> PathBuf {
        self.state.join("staging/n1").join(&row.id)
    }

    /// Where a recorded path is here. The manifest stands for the record of every proposal.
    pub(super) fn places(&self, recorded: &str) -> Vec<PathBuf> {
        let Some(inside) = recorded.strip_prefix("$NIGHT") else {
            let rest = recorded.strip_prefix(RECORDED_HOME).unwrap_or(recorded);
            return vec![self.home.join(rest.trim_start_matches('/'))];
        };
        let of = |name: &str, file: &str| {
            let rows = self.rows.iter().filter(|row| row.name == name);
            rows.map(|row| self.folder(row).join(file)).collect()
        };
        match inside.trim_start_matches('/') {
            "" => vec![self.state.join("staging/n1")],
            "manifest.json" => {
                let records = self.rows.iter().map(|row| self.folder(row));
                records.map(|folder| folder.join("proposal.json")).collect()
            }
            "proposed_SKILL.md" => of(MANAGED, "proposed.md"),
            "proposed_CLAUDE.md" => of(MEMORY, "proposed.md"),
            "adopted_skills.json" | "adopted_legacy.json" => {
                vec![self.state.join("adoptions/a1.json")]
            }
            ".adopt-transaction.json" => vec![self.state.join("adoptions/journal.json")],
            "backup" => vec![self.state.join("backups")],
            backup if backup.starts_with("backup/") => {
                vec![self.state.join("backups/a1/0.before")]
            }
            other => match other
                .strip_prefix("proposed_SKILL.")
                .and_then(|rest| rest.strip_suffix(".md"))
            {
                Some(name) => of(name, "proposed.md"),
                // A file that only the original would look at.
                None => vec![self.state.join("staging/n1").join(other)],
            },
        }
    }

    /// The new place of a file that is renamed.
    pub(super) fn beside(&self, file: &Path, recorded: &str) -> PathBuf {
        match recorded.strip_prefix("$NIGHT/") {
            Some(name) => file.with_file_name(name),
            None => self.places(recorded).remove(0),
        }
    }

    /// A night that was moved into the home is none of the person's files, nor is what the original
    /// keeps there.
    pub(super) fn forget_moved(&self, files: &mut Map<String, Value>) {
        files.retain(|path, _| !path.contains("/.skillopt-sleep/"));
        if !self.state.join("staging/n1").is_dir() || self.state.join("staging/n1").is_symlink() {
            files.retain(|path, _| !path.starts_with("/home/dev/elsewhere/"));
        }
    }

    /// An edit of a record by somebody else, at the place that means the same in ours.
    ///
    /// What has no counterpart (flags, roots: ours come from configuration) changes nothing.
    pub(super) fn edit_record(&self, recorded: &str, edit: &Value) -> io::Result<()> {
        let pointer = edit["pointer"].as_str().unwrap_or_default();
        let value = match edit.get("value") {
            Some(value) if edit.get("delete").is_none() => Some(self.relocated(value)),
            _ => None,
        };
        if recorded != "$NIGHT/manifest.json" {
            // Sealed records: an edit is an edit, whatever the field.
            let file = self.places(recorded).remove(0);
            return rewrite(&file, |record| {
                record["body"]["forged"] = value.unwrap_or_default()
            });
        }
        let parts: Vec<&str> = pointer.split('/').skip(1).collect();
        let rows: Vec<&Row> = match parts.as_slice() {
            ["skills"] => self.skills().collect(),
            ["skills", number, ..] => {
                let number: usize = number.parse().expect("a row");
                self.skills().skip(number).take(1).collect()
            }
            ["legacy"] => self.managed().collect(),
            ["legacy", "skill", ..] => self.rows.iter().filter(|row| row.name == MANAGED).collect(),
            ["legacy", "memory", ..] => self.rows.iter().filter(|row| row.name == MEMORY).collect(),
            _ => Vec::new(),
        };
        let field = match parts.as_slice() {
            [_, _, field] => Some(counterpart(field)),
            _ => None,
        };
        for row in rows {
            let file = self.folder(row).join("proposal.json");
            match (field, &value) {
                (Some(field), value) => rewrite(&file, |record| set(record, field, value.clone()))?,
                (None, Some(value)) => fs::write(&file, value.to_string())?,
                (None, None) => drop(fs::remove_file(&file)),
            }
        }
        Ok(())
    }

    fn relocated(&self, value: &Value) -> Value {
        match value.as_str() {
            Some(text) if text.starts_with(RECORDED_HOME) => {
                self.places(text)[0].display().to_string().into()
            }
            _ => value.clone(),
        }
    }
}

fn is_managed(row: &Row) -> bool {
    row.name == MANAGED && row.live.contains("/managed/") || row.name == MEMORY
}

/// Our place of a field of the original's row.
fn counterpart(field: &str) -> &'static str {
    match field {
        "live_skill_path" | "live_path" => "/document/path",
        "live_realpath" => "/document/real_path",
        "live_sha256" => "/base/sha256",
        "sha256" => "/proposed/sha256",
        "skill_name" => "/document/name",
        // The original names a file there; ours has none but its own folder's.
        "proposed_file" => "/id",
        other => panic!("no field {other}"),
    }
}

fn rewrite(file: &Path, change: impl FnOnce(&mut Value)) -> io::Result<()> {
    let mut record: Value = serde_json::from_slice(&fs::read(file)?)?;
    change(&mut record);
    fs::write(file, serde_json::to_vec_pretty(&record)?)
}

fn set(record: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let parent = record.pointer_mut(parent).expect("its parent");
    match (value, parent) {
        (Some(value), parent) => parent[field] = value,
        (None, Value::Object(fields)) => drop(fields.remove(field)),
        (None, _) => panic!("{pointer} is no field"),
    }
}
