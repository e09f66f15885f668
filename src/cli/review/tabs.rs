//! What each tab says about a proposal. All words that come from models and logs pass
//! [`one_line`] or [`display_safe`].

use std::rc::Rc;

use ratatui::text::{Line, Span};
use skillopt_staging::{
    DiffLine, EditStatus, Evidence, GateRecord, LineChange, StagedEdit, display_safe, inline_diff,
    one_line,
};

use super::app::Tab;
use super::opened::{EditDecision, Live, Opened, applied, decision};
use super::screens::View;
use super::theme::Theme;
use super::wrap::wrap;
use crate::cli::staged::{gain, score};
use crate::night::risk::level_name;
use crate::skill::lint;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// The column of the table of tasks in which their labels begin.
const LABELS: usize = 26;

/// The lines of a tab, none wider than `width` cells; `edit` is the one that is looked at.
pub(super) fn lines(
    tab: Tab,
    opened: &Opened,
    edit: Option<usize>,
    width: usize,
    theme: Theme,
) -> Rc<Vec<Line<'static>>> {
    let view = View {
        tab,
        edit,
        width,
        colour: theme.colour,
    };
    opened
        .screens
        .get(view, || wrap(made(&view, opened, theme), width, 2))
}

fn made(view: &View, opened: &Opened, theme: Theme) -> Vec<Line<'static>> {
    let edit = view.edit;
    match view.tab {
        Tab::Diff => diff(opened, edit, theme),
        Tab::Why => why(opened, edit, theme),
        Tab::Gate => gate(opened, view.width, theme),
        Tab::Risks => risks(opened, theme),
        Tab::Report => report(opened),
    }
}

fn text(text: impl Into<String>) -> Line<'static> {
    Line::raw(text.into())
}

/// What was decided about an edit, in a word.
fn decided(opened: &Opened, edit: &StagedEdit) -> &'static str {
    match (edit.status, decision(&opened.staged, edit.index)) {
        (EditStatus::NoOp, _) => "changes nothing",
        (EditStatus::Skipped, _) => "could not be applied",
        (_, EditDecision::Undecided) => "undecided",
        (_, EditDecision::Accepted) => "accepted",
        (_, EditDecision::Rejected) => "rejected",
    }
}

fn edit_title(opened: &Opened, edit: &StagedEdit, theme: Theme) -> Line<'static> {
    let count = opened.staged.proposal.edits.len();
    let stuck = if opened.stuck.contains(&edit.index) {
        " · no longer fits the document"
    } else {
        ""
    };
    Line::styled(
        format!(
            "edit {} of {count} · {} · {}{stuck}",
            edit.index,
            one_line(&edit.op),
            decided(opened, edit)
        ),
        theme.strong(),
    )
}

fn diff(opened: &Opened, edit: Option<usize>, theme: Theme) -> Vec<Line<'static>> {
    let proposal = &opened.staged.proposal;
    let mut lines = standing(opened, theme);
    let shown = match edit {
        Some(number) => {
            if let Some(edit) = proposal.edits.iter().find(|edit| edit.index == number) {
                lines.push(edit_title(opened, edit, theme));
            }
            opened.text_of(&[number].into())
        }
        None => {
            if applied(&opened.staged).len() > 1 {
                lines.push(Line::styled(overview(opened), theme.strong()));
            }
            opened.text.clone()
        }
    };
    let (before, after) = match shown {
        Some(after) => (opened.before(), after),
        None => {
            lines.push(text(
                "shown against the document as it was when the proposal was made:",
            ));
            (proposal.base.normal(), proposal.proposed.text.clone())
        }
    };
    if !lines.is_empty() {
        lines.push(text(""));
    }
    let groups = inline_diff(&before, &after, CONTEXT);
    if groups.is_empty() {
        lines.push(text("no difference: the document has it already"));
    }
    for group in &groups {
        let number = group
            .iter()
            .find_map(|line| line.new_line.or(line.old_line))
            .unwrap_or(1);
        lines.push(Line::styled(format!("── line {number} ──"), theme.faint()));
        lines.extend(group.iter().map(|line| diff_line(line, theme)));
    }
    lines
}

/// The edits with what was decided about each.
fn overview(opened: &Opened) -> String {
    let edits = applied(&opened.staged);
    let states: Vec<String> = edits
        .iter()
        .map(|edit| match decision(&opened.staged, *edit) {
            EditDecision::Undecided => edit.to_string(),
            EditDecision::Accepted => format!("{edit} accepted"),
            EditDecision::Rejected => format!("{edit} rejected"),
        })
        .collect();
    format!(
        "{} edits: {} · n goes through them",
        edits.len(),
        states.join(", ")
    )
}

