//! Showing staged proposals. Everything in them comes from models and logs, so nothing is printed
//! that a terminal could take for a command.

use std::fmt::Write as _;

use skillopt_staging::{
    EditStatus, Finding, GateRecord, Staged, StagedEdit, StagingArea, Status, display_safe,
    one_line, unified_diff,
};

use super::failure::Failure;
use super::output::Printer;
use crate::night::risk::level_name;

/// The staging area of this context.
pub(super) fn open(root: &std::path::Path) -> Result<StagingArea, Failure> {
    StagingArea::open(root).map_err(|error| Failure::situation(&error))
}

/// One line about a proposal.
pub(super) fn line(staged: &Staged) -> String {
    let proposal = &staged.proposal;
    format!(
        "{:<8} {:<10} {:<24} {} {}",
        proposal.id,
        staged.status.word(),
        one_line(&proposal.document.name),
        gain(&proposal.gate),
        one_line(&proposal.document.path.display().to_string()),
    )
}

/// The change of the gate score in words.
pub(super) fn gain(gate: &GateRecord) -> String {
    let Some((baseline, candidate)) = gate.baseline.zip(gate.candidate) else {
        return "not measured".to_owned();
    };
    let interval = gate
        .interval
        .map(|(low, high)| format!(" [{low:+.3}, {high:+.3}]"))
        .unwrap_or_default();
    format!(
        "{baseline:.3} → {candidate:.3} ({:+.3}{interval})",
        candidate - baseline
    )
}

/// The whole proposal: what it is, its edits with the evidence, the gate's table, the diff.
pub(super) fn show(printer: Printer, staged: &Staged) {
    let proposal = &staged.proposal;
    printer.line(format!(
        "proposal  {} ({})",
        proposal.id,
        status(&staged.status)
    ));
    printer.line(format!(
        "document  {}",
        one_line(&proposal.document.path.display().to_string())
    ));
    printer.line(format!(
        "gate      {} · {} {} over {} validation tasks: {} better, {} worse, {} even, {} not measured",
        one_line(&proposal.gate.action),
        one_line(&proposal.gate.metric),
        gain(&proposal.gate),
        proposal.gate.items.len(),
        proposal.gate.wins,
        proposal.gate.losses,
        proposal.gate.ties,
        proposal.gate.not_measured,
    ));
    printer.line(format!(
        "cost      {} calls, {} tokens{}",
        proposal.cost.calls,
        proposal.cost.tokens,
        proposal
            .cost
            .usd
            .map(|usd| format!(", ${usd:.4}"))
            .unwrap_or_default()
    ));
    if !proposal.verified {
        printer.line("NOT VERIFIED: no held-out task stands behind this suggestion");
    }
    for edit in &proposal.edits {
        printer.line("");
        printer.line(edit_text(edit).trim_end());
    }
    if !proposal.gate.items.is_empty() {
        printer.line("\nvalidation tasks");
        for item in &proposal.gate.items {
            printer.line(format!(
                "  {} → {}  {}",
                score(item.baseline),
                score(item.candidate),
                one_line(&item.label)
            ));
        }
    }
    for rejected in &proposal.rejected {
        printer.line(format!(
            "\nturned down by the gate ({})",
            gain(&rejected.gate)
        ));
        for edit in &rejected.edits {
            printer.line(format!("  - {}", one_line(&content(edit))));
        }
    }
    show_risks(printer, &proposal.lint);
    printer.line("");
    printer.diff(&diff(staged));
}

/// What the lint found, one line a finding.
pub(super) fn show_risks(printer: Printer, findings: &[Finding]) {
    for finding in findings {
        printer.line(risk_line(finding));
    }
}

/// The same beside the data.
pub(super) fn note_risks(printer: Printer, findings: &[Finding]) {
    for finding in findings {
        printer.note(risk_line(finding));
    }
}

fn risk_line(finding: &Finding) -> String {
    let place = finding
        .line
        .map(|line| format!(" line {line}"))
        .unwrap_or_default();
    format!(
        "risk      {} {}{place}: {}",
        level_name(finding.level),
        one_line(&finding.rule),
        one_line(&display_safe(&finding.excerpt))
    )
}

/// The staged change as a unified diff, safe to show.
pub(super) fn diff(staged: &Staged) -> String {
    let proposal = &staged.proposal;
    let path = proposal.document.path.display().to_string();
    display_safe(&unified_diff(
        &proposal.base.normal(),
        &proposal.proposed.text,
        &path,
    ))
}

fn edit_text(edit: &StagedEdit) -> String {
    let mut text = format!(
        "edit {}  {}: {}\n",
        edit.index,
        one_line(&edit.op),
        one_line(&content(edit))
    );
    match edit.status {
        EditStatus::Applied => {}
        EditStatus::NoOp => text.push_str("  changes nothing\n"),
        EditStatus::Skipped => text.push_str("  could not be applied\n"),
    }
    if !edit.rationale.trim().is_empty() {
        let _ = writeln!(text, "  why: {}", one_line(&edit.rationale));
    }
    if let Some(gain) = edit.contribution {
        let _ = writeln!(text, "  adds {gain:+.3} to what the other edits do");
    }
    for evidence in edit.evidence.iter().take(3) {
        let _ = writeln!(
            text,
            "  {} {}: “{}”",
            one_line(&evidence.date),
            one_line(&evidence.project),
            one_line(&evidence.quote.chars().take(160).collect::<String>())
        );
        if let Some(file) = &evidence.file {
            let offset = evidence.offset.unwrap_or_default();
            let _ = writeln!(
                text,
                "    {}, byte {offset}",
                one_line(&file.display().to_string())
            );
        }
    }
    if edit.evidence.len() > 3 {
        let _ = writeln!(text, "  and {} more sessions", edit.evidence.len() - 3);
    }
    text
}

/// What an edit writes, or what it takes away.
fn content(edit: &StagedEdit) -> String {
    if edit.content.trim().is_empty() {
        edit.target.clone()
    } else {
        edit.content.clone()
    }
}

fn status(status: &Status) -> String {
    match status {
        Status::Rejected { reason, .. } if !reason.is_empty() => {
            format!("rejected: {}", one_line(reason))
        }
        Status::Adopted { adoption, .. } => format!("adopted as {adoption}"),
        Status::Reverted { adoption, by, .. } => format!("adopted as {adoption}, reverted by {by}"),
        Status::Superseded { by } => format!("superseded by {by}"),
        other => other.word().to_owned(),
    }
}

/// A score with three decimals, or a dash of the same width.
pub(super) fn score(value: Option<f64>) -> String {
    value.map_or("  —  ".to_owned(), |value| format!("{value:.3}"))
}
