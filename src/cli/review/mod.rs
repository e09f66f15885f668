//! `review`: decide on what is staged.
//!
//! On a terminal a person goes through the proposals on [`screen`]s; a terminal that cannot draw gets
//! [`plain`] prompts; flags decide without one. All three decide at the same [`desk`]. The screens
//! are a state ([`app`]), what keys do to it ([`keys`]), and what it looks like; only [`terminal`]
//! touches the terminal and the disk.

mod app;
mod desk;
mod editor;
mod keys;
mod opened;
mod plain;
mod screen;
mod screens;
mod tabs;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod wrap;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use serde::Serialize;
use skillopt_staging::{Adoption, Staged, StagingArea, display_safe};

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::staged;
use crate::night::risk;
pub(super) use desk::Desk;
use desk::DeskError;
use opened::Opened;
use theme::Theme;

/// Decide on what is staged: see the diff, the evidence and the verdict, then accept or reject.
///
/// On a terminal it shows one proposal after another and takes a key for each decision; `?` lists
/// the keys. Accepting writes nothing but the decision; `adopt` changes the document.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep review\n  skillopt-sleep review --list\n  skillopt-sleep review n1-1 --show\n  \
skillopt-sleep review n1-1 --accept=1,3 --reject=2 --reason \"too specific\""
)]
pub(super) struct Args {
    /// Proposals by id; all that wait when none is named.
    #[arg(value_name = "PROPOSAL")]
    proposals: Vec<String>,
    /// One line per proposal; with --all also decided ones.
    #[arg(long)]
    list: bool,
    /// Everything about the proposals.
    #[arg(long)]
    show: bool,
    /// Accept: all edits, or those with these numbers.
    #[arg(long, value_name = "EDIT,…", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    accept: Option<String>,
    /// Reject: all edits, or those with these numbers.
    #[arg(long, value_name = "EDIT,…", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    reject: Option<String>,
    /// Why; later nights are told.
    #[arg(long, value_name = "TEXT", requires = "reject", default_value = "")]
    reason: String,
    /// Edit the proposed text in $VISUAL or $EDITOR, and accept what you made of it.
    #[arg(long, conflicts_with_all = ["accept", "reject"])]
    edit: bool,
    /// Decided proposals too.
    #[arg(long)]
    all: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    status: &'a skillopt_staging::Status,
    proposal: &'a skillopt_staging::Proposal,
    diff: String,
}

#[derive(Serialize)]
struct List<'a> {
    proposals: Vec<Entry<'a>>,
    unreadable: Vec<String>,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let area = staged::open(&context.paths.staging())?;
    if args.accept.is_some() || args.reject.is_some() || args.edit {
        return decide(context, &area, &args);
    }
    let listing = area.list().map_err(|error| Failure::situation(&error))?;
    let chosen: Vec<Staged> = if args.proposals.is_empty() {
        listing
            .staged
            .into_iter()
            .filter(|s| args.all || s.status.is_open())
            .collect()
    } else {
        find(&area, &args.proposals)?
    };
    let chosen = if args.show || args.json {
        with_texts(&area, chosen)?
    } else {
        chosen
    };
    let unreadable: Vec<String> = listing.unreadable.iter().map(ToString::to_string).collect();
    if args.json {
        context.printer.json(
            "skillopt-sleep.review/1",
            &List {
                proposals: chosen
                    .iter()
                    .map(|staged| Entry {
                        status: &staged.status,
                        proposal: &staged.proposal,
                        diff: staged::diff(staged),
                    })
                    .collect(),
                unreadable,
            },
        );
        return Ok(ExitStatus::Done);
    }
    for problem in unreadable {
        context.printer.note(format!("cannot be read: {problem}"));
    }
    if chosen.is_empty() {
        context.printer.note("nothing waits for review");
        return Ok(ExitStatus::Done);
    }
    if !args.show && !args.list {
        return interactive(context, chosen);
    }
    for (position, staged) in chosen.iter().enumerate() {
        if args.show {
            if position > 0 {
                context.printer.line("");
            }
            staged::show(context.printer, staged);
        } else {
            context.printer.line(staged::line(staged));
        }
    }
    if !args.show {
        context.printer.note("\nsee one:    skillopt-sleep review ID --show\naccept it:  skillopt-sleep review ID --accept");
    }
    Ok(ExitStatus::Done)
}

