use std::fs;
use std::process::Command;

use skillopt_files::{Error, read_bounded, read_text};
use tempfile::tempdir;

#[test]
fn the_limit_is_exact() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
    let error = read_bounded(&path, 4).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 4, .. }), "{error}");
}

#[test]
fn bad_text_is_refused_with_its_place() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, b"ab\xff").unwrap();
    let error = read_text(&path, 100).unwrap_err();
    assert!(matches!(error, Error::NotText { offset: 2, .. }), "{error}");
}

#[test]
fn a_pipe_is_refused_without_blocking() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let error = read_bounded(&path, 10).unwrap_err();
    assert!(error.to_string().contains("a named pipe"), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let dir = tempdir().unwrap();
    let error = read_bounded(&dir.path().join("none"), 10).unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().starts_with("cannot read /"), "{error}");
}
