//! Which records are on the live branch (session-logs.md, section 2.7).
//!
//! The live branch leads from the last message to its root. A prompt beside it that
//! hangs on one of its records was rewound: it and all that follows it is dead. A tree
//! of its own (its parent is unknown) is an earlier part of the conversation, and what
//! hangs on the branch without a prompt are results of parallel calls: both live.

use crate::session::PromptKind;

use super::row::{Row, RowKind};
use super::transcript::Transcript;

/// For each row, whether it is alive.
pub(super) fn live(transcript: &Transcript) -> Vec<bool> {
    let rows = &transcript.rows;
    let parents: Vec<Option<usize>> = rows
        .iter()
        .map(|row| row.parent.and_then(|id| transcript.row_of(id)))
        .collect();
    let on_path = path_of_last(rows, &parents);
    let hangs_on_path = climb(&parents, &on_path, false, |_, parent| parent);
    climb(&parents, &on_path, true, |row, parent| {
        parent && !(starts_branch(&rows[row].kind) && hangs_on_path[row])
    })
}

/// A value for each row: true on the path, else what `derive` makes of the row and its
/// parent's value; above a root (or a cycle) stands `above_root`. Each row is visited
/// once, however the parents are linked.
fn climb(
    parents: &[Option<usize>],
    on_path: &[bool],
    above_root: bool,
    derive: impl Fn(usize, bool) -> bool,
) -> Vec<bool> {
    let mut values: Vec<Option<bool>> = on_path.iter().map(|on| on.then_some(true)).collect();
    let mut visiting = vec![false; parents.len()];
    for start in 0..parents.len() {
        let mut chain = Vec::new();
        let mut at = Some(start);
        let mut value = above_root;
        while let Some(row) = at {
            if let Some(known) = values[row] {
                value = known;
                break;
            }
            if std::mem::replace(&mut visiting[row], true) {
                break;
            }
            chain.push(row);
            at = parents[row];
        }
        for row in chain.into_iter().rev() {
            value = derive(row, value);
            values[row] = Some(value);
        }
    }
    values
        .into_iter()
        .map(|value| value.unwrap_or(above_root))
        .collect()
}

/// The way from the last message of the main conversation up to its root.
fn path_of_last(rows: &[Row], parents: &[Option<usize>]) -> Vec<bool> {
    let mut on_path = vec![false; rows.len()];
    let leaf = rows
        .iter()
        .rposition(|row| !row.sidechain && is_message(&row.kind));
    let mut next = leaf;
    while let Some(at) = next {
        if std::mem::replace(&mut on_path[at], true) {
            break;
        }
        next = parents[at];
    }
    on_path
}

/// Records of type `user` and `assistant`.
fn is_message(kind: &RowKind) -> bool {
    match kind {
        RowKind::Prompt { kind, .. } => *kind != PromptKind::Steering,
        RowKind::SlashCommand { .. }
        | RowKind::Machine { .. }
        | RowKind::Results(_)
        | RowKind::Interrupted(_)
        | RowKind::Assistant(_) => true,
        RowKind::Notice { wakes, .. } => *wakes,
        _ => false,
    }
}

/// Whether a record of this kind can begin a new branch.
fn starts_branch(kind: &RowKind) -> bool {
    match kind {
        RowKind::Prompt { kind, .. } => *kind != PromptKind::Steering,
        RowKind::SlashCommand { .. } => true,
        RowKind::Notice { wakes, .. } => *wakes,
        _ => false,
    }
}
