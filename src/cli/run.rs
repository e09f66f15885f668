//! `run`: one night now.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use skillopt_staging::{AllowedRoots, Lookup, PROJECT_SKILLS};

use super::context::{Context, absolute, config_failure};
use super::failure::{ExitStatus, Failure};
use super::models;
use super::notices;
use super::progress::Progress;
use super::selection::Selection;
use crate::config::NightConfig;
use crate::config::night::Source;
use crate::model::Models;
use crate::night::assignment::{PlannedDocument, Scope};
use crate::night::cycle::{Night, NightError, NightOutcome};
use crate::night::document::DocumentKind;
use crate::night::plan::NightPlan;
use crate::night::report::{DocumentReport, NightReport, TaskCounts, score};
use crate::night::split::Fractions;
use crate::night::task::Task;
use crate::night::{mine, split, tasks_file};
use crate::store::{NightStatus, Store};

/// Run one night now: read logs, mine tasks, train, stage proposals.
///
/// Nothing that an agent reads is changed; `review` and `adopt` do that. The exception is
/// `staging.auto_adopt`, which is off unless your configuration turns it on.
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep run --dry-run\n  skillopt-sleep run --target triage --dry-run\n  skillopt-sleep run --project . \
--budget calls=200,time=30m\n  skillopt-sleep run --model both=openai_compatible:qwen3@http://127.0.0.1:8089/v1"
)]
pub(super) struct Args {
    /// Read, mine and show the plan; no model call, nothing staged.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    sessions: Selection,
    /// Most tasks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tasks: Option<u32>,
    /// Tasks to use instead of mined ones: a file that `harvest tasks --output` wrote and you looked
    /// over, with `"reviewed": true`.
    #[arg(long, value_name = "FILE")]
    tasks_file: Option<PathBuf>,
    /// Which documents may change, instead of the usual ones: `skill`, `memory`, a skill's name, or a
    /// path; may be given often.
    #[arg(long, value_name = "NAME|PATH")]
    target: Vec<String>,
    /// Which model plays a role: `optimizer`, `target` or `both`; may be given often.
    #[arg(long, value_name = "ROLE=SPEC")]
    model: Vec<String>,
    /// Hard limits, such as `tokens=200000,usd=1,calls=300,time=45m`.
    #[arg(long, value_name = "LIMITS")]
    budget: Vec<String>,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let config = configured(context.config()?.clone(), &args)?;
    let plan = plan(context, &config, &args)?;
    if args.dry_run {
        return dry_run(context, &config, &plan);
    }
    for notice in config.notices() {
        context.printer.note(notice);
    }
    let outcome = night(context, &config, &plan).await?;
    finish(context, outcome, args.json)
}

/// Runs a night as `run` and `demo` do.
pub(super) async fn night(
    context: &Context,
    config: &NightConfig,
    plan: &NightPlan,
) -> Result<(NightOutcome, Option<Arc<Models>>), Failure> {
    let mut used = None;
    let night = Night {
        config,
        paths: &context.paths,
        watch: Arc::new(Progress::new(
            context.printer.progress(),
            context.printer.is_quiet(),
        )),
    };
    let outcome = night
        .run(plan, |journal| {
            let models = Arc::new(models::build(&config.models(), journal)?);
            used = Some(Arc::clone(&models));
            Ok(models)
        })
        .await
        .map_err(|error| failure(&error, None))?;
    Ok((outcome, used))
}

/// The configuration with what the command line says on top.
fn configured(mut config: NightConfig, args: &Args) -> Result<NightConfig, Failure> {
    args.sessions.apply(&mut config)?;
    if let Some(max_tasks) = args.max_tasks {
        config.max_tasks = max_tasks as usize;
    }
    for limits in &args.budget {
        config
            .budget
            .apply(limits)
            .map_err(|error| config_failure(&error))?;
    }
    for text in &args.model {
        config
            .models
            .select(text)
            .map_err(|error| models::failure(&error))?;
    }
    config.validate().map_err(|error| config_failure(&error))?;
    Ok(config)
}

