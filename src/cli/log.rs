//! `log`: nights and their events, and the story of a document.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use skillopt_staging::{Approver, HistoryEvent, Ledger, StagingArea, one_line};

use super::context::{Context, absolute};
use super::failure::{ExitStatus, Failure};
use super::staged;
use crate::store::{NightRow, Store};

/// The nights, one night's report and events, or everything that happened to a document.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep log\n  skillopt-sleep log 3 --events\n  skillopt-sleep log --document CLAUDE.md"
)]
pub(super) struct Args {
    /// A night's number.
    #[arg(value_name = "NIGHT")]
    night: Option<i64>,
    /// What happened in it, one line an event.
    #[arg(long, requires = "night")]
    events: bool,
    /// The story of a document, by its path or name: proposed, decided, adopted, reverted.
    #[arg(long, value_name = "PATH|NAME", conflicts_with = "night")]
    document: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    if let Some(document) = &args.document {
        return story(context, document, args.json);
    }
    let store =
        Store::open(&context.paths.database()).map_err(|error| Failure::situation(&error))?;
    let nights = store
        .nights(usize::MAX)
        .map_err(|error| Failure::situation(&error))?;
    let printer = context.printer;
    let Some(id) = args.night else {
        if args.json {
            printer.json("skillopt-sleep.log/1", &json!({ "nights": nights }));
        } else {
            for night in &nights {
                printer.line(line(night));
            }
        }
        return Ok(ExitStatus::Done);
    };
    let night = nights
        .into_iter()
        .find(|night| night.id == id)
        .ok_or_else(|| {
            Failure::new(ExitStatus::Situation, format!("there is no night {id}"))
                .hint("see: skillopt-sleep log")
        })?;
    let events = if args.events {
        store
            .events(id)
            .map_err(|error| Failure::situation(&error))?
    } else {
        Vec::new()
    };
    if args.json {
        let events: Vec<_> = events
            .iter()
            .map(|(at, event)| json!({"at": at, "event": event}))
            .collect();
        printer.json(
            "skillopt-sleep.log/1",
            &json!({ "night": night, "events": events }),
        );
        return Ok(ExitStatus::Done);
    }
    if args.events {
        for (at, event) in events {
            printer.line(format!("{at} {}", one_line(&event.to_string())));
        }
        return Ok(ExitStatus::Done);
    }
    let report = context
        .paths
        .nights()
        .join(format!("night-{id:04}"))
        .join("report.md");
    match skillopt_files::read_text(&report, 16 << 20) {
        Ok(text) => printer.line(text.trim_end()),
        Err(_) => printer.line(line(&night)),
    }
    Ok(ExitStatus::Done)
}

/// Everything that happened to a document.
fn story(context: &Context, document: &str, json: bool) -> Result<ExitStatus, Failure> {
    let area = staged::open(&context.paths.staging())?;
    let failed = |error: skillopt_staging::Error| Failure::situation(&error);
    let paths = paths_of(context, &area, document)?;
    let mut entries = area.history(None).map_err(failed)?;
    entries.retain(|entry| paths.contains(&entry.path));
    if json {
        context.printer.json(
            "skillopt-sleep.log/1",
            &json!({ "documents": paths, "history": entries }),
        );
        return Ok(ExitStatus::Done);
    }
    for entry in entries {
        let path = match paths.len() {
            1 => String::new(),
            _ => format!("  {}", one_line(&entry.path.display().to_string())),
        };
        context.printer.line(format!(
            "{}  {}{path}",
            entry.at.strftime("%Y-%m-%d %H:%M UTC"),
            told(&entry.event)
        ));
    }
    Ok(ExitStatus::Done)
}

/// The documents of that path, or name, or name of the skill's folder or file.
fn paths_of(
    context: &Context,
    area: &StagingArea,
    query: &str,
) -> Result<BTreeSet<PathBuf>, Failure> {
    let listing = area.list().map_err(|error| Failure::situation(&error))?;
    let ledger = Ledger::open(&context.paths.state).map_err(|error| Failure::situation(&error))?;
    let path = absolute(Path::new(query));
    let proposed = listing.staged.iter().map(|staged| {
        (
            &staged.proposal.document.name,
            &staged.proposal.document.path,
        )
    });
    let adopted = ledger
        .operations
        .iter()
        .flat_map(|operation| &operation.documents)
        .map(|one| (&one.name, &one.path));
    let known: BTreeSet<(&String, &PathBuf)> = proposed.chain(adopted).collect();
    let found: BTreeSet<PathBuf> = known
        .iter()
        .filter(|(name, place)| *name == query || **place == path)
        .map(|(_, place)| (*place).clone())
        .collect();
    if found.is_empty() {
        let names: BTreeSet<String> = known.iter().map(|(name, _)| one_line(name)).collect();
        let hint = match names.is_empty() {
            true => "no night has proposed anything yet".to_owned(),
            false => format!(
                "there is something about: {}",
                names.into_iter().collect::<Vec<_>>().join(", ")
            ),
        };
        return Err(Failure::new(
            ExitStatus::Situation,
            format!("nothing is known about a document `{}`", one_line(query)),
        )
        .hint(hint));
    }
    Ok(found)
}

/// What happened, in words.
fn told(event: &HistoryEvent) -> String {
    let numbers = |edits: &[usize]| match edits {
        [] => String::new(),
        edits => format!(
            " (edits {})",
            edits
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    match event {
        HistoryEvent::Staged {
            proposal,
            night,
            verified,
        } => {
            let doubt = if *verified { "" } else { ", not verified" };
            format!("{proposal}  proposed by night {night}{doubt}")
        }
        HistoryEvent::Accepted {
            proposal,
            edits,
            edited_by_person,
        } => {
            let own = if *edited_by_person {
                " with your own text"
            } else {
                ""
            };
            format!("{proposal}  accepted{own}{}", numbers(edits))
        }
        HistoryEvent::Rejected {
            proposal,
            edits,
            reason,
        } => {
            let why = if reason.is_empty() {
                String::new()
            } else {
                format!(": {}", one_line(reason))
            };
            format!("{proposal}  rejected{}{why}", numbers(edits))
        }
        HistoryEvent::Superseded { proposal, by } => format!("{proposal}  superseded by {by}"),
        HistoryEvent::Expired { proposal } => format!("{proposal}  expired: nobody decided"),
        HistoryEvent::Adopted {
            adoption,
            proposal,
            by,
        } => {
            let unseen = match by {
                Approver::Person => "",
                Approver::Automatic => " without review",
            };
            format!("{proposal}  adopted as {adoption}{unseen}")
        }
        HistoryEvent::Reverted { revert, adoption } => format!("{adoption}  reverted by {revert}"),
    }
}

fn line(night: &NightRow) -> String {
    format!(
        "{:>4}  {}  {}",
        night.id,
        night.started.strftime("%Y-%m-%d %H:%M:%S UTC"),
        night.status.name()
    )
}
