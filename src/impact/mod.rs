//! How sessions went before and after a document was adopted.
//!
//! ```text
//! adoptions (staging) ─▶ periods ─┐
//!                                 ├─▶ comparison ─▶ verdict
//! sessions (store) ─▶ exposure ───┘
//! ```
//!
//! [`period`] says which weeks an adoption is judged by, [`exposure`] which sessions a document was
//! in force in, [`measures`] what is counted of a session, [`comparison`] sets the two sides against
//! each other with the intervals of [`interval`].
//!
//! One measure decides: the share of sessions that went well. The others are there to be read. With
//! five deciding, one of them would look like a change every few adoptions by chance alone.
//!
//! This is no trial. Between before and after the model, the work, the season and the person may
//! have changed too, and nobody drew lots. A verdict is a reason to look, and `revert` is one command
//! away.

pub mod comparison;
pub mod exposure;
pub mod interval;
pub mod measures;
pub mod period;

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use skillopt_harvesters::{Agent, Session};
use skillopt_staging::{Approver, Ledger};

use crate::store::{Store, StoreError};
use comparison::{Comparison, Verdict};
use exposure::Exposure;
use measures::Measures;
use period::{Judged, Side};

/// Most adoptions that are looked at, the newest ones.
const MAX_ADOPTIONS: usize = 20;

/// What an adoption did to the sessions of one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// The adoption.
    pub adoption: String,
    /// When it was.
    pub at: Timestamp,
    /// Who let it happen.
    pub by: Approver,
    /// Whether it still holds.
    pub in_force: bool,
    /// The document's name.
    pub name: String,
    /// The document.
    pub path: PathBuf,
    /// Whether the adoption created the document. Then all sessions that could have used it are
    /// compared, for none did before.
    pub created: bool,
    /// What the sessions say.
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl Impact {
    /// Whether it is certain enough that sessions go worse to speak of it unasked, and there is
    /// something to undo.
    #[must_use]
    pub fn is_clear_regression(&self) -> bool {
        self.in_force && self.comparison.clear_regression
    }

    /// The command that takes the adoption back.
    #[must_use]
    pub fn undo(&self) -> String {
        format!("skillopt-sleep revert {}", self.adoption)
    }

    /// The verdict in words.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.comparison.verdict
    }
}

/// The impact of the newest adoptions, newest first, by the sessions that nights have read. `homes`
/// are the folders of the agents.
///
/// # Errors
/// [`StoreError`].
pub fn impacts(
    store: &Store,
    ledger: &Ledger,
    homes: &[(Agent, PathBuf)],
) -> Result<Vec<Impact>, StoreError> {
    let mut judged = period::judged(ledger);
    judged.truncate(MAX_ADOPTIONS);
    let mut sides: Vec<_> = judged
        .into_iter()
        .map(|judged| Watched {
            exposure: Exposure::of(&judged.document, homes),
            judged,
            before: Measures::default(),
            after: Measures::default(),
        })
        .collect();
    let from = sides.iter().map(|watched| watched.judged.before.from).min();
    let to = sides.iter().map(|watched| watched.judged.after.to).max();
    if let Some((from, to)) = from.zip(to) {
        store.each_session_within(from, to, &mut |session| {
            for watched in &mut sides {
                watched.see(session);
            }
        })?;
    }
    Ok(sides.into_iter().map(|w| w.finish(ledger)).collect())
}

/// An adopted document with the sessions seen so far.
struct Watched {
    judged: Judged,
    exposure: Exposure,
    before: Measures,
    after: Measures,
}

impl Watched {
    fn see(&mut self, session: &Session) {
        let exposed = if self.judged.created() {
            self.exposure.could_use(session)
        } else {
            self.exposure.used(session)
        };
        if !exposed {
            return;
        }
        match self.judged.side(session) {
            Some(Side::Before) => self.before.add(session),
            Some(Side::After) => self.after.add(session),
            None => {}
        }
    }

    fn finish(self, ledger: &Ledger) -> Impact {
        let judged = self.judged;
        Impact {
            in_force: ledger.is_in_force(&judged.adoption),
            created: judged.created(),
            comparison: Comparison::of(&self.before, &self.after),
            adoption: judged.adoption,
            at: judged.at,
            by: judged.by,
            name: judged.document.name,
            path: judged.document.path,
        }
    }
}
