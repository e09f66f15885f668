//! `review`: decide on what is staged.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use skillopt_staging::{Acceptance, DocumentKind, EditSelection, Staged, StagingArea, sha256};

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::staged;
use crate::night::document::{Document, DocumentKind as NightKind};
use crate::night::stage::with_edits;

/// Decide on what is staged: see the diff, the evidence and the verdict, then accept or reject.
///
/// Accepting writes nothing but the decision; `adopt` changes the document.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep review --list\n  skillopt-sleep review n1-1 --show\n  \
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
    if args.accept.is_some() || args.reject.is_some() {
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
    if !args.show && !chosen.is_empty() {
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
    for staged in find(area, &queries)? {
        if let Some(edits) = &args.reject {
            reject(context, area, &staged, edits, &args.reason)?;
        }
        if let Some(edits) = &args.accept {
            accept(context, area, &staged, edits)?;
        }
    }
    Ok(ExitStatus::Done)
}

fn reject(
    context: &Context,
    area: &StagingArea,
    staged: &Staged,
    edits: &str,
    reason: &str,
) -> Result<(), Failure> {
    let id = &staged.proposal.id;
    area.reject(id, selection(edits)?, reason, Timestamp::now())
        .map_err(|error| Failure::situation(&error))?;
    context
        .printer
        .note(format!("{id}: rejected {}", described(edits)));
    Ok(())
}

/// Accepts edits. What will be written is the whole proposed text, or the base with just the
/// accepted edits applied again; the decision is bound to that text.
fn accept(
    context: &Context,
    area: &StagingArea,
    staged: &Staged,
    edits: &str,
) -> Result<(), Failure> {
    let proposal = &staged.proposal;
    let selection = selection(edits)?;
    let text = match &selection {
        EditSelection::All => proposal.proposed.text.clone(),
        EditSelection::Some(chosen) => with_chosen(staged, chosen)?,
    };
    area.accept(
        &proposal.id,
        Acceptance {
            edits: selection,
            shown_sha256: sha256(&text),
            text,
            edited_by_person: false,
            base_sha256: None,
            at: Timestamp::now(),
        },
    )
    .map_err(|error| Failure::situation(&error))?;
    context.printer.note(format!(
        "{}: accepted {}; apply it with: skillopt-sleep adopt {}",
        proposal.id,
        described(edits),
        proposal.id
    ));
    Ok(())
}

fn with_chosen(staged: &Staged, chosen: &[usize]) -> Result<String, Failure> {
    let proposal = &staged.proposal;
    let document = Document {
        kind: match proposal.document.kind {
            DocumentKind::Skill => NightKind::Skill,
            DocumentKind::Memory => NightKind::Memory,
        },
        name: proposal.document.name.clone(),
        path: Path::new(&proposal.document.path).to_owned(),
        text: proposal.base.existed.then(|| proposal.base.normal()),
    };
    let edits: Vec<_> = proposal
        .edits
        .iter()
        .filter(|edit| chosen.contains(&edit.index))
        .collect();
    with_edits(&document, &edits).map_err(|error| Failure::situation(&error))
}

fn selection(edits: &str) -> Result<EditSelection, Failure> {
    if edits == "all" {
        return Ok(EditSelection::All);
    }
    edits
        .split(',')
        .map(|number| number.trim().parse::<usize>())
        .collect::<Result<Vec<_>, _>>()
        .map(EditSelection::Some)
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
