//! What the person should know without having asked: adoptions that nobody reviewed, and adoptions
//! since which sessions go clearly worse. Each names the command that takes the adoption back, and is
//! shown until the adoption is reverted or the notice is taken note of.

use jiff::Timestamp;
use serde::Serialize;
use skillopt_staging::{Approver, Ledger, OperationKind, one_line};

use super::failure::Failure;
use super::impact;
use crate::impact::Impact;
use crate::store::{NightRow, Store};

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NoticeKind {
    /// Nobody reviewed an adoption.
    AutomaticAdoption,
    /// Sessions go clearly worse since an adoption.
    Regression,
}

/// Something to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Notice {
    /// Its name, by which it is remembered as seen.
    name: String,
    /// What it is about.
    kind: NoticeKind,
    /// The adoption.
    adoption: String,
    /// What there is to know.
    text: String,
    /// The command that takes the adoption back.
    undo: String,
}

impl Notice {
    fn new(kind: NoticeKind, adoption: &str, text: &str) -> Self {
        let word = match kind {
            NoticeKind::AutomaticAdoption => "automatic",
            NoticeKind::Regression => "regression",
        };
        Self {
            name: format!("{word}:{adoption}"),
            kind,
            adoption: adoption.to_owned(),
            text: one_line(text),
            undo: format!("skillopt-sleep revert {adoption}"),
        }
    }

    /// The notice in a line.
    pub(super) fn line(&self) -> String {
        format!("{}; undo it with: {}", self.text, self.undo)
    }
}

/// The notices that are not seen yet. What is told of impact is what the last night found.
pub(super) fn unseen(
    store: &Store,
    ledger: &Ledger,
    last_night: Option<&NightRow>,
) -> Result<Vec<Notice>, Failure> {
    let seen = store
        .seen_notices()
        .map_err(|error| Failure::situation(&error))?;
    let automatic = ledger
        .operations
        .iter()
        .filter(|operation| operation.kind == OperationKind::Adopt)
        .filter(|operation| operation.by == Approver::Automatic)
        .map(|operation| {
            let paths: Vec<String> = operation
                .documents
                .iter()
                .map(|document| document.path.display().to_string())
                .collect();
            let day = operation.at.strftime("%Y-%m-%d");
            let text = format!(
                "{} was adopted without review on {day}: {}",
                operation.id,
                paths.join(", ")
            );
            Notice::new(NoticeKind::AutomaticAdoption, &operation.id, &text)
        });
    let regressions = regressions(last_night);
    let worse = regressions.iter().map(regression);
    Ok(automatic
        .chain(worse)
        .filter(|notice| ledger.is_in_force(&notice.adoption) && !seen.contains(&notice.name))
        .collect())
}

/// The notice of a regression.
pub(super) fn regression(impact: &Impact) -> Notice {
    Notice::new(
        NoticeKind::Regression,
        &impact.adoption,
        &impact::regression(impact),
    )
}

/// Takes note of notices, so that they are not shown again.
pub(super) fn see(store: &Store, notices: &[Notice]) -> Result<(), Failure> {
    notices
        .iter()
        .try_for_each(|notice| store.see_notice(&notice.name, Timestamp::now()))
        .map_err(|error| Failure::situation(&error))
}

fn regressions(last_night: Option<&NightRow>) -> Vec<Impact> {
    last_night
        .and_then(|night| night.report.as_ref()?.get("regressions").cloned())
        .and_then(|found| serde_json::from_value(found).ok())
        .unwrap_or_default()
}
