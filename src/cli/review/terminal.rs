//! A review on a terminal: draws the state, reads keys, and does what they ask for.

use std::io::{self, Stdout};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use skillopt_staging::{Adoption, Staged};

use super::app::{App, Effect, Mode, Tab};
use super::desk::{Desk, DeskError};
use super::keys::{Key, update};
use super::theme::Theme;
use super::{editor, screen};
use crate::night::risk;

/// What a review on a terminal came to.
pub(super) struct Outcome {
    /// The state at the end.
    pub(super) app: App,
    /// What was adopted.
    pub(super) adoption: Option<Adoption>,
}

/// The terminal in the state that screens need; dropping it gives it back.
struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                let _ = disable_raw_mode();
                Err(error)
            }
        }
    }

    /// Lets another program have the terminal for a while.
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        disable_raw_mode()?;
        execute!(io::stdout(), LeaveAlternateScreen)?;
        let done = work();
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        enable_raw_mode()?;
        // A new one knows nothing of what was on the screen, and draws it whole.
        self.0 = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(done)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = disable_raw_mode();
        let _ = execute!(io::stdout(), LeaveAlternateScreen);
        let _ = self.0.show_cursor();
    }
}

/// Reviews these proposals.
pub(super) fn review(desk: &Desk, staged: Vec<Staged>, theme: Theme) -> io::Result<Outcome> {
    let mut app = App::new(staged);
    let mut screen = Screen::enter()?;
    let first = app.needs();
    let mut adoption = None;
    let mut effect = first;
    loop {
        let mut quit = false;
        while effect != Effect::Nothing && !quit {
            effect = match effect {
                Effect::Edit(row) => edit(&mut screen, desk, &mut app, row)?,
                Effect::Quit => {
                    quit = true;
                    Effect::Nothing
                }
                Effect::Adopt => match adopt(desk, &mut app) {
                    Some(done) => {
                        adoption = Some(done);
                        Effect::Quit
                    }
                    None => Effect::Nothing,
                },
                other => perform(desk, &mut app, other),
            };
        }
        if quit {
            return Ok(Outcome { app, adoption });
        }
        let mut extent = app.extent;
        screen
            .0
            .draw(|frame| extent = screen::draw(frame, &app, theme))?;
        app.extent = extent;
        if let Some(key) = next_key()? {
            effect = update(&mut app, key);
        }
    }
}

/// Does what an effect asks for and says what follows.
pub(super) fn perform(desk: &Desk, app: &mut App, effect: Effect) -> Effect {
    match effect {
        Effect::Open(row) => {
            let Some(id) = app.rows.get(row).map(|row| row.id().to_owned()) else {
                return Effect::Nothing;
            };
            match desk.open(&id) {
                Ok(opened) => app.place(opened),
                Err(error) => app.cannot_open(row, error.to_string()),
            }
            Effect::Nothing
        }
        Effect::Accept(what) => decide(app, "accepted", what, |(id, edits)| {
            desk.accept_too(id, edits)
        }),
        Effect::Reject(what, reason) => decide(app, "rejected", what, |(id, edits)| {
            desk.reject(id, edits.as_ref(), &reason)
        }),
        Effect::Preview => {
            match desk.preview(&app.accepted(), &[]) {
                Ok(preview) => {
                    app.scroll = 0;
                    app.mode = Mode::Finish(preview);
                }
                Err(error) => app.notice = error.to_string(),
            }
            Effect::Nothing
        }
        Effect::Nothing | Effect::Edit(_) | Effect::Adopt | Effect::Quit => Effect::Nothing,
    }
}

/// Takes decisions one after another; stops at the first that is refused.
fn decide<T>(
    app: &mut App,
    word: &'static str,
    what: Vec<T>,
    store: impl Fn(&T) -> Result<super::opened::Opened, DeskError>,
) -> Effect {
    for one in &what {
        match store(one) {
            Ok(opened) => {
                *app.done.entry(word).or_default() += 1;
                app.notice = format!("{word} {}", opened.id());
                app.place(opened);
            }
            Err(error) => {
                app.notice = error.to_string();
                return Effect::Nothing;
            }
        }
    }
    app.advance()
}

fn edit(screen: &mut Screen, desk: &Desk, app: &mut App, row: usize) -> io::Result<Effect> {
    let Some(opened) = app.rows.get(row).and_then(|row| row.opened.as_ref()) else {
        return Ok(Effect::Nothing);
    };
    let (id, text) = (opened.id().to_owned(), desk.text_to_edit(opened));
    let edited = editor::name(true).map(|name| screen.lend(|| editor::edit(&name, &text)));
    let edited = match edited {
        Ok(lent) => lent?,
        Err(error) => Err(error),
    };
    let stored = match edited {
        Ok(None) => {
            app.notice = "nothing was changed".to_owned();
            return Ok(Effect::Nothing);
        }
        Ok(Some(text)) => desk.accept_text(&id, text),
        Err(error) => Err(error.into()),
    };
    match stored {
        Ok(opened) => {
            let dangers = risk::dangers(&opened.findings).len();
            *app.done.entry("accepted").or_default() += 1;
            app.notice = format!("accepted {id} with your text");
            if dangers > 0 {
                app.notice = format!("accepted {id} with your text, which has dangers");
                app.tab = Tab::Risks;
            }
            app.cursor = None;
            app.scroll = 0;
            app.place(opened);
        }
        Err(error) => app.notice = error.to_string(),
    }
    Ok(Effect::Nothing)
}

fn adopt(desk: &Desk, app: &mut App) -> Option<Adoption> {
    let Mode::Finish(preview) = &app.mode else {
        return None;
    };
    match desk.adopt(preview) {
        Ok(adoption) => Some(adoption),
        Err(error) => {
            app.notice = error.to_string();
            None
        }
    }
}

fn next_key() -> io::Result<Option<Key>> {
    Ok(match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => of_event(key),
        _ => None,
    })
}

fn of_event(event: KeyEvent) -> Option<Key> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control || event.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
