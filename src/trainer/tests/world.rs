//! A world for whole runs: four kinds of items, each of which needs its own rule, and an optimizer
//! whose replies depend on nothing but the question.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::super::environment::{Environment, Item, Outcome, Rollout, Split};
use super::super::error::TrainError;
use super::super::event::Observers;
use super::super::gate_rule::{DensityBonus, GateMetric, GateProjection};
use super::super::prompt::Prompts;
use super::super::reflect::SkillAware;
use super::super::run_dir::RunDir;
use super::super::schedule::LrControl;
use super::super::settings::Settings;
use super::super::state::State;
use super::super::update_mode::UpdateMode;
use super::super::{Trained, Trainer};
use crate::model::meter::{Meter, Metered};
use crate::model::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Role, Usage};

/// The three of them.
pub(super) const MODES: [UpdateMode; 3] = [
    UpdateMode::Patch,
    UpdateMode::RewriteFromSuggestions,
    UpdateMode::FullRewriteMinibatch,
];

/// Attempts and calls take a time that depends on `disorder`, so that they end in another order.
pub(super) struct World {
    train: Vec<Item>,
    selection: Vec<Item>,
    test: Vec<Item>,
    disorder: u64,
    /// Nothing can be measured.
    pub(super) dark: bool,
}

impl World {
    pub(super) fn new(disorder: u64) -> World {
        let items = |prefix: &str, count: usize| {
            (0..count)
                .map(|index| Item {
                    id: format!("{prefix}{index}"),
                    payload: json!({"needs": format!("RULE-{}", index % 4)}),
                })
                .collect()
        };
        World {
            train: items("t", 8),
            selection: items("v", 8),
            test: items("e", 4),
            disorder,
            dark: false,
        }
    }
}

fn delay(disorder: u64, what: &str) -> Duration {
    let mixed = blake3::hash(format!("{disorder} {what}").as_bytes());
    Duration::from_millis(u64::from(mixed.as_bytes()[0]))
}

impl Environment for World {
    fn name(&self) -> &str {
        "world"
    }

    fn items(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.train,
            Split::Selection => &self.selection,
            Split::Test => &self.test,
        }
    }

    async fn attempt(&self, item: &Item, skill: &str, sample: &str) -> Rollout {
        tokio::time::sleep(delay(self.disorder, &format!("{} {sample}", item.id))).await;
        if self.dark {
            return Rollout::not_measured(item, &CallError::new(CallErrorKind::Server, "no light"));
        }
        let need = item.payload["needs"].as_str().unwrap_or_default();
        let passed = skill.contains(need);
        let mut rollout = Rollout::unusable(item, "");
        rollout.outcome = Outcome::Measured {
            hard: f64::from(u8::from(passed)),
            soft: if passed { 1.0 } else { 0.25 },
        };
        rollout.fail_reason = if passed {
            String::new()
        } else {
            format!("missing: {need}")
        };
        rollout.conversation = vec![json!({"role": "assistant", "content": "tried"})];
        rollout
    }
}

/// What the optimizer is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Temper {
    /// Answers every question as it should.
    Helpful,
    /// Answers nothing.
    Away,
    /// Answers with prose.
    Prose,
    /// Answers with JSON of the wrong shapes.
    Wrong,
}

/// An optimizer that answers in a random order.
pub(super) struct Oracle {
    pub(super) temper: Temper,
    pub(super) disorder: u64,
}

impl ChatModel for Oracle {
    fn id(&self) -> &str {
        "oracle/test"
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move {
            tokio::time::sleep(delay(self.disorder, &request.sample)).await;
            let text = match self.temper {
                Temper::Helpful => helpful(request).to_string(),
                Temper::Away => return Err(CallError::new(CallErrorKind::Server, "away")),
                Temper::Prose => "I would rather talk about {something} else.".to_owned(),
                Temper::Wrong => wrong(request).to_string(),
            };
            Ok(ChatReply {
                text,
                usage: Usage {
                    calls: 1,
                    prompt_tokens: 10,
                    completion_tokens: 5,
                    ..Usage::default()
                },
                finish_reason: None,
            })
        })
    }
}