pub(super) fn plan(
    context: &Context,
    config: &NightConfig,
    args: &Args,
) -> Result<NightPlan, Failure> {
    let (documents, roots) = documents(context, config, args)?;
    Ok(NightPlan {
        gatherer: args
            .sessions
            .gatherer(context, config, usual_since(context, config)?)?,
        tasks: given_tasks(context, config, args)?,
        documents,
        used_skills: (config.documents.skills.enabled && args.target.is_empty())
            .then(|| context.used_skills(config)),
        roots,
        adoptable: context.allowed_roots(),
        homes: context.homes(),
    })
}

/// The tasks of `--tasks-file`. They may cost something only after a person looked them over.
fn given_tasks(
    context: &Context,
    config: &NightConfig,
    args: &Args,
) -> Result<Option<Vec<Task>>, Failure> {
    let Some(path) = &args.tasks_file else {
        return Ok(None);
    };
    let failed = |error: &dyn std::error::Error| Failure::situation(error);
    let fractions = Fractions::new(config.val_fraction, config.test_fraction)
        .map_err(|error| failed(&error))?;
    let file = tasks_file::read(path, fractions, config.seed()).map_err(|error| failed(&error))?;
    for warning in &file.warnings {
        context.printer.note(skillopt_staging::one_line(warning));
    }
    let free = args.dry_run || config.models.are_scripted();
    if !file.may_run(free) {
        return Err(Failure::new(
            ExitStatus::Situation,
            format!("the tasks of {} are not reviewed", path.display()),
        )
        .hint("look them over, and set \"reviewed\": true in the file"));
    }
    Ok(Some(file.tasks))
}

/// A night looks at what came since the last complete one, the first one as far back as configured.
pub(super) fn usual_since(
    context: &Context,
    config: &NightConfig,
) -> Result<Option<Timestamp>, Failure> {
    if context.paths.database().exists() {
        let store =
            Store::open(&context.paths.database()).map_err(|error| Failure::situation(&error))?;
        let nights = store
            .nights(100)
            .map_err(|error| Failure::situation(&error))?;
        if let Some(last) = nights
            .iter()
            .find(|night| night.status == NightStatus::Done)
        {
            return Ok(Some(last.started));
        }
    }
    Ok(config
        .first_lookback()
        .and_then(|span| Timestamp::now().checked_sub(span.duration()).ok()))
}

/// The documents that may change, and where documents may lie.
fn documents(
    context: &Context,
    config: &NightConfig,
    args: &Args,
) -> Result<(Vec<PlannedDocument>, AllowedRoots), Failure> {
    let mut roots = context.allowed_roots();
    let projects = args.sessions.projects(context);
    for project in &projects {
        for skills in PROJECT_SKILLS {
            roots = roots.skills(project.join(skills));
        }
    }
    let memories = || memory_documents(&projects, &config.documents.memory.files);
    let mut documents = Vec::new();
    if args.target.is_empty() {
        if config.documents.skill.enabled {
            documents.push(managed_skill(context, config)?);
        }
        if config.documents.memory.enabled {
            documents.extend(memories());
        }
    }
    for target in &args.target {
        match target.as_str() {
            "skill" => documents.push(managed_skill(context, config)?),
            "memory" => {
                for project in &projects {
                    roots = roots.project(project);
                }
                documents.extend(memories());
            }
            text if text.contains(['/', '\\']) || text.ends_with(".md") => {
                let document = document_at(&absolute(&PathBuf::from(text)), Scope::All);
                roots = roots.document(&document.path);
                documents.push(document);
            }
            name => documents.push(target_skill(context, config, name, &projects)?),
        }
    }
    Ok((documents, roots))
}

