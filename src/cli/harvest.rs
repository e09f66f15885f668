//! `harvest`: read session logs and show what is there. No model is called. `list` and `tasks` keep
//! what they read in the database, as a night does, and open only what changed since.

use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::json;
use skillopt_harvesters::session::{CallStatus, ToolCall, TurnEnd};
use skillopt_harvesters::{HarvestOptions, Report, Session, SourceInfo, harvest_each, registry};
use skillopt_staging::one_line;

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::output::Printer;
use super::selection::Selection;
use super::shell::quoted;
use crate::night::gather::{Gathered, Gatherer, problems};
use crate::night::{mine, split, tasks_file};
use crate::store::{SessionRow, Store};

/// Read session logs and show what is there.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep harvest list --since 7d\n  skillopt-sleep harvest sources"
)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// One line per session, newest first.
    List(List),
    /// One session as a timeline.
    Show(Show),
    /// The tasks that a night would mine.
    Tasks(Tasks),
    /// The agents whose logs are read, and where.
    Sources {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    sessions: Selection,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Tasks {
    #[command(flatten)]
    list: List,
    /// Write them to a file instead, to be looked over and given to `run --tasks-file`.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The session's id, or its beginning.
    session: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    match args.what {
        What::List(args) => list(context, &args),
        What::Show(args) => show(context, &args),
        What::Tasks(args) => tasks(context, &args),
        What::Sources { json } => sources(context, json),
    }
}

fn gatherer(context: &Context, selection: &Selection) -> Result<Gatherer, Failure> {
    let mut config = context.config()?.clone();
    selection.apply(&mut config)?;
    selection.gatherer(context, &config, None)
}

fn gather(context: &Context, selection: &Selection) -> Result<Gathered, Failure> {
    let store = open(context)?;
    gatherer(context, selection)?
        .gather(&store)
        .map_err(|error| Failure::situation(&error))
}

fn open(context: &Context) -> Result<Store, Failure> {
    Store::open(&context.paths.database()).map_err(|error| Failure::situation(&error))
}

fn list(context: &Context, args: &List) -> Result<ExitStatus, Failure> {
    let printer = context.printer;
    if args.json {
        let gathered = gather(context, &args.sessions)?;
        printer.json(
            "skillopt-sleep.sessions/1",
            &json!({ "sessions": gathered.sessions, "report": gathered.report }),
        );
        return Ok(ExitStatus::Done);
    }
    let store = open(context)?;
    let chosen = gatherer(context, &args.sessions)?
        .list(&store)
        .map_err(|error| Failure::situation(&error))?;
    for row in &chosen.rows {
        printer.line(line(row));
    }
    account(printer, chosen.rows.len(), &chosen.report);
    Ok(ExitStatus::Done)
}

fn line(row: &SessionRow) -> String {
    format!(
        "{:<16}  {:<12} {:<8} {}  {}  {}",
        row.active.map(moment).unwrap_or_default(),
        row.agent,
        row.outcome,
        one_line(&row.id.chars().take(8).collect::<String>()),
        one_line(row.project.as_deref().unwrap_or("—")),
        one_line(&row.first_prompt.chars().take(70).collect::<String>()),
    )
}

fn verdict(session: &Session) -> String {
    serde_json::to_value(session.outcome.verdict)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// What was read, and what could not be.
fn account(printer: Printer, sessions: usize, report: &Report) {
    printer.note(format!(
        "{sessions} sessions; {} files found, {} read, {} unchanged; {} things could not be read",
        report.files_found,
        report.files_read,
        report.files_unchanged,
        problems(report)
    ));
    for (reason, count) in &report.skip_counts {
        printer.note(format!("  {}: {count}", name_of(reason)));
    }
    for skipped in report
        .skipped
        .iter()
        .filter(|skipped| !skipped.detail.is_empty())
    {
        printer.note(format!(
            "  {}: {}",
            one_line(&skipped.file),
            one_line(&skipped.detail)
        ));
    }
    for (flaw, count) in &report.flaw_counts {
        printer.note(format!("  lines, {}: {count}", name_of(flaw)));
    }
    for warning in &report.warnings {
        printer.note(format!("  {}", one_line(warning)));
    }
}

fn show(context: &Context, args: &Show) -> Result<ExitStatus, Failure> {
    let gathered = gatherer(context, &Selection::everything())?.read();
    let session = find(&gathered.sessions, &args.session)?;
    if args.json {
        context.printer.json("skillopt-sleep.session/1", session);
    } else {
        timeline(context.printer, session);
    }
    Ok(ExitStatus::Done)
}

/// The session whose id is this or begins with it.
fn find<'a>(sessions: &'a [Session], id: &str) -> Result<&'a Session, Failure> {
    const MOST: usize = 5;
    if let Some(session) = sessions.iter().find(|session| session.id == id) {
        return Ok(session);
    }
    let found: Vec<&Session> = sessions
        .iter()
        .filter(|session| session.id.starts_with(id))
        .collect();
    match found.as_slice() {
        [session] => Ok(*session),
        [] => {
            let mut near: Vec<&Session> = sessions.iter().collect();
            near.sort_by(|one, other| {
                likeness(&other.id, id)
                    .total_cmp(&likeness(&one.id, id))
                    .then_with(|| one.id.cmp(&other.id))
            });
            near.truncate(3);
            let hint = match near.is_empty() {
                true => "no sessions were found; see: skillopt-sleep harvest sources".to_owned(),
                false => format!(
                    "the nearest are {}; see: skillopt-sleep harvest list",
                    names(&near)
                ),
            };
            Err(Failure::new(
                ExitStatus::Situation,
                format!("there is no session {}", one_line(id)),
            )
            .hint(hint))
        }
        several => {
            let more = match several.len().saturating_sub(MOST) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let shown = &several[..several.len().min(MOST)];
            Err(Failure::new(
                ExitStatus::Situation,
                format!("{} sessions begin with {}", several.len(), one_line(id)),
            )
            .hint(format!("give more of the id: {}{more}", names(shown))))
        }
    }
}

