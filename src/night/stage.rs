//! From a trained document to a staged proposal, with everything that a person needs to judge it:
//! each edit's reason and the sessions behind it, the gate's numbers task by task, and what the gate
//! turned down.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Map, Value};
use skillopt_harvesters::{Agent, Session};
use skillopt_staging::{
    Base, Cost, Draft, EditStatus, Evidence, Origin, RejectedCandidate, StagedEdit,
};

use super::document::{Document, DocumentError, DocumentKind};
use super::gate_record;
use super::hosts;
use super::risk;
use super::task::Task;
use crate::skill::{Edit, EditReport, apply_patch};
use crate::trainer::gate_rule::GateProjection;
use crate::trainer::run_dir::RunDir;
use crate::trainer::state::{State, StepRecord};

/// Most pieces of evidence kept for one edit.
const MAX_EVIDENCE: usize = 8;
/// Longest quote, in characters.
const MAX_QUOTE_CHARS: usize = 400;

/// What a night knows of where its tasks come from.
pub struct Sources<'a> {
    /// The tasks by id.
    pub tasks: HashMap<&'a str, &'a Task>,
    /// The sessions by id.
    pub sessions: HashMap<&'a str, &'a Session>,
}

/// A trained document and what is known of its training.
pub struct Made<'a> {
    /// The night's number.
    pub night: i64,
    /// When the proposal is made.
    pub created: Timestamp,
    /// The document as it was when the night began.
    pub document: &'a Document,
    /// What training ended with.
    pub trained: &'a State,
    /// How scores were compared.
    pub gate: &'a GateProjection,
    /// The run's directory.
    pub run: &'a RunDir,
    /// Where the tasks come from.
    pub sources: &'a Sources<'a>,
    /// The agents' homes, which tell who reads the document.
    pub homes: &'a [(Agent, PathBuf)],
    /// What it cost.
    pub cost: Cost,
    /// The step whose candidate is suggested although the gate could not decide about it; `None`
    /// to propose the best text, which the gate accepted.
    pub suggestion: Option<&'a StepRecord>,
}

/// The draft of a proposal.
///
/// # Errors
/// When the run directory cannot be read back or the document cannot take the text.
pub fn draft(made: &Made<'_>) -> Result<Draft, StageError> {
    let Made {
        document,
        trained,
        sources,
        ..
    } = made;
    let mut edits = Vec::new();
    let mut rejected = Vec::new();
    for record in &trained.history {
        let Some(step) = staged_edits(made.run, record, sources)? else {
            continue;
        };
        let proposed = match made.suggestion {
            Some(suggestion) => record.step == suggestion.step,
            None => record.action.is_accept() && record.step <= trained.best_step,
        };
        if proposed {
            edits.extend(step);
        } else if !record.action.is_accept() {
            rejected.push(RejectedCandidate {
                edits: step,
                gate: gate_record::of_step(record, trained),
            });
        }
    }
    for (position, edit) in edits.iter_mut().enumerate() {
        edit.index = position + 1;
    }
    let (text, gate) = match made.suggestion {
        Some(record) => (
            made.run.candidate_skill(record.step)?,
            gate_record::of_step(record, trained),
        ),
        None => (
            trained.best.skill.clone(),
            gate_record::of_whole(trained, made.gate, sources),
        ),
    };
    let staged = skillopt_staging::Document {
        kind: match document.kind {
            DocumentKind::Skill | DocumentKind::Reference => skillopt_staging::DocumentKind::Skill,
            DocumentKind::Memory => skillopt_staging::DocumentKind::Memory,
        },
        name: document.name.clone(),
        path: document.path.clone(),
        real_path: None,
        hosts: hosts::of(&document.path, made.homes),
    };
    let base = document.text.as_ref().map_or_else(Base::absent, Base::of);
    let proposed = document.with_trained(&text)?;
    let lint = risk::of_draft(
        &staged,
        &base.normal(),
        &skillopt_staging::normal(&proposed),
        sources.tasks.values().copied(),
    );
    Ok(Draft {
        night: format!("n{}", made.night),
        created: made.created,
        document: staged,
        base,
        proposed,
        edits,
        gate,
        rejected,
        lint,
        cost: made.cost,
        verified: made.suggestion.is_none(),
    })
}

