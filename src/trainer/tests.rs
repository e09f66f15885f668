//! Whole runs over a toy environment: an item passes when the skill has every string that it needs.

mod contents;
mod faults;
mod modes;
mod obstacles;
mod order;
mod recovery;
mod world;

use std::sync::Arc;

use serde_json::{Value, json};

use super::environment::{Environment, Item, Outcome, Rollout, Split};
use super::event::{Event, Observer, Observers};
use super::gate_rule::GateAction;
use super::prompt::Prompts;
use super::run_dir::RunDir;
use super::settings::Settings;
use super::state::State;
use super::{Trained, Trainer};
use crate::model::meter::{Meter, Metered};
use crate::model::scripted::Scripted;
use crate::model::{CallError, CallErrorKind, Role};

struct Toy {
    train: Vec<Item>,
    selection: Vec<Item>,
    /// Items whose attempts cannot be measured once the skill has this string.
    outage_from: Option<&'static str>,
}

impl Toy {
    fn new(train: &[&str], selection: &[&str]) -> Self {
        let items = |prefix: &str, needs: &[&str]| {
            needs
                .iter()
                .enumerate()
                .map(|(index, need)| Item {
                    id: format!("{prefix}{index}"),
                    payload: json!({"needs": need}),
                })
                .collect()
        };
        Self {
            train: items("t", train),
            selection: items("v", selection),
            outage_from: None,
        }
    }
}

impl Environment for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn items(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.train,
            Split::Selection => &self.selection,
            Split::Test => &[],
        }
    }

    async fn attempt(&self, item: &Item, skill: &str, _sample: &str) -> Rollout {
        let outage = self
            .outage_from
            .is_some_and(|marker| skill.contains(marker));
        if outage && item.id.starts_with('v') && item.id != "v0" {
            return Rollout::not_measured(
                item,
                &CallError::new(CallErrorKind::Server, "it is down"),
            );
        }
        let need = item
            .payload
            .get("needs")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let passed = f64::from(u8::from(skill.contains(need)));
        let mut rollout = Rollout::unusable(item, "");
        rollout.outcome = Outcome::Measured {
            hard: passed,
            soft: passed,
        };
        rollout.conversation = vec![json!({"role": "assistant", "content": "tried"})];
        rollout.fail_reason = if passed > 0.0 {
            String::new()
        } else {
            format!("missing: {need}")
        };
        rollout
    }
}

/// Proposes the edit that is still missing: first RULE-A, then a useless one.
const SCRIPT: &str = r#"
rules:
  - name: first
    when: {stage: analyst, system_contains: [FAILED], not_contains: ["- RULE-A"]}
    reply: {patch: {reasoning: r, edits: [{op: append, content: "- RULE-A"}]}}
  - name: then
    when: {stage: analyst, system_contains: [FAILED]}
    reply: {patch: {reasoning: r, edits: [{op: append, content: "- RULE-X"}]}}
  - name: nothing
    when: {stage: analyst}
    reply: {patch: {reasoning: r, edits: []}}
"#;

async fn train(toy: &Toy, script: &str, settings: Settings, observers: Observers) -> Trained {
    let meter = Arc::new(Meter::default());
    let model = Arc::new(Scripted::from_text("test", script).unwrap());
    let optimizer = Arc::new(Metered::new(model, Role::Optimizer, meter.clone()));
    let prompts = Arc::new(Prompts::load(None, &[]).unwrap());
    let trainer = Trainer::new(toy, optimizer, meter, prompts, settings, observers).unwrap();
    trainer
        .train(State::new("# Skill\n".to_owned()))
        .await
        .unwrap()
}

fn two_steps() -> Settings {
    Settings {
        batch_size: 2,
        ..Settings::default()
    }
}

#[tokio::test]
async fn a_better_candidate_is_taken_and_a_useless_one_is_not() {
    let toy = Toy::new(&["RULE-B"; 4], &["RULE-A", "RULE-B"]);
    let trained = train(&toy, SCRIPT, two_steps(), Observers::default()).await;
    let actions: Vec<_> = trained
        .state
        .history
        .iter()
        .map(|record| record.action)
        .collect();
    assert_eq!(actions, [GateAction::AcceptNewBest, GateAction::Reject]);
    assert_eq!(trained.state.best.skill, "# Skill\n\n- RULE-A\n");
    assert_eq!(trained.state.best.score, Some(0.5));
    assert_eq!(trained.summary.total_accepts, 1);
    assert_eq!(trained.summary.baseline_selection_hard, Some(0.0));
}

