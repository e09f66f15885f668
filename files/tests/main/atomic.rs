use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use skillopt_files::{Error, Options, write_atomic, write_atomic_json};
use tempfile::tempdir;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_file_is_private() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a");
    write_atomic(&path, b"one", Options::default()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_replaced_file_keeps_its_mode_unless_one_is_given() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomic(&path, b"new", Options::default()).unwrap();
    assert_eq!(mode(&path), 0o640);
    let options = Options {
        mode: Some(0o604),
        ..Options::default()
    };
    write_atomic(&path, b"newer", options).unwrap();
    assert_eq!(mode(&path), 0o604);
    assert_eq!(fs::read(&path).unwrap(), b"newer");
}

#[test]
fn missing_parents_are_made_private_only_on_request() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x/y/a");
    let error = write_atomic(&path, b"", Options::default()).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let options = Options {
        create_parents: true,
        ..Options::default()
    };
    write_atomic(&path, b"", options).unwrap();
    assert_eq!(mode(&dir.path().join("x")), 0o700);
    assert_eq!(mode(&dir.path().join("x/y")), 0o700);
}

#[test]
fn a_link_gives_way_and_its_target_is_left_alone() {
    let dir = tempdir().unwrap();
    let target = dir.path().join("target");
    let link = dir.path().join("link");
    fs::write(&target, "target").unwrap();
    symlink(&target, &link).unwrap();
    write_atomic(&link, b"mine", Options::default()).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"target");
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
}

#[test]
fn a_directory_in_the_way_is_refused_and_nothing_is_left() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    let error = write_atomic(&dir.path().join("a"), b"x", Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotRegular { .. }), "{error}");
    assert!(error.to_string().contains("is a directory"), "{error}");
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_path_without_a_file_name_is_refused() {
    let error = write_atomic(Path::new("/"), b"", Options::default()).unwrap_err();
    assert!(matches!(error, Error::NoFileName { .. }));
}

#[test]
fn a_name_of_the_greatest_length_can_be_written() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("n".repeat(255));
    write_atomic(&path, b"x", Options::default()).unwrap();
    let error = write_atomic(&dir.path().join("n".repeat(300)), b"x", Options::default());
    assert!(error.is_err());
    assert_eq!(names(dir.path()).len(), 1);
}

#[test]
fn json_is_readable_by_people() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("made/a.json");
    write_atomic_json(&path, &serde_json::json!({"name": "é"})).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\n  \"name\": \"é\"\n}\n"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(first: Vec<u8>, second: Vec<u8>) {
        let dir = tempdir().unwrap();
        let path = dir.path().join("a");
        for bytes in [first, second] {
            write_atomic(&path, &bytes, Options::default()).unwrap();
            prop_assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }
}
