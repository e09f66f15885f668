//! The screen: a header, the proposals on the left, the tabs on the right, the keys at the bottom.

use std::rc::Rc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use skillopt_staging::{Level, Status, display_safe, one_line};

use super::app::{App, Extent, Mode, Row, Scope, Tab};
use super::desk::Preview;
use super::opened::undecided;
use super::tabs;
use super::theme::Theme;
use super::wrap::wrap;

const KEYS: &str = "a accept  r reject  s skip  e edit  n/p edits  tab tabs  ? help  q quit";

const HELP: &[(&str, &str)] = &[
    (
        "a",
        "accept the edit, or the whole proposal before its first edit",
    ),
    (
        "r",
        "reject it, with a reason that may be empty; later nights are told",
    ),
    ("s", "skip it: it keeps waiting"),
    ("A  R  S", "the same for everything that remains"),
    (
        "e",
        "edit the proposed text in $VISUAL or $EDITOR, and accept yours",
    ),
    ("n  p", "next and previous edit, on into the next proposal"),
    ("↑  ↓", "previous and next proposal"),
    ("tab  ← →  1-5", "Diff, Why, Gate, Risks, Report"),
    ("j  k  space", "scroll; also page up and down, g, G"),
    (
        "q",
        "to the end: what would be written, then adopt or leave",
    ),
    ("ctrl-c", "leave at once; what was decided is stored"),
];

/// Draws everything, and tells how far the content can be scrolled.
pub(super) fn draw(frame: &mut Frame<'_>, app: &App, theme: Theme) -> Extent {
    let [header, body, notice, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(
        Paragraph::new(Line::styled(
            fill(&title(app), header.width),
            theme.chosen(),
        )),
        header,
    );
    frame.render_widget(Line::raw(one_line(&app.notice)), notice);
    if let Mode::Finish(preview) = &app.mode {
        let keys = if preview.writes.is_empty() {
            "n leave  b back"
        } else {
            "y adopt  n leave without adopting  b back  j/k scroll"
        };
        frame.render_widget(Line::styled(keys, theme.faint()), footer);
        let area = indented(body);
        let lines = wrap(finish(preview, theme), usize::from(area.width), 2);
        return scrolled(frame, area, &lines, app.scroll);
    }
    frame.render_widget(Line::styled(KEYS, theme.faint()), footer);
    let list = (body.width * 3 / 10).clamp(16, 36);
    let [left, right] =
        Layout::horizontal([Constraint::Length(list), Constraint::Min(20)]).areas(body);
    draw_list(frame, left, app, theme);
    let [tabs, content] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(1)]).areas(right);
    frame.render_widget(
        Paragraph::new(tab_line(app, usize::from(tabs.width), theme)),
        tabs,
    );
    let content = indented(content);
    let lines = content_lines(app, usize::from(content.width), theme);
    let extent = scrolled(frame, content, &lines, app.scroll);
    match &app.mode {
        Mode::Help => draw_help(frame, theme),
        Mode::Reason { scope, text } => draw_reason(frame, app, *scope, text, theme),
        _ => {}
    }
    extent
}

fn title(app: &App) -> String {
    if matches!(app.mode, Mode::Finish(_)) {
        return " review · what would be written".to_owned();
    }
    let Some(row) = app.row() else {
        return " review".to_owned();
    };
    let edit = app
        .edit()
        .map(|edit| format!(" · edit {edit}"))
        .unwrap_or_default();
    format!(
        " {} of {} · {} {}{edit} · {}",
        app.selected + 1,
        app.rows.len(),
        row.id(),
        one_line(&row.staged.proposal.document.name),
        state(row)
    )
}

/// Where a proposal stands, in words.
fn state(row: &Row) -> String {
    let open = undecided(&row.staged).len();
    match &row.staged.status {
        Status::Accepted { .. } if open > 0 => format!("accepted in part, {open} undecided"),
        _ if row.is_skipped() => "skipped".to_owned(),
        Status::Pending if open > 0 && open < row.edits().len() => format!("{open} undecided"),
        status => status.word().to_owned(),
    }
}

