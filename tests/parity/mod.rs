//! Parity with the original, vector by vector.
//!
//! `tests/data/vectors` holds what the original's functions were seen to do, in groups. Every group
//! is either run here, by one function that gives our result for a vector's input, or named in
//! `pending.toml`. Our result must equal the recorded one; where the record is of a known defect it
//! must equal the better one. What differs on purpose is listed in `deviations.toml`, with the
//! reason, a rule that says which vectors it covers, and a check that our result has to pass
//! instead.
//!
//! `cargo test parity -- --nocapture` prints one line for each group. `SKILLOPT_VECTORS` names
//! another folder of vectors of the same groups.

mod bench;
mod block;
mod checks;
mod checks_data;
mod checks_harvest;
mod command_line;
mod compare;
mod data;
mod deviations;
mod engine;
mod engine_state;
mod harvest;
mod logged;
mod noise;
mod redaction;
mod reports;
mod scripted_run;
mod skills;
mod sleep;
mod staged;
mod stages;
mod staging;
mod tasks;
mod trace;
mod trace_rules;
mod trace_sound;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use compare::differences;
use deviations::Deviations;

/// One recorded call.
#[derive(Debug, Clone, Deserialize)]
struct Vector {
    name: String,
    input: Value,
    expected: Value,
    expected_better: Option<Value>,
    expected_with_repair: Option<Value>,
    upstream_defect: Option<String>,
    class: Option<String>,
}

/// Gives our result for a vector, in the shape in which its results are recorded.
type Run = fn(&Vector) -> Value;

/// One group of vectors: `folder/file` without the suffix.
struct Group {
    name: &'static str,
    run: Run,
    /// What of the recorded result is compared; all of it if there is none. For groups that record
    /// how the original keeps its files, of which only the outcome for a person counts.
    outcome: Option<Run>,
}

const fn group(name: &'static str, run: Run) -> Group {
    Group {
        name,
        run,
        outcome: None,
    }
}

/// A group of which `outcome` gives what is compared.
const fn outcome_group(name: &'static str, run: Run, outcome: Run) -> Group {
    Group {
        name,
        run,
        outcome: Some(outcome),
    }
}

fn groups() -> Vec<Group> {
    [
        engine::GROUPS,
        engine_state::GROUPS,
        sleep::GROUPS,
        staging::GROUPS,
        staged::GROUPS,
        reports::GROUPS,
        skills::GROUPS,
        tasks::GROUPS,
        bench::GROUPS,
        data::GROUPS,
        command_line::GROUPS,
        harvest::GROUPS,
        noise::GROUPS,
        redaction::GROUPS,
        stages::GROUPS,
        trace::GROUPS,
    ]
    .into_iter()
    .flatten()
    .map(|group| Group { ..*group })
    .collect()
}

fn own_vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors")
}

fn vectors_folder() -> PathBuf {
    std::env::var_os("SKILLOPT_VECTORS").map_or_else(own_vectors, PathBuf::from)
}

#[derive(Deserialize)]
struct Pending {
    groups: BTreeSet<String>,
}

fn pending() -> BTreeSet<String> {
    let text = fs::read_to_string(own_vectors().join("pending.toml"))
        .expect("pending.toml is beside the vectors");
    toml::from_str::<Pending>(&text)
        .expect("pending.toml lists groups")
        .groups
}

/// The groups that a folder of vectors holds.
fn recorded(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for family in ["engine", "sleep", "staging", "bench"] {
        let Ok(files) = fs::read_dir(folder.join(family)) else {
            continue;
        };
        for file in files.flatten().map(|entry| entry.path()) {
            if file.extension().is_some_and(|suffix| suffix == "json") {
                let stem = file
                    .file_stem()
                    .expect("a file has a name")
                    .to_string_lossy()
                    .into_owned();
                found.insert(format!("{family}/{stem}"));
            }
        }
    }
    found
}

#[test]
fn every_group_matches() {
    let folder = vectors_folder();
    let deviations = Deviations::load(&own_vectors().join("deviations.toml"));
    let mut unexplained = Vec::new();
    for group in groups() {
        let file = folder.join(format!("{}.json", group.name));
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let mut vectors: Vec<Vector> =
            serde_json::from_str(&text).expect("a group is a list of vectors");
        if let Some(outcome) = group.outcome {
            for vector in &mut vectors {
                vector.expected = outcome(vector);
            }
        }
        let (mut matched, mut deviating) = (0, 0);
        for vector in &vectors {
            let ours = catch_unwind(AssertUnwindSafe(|| (group.run)(vector)))
                .unwrap_or_else(|_| serde_json::json!({"panicked": true}));
            let found = judge(vector, &ours);
            if found.is_empty() {
                matched += 1;
            } else if deviations.covers(group.name, vector, &ours) {
                deviating += 1;
            } else {
                unexplained.push(format!(
                    "{} {:?}\n    {}",
                    group.name,
                    vector.name,
                    found.join("\n    ")
                ));
            }
        }
        let total = vectors.len() - deviating;
        let aside = match deviating {
            0 => String::new(),
            1 => " (1 deviation)".to_owned(),
            more => format!(" ({more} deviations)"),
        };
        println!("{} {matched}/{total}{aside}", group.name);
    }
    assert!(
        unexplained.is_empty(),
        "{} vectors differ:\n{}",
        unexplained.len(),
        unexplained.join("\n")
    );
}

/// How our result differs from what a vector asks for.
fn judge(vector: &Vector, ours: &Value) -> Vec<String> {
    match (&vector.expected_better, &vector.expected_with_repair) {
        // The better result may name the decisive fields only.
        (Some(better), _) => differences(better, ours, true),
        (None, Some(repaired)) => differences(repaired, ours, false),
        (None, None) => differences(&vector.expected, ours, false),
    }
}

#[test]
fn every_group_is_run_or_pending() {
    let run: BTreeSet<String> = groups().iter().map(|group| group.name.to_owned()).collect();
    let pending = pending();
    let both: Vec<_> = run.intersection(&pending).collect();
    assert!(both.is_empty(), "run, and pending as well: {both:?}");
    let lost: Vec<String> = recorded(&vectors_folder())
        .into_iter()
        .filter(|group| !run.contains(group) && !pending.contains(group) && !checks::is_data(group))
        .collect();
    assert!(lost.is_empty(), "neither run nor pending: {lost:?}");
}

#[test]
fn every_deviation_names_a_group_that_is_run() {
    let run: BTreeSet<String> = groups().iter().map(|group| group.name.to_owned()).collect();
    let deviations = Deviations::load(&own_vectors().join("deviations.toml"));
    let unknown: Vec<_> = deviations
        .groups()
        .filter(|group| !run.contains(*group))
        .collect();
    assert!(
        unknown.is_empty(),
        "deviations of groups that are not run: {unknown:?}"
    );
}
