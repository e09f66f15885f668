//! `train`: train a skill document on a benchmark.

use std::sync::Arc;

use skillopt_files::{Lock, Options, write_atomic};

use super::bench::{self, Plan};
use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::flags::ConfigArgs;
use super::models;
use super::progress::{Progress, TrainingProgress};
use super::provenance::Provenance;
use super::results;
use crate::bench::report;
use crate::config::launch::Command;
use crate::model::Models;
use crate::trainer::event::Observers;
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
    /// The summary as JSON; with `--dry-run` the estimate.
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
        return dry_run(context, &args, &plan, &settings);
    }
    let initial = bench::initial_skill(&plan.config)?;
    let out_root = plan.out_root.clone();
    skillopt_files::create_private_dir(&out_root).map_err(|e| Failure::situation(&e))?;
    let _lock = Lock::acquire(&out_root.join(".lock"), "a training run")
        .map_err(|e| Failure::situation(&e))?;
    let config = &plan.config;
    let provenance = Provenance::of(&plan);
    let forced = args.resume == Some(Resume::Force);
    if !forced {
        provenance.check_config(&out_root)?;
    }
    // A cut says best what is wrong with its data.
    plan.keep_split()?;
    if !forced {
        provenance.check_rest(&out_root)?;
    }
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
    provenance.write(&out_root)?;
    let trained = train(context, &plan, settings, run, &models, state).await?;
    let page = report::render(
        &config.env.name,
        &trained.state,
        &trained.summary,
        &config.to_json(),
    )
    .map_err(|error| Failure::of(ExitStatus::Bug, &error))?;
    write_atomic(
        &out_root.join("report.html"),
        page.as_bytes(),
        Options::default(),
    )
    .map_err(|e| Failure::situation(&e))?;
    if args.json {
        context
            .printer
            .json("skillopt-sleep.train/1", &trained.summary);
    } else {
        results::results(context.printer, &trained.summary, &out_root);
    }
    if models.are_scripted() {
        context
            .printer
            .note("no real model was called: the replies came from a script");
    }
    Ok(ExitStatus::Done)
}

/// Shows what would be done and what it would cost.
fn dry_run(
    context: &Context,
    args: &Args,
    plan: &Plan,
    settings: &Settings,
) -> Result<ExitStatus, Failure> {
    let skill = bench::initial_skill(&plan.config)?;
    let estimate = bench::estimate(plan, settings, &skill)?;
    if args.json {
        context
            .printer
            .json("skillopt-sleep.train-plan/1", &estimate);
    } else {
        results::plan(
            context.printer,
            &plan.config.env.name,
            &estimate,
            &plan.out_root,
        );
    }
    Ok(ExitStatus::Done)
}

async fn train(
    context: &Context,
    plan: &Plan,
    settings: Settings,
    run: RunDir,
    models: &Models,
    state: State,
) -> Result<Trained, Failure> {
    let failed = |error| models::training_failure(&error, Some(models));
    let environment = bench::environment(plan, Arc::clone(&models.target))?;
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
        Arc::clone(&plan.prompts),
        settings,
        observers,
    )
    .map_err(failed)?;
    trainer.train(state).await.map_err(failed)
}