#[tokio::test]
async fn edits_of_an_accepted_batch_that_help_nothing_are_taken_out() {
    let script = r#"
rules:
  - name: batch
    when: {stage: analyst}
    reply: {patch: {reasoning: r, edits: [
      {op: append, content: "- RULE-A"}, {op: append, content: "- RULE-X"},
      {op: append, content: "- RULE-B"}, {op: append, content: "- RULE-Y"}]}}
"#;
    let toy = Toy::new(&["RULE-B"; 2], &["RULE-A", "RULE-B", "RULE-C"]);
    let settings = Settings {
        attribute: true,
        ..two_steps()
    };
    let trained = train(&toy, script, settings, Observers::default()).await;
    let record = &trained.state.history[0];
    assert_eq!(record.action, GateAction::AcceptNewBest);
    assert_eq!(
        trained.state.best.skill,
        "# Skill\n\n- RULE-A\n\n- RULE-B\n"
    );
    let attribution = record.attribution.as_ref().unwrap();
    assert_eq!(attribution.dropped(), [1, 3]);
    let third = 1.0 / 3.0;
    let gains: Vec<_> = attribution.edits.iter().map(|edit| edit.gain).collect();
    assert!((gains[0].unwrap() - third).abs() < 1e-9);
    assert_eq!(gains[1], Some(0.0));
}

#[tokio::test]
async fn an_outage_while_scoring_a_candidate_decides_nothing() {
    let mut toy = Toy::new(&["RULE-A", "RULE-A"], &["RULE-A", "RULE-A", "RULE-A"]);
    toy.outage_from = Some("RULE-A");
    let trained = train(&toy, SCRIPT, two_steps(), Observers::default()).await;
    assert_eq!(trained.state.history[0].action, GateAction::Undecided);
    assert_eq!(trained.state.current.skill, "# Skill\n");
}

#[tokio::test]
async fn edits_that_change_nothing_are_not_scored() {
    let script = r#"
rules:
  - name: only
    when: {stage: analyst}
    reply: {patch: {reasoning: r, edits: [{op: replace, target: "not there", content: "x"}]}}
"#;
    let toy = Toy::new(&["RULE-A"], &["RULE-A"]);
    let trained = train(&toy, script, Settings::default(), Observers::default()).await;
    assert_eq!(trained.state.history[0].action, GateAction::SkipNoChange);
    assert_eq!(trained.state.selections.len(), 1);
}

#[tokio::test]
async fn the_run_directory_holds_the_state_that_training_ended_with() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::open(dir.path()).unwrap();
    let mut observers = Observers::default();
    observers.add(run.clone());
    let toy = Toy::new(&["RULE-A", "RULE-B"], &["RULE-A"]);
    let trained = train(&toy, SCRIPT, two_steps(), observers).await;
    let loaded = run.load().unwrap().unwrap();
    assert_eq!(loaded, trained.state);
    for file in [
        "history.json",
        "summary.json",
        "best_skill.md",
        "skills/skill_v0000.md",
        "skills/skill_v0001.md",
        "steps/step_0001/rollout/results.jsonl",
        "steps/step_0001/patches/minibatch_fail_000.json",
        "steps/step_0001/merged_patch.json",
        "steps/step_0001/ranked_edits.json",
        "steps/step_0001/candidate_skill.md",
        "steps/step_0001/edit_apply_report.json",
        "steps/step_0001/selection_eval/results.jsonl",
        "steps/step_0001/trajectory_digest.json",
        "steps/step_0001/step_record.json",
        "selection_eval_baseline/results.jsonl",
        "events.jsonl",
    ] {
        assert!(dir.path().join(file).exists(), "{file} is missing");
    }
}

struct FailsAfter(usize);

impl Observer for FailsAfter {
    fn observe(&mut self, _event: &Event<'_>) -> std::io::Result<()> {
        if self.0 == 0 {
            return Err(std::io::Error::other("disk full"));
        }
        self.0 -= 1;
        Ok(())
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_recorded_stops() {
    let toy = Toy::new(&["RULE-A"], &["RULE-A"]);
    let mut observers = Observers::default();
    observers.add(FailsAfter(3));
    let model = Arc::new(Scripted::from_text("test", SCRIPT).unwrap());
    let prompts = Arc::new(Prompts::load(None, &[]).unwrap());
    let trainer = Trainer::new(
        &toy,
        model,
        Arc::default(),
        prompts,
        Settings::default(),
        observers,
    )
    .unwrap();
    let error = trainer.train(State::new(String::new())).await.unwrap_err();
    assert!(error.to_string().contains("disk full"), "{error}");
}
