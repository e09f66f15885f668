//! What a run directory was made with. A run that goes on with something else would mix two
//! experiments, so it is refused, with the list of what changed.
//!
//! `config.json` holds the configuration and `provenance.json` the rest: the program, the items and
//! the prompts.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillopt_files::{read_text, write_atomic_json};

use super::bench::Plan;
use super::failure::{ExitStatus, Failure};
use crate::trainer::environment::Split;

const CONFIG: &str = "config.json";
const REST: &str = "provenance.json";

/// Largest file that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// What a run is made with.
pub(super) struct Provenance {
    config: Value,
    rest: Record,
}

/// `provenance.json`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    format: u32,
    /// The program's version.
    program: String,
    /// Digest of every prompt.
    prompts: String,
    /// Digest of the items.
    data: String,
    /// How many items train, validation and test have.
    items: [usize; 3],
}

impl Provenance {
    /// What a run by `plan` is made with.
    pub(super) fn of(plan: &Plan) -> Provenance {
        let splits = [Split::Train, Split::Selection, Split::Test];
        Provenance {
            config: plan.config.to_json(),
            rest: Record {
                format: 1,
                program: env!("CARGO_PKG_VERSION").to_owned(),
                prompts: plan.prompts.digest().to_owned(),
                data: plan.dataset.fingerprint(),
                items: splits.map(|split| plan.dataset.split(split).len()),
            },
        }
    }

    /// Refuses a run directory that was made with another configuration.
    pub(super) fn check_config(&self, out_root: &Path) -> Result<(), Failure> {
        let before: Option<Value> = read(&out_root.join(CONFIG))?;
        let changed = before.map(|before| changed_keys(&before, &self.config));
        refuse(out_root, &changed.unwrap_or_default())
    }

    /// Refuses a run directory that was made with another program, other prompts or other items.
    pub(super) fn check_rest(&self, out_root: &Path) -> Result<(), Failure> {
        let before: Option<Record> = read(&out_root.join(REST))?;
        let changed = before.map(|before| self.rest.changes_since(&before));
        refuse(out_root, &changed.unwrap_or_default())
    }

    /// Records this in a run directory.
    pub(super) fn write(&self, out_root: &Path) -> Result<(), Failure> {
        write_atomic_json(&out_root.join(CONFIG), &self.config)
            .and_then(|()| write_atomic_json(&out_root.join(REST), &self.rest))
            .map_err(|error| Failure::situation(&error))
    }
}

impl Record {
    fn changes_since(&self, before: &Record) -> Vec<String> {
        let mut changes = Vec::new();
        if before.program != self.program {
            let (then, now) = (&before.program, &self.program);
            changes.push(format!("the program ({then} → {now})"));
        }
        if before.prompts != self.prompts {
            changes.push("the prompts".to_owned());
        }
        if before.data != self.data {
            let (then, now) = (before.items, self.items);
            changes.push(format!(
                "the items ({then:?} of train, val and test → {now:?})"
            ));
        }
        changes
    }
}

fn refuse(out_root: &Path, changed: &[String]) -> Result<(), Failure> {
    if changed.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} was made with something else: {}",
        out_root.display(),
        changed.join(", ")
    );
    let hint = "use another --out-root, or --resume=force to go on with what is given now";
    Err(Failure::new(ExitStatus::Situation, message).hint(hint))
}

/// The JSON in a file; none when there is no file.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(path, MOST_BYTES).map_err(|e| Failure::situation(&e))?;
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Failure::new(
            ExitStatus::Situation,
            format!("cannot read {}: {error}", path.display()),
        )
        .hint("move the file away to go on without its check")
    })
}

/// The keys whose values differ, each with both.
fn changed_keys(before: &Value, after: &Value) -> Vec<String> {
    let empty = serde_json::Map::new();
    let before = before.as_object().unwrap_or(&empty);
    let after = after.as_object().unwrap_or(&empty);
    // A run directory may be moved, and the cache only answers what would be asked anyway.
    let mut keys: Vec<&String> = before
        .keys()
        .chain(after.keys())
        .filter(|key| !["out_root", "result_cache"].contains(&key.as_str()))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| {
            let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
            format!(
                "{key} ({} → {})",
                show(before.get(key)),
                show(after.get(key))
            )
        })
        .collect()
}
