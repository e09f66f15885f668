//! What a person sees of an operation, in words that fit the original and us.
//!
//! `{"done": …}` or `{"refused": why}`, where the reason is one of a few: the *drift* of a
//! document, its *place*, the *file* there, the *proposal*, the *record* of an operation, the
//! *selection*, *adopted* before, *locked*, or the *system*.

use serde_json::{Map, Value, json};

use skillopt_staging::{AdoptedDocument, Error, RefusalKind};

use super::super::Vector;

/// Our refusal.
pub(super) fn refused(error: &Error) -> Value {
    json!({"refused": reason(error)})
}

fn reason(error: &Error) -> &'static str {
    use RefusalKind as Kind;
    match error {
        Error::Refused(refusal) => match refusal.kind {
            Kind::LiveDrift | Kind::ChangedInTransaction | Kind::ChangedAfterPublication => "drift",
            Kind::LivePathUnsafe
            | Kind::LiveBasename
            | Kind::LiveSymlink
            | Kind::LiveOutsideRoots
            | Kind::AncestorUnsafe
            | Kind::LiveMoved
            | Kind::LiveTargetCollision => "place",
            Kind::LiveNotFile
            | Kind::LiveHardlinked
            | Kind::LiveReadOnly
            | Kind::LiveForeignOwner
            | Kind::LiveStore
            | Kind::LiveTooLarge
            | Kind::LiveNotUtf8
            | Kind::LiveUnreadable => "file",
            Kind::LiveDirectoryReadOnly => "system",
            Kind::ProposalUnknown
            | Kind::ProposalAmbiguous
            | Kind::SelectionDuplicate
            | Kind::EditUnknown => "selection",
            Kind::AlreadyAdopted | Kind::NothingToChange => "adopted",
            Kind::JournalInvalid
            | Kind::RecoveryFailed
            | Kind::ReceiptInvalid
            | Kind::BackupMissing
            | Kind::BackupChanged
            | Kind::KeyUnusable => "record",
            _ => "proposal",
        },
        Error::Locked(_) => "locked",
        Error::RollbackIncomplete { .. } => "record",
        _ => "system",
    }
}

/// The original's refusal.
fn recorded_reason(kind: &str) -> &'static str {
    match kind {
        "live_drift" | "changed_in_transaction" | "live_drift_before_staging" => "drift",
        "live_not_file"
        | "live_not_regular"
        | "live_hardlinked"
        | "live_hardlink_alias"
        | "live_unreadable"
        | "live_unstable" => "file",
        "selection_unknown" | "selection_duplicate" => "selection",
        "already_adopted" => "adopted",
        "os_permission" | "os_error" | "backup_dir_unsafe" => "system",
        "live_pins_missing" => "proposal",
        kind if kind.starts_with("lock_") => "locked",
        kind if [
            "receipt_",
            "backup_",
            "journal_",
            "recovery_",
            "rollback_",
            "created_",
        ]
        .iter()
        .any(|start| kind.starts_with(start)) =>
        {
            "record"
        }
        kind if ["live_", "ancestor_", "no_ancestor", "managed_target"]
            .iter()
            .any(|start| kind.starts_with(start)) =>
        {
            "place"
        }
        _ => "proposal",
    }
}

/// One document of an adoption.
pub(super) fn row(document: &AdoptedDocument) -> Value {
    let before = document.before.as_ref();
    json!({
        "name": document.name,
        "before": before.map(|before| before.sha256.as_str()).unwrap_or_default(),
        "after": document.after.as_deref().unwrap_or_default(),
    })
}

/// A recorded result of one adoption, and of anything else that is done or refused.
fn result(recorded: &Value, skill: &str) -> Value {
    if let Some(kind) = recorded["error"].as_str() {
        return json!({"refused": recorded_reason(kind)});
    }
    let Some(rows) = recorded["ok"].as_array() else {
        return json!({"done": recorded["ok"]});
    };
    let mut rows: Vec<Value> = rows
        .iter()
        .map(|row| match row.as_str() {
            // Of the managed pair only the paths are told.
            Some(path) if path.ends_with("SKILL.md") => json!({"name": skill}),
            Some(_) => json!({"name": super::place::MEMORY}),
            None => json!({
                "name": row["skill_name"],
                "before": row["sha256_before"],
                "after": row["sha256_after"],
            }),
        })
        .collect();
    rows.sort_by_key(Value::to_string);
    json!({"done": rows})
}

