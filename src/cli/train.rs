//! `train`: train a skill document on a benchmark.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use skillopt_files::{Lock, read_text, write_atomic_json};

use super::bench;
use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::flags::ConfigArgs;
use super::models;
use super::progress::{Progress, TrainingProgress};
use crate::bench::dataset::Dataset;
use crate::config::EngineConfig;
use crate::config::launch::Command;
use crate::model::{Models, Usage};
use crate::trainer::event::Observers;
use crate::trainer::prompt::Prompts;
use crate::trainer::run_dir::RunDir;
use crate::trainer::settings::Settings;
use crate::trainer::state::State;
use crate::trainer::{Trained, Trainer};

/// Train a skill document on a benchmark, gated on a selection split.
///
/// Killed or interrupted, the same command goes on where it was; no finished model call is made again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  skillopt-sleep train --config configs/searchqa.yaml --out-root runs/first \\\n    \
--set env.split_dir=data/searchqa --set train.num_epochs=1"
)]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Go on with a run although its configuration changed (`--resume=force`).
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    resume: Option<Resume>,
    /// Hard limits, such as `tokens=200000,usd=1,calls=300,time=45m`.
    #[arg(long, value_name = "LIMITS")]
    budget: Vec<String>,
    /// Load, check, show what would be done; no model call.
    #[arg(long)]
    dry_run: bool,
    /// The summary as JSON.
    #[arg(long)]
    json: bool,
}

/// How to treat a run directory that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Resume {
    /// Go on when the configuration is the same.
    Auto,
    /// Go on in any case.
    Force,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let plan = bench::plan(context, Command::Train, &args.config)?;
    let settings = bench::settings(&plan.config);
    for notice in &plan.notices {
        context.printer.note(notice);
    }
    if args.dry_run {
        return Ok(show(
            context,
            &plan.config,
            &plan.dataset,
            &settings,
            &plan.out_root,
        ));
    }
    let initial = bench::initial_skill(&plan.config)?;
    let out_root = plan.out_root.clone();
    skillopt_files::create_private_dir(&out_root).map_err(|e| Failure::situation(&e))?;
    let _lock = Lock::acquire(&out_root.join(".lock"), "a training run")
        .map_err(|e| Failure::situation(&e))?;
    let config = &plan.config;
    same_configuration(&out_root, config, args.resume)?;
    plan.keep_split()?;
    let run = RunDir::open(&out_root).map_err(|e| Failure::situation(&e))?;
    let state = run
        .load()
        .map_err(|e| Failure::situation(&e))?
        .unwrap_or_else(|| State::new(initial));
    let models = models::build(
        &bench::models(config, &args.budget)?,
        &out_root.join("calls.db"),
    )
    .map_err(|error| models::failure(&error))?;
    write_atomic_json(&out_root.join("config.json"), &config.to_json())
        .map_err(|e| Failure::situation(&e))?;
    let trained = train(
        context,
        config,
        plan.dataset.clone(),
        settings,
        run,
        &models,
        state,
    )
    .await?;
    report(context, &args, &trained, &models, &out_root);
    Ok(ExitStatus::Done)
}

async fn train(
    context: &Context,
    config: &EngineConfig,
    dataset: Dataset,
    settings: Settings,
    run: RunDir,
    models: &Models,
    state: State,
) -> Result<Trained, Failure> {
    let failed = |error| models::training_failure(&error, Some(models));
    let environment = bench::environment(config, dataset, Arc::clone(&models.target))?;
    let mut observers = Observers::default();
    observers.add(run);
    observers.add(TrainingProgress(Progress::new(
        context.printer.progress(),
        context.printer.is_quiet(),
    )));
    let trainer = Trainer::new(
        &environment,
        Arc::clone(&models.optimizer),
        Arc::clone(&models.meter),
        Arc::new(Prompts::load(None).map_err(failed)?),
        settings,
        observers,
    )
    .map_err(failed)?;
    trainer.train(state).await.map_err(failed)
}

