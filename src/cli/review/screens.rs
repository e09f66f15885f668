//! What was worked out to be shown, so that a key press that changes nothing of it costs nothing.
//!
//! A decision makes a new [`Opened`](super::opened::Opened) with nothing kept yet.

use std::cell::RefCell;
use std::rc::Rc;

use ratatui::text::Line;

use super::app::Tab;

/// Most screens that are kept of one proposal.
const MOST: usize = 32;

/// What a screen depends on besides the proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    /// The tab.
    pub(super) tab: Tab,
    /// The edit that is looked at.
    pub(super) edit: Option<usize>,
    /// Cells that a line may have.
    pub(super) width: usize,
    /// Whether colours are used.
    pub(super) colour: bool,
}

/// The screens of one proposal that were looked at, the latest last.
#[derive(Debug, Clone, Default)]
pub(super) struct Screens(RefCell<Vec<(View, Rc<Vec<Line<'static>>>)>>);

impl Screens {
    /// The lines of a view, made at most once.
    pub(super) fn get(
        &self,
        view: View,
        make: impl FnOnce() -> Vec<Line<'static>>,
    ) -> Rc<Vec<Line<'static>>> {
        let known = self
            .0
            .borrow()
            .iter()
            .find(|(kept, _)| *kept == view)
            .cloned();
        if let Some((_, lines)) = known {
            return lines;
        }
        let lines = Rc::new(make());
        let mut kept = self.0.borrow_mut();
        if kept.len() == MOST {
            kept.remove(0);
        }
        kept.push((view, Rc::clone(&lines)));
        lines
    }
}

/// What is kept follows from the proposal and tells nothing more about it.
impl PartialEq for Screens {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_made_once_and_few_are_kept() {
        let screens = Screens::default();
        let made = std::cell::Cell::new(0);
        let look = |width| {
            let view = View {
                tab: Tab::Diff,
                edit: None,
                width,
                colour: false,
            };
            screens.get(view, || {
                made.set(made.get() + 1);
                vec![Line::raw(width.to_string())]
            })
        };
        assert_eq!(look(80), look(80));
        assert_eq!(made.get(), 1);
        for width in 0..100 {
            look(width);
        }
        assert_eq!(screens.0.borrow().len(), MOST);
        assert_eq!(look(80)[0], Line::raw("80"));
    }
}
