//! The state of a review on a terminal. Pure: keys change it in [`super::keys`], screens show it, and
//! what has to be done on the disk comes back as an [`Effect`].

use std::collections::{BTreeMap, BTreeSet};

use skillopt_staging::{Staged, Status};

use super::desk::Preview;
use super::opened::{Opened, applied, undecided, waits};

/// What the right side shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    /// The change, words marked.
    Diff,
    /// Each edit's rationale and the sessions behind it.
    Why,
    /// The gate's numbers, task by task.
    Gate,
    /// What the lint found.
    Risks,
    /// The night's report.
    Report,
}

impl Tab {
    /// All, from left to right.
    pub(super) const ALL: [Self; 5] =
        [Self::Diff, Self::Why, Self::Gate, Self::Risks, Self::Report];

    /// Its title.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Diff => "Diff",
            Self::Why => "Why",
            Self::Gate => "Gate",
            Self::Risks => "Risks",
            Self::Report => "Report",
        }
    }

    /// The one that is `by` further to the right, round and round.
    pub(super) fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// What a rejection is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The edit at the cursor, or the proposal when there is none.
    Here,
    /// Everything that is not decided yet.
    Rest,
}

/// What the keys mean at the moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mode {
    /// Looking and deciding.
    Browse,
    /// The help.
    Help,
    /// Asking for a reason.
    Reason {
        /// What is rejected.
        scope: Scope,
        /// What was typed.
        text: String,
    },
    /// The end: what adopting would write.
    Finish(Preview),
}

/// What has to be done outside of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Nothing,
    /// Read the proposal in this row.
    Open(usize),
    /// Accept edits of a proposal, besides those accepted before.
    Accept(Vec<(String, BTreeSet<usize>)>),
    /// Turn down edits, or with `None` whole proposals.
    Reject(Vec<(String, Option<BTreeSet<usize>>)>, String),
    /// Let the person edit the text of the proposal in this row.
    Edit(usize),
    /// Find out what adopting would do.
    Preview,
    /// Adopt what the preview shows.
    Adopt,
    /// Leave.
    Quit,
}

/// One proposal of the review.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The proposal as the listing has it, without texts.
    pub(super) staged: Staged,
    /// With everything, once it was looked at.
    pub(super) opened: Option<Box<Opened>>,
    /// Why it cannot be looked at.
    pub(super) problem: Option<String>,
    /// What was passed over: edits, or 0 for the proposal.
    skipped: BTreeSet<usize>,
}

impl Row {
    /// The id.
    pub(super) fn id(&self) -> &str {
        &self.staged.proposal.id
    }

    /// The edits that can be decided one by one.
    pub(super) fn edits(&self) -> Vec<usize> {
        applied(&self.staged).into_iter().collect()
    }

    /// The edits that nobody decided about or passed over.
    fn open_edits(&self) -> BTreeSet<usize> {
        if self.skipped.contains(&0) {
            return BTreeSet::new();
        }
        undecided(&self.staged)
            .into_iter()
            .filter(|edit| !self.skipped.contains(edit))
            .collect()
    }

    /// Whether it still waits for a word.
    pub(super) fn waits(&self) -> bool {
        let edits = applied(&self.staged);
        let passed = self.skipped.contains(&0) || !edits.is_empty() && self.open_edits().is_empty();
        waits(&self.staged) && !passed && self.problem.is_none()
    }

    /// Whether it was passed over as a whole or in its last open edits.
    pub(super) fn is_skipped(&self) -> bool {
        waits(&self.staged) && !self.waits()
    }
}

/// How much of the content fits, as the last drawing found it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Lines on the screen.
    pub(super) page: usize,
    /// The furthest that scrolling goes.
    pub(super) end: usize,
}

/// The whole state.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct App {
    /// The proposals.
    pub(super) rows: Vec<Row>,
    /// The row that is looked at.
    pub(super) selected: usize,
    /// The edit that is looked at, by its place among the row's edits; none: the whole proposal.
    pub(super) cursor: Option<usize>,
    /// What the right side shows.
    pub(super) tab: Tab,
    /// Lines scrolled away.
    pub(super) scroll: usize,
    /// What keys mean.
    pub(super) mode: Mode,
    /// One line about what just happened.
    pub(super) notice: String,
    /// From the last drawing.
    pub(super) extent: Extent,
    /// What was decided in this review: accepted and rejected proposals or edits.
    pub(super) done: BTreeMap<&'static str, usize>,
}