/// A listing leaves the long texts out; showing needs them.
pub(super) fn with_texts(area: &StagingArea, listed: Vec<Staged>) -> Result<Vec<Staged>, Failure> {
    listed
        .into_iter()
        .map(|staged| {
            area.load(&staged.proposal.id)
                .map_err(|error| Failure::situation(&error))
        })
        .collect()
}

fn find(area: &StagingArea, queries: &[String]) -> Result<Vec<Staged>, Failure> {
    queries
        .iter()
        .map(|query| area.find(query).map_err(|error| Failure::situation(&error)))
        .collect()
}

fn decide(context: &Context, area: &StagingArea, args: &Args) -> Result<ExitStatus, Failure> {
    let queries = match args.proposals.as_slice() {
        [] => {
            let listing = area.list().map_err(|error| Failure::situation(&error))?;
            let open: Vec<String> = listing
                .staged
                .into_iter()
                .filter(|staged| staged.status.is_open())
                .map(|staged| staged.proposal.id)
                .collect();
            match open.as_slice() {
                [] => {
                    context.printer.note("nothing waits for review");
                    return Ok(ExitStatus::Done);
                }
                [_] => open,
                several => {
                    return Err(Failure::new(
                        ExitStatus::Situation,
                        format!("{} proposals wait: {}", several.len(), several.join(", ")),
                    )
                    .hint("name those that you mean"));
                }
            }
        }
        named => named.to_vec(),
    };
    let desk = context.desk()?;
    for staged in find(area, &queries)? {
        if let Some(edits) = &args.reject {
            reject(context, &desk, &staged, edits, &args.reason)?;
        }
        if let Some(edits) = &args.accept {
            accept(context, &desk, &staged, edits)?;
        }
        if args.edit {
            edit(context, &desk, &staged)?;
        }
    }
    Ok(ExitStatus::Done)
}

/// Lets a person decide at the terminal.
fn interactive(context: &Context, chosen: Vec<Staged>) -> Result<ExitStatus, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::new(
            ExitStatus::Situation,
            format!("{} proposals wait, and a review by keys needs a terminal", chosen.len()),
        )
        .hint("without one: review --list, review ID --show, review ID --accept[=EDIT,…], review ID --reject[=EDIT,…] --reason TEXT, review ID --edit, review --json"));
    }
    let desk = context.desk()?;
    if std::env::var("TERM").is_ok_and(|term| term == "dumb") {
        let adoption = plain::review(context.printer, &desk, &chosen).map_err(failed)?;
        farewell(context, adoption.as_ref());
        return Ok(ExitStatus::Done);
    }
    let theme = Theme {
        colour: context.printer.colour(),
    };
    let outcome = terminal::review(&desk, chosen, theme).map_err(|error| {
        Failure::new(
            ExitStatus::Situation,
            format!("cannot use the terminal: {error}"),
        )
        .hint("TERM=dumb skillopt-sleep review asks with plain prompts")
    })?;
    let left = outcome
        .app
        .rows
        .iter()
        .filter(|row| opened::waits(&row.staged))
        .count();
    let done: Vec<String> = outcome
        .app
        .done
        .iter()
        .map(|(word, count)| format!("{word} {count}"))
        .collect();
    let done = if done.is_empty() {
        "nothing decided".to_owned()
    } else {
        done.join(", ")
    };
    context.printer.line(format!(
        "{done}; {left} of {} proposals still wait",
        outcome.app.rows.len()
    ));
    farewell(context, outcome.adoption.as_ref());
    if outcome.adoption.is_none() && !outcome.app.accepted().is_empty() {
        context
            .printer
            .note("apply what is accepted with: skillopt-sleep adopt --all");
    }
    Ok(ExitStatus::Done)
}

