//! Every screen at two sizes.

mod decisions;
mod fixture;

use std::collections::BTreeSet;
use std::path::Path;

use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Modifier;

use super::app::{App, Mode, Tab};
use super::keys::{Key, update};
use super::opened::{Live, Opened};
use super::screen;
use super::theme::Theme;
use fixture::{BASE, DANGER, Night, THREE, draft};

/// A proposal at a place that is the same on every machine.
fn opened(edits: &[(&str, &str, &str)], live: Option<&str>) -> Opened {
    let night = Night::new();
    let path = Path::new("/home/sam/.claude/skills/house-rules/SKILL.md");
    let id = night
        .area
        .stage(draft("house-rules", path, edits))
        .unwrap()
        .id;
    let staged = night.area.load(&id).unwrap();
    let live = Live::of(&staged, live.map(str::to_owned));
    Opened::new(
        staged,
        live,
        "# Night 4\n\n- sessions: 10\n- tasks: 9 (6 train, 3 validation, 0 test)\n".to_owned(),
    )
}

fn app_of(opened: Opened) -> App {
    let mut app = App::new(vec![opened.staged.clone()]);
    app.place(opened);
    app
}

fn draw(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            screen::draw(frame, app, Theme { colour: false });
        })
        .unwrap();
    let shown = terminal.backend().to_string();
    shown
        .lines()
        .map(|line| line.trim_matches('"').trim_end())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A screen at both sizes.
fn check(name: &str, app: &App) {
    assert_snapshot!(format!("{name}_80x24"), draw(app, 80, 24));
    assert_snapshot!(format!("{name}_120x40"), draw(app, 120, 40));
}

#[test]
fn each_tab_shows_its_part() {
    let mut app = app_of(opened(THREE, Some(BASE)));
    for (tab, name) in Tab::ALL
        .into_iter()
        .zip(["diff", "why", "gate", "risks", "report"])
    {
        app.tab = tab;
        check(name, &app);
    }
    app.tab = Tab::Diff;
    update(&mut app, Key::Char('n'));
    update(&mut app, Key::Char('n'));
    check("diff_of_one_edit", &app);
}

#[test]
fn risks_are_explained_with_the_flag_that_allows_them() {
    let mut app = app_of(opened(DANGER, Some(BASE)));
    app.tab = Tab::Risks;
    check("risks_danger", &app);
}

#[test]
fn help_and_reason_lie_over_the_screen() {
    let mut app = app_of(opened(THREE, Some(BASE)));
    update(&mut app, Key::Char('?'));
    check("help", &app);
    update(&mut app, Key::Escape);
    update(&mut app, Key::Char('r'));
    for c in "we have CI".chars() {
        update(&mut app, Key::Char(c));
    }
    check("reason", &app);
}

#[test]
fn a_document_that_changed_is_shown_as_it_is_now() {
    let changed = BASE.replace(
        "- Small changes, one purpose each.",
        "- Small changes only.",
    );
    let fits = opened(THREE, Some(&changed));
    assert!(fits.stuck.is_empty());
    check("drift_fits", &app_of(fits));
    let conflict = opened(
        THREE,
        Some(&BASE.replace("- Short sentences.", "- Long sentences.")),
    );
    assert_eq!(
        conflict.stuck,
        BTreeSet::from([2, 3]),
        "an addition right beside a change has no place of its own"
    );
    check("drift_conflict", &app_of(conflict));
    check("drift_removed", &app_of(opened(THREE, None)));
}

#[test]
fn the_end_shows_what_would_be_written_and_what_is_held_back() {
    let mut app = app_of(opened(THREE, Some(BASE)));
    app.mode = Mode::Finish(super::desk::Preview {
        writes: vec![skillopt_staging::PlannedWrite {
            proposal: "n4-1".to_owned(),
            path: "/home/sam/.claude/skills/house-rules/SKILL.md".into(),
            real_path: "/home/sam/dotfiles/house-rules/SKILL.md".into(),
            makes_directories: vec!["/home/sam/dotfiles/house-rules".into()],
            before: None,
            after_sha256: String::new(),
            after_length: 312,
            diff: "--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+# House rules\n+- Run the tests.\n"
                .to_owned(),
        }],
        refused: vec![(
            "n4-3".to_owned(),
            "/home/sam/AGENTS.md: it was changed after n4-3 was made: review the proposal again"
                .to_owned(),
        )],
        held: vec![("n4-2".to_owned(), vec!["remote-code".to_owned()])],
    });
    check("finish", &app);
}

#[test]
fn a_list_shows_where_each_proposal_stands() {
    let night = Night::new();
    for number in 1..=40 {
        let edits = if number % 4 == 0 { DANGER } else { THREE };
        night
            .area
            .stage(draft(
                &format!("skill-{number}"),
                Path::new(&format!("/home/sam/skills/{number}/SKILL.md")),
                edits,
            ))
            .unwrap();
    }
    let mut app = App::new(night.area.list().unwrap().staged);
    for _ in 0..20 {
        update(&mut app, Key::Down);
    }
    app.skip();
    update(&mut app, Key::Down);
    assert_snapshot!("list_80x24", draw(&app, 80, 24));
    assert_snapshot!("nothing_80x24", draw(&App::new(Vec::new()), 80, 24));
}

#[test]
fn changed_words_stand_out_without_colour() {
    let clearer = ("replace", "one purpose each", "one clear purpose each");
    let app = app_of(opened(&[clearer], Some(BASE)));
    let mut terminal = Terminal::new(TestBackend::new(100, 40)).unwrap();
    terminal
        .draw(|frame| {
            screen::draw(frame, &app, Theme { colour: false });
        })
        .unwrap();
    let cells = terminal.backend().buffer().content();
    let marked: String = cells
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::UNDERLINED))
        .map(|cell| cell.symbol())
        .collect();
    assert_eq!(marked.trim(), "clear");
    assert!(
        cells
            .iter()
            .all(|cell| cell.fg == ratatui::style::Color::Reset),
        "no colour"
    );
}