impl App {
    /// A review of these proposals.
    pub(super) fn new(staged: Vec<Staged>) -> Self {
        let rows = staged
            .into_iter()
            .map(|staged| Row {
                staged,
                opened: None,
                problem: None,
                skipped: BTreeSet::new(),
            })
            .collect::<Vec<_>>();
        let selected = rows.iter().position(Row::waits).unwrap_or(0);
        Self {
            rows,
            selected,
            cursor: None,
            tab: Tab::Diff,
            scroll: 0,
            mode: Mode::Browse,
            notice: String::new(),
            extent: Extent::default(),
            done: BTreeMap::new(),
        }
    }

    /// The row that is looked at.
    pub(super) fn row(&self) -> Option<&Row> {
        self.rows.get(self.selected)
    }

    /// The number of the edit that is looked at.
    pub(super) fn edit(&self) -> Option<usize> {
        self.row()?.edits().get(self.cursor?).copied()
    }

    /// The ids of the accepted proposals.
    pub(super) fn accepted(&self) -> Vec<String> {
        let accepted = self
            .rows
            .iter()
            .filter(|row| matches!(row.staged.status, Status::Accepted { .. }));
        accepted.map(|row| row.id().to_owned()).collect()
    }

    /// Everything that waits: proposals with their open edits.
    pub(super) fn rest(&self) -> Vec<(String, BTreeSet<usize>)> {
        self.rows
            .iter()
            .filter(|row| row.waits())
            .map(|row| (row.id().to_owned(), row.open_edits()))
            .collect()
    }

    /// Looks at another row.
    pub(super) fn select(&mut self, row: usize) -> Effect {
        self.selected = row;
        self.cursor = None;
        self.scroll = 0;
        self.needs()
    }

    /// Reading what is shown next, where that was not done yet.
    pub(super) fn needs(&self) -> Effect {
        match self.row() {
            Some(row) if row.opened.is_none() && row.problem.is_none() => {
                Effect::Open(self.selected)
            }
            _ => Effect::Nothing,
        }
    }

    /// Takes in a proposal as it now stands.
    pub(super) fn place(&mut self, opened: Opened) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.id() == opened.id()) {
            row.staged = opened.staged.clone();
            row.opened = Some(Box::new(opened));
        }
    }

    /// Notes that a proposal cannot be read.
    pub(super) fn cannot_open(&mut self, row: usize, problem: String) {
        if let Some(row) = self.rows.get_mut(row) {
            row.problem = Some(problem);
        }
    }

    /// Passes over the edit that is looked at, or the proposal.
    pub(super) fn skip(&mut self) {
        let edit = self.edit().unwrap_or(0);
        if let Some(row) = self.rows.get_mut(self.selected) {
            row.skipped.insert(edit);
        }
    }

    /// Passes over everything that waits.
    pub(super) fn skip_rest(&mut self) {
        for row in self.rows.iter_mut().filter(|row| row.waits()) {
            row.skipped.insert(0);
        }
    }

    /// Goes on to what waits next: an edit of this proposal when edits are looked at one by one,
    /// else the next proposal, else the end.
    pub(super) fn advance(&mut self) -> Effect {
        let here = self
            .row()
            .filter(|row| row.waits())
            .map(|row| (row.edits(), row.open_edits()));
        if let (Some(cursor), Some((edits, open))) = (self.cursor, here) {
            let count = edits.len();
            let next = (1..=count)
                .map(|by| (cursor + by) % count.max(1))
                .find(|at| open.contains(&edits[*at]));
            if next.is_some() {
                self.cursor = next;
                self.scroll = 0;
                return Effect::Nothing;
            }
        }
        let count = self.rows.len();
        let next = (1..=count)
            .map(|by| (self.selected + by) % count.max(1))
            .find(|row| self.rows[*row].waits());
        match next {
            Some(row) => self.select(row),
            None => self.finish(),
        }
    }

    /// The end of the review: what can be adopted is shown first.
    pub(super) fn finish(&self) -> Effect {
        if self.accepted().is_empty() {
            Effect::Quit
        } else {
            Effect::Preview
        }
    }
}
