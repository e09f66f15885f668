//! Training one document of a night and staging what comes of it.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use skillopt_harvesters::{Agent, Session};
use skillopt_staging::{Cost, StagingArea};

use super::assignment::{Scope, lies_in};
use super::cycle::NightError;
use super::document::{Document, DocumentKind};
use super::event::{NightEvent, Watch};
use super::guidance::{Declined, guidance};
use super::housekeeping;
use super::observers::Relay;
use super::replay::{ReplayEnvironment, ReplayParts};
use super::report::{DocumentReport, StepLine, TaskCounts};
use super::stage::{self, Made, Sources, StageError};
use super::task::{Task, short_hash};
use crate::config::NightConfig;
use crate::config::modes::GateRuleName;
use crate::model::Models;
use crate::trainer::confident::ConfidentSettings;
use crate::trainer::event::Observers;
use crate::trainer::gate::GateRule;
use crate::trainer::gate_rule::{GateAction, GateProjection};
use crate::trainer::prompt::Prompts;
use crate::trainer::run_dir::{RunDir, path_component};
use crate::trainer::settings::Settings;
use crate::trainer::state::{State, StepRecord};
use crate::trainer::{Trained, Trainer};

/// The night's own prompts, beside the trainer's.
const PROMPTS: &[(&str, &str)] = &[
    ("attempt", include_str!("prompts/attempt.md")),
    ("judge", include_str!("prompts/judge.md")),
    ("guidance", include_str!("prompts/guidance.md")),
];

/// A document with what it is trained on.
pub struct Trainee {
    /// The document as it was when the night began.
    pub document: Document,
    /// Why it has these tasks.
    pub scope: Scope,
    /// Its own tasks, split.
    pub tasks: Vec<Task>,
}

/// What the documents of a night have in common.
pub struct Training<'a> {
    /// The night's number.
    pub night: i64,
    /// The configuration.
    pub config: &'a NightConfig,
    /// Where proposals go.
    pub staging: StagingArea,
    /// Follows what happens.
    pub watch: Arc<dyn Watch>,
    /// The night's run directory.
    pub dir: PathBuf,
    /// The sessions that the tasks come from.
    pub sessions: &'a [Session],
    /// The agents' homes.
    pub homes: &'a [(Agent, PathBuf)],
    /// The models.
    pub models: &'a Models,
}

