//! What a night puts in order before it begins: proposals that nobody decided on, old decisions and
//! old backups.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use skillopt_staging::{Result, StagingArea, Status, prune_backups};

/// Expires undecided proposals older than `keep_days`, and deletes decided ones and the backups of
/// adoptions that are older than twice that, so that what expired can be looked up for a while.
/// Returns what a person should know, one line each.
///
/// # Errors
/// When the staging area cannot be read or written.
pub fn tidy(
    staging: &StagingArea,
    state: &Path,
    keep_days: u32,
    now: Timestamp,
) -> Result<Vec<String>> {
    let before = |days: u32| {
        let hours = i64::from(days).saturating_mul(24);
        now.checked_sub(SignedDuration::from_hours(hours))
            .unwrap_or(Timestamp::MIN)
    };
    let (expired_before, deleted_before) = (before(keep_days), before(keep_days.saturating_mul(2)));
    staging.prune(deleted_before)?;
    prune_backups(state, deleted_before)?;
    Ok(staging
        .expire(expired_before, now)?
        .into_iter()
        .map(|id| format!("{id} expired: nobody decided on it in {keep_days} days"))
        .collect())
}

/// Closes the undecided proposals that `newer` takes the place of: those of the same document. Says
/// which.
///
/// # Errors
/// When the staging area cannot be read or written.
pub fn supersede(
    staging: &StagingArea,
    newer: &str,
    document: &Path,
    now: Timestamp,
) -> Result<Vec<String>> {
    let mut closed = Vec::new();
    for older in staging.list()?.staged {
        let proposal = &older.proposal;
        if older.status == Status::Pending
            && proposal.document.path == document
            && proposal.id != newer
        {
            staging.supersede(&proposal.id, newer, now)?;
            closed.push(proposal.id.clone());
        }
    }
    Ok(closed)
}
