//! `demo`: a whole night on bundled sessions with a scripted model.
//!
//! Everything but the sessions and the model is what `run` uses: the same configuration type, the
//! same night, the same staging.

use std::path::{Path, PathBuf};
use std::time::Instant;

use skillopt_files::{Options, create_private_dir, write_atomic};

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::shell::quoted;
use super::{review, run, staged};
use crate::config::{NightConfig, Paths};

/// A whole night on bundled sessions with a scripted model: no key, no network, nothing of yours read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  skillopt-sleep demo --dir my-demo")]
pub(super) struct Args {
    /// Its home; a new temporary one by default.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The bundled files: where each goes below the demo's home, and what it holds.
const FILES: &[(&str, &str)] = &[
    ("model.yaml", include_str!("../../demo/model.yaml")),
    (SKILL, include_str!("../../demo/SKILL.md")),
    (
        "claude/projects/-home-sam-src-orchard/3fa6c69d-bb9a-89df-5904-f856b6ad884e.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/3fa6c69d-bb9a-89df-5904-f856b6ad884e.jsonl"
        ),
    ),
    (
        "claude/projects/-home-sam-src-orchard/55adc861-04f9-f652-560b-61e21fc1ae0d.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/55adc861-04f9-f652-560b-61e21fc1ae0d.jsonl"
        ),
    ),
    (
        "claude/projects/-home-sam-src-orchard/852dd1f8-2e3e-259f-64bb-a3c01786969d.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/852dd1f8-2e3e-259f-64bb-a3c01786969d.jsonl"
        ),
    ),
    (
        "claude/projects/-home-sam-src-orchard/86e6d717-1862-cb80-3952-7e990edfbabf.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/86e6d717-1862-cb80-3952-7e990edfbabf.jsonl"
        ),
    ),
    (
        "claude/projects/-home-sam-src-orchard/8dc6b0c7-6fb8-8c25-ca52-cec4ae6af4bb.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/8dc6b0c7-6fb8-8c25-ca52-cec4ae6af4bb.jsonl"
        ),
    ),
    (
        "claude/projects/-home-sam-src-orchard/9a0bfe0c-d10e-3559-d9a8-0a481f4d09f9.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/9a0bfe0c-d10e-3559-d9a8-0a481f4d09f9.jsonl"
        ),
    ),
    (
        "claude/projects/-home-sam-src-orchard/fc194530-5752-a218-9d0d-ed6e2f2b0b0c.jsonl",
        include_str!(
            "../../demo/sessions/claude/projects/-home-sam-src-orchard/fc194530-5752-a218-9d0d-ed6e2f2b0b0c.jsonl"
        ),
    ),
    (
        "codex/sessions/2026/11/25/rollout-2026-11-25T09-31-00-35348c18-8442-7d74-8a0a-ed907d1b25c7.jsonl",
        include_str!(
            "../../demo/sessions/codex/sessions/2026/11/25/rollout-2026-11-25T09-31-00-35348c18-8442-7d74-8a0a-ed907d1b25c7.jsonl"
        ),
    ),
    (
        "codex/sessions/2026/11/26/rollout-2026-11-26T13-44-00-b5978a22-5dd1-7e74-584b-5d63481d60c2.jsonl",
        include_str!(
            "../../demo/sessions/codex/sessions/2026/11/26/rollout-2026-11-26T13-44-00-b5978a22-5dd1-7e74-584b-5d63481d60c2.jsonl"
        ),
    ),
    (
        "codex/sessions/2026/11/27/rollout-2026-11-27T10-20-00-9ec88a4b-4ffc-7420-28d7-ed33ba9da91c.jsonl",
        include_str!(
            "../../demo/sessions/codex/sessions/2026/11/27/rollout-2026-11-27T10-20-00-9ec88a4b-4ffc-7420-28d7-ed33ba9da91c.jsonl"
        ),
    ),
];

/// The document that the night may change.
const SKILL: &str = "claude/skills/orchard-habits/SKILL.md";

pub(super) async fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let home = home(args.dir)?;
    let config_path = lay_out(&home)?;
    let config =
        NightConfig::read(&config_path, true).map_err(|error| Failure::situation(&error))?;
    let paths = Paths {
        config: config_path,
        state: home.join("state"),
    };
    let context = Context::at(paths, config.clone(), context.printer);
    let plan = run::plan(&context, &config, &run::Args::default())?;
    let (outcome, _) = run::night(&context, &config, &plan).await?;
    if let Some(error) = &outcome.error {
        return Err(Failure::situation(error));
    }
    context
        .printer
        .line(outcome.report.to_markdown().trim_end());
    let area = staged::open(&context.paths.staging())?;
    let listing = area.list().map_err(|error| Failure::situation(&error))?;
    for staged in &review::with_texts(&area, listing.staged)? {
        context
            .printer
            .line(format!("\n# {}\n", staged.proposal.id));
        context.printer.diff(&staged::diff(staged));
    }
    farewell(&context, &home, started.elapsed().as_secs_f64());
    Ok(ExitStatus::Done)
}

fn home(dir: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let Some(dir) = dir else {
        return tempfile::Builder::new()
            .prefix("skillopt-sleep-demo-")
            .tempdir()
            .map(tempfile::TempDir::keep)
            .map_err(|error| Failure::situation(&error));
    };
    let dir = super::context::absolute(&dir);
    if dir.join("state").exists() {
        return Err(Failure::new(
            ExitStatus::Situation,
            format!("{} already holds a demo", dir.display()),
        )
        .hint("name another folder, or remove this one"));
    }
    create_private_dir(&dir).map_err(|error| Failure::situation(&error))?;
    Ok(dir)
}

/// Writes the bundled files and a configuration that points at them.
fn lay_out(home: &Path) -> Result<PathBuf, Failure> {
    let options = Options {
        create_parents: true,
        ..Options::default()
    };
    for (name, text) in FILES {
        write_atomic(&home.join(name), text.as_bytes(), options)
            .map_err(|error| Failure::situation(&error))?;
    }
    let config = home.join("config.yaml");
    let text = format!(
        "# The bundled night.\n\
         homes: {{claude: {claude:?}, codex: {codex:?}}}\n\
         projects: {{mode: all}}\n\
         lookback: null\n\
         documents: {{skill: {{path: {skill:?}}}}}\n\
         train: {{batch_size: 3, edit_budget: 2}}\n\
         models:\n\
         \x20 optimizer: {{backend: scripted, script: {script:?}}}\n\
         \x20 target: {{backend: scripted, script: {script:?}}}\n",
        claude = home.join("claude"),
        codex = home.join("codex"),
        skill = home.join(SKILL),
        script = home.join("model.yaml"),
    );
    write_atomic(&config, text.as_bytes(), options).map_err(|error| Failure::situation(&error))?;
    Ok(config)
}

fn farewell(context: &Context, home: &Path, seconds: f64) {
    let printer = context.printer;
    printer.line(format!(
        "\nThe night took {seconds:.1} s. No model was called: the replies came from a script."
    ));
    printer.line(format!(
        "Everything is in {}. To look around with the other commands:\n",
        home.display()
    ));
    printer.line(format!(
        "  export SKILLOPT_SLEEP_HOME={}",
        quoted(&context.paths.state)
    ));
    printer.line(format!(
        "  export SKILLOPT_SLEEP_CONFIG={}",
        quoted(&context.paths.config)
    ));
    printer.line("  skillopt-sleep review --show        # diff, evidence and verdict");
    printer.line("  skillopt-sleep review --accept && skillopt-sleep adopt");
    printer.line("  skillopt-sleep revert               # and back again");
}