/// How alike two ids are; an equal beginning counts most.
fn likeness(one: &str, other: &str) -> f64 {
    let beginning = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .count();
    f64::from(u32::try_from(beginning).unwrap_or(u32::MAX)) + strsim::jaro_winkler(one, other)
}

fn names(sessions: &[&Session]) -> String {
    let names: Vec<String> = sessions
        .iter()
        .map(|session| format!("{} ({})", one_line(&session.id), session.agent))
        .collect();
    names.join(", ")
}

/// A session as a person would tell it: who said and did what, in order, and how it went.
fn timeline(printer: Printer, session: &Session) {
    for text in timeline_lines(session) {
        printer.line(text);
    }
}

fn timeline_lines(session: &Session) -> Vec<String> {
    let mut lines = vec![format!("session  {}", one_line(&session.id))];
    let version = session.agent_version.as_deref().unwrap_or_default();
    lines.push(
        format!("agent    {} {version}", session.agent)
            .trim_end()
            .to_owned(),
    );
    if let Some(project) = &session.project {
        lines.push(format!("project  {}", one_line(project)));
    }
    if let Some(branch) = &session.git.branch {
        let commit = session.git.commit.as_deref().unwrap_or_default();
        let commit: String = commit.chars().take(12).collect();
        lines.push(
            format!("branch   {} {commit}", one_line(branch))
                .trim_end()
                .to_owned(),
        );
    }
    if let Some(started) = session.started {
        let ended = session.ended.unwrap_or(started);
        lines.push(format!("time     {} to {}", moment(started), moment(ended)));
    }
    if let Some(model) = session.main_model() {
        lines.push(format!("model    {}", one_line(model)));
    }
    for (index, turn) in session.turns.iter().enumerate() {
        lines.push(String::new());
        for prompt in &turn.prompts {
            let time = prompt.at.map(|at| format!("  [{}]", moment(at)));
            lines.push(format!(
                "> {}{}",
                one_line(&prompt.text),
                time.unwrap_or_default()
            ));
        }
        for call in &turn.tools {
            call_lines(call, &mut lines);
        }
        match (&turn.answer, turn.end) {
            (Some(answer), _) => lines.push(format!("  = {}", one_line(&answer.text))),
            (None, TurnEnd::Interrupted) => lines.push("  ! interrupted".to_owned()),
            (None, TurnEnd::ApiError) => {
                lines.push("  ! the model could not be reached".to_owned())
            }
            (None, _) => lines.push("  ! no answer".to_owned()),
        }
        for said in &session.feedback {
            if said.about_turn == index {
                lines.push(format!("  feedback: {:?}", said.polarity).to_lowercase());
            }
        }
    }
    lines.push(String::new());
    lines.push(format!("outcome  {}", verdict(session)));
    for signal in &session.outcome.signals {
        let text = format!("  {} {}", name_of(&signal.kind), one_line(&signal.detail));
        lines.push(text.trim_end().to_owned());
    }
    lines
}