/// A run directory was made with one configuration; another one would mix two experiments.
fn same_configuration(
    out_root: &Path,
    config: &EngineConfig,
    resume: Option<Resume>,
) -> Result<(), Failure> {
    let path = out_root.join("config.json");
    if !path.exists() || resume == Some(Resume::Force) {
        return Ok(());
    }
    let text = read_text(&path, 16 << 20).map_err(|e| Failure::situation(&e))?;
    let before: Value = serde_json::from_str(&text).map_err(|e| Failure::situation(&e))?;
    let changed = changed_keys(&before, &config.to_json());
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        ExitStatus::Situation,
        format!(
            "{} was made with another configuration: {}",
            out_root.display(),
            changed.join(", ")
        ),
    )
    .hint("use another --out-root, or --resume=force to go on with the new configuration"))
}

/// The keys whose values differ, each with both.
fn changed_keys(before: &Value, after: &Value) -> Vec<String> {
    let empty = serde_json::Map::new();
    let before = before.as_object().unwrap_or(&empty);
    let after = after.as_object().unwrap_or(&empty);
    // A run directory may be moved.
    let mut keys: Vec<&String> = before
        .keys()
        .chain(after.keys())
        .filter(|key| *key != "out_root")
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| {
            let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
            format!(
                "{key} ({} → {})",
                show(before.get(key)),
                show(after.get(key))
            )
        })
        .collect()
}

/// What a run would do.
fn show(
    context: &Context,
    config: &EngineConfig,
    dataset: &Dataset,
    settings: &Settings,
    out_root: &Path,
) -> ExitStatus {
    use crate::trainer::environment::Split;
    let count = |split| dataset.split(split).len();
    let (train, selection, test) = (
        count(Split::Train),
        count(Split::Selection),
        count(Split::Test),
    );
    let limited = |n: usize, limit: usize| if limit == 0 { n } else { n.min(limit) };
    let steps = settings
        .steps_per_epoch(train)
        .saturating_mul(settings.epochs) as usize;
    let scored = limited(selection, settings.selection_items);
    let tested = if settings.eval_test {
        2 * limited(test, settings.test_items)
    } else {
        0
    };
    let target = scored + settings.epochs as usize * train + steps * scored + tested;
    let printer = context.printer;
    printer.line(format!(
        "environment  {}: {train} train, {selection} selection, {test} test",
        config.env.name
    ));
    printer.line(format!(
        "steps        {steps} in {} epochs",
        settings.epochs
    ));
    printer.line(format!("target       at most {target} calls"));
    printer.line(format!("run          {}", out_root.display()));
    ExitStatus::Done
}

fn report(context: &Context, args: &Args, trained: &Trained, models: &Models, out_root: &Path) {
    let summary = &trained.summary;
    if args.json {
        context.printer.json("skillopt-sleep.train/1", summary);
        return;
    }
    let number = |value: Option<f64>| value.map_or("—".to_owned(), |value| format!("{value:.4}"));
    let usage: Usage = summary.token_summary.values().copied().sum();
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "before", "after"]);
    table.add_row([
        format!("selection ({})", summary.gate_metric),
        number(summary.baseline_score),
        number(summary.best_selection_hard),
    ]);
    if summary.test_hard.is_some() {
        table.add_row([
            "test (hard)".to_owned(),
            number(summary.baseline_test_hard),
            number(summary.test_hard),
        ]);
    }
    context.printer.line(table.to_string());
    context.printer.line(format!(
        "{} steps: {} accepted, {} rejected, {} skipped, {} undecided",
        summary.total_steps,
        summary.total_accepts,
        summary.total_rejects,
        summary.steps_without_candidate(),
        summary.total_undecided
    ));
    context.printer.line(format!(
        "{} calls, {} tokens in, {} out",
        usage.calls, usage.prompt_tokens, usage.completion_tokens
    ));
    context.printer.line(format!(
        "best skill: {}",
        out_root.join("best_skill.md").display()
    ));
    if models.are_scripted() {
        context
            .printer
            .note("no real model was called: the replies came from a script");
    }
}