fn fill(text: &str, width: u16) -> String {
    format!("{text:<width$}", width = usize::from(width))
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let block = Block::new()
        .borders(Borders::RIGHT)
        .border_style(theme.faint());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let height = usize::from(inner.height);
    let first = app
        .selected
        .saturating_sub(height / 2)
        .min(app.rows.len().saturating_sub(height));
    let lines: Vec<Line<'_>> = app
        .rows
        .iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(index, row)| {
            let pointer = if index == app.selected { '>' } else { ' ' };
            let name = one_line(&row.staged.proposal.document.name);
            let danger = row
                .staged
                .proposal
                .lint
                .iter()
                .any(|finding| finding.level == Level::Danger);
            let risk = if danger { "!" } else { " " };
            let line = format!("{pointer}{}{risk}{} {name}", mark(row), row.id());
            let style = if index == app.selected {
                theme.strong()
            } else {
                ratatui::style::Style::new()
            };
            Line::styled(line, style)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// A sign for where a proposal stands.
fn mark(row: &Row) -> char {
    match &row.staged.status {
        Status::Accepted { .. } if row.waits() => '~',
        Status::Accepted { .. } => '✓',
        Status::Rejected { .. } => '✗',
        Status::Adopted { .. } => '*',
        _ if row.is_skipped() => '-',
        _ => '·',
    }
}

fn tab_line(app: &App, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let risks = app
        .row()
        .and_then(|row| row.opened.as_ref())
        .map_or(0, |opened| opened.findings.len());
    let mut spans = vec![Span::raw(" ")];
    for tab in Tab::ALL {
        let count = if tab == Tab::Risks && risks > 0 {
            format!(" {risks}")
        } else {
            String::new()
        };
        let title = format!("{}{count}", tab.title());
        if tab == app.tab {
            spans.push(Span::styled(format!("[{title}]"), theme.chosen()));
        } else {
            spans.push(Span::raw(format!(" {title} ")));
        }
        spans.push(Span::raw(" "));
    }
    let path = app
        .row()
        .map(|row| one_line(&row.staged.proposal.document.path.display().to_string()));
    vec![
        Line::from(spans),
        Line::styled(
            format!(
                "  {}",
                its_end(&path.unwrap_or_default(), width.saturating_sub(2))
            ),
            theme.faint(),
        ),
    ]
}

/// A path that may have `width` cells; of a longer one the end, which tells most.
fn its_end(path: &str, width: usize) -> String {
    let mut rest = path;
    while Line::raw(rest).width() + usize::from(rest.len() < path.len()) > width {
        let Some(first) = rest.chars().next() else {
            break;
        };
        rest = &rest[first.len_utf8()..];
    }
    if rest.len() == path.len() {
        path.to_owned()
    } else {
        format!("…{rest}")
    }
}

fn content_lines(app: &App, width: usize, theme: Theme) -> Rc<Vec<Line<'static>>> {
    let lines = match app.row().map(|row| (&row.opened, &row.problem)) {
        None => vec![Line::raw("nothing waits for review")],
        Some((Some(opened), _)) => {
            return tabs::lines(app.tab, opened, app.edit(), width, theme);
        }
        Some((None, Some(problem))) => {
            vec![Line::raw(format!("cannot be shown: {}", one_line(problem)))]
        }
        Some((None, None)) => Vec::new(),
    };
    Rc::new(wrap(lines, width, 2))
}

/// The area without a blank column on its left.
fn indented(area: Rect) -> Rect {
    let [_, area] = Layout::horizontal([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    area
}

/// Draws the part of the lines that fits.
fn scrolled(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'static>], scroll: usize) -> Extent {
    let page = usize::from(area.height);
    let end = lines.len().saturating_sub(page);
    let first = scroll.min(end);
    let below = lines.len().saturating_sub(first + page);
    let mut shown: Vec<Line<'static>> = lines.iter().skip(first).take(page).cloned().collect();
    if below > 0 {
        shown.pop();
        shown.push(Line::raw(format!("… {} more lines", below + 1)));
    }
    frame.render_widget(Paragraph::new(shown), area);
    Extent { page, end }
}

fn finish(preview: &Preview, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let files = preview.writes.len();
    lines.push(Line::styled(
        match files {
            0 => "nothing can be adopted now".to_owned(),
            1 => "adopt now? one document would be written:".to_owned(),
            _ => format!("adopt now? {files} documents would be written, all or none:"),
        },
        theme.strong(),
    ));
    for write in &preview.writes {
        lines.push(Line::raw(""));
        let what = if write.before.is_some() {
            "changed"
        } else {
            "created"
        };
        lines.push(Line::styled(
            format!(
                "{} · {} ({what}, {} bytes)",
                write.proposal,
                one_line(&write.real_path.display().to_string()),
                write.after_length
            ),
            theme.strong(),
        ));
        for directory in &write.makes_directories {
            lines.push(Line::raw(format!(
                "  makes the folder {}",
                one_line(&directory.display().to_string())
            )));
        }
        for line in display_safe(&write.diff).lines().skip(2) {
            let style = match line.as_bytes().first() {
                Some(b'+') => theme.added(),
                Some(b'-') => theme.removed(),
                _ => theme.faint(),
            };
            lines.push(Line::styled(
                format!("  {}", line.replace('\t', "    ")),
                style,
            ));
        }
    }
    for (id, rules) in &preview.held {
        lines.push(Line::raw(""));
        lines.push(Line::styled(
            format!("{id} is held back: danger {}", rules.join(", ")),
            theme.level(Level::Danger),
        ));
        let flags: Vec<String> = rules
            .iter()
            .map(|rule| format!("--allow-risk {rule}"))
            .collect();
        lines.push(Line::raw(format!(
            "  if you want it all the same: skillopt-sleep adopt {id} {}",
            flags.join(" ")
        )));
    }
    for (id, reason) in &preview.refused {
        lines.push(Line::raw(""));
        lines.push(Line::styled(
            format!("{id} cannot be adopted"),
            theme.level(Level::Warning),
        ));
        lines.push(Line::raw(format!("  {}", one_line(reason))));
    }
    if files > 0 {
        lines.push(Line::raw(""));
        lines.push(Line::raw(
            "each document is backed up; skillopt-sleep revert brings it back",
        ));
    }
    lines
}

fn draw_help(frame: &mut Frame<'_>, theme: Theme) {
    let mut lines: Vec<Line<'static>> = HELP
        .iter()
        .map(|(key, what)| Line::raw(format!(" {key:<14} {what}")))
        .collect();
    lines.push(Line::raw(""));
    lines.push(Line::raw(
        " · waits   ~ in part   ✓ accepted   ✗ rejected   - skipped   ! danger",
    ));
    dialog(frame, " keys ", lines, 16, theme);
}

fn draw_reason(frame: &mut Frame<'_>, app: &App, scope: Scope, text: &str, theme: Theme) {
    let what = match (scope, app.edit()) {
        (Scope::Rest, _) => format!("everything that remains ({} proposals)", app.rest().len()),
        (Scope::Here, Some(edit)) => format!("edit {edit}"),
        (Scope::Here, None) => app.row().map(|row| row.id().to_owned()).unwrap_or_default(),
    };
    let lines = vec![
        Line::raw(format!(
            " why do you reject {what}? later nights are told; may be empty"
        )),
        Line::raw(""),
        Line::raw(format!(" > {}_", display_safe(text))),
        Line::raw(""),
        Line::styled(" enter rejects   esc takes it back", theme.faint()),
    ];
    dialog(frame, " reason ", lines, 3, theme);
}

/// A box in the middle of the screen.
fn dialog(
    frame: &mut Frame<'_>,
    title: &str,
    lines: Vec<Line<'static>>,
    indent: usize,
    theme: Theme,
) {
    let area = frame.area();
    let width = area.width.saturating_sub(2).min(78);
    let lines = wrap(lines, usize::from(width.saturating_sub(2)), indent);
    let height = u16::try_from(lines.len() + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    let place = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    let rows = Rect {
        x: 0,
        width: area.width,
        ..place
    };
    frame.render_widget(Clear, rows);
    let block = Block::bordered()
        .title(title.to_owned())
        .title_style(theme.strong());
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
