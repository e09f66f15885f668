//! Tasks in a file: written out to be looked over by a person, read back to be trained with
//! (sleep-staging 18).
//!
//! A file is an object with a list `tasks`, or that list alone. Only one whose `reviewed` is `true`
//! may cost anything: tasks decide what a night learns, and a file can come from anywhere. What
//! cannot be meant (another format, an unknown split, an id twice, a check that no answer can pass)
//! is refused with its place; what is only odd is a warning.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::rule_judge;
use super::split::{self, BadFractions, Fractions};
use super::task::Task;

/// The format that this program writes and reads.
pub const FORMAT: &str = "skillopt_sleep.tasks.v1";

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Most mistakes that are told at once.
const MAX_MISTAKES: usize = 20;

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct TasksFile {
    /// The tasks, with splits.
    pub tasks: Vec<Task>,
    /// Whether a person has looked them over and says so.
    pub reviewed: bool,
    /// What is odd about them.
    pub warnings: Vec<String>,
}

impl TasksFile {
    /// Whether a night may be run with them: they were reviewed, or nothing is spent on them.
    #[must_use]
    pub fn may_run(&self, free: bool) -> bool {
        self.reviewed || free
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TasksFileError {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] skillopt_files::Error),
    /// It is not JSON.
    #[error("{path} is not JSON: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// It is JSON of another shape.
    #[error("{path} holds no tasks: {problem}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Tasks that cannot be used.
    #[error("{path} has tasks that cannot be used:\n  {}", mistakes.join("\n  "))]
    Tasks {
        /// The file.
        path: PathBuf,
        /// One line a mistake.
        mistakes: Vec<String>,
    },
    /// The shares of the splits.
    #[error(transparent)]
    Fractions(#[from] BadFractions),
}

/// Reads a file. Tasks without a split get theirs when no task of the file validates or tests.
///
/// # Errors
/// [`TasksFileError`].
pub fn read(path: &Path, fractions: Fractions, seed: i64) -> Result<TasksFile, TasksFileError> {
    let text = skillopt_files::read_text(path, MAX_BYTES)?;
    let value: Value = serde_json::from_str(&text).map_err(|source| TasksFileError::Json {
        path: path.to_owned(),
        source,
    })?;
    let shape = |problem: String| TasksFileError::Shape {
        path: path.to_owned(),
        problem,
    };
    let none = Map::new();
    let (rows, fields) = match &value {
        Value::Array(rows) => (rows.as_slice(), &none),
        Value::Object(fields) => match fields.get("tasks") {
            None => (&[][..], fields),
            Some(Value::Array(rows)) => (rows.as_slice(), fields),
            Some(_) => return Err(shape("`tasks` is no list".to_owned())),
        },
        _ => return Err(shape("it is neither an object nor a list".to_owned())),
    };
    if let Some(format) = fields.get("format").filter(|format| *format != FORMAT) {
        return Err(shape(format!("its format is {format}, not \"{FORMAT}\"")));
    }
    let mut found = Found::default();
    for (position, row) in rows.iter().enumerate() {
        found.take(position + 1, row);
    }
    if !found.mistakes.is_empty() {
        found.mistakes.truncate(MAX_MISTAKES);
        return Err(TasksFileError::Tasks {
            path: path.to_owned(),
            mistakes: found.mistakes,
        });
    }
    let mut tasks = found.tasks;
    let unsplit = tasks.iter().all(|task| task.split == "train");
    if tasks.len() > 1 && unsplit {
        split::assign(&mut tasks, fractions, seed);
    }
    Ok(TasksFile {
        tasks,
        reviewed: fields.get("reviewed") == Some(&Value::Bool(true)),
        warnings: found.warnings,
    })
}

/// Writes tasks for a person to look over.
///
/// # Errors
/// When the file cannot be written.
pub fn write(
    path: &Path,
    project: &str,
    sessions: usize,
    tasks: &[Task],
) -> Result<(), TasksFileError> {
    let draft = json!({
        "format": FORMAT,
        "project": project,
        "n_sessions": sessions,
        "reviewed": false,
        "tasks": tasks,
    });
    Ok(skillopt_files::write_atomic_json(path, &draft)?)
}

/// The rows that were looked at so far.
#[derive(Default)]
struct Found {
    tasks: Vec<Task>,
    ids: BTreeSet<String>,
    mistakes: Vec<String>,
    warnings: Vec<String>,
}

impl Found {
    fn take(&mut self, number: usize, row: &Value) {
        match task(row) {
            Ok(task) => self.check(number, row, task),
            Err(problem) => self.mistakes.push(format!("task {number}: {problem}")),
        }
    }

    fn check(&mut self, number: usize, row: &Value, task: Task) {
        let place = format!("task {number} ({:?})", task.id);
        if !["train", "val", "test"].contains(&task.split.as_str()) {
            self.mistakes
                .push(format!("{place}: there is no split {:?}", task.split));
        }
        if !self.ids.insert(task.id.clone()) {
            self.mistakes
                .push(format!("{place}: another task has this id"));
        }
        if task.reference_kind == "rule" {
            let findings = rule_judge::validate(&row["judge"]);
            let told = |problem: String| format!("{place}: {problem}");
            self.mistakes.extend(findings.errors.into_iter().map(told));
            self.warnings
                .extend(findings.warnings.into_iter().map(told));
        }
        self.tasks.push(task);
    }
}

/// A row as a task. A split that is no text counts as none, as does a judge that is not used.
fn task(row: &Value) -> Result<Task, String> {
    let Value::Object(fields) = row else {
        return Err("it is no object".to_owned());
    };
    if let Some(missing) = ["id", "project", "intent"]
        .into_iter()
        .find(|key| !fields.contains_key(*key))
    {
        return Err(format!("it has no `{missing}`"));
    }
    let mut fields = fields.clone();
    let name = fields
        .get("split")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let split = match split::current_name(name) {
        "" => "train",
        name => name,
    };
    fields.insert("split".to_owned(), json!(split));
    if fields.get("judge").is_some_and(|judge| !judge.is_object()) {
        fields.insert("judge".to_owned(), json!({}));
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<TasksFile, TasksFileError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks.json");
        std::fs::write(&path, text).unwrap();
        read(&path, Fractions::default(), 42)
    }

    #[test]
    fn what_is_written_is_read_back_and_is_not_reviewed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/tasks.json");
        let tasks: Vec<Task> = ["a", "b"]
            .map(|id| Task::new(id.into(), "/p".into(), "do it".into()))
            .into();
        write(&path, "/p", 2, &tasks).unwrap();
        let file = read(&path, Fractions::default(), 42).unwrap();
        assert!(!file.reviewed);
        assert_eq!(file.tasks.len(), 2);
        assert!(file.tasks.iter().any(|task| task.split == "val"));
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let error = of(r#"{"tasks": [
            {"id": "a", "project": "p", "intent": "i", "split": "maybe"},
            {"id": "a", "project": "p", "intent": "i"},
            {"id": "b", "project": "p"},
            {"id": "c", "project": "p", "intent": "i", "reference_kind": "rule",
             "judge": {"checks": [{"op": "regex", "arg": "("}]}}
        ]}"#)
        .unwrap_err()
        .to_string();
        for part in [
            "no split \"maybe\"",
            "another task has this id",
            "no `intent`",
            "does not compile",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let format = of(r#"{"format": "other", "tasks": []}"#).unwrap_err();
        assert!(format.to_string().contains(FORMAT), "{format}");
    }
}