/// The instruction files of the projects that are there.
fn memory_documents(projects: &[PathBuf], files: &[PathBuf]) -> Vec<PlannedDocument> {
    let paths = projects
        .iter()
        .flat_map(|project| files.iter().map(move |file| (project, project.join(file))));
    paths
        .filter(|(_, path)| path.exists())
        .map(|(project, path)| document_at(&path, Scope::Under(project.clone())))
        .collect()
}

/// The skill that nights keep: the configured file, else one of our own in Claude Code's home.
fn managed_skill(context: &Context, config: &NightConfig) -> Result<PlannedDocument, Failure> {
    let skill = &config.documents.skill;
    match &skill.path {
        Some(path) => Ok(document_at(
            &absolute(&crate::config::paths::expand(path, &models::env)),
            Scope::Rest,
        )),
        None => named_skill(context, &skill.name, Scope::Rest),
    }
}

/// A skill that the command line names: the one of that name, else a new one in Claude Code's home.
fn target_skill(
    context: &Context,
    config: &NightConfig,
    name: &str,
    projects: &[PathBuf],
) -> Result<PlannedDocument, Failure> {
    let project = projects.first().map(|project| project.to_string_lossy());
    let search = context.used_skills(config);
    match search.find(name, &project.unwrap_or_default(), Source::Claude) {
        Lookup::Found(path) | Lookup::Outside(path) => Ok(document_at(&path, Scope::All)),
        Lookup::Missing | Lookup::Rejected => named_skill(context, name, Scope::All),
        Lookup::Ambiguous(paths) => {
            let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            Err(Failure::new(
                ExitStatus::Situation,
                format!("several skills are called `{name}`"),
            )
            .hint(format!("give the path of one: {}", paths.join(", "))))
        }
    }
}

fn named_skill(context: &Context, name: &str, scope: Scope) -> Result<PlannedDocument, Failure> {
    let name = skillopt_staging::skill_name(name).ok_or_else(|| {
        Failure::new(
            ExitStatus::Situation,
            format!("`{name}` cannot be a skill's name"),
        )
        .hint("give a plain folder name, or the path of the SKILL.md")
    })?;
    let home = context.claude_home().ok_or_else(|| {
        Failure::new(
            ExitStatus::Situation,
            "there is no home directory to keep the skill in",
        )
        .hint("set documents.skill.path in the configuration")
    })?;
    Ok(PlannedDocument {
        kind: DocumentKind::Skill,
        name: name.to_owned(),
        path: home.join("skills").join(name).join("SKILL.md"),
        scope,
    })
}

/// A document by its path: a SKILL.md is a skill named like its folder, anything else an instruction
/// file.
fn document_at(path: &std::path::Path, scope: Scope) -> PlannedDocument {
    let file = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let folder = path.parent().and_then(|parent| parent.file_name());
    if file == "SKILL.md" {
        PlannedDocument {
            kind: DocumentKind::Skill,
            name: folder.map_or(file, |name| name.to_string_lossy().into_owned()),
            path: path.to_owned(),
            scope,
        }
    } else {
        PlannedDocument {
            kind: DocumentKind::Memory,
            name: file,
            path: path.to_owned(),
            scope,
        }
    }
}