/// A number from 0 to 3 that depends on the question's sample.
fn pick(request: &ChatRequest) -> u8 {
    blake3::hash(request.sample.as_bytes()).as_bytes()[0] % 4
}

fn helpful(request: &ChatRequest) -> Value {
    let rule = format!("- RULE-{} ALWAYS", pick(request));
    match request.stage {
        "analyst" => json!({
            "failure_summary": [{"failure_type": "gap", "description": request.sample}],
            "appendix_notes": [format!("remember {}", pick(request))],
            "patch": {
                "reasoning": request.sample,
                "edits": [{"op": "append", "content": rule}, {"op": "append", "content": "- filler"}],
                "revise_suggestions": [{"type": "add_rule", "title": rule, "instruction": rule}],
                "skill_candidates": [{"title": "t", "change_summary": ["c"],
                    "new_skill": format!("# Skill\n\n{rule}\n\n[[PROTECTED]]\n")}],
            },
        }),
        "ranking" => json!({"selected_indices": [1, 0]}),
        "lr_autonomous" => json!({"learning_rate": 2, "reasoning": request.sample}),
        "rewrite" => json!({"new_skill": format!("# Skill\n\n{rule}\n"), "change_summary": ["c"]}),
        "slow_update" => json!({"slow_update_content": format!("guidance {}", request.sample)}),
        "meta_skill" => json!({"meta_skill_content": format!("memory {}", request.sample)}),
        "appendix_consolidate" => json!({"appendix_notes": ["remember all"]}),
        // A merge that says nothing keeps everything.
        _ => json!("merged"),
    }
}

fn wrong(request: &ChatRequest) -> Value {
    let junk = json!([null, 5, "text", [], {"op": 7, "content": {}, "target": [1]}]);
    match request.stage {
        "analyst" => json!({
            "batch_size": "many", "failure_summary": [null, {"failure_type": {}}],
            "appendix_notes": {"note": 1}, "source_type": [],
            "patch": {"reasoning": 3, "edits": junk, "revise_suggestions": junk, "skill_candidates": junk},
        }),
        "merge" => json!({"edits": junk, "revise_suggestions": {}, "skill_candidates": null}),
        "ranking" => json!({"selected_indices": {"0": 1}}),
        "lr_autonomous" => json!({"learning_rate": {"about": "three"}, "risk_notes": "none"}),
        "rewrite" => json!({"new_skill": ["# Skill"], "change_summary": 4}),
        "slow_update" => json!({"slow_update_content": {"text": "x"}}),
        "meta_skill" => json!({"meta_skill_content": [1, 2]}),
        _ => json!({"appendix_notes": [[], null, {"note": {}}]}),
    }
}

/// Everything switched on at once.
pub(super) fn everything(update_mode: UpdateMode) -> Settings {
    Settings {
        epochs: 3,
        batch_size: 2,
        accumulation: 2,
        minibatch_size: 1,
        merge_batch_size: 2,
        update_mode,
        lr_control: LrControl::Autonomous,
        use_slow_update: true,
        slow_update_samples: 4,
        slow_update_gated: true,
        use_meta_skill: true,
        skill_aware: SkillAware::Both,
        consolidate_threshold: 2,
        gate: GateProjection {
            metric: GateMetric::Mixed,
            mixed_weight: 0.5,
            density: Some(DensityBonus {
                weight: 0.05,
                words: None,
            }),
        },
        eval_test: true,
        ..Settings::default()
    }
}

/// Trains in `dir` from `skill`, or goes on from what is there.
pub(super) async fn train_in(
    dir: &Path,
    world: &World,
    oracle: Oracle,
    settings: Settings,
    skill: &str,
) -> Result<Trained, TrainError> {
    let run = RunDir::open(dir)?;
    let state = run.load()?.unwrap_or_else(|| State::new(skill.to_owned()));
    let mut observers = Observers::default();
    observers.add(run);
    let meter = Arc::new(Meter::default());
    let model = Arc::new(Metered::new(
        Arc::new(oracle),
        Role::Optimizer,
        meter.clone(),
    ));
    let prompts = Arc::new(Prompts::load(None, &[])?);
    Trainer::new(world, model, meter, prompts, settings, observers)?
        .train(state)
        .await
}