impl Training<'_> {
    /// Trains a document, with the others of `all` as they are, and stages the result when the gate
    /// accepted one.
    ///
    /// # Errors
    /// When training cannot go on or the result cannot be staged.
    pub async fn train(
        &self,
        trainee: &Trainee,
        all: &[Trainee],
    ) -> Result<DocumentReport, NightError> {
        let document = &trainee.document;
        self.watch.watch(&NightEvent::TrainingStarted {
            document: &document.name,
        });
        let before = self.models.budget.spent();
        let run = RunDir::open(&self.dir.join(folder(document))).map_err(StageError::from)?;
        let settings = self.settings();
        let trained = self.run(trainee, all, &run, settings.clone()).await?;
        let improved = trained.state.best.skill != trained.state.initial_skill;
        self.watch.watch(&NightEvent::TrainingFinished {
            document: &document.name,
            improved,
        });
        let mut report = document_report(trainee, &trained, &run)?;
        let suggestion = if improved { None } else { undecided(&trained) };
        if improved || suggestion.is_some() {
            let spent = self.models.budget.spent();
            let cost = Cost {
                calls: spent.calls - before.calls,
                tokens: spent.tokens - before.tokens,
                usd: Some(spent.usd - before.usd).filter(|usd| *usd > 0.0),
            };
            let id = self.stage(trainee, &trained, &settings, &run, cost, suggestion)?;
            report.proposal = Some(id);
            report.verified = improved;
        } else {
            report.reason = Some(no_proposal_reason(&trained));
        }
        Ok(report)
    }

    async fn run(
        &self,
        trainee: &Trainee,
        all: &[Trainee],
        run: &RunDir,
        settings: Settings,
    ) -> Result<Trained, NightError> {
        let document = &trainee.document;
        let prompts = Arc::new(Prompts::load(None, PROMPTS)?);
        let environment = ReplayEnvironment::new(ReplayParts {
            tasks: trainee.tasks.clone(),
            target: Arc::clone(&self.models.target),
            grader: Arc::clone(&self.models.optimizer),
            trained: document.kind,
            beside: beside(document, all),
            companion: companion(trainee, all),
            guidance: guidance(&prompts, &self.config.preferences, &self.declined())?,
            prompts: Arc::clone(&prompts),
        });
        let mut observers = Observers::default();
        observers.add(run.clone());
        observers.add(Relay {
            document: document.name.clone(),
            watch: Arc::clone(&self.watch),
        });
        let trainer = Trainer::new(
            &environment,
            Arc::clone(&self.models.optimizer),
            Arc::clone(&self.models.meter),
            prompts,
            settings,
            observers,
        )?;
        let state = match run.load().map_err(StageError::from)? {
            Some(state) => state,
            None => State::new(document.trainable()?),
        };
        Ok(trainer.train(state).await?)
    }

    fn settings(&self) -> Settings {
        let train = &self.config.train;
        Settings {
            epochs: u32::try_from(train.epochs).unwrap_or(u32::MAX),
            batch_size: train.batch_size,
            seed: self.config.seed(),
            minibatch_size: train.minibatch_size,
            merge_batch_size: train.merge_batch_size,
            lr_scheduler: train.lr_scheduler,
            edit_budget: train.edit_budget,
            min_edit_budget: train.min_edit_budget,
            gate: GateProjection {
                metric: train.gate_metric,
                mixed_weight: train.gate_mixed_weight,
                density: None,
            },
            gate_rule: match train.gate_rule {
                GateRuleName::Strict => GateRule::Strict { full_scores: false },
                GateRuleName::Confident => GateRule::Confident(ConfidentSettings {
                    alpha: train.gate_alpha,
                    max_repeats: train.gate_max_repeats.max(1),
                    ..ConfidentSettings::default()
                }),
            },
            no_regression: train.gate_no_regression,
            attribute: train.gate_attribute,
            ..Settings::default()
        }
    }

    /// What the developer and earlier gates turned down.
    fn declined(&self) -> Vec<Declined> {
        match self.staging.rejections() {
            Ok(rejections) => rejections
                .into_iter()
                .rev()
                .flat_map(|rejection| {
                    let reason = match rejection.reason.as_str() {
                        "" => "the developer declined it".to_owned(),
                        reason => format!("the developer declined it: {reason}"),
                    };
                    rejection.edits.into_iter().map(move |edit| Declined {
                        edit: edit.content,
                        reason: reason.clone(),
                    })
                })
                .collect(),
            Err(error) => {
                tracing::warn!("earlier rejections are not passed on: {error}");
                Vec::new()
            }
        }
    }

    fn stage(
        &self,
        trainee: &Trainee,
        trained: &Trained,
        settings: &Settings,
        run: &RunDir,
        cost: Cost,
        suggestion: Option<&StepRecord>,
    ) -> Result<String, NightError> {
        let document = &trainee.document;
        let sources = Sources {
            tasks: trainee
                .tasks
                .iter()
                .map(|task| (task.id.as_str(), task))
                .collect(),
            sessions: self
                .sessions
                .iter()
                .map(|session| (session.id.as_str(), session))
                .collect(),
        };
        let draft = stage::draft(&Made {
            night: self.night,
            created: Timestamp::now(),
            document,
            trained: &trained.state,
            gate: &settings.gate,
            run,
            sources: &sources,
            homes: self.homes,
            cost,
            suggestion,
        })?;
        let id = match self.already_staged(&draft)? {
            Some(id) => id,
            None => self.staging.stage(draft).map_err(StageError::from)?.id,
        };
        housekeeping::supersede(&self.staging, &id, &document.path, Timestamp::now())
            .map_err(StageError::from)?;
        self.watch.watch(&NightEvent::Staged {
            proposal: &id,
            path: &document.path.display().to_string(),
        });
        Ok(id)
    }

    /// A night that goes on may have staged this document before it was interrupted.
    fn already_staged(
        &self,
        draft: &skillopt_staging::Draft,
    ) -> Result<Option<String>, NightError> {
        let listing = self.staging.list().map_err(StageError::from)?;
        Ok(listing
            .staged
            .into_iter()
            .map(|staged| staged.proposal)
            .find(|proposal| {
                proposal.night == draft.night && proposal.document.path == draft.document.path
            })
            .map(|proposal| proposal.id))
    }
}