fn managed(recorded: &Value) -> Value {
    result(recorded, super::place::MANAGED)
}

/// Names that are still to be adopted, or whether there is one.
fn pending(recorded: &Value) -> Value {
    match recorded["error"].as_str() {
        Some(kind) => json!({"refused": recorded_reason(kind)}),
        None => json!({"done": recorded["ok"]}),
    }
}

/// The recorded files that are the person's.
pub(super) fn files(after: &Value) -> Value {
    let files = after["files"].as_object().into_iter().flatten();
    files
        .filter(|(path, _)| {
            path.starts_with("/home/dev/")
                && !path.starts_with("/home/dev/elsewhere/")
                && !path.contains("/.skillopt-sleep/")
        })
        .map(|(path, file)| {
            let mut file = file.clone();
            if let Some(coded) = file["b64"].as_str() {
                use base64::Engine as _;
                let bytes = base64::engine::general_purpose::STANDARD.decode(coded);
                file = json!({"mode": file["mode"], "bytes": bytes.expect("base 64")});
            }
            for what in ["special", "unreadable", "present"] {
                if file.get(what).is_some() {
                    file = json!({what: true});
                }
            }
            (path.clone(), file)
        })
        .collect::<Map<String, Value>>()
        .into()
}

pub(super) fn of_adoption(vector: &Vector) -> Value {
    let expected = &vector.expected;
    let results = expected["results"].as_array().into_iter().flatten();
    json!({
        "results": results.map(managed).collect::<Vec<_>>(),
        "files": files(&expected["after"]),
        "pending_skills": pending(&expected["pending_skills"]),
        "pending_managed": pending(&expected["pending_managed"]),
    })
}

pub(super) fn of_layout(vector: &Vector) -> Value {
    let expected = &vector.expected;
    let staged = &expected["staged"];
    let rows = staged["manifest"]["skills"]
        .as_array()
        .into_iter()
        .flatten();
    let managed = ["skill", "memory"].map(|key| &staged["manifest"]["legacy"][key]);
    let staged = match staged["error"].as_str() {
        Some(kind) => json!({"refused": recorded_reason(kind)}),
        None => rows
            .chain(managed.into_iter().filter(|row| row.is_object()))
            .map(|row| {
                json!({
                    "live": row.get("live_skill_path").unwrap_or(&row["live_path"]),
                    "real": if row["live_sha256"] == "" { &Value::Null } else { &row["live_realpath"] },
                    "base": row["live_sha256"],
                    "proposed": row["sha256"],
                })
            })
            .collect(),
    };
    json!({"staged": staged, "files": files(&expected["after"])})
}

pub(super) fn of_crash(vector: &Vector) -> Value {
    let expected = &vector.expected;
    if expected.get("second").is_some() {
        return json!({
            "second": managed(&expected["second"]),
            "second_after_first_finished": managed(&expected["second_after_first_finished"]),
            "files": files(&expected["after"]),
        });
    }
    let again = expected["again"].as_array().into_iter().flatten();
    json!({
        "recovery": match expected["recovery"]["error"].as_str() {
            Some(kind) => json!({"refused": recorded_reason(kind)}),
            None => json!({"done": true}),
        },
        "after_recovery": files(&expected["after_recovery"]),
        "again": again.map(managed).collect::<Vec<_>>(),
        "after_again": files(&expected["after_again"]),
    })
}

pub(super) fn of_fault(vector: &Vector) -> Value {
    let expected = &vector.expected;
    json!({
        "result": managed(&expected["result"]),
        "after": files(&expected["after"]),
        "again": managed(&expected["again"]),
        "after_again": files(&expected["after_again"]),
    })
}
