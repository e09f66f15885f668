//! The groups that record how the original stages, adopts and recovers.
//!
//! Its files are its own; what counts is what a person sees: whether it was done or refused and
//! why, and what the live files hold afterwards. Each vector is therefore played in a home of its
//! own with our crate ([`home`]), and both results are brought into the same words ([`outcome`]).

mod adoption;
mod checks;
mod crash;
mod fault;
mod home;
mod layout;
mod nights;
mod outcome;
mod place;
mod records;
mod sessions;

pub(super) use checks::holds;

use super::{Group, group, outcome_group};

pub(super) const GROUPS: &[Group] = &[
    outcome_group("staging/adoption", adoption::run, outcome::of_adoption),
    outcome_group("staging/staging_layout", layout::run, outcome::of_layout),
    outcome_group("staging/crash_recovery", crash::run, outcome::of_crash),
    outcome_group("staging/fault_rollback", fault::run, outcome::of_fault),
    outcome_group(
        "staging/proposal_rows",
        records::proposal_rows,
        records::recorded_rows,
    ),
    outcome_group(
        "staging/manifest_checks",
        records::manifest_checks,
        records::recorded_reader,
    ),
    outcome_group(
        "staging/latest_night",
        records::latest_night,
        records::recorded_night,
    ),
    outcome_group(
        "staging/lock_names",
        records::locks,
        records::recorded_locks,
    ),
    outcome_group(
        "staging/shell_quoting",
        records::shell_quoting,
        records::recorded_quoting,
    ),
    outcome_group("staging/cli_sessions", sessions::run, sessions::recorded),
    outcome_group("staging/fanout", nights::fanout, nights::recorded_fanout),
    outcome_group("staging/state", nights::state, nights::recorded_state),
    group("staging/json_safe", records::json_safe),
];
