//! From a trained document to a staged proposal, with everything that a person needs to judge it:
//! each edit's reason and the sessions behind it, the gate's numbers task by task, and what the gate
//! turned down.

use std::collections::HashMap;
use std::io;

use jiff::Timestamp;
use serde_json::{Map, Value};
use skillopt_harvesters::Session;
use skillopt_staging::{
    Base, Cost, Draft, EditStatus, Evidence, GateRecord, ItemDelta, Origin, RejectedCandidate,
    StagedEdit,
};

use super::document::{Document, DocumentError, DocumentKind};
use super::risk;
use super::task::Task;
use crate::skill::{Edit, EditReport, apply_patch};
use crate::skill::hash::skill_hash;
use crate::trainer::evaluation::ItemScore;
use crate::trainer::gate_rule::GateProjection;
use crate::trainer::run_dir::RunDir;
use crate::trainer::state::{State, StepRecord};
use crate::trainer::verdict::deltas;

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

/// The draft of a proposal for `document`.
///
/// # Errors
/// When the run directory cannot be read back or the document cannot take the text.
#[expect(
    clippy::too_many_arguments,
    reason = "a draft brings together what a night has in as many places"
)]
pub fn draft(
    night: i64,
    created: Timestamp,
    document: &Document,
    trained: &State,
    gate: &GateProjection,
    run: &RunDir,
    sources: &Sources<'_>,
    cost: Cost,
) -> Result<Draft, StageError> {
    let mut edits = Vec::new();
    let mut rejected = Vec::new();
    for record in &trained.history {
        let Some(step) = StepEdits::read(run, record, sources)? else { continue };
        if record.action.is_accept() && record.step <= trained.best_step {
            edits.extend(step.edits);
        } else if !record.action.is_accept() {
            rejected.push(RejectedCandidate {
                edits: step.edits,
                gate: step_gate(record, trained),
            });
        }
    }
    for (position, edit) in edits.iter_mut().enumerate() {
        edit.index = position + 1;
    }
    let kind = match document.kind {
        DocumentKind::Skill => skillopt_staging::DocumentKind::Skill,
        DocumentKind::Memory => skillopt_staging::DocumentKind::Memory,
    };
    let base = document.text.as_ref().map_or_else(Base::absent, Base::of);
    let proposed = document.with_trained(&trained.best.skill)?;
    let lint = risk::of_draft(
        kind,
        &[],
        &base.normal(),
        &skillopt_staging::normal(&proposed),
        sources.tasks.values().copied(),
    );
    Ok(Draft {
        night: format!("n{night}"),
        created,
        document: skillopt_staging::Document {
            kind,
            name: document.name.clone(),
            path: document.path.clone(),
            real_path: None,
            hosts: Vec::new(),
        },
        base,
        proposed,
        edits,
        gate: whole_gate(trained, gate, sources),
        rejected,
        lint,
        cost,
        verified: true,
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

/// The edits of one step with where they come from.
struct StepEdits {
    edits: Vec<StagedEdit>,
}

impl StepEdits {
    fn read(run: &RunDir, record: &StepRecord, sources: &Sources<'_>) -> io::Result<Option<Self>> {
        let Some((items, reports)) = run.step_edits(record.step)? else { return Ok(None) };
        let edits = items
            .iter()
            .enumerate()
            .map(|(position, item)| staged_edit(position, item, reports.get(position), sources))
            .collect();
        Ok(Some(Self { edits }))
    }
}

fn staged_edit(
    position: usize,
    item: &Map<String, Value>,
    report: Option<&EditReport>,
    sources: &Sources<'_>,
) -> StagedEdit {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
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
    let session_id = task.source_sessions.first().map(String::as_str).unwrap_or_default();
    let session = sources.sessions.get(session_id);
    let prompt = session.and_then(|session| {
        let prompts: Vec<_> = session.prompts().collect();
        prompts.get(1).or_else(|| prompts.first()).map(|prompt| (*session, *prompt))
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

/// The gate's numbers for the whole change: the live text against the best one.
fn whole_gate(state: &State, gate: &GateProjection, sources: &Sources<'_>) -> GateRecord {
    let scores = |skill: &str| state.selections.get(&skill_hash(skill)).cloned().unwrap_or_default();
    let before = scores(&state.initial_skill);
    let after = scores(&state.best.skill);
    let project = |item: Option<crate::trainer::evaluation::Scores>| item.map(|s| gate.score(s.hard, s.soft, ""));
    let label = |id: &str| {
        sources
            .tasks
            .get(id)
            .map(|task| task.intent.chars().take(100).collect())
            .unwrap_or_default()
    };
    let items: Vec<ItemDelta> = deltas(&before, &after)
        .into_iter()
        .map(|delta| ItemDelta {
            label: label(&delta.id),
            baseline: project(delta.before),
            candidate: project(delta.after),
            id: delta.id,
        })
        .collect();
    let baseline = gate_mean(gate, &before, &state.initial_skill);
    let candidate = state.best.score;
    let count = |pick: fn(f64, f64) -> bool| {
        items
            .iter()
            .filter(|item| item.baseline.zip(item.candidate).is_some_and(|(b, c)| pick(b, c)))
            .count()
    };
    GateRecord {
        action: "accept_new_best".to_owned(),
        accepted: true,
        rule: "strict".to_owned(),
        metric: gate.metric.name().to_owned(),
        baseline,
        candidate,
        gain: baseline.zip(candidate).map(|(baseline, candidate)| candidate - baseline),
        interval: None,
        wins: count(|before, after| after > before),
        losses: count(|before, after| after < before),
        ties: count(|before, after| after == before),
        not_measured: items.iter().filter(|i| i.baseline.is_none() || i.candidate.is_none()).count(),
        items,
    }
}

fn gate_mean(gate: &GateProjection, items: &[ItemScore], skill: &str) -> Option<f64> {
    crate::trainer::gate::means(items).map(|s| gate.score(s.hard, s.soft, skill))
}

/// What the gate said about one candidate that was turned down.
fn step_gate(record: &StepRecord, state: &State) -> GateRecord {
    let earlier = state.history.iter().rev().find(|other| other.step < record.step);
    let baseline = earlier.map(|other| other.current_score).or(Some(record.current_score));
    GateRecord {
        action: record.action.name().to_owned(),
        accepted: false,
        rule: "strict".to_owned(),
        metric: record.gate_metric.clone().unwrap_or_default(),
        baseline,
        candidate: record.candidate_gate_score,
        gain: baseline.zip(record.candidate_gate_score).map(|(before, after)| after - before),
        ..GateRecord::default()
    }
}