/// Why nothing could be staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A step's files cannot be read back.
    #[error("cannot read back the night's run: {0}")]
    Run(#[from] io::Error),
    /// The staging area refused it or cannot be written.
    #[error(transparent)]
    Staging(#[from] skillopt_staging::Error),
    /// The document cannot take the new text.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl StageError {
    /// Whether it lies in the document, and other documents can be staged all the same.
    #[must_use]
    pub fn is_of_document(&self) -> bool {
        matches!(
            self,
            Self::Document(_) | Self::Staging(skillopt_staging::Error::Refused(_))
        )
    }
}

/// Applies `edits` to the document that they were made for, one after another; the text that
/// accepting just these edits gives.
///
/// # Errors
/// When the document cannot be read as what it is.
pub fn with_edits(document: &Document, edits: &[&StagedEdit]) -> Result<String, DocumentError> {
    let edits = edits.iter().map(|edit| {
        Edit::from_fields(&Map::from_iter([
            ("op".to_owned(), Value::from(edit.op.clone())),
            ("target".to_owned(), Value::from(edit.target.clone())),
            ("content".to_owned(), Value::from(edit.content.clone())),
        ]))
    });
    let (text, _) = apply_patch(&document.trainable()?, edits);
    document.with_trained(&text)
}

/// The edits of one step with where they come from; `None` when it came to none.
fn staged_edits(
    run: &RunDir,
    record: &StepRecord,
    sources: &Sources<'_>,
) -> io::Result<Option<Vec<StagedEdit>>> {
    let Some((items, reports)) = run.step_edits(record.step)? else {
        return Ok(None);
    };
    let dropped = dropped(record, items.len(), reports.len());
    let kept = (0..items.len()).filter(|item| !dropped.contains(item));
    Ok(Some(
        kept.enumerate()
            .map(|(position, item)| {
                let report = reports.get(position);
                let mut edit = staged_edit(position, &items[item], report, sources);
                edit.contribution = contribution(record, item);
                edit
            })
            .collect(),
    ))
}

/// The edits of a batch that were taken out again because they were not needed: the reports are of
/// those that stayed.
fn dropped(record: &StepRecord, edits: usize, reports: usize) -> Vec<usize> {
    let Some(attribution) = record.attribution.as_ref().filter(|_| reports < edits) else {
        return Vec::new();
    };
    let alone = attribution.fallback.into_iter().collect();
    [attribution.dropped(), alone]
        .into_iter()
        .find(|dropped| edits - dropped.len() == reports)
        .unwrap_or_default()
}

/// What the gate's score gained by an edit, where that was asked.
fn contribution(record: &StepRecord, edit: usize) -> Option<f64> {
    let attribution = record.attribution.as_ref()?;
    attribution.edits.get(edit)?.gain
}

fn staged_edit(
    position: usize,
    item: &Map<String, Value>,
    report: Option<&EditReport>,
    sources: &Sources<'_>,
) -> StagedEdit {
    let text = |key: &str| {
        item.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let ids = item.get("evidence").and_then(Value::as_array);
    StagedEdit {
        index: position + 1,
        op: text("op"),
        target: text("target"),
        anchor: None,
        content: text("content"),
        rationale: text("rationale"),
        origin: Origin::Model,
        status: match report {
            Some(report) if report.status.is_applied() && report.changed => EditStatus::Applied,
            Some(report) if report.status.is_applied() => EditStatus::NoOp,
            _ => EditStatus::Skipped,
        },
        contribution: None,
        evidence: ids
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter_map(|id| evidence(id, sources))
            .take(MAX_EVIDENCE)
            .collect(),
    }
}

/// The session behind a task: what the developer had to say after the first request, else the
/// request itself.
fn evidence(task_id: &str, sources: &Sources<'_>) -> Option<Evidence> {
    let task = sources.tasks.get(task_id)?;
    let session_id = task
        .source_sessions
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let session = sources.sessions.get(session_id);
    let prompt = session.and_then(|session| {
        let prompts: Vec<_> = session.prompts().collect();
        prompts
            .get(1)
            .or_else(|| prompts.first())
            .map(|prompt| (*session, *prompt))
    });
    let place = prompt.and_then(|(session, prompt)| session.locate(prompt.place));
    Some(Evidence {
        task: task_id.to_owned(),
        session: session_id.to_owned(),
        project: task.project.clone(),
        date: session
            .and_then(|session| session.started)
            .map(|time| time.strftime("%Y-%m-%d").to_string())
            .unwrap_or_default(),
        quote: prompt
            .map_or(task.intent.as_str(), |(_, prompt)| prompt.text.as_str())
            .chars()
            .take(MAX_QUOTE_CHARS)
            .collect(),
        file: place.map(|(file, _)| file.into()),
        offset: place.map(|(_, offset)| offset),
    })
}
