//! The run directory: SkillOpt's layout and field names (engine 19), so that people's scripts
//! read it, plus `events.jsonl`.
//!
//! [`RunDir`] is an observer: it turns events into files. `runtime_state.json` is written last in
//! every commit, and as long as it is there a resumed run believes nothing else; a crash before it
//! leaves a step that runs again from the journal and writes the same files once more.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillopt_files::{Options, append_line, write_atomic};

use super::candidate::Candidate;
use super::environment::Rollout;
use super::event::{Event, Observer};
use super::patch::{Item, Patch};
use super::recover;
use super::score::{Bucket, task_type_buckets};
use super::state::State;
use super::update_mode::UpdateMode;
use super::writer::Writer;
use crate::skill::EditReport;

/// Version of `runtime_state.json`.
const FORMAT: u32 = 1;

/// Largest state or history file that is read back, in bytes.
const MAX_STATE_BYTES: u64 = 256 << 20;

/// The directory of one run.
#[derive(Clone)]
pub struct RunDir {
    root: PathBuf,
    writer: Arc<Writer>,
}

/// `runtime_state.json`: the original's keys, and the whole [`State`] beside them.
#[derive(Serialize, Deserialize)]
struct StateFile {
    format: u32,
    last_completed_step: u32,
    current_skill_path: String,
    current_score: Option<f64>,
    current_origin: String,
    best_skill_path: String,
    best_score: Option<f64>,
    best_step: u32,
    best_origin: String,
    state: State,
}

impl RunDir {
    /// The directory at `root`, created when missing.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs_err::create_dir_all(root)?;
        Ok(Self {
            root: root.to_owned(),
            writer: Arc::new(Writer::start()?),
        })
    }

    /// Its path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state that a killed or finished run left, with its history; `None` for a fresh
    /// directory. A state file that is gone or damaged is made up for from the other artefacts, as
    /// far as they go (see [`super::recover`]).
    ///
    /// # Errors
    /// When the files are there and cannot be read; the message says which and what to do.
    pub fn load(&self) -> io::Result<Option<State>> {
        let path = self.root.join("runtime_state.json");
        if !path.exists() {
            return recover::state(&self.root);
        }
        let file: Value = match read_json(&path) {
            Ok(file) => file,
            Err(error) => return recover::state(&self.root)?.map_or(Err(error), |s| Ok(Some(s))),
        };
        let format = file.get("format").and_then(Value::as_u64);
        if format != Some(FORMAT.into()) {
            return Err(io::Error::other(format!(
                "{} has format {}, this program reads {FORMAT}: use the version that wrote it, or \
                 another --out-root",
                path.display(),
                format.map_or("none".to_owned(), |format| format.to_string())
            )));
        }
        let mut state = serde_json::from_value::<StateFile>(file)
            .map_err(|error| unreadable(&path, &error))?
            .state;
        state.history = recover::history(&self.root, Some(state.last_completed_step))?;
        Ok(Some(state))
    }

    /// The edits that a step selected and what became of each; `None` when it came to none.
    ///
    /// # Errors
    /// When the files are there and cannot be read.
    pub fn step_edits(&self, step: u32) -> io::Result<Option<(Vec<Item>, Vec<EditReport>)>> {
        let dir = self.root.join(step_dir(step));
        let (edits, reports) = (
            dir.join("ranked_edits.json"),
            dir.join("edit_apply_report.json"),
        );
        if !edits.exists() || !reports.exists() {
            return Ok(None);
        }
        let patch = Patch::from_value(UpdateMode::Patch, &read_json(&edits)?);
        Ok(Some((patch.items, read_json(&reports)?)))
    }

    /// The candidate document of a step.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn candidate_skill(&self, step: u32) -> io::Result<String> {
        let path = self.root.join(step_dir(step)).join("candidate_skill.md");
        skillopt_files::read_text(&path, MAX_STATE_BYTES).map_err(io::Error::other)
    }

    fn commit(&self, state: &State) -> io::Result<()> {
        self.json("history.json", &state.history)?;
        self.text("best_skill.md", &state.best.skill)?;
        let current = skill_path(state.last_completed_step);
        // `skill_v0000.md` is the initial skill, whatever was put into the current one since.
        if state.last_completed_step > 0 {
            self.text(&current, &state.current.skill)?;
        }
        self.json(
            "runtime_state.json",
            &StateFile {
                format: FORMAT,
                last_completed_step: state.last_completed_step,
                current_skill_path: current,
                current_score: state.current.score,
                current_origin: state.current.origin.clone(),
                best_skill_path: "best_skill.md".to_owned(),
                best_score: state.best.score,
                best_step: state.best_step,
                best_origin: state.best.origin.clone(),
                state: state.clone(),
            },
        )
    }

    fn candidate(&self, dir: &str, candidate: &Candidate) -> io::Result<()> {
        self.text(&format!("{dir}/candidate_skill.md"), &candidate.skill)?;
        if let Some((name, record)) = &candidate.rewrite {
            self.json(&format!("{dir}/{name}"), record)?;
        }
        if !candidate.reports.is_empty() {
            self.json(&format!("{dir}/edit_apply_report.json"), &candidate.reports)?;
        }
        Ok(())
    }

    fn rollouts(&self, dir: &str, rollouts: &[Rollout]) -> io::Result<()> {
        let mut rows = String::new();
        for rollout in rollouts {
            rows.push_str(&Value::Object(rollout.row()).to_string());
            rows.push('\n');
            let item = format!("{dir}/predictions/{}", path_component(&rollout.id));
            if !rollout.conversation.is_empty() {
                let text = serde_json::to_string_pretty(&rollout.conversation)
                    .map_err(io::Error::other)?;
                self.artefact(&format!("{item}/conversation.json"), text)?;
            }
            for (name, text) in [
                ("target_system_prompt.txt", &rollout.target_system_prompt),
                ("target_user_prompt.txt", &rollout.target_user_prompt),
            ] {
                if !text.is_empty() {
                    self.artefact(&format!("{item}/{name}"), text.clone())?;
                }
            }
        }
        self.artefact(&format!("{dir}/results.jsonl"), rows)
    }

    /// What rollouts leave: thousands of files that the journal can make again.
    fn artefact(&self, name: &str, text: String) -> io::Result<()> {
        self.write(name, text.into_bytes(), true)
    }

    fn text(&self, name: &str, text: &str) -> io::Result<()> {
        self.write(name, text.as_bytes().to_vec(), false)
    }

    fn json(&self, name: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        bytes.push(b'\n');
        self.write(name, bytes, false)
    }

    fn write(&self, name: &str, bytes: Vec<u8>, volatile: bool) -> io::Result<()> {
        let path = self.root.join(name);
        let options = Options {
            create_parents: true,
            volatile,
            ..Options::default()
        };
        self.writer
            .write(move || write_atomic(&path, &bytes, options).map_err(io::Error::other))
    }

    fn line(&self, name: &str, line: &Value) -> io::Result<()> {
        let (path, line) = (self.root.join(name), line.to_string());
        self.writer
            .write(move || append_line(&path, &line, false).map_err(io::Error::other))
    }

    /// Adds a line to a file with one line a step; a step that runs again replaces its line.
    fn line_of_step(&self, name: &str, line: Value) -> io::Result<()> {
        let path = self.root.join(name);
        self.writer.write(move || {
            let before = match skillopt_files::read_text(&path, MAX_STATE_BYTES) {
                Err(error) if error.is_not_found() => String::new(),
                read => read.map_err(io::Error::other)?,
            };
            let of_other_step = |text: &&str| {
                serde_json::from_str(text).is_ok_and(|other: Value| other["step"] != line["step"])
            };
            let mut text = String::new();
            for line in before.lines().filter(of_other_step) {
                text += line;
                text.push('\n');
            }
            text += &format!("{line}\n");
            write_atomic(&path, text.as_bytes(), Options::default()).map_err(io::Error::other)
        })
    }
}

