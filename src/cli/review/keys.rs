//! What each key does: `update(state, key)` changes the state and says what is to be done outside.

use super::app::{App, Effect, Mode, Scope, Tab};

/// Longest reason, in characters.
const MAX_REASON: usize = 500;

/// A key, as far as the review cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A character.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// Does what the key asks for.
pub(super) fn update(app: &mut App, key: Key) -> Effect {
    app.notice.clear();
    if key == Key::Interrupt {
        return Effect::Quit;
    }
    match &app.mode {
        Mode::Browse => browse(app, key),
        Mode::Help => {
            app.mode = Mode::Browse;
            Effect::Nothing
        }
        Mode::Reason { .. } => reason(app, key),
        Mode::Finish(_) => finish(app, key),
    }
}

fn browse(app: &mut App, key: Key) -> Effect {
    match key {
        Key::Char('a') => accept(app),
        Key::Char('r') => ask_reason(app, Scope::Here),
        Key::Char('s') => {
            app.skip();
            app.advance()
        }
        Key::Char('A') => Effect::Accept(app.rest()),
        Key::Char('R') => ask_reason(app, Scope::Rest),
        Key::Char('S') => {
            app.skip_rest();
            app.finish()
        }
        Key::Char('e') => Effect::Edit(app.selected),
        Key::Char('n') => step(app, true),
        Key::Char('p') => step(app, false),
        Key::Down => app.select((app.selected + 1).min(app.rows.len().saturating_sub(1))),
        Key::Up => app.select(app.selected.saturating_sub(1)),
        Key::Tab | Key::Right => show(app, app.tab.moved(1)),
        Key::BackTab | Key::Left => show(app, app.tab.moved(Tab::ALL.len() - 1)),
        Key::Char(digit @ '1'..='5') => show(app, Tab::ALL[digit as usize - '1' as usize]),
        Key::Char('j') | Key::Enter => scroll(app, 1),
        Key::Char('k') => scroll(app, -1),
        Key::PageDown | Key::Char(' ') => scroll(app, page(app)),
        Key::PageUp => scroll(app, -page(app)),
        Key::Home | Key::Char('g') => scroll(app, isize::MIN / 2),
        Key::End | Key::Char('G') => scroll(app, isize::MAX / 2),
        Key::Char('?') => {
            app.mode = Mode::Help;
            Effect::Nothing
        }
        Key::Char('q') | Key::Escape => app.finish(),
        _ => {
            app.notice = "? shows the keys".to_owned();
            Effect::Nothing
        }
    }
}

/// Accepts the edit at the cursor, or all of the proposal that was not turned down.
fn accept(app: &App) -> Effect {
    let Some(row) = app.row() else {
        return Effect::Nothing;
    };
    let edits = match (app.edit(), &row.opened) {
        (Some(edit), _) => [edit].into(),
        (None, Some(opened)) if opened.wanted().is_empty() => row.edits().into_iter().collect(),
        (None, Some(opened)) => opened.wanted(),
        (None, None) => return Effect::Nothing,
    };
    Effect::Accept(vec![(row.id().to_owned(), edits)])
}

fn ask_reason(app: &mut App, scope: Scope) -> Effect {
    app.mode = Mode::Reason {
        scope,
        text: String::new(),
    };
    Effect::Nothing
}

fn reason(app: &mut App, key: Key) -> Effect {
    let Mode::Reason { scope, text } = &mut app.mode else {
        return Effect::Nothing;
    };
    match key {
        Key::Char(c) if text.chars().count() < MAX_REASON => text.push(c),
        Key::Backspace => {
            text.pop();
        }
        Key::Escape => {
            app.mode = Mode::Browse;
            app.notice = "nothing was rejected".to_owned();
        }
        Key::Enter => {
            let (scope, reason) = (*scope, text.trim().to_owned());
            app.mode = Mode::Browse;
            let what = match scope {
                Scope::Rest => app
                    .rest()
                    .into_iter()
                    .map(|(id, edits)| {
                        let whole = app
                            .rows
                            .iter()
                            .any(|row| row.id() == id && row.edits().len() == edits.len());
                        (id, (!whole).then_some(edits))
                    })
                    .collect(),
                Scope::Here => {
                    let edits = app.edit().map(|edit| [edit].into());
                    app.row()
                        .map(|row| (row.id().to_owned(), edits))
                        .into_iter()
                        .collect()
                }
            };
            return Effect::Reject(what, reason);
        }
        _ => {}
    }
    Effect::Nothing
}

fn finish(app: &mut App, key: Key) -> Effect {
    let writes = matches!(&app.mode, Mode::Finish(preview) if !preview.writes.is_empty());
    match key {
        Key::Char('y') if writes => Effect::Adopt,
        Key::Char('n' | 'q') => Effect::Quit,
        Key::Char('b') | Key::Escape => {
            app.mode = Mode::Browse;
            app.scroll = 0;
            app.needs()
        }
        Key::Char('j') | Key::Down => scroll(app, 1),
        Key::Char('k') | Key::Up => scroll(app, -1),
        Key::PageDown | Key::Char(' ') => scroll(app, page(app)),
        Key::PageUp => scroll(app, -page(app)),
        _ => Effect::Nothing,
    }
}

/// Goes through the edits, from the whole proposal on, and over to the next proposal.
fn step(app: &mut App, forward: bool) -> Effect {
    let count = app.row().map_or(0, |row| row.edits().len());
    app.scroll = 0;
    match (app.cursor, forward) {
        (None, true) if count > 0 => app.cursor = Some(0),
        (Some(at), true) if at + 1 < count => app.cursor = Some(at + 1),
        (Some(0), false) => app.cursor = None,
        (Some(at), false) => app.cursor = Some(at - 1),
        (_, true) if app.selected + 1 < app.rows.len() => return app.select(app.selected + 1),
        (None, false) if app.selected > 0 => {
            let effect = app.select(app.selected - 1);
            app.cursor = app
                .row()
                .map(|row| row.edits().len())
                .filter(|count| *count > 0)
                .map(|count| count - 1);
            return effect;
        }
        (_, true) => app.notice = "this is the last edit".to_owned(),
        (None, false) => app.notice = "this is the first edit".to_owned(),
    }
    Effect::Nothing
}

fn show(app: &mut App, tab: Tab) -> Effect {
    app.tab = tab;
    app.scroll = 0;
    Effect::Nothing
}

fn page(app: &App) -> isize {
    isize::try_from(app.extent.page.saturating_sub(2).max(1)).unwrap_or(1)
}

fn scroll(app: &mut App, by: isize) -> Effect {
    app.scroll = app
        .scroll
        .min(app.extent.end)
        .saturating_add_signed(by)
        .min(app.extent.end);
    Effect::Nothing
}
