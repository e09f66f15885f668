//! Adoptions whose process dies at a recorded step, and two processes at once.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use skillopt_files::{Lock, NoSteps, Step, Steps};
use skillopt_staging::recover;

use super::super::Vector;
use super::adoption::told_as_recorded;
use super::home::{Home, text};
use super::outcome::refused;

pub(super) fn run(vector: &Vector) -> Value {
    let input = &vector.input;
    let mut home = Home::new(input);
    home.stage(&input["stage"]).expect("a night");
    home.accept_all().expect("a reviewer");
    if let Some(acts) = input["concurrent"].as_array() {
        return at_once(&home, &acts[0], &acts[1]);
    }
    home.change(&input["before"]);
    let mut death = Death::at(&home, &text(input, "die_at"));
    let died = catch_unwind(AssertUnwindSafe(|| home.act(&input["act"], &mut death)));
    assert!(died.is_err() || death.after_the_end, "it went on: {died:?}");
    home.change(&input["then"]);
    let recovery = match recover(&home.state, &home.roots) {
        Ok(_) => json!({"done": true}),
        Err(error) => refused(&error),
    };
    let expected = &vector.expected;
    let after_recovery = home.files_as(&expected["after_recovery"]);
    let acts = input["again"].as_array().into_iter().flatten();
    let again: Vec<Value> = acts
        .map(|act| told_as_recorded(home.act(act, &mut NoSteps), act))
        .collect();
    let after_again = if again.is_empty() {
        json!({})
    } else {
        home.files_as(&expected["after_again"])
    };
    json!({
        "recovery": recovery,
        "after_recovery": after_recovery,
        "again": again,
        "after_again": after_again,
    })
}

/// The first has the lock while the second comes.
fn at_once(home: &Home, first: &Value, second: &Value) -> Value {
    let lock = Lock::acquire(&home.state.join("adopt.lock"), "the first").expect("free");
    let second_meanwhile = home.act(second, &mut NoSteps);
    drop(lock);
    let done = home.act(first, &mut NoSteps);
    assert!(done.get("done").is_some(), "{done}");
    json!({
        "second": second_meanwhile,
        "second_after_first_finished": home.act(second, &mut NoSteps),
        "files": home.files(),
    })
}

/// What unwinds instead of a killed process.
struct Killed;

/// Ends the process at our step that is the recorded one's counterpart.
struct Death {
    /// The file that the step is about.
    path: PathBuf,
    /// The change of it that counts.
    steps: &'static [Step],
    /// Whether the process dies before that change; else right after it.
    before: bool,
    seen: bool,
    /// The recorded step is the very last: the process dies when everything is done.
    after_the_end: bool,
}

impl Death {
    fn at(home: &Home, recorded: &str) -> Death {
        const PLACED: &[Step] = &[Step::Rename, Step::Exchange];
        let (phase, place) = recorded.split_once(':').unwrap_or((recorded, ""));
        let journal = || home.state.join("adoptions/journal.json");
        let record = || {
            let adoptions = home.state.join("adoptions");
            let earlier = adoptions.join("a1.json").exists();
            adoptions.join(if earlier { "a2.json" } else { "a1.json" })
        };
        let (path, steps, before) = match phase {
            "journal_temp_written" => (journal(), PLACED, true),
            "journal_linked" | "journal_published" => (journal(), PLACED, false),
            "backup_linked" | "backup_written" => (backup(home, place), PLACED, false),
            "live_temp_written" => (home.here(place), PLACED, true),
            "live_replaced" => (home.here(place), PLACED, false),
            "receipt_temp_written" => (record(), PLACED, true),
            "receipt_replaced" => (record(), PLACED, false),
            "journal_removed" => (journal(), &[Step::Remove][..], false),
            "directory_created" => (home.here(place), &[Step::MakeDirectory][..], false),
            // The original notes each directory that it made; ours knows them from the start.
            "directory_journaled" => {
                let made = ["managed", "managed/m"];
                let number: usize = place.parse().expect("a number");
                let made = home.path.join(made[number - 1]);
                (made, &[Step::MakeDirectory][..], false)
            }
            other => panic!("no step {other}"),
        };
        Death {
            path,
            steps,
            before,
            seen: false,
            after_the_end: phase == "journal_removed",
        }
    }
}

/// The backup of a document; they are numbered in the order of adoption.
fn backup(home: &Home, place: &str) -> PathBuf {
    let second = place.starts_with("beta") || place == "CLAUDE.md";
    let number = usize::from(second && home.night.rows().len() > 1);
    home.state.join(format!("backups/a1/{number}.before"))
}

impl Steps for Death {
    fn before(&mut self, step: Step, path: &Path) -> io::Result<()> {
        if self.seen {
            resume_unwind(Box::new(Killed));
        }
        if path == self.path && self.steps.contains(&step) {
            if self.before {
                resume_unwind(Box::new(Killed));
            }
            self.seen = true;
        }
        Ok(())
    }
}