impl Observer for RunDir {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::RunStarted { initial_skill, .. } => self.text(&skill_path(0), initial_skill)?,
            Event::EvaluationFinished { dir, rollouts, .. } => self.rollouts(dir, rollouts)?,
            Event::MinibatchReflected {
                dir,
                name,
                reply: Some(reply),
            } => {
                self.json(&format!("{dir}/{name}.json"), reply)?;
            }
            Event::Aggregated { dir, patch, mode } => {
                self.json(&format!("{dir}/merged_patch.json"), &patch.to_value(*mode))?;
            }
            Event::Selected {
                dir, patch, mode, ..
            } => {
                self.json(&format!("{dir}/ranked_edits.json"), &patch.to_value(*mode))?;
            }
            Event::CandidateMade { dir, candidate, .. } => self.candidate(dir, candidate)?,
            Event::Attributed {
                dir,
                attribution,
                candidate,
            } => {
                self.json(&format!("{dir}/attribution.json"), attribution)?;
                self.candidate(dir, candidate)?;
            }
            Event::StepFinished { record, state } => {
                let dir = step_dir(record.step);
                // The next analysts are told of every step; the file is of those that proposed.
                let told = state
                    .step_buffer
                    .iter()
                    .find(|entry| entry.step == record.step as usize);
                if let Some(digest) = told.filter(|_| record.action.had_candidate()) {
                    self.json(&format!("{dir}/trajectory_digest.json"), digest)?;
                }
                self.json(&format!("{dir}/step_record.json"), record)?;
                self.commit(state)?;
            }
            Event::LearningRateDecided {
                dir,
                step,
                epoch,
                decision,
            } => {
                self.json(&format!("{dir}/lr_decision.json"), decision)?;
                let mut line = json!({"step": step, "epoch": epoch});
                merge(
                    &mut line,
                    serde_json::to_value(decision).map_err(io::Error::other)?,
                );
                self.line_of_step("lr_history.jsonl", line)?;
            }
            Event::NotesFlushed {
                dir,
                step_notes,
                after,
            } => {
                let notes = json!({"step_notes": step_notes, "appendix_after": after});
                self.json(&format!("{dir}/appendix_notes.json"), &notes)?;
            }
            Event::Compared {
                dir,
                pairs,
                all_pairs,
                ..
            } => {
                self.json(&format!("{dir}/comparison_pairs.json"), pairs)?;
                if let Some(pairs) = all_pairs {
                    self.json(&format!("{dir}/comparison_pairs_all.json"), pairs)?;
                }
            }
            Event::SlowUpdated { dir, result, .. } => {
                self.json(&format!("{dir}/slow_result.json"), result)?;
            }
            Event::Tested { dir, rollouts, .. } => {
                self.json(&format!("{dir}/summary.json"), &by_task_type(rollouts))?;
            }
            Event::MetaSkillWritten { dir, result, .. } => {
                self.json(&format!("{dir}/meta_skill_result.json"), result)?;
            }
            Event::Checkpoint { state } => self.commit(state)?,
            Event::RunFinished {
                summary,
                best_skill,
            } => {
                self.text("best_skill.md", best_skill)?;
                self.json("summary.json", summary)?;
            }
            _ => {}
        }
        self.record(event)
    }

    fn settle(&mut self) -> io::Result<()> {
        self.writer.settle()
    }
}