/// What was written, and how to undo it.
fn farewell(context: &Context, adoption: Option<&Adoption>) {
    let Some(adoption) = adoption else { return };
    for line in adoption
        .recovered
        .iter()
        .flat_map(skillopt_staging::Recovery::lines)
    {
        context.printer.note(line);
    }
    for document in &adoption.documents {
        context.printer.line(format!(
            "{}: wrote {}",
            adoption.id,
            display_safe(&document.real_path.display().to_string())
        ));
    }
    context.printer.note(format!(
        "undo it with: skillopt-sleep revert {}",
        adoption.id
    ));
}

fn failed(error: DeskError) -> Failure {
    Failure::situation(&error)
}

fn reject(
    context: &Context,
    desk: &Desk,
    staged: &Staged,
    edits: &str,
    reason: &str,
) -> Result<(), Failure> {
    let id = &staged.proposal.id;
    let chosen = selection(edits)?;
    desk.reject(id, chosen.as_ref(), reason).map_err(failed)?;
    context
        .printer
        .note(format!("{id}: rejected {}", described(edits)));
    Ok(())
}

/// Accepts edits. What will be written is the whole proposed text, or the base with just the
/// accepted edits applied again, put onto the live document where that changed; the decision is bound
/// to that text.
fn accept(context: &Context, desk: &Desk, staged: &Staged, edits: &str) -> Result<(), Failure> {
    let id = &staged.proposal.id;
    let chosen = match selection(edits)? {
        None => opened::applied(staged),
        Some(chosen) => {
            let known = staged.proposal.edit_numbers();
            if let Some(unknown) = chosen.iter().find(|edit| !known.contains(edit)) {
                let known: Vec<String> = known.iter().map(ToString::to_string).collect();
                return Err(Failure::new(
                    ExitStatus::Situation,
                    format!("{id} has no edit {unknown}"),
                )
                .hint(format!("its edits are {}", known.join(", "))));
            }
            chosen
        }
    };
    let accepted = desk.accept(id, &chosen).map_err(failed)?;
    told(context, &accepted, &described(edits));
    Ok(())
}

fn edit(context: &Context, desk: &Desk, staged: &Staged) -> Result<(), Failure> {
    let id = &staged.proposal.id;
    let opened = desk.open(id).map_err(failed)?;
    let editor =
        editor::name(io::stdin().is_terminal()).map_err(|error| Failure::situation(&error))?;
    let edited = editor::edit(&editor, &desk.text_to_edit(&opened))
        .map_err(|error| Failure::situation(&error))?;
    match edited {
        None => context.printer.note(format!("{id}: nothing was changed")),
        Some(text) => told(
            context,
            &desk.accept_text(id, text).map_err(failed)?,
            "your text",
        ),
    }
    Ok(())
}

/// Says what was accepted, which risks it has, and what comes next.
fn told(context: &Context, accepted: &Opened, what: &str) {
    let id = accepted.id();
    staged::note_risks(context.printer, &accepted.findings);
    let flags: String = risk::dangers(&accepted.findings)
        .iter()
        .map(|rule| format!(" --allow-risk {rule}"))
        .collect();
    context.printer.note(format!(
        "{id}: accepted {what}; apply it with: skillopt-sleep adopt {id}{flags}"
    ));
}

/// The numbers that were named; none for all.
fn selection(edits: &str) -> Result<Option<BTreeSet<usize>>, Failure> {
    if edits == "all" {
        return Ok(None);
    }
    edits
        .split(',')
        .map(|number| number.trim().parse::<usize>())
        .collect::<Result<BTreeSet<_>, _>>()
        .map(Some)
        .map_err(|_| {
            Failure::new(
                ExitStatus::Situation,
                format!("`{edits}` is no list of edit numbers"),
            )
            .hint("write them like --accept=1,3")
        })
}

fn described(edits: &str) -> String {
    if edits == "all" {
        "all edits".to_owned()
    } else {
        format!("edits {edits}")
    }
}
