//! Files of the run directory that cannot be written.

use std::collections::HashSet;
use std::fs;

use super::contents::contents;
use super::world::{MODES, Oracle, Temper, World, everything, train_in};

fn oracle() -> Oracle {
    Oracle {
        temper: Temper::Helpful,
        disorder: 0,
    }
}

/// Whichever file it is, the run stops and names it; once the file can be written, the same command
/// comes to what an undisturbed run comes to.
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_stops_the_run_where_it_can_go_on() {
    let mut tried = HashSet::new();
    for mode in MODES {
        let settings = || {
            let mut settings = everything(mode);
            settings.epochs = 2;
            settings
        };
        let world = World::new(0);
        let whole = tempfile::tempdir().unwrap();
        train_in(whole.path(), &world, oracle(), settings(), "# S\n")
            .await
            .unwrap();
        let mut expected = contents(whole.path());
        // It tells what happened, and more has happened in a run that was stopped.
        expected.remove("events.jsonl");
        for name in expected.keys() {
            // One of each kind is enough: `steps/step_0002/…` is written as `steps/step_0001/…` is.
            let kind: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
            if !tried.insert(kind) {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            // A folder with something in it cannot be replaced by a file.
            let obstacle = dir.path().join(name);
            fs::create_dir_all(obstacle.join("in the way")).unwrap();
            let error = train_in(dir.path(), &world, oracle(), settings(), "# S\n")
                .await
                .map(|_| ())
                .unwrap_err();
            assert!(error.to_string().contains(name), "{mode:?} {name}: {error}");
            fs::remove_dir_all(&obstacle).unwrap();
            train_in(dir.path(), &world, oracle(), settings(), "# S\n")
                .await
                .unwrap_or_else(|error| panic!("{mode:?} {name}: {error}"));
            let mut made = contents(dir.path());
            made.remove("events.jsonl");
            for (file, text) in &expected {
                assert_eq!(made.get(file), Some(text), "{mode:?} {name}: {file}");
            }
            assert_eq!(made.len(), expected.len());
        }
    }
}