fn diff_line(line: &DiffLine, theme: Theme) -> Line<'static> {
    let (sign, style) = match line.change {
        LineChange::Same => ("  ", ratatui::style::Style::new()),
        LineChange::Added => ("+ ", theme.added()),
        LineChange::Removed => ("- ", theme.removed()),
    };
    let mut spans = vec![Span::styled(sign, style)];
    // A line that is new as a whole has no words that stand out.
    let partly = line
        .spans
        .iter()
        .any(|span| !span.changed && !span.text.trim().is_empty());
    for span in &line.spans {
        let style = if span.changed && partly {
            theme.changed(style)
        } else {
            style
        };
        spans.push(Span::styled(span.text.replace('\t', "    "), style));
    }
    if line.missing_newline {
        spans.push(Span::styled(" (no newline at the end)", theme.faint()));
    }
    Line::from(spans)
}

/// What has to be known before the change is read.
fn standing(opened: &Opened, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let proposal = &opened.staged.proposal;
    let mut warn = |words: String| {
        lines.push(Line::styled(
            words,
            theme.level(skillopt_staging::Level::Warning),
        ))
    };
    if !proposal.verified {
        warn("not verified: no held-out task stands behind this suggestion".to_owned());
    }
    match &opened.live {
        Live::AsStaged => {}
        Live::Unreadable(why) => warn(format!("the document cannot be read: {}", one_line(why))),
        Live::Changed { exists, .. } => {
            let what = match (exists, proposal.base.existed) {
                (false, _) => "was removed",
                (true, false) => "was created",
                (true, true) => "was changed",
            };
            warn(format!("the document {what} after this proposal was made"));
            lines.push(text(match (&opened.text, opened.stuck.is_empty()) {
                (Some(_), _) => "the change still fits, and is shown against the document as it is now".to_owned(),
                (None, true) => {
                    "single edits still fit, but not all together: accept them one by one, or edit (e)".to_owned()
                }
                (None, false) => format!(
                    "edits that no longer fit: {}; accept the others one by one (n), edit (e), or reject",
                    opened.stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                ),
            }));
        }
    }
    if opened.stale {
        lines.push(text(
            "it was accepted for the document as it was: accept it again (a) as it is shown",
        ));
    }
    if opened
        .staged
        .decision
        .accepted
        .as_ref()
        .is_some_and(|accepted| accepted.edited_by_person)
    {
        lines.push(text("accepted with your own text, which is shown here"));
    }
    lines
}

fn why(opened: &Opened, edit: Option<usize>, theme: Theme) -> Vec<Line<'static>> {
    let proposal = &opened.staged.proposal;
    let mut lines = Vec::new();
    for one in proposal
        .edits
        .iter()
        .filter(|one| edit.is_none_or(|number| one.index == number))
    {
        if !lines.is_empty() {
            lines.push(text(""));
        }
        lines.push(edit_title(opened, one, theme));
        let content = if one.content.trim().is_empty() {
            &one.target
        } else {
            &one.content
        };
        lines.extend(
            display_safe(content.trim())
                .lines()
                .map(|line| text(format!("  {line}"))),
        );
        if !one.rationale.trim().is_empty() {
            lines.push(text(format!("because {}", one_line(&one.rationale))));
        }
        if let Some(gain) = one.contribution {
            lines.push(text(format!(
                "it adds {gain:+.3} to what the other edits do"
            )));
        }
        if one.evidence.is_empty() {
            lines.push(Line::styled("no session is quoted for it", theme.faint()));
        }
        for evidence in &one.evidence {
            lines.push(text(""));
            lines.extend(quoted(evidence, &proposal.gate, theme));
        }
    }
    for rejected in &opened.staged.decision.rejected {
        let edits: Vec<String> = rejected.edits.iter().map(ToString::to_string).collect();
        let reason = if rejected.reason.is_empty() {
            "no reason given".to_owned()
        } else {
            one_line(&rejected.reason)
        };
        lines.push(text(""));
        lines.push(text(format!("you rejected {}: {reason}", edits.join(", "))));
    }
    if lines.is_empty() {
        lines.push(text("the proposal does not say which edits it is made of"));
    }
    lines
}

/// Where an edit comes from: who said what where, and how the task went since.
fn quoted(evidence: &Evidence, gate: &GateRecord, theme: Theme) -> Vec<Line<'static>> {
    let session: String = evidence.session.chars().take(8).collect();
    let mut lines = vec![
        Line::styled(
            format!(
                "{}  {}  session {}",
                one_line(&evidence.date),
                one_line(&evidence.project),
                one_line(&session)
            ),
            theme.faint(),
        ),
        text(format!("  “{}”", one_line(&evidence.quote))),
    ];
    if let Some(file) = &evidence.file {
        let place = evidence
            .offset
            .map(|offset| format!(", byte {offset}"))
            .unwrap_or_default();
        let file = one_line(&file.display().to_string());
        lines.push(Line::styled(format!("  {file}{place}"), theme.faint()));
    }
    if let Some(item) = gate.items.iter().find(|item| item.id == evidence.task) {
        lines.push(text(format!(
            "  the task scored {} before and {} after",
            score(item.baseline).trim(),
            score(item.candidate).trim()
        )));
    }
    lines
}

