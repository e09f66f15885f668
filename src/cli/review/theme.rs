//! How things look. Colour only adds to what words and signs say already, and can be left out.

use ratatui::style::{Color, Modifier, Style};
use skillopt_staging::Level;

/// The looks, with or without colour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    /// Whether colours are used.
    pub(super) colour: bool,
}

impl Theme {
    fn with(self, style: Style, colour: Color) -> Style {
        if self.colour { style.fg(colour) } else { style }
    }

    /// A title, and what is looked at.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is chosen out of several.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What matters less.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// An added line.
    pub(super) fn added(self) -> Style {
        self.with(Style::new(), Color::Green)
    }

    /// A removed line.
    pub(super) fn removed(self) -> Style {
        self.with(Style::new(), Color::Red)
    }

    /// The words of a line that changed.
    pub(super) fn changed(self, line: Style) -> Style {
        line.add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Something to look at.
    pub(super) fn level(self, level: Level) -> Style {
        match level {
            Level::Note => Style::new(),
            Level::Warning => self.with(self.strong(), Color::Yellow),
            Level::Danger => self.with(self.strong(), Color::Red),
        }
    }
}