fn dry_run(
    context: &Context,
    config: &NightConfig,
    plan: &NightPlan,
) -> Result<ExitStatus, Failure> {
    let gathered = plan.gatherer.read();
    let fractions = Fractions::new(config.val_fraction, config.test_fraction)
        .map_err(|error| Failure::situation(&error))?;
    let tasks = match &plan.tasks {
        Some(given) => given.clone(),
        None => {
            let mut mined = mine::mine(&gathered.sessions, config);
            split::assign(&mut mined, fractions, config.seed());
            mined
        }
    };
    let printer = context.printer;
    printer.line(format!(
        "sessions   {} from {} files",
        gathered.sessions.len(),
        gathered.report.files_read
    ));
    printer.line(format!("tasks      {}", tasks.len()));
    for task in &tasks {
        printer.line(format!(
            "  {:<5} {:<8} {}",
            task.split,
            task.outcome,
            skillopt_staging::one_line(&task.intent.chars().take(90).collect::<String>())
        ));
    }
    let assignment = plan.assign(&gathered.sessions, &tasks, fractions, config.seed());
    for assigned in &assignment.documents {
        let path = skillopt_staging::one_line(&assigned.planned.path.display().to_string());
        match plan.open(&assigned.planned) {
            Ok(_) => {
                let counts = TaskCounts::of(&assigned.tasks);
                printer.line(format!(
                    "document   {path} · {} tasks to learn from, {} to validate on",
                    counts.train, counts.validation
                ));
            }
            Err(reason) => printer.line(format!("refused    {path}: {reason}")),
        }
    }
    for note in &assignment.notes {
        printer.line(format!("note       {}", skillopt_staging::one_line(note)));
    }
    Ok(ExitStatus::Done)
}

fn finish(
    context: &Context,
    (outcome, used): (NightOutcome, Option<Arc<Models>>),
    json: bool,
) -> Result<ExitStatus, Failure> {
    let report = &outcome.report;
    if json {
        context.printer.json("skillopt-sleep.night/1", report);
    } else {
        show(context, report);
    }
    if let Some(error) = &outcome.error {
        return Err(failure(error, used.as_deref()));
    }
    if used.is_some_and(|models| models.are_scripted()) {
        context
            .printer
            .note("no real model was called: the replies came from a script");
    }
    Ok(ExitStatus::Done)
}

/// The short table at the end, and the one command that comes next.
pub(super) fn show(context: &Context, report: &NightReport) {
    let printer = context.printer;
    let usage = report.total_usage();
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["sessions", "tasks", "calls", "tokens", "cost"]);
    table.add_row([
        report.sessions.to_string(),
        report.tasks.total().to_string(),
        usage.calls.to_string(),
        usage.total_tokens().to_string(),
        report
            .usd
            .map_or("—".to_owned(), |usd| format!("${usd:.4}")),
    ]);
    printer.line(table.to_string());
    for document in &report.documents {
        let what = match (&document.proposal, &document.reason) {
            (Some(_), _) if document.adoption.is_some() => {
                let adoption = document.adoption.as_deref().unwrap_or_default();
                format!(
                    "adopted without review as {adoption}; undo it with: \
                     skillopt-sleep revert {adoption}"
                )
            }
            (Some(id), _) if document.verified => format!("staged as {id}"),
            (Some(id), _) => format!("suggested as {id}, not verified: the gate could not decide"),
            (None, Some(reason)) => reason.clone(),
            (None, None) => String::new(),
        };
        printer.line(format!(
            "{}: {} → {} — {what}",
            skillopt_staging::one_line(&document.path),
            score(document.baseline),
            score(document.candidate),
        ));
        if let Some(held) = &document.held {
            printer.line(skillopt_staging::one_line(&format!(
                "  left for review: {held}"
            )));
        }
    }
    for impact in &report.regressions {
        printer.line(notices::regression(impact).line());
    }
    for refused in &report.refused {
        printer.line(skillopt_staging::one_line(&format!(
            "{}: left alone: {}",
            refused.path, refused.reason
        )));
    }
    for note in &report.notes {
        printer.line(skillopt_staging::one_line(note));
    }
    let waits =
        |document: &DocumentReport| document.proposal.is_some() && document.adoption.is_none();
    if report.documents.iter().any(waits) {
        printer.line("next: skillopt-sleep review");
    }
}

/// A night that stopped, as the command line reports it.
fn failure(error: &NightError, models: Option<&Models>) -> Failure {
    match error {
        NightError::Model(error) => models::failure(error),
        NightError::Train(error) => models::training_failure(error, models),
        other => Failure::situation(other),
    }
}