impl RunDir {
    /// Appends the event to `events.jsonl`. Rollouts are left out: they are in `results.jsonl`,
    /// and their order of completion is not part of what a run is.
    fn record(&self, event: &Event<'_>) -> io::Result<()> {
        if matches!(event, Event::RolloutFinished { .. }) {
            return Ok(());
        }
        let mut line = serde_json::to_value(event).map_err(io::Error::other)?;
        if let Some(object) = line.as_object_mut() {
            object.insert("at".to_owned(), json!(jiff::Timestamp::now().to_string()));
        }
        self.line("events.jsonl", &line)
    }
}

/// `steps/step_0001`.
#[must_use]
pub fn step_dir(step: u32) -> String {
    format!("steps/step_{step:04}")
}

pub(super) fn skill_path(step: u32) -> String {
    format!("skills/skill_v{step:04}.md")
}

/// The measured rollouts by task type, as `summary.json` of a test evaluation has them.
fn by_task_type(rollouts: &[Rollout]) -> Value {
    let rows: Vec<_> = rollouts
        .iter()
        .filter(|rollout| rollout.scores().is_some())
        .map(Rollout::row)
        .collect();
    let buckets = task_type_buckets(&rows, &[]).unwrap_or_default();
    let accuracy = |bucket: &Bucket| bucket.hard / bucket.total.max(1) as f64;
    buckets
        .iter()
        .map(|(name, bucket)| {
            let line = json!({"total": bucket.total, "hard_acc": accuracy(bucket)});
            (name.clone(), line)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Adds the fields of `more` to `object`.
fn merge(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

/// An item's id as a single path component: letters, digits, `.`, `_` and `-` stay, every other
/// byte becomes `%XX`, so that ids can neither climb out of the directory nor collide (W-D6).
#[must_use]
pub fn path_component(id: &str) -> String {
    let mut component = String::with_capacity(id.len());
    for byte in id.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if plain || (byte == b'.' && !component.is_empty()) {
            component.push(byte as char);
        } else {
            component.push_str(&format!("%{byte:02X}"));
        }
    }
    if component.len() > 120 {
        let digest = blake3::hash(id.as_bytes()).to_hex();
        component.truncate(80);
        component.push('-');
        component.push_str(&digest[..32]);
    }
    component
}

/// Reads one JSON file with a bound on its size.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_str(&read_text(path)?).map_err(|error| unreadable(path, &error))
}

/// Reads one text file with a bound on its size.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    skillopt_files::read_text(path, MAX_STATE_BYTES).map_err(io::Error::other)
}

fn unreadable(path: &Path, error: &serde_json::Error) -> io::Error {
    io::Error::other(format!(
        "cannot read {}: {error}; restore it, or start again with another --out-root",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_becomes_one_harmless_component() {
        assert_eq!(path_component("plain-id_1.2"), "plain-id_1.2");
        assert_eq!(
            path_component("../../etc"),
            "%2E%2E%2F%2E%2E%2Fetc".replace("%2E%2E%2F%2E%2E%2F", "%2E.%2F..%2F")
        );
        assert!(!path_component("a/b").contains('/'));
        assert_ne!(path_component("a/b"), path_component("a_b"));
        assert_eq!(path_component("."), "%2E");
        let long = path_component(&"x".repeat(5_000));
        assert!(long.len() < 200);
    }
}