/// A tool call, what came of it, and the files that it changed.
fn call_lines(call: &ToolCall, lines: &mut Vec<String>) {
    let mut line = match &call.command {
        Some(command) => format!("  $ {}", one_line(&command.text)),
        None => format!("  * {} {}", one_line(&call.name), one_line(&call.arguments)),
    };
    let code = call.command.as_ref().and_then(|command| command.exit_code);
    match code {
        Some(code) => line += &format!("  (exit {code})"),
        // Many logs do not say: nothing is said about those.
        None if !matches!(call.status, CallStatus::Ok | CallStatus::Unknown) => {
            line += &format!("  ({})", name_of(&call.status));
        }
        None => {}
    }
    let verification = call
        .command
        .as_ref()
        .and_then(|run| run.verification.as_ref());
    if let Some(verification) = verification {
        line += match verification.passed {
            Some(true) => "  passed",
            Some(false) => "  failed",
            None => "  result unknown",
        };
    }
    lines.push(line);
    for path in &call.edits {
        lines.push(format!("    edited {}", one_line(path)));
    }
}

fn moment(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// The name of a variant as it is in JSON, in words.
fn name_of(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(|name| name.replace('_', " ")))
        .unwrap_or_default()
}

fn tasks(context: &Context, args: &Tasks) -> Result<ExitStatus, Failure> {
    let gathered = gather(context, &args.list.sessions)?;
    let config = context.config()?;
    let mut tasks = mine::mine(&gathered.sessions, config);
    let fractions = split::Fractions::new(config.val_fraction, config.test_fraction)
        .map_err(|error| Failure::situation(&error))?;
    split::assign(&mut tasks, fractions, config.seed());
    if let Some(output) = &args.output {
        let projects = args.list.sessions.projects(context);
        let project = projects.first().map(|path| path.display().to_string());
        let sessions = gathered.sessions.len();
        tasks_file::write(output, &project.unwrap_or_default(), sessions, &tasks)
            .map_err(|error| Failure::situation(&error))?;
        context.printer.line(format!(
            "{} tasks written; look them over, set \"reviewed\": true, and give them to a night: \
             skillopt-sleep run --tasks-file {}",
            tasks.len(),
            quoted(output)
        ));
        return Ok(ExitStatus::Done);
    }
    if args.list.json {
        context
            .printer
            .json("skillopt-sleep.tasks/1", &json!({ "tasks": tasks }));
        return Ok(ExitStatus::Done);
    }
    for task in &tasks {
        context.printer.line(format!(
            "{:<5} {:<8} {}  {}",
            task.split,
            task.outcome,
            one_line(&task.project),
            one_line(&task.intent.chars().take(90).collect::<String>())
        ));
    }
    Ok(ExitStatus::Done)
}

/// Every agent whose logs can be read: where, and how many sessions are there.
fn sources(context: &Context, json: bool) -> Result<ExitStatus, Failure> {
    let config = context.config()?;
    let mut all = config.clone();
    all.sources = registry()
        .iter()
        .map(|source| source.info().agent)
        .collect();
    let roots = context.log_roots(&all);
    let options = HarvestOptions {
        redactor: context.redactor()?,
        program_markers: config.program_markers.clone(),
        ..HarvestOptions::default()
    };
    let read = harvest_each(&roots, &options, |_| ControlFlow::Continue(()));
    let mut listed = Vec::new();
    for source in registry() {
        let info = source.info();
        let sessions = read.report.by_agent.get(&info.agent);
        let sessions = sessions.copied().unwrap_or_default();
        let configured = config.sources.contains(&info.agent);
        let roots = roots.of(info.agent);
        if json {
            let roots: Vec<_> = roots
                .iter()
                .map(|root| json!({"path": root, "exists": root.exists()}))
                .collect();
            listed.push(json!({
                "source": info,
                "roots": roots,
                "configured": configured,
                "sessions": sessions,
            }));
        } else {
            describe(context.printer, info, roots, configured, sessions);
        }
    }
    if json {
        context.printer.json(
            "skillopt-sleep.sources/1",
            &json!({ "sources": listed, "report": read.report }),
        );
    }
    Ok(ExitStatus::Done)
}

fn describe(
    printer: Printer,
    info: SourceInfo,
    roots: &[PathBuf],
    configured: bool,
    sessions: u64,
) {
    printer.line(format!("{} ({})", info.title, info.agent));
    printer.line(format!("  reads  {}", info.reads));
    printer.line(format!("  keeps  {}", info.keeps));
    printer.line(format!("  looks  {}", info.location));
    for root in roots {
        let there = if root.exists() { "" } else { " (not there)" };
        let root = one_line(&root.display().to_string());
        printer.line(format!("  from   {root}{there}"));
    }
    let used = if configured {
        ""
    } else {
        " (not among the configured sources)"
    };
    printer.line(format!("  found  {sessions} sessions{used}"));
}
