use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use skillopt_files::{Lock, LockError};
use tempfile::tempdir;

#[test]
fn the_second_is_told_who_holds_it_since_when() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("run/night.lock");
    let lock = Lock::acquire(&path, "the nightly run n12").unwrap();
    assert_eq!(lock.path(), path);
    let error = Lock::acquire(&path, "a second run").unwrap_err();
    let LockError::Held {
        holder, pid, since, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(holder, "the nightly run n12");
    assert_eq!(*pid, std::process::id());
    assert!(since.parse::<jiff::Timestamp>().is_ok(), "{since}");
    assert!(
        error
            .to_string()
            .starts_with("the nightly run n12 (process ")
    );
    drop(lock);
    Lock::acquire(&path, "a second run").unwrap();
}

#[test]
fn a_lock_file_left_by_a_dead_process_does_not_block() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("night.lock");
    fs::write(
        &path,
        r#"{"holder":"dead","pid":1,"since":"2020-01-01T00:00:00Z"}"#,
    )
    .unwrap();
    Lock::acquire(&path, "alive").unwrap();
}

#[test]
fn the_lock_file_is_private() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("night.lock");
    let _lock = Lock::acquire(&path, "x").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_record_that_cannot_be_read_still_refuses() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("night.lock");
    let _lock = Lock::acquire(&path, "x").unwrap();
    fs::write(&path, "garbage").unwrap();
    let error = Lock::acquire(&path, "y").unwrap_err();
    assert!(error.to_string().starts_with("another process"), "{error}");
}

#[test]
fn a_record_cannot_play_tricks_on_a_terminal() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("night.lock");
    let _lock = Lock::acquire(&path, "x\u{1b}[2J\ny").unwrap();
    let error = Lock::acquire(&path, "z").unwrap_err();
    assert!(error.to_string().starts_with("x[2Jy (process"), "{error}");
}

#[test]
fn waiting_without_patience_is_not_waiting() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("night.lock");
    let _lock = Lock::acquire(&path, "x").unwrap();
    let error = Lock::acquire_within(&path, "y", Duration::ZERO).unwrap_err();
    assert!(matches!(error, LockError::Held { .. }));
}

#[test]
fn a_link_is_not_followed() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("night.lock");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(Lock::acquire(&path, "x"), Err(LockError::File(_))));
    assert!(!dir.path().join("elsewhere").exists());
}