fn gate(opened: &Opened, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let proposal = &opened.staged.proposal;
    let gate = &proposal.gate;
    let mut lines = vec![
        Line::styled(
            format!(
                "{} · {} {}",
                one_line(&gate.action.replace('_', " ")),
                one_line(&gate.metric),
                gain(gate)
            ),
            theme.strong(),
        ),
        text(counts(gate)),
    ];
    if !gate.rule.trim().is_empty() {
        lines.push(text(format!("by the rule {}", one_line(&gate.rule))));
    }
    if gate.interval.is_none() {
        lines.push(Line::styled("no interval was computed", theme.faint()));
    }
    lines.push(Line::styled(contributions(opened), theme.faint()));
    if !gate.items.is_empty() {
        lines.push(text(""));
        lines.push(Line::styled(
            "before  after             validation task",
            theme.faint(),
        ));
    }
    for item in &gate.items {
        let mark = match item.baseline.zip(item.candidate) {
            None => "unmeasured",
            Some((before, after)) if after > before => "better",
            Some((before, after)) if after < before => "worse",
            Some(_) => "even",
        };
        let label = if item.label.trim().is_empty() {
            &item.id
        } else {
            &item.label
        };
        let row = text(format!(
            "{:>5}   {:>5}  {mark:<10} {}",
            score(item.baseline).trim(),
            score(item.candidate).trim(),
            one_line(label)
        ));
        lines.extend(wrap(vec![row], width, LABELS));
    }
    for rejected in &proposal.rejected {
        lines.push(text(""));
        lines.push(Line::styled(
            format!("turned down by the gate: {}", gain(&rejected.gate)),
            theme.strong(),
        ));
        for edit in &rejected.edits {
            let content = if edit.content.trim().is_empty() {
                &edit.target
            } else {
                &edit.content
            };
            lines.push(text(format!(
                "  {} {}",
                one_line(&edit.op),
                one_line(content)
            )));
        }
    }
    lines.push(text(""));
    let usd = proposal
        .cost
        .usd
        .map(|usd| format!(", ${usd:.4}"))
        .unwrap_or_default();
    lines.push(text(format!(
        "cost: {} calls, {} tokens{usd}",
        proposal.cost.calls, proposal.cost.tokens
    )));
    lines
}

/// What each edit added to the score, or that nobody asked.
fn contributions(opened: &Opened) -> String {
    let edits = opened.staged.proposal.edits.iter();
    let known: Vec<String> = edits
        .filter_map(|edit| Some(format!("edit {} {:+.3}", edit.index, edit.contribution?)))
        .collect();
    if known.is_empty() {
        return "what each edit adds was not measured (train.gate_attribute)".to_owned();
    }
    format!("each edit adds: {}", known.join(", "))
}

fn counts(gate: &GateRecord) -> String {
    format!(
        "{} tasks: {} better, {} worse, {} even, {} not measured",
        gate.items.len(),
        gate.wins,
        gate.losses,
        gate.ties,
        gate.not_measured
    )
}

fn risks(opened: &Opened, theme: Theme) -> Vec<Line<'static>> {
    if opened.findings.is_empty() {
        return vec![
            text("the added text has none of the risks that are looked for"),
            Line::styled("that is no proof: read the diff", theme.faint()),
        ];
    }
    let mut lines = Vec::new();
    for finding in &opened.findings {
        if !lines.is_empty() {
            lines.push(text(""));
        }
        let place = finding
            .line
            .map(|line| format!(" · line {line}"))
            .unwrap_or_default();
        lines.push(Line::styled(
            format!(
                "{} · {}{place}",
                level_name(finding.level),
                one_line(&finding.rule)
            ),
            theme.level(finding.level),
        ));
        lines.push(text(format!(
            "  {}",
            one_line(&display_safe(&finding.excerpt))
        )));
        if let Some(rule) = lint::rule(&finding.rule) {
            lines.push(Line::styled(
                format!("  {}", rule.explanation),
                theme.faint(),
            ));
        }
    }
    let dangers = crate::night::risk::dangers(&opened.findings);
    if !dangers.is_empty() {
        lines.push(text(""));
        lines.push(text(format!(
            "adopting it needs: skillopt-sleep adopt {} {}",
            opened.id(),
            dangers
                .iter()
                .map(|rule| format!("--allow-risk {rule}"))
                .collect::<Vec<_>>()
                .join(" ")
        )));
    }
    lines
}

fn report(opened: &Opened) -> Vec<Line<'static>> {
    if opened.report.is_empty() {
        return vec![text(format!(
            "there is no report of night {}",
            one_line(&opened.staged.proposal.night)
        ))];
    }
    display_safe(&opened.report)
        .lines()
        .map(|line| text(line.replace('\t', "    ")))
        .collect()
}
