//! Adoptions in which one operation of the file system fails.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use skillopt_files::{NoSteps, Step, Steps};

use super::super::Vector;
use super::adoption::told_as_recorded;
use super::home::{Home, text};

pub(super) fn run(vector: &Vector) -> Value {
    let input = &vector.input;
    let mut home = Home::new(input);
    home.stage(&input["stage"]).expect("a night");
    home.accept_all().expect("a reviewer");
    let act = &input["act"];
    let mut failure = Failure::new(&home, &input["fail"]);
    let result = told_as_recorded(home.act(act, &mut failure), act);
    assert!(failure.happened, "nothing failed");
    let after = home.files();
    let again = told_as_recorded(home.act(act, &mut NoSteps), act);
    json!({"result": result, "after": after, "again": again, "after_again": home.files()})
}

/// Fails once, where the recorded operation does.
struct Failure<'t> {
    home: &'t Home,
    path: PathBuf,
    errno: i32,
    /// The operation has its effect and is reported as failed all the same; what follows it fails.
    after_effect: bool,
    seen: bool,
    happened: bool,
    /// What somebody does in this moment.
    also: &'t Value,
}

impl<'t> Failure<'t> {
    fn new(home: &'t Home, fail: &'t Value) -> Failure<'t> {
        let path = match text(fail, "path").as_str() {
            ".adopt-transaction.json" => home.state.join("adoptions/journal.json"),
            "adopted_skills.json" | "adopted_legacy.json" => home.state.join("adoptions/a1.json"),
            "SKILL.md" => home.state.join("backups/a1/0.before"),
            "CLAUDE.md" => home.state.join("backups/a1/1.before"),
            "beta/SKILL.md" => home.state.join("backups/a1/1.before"),
            "alpha/SKILL.md" => home.state.join("backups/a1/0.before"),
            live => home.here(live),
        };
        Failure {
            home,
            path,
            errno: match text(fail, "errno").as_str() {
                "ENOSPC" => 28,
                "EPERM" => 1,
                _ => 5,
            },
            after_effect: fail["after_effect"] == true,
            seen: false,
            happened: false,
            also: &fail["also"],
        }
    }
}

impl Steps for Failure<'_> {
    fn before(&mut self, step: Step, path: &Path) -> io::Result<()> {
        let placed = matches!(step, Step::Rename | Step::Exchange) && path == self.path;
        let now = if self.after_effect { self.seen } else { placed };
        self.seen |= placed;
        if !now || self.happened {
            return Ok(());
        }
        self.happened = true;
        for change in self.also.as_array().into_iter().flatten() {
            self.home.meddle(change)?;
        }
        Err(io::Error::from_raw_os_error(self.errno))
    }
}
