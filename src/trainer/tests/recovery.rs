//! A run directory that lost a file, or had one damaged.

use std::fs;

use super::super::run_dir::RunDir;
use super::super::state::State;
use super::super::update_mode::UpdateMode;
use super::world::{Oracle, Temper, World, everything, train_in};

/// A finished run in a directory, and its state.
async fn finished() -> (tempfile::TempDir, State) {
    let dir = tempfile::tempdir().unwrap();
    let oracle = Oracle {
        temper: Temper::Helpful,
        disorder: 0,
    };
    let settings = everything(UpdateMode::Patch);
    let trained = train_in(dir.path(), &World::new(0), oracle, settings, "# Skill\n")
        .await
        .unwrap();
    (dir, trained.state)
}

#[tokio::test(start_paused = true)]
async fn a_damaged_history_is_read_from_the_steps() {
    let (dir, state) = finished().await;
    fs::write(dir.path().join("history.json"), "{bad").unwrap();
    let loaded = RunDir::open(dir.path()).unwrap().load().unwrap().unwrap();
    assert_eq!(loaded, state);
}

#[tokio::test(start_paused = true)]
async fn a_lost_state_is_made_up_for_from_the_other_files() {
    let (dir, state) = finished().await;
    for text in [None, Some("{\"format\": 1, \"sta")] {
        let path = dir.path().join("runtime_state.json");
        match text {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let loaded = RunDir::open(dir.path()).unwrap().load().unwrap().unwrap();
        assert_eq!(loaded.current.skill, state.current.skill);
        assert_eq!(loaded.best.skill, state.best.skill);
        assert_eq!(loaded.history, state.history);
        assert_eq!(loaded.completed_epochs, state.completed_epochs);
        assert_eq!(loaded.meta_skill, state.meta_skill);
        assert_eq!(loaded.baseline, state.baseline);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_made_up_for_is_an_error_that_names_the_file() {
    let (dir, _) = finished().await;
    fs::write(dir.path().join("history.json"), "{bad").unwrap();
    fs::remove_file(dir.path().join("steps/step_0002/step_record.json")).unwrap();
    let error = RunDir::open(dir.path()).unwrap().load().unwrap_err();
    assert!(error.to_string().contains("history.json"), "{error}");
}
