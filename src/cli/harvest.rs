//! `harvest`: read session logs and show what is there. Nothing is stored and no model is called.

use serde_json::json;
use skillopt_harvesters::{Session, SourceInfo, registry};
use skillopt_staging::one_line;

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::output::Printer;
use super::selection::Selection;
use crate::night::gather::{Gathered, problems};
use crate::night::{mine, split};

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
    Tasks(List),
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

fn gather(context: &Context, selection: &Selection) -> Result<Gathered, Failure> {
    let mut config = context.config()?.clone();
    selection.apply(&mut config)?;
    Ok(selection.gatherer(context, &config, None)?.read())
}

fn list(context: &Context, args: &List) -> Result<ExitStatus, Failure> {
    let gathered = gather(context, &args.sessions)?;
    let printer = context.printer;
    if args.json {
        printer.json(
            "skillopt-sleep.sessions/1",
            &json!({ "sessions": gathered.sessions, "report": gathered.report }),
        );
        return Ok(ExitStatus::Done);
    }
    for session in &gathered.sessions {
        printer.line(line(session));
    }
    account(printer, &gathered);
    Ok(ExitStatus::Done)
}

fn line(session: &Session) -> String {
    let first = session
        .prompts()
        .next()
        .map(|prompt| prompt.text.as_str())
        .unwrap_or_default();
    format!(
        "{:<16}  {:<7} {:<8} {}  {}  {}",
        session
            .ended
            .map(|time| time.strftime("%Y-%m-%d %H:%M").to_string())
            .unwrap_or_default(),
        session.agent.name(),
        verdict(session),
        session.id.chars().take(8).collect::<String>(),
        one_line(session.project.as_deref().unwrap_or("—")),
        one_line(&first.chars().take(70).collect::<String>()),
    )
}

fn verdict(session: &Session) -> String {
    serde_json::to_value(session.outcome.verdict)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// What was read, and what could not be.
fn account(printer: Printer, gathered: &Gathered) {
    let report = &gathered.report;
    printer.note(format!(
        "{} sessions from {} files; {} things could not be read",
        gathered.sessions.len(),
        report.files_read,
        problems(report)
    ));
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
        printer.note(format!("  lines, {flaw:?}: {count}"));
    }
    for warning in &report.warnings {
        printer.note(format!("  {}", one_line(warning)));
    }
}

fn show(context: &Context, args: &Show) -> Result<ExitStatus, Failure> {
    let gathered = gather(context, &Selection::everything())?;
    let mut found = gathered
        .sessions
        .iter()
        .filter(|session| session.id.starts_with(&args.session));
    let session = match (found.next(), found.next()) {
        (Some(session), None) => session,
        (Some(_), Some(_)) => {
            return Err(Failure::new(
                ExitStatus::Situation,
                format!("several sessions begin with {}", args.session),
            )
            .hint("give more of the id"));
        }
        (None, _) => {
            return Err(Failure::new(
                ExitStatus::Situation,
                format!("there is no session {}", args.session),
            )
            .hint("see: skillopt-sleep harvest list"));
        }
    };
    if args.json {
        context.printer.json("skillopt-sleep.session/1", session);
    } else {
        timeline(context.printer, session);
    }
    Ok(ExitStatus::Done)
}

fn timeline(printer: Printer, session: &Session) {
    printer.line(line(session));
    for turn in &session.turns {
        for prompt in &turn.prompts {
            printer.line(format!("\n> {}", one_line(&prompt.text)));
        }
        for call in &turn.tools {
            let what = call
                .command
                .as_ref()
                .map_or(call.arguments.as_str(), |command| command.text.as_str());
            let code = call
                .command
                .as_ref()
                .and_then(|command| command.exit_code)
                .map(|code| format!(" (exit {code})"))
                .unwrap_or_default();
            printer.line(format!(
                "  {} {}{code}",
                one_line(&call.name),
                one_line(what)
            ));
        }
        if let Some(answer) = &turn.answer {
            printer.line(format!("  {}", one_line(&answer.text)));
        }
    }
    for signal in &session.outcome.signals {
        printer.line(format!(
            "\noutcome: {:?} {}",
            signal.kind,
            one_line(&signal.detail)
        ));
    }
}

fn tasks(context: &Context, args: &List) -> Result<ExitStatus, Failure> {
    let gathered = gather(context, &args.sessions)?;
    let config = context.config()?;
    let mut tasks = mine::mine(&gathered.sessions, config);
    let fractions = split::Fractions::new(config.val_fraction, config.test_fraction)
        .map_err(|error| Failure::situation(&error))?;
    split::assign(&mut tasks, fractions, config.seed());
    if args.json {
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

fn sources(context: &Context, json: bool) -> Result<ExitStatus, Failure> {
    let roots = context.log_roots(context.config()?);
    let found: Vec<(SourceInfo, Vec<std::path::PathBuf>)> = registry()
        .iter()
        .map(|source| source.info())
        .map(|info| (info, roots.of(info.agent).to_vec()))
        .collect();
    if json {
        let sources: Vec<_> = found
            .iter()
            .map(|(info, roots)| {
                let roots: Vec<_> = roots
                    .iter()
                    .map(|root| json!({"path": root, "exists": root.exists()}))
                    .collect();
                json!({ "source": info, "roots": roots })
            })
            .collect();
        context
            .printer
            .json("skillopt-sleep.sources/1", &json!({ "sources": sources }));
        return Ok(ExitStatus::Done);
    }
    for (info, roots) in found {
        context
            .printer
            .line(format!("{} ({})", info.title, info.agent.name()));
        context.printer.line(format!("  reads  {}", info.reads));
        for root in roots {
            let there = if root.exists() { "" } else { " (not there)" };
            context.printer.line(format!(
                "  from   {}{there}",
                one_line(&root.display().to_string())
            ));
        }
    }
    Ok(ExitStatus::Done)
}
