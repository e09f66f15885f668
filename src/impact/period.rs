//! Which time an adoption is judged by: four weeks before it and four weeks after, cut short where
//! another adoption or a revert changed the same document. Whole weeks have the same working days on
//! both sides.

use jiff::{SignedDuration, Timestamp};
use skillopt_harvesters::Session;
use skillopt_staging::{AdoptedDocument, Adoption, Approver, Ledger, OperationKind};

/// How far to look to either side.
const REACH: SignedDuration = SignedDuration::from_hours(28 * 24);

/// A span of time; its end is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub to: Timestamp,
}

/// On which side of an adoption a session lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It ended before.
    Before,
    /// It began after.
    After,
}

/// An adopted document and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The adoption.
    pub adoption: String,
    /// When it was.
    pub at: Timestamp,
    /// Who let it happen.
    pub by: Approver,
    /// The document.
    pub document: AdoptedDocument,
    /// The time before it.
    pub before: Span,
    /// The time after it.
    pub after: Span,
}

impl Judged {
    /// Whether the adoption created the document.
    #[must_use]
    pub fn created(&self) -> bool {
        self.document.before.is_none()
    }

    /// Where a session lies. One that was under way at the adoption had both texts and counts on
    /// neither side, as does one without times.
    #[must_use]
    pub fn side(&self, session: &Session) -> Option<Side> {
        let started = session.started.or(session.ended)?;
        let ended = session.ended.unwrap_or(started);
        if self.before.from <= started && ended < self.before.to {
            Some(Side::Before)
        } else if self.after.from <= started && started < self.after.to {
            Some(Side::After)
        } else {
            None
        }
    }
}

/// Every adopted document with its time, the newest adoption first.
#[must_use]
pub fn judged(ledger: &Ledger) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (place, adoption) in ledger.operations.iter().enumerate().rev() {
        if adoption.kind != OperationKind::Adopt {
            continue;
        }
        for document in &adoption.documents {
            let touches = |other: &&Adoption| {
                let mut paths = other.documents.iter().map(|one| &one.real_path);
                paths.any(|path| *path == document.real_path)
            };
            let earlier = ledger.operations[..place].iter().rev().find(touches);
            let later = ledger.operations[place + 1..].iter().find(touches);
            let at = adoption.at;
            let first = at.checked_sub(REACH).unwrap_or(Timestamp::MIN);
            let last = at.checked_add(REACH).unwrap_or(Timestamp::MAX);
            judged.push(Judged {
                adoption: adoption.id.clone(),
                at,
                by: adoption.by,
                document: document.clone(),
                before: Span {
                    from: earlier.map_or(first, |other| other.at.max(first)),
                    to: at,
                },
                after: Span {
                    from: at,
                    to: later.map_or(last, |other| other.at.min(last)),
                },
            });
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use skillopt_staging::DocumentKind;

    use super::*;

    fn operation(id: &str, at: &str, path: &str) -> Adoption {
        Adoption {
            id: id.to_owned(),
            kind: OperationKind::Adopt,
            at: at.parse().unwrap(),
            by: Approver::Person,
            reverts: None,
            forced: false,
            documents: vec![AdoptedDocument {
                proposal: "n1-1".to_owned(),
                name: "s".to_owned(),
                kind: DocumentKind::Skill,
                path: path.into(),
                real_path: path.into(),
                before: None,
                after: None,
                made_directories: Vec::new(),
                edits: BTreeSet::new(),
                edited_by_person: false,
            }],
            recovered: None,
        }
    }

    fn session(started: &str, ended: &str) -> Session {
        Session {
            started: started.parse().ok(),
            ended: ended.parse().ok(),
            ..Session::default()
        }
    }

    #[test]
    fn an_adoption_has_the_time_in_which_nothing_else_changed_the_document() {
        let ledger = Ledger {
            operations: vec![
                operation("a1", "2026-03-01T00:00:00Z", "/s/SKILL.md"),
                operation("a2", "2026-03-05T00:00:00Z", "/other/SKILL.md"),
                operation("a3", "2026-03-11T00:00:00Z", "/s/SKILL.md"),
            ],
            unreadable: Vec::new(),
        };
        let judged = judged(&ledger);
        let spans: Vec<_> = judged
            .iter()
            .map(|judged| {
                let days = |span: Span| span.to.duration_since(span.from).as_hours() / 24;
                (
                    judged.adoption.as_str(),
                    days(judged.before),
                    days(judged.after),
                )
            })
            .collect();
        assert_eq!(spans, [("a3", 10, 28), ("a2", 28, 28), ("a1", 28, 10)]);
    }

    #[test]
    fn a_session_that_was_under_way_counts_on_neither_side() {
        let ledger = Ledger {
            operations: vec![operation("a1", "2026-03-01T12:00:00Z", "/s/SKILL.md")],
            unreadable: Vec::new(),
        };
        let judged = &judged(&ledger)[0];
        let side = |started, ended| judged.side(&session(started, ended));
        assert_eq!(
            side("2026-03-01T11:00:00Z", "2026-03-01T11:59:00Z"),
            Some(Side::Before)
        );
        assert_eq!(side("2026-03-01T11:00:00Z", "2026-03-01T12:01:00Z"), None);
        assert_eq!(
            side("2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"),
            Some(Side::After)
        );
        assert_eq!(side("2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"), None);
        assert_eq!(side("2026-04-01T12:00:00Z", "2026-04-01T13:00:00Z"), None);
        assert_eq!(judged.side(&Session::default()), None);
    }
}