/// The name of a document's run directory. Two projects may have documents of one name.
fn folder(document: &Document) -> String {
    let path = document.path.to_string_lossy();
    format!(
        "{}-{}-{}",
        document.kind.name(),
        path_component(&document.name),
        short_hash(&[&path], 8)
    )
}

/// What stands above the trained text: the SKILL.md of the skill that a reference belongs to.
fn beside(document: &Document, all: &[Trainee]) -> String {
    if document.kind != DocumentKind::Reference {
        return String::new();
    }
    let skill = all.iter().map(|other| &other.document).find(|other| {
        let folder = other.path.parent();
        other.kind == DocumentKind::Skill
            && folder.is_some_and(|folder| document.path.starts_with(folder))
    });
    skill
        .and_then(|skill| skill.text.clone())
        .unwrap_or_default()
}

/// The text that stands beside the trained document in every attempt. While a skill is trained these
/// are the instruction files of its tasks' projects; while an instruction file is, the skills that
/// are not bound to some of the tasks.
fn companion(trainee: &Trainee, all: &[Trainee]) -> String {
    let of_skill = |other: &&Trainee| match &other.scope {
        Scope::Under(folder) => trainee
            .tasks
            .iter()
            .any(|task| lies_in(&task.project, folder)),
        _ => true,
    };
    let trained = trainee.document.kind;
    let companions = all.iter().filter(|other| match trained {
        DocumentKind::Memory => {
            other.document.kind == DocumentKind::Skill && other.scope != Scope::Used
        }
        DocumentKind::Skill | DocumentKind::Reference => {
            other.document.kind == DocumentKind::Memory && of_skill(other)
        }
    });
    companions
        .filter_map(|companion| companion.document.text.as_deref())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn document_report(
    trainee: &Trainee,
    trained: &Trained,
    run: &RunDir,
) -> Result<DocumentReport, NightError> {
    let document = &trainee.document;
    let state = &trained.state;
    let mut steps = Vec::new();
    let mut before = trained.summary.baseline_score;
    for record in &state.history {
        let edits = run.step_edits(record.step).map_err(StageError::from)?;
        steps.push(StepLine {
            step: record.step,
            action: record.action.name().to_owned(),
            before,
            after: record.candidate_gate_score,
            edits: edits
                .map(|(items, _)| items.iter().map(edit_line).collect())
                .unwrap_or_default(),
        });
        before = Some(record.current_score);
    }
    Ok(DocumentReport {
        kind: document.kind.name().to_owned(),
        name: document.name.clone(),
        path: document.path.display().to_string(),
        tasks: TaskCounts::of(&trainee.tasks),
        baseline: trained.summary.baseline_score,
        candidate: state.best.score,
        metric: trained.summary.gate_metric.clone(),
        accepted: state.best.skill != state.initial_skill,
        steps,
        proposal: None,
        verified: false,
        reason: None,
        adoption: None,
        held: None,
    })
}

/// An edit in one line: its operation and its text, or the text that it removes.
fn edit_line(item: &serde_json::Map<String, serde_json::Value>) -> String {
    let text = |key: &str| {
        item.get(key)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .trim()
    };
    let content = if text("content").is_empty() {
        text("target")
    } else {
        text("content")
    };
    format!("{}: {content}", text("op"))
}

/// The most promising candidate that the gate could not decide about. It is staged as a suggestion,
/// labelled as not verified.
fn undecided(trained: &Trained) -> Option<&StepRecord> {
    let gain = |record: &&StepRecord| {
        record
            .gate_estimate
            .as_ref()
            .and_then(|estimate| estimate.gain)
    };
    trained
        .state
        .history
        .iter()
        .filter(|record| record.action == GateAction::Undecided)
        .filter(|record| gain(record).is_some_and(|gain| gain > 0.0))
        .max_by(|one, other| {
            gain(one)
                .partial_cmp(&gain(other))
                .unwrap_or(Ordering::Equal)
        })
}

/// Why nothing was staged (weakness 7).
fn no_proposal_reason(trained: &Trained) -> String {
    let summary = &trained.summary;
    if summary.total_steps == summary.steps_without_candidate() {
        "no analyst proposed an edit that changes the document".to_owned()
    } else if summary.total_undecided > 0 && summary.total_rejects == 0 {
        "too little could be measured to decide".to_owned()
    } else {
        "no candidate was better on the validation tasks".to_owned()
    }
}
